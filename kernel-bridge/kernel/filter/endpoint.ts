/**
 * A connect endpoint: carries out what endpoint-states.ts says. Each request is bound to its own IRP; nothing is
 * found by position in a queue.
 */
import { QpEventType } from '../../hca/binding.js';
import { QpState } from '../../ioctl/constants.js';
import { addressOfGid } from '../../ioctl/sockaddr.js';
import { Status, StatusError } from '../../ioctl/status.js';
import type { CmConnection, CmListenerControl, CmReply, CmRequest } from '../cm/service.js';
import type { Hca } from '../hca-driver/objects.js';
import { isLoopback, isUnspecified, mtuCode, sameGid } from '../hca-driver/ports.js';
import { type Irp, IrpQueue } from '../io-manager/irp.js';
import { connectQp, failQp, setWill } from './endpoint-qp.js';
import type { EndpointServices } from './endpoint-services.js';
import {
  type EndpointRequest,
  type EndpointSignal,
  type EndpointState,
  type RequestAction,
  requestTable,
  type SignalAction,
  signalTable,
} from './endpoint-states.js';
import {
  activeAttributes,
  cmQp,
  completeWithState,
  limited,
  passiveAttributes,
  signalsOf,
  usableQp,
} from './endpoint-steps.js';
import {
  type EndpointAddress,
  type EndpointParam,
  type EndpointRoute,
  noParam,
  type RequestArguments,
  type SignalData,
} from './endpoint-types.js';
import type { WvQp } from './objects.js';

export class Endpoint {
  private current: EndpointState = 'idle';
  local: EndpointAddress | undefined;
  peer: EndpointAddress | undefined;
  /** What the peer last said: the parameters are in this side's view. */
  param: EndpointParam = noParam;
  backlog = 0;
  /** Happenings that came in a state where they mean nothing. */
  ignoredSignals = 0;

  /** CA GUID of the device that has the local address. */
  private device: bigint | undefined;
  private claim: number | undefined;
  private route: EndpointRoute | undefined;
  private bound: EndpointAddress | undefined;
  private qp: WvQp | undefined;
  /** This endpoint has moved its queue pair: it must end in ERROR. */
  private qpMoved = false;
  private connection: CmConnection | undefined;
  private request: CmRequest | undefined;
  private reply: CmReply | undefined;
  private listener: CmListenerControl | undefined;
  /** How a connection that is over ended, for NotifyDisconnect. */
  private endReason: number = Status.CONNECTION_ABORTED;

  private readonly connecting = new IrpQueue(() => this.signal('connectCancelled'));
  private readonly accepting = new IrpQueue(() => this.signal('acceptCancelled'));
  private readonly disconnecting = new IrpQueue(() => this.signal('disconnectCancelled'));
  private readonly notifies = new IrpQueue();
  /** GetRequests of a listener, each with the endpoint it names. */
  private readonly getRequests = new IrpQueue<Endpoint>((_irp, endpoint) => endpoint.signal('unassigned'));
  /** The GetRequest that names this endpoint. */
  private assignedBy: { irp: Irp; listener: Endpoint } | undefined;

  constructor(
    /** WinVerbs endpoint type, also the RDMA port space: 0x0106. */
    readonly type: number,
    private readonly services: EndpointServices,
  ) {}

  get state(): EndpointState {
    return this.current;
  }

  /** The queue pair of the connection. */
  get queuePair(): WvQp | undefined {
    return this.qp;
  }

  // ── The machine ─────────────────────────────────────────────────────────────────────────────────────────

  /** Carries out a request, or refuses it with the table's status. Completes or pends the IRP. */
  handle(request: EndpointRequest, irp: Irp, args: RequestArguments = {}): number {
    const cell = requestTable[this.current][request];
    if ('status' in cell) return irp.complete(cell.status);
    const before = this.current;
    this.current = cell.next;
    try {
      const failure = this.requestActions[cell.action](irp, args);
      if (failure === undefined) return irp.returnStatus;
      if (cell.failed !== undefined) this.current = cell.failed;
      else this.current = before;
      return irp.complete(failure);
    } catch (error) {
      // Refused before anything was done.
      if (this.current === cell.next) this.current = before;
      throw error;
    }
  }

  /** Something happened. */
  signal(signal: EndpointSignal, data?: SignalData): void {
    const cell = signalTable[this.current][signal];
    if (cell === 'ignored') {
      this.ignoredSignals++;
      return;
    }
    this.current = cell.next;
    this.signalActions[cell.action](data);
  }

  /** Whether the endpoint stands on this HCA, by its address or its queue pair. */
  isOn(hca: Hca): boolean {
    return this.device === hca.guid || this.qp?.qp.pd.ca.hca === hca;
  }

  /** The HCA reports on the queue pair of this endpoint. */
  queuePairEvent(event: number, _reason: number): void {
    if (event === QpEventType.communicationEstablished) this.signal('firstPacket');
    else if (event === QpEventType.fatal || event === QpEventType.peerLost) this.signal('lost');
  }

  // ── Requests ────────────────────────────────────────────────────────────────────────────────────────────
  // Each completes or pends its IRP and answers undefined, or answers the status of a failure. A StatusError means
  // that nothing was done.

  private readonly requestActions: Record<
    RequestAction,
    (irp: Irp, args: RequestArguments) => number | undefined
  > = {
    bind: (_irp, args) => {
      const address = args.address!;
      if (address.port === 0) {
        const gid = isUnspecified(address.gid) ? null : address.gid;
        const { status, claim, port } = this.services.claimPort(this.type, gid, 0);
        if (status !== Status.SUCCESS) throw new StatusError(status);
        this.claim = claim;
        this.bound = { ...address, port };
      } else {
        // An explicit port is claimed by Listen: many connectors may be bound to a listener's address.
        this.bound = address;
      }
      this.standAt(this.bound);
      args.answer!();
      return undefined;
    },

    setRoute: (irp, args) => {
      const route = args.route!;
      const bound = this.bound!;
      if (!isUnspecified(bound.gid) && !sameGid(bound.gid, route.path.source)) {
        throw new StatusError(
          Status.INVALID_ADDRESS,
          `the route starts at ${addressOfGid(route.path.source)}, but the endpoint is bound to ${addressOfGid(bound.gid)}`,
        );
      }
      this.route = route;
      this.standAt({ ...bound, gid: route.path.source, scopeId: route.path.scopeId });
      irp.complete(Status.SUCCESS, 0);
      return undefined;
    },

    listen: (irp, args) => {
      const { gid, port } = this.bound!;
      const address = isUnspecified(gid) ? undefined : gid;
      let claimed = this.claim;
      if (claimed === undefined) {
        const { status, claim } = this.services.claimPort(this.type, address ?? null, port);
        if (status !== Status.SUCCESS) throw new StatusError(status);
        claimed = claim;
      }
      try {
        this.listener = this.services.cm.listen({
          serviceId: this.serviceId(port),
          address,
          backlog: args.backlog!,
          onRequest: () => this.deliverRequests(),
        });
      } catch (error) {
        if (this.claim === undefined) this.services.releasePort(claimed);
        throw error;
      }
      this.claim = claimed;
      this.backlog = args.backlog!;
      irp.complete(Status.SUCCESS, 0);
      return undefined;
    },

    awaitRequest: (irp, args) => {
      const endpoint = args.endpoint!;
      // Marks the other endpoint queued; it answers whether it could be.
      const refused = endpoint.assign({ irp, listener: this });
      if (refused !== undefined) throw new StatusError(refused);
      this.getRequests.insert(irp, endpoint);
      this.deliverRequests();
      return undefined;
    },

    assign: () => undefined,

    connect: (irp, args) => {
      const qp = usableQp(args.qp, this.route!.path.source);
      const { path, pathMtu } = this.route!;
      const peer = args.address!;
      const loopback = isLoopback(peer.gid) && this.services.isOwn(path.destination);
      if (!sameGid(peer.gid, path.destination) && !loopback) {
        throw new StatusError(
          Status.INVALID_ADDRESS,
          `the route leads to ${addressOfGid(path.destination)}, not to ${addressOfGid(peer.gid)}`,
        );
      }
      if (peer.port === 0)
        throw new StatusError(Status.INVALID_ADDRESS, 'port 0 of the peer; nobody listens there');
      const param = limited(args.param!, qp);
      const { connection, status } = this.services.connect(
        {
          serviceId: this.serviceId(peer.port),
          path,
          localPort: this.local!.port,
          peerPort: peer.port,
          qp: { ...cmQp(qp, param), retryCount: param.retryCount },
          pathMtu: mtuCode(pathMtu),
          ackTimeoutCode: this.services.rc.ackTimeoutCode,
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
      this.attach(qp);
      this.peer = { ...peer, gid: path.destination };
      this.param = { ...param, privateData: new Uint8Array(0) };
      this.connecting.insert(irp, undefined);
      return undefined;
    },

    completeConnect: (irp, args) => {
      if (args.qp && args.qp !== this.qp) {
        throw new StatusError(Status.INVALID_PARAMETER, 'the queue pair is not the one of Connect');
      }
      const { qp } = this.qp!;
      this.qpMoved = true;
      const { connection, services } = this;
      const status = connectQp(
        qp,
        activeAttributes(this.route!, connection!, this.reply!, this.param, services.rc),
      );
      if (status !== Status.SUCCESS) {
        // The peer must not believe that this side is ready.
        this.connection!.reject(new Uint8Array(0));
        this.end(Status.CONNECTION_ABORTED);
        return status;
      }
      this.connection!.ready(args.param!.privateData);
      setWill(qp, this.connection!.will());
      completeWithState(irp);
      return undefined;
    },

    accept: (irp, args) => {
      const qp = usableQp(args.qp, this.request!.localAddress);
      const request = this.request!;
      const wanted = limited(args.param!, qp);
      const param = {
        ...wanted,
        responderResources: Math.min(wanted.responderResources, request.responderResources),
        initiatorDepth: Math.min(wanted.initiatorDepth, request.initiatorDepth),
      };
      this.attach(qp);
      this.qpMoved = true;
      const status = connectQp(qp.qp, passiveAttributes(request, this.connection!, param, this.services.rc));
      if (status !== Status.SUCCESS) {
        this.connection!.reject(new Uint8Array(0));
        this.end(Status.CONNECTION_ABORTED);
        return status;
      }
      const { responderResources, initiatorDepth } = param;
      this.param = { ...this.param, responderResources, initiatorDepth };
      this.accepting.insert(irp, undefined);
      this.connection!.accept(cmQp(qp, param), param.privateData);
      return undefined;
    },

    reject: (irp, args) => {
      this.connection!.reject(args.privateData!);
      this.end(Status.CONNECTION_ABORTED);
      irp.complete(Status.SUCCESS, 0);
      return undefined;
    },

    // Rejecting before the REP: the REQ is withdrawn, and the Connect that waits for it ends.
    giveUpConnect: (irp) => {
      this.abandon();
      this.end(Status.CONNECTION_ABORTED);
      this.connecting.completeAll(Status.CANCELLED);
      irp.complete(Status.SUCCESS, 0);
      return undefined;
    },

    disconnect: (irp, args) => {
      this.checkQp(args.qp);
      // The flush is visible before the peer can know; then the DREQ goes out.
      failQp(this.qp!.qp);
      this.disconnecting.insert(irp, undefined);
      this.connection!.disconnect();
      return undefined;
    },

    finishDisconnect: (irp, args) => {
      this.checkQp(args.qp);
      this.detach();
      completeWithState(irp, QpState.ERROR);
      return undefined;
    },

    awaitDisconnect: (irp) => {
      this.notifies.insert(irp, undefined);
      return undefined;
    },

    tellDisconnect: (irp) => {
      irp.complete(this.endReason);
      return undefined;
    },

    query: (_irp, args) => {
      args.answer!();
      return undefined;
    },

    cancelRequests: (irp) => {
      this.cancelAll();
      irp.complete(Status.SUCCESS, 0);
      return undefined;
    },

    destroy: (irp) => {
      this.destroy();
      irp.complete(Status.SUCCESS, 0);
      return undefined;
    },
  };

  // ── Happenings ──────────────────────────────────────────────────────────────────────────────────────────

  private readonly signalActions: Record<SignalAction, (data: SignalData) => void> = {
    stay: () => {
      this.assignedBy = undefined;
    },

    adopt: (data) => {
      if (!data || !('connection' in data)) return;
      const { connection, request, local } = data;
      this.assignedBy = undefined;
      this.connection = connection;
      this.request = request;
      this.standAt(local);
      this.peer = { gid: request.peerAddress, port: request.peerPort, scopeId: request.path.scopeId };
      const { responderResources, initiatorDepth, retryCount, rnrRetryCount, privateData } = request;
      this.param = { responderResources, initiatorDepth, retryCount, rnrRetryCount, privateData };
    },

    onReplied: (data) => {
      if (!data || !('reply' in data)) return;
      const { reply } = data;
      this.reply = reply;
      this.param = {
        ...this.param,
        // Never more than this side offered, whatever the peer says.
        responderResources: Math.min(reply.responderResources, this.param.responderResources),
        initiatorDepth: Math.min(reply.initiatorDepth, this.param.initiatorDepth),
        rnrRetryCount: reply.rnrRetryCount,
        privateData: reply.privateData,
      };
      this.connecting.completeAll(Status.SUCCESS, 0);
    },

    onRefused: (data) => {
      if (data && 'reject' in data) this.param = { ...this.param, privateData: data.reject.privateData };
      this.endConnect(Status.CONNECTION_REFUSED);
    },
    onConnectTimedOut: () => this.endConnect(Status.TIMEOUT),
    onConnectCancelled: () => {
      this.abandon();
      this.endConnect(Status.CANCELLED);
    },

    onPeerGaveUp: (data) => {
      if (data && 'reject' in data) this.param = { ...this.param, privateData: data.reject.privateData };
      this.end(Status.CONNECTION_ABORTED);
    },

    onEstablished: () => this.established(),
    onFirstPacket: () => this.connection?.communicationEstablished(),
    onAcceptRefused: (data) => {
      if (data && 'reject' in data) this.param = { ...this.param, privateData: data.reject.privateData };
      this.endAccept(Status.CONNECTION_REFUSED);
    },
    onAcceptTimedOut: () => this.endAccept(Status.IO_TIMEOUT),
    onAcceptLost: () => {
      this.abandon();
      this.endAccept(Status.CONNECTION_ABORTED);
    },
    onAcceptCancelled: () => {
      this.abandon();
      this.endAccept(Status.CANCELLED);
    },
    // The DREQ overtook the RTU: the connection was there, and is gone.
    onEstablishedAndGone: () => {
      this.established();
      this.closedByPeer(Status.CONNECTION_DISCONNECTED);
    },

    onPeerDisconnected: () => this.closedByPeer(Status.CONNECTION_DISCONNECTED),
    onStaleRejected: () => this.closedByPeer(Status.CONNECTION_ABORTED),
    onLost: () => {
      // Tells the peer, if it still listens, without anybody waiting for its answer.
      this.abandon();
      this.closedByPeer(Status.CONNECTION_ABORTED);
    },

    onDisconnectAnswered: () => this.endDisconnect(Status.SUCCESS, Status.CONNECTION_DISCONNECTED),
    onDisconnectTimedOut: () => this.endDisconnect(Status.TIMEOUT, Status.TIMEOUT),
    onDisconnectCancelled: () => {
      this.abandon();
      this.endDisconnect(Status.CANCELLED, Status.CONNECTION_DISCONNECTED);
    },

    onDeviceLost: (data) => {
      const status = data && 'lost' in data ? data.lost : Status.DEVICE_REMOVED;
      this.abandon();
      this.end(status);
      for (const waiting of [this.connecting, this.accepting, this.disconnecting])
        waiting.completeAll(status);
      for (let taken = this.getRequests.removeFirst(); taken; taken = this.getRequests.removeFirst()) {
        taken.context.signal('unassigned');
        taken.irp.complete(status);
      }
      this.stopListening();
    },
  };

  // ── Ends ────────────────────────────────────────────────────────────────────────────────────────────────

  /** A Connect that failed: the queue pair is let go as it was, and Connect may be tried again. */
  private endConnect(status: number): void {
    this.connection = undefined;
    this.detach();
    this.connecting.completeAll(status);
    this.notifies.completeAll(Status.CONNECTION_ABORTED);
  }

  private endAccept(status: number): void {
    this.end(Status.CONNECTION_ABORTED);
    this.accepting.completeAll(status);
  }

  private endDisconnect(status: number, reason: number): void {
    const waiting = this.disconnecting.removeFirst();
    this.end(reason);
    if (!waiting) return;
    if (status === Status.SUCCESS) completeWithState(waiting.irp, QpState.ERROR);
    else waiting.irp.complete(status);
  }

  /** The peer's doing, or the network's: the queue pair is flushed now, and stays until Disconnect. */
  private closedByPeer(reason: number): void {
    this.connection = undefined;
    this.endReason = reason;
    if (this.qp) failQp(this.qp.qp);
    this.notifies.completeAll(reason);
  }

  /** The one way out of a connection for good: a queue pair that was moved ends in ERROR. */
  private end(reason: number): void {
    this.connection = undefined;
    this.endReason = reason;
    this.detach();
    this.notifies.completeAll(reason);
  }

  private established(): void {
    const waiting = this.accepting.removeFirst();
    if (this.qp && this.connection) setWill(this.qp.qp, this.connection.will());
    if (waiting) completeWithState(waiting.irp);
  }

  private abandon(): void {
    const connection = this.connection;
    this.connection = undefined;
    if (!connection) return;
    connection.events = {};
    connection.abandon();
  }

  private standAt(local: EndpointAddress): void {
    this.local = local;
    this.device = isUnspecified(local.gid) ? undefined : this.services.portOf(local.gid, local.scopeId)?.guid;
  }

  private attach(qp: WvQp): void {
    this.qp = qp;
    this.qpMoved = false;
    qp.endpoint = this;
  }

  private detach(): void {
    const qp = this.qp;
    if (!qp) return;
    this.qp = undefined;
    if (this.qpMoved) failQp(qp.qp);
    this.qpMoved = false;
    qp.endpoint = undefined;
  }

  private cancelAll(): void {
    // First those that a cancelled step would end in another way.
    this.notifies.cancelAll();
    this.connecting.cancelAll();
    this.accepting.cancelAll();
    this.disconnecting.cancelAll();
    this.getRequests.cancelAll();
  }

  /** Ends everything at once; also for the file's cleanup. The state is `destroying` before anything else ends. */
  destroy(): void {
    this.current = 'destroying';
    // A GetRequest that names this endpoint has nothing left to fill.
    this.assignedBy?.irp.cancel();
    this.assignedBy = undefined;
    this.cancelAll();
    this.abandon();
    this.detach();
    this.stopListening();
  }

  private stopListening(): void {
    this.listener?.close();
    this.listener = undefined;
    if (this.claim !== undefined) this.services.releasePort(this.claim);
    this.claim = undefined;
  }

  // ── Listening ───────────────────────────────────────────────────────────────────────────────────────────

  /** Takes this endpoint for a GetRequest; answers the status that refuses. */
  private assign(assignedBy: { irp: Irp; listener: Endpoint }): number | undefined {
    const cell = requestTable[this.current].assign;
    if ('status' in cell) return cell.status;
    if (this.type !== assignedBy.listener.type) return Status.INVALID_PARAMETER;
    this.current = cell.next;
    this.assignedBy = assignedBy;
    return undefined;
  }

  private deliverRequests(): void {
    const listener = this.listener;
    while (listener && this.getRequests.size > 0 && this.current === 'listening') {
      const taken = listener.takeRequest();
      if (!taken) return;
      const { irp, context: endpoint } = this.getRequests.removeFirst()!;
      const { connection, request } = taken;
      // The new owner is told of everything from here on; nothing can come in between.
      connection.events = signalsOf(endpoint);
      const local = { gid: request.localAddress, port: this.bound!.port, scopeId: request.path.scopeId };
      endpoint.signal('delivered', { connection, request, local });
      irp.complete(Status.SUCCESS, 0);
    }
  }

  // ── Checks ──────────────────────────────────────────────────────────────────────────────────────────────

  /** Disconnect takes the queue pair of the connection; 0 names it too. */
  private checkQp(qp: WvQp | undefined): void {
    if (qp && qp !== this.qp) {
      throw new StatusError(Status.INVALID_PARAMETER, 'the queue pair is not the one of this connection');
    }
  }

  private serviceId(port: number): bigint {
    return (BigInt(this.type) << 16n) | BigInt(port);
  }
}
