/**
 * A connect endpoint: executes the actions of endpoint-states.ts. endpoint-machine.ts has the part common to all
 * endpoints, endpoint-connection.ts the connection itself.
 */
import { QpState } from '../../ioctl/constants.js';
import { addressOfGid } from '../../ioctl/sockaddr.js';
import { Status, StatusError } from '../../ioctl/status.js';
import type { CmListenerControl, CmListenParameters } from '../cm/service.js';
import { DEFAULT_PKEY, samePartition } from '../hca-driver/pkeys.js';
import { isLoopback, mtuCode, sameGid } from '../hca-driver/ports.js';
import { type Irp, IrpQueue } from '../io-manager/irp.js';
import { EndpointConnection } from './endpoint-connection.js';
import type { CommonAction, RequestStep } from './endpoint-machine.js';
import { connectQp, failQp, setWill } from './endpoint-qp.js';
import type { RequestAction, SignalAction } from './endpoint-states.js';
import {
  activeAttributes,
  activePkeyIndex,
  cmQp,
  completeWithState,
  entryFor,
  keptData,
  limited,
  passiveAttributes,
  passivePkeyIndex,
  signalsOf,
  tellAttributes,
  usableQp,
} from './endpoint-steps.js';
import { type AnyEndpoint, noParam, type RequestArguments, type SignalData } from './endpoint-types.js';

export class Endpoint extends EndpointConnection {
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
          `the route leads to ${addressOfGid(path.destination)}, not to ${addressOfGid(peer.gid)}`,
        );
      }
      if (peer.port === 0)
        throw new StatusError(Status.INVALID_ADDRESS, 'port 0 of the peer; nobody listens there');
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
        throw new StatusError(Status.INVALID_PARAMETER, 'the queue pair is not the one of Connect');
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
        // The peer must not believe that this side is ready.
        this.connection!.reject(new Uint8Array(0));
        this.end(Status.CONNECTION_ABORTED);
        return status;
      }
      this.connection!.ready(args.param!.privateData);
      setWill(qp, this.connection!.will());
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

    // Reject before the REP: the REQ is withdrawn, and the waiting Connect ends.
    giveUpConnect(irp) {
      this.abandon();
      this.end(Status.CONNECTION_ABORTED);
      this.connecting?.completeAll(Status.CANCELED);
      irp.complete(Status.SUCCESS, 0);
      return undefined;
    },

    disconnect(irp, args) {
      this.checkQp(args.qp);
      // The flush is visible before the peer can know of it; then the DREQ is sent.
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

    tellDisconnect(irp) {
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
        // Never more than this side offered, whatever the REP says.
        responderResources: Math.min(reply.responderResources, this.param.responderResources),
        initiatorDepth: Math.min(reply.initiatorDepth, this.param.initiatorDepth),
        rnrRetryCount: reply.rnrRetryCount,
        privateData: keptData(reply.privateData),
      };
      const waiting = this.connecting?.removeFirst();
      this.connecting = undefined;
      waiting?.irp.complete(Status.SUCCESS, tellAttributes(this, waiting.irp, this.services));
    },

    onRefused(data) {
      if (data && 'reject' in data) this.param = { ...this.param, privateData: data.reject.privateData };
      this.endConnect(Status.CONNECTION_REFUSED);
    },
    onConnectTimedOut() {
      this.endConnect(Status.TIMEOUT);
    },
    onConnectCancelled() {
      this.abandon();
      this.endConnect(Status.CANCELED);
    },

    onPeerGaveUp(data) {
      if (data && 'reject' in data) this.param = { ...this.param, privateData: data.reject.privateData };
      // The user side may have cached attributes that came with EP_CONNECT or EP_GET_REQUEST.
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
    onAcceptTimedOut() {
      this.endAccept(Status.IO_TIMEOUT);
    },
    onAcceptLost() {
      this.abandon();
      this.endAccept(Status.CONNECTION_ABORTED);
    },
    onAcceptCancelled() {
      this.abandon();
      this.endAccept(Status.CANCELED);
    },
    // The DREQ overtook the RTU: the connection was established, and has ended.
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
      // Notifies the peer, if it still listens, without waiting for its answer.
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

  protected override tellRequest(irp: Irp, endpoint: Endpoint): number {
    return tellAttributes(endpoint, irp, this.services);
  }

  protected own(endpoint: AnyEndpoint): Endpoint | undefined {
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
}
