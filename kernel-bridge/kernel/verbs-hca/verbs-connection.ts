/** A connection by librdmacm. The queue pair is ours to move: librdmacm is told its number. */
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
import { type CmIds, type CmMessage, type CmNegotiated, type CmOwner, padded } from './cm-ids.js';

/** IB's reason of a REJ by the peer's program. */
const consumerReject = 28;
/** An iWARP peer's QP has no ACK delay to tell. */
const defaultAckDelay = 15;

/** What a connection asks of who has it. */
export interface ConnectionOwner {
  readonly ids: CmIds;
  readonly iwarp: boolean;
  /** Numbers in place of PSNs, by which a connection is found where there are none. */
  nextNumber(): number;
  /** Its negotiated attributes are there: queue pairs can be connected. */
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
  private asked: CmConnectParameters | undefined = undefined;

  constructor(private readonly owner: ConnectionOwner) {}

  // ── Active side ─────────────────────────────────────────────────────────────────────────────────────────

  /** Starts; a status that is not SUCCESS tells that nothing can come of it. */
  connect(parameters: CmConnectParameters): number {
    const { ids } = this.owner;
    this.asked = { ...parameters, privateData: Uint8Array.from(parameters.privateData) };
    this.state = 'reqSent';
    this.localCommId = ids.create(false, this);
    return ids.resolve(this.localCommId, parameters.path, parameters.localPort, parameters.peerPort);
  }

  private sendRequest(): void {
    const { ids } = this.owner;
    const { qp, privateData } = this.asked!;
    if (ids.connect(this.localCommId, qp, privateData) !== Status.SUCCESS) this.fail();
  }

  private replied(message: CmMessage): void {
    const negotiated = this.owner.iwarp ? undefined : this.owner.ids.negotiated(this.localCommId);
    this.learn(negotiated);
    this.state = 'repReceived';
    const offered = this.asked!.qp;
    // An iWARP peer answers with private data only; what was offered holds.
    const told = this.owner.iwarp ? offered : message;
    const reply: CmReply = {
      peerQpn: this.peerQpn,
      sendPsn: this.sendPsn,
      responderResources: told.responderResources,
      initiatorDepth: told.initiatorDepth,
      rnrRetryCount: this.owner.iwarp ? 7 : message.rnrRetryCount,
      targetAckDelay: defaultAckDelay,
      peerUsesSrq: message.srq,
      privateData: padded(message.data, Capacity.REP_DATA),
    };
    this.events.replied?.(reply);
  }

  ready(): void {
    // iWARP has two steps: it is established already.
    if (!this.owner.iwarp) this.owner.ids.establish(this.localCommId);
    this.state = 'established';
  }

  // ── Passive side ────────────────────────────────────────────────────────────────────────────────────────

  /** A request has come by this id. */
  adopt(id: number, negotiated: CmNegotiated | undefined): void {
    this.localCommId = id;
    this.state = 'reqReceived';
    this.owner.ids.adopt(id, this);
    this.learn(negotiated);
  }

  accept(parameters: CmQpParameters, privateData: Uint8Array): void {
    this.state = 'repSent';
    const status = this.owner.ids.accept(this.localCommId, parameters, privateData);
    if (status !== Status.SUCCESS) setImmediate(() => this.fail());
  }

  reject(privateData: Uint8Array): void {
    this.owner.ids.reject(this.localCommId, privateData);
    this.end();
  }

  // ── Both ────────────────────────────────────────────────────────────────────────────────────────────────

  disconnect(): void {
    this.state = 'dreqSent';
    if (this.owner.ids.disconnect(this.localCommId) === Status.SUCCESS) return;
    // It has ended already.
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
    // What is not established is refused by the system when its id ends.
    const established = this.state === 'established' || this.state === 'dreqSent';
    const told = established && this.owner.ids.disconnect(this.localCommId) === Status.SUCCESS;
    if (told) this.state = 'dreqSent';
    else this.end();
  }

  /** The system disconnects what a process leaves behind. */
  will(): undefined {
    return undefined;
  }

  on(message: CmMessage): void {
    const { events } = this;
    const { ids } = this.owner;
    switch (message.event) {
      case CmEventType.addressResolved:
        ids.setOptions(this.localCommId, this.asked!.ackTimeoutCode, this.asked!.path.trafficClass);
        if (ids.resolveRoute(this.localCommId) !== Status.SUCCESS) this.fail();
        break;
      case CmEventType.routeResolved:
        this.sendRequest();
        break;
      case CmEventType.connectResponse:
        this.replied(message);
        break;
      case CmEventType.established:
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
        this.fail();
        break;
    }
  }

  private disconnected(answered: boolean): void {
    const { events, state } = this;
    // Answers the peer's DREQ.
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

  private fail(): void {
    const { events } = this;
    this.end();
    events.timedOut?.();
  }

  /** Ends the id, which tells the peer where it has to be told. */
  end(): void {
    if (this.localCommId === 0) return;
    this.events = {};
    this.state = 'timewait';
    this.owner.ids.destroy(this.localCommId);
    this.owner.over(this);
    this.localCommId = 0;
  }
}
