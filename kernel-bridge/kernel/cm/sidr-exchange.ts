/** One SIDR exchange: the actions of the state machine in `sidr-states.ts`, its message and its one timer. */
import type { CmOptions } from '../../options.js';
import { withIpCmHeader } from './ip-cm-header.js';
import { checkPrivateData } from './messages.js';
import type { CmPath, CmPlatform, CmTimer } from './service.js';
import type {
  SidrInquiry,
  SidrLookup,
  SidrLookupEvents,
  SidrLookupParameters,
  SidrReply,
  SidrRequest,
  SidrState,
} from './sidr-service.js';
import { type SidrAction, type SidrEvent, sidrTransitions } from './sidr-states.js';
import { type CmBody, emitMad, SidrStatus, timeoutCodeToMs } from './wire.js';

const NOTHING = new Uint8Array(0);
/** Bytes of a SIDR_REQ's private data, header and all. */
const SIDR_REQ_DATA = 216;

/** The services that an exchange uses of its manager. */
export interface SidrHost {
  readonly platform: CmPlatform;
  readonly options: CmOptions;
  count(counter: string): void;
  /** The state has just changed; the host updates its tables. */
  sidrChanged(exchange: SidrExchange, before: SidrState): void;
}

/** The parts of its SIDR_REQ that a passive exchange keeps. */
export interface ReceivedSidrReq {
  readonly body: CmBody<'SIDR_REQ'>;
  /** As {@link sourceOf} has it. */
  readonly source: string;
  readonly transactionId: bigint;
  readonly request: SidrRequest;
}

interface SidrEventInput {
  reply?: SidrReply;
  answer?: { status: number; qpn: number; qkey: number; privateData: Uint8Array };
}

/** The answer to a request that nobody accepts. */
const refusal = { status: SidrStatus.rejected, qpn: 0, qkey: 0, privateData: NOTHING } as const;

/** How long a peer with our own options repeats its request; all tries are equally long. */
export function patienceMs({ responseTimeoutCode, maxRetries }: CmOptions): number {
  return timeoutCodeToMs(responseTimeoutCode) * (maxRetries + 1);
}

export class SidrExchange implements SidrLookup, SidrInquiry {
  events: SidrLookupEvents & SidrInquiry['events'] = {};
  /** Identifies the look-up: this side's own number, or the peer's. */
  readonly requestId: number;
  readonly path: CmPath;
  readonly serviceId: bigint;
  readonly transactionId: bigint;
  /** The SIDR_REQ, on the passive side. */
  readonly received: ReceivedSidrReq | undefined;

  readonly #host: SidrHost;
  #state: SidrState = 'idle';
  #detached = false;
  #timer: CmTimer | undefined;
  /** The request, or the answer. */
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
    if (active) this.#mad = this.#question(origin.lookup);
  }

  get state(): SidrState {
    return this.#state;
  }

  /** The source of its SIDR_REQ; of a look-up empty. */
  get source(): string {
    return this.received?.source ?? '';
  }

  /** The result of takeRequest() of a listener. */
  get taken(): { inquiry: SidrInquiry; request: SidrRequest } | undefined {
    return this.received && { inquiry: this, request: this.received.request };
  }

  // ── The owner's side (SidrLookup, SidrInquiry) ─────────────────────────────────────────────────────────────

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

  // ── The machine ────────────────────────────────────────────────────────────────────────────────────────────

  /** Executes the table's cell for this event in the present state. */
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

  /** Ends the timer: the manager closes, and nothing more is sent or reported. */
  silence(): void {
    this.#stopTimer();
    this.#detached = true;
  }

  /** No request id was left: the owner gets an answer without a queue pair. */
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
    awaitOwner: (self) => self.#startTimer(patienceMs(self.#host.options), 'expired'),
    awaitPeer: (self) => self.#startTimer(patienceMs(self.#host.options), 'expired'),
    tellAnswered: (self, { reply }) => {
      if (reply && !self.#detached) self.events.answered?.(reply);
    },
    tellTimedOut: (self) => {
      if (!self.#detached) self.events.timedOut?.();
    },
    detach: (self) => {
      self.#detached = true;
    },
  };

  // ── Messages ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Throws RangeError when the private data is too long. */
  #question({ serviceId, path, localPort, pkey, privateData }: SidrLookupParameters): Uint8Array {
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
