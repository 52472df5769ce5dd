/** The model of a queue pair: what was posted, and in which order and how it may come back. */
import {
  type IWVConnectQueuePair,
  WcStatus,
  type WvCompletion,
  WvOpcode,
  type WvUnknown,
  WvWc,
} from '../../winverbs/index.js';

/** How requests of a connection that is not sound any more may end, besides SUCCESS. */
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
  /** Memory it uses, on either side. */
  readonly regions: readonly unknown[];
  readonly window: unknown;
  readonly serial: number;
  /** Whether anything has happened that lets it fail. */
  mayFail: boolean;
  /** What its success means. */
  done?: () => void;
}

export interface Message {
  readonly length: number;
  readonly immediate: number | undefined;
}

/** Messages of one direction, in order. */
export class MessageLog {
  private readonly messages: Message[] = [];

  /** Answers how many there are now. */
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

/** A connection: its queue pairs, its endpoints, and which side has ended it. */
export class Pair<Q> {
  readonly endpoints: { users: number; real: WvUnknown }[] = [];
  readonly ended = [false, false];

  constructor(
    readonly a: Q,
    readonly b: Q,
  ) {}
}

export class QueuePair<Pd, Cq> {
  users = 1;
  /** Posted and not seen to be completed, in order. */
  sends: Request[] = [];
  receives: Request[] = [];
  receivesPosted = 0;
  /** Something has happened after which requests may fail. */
  tainted = false;
  peer: QueuePair<Pd, Cq> | undefined;
  pair: Pair<QueuePair<Pd, Cq>> | undefined;
  outgoing = new MessageLog();
  incoming = new MessageLog();
  private received = 0;
  private sendFailed = false;
  private receiveFailed = false;

  constructor(
    readonly real: IWVConnectQueuePair,
    readonly context: object,
    readonly pd: Pd,
    readonly sendCq: Cq,
    readonly receiveCq: Cq,
    readonly sendDepth: number,
    readonly receiveDepth: number,
  ) {}

  /** Whether the program or a connection still holds it. */
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
    for (const request of [...this.sends, ...this.receives]) request.mayFail = true;
  }

  /** RESET: both queues are empty, and what was in them never comes back. */
  reset(): void {
    this.sends = [];
    this.receives = [];
    this.receivesPosted = 0;
    this.received = 0;
    this.tainted = false;
    this.sendFailed = false;
    this.receiveFailed = false;
    // The old connection's other end is not this queue pair's peer any more.
    if (this.peer?.peer === this) this.peer.peer = undefined;
    this.peer = undefined;
    this.outgoing = new MessageLog();
    this.incoming = new MessageLog();
  }

  /** A completion was polled from `cq`; answers what is wrong with it. */
  completed(completion: WvCompletion, cq: Cq): string | undefined {
    const receive = completion.opcode >= WvOpcode.RECEIVE;
    if (cq !== (receive ? this.receiveCq : this.sendCq)) return 'A completion came through the wrong queue.';
    return receive ? this.completedReceive(completion) : this.completedSend(completion);
  }

  private completedSend({ context, status }: WvCompletion): string | undefined {
    const index = this.sends.indexOf(context as Request);
    const request = this.sends[index];
    if (request === undefined) return 'A send completion has a context that is not outstanding.';
    const skipped = this.sends.splice(0, index + 1).slice(0, -1);
    // An unsignaled request is told of only if it fails: those before have been done.
    const untold = skipped.find(({ signaled }) => signaled);
    if (untold !== undefined) return `A ${untold.kind} was never told of; a later ${request.kind} was.`;
    for (const one of skipped) one.done?.();
    if (status === WcStatus.SUCCESS) {
      if (this.sendFailed) return `A ${request.kind} succeeded after one before it had failed.`;
      if (!request.signaled) return `A ${request.kind} without SIGNALED was told of.`;
      request.done?.();
      return undefined;
    }
    if (!request.mayFail) return `A ${request.kind} ended in ${status} for no reason.`;
    if (!REQUEST_ERRORS.has(status)) return `A ${request.kind} ended in ${status}.`;
    if (this.sendFailed && status !== WcStatus.FLUSHED)
      return `A ${request.kind} ended in ${status} after a failure.`;
    this.sendFailed = true;
    return undefined;
  }

  private completedReceive(completion: WvCompletion): string | undefined {
    const request = this.receives.shift();
    if (request === undefined || request !== completion.context) return 'Receives did not complete in order.';
    const { status } = completion;
    if (status !== WcStatus.SUCCESS) {
      if (!request.mayFail) return `A receive ended in ${status} for no reason.`;
      if (!REQUEST_ERRORS.has(status)) return `A receive ended in ${status}.`;
      if (this.receiveFailed && status !== WcStatus.FLUSHED)
        return `A receive ended in ${status} after a failure.`;
      this.receiveFailed = true;
      return undefined;
    }
    if (this.receiveFailed) return 'A receive succeeded after one before it had failed.';
    const message = this.incoming.at(this.received++);
    if (message === undefined) return 'A receive succeeded, but nothing was sent.';
    const { length, immediate } = message;
    if (completion.length !== length) return `${completion.length} bytes came of ${length}.`;
    const told = (completion.flags & WvWc.IMMEDIATE) !== 0 ? completion.immediateData : undefined;
    if (told !== immediate) return `The immediate data are ${told}, not ${immediate}.`;
    return undefined;
  }
}
