import { aborted, refusalBy } from '../base/errors.js';
import { Fifo, type Member } from '../base/fifo.js';
import type { Link, Slot } from '../connection/link.js';
import { type Pieces, takePayload } from './pieces.js';

/** A message that was received or whose bytes are being read. */
export interface Arrival {
  /** The link on which it arrived, if it is in a slot. */
  readonly link: Link | undefined;
  readonly slot: Slot | undefined;
  readonly at: number;
  readonly length: number;
  /** The message's earlier pieces, in other slots. */
  readonly before: Pieces | undefined;
  bytes: Buffer | undefined;
  /** Called when the message was received by the program. */
  taken: (() => void) | undefined;
}

interface Taker {
  resolve(bytes: Buffer | undefined): void;
  reject(error: unknown): void;
}

/** Messages that the program has not received. The messages stay in their slots, which stops the sender when its credits run out. */
export class Inbox {
  readonly #arrivals = new Fifo<Arrival>();
  readonly #takers = new Fifo<Taker>();
  #ended = false;
  #error: unknown;

  /** Number of waiting messages. */
  get length(): number {
    return this.#arrivals.length;
  }

  /** Whether a call of {@link take} waits for a message. */
  get awaited(): boolean {
    return this.#takers.length > 0;
  }

  /** Adds a message in a slot. */
  put(link: Link, slot: Slot, at: number, length: number, before: Pieces | undefined): void {
    if (this.#arrivals.length === 0 && this.#takers.length > 0) {
      this.#takers.shift()!.resolve(takePayload(link, slot, at, length, before));
      return;
    }
    this.#arrivals.push({ link, slot, at, length, before, bytes: undefined, taken: undefined });
  }

  /** Reserves the position of a message whose bytes arrive later. */
  reserve(): Arrival {
    const arrival: Arrival = {
      link: undefined,
      slot: undefined,
      at: 0,
      length: 0,
      before: undefined,
      bytes: undefined,
      taken: undefined,
    };
    this.#arrivals.push(arrival);
    return arrival;
  }

  /** Fills a reserved position. `taken` is called when the program has received the message. */
  fill(arrival: Arrival, bytes: Buffer, taken: () => void): void {
    arrival.bytes = bytes;
    arrival.taken = taken;
    this.#pump();
  }

  /** Removes and returns the next message; undefined after the end. */
  take(signal: AbortSignal | undefined): Promise<Buffer | undefined> {
    const refusal = refusalBy(signal);
    if (refusal !== undefined) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      const taker: Taker = { resolve, reject };
      const member = this.#takers.push(taker);
      if (signal !== undefined) this.#abortable(member, signal);
      this.#pump();
    });
  }

  #abortable(member: Member<Taker>, signal: AbortSignal): void {
    const taker = member.value;
    const { resolve, reject } = taker;
    const onAbort = (): void => {
      this.#takers.remove(member);
      reject(aborted(signal));
    };
    signal.addEventListener('abort', onAbort, { once: true });
    taker.resolve = (bytes) => {
      signal.removeEventListener('abort', onAbort);
      resolve(bytes);
    };
    taker.reject = (error) => {
      signal.removeEventListener('abort', onAbort);
      reject(error);
    };
  }

  #pump(): void {
    while (this.#takers.length > 0 && this.#arrivals.length > 0) {
      const { link, slot, at, length, before, bytes, taken } = this.#arrivals.first!;
      if (slot === undefined && bytes === undefined) break;
      this.#arrivals.shift();
      this.#takers.shift()!.resolve(bytes ?? takePayload(link!, slot!, at, length, before));
      taken?.();
    }
    this.#drop();
  }

  /** Resolves calls that wait for messages which will not arrive. */
  #drop(): void {
    if (!this.#ended) return;
    const head = this.#arrivals.first;
    if (head !== undefined && (head.slot !== undefined || head.bytes !== undefined)) return;
    if (head !== undefined && this.#error === undefined) return;
    for (const taker of this.#takers.drain()) {
      if (this.#error === undefined) taker.resolve(undefined);
      else taker.reject(this.#error);
    }
  }

  /** Ends the inbox. Messages that have arrived can still be received. */
  end(error: unknown): void {
    if (!this.#ended) {
      this.#ended = true;
      this.#error = error;
    }
    this.#pump();
  }
}
