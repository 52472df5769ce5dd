/**
 * The NetworkDirect SPI, version 2, as TypeScript contracts for clients and for any provider.
 *
 * How the C SPI maps to these interfaces:
 * - Every call, and every {@link Overlapped}, that completes with a status other than SUCCESS throws or rejects with an
 *   `NdError`, whatever the severity bits of the status. PENDING corresponds to an `Overlapped` that is not done; it is
 *   delivered exactly once, even if it was already done when the call returned. Requests on queue pairs report their
 *   outcome in an {@link Nd2Result}; they throw only when nothing was queued.
 * - Values that C returns through out-parameters and size probes are returned whole, so BUFFER_OVERFLOW does not occur.
 * - An overlapped file is also a completion port ({@link NdOverlappedFile}). It is the last argument of Create…
 *   methods, and optional, because every `Overlapped` can be awaited anyway. Names replace IIDs.
 * - Arguments of Create… methods are named; INVALID_PARAMETER_n counts those of the C method.
 * - Ports are in host order. Addresses of memory are bigints and tokens are numbers, as the owner's methods return
 *   them. Requests refer to remote memory by an {@link Nd2RemoteMemory} and a byte offset.
 * - Objects are reference counted. Children keep their parents alive: objects may be released in any order, and
 *   `release` never fails. Releasing the last reference cancels the object's outstanding requests. A method of a
 *   released object throws INVALID_HANDLE.
 * - Each object belongs to one adapter instance; objects of different instances must not be mixed.
 */
import type { GetResultOptions, Overlapped, SocketAddress } from '../../winverbs/index.js';
import type {
  NdAdapterOptions,
  NdAddress,
  NdNotifyType,
  NdOverlappedFile,
  NdOverlappedObject,
  NdUnknown,
} from './common-types.js';
import type { INDMemoryWindow } from './v1.js';
import type {
  Nd2AdapterInfo,
  Nd2Affinity,
  Nd2Direct,
  Nd2DirectResult,
  Nd2QueuePairOptions,
  Nd2ReadLimits,
  Nd2RemoteMemory,
  Nd2Result,
  Nd2Sge,
  Nd2SharedReceiveQueueOptions,
  Nd2SrqQueuePairOptions,
} from './v2-types.js';

export type {
  NdAdapterOptions,
  NdAddress,
  NdCompletedRequest,
  NdInterfaces,
  NdNotifyType,
  NdOverlappedFile,
  NdOverlappedObject,
  NdUnknown,
} from './common-types.js';
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
   * Returns the local addresses of all adapters (port 0). The list changes as addresses come and go.
   *
   * @throws DEVICE_NOT_READY, NO_MEMORY
   * @see IND2Provider::QueryAddressList
   * @category Open
   */
  queryAddressList(): SocketAddress[];

  /**
   * Returns the id of the adapter that has a local address. An adapter can have several addresses.
   *
   * @param address - a local address, as text (`'192.0.2.1'`, `'fe80::1%2'`) or as a socket address; its port does not
   *   matter
   * @throws INVALID_ADDRESS (no adapter has it, or it is the wildcard), NO_MEMORY
   * @see IND2Provider::ResolveAddress
   * @category Open
   */
  resolveAddress(address: NdAddress): bigint;

  /**
   * Opens a new, independent instance of an adapter.
   * @param adapter - a result of {@link resolveAddress}, or the address itself
   * @param options - options of the instance
   * @throws INVALID_PARAMETER (id or options), INVALID_ADDRESS (no adapter has the address), NO_MEMORY
   * @see IND2Provider::OpenAdapter
   * @category Open
   */
  openAdapter(adapter: bigint | NdAddress, options?: NdAdapterOptions): IND2Adapter;
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
   * Returns the adapter's limits.
   *
   * @param version - {@link ND_VERSION_2}, the only version
   * @throws NOT_SUPPORTED (another version), DEVICE_REMOVED
   * @see IND2Adapter::Query
   * @category Devices
   */
  query(version?: number): Nd2AdapterInfo;

  /**
   * Returns the local addresses of this adapter (port 0).
   *
   * @throws DEVICE_NOT_READY, NO_MEMORY
   * @see IND2Adapter::QueryAddressList
   * @category Devices
   */
  queryAddressList(): SocketAddress[];

  /**
   * Creates a file for overlapped requests: a completion port for the objects that are created with it. Files of one
   * adapter are independent of each other.
   *
   * @throws NO_MEMORY
   * @see IND2Adapter::CreateOverlappedFile
   * @category Devices
   */
  createOverlappedFile(): NdOverlappedFile;

  /**
   * Creates a completion queue with at least `depth` entries. It may have fewer entries than the queues that use it.
   *
   * @param depth - entries, 1 up to maxCompletionQueueDepth
   * @param affinity - CPUs that completions should interrupt, by default without preference
   * @param file - collects the requests of the queue; INVALID_HANDLE if it is closed
   * @throws INVALID_PARAMETER_3 (below 1 or above maxCompletionQueueDepth), INVALID_PARAMETER (not a valid affinity),
   *   NO_MEMORY, INSUFFICIENT_RESOURCES
   * @see IND2Adapter::CreateCompletionQueue
   * @category Queues
   */
  createCompletionQueue(depth: number, affinity?: Nd2Affinity, file?: NdOverlappedFile): IND2CompletionQueue;

  /**
   * Creates a memory region without registered memory.
   *
   * @param file - collects the requests of the object; INVALID_HANDLE if it is closed
   * @throws INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see IND2Adapter::CreateMemoryRegion
   * @category Memory
   */
  createMemoryRegion(file?: NdOverlappedFile): IND2MemoryRegion;

  /**
   * Creates an unbound memory window.
   *
   * @throws INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see IND2Adapter::CreateMemoryWindow
   * @category Memory
   */
  createMemoryWindow(): IND2MemoryWindow;

  /**
   * Creates a shared receive queue.
   *
   * @param options - depth and threshold in Receives, scatter/gather entries per Receive
   * @throws INVALID_PARAMETER_3 (depth below 1 or above maxSharedReceiveQueueDepth), INVALID_PARAMETER_4
   *   (maxRequestSge), INVALID_PARAMETER_5 (notifyThreshold above the depth), NOT_SUPPORTED where
   *   maxSharedReceiveQueueDepth is 0, INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see IND2Adapter::CreateSharedReceiveQueue
   * @category Queues
   */
  createSharedReceiveQueue(options: Nd2SharedReceiveQueueOptions): IND2SharedReceiveQueue;

  /**
   * Creates a queue pair. Receives can be posted immediately, other requests once it is connected. Depths and entries
   * are from 1 up to the adapter's limits.
   *
   * @param options - completion queues, depths in requests, scatter/gather entries per request, and inline bytes
   * @throws INVALID_PARAMETER_2 (receiveCompletionQueue), _3 (initiatorCompletionQueue), _5 (receiveQueueDepth),
   * _6 (initiatorQueueDepth), _7 (maxReceiveRequestSge), _8 (maxInitiatorRequestSge), _9 (inlineDataSize),
   * INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see IND2Adapter::CreateQueuePair
   * @category Queues
   */
  createQueuePair(options: Nd2QueuePairOptions): IND2QueuePair;

  /**
   * Creates a queue pair whose Receives come from a shared receive queue.
   *
   * @param options - completion and shared receive queues, depth in requests, scatter/gather entries per request, and
   *   inline bytes
   * @throws INVALID_PARAMETER_2 (receiveCompletionQueue), _3 (initiatorCompletionQueue), _4 (sharedReceiveQueue),
   * _6 (initiatorQueueDepth), _7 (maxInitiatorRequestSge), _8 (inlineDataSize), NOT_SUPPORTED, INSUFFICIENT_RESOURCES,
   * NO_MEMORY
   * @see IND2Adapter::CreateQueuePairWithSrq
   * @category Queues
   */
  createQueuePairWithSrq(options: Nd2SrqQueuePairOptions): IND2QueuePair;

  /**
   * Creates an idle connector. It serves one connection, on the active or the passive side.
   *
   * @param file - collects the requests of the object; INVALID_HANDLE if it is closed
   * @throws INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see IND2Adapter::CreateConnector
   * @category Connect
   */
  createConnector(file?: NdOverlappedFile): IND2Connector;

  /**
   * Creates an idle listener.
   *
   * @param file - collects the requests of the object; INVALID_HANDLE if it is closed
   * @throws INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see IND2Adapter::CreateListener
   * @category Connect
   */
  createListener(file?: NdOverlappedFile): IND2Listener;

  /**
   * Releases everything created from the adapter, regardless of reference counts, and then the adapter itself; for
   * `await using`.
   * @category Lifetime
   */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * IND2CompletionQueue {20CC445E-64A0-4CBB-AA75-F6A7251FDA9E}: reports completed requests.
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
  /** Number of entries; at least as many as requested. @category Queues */
  readonly entries: number;

  /**
   * Returns the CPUs that deliver notifications. Here these are the CPUs on which the event loop's thread may run, in
   * the first group if there are several.
   *
   * @throws NOT_SUPPORTED if the provider does not know them
   * @see IND2CompletionQueue::GetNotifyAffinity
   * @category Queues
   */
  getNotifyAffinity(): Nd2Affinity;

  /**
   * Changes the number of entries, without losing completions or stopping traffic.
   *
   * @param depth - entries, 1 up to maxCompletionQueueDepth
   * @throws INVALID_PARAMETER (limits), BUFFER_OVERFLOW (the waiting completions would not fit), NOT_SUPPORTED (without
   * CQ_RESIZE_SUPPORTED). The queue is then unchanged.
   * @see IND2CompletionQueue::Resize
   * @category Queues
   */
  resize(depth: number): void;

  /**
   * Waits for the next event: any completion, a solicited one (of a Send with SEND_AND_SOLICIT_EVENT, or any failed
   * request), or an error of the queue itself. If a completion was added after the last `getResults` that returned
   * fewer than its maximum, the request completes immediately. All waiting calls complete together. Poll after issuing
   * it and again after it has completed, because it may complete without a new completion in the queue.
   *
   * The request fails with BUFFER_OVERFLOW (the queue has overrun and failed for good), INTERNAL_ERROR, CANCELED,
   * DEVICE_REMOVED.
   *
   * @param type - `'any'`, `'solicited'` or `'errors'`
   * @throws INVALID_PARAMETER for another type
   * @see IND2CompletionQueue::Notify
   * @category Complete
   */
  notify(type: NdNotifyType): Overlapped<void>;

  /**
   * Returns whether to continue polling before a {@link notify}: a hint from providers that know whether polling has
   * recently paid off. A program that waits for a result calls this method before each `getResults`. After `false` the
   * program calls `getResults` once more, and `notify` if that returns 0. Never fails. If the method is missing, the
   * provider gives no hint; use `notify` alone. An addition to the SPI.
   * @category Complete
   */
  shouldPoll?(): boolean;

  /**
   * Removes the outcomes of at most `max` completed requests from the queue, in order, stores them in `results` from
   * the start, and returns their number. Objects in the array are reused; missing or read-only ones are replaced by new
   * objects. A number below `max` means that the queue is empty. The call allocates nothing if every element of the
   * array is a result. A call from a setter of a result returns 0, and the outer call continues.
   *
   * @param results - filled from its start
   * @param max - default: the length of `results`, at least 1
   * @throws INVALID_PARAMETER (`results` is not an array, or `max` is not a non-negative integer). The call fails for
   *   no other reason.
   * @see IND2CompletionQueue::GetResults
   * @category Complete
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
 * // A peer that knows these two values can read it.
 * console.log(region.address, region.getRemoteToken());
 * await region.deregister();
 * ```
 */
export interface IND2MemoryRegion extends IND2Overlapped {
  /**
   * Registers memory. Any fixed-length ArrayBuffer, SharedArrayBuffer or view can be registered, any number of times in
   * regions with any rights, and is pinned while registered.
   *
   * The request fails with INSUFFICIENT_RESOURCES, CANCELED, DEVICE_REMOVED.
   *
   * @param buffer - at least 1 byte, at most maxRegistrationSize bytes
   * @param flags - an OR of {@link Nd2MrFlag}; 0 allows only reading by local requests.
   * @throws INVALID_DEVICE_STATE (a buffer is registered already), INVALID_PARAMETER (not a buffer, above
   *   maxRegistrationSize, resizable, detached, unknown flags), INVALID_BUFFER_SIZE (an empty buffer), NOT_SUPPORTED
   *   (in this runtime, native code can hold only memory from `allocate()`)
   * @see IND2MemoryRegion::Register
   * @category Memory
   */
  register(buffer: ArrayBufferLike | ArrayBufferView, flags: number): Overlapped<void>;

  /**
   * Ends the registration; the region can register again, with new tokens. Requests that still use the memory fail with
   * ACCESS_VIOLATION. If the call fails, the memory stays registered.
   *
   * The request fails with DEVICE_BUSY while a window is bound to the memory, or with DEVICE_REMOVED. It has completed
   * when the call returns, whatever its result.
   *
   * @throws INVALID_DEVICE_STATE if nothing is registered
   * @see IND2MemoryRegion::Deregister
   * @category Memory
   */
  deregister(): Overlapped<void>;

  /** Native address of the first byte, for peers. @throws INVALID_DEVICE_STATE unless registered @category Memory */
  readonly address: bigint;
  /** Length of the registered memory, in bytes; 0 if nothing is registered. @category Memory */
  readonly length: number;

  /**
   * Returns the token of local requests, which scatter/gather entries may use in place of the region. It is valid until
   * the memory is deregistered or the region released.
   *
   * @throws INVALID_DEVICE_STATE unless registered
   * @see IND2MemoryRegion::GetLocalToken
   * @category Memory
   */
  getLocalToken(): number;

  /**
   * Returns the token for peers; it grants the access that the flags of `register` allow.
   *
   * @throws INVALID_DEVICE_STATE unless registered
   * @see IND2MemoryRegion::GetRemoteToken
   * @category Memory
   */
  getRemoteToken(): number;
}

/**
 * IND2MemoryWindow {070FE1F5-0AB5-4361-88DB-974BA704D4B9}, the IID of INDMemoryWindow: one object implements both. It
 * opens a range of a region to the peer of the queue pair that it is bound on, and to no other peer. It ends with that
 * connection, or with its last reference.
 * @example
 * ```ts
 * using window = adapter.createMemoryWindow();
 * queuePair.bind('bind', region, window, 0, 4096, Nd2OpFlag.ALLOW_READ);
 * await nextResult(queue);
 * const remote = new Nd2RemoteMemory(region.address, window.getRemoteToken());
 * // The peer has read it and gets no further access.
 * queuePair.invalidate('invalidate', window);
 * ```
 */
export interface IND2MemoryWindow extends INDMemoryWindow {
  /**
   * Returns the token for the peer. It is valid when Bind returns, so the next Send may carry it. It changes with every
   * Bind.
   *
   * @throws INVALID_DEVICE_STATE before the first Bind
   * @see IND2MemoryWindow::GetRemoteToken
   * @category Memory
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
   * Returns the CPUs that deliver notifications, as in {@link IND2CompletionQueue}.
   *
   * @throws NOT_SUPPORTED if the provider does not know them
   * @see IND2SharedReceiveQueue::GetNotifyAffinity
   * @category Queues
   */
  getNotifyAffinity(): Nd2Affinity;

  /**
   * Changes the depth and the threshold of `notify`. 0 leaves a value unchanged.
   *
   * @param depth - Receives; 0: unchanged
   * @param notifyThreshold - Receives, up to the depth; 0: unchanged
   * @throws INVALID_PARAMETER (limits), BUFFER_OVERFLOW (depth below the outstanding Receives). The queue is then
   *   unchanged.
   * @see IND2SharedReceiveQueue::Modify
   * @category Queues
   */
  modify(depth: number, notifyThreshold: number): void;

  /**
   * Waits until fewer Receives than the threshold are outstanding; completes immediately if that is already the case.
   * With threshold 0 it waits only for an error. All waiting calls complete together.
   *
   * The request fails with INTERNAL_ERROR, CANCELED, DEVICE_REMOVED.
   *
   * @see IND2SharedReceiveQueue::Notify
   * @category Queues
   */
  notify(): Overlapped<void>;

  /**
   * Posts memory for one message of any of the queue pairs. The result appears in the completion queue of the queue
   * pair that consumed it, with that queue pair's context.
   *
   * @param context - any value; the result returns it
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @throws NO_MORE_ENTRIES, DATA_OVERRUN, BUFFER_OVERFLOW, INVALID_HANDLE, as {@link IND2QueuePair.receive}
   * @see IND2SharedReceiveQueue::Receive
   * @category Post
   */
  receive(context: unknown, sgl: readonly Nd2Sge[]): void;
}

declare module './common-types.js' {
  interface NdInterfaces {
    /** Base of v2 objects with overlapped requests. */
    IND2Overlapped: IND2Overlapped;
    /** The root of v2. */
    IND2Provider: IND2Provider;
    /** Opened by {@link IND2Provider.openAdapter}. */
    IND2Adapter: IND2Adapter;
    /** Created by {@link IND2Adapter.createCompletionQueue}. */
    IND2CompletionQueue: IND2CompletionQueue;
    /** Created by {@link IND2Adapter.createMemoryRegion}. */
    IND2MemoryRegion: IND2MemoryRegion;
    /** Created by {@link IND2Adapter.createMemoryWindow}. */
    IND2MemoryWindow: IND2MemoryWindow;
    /** Created by {@link IND2Adapter.createSharedReceiveQueue}. */
    IND2SharedReceiveQueue: IND2SharedReceiveQueue;
    /** Created by {@link IND2Adapter.createQueuePair}. */
    IND2QueuePair: IND2QueuePair;
    /** Created by {@link IND2Adapter.createConnector}. */
    IND2Connector: IND2Connector;
    /** Created by {@link IND2Adapter.createListener}. */
    IND2Listener: IND2Listener;
  }
}

// ── Queue pairs and connections ──

/**
 * IND2QueuePair {EEF2F332-B75D-4063-BCE3-3A0BAD2D02CE}: the queues of one connection.
 *
 * A request that throws was not queued and changed nothing. Every request throws NO_MORE_ENTRIES (the queue is full;
 * call `getResults` first), DATA_OVERRUN (too many scatter/gather entries), BUFFER_OVERFLOW (more bytes than the
 * adapter transfers, or than the queue pair accepts INLINE), INVALID_HANDLE (memory of another instance, or not
 * registered), ACCESS_VIOLATION (an INLINE entry ends beyond its memory), and, except for Receive, CONNECTION_INVALID
 * before there is a connection. After the connection has ended, requests are accepted and complete with CANCELED.
 * Contexts are returned unchanged and need not be unique.
 *
 * Any result other than SUCCESS ends the connection. The status of a result is SUCCESS, CANCELED, INTERNAL_ERROR, or:
 * - ACCESS_VIOLATION: local memory ends before the entry or may not be written, a Bind is not allowed, or the peer
 *   refused the token, range or rights
 * - DATA_OVERRUN: a message is longer than its Receive
 * - DATA_ERROR: the peer could not execute the request, for instance because its Receive was too short
 * - IO_TIMEOUT: the peer is gone or posts no Receive
 * - INVALID_DEVICE_REQUEST: Invalidate of an unbound window
 * @example
 * ```ts
 * queuePair.receive('reply', [{ memory: region, offset: 4096, length: 4096 }]);
 * queuePair.send('request', [{ memory: region, offset: 0, length: 100 }]);
 * queuePair.send('short', [{ memory: Buffer.from('some bytes'), offset: 0, length: 10 }], Nd2OpFlag.INLINE);
 * queuePair.write('write', [{ memory: region, offset: 0, length: 4096 }], remote, 8192);
 * const { requestContext, status, bytesTransferred } = await nextResult(queue);
 * ```
 */
export interface IND2QueuePair extends NdUnknown {
  /**
   * Maximum scatter/gather entries of a Receive; at least as many as requested, or 0 with a shared receive queue.
   * @category Queues
   */
  readonly maxReceiveRequestSge: number;
  /** Maximum scatter/gather entries of a Send, Read or Write; at least as many as requested. @category Queues */
  readonly maxInitiatorRequestSge: number;

  /**
   * Cancels all outstanding requests, each with a CANCELED result, in any state. The queue pair cannot be used
   * afterwards.
   *
   * @throws INVALID_HANDLE (the queue pair was released), and nothing else
   * @see IND2QueuePair::Flush
   * @category Queues
   */
  flush(): void;

  /**
   * Sends one message to one Receive of the peer.
   *
   * @param context - any value; the result returns it
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @param flags - SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT, INLINE; INVALID_PARAMETER_4 for unknown bits
   * @throws as for every request, see {@link IND2QueuePair}; INVALID_PARAMETER_4
   * @see IND2QueuePair::Send
   * @category Post
   */
  send(context: unknown, sgl: readonly Nd2Sge[], flags?: number): void;

  /**
   * Posts memory for one message; messages consume Receives in order. Allowed in every state.
   *
   * @param context - any value; the result returns it
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @throws INVALID_DEVICE_REQUEST if the queue pair has a shared receive queue
   * @see IND2QueuePair::Receive
   * @category Post
   */
  receive(context: unknown, sgl: readonly Nd2Sge[]): void;

  /**
   * Opens `length` bytes at `offset` bytes into a region to the peer. The window's remote token is valid immediately.
   *
   * @param context - any value; the result returns it
   * @param region - a region of the same adapter instance, with registered memory
   * @param window - a window of the same adapter instance
   * @param offset - bytes from the start of the region
   * @param length - bytes, at least 1
   * @param flags - SILENT_SUCCESS, READ_FENCE, ALLOW_READ, ALLOW_WRITE; INVALID_PARAMETER_6 for unknown bits. With
   * neither ALLOW_READ nor ALLOW_WRITE the window grants no access.
   * @throws INVALID_PARAMETER_2 (region), INVALID_PARAMETER_3 (window), INVALID_PARAMETER (the range exceeds the region
   * or is empty), INVALID_DEVICE_STATE (the window is bound), ACCESS_VIOLATION (ALLOW_WRITE to a region without
   * ALLOW_LOCAL_WRITE)
   * @see IND2QueuePair::Bind
   * @category Post
   */
  bind(
    context: unknown,
    region: IND2MemoryRegion,
    window: IND2MemoryWindow,
    offset: number,
    length: number,
    flags?: number,
  ): void;

  /**
   * Withdraws the peer's access; the window can then be bound again.
   *
   * @param context - any value; the result returns it
   * @param window - a window of the same adapter instance
   * @param flags - SILENT_SUCCESS, READ_FENCE; INVALID_PARAMETER_3 for unknown bits
   * @throws INVALID_PARAMETER_2 (window)
   * @see IND2QueuePair::Invalidate
   * @category Post
   */
  invalidate(context: unknown, window: IND2MemoryWindow, flags?: number): void;

  /**
   * Reads as many bytes as the scatter/gather entries hold, from `offset` bytes into the peer's memory. A Read of 0
   * bytes needs no valid memory and shows whether the peer is alive.
   *
   * @param context - any value; the result returns it
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @param remote - address and token of the peer's memory
   * @param offset - bytes from the remote address; default 0
   * @param flags - SILENT_SUCCESS, READ_FENCE; INVALID_PARAMETER_6 for unknown bits
   * @throws as for every request, see {@link IND2QueuePair}; INVALID_PARAMETER_6
   * @see IND2QueuePair::Read
   * @category Post
   */
  read(
    context: unknown,
    sgl: readonly Nd2Sge[],
    remote: Nd2RemoteMemory,
    offset?: number,
    flags?: number,
  ): void;

  /**
   * Writes at `offset` bytes into the peer's memory; the peer gets no completion.
   *
   * @param context - any value; the result returns it
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @param remote - address and token of the peer's memory
   * @param offset - bytes from the remote address; default 0
   * @param flags - SILENT_SUCCESS, READ_FENCE, INLINE; INVALID_PARAMETER_6 for unknown bits
   * @throws as for every request, see {@link IND2QueuePair}; INVALID_PARAMETER_6
   * @see IND2QueuePair::Write
   * @category Post
   */
  write(
    context: unknown,
    sgl: readonly Nd2Sge[],
    remote: Nd2RemoteMemory,
    offset?: number,
    flags?: number,
  ): void;

  /**
   * Executes an operation between bytes of any memory, registered or not, and the peer's memory at `offset` bytes. The
   * operation is done when the call returns, ahead of requests that were posted earlier. It is not a request: it uses
   * no queue entry and has no result. The rights and bounds of {@link write} and {@link read} apply; atomic operations
   * need {@link Nd2MrFlag.ALLOW_REMOTE_ATOMIC}. Missing if the provider cannot reach the memory of a peer. An addition
   * to the SPI.
   *
   * @param operation - a value of {@link Nd2Direct}
   * @param bytes - any memory of the program. For an atomic operation, 8 or 16 bytes, which receive the previous value.
   *   May be empty, to test whether the peer's memory can be reached at all.
   * @param remote - address and token of the peer's memory; for an atomic operation the address must be a multiple of 8
   * @param offset - bytes from the remote address; default 0
   * @returns a value of {@link Nd2DirectResult}. After `REFUSED` some of the bytes may have been copied; use a request
   *   instead, as after `NOT_MAPPED`.
   * @throws INVALID_PARAMETER (operation, bytes), INVALID_PARAMETER_4 and _5 as {@link write} (remote, offset),
   *   INVALID_HANDLE
   * @category Memory
   */
  direct?(operation: Nd2Direct, bytes: Uint8Array, remote: Nd2RemoteMemory, offset?: number): Nd2DirectResult;

  /**
   * Maps `length` bytes of the peer's memory, from `offset` on, into this process. They stay mapped until they are
   * garbage-collected, even after the registration, the connection and the peer have ended. They show the peer's
   * memory. A page that this process writes to becomes a private copy, which no longer follows the peer's memory. The
   * peer must have registered the memory with {@link Nd2MrFlag.ALLOW_REMOTE_VIEW}. A process has at most 4096 views at
   * a time. Missing where {@link direct} is missing. An addition to the SPI.
   *
   * @param remote - address and token of the peer's memory
   * @param length - bytes, at least 1
   * @param offset - bytes from the remote address; default 0
   * @returns the bytes; `NOT_MAPPED` (the memory has been requested from the peer; call again in about a millisecond);
   *   or `REFUSED`
   * @throws INVALID_PARAMETER (length), INVALID_PARAMETER_4 and _5 as {@link write} (remote, offset), INVALID_HANDLE,
   *   INSUFFICIENT_RESOURCES (no file descriptor is left, or too many views exist), NO_MEMORY, NOT_SUPPORTED (the
   *   runtime has no external ArrayBuffers)
   * @category Memory
   */
  view?(
    remote: Nd2RemoteMemory,
    length: number,
    offset?: number,
  ): Uint8Array<ArrayBuffer> | typeof Nd2DirectResult.NOT_MAPPED | typeof Nd2DirectResult.REFUSED;
}

/** Options of Connect and Accept. */
export interface Nd2ConnectOptions {
  /**
   * Maximum Reads that the peer may have in flight to this side; reduced to the adapter's limit, which is the default.
   */
  inboundReadLimit?: number;
  /**
   * Maximum Reads that this side may have in flight; reduced to the adapter's limit, which is the default. With 0, a
   * Read fails with INTERNAL_ERROR.
   */
  outboundReadLimit?: number;
  /** Private data for the peer: at most maxCallerData bytes with Connect, maxCalleeData with Accept. */
  privateData?: Uint8Array;
}

/**
 * IND2Connector {7DD615C4-6B4C-4866-950C-F3B1D25A5302}: establishes and ends one connection.
 *
 * On the active side, call bind and connect, read the peer's reply, then call completeConnect (or reject). On the
 * passive side, pass an idle, unbound connector to {@link IND2Listener.getConnectionRequest}, read the request, then
 * call accept (or reject). After a failed connect (refused, timed out, unreachable), the connector is still bound and
 * can connect again with the queue pair and its posted Receives. A failed completeConnect or accept ends both.
 *
 * Releasing the connector ends its connection.
 * @example
 * ```ts
 * using connector = adapter.createConnector();
 * connector.bind('192.0.2.1');
 * await connector.connect(queuePair, '192.0.2.2:5000', { privateData: Buffer.from('who I am') });
 * console.log(connector.getPrivateData());
 * await connector.completeConnect();
 * // …
 * await connector.disconnect();
 * ```
 */
export interface IND2Connector extends IND2Overlapped {
  /**
   * Binds the connector to an address of the adapter; port 0 selects a free port. Several connectors, and one listener,
   * may have the same address and port, also in different processes, because the port only identifies the origin of the
   * connection to the peer. A failed connect leaves the connector bound.
   *
   * @param address - text (`'192.0.2.1:18515'`) or a socket address; port in host order
   * @throws ADDRESS_ALREADY_ASSOCIATED (not idle), INVALID_ADDRESS (not of this adapter, or the wildcard),
   *   TOO_MANY_ADDRESSES (no port is free). Other providers may refuse a port in use: SHARING_VIOLATION,
   *   ADDRESS_ALREADY_EXISTS
   * @see IND2Connector::Bind
   * @category Connect
   */
  bind(address: NdAddress): void;

  /**
   * Connects to a listener. Succeeds when the listener accepts. `address` is a socket address or text such as
   * `'192.0.2.1:18515'` or `'[fe80::1%2]:18515'`.
   *
   * The request fails with CONNECTION_REFUSED (rejected, no listener, or backlog full), IO_TIMEOUT,
   * NETWORK_UNREACHABLE, HOST_UNREACHABLE, BAD_NETWORK_NAME (no path to such an address), CANCELED, DEVICE_REMOVED.
   * Connect may be called again after the first five of these.
   *
   * @param queuePair - a queue pair of the same adapter instance, not used by another connector
   * @param address - the listener's address, with the port in host order
   * @param options - read limits (Reads), private data (bytes)
   * @throws ADDRESS_NOT_ASSOCIATED (not bound), CONNECTION_ACTIVE (connector or queue pair in use),
   * INVALID_DEVICE_STATE, INVALID_BUFFER_SIZE (private data), INVALID_ADDRESS, INVALID_PARAMETER_1 (queue pair),
   * INVALID_PARAMETER_4, _5 (read limits). The connector is then unchanged.
   * @see IND2Connector::Connect
   * @category Connect
   */
  connect(queuePair: IND2QueuePair, address: NdAddress, options?: Nd2ConnectOptions): Overlapped<void>;

  /**
   * Completes the connection; the queue pair can then send.
   *
   * The request fails with CONNECTION_ABORTED (the peer gave up), IO_TIMEOUT, CANCELED.
   *
   * @throws CONNECTION_INVALID (no connection to complete), CONNECTION_ABORTED (the peer had already given up)
   * @see IND2Connector::CompleteConnect
   * @category Connect
   */
  completeConnect(): Overlapped<void>;

  /**
   * Accepts the connection request. Completes when the peer has completed the connection or its first message has
   * arrived. The queue pair may receive messages before that. Read limits are reduced to those that the peer offers.
   *
   * The call fails with CONNECTION_REFUSED (the peer rejected the reply), CONNECTION_ABORTED (the peer had already
   * given up), IO_TIMEOUT, CANCELED.
   *
   * @param queuePair - a queue pair of the same adapter instance, not used by another connector
   * @param options - read limits (Reads), private data (bytes)
   * @throws CONNECTION_INVALID (no request here), CONNECTION_ACTIVE, CONNECTION_ABORTED, INVALID_BUFFER_SIZE (private
   * data), INVALID_PARAMETER_1 (queue pair), INVALID_PARAMETER_2, _3 (read limits). The connector is then unchanged.
   * @see IND2Connector::Accept
   * @category Connect
   */
  accept(queuePair: IND2QueuePair, options?: Nd2ConnectOptions): Overlapped<void>;

  /**
   * Rejects a connection request, or, after connect, the reply.
   *
   * @param privateData - at most maxCalleeData bytes; default: none
   * @throws INVALID_DEVICE_STATE, CONNECTION_INVALID, CONNECTION_ABORTED (the peer had already given up),
   *   INVALID_BUFFER_SIZE
   * @see IND2Connector::Reject
   * @category Connect
   */
  reject(privateData?: Uint8Array): void;

  /**
   * Returns the read limits that the peer offers with its request or has granted with its reply, as accept expects
   * them.
   *
   * @throws INVALID_DEVICE_STATE, CONNECTION_INVALID
   * @see IND2Connector::GetReadLimits
   * @category Connect
   */
  getReadLimits(): Nd2ReadLimits;

  /**
   * Returns the private data of the peer's request or reply or, after CONNECTION_REFUSED, of its reject. It may be
   * padded with zeros to the transport's fixed length.
   *
   * @throws INVALID_DEVICE_STATE, CONNECTION_INVALID
   * @see IND2Connector::GetPrivateData
   * @category Connect
   */
  getPrivateData(): Uint8Array;

  /**
   * Returns the local address. It exists after bind, or once a request has been assigned.
   *
   * @throws ADDRESS_NOT_ASSOCIATED before that.
   * @see IND2Connector::GetLocalAddress
   * @category Connect
   */
  getLocalAddress(): SocketAddress;

  /**
   * Returns the peer's address. It is known after connect, or once a request has been assigned.
   *
   * @throws CONNECTION_INVALID before that.
   * @see IND2Connector::GetPeerAddress
   * @category Connect
   */
  getPeerAddress(): SocketAddress;

  /**
   * Waits for the end of the connection. Completes with SUCCESS when the peer disconnects or is lost (immediately if
   * that has already happened), with CONNECTION_DISCONNECTED when this side calls {@link disconnect}, or with CANCELED.
   * Allowed from completeConnect on. When the peer disconnects, the queue pair is flushed only after all data that the
   * peer sent has been delivered.
   *
   * @throws CONNECTION_INVALID, CONNECTION_DISCONNECTED
   * @see IND2Connector::NotifyDisconnect
   * @category Connect
   */
  notifyDisconnect(): Overlapped<void>;

  /**
   * Ends the connection. Every outstanding request of the queue pair completes with CANCELED in its completion queue.
   * Requests that completed before have been delivered to the peer. Both sides may call it at the same time, and both
   * succeed. It also succeeds if the peer never replies.
   *
   * @throws CONNECTION_INVALID without a connection, INVALID_DEVICE_STATE if this side is already disconnecting
   * @see IND2Connector::Disconnect
   * @category Connect
   */
  disconnect(): Overlapped<void>;

  /**
   * Disconnects if connected, waits until the connection has ended, and releases the connector; for `await using`.
   * Never fails.
   * @category Lifetime
   */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * IND2Listener {65D23D83-3A57-4E02-86A4-350165C2D130}: call bind and listen, then getConnectionRequest for each
 * connection. Releasing the listener refuses the requests that are still waiting.
 * @example
 * ```ts
 * using listener = adapter.createListener();
 * listener.bind('0.0.0.0:5000');
 * listener.listen(16);
 * const connector = adapter.createConnector();
 * await listener.getConnectionRequest(connector);
 * if (connector.getPrivateData()[0] === 1) await connector.accept(queuePair);
 * else connector.reject(Buffer.from('not you'));
 * ```
 */
export interface IND2Listener extends IND2Overlapped {
  /**
   * Binds the listener to an address of the adapter, or to the wildcard address, which stands for all addresses of this
   * adapter; port 0 selects a free port. With the wildcard, the port is in use on every address of the host, as with
   * TCP, so no other listener can use it, not even on another adapter.
   *
   * @param address - text (`'192.0.2.1:18515'`) or a socket address; port in host order
   * @throws ADDRESS_ALREADY_ASSOCIATED (bound before), INVALID_ADDRESS, SHARING_VIOLATION, ADDRESS_ALREADY_EXISTS,
   *   TOO_MANY_ADDRESSES, INSUFFICIENT_RESOURCES
   * @see IND2Listener::Bind
   * @category Connect
   */
  bind(address: NdAddress): void;

  /**
   * Starts listening.
   *
   * @param backlog - maximum number of requests that wait for getConnectionRequest; further ones are refused. 0
   *   (default) selects the soft kernel's limit: 1024 for each listener, 4096 for each thread.
   * @throws INVALID_DEVICE_STATE (not bound, or already listening), ADDRESS_ALREADY_EXISTS or SHARING_VIOLATION
   *   (another listener has the address), INVALID_PARAMETER (backlog)
   * @see IND2Listener::Listen
   * @category Connect
   */
  listen(backlog?: number): void;

  /**
   * Returns the address and port. They are known after bind.
   *
   * @throws INVALID_DEVICE_STATE before bind
   * @see IND2Listener::GetLocalAddress
   * @category Connect
   */
  getLocalAddress(): SocketAddress;

  /**
   * Waits for a connection request and assigns it to an idle connector, which can then read its data, and Accept or
   * Reject it. Several calls may be outstanding; they complete in order. CANCELED returns the connector to idle.
   *
   * @param connector - an idle connector of the same adapter instance
   * @throws CONNECTION_ACTIVE (the connector is not idle), INVALID_DEVICE_STATE (the listener does not listen),
   *   INVALID_PARAMETER_1 (connector)
   * @see IND2Listener::GetConnectionRequest
   * @category Connect
   */
  getConnectionRequest(connector: IND2Connector): Overlapped<void>;
}
