/** ND SPI v2: establishing and ending connections. */
import type { Overlapped, SocketAddress } from '../../winverbs/index.js';
import type { IND2Overlapped, IND2QueuePair } from './v2.js';
import type { Nd2ReadLimits } from './v2-types.js';

/** Options of Connect and Accept. */
export interface Nd2ConnectOptions {
  /** Maximum of Reads that the peer has in flight to us; reduced to the adapter's limit, which is the default. */
  inboundReadLimit?: number;
  /**
   * Maximum of Reads that we have in flight; reduced to the adapter's limit, which is the default. With 0, the result
   * of a Read is INTERNAL_ERROR.
   */
  outboundReadLimit?: number;
  /** At most maxCallerData bytes with Connect, maxCalleeData with Accept. */
  privateData?: Uint8Array;
}

/**
 * IND2Connector {7DD615C4-6B4C-4866-950C-F3B1D25A5302}: establishes and ends one connection.
 *
 * Active side: bind, connect, look at the peer's reply, then completeConnect (or reject). Passive side: give an idle,
 * unbound connector to {@link IND2Listener.getConnectionRequest}; look at the request, then accept (or reject). A
 * connect that failed (refused, timed out, unreachable) leaves the connector bound and the queue pair, with its posted
 * Receives, ready for another; a failed completeConnect or accept ends both.
 *
 * Releasing it disconnects.
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
   * Binds the connector to an address of the adapter, given as text or as a socket address; port 0: a free port.
   * Several connectors, and one listener, may have the same address and port, also in different processes: the port
   * only shows the peer the origin of the connection. A failed connect leaves the connector bound.
   *
   * @param address - text (`'192.0.2.1:18515'`) or a socket address; port in host order
   * @throws ADDRESS_ALREADY_ASSOCIATED (not idle), INVALID_ADDRESS (not of this adapter, or the wildcard),
   *   TOO_MANY_ADDRESSES (no port is free). Other providers may refuse a port that is taken: SHARING_VIOLATION,
   *   ADDRESS_ALREADY_EXISTS
   * @see IND2Connector::Bind
   */
  bind(address: string | SocketAddress): void;

  /**
   * Connects to a listener; succeeds when it accepts. `address` is a socket address or text such as
   * `'192.0.2.1:18515'` or `'[fe80::1%2]:18515'`.
   *
   * Ends in CONNECTION_REFUSED (rejected: see getPrivateData; nobody listens; backlog full), IO_TIMEOUT,
   * NETWORK_UNREACHABLE, HOST_UNREACHABLE, BAD_NETWORK_NAME (no path to such an address) — after these connect may be
   * called again —, CANCELED, DEVICE_REMOVED.
   *
   * @param queuePair - of the same adapter instance, and of no other connector
   * @param address - the listener's; port in host order
   * @param options - read limits (Reads), private data (bytes)
   * @throws ADDRESS_NOT_ASSOCIATED (not bound), CONNECTION_ACTIVE (connector or queue pair in use),
   * INVALID_DEVICE_STATE, INVALID_BUFFER_SIZE (private data), INVALID_ADDRESS, INVALID_PARAMETER_1 (queue pair),
   * INVALID_PARAMETER_4, _5 (read limits); nothing changed then.
   * @see IND2Connector::Connect
   */
  connect(
    queuePair: IND2QueuePair,
    address: string | SocketAddress,
    options?: Nd2ConnectOptions,
  ): Overlapped<void>;

  /**
   * Completes the connection; the queue pair can then send.
   *
   * Ends in CONNECTION_ABORTED (the peer gave up), IO_TIMEOUT, CANCELED.
   *
   * @throws CONNECTION_INVALID if there is nothing to complete, CONNECTION_ABORTED if there was
   * @see IND2Connector::CompleteConnect
   */
  completeConnect(): Overlapped<void>;

  /**
   * Accepts the connection request; completes when the peer has completed, or its first message has arrived. The
   * queue pair may receive before that is seen. Read limits stay within what the peer offers.
   *
   * Ends in CONNECTION_REFUSED (the peer rejected the reply), CONNECTION_ABORTED (it gave up before), IO_TIMEOUT,
   * CANCELED.
   *
   * @param queuePair - of the same adapter instance, and of no other connector
   * @param options - read limits (Reads), private data (bytes)
   * @throws CONNECTION_INVALID (no request here), CONNECTION_ACTIVE, CONNECTION_ABORTED, INVALID_BUFFER_SIZE (private
   * data), INVALID_PARAMETER_1 (queue pair), INVALID_PARAMETER_2, _3 (read limits); nothing changed then.
   * @see IND2Connector::Accept
   */
  accept(queuePair: IND2QueuePair, options?: Nd2ConnectOptions): Overlapped<void>;

  /**
   * Rejects a connection request, or, after connect, the reply.
   *
   * @param privateData - at most maxCalleeData bytes; default: none
   * @throws INVALID_DEVICE_STATE, CONNECTION_INVALID, CONNECTION_ABORTED (the peer gave up before), INVALID_BUFFER_SIZE
   * @see IND2Connector::Reject
   */
  reject(privateData?: Uint8Array): void;

  /**
   * The Reads that the peer offers with its request, or has granted with its reply, in a form that accept takes.
   *
   * @throws INVALID_DEVICE_STATE, CONNECTION_INVALID, CONNECTION_ABORTED (the peer gave up)
   * @see IND2Connector::GetReadLimits
   */
  getReadLimits(): Nd2ReadLimits;

  /**
   * The private data of the peer's request or reply or, after CONNECTION_REFUSED, of its reject. It may be padded with
   * zeros to the transport's fixed length.
   *
   * @throws INVALID_DEVICE_STATE, CONNECTION_INVALID, CONNECTION_ABORTED (the peer gave up)
   * @see IND2Connector::GetPrivateData
   */
  getPrivateData(): Uint8Array;

  /**
   * The local address, from bind or the request on.
   *
   * @throws ADDRESS_NOT_ASSOCIATED before there is one.
   * @see IND2Connector::GetLocalAddress
   */
  getLocalAddress(): SocketAddress;

  /**
   * The peer's address, from connect or the request on.
   *
   * @throws CONNECTION_INVALID while there is no peer.
   * @see IND2Connector::GetPeerAddress
   */
  getPeerAddress(): SocketAddress;

  /**
   * Waits for the end of the connection: SUCCESS when the peer disconnects or is lost, at once if it has already;
   * CONNECTION_DISCONNECTED when this side calls {@link disconnect}; CANCELED. Allowed from completeConnect on. When
   * the peer disconnects, the queue pair is flushed after all data that the peer had sent was delivered.
   *
   * @throws CONNECTION_INVALID, CONNECTION_DISCONNECTED
   * @see IND2Connector::NotifyDisconnect
   */
  notifyDisconnect(): Overlapped<void>;

  /**
   * Ends the connection. Every outstanding request of the queue pair ends in CANCELED in its completion queue. Requests
   * that had completed before are delivered at the peer. Both sides may call it at the same time, and both succeed; it
   * also succeeds if the peer never answers.
   *
   * @throws CONNECTION_INVALID if there is none, INVALID_DEVICE_STATE if this side is disconnecting already
   * @see IND2Connector::Disconnect
   */
  disconnect(): Overlapped<void>;

  /** Disconnects if connected, waits for that, and releases; for `await using`. It does not fail. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * IND2Listener {65D23D83-3A57-4E02-86A4-350165C2D130}: bind, listen, then getConnectionRequest for each connection.
 * Releasing it refuses the requests that nobody has taken.
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
   * adapter; port 0: a free port. With the wildcard the port is taken on every address of the host, as a TCP port would
   * be: no other listener can have it, not even one of another adapter.
   *
   * @param address - text (`'192.0.2.1:18515'`) or a socket address; port in host order
   * @throws ADDRESS_ALREADY_ASSOCIATED (bound before), INVALID_ADDRESS, SHARING_VIOLATION, ADDRESS_ALREADY_EXISTS,
   *   TOO_MANY_ADDRESSES, INSUFFICIENT_RESOURCES
   * @see IND2Listener::Bind
   */
  bind(address: string | SocketAddress): void;

  /**
   * Listens.
   *
   * @param backlog - maximum of requests that wait for getConnectionRequest; more are refused. 0, the default: the soft
   *   kernel's limit, 1024 at a listener and 4096 in a thread.
   * @throws INVALID_DEVICE_STATE (not bound, or listening already), ADDRESS_ALREADY_EXISTS or SHARING_VIOLATION
   *   (another listener has the address), INVALID_PARAMETER (backlog)
   * @see IND2Listener::Listen
   */
  listen(backlog?: number): void;

  /**
   * The address and port, from bind on.
   *
   * @throws INVALID_DEVICE_STATE before
   * @see IND2Listener::GetLocalAddress
   */
  getLocalAddress(): SocketAddress;

  /**
   * Waits for a connection request and gives it to an idle connector, which can then look at it, Accept or Reject it.
   * Several may be outstanding; they complete in order. CANCELED returns the connector to idle.
   *
   * @param connector - an idle one of the same adapter instance
   * @throws CONNECTION_ACTIVE if the connector is not idle, INVALID_DEVICE_STATE if the listener does not listen,
   *   INVALID_PARAMETER_1 (connector)
   * @see IND2Listener::GetConnectionRequest
   */
  getConnectionRequest(connector: IND2Connector): Overlapped<void>;
}
