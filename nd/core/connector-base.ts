import {
  IpProtocol,
  type IWVConnectEndpoint,
  Overlapped,
  type SocketAddress,
  Status,
  StatusError,
  type WvConnectAttributes,
  type WvConnectParam,
} from '../../winverbs/index.js';
import type { NdAddress } from '../spi/common-types.js';
import { type NdError, refuse, type StatusMap, statusName } from '../status.js';
import type { AdapterBase } from './adapter-base.js';
import { isLoopback, parseAddress } from './address.js';
import { isCount } from './argument-checks.js';
import {
  type ConnectorEvent,
  type ConnectorMethod,
  type ConnectorState,
  legalityOf,
  nextState,
} from './connector-states.js';
import { NdOverlappedBase } from './nd-object.js';
import { checkPrivateData, MAX_CALLER_DATA, maxCalleeData } from './private-data.js';
import type { QueuePairBase } from './queue-pair-base.js';
import { RequestTracker } from './tracker.js';

/**
 * WinVerbs answers every request in the wrong state with INVALID_DEVICE_STATE. A request that passed the table here was
 * overtaken by the peer, for which ND has a more specific status.
 */
const connectStatuses: StatusMap = {
  [Status.INVALID_DEVICE_STATE]: Status.CONNECTION_INVALID,
  [Status.NOT_FOUND]: Status.BAD_NETWORK_NAME,
};
const peerGaveUp: StatusMap = { [Status.INVALID_DEVICE_STATE]: Status.CONNECTION_ABORTED };
const notConnected: StatusMap = { [Status.INVALID_DEVICE_STATE]: Status.CONNECTION_INVALID };

/** How WinVerbs ends a disconnect notification when the connection has ended without our disconnect. */
const endedByPeer: ReadonlySet<number> = new Set([
  Status.CONNECTION_DISCONNECTED,
  Status.CONNECTION_ABORTED,
  Status.TIMEOUT,
]);

/** Reads in flight, in this side's view. */
export interface ReadLimits {
  inbound: number;
  outbound: number;
}

/**
 * INDConnector and IND2Connector over IWVConnectEndpoints. A WinVerbs endpoint connects once, so every further Connect
 * takes a new one, bound to the same port.
 */
export abstract class ConnectorBase extends NdOverlappedBase {
  readonly adapter: AdapterBase;
  #state: ConnectorState = 'Idle';
  /** The WinVerbs endpoint of the present connection, or of the last attempt. */
  #wv: IWVConnectEndpoint | undefined;
  /** Whose port space {@link #wv} is of. */
  #protocol: number = IpProtocol.TCP;
  /** {@link #wv} was used for an attempt and cannot be used again. */
  #used = false;
  /** The first WinVerbs endpoint, once replaced: it keeps the claim of our ephemeral port. */
  #portHolder: IWVConnectEndpoint | undefined;
  #local: SocketAddress | undefined;
  #queuePair: QueuePairBase | undefined;
  #peer: SocketAddress | undefined;
  /** The last attempt was rejected, perhaps with data. */
  #rejected = false;
  /** This side is ending the connection. */
  #disconnecting = false;
  readonly #requests = new RequestTracker((request) => this.issued(request));
  readonly #notifications = new RequestTracker((request) => this.issued(request));

  constructor(adapter: AdapterBase) {
    super();
    this.adapter = adapter;
    adapter.holdFor(this);
  }

  /** The state, after all requests that have completed by now. */
  get state(): ConnectorState {
    this.#settle();
    return this.#state;
  }

  /** How a NotifyDisconnect ends when this side ends the connection. */
  protected abstract readonly ownDisconnect: number;

  /** How a Disconnect without the peer's confirmation ends; undefined for success. */
  protected abstract disconnectFailure(failure: NdError): NdError | undefined;

  /** GetConnectionRequest of a listener, with this connector; `getRequest` issues it for the given endpoint. */
  awaitRequest(getRequest: (endpoint: IWVConnectEndpoint) => Overlapped<void>): Overlapped<void> {
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
    // Queue pair and depths are those of Connect.
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
    return this.adapter.call(what, () => this.#wv!.query()).localAddress;
  }

  getPeerAddress(): SocketAddress {
    const what = this.enter('getPeerAddress', 'GetPeerAddress');
    const peer = this.adapter.call(what, () => this.#wv!.query()).peerAddress ?? this.#peer;
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
        return refuse(this.ownDisconnect, what, 'The connection was ended by a Disconnect of this side.');
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
      // The connection is over in any case.
    } finally {
      this.release();
    }
  }

  /** The connection's queue pair is released: ends the connection. Returns whether there was one. */
  disconnectFor(queuePair: QueuePairBase): boolean {
    if (this.#queuePair !== queuePair || this.ended) return false;
    this.#settle();
    if (legalityOf('disconnect', this.#state) !== Status.SUCCESS) return false;
    try {
      this.#disconnect('Disconnect');
      return true;
    } catch {
      // The connection has already ended by itself.
      return false;
    }
  }

  /** Checks that `method` is allowed now; returns its SPI name. */
  protected enter(method: ConnectorMethod, what: string): string {
    this.alive(what);
    this.#settle();
    const status = legalityOf(method, this.#state);
    if (status !== Status.SUCCESS) throw this.#refused(status, what);
    return what;
  }

  /**
   * What the peer has sent; throws unless there is a request, a reply or a reject. A peer that has given up meanwhile shows in Accept,
   * CompleteConnect and Reject.
   */
  protected attributes(what: string): WvConnectAttributes {
    const ended = this.#state === 'Bound' || this.#state === 'Disconnected';
    if (ended && !this.#rejected) {
      throw refuse(
        Status.CONNECTION_INVALID,
        what,
        'There is no connection and no reject, so there is no data.',
      );
    }
    const wv = this.#wv!;
    return this.adapter.call(what, () => wv.query());
  }

  /** Read depths within the adapter's limits. */
  protected limited({ responderResources, initiatorDepth }: WvConnectAttributes): ReadLimits {
    const { maxQpResponderResources, maxQpInitiatorDepth } = this.adapter.limits;
    return {
      inbound: Math.min(responderResources, maxQpResponderResources),
      outbound: Math.min(initiatorDepth, maxQpInitiatorDepth),
    };
  }

  /** Binds the connector to an address (v2: Bind). */
  protected bindTo(address: SocketAddress, what: string): void {
    this.#bind(address, what);
    this.#apply('bound');
  }

  /**
   * Prepares a Connect from `address`, in a protocol's port space, or from the present ones. Port 0 keeps the port of an earlier
   * attempt.
   */
  protected prepare(what: string, address?: SocketAddress, protocol = this.#protocol): void {
    if (address !== undefined) this.#bind(address, what, protocol);
    else if (this.#used) this.#bind({ ...this.#local!, port: 0 }, what);
    this.#rejected = false;
  }

  /** Connects to `peer`, with a queue pair that {@link checkQueuePair} has passed, after {@link prepare}. */
  protected startConnect(
    what: string,
    queuePair: QueuePairBase,
    peer: SocketAddress,
    limits: ReadLimits,
    privateData: Uint8Array | undefined,
  ): Overlapped<void> {
    const { adapter } = this;
    const wv = this.#wv!;
    this.#used = true;
    this.#peer = peer;
    let request: Overlapped<void>;
    try {
      wv.resolveRoute(peer);
      request = wv.connect(queuePair.qp, peer, paramOf(limits, privateData));
    } catch (error) {
      this.#apply('connectStarted');
      this.#apply('connectFailed');
      // A missing route is not the caller's mistake, so the request ends in it.
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

  /** Accepts the request, within the peer's offer. */
  protected startAccept(
    what: string,
    queuePair: QueuePairBase,
    limits: ReadLimits,
    privateData: Uint8Array | undefined,
  ): Overlapped<void> {
    const { adapter } = this;
    const wv = this.#wv!;
    const offer = adapter.call(what, () => wv.query(), peerGaveUp);
    const within = {
      inbound: Math.min(limits.inbound, offer.responderResources),
      outbound: Math.min(limits.outbound, offer.initiatorDepth),
    };
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

  /** Private data of Connect. INVALID_PARAMETER if it is not bytes, INVALID_BUFFER_SIZE if it is too long. */
  protected checkCallerData(data: Uint8Array | undefined, what: string): Uint8Array | undefined {
    return checkPrivateData(data, what, MAX_CALLER_DATA);
  }

  /** The same of Accept and Reject. */
  protected checkCalleeData(data: Uint8Array | undefined, what: string): Uint8Array | undefined {
    return checkPrivateData(data, what, maxCalleeData(this.adapter.provider));
  }

  /** The address of a peer as it can be reached from `own`. */
  protected peerFrom(own: SocketAddress, address: NdAddress, what: string): SocketAddress {
    const peer = parseAddress(address, what);
    if (peer.family !== own.family) {
      throw refuse(
        Status.INVALID_ADDRESS,
        what,
        `${peer.address} is no IPv${own.family} address, but the own address ${own.address} is one.`,
      );
    }
    if (!isCount(peer.port, 1, 65_535)) {
      throw refuse(
        Status.INVALID_ADDRESS,
        what,
        `The peer's port is a number from 1 to 65535, not ${String(peer.port)}: '192.0.2.1:4000', '[2001:db8::1]:4000'.`,
      );
    }
    // A loopback address means this host, which the adapter reaches by its own address.
    if (isLoopback(peer.address) && !isLoopback(own.address)) return { ...own, port: peer.port };
    return peer;
  }

  /** The address that it is bound to. */
  protected get local(): SocketAddress {
    return this.#local!;
  }

  /** A queue pair of this adapter instance that no connector uses. */
  protected checkQueuePair<T extends QueuePairBase>(
    queuePair: unknown,
    type: abstract new (...args: never[]) => T,
    what: string,
  ): T {
    if (!(queuePair instanceof type) || queuePair.adapter !== this.adapter || queuePair.ended) {
      throw refuse(
        Status.INVALID_PARAMETER_1,
        what,
        'The queue pair is not one of this adapter instance, or was released.',
      );
    }
    if (queuePair.connector !== undefined) {
      throw refuse(Status.CONNECTION_ACTIVE, what, 'The queue pair is in use by a connector.');
    }
    return queuePair;
  }

  #refused(status: number, what: string): NdError {
    return refuse(
      status,
      what,
      `Not possible in the connector's state ${this.#state} (${statusName(status)}).`,
    );
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
    // Our disconnect ends the notifications at once; the peer's answer does not concern them.
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

  /** A fresh WinVerbs endpoint, with the adapter's choice for the queue pair of a connection that the peer ends. */
  #newEndpoint(what: string, protocol?: number): IWVConnectEndpoint {
    const { adapter } = this;
    const wv = adapter.call(what, () => adapter.provider.createConnectEndpoint(protocol));
    if (!adapter.keepQueuePairs) return wv;
    try {
      wv.keepQueuePairOnDisconnect(true);
      return wv;
    } catch (error) {
      wv.release();
      throw adapter.error(error, what);
    }
  }

  /** A WinVerbs endpoint that can connect, bound to an address of the adapter. */
  #bind(address: SocketAddress, what: string, protocol = this.#protocol): void {
    const { adapter } = this;
    const previous = this.#wv;
    // With port 0, or its present port, it keeps the port of the first Connect.
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
    // A connection request for this connector in a listener would find it released.
    if (this.#state === 'Queued') this.#requests.cancel();
    // A failed attempt leaves the queue pair as it was.
    if (this.#state === 'Connecting') this.#detach();
    this.#wv?.release();
    this.#portHolder?.release();
    this.adapter.letGoOf(this);
  }
}

function paramOf(limits: ReadLimits, privateData: Uint8Array | undefined): WvConnectParam {
  return {
    ...(privateData === undefined ? {} : { privateData }),
    responderResources: limits.inbound,
    initiatorDepth: limits.outbound,
  };
}
