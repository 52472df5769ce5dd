/** Lookups of datagram services (SIDR) in librdmacm's UDP port space. */
import { CmEventType } from '../../hca/verbs-binding.js';
import { Status } from '../../ioctl/status.js';
import type {
  SidrInquiry,
  SidrLookup,
  SidrLookupEvents,
  SidrLookupParameters,
  SidrState,
} from '../cm/service.js';
import { type CmIds, type CmMessage, type CmOwner, failureOf, padded } from './cm-ids.js';

/** Size of the private data of a SIDR_REP in bytes. */
const replyData = 136;

/** A lookup at a peer. */
export class VerbsLookup implements SidrLookup, CmOwner {
  state: SidrState = 'idle';
  requestId = 0;

  constructor(
    private readonly ids: CmIds,
    private readonly parameters: SidrLookupParameters,
    public events: SidrLookupEvents,
  ) {}

  start(peerPort: number): number {
    const { path, localPort } = this.parameters;
    this.state = 'reqSent';
    this.requestId = this.ids.create(true, this);
    return this.ids.resolve(this.requestId, path, localPort, peerPort);
  }

  on(message: CmMessage): void {
    const { ids, requestId, events } = this;
    switch (message.event) {
      case CmEventType.addressResolved:
        this.failUnless(ids.resolveRoute(requestId));
        break;
      case CmEventType.routeResolved:
        this.failUnless(ids.connect(requestId, {}, this.parameters.privateData));
        break;
      case CmEventType.established:
      case CmEventType.unreachable:
      case CmEventType.rejected: {
        // No reply arrived.
        if (message.status < 0) {
          this.fail(failureOf(message));
          break;
        }
        this.end();
        const { status, qpn, qkey, data } = message;
        events.answered?.({
          status,
          qpn,
          qkey,
          info: new Uint8Array(0),
          privateData: padded(data, replyData),
        });
        break;
      }
      default:
        this.fail(failureOf(message));
    }
  }

  private failUnless(status: number): void {
    if (status !== Status.SUCCESS) this.fail(status);
  }

  private fail(status: number | undefined): void {
    const { events } = this;
    this.end();
    events.timedOut?.(status);
  }

  private end(): void {
    if (this.requestId === 0) return;
    this.state = 'over';
    this.events = {};
    this.ids.destroy(this.requestId);
    this.requestId = 0;
  }

  abandon(): void {
    this.end();
  }
}

/** A received lookup. */
export class VerbsInquiry implements SidrInquiry, CmOwner {
  state: SidrState = 'reqReceived';
  events: SidrInquiry['events'] = {};

  constructor(
    private readonly ids: CmIds,
    private id: number,
  ) {
    ids.adopt(id, this);
  }

  /** The Q_Key is that of librdmacm's port space, whatever the caller passes. */
  accept(qpn: number, _qkey: number, privateData: Uint8Array): void {
    this.ids.accept(this.id, { qpn }, privateData);
    this.end('answered');
  }

  reject(privateData: Uint8Array): void {
    this.ids.reject(this.id, privateData);
    this.end('answered');
  }

  abandon(): void {
    if (this.state === 'reqReceived') this.ids.reject(this.id);
    this.end('over');
  }

  on(): void {
    const { events } = this;
    this.end('over');
    events.timedOut?.();
  }

  private end(state: SidrState): void {
    if (this.id === 0) return;
    this.state = state;
    this.events = {};
    this.ids.destroy(this.id);
    this.id = 0;
  }
}
