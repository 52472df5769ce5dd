/** A connection through librdmacm. The kernel moves the queue pair itself; librdmacm only knows its number. */
import { CmEventType } from '../../hca/verbs-binding.js';
import { Capacity } from '../../ioctl/constants.js';
import { Status } from '../../ioctl/status.js';
import type {
  CmConnection,
  CmConnectParameters,
  CmEvents,
  CmQpParameters,
  CmReply,
  CmState,
} from '../cm/service.js';
import { type CmIds, type CmMessage, type CmNegotiated, type CmOwner, failureOf, padded } from './cm-ids.js';

/** IB's reason for a REJ by the peer's program. */
const consumerReject = 28;
/** An iWARP peer's QP reports no ACK delay. */
const defaultAckDelay = 15;

/** Services of a connection's owner. */
export interface ConnectionOwner {
  readonly ids: CmIds;
  readonly iwarp: boolean;
  /** Numbers used in place of PSNs, to find a connection where there are none. */
  nextNumber(): number;
  /** Called when the connection's negotiated attributes are known: queue pairs can be connected. */
  known(connection: VerbsConnection): void;
  over(connection: VerbsConnection): void;
}

export class VerbsConnection implements CmConnection, CmOwner {
  events: CmEvents = {};
  state: CmState = 'idle';
  readonly remoteCommId = 0;
  localCommId = 0;
  receivePsn = 0;
  sendPsn = 0;
  peerQpn = 0;
  /** The parameters of the active side. */
  private request: CmConnectParameters | undefined = undefined;

  constructor(private readonly owner: ConnectionOwner) {}

  // ── Active side ─────────────────────────────────────────────────────────────────────────────────────────

  /** Starts connecting. A status other than SUCCESS means that it cannot succeed. */
  connect(parameters: CmConnectParameters): number {
    const { ids } = this.owner;
    this.request = { ...parameters, privateData: Uint8Array.from(parameters.privateData) };
    this.state = 'reqSent';
    this.localCommId = ids.create(false, this);
    return ids.resolve(this.localCommId, parameters.path, parameters.localPort, parameters.peerPort);
  }

  private sendRequest(): void {
    const { ids } = this.owner;
    const { qp, privateData } = this.request!;
    const status = ids.connect(this.localCommId, qp, privateData);
    if (status !== Status.SUCCESS) this.fail(status);
  }

  private replied(message: CmMessage): void {
    const negotiated = this.owner.iwarp ? undefined : this.owner.ids.negotiated(this.localCommId);
    this.learn(negotiated);
    this.state = 'repReceived';
    const offered = this.request!.qp;
    // An iWARP peer replies with private data only; the offered values apply.
    const values = this.owner.iwarp ? offered : message;
    const reply: CmReply = {
      peerQpn: this.peerQpn,
      sendPsn: this.sendPsn,
      responderResources: values.responderResources,
      initiatorDepth: values.initiatorDepth,
      rnrRetryCount: this.owner.iwarp ? 7 : message.rnrRetryCount,
      targetAckDelay: defaultAckDelay,
      peerUsesSrq: message.srq,
      privateData: padded(message.data, Capacity.REP_DATA),
    };
    this.events.replied?.(reply);
  }

  ready(): void {
    // iWARP has only two steps, so the connection is already established.
    if (!this.owner.iwarp) this.owner.ids.establish(this.localCommId);
    this.state = 'established';
  }

  // ── Passive side ────────────────────────────────────────────────────────────────────────────────────────

  /** Takes over a request that has arrived with this id. */
  adopt(id: number, negotiated: CmNegotiated | undefined): void {
    this.localCommId = id;
    this.state = 'reqReceived';
    this.owner.ids.adopt(id, this);
    this.learn(negotiated);
  }

  accept(parameters: CmQpParameters, privateData: Uint8Array): void {
    this.state = 'repSent';
    const status = this.owner.ids.accept(this.localCommId, parameters, privateData);
    if (status !== Status.SUCCESS) setImmediate(() => this.fail(status));
  }

  reject(privateData: Uint8Array): void {
    this.owner.ids.reject(this.localCommId, privateData);
    this.end();
  }

  // ── Both ────────────────────────────────────────────────────────────────────────────────────────────────

  disconnect(): void {
    this.state = 'dreqSent';
    if (this.owner.ids.disconnect(this.localCommId) === Status.SUCCESS) return;
    // The connection has already ended.
    setImmediate(() => {
      const { events } = this;
      this.end();
      events.disconnectCompleted?.(true);
    });
  }

  communicationEstablished(): void {
    this.owner.ids.notify(this.localCommId);
  }

  abandon(): void {
    this.events = {};
    // When the id is destroyed, the OS rejects a connection that is not established.
    const established = this.state === 'established' || this.state === 'dreqSent';
    const disconnected = established && this.owner.ids.disconnect(this.localCommId) === Status.SUCCESS;
    if (disconnected) this.state = 'dreqSent';
    else this.end();
  }

  /** The OS disconnects the connections of a process that ends. */
  dreqOnExit(): undefined {
    return undefined;
  }

  on(message: CmMessage): void {
    const { events } = this;
    const { ids } = this.owner;
    switch (message.event) {
      case CmEventType.addressResolved: {
        ids.setOptions(this.localCommId, this.request!.ackTimeoutCode, this.request!.path.trafficClass);
        const status = ids.resolveRoute(this.localCommId);
        if (status !== Status.SUCCESS) this.fail(status);
        break;
      }
      case CmEventType.routeResolved:
        this.sendRequest();
        break;
      case CmEventType.connectResponse:
        this.replied(message);
        break;
      case CmEventType.established:
        // An iWARP device that could not send its reply.
        if (message.status < 0) {
          this.fail(failureOf(message));
          break;
        }
        if (this.state === 'reqSent') {
          this.replied(message);
          break;
        }
        this.state = 'established';
        events.established?.();
        break;
      case CmEventType.rejected: {
        const reason = message.status > 0 ? message.status : consumerReject;
        this.end();
        events.rejected?.({
          reason,
          ari: new Uint8Array(0),
          privateData: padded(message.data, Capacity.REJ_DATA),
        });
        break;
      }
      case CmEventType.disconnected:
        this.disconnected(message.status === 0);
        break;
      case CmEventType.addressError:
      case CmEventType.routeError:
      case CmEventType.connectError:
      case CmEventType.unreachable:
        this.fail(failureOf(message));
        break;
    }
  }

  private disconnected(answered: boolean): void {
    const { events, state } = this;
    // Replies to the peer's DREQ.
    if (state !== 'dreqSent') this.owner.ids.disconnect(this.localCommId);
    this.end();
    if (state === 'dreqSent') events.disconnectCompleted?.(answered);
    else events.disconnected?.();
  }

  private learn(negotiated: CmNegotiated | undefined): void {
    this.receivePsn = negotiated?.receivePsn ?? this.owner.nextNumber();
    this.sendPsn = negotiated?.sendPsn ?? 0;
    this.peerQpn = negotiated?.peerQpn ?? 0;
    this.owner.known(this);
  }

  /** Ends an attempt to connect with a status; undefined: a timeout. */
  private fail(status: number | undefined): void {
    const { events } = this;
    this.end();
    events.timedOut?.(status);
  }

  /** Destroys the id, which notifies the peer if necessary. */
  end(): void {
    if (this.localCommId === 0) return;
    this.events = {};
    this.state = 'timewait';
    this.owner.ids.destroy(this.localCommId);
    this.owner.over(this);
    this.localCommId = 0;
  }
}
