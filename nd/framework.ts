/**
 * Helper functions of ndsupport.h that applications call first: start NetworkDirect, list addresses, and open an
 * adapter by its address. They use the providers of this host, one for each version.
 */
import { shown } from '../kernel-bridge/ioctl/shown.js';
import type { SocketAddress } from '../winverbs/index.js';
import { Overlapped, Status } from '../winverbs/index.js';
import { parseAddress } from './core/address.js';
import type { NetworkDirectOptions } from './core/provider-base.js';
import { openRouted, type RoutedProvider } from './providers.js';
import type { NdAdapterOptions, NdAddress } from './spi/common-types.js';
import type { INDAdapter } from './spi/v1.js';
import type { IND2Adapter } from './spi/v2.js';
import { type NdError, refuse } from './status.js';
import { openNetworkDirect, type Provider as V1Provider } from './v1/provider.js';

/** ND_QUERY_*: the addresses that {@link ndQueryAddressList} omits. */
export const NdQueryFlag = {
  /** Accepted for compatibility. No provider here is an emulator. */
  EXCLUDE_EMULATOR_ADDRESSES: 0x1,
  /** Addresses that only adapters of v1 have. */
  EXCLUDE_NDV1_ADDRESSES: 0x2,
  /** Addresses that only adapters of v2 have. */
  EXCLUDE_NDV2_ADDRESSES: 0x4,
} as const;

const KNOWN_FLAGS = 0x7;

/** Interval between reads of the address list while a caller waits and the kernel does not report changes. */
const PERIOD_MS = 1000;

/** A waiting NotifyAddressListChange. */
interface Watcher {
  readonly request: Overlapped<void>;
  outcome: NdError | 'changed' | undefined;
}

/**
 * The framework: counts the calls of NdStartup and NdCleanup, and holds the providers in between.
 *
 * @internal
 */
export class NdFramework {
  #started = 0;
  #options: NetworkDirectOptions | undefined;
  #v1: V1Provider | undefined;
  #v2: RoutedProvider | undefined;
  /** The last reported list, as text. */
  #known: string | undefined;
  readonly #watchers = new Set<Watcher>();
  #timer: NodeJS.Timeout | undefined;
  /** The request for the kernel's next change, while a caller waits, and the number of known changes. */
  #change: Overlapped<number> | undefined;
  #changes = 0;

  constructor(
    private readonly openV1: (options?: NetworkDirectOptions) => V1Provider,
    private readonly openV2: (options?: NetworkDirectOptions) => RoutedProvider,
    private readonly periodMs = PERIOD_MS,
  ) {}

  startup(options?: NetworkDirectOptions): void {
    if (this.#started === 0) {
      this.#options = options;
      // Problems of this host are thus reported here rather than by the first query.
      this.#v2 = this.openV2(options);
    } else if (options !== undefined) {
      // Options that differ from those in use are refused.
      this.openV2(options).release();
    }
    this.#started += 1;
  }

  cleanup(): void {
    this.#check('NdCleanup');
    this.#started -= 1;
    if (this.#started > 0) return;
    const ended = refuse(Status.CANCELED, 'NdNotifyAddressListChange', 'NdCleanup was called.');
    for (const watcher of [...this.#watchers]) this.#end(watcher, ended);
    this.#known = undefined;
    this.flushProviders();
  }

  flushProviders(): void {
    this.#v1?.release();
    this.#v2?.release();
    this.#v1 = undefined;
    this.#v2 = undefined;
    this.#change = undefined;
    this.#changes = 0;
    if (this.#watchers.size > 0) this.#watch();
  }

  queryAddressList(flags: number): SocketAddress[] {
    const what = 'NdQueryAddressList';
    this.#check(what);
    if (!Number.isInteger(flags) || (flags & ~KNOWN_FLAGS) !== 0) {
      throw refuse(
        Status.INVALID_PARAMETER,
        what,
        `\`flags\` must be an OR of NdQueryFlag values; got ${shown(flags)}.`,
      );
    }
    const all = this.#list();
    this.#known = textOf(all);
    // Every address has adapters of both versions, so the list is empty only if both flags are set.
    const neither = NdQueryFlag.EXCLUDE_NDV1_ADDRESSES | NdQueryFlag.EXCLUDE_NDV2_ADDRESSES;
    return (flags & neither) === neither ? [] : all;
  }

  resolveAddress(remote: NdAddress): SocketAddress {
    const what = 'NdResolveAddress';
    this.#check(what);
    const local = this.#provider2().localAddressFor(remote, what);
    this.checkAddress(local);
    return local;
  }

  checkAddress(address: NdAddress): void {
    const what = 'NdCheckAddress';
    this.#check(what);
    parseAddress(address, what);
    this.#provider2().resolveAddress(address);
  }

  openAdapter(address: NdAddress, options?: NdAdapterOptions): IND2Adapter {
    this.#check('NdOpenAdapter');
    const provider = this.#provider2();
    return provider.openAdapter(provider.resolveAddress(address), options);
  }

  openV1Adapter(address: NdAddress, options?: NdAdapterOptions): INDAdapter {
    this.#check('NdOpenV1Adapter');
    this.#v1 ??= this.openV1(this.#options);
    return this.#v1.openAdapter(address, options);
  }

  notifyAddressListChange(): Overlapped<void> {
    const what = 'NdNotifyAddressListChange';
    this.#check(what);
    this.#known ??= textOf(this.#list());
    const watcher: Watcher = {
      outcome: undefined,
      request: new Overlapped<void>({
        completed: () => watcher.outcome !== undefined,
        take: () => {
          if (watcher.outcome !== 'changed') throw watcher.outcome;
        },
        wait: () => {
          while (watcher.outcome === undefined) {
            this.#compareList();
            if (watcher.outcome === undefined) this.#sleep();
          }
        },
        cancel: () => this.#end(watcher, refuse(Status.CANCELED, what, 'The notification was cancelled.')),
      }),
    };
    this.#watchers.add(watcher);
    this.#watch();
    // A change since the last report completes the request immediately.
    this.#compareList();
    return watcher.request;
  }

  /** Compares the list after the kernel's next change, or once in each period. */
  #watch(): void {
    if (this.#change !== undefined || this.#timer !== undefined) return;
    const change = this.#provider2().awaitChange(this.#changes);
    this.#change = change;
    if (change === undefined) this.#timer = setInterval(() => this.#compareList(), this.periodMs);
    else
      change.then(
        (changes) => this.#changed(change, changes),
        () => this.#changed(change, 0),
      );
  }

  #changed(change: Overlapped<number>, changes: number): void {
    if (this.#change !== change) return;
    this.#change = undefined;
    this.#changes = changes;
    this.#compareList();
    if (this.#watchers.size > 0) this.#watch();
  }

  /** Blocks the thread until the list may have changed. */
  #sleep(): void {
    const change = this.#change;
    if (change === undefined) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, this.periodMs);
      return;
    }
    let changes = 0;
    try {
      changes = change.getResult({ wait: true });
    } catch {
      // The kernel or its provider has ended, which reading the list reports.
    }
    this.#changed(change, changes);
  }

  #compareList(): void {
    let outcome: NdError | 'changed';
    try {
      const now = textOf(this.#list());
      if (now === this.#known) return;
      this.#known = now;
      outcome = 'changed';
    } catch (error) {
      outcome = error as NdError;
    }
    for (const watcher of [...this.#watchers]) this.#end(watcher, outcome);
  }

  #end(watcher: Watcher, outcome: NdError | 'changed'): void {
    if (!this.#watchers.delete(watcher)) return;
    watcher.outcome = outcome;
    if (this.#watchers.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      this.#change?.cancel();
      this.#change = undefined;
    }
    watcher.request.settle();
  }

  #list(): SocketAddress[] {
    return this.#provider2().queryAddressList();
  }

  #provider2(): RoutedProvider {
    this.#v2 ??= this.openV2(this.#options);
    return this.#v2;
  }

  #check(what: string): void {
    if (this.#started === 0) {
      throw refuse(Status.DEVICE_NOT_READY, what, 'NetworkDirect must be started. Call ndStartup() first.');
    }
  }
}

function textOf(list: readonly SocketAddress[]): string {
  return list
    .map(({ address }) => address)
    .sort()
    .join(' ');
}

const framework = new NdFramework(
  (options) => openNetworkDirect(options) as V1Provider,
  (options) => openRouted(options),
);

/**
 * NdStartup: enables the other functions of this module. Calls are counted, and each needs an {@link ndCleanup}. The
 * first open in a thread starts its software HCA with these options; later ones must not pass others.
 *
 * @param options - options of the kernel; default: none
 * @throws NdError DEVICE_NOT_READY and others if the kernel does not start; the message has the reason.
 */
export function ndStartup(options?: NetworkDirectOptions): void {
  framework.startup(options);
}

/**
 * NdCleanup: the counterpart of {@link ndStartup}. Open adapters stay open.
 *
 * @throws NdError DEVICE_NOT_READY (not started)
 */
export function ndCleanup(): void {
  framework.cleanup();
}

/** NdFlushProviders: releases the providers until they are needed again. Never fails. */
export function ndFlushProviders(): void {
  framework.flushProviders();
}

/**
 * NdQueryAddressList: returns the local addresses of the adapters that can be opened (port 0), each once.
 *
 * @param flags - an OR of {@link NdQueryFlag}
 * @throws NdError DEVICE_NOT_READY, INVALID_PARAMETER
 */
export function ndQueryAddressList(flags = 0): SocketAddress[] {
  return framework.queryAddressList(flags);
}

/**
 * NdResolveAddress: returns the adapter's local address that is the source of the route to `remote`.
 *
 * @param remote - a host's address, as text or as a socket address; its port does not matter
 * @throws NdError DEVICE_NOT_READY, INVALID_ADDRESS (not a host's address, or no adapter has the route's source),
 *   NETWORK_UNREACHABLE
 */
export function ndResolveAddress(remote: NdAddress): SocketAddress {
  return framework.resolveAddress(remote);
}

/**
 * NdCheckAddress: succeeds for a local address of an adapter.
 *
 * @param address - a local address, as text or as a socket address; its port does not matter
 * @throws NdError DEVICE_NOT_READY, INVALID_ADDRESS
 */
export function ndCheckAddress(address: NdAddress): void {
  framework.checkAddress(address);
}

/**
 * NdOpenAdapter: opens an adapter (v2) by one of its addresses, whose port does not matter.
 *
 * @param address - a local address, as text or as a socket address; its port does not matter
 * @param options - options of the adapter instance
 * @throws NdError DEVICE_NOT_READY, INVALID_ADDRESS, INVALID_PARAMETER, NO_MEMORY
 */
export function ndOpenAdapter(address: NdAddress, options?: NdAdapterOptions): IND2Adapter {
  return framework.openAdapter(address, options);
}

/**
 * NdOpenV1Adapter: the counterpart of {@link ndOpenAdapter} for v1.
 *
 * @param address - a local address, as text or as a socket address; its port does not matter
 * @param options - options of the adapter instance
 * @throws NdError DEVICE_NOT_READY, INVALID_ADDRESS, INVALID_PARAMETER, NO_MEMORY
 */
export function ndOpenV1Adapter(address: NdAddress, options?: NdAdapterOptions): INDAdapter {
  return framework.openV1Adapter(address, options);
}

/**
 * Waits until the address list differs from the last result of {@link ndQueryAddressList} or, if that was never called,
 * from the present list. All waiting calls complete together.
 *
 * Completes with SUCCESS or CANCELED; the last {@link ndCleanup} cancels it.
 *
 * @throws NdError DEVICE_NOT_READY
 */
export function ndNotifyAddressListChange(): Overlapped<void> {
  return framework.notifyAddressListChange();
}
