import {
  type IND2Adapter,
  type IND2CompletionQueue,
  type Nd2Result,
  type Overlapped,
  Status,
} from '../../index.js';
import { uncaught } from '../base/emit.js';

/** Takes the results of a queue pair; it is the queue pair's context. */
export interface ResultTaker {
  /** A request has ended. */
  completed(result: Nd2Result): void;
  /** A batch of results, some of them of this queue pair, was delivered. */
  delivered(): void;
  /** The batch under way has results of this queue pair. */
  touched: boolean;
}

/** Results taken at a time, and by one {@link Poller.drain}. */
const BATCH = 64;
const DRAINED = 4 * BATCH;

/** Polls within one turn of the event loop, half a microsecond each: with more of them other events wait. */
const POLLS = 8;

/** The least entries of the completion queue. */
const LEAST_ENTRIES = 256;

/**
 * Delivers the results of all connections of a local context. It polls in turns of the event loop while the provider says that this pays
 * (`shouldPoll`), and waits by notification otherwise. It has no timer. Without connections that keep the process alive it never polls: a turn
 * that is due would keep it alive.
 */
export class Poller {
  readonly #queue: IND2CompletionQueue;
  readonly #most: number;
  readonly #results: Nd2Result[] = [];
  readonly #takers = new Set<ResultTaker>();
  /** Those with results in the batch under way. */
  #touched: ResultTaker[] = [];
  /** Entries that connections may need. */
  #needed = 0;
  #armed: Overlapped<void> | undefined;
  #polling = false;
  #closed = false;
  /** Results are being delivered: a call from within would overwrite them. */
  #draining = false;
  /** Connections that keep the process alive. */
  #holders = 0;
  readonly #turn = (): void => this.#poll();

  constructor(
    adapter: IND2Adapter,
    private readonly failed: (error: unknown) => void,
  ) {
    this.#most = adapter.query().maxCompletionQueueDepth;
    this.#queue = adapter.createCompletionQueue(Math.min(LEAST_ENTRIES, this.#most));
  }

  /** For queue pairs. */
  get queue(): IND2CompletionQueue {
    return this.#queue;
  }

  /** Makes room for the results of a connection. @throws NdError INVALID_PARAMETER: the adapter has no larger queue */
  add(taker: ResultTaker, entries: number): void {
    const needed = this.#needed + entries;
    if (needed > this.#queue.entries) this.#queue.resize(Math.max(needed, Math.min(2 * needed, this.#most)));
    this.#needed = needed;
    this.#takers.add(taker);
    this.wake();
  }

  /** The connection has ended, and all its results were delivered. */
  remove(taker: ResultTaker, entries: number): void {
    if (this.#takers.delete(taker)) this.#needed -= entries;
    if (this.#takers.size === 0) this.#armed?.cancel();
  }

  /** Something was posted whose result, or whose answer, may come soon. */
  wake(): void {
    if (this.#polling || this.#closed || this.#takers.size === 0) return;
    if (this.#holders === 0 || this.#queue.shouldPoll === undefined) {
      this.#sleep();
      return;
    }
    this.#polling = true;
    setImmediate(this.#turn);
  }

  /** One connection more, or one less, keeps the process alive. */
  hold(holds: boolean): void {
    this.#holders += holds ? 1 : -1;
    if (this.#holders === 0) this.#armed?.unref();
    else this.#armed?.ref();
  }

  /** Delivers what has completed, and returns the number of results; 0 within a delivery. */
  drain(): number {
    if (this.#draining || this.#closed) return 0;
    this.#draining = true;
    try {
      return this.#deliver();
    } finally {
      this.#draining = false;
    }
  }

  /**
   * Delivers all that has completed by now, of every connection, which may be more than one {@link drain} takes. What others complete
   * meanwhile does not prolong it: it ends after as many results as the queue has entries.
   */
  drainAll(): void {
    for (let left = this.#queue.entries; left > 0; ) {
      const count = this.drain();
      if (count === 0) return;
      left -= count;
    }
  }

  #deliver(): number {
    let total = 0;
    for (;;) {
      const count = this.#queue.getResults(this.#results, BATCH);
      for (let i = 0; i < count; i += 1) {
        const result = this.#results[i]!;
        const taker = result.queuePairContext as ResultTaker;
        if (!taker.touched) {
          taker.touched = true;
          this.#touched.push(taker);
        }
        try {
          taker.completed(result);
        } catch (error) {
          uncaught(error);
        }
      }
      total += count;
      if (count < BATCH || total >= DRAINED) break;
    }
    if (total > 0) this.#tell();
    return total;
  }

  #tell(): void {
    const touched = this.#touched;
    for (let i = 0; i < touched.length; i += 1) {
      const taker = touched[i]!;
      try {
        taker.delivered();
      } catch (error) {
        uncaught(error);
      }
      taker.touched = false;
    }
    touched.length = 0;
  }

  /** Ends for good. */
  close(): void {
    this.#closed = true;
    this.#armed?.cancel();
    this.#queue.release();
  }

  #poll(): void {
    if (this.#closed || this.#takers.size === 0) {
      this.#polling = false;
      return;
    }
    let more = false;
    let count = 0;
    for (let polls = 0; polls < POLLS; polls += 1) {
      more = this.#queue.shouldPoll?.() === true;
      count = this.drain();
      if (count > 0 || !more) break;
    }
    this.#next(count > 0 || more);
  }

  /** Polls in the next turn, or sleeps. What the last poll has taken may not have been all. */
  #next(more: boolean): void {
    if (more && this.#holders > 0) setImmediate(this.#turn);
    else this.#sleep();
  }

  #sleep(): void {
    this.#polling = false;
    if (this.#closed || this.#takers.size === 0) return;
    try {
      this.#armed ??= this.#arm();
    } catch (error) {
      this.failed(error);
    }
  }

  /** What has completed before ends the notification at once. */
  #arm(): Overlapped<void> {
    const armed = this.#queue.notify('any');
    if (this.#holders === 0) armed.unref();
    armed.then(
      () => this.#notified(),
      () => this.#notified(armed.status),
    );
    return armed;
  }

  #notified(status: number = Status.SUCCESS): void {
    this.#armed = undefined;
    if (this.#closed) return;
    if (status !== Status.SUCCESS && status !== Status.CANCELED) {
      this.failed(new Error(`The completion queue has failed: status 0x${status.toString(16)}.`));
      return;
    }
    if (this.#polling) return;
    this.#polling = true;
    this.#next(this.drain() > 0);
  }
}
