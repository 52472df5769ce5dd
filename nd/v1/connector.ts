import type {
  IWVConnectEndpoint,
  SocketAddress,
  WvConnectAttributes,
  WvConnectParam,
} from '../../winverbs/index.js';
import { Overlapped, Status, StatusError } from '../../winverbs/index.js';
import type {
  INDConnector,
  INDEndpoint,
  NdConnectionData,
  NdConnectOptions,
  NdEndpointOptions,
} from '../spi/v1.js';
import { type NdError, refuse, type StatusMap, statusName, v1Call, v1Error } from '../status.js';
import { type Adapter, MAX_PRIVATE_DATA } from './adapter.js';
import { isLoopback, parseAddress } from './address.js';
import {
  type ConnectorEvent,
  type ConnectorMethod,
  type ConnectorState,
  legalityOf,
  nextState,
} from './connector-states.js';
import { Endpoint } from './endpoint.js';
import { checkPort, checkProtocol } from './listen.js';
import { NdOverlappedBase } from './object.js';
import { RequestTracker } from './tracker.js';

/** SPI names of the methods, for people. */
const names: Readonly<Record<ConnectorMethod, string>> = {
  getConnectionRequest: 'GetConnectionRequest',
  connect: 'Connect',
  completeConnect: 'CompleteConnect',
  accept: 'Accept',
  reject: 'Reject',
  getConnectionData: 'GetConnectionData',
  getLocalAddress: 'GetLocalAddress',
  getPeerAddress: 'GetPeerAddress',
  notifyDisconnect: 'NotifyDisconnect',
  disconnect: 'Disconnect',
};

/**
 * WinVerbs answers every request in the wrong state with INVALID_DEVICE_STATE. What passed the table here can only have
 * been overtaken by the peer, and then ND has a more telling status.
 */
const connectStatuses: StatusMap = {
  [Status.INVALID_DEVICE_STATE]: Status.CONNECTION_INVALID,
  [Status.NOT_FOUND]: Status.BAD_NETWORK_NAME,
};
const peerGaveUp: StatusMap = { [Status.INVALID_DEVICE_STATE]: Status.CONNECTION_ABORTED };
const notConnected: StatusMap = { [Status.INVALID_DEVICE_STATE]: Status.CONNECTION_INVALID };

/** What WinVerbs ends a disconnect notification in when the connection has ended without our doing. */
const endedByPeer: ReadonlySet<number> = new Set([
  Status.CONNECTION_DISCONNECTED,
  Status.CONNECTION_ABORTED,
  Status.TIMEOUT,
]);

/**
 * INDConnector over IWVConnectEndpoints: a WinVerbs endpoint connects once, so that every further Connect takes a new
 * one, bound to the same port.
 */
export class Connector extends NdOverlappedBase implements INDConnector {
  readonly adapter: Adapter;
  #state: ConnectorState = 'Idle';
  /** The WinVerbs endpoint of the present connection, or of the last attempt. */
  #wv: IWVConnectEndpoint | undefined;
  /** The first WinVerbs endpoint, when another replaced it: it keeps the ephemeral port claimed for us. */
  #portHolder: IWVConnectEndpoint | undefined;
  #localPort: number | undefined;
  #endpoint: Endpoint | undefined;
  #peer: SocketAddress | undefined;
  /** The last attempt was rejected, perhaps with data. */
  #rejected = false;
  /** disconnect() was called here. */
  #disconnecting = false;
  readonly #requests = new RequestTracker();
  readonly #notifications = new RequestTracker();

  constructor(adapter: Adapter) {
    super();
    this.adapter = adapter;
    adapter.hold();
  }

  /** The state, after what has completed by now. */
  get state(): ConnectorState {
    this.#settle();
    return this.#state;
  }

  createEndpoint(options: NdEndpointOptions): INDEndpoint {
    this.alive('CreateEndpoint');
    return this.adapter.createEndpoint(options);
  }

  /** GetConnectionRequest of a listener, with this connector: `getRequest` issues it for the endpoint it is given. */
  awaitRequest(getRequest: (endpoint: IWVConnectEndpoint) => Overlapped<void>): Overlapped<void> {
    const what = this.#enter('getConnectionRequest');
    this.#wv ??= v1Call(what, () => this.adapter.provider.createConnectEndpoint());
    const wv = this.#wv;
    const request = v1Call(what, () => getRequest(wv));
    this.#apply('requestAwaited');
    return this.#track('requestArrived', 'requestFailed', what, request);
  }

  connect(
    endpoint: INDEndpoint,
    address: string | SocketAddress,
    options: NdConnectOptions = {},
  ): Overlapped<void> {
    const what = this.#enter('connect');
    const attached = this.#checkEndpoint(endpoint, what);
    const privateData = checkPrivateData(options.privateData, what);
    checkProtocol(what, options.protocol);
    const { localPort = 0 } = options;
    checkPort(what, localPort);
    const peer = this.#peerAddress(address, what);
    const wv = this.#bind(localPort, what);
    let request: Overlapped<void>;
    try {
      wv.resolveRoute(peer);
      request = wv.connect(attached.qp, peer, paramOf(attached, privateData));
    } catch (error) {
      this.#peer = peer;
      this.#apply('connectStarted');
      this.#apply('connectFailed');
      // Nothing on the way to the peer is the caller's fault: that is an outcome of the request.
      if (error instanceof StatusError) return Overlapped.failed(v1Error(error, what, connectStatuses));
      throw error;
    }
    this.#peer = peer;
    this.#attach(attached);
    this.#apply('connectStarted');
    return this.#requests.track(
      request,
      () => this.#apply('replied'),
      (error) => {
        const failure = v1Error(error, what, connectStatuses);
        this.#rejected = failure.status === Status.CONNECTION_REFUSED;
        this.#detach();
        this.#apply(failure.status === Status.CANCELED ? 'connectCanceled' : 'connectFailed');
        return failure;
      },
    );
  }

  completeConnect(): Overlapped<void> {
    const what = this.#enter('completeConnect');
    // The queue pair and the depths are those of Connect.
    const request = v1Call(what, () => this.#wv!.accept(null, {}), peerGaveUp);
    this.#apply('completeStarted');
    return this.#track('completed', 'completeFailed', what, request, peerGaveUp);
  }

  accept(endpoint: INDEndpoint, privateData?: Uint8Array): Overlapped<void> {
    const what = this.#enter('accept');
    const attached = this.#checkEndpoint(endpoint, what);
    const data = checkPrivateData(privateData, what);
    const wv = this.#wv!;
    const offer = v1Call(what, () => wv.query(), peerGaveUp);
    const param = paramOf(attached, data, offer);
    const request = v1Call(what, () => wv.accept(attached.qp, param), peerGaveUp);
    this.#attach(attached);
    this.#apply('acceptStarted');
    return this.#requests.track(
      request,
      () => this.#apply('accepted'),
      (error) => {
        const failure = v1Error(error, what, peerGaveUp);
        this.#rejected = failure.status === Status.CONNECTION_REFUSED;
        this.#apply('acceptFailed');
        return failure;
      },
    );
  }

  reject(privateData?: Uint8Array): void {
    const what = this.#enter('reject');
    const data = checkPrivateData(privateData, what);
    try {
      this.#wv!.reject(data);
    } catch (error) {
      const failure = v1Error(error, what, peerGaveUp) as NdError;
      if (failure.status === Status.CONNECTION_ABORTED) this.#apply('rejected');
      throw failure;
    }
    this.#apply('rejected');
  }

  getConnectionData(): NdConnectionData {
    const what = this.#enter('getConnectionData');
    const ended = this.#state === 'Bound' || this.#state === 'Disconnected';
    if (ended && !this.#rejected) {
      throw refuse(
        Status.CONNECTION_INVALID,
        what,
        'There is no connection and no reject, so there is no data.',
      );
    }
    const attributes = v1Call(what, () => this.#wv!.query());
    const { info } = this.adapter;
    return {
      inboundReadLimit: Math.min(attributes.responderResources, info.maxInboundReadLimit),
      outboundReadLimit: Math.min(attributes.initiatorDepth, info.maxOutboundReadLimit),
      privateData: attributes.privateData,
    };
  }

  getLocalAddress(): SocketAddress {
    const what = this.#enter('getLocalAddress');
    return v1Call(what, () => this.#wv!.query()).localAddress;
  }

  getPeerAddress(): SocketAddress {
    const what = this.#enter('getPeerAddress');
    const peer = v1Call(what, () => this.#wv!.query()).peerAddress ?? this.#peer;
    if (peer === undefined) throw refuse(Status.CONNECTION_INVALID, what);
    return peer;
  }

  notifyDisconnect(): Overlapped<void> {
    const what = this.#enter('notifyDisconnect');
    const request = v1Call(what, () => this.#wv!.notifyDisconnect(), notConnected);
    const ended = (): void => this.#apply('peerDisconnected');
    return this.#notifications.track(request, ended, (error) => {
      const failure = v1Error(error, what, notConnected);
      if (!endedByPeer.has(failure.status)) return failure;
      if (this.#disconnecting) {
        return refuse(Status.CANCELED, what, 'The connection was ended by a Disconnect of this side.');
      }
      return ended();
    });
  }

  disconnect(): Overlapped<void> {
    const what = this.#enter('disconnect');
    const request = v1Call(what, () => this.#wv!.disconnect(), notConnected);
    // Our own disconnect ends the notifications, at once; the peer's answer has nothing more to say to them.
    this.#disconnecting = true;
    this.#notifications.cancel();
    this.#apply('disconnectStarted');
    return this.#track('disconnected', 'disconnected', what, request, notConnected);
  }

  cancelOverlappedRequests(): void {
    const what = 'CancelOverlappedRequests';
    this.alive(what);
    const wv = this.#wv;
    if (wv !== undefined) v1Call(what, () => wv.cancelOverlappedRequests());
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

  /** Checks that `method` is allowed now; answers its SPI name. */
  #enter(method: ConnectorMethod): string {
    const what = names[method];
    this.alive(what);
    this.#settle();
    const status = legalityOf(method, this.#state);
    if (status !== Status.SUCCESS) {
      throw refuse(
        status,
        what,
        `Not possible in the connector's state ${this.#state} (${statusName(status)}).`,
      );
    }
    return what;
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
  ): Overlapped<void> {
    return this.#requests.track(
      request,
      () => this.#apply(success),
      (error) => {
        this.#apply(failure);
        return v1Error(error, what, map);
      },
    );
  }

  /** A WinVerbs endpoint that can connect, bound to the connector's port. */
  #bind(localPort: number, what: string): IWVConnectEndpoint {
    this.#rejected = false;
    const again = this.#state === 'Bound';
    // Zero, or the port it already has, keeps the port of the first Connect.
    const port = again && localPort === 0 ? (this.#localPort ?? 0) : localPort;
    const previous = this.#wv;
    const wv =
      previous === undefined || again
        ? v1Call(what, () => this.adapter.provider.createConnectEndpoint())
        : previous;
    try {
      wv.bindAddress({ ...this.adapter.address, port });
      this.#localPort = wv.query().localAddress.port;
    } catch (error) {
      if (wv !== previous) wv.release();
      throw v1Error(error, what);
    }
    if (previous !== undefined && wv !== previous) {
      if (this.#portHolder === undefined) this.#portHolder = previous;
      else previous.release();
    }
    this.#wv = wv;
    return wv;
  }

  #peerAddress(address: string | SocketAddress, what: string): SocketAddress {
    const peer = parseAddress(address, what);
    const own = this.adapter.address;
    if (peer.family !== own.family) {
      throw refuse(
        Status.INVALID_ADDRESS,
        what,
        `${peer.address} is no IPv${own.family} address, but the adapter's address ${own.address} is one.`,
      );
    }
    // A loopback address means this host, and the adapter is where it is reached.
    if (isLoopback(peer.address) && !isLoopback(own.address)) return { ...own, port: peer.port };
    return peer;
  }

  #checkEndpoint(endpoint: unknown, what: string): Endpoint {
    if (!(endpoint instanceof Endpoint) || endpoint.adapter !== this.adapter || endpoint.ended) {
      throw refuse(
        Status.INVALID_PARAMETER_1,
        what,
        'The endpoint is not one of this adapter instance, or was released.',
      );
    }
    if (endpoint.connector !== undefined) {
      throw refuse(Status.CONNECTION_ACTIVE, what, 'The endpoint is in use by a connector.');
    }
    return endpoint;
  }

  #attach(endpoint: Endpoint): void {
    endpoint.connector = this;
    this.#endpoint = endpoint;
  }

  #detach(): void {
    if (this.#endpoint !== undefined) this.#endpoint.connector = undefined;
    this.#endpoint = undefined;
  }

  protected end(): void {
    // A request for a connection that waits in a listener would find nobody here.
    if (this.#state === 'Queued') this.#requests.cancel();
    // An attempt that comes to nothing leaves the endpoint as it was.
    if (this.#state === 'Connecting') this.#detach();
    this.#wv?.release();
    this.#portHolder?.release();
    this.adapter.letGo();
  }
}

/** What goes with Connect or Accept; an Accept stays within what the peer offered. */
function paramOf(
  endpoint: Endpoint,
  privateData: Uint8Array | undefined,
  offer?: WvConnectAttributes,
): WvConnectParam {
  const { inboundReadLimit: inbound, outboundReadLimit: outbound } = endpoint;
  return {
    ...(privateData === undefined ? {} : { privateData }),
    responderResources: offer === undefined ? inbound : Math.min(inbound, offer.responderResources),
    initiatorDepth: offer === undefined ? outbound : Math.min(outbound, offer.initiatorDepth),
  };
}

function checkPrivateData(data: Uint8Array | undefined, what: string): Uint8Array | undefined {
  if (data !== undefined && data.length > MAX_PRIVATE_DATA) {
    throw refuse(
      Status.INVALID_BUFFER_SIZE,
      what,
      `${data.length} bytes of private data are more than the ${MAX_PRIVATE_DATA} that a connection message carries.`,
    );
  }
  return data;
}
