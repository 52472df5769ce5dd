/**
 * The NetworkDirect SPI, version 1, as TypeScript contracts for clients and for any provider.
 *
 * How the C SPI maps to these interfaces:
 * - Every call, and every {@link Overlapped}, that ends in anything but SUCCESS throws or rejects with an `NdError`,
 *   whatever the severity bits of its status (TIMEOUT 0x102 and the 0x8… warnings included). PENDING is the
 *   `Overlapped` that is not done. Requests on endpoints report their outcome in their {@link NdResult}; they throw
 *   only when nothing was queued.
 * - Values that C returns through out-parameters and size probes are returned whole, so BUFFER_OVERFLOW does not occur.
 *   Values that are negotiated are properties of the object made: `endpoint.maxInline`, `listen.port`,
 *   `completionQueue.entries`.
 * - Ports are in host order; the C SPI passes them in network order.
 * - The event loop delivers every `Overlapped`, exactly once, also one that was done when the call returned. GetFileHandle answers the
 *   adapter's file, which is a completion port at once ({@link NdOverlappedFile}).
 * - Objects are reference counted. Children keep their parents: everything may be released in any order, and
 *   `release` never fails. Releasing the last reference cancels what the object still waits for.
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
   * The local addresses by which adapters can be opened (port 0). The list changes as addresses come and go.
   *
   * @throws DEVICE_NOT_READY, NO_MEMORY
   * @see INDProvider::QueryAddressList
   */
  queryAddressList(): SocketAddress[];

  /**
   * Opens a new, independent instance of the adapter that owns a local address, given as text (`'192.0.2.1'`,
   * `'fe80::1%2'`) or as a socket address whose port does not matter; or by the id that v2 knows it by.
   *
   * @param adapter - a local address, or the adapter's id
   * @param options - the partition
   * @throws INVALID_ADDRESS if no adapter has it (the wildcard address included), INVALID_PARAMETER for an id that no adapter has or for
   *   the options (a partition that the port is not in), NO_MEMORY
   * @see INDProvider::OpenAdapter
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
   * The file of all overlapped requests of this instance and its objects, from the first call on: a completion port. The last release of the
   * instance closes it. It never fails.
   *
   * @see INDAdapter::GetFileHandle
   */
  getFileHandle(): NdOverlappedFile;

  /** The address by which it was opened, port 0. */
  readonly address: SocketAddress;

  /**
   * The adapter's limits.
   *
   * @param version - {@link ND_VERSION_1}, the only one there is.
   * @throws NOT_SUPPORTED for another version, DEVICE_REMOVED
   * @see INDAdapter::Query
   */
  query(version?: number): NdAdapterInfo;

  /**
   * A vendor specific request.
   *
   * @param code - of the vendor's choice
   * @param input - bytes for the provider, or null
   * @param outputLength - bytes that may come back
   * @throws NOT_SUPPORTED where the provider has none.
   * @see INDAdapter::Control
   */
  control(code: number, input: Uint8Array | null, outputLength: number): Overlapped<Uint8Array>;

  /**
   * Makes a completion queue with at least `entries` entries.
   *
   * @param entries - 1 up to maxCqEntries
   * @throws INVALID_PARAMETER below 1 or above maxCqEntries, NO_MEMORY, INSUFFICIENT_RESOURCES
   * @see INDAdapter::CreateCompletionQueue
   */
  createCompletionQueue(entries: number): INDCompletionQueue;

  /**
   * Registers memory for local use; peers access it only through memory windows. Any fixed-length ArrayBuffer,
   * SharedArrayBuffer or view can be registered, any number of times, and is pinned while registered.
   *
   * Ends in INVALID_PARAMETER (above maxRegistrationSize, resizable or detached), INVALID_BUFFER_SIZE (no bytes),
   * INSUFFICIENT_RESOURCES, NOT_SUPPORTED (with this runtime native code can hold only memory of `allocate()`),
   * CANCELED, DEVICE_REMOVED.
   *
   * @param buffer - at least 1 byte, at most maxRegistrationSize bytes
   * @see INDAdapter::RegisterMemory
   */
  registerMemory(buffer: ArrayBufferLike | ArrayBufferView): Overlapped<NdMemoryHandle>;

  /**
   * Ends a registration. Requests that still use the memory fail with ACCESS_VIOLATION. On failure the memory stays
   * registered.
   *
   * Ends in DEVICE_BUSY while a window is bound to it. It has completed when the call returns, either way.
   *
   * @throws INVALID_HANDLE if this instance does not have it
   * @param memory - the result of registerMemory
   * @see INDAdapter::DeregisterMemory
   */
  deregisterMemory(memory: NdMemoryHandle | number): Overlapped<void>;

  /**
   * Makes an unbound memory window.
   *
   * @param invalidateResult - `getResults` on the inbound completion queue returns it when the peer invalidates the
   *   window (`sendAndInvalidate`).
   * @throws INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see INDAdapter::CreateMemoryWindow
   */
  createMemoryWindow(invalidateResult?: NdResult): INDMemoryWindow;

  /**
   * Makes an idle connector. It serves one connection, as its active or its passive side.
   *
   * @throws INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see INDAdapter::CreateConnector
   */
  createConnector(): INDConnector;

  /**
   * Listens for connection requests on the adapter's address.
   *
   * @param options - port, backlog and protocol, each with a default
   * @throws ADDRESS_ALREADY_EXISTS if the port is taken, TOO_MANY_ADDRESSES if none is free, INVALID_PARAMETER_1
   * (backlog), INVALID_PARAMETER_3 (protocol), INVALID_PARAMETER (port), NOT_SUPPORTED for UDP
   * @see INDAdapter::Listen
   */
  listen(options?: NdListenOptions): INDListen;

  /**
   * Ends everything that was made from this instance (connections are disconnected, the rest is released, whoever holds references), and
   * then the instance; for `await using`. Afterwards nothing of it keeps the process alive. It does not fail.
   */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * INDCompletionQueue {1245A633-2A32-473A-830C-E05D1F869D02}.
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
  /** Number of entries, at least as many as requested. */
  readonly entries: number;

  /**
   * Changes the number of entries; no completion is lost, traffic need not stop.
   *
   * @param entries - 1 up to maxCqEntries
   * @throws INVALID_PARAMETER (limits), BUFFER_OVERFLOW if more are waiting than would fit; nothing changed then.
   * @see INDCompletionQueue::Resize
   */
  resize(entries: number): void;

  /**
   * Waits for the next event: any completion; a solicited one (of a Send with SEND_AND_SOLICIT_EVENT, or any failed
   * request); or an error of the queue itself. A completion after the last `getResults` that returned fewer than its
   * maximum satisfies it at once. Poll again after issuing it and after it has ended: it may end without a new
   * completion.
   *
   * Ends in BUFFER_OVERFLOW (the queue has overrun and failed for good), INTERNAL_ERROR, CANCELED, DEVICE_REMOVED.
   *
   * @param type - `'any'`, `'solicited'` or `'errors'`
   * @throws INVALID_PARAMETER for another type
   * @see INDCompletionQueue::Notify
   */
  notify(type: NdNotifyType): Overlapped<void>;

  /**
   * Takes completed requests: fills `results` from the start with the clients' own {@link NdResult} objects, at most
   * `max` of them, and returns their number. Fewer than `max` means that the queue is empty. It allocates nothing. A
   * call from a setter of a result returns 0: the outer call continues.
   *
   * @param results - filled from its start
   * @param max - default: the length of `results`, at least 1.
   * @throws INVALID_PARAMETER: `results` is no array, or `max` not a whole number from 0 on. It fails for no other
   *   reason.
   * @see INDCompletionQueue::GetResults
   */
  getResults(results: NdResult[], max?: number): number;
}

/**
 * INDMemoryWindow {070FE1F5-0AB5-4361-88DB-974BA704D4B9}: an access right of a peer that can be granted (Bind) and
 * withdrawn (Invalidate). It ends with the connection that it was bound on, and with its last reference.
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
 * A request that throws was not queued and changed nothing. All of them throw NO_MORE_ENTRIES (the endpoint has no
 * entry left: take results first), DATA_OVERRUN (too many scatter/gather entries), BUFFER_OVERFLOW (more bytes than the
 * adapter transfers), INVALID_HANDLE (memory of another instance, or deregistered), ACCESS_VIOLATION (memory that is not
 * registered ends before the entry), INVALID_PARAMETER_1 (the result is not an object, or cannot be written), and, except
 * for Receive, CONNECTION_INVALID before there is a connection. After its end they are accepted and end in CANCELED.
 *
 * Results: SUCCESS; CANCELED; ACCESS_VIOLATION (local memory: an entry ends beyond its registration, or may not be
 * written; a Bind that is not allowed); DATA_OVERRUN (a message
 * longer than its Receive); REMOTE_ERROR (refused by the peer: token, range, rights, or its Receive was too short);
 * TIMEOUT (the peer is gone or posts no Receive); INVALID_DEVICE_REQUEST (Invalidate of an unbound window);
 * INTERNAL_ERROR. Any result but SUCCESS ends the connection.
 * @example
 * ```ts
 * const received: NdResult = { status: 0, bytesTransferred: 0, context: 'answer' };
 * const sent: NdResult = { status: 0, bytesTransferred: 0, context: 'question' };
 * endpoint.receive(received, [{ memory, offset: 4096, length: 4096 }]);
 * endpoint.send(sent, [{ memory, offset: 0, length: 100 }]);
 * console.log((await nextResult(queue)).context);
 * ```
 */
export interface INDEndpoint extends NdUnknown {
  /** A Send or Write of at most this many bytes is copied during the call; its memory need not be registered. */
  readonly maxInline: number;
  /** Scatter/gather entries that a Receive may have: at least as many as requested. */
  readonly inboundSge: number;
  /** Scatter/gather entries that any other request may have: at least as many as requested. */
  readonly outboundSge: number;

  /**
   * Cancels all outstanding requests, each with a CANCELED result, in any state. The endpoint cannot be used
   * afterwards. It fails only on a released endpoint: INVALID_HANDLE.
   *
   * @see INDEndpoint::Flush
   */
  flush(): void;

  /**
   * Holds requests back until {@link submitRequestBatch}, if the provider can. It fails only on a released endpoint:
   * INVALID_HANDLE.
   *
   * @see INDEndpoint::StartRequestBatch
   */
  startRequestBatch(): void;
  /**
   * Submits the requests since {@link startRequestBatch}. It fails only on a released endpoint: INVALID_HANDLE.
   *
   * @see INDEndpoint::SubmitRequestBatch
   */
  submitRequestBatch(): void;

  /**
   * Sends one message to one Receive of the peer.
   *
   * @param result - the client's; `getResults` fills it in and returns it
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @param flags - SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT; others INVALID_PARAMETER_4
   * @throws as every request, see {@link INDEndpoint}; INVALID_PARAMETER_4
   * @see INDEndpoint::Send
   */
  send(result: NdResult, sgl: readonly NdSge[], flags?: number): void;

  /**
   * Sends a message that also invalidates a window of the peer's, whose invalidate result then appears there.
   *
   * @param result - the client's; `getResults` fills it in and returns it
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @param remote - the window of the peer that ends with the message
   * @param flags - as {@link send}; others INVALID_PARAMETER_5
   * @throws as every request, see {@link INDEndpoint}; INVALID_PARAMETER_5
   * @see INDEndpoint::SendAndInvalidate
   */
  sendAndInvalidate(result: NdResult, sgl: readonly NdSge[], remote: NdMwDescriptor, flags?: number): void;

  /**
   * Posts memory for one message; messages take Receives in order. Allowed in every state.
   *
   * @param result - the client's; `getResults` fills it in and returns it
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @throws NO_MORE_ENTRIES, DATA_OVERRUN, BUFFER_OVERFLOW, INVALID_HANDLE, see {@link INDEndpoint}
   * @see INDEndpoint::Receive
   */
  receive(result: NdResult, sgl: readonly NdSge[]): void;

  /**
   * Opens a range of registered memory to the peer. The descriptor is valid at once: the next Send may carry it.
   *
   * @param result - the client's; `getResults` fills it in and returns it
   * @param memory - registered by the same adapter instance
   * @param window - of the same adapter instance
   * @param offset - bytes from the start of the memory
   * @param length - bytes, at least 1
   * @param flags - SILENT_SUCCESS, READ_FENCE, ALLOW_READ, ALLOW_WRITE; others INVALID_PARAMETER_6
   * @throws INVALID_DEVICE_STATE if the window is bound, INVALID_PARAMETER if the range leaves the memory or is empty,
   *   INVALID_PARAMETER_3 (window)
   * @see INDEndpoint::Bind
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
   * @param result - the client's; `getResults` fills it in and returns it
   * @param window - of the same adapter instance
   * @param flags - SILENT_SUCCESS, READ_FENCE; others INVALID_PARAMETER_3
   * @throws INVALID_PARAMETER_2 (window)
   * @see INDEndpoint::Invalidate
   */
  invalidate(result: NdResult, window: INDMemoryWindow, flags?: number): void;

  /**
   * Reads from `offset` bytes into the peer's window, as many bytes as the scatter/gather entries hold.
   *
   * @param result - the client's; `getResults` fills it in and returns it
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @param remote - the result of the peer's Bind
   * @param offset - bytes from the start of the peer's window
   * @param flags - SILENT_SUCCESS, READ_FENCE; others INVALID_PARAMETER_6
   * @throws as every request, see {@link INDEndpoint}; INVALID_PARAMETER_6
   * @see INDEndpoint::Read
   */
  read(result: NdResult, sgl: readonly NdSge[], remote: NdMwDescriptor, offset: number, flags?: number): void;

  /**
   * Writes at `offset` bytes into the peer's window; the peer gets no completion.
   *
   * @param result - the client's; `getResults` fills it in and returns it
   * @param sgl - parts of memory in order; offsets and lengths in bytes
   * @param remote - the result of the peer's Bind
   * @param offset - bytes from the start of the peer's window
   * @param flags - SILENT_SUCCESS, READ_FENCE; others INVALID_PARAMETER_6
   * @throws as every request, see {@link INDEndpoint}; INVALID_PARAMETER_6
   * @see INDEndpoint::Write
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
    /** Every object of the first version with requests that can wait. */
    INDOverlapped: INDOverlapped;
    /** The root of the first version. */
    INDProvider: INDProvider;
    /** Made by {@link INDProvider.openAdapter}. */
    INDAdapter: INDAdapter;
    /** Made by {@link INDAdapter.createCompletionQueue}. */
    INDCompletionQueue: INDCompletionQueue;
    /** Made by {@link INDAdapter.createMemoryWindow}. */
    INDMemoryWindow: INDMemoryWindow;
    /** Made by {@link INDConnector.createEndpoint}. */
    INDEndpoint: INDEndpoint;
    /** Made by {@link INDAdapter.createConnector}. */
    INDConnector: INDConnector;
    /** Made by {@link INDAdapter.listen}. */
    INDListen: INDListen;
  }
}

/** Options of {@link INDAdapter.listen}. */
export interface NdListenOptions {
  /** Host order; 0, the default: a free port. */
  port?: number;
  /**
   * Maximum of requests that wait for getConnectionRequest; more are refused. 0, the default: the soft kernel's limit,
   * 1024 at a listener and 4096 in a thread.
   */
  backlog?: number;
  /** IP protocol number of the port, 0..255 except UDP (17); default 6 (TCP). */
  protocol?: number;
}

/**
 * INDListen {BB902588-BA3F-4441-9FE1-3B6795E4E668}. Releasing it refuses the requests that nobody has taken.
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
  /** The granted port, host order. */
  readonly port: number;
  /** The address and port that peers connect to. */
  readonly address: SocketAddress;

  /**
   * Waits for a connection request and gives it to an idle connector, which can then look at its data, Accept or Reject
   * it. Several may be outstanding; they complete in order. CANCELED returns the connector to idle.
   *
   * @param connector - an idle one of the same adapter instance
   * @throws CONNECTION_ACTIVE if the connector is not idle
   * @see INDListen::GetConnectionRequest
   */
  getConnectionRequest(connector: INDConnector): Overlapped<void>;
}

/** Queue sizes and limits of a new endpoint. */
export interface NdEndpointOptions {
  /** Gets the results of Receives, and of windows that the peer invalidates. */
  inboundCompletionQueue: INDCompletionQueue;
  /** Gets the results of all other requests; may be the same. */
  outboundCompletionQueue: INDCompletionQueue;
  /** Maximum of outstanding Receives. */
  inboundEntries: number;
  /** Maximum of other outstanding requests. */
  outboundEntries: number;
  /** Scatter/gather entries of a Receive, at least; default 1. {@link INDEndpoint.inboundSge} is the granted number. */
  inboundSge?: number;
  /**
   * Scatter/gather entries of other requests, at least; default 1. {@link INDEndpoint.outboundSge} is the granted
   * number.
   */
  outboundSge?: number;
  /** Maximum of Reads that the peer has in flight to us; reduced to the adapter's limit, which is the default. */
  inboundReadLimit?: number;
  /**
   * Maximum of Reads that we have in flight; reduced to the adapter's limit, which is the default. With 0, the result
   * of a Read is ACCESS_VIOLATION.
   */
  outboundReadLimit?: number;
}

/** Options of Connect. */
export interface NdConnectOptions {
  /** At most maxCallerData bytes. */
  privateData?: Uint8Array;
  /**
   * Local port, host order. 0, the default: a free one, or the port of the last failed connect. Other connectors may
   * have the same port, in this process and elsewhere; it only shows the peer the origin of the connection.
   */
  localPort?: number;
  /** As in {@link NdListenOptions}. */
  protocol?: number;
}

/** Data of the peer's request or reply. */
export interface NdConnectionData {
  /** Reads that the peer wants to have in flight to us, within our limits. */
  readonly inboundReadLimit: number;
  /** Reads that the peer allows us to have in flight, within our limits. */
  readonly outboundReadLimit: number;
  /** May be padded with zeros to the transport's fixed length. */
  readonly privateData: Uint8Array;
}

/**
 * INDConnector {1BCAF2D1-E274-4AEB-AC57-CD5D4376E0B7}: establishes and ends one connection.
 *
 * Active side: createEndpoint, connect, look at getConnectionData, then completeConnect (or reject). Passive side: give
 * an idle connector to {@link INDListen.getConnectionRequest}; getConnectionData, createEndpoint, then accept (or
 * reject). A connect that failed (refused, timed out, unreachable) leaves the connector and the endpoint, with its
 * posted Receives, ready for another; a failed completeConnect or accept ends both.
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
   * Makes an endpoint. Receives can be posted at once, other requests when it is connected.
   *
   * @param options - queues; depths in requests; scatter/gather entries per request; read limits
   * @throws INVALID_PARAMETER_1 … _8 for the n-th option in the order of {@link NdEndpointOptions},
   * INSUFFICIENT_RESOURCES, NO_MEMORY
   * @see INDConnector::CreateEndpoint
   */
  createEndpoint(options: NdEndpointOptions): INDEndpoint;

  /**
   * Connects to a listener; succeeds when it accepts. `address` is a socket address or text such as
   * `'192.0.2.1:18515'` or `'[fe80::1%2]:18515'`.
   *
   * Ends in CONNECTION_REFUSED (rejected: see getConnectionData; nobody listens; backlog full), TIMEOUT,
   * NETWORK_UNREACHABLE, HOST_UNREACHABLE, BAD_NETWORK_NAME (no path to such an address) — after these connect may be
   * called again —, CANCELED, DEVICE_REMOVED.
   *
   * @param endpoint - of the same adapter instance, and of no other connector
   * @param address - the listener's; port in host order
   * @param options - private data (bytes), local port (host order), protocol
   * @throws CONNECTION_ACTIVE (connector or endpoint in use), INVALID_DEVICE_STATE, INVALID_BUFFER_SIZE (private
   * data), INVALID_ADDRESS, INVALID_PARAMETER_1 (endpoint), TOO_MANY_ADDRESSES (no port is free); nothing changed then.
   * @see INDConnector::Connect
   */
  connect(endpoint: INDEndpoint, address: NdAddress, options?: NdConnectOptions): Overlapped<void>;

  /**
   * Completes the connection; the endpoint can then send.
   *
   * Ends in CONNECTION_ABORTED (the peer gave up), TIMEOUT, CANCELED. Throws CONNECTION_INVALID if there is nothing to
   * complete.
   *
   * @see INDConnector::CompleteConnect
   */
  completeConnect(): Overlapped<void>;

  /**
   * Accepts the connection request; completes when the peer has completed, or its first message has arrived. The
   * endpoint may receive before that is seen.
   *
   * Ends in CONNECTION_REFUSED (the peer rejected the reply), CONNECTION_ABORTED (it gave up before), TIMEOUT,
   * CANCELED.
   *
   * @param endpoint - of the same adapter instance, and of no other connector
   * @param privateData - at most maxCalleeData bytes; default: none
   * @throws CONNECTION_INVALID (no request here), CONNECTION_ACTIVE, CONNECTION_ABORTED, INVALID_BUFFER_SIZE (private
   * data), INVALID_PARAMETER_1 (endpoint); nothing changed then.
   * @see INDConnector::Accept
   */
  accept(endpoint: INDEndpoint, privateData?: Uint8Array): Overlapped<void>;

  /**
   * Rejects a connection request, or, after connect, the reply.
   *
   * @param privateData - at most maxCalleeData bytes; default: none
   * @throws INVALID_DEVICE_STATE, CONNECTION_INVALID, INVALID_BUFFER_SIZE
   * @see INDConnector::Reject
   */
  reject(privateData?: Uint8Array): void;

  /**
   * The data of the peer's request or reply or, after CONNECTION_REFUSED, of its reject.
   *
   * @throws INVALID_DEVICE_STATE, CONNECTION_INVALID
   * @see INDConnector::GetConnectionData
   */
  getConnectionData(): NdConnectionData;

  /**
   * The local address, from connect or the request on.
   *
   * @throws ADDRESS_NOT_ASSOCIATED before there is one.
   * @see INDConnector::GetLocalAddress
   */
  getLocalAddress(): SocketAddress;

  /**
   * The peer's address, from connect or the request on.
   *
   * @throws CONNECTION_INVALID while there is no peer.
   * @see INDConnector::GetPeerAddress
   */
  getPeerAddress(): SocketAddress;

  /**
   * Waits for the end of the connection: SUCCESS when the peer disconnects or is lost, at once if it has already;
   * CANCELED when this side calls {@link disconnect}. Allowed from completeConnect on.
   *
   * @throws CONNECTION_INVALID, CONNECTION_DISCONNECTED
   * @see INDConnector::NotifyDisconnect
   */
  notifyDisconnect(): Overlapped<void>;

  /**
   * Ends the connection. Every outstanding request of the endpoint ends in CANCELED in its completion queue. Requests
   * that had completed before are delivered at the peer. Both sides may call it at the same time, and both succeed.
   *
   * Ends in TIMEOUT if the peer does not answer; the connection is over all the same.
   *
   * @throws CONNECTION_INVALID if there is none, INVALID_DEVICE_STATE if this side is disconnecting already
   * @see INDConnector::Disconnect
   */
  disconnect(): Overlapped<void>;

  /** Disconnects if connected, waits for that, and releases; for `await using`. It does not fail. */
  [Symbol.asyncDispose](): Promise<void>;
}
