import type { IWVProvider, SocketAddress } from '../../winverbs/index.js';
import { openProvider } from '../../winverbs/index.js';
import { addressStatuses, parseAddress } from '../core/address.js';
import { isAdapterId, type NetworkDirectOptions, ProviderBase } from '../core/provider-base.js';
import type { NdAdapterOptions, NdAddress } from '../spi/common-types.js';
import type { INDAdapter, INDProvider } from '../spi/v1.js';
import { v1Terms } from '../status.js';
import { Adapter } from './adapter.js';

/** INDProvider: opens adapters by address. */
export class Provider extends ProviderBase implements INDProvider {
  protected get interfaces() {
    return ['INDProvider'] as const;
  }

  constructor(open: () => IWVProvider, systemAddresses?: () => SocketAddress[]) {
    super(v1Terms, open, systemAddresses);
  }

  openAdapter(adapter: NdAddress | bigint, options?: NdAdapterOptions): INDAdapter {
    const what = 'OpenAdapter';
    this.alive(what);
    const parsed = isAdapterId(adapter, what) ? this.addressOf(adapter, what) : parseAddress(adapter, what);
    return this.terms.call(what, () => new Adapter(this.openWv(), parsed, options), addressStatuses);
  }
}

/**
 * Opens the NetworkDirect provider of this host: the entry to ND SPI v1. The first open in a thread starts its
 * software HCA with these options; later ones must not pass others.
 *
 * @throws NdError INVALID_PARAMETER (an invalid option, or one that differs from those in use), DEVICE_NOT_READY and
 *   others if the kernel does not start; the message has the reason
 * @example
 * ```ts
 * using nd = openNetworkDirect();
 * using adapter = nd.openAdapter('127.0.0.1');
 * ```
 */
export function openNetworkDirect(options?: NetworkDirectOptions): INDProvider {
  return new Provider(() => openProvider(options));
}
