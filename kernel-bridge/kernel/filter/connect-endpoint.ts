/** A connect endpoint: executes the actions of connect-endpoint-states.ts. endpoint-machine.ts has the common part of all endpoints. */
import { QpEventType } from '../../hca/soft-hca-binding.js';
import { Capacity, type EpOption, EpType, QpState } from '../../ioctl/constants.js';
import { QpStateOut } from '../../ioctl/provider-data.js';
import { addressOfGid } from '../../ioctl/sockaddr.js';
import { Status, StatusError } from '../../ioctl/status.js';
import { WvIoEpAttributes } from '../../ioctl/structs.js';
import type {
  CmConnection,
  CmEvents,
  CmListenerControl,
  CmListenParameters,
  CmReject,
  CmReply,
  CmRequest,
} from '../cm/service.js';
import { isLoopback, mtuCode, sameGid } from '../hca-driver/hca-ports.js';
import type { Hca } from '../hca-driver/ib-objects.js';
import { DEFAULT_PKEY, samePartition } from '../hca-driver/pkeys.js';
import { type Irp, IrpQueue } from '../io-manager/irp.js';
import {
  type ConnectEndpointKind,
  type RequestAction,
  requestTable,
  type SignalAction,
  signalTable,
} from './connect-endpoint-states.js';
import {
  type CommonAction,
  EndpointMachine,
  type Nameable,
  type RequestArguments,
  type RequestStep,
  type SignalData,
} from './endpoint-machine.js';
import {
  activeAttributes,
  activePkeyIndex,
  cmQp,
  connectQp,
  entryFor,
  failQp,
  limited,
  passiveAttributes,
  passivePkeyIndex,
  setDreqOnExit,
  usableQp,
  type WvQp,
} from './endpoint-qp.js';
import {
  addressData,
  deviceAddress,
  type EndpointParam,
  type EndpointServices,
  noParam,
} from './endpoint-types.js';

/** Shared by all connect endpoints. */
const TABLES = {
  initial: 'idle',
  destroying: 'destroying',
  requests: requestTable,
  signals: signalTable,
} as const;

export class Endpoint extends EndpointMachine<ConnectEndpointKind, Endpoint> {
  /** The latest parameters and private data of the peer, from the point of view of this side. */
  param: EndpointParam = noParam;

  protected qp: WvQp | undefined = undefined;
  /** Whether the owner moves the queue pair itself after the peer has disconnected ({@link EpOption}.KEEP_QP). */
  keepQp = false;
  /** Whether this endpoint has changed the state of its queue pair. If so, the queue pair's final state must be ERROR. */
  protected qpMoved = false;
  /** The connection's P_Key in its port's table; undefined before there is one. */
  partition: number | undefined = undefined;
  /** For Connect: the index of the queue pair's P_Key in its port's table. */
  protected pkeyIndex = 0;
  /** The RNR retries that the REQ requested of the peer. */
  protected askedRnrRetry = 0;
  protected connection: CmConnection | undefined = undefined;
  protected request: CmRequest | undefined = undefined;
  protected reply: CmReply | undefined = undefined;
  declare protected listener: CmListenerControl | undefined;
  /** The reason for the end of the connection, for NotifyDisconnect. */
  protected endReason: number = Status.CONNECTION_ABORTED;

  // Created by the first request. An established connection drops the queues of Connect and Accept and keeps the
  // others.
  protected connecting: IrpQueue | undefined = undefined;
  protected accepting: IrpQueue | undefined = undefined;
  protected disconnecting: IrpQueue | undefined = undefined;
  protected notifies: IrpQueue | undefined = undefined;

  constructor(services: EndpointServices, type: number = EpType.CONNECT) {
    super(type, services, TABLES);
  }

  /** The queue pair of the connection. */
  get queuePair(): WvQp | undefined {
    return this.qp;
  }

  /** Whether the endpoint belongs to this HCA, by its address or its queue pair. */
  override isOn(hca: Hca): boolean {
    return super.isOn(hca) || this.qp?.qp.pd.ca.hca === hca;
  }

  /** Handles an event of the HCA for the endpoint's queue pair. */
  queuePairEvent(event: number, _reason: number): void {
    if (event === QpEventType.communicationEstablished) this.signal('firstPacket');
    else if (event === QpEventType.fatal || event === QpEventType.peerLost) this.signal('lost');
  }

  /** Called when the queue pair's port is no longer in the connection's partition. */
  partitionGone(): void {
    this.signal('lost');
  }

  // ── Requests ────────────────────────────────────────────────────────────────────────────────────────────
  /** One table for all endpoints: `this` is the endpoint of the request. */
  private static readonly requestActions: Readonly<
    Record<Exclude<RequestAction, CommonAction>, RequestStep<Endpoint>>
  > = {
    connect(irp, args) {
      const qp = usableQp(args.qp, this.route!.path.source);
      const { path, pathMtu } = this.route!;
      const peer = args.address!;
      const loopback = isLoopback(peer.gid) && this.services.isOwn(path.destination);
      if (!sameGid(peer.gid, path.destination) && !loopback) {
        throw new StatusError(
          Status.INVALID_ADDRESS,
          `the route must lead to the peer ${addressOfGid(peer.gid)}; got ${addressOfGid(path.destination)}`,
        );
      }
      if (peer.port === 0)
        throw new StatusError(Status.INVALID_ADDRESS, 'the port of the peer must not be 0');
      const param = limited(args.param!, qp);
      const pkeyIndex = activePkeyIndex(qp, this.route!);
      const pkey = qp.qp.pd.ca.hca.port.pkeys[pkeyIndex] ?? DEFAULT_PKEY;
      const { connection, status } = this.services.connect(
        {
          serviceId: this.serviceId(peer.port),
          path: {
            source: path.source,
            destination: path.destination,
            flowLabel: path.flowLabel,
            trafficClass: path.trafficClass,
            hopLimit: path.hopLimit,
            scopeId: path.scopeId,
            pkey,
          },
          localPort: this.local!.port,
          peerPort: peer.port,
          qp: { ...cmQp(qp, param), retryCount: param.retryCount },
          pathMtu: mtuCode(pathMtu),
          packetBytes: this.services.packetBytes(path, pathMtu),
          ackTimeoutCode: this.route!.ackTimeoutCode,
          privateData: param.privateData,
        },
        signalsOf(this),
      );
      if (status !== Status.SUCCESS) {
        connection.events = {};
        connection.abandon();
        throw new StatusError(status);
      }
      this.connection = connection;
      this.pkeyIndex = pkeyIndex;
      this.partition = pkey;
      this.askedRnrRetry = param.rnrRetryCount;
      this.attach(qp);
      this.peer = { gid: path.destination, port: peer.port, scopeId: path.scopeId };
      this.param = { ...param, privateData: noParam.privateData };
      this.connecting ??= new IrpQueue(() => this.signal('connectCancelled'));
      this.connecting.insert(irp, undefined);
      return undefined;
    },

    completeConnect(irp, args) {
      if (args.qp && args.qp !== this.qp) {
        throw new StatusError(Status.INVALID_PARAMETER, 'the queue pair must be the one passed to Connect');
      }
      const { qp } = this.qp!;
      this.qpMoved = true;
      const { connection, services } = this;
      const stays = samePartition(this.partition, qp.pd.ca.hca.port.pkeys[this.pkeyIndex]);
      const status = !stays
        ? Status.CONNECTION_ABORTED
        : connectQp(
            qp,
            activeAttributes(
              this.route!,
              connection!,
              this.reply!,
              this.param,
              services.rc,
              this.pkeyIndex,
              this.askedRnrRetry,
            ),
          );
      if (status !== Status.SUCCESS) {
        // The peer must not assume that this side is ready.
        this.connection!.reject(new Uint8Array(0));
        this.end(Status.CONNECTION_ABORTED);
        return status;
      }
      this.connection!.ready(args.param!.privateData);
      setDreqOnExit(qp, this.connection!.dreqOnExit());
      this.reply = undefined;
      completeWithState(irp);
      return undefined;
    },

    accept(irp, args) {
      const qp = usableQp(args.qp, this.request!.localAddress, this.request!.type);
      const request = this.request!;
      const pkeyIndex = passivePkeyIndex(qp, request);
      const wanted = limited(args.param!, qp);
      const param = {
        ...wanted,
        responderResources: Math.min(wanted.responderResources, request.responderResources),
        initiatorDepth: Math.min(wanted.initiatorDepth, request.initiatorDepth),
      };
      this.attach(qp);
      this.qpMoved = true;
      const status = connectQp(
        qp.qp,
        passiveAttributes(request, this.connection!, param, this.services.rc, pkeyIndex),
      );
      if (status !== Status.SUCCESS) {
        this.connection!.reject(new Uint8Array(0));
        this.end(Status.CONNECTION_ABORTED);
        return status;
      }
      const { responderResources, initiatorDepth } = param;
      this.param = { ...this.param, responderResources, initiatorDepth };
      this.accepting ??= new IrpQueue(() => this.signal('acceptCancelled'));
      this.accepting.insert(irp, undefined);
      this.connection!.accept(cmQp(qp, param), param.privateData);
      return undefined;
    },

    reject(irp, args) {
      this.connection!.reject(args.privateData!);
      this.end(Status.CONNECTION_ABORTED);
      irp.complete(Status.SUCCESS, 0);
      return undefined;
    },

    // Reject before the REP: the REQ is withdrawn, and the waiting Connect completes.
    giveUpConnect(irp) {
      this.abandon();
      this.end(Status.CONNECTION_ABORTED);
      this.connecting?.completeAll(Status.CANCELED);
      irp.complete(Status.SUCCESS, 0);
      return undefined;
    },

    disconnect(irp, args) {
      this.checkQp(args.qp);
      // The flush must be visible before the peer can notice; only then the DREQ is sent.
      failQp(this.qp!.qp);
      this.disconnecting ??= new IrpQueue(() => this.signal('disconnectCancelled'));
      this.disconnecting.insert(irp, undefined);
      this.connection!.disconnect();
      return undefined;
    },

    finishDisconnect(irp, args) {
      this.checkQp(args.qp);
      this.detach();
      completeWithState(irp, QpState.ERROR);
      return undefined;
    },

    awaitDisconnect(irp) {
      this.notifies ??= new IrpQueue();
      this.notifies.insert(irp, undefined);
      return undefined;
    },

    reportDisconnect(irp) {
      irp.complete(this.endReason);
      return undefined;
    },
  };

  protected act(action: RequestAction, irp: Irp, args: RequestArguments): number | undefined {
    if (Endpoint.isCommon(action)) return this.common(action, irp, args);
    return Endpoint.requestActions[action].call(this, irp, args);
  }

  // ── Events ──────────────────────────────────────────────────────────────────────────────────────────────

  private static readonly signalActions: Readonly<
    Record<SignalAction, (this: Endpoint, data: SignalData) => void>
  > = {
    stay() {
      this.assignedBy = undefined;
    },

    adopt(data) {
      if (!data || !('connection' in data)) return;
      const { connection, request, local } = data;
      this.assignedBy = undefined;
      this.connection = connection;
      this.request = request;
      this.partition = entryFor(local, request, this.services);
      this.standAt(local);
      this.peer = { gid: request.peerAddress, port: request.peerPort, scopeId: request.path.scopeId };
      const { responderResources, initiatorDepth, retryCount, rnrRetryCount, privateData } = request;
      this.param = { responderResources, initiatorDepth, retryCount, rnrRetryCount, privateData };
    },

    onReplied(data) {
      if (!data || !('reply' in data)) return;
      const { reply } = data;
      this.reply = reply;
      this.param = {
        ...this.param,
        // The depth is never more than this side's offer, whatever the REP says.
        responderResources: Math.min(reply.responderResources, this.param.responderResources),
        initiatorDepth: Math.min(reply.initiatorDepth, this.param.initiatorDepth),
        rnrRetryCount: reply.rnrRetryCount,
        privateData: keptData(reply.privateData),
      };
      const waiting = this.connecting?.removeFirst();
      this.connecting = undefined;
      waiting?.irp.complete(Status.SUCCESS, attributesIfRoom(this, waiting.irp, this.services));
    },

    onRefused(data) {
      if (data && 'reject' in data) this.param = { ...this.param, privateData: data.reject.privateData };
      this.endConnect(Status.CONNECTION_REFUSED);
    },
    onConnectTimedOut(data) {
      this.endConnect(data && 'lost' in data ? data.lost : Status.TIMEOUT);
    },
    onConnectCancelled() {
      this.abandon();
      this.endConnect(Status.CANCELED);
    },

    onPeerGaveUp(data) {
      if (data && 'reject' in data) this.param = { ...this.param, privateData: data.reject.privateData };
      // The user side may have cached attributes returned with EP_CONNECT or EP_GET_REQUEST.
      this.services.newCacheEpoch();
      this.end(Status.CONNECTION_ABORTED);
    },

    onEstablished() {
      this.established();
    },
    onFirstPacket() {
      this.connection?.communicationEstablished();
    },
    onAcceptRefused(data) {
      if (data && 'reject' in data) this.param = { ...this.param, privateData: data.reject.privateData };
      this.endAccept(Status.CONNECTION_REFUSED);
    },
    onAcceptTimedOut(data) {
      this.endAccept(data && 'lost' in data ? data.lost : Status.IO_TIMEOUT);
    },
    onAcceptLost() {
      this.abandon();
      this.endAccept(Status.CONNECTION_ABORTED);
    },
    onAcceptCancelled() {
      this.abandon();
      this.endAccept(Status.CANCELED);
    },
    // The DREQ has overtaken the RTU: the connection was established and has already ended.
    onEstablishedAndGone() {
      this.established();
      this.closedByPeer(Status.CONNECTION_DISCONNECTED);
    },

    onPeerDisconnected() {
      this.closedByPeer(Status.CONNECTION_DISCONNECTED);
    },
    onStaleRejected() {
      this.closedByPeer(Status.CONNECTION_ABORTED);
    },
    onLost() {
      // Notifies the peer, if it is still listening, without waiting for its reply.
      this.abandon();
      this.closedByPeer(Status.CONNECTION_ABORTED);
    },

    onDisconnectAnswered() {
      this.endDisconnect(Status.SUCCESS, Status.CONNECTION_DISCONNECTED);
    },
    onDisconnectTimedOut() {
      this.endDisconnect(Status.TIMEOUT, Status.TIMEOUT);
    },
    onDisconnectCancelled() {
      this.abandon();
      this.endDisconnect(Status.CANCELED, Status.CONNECTION_DISCONNECTED);
    },

    onDeviceLost(data) {
      const status = data && 'lost' in data ? data.lost : Status.DEVICE_REMOVED;
      this.services.newCacheEpoch();
      this.abandon();
      this.end(status);
      for (const waiting of [this.connecting, this.accepting, this.disconnecting])
        waiting?.completeAll(status);
      this.endGetRequests(status);
      this.stopListening();
    },
  };

  protected react(action: SignalAction, data: SignalData): void {
    Endpoint.signalActions[action].call(this, data);
  }

  // ── Listening ───────────────────────────────────────────────────────────────────────────────────────────

  protected startListening(parameters: CmListenParameters): CmListenerControl {
    return this.services.listen(parameters);
  }

  protected override writeRequest(irp: Irp, endpoint: Endpoint): number {
    return attributesIfRoom(endpoint, irp, this.services);
  }

  protected own(endpoint: Nameable): Endpoint | undefined {
    return endpoint instanceof Endpoint ? endpoint : undefined;
  }

  protected takeRequest(): ((endpoint: Endpoint) => void) | undefined {
    const taken = this.listener?.takeRequest();
    if (!taken) return undefined;
    const { connection, request } = taken;
    const local = { gid: request.localAddress, port: this.bound!.port, scopeId: request.path.scopeId };
    return (endpoint) => {
      // The new owner gets all events from here on; none can occur in between.
      connection.events = signalsOf(endpoint);
      endpoint.signal('delivered', { connection, request, local });
    };
  }

  // ── The connection: establishment, failure and end ────────────────────────────────────────────────────────

  /** Ends a failed Connect: the queue pair is released unchanged, and Connect may be retried. */
  protected endConnect(status: number): void {
    this.connection = undefined;
    this.detach();
    this.connecting?.completeAll(status);
    this.notifies?.completeAll(Status.CONNECTION_ABORTED);
  }

  protected endAccept(status: number): void {
    this.end(Status.CONNECTION_ABORTED);
    this.accepting?.completeAll(status);
  }

  protected endDisconnect(status: number, reason: number): void {
    const waiting = this.disconnecting?.removeFirst();
    this.end(reason);
    if (!waiting) return;
    if (status === Status.SUCCESS) completeWithState(waiting.irp, QpState.ERROR);
    else waiting.irp.complete(status);
  }

  /**
   * The peer or the network has ended the connection. The queue pair is flushed now, and kept until Disconnect. If the
   * peer has disconnected, the owner may have chosen to flush it itself.
   */
  protected closedByPeer(reason: number): void {
    this.connection = undefined;
    this.endReason = reason;
    const keeps = this.keepQp && reason === Status.CONNECTION_DISCONNECTED;
    if (this.qp && !keeps) failQp(this.qp.qp);
    this.notifies?.completeAll(reason);
  }

  /** Ends the connection permanently: a queue pair whose state was changed is always left in ERROR. */
  protected end(reason: number): void {
    this.connection = undefined;
    this.endReason = reason;
    this.detach();
    this.notifies?.completeAll(reason);
  }

  protected established(): void {
    const waiting = this.accepting?.removeFirst();
    this.accepting = undefined;
    this.request = undefined;
    if (this.qp && this.connection) setDreqOnExit(this.qp.qp, this.connection.dreqOnExit());
    if (waiting) completeWithState(waiting.irp);
  }

  protected abandon(): void {
    const connection = this.connection;
    this.connection = undefined;
    if (!connection) return;
    connection.events = {};
    connection.abandon();
  }

  protected attach(qp: WvQp): void {
    this.qp = qp;
    this.qpMoved = false;
    qp.endpoint = this;
  }

  protected detach(): void {
    const qp = this.qp;
    if (!qp) return;
    this.qp = undefined;
    if (this.qpMoved) failQp(qp.qp);
    this.qpMoved = false;
    qp.endpoint = undefined;
  }

  protected cancelOwn(): void {
    // The requests are completed first, because a cancelled step would complete them with another status.
    this.notifies?.cancelAll();
    this.connecting?.cancelAll();
    this.accepting?.cancelAll();
    this.disconnecting?.cancelAll();
  }

  protected letGo(): void {
    this.abandon();
    this.detach();
  }

  /** Disconnect requires the connection's queue pair; 0 stands for it. */
  protected checkQp(qp: WvQp | undefined): void {
    if (qp && qp !== this.qp) {
      throw new StatusError(Status.INVALID_PARAMETER, 'the queue pair must be that of this connection');
    }
  }
}

/** Completes a request with the queue pair's state, if the user-mode provider has requested it. */
export function completeWithState(irp: Irp, state: number = QpState.RTS): void {
  if (irp.outputCapacity < QpStateOut.size) {
    irp.complete(Status.SUCCESS, 0);
    return;
  }
  QpStateOut.encode({ state }, irp.output);
  irp.complete(Status.SUCCESS, QpStateOut.size);
}

/** Length of a peer's private data in bytes, without the message's padding: trailing zeros count only within the structure. */
function toldBytes(whole: Uint8Array): number {
  let end = whole.length;
  while (end > Capacity.CONNECT_DATA && whole[end - 1] === 0) end--;
  return end;
}

/** A copy of a peer's private data, without the padding. */
export function keptData(whole: Uint8Array): Uint8Array {
  return whole.slice(0, toldBytes(whole));
}

/** Splits private data into the structure's part and the rest. */
function splitData(whole: Uint8Array, room: number): { data: Uint8Array; rest: Uint8Array } {
  const most = Capacity.CONNECT_DATA;
  // A view of a small array would make V8 move the array out of its heap.
  if (whole.length <= most) return { data: whole, rest: noParam.privateData };
  return {
    data: whole.subarray(0, most),
    rest: whole.subarray(most, Math.min(toldBytes(whole), most + room)),
  };
}

/** Writes the output of EP_QUERY and returns its length. The output has room for at least the structure. */
export function writeAttributes(
  { local, peer, param, backlog, state, partition }: Endpoint,
  irp: Irp,
  services: EndpointServices,
): number {
  const { size } = WvIoEpAttributes;
  const { data, rest } = splitData(param.privateData, irp.outputCapacity - size);
  const connect = {
    responderResources: BigInt(param.responderResources),
    initiatorDepth: BigInt(param.initiatorDepth),
    retryCount: param.retryCount,
    rnrRetryCount: param.rnrRetryCount,
    dataLength: data.length,
    data,
  };
  const { output } = irp;
  WvIoEpAttributes.encode(
    {
      localAddress: addressData(local),
      peerAddress: addressData(peer),
      device: deviceAddress(local, services, partition),
      param: state === 'listening' ? { backlog: BigInt(backlog) } : { connect },
    },
    output,
  );
  output.set(rest, size);
  return size + rest.length;
}

/** Adds the attributes to the output of EP_CONNECT or EP_GET_REQUEST if there is room, because the program queries them next. */
export function attributesIfRoom(endpoint: Endpoint, irp: Irp, services: EndpointServices): number {
  return irp.outputCapacity < WvIoEpAttributes.size ? 0 : writeAttributes(endpoint, irp, services);
}

/** Converts a connection's events to events of its endpoint. */
class EndpointEvents implements CmEvents {
  constructor(private readonly endpoint: Endpoint) {}

  replied(reply: CmReply): void {
    this.endpoint.signal('replied', { reply });
  }
  established(): void {
    this.endpoint.signal('established');
  }
  rejected(reject: CmReject): void {
    this.endpoint.signal('rejected', { reject });
  }
  timedOut(status?: number): void {
    this.endpoint.signal('timedOut', status === undefined ? undefined : { lost: status });
  }
  disconnected(): void {
    this.endpoint.signal('peerDisconnected');
  }
  disconnectCompleted(answered: boolean): void {
    this.endpoint.signal(answered ? 'disconnectAnswered' : 'disconnectTimedOut');
  }
}

/** The event receiver of a connection: its endpoint. */
export function signalsOf(endpoint: Endpoint): CmEvents {
  return new EndpointEvents(endpoint);
}
