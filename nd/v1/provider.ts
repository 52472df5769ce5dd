import { networkInterfaces } from 'node:os';
import type { IWVProvider, KernelOptionsInput, SocketAddress } from '../../winverbs/index.js';
import { openProvider, Status, StatusError } from '../../winverbs/index.js';
import type { INDAdapter, INDProvider } from '../spi/v1.js';
import { type StatusMap, v1Call } from '../status.js';
import { Adapter } from './adapter.js';
import { isLoopback, parseAddress } from './address.js';
import { NdObject } from './object.js';

/** What an address that belongs to no device is called below. */
const addressStatuses: StatusMap = {
  [Status.NOT_FOUND]: Status.INVALID_ADDRESS,
};

/** INDProvider over WinVerbs. Every adapter has an IWVProvider, and so a device file, of its own. */
export class Provider extends NdObject implements INDProvider {
  readonly #open: () => IWVProvider;
  readonly #systemAddresses: () => SocketAddress[];
  /** For the questions that concern no adapter. */
  readonly #wv: IWVProvider;

  constructor(open: () => IWVProvider, systemAddresses: () => SocketAddress[] = addressesOfThisHost) {
    super();
    this.#open = open;
    this.#systemAddresses = systemAddresses;
    this.#wv = v1Call('Startup', open);
  }

  queryAddressList(): SocketAddress[] {
    const what = 'QueryAddressList';
    this.alive(what);
    return this.#systemAddresses().filter((address) => {
      try {
        this.#wv.translateAddress(address);
        return true;
      } catch (error) {
        // No RDMA device has it. Everything else concerns the whole question.
        if (
          error instanceof StatusError &&
          (error.status === Status.NOT_FOUND || error.status === Status.INVALID_ADDRESS)
        ) {
          return false;
        }
        return v1Call(what, () => {
          throw error;
        });
      }
    });
  }

  openAdapter(address: string | SocketAddress): INDAdapter {
    const what = 'OpenAdapter';
    this.alive(what);
    const parsed = parseAddress(address, what);
    return v1Call(what, () => new Adapter(this.#open(), parsed), addressStatuses);
  }

  protected end(): void {
    this.#wv.release();
  }
}

/** The addresses of this host's interfaces, those that lead elsewhere first. */
function addressesOfThisHost(): SocketAddress[] {
  const addresses: SocketAddress[] = [];
  for (const entries of Object.values(networkInterfaces())) {
    for (const { family, address, ...entry } of entries ?? []) {
      const scope = 'scopeid' in entry && entry.scopeid > 0 ? `%${entry.scopeid}` : '';
      addresses.push({ family: family === 'IPv4' ? 4 : 6, address: `${address}${scope}`, port: 0 });
    }
  }
  return addresses.sort((a, b) => Number(isLoopback(a.address)) - Number(isLoopback(b.address)));
}

/** Options of {@link openNetworkDirect}: those of the kernel below, see `openProvider` of WinVerbs. */
export type NetworkDirectOptions = KernelOptionsInput;

/**
 * Opens the NetworkDirect provider of this host: the entry to ND SPI v1. The first open of a process starts its
 * software HCA, and its options count.
 *
 * @throws NdError DEVICE_NOT_READY and others if the kernel does not start; the message says why.
 * @example
 * ```ts
 * using nd = openNetworkDirect();
 * using adapter = nd.openAdapter('127.0.0.1');
 * ```
 */
export function openNetworkDirect(options?: NetworkDirectOptions): INDProvider {
  return new Provider(() => openProvider(options));
}
