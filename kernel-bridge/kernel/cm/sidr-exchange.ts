/**
 * One SIDR exchange (IBA 1 §12.11): its state machine as data, active and passive in one table, followed by the
 * actions, the message and the timer of an exchange.
 */
import type { CmOptions } from '../../option-checks/option-schemas.js';
import { type CmBody, emitMad, SidrStatus, timeoutCodeToMs } from './mad-layouts.js';
import { checkPrivateData, withIpCmHeader } from './messages.js';
import type {
  CmPath,
  CmPlatform,
  CmTimer,
  SidrInquiry,
  SidrLookup,
  SidrLookupEvents,
  SidrLookupParameters,
  SidrReply,
  SidrRequest,
  SidrState,
} from './service.js';

export const sidrStates = [
  'idle',
  'reqSent',
  'reqReceived',
  'answered',
  'over',
] as const satisfies readonly SidrState[];

/** Calls of the owner. */
const localEvents = ['lookup', 'admit', 'accept', 'reject', 'abandon'] as const;
/** Messages of the peer for this exchange. */
const messageEvents = [
  /** A repetition of the SIDR_REQ. */
  'req',
  'rep',
  /** The peer uses its request id for another request: it has lost this one. */
  'stale',
] as const;
/** Expirations of the exchange's timer: retransmit, give up, wait over. */
const timerEvents = ['timeout', 'exhausted', 'expired'] as const;

/** All events, grouped as above. */
export const sidrEvents = [...localEvents, ...messageEvents, ...timerEvents] as const;
export type SidrEvent = (typeof sidrEvents)[number];

/** The actions of a transition, in order; the functions are below. */
export type SidrAction =
  | 'sendReq'
  | 'resend'
  | 'sendAccept'
  | 'sendReject'
  /** Repeats the reply. */
  | 'repeat'
  /** Waits for the owner as long as the peer can wait. */
  | 'awaitOwner'
  /** Waits for the peer's last repetition. */
  | 'awaitPeer'
  | 'reportReply'
  | 'reportTimedOut'
  /** No more events are reported to the owner. */
  | 'detach';

/** A cell of the table; the kinds are those of the connection's table. */
export type SidrTransition =
  | { readonly kind: 'go'; readonly next: SidrState; readonly actions: readonly SidrAction[] }
  | { readonly kind: 'ignored' | 'misused' | 'impossible' };

type Row = Readonly<Record<SidrEvent, SidrTransition>>;

const go = (next: SidrState, ...actions: SidrAction[]): SidrTransition => ({ kind: 'go', next, actions });

/** The row of a state. Beside the given cells, a call of the owner is misused, and no other event can occur. */
function row(cells: Partial<Record<SidrEvent, SidrTransition>>): Row {
  const all: [SidrEvent, SidrTransition][] = [
    ...localEvents.map((event): [SidrEvent, SidrTransition] => [event, { kind: 'misused' }]),
    ...messageEvents.map((event): [SidrEvent, SidrTransition] => [event, { kind: 'impossible' }]),
    ...timerEvents.map((event): [SidrEvent, SidrTransition] => [event, { kind: 'impossible' }]),
    ...(Object.entries(cells) as [SidrEvent, SidrTransition][]),
  ];
  return Object.fromEntries(all) as Record<SidrEvent, SidrTransition>;
}

export const sidrTransitions: Readonly<Record<SidrState, Row>> = {
  idle: row({
    lookup: go('reqSent', 'sendReq'),
    admit: go('reqReceived', 'awaitOwner'),
    abandon: go('over', 'detach'),
  }),
  reqSent: row({
    rep: go('over', 'reportReply'),
    timeout: go('reqSent', 'resend'),
    exhausted: go('over', 'reportTimedOut'),
    abandon: go('over', 'detach'),
  }),
  reqReceived: row({
    accept: go('answered', 'sendAccept', 'awaitPeer'),
    reject: go('answered', 'sendReject', 'awaitPeer'),
    abandon: go('answered', 'detach', 'sendReject', 'awaitPeer'),
    // SIDR has no message that requests more time; a repetition only shows that the peer is still waiting.
    req: go('reqReceived', 'awaitOwner'),
    stale: go('over', 'reportTimedOut'),
    expired: go('over', 'reportTimedOut'),
  }),
  answered: row({
    req: go('answered', 'repeat'),
    stale: go('over'),
    expired: go('over'),
    abandon: go('answered', 'detach'),
  }),
  over: row({ abandon: go('over', 'detach') }),
};

const NOTHING = new Uint8Array(0);
/** Size of a SIDR_REQ's private data in bytes, including the header. */
const SIDR_REQ_DATA = 216;

/** The manager's services for an exchange. */
export interface SidrHost {
  readonly platform: CmPlatform;
  readonly options: CmOptions;
  count(counter: string): void;
  /** Called after a state change, to update the host's tables. */
  sidrChanged(exchange: SidrExchange, before: SidrState): void;
}

/** The parts of its SIDR_REQ that a passive exchange keeps. */
export interface ReceivedSidrReq {
  readonly body: CmBody<'SIDR_REQ'>;
  /** The result of {@link sourceOf}. */
  readonly source: string;
  readonly transactionId: bigint;
  readonly request: SidrRequest;
}

interface SidrEventInput {
  reply?: SidrReply;
  answer?: { status: number; qpn: number; qkey: number; privateData: Uint8Array };
}

/** The reply to a request that is not accepted. */
const refusal = { status: SidrStatus.rejected, qpn: 0, qkey: 0, privateData: NOTHING } as const;

/** How long a peer with the same options repeats its request; all attempts take equally long. */
export function retryPeriodMs({ responseTimeoutCode, maxRetries }: CmOptions): number {
  return timeoutCodeToMs(responseTimeoutCode) * (maxRetries + 1);
}

export class SidrExchange implements SidrLookup, SidrInquiry {
  events: SidrLookupEvents & SidrInquiry['events'] = {};
  /** Identifies the lookup: the local id, or the peer's. */
  readonly requestId: number;
  readonly path: CmPath;
  readonly serviceId: bigint;
  readonly transactionId: bigint;
  /** The received SIDR_REQ, on the passive side. */
  readonly received: ReceivedSidrReq | undefined;

  readonly #host: SidrHost;
  #state: SidrState = 'idle';
  #detached = false;
  #timer: CmTimer | undefined;
  /** The request, or the reply. */
  #mad: Uint8Array | undefined;
  #retriesLeft = 0;

  constructor(
    host: SidrHost,
    origin:
      | { lookup: SidrLookupParameters; requestId: number; transactionId: bigint }
      | { received: ReceivedSidrReq },
  ) {
    this.#host = host;
    const active = 'lookup' in origin;
    this.received = active ? undefined : origin.received;
    this.requestId = active ? origin.requestId : origin.received.body.requestId;
    this.transactionId = active ? origin.transactionId : origin.received.transactionId;
    this.serviceId = active ? origin.lookup.serviceId : origin.received.body.serviceId;
    const path = active ? origin.lookup.path : origin.received.request.path;
    this.path = {
      ...path,
      source: Uint8Array.from(path.source),
      destination: Uint8Array.from(path.destination),
    };
    if (active) this.#mad = this.#lookupRequest(origin.lookup);
  }

  get state(): SidrState {
    return this.#state;
  }

  /** The source of its SIDR_REQ; empty for a lookup. */
  get source(): string {
    return this.received?.source ?? '';
  }

  /** The result of takeRequest() of a listener. */
  get taken(): { inquiry: SidrInquiry; request: SidrRequest } | undefined {
    return this.received && { inquiry: this, request: this.received.request };
  }

  // ── Calls of the owner (SidrLookup, SidrInquiry) ───────────────────────────────────────────────────────────

  accept(qpn: number, qkey: number, privateData: Uint8Array): void {
    checkPrivateData('SIDR_REP', privateData);
    this.dispatch('accept', { answer: { status: SidrStatus.ok, qpn, qkey, privateData } });
  }

  reject(privateData: Uint8Array, status: number = SidrStatus.rejected): void {
    checkPrivateData('SIDR_REP', privateData);
    this.dispatch('reject', { answer: { status, qpn: 0, qkey: 0, privateData } });
  }

  abandon(): void {
    this.dispatch('abandon');
  }

  displace(): void {
    this.#host.count('displaced.SIDR_REQ');
    this.dispatch('expired');
  }

  // ── The state machine ──────────────────────────────────────────────────────────────────────────────────────

  /** Executes the cell of the table for this event in the current state. */
  dispatch(event: SidrEvent, input: SidrEventInput = {}): void {
    const transition = sidrTransitions[this.#state][event];
    if (transition.kind !== 'go') {
      this.#host.count(`${transition.kind}.sidr.${event}`);
      return;
    }
    const before = this.#state;
    if (transition.next !== before) {
      this.#stopTimer();
      this.#state = transition.next;
      this.#host.sidrChanged(this, before);
    }
    for (const action of transition.actions) SidrExchange.#actions[action](this, input);
  }

  /** Stops the timer: the manager closes, and nothing more is sent or reported. */
  silence(): void {
    this.#stopTimer();
    this.#detached = true;
  }

  /** No request id is available: the owner gets a reply without a queue pair. */
  refuseLater(): void {
    const reply = { status: SidrStatus.noQp, qpn: 0, qkey: 0, info: NOTHING, privateData: NOTHING };
    this.#timer = this.#host.platform.setTimer(0, () => {
      if (!this.#detached) this.events.answered?.(reply);
    });
  }

  static readonly #actions: Readonly<
    Record<SidrAction, (self: SidrExchange, input: SidrEventInput) => void>
  > = {
    sendReq: (self) => {
      self.#retriesLeft = self.#host.options.maxRetries;
      self.#awaitReply();
      self.#send('SIDR_REQ');
    },
    resend: (self) => {
      self.#retriesLeft -= 1;
      self.#awaitReply();
      self.#send('SIDR_REQ', true);
    },
    sendAccept: (self, { answer }) => self.#answer(answer),
    sendReject: (self, { answer }) => self.#answer(answer),
    repeat: (self) => self.#send('SIDR_REP', true),
    awaitOwner: (self) => self.#startTimer(retryPeriodMs(self.#host.options), 'expired'),
    awaitPeer: (self) => self.#startTimer(retryPeriodMs(self.#host.options), 'expired'),
    reportReply: (self, { reply }) => {
      if (reply && !self.#detached) self.events.answered?.(reply);
    },
    reportTimedOut: (self) => {
      if (!self.#detached) self.events.timedOut?.();
    },
    detach: (self) => {
      self.#detached = true;
    },
  };

  // ── Messages ───────────────────────────────────────────────────────────────────────────────────────────────

  /** The SIDR_REQ of a lookup. Throws RangeError if the private data is too long. */
  #lookupRequest({ serviceId, path, localPort, pkey, privateData }: SidrLookupParameters): Uint8Array {
    checkPrivateData('SIDR_REQ', privateData);
    const from = { source: path.source, destination: path.destination, port: localPort };
    return emitMad('SIDR_REQ', this.transactionId, {
      requestId: this.requestId,
      pkey,
      serviceId,
      privateData: withIpCmHeader(SIDR_REQ_DATA, serviceId, from, privateData),
    });
  }

  #answer(answer: SidrEventInput['answer'] = refusal): void {
    const { status, qpn, qkey, privateData } = answer;
    this.#mad = emitMad('SIDR_REP', this.transactionId, {
      requestId: this.requestId,
      status,
      qpn,
      serviceId: this.serviceId,
      qkey,
      privateData,
    });
    this.#send('SIDR_REP');
  }

  #send(name: 'SIDR_REQ' | 'SIDR_REP', again = false): void {
    if (!this.#mad) return;
    this.#host.count(again ? `retransmitted.${name}` : `sent.${name}`);
    this.#host.platform.sendMad(this.path, this.#mad);
  }

  // ── Time ───────────────────────────────────────────────────────────────────────────────────────────────────

  #awaitReply(): void {
    const interval = timeoutCodeToMs(this.#host.options.responseTimeoutCode);
    this.#startTimer(interval, this.#retriesLeft > 0 ? 'timeout' : 'exhausted');
  }

  #startTimer(milliseconds: number, event: SidrEvent): void {
    this.#stopTimer();
    this.#timer = this.#host.platform.setTimer(milliseconds, () => {
      this.#timer = undefined;
      this.dispatch(event);
    });
  }

  #stopTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
