/** One connection: the actions of the state machine in `connection-states.ts`, its messages and its one timer. */
import type { CmOptions } from '../../option-checks/option-schemas.js';
import { type CmAction, type CmEvent, transitions } from './connection-states.js';
import { ownPath } from './gids.js';
import {
  AnsweredMessage,
  type CmBody,
  type CmMessageName,
  counterNames,
  emitMad,
  emitMadOnce,
  RejReason,
  timeoutCodeToMs,
} from './mad-layouts.js';
import { checkPrivateData, makeRep, makeReq, type RequestIdentity } from './messages.js';
import type {
  CmConnection,
  CmConnectParameters,
  CmEvents,
  CmPath,
  CmPlatform,
  CmQpParameters,
  CmReject,
  CmReply,
  CmRequest,
  CmState,
  CmTimer,
} from './service.js';

const NOTHING = new Uint8Array(0);
const SENT = counterNames('sent');
const RETRANSMITTED = counterNames('retransmitted');
/** Minimum delay of a repeated DREQ in milliseconds, because the peer's reply may take that long. */
const SHORTEST_EARLY_MS = 8;

/**
 * The longest time for one message that a peer may choose, as a timeout code: 69 s, the maximum that Linux requests.
 * The largest code, 31, would be 2.4 hours.
 */
export const LONGEST_WAIT_CODE = 24;

const bounded = (timeoutCode: number): number => Math.min(timeoutCode, LONGEST_WAIT_CODE);

/** The manager's services for a connection. */
export interface ConnectionHost {
  readonly platform: CmPlatform;
  readonly options: CmOptions;
  count(counter: string): void;
  /** Called after a state change, to update the host's tables. */
  changed(connection: Connection, before: CmState): void;
}

/** Data of an event. */
export interface EventInput {
  request?: CmConnectParameters;
  reply?: CmReply;
  reject?: CmReject;
  answer?: { parameters: CmQpParameters; privateData: Uint8Array };
  /** For the REJ or RTU to send. */
  privateData?: Uint8Array;
  reason?: number;
  serviceTimeout?: number;
  /** Transaction id of the DREQ to reply to. */
  transactionId?: bigint;
}

/** The fields of a REQ that are needed later; the others are part of the request. */
export type KeptReq = Pick<
  CmBody<'REQ'>,
  | 'localCommId'
  | 'localQpn'
  | 'localCaGuid'
  | 'startingPsn'
  | 'localResponseTimeout'
  | 'remoteResponseTimeout'
  | 'primaryAckTimeout'
  | 'maxCmRetries'
>;

export function keptOfReq(body: CmBody<'REQ'>): KeptReq {
  return {
    localCommId: body.localCommId,
    localQpn: body.localQpn,
    localCaGuid: body.localCaGuid,
    startingPsn: body.startingPsn,
    localResponseTimeout: body.localResponseTimeout,
    remoteResponseTimeout: body.remoteResponseTimeout,
    primaryAckTimeout: body.primaryAckTimeout,
    maxCmRetries: body.maxCmRetries,
  };
}

/** The identity of the peer, from its REQ or REP. */
export interface Remote {
  readonly commId: number;
  readonly qpn: number;
  readonly caGuid: bigint;
  /** The slot of the peer if it is a process on this host, otherwise BY_WIRE. */
  readonly sender: number;
}

/** The parts of its REQ that a passive connection keeps. */
export interface ReceivedReq {
  readonly body: KeptReq;
  /** The sender, as in {@link Remote}. */
  readonly sender: number;
  /** The result of {@link sourceOf}. */
  readonly source: string;
  readonly transactionId: bigint;
  /** The request, until the connection is established. */
  request: CmRequest | undefined;
}

export class Connection implements CmConnection {
  events: CmEvents = {};
  readonly active: boolean;
  readonly path: CmPath;
  readonly localCommId: number;
  readonly receivePsn: number;
  /** The received REQ, on the passive side. */
  readonly received: ReceivedReq | undefined;
  /** The parameters of connect(), on the active side, until the connection is established. */
  offered: CmConnectParameters | undefined;
  localQpn = 0;

  readonly #host: ConnectionHost;
  readonly #caGuid: bigint;
  readonly #transactionId: bigint;
  /** The ACK timeout of the path, as in the REQ. */
  readonly #ackTimeoutCode: number;
  #state: CmState = 'idle';
  #remote: Remote | undefined;
  #detached = false;
  #timer: CmTimer | undefined;
  #later: { report: () => void; timer: CmTimer } | undefined;
  /** The message that awaits a reply. */
  #awaited: { name: 'REQ' | 'REP' | 'DREQ'; mad: Uint8Array } | undefined;
  #retriesLeft = 0;
  #intervalMs = 1;
  /** Delay of the early repetition of the DREQ; 0: none, or already done. */
  #earlyMs = 0;
  /** Private data of the RTU. */
  #rtuData: Uint8Array | undefined;
  #reject: Uint8Array | undefined;
  /** Whether an MRA has requested more time of the peer. */
  #askedForTime = false;

  constructor(
    host: ConnectionHost,
    localCommId: number,
    transactionId: bigint,
    origin: { connect: CmConnectParameters } | { received: ReceivedReq & { request: CmRequest } },
  ) {
    this.#host = host;
    this.localCommId = localCommId;
    this.active = 'connect' in origin;
    this.offered = 'connect' in origin ? origin.connect : undefined;
    this.received = 'connect' in origin ? undefined : origin.received;
    const path = 'connect' in origin ? origin.connect.path : origin.received.request.path;
    this.path = ownPath(path);
    this.#transactionId = transactionId;
    this.#caGuid = host.platform.caGuid(this.path.source);
    this.receivePsn = host.platform.randomPsn() & 0xff_ffff;
    this.#ackTimeoutCode = this.offered?.ackTimeoutCode ?? this.received?.body.primaryAckTimeout ?? 0;
    if (this.offered) this.localQpn = this.offered.qp.qpn;
    if (this.received) {
      const { localCommId: commId, localQpn: qpn, localCaGuid: caGuid } = this.received.body;
      this.#remote = { commId, qpn, caGuid, sender: this.received.sender };
    }
  }

  get state(): CmState {
    return this.#state;
  }

  /** The peer's communication id; 0 until it is known. */
  get remoteCommId(): number {
    return this.#remote?.commId ?? 0;
  }

  /** The result of takeRequest() of a listener. */
  get taken(): { connection: CmConnection; request: CmRequest } | undefined {
    const request = this.received?.request;
    return request && { connection: this, request };
  }

  /** The source of its REQ; empty for an active connection. */
  get source(): string {
    return this.received?.source ?? '';
  }

  /** The peer's identity; undefined before its REQ or REP. */
  get remote(): Remote | undefined {
    return this.#remote;
  }

  /** Active side: records the sender of the REP, before the `rep` event. */
  learnRemote(body: CmBody<'REP'>, sender: number): void {
    this.#remote = { commId: body.localCommId, qpn: body.localQpn, caGuid: body.localCaGuid, sender };
  }

  // ── Calls of the owner (CmConnection) ──────────────────────────────────────────────────────────────────────

  ready(privateData: Uint8Array = NOTHING): void {
    checkPrivateData('RTU', privateData);
    this.dispatch('ready', { privateData });
  }

  accept(parameters: CmQpParameters, privateData: Uint8Array): void {
    checkPrivateData('REP', privateData);
    this.dispatch('accept', { answer: { parameters, privateData } });
  }

  reject(privateData: Uint8Array, reason: number = RejReason.consumerReject): void {
    checkPrivateData('REJ', privateData);
    this.dispatch('reject', { privateData, reason });
  }

  disconnect(): void {
    this.dispatch('disconnect');
  }

  communicationEstablished(): void {
    this.dispatch('packetSeen');
  }

  abandon(): void {
    this.dispatch('abandon');
  }

  displace(): void {
    this.#host.count('displaced.REQ');
    this.dispatch('displaced');
  }

  dreqOnExit(): { path: CmPath; mad: Uint8Array } {
    return { path: this.path, mad: this.#dreq(emitMadOnce) };
  }

  // ── The state machine ──────────────────────────────────────────────────────────────────────────────────────

  /** Executes the cell of the table for this event in the current state. */
  dispatch(event: CmEvent, input: EventInput = {}): void {
    const transition = transitions[this.#state][event];
    if (transition.kind !== 'go') {
      this.#host.count(`${transition.kind}.${event}`);
      return;
    }
    const before = this.#state;
    if (transition.next !== before) {
      this.#stopTimer();
      this.#state = transition.next;
      this.#host.changed(this, before);
      if (transition.next === 'established') this.#settled();
      if (transition.next === 'timewait') this.#startTimer(this.#timewaitMs(before), 'expired');
    }
    for (const action of transition.actions) Connection.#actions[action](this, input);
  }

  /**
   * How long the ids stay reserved. A peer whose REJ was lost repeats its REQ at the end of its own interval, which an
   * MRA has extended. Until then the repetition would look like a new request, although the owner has already rejected
   * it.
   */
  #timewaitMs(before: CmState): number {
    const { timewaitMs, mraServiceTimeoutCode } = this.#host.options;
    if (before !== 'reqReceived' || !this.received) return timewaitMs;
    const extended = this.#askedForTime ? timeoutCodeToMs(mraServiceTimeoutCode) : 0;
    return timewaitMs + timeoutCodeToMs(bounded(this.received.body.remoteResponseTimeout)) + extended;
  }

  /** Called when the awaited reply has arrived: nothing is retransmitted. */
  #settled(): void {
    this.#awaited = undefined;
    this.offered = undefined;
    if (this.received) this.received.request = undefined;
  }

  /** Stops all timers: the manager closes, and nothing more is sent or reported. */
  silence(): void {
    this.#stopTimer();
    this.#forgetLater();
    this.#detached = true;
  }

  static readonly #actions: Readonly<Record<CmAction, (self: Connection, input: EventInput) => void>> = {
    sendReq: (self, { request }) => {
      if (!request) return;
      const { options, platform } = self.#host;
      const link = platform.hostLink?.(self.path.destination);
      const mad = makeReq(request, self.#identity(), platform.standardOnly, link);
      self.#await('REQ', mad, options.responseTimeoutCode, options.maxRetries);
    },
    sendRep: (self, { answer }) => {
      const { received } = self;
      if (!answer || !received?.request) return;
      const identity = { ...self.#identity(), remoteCommId: self.remoteCommId };
      const link = self.#host.platform.hostLink?.(self.path.destination);
      const mad = makeRep(answer.parameters, answer.privateData, received.request, identity, link);
      self.localQpn = answer.parameters.qpn;
      self.#await('REP', mad, bounded(received.body.localResponseTimeout), received.body.maxCmRetries);
    },
    sendRtu: (self, { privateData }) => {
      self.#rtuData = privateData ?? NOTHING;
      self.#send('RTU', self.#rtu(self.#rtuData));
    },
    sendDreq: (self) => {
      const { responseTimeoutCode, maxRetries } = self.#host.options;
      self.#repeatEarly(timeoutCodeToMs(responseTimeoutCode));
      self.#await('DREQ', self.#dreq(emitMad), responseTimeoutCode, maxRetries);
    },
    sendDrep: (self, { transactionId }) => {
      const ids = { localCommId: self.localCommId, remoteCommId: self.remoteCommId };
      self.#send('DREP', emitMadOnce('DREP', transactionId ?? self.#transactionId, ids));
    },
    sendMraReq: (self) => self.#sendMra(AnsweredMessage.REQ),
    sendMraRep: (self) => self.#sendMra(AnsweredMessage.REP),
    sendReject: (self, { reason = RejReason.consumerReject, privateData = NOTHING }) => {
      self.#reject = emitMad('REJ', self.#exchangeId(), {
        localCommId: self.localCommId,
        remoteCommId: self.remoteCommId,
        message: self.#rejectedMessage(),
        reason,
        privateData,
      });
      self.#send('REJ', self.#reject);
    },
    sendTimeoutReject: (self, { privateData = NOTHING }) => {
      const ari = new Uint8Array(8);
      new DataView(ari.buffer).setBigUint64(0, self.#caGuid);
      self.#reject = emitMad('REJ', self.#exchangeId(), {
        localCommId: self.localCommId,
        remoteCommId: self.remoteCommId,
        message: AnsweredMessage.other,
        reason: RejReason.timeout,
        ariLength: ari.length,
        ari,
        privateData,
      });
      self.#send('REJ', self.#reject);
    },
    resend: (self) => {
      const early = self.#earlyMs;
      self.#earlyMs = 0;
      if (early === 0) self.#retriesLeft -= 1;
      self.#repeat();
      self.#awaitAnswer(early);
    },
    repeat: (self) => self.#repeat(),
    repeatRtu: (self) => {
      if (self.#rtuData) self.#send('RTU', self.#rtu(self.#rtuData), true);
      else self.#host.count('ignored.rep');
    },
    repeatReject: (self) => {
      if (self.#reject) self.#send('REJ', self.#reject, true);
    },
    extendWait: (self, { serviceTimeout = 0 }) => {
      self.#intervalMs += timeoutCodeToMs(bounded(serviceTimeout));
      self.#awaitAnswer();
    },
    awaitOwner: (self) => self.#awaitOwner(),
    reportReply: (self, { reply }) => {
      if (reply) self.#report(() => self.events.replied?.(reply));
    },
    reportEstablished: (self) => self.#report(() => self.events.established?.()),
    reportEstablishedLater: (self) => self.#reportLater(() => self.events.established?.()),
    reportRejected: (self, { reject }) => {
      const rejection = reject ?? { reason: RejReason.staleConnection, ari: NOTHING, privateData: NOTHING };
      self.#report(() => self.events.rejected?.(rejection));
    },
    reportTimedOut: (self) => self.#report(() => self.events.timedOut?.()),
    reportDisconnected: (self) => self.#report(() => self.events.disconnected?.()),
    reportDisconnectCompleted: (self) => self.#report(() => self.events.disconnectCompleted?.(true)),
    reportDisconnectTimedOut: (self) => self.#report(() => self.events.disconnectCompleted?.(false)),
    reportDisconnectCompletedLater: (self) =>
      self.#reportLater(() => self.events.disconnectCompleted?.(true)),
    detach: (self) => {
      self.#detached = true;
      self.#forgetLater();
    },
  };

  // ── Messages ───────────────────────────────────────────────────────────────────────────────────────────────

  #identity(): RequestIdentity {
    return {
      localCommId: this.localCommId,
      caGuid: this.#caGuid,
      startingPsn: this.receivePsn,
      transactionId: this.#exchangeId(),
      responseTimeoutCode: this.#host.options.responseTimeoutCode,
      maxRetries: this.#host.options.maxRetries,
    };
  }

  /** Whether a message can be the reply to the pending REQ: it must repeat the transaction id, which only the peer has seen. */
  mayBeAnsweredBy(transactionId: bigint): boolean {
    const waits = this.#state === 'reqSent' || this.#state === 'mraReqReceived';
    return !waits || transactionId === this.#transactionId;
  }

  /** All messages up to the RTU or REJ carry the REQ's transaction id. */
  #exchangeId(): bigint {
    return this.received?.transactionId ?? this.#transactionId;
  }

  /** A REJ refers to the REQ until a REP was sent, and to the REP once one was received. */
  #rejectedMessage(): number {
    if (this.active) return AnsweredMessage.REP;
    return this.#awaited ? AnsweredMessage.other : AnsweredMessage.REQ;
  }

  #rtu(privateData: Uint8Array): Uint8Array {
    const { localCommId, remoteCommId } = this;
    return emitMadOnce('RTU', this.#exchangeId(), { localCommId, remoteCommId, privateData });
  }

  #dreq(emit: typeof emitMadOnce): Uint8Array {
    return emit('DREQ', this.#transactionId, {
      localCommId: this.localCommId,
      remoteCommId: this.remoteCommId,
      remoteQpn: this.#remote?.qpn ?? 0,
    });
  }

  #sendMra(message: number): void {
    this.#askedForTime = true;
    const mad = emitMadOnce('MRA', this.#exchangeId(), {
      localCommId: this.localCommId,
      remoteCommId: this.remoteCommId,
      message,
      serviceTimeout: this.#host.options.mraServiceTimeoutCode,
    });
    this.#send('MRA', mad);
  }

  #send(name: CmMessageName, mad: Uint8Array, again = false): void {
    this.#host.count((again ? RETRANSMITTED : SENT)[name]);
    this.#host.platform.sendMad(this.path, mad);
  }

  #await(name: 'REQ' | 'REP' | 'DREQ', mad: Uint8Array, timeoutCode: number, retries: number): void {
    this.#awaited = { name, mad };
    this.#retriesLeft = retries;
    this.#intervalMs = timeoutCodeToMs(timeoutCode);
    this.#awaitAnswer();
    this.#send(name, mad);
  }

  #repeat(): void {
    if (this.#awaited) this.#send(this.#awaited.name, this.#awaited.mad, true);
  }

  // ── Time ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** Waits for the reply to REQ, REP or DREQ; `passed` is the elapsed part of the interval. */
  #awaitAnswer(passed = 0): void {
    if (this.#earlyMs > 0) this.#startTimer(this.#earlyMs, 'timeout');
    else this.#startTimer(this.#intervalMs - passed, this.#retriesLeft > 0 ? 'timeout' : 'exhausted');
  }

  /**
   * A peer replies to a repeated DREQ while it is in timewait. Linux stays there for the path's ACK timeout, which may
   * be far shorter than our interval; afterwards it does not reply as long as its application keeps the connection's
   * id. So the DREQ is repeated once within that time; this repetition does not count as a retry.
   */
  #repeatEarly(intervalMs: number): void {
    const ms = timeoutCodeToMs(this.#ackTimeoutCode) / 2;
    this.#earlyMs = ms >= SHORTEST_EARLY_MS && ms < intervalMs ? ms : 0;
  }

  /** Waits for the owner as long as the peer can wait: all of its retries, each extended by our longest MRA. */
  #awaitOwner(): void {
    if (!this.received) return;
    const { body } = this.received;
    const perTry =
      timeoutCodeToMs(bounded(body.remoteResponseTimeout)) +
      timeoutCodeToMs(bounded(body.primaryAckTimeout)) +
      timeoutCodeToMs(this.#host.options.mraServiceTimeoutCode);
    this.#startTimer(perTry * (body.maxCmRetries + 2), 'expired');
  }

  #startTimer(milliseconds: number, event: CmEvent): void {
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

  // ── Events reported to the owner ───────────────────────────────────────────────────────────────────────────

  /** Outside the owner's calls: reports deferred events first. */
  #report(report: () => void): void {
    const deferred = this.#later?.report;
    this.#forgetLater();
    if (this.#detached) return;
    deferred?.();
    if (!this.#detached) report();
  }

  /** Inside one of the owner's calls: reports the event after the call has returned. */
  #reportLater(report: () => void): void {
    if (this.#detached) return;
    const deferred = this.#later?.report;
    this.#forgetLater();
    const both = () => {
      deferred?.();
      report();
    };
    const timer = this.#host.platform.setTimer(0, () => {
      this.#later = undefined;
      if (!this.#detached) both();
    });
    this.#later = { report: both, timer };
  }

  #forgetLater(): void {
    this.#later?.timer.cancel();
    this.#later = undefined;
  }

  /** Active side: no communication id is available. Reports a rejection for lack of resources to the owner. */
  refuseLater(): void {
    const reject = { reason: RejReason.noResources, ari: NOTHING, privateData: NOTHING };
    this.#reportLater(() => this.events.rejected?.(reject));
  }
}
