/**
 * Selects the v2 provider for an address. On Windows, an address that a vendor's NetworkDirect provider lists belongs to
 * that provider. All others belong to the kernel: the WinVerbs driver or the soft kernel.
 */
import { type Overlapped, openProvider, type SocketAddress, Status, StatusError } from '../winverbs/index.js';
import { parseAddress } from './core/address.js';
import { NdObject } from './core/nd-object.js';
import { isAdapterId, type NetworkDirectOptions } from './core/provider-base.js';
import type { NdAdapterOptions, NdAddress } from './spi/common-types.js';
import type { IND2Adapter, IND2Provider } from './spi/v2.js';
import { NdError, refuse, v2Terms } from './status.js';
import { Provider } from './v2/provider.js';
import {
  lists,
  type NdProviderEntry,
  readCatalogue,
  routeSource,
  VendorAdapter,
  VendorProvider,
  wantedProviders,
} from './vendor/index.js';

/** A provider, with the members that the framework uses. */
export interface RoutedProvider extends IND2Provider {
  /** Returns the local source address for a remote one. */
  localAddressFor(remote: NdAddress, what: string): SocketAddress;
  /** Completes when addresses change after `known` changes; undefined if the caller must poll. */
  awaitChange(known: number): Overlapped<number> | undefined;
}

export type { NdProviderEntry };

/**
 * Lists the NetworkDirect v2 providers of vendors on this host, in the order of the search for an address, without loading them. The list
 * is empty on systems other than Windows. This function is not part of the SPI.
 *
 * @throws NdError NOT_SUPPORTED if the package koffi is not installed
 */
export function readNdProviders(): NdProviderEntry[] {
  return process.platform === 'win32' ? catalogue() : [];
}

/**
 * Returns the vendor's provider of an adapter; undefined for the WinVerbs driver and the soft kernel. This function is
 * not part of the SPI.
 */
export function ndProviderOf(adapter: IND2Adapter): NdProviderEntry | undefined {
  return adapter instanceof VendorAdapter ? adapter.entry : undefined;
}

function catalogue(): NdProviderEntry[] {
  try {
    return readCatalogue();
  } catch (error) {
    throw error instanceof StatusError ? new NdError(error.status, error.message, { cause: error }) : error;
  }
}

/** Paths of DLLs that a warning was emitted for. */
const warned = new Set<string>();

/** Emits a warning about a provider that `auto` does not use, once. Throws other errors. */
function omit({ path }: NdProviderEntry, error: unknown): [] {
  if (!(error instanceof StatusError)) throw error;
  if (!warned.has(path)) {
    const text = `The NetworkDirect provider ${path} is not used: ${error.message}`;
    process.emitWarning(text, 'NetworkDirectWarning');
  }
  warned.add(path);
  return [];
}

/** Opens the providers for `auto`. Providers that cannot be loaded are omitted, and all of them if koffi is not installed. */
function usable(): VendorProvider[] {
  let entries: NdProviderEntry[];
  try {
    entries = catalogue();
  } catch {
    return [];
  }
  return entries.flatMap((entry) => {
    try {
      return new VendorProvider(entry);
    } catch (error) {
      return omit(entry, error);
    }
  });
}

/** Opens the providers that the option `hca` names. Throws if any of them cannot be loaded. */
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

/** Combines several providers into one. */
class Providers extends NdObject implements RoutedProvider {
  protected get interfaces() {
    return ['IND2Provider'] as const;
  }

  #below: Provider | undefined;
  /** Adapters by the id that {@link resolveAddress} has returned. Providers choose their ids independently. */
  readonly #adapters = new Map<bigint, { readonly owner: IND2Provider; readonly id: bigint }>();

  /** @param openBelow - opens the kernel on first use; undefined for vendors' providers only */
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

  /** Returns no addresses for a provider that fails, if there is a kernel. */
  #listOf(vendor: VendorProvider): SocketAddress[] {
    try {
      return vendor.queryAddressList();
    } catch (error) {
      if (this.openBelow === undefined) throw error;
      return omit(vendor.entry, error);
    }
  }

  #ownerOf(address: SocketAddress, what: string): VendorProvider | undefined {
    return v2Terms.call(what, () => this.vendors.find((vendor) => lists(this.#listOf(vendor), address)));
  }

  #kernel(): Provider | undefined {
    this.#below ??= this.openBelow?.();
    return this.#below;
  }

  resolveAddress(address: NdAddress): bigint {
    const what = 'ResolveAddress';
    this.alive(what);
    const local = parseAddress(address, what);
    const owner = this.#ownerOf(local, what) ?? this.#kernel();
    if (owner === undefined) {
      const text = `\`address\` must be an address of a provider; got ${local.address}. queryAddressList() returns them.`;
      throw refuse(Status.INVALID_ADDRESS, what, text);
    }
    const id = owner.resolveAddress(local);
    let unique = id;
    while ((this.#adapters.get(unique)?.owner ?? owner) !== owner) unique = BigInt.asUintN(64, unique + 1n);
    this.#adapters.set(unique, { owner, id });
    return unique;
  }

  openAdapter(adapter: bigint | NdAddress, options?: NdAdapterOptions): IND2Adapter {
    const what = 'OpenAdapter';
    this.alive(what);
    const id = isAdapterId(adapter, what) ? adapter : this.resolveAddress(adapter);
    const known = this.#adapters.get(id);
    if (known !== undefined) return known.owner.openAdapter(known.id, options);
    return (this.#kernel() ?? this.vendors[0]!).openAdapter(id, options);
  }

  localAddressFor(remote: NdAddress, what: string): SocketAddress {
    this.alive(what);
    const peer = { ...parseAddress(remote, what), port: 0 };
    if (this.#ownerOf(peer, what) !== undefined) return peer;
    const source = routeSource(peer);
    if (source !== undefined && this.#ownerOf(source, what) !== undefined) return source;
    const kernel = this.#kernel();
    if (kernel !== undefined) return kernel.localAddressFor(remote, what);
    const text = `\`remote\` must be reachable from an address of a provider; got ${peer.address}, whose route has the source address ${source?.address ?? 'unknown'}.`;
    throw refuse(source === undefined ? Status.NETWORK_UNREACHABLE : Status.INVALID_ADDRESS, what, text);
  }

  /** Providers do not report changes. */
  awaitChange(): undefined {
    return undefined;
  }

  protected end(): void {
    for (const vendor of this.vendors) vendor.release();
    this.#below?.release();
  }
}

/**
 * Opens the NetworkDirect provider of this host: the entry to ND SPI v2. The first open in a thread starts its
 * software HCA with these options; later ones must not pass others. On Windows, the adapter of an address is by default
 * that of the vendor's NetworkDirect provider which lists the address, otherwise that of the WinVerbs driver or the
 * software HCA. The option `hca` selects: `soft`, `rdma` (vendors' providers only), or the name of a provider's DLL.
 *
 * @throws NdError INVALID_PARAMETER (an invalid option, or one that differs from those in use), DEVICE_NOT_READY and
 *   others if the kernel does not start; NO_SUCH_DEVICE or NOT_SUPPORTED if the named
 *   provider does not exist or cannot be loaded; the message has the reason
 * @example
 * ```ts
 * using nd = openNetworkDirect2();
 * using adapter = nd.openAdapter('127.0.0.1');
 * ```
 */
export function openNetworkDirect2(options?: NetworkDirectOptions): IND2Provider {
  return openRouted(options);
}

/** The same as {@link openNetworkDirect2}, for the framework. @internal */
export function openRouted(options?: NetworkDirectOptions): RoutedProvider {
  const open = (): Provider => new Provider(() => openProvider(options));
  const hca = process.platform === 'win32' ? wantedProviders(options) : undefined;
  if (hca === undefined) return open();
  if (hca !== 'auto') return new Providers(named(hca), undefined);
  const vendors = usable();
  return vendors.length === 0 ? open() : new Providers(vendors, open);
}
