/**
 * The requests of one work queue: what a completion's `wr_id` stands for. Its high word is the token of the queue's owner, its low word says
 * which queue, and where in it. A provider stores and returns it as it is.
 */

/** The lowest two bits of a `wr_id`. */
export const Queue = { SEND: 0, RECEIVE: 1, SHARED: 2, INVALIDATE: 3 } as const;

const positions = 2 ** 30;
const positionMask = positions - 1;

/** The low word of a `wr_id`. */
export function requestId(position: number, queue: number): number {
  return ((position << 2) | queue) >>> 0;
}

/** The position of a `wr_id`'s low word. */
export function positionOf(id: number): number {
  return id >>> 2;
}

/** Contexts of a queue whose requests complete in order; of unsignaled ones only a later completion tells. */
export class OrderedRequests {
  readonly #contexts: unknown[];
  /** A provider need not say how long a send was. */
  readonly #lengths: Float64Array;
  readonly #mask: number;
  #producer = 0;
  #consumer = 0;

  constructor(readonly depth: number) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(1, depth)));
    this.#mask = size - 1;
    this.#contexts = new Array<unknown>(size).fill(undefined);
    this.#lengths = new Float64Array(size);
  }

  get full(): boolean {
    return ((this.#producer - this.#consumer) & positionMask) >= this.depth;
  }

  /** The position of the next request. */
  get next(): number {
    return this.#producer;
  }

  /** The next request was posted. */
  posted(context: unknown, length: number): void {
    const slot = this.#producer & this.#mask;
    this.#contexts[slot] = context;
    this.#lengths[slot] = length;
    this.#producer = (this.#producer + 1) & positionMask;
  }

  /** Whether a request at this position is outstanding. One from before a reset is not. */
  has(position: number): boolean {
    return ((position - this.#consumer) & positionMask) < ((this.#producer - this.#consumer) & positionMask);
  }

  lengthOf(position: number): number {
    return this.#lengths[position & this.#mask]!;
  }

  /** It has completed, and all before it; answers its context. */
  take(position: number): unknown {
    const slot = position & this.#mask;
    const context = this.#contexts[slot];
    let consumer = this.#consumer;
    const end = (position + 1) & positionMask;
    while (consumer !== end) {
      this.#contexts[consumer & this.#mask] = undefined;
      consumer = (consumer + 1) & positionMask;
    }
    this.#consumer = end;
    return context;
  }

  /** None will complete any more. */
  clear(): void {
    this.#contexts.fill(undefined);
    this.#consumer = this.#producer;
  }
}

/** Contexts of a shared receive queue, whose receives complete in any order. */
export class SharedRequests {
  #contexts: unknown[] = [];
  #taken: boolean[] = [];
  readonly #free: number[] = [];
  #outstanding = 0;

  constructor(public depth: number) {}

  get full(): boolean {
    return this.#outstanding >= this.depth;
  }

  /** The position for the next receive. */
  get next(): number {
    const { length } = this.#free;
    return length > 0 ? this.#free[length - 1]! : this.#contexts.length;
  }

  posted(context: unknown): void {
    const position = this.#free.pop() ?? this.#contexts.length;
    this.#contexts[position] = context;
    this.#taken[position] = true;
    this.#outstanding++;
  }

  has(position: number): boolean {
    return this.#taken[position] === true;
  }

  take(position: number): unknown {
    const context = this.#contexts[position];
    this.#contexts[position] = undefined;
    this.#taken[position] = false;
    this.#free.push(position);
    this.#outstanding--;
    return context;
  }

  clear(): void {
    this.#contexts = [];
    this.#taken = [];
    this.#free.length = 0;
    this.#outstanding = 0;
  }
}
