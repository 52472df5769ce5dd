/**
 * A bound on the memory that peers can make this side hold, namely large payloads that they sent and answers that they have not read. See
 * docs/internals/net.md.
 */
import { Fifo } from '../base/fifo.js';
import { checkSizes } from '../connection/size-bounds.js';

/** Default of {@link setMaxBufferedBytes}: twice the default of `maxMessageBytes`. */
const DEFAULT_BYTES = 2 ** 29;

/** Least charge for a payload, in bytes: its objects and its registration cost about a page. */
const LEAST_CHARGE = 4096;

/** Why a payload is held. A payload waits only for others of its own class. */
export const Class = { MESSAGES: 0, REQUESTS: 1, REPLIES: 2, ANSWERS: 3 } as const;
/** A value of {@link Class}. */
export type Class = (typeof Class)[keyof typeof Class];

/** A waiting payload, retried whenever bytes were released. */
interface Waiter {
  /** Returns true if it used some of the free bytes and may use more. */
  retry(): boolean;
}

/** The waiters of all budgets, in round-robin order. */
const waiters = new Set<Waiter>();
let retrying = false;

function retryLater(): void {
  if (retrying || waiters.size === 0) return;
  retrying = true;
  queueMicrotask(() => {
    retrying = false;
    for (const waiter of waiters) {
      if (!waiter.retry()) continue;
      // The waiter moves behind the others, so that each waiter gets one payload per round.
      waiters.delete(waiter);
      waiters.add(waiter);
    }
  });
}

/** The bytes that several connections may hold together. */
export class Budget {
  /** Bytes held within the bound. */
  held = 0;
  /** For each class, whether one of its payloads is held in excess of the bound. */
  readonly inExcess = [false, false, false, false];

  /**
   * @param bytes - the bound
   * @param parent - the budget that contains this one
   */
  constructor(
    public bytes: number,
    readonly parent?: Budget,
  ) {}

  /** Bytes that are not held; negative if answers, which cannot be refused, exceed the bound. */
  get free(): number {
    return this.bytes - this.held;
  }

  /** Whether a connection with `held` bytes may hold `bytes` more. Afterwards it must not hold more than what is left for all others. */
  fits(held: number, bytes: number): boolean {
    return held + bytes <= this.free - bytes;
  }
}

/** The budget of all connections of this thread. */
export const threadBudget = new Budget(DEFAULT_BYTES);

/**
 * Sets how many bytes all channels of this thread may hold together: large messages that the program has not received, large requests that
 * it has not answered, and answers that peers have not read. Peers wait while the bound is reached. A server's `maxBufferedBytes` is a
 * bound within this one.
 *
 * @param bytes - the bound in bytes; default 512 MiB, twice the default of `maxMessageBytes`
 * @throws RangeError `ERR_OUT_OF_RANGE`
 */
export function setMaxBufferedBytes(bytes: number): void {
  checkSizes({ bytes });
  threadBudget.bytes = bytes;
  retryLater();
}

/** A payload that is held. */
export class Charge {
  /** @param inExcess - for each level of the admission, whether the payload is in excess of its bound */
  constructor(
    private readonly admission: Admission,
    readonly bytes: number,
    readonly inExcess: readonly boolean[],
  ) {}

  /** Ends the charge; a second call has no effect. */
  release(): void {
    this.admission.released(this);
  }
}

/**
 * Admits the payloads of one class and connection in order. A waiting payload stays in its slots or, if it is large, in the peer's memory;
 * the frame that describes it keeps its slot.
 */
export class Admission implements Waiter {
  readonly #class: Class;
  /** The budget and all budgets that contain it. */
  readonly #levels: Budget[] = [];
  readonly #charges = new Set<Charge>();
  readonly #waiting = new Fifo<{ bytes: number; enter: (charge: Charge) => void }>();
  #held = 0;
  #ended = false;

  constructor(budget: Budget, kind: Class) {
    this.#class = kind;
    for (let level: Budget | undefined = budget; level !== undefined; level = level.parent)
      this.#levels.push(level);
  }

  /** Bytes that are held. */
  get held(): number {
    return this.#held;
  }

  /** Calls `enter` as soon as a payload of `bytes` bytes may be held; never if the connection ends first. */
  pass(bytes: number, enter: (charge: Charge) => void): void {
    if (this.#ended) return;
    this.#waiting.push({ bytes: Math.max(bytes, LEAST_CHARGE), enter });
    while (this.#enterFirst());
    if (this.#waiting.length > 0) waiters.add(this);
  }

  /** Charges a payload that already exists. */
  hold(bytes: number): Charge {
    const charged = Math.max(bytes, LEAST_CHARGE);
    return this.#hold(
      charged,
      this.#levels.map(() => false),
    );
  }

  /** Bytes that are free at every level. */
  get free(): number {
    return Math.min(...this.#levels.map((level) => level.free));
  }

  /** Whether this connection holds at least as much as it leaves to others. In that case nothing that can wait should be added. */
  get full(): boolean {
    return this.#levels.some((level) => !level.fits(this.#held, 0));
  }

  #enterFirst(): boolean {
    const first = this.#waiting.first;
    if (first === undefined) return false;
    const inExcess: boolean[] = [];
    for (const level of this.#levels) {
      const fits = level.fits(this.#held, first.bytes);
      // A connection that holds nothing still makes progress: one payload of each class may exceed the bound.
      if (!fits && (this.#held > 0 || level.inExcess[this.#class]!)) return false;
      inExcess.push(!fits);
    }
    this.#waiting.shift();
    first.enter(this.#hold(first.bytes, inExcess));
    return true;
  }

  #hold(bytes: number, inExcess: readonly boolean[]): Charge {
    const charge = new Charge(this, bytes, inExcess);
    if (this.#ended) return charge;
    this.#charges.add(charge);
    this.#charge(inExcess, bytes);
    return charge;
  }

  /** Called by {@link Charge}. */
  released(charge: Charge): void {
    if (!this.#charges.delete(charge)) return;
    this.#charge(charge.inExcess, -charge.bytes);
    retryLater();
  }

  /** Adds bytes at each level; a negative number subtracts bytes. */
  #charge(inExcess: readonly boolean[], bytes: number): void {
    this.#held += bytes;
    for (const [n, level] of this.#levels.entries()) {
      if (inExcess[n]) level.inExcess[this.#class] = bytes > 0;
      else level.held += bytes;
    }
  }

  /** Called by {@link retryLater}. */
  retry(): boolean {
    const entered = this.#enterFirst();
    if (this.#waiting.length === 0) waiters.delete(this);
    return entered && this.#waiting.length > 0;
  }

  /** Stops admitting payloads. */
  close(): void {
    this.#waiting.drain();
    waiters.delete(this);
  }

  /** Stops admitting payloads and releases everything. */
  end(): void {
    this.close();
    this.#ended = true;
    for (const charge of this.#charges) charge.release();
  }
}

/** All bytes that one channel holds. */
export class Account {
  /** Large messages, until the program receives them. */
  readonly messages: Admission;
  /** Large requests, until their handlers have answered. */
  readonly requests: Admission;
  /** Large replies, while they are read. They never wait for the program. */
  readonly replies: Admission;
  /** Answers that wait for credits or have not been read by the peer. */
  readonly answers: Admission;
  #waiter: Waiter | undefined;

  /** @param owner - when it is garbage-collected, the account ends */
  constructor(budget: Budget, owner: object) {
    this.messages = new Admission(budget, Class.MESSAGES);
    this.requests = new Admission(budget, Class.REQUESTS);
    this.replies = new Admission(budget, Class.REPLIES);
    this.answers = new Admission(budget, Class.ANSWERS);
    collected.register(owner, this);
  }

  /** Calls `retry` whenever bytes were released, until it returns true. */
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

  /** Called when the connection has ended. Messages stay charged until the program receives them or the channel is garbage-collected. */
  close(): void {
    this.#forget();
    this.messages.close();
    for (const admission of [this.requests, this.replies, this.answers]) admission.end();
  }

  /** Releases everything. */
  end(): void {
    this.close();
    this.messages.end();
  }
}

const collected = new FinalizationRegistry<Account>((account) => account.end());
