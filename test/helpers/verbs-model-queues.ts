/** The model of a queue pair: its posted requests, and the order in which they may complete. */
import {
  type IWVConnectQueuePair,
  type IWVQueuePair,
  QpType,
  Status,
  WcStatus,
  type WvCompletion,
  WvOpcode,
  type WvUnknown,
  WvWc,
} from '../../winverbs/index.js';

/** Permitted statuses of requests on a broken connection, in addition to SUCCESS. */
export const REQUEST_ERRORS: ReadonlySet<number> = new Set([
  WcStatus.FLUSHED,
  WcStatus.LOCAL_PROTECTION_ERROR,
  WcStatus.MW_BIND_ERROR,
  WcStatus.REMOTE_ACCESS_ERROR,
  WcStatus.REMOTE_OP_ERROR,
  WcStatus.REMOTE_INVALID_REQUEST,
  WcStatus.RNR_RETRY_ERROR,
  WcStatus.TIMEOUT_RETRY_ERROR,
]);

/** A posted request. */
export interface Request {
  readonly kind: string;
  readonly signaled: boolean;
  /** Memory that the request uses, on either side. */
  readonly regions: readonly unknown[];
  readonly window: unknown;
  readonly serial: number;
  /** Whether an event has occurred that permits it to fail. */
  mayFail: boolean;
  /** Number of times that the send queue had been resumed when it was posted. */
  epoch?: number;
  /** The effect of the request's success. */
  done?: () => void;
}

export interface Message {
  readonly length: number;
  readonly immediate: number | undefined;
}

/** Messages in one direction, in order. */
export class MessageLog {
  private readonly messages: Message[] = [];

  /** Adds a message. Returns the new number of messages. */
  add(message: Message): number {
    return this.messages.push(message);
  }

  get length(): number {
    return this.messages.length;
  }

  at(index: number): Message | undefined {
    return this.messages[index];
  }
}

/** A connection: its queue pairs, its endpoints, and the side that has ended it. */
export class Pair<Q> {
  readonly endpoints: { users: number; real: WvUnknown }[] = [];
  readonly ended = [false, false];

  constructor(
    readonly a: Q,
    readonly b: Q,
  ) {}
}

/**
 * Receives shared by several queue pairs, with bounds for the number of waiting ones. Only completions show which queue pair has consumed a
 * Receive.
 */
export class SharedReceives {
  /** Receives that were posted and have not completed. */
  readonly unreported = new Set<Request>();
  posted = 0;
  told = 0;
  /** Number of messages that may each have consumed a Receive. */
  messages = 0;
  /** Capacity in Receives. */
  entries = 0;
  /** Whether a Receive with invalid memory may have been posted. */
  poisoned = false;
  /** Permitted statuses of a wait for an event. An event is permitted only after a cause. */
  readonly endings: number[] = [Status.CANCELED];

  /** Minimum number of waiting Receives. */
  get least(): number {
    return Math.max(0, this.posted - this.messages);
  }

  /** Maximum number of waiting Receives. */
  get most(): number {
    return this.unreported.size;
  }

  mayTell(): void {
    if (this.endings.length === 1) this.endings.push(Status.SUCCESS);
  }
}

export class QueuePair<Pd, Cq, Real extends IWVQueuePair = IWVConnectQueuePair> {
  users = 1;
  /** Posted requests that are not known to be complete, in order. */
  sends: Request[] = [];
  receives: Request[] = [];
  receivesPosted = 0;
  /** Whether an event has occurred after which requests may fail. */
  tainted = false;
  peer: QueuePair<Pd, Cq> | undefined;
  pair: Pair<QueuePair<Pd, Cq>> | undefined;
  outgoing = new MessageLog();
  protected readonly errors: ReadonlySet<number> = REQUEST_ERRORS;
  /** Messages of its connections so far that may still complete. */
  private logs: MessageLog[] = [];
  private received = 0;
  /** Whether it shares Receives and had an earlier connection, whose messages may still complete or be lost. */
  private heardBefore = false;
  /** Number of times that its send queue was resumed. */
  private epoch = 0;
  private failedEpoch = -1;
  private everTainted = false;
  private lastShared = -1;
  private receiveFailed = false;

  constructor(
    readonly real: Real,
    readonly context: object,
    readonly pd: Pd,
    readonly sendCq: Cq,
    readonly receiveCq: Cq,
    readonly sendDepth: number,
    readonly receiveDepth: number,
    readonly type: number = QpType.RC,
    readonly shared: SharedReceives | undefined = undefined,
  ) {}

  /** Whether lost messages are not reported. */
  get unreliable(): boolean {
    return this.type !== QpType.RC;
  }

  /** Makes it receive this peer's messages from now on. */
  hear(log: MessageLog): void {
    // Receives that were taken from a shared queue also complete after a reset.
    if (this.shared === undefined) this.logs = [log];
    else {
      this.heardBefore = this.logs.length > 0;
      this.logs.push(log);
    }
    if (this.logs.length === 1) this.received = 0;
  }

  posted(request: Request): void {
    request.epoch = this.epoch;
    this.sends.push(request);
  }

  /** Called at the end of SQError. Requests posted from now on may succeed. */
  resumed(): void {
    this.epoch++;
  }

  /** Whether the program or a connection still refers to it. */
  get held(): boolean {
    return this.users > 0 || this.pair !== undefined;
  }

  postedReceive(request: Request): void {
    this.receives.push(request);
    this.receivesPosted++;
    if (this.tainted) request.mayFail = true;
  }

  taint(): void {
    this.tainted = true;
    this.everTainted = true;
    this.shared?.mayTell();
    for (const request of [...this.sends, ...this.receives]) request.mayFail = true;
  }

  /** Models RESET: both queues become empty, and their requests never complete. */
  reset(): void {
    this.sends = [];
    this.receives = [];
    this.receivesPosted = 0;
    if (this.shared === undefined) {
      this.logs = [];
      this.received = 0;
    }
    this.tainted = false;
    this.resumed();
    this.receiveFailed = false;
    // The other end of the old connection is no longer this queue pair's peer.
    if (this.peer !== undefined && (this.peer.peer as unknown) === this) this.peer.peer = undefined;
    this.peer = undefined;
    this.outgoing = new MessageLog();
  }

  /** Handles a completion that was polled from `cq`. Returns a description of the violation, if any. */
  completed(completion: WvCompletion, cq: Cq): string | undefined {
    const receive = completion.opcode >= WvOpcode.RECEIVE;
    if (cq !== (receive ? this.receiveCq : this.sendCq)) return 'A completion arrived in the wrong queue.';
    return receive ? this.completedReceive(completion) : this.completedSend(completion);
  }

  private completedSend({ context, status }: WvCompletion): string | undefined {
    const index = this.sends.indexOf(context as Request);
    const request = this.sends[index];
    if (request === undefined) return 'The context of a send completion is not outstanding.';
    const skipped = this.sends.splice(0, index + 1).slice(0, -1);
    // An unsignaled request only completes if it fails: earlier ones have succeeded.
    const unreported = skipped.find(({ signaled }) => signaled);
    if (unreported !== undefined)
      return `A ${unreported.kind} was not reported before a later ${request.kind}.`;
    for (const one of skipped) one.done?.();
    if (status === WcStatus.SUCCESS) {
      if (this.failedEpoch === request.epoch)
        return `A ${request.kind} succeeded after an earlier one failed.`;
      if (!request.signaled) return `A ${request.kind} without SIGNALED was reported.`;
      request.done?.();
      return undefined;
    }
    if (!request.mayFail) return `A ${request.kind} ended in ${status} for no reason.`;
    if (!this.errors.has(status)) return `A ${request.kind} ended in ${status}.`;
    if (this.failedEpoch === request.epoch && status !== WcStatus.FLUSHED)
      return `A ${request.kind} ended in ${status} after a failure.`;
    this.failedEpoch = request.epoch ?? 0;
    return undefined;
  }

  private completedReceive(completion: WvCompletion): string | undefined {
    if (this.shared !== undefined) return this.completedShared(this.shared, completion);
    const request = this.receives.shift();
    if (request === undefined || request !== completion.context) return 'Receives did not complete in order.';
    const { status } = completion;
    if (status !== WcStatus.SUCCESS) {
      if (!request.mayFail) return `A receive ended in ${status} for no reason.`;
      if (!this.errors.has(status)) return `A receive ended in ${status}.`;
      if (this.receiveFailed && status !== WcStatus.FLUSHED)
        return `A receive ended in ${status} after a failure.`;
      this.receiveFailed = true;
      return undefined;
    }
    if (this.receiveFailed) return 'A receive succeeded after an earlier one failed.';
    return this.arrived(completion);
  }

  private completedShared(shared: SharedReceives, completion: WvCompletion): string | undefined {
    const request = completion.context as Request;
    if (!shared.unreported.delete(request)) return 'The shared receive of a completion is not outstanding.';
    if (request.serial <= this.lastShared) return 'A queue pair did not take shared receives in order.';
    this.lastShared = request.serial;
    if (++shared.told > shared.messages) return 'More shared receives were taken than messages were sent.';
    const { status } = completion;
    if (status === WcStatus.SUCCESS) return this.arrived(completion);
    if (!this.everTainted) return `A shared receive ended in ${status} for no reason.`;
    return this.errors.has(status) ? undefined : `A shared receive ended in ${status}.`;
  }

  /**
   * Compares a received message with the sent ones. Messages arrive in order, and completely unless some may be lost or belong to an
   * earlier connection.
   */
  protected arrived(completion: WvCompletion): string | undefined {
    const told = (completion.flags & WvWc.IMMEDIATE) !== 0 ? completion.immediateData : undefined;
    const gaps = this.unreliable || this.heardBefore;
    for (let [log] = this.logs; log !== undefined; [log] = this.logs) {
      for (;;) {
        const message = log.at(this.received);
        if (message === undefined) break;
        this.received++;
        const { length, immediate } = message;
        if (completion.length === length && told === immediate) return undefined;
        if (gaps) continue;
        if (completion.length !== length) return `Expected ${length} bytes; got ${completion.length}.`;
        return `Expected immediate data ${immediate}; got ${told}.`;
      }
      if (this.logs.length === 1) break;
      this.logs.shift();
      this.received = 0;
    }
    return `A receive of ${completion.length} bytes and immediate data ${told} succeeded, but no such message was sent.`;
  }
}
