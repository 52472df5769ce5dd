/**
 * Which provider of v2 has an address. On Windows vendors have NetworkDirect providers, and an adapter is of the one that lists its
 * address; all other addresses are those of the kernel below: the WinVerbs driver's, or the soft kernel's.
 */
import {
  type Overlapped,
  openProvider,
  type SocketAddress,
  Status,
  StatusError,
  wantedProviders,
} from '../winverbs/index.js';
import { parseAddress } from './core/address.js';
import { NdObject } from './core/nd-object.js';
import { isAdapterId, type NetworkDirectOptions } from './core/provider-base.js';
import type { NdAdapterOptions, NdAddress } from './spi/common-types.js';
import type { IND2Adapter, IND2Provider } from './spi/v2.js';
import { NdError, refuse } from './status.js';
import { Provider } from './v2/provider.js';
import {
  type CatalogueEntry,
  readCatalogue,
  routeSource,
  VendorAdapter,
  VendorProvider,
} from './vendor/index.js';

/** A provider, as the framework needs it. */
export interface RoutedProvider extends IND2Provider {
  /** The local address from which a route leads to a remote one. */
  localAddressFor(remote: NdAddress, what: string): SocketAddress;
  /** Ends when addresses have changed since `known` changes; undefined: look again after a while. */
  awaitChange(known: number): Overlapped<number> | undefined;
}

/** A NetworkDirect provider of this system, as the Winsock catalogue or `NETWORKDIRECT_ND_PROVIDERS` has it. */
export interface NdProviderEntry {
  /** The DLL's name, which the option `hca` takes: `mlx5nd.dll`. */
  readonly library: string;
  /** Its absolute path. */
  readonly path: string;
  /** The name in the catalogue; empty: the environment names it. */
  readonly protocol: string;
  /** The provider's GUID, as text. */
  readonly id: string;
  /** The version of the file, such as `24.4.26429.0`; empty: it has none. */
  readonly version: string;
  /** Why it is not loaded; missing: it may be. */
  readonly refused?: string;
}

/**
 * Lists the NetworkDirect v2 providers of vendors that this system has, in the order in which they are asked for an address. None of them
 * is loaded. On systems other than Windows there are none. Not a part of the SPI.
 *
 * @throws NdError NOT_SUPPORTED: the package koffi is missing, which calls them
 */
export function readNdProviders(): NdProviderEntry[] {
  return process.platform === 'win32' ? catalogue() : [];
}

/** The provider of a vendor that an adapter is of; undefined: it is the driver's or the software HCA's. Not a part of the SPI. */
export function ndProviderOf(adapter: IND2Adapter): NdProviderEntry | undefined {
  return adapter instanceof VendorAdapter ? adapter.entry : undefined;
}

function catalogue(): CatalogueEntry[] {
  try {
    return readCatalogue();
  } catch (error) {
    throw error instanceof StatusError ? new NdError(error.status, error.message, { cause: error }) : error;
  }
}

/** DLLs of which a warning has said that they cannot be used. */
const warned = new Set<string>();

/** Those of `auto` that can be loaded: without koffi, or with a broken DLL, there is the kernel below. */
function usable(): VendorProvider[] {
  let entries: CatalogueEntry[];
  try {
    entries = catalogue();
  } catch {
    return [];
  }
  return entries.flatMap((entry) => {
    try {
      return new VendorProvider(entry);
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      if (!warned.has(entry.path)) {
        const text = `The NetworkDirect provider ${entry.path} is not used: ${error.message}`;
        process.emitWarning(text, 'NetworkDirectWarning');
      }
      warned.add(entry.path);
      return [];
    }
  });
}

/** Those that the option `hca` names, all of which must load. */
function named(hca: string): VendorProvider[] {
  const entries = catalogue();
  const wanted = hca.toLowerCase().replace(/\.dll$/, '');
  const chosen =
    hca === 'rdma'
      ? entries
      : entries.filter(({ library }) => library.toLowerCase().replace(/\.dll$/, '') === wanted);
  if (chosen.length > 0) return chosen.map((entry) => new VendorProvider(entry));
  const known = entries.map(({ library }) => library).join(', ') || 'none';
  const text = `\`hca\` must be 'auto', 'soft', 'rdma' or the DLL of a NetworkDirect provider (${known} here); got '${hca}'.`;
  throw refuse(Status.NO_SUCH_DEVICE, 'Startup', text);
}

/** Several providers as one. */
class Providers extends NdObject implements RoutedProvider {
  protected get interfaces() {
    return ['IND2Provider'] as const;
  }

  #below: Provider | undefined;
  /** Whose an adapter's id is. */
  readonly #ids = new Map<bigint, IND2Provider>();

  /** @param openBelow - opens the kernel below when an address needs it; undefined: there is to be none */
  constructor(
    private readonly vendors: readonly VendorProvider[],
    private readonly openBelow: (() => Provider) | undefined,
  ) {
    super();
  }

  queryAddressList(): SocketAddress[] {
    this.alive('QueryAddressList');
    const own = this.vendors.flatMap((vendor) => this.#listOf(vendor));
    const others = this.#kernel()?.queryAddressList() ?? [];
    const known = new Set(own.map(({ address }) => address));
    return [...own, ...others.filter(({ address }) => !known.has(address))];
  }

  /** With a kernel below, a provider that fails has no addresses. */
  #listOf(vendor: VendorProvider): SocketAddress[] {
    try {
      return vendor.queryAddressList();
    } catch (error) {
      if (this.openBelow === undefined || !(error instanceof StatusError)) throw error;
      return [];
    }
  }

  #ownerOf({ address }: SocketAddress): VendorProvider | undefined {
    return this.vendors.find((vendor) => this.#listOf(vendor).some((own) => own.address === address));
  }

  #kernel(): Provider | undefined {
    this.#below ??= this.openBelow?.();
    return this.#below;
  }

  resolveAddress(address: NdAddress): bigint {
    const what = 'ResolveAddress';
    this.alive(what);
    const local = parseAddress(address, what);
    const owner = this.#ownerOf(local) ?? this.#kernel();
    if (owner === undefined) {
      const text = `\`address\` must be one that a provider lists; got ${local.address}. queryAddressList() answers them.`;
      throw refuse(Status.INVALID_ADDRESS, what, text);
    }
    const id = owner.resolveAddress(local);
    this.#ids.set(id, owner);
    return id;
  }

  openAdapter(adapter: bigint | NdAddress, options?: NdAdapterOptions): IND2Adapter {
    const what = 'OpenAdapter';
    this.alive(what);
    const id = isAdapterId(adapter, what) ? adapter : this.resolveAddress(adapter);
    const owner = this.#ids.get(id) ?? this.#kernel() ?? this.vendors[0]!;
    return owner.openAdapter(id, options);
  }

  localAddressFor(remote: NdAddress, what: string): SocketAddress {
    this.alive(what);
    const peer = { ...parseAddress(remote, what), port: 0 };
    if (this.#ownerOf(peer) !== undefined) return peer;
    const source = routeSource(peer);
    if (source !== undefined && this.#ownerOf(source) !== undefined) return source;
    const kernel = this.#kernel();
    if (kernel !== undefined) return kernel.localAddressFor(remote, what);
    const text = `No provider has the address from which the system's route to ${peer.address} leaves (${source?.address ?? 'it has none'}).`;
    throw refuse(source === undefined ? Status.NETWORK_UNREACHABLE : Status.INVALID_ADDRESS, what, text);
  }

  /** Providers do not tell. */
  awaitChange(): undefined {
    return undefined;
  }

  protected end(): void {
    for (const vendor of this.vendors) vendor.release();
    this.#below?.release();
  }
}

/**
 * Opens the NetworkDirect provider of this host: the entry to ND SPI v2. The first open in a process starts its
 * software HCA with these options. On Windows the adapter of an address is, by default, that of the vendor's NetworkDirect provider that
 * lists the address; else the WinVerbs driver's; else the software HCA's. The option `hca` chooses: `soft`, `rdma` (providers of vendors
 * alone), or the name of a provider's DLL.
 *
 * @throws NdError DEVICE_NOT_READY and others if the kernel does not start; NO_SUCH_DEVICE, NOT_SUPPORTED: the named provider is not there,
 *   or cannot be loaded; the message has the reason.
 * @example
 * ```ts
 * using nd = openNetworkDirect2();
 * using adapter = nd.openAdapter('127.0.0.1');
 * ```
 */
export function openNetworkDirect2(options?: NetworkDirectOptions): IND2Provider {
  return openRouted(options);
}

/** @internal As {@link openNetworkDirect2}, for the framework. */
export function openRouted(options?: NetworkDirectOptions): RoutedProvider {
  const open = (): Provider => new Provider(() => openProvider(options));
  const hca = process.platform === 'win32' ? wantedProviders(options) : undefined;
  if (hca === undefined) return open();
  if (hca !== 'auto') return new Providers(named(hca), undefined);
  const vendors = usable();
  return vendors.length === 0 ? open() : new Providers(vendors, open);
}
