/** ND SPI v1: establishing and ending connections. */
import type { Overlapped, SocketAddress } from '../../winverbs/index.js';
import type { INDCompletionQueue, INDEndpoint, INDOverlapped } from './v1.js';

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
  connect(
    endpoint: INDEndpoint,
    address: string | SocketAddress,
    options?: NdConnectOptions,
  ): Overlapped<void>;

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
   * @throws INVALID_DEVICE_STATE, CONNECTION_INVALID, CONNECTION_ABORTED (the peer gave up)
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
