/** One bound for what peers make this side hold: large payloads that were received, and answers that the peer has not taken (docs/internals/net.md). */
import { Fifo } from './fifo.js';
import { checkSizes } from './helpers.js';

/** Default of {@link setMaxBufferedBytes}: twice the default of `maxMessageBytes`. */
const DEFAULT_BYTES = 2 ** 29;

/** The least that a payload is charged, in bytes: its objects and its registration cost about a page. */
const LEAST_CHARGE = 4096;

/** What payloads are held for. Those of one class wait for their own class alone. */
export const Class = { MESSAGES: 0, REQUESTS: 1, REPLIES: 2, ANSWERS: 3 } as const;
/** A value of {@link Class}. */
export type Class = (typeof Class)[keyof typeof Class];

/** What is tried again when something was released. */
interface Waiter {
  /** True: it has made use of what is free, and may do so again. */
  retry(): boolean;
}

/** Those that wait, of all budgets, in the order of their turns. */
const waiters = new Set<Waiter>();
let retrying = false;

function retryLater(): void {
  if (retrying || waiters.size === 0) return;
  retrying = true;
  queueMicrotask(() => {
    retrying = false;
    for (const waiter of waiters) {
      if (!waiter.retry()) continue;
      // Behind the others: one entry a turn.
      waiters.delete(waiter);
      waiters.add(waiter);
    }
  });
}

/** Bytes that connections may hold together. */
export class Budget {
  /** Bytes held within the bound. */
  held = 0;
  /** Whether a payload of this class is held beside the bound. */
  readonly beside = [false, false, false, false];

  /**
   * @param bytes - the bound
   * @param parent - the budget that this one is a part of
   */
  constructor(
    public bytes: number,
    readonly parent?: Budget,
  ) {}

  /** Bytes that are not held; negative if answers that could not be refused are beyond the bound. */
  get free(): number {
    return this.bytes - this.held;
  }

  /** A connection that holds so much would hold no more than it leaves to all others. */
  fits(held: number, bytes: number): boolean {
    return held + bytes <= this.free - bytes;
  }
}

/** The budget of all connections of this thread. */
export const threadBudget = new Budget(DEFAULT_BYTES);

/**
 * Bounds what all channels of this thread hold together: large messages and requests that were received and not taken or answered, and
 * answers that peers have not taken. Beyond it peers wait. `maxBufferedBytes` of a server is a bound within it.
 *
 * @param bytes - default 512 MiB, twice the default of `maxMessageBytes`
 * @throws RangeError `ERR_OUT_OF_RANGE`
 */
export function setMaxBufferedBytes(bytes: number): void {
  checkSizes({ maxBufferedBytes: bytes });
  threadBudget.bytes = bytes;
  retryLater();
}

/** A payload that is held. */
export class Charge {
  #gate: Gate | undefined;

  /** @param beside - for each level, whether it is beside its bound */
  constructor(
    gate: Gate,
    readonly bytes: number,
    readonly beside: readonly boolean[],
  ) {
    this.#gate = gate;
  }

  /** It is not held any more. */
  release(): void {
    const gate = this.#gate;
    this.#gate = undefined;
    gate?.released(this);
  }
}

/** Lets the payloads of one class and connection in, in order. One that waits stays with the peer, and keeps its slot here. */
export class Gate implements Waiter {
  readonly #class: Class;
  /** The budget, and those that it is a part of. */
  readonly #levels: Budget[] = [];
  /** Bytes held within the bound of each level, and whether there are some beside it. */
  readonly #within: number[] = [];
  readonly #beside: boolean[] = [];
  readonly #waiting = new Fifo<{ bytes: number; enter: (charge: Charge) => void }>();
  #held = 0;
  #ended = false;

  constructor(budget: Budget, kind: Class) {
    this.#class = kind;
    for (let level: Budget | undefined = budget; level !== undefined; level = level.parent) {
      this.#levels.push(level);
      this.#within.push(0);
      this.#beside.push(false);
    }
  }

  /** Bytes that are held. */
  get held(): number {
    return this.#held;
  }

  /** Calls `enter` as soon as a payload of so many bytes may be held. Not at all if the connection ends before. */
  pass(bytes: number, enter: (charge: Charge) => void): void {
    if (this.#ended) return;
    this.#waiting.push({ bytes: Math.max(bytes, LEAST_CHARGE), enter });
    while (this.#enterFirst());
    if (this.#waiting.length > 0) waiters.add(this);
  }

  /** Holds a payload that is here already. */
  hold(bytes: number): Charge {
    const charged = Math.max(bytes, LEAST_CHARGE);
    return this.#hold(
      charged,
      this.#levels.map(() => false),
    );
  }

  /** As much is held as is left to others, or more: nothing should be added that could wait. */
  get full(): boolean {
    return this.#levels.some((level) => !level.fits(this.#held, 0));
  }

  #enterFirst(): boolean {
    const first = this.#waiting.first;
    if (first === undefined) return false;
    const beside: boolean[] = [];
    for (const level of this.#levels) {
      const fits = level.fits(this.#held, first.bytes);
      // Whoever holds nothing gets on: one payload of each class may be beside the bound.
      if (!fits && (this.#held > 0 || level.beside[this.#class]!)) return false;
      beside.push(!fits);
    }
    this.#waiting.shift();
    first.enter(this.#hold(first.bytes, beside));
    return true;
  }

  #hold(bytes: number, beside: readonly boolean[]): Charge {
    const charge = new Charge(this, bytes, beside);
    if (this.#ended) return charge;
    this.#held += bytes;
    for (let n = 0; n < beside.length; n += 1) {
      if (beside[n]) this.#setBeside(n, true);
      else this.#addWithin(n, bytes);
    }
    return charge;
  }

  #setBeside(n: number, is: boolean): void {
    this.#beside[n] = is;
    this.#levels[n]!.beside[this.#class] = is;
  }

  #addWithin(n: number, bytes: number): void {
    this.#within[n]! += bytes;
    this.#levels[n]!.held += bytes;
  }

  /** For {@link Charge}. */
  released({ bytes, beside }: Charge): void {
    if (this.#ended) return;
    this.#held -= bytes;
    for (let n = 0; n < beside.length; n += 1) {
      if (beside[n]) this.#setBeside(n, false);
      else this.#addWithin(n, -bytes);
    }
    retryLater();
  }

  /** For the turns of all that wait. */
  retry(): boolean {
    const entered = this.#enterFirst();
    if (this.#waiting.length === 0) waiters.delete(this);
    return entered && this.#waiting.length > 0;
  }

  /** Nothing more enters. */
  close(): void {
    this.#waiting.drain();
    waiters.delete(this);
  }

  /** Nothing is held any more, either. */
  end(): void {
    if (this.#ended) return;
    this.close();
    this.#ended = true;
    this.#held = 0;
    for (let n = 0; n < this.#levels.length; n += 1) {
      this.#addWithin(n, -this.#within[n]!);
      if (this.#beside[n]) this.#setBeside(n, false);
    }
    retryLater();
  }
}

/** What one channel holds. */
export class Account {
  /** Large messages, until the program takes them. */
  readonly messages: Gate;
  /** Large requests, until their handlers have answered. */
  readonly requests: Gate;
  /** Large replies, while they are read: they wait for no program. */
  readonly replies: Gate;
  /** Answers that wait for the peer: for its credits, or until it has read them. */
  readonly answers: Gate;
  #waiter: Waiter | undefined;

  /** @param owner - its collection ends the account */
  constructor(budget: Budget, owner: object) {
    this.messages = new Gate(budget, Class.MESSAGES);
    this.requests = new Gate(budget, Class.REQUESTS);
    this.replies = new Gate(budget, Class.REPLIES);
    this.answers = new Gate(budget, Class.ANSWERS);
    collected.register(owner, this);
  }

  /** Calls `retry` whenever something was released, until it returns true. */
  whenReleased(retry: () => boolean): void {
    if (this.#waiter !== undefined) return;
    const waiter = {
      retry: () => {
        if (retry()) this.#forget();
        return false;
      },
    };
    this.#waiter = waiter;
    waiters.add(waiter);
  }

  #forget(): void {
    if (this.#waiter !== undefined) waiters.delete(this.#waiter);
    this.#waiter = undefined;
  }

  /** The connection has ended. Messages that were received are held until the program takes them, or has lost the channel. */
  close(): void {
    this.#forget();
    this.messages.close();
    for (const gate of [this.requests, this.replies, this.answers]) gate.end();
  }

  /** Nothing is held any more. */
  end(): void {
    this.close();
    this.messages.end();
  }
}

const collected = new FinalizationRegistry<Account>((account) => account.end());
