import {
  type IND2Adapter,
  type IND2CompletionQueue,
  Nd2AdapterFlag,
  type Nd2Result,
  type Overlapped,
  Status,
} from '../../index.js';
import { uncaught } from '../base/emit.js';

/** Receives the results of a queue pair and is the queue pair's context. */
export interface ResultTaker {
  /** Called when a request has completed. */
  completed(result: Nd2Result): void;
  /** Called when a batch that contains results of this queue pair was delivered. */
  delivered(): void;
  /** Whether the current batch contains results of this queue pair. */
  touched: boolean;
}

/** Maximum results of one poll, and of one {@link Poller.drain}. */
const BATCH = 64;
const DRAINED = 4 * BATCH;

/** Number of polls within one turn of the event loop; a poll takes half a microsecond. More polls would delay other events. */
const POLLS = 8;

/** Minimum entries of the completion queue. */
const LEAST_ENTRIES = 256;
/** Entries of a completion queue that cannot be resized: enough for a hundred connections with the default options. */
const FIXED_ENTRIES = 32_768;

/**
 * Delivers the results of all connections of a local context. It polls in turns of the event loop while the provider recommends it
 * (`shouldPoll`), and otherwise waits for a notification. It has no timer. Without connections that keep the process alive it never polls,
 * because a scheduled turn would keep the process alive.
 */
export class Poller {
  readonly #queue: IND2CompletionQueue;
  readonly #most: number;
  readonly #results: Nd2Result[] = [];
  readonly #takers = new Set<ResultTaker>();
  /** Result takers with results in the current batch. */
  #touched: ResultTaker[] = [];
  /** Entries that connections may need. */
  #needed = 0;
  #armed: Overlapped<void> | undefined;
  #polling = false;
  #closed = false;
  /** Whether results are being delivered: a nested call would overwrite them. */
  #draining = false;
  /** Number of connections that keep the process alive. */
  #holders = 0;
  readonly #turn = (): void => this.#poll();

  constructor(
    adapter: IND2Adapter,
    private readonly failed: (error: unknown) => void,
  ) {
    const { maxCompletionQueueDepth, adapterFlags } = adapter.query();
    const grows = (adapterFlags & Nd2AdapterFlag.CQ_RESIZE_SUPPORTED) !== 0;
    this.#most = maxCompletionQueueDepth;
    this.#queue = adapter.createCompletionQueue(Math.min(grows ? LEAST_ENTRIES : FIXED_ENTRIES, this.#most));
  }

  /** The completion queue for queue pairs. */
  get queue(): IND2CompletionQueue {
    return this.#queue;
  }

  /** Makes room for the results of a connection. @throws NdError INVALID_PARAMETER (the adapter does not support so large a queue) */
  add(taker: ResultTaker, entries: number): void {
    const needed = this.#needed + entries;
    if (needed > this.#queue.entries) this.#queue.resize(Math.max(needed, Math.min(2 * needed, this.#most)));
    this.#needed = needed;
    this.#takers.add(taker);
    this.wake();
  }

  /** Called when the connection has ended and all its results were delivered. */
  remove(taker: ResultTaker, entries: number): void {
    if (this.#takers.delete(taker)) this.#needed -= entries;
    if (this.#takers.size === 0) this.#armed?.cancel();
  }

  /** Called when a request was posted that may complete or be answered soon. */
  wake(): void {
    if (this.#polling || this.#closed || this.#takers.size === 0) return;
    if (this.#holders === 0 || this.#queue.shouldPoll === undefined) {
      this.#sleep();
      return;
    }
    this.#polling = true;
    setImmediate(this.#turn);
  }

  /** Counts a connection that begins or ceases to keep the process alive. */
  hold(holds: boolean): void {
    this.#holders += holds ? 1 : -1;
    if (this.#holders === 0) this.#armed?.unref();
    else this.#armed?.ref();
  }

  /** Delivers completed results and returns their number; 0 if called during a delivery. */
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
   * Delivers all results, of every connection, that have completed so far, which may be more than one {@link drain} delivers. Results that
   * complete meanwhile do not prolong it: it stops after as many results as the queue has entries.
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
    if (total > 0) this.#notifyTakers();
    return total;
  }

  #notifyTakers(): void {
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

  /** Ends the poller permanently. */
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

  /** Polls in the next turn or sleeps. The last poll may have left results in the queue. */
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

  /** If results are already queued, the notification completes immediately. */
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
      this.failed(new Error(`The completion queue failed with status 0x${status.toString(16)}.`));
      return;
    }
    if (this.#polling) return;
    this.#polling = true;
    this.#next(this.drain() > 0);
  }
}
