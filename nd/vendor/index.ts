/** The SPI over the NetworkDirect v2 providers of vendors (Windows). */

export { wantedProviders } from '../../kernel-bridge/door/windows-kernel.js';
export {
  type NdProviderEntry,
  readCatalogue,
  routeSource,
} from '../../kernel-bridge/windows/nd-provider/index.js';
export { lists } from './native-address.js';
export { VendorAdapter } from './vendor-adapter.js';
export { VendorProvider } from './vendor-provider.js';
