/**
 * The NetworkDirect SPI, version 2, as TypeScript contracts for clients and for any provider.
 *
 * How the C SPI maps to these interfaces:
 * - Every call, and every {@link Overlapped}, that ends in anything but SUCCESS throws or rejects with an `NdError`,
 *   whatever the severity bits of its status. PENDING is the `Overlapped` that is not done; it is delivered exactly
 *   once, also if it was done when the call returned. Requests on queue pairs report their outcome in an
 *   {@link Nd2Result}; they throw only when nothing was queued.
 * - Values that C returns through out-parameters and size probes are returned whole, so BUFFER_OVERFLOW does not occur.
 * - An overlapped file is a completion port at once ({@link NdOverlappedFile}). Create… methods take one as their last argument, which
 *   may be left out: every `Overlapped` can be awaited anyway. In place of IIDs there are names.
 * - Arguments of Create… methods are named; INVALID_PARAMETER_n counts those of the C method.
 * - Ports are in host order. Addresses of memory are bigints and tokens numbers, both as the owner's methods answer
 *   them; requests name remote memory by an {@link Nd2RemoteMemory} and a byte offset.
 * - Objects are reference counted. Children keep their parents: everything may be released in any order, and
 *   `release` never fails. Releasing the last reference cancels what the object still waits for. A method of an object
 *   that was released throws INVALID_HANDLE.
 * - Each object belongs to one adapter instance; objects of different instances must not be mixed.
 */
import type { GetResultOptions, Overlapped, SocketAddress } from '../../winverbs/index.js';
import type {
  NdAdapterOptions,
  NdNotifyType,
  NdOverlappedFile,
  NdOverlappedObject,
  NdUnknown,
} from './types.js';
import type { INDMemoryWindow } from './v1.js';
import type { IND2Connector, IND2Listener } from './v2-connections.js';
import type {
  Nd2Affinity,
  Nd2QueuePairOptions,
  Nd2SharedReceiveQueueOptions,
  Nd2SrqQueuePairOptions,
} from './v2-options.js';
import type { IND2QueuePair } from './v2-queue-pairs.js';
import type { Nd2AdapterInfo, Nd2Result, Nd2Sge } from './v2-types.js';

export type {
  NdAdapterOptions,
  NdCompletedRequest,
  NdInterfaces,
  NdNotifyType,
  NdOverlappedFile,
  NdOverlappedObject,
  NdUnknown,
} from './types.js';
export * from './v2-connections.js';
export type * from './v2-options.js';
export type * from './v2-queue-pairs.js';
export * from './v2-types.js';
export type { GetResultOptions, Overlapped, SocketAddress };

/** ND_VERSION_2. */
export const ND_VERSION_2 = 0x2_0000;

/** IND2Overlapped {ABF72719-B016-4A40-A6F7-622791A7044C}: an object with overlapped requests. */
export interface IND2Overlapped extends NdOverlappedObject {}

/**
 * IND2Provider {49EAE6C1-76C4-46D0-8003-5C2EAA2C9A8E}: the entry to a provider's adapters.
 *
 * @example
 * ```ts
 * using provider = openNetworkDirect2();
 * for (const { address } of provider.queryAddressList()) console.log(address);
 * using adapter = provider.openAdapter('127.0.0.1');
 * ```
 */
export interface IND2Provider extends NdUnknown {
  /**
   * The local addresses of all adapters (port 0). The list changes as addresses come and go.
   *
   * @throws DEVICE_NOT_READY, NO_MEMORY
   * @see IND2Provider::QueryAddressList
   */
  queryAddressList(): SocketAddress[];

  /**
   * The id of the adapter with a local address, given as text (`'192.0.2.1'`, `'fe80::1%2'`) or as a socket address
   * whose port does not matter. An adapter can have several addresses.
   *
   * @param address - a local one, as text or as a socket address; its port does not matter
   * @throws INVALID_ADDRESS if no adapter has it (the wildcard address included), NO_MEMORY
   * @see IND2Provider::ResolveAddress
   */
  resolveAddress(address: string | SocketAddress): bigint;

  /**
   * Opens a new, independent instance of an adapter.
   * @param adapter - a result of {@link resolveAddress}, or the address itself
   * @param options - the partition
   * @throws INVALID_PARAMETER if no adapter has the id, or for the options, INVALID_ADDRESS if none has the address, NO_MEMORY
   * @see IND2Provider::OpenAdapter
   */
  openAdapter(adapter: bigint | string | SocketAddress, options?: NdAdapterOptions): IND2Adapter;
}

/**
 * IND2Adapter {D89C798C-4823-4D69-846C-DFDCCFF9E5F3}: one instance of an adapter.
 *
 * @example
 * ```ts
 * await using adapter = ndOpenAdapter('127.0.0.1');
 * const { maxInlineDataSize } = adapter.query();
 * const queue = adapter.createCompletionQueue(128);
 * const queuePair = adapter.createQueuePair({
 *   receiveCompletionQueue: queue,
 *   initiatorCompletionQueue: queue,
 *   receiveQueueDepth: 64,
 *   initiatorQueueDepth: 64,
 *   inlineDataSize: Math.min(64, maxInlineDataSize),
 * });
 * ```
 */
export interface IND2Adapter extends NdUnknown {
  /**
   * The adapter's limits.
   *
   * @param version - {@link ND_VERSION_2}, the only one there is.
   * @throws NOT_SUPPORTED for another version, DEVICE_REMOVED
   * @see IND2Adapter::Query
   */
  query(version?: number): Nd2AdapterInfo;

  /**
   * The local addresses of this adapter (port 0).
   *
   * @throws DEVICE_NOT_READY, NO_MEMORY
   * @see IND2Adapter::QueryAddressList
   */
  queryAddressList(): SocketAddress[];

  /**
   * Makes a file for overlapped requests: a completion port for the objects that are made with it. Several files of one adapter are
   * independent of each other.
   *
   * @throws NO_MEMORY
   * @see IND2Adapter::CreateOverlappedFile
   */
  createOverlappedFile(): NdOverlappedFile;

  /**
   * Makes a completion queue with at least `depth` entries. It may have fewer entries than the queues that use it.
   *
   * @param depth - entries, 1 up to maxCompletionQueueDepth
   * @param affinity - processors that completions should interrupt; default: no wish
   * @param file - collects the requests of the queue; INVALID_HANDLE if it is closed
   * @throws INVALID_PARAMETER_3 below 1 or above maxCompletionQueueDepth, INVALID_PARAMETER for an affinity that is none,
   *   NO_MEMORY, INSUFFICIENT_RESOURCES
   * @see IND2Adapter::CreateCompletionQueue
   */
  createCompletionQueue(depth: number, affinity?: Nd2Affinity, file?: NdOverlappedFile): IND2CompletionQueue;

  /**
   * Makes a memory region without registered memory.
   *
   * @param file - collects the requests of the object; INVALID_HANDLE if it is closed
   * @throws INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see IND2Adapter::CreateMemoryRegion
   */
  createMemoryRegion(file?: NdOverlappedFile): IND2MemoryRegion;

  /**
   * Makes an unbound memory window.
   *
   * @throws INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see IND2Adapter::CreateMemoryWindow
   */
  createMemoryWindow(): IND2MemoryWindow;

  /**
   * Makes a shared receive queue.
   *
   * @param options - depth and threshold in Receives, scatter/gather entries per Receive
   * @throws INVALID_PARAMETER_3 (depth below 1 or above maxSharedReceiveQueueDepth), INVALID_PARAMETER_4 (maxRequestSge),
   * INVALID_PARAMETER_5 (notifyThreshold above the depth), NOT_SUPPORTED where maxSharedReceiveQueueDepth is 0,
   * INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see IND2Adapter::CreateSharedReceiveQueue
   */
  createSharedReceiveQueue(options: Nd2SharedReceiveQueueOptions): IND2SharedReceiveQueue;

  /**
   * Makes a queue pair. Receives can be posted at once, other requests when it is connected. Depths and entries are
   * from 1 up to the adapter's limits.
   *
   * @param options - completion queues; depths in requests; scatter/gather entries per request; inline bytes
   * @throws INVALID_PARAMETER_2 (receiveCompletionQueue), _3 (initiatorCompletionQueue), _5 (receiveQueueDepth),
   * _6 (initiatorQueueDepth), _7 (maxReceiveRequestSge), _8 (maxInitiatorRequestSge), _9 (inlineDataSize),
   * INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see IND2Adapter::CreateQueuePair
   */
  createQueuePair(options: Nd2QueuePairOptions): IND2QueuePair;

  /**
   * Makes a queue pair that takes its Receives from a shared receive queue.
   *
   * @param options - completion and shared receive queues; depth in requests; scatter/gather entries per request; inline bytes
   * @throws INVALID_PARAMETER_2 (receiveCompletionQueue), _3 (initiatorCompletionQueue), _4 (sharedReceiveQueue),
   * _6 (initiatorQueueDepth), _7 (maxInitiatorRequestSge), _8 (inlineDataSize), NOT_SUPPORTED, INSUFFICIENT_RESOURCES,
   * NO_MEMORY
   * @see IND2Adapter::CreateQueuePairWithSrq
   */
  createQueuePairWithSrq(options: Nd2SrqQueuePairOptions): IND2QueuePair;

  /**
   * Makes an idle connector. It serves one connection, as its active or its passive side.
   *
   * @param file - collects the requests of the object; INVALID_HANDLE if it is closed
   * @throws INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see IND2Adapter::CreateConnector
   */
  createConnector(file?: NdOverlappedFile): IND2Connector;

  /**
   * Makes an idle listener.
   *
   * @param file - collects the requests of the object; INVALID_HANDLE if it is closed
   * @throws INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see IND2Adapter::CreateListener
   */
  createListener(file?: NdOverlappedFile): IND2Listener;

  /** Ends everything that was made from it, whoever holds references, and then itself; for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * IND2CompletionQueue {20CC445E-64A0-4CBB-AA75-F6A7251FDA9E}.
 *
 * @example
 * ```ts
 * const results: Nd2Result[] = [];
 * await queue.notify('any');
 * for (let count = queue.getResults(results, 32); count > 0; count = queue.getResults(results, 32))
 *   for (const { requestContext, status } of results.slice(0, count)) console.log(requestContext, status);
 * ```
 */
export interface IND2CompletionQueue extends IND2Overlapped {
  /** Number of entries, at least as many as requested. */
  readonly entries: number;

  /**
   * The processors that deliver notifications. Here that is the event loop of this thread: those on which the thread may run, of
   * several groups the first.
   *
   * @throws NOT_SUPPORTED where a provider does not know.
   * @see IND2CompletionQueue::GetNotifyAffinity
   */
  getNotifyAffinity(): Nd2Affinity;

  /**
   * Changes the number of entries; no completion is lost, traffic need not stop.
   *
   * @param depth - entries, 1 up to maxCompletionQueueDepth
   * @throws INVALID_PARAMETER (limits), BUFFER_OVERFLOW if more are waiting than would fit; nothing changed then.
   * NOT_SUPPORTED without CQ_RESIZE_SUPPORTED.
   * @see IND2CompletionQueue::Resize
   */
  resize(depth: number): void;

  /**
   * Waits for the next event: any completion; a solicited one (of a Send with SEND_AND_SOLICIT_EVENT, or any failed
   * request); or an error of the queue itself. A completion after the last `getResults` that returned fewer than its
   * maximum satisfies it at once. All waiting calls complete together. Poll again after issuing it and after it has
   * ended: it may end without a new completion.
   *
   * Ends in BUFFER_OVERFLOW (the queue has overrun and failed for good), INTERNAL_ERROR, CANCELED, DEVICE_REMOVED.
   *
   * @param type - `'any'`, `'solicited'` or `'errors'`
   * @throws INVALID_PARAMETER for another type
   * @see IND2CompletionQueue::Notify
   */
  notify(type: NdNotifyType): Overlapped<void>;

  /**
   * Whether to poll on before a {@link notify}: a hint of providers that know whether polling has paid lately. A program that waits
   * for a result and has something else to do calls it before each `getResults`; after `false` one more `getResults` follows, and
   * `notify` if that returns 0. It never fails. Missing: the provider gives no hint, and `notify` alone is the way to wait. An addition
   * to the SPI.
   */
  shouldPoll?(): boolean;

  /**
   * Takes completed requests, in order: fills `results` from the start, at most `max` of them, and returns their
   * number. Objects in the array are reused; where there is none, or none that can be written, it makes a new one.
   * Fewer than `max` means that the queue is empty. It allocates nothing if the array is full of results. A call from a
   * setter of a result returns 0: the outer call continues.
   *
   * @param results - filled from its start
   * @param max - default: the length of `results`, at least 1.
   * @throws INVALID_PARAMETER: `results` is no array, or `max` not a whole number from 0 on. It fails for no other
   *   reason.
   * @see IND2CompletionQueue::GetResults
   */
  getResults(results: Nd2Result[], max?: number): number;
}

/**
 * IND2MemoryRegion {55DFEA2F-BC56-4982-8A45-0301BE46C413}: one registered buffer at a time.
 *
 * @example
 * ```ts
 * using region = adapter.createMemoryRegion();
 * const memory = allocate(1 << 20);
 * await region.register(memory, Nd2MrFlag.ALLOW_LOCAL_WRITE | Nd2MrFlag.ALLOW_REMOTE_READ);
 * queuePair.receive('first', [{ memory: region, offset: 0, length: 4096 }]);
 * // A peer that is told this can read it.
 * console.log(region.address, region.getRemoteToken());
 * await region.deregister();
 * ```
 */
export interface IND2MemoryRegion extends IND2Overlapped {
  /**
   * Registers memory. Any fixed-length ArrayBuffer, SharedArrayBuffer or view can be registered, any number of times in
   * regions with any rights, and is pinned while registered.
   *
   * Ends in INSUFFICIENT_RESOURCES, CANCELED, DEVICE_REMOVED.
   *
   * @param buffer - at least 1 byte, at most maxRegistrationSize bytes
   * @param flags - an OR of {@link Nd2MrFlag}; 0 allows only reading by local requests.
   * @throws INVALID_DEVICE_STATE (a buffer is registered here), INVALID_PARAMETER (no such buffer, above
   *   maxRegistrationSize, resizable, detached, unknown flags), INVALID_BUFFER_SIZE (no bytes), NOT_SUPPORTED (with
   *   this runtime native code can hold only memory of `allocate()`)
   * @see IND2MemoryRegion::Register
   */
  register(buffer: ArrayBufferLike | ArrayBufferView, flags: number): Overlapped<void>;

  /**
   * Ends the registration; the region can register again, with new tokens. Requests that still use the memory fail with
   * ACCESS_VIOLATION. On failure the memory stays registered.
   *
   * Ends in DEVICE_BUSY while a window is bound to it, DEVICE_REMOVED. It has completed when the call returns, either way.
   *
   * @throws INVALID_DEVICE_STATE if nothing is registered
   * @see IND2MemoryRegion::Deregister
   */
  deregister(): Overlapped<void>;

  /** Native address of the first byte, for peers. @throws INVALID_DEVICE_STATE unless registered */
  readonly address: bigint;
  /** Number of registered bytes; 0 if there are none. */
  readonly length: number;

  /**
   * The token of local requests: scatter/gather entries may name the region by it. It is valid until the memory is
   * deregistered, or the region released.
   *
   * @throws INVALID_DEVICE_STATE unless registered
   * @see IND2MemoryRegion::GetLocalToken
   */
  getLocalToken(): number;

  /**
   * The token for peers, as the number that is on the wire; it grants the access that the flags of `register` allow.
   *
   * @throws INVALID_DEVICE_STATE unless registered
   * @see IND2MemoryRegion::GetRemoteToken
   */
  getRemoteToken(): number;
}

/**
 * IND2MemoryWindow {070FE1F5-0AB5-4361-88DB-974BA704D4B9}, the id of INDMemoryWindow: one object implements both. It
 * opens a range of a region to the peer of the queue pair that it is bound on, and to no other. It ends with the
 * connection that it was bound on, and with its last reference.
 * @example
 * ```ts
 * using window = adapter.createMemoryWindow();
 * queuePair.bind('bind', region, window, 0, 4096, Nd2OpFlag.ALLOW_READ);
 * await nextResult(queue);
 * const remote = new Nd2RemoteMemory(region.address, window.getRemoteToken());
 * // The peer has read it: it may not do so again.
 * queuePair.invalidate('invalidate', window);
 * ```
 */
export interface IND2MemoryWindow extends INDMemoryWindow {
  /**
   * The token for the peer, valid when Bind returns: the next Send may carry it. It changes with every Bind.
   *
   * @throws INVALID_DEVICE_STATE before the first Bind
   * @see IND2MemoryWindow::GetRemoteToken
   */
  getRemoteToken(): number;
}

/**
 * IND2SharedReceiveQueue {AABD67DC-459A-4DB1-826B-56CFCC278883}: Receives for several queue pairs.
 *
 * @example
 * ```ts
 * using shared = adapter.createSharedReceiveQueue({ depth: 256, notifyThreshold: 32 });
 * const options = { sharedReceiveQueue: shared, receiveCompletionQueue: inbound, initiatorCompletionQueue: outbound };
 * const pairs = [1, 2, 3].map(() => adapter.createQueuePairWithSrq({ ...options, initiatorQueueDepth: 16 }));
 * for (let n = 0; n < 256; n++) shared.receive(n, [{ memory: region, offset: 4096 * n, length: 4096 }]);
 * // Fewer than 32 are left.
 * await shared.notify();
 * ```
 */
export interface IND2SharedReceiveQueue extends IND2Overlapped {
  /**
   * As in {@link IND2CompletionQueue}.
   *
   * @throws NOT_SUPPORTED where a provider does not know
   * @see IND2SharedReceiveQueue::GetNotifyAffinity
   */
  getNotifyAffinity(): Nd2Affinity;

  /**
   * Changes the depth and the threshold of `notify`. 0 leaves a value as it is.
   *
   * @param depth - Receives; 0: unchanged
   * @param notifyThreshold - Receives, up to the depth; 0: unchanged
   * @throws INVALID_PARAMETER (limits), BUFFER_OVERFLOW (depth below the outstanding Receives); nothing changed then.
   * @see IND2SharedReceiveQueue::Modify
   */
  modify(depth: number, notifyThreshold: number): void;

  /**
   * Waits until fewer Receives than the threshold are outstanding; ends at once if that is so already. With threshold 0
   * it waits for an error only. All waiting calls complete together.
   *
   * Ends in INTERNAL_ERROR, CANCELED, DEVICE_REMOVED.
   *
   * @see IND2SharedReceiveQueue::Notify
   */
  notify(): Overlapped<void>;

  /**
   * Posts memory for one message of any of the queue pairs. The result appears in the completion queue of the queue
   * pair that took it, with that queue pair's context.
   *
   * @param context - any value; the result returns it
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @throws NO_MORE_ENTRIES, DATA_OVERRUN, BUFFER_OVERFLOW, INVALID_HANDLE, as {@link IND2QueuePair.receive}
   * @see IND2SharedReceiveQueue::Receive
   */
  receive(context: unknown, sgl: readonly Nd2Sge[]): void;
}

declare module './types.js' {
  interface NdInterfaces {
    /** Every object of the second version with requests that can wait. */
    IND2Overlapped: IND2Overlapped;
    /** The root of the second version. */
    IND2Provider: IND2Provider;
    /** Made by {@link IND2Provider.openAdapter}. */
    IND2Adapter: IND2Adapter;
    /** Made by {@link IND2Adapter.createCompletionQueue}. */
    IND2CompletionQueue: IND2CompletionQueue;
    /** Made by {@link IND2Adapter.createMemoryRegion}. */
    IND2MemoryRegion: IND2MemoryRegion;
    /** Made by {@link IND2Adapter.createMemoryWindow}. */
    IND2MemoryWindow: IND2MemoryWindow;
    /** Made by {@link IND2Adapter.createSharedReceiveQueue}. */
    IND2SharedReceiveQueue: IND2SharedReceiveQueue;
    /** Made by {@link IND2Adapter.createQueuePair}. */
    IND2QueuePair: IND2QueuePair;
    /** Made by {@link IND2Adapter.createConnector}. */
    IND2Connector: IND2Connector;
    /** Made by {@link IND2Adapter.createListener}. */
    IND2Listener: IND2Listener;
  }
}
