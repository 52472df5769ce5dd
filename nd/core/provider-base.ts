import { networkInterfaces } from 'node:os';
import { shown } from '../../kernel-bridge/ioctl/shown.js';
import type {
  IWVProvider,
  KernelOptionsInput,
  Overlapped,
  SocketAddress,
  WvDeviceAddress,
} from '../../winverbs/index.js';
import { addressOfGid, gidOf, Status, StatusError, scopeIdOfAddress } from '../../winverbs/index.js';
import type { NdAddress } from '../spi/common-types.js';
import { type NdError, refuse, type StatusMap, type Terms } from '../status.js';
import { addressStatuses, isLoopback, parseAddress } from './address.js';
import { NdObject } from './nd-object.js';

/** Translates the statuses of WinVerbs for a destination that is not a host. */
const routeStatuses: StatusMap = {
  [Status.BAD_NETWORK_NAME]: Status.INVALID_ADDRESS,
  [Status.BAD_NETWORK_PATH]: Status.INVALID_ADDRESS,
  [Status.NOT_FOUND]: Status.INVALID_ADDRESS,
};

/** Options of a provider, which are those of the kernel; see `openProvider` of WinVerbs. */
export type NetworkDirectOptions = KernelOptionsInput;

/**
 * Base of INDProvider and IND2Provider, over WinVerbs. Every adapter has an IWVProvider of its own, and therefore its
 * own device file.
 */
export abstract class ProviderBase extends NdObject {
  readonly terms: Terms;
  protected readonly openWv: () => IWVProvider;
  protected readonly systemAddresses: () => SocketAddress[];
  /** The WinVerbs provider for queries that do not belong to an adapter. */
  readonly #wv: IWVProvider;

  constructor(
    terms: Terms,
    open: () => IWVProvider,
    systemAddresses: () => SocketAddress[] = addressesOfThisHost,
  ) {
    super();
    this.terms = terms;
    this.openWv = open;
    this.systemAddresses = systemAddresses;
    this.#wv = terms.call('Startup', open);
  }

  queryAddressList(): SocketAddress[] {
    const what = 'QueryAddressList';
    this.alive(what);
    return this.terms.call(what, () =>
      addressesOf(this.#wv, this.systemAddresses()).map(([address]) => address),
    );
  }

  /**
   * Returns the number of changes of devices and addresses so far, once it differs from `known`; with 0 it returns
   * immediately. Undefined if this kernel does not report changes.
   */
  awaitChange(known: number): Overlapped<number> | undefined {
    try {
      return this.#wv.notifyDeviceChange(known);
    } catch (error) {
      if (error instanceof StatusError && error.status === Status.NOT_SUPPORTED) return undefined;
      throw this.terms.error(error, 'NotifyAddressListChange');
    }
  }

  /** Returns the device of an address. Throws INVALID_ADDRESS if no device has it. */
  protected deviceAddressOf(address: NdAddress, what: string): WvDeviceAddress {
    const local = { ...parseAddress(address, what), port: 0 };
    return this.terms.call(what, () => this.#wv.translateAddress(local), addressStatuses);
  }

  /** Returns the first address of a device. Throws INVALID_PARAMETER if it has none. */
  protected addressOf(adapterId: bigint, what: string): SocketAddress {
    const addresses = this.terms.call(what, () => addressesOf(this.#wv, this.systemAddresses()));
    const own = addresses.find(([, device]) => device.deviceGuid === adapterId);
    if (own !== undefined) return own[0];
    throw noAdapter(Status.INVALID_PARAMETER, what, adapterId);
  }

  /**
   * Returns the local address that is the source of the route to a remote one.
   *
   * @throws NdError INVALID_ADDRESS (not a host's address), NETWORK_UNREACHABLE
   */
  localAddressFor(remote: NdAddress, what: string): SocketAddress {
    this.alive(what);
    const { family, address } = parseAddress(remote, what);
    const path = this.terms.call(
      what,
      () => this.#wv.resolvePath({ family, address, port: 0 }),
      routeStatuses,
    );
    const local = addressOfGid(gidOf(path.addressVector.sourceGid), scopeIdOfAddress(address));
    return { family, address: local, port: 0 };
  }

  protected end(): void {
    this.#wv.release();
  }
}

/** Whether an adapter is given by its id. Throws INVALID_PARAMETER for an id that exceeds 64 bits. */
export function isAdapterId(adapter: unknown, what: string): adapter is bigint {
  if (typeof adapter !== 'bigint') return false;
  if (BigInt.asUintN(64, adapter) === adapter) return true;
  throw refuse(
    Status.INVALID_PARAMETER,
    what,
    `\`adapter\` must be an unsigned 64-bit bigint, as resolveAddress returns; got ${shown(adapter)}.`,
  );
}

/** Returns the addresses of RDMA devices among `addresses`, with their devices. */
export function addressesOf(wv: IWVProvider, addresses: SocketAddress[]): [SocketAddress, WvDeviceAddress][] {
  return addresses.flatMap((address): [SocketAddress, WvDeviceAddress][] => {
    try {
      return [[address, wv.translateAddress(address)]];
    } catch (error) {
      // No RDMA device has this address. Any other error makes the whole query fail.
      if (error instanceof StatusError && noDevice.has(error.status)) return [];
      throw error;
    }
  });
}

const noDevice: ReadonlySet<number> = new Set([Status.NOT_FOUND, Status.INVALID_ADDRESS]);

/** Returns the addresses of this host's interfaces, loopback addresses last. */
export function addressesOfThisHost(): SocketAddress[] {
  const addresses: SocketAddress[] = [];
  for (const entries of Object.values(networkInterfaces())) {
    for (const { family, address, ...entry } of entries ?? []) {
      const scope = 'scopeid' in entry && entry.scopeid > 0 ? `%${entry.scopeid}` : '';
      addresses.push({ family: family === 'IPv4' ? 4 : 6, address: `${address}${scope}`, port: 0 });
    }
  }
  return addresses.sort((a, b) => Number(isLoopback(a.address)) - Number(isLoopback(b.address)));
}

/** The error for an id that no adapter has. */
export function noAdapter(status: number, what: string, adapterId: bigint): NdError {
  const id = `0x${adapterId.toString(16)}`;
  const text = `\`adapter\` must be the id of an adapter with an address; got ${id}. Use queryAddressList() and resolveAddress().`;
  return refuse(status, what, text);
}
