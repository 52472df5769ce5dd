/// <reference lib="esnext.disposable" preserve="true" />
/**
 * NetworkDirect for Node.js: the SPI's interfaces, statuses, and the provider over WinVerbs.
 *
 * @module networkdirect
 */

export type { AllocateOptions } from '../winverbs/index.js';
export { Status, StatusError, statusName, statusText } from '../winverbs/index.js';
export { allocate } from './allocate.js';
export {
  acceptEndpoint,
  acceptQueuePair,
  connectEndpoint,
  connectQueuePair,
  type Nd2AcceptingOptions,
  type Nd2Connected,
  type Nd2ConnectingOptions,
  type NdAcceptingOptions,
  type NdConnectingOptions,
} from './connecting.js';
export type { NetworkDirectOptions } from './core/provider-base.js';
export {
  NdQueryFlag,
  ndCheckAddress,
  ndCleanup,
  ndFlushProviders,
  ndNotifyAddressListChange,
  ndOpenAdapter,
  ndOpenV1Adapter,
  ndQueryAddressList,
  ndResolveAddress,
  ndStartup,
} from './framework.js';
export { claimLocalName, type LocalNameClaim, portsOfLocalName } from './local-names.js';
export { type NdProviderEntry, ndProviderOf, openNetworkDirect2, readNdProviders } from './providers.js';
export * from './spi/v1.js';
export * from './spi/v2.js';
export { NdError } from './status.js';
export { openNetworkDirect } from './v1/provider.js';
export { firstResult, nextResult, type WaitOptions } from './waiting.js';
