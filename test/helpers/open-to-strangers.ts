import { type IWVProvider, openProvider } from '../../winverbs/index.js';

/**
 * Makes this process's HCA open UDP port 4791 until the process exits, as a listener on all addresses does. After the call, packets of
 * strangers to the port reach it. A process that only uses loopback addresses does not open the port.
 */
export function openToStrangers(provider?: IWVProvider): void {
  const one = provider ?? openProvider();
  const everywhere = one.createConnectEndpoint();
  everywhere.bindAddress({ family: 4, address: '0.0.0.0', port: 0 });
  everywhere.release();
  if (provider === undefined) one.release();
}
