/**
 * The connection of a connect endpoint: its data, and how it is established, fails and ends. endpoint.ts has the
 * requests and events that lead there.
 */
import { QpEventType } from '../../hca/binding.js';
import { type EpOption, EpType, QpState } from '../../ioctl/constants.js';
import { Status, StatusError } from '../../ioctl/status.js';
import type { CmConnection, CmListenerControl, CmReply, CmRequest } from '../cm/service.js';
import type { Hca } from '../hca-driver/objects.js';
import type { IrpQueue } from '../io-manager/irp.js';
import type { Endpoint } from './endpoint.js';
import { type CommonRequest, type CommonSignal, EndpointMachine } from './endpoint-machine.js';
import { failQp, setWill } from './endpoint-qp.js';
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
import { completeWithState } from './endpoint-steps.js';
import { type EndpointParam, noParam } from './endpoint-types.js';
import type { WvQp } from './objects.js';

/** Shared by all connect endpoints. */
const TABLES = {
  initial: 'idle',
  destroying: 'destroying',
  requests: requestTable,
  signals: signalTable,
} as const;

export abstract class EndpointConnection extends EndpointMachine<
  EndpointState,
  Exclude<EndpointRequest, CommonRequest>,
  Exclude<EndpointSignal, CommonSignal>,
  RequestAction,
  SignalAction,
  Endpoint
> {
  /** The peer's latest parameters and private data, in this side's view. */
  param: EndpointParam = noParam;

  protected qp: WvQp | undefined = undefined;
  /** The owner moves the queue pair itself when the peer has disconnected ({@link EpOption}.KEEP_QP). */
  keepQp = false;
  /** This endpoint has changed the state of its queue pair, which must therefore end in ERROR. */
  protected qpMoved = false;
  /** The P_Key of the connection in its port's table; undefined before it has one. */
  partition: number | undefined = undefined;
  /** For Connect: the index of the queue pair's P_Key in its port's table. */
  protected pkeyIndex = 0;
  /** The RNR retries that the REQ requested of the peer. */
  protected askedRnrRetry = 0;
  protected connection: CmConnection | undefined = undefined;
  protected request: CmRequest | undefined = undefined;
  protected reply: CmReply | undefined = undefined;
  declare protected listener: CmListenerControl | undefined;
  /** How an ended connection has ended, for NotifyDisconnect. */
  protected endReason: number = Status.CONNECTION_ABORTED;

  // Made for the first request. An established connection drops those of Connect and Accept; the others stay.
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

  /** An event of the HCA for the endpoint's queue pair. */
  queuePairEvent(event: number, _reason: number): void {
    if (event === QpEventType.communicationEstablished) this.signal('firstPacket');
    else if (event === QpEventType.fatal || event === QpEventType.peerLost) this.signal('lost');
  }

  /** The queue pair's port is not in the connection's partition any more. */
  partitionGone(): void {
    this.signal('lost');
  }

  /** A failed Connect: the queue pair is released unchanged, and Connect may be tried again. */
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
   * The peer or the network has ended the connection: the queue pair is flushed now, and stays until Disconnect. If the
   * peer has disconnected in order, the owner may have chosen to do that itself.
   */
  protected closedByPeer(reason: number): void {
    this.connection = undefined;
    this.endReason = reason;
    const keeps = this.keepQp && reason === Status.CONNECTION_DISCONNECTED;
    if (this.qp && !keeps) failQp(this.qp.qp);
    this.notifies?.completeAll(reason);
  }

  /** Ends the connection for good, in all cases: a queue pair whose state was changed ends in ERROR. */
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
    if (this.qp && this.connection) setWill(this.qp.qp, this.connection.will());
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

  protected cancelAll(): void {
    // These first: a cancelled step would end them otherwise.
    this.notifies?.cancelAll();
    this.connecting?.cancelAll();
    this.accepting?.cancelAll();
    this.disconnecting?.cancelAll();
    this.getRequests?.cancelAll();
  }

  protected letGo(): void {
    this.abandon();
    this.detach();
  }

  /** Disconnect takes the queue pair of the connection; 0 means it, too. */
  protected checkQp(qp: WvQp | undefined): void {
    if (qp && qp !== this.qp) {
      throw new StatusError(Status.INVALID_PARAMETER, 'the queue pair is not the one of this connection');
    }
  }
}
