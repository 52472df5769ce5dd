import {
  argumentMemory,
  type ComObject,
  loadProvider,
  type NdProviderEntry,
} from '../../kernel-bridge/windows/nd-provider/index.js';
import { type SocketAddress, Status, StatusError } from '../../winverbs/index.js';
import { parseAddress } from '../core/address.js';
import { NdObject } from '../core/nd-object.js';
import { isAdapterId } from '../core/provider-base.js';
import type { NdAdapterOptions, NdAddress } from '../spi/common-types.js';
import type { IND2Adapter, IND2Provider } from '../spi/v2.js';
import { addressList, withAddress } from './native-address.js';
import { vendorTerms } from './statuses.js';
import { VendorAdapter } from './vendor-adapter.js';

/** IND2Provider of a vendor's DLL. */
export class VendorProvider extends NdObject implements IND2Provider {
  protected get interfaces() {
    return ['IND2Provider'] as const;
  }

  readonly #com: ComObject<'IND2Provider'>;

  /** @throws NdError NOT_SUPPORTED if the DLL cannot be loaded or does not conform to the SPI; otherwise the DLL's result */
  constructor(readonly entry: NdProviderEntry) {
    super();
    this.#com = vendorTerms.call('Startup', () => checked(loadProvider(entry)));
  }

  queryAddressList(): SocketAddress[] {
    const what = 'QueryAddressList';
    this.alive(what);
    return vendorTerms.call(what, () => addressList(this.#com));
  }

  resolveAddress(address: NdAddress): bigint {
    const what = 'ResolveAddress';
    this.alive(what);
    const local = { ...parseAddress(address, what), port: 0 };
    return vendorTerms.call(what, () => {
      const id = argumentMemory(8);
      withAddress(this.#com, what, local, id.address);
      return new DataView(id.bytes.buffer).getBigUint64(0, true);
    });
  }

  openAdapter(adapter: bigint | NdAddress, options?: NdAdapterOptions): IND2Adapter {
    const what = 'OpenAdapter';
    this.alive(what);
    const id = isAdapterId(adapter, what) ? adapter : this.resolveAddress(adapter);
    return new VendorAdapter(this.#com, this.entry, id, options);
  }

  protected end(): void {
    // The thread keeps the DLL's provider for the next open.
  }
}

/** Checks that the provider reports its addresses, as the SPI's own library does. */
function checked(com: ComObject<'IND2Provider'>): ComObject<'IND2Provider'> {
  try {
    addressList(com);
    return com;
  } catch (error) {
    const { message } = error as Error;
    throw new StatusError(Status.NOT_SUPPORTED, `The provider does not report its addresses: ${message}`);
  }
}
