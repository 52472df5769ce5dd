import type { IWVProvider, SocketAddress } from '../../winverbs/index.js';
import { Status, StatusError } from '../../winverbs/index.js';
import { isAdapterId, noAdapter, ProviderBase } from '../core/provider-base.js';
import type { NdAdapterOptions, NdAddress } from '../spi/common-types.js';
import type { IND2Adapter, IND2Provider } from '../spi/v2.js';
import { v2Terms } from '../status.js';
import { Adapter } from './adapter.js';

/** IND2Provider: opens adapters by id, which is their device's GUID. */
export class Provider extends ProviderBase implements IND2Provider {
  protected get interfaces() {
    return ['IND2Provider'] as const;
  }

  constructor(open: () => IWVProvider, systemAddresses?: () => SocketAddress[]) {
    super(v2Terms, open, systemAddresses);
  }

  resolveAddress(address: NdAddress): bigint {
    const what = 'ResolveAddress';
    this.alive(what);
    return this.deviceAddressOf(address, what).deviceGuid;
  }

  openAdapter(adapter: bigint | NdAddress, options?: NdAdapterOptions): IND2Adapter {
    const what = 'OpenAdapter';
    this.alive(what);
    const adapterId = isAdapterId(adapter, what) ? adapter : this.deviceAddressOf(adapter, what).deviceGuid;
    try {
      return new Adapter(this.openWv(), adapterId, this.systemAddresses, options);
    } catch (error) {
      if (error instanceof StatusError && error.status === Status.NO_SUCH_DEVICE)
        throw noAdapter(Status.INVALID_PARAMETER, what, adapterId);
      throw this.terms.error(error, what);
    }
  }
}
