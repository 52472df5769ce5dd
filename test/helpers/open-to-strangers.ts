import { type IWVProvider, openProvider } from '../../winverbs/index.js';

/**
 * Has this process's HCA open UDP port 4791, until that ends, as a listener at all addresses does: what strangers send to the port reaches
 * it when this returns. A process of the loopback addresses alone has no such port.
 */
export function openToStrangers(provider?: IWVProvider): void {
  const one = provider ?? openProvider();
  const everywhere = one.createConnectEndpoint();
  everywhere.bindAddress({ family: 4, address: '0.0.0.0', port: 0 });
  everywhere.release();
  if (provider === undefined) one.release();
}
