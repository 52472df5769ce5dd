import { shown } from '../../kernel-bridge/ioctl/shown.js';
import type { SocketAddress, WvDeviceAddress, WvMemoryRegion } from '../../winverbs/index.js';
import { Status, StatusError } from '../../winverbs/index.js';
import type { NdAddress } from '../spi/common-types.js';
import { NdError, refuse, type StatusMap, type Terms } from '../status.js';
import { isCount } from './argument-checks.js';
import type { EndpointBelow } from './below.js';
import type { MemoryWindow } from './memory-window.js';
import { NdObject } from './nd-object.js';
import { OverlappedFile } from './overlapped-file.js';
import type { MemoryResolver } from './scatter-gather.js';

/**
 * Failures of a deregistration that can succeed later: a window is bound to the memory, or a stopped peer may still
 * write to it.
 */
const retryable: ReadonlySet<number> = new Set([Status.ACCESS_DENIED, Status.DEVICE_BUSY, Status.NO_MEMORY]);

/**
 * Statuses of addresses, endpoints and connections that follow from a removed device, without naming it as the cause.
 */
const symptoms: ReadonlySet<number> = new Set([
  Status.INVALID_ADDRESS,
  Status.INVALID_HANDLE,
  Status.INVALID_DEVICE_STATE,
  Status.CONNECTION_INVALID,
  Status.CONNECTION_ABORTED,
]);

/** Limits that connections and requests are checked against. */
export interface AdapterBounds {
  readonly maxCqEntries: number;
  readonly maxReadSge: number;
  readonly maxRegistration: number;
  readonly maxInboundReads: number;
  readonly maxOutboundReads: number;
  readonly maxCallerData: number;
  readonly maxCalleeData: number;
}

/**
 * Base of all adapters, independent of the layer that executes their requests. It owns the objects created from it and
 * holds their common state.
 */
export abstract class AdapterObject extends NdObject {
  abstract readonly terms: Terms;
  /** Finds the memory that requests of this adapter refer to. */
  abstract readonly memory: MemoryResolver;
  /** Maximum length of a request in bytes. */
  abstract readonly maxTransfer: number;
  abstract readonly bounds: AdapterBounds;
  /** The P_Key of the adapter's listeners. */
  abstract readonly pkey: number | undefined;
  /** Device and port, if the layer below needs them for listening at the wildcard address. */
  abstract readonly deviceAddress: WvDeviceAddress | undefined;
  /** Whether queue pairs stay as they are when the peer disconnects. */
  abstract readonly keepQueuePairs: boolean;
  /** Bound windows by key. */
  readonly windows = new Map<number, MemoryWindow>();
  /** v1: the file of all requests, once the client has called GetFileHandle. */
  file: OverlappedFile | undefined = undefined;

  /** Memory whose region was released while windows were bound to it. */
  readonly #opened = new Set<WvMemoryRegion>();
  /** Live objects created from this adapter. */
  readonly #children = new Set<NdObject>();

  /** Throws DEVICE_REMOVED if the device does not work. */
  abstract checkPresent(what: string): void;
  /** Checks that an address is local to this adapter. Throws INVALID_ADDRESS for any other, including the wildcard. */
  abstract ownAddress(address: NdAddress, what: string): SocketAddress;
  /** Creates an endpoint of the layer below, for a connector or a listener. */
  abstract endpointBelow(listens: boolean, protocol?: number): EndpointBelow;
  /** Deregisters memory. */
  abstract deregister(region: WvMemoryRegion): void;

  /** Adds a reference of a child, which {@link Symbol.asyncDispose} also releases. */
  addChild(child: NdObject): void {
    this.#children.add(child);
    this.addInternalRef();
  }

  /** Reverts {@link addChild}. */
  removeChild(child: NdObject): void {
    this.#children.delete(child);
    this.releaseInternalRef();
  }

  /** Disconnects and releases everything created from this adapter, regardless of reference counts, and then itself. */
  async [Symbol.asyncDispose](): Promise<void> {
    const connectors = [...this.#children].filter((child) => Symbol.asyncDispose in child);
    await Promise.all(connectors.map((connector) => (connector as AsyncDisposable)[Symbol.asyncDispose]()));
    for (const child of [...this.#children].reverse()) while (!child.ended) child.release();
    while (!this.ended) this.release();
  }

  /** The same as {@link Terms.error}, for addresses and connections; returns DEVICE_REMOVED if that is the cause. */
  error(error: StatusError, what: string, map?: StatusMap): NdError;
  error(error: unknown, what: string, map?: StatusMap): unknown;
  error(error: unknown, what: string, map?: StatusMap): unknown {
    const failure = this.terms.error(error, what, map);
    if (!(failure instanceof NdError && symptoms.has(failure.status) && this.#isGone())) return failure;
    return new NdError(
      Status.DEVICE_REMOVED,
      `${what}: The device of this adapter was removed or has failed. Release the adapter and everything created from it, and open another. (${failure.message})`,
      { cause: failure },
    );
  }

  /** The same as {@link Terms.call}, with {@link error}. */
  call<T>(what: string, call: () => T, map?: StatusMap): T {
    try {
      return call();
    } catch (error) {
      throw this.error(error, what, map);
    }
  }

  /** Throws `status` for an invalid number of completion queue entries. */
  checkCqEntries(entries: number, what: string, status: number, name: string): void {
    const { maxCqEntries } = this.bounds;
    if (!isCount(entries, 1, maxCqEntries)) {
      throw refuse(
        status,
        what,
        `\`${name}\` must be an integer from 1 to ${maxCqEntries}; got ${shown(entries)}.`,
      );
    }
  }

  /** Checks that `queue` is a completion queue of this adapter instance. */
  protected completionQueueOf<T extends NdObject & { readonly adapter: AdapterObject }>(
    queue: unknown,
    type: abstract new (...args: never[]) => T,
    what: string,
    status: number,
    which: string,
  ): T {
    if (!(queue instanceof type) || queue.adapter !== this || queue.ended) {
      throw refuse(
        status,
        what,
        `\`${which}\` must be a completion queue of this adapter instance and not released; got ${shown(queue)}.`,
      );
    }
    return queue;
  }

  /** Deregisters memory whose region was released: now, or as soon as possible. */
  dropMemory(region: WvMemoryRegion): void {
    this.#opened.add(region);
    this.deregisterReleased();
  }

  /**
   * Deregisters memory that waits for deregistration, because windows may have been unbound or other memory released.
   */
  deregisterReleased(): void {
    for (const region of this.#opened) {
      try {
        this.deregister(region);
      } catch (error) {
        // Any other error would occur again.
        if (error instanceof StatusError && retryable.has(error.status)) continue;
        this.abandon(region);
      }
      this.#opened.delete(region);
    }
  }

  /** Called for a released region that cannot be deregistered. */
  protected abandon(_region: WvMemoryRegion): void {}

  #isGone(): boolean {
    try {
      this.checkPresent('');
      return false;
    } catch (error) {
      return error instanceof NdError && error.status === Status.DEVICE_REMOVED;
    }
  }

  /** v2: checks the file that an object is created with. Throws INVALID_HANDLE if it is not a file or is closed. */
  protected fileOf(file: unknown, what: string, name = 'file'): OverlappedFile | undefined {
    if (file === undefined || (file instanceof OverlappedFile && !file.closed)) return file;
    throw refuse(
      Status.INVALID_HANDLE,
      what,
      `\`${name}\` must be a file returned by createOverlappedFile and not closed; got ${shown(file)}.`,
    );
  }
}
