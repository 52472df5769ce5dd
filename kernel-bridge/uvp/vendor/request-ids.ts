/**
 * The requests of a work queue, identified by the `wr_id` of their completions. Its high word is the token of the queue's owner. Its low word
 * contains the kind of queue and the position in it. A provider stores and returns it unchanged.
 */

/** The kind of queue, in the lowest two bits of a `wr_id`. */
export const Queue = { SEND: 0, RECEIVE: 1, SHARED: 2, INVALIDATE: 3 } as const;

const positions = 2 ** 30;
const positionMask = positions - 1;

/** Creates the low word of a `wr_id`. */
export function requestId(position: number, queue: number): number {
  return ((position << 2) | queue) >>> 0;
}

/** Returns the position in the low word of a `wr_id`. */
export function positionOf(id: number): number {
  return id >>> 2;
}

/** Contexts of a queue whose requests complete in order. A completion also completes the unsignaled requests before it. */
export class OrderedRequests {
  readonly #contexts: unknown[];
  /** Lengths of the requests, because a provider need not report them for sends. */
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

  /** Records that the next request was posted. */
  posted(context: unknown, length: number): void {
    const slot = this.#producer & this.#mask;
    this.#contexts[slot] = context;
    this.#lengths[slot] = length;
    this.#producer = (this.#producer + 1) & positionMask;
  }

  /** Whether the request at a position is outstanding. Requests from before a reset are not. */
  has(position: number): boolean {
    return ((position - this.#consumer) & positionMask) < ((this.#producer - this.#consumer) & positionMask);
  }

  lengthOf(position: number): number {
    return this.#lengths[position & this.#mask]!;
  }

  /** Removes a completed request and all before it. Returns its context. */
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

  /** Removes all requests, because none will complete. */
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
