import { shown } from '../../kernel-bridge/ioctl/shown.js';
import {
  IpProtocol,
  Overlapped,
  type SocketAddress,
  Status,
  StatusError,
  type WvConnectParam,
} from '../../winverbs/index.js';
import type { NdAddress } from '../spi/common-types.js';
import { type NdError, refuse, type StatusMap } from '../status.js';
import type { AdapterObject } from './adapter-object.js';
import { isLoopback, parseAddress } from './address.js';
import { isCount } from './argument-checks.js';
import type { EndpointBelow } from './below.js';
import {
  type ConnectorEvent,
  type ConnectorMethod,
  type ConnectorState,
  legalityOf,
  nextState,
  refusalOf,
} from './connector-states.js';
import { NdOverlappedBase } from './nd-object.js';
import { checkPrivateData } from './private-data.js';
import type { QueuePairBase } from './queue-pair-base.js';
import { RequestTracker } from './tracker.js';

/**
 * WinVerbs returns INVALID_DEVICE_STATE for every request in the wrong state. If a request was allowed by the state
 * table here, the peer has changed the state since, for which ND has a more specific status.
 */
const connectStatuses: StatusMap = {
  [Status.INVALID_DEVICE_STATE]: Status.CONNECTION_INVALID,
  [Status.NOT_FOUND]: Status.BAD_NETWORK_NAME,
};
const peerGaveUp: StatusMap = {
  [Status.INVALID_DEVICE_STATE]: Status.CONNECTION_ABORTED,
  [Status.CONNECTION_INVALID]: Status.CONNECTION_ABORTED,
};
const notConnected: StatusMap = { [Status.INVALID_DEVICE_STATE]: Status.CONNECTION_INVALID };

/**
 * Statuses of a disconnect notification in WinVerbs when the connection has ended without a disconnect by this side.
 */
const endedByPeer: ReadonlySet<number> = new Set([
  Status.CONNECTION_DISCONNECTED,
  Status.CONNECTION_ABORTED,
  Status.TIMEOUT,
]);

/** The attributes that the peer sent. */
type PeerAttributes = ReturnType<EndpointBelow['query']>;

/** Limits of Reads in flight, as seen from this side. */
export interface ReadLimits {
  inbound: number;
  outbound: number;
}

/**
 * Base of INDConnector and IND2Connector, over endpoints of the layer below. An endpoint of WinVerbs connects once, so
 * every further Connect uses a new one, bound to the same port.
 */
export abstract class ConnectorBase extends NdOverlappedBase {
  readonly adapter: AdapterObject;
  #state: ConnectorState = 'Idle';
  /** The WinVerbs endpoint of the current connection, or of the last attempt. */
  #wv: EndpointBelow | undefined;
  /** The protocol whose port space {@link #wv} uses. */
  #protocol: number = IpProtocol.TCP;
  /** Whether {@link #wv} was used for an attempt and cannot be used again. */
  #used = false;
  /** The first WinVerbs endpoint, once replaced. It keeps the ephemeral port in use. */
  #portHolder: EndpointBelow | undefined;
  #local: SocketAddress | undefined;
  #queuePair: QueuePairBase | undefined;
  #peer: SocketAddress | undefined;
  /** Whether the last attempt was rejected, possibly with data. */
  #rejected = false;
  /** Whether this side is ending the connection. */
  #disconnecting = false;
  readonly #requests = new RequestTracker((request) => this.issued(request));
  readonly #notifications = new RequestTracker((request) => this.issued(request));

  constructor(adapter: AdapterObject) {
    super();
    this.adapter = adapter;
    adapter.addChild(this);
  }

  /** The state after all requests that have completed so far. */
  get state(): ConnectorState {
    this.#settle();
    return this.#state;
  }

  /** Status of a NotifyDisconnect when this side ends the connection. */
  protected abstract readonly ownDisconnect: number;

  /** Returns the error of a Disconnect without the peer's confirmation; undefined for success. */
  protected abstract disconnectFailure(failure: NdError): NdError | undefined;

  /** Starts GetConnectionRequest of a listener with this connector; `getRequest` issues it for the given endpoint. */
  awaitRequest(getRequest: (endpoint: EndpointBelow) => Overlapped<void>): Overlapped<void> {
    const { adapter } = this;
    const what = this.enter('getConnectionRequest', 'GetConnectionRequest');
    this.#wv ??= this.#newEndpoint(what);
    const wv = this.#wv;
    const request = adapter.call(what, () => getRequest(wv));
    this.#apply('requestAwaited');
    return this.#track('requestArrived', 'requestFailed', what, request, undefined, true);
  }

  completeConnect(): Overlapped<void> {
    const { adapter } = this;
    const what = this.enter('completeConnect', 'CompleteConnect');
    // The queue pair and the read depths are those of Connect.
    const request = adapter.call(what, () => this.#wv!.accept(null, {}), peerGaveUp);
    this.#apply('completeStarted');
    return this.#track('completed', 'completeFailed', what, request, peerGaveUp);
  }

  reject(privateData?: Uint8Array): void {
    const what = this.enter('reject', 'Reject');
    const data = this.checkCalleeData(privateData, what);
    try {
      this.#wv!.reject(data);
    } catch (error) {
      const failure = this.adapter.error(error, what, peerGaveUp);
      if (failure instanceof StatusError && failure.status === Status.CONNECTION_ABORTED) {
        this.#apply('rejected');
      }
      throw failure;
    }
    this.#apply('rejected');
  }

  getLocalAddress(): SocketAddress {
    const what = this.enter('getLocalAddress', 'GetLocalAddress');
    return this.adapter.call(what, () => this.#wv!.query().localAddress);
  }

  getPeerAddress(): SocketAddress {
    const what = this.enter('getPeerAddress', 'GetPeerAddress');
    const peer = this.adapter.call(what, () => this.#wv!.query().peerAddress) ?? this.#peer;
    if (peer === undefined) throw refuse(Status.CONNECTION_INVALID, what);
    return peer;
  }

  notifyDisconnect(): Overlapped<void> {
    const { adapter } = this;
    const what = this.enter('notifyDisconnect', 'NotifyDisconnect');
    const request = adapter.call(what, () => this.#wv!.notifyDisconnect(), notConnected);
    const ended = (): void => this.#apply('peerDisconnected');
    return this.#notifications.track(request, ended, (error) => {
      if (this.#disconnecting) {
        return refuse(this.ownDisconnect, what, 'This side disconnected.');
      }
      return endedByPeer.has(error.status) ? ended() : adapter.error(error, what, notConnected);
    });
  }

  disconnect(): Overlapped<void> {
    return this.#disconnect(this.enter('disconnect', 'Disconnect'));
  }

  cancelOverlappedRequests(): void {
    const what = 'CancelOverlappedRequests';
    this.alive(what);
    const wv = this.#wv;
    if (wv !== undefined) this.adapter.call(what, () => wv.cancelOverlappedRequests());
    this.#settle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      if (!this.ended && legalityOf('disconnect', this.state) === Status.SUCCESS) await this.disconnect();
    } catch {
      // The connection has ended in any case.
    } finally {
      this.release();
    }
  }

  /** Ends the connection because its queue pair is released. Returns whether there was a connection. */
  disconnectFor(queuePair: QueuePairBase): boolean {
    if (this.#queuePair !== queuePair || this.ended) return false;
    this.#settle();
    if (legalityOf('disconnect', this.#state) !== Status.SUCCESS) return false;
    try {
      this.#disconnect('Disconnect');
      return true;
    } catch {
      // The connection has already ended.
      return false;
    }
  }

  /** Checks that `method` is allowed now; returns its SPI name. */
  protected enter(method: ConnectorMethod, what: string): string {
    this.alive(what);
    this.#settle();
    const status = legalityOf(method, this.#state);
    if (status !== Status.SUCCESS) throw refuse(status, what, refusalOf(method, this.#state));
    return what;
  }

  /**
   * Returns the peer's data; throws unless there is a request, a reply or a reject. If the peer has given up meanwhile,
   * Accept, CompleteConnect and Reject report it.
   */
  protected attributes<T>(what: string, pick: (attributes: PeerAttributes) => T): T {
    const ended = this.#state === 'Bound' || this.#state === 'Disconnected';
    if (ended && !this.#rejected) {
      throw refuse(
        Status.CONNECTION_INVALID,
        what,
        'The peer has sent no data, because there is no connection and no reject.',
      );
    }
    const wv = this.#wv!;
    return this.adapter.call(what, () => pick(wv.query()));
  }

  /** Reduces the read depths to the adapter's limits. */
  protected limited({ responderResources, initiatorDepth }: PeerAttributes): ReadLimits {
    const { maxInboundReads, maxOutboundReads } = this.adapter.bounds;
    return {
      inbound: Math.min(responderResources, maxInboundReads),
      outbound: Math.min(initiatorDepth, maxOutboundReads),
    };
  }

  /** Binds the connector to an address (v2: Bind). */
  protected bindTo(address: SocketAddress, what: string): void {
    this.#bind(address, what);
    this.#apply('bound');
  }

  /**
   * Prepares a Connect from `address`, or from the current one, in a protocol's port space. Port 0 keeps the port of an
   * earlier attempt.
   */
  protected prepare(what: string, address?: SocketAddress, protocol = this.#protocol): void {
    if (address !== undefined) this.#bind(address, what, protocol);
    else if (this.#used) this.#bind({ ...this.#local!, port: 0 }, what);
    this.#rejected = false;
  }

  /** Connects to `peer` after {@link prepare}, with a queue pair that {@link checkQueuePair} has returned. */
  protected startConnect(
    what: string,
    queuePair: QueuePairBase,
    peer: SocketAddress,
    limits: ReadLimits,
    privateData: Uint8Array | undefined,
  ): Overlapped<void> {
    const { adapter } = this;
    const wv = this.#wv!;
    this.#used = wv.reconnects !== true;
    this.#peer = peer;
    let request: Overlapped<void>;
    try {
      wv.resolveRoute(peer);
      request = wv.connect(queuePair.qp, peer, paramOf(limits, privateData));
    } catch (error) {
      this.#apply('connectStarted');
      this.#apply('connectFailed');
      // A missing route is not a mistake of the caller, so the request reports it, not the call.
      if (error instanceof StatusError)
        return this.issued(Overlapped.failed(adapter.error(error, what, connectStatuses)));
      throw error;
    }
    this.#attach(queuePair);
    this.#apply('connectStarted');
    return this.#requests.track(
      request,
      () => this.#apply('replied'),
      (error) => {
        const failure = adapter.error(error, what, connectStatuses);
        this.#rejected = failure.status === Status.CONNECTION_REFUSED;
        this.#detach();
        this.#apply(failure.status === Status.CANCELED ? 'connectCanceled' : 'connectFailed');
        return failure;
      },
    );
  }

  /** Accepts the request; the read limits are reduced to the peer's offer. */
  protected startAccept(
    what: string,
    queuePair: QueuePairBase,
    limits: ReadLimits,
    privateData: Uint8Array | undefined,
  ): Overlapped<void> {
    const { adapter } = this;
    const wv = this.#wv!;
    const within = adapter.call(
      what,
      () => {
        const { responderResources, initiatorDepth } = wv.query();
        return {
          inbound: Math.min(limits.inbound, responderResources),
          outbound: Math.min(limits.outbound, initiatorDepth),
        };
      },
      peerGaveUp,
    );
    const param = paramOf(within, privateData);
    const request = adapter.call(what, () => wv.accept(queuePair.qp, param), peerGaveUp);
    this.#attach(queuePair);
    this.#apply('acceptStarted');
    return this.#requests.track(
      request,
      () => {
        this.#apply('accepted');
        this.#endIfAlone();
      },
      (error) => {
        const failure = adapter.error(error, what, peerGaveUp);
        this.#rejected = failure.status === Status.CONNECTION_REFUSED;
        this.#apply('acceptFailed');
        return failure;
      },
    );
  }

  /**
   * Checks private data of Connect. Throws INVALID_PARAMETER if it is not bytes, INVALID_BUFFER_SIZE if it is too long.
   */
  protected checkCallerData(data: Uint8Array | undefined, what: string): Uint8Array | undefined {
    return checkPrivateData(data, what, this.adapter.bounds.maxCallerData);
  }

  /** Checks private data of Accept and Reject in the same way. */
  protected checkCalleeData(data: Uint8Array | undefined, what: string): Uint8Array | undefined {
    return checkPrivateData(data, what, this.adapter.bounds.maxCalleeData);
  }

  /** Returns the address of a peer as it can be reached from `own`. */
  protected peerFrom(own: SocketAddress, address: NdAddress, what: string): SocketAddress {
    const peer = parseAddress(address, what);
    if (peer.family !== own.family) {
      throw refuse(
        Status.INVALID_ADDRESS,
        what,
        `\`address\` must be an IPv${own.family} address, as the local ${own.address} is; got ${peer.address}.`,
      );
    }
    if (!isCount(peer.port, 1, 65_535)) {
      throw refuse(
        Status.INVALID_ADDRESS,
        what,
        `\`address\` must have a port from 1 to 65535, such as '192.0.2.1:4000' or '[2001:db8::1]:4000'; got port ${shown(peer.port)}.`,
      );
    }
    // A loopback address means this host, which the adapter reaches at its own address.
    if (isLoopback(peer.address) && !isLoopback(own.address)) return { ...own, port: peer.port };
    return peer;
  }

  /** The address that the connector is bound to. */
  protected get local(): SocketAddress {
    return this.#local!;
  }

  /** Checks that a queue pair is of this adapter instance and not used by a connector. */
  protected checkQueuePair<T extends QueuePairBase>(
    queuePair: unknown,
    type: abstract new (...args: never[]) => T,
    what: string,
    name: string,
  ): T {
    if (!(queuePair instanceof type) || queuePair.adapter !== this.adapter || queuePair.ended) {
      throw refuse(
        Status.INVALID_PARAMETER_1,
        what,
        `\`${name}\` must belong to this adapter instance and must not be released; got ${shown(queuePair)}.`,
      );
    }
    if (queuePair.connector !== undefined) {
      throw refuse(
        Status.CONNECTION_ACTIVE,
        what,
        `\`${name}\` must not be in use by another connector. Create a new one.`,
      );
    }
    return queuePair;
  }

  #apply(event: ConnectorEvent): void {
    this.#state = nextState(this.#state, event);
  }

  #settle(): void {
    this.#requests.settle();
    this.#notifications.settle();
  }

  #track(
    success: ConnectorEvent,
    failure: ConnectorEvent,
    what: string,
    request: Overlapped<void>,
    map?: StatusMap,
    byOther?: boolean,
  ): Overlapped<void> {
    return this.#requests.track(
      request,
      () => {
        this.#apply(success);
        this.#endIfAlone();
      },
      (error) => {
        this.#apply(failure);
        return this.adapter.error(error, what, map);
      },
      byOther,
    );
  }

  #disconnect(what: string): Overlapped<void> {
    const { adapter } = this;
    const request = adapter.call(what, () => this.#wv!.disconnect(), notConnected);
    // A disconnect by this side completes the notifications immediately; the peer's reply does not affect them.
    this.#disconnecting = true;
    this.#notifications.cancel();
    this.#apply('disconnectStarted');
    return this.#requests.track(
      request,
      () => this.#apply('disconnected'),
      (error) => {
        this.#apply('disconnected');
        return this.disconnectFailure(adapter.error(error, what, notConnected));
      },
    );
  }

  /** Ends a connection whose queue pair was released while it was being established. */
  #endIfAlone(): void {
    if (this.#state === 'Connected' && this.#queuePair?.ended === true) this.disconnectFor(this.#queuePair);
  }

  /** Creates a WinVerbs endpoint with the adapter's setting for queue pairs whose peer disconnects. */
  #newEndpoint(what: string, protocol?: number): EndpointBelow {
    const { adapter } = this;
    const wv = adapter.call(what, () => adapter.endpointBelow(false, protocol));
    if (!adapter.keepQueuePairs) return wv;
    try {
      wv.keepQueuePairOnDisconnect(true);
      return wv;
    } catch (error) {
      wv.release();
      throw adapter.error(error, what);
    }
  }

  /** Binds a WinVerbs endpoint that can connect to an address of the adapter. */
  #bind(address: SocketAddress, what: string, protocol = this.#protocol): void {
    const { adapter } = this;
    const previous = this.#wv;
    // With port 0, or with its current port, the connector keeps the port of the first Connect.
    const port = this.#used && address.port === 0 ? (this.#local?.port ?? 0) : address.port;
    const wv =
      previous === undefined || this.#used || protocol !== this.#protocol
        ? this.#newEndpoint(what, protocol)
        : previous;
    try {
      this.#local = { ...address, port: wv.bindAddress({ ...address, port }).port };
    } catch (error) {
      if (wv !== previous) wv.release();
      throw adapter.error(error, what);
    }
    if (previous !== undefined && wv !== previous) {
      if (this.#portHolder === undefined) this.#portHolder = previous;
      else previous.release();
    }
    this.#wv = wv;
    this.#protocol = protocol;
    this.#used = false;
  }

  #attach(queuePair: QueuePairBase): void {
    queuePair.connector = this;
    this.#queuePair = queuePair;
  }

  #detach(): void {
    if (this.#queuePair !== undefined) this.#queuePair.connector = undefined;
    this.#queuePair = undefined;
  }

  protected end(): void {
    // Otherwise a listener could assign a request to this connector after its release.
    if (this.#state === 'Queued') this.#requests.cancel();
    // A failed attempt leaves the queue pair unchanged.
    if (this.#state === 'Connecting') this.#detach();
    this.#wv?.release();
    this.#portHolder?.release();
    this.adapter.removeChild(this);
  }
}

function paramOf(limits: ReadLimits, privateData: Uint8Array | undefined): WvConnectParam {
  return {
    ...(privateData === undefined ? {} : { privateData }),
    responderResources: limits.inbound,
    initiatorDepth: limits.outbound,
  };
}
