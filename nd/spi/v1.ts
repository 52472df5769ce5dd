/**
 * The NetworkDirect SPI, version 1, as TypeScript contracts for clients and for any provider.
 *
 * How the C SPI maps to these interfaces:
 * - Every call, and every {@link Overlapped}, that completes with a status other than SUCCESS throws or rejects with an
 *   `NdError`, whatever the severity bits of the status (including TIMEOUT, 0x102, and the 0x8… warnings). PENDING
 *   corresponds to an `Overlapped` that is not done. Requests on endpoints report their outcome in their {@link
 *   NdResult}; they throw only when nothing was queued.
 * - Values that C returns through out-parameters and size probes are returned whole, so BUFFER_OVERFLOW does not occur.
 *   Negotiated values are properties of the created object: `endpoint.maxInline`, `listen.port`,
 *   `completionQueue.entries`.
 * - Ports are in host order; the C SPI passes them in network order.
 * - The event loop delivers every `Overlapped` exactly once, including one that was already done when the call
 *   returned. GetFileHandle returns the adapter's file, which is also a completion port ({@link NdOverlappedFile}).
 * - Objects are reference counted. Children keep their parents alive: objects may be released in any order, and
 *   `release` never fails. Releasing the last reference cancels the object's outstanding requests.
 * - Each object belongs to one adapter instance; objects of different instances must not be mixed.
 */
import type { GetResultOptions, Overlapped, SocketAddress } from '../../winverbs/index.js';
import type {
  NdAdapterInfo,
  NdAdapterOptions,
  NdAddress,
  NdMemoryHandle,
  NdMwDescriptor,
  NdNotifyType,
  NdOverlappedFile,
  NdOverlappedObject,
  NdResult,
  NdSge,
  NdUnknown,
} from './common-types.js';

export * from './common-types.js';

export type { GetResultOptions, Overlapped, SocketAddress };

/** ND_VERSION_1. */
export const ND_VERSION_1 = 1;

/** INDOverlapped {C859E15E-75E2-4FE3-8D6D-0DFF36F02442}: an object with overlapped requests. */
export interface INDOverlapped extends NdOverlappedObject {}

/**
 * INDProvider {0C5DD316-5FDF-47E6-B2D0-2A6EDA8D39DD}: the entry to a provider's adapters.
 *
 * @example
 * ```ts
 * using provider = openNetworkDirect();
 * const [first] = provider.queryAddressList();
 * using adapter = provider.openAdapter(first!);
 * ```
 */
export interface INDProvider extends NdUnknown {
  /**
   * Returns the local addresses (port 0) of the adapters that can be opened. The list changes as addresses come and go.
   *
   * @throws DEVICE_NOT_READY, NO_MEMORY
   * @see INDProvider::QueryAddressList
   * @category Open
   */
  queryAddressList(): SocketAddress[];

  /**
   * Opens a new, independent instance of an adapter. It is selected by a local address, given as text (`'192.0.2.1'`,
   * `'fe80::1%2'`) or as a socket address whose port does not matter, or by its id in v2.
   *
   * @param adapter - a local address, or the adapter's id
   * @param options - options of the instance
   * @throws INVALID_ADDRESS (no adapter has the address, or it is the wildcard), INVALID_PARAMETER (no adapter has the
   *   id, or an option is wrong, such as a partition that the port is not in), NO_MEMORY
   * @see INDProvider::OpenAdapter
   * @category Open
   */
  openAdapter(adapter: NdAddress | bigint, options?: NdAdapterOptions): INDAdapter;
}

/**
 * INDAdapter {A023C5A0-5B73-43BC-8D20-33AA07E9510F}: one instance of an adapter, opened by an address.
 *
 * @example
 * ```ts
 * await using adapter = ndOpenV1Adapter('127.0.0.1');
 * const queue = adapter.createCompletionQueue(128);
 * const memory = await adapter.registerMemory(Buffer.alloc(65_536));
 * using listener = adapter.listen({ port: 5000 });
 * ```
 */
export interface INDAdapter extends INDOverlapped {
  /**
   * Returns the file, a completion port, of all overlapped requests that this instance and its objects issue after the
   * first call. The last release of the instance closes it. Never fails.
   *
   * @see INDAdapter::GetFileHandle
   * @category Devices
   */
  getFileHandle(): NdOverlappedFile;

  /** The address used to open the adapter, with port 0. @category Devices */
  readonly address: SocketAddress;

  /**
   * Returns the adapter's limits.
   *
   * @param version - {@link ND_VERSION_1}, the only version
   * @throws NOT_SUPPORTED (another version), DEVICE_REMOVED
   * @see INDAdapter::Query
   * @category Devices
   */
  query(version?: number): NdAdapterInfo;

  /**
   * Sends a vendor-specific request.
   *
   * @param code - defined by the vendor
   * @param input - bytes for the provider, or null
   * @param outputLength - maximum number of bytes returned
   * @throws NOT_SUPPORTED if the provider has no such requests
   * @see INDAdapter::Control
   * @category Devices
   */
  control(code: number, input: Uint8Array | null, outputLength: number): Overlapped<Uint8Array>;

  /**
   * Creates a completion queue with at least `entries` entries.
   *
   * @param entries - 1 up to maxCqEntries
   * @throws INVALID_PARAMETER below 1 or above maxCqEntries, NO_MEMORY, INSUFFICIENT_RESOURCES
   * @see INDAdapter::CreateCompletionQueue
   * @category Queues
   */
  createCompletionQueue(entries: number): INDCompletionQueue;

  /**
   * Registers memory for local use; peers access it only through memory windows. Any fixed-length ArrayBuffer,
   * SharedArrayBuffer or view can be registered, any number of times, and is pinned while registered.
   *
   * The request fails with INVALID_PARAMETER (above maxRegistrationSize, resizable or detached), INVALID_BUFFER_SIZE
   * (no bytes), INSUFFICIENT_RESOURCES, NOT_SUPPORTED (in this runtime, native code can hold only memory from
   * `allocate()`), CANCELED, DEVICE_REMOVED.
   *
   * @param buffer - at least 1 byte, at most maxRegistrationSize bytes
   * @see INDAdapter::RegisterMemory
   * @category Memory
   */
  registerMemory(buffer: ArrayBufferLike | ArrayBufferView): Overlapped<NdMemoryHandle>;

  /**
   * Ends a registration. Requests that still use the memory fail with ACCESS_VIOLATION. If the call fails, the memory
   * stays registered.
   *
   * The request fails with DEVICE_BUSY while a window is bound to the memory. It has completed when the call returns,
   * whatever its result.
   *
   * @throws INVALID_HANDLE if the memory is not registered by this instance
   * @param memory - the result of registerMemory
   * @see INDAdapter::DeregisterMemory
   * @category Memory
   */
  deregisterMemory(memory: NdMemoryHandle | number): Overlapped<void>;

  /**
   * Creates an unbound memory window.
   *
   * @param invalidateResult - returned by `getResults` on the inbound completion queue when the peer invalidates the
   *   window (`sendAndInvalidate`)
   * @throws INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see INDAdapter::CreateMemoryWindow
   * @category Memory
   */
  createMemoryWindow(invalidateResult?: NdResult): INDMemoryWindow;

  /**
   * Creates an idle connector. It serves one connection, on the active or the passive side.
   *
   * @throws INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see INDAdapter::CreateConnector
   * @category Connect
   */
  createConnector(): INDConnector;

  /**
   * Listens for connection requests on the adapter's address.
   *
   * @param options - port, backlog and protocol, all optional
   * @throws ADDRESS_ALREADY_EXISTS (the port is in use), TOO_MANY_ADDRESSES (no port is free), INVALID_PARAMETER_1
   * (backlog), INVALID_PARAMETER_3 (protocol), INVALID_PARAMETER (port), NOT_SUPPORTED (UDP)
   * @see INDAdapter::Listen
   * @category Connect
   */
  listen(options?: NdListenOptions): INDListen;

  /**
   * Disconnects and releases everything created from this instance, regardless of reference counts, and then the
   * instance itself; for `await using`. Afterwards it no longer keeps the process alive. Never fails.
   * @category Lifetime
   */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * INDCompletionQueue {1245A633-2A32-473A-830C-E05D1F869D02}: reports completed requests.
 *
 * @example
 * ```ts
 * const results: NdResult[] = [];
 * await queue.notify('any');
 * const count = queue.getResults(results, 16);
 * for (const { context, status, bytesTransferred } of results.slice(0, count)) console.log(context, status, bytesTransferred);
 * ```
 */
export interface INDCompletionQueue extends INDOverlapped {
  /** Number of entries; at least as many as requested. @category Queues */
  readonly entries: number;

  /**
   * Changes the number of entries, without losing completions or stopping traffic.
   *
   * @param entries - 1 up to maxCqEntries
   * @throws INVALID_PARAMETER (limits), BUFFER_OVERFLOW (the waiting completions would not fit). The queue is then
   *   unchanged.
   * @see INDCompletionQueue::Resize
   * @category Queues
   */
  resize(entries: number): void;

  /**
   * Waits for the next event: any completion, a solicited one (of a Send with SEND_AND_SOLICIT_EVENT, or any failed
   * request), or an error of the queue itself. If a completion was added after the last `getResults` that returned
   * fewer than its maximum, the request completes immediately. Poll after issuing it and again after it has completed,
   * because it may complete without a new completion in the queue.
   *
   * The request fails with BUFFER_OVERFLOW (the queue has overrun and failed for good), INTERNAL_ERROR, CANCELED,
   * DEVICE_REMOVED.
   *
   * @param type - `'any'`, `'solicited'` or `'errors'`
   * @throws INVALID_PARAMETER for another type
   * @see INDCompletionQueue::Notify
   * @category Complete
   */
  notify(type: NdNotifyType): Overlapped<void>;

  /**
   * Fills `results` from the start with at most `max` of the client's own {@link NdResult} objects, which it removes
   * from the queue, and returns their number. A number below `max` means that the queue is empty. It allocates nothing.
   * A call from a setter of a result returns 0, and the outer call continues.
   *
   * @param results - filled from its start
   * @param max - default: the length of `results`, at least 1
   * @throws INVALID_PARAMETER (`results` is not an array, or `max` is not a non-negative integer). The call fails for
   *   no other reason.
   * @see INDCompletionQueue::GetResults
   * @category Complete
   */
  getResults(results: NdResult[], max?: number): number;
}

/**
 * INDMemoryWindow {070FE1F5-0AB5-4361-88DB-974BA704D4B9}: an access right that can be granted to a peer (Bind) and
 * withdrawn (Invalidate). It ends with the connection on which it was bound, or with its last reference.
 * @example
 * ```ts
 * const window = adapter.createMemoryWindow();
 * const bound: NdResult = { status: 0, bytesTransferred: 0 };
 * const descriptor = endpoint.bind(bound, memory, window, 0, 4096, NdOpFlag.ALLOW_READ | NdOpFlag.ALLOW_WRITE);
 * // The peer needs these 20 bytes.
 * const message = Buffer.alloc(NdMwDescriptor.size);
 * descriptor.encode(message);
 * ```
 */
export interface INDMemoryWindow extends NdUnknown {}

/**
 * INDEndpoint {DBD00EAB-B679-44A9-BD65-E82F3DE12D1A}: the queue pair of a connection.
 *
 * A request that throws was not queued and changed nothing. Every request throws NO_MORE_ENTRIES (the endpoint has no
 * entry left; call `getResults` first), DATA_OVERRUN (too many scatter/gather entries), BUFFER_OVERFLOW (more bytes
 * than the adapter transfers), INVALID_HANDLE (memory of another instance, or deregistered), ACCESS_VIOLATION
 * (unregistered memory ends before the entry), INVALID_PARAMETER_1 (the result is not an object, or is read-only), and,
 * except for Receive, CONNECTION_INVALID before there is a connection. After the connection has ended, requests are
 * accepted and complete with CANCELED.
 *
 * Any result other than SUCCESS ends the connection. The status of a result is SUCCESS, CANCELED, INTERNAL_ERROR, or:
 * - ACCESS_VIOLATION: local memory ends before the entry or may not be written, or a Bind is not allowed
 * - DATA_OVERRUN: a message is longer than its Receive
 * - REMOTE_ERROR: the peer refused the token, range or rights, or its Receive was too short
 * - TIMEOUT: the peer is gone or posts no Receive
 * - INVALID_DEVICE_REQUEST: Invalidate of an unbound window
 * @example
 * ```ts
 * const received: NdResult = { status: 0, bytesTransferred: 0, context: 'reply' };
 * const sent: NdResult = { status: 0, bytesTransferred: 0, context: 'request' };
 * endpoint.receive(received, [{ memory, offset: 4096, length: 4096 }]);
 * endpoint.send(sent, [{ memory, offset: 0, length: 100 }]);
 * console.log((await nextResult(queue)).context);
 * ```
 */
export interface INDEndpoint extends NdUnknown {
  /**
   * Maximum length in bytes of a Send or Write that is copied during the call; its memory need not be registered.
   * @category Queues
   */
  readonly maxInline: number;
  /** Maximum scatter/gather entries of a Receive; at least as many as requested. @category Queues */
  readonly inboundSge: number;
  /** Maximum scatter/gather entries of any other request; at least as many as requested. @category Queues */
  readonly outboundSge: number;

  /**
   * Cancels all outstanding requests, each with a CANCELED result, in any state. The endpoint cannot be used
   * afterwards.
   *
   * @throws INVALID_HANDLE (the endpoint was released), and nothing else
   * @see INDEndpoint::Flush
   * @category Queues
   */
  flush(): void;

  /**
   * Holds requests back until {@link submitRequestBatch}, if the provider supports it.
   *
   * @throws INVALID_HANDLE (the endpoint was released), and nothing else
   * @see INDEndpoint::StartRequestBatch
   * @category Post
   */
  startRequestBatch(): void;
  /**
   * Submits the requests posted since {@link startRequestBatch}.
   *
   * @throws INVALID_HANDLE (the endpoint was released), and nothing else
   * @see INDEndpoint::SubmitRequestBatch
   * @category Post
   */
  submitRequestBatch(): void;

  /**
   * Sends one message to one Receive of the peer.
   *
   * @param result - an object of the client, filled in and returned by `getResults`
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @param flags - SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT; INVALID_PARAMETER_4 for other bits
   * @throws as for every request, see {@link INDEndpoint}; INVALID_PARAMETER_4
   * @see INDEndpoint::Send
   * @category Post
   */
  send(result: NdResult, sgl: readonly NdSge[], flags?: number): void;

  /**
   * Sends a message that also invalidates a window of the peer. The peer's queue then returns the invalidate result of
   * the window.
   *
   * @param result - an object of the client, filled in and returned by `getResults`
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @param remote - the peer's window to invalidate
   * @param flags - as {@link send}; INVALID_PARAMETER_5 for other bits
   * @throws as for every request, see {@link INDEndpoint}; INVALID_PARAMETER_5
   * @see INDEndpoint::SendAndInvalidate
   * @category Post
   */
  sendAndInvalidate(result: NdResult, sgl: readonly NdSge[], remote: NdMwDescriptor, flags?: number): void;

  /**
   * Posts memory for one message; messages consume Receives in order. Allowed in every state.
   *
   * @param result - an object of the client, filled in and returned by `getResults`
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @throws NO_MORE_ENTRIES, DATA_OVERRUN, BUFFER_OVERFLOW, INVALID_HANDLE, see {@link INDEndpoint}
   * @see INDEndpoint::Receive
   * @category Post
   */
  receive(result: NdResult, sgl: readonly NdSge[]): void;

  /**
   * Opens a range of registered memory to the peer. The descriptor is valid immediately, so the next Send may carry it.
   *
   * @param result - an object of the client, filled in and returned by `getResults`
   * @param memory - memory registered by the same adapter instance
   * @param window - a window of the same adapter instance
   * @param offset - bytes from the start of the memory
   * @param length - bytes, at least 1
   * @param flags - SILENT_SUCCESS, READ_FENCE, ALLOW_READ, ALLOW_WRITE; INVALID_PARAMETER_6 for other bits
   * @throws INVALID_DEVICE_STATE (the window is bound), INVALID_PARAMETER (the range exceeds the memory or is empty),
   *   INVALID_PARAMETER_3 (window)
   * @see INDEndpoint::Bind
   * @category Post
   */
  bind(
    result: NdResult,
    memory: NdMemoryHandle | number,
    window: INDMemoryWindow,
    offset: number,
    length: number,
    flags: number,
  ): NdMwDescriptor;

  /**
   * Withdraws the peer's access; the window can then be bound again.
   *
   * @param result - an object of the client, filled in and returned by `getResults`
   * @param window - a window of the same adapter instance
   * @param flags - SILENT_SUCCESS, READ_FENCE; INVALID_PARAMETER_3 for other bits
   * @throws INVALID_PARAMETER_2 (window)
   * @see INDEndpoint::Invalidate
   * @category Post
   */
  invalidate(result: NdResult, window: INDMemoryWindow, flags?: number): void;

  /**
   * Reads as many bytes as the scatter/gather entries hold, from `offset` bytes into the peer's window.
   *
   * @param result - an object of the client, filled in and returned by `getResults`
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @param remote - the result of the peer's Bind
   * @param offset - bytes from the start of the peer's window
   * @param flags - SILENT_SUCCESS, READ_FENCE; INVALID_PARAMETER_6 for other bits
   * @throws as for every request, see {@link INDEndpoint}; INVALID_PARAMETER_6
   * @see INDEndpoint::Read
   * @category Post
   */
  read(result: NdResult, sgl: readonly NdSge[], remote: NdMwDescriptor, offset: number, flags?: number): void;

  /**
   * Writes at `offset` bytes into the peer's window; the peer gets no completion.
   *
   * @param result - an object of the client, filled in and returned by `getResults`
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @param remote - the result of the peer's Bind
   * @param offset - bytes from the start of the peer's window
   * @param flags - SILENT_SUCCESS, READ_FENCE; INVALID_PARAMETER_6 for other bits
   * @throws as for every request, see {@link INDEndpoint}; INVALID_PARAMETER_6
   * @see INDEndpoint::Write
   * @category Post
   */
  write(
    result: NdResult,
    sgl: readonly NdSge[],
    remote: NdMwDescriptor,
    offset: number,
    flags?: number,
  ): void;
}

declare module './common-types.js' {
  interface NdInterfaces {
    /** Base of v1 objects with overlapped requests. */
    INDOverlapped: INDOverlapped;
    /** The root of v1. */
    INDProvider: INDProvider;
    /** Opened by {@link INDProvider.openAdapter}. */
    INDAdapter: INDAdapter;
    /** Created by {@link INDAdapter.createCompletionQueue}. */
    INDCompletionQueue: INDCompletionQueue;
    /** Created by {@link INDAdapter.createMemoryWindow}. */
    INDMemoryWindow: INDMemoryWindow;
    /** Created by {@link INDConnector.createEndpoint}. */
    INDEndpoint: INDEndpoint;
    /** Created by {@link INDAdapter.createConnector}. */
    INDConnector: INDConnector;
    /** Created by {@link INDAdapter.listen}. */
    INDListen: INDListen;
  }
}

/** Options of {@link INDAdapter.listen}. */
export interface NdListenOptions {
  /** The port in host order; 0 (default) selects a free port. */
  port?: number;
  /**
   * Maximum number of requests that wait for getConnectionRequest; further ones are refused. 0 (default) selects the
   * soft kernel's limit: 1024 for each listener, 4096 for each thread.
   */
  backlog?: number;
  /** The IP protocol number, 0 to 255 except UDP (17); default 6 (TCP). */
  protocol?: number;
}

/**
 * INDListen {BB902588-BA3F-4441-9FE1-3B6795E4E668}: a listener for connection requests. Releasing it refuses the
 * requests that are still waiting.
 *
 * @example
 * ```ts
 * using listener = adapter.listen({ port: 5000, backlog: 16 });
 * const connector = adapter.createConnector();
 * await listener.getConnectionRequest(connector);
 * await connector.accept(endpoint);
 * ```
 */
export interface INDListen extends INDOverlapped {
  /** The granted port, in host order. @category Connect */
  readonly port: number;
  /** The address and port that peers connect to. @category Connect */
  readonly address: SocketAddress;

  /**
   * Waits for a connection request and assigns it to an idle connector, which can then read its data, and Accept or
   * Reject it. Several calls may be outstanding; they complete in order. CANCELED returns the connector to idle.
   *
   * @param connector - an idle connector of the same adapter instance
   * @throws CONNECTION_ACTIVE if the connector is not idle
   * @see INDListen::GetConnectionRequest
   * @category Connect
   */
  getConnectionRequest(connector: INDConnector): Overlapped<void>;
}

/** Queue sizes and limits of a new endpoint. */
export interface NdEndpointOptions {
  /** The queue for results of Receives, and of windows that the peer invalidates. */
  inboundCompletionQueue: INDCompletionQueue;
  /** The queue for results of all other requests; may be the same queue. */
  outboundCompletionQueue: INDCompletionQueue;
  /** Maximum outstanding Receives. */
  inboundEntries: number;
  /** Maximum other outstanding requests. */
  outboundEntries: number;
  /** Minimum scatter/gather entries of a Receive; default 1. {@link INDEndpoint.inboundSge} is the granted number. */
  inboundSge?: number;
  /**
   * Minimum scatter/gather entries of other requests; default 1. {@link INDEndpoint.outboundSge} is the granted number.
   */
  outboundSge?: number;
  /**
   * Maximum Reads that the peer may have in flight to this side; reduced to the adapter's limit, which is the default.
   */
  inboundReadLimit?: number;
  /**
   * Maximum Reads that this side may have in flight; reduced to the adapter's limit, which is the default. With 0, a
   * Read fails with ACCESS_VIOLATION.
   */
  outboundReadLimit?: number;
}

/** Options of Connect. */
export interface NdConnectOptions {
  /** Private data for the peer, at most maxCallerData bytes. */
  privateData?: Uint8Array;
  /**
   * Local port in host order. 0 (default) selects a free one, or the port of the last failed connect. Other connectors
   * may use the same port, in this process and elsewhere, because the port only identifies the origin of the connection
   * to the peer.
   */
  localPort?: number;
  /** The IP protocol number, as in {@link NdListenOptions}. */
  protocol?: number;
}

/** Data of the peer's request or reply. */
export interface NdConnectionData {
  /** Maximum Reads that the peer wants to have in flight to this side, within this side's limits. */
  readonly inboundReadLimit: number;
  /** Maximum Reads that the peer allows this side to have in flight, within this side's limits. */
  readonly outboundReadLimit: number;
  /** The peer's private data; it may be padded with zeros to the transport's fixed length. */
  readonly privateData: Uint8Array;
}

/**
 * INDConnector {1BCAF2D1-E274-4AEB-AC57-CD5D4376E0B7}: establishes and ends one connection.
 *
 * On the active side, call createEndpoint and connect, read getConnectionData, then call completeConnect (or reject).
 * On the passive side, pass an idle connector to {@link INDListen.getConnectionRequest}, read getConnectionData, then
 * call createEndpoint and accept (or reject). After a failed connect (refused, timed out, unreachable), the connector
 * and the endpoint, with its posted Receives, can connect again. A failed completeConnect or accept ends both.
 * @example
 * ```ts
 * const connector = adapter.createConnector();
 * const queues = { inboundCompletionQueue: queue, outboundCompletionQueue: queue };
 * const endpoint = connector.createEndpoint({ ...queues, inboundEntries: 16, outboundEntries: 16 });
 * await connector.connect(endpoint, '192.0.2.2:5000');
 * await connector.completeConnect();
 * // …
 * await connector.disconnect();
 * ```
 */
export interface INDConnector extends INDOverlapped {
  /**
   * Creates an endpoint. Receives can be posted immediately, other requests once it is connected.
   *
   * @param options - queues, depths in requests, scatter/gather entries per request, and read limits
   * @throws INVALID_PARAMETER_1 … _8 for the n-th option in the order of {@link NdEndpointOptions},
   * INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see INDConnector::CreateEndpoint
   * @category Queues
   */
  createEndpoint(options: NdEndpointOptions): INDEndpoint;

  /**
   * Connects to a listener. Succeeds when the listener accepts. `address` is a socket address or text such as
   * `'192.0.2.1:18515'` or `'[fe80::1%2]:18515'`.
   *
   * The request fails with CONNECTION_REFUSED (rejected, no listener, or backlog full), TIMEOUT, NETWORK_UNREACHABLE,
   * HOST_UNREACHABLE, BAD_NETWORK_NAME (no path to such an address), CANCELED, DEVICE_REMOVED. Connect may be called
   * again after the first five of these.
   *
   * @param endpoint - an endpoint of the same adapter instance, not used by another connector
   * @param address - the listener's address, with the port in host order
   * @param options - private data (bytes), local port (host order), protocol
   * @throws CONNECTION_ACTIVE (connector or endpoint in use), INVALID_DEVICE_STATE, INVALID_BUFFER_SIZE (private data),
   *   INVALID_ADDRESS, INVALID_PARAMETER_1 (endpoint), TOO_MANY_ADDRESSES (no port is free). The connector is then
   *   unchanged.
   * @see INDConnector::Connect
   * @category Connect
   */
  connect(endpoint: INDEndpoint, address: NdAddress, options?: NdConnectOptions): Overlapped<void>;

  /**
   * Completes the connection; the endpoint can then send.
   *
   * The request fails with CONNECTION_ABORTED (the peer gave up), TIMEOUT, CANCELED. Throws CONNECTION_INVALID if there
   * is no connection to complete.
   *
   * @see INDConnector::CompleteConnect
   * @category Connect
   */
  completeConnect(): Overlapped<void>;

  /**
   * Accepts the connection request. Completes when the peer has completed the connection or its first message has
   * arrived. The endpoint may receive messages before that.
   *
   * The call fails with CONNECTION_REFUSED (the peer rejected the reply), CONNECTION_ABORTED (the peer had already
   * given up), TIMEOUT, CANCELED.
   *
   * @param endpoint - an endpoint of the same adapter instance, not used by another connector
   * @param privateData - at most maxCalleeData bytes; default: none
   * @throws CONNECTION_INVALID (no request here), CONNECTION_ACTIVE, CONNECTION_ABORTED, INVALID_BUFFER_SIZE (private
   * data), INVALID_PARAMETER_1 (endpoint). The connector is then unchanged.
   * @see INDConnector::Accept
   * @category Connect
   */
  accept(endpoint: INDEndpoint, privateData?: Uint8Array): Overlapped<void>;

  /**
   * Rejects a connection request, or, after connect, the reply.
   *
   * @param privateData - at most maxCalleeData bytes; default: none
   * @throws INVALID_DEVICE_STATE, CONNECTION_INVALID, INVALID_BUFFER_SIZE
   * @see INDConnector::Reject
   * @category Connect
   */
  reject(privateData?: Uint8Array): void;

  /**
   * Returns the data of the peer's request or reply or, after CONNECTION_REFUSED, of its reject.
   *
   * @throws INVALID_DEVICE_STATE, CONNECTION_INVALID
   * @see INDConnector::GetConnectionData
   * @category Connect
   */
  getConnectionData(): NdConnectionData;

  /**
   * Returns the local address. It exists after connect, or once a request has been assigned.
   *
   * @throws ADDRESS_NOT_ASSOCIATED before that.
   * @see INDConnector::GetLocalAddress
   * @category Connect
   */
  getLocalAddress(): SocketAddress;

  /**
   * Returns the peer's address. It is known after connect, or once a request has been assigned.
   *
   * @throws CONNECTION_INVALID before that.
   * @see INDConnector::GetPeerAddress
   * @category Connect
   */
  getPeerAddress(): SocketAddress;

  /**
   * Waits for the end of the connection. Completes with SUCCESS when the peer disconnects or is lost (immediately if
   * that has already happened), and with CANCELED when this side calls {@link disconnect}. Allowed from completeConnect
   * on.
   *
   * @throws CONNECTION_INVALID, CONNECTION_DISCONNECTED
   * @see INDConnector::NotifyDisconnect
   * @category Connect
   */
  notifyDisconnect(): Overlapped<void>;

  /**
   * Ends the connection. Every outstanding request of the endpoint completes with CANCELED in its completion queue.
   * Requests that completed before have been delivered to the peer. Both sides may call it at the same time, and both
   * succeed.
   *
   * The request fails with TIMEOUT if the peer does not reply; the connection has ended even then.
   *
   * @throws CONNECTION_INVALID without a connection, INVALID_DEVICE_STATE if this side is already disconnecting
   * @see INDConnector::Disconnect
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
