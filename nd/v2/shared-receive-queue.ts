import { shown } from '../../kernel-bridge/ioctl/shown.js';
import {
  type IWVSharedReceiveQueue,
  Overlapped,
  Status,
  StatusError,
  type WvSrqEvent,
} from '../../winverbs/index.js';
import { isCount } from '../core/argument-checks.js';
import { NdOverlappedBase } from '../core/nd-object.js';
import { RecordPool } from '../core/request-queue.js';
import { ScatterGather } from '../core/scatter-gather.js';
import type { IND2SharedReceiveQueue, Nd2Affinity, Nd2Sge } from '../spi/v2.js';
import { refuse } from '../status.js';
import type { Adapter } from './adapter.js';
import { notifyAffinity } from './affinity.js';

/** A waiting Notify. */
interface Waiter {
  request: Overlapped<void> | undefined;
  /** The outcome of the Notify; undefined while it waits. */
  outcome: StatusError | 'done' | undefined;
}

/**
 * IND2SharedReceiveQueue over IWVSharedReceiveQueue, whose events differ from ND's: Modify arms them, they also report
 * queue pairs that have ended, and they are stored without a waiter. All Notify requests share one WinVerbs request.
 */
export class SharedReceiveQueue extends NdOverlappedBase implements IND2SharedReceiveQueue {
  protected get interfaces() {
    return ['IND2Overlapped', 'IND2SharedReceiveQueue'] as const;
  }

  readonly adapter: Adapter;
  readonly wv: IWVSharedReceiveQueue;
  readonly #pool = new RecordPool();
  readonly #sg: ScatterGather;
  #depth: number;
  #threshold: number;
  /** Waiting calls in the order of issue. */
  readonly #waiters = new Set<Waiter>();
  #watch: Overlapped<WvSrqEvent> | undefined;

  constructor(adapter: Adapter, wv: IWVSharedReceiveQueue, depth: number, threshold: number) {
    super();
    this.adapter = adapter;
    this.wv = wv;
    this.#depth = depth;
    this.#threshold = threshold;
    this.#sg = new ScatterGather(adapter.regions, adapter.maxTransfer);
    adapter.addChild(this);
  }

  getNotifyAffinity(): Nd2Affinity {
    this.alive('GetNotifyAffinity');
    return notifyAffinity('GetNotifyAffinity');
  }

  modify(depth: number, notifyThreshold: number): void {
    const what = 'Modify';
    this.alive(what);
    const { maxSrqWr } = this.adapter.limits;
    const newDepth = depth === 0 ? this.#depth : depth;
    const threshold = notifyThreshold === 0 ? this.#threshold : notifyThreshold;
    if (!isCount(newDepth, 1, maxSrqWr) || !isCount(threshold, 0, newDepth)) {
      throw refuse(
        Status.INVALID_PARAMETER,
        what,
        `\`depth\` must be 1 to ${maxSrqWr} and \`notifyThreshold\` at most that depth, or 0 to leave either unchanged; got ${shown(depth)} and ${shown(notifyThreshold)}.`,
      );
    }
    this.#arm(what, newDepth, this.#waiters.size > 0 ? threshold : 0);
    this.#depth = newDepth;
    this.#threshold = threshold;
  }

  notify(): Overlapped<void> {
    const what = 'Notify';
    this.alive(what);
    this.#processEvents();
    const waiter: Waiter = { outcome: undefined, request: undefined };
    const request = new Overlapped<void>({
      completed: () => {
        this.#processEvents();
        return waiter.outcome !== undefined;
      },
      take: () => {
        if (waiter.outcome instanceof StatusError) throw waiter.outcome;
      },
      wait: () => {
        while (waiter.outcome === undefined && this.#watch !== undefined) {
          try {
            this.#watch.getResult({ wait: true });
          } catch {
            // The call below handles the failure.
          }
          this.#processEvents();
        }
      },
      cancel: () => {
        this.#processEvents();
        this.#end(waiter, refuse(Status.CANCELED, what, 'The request was canceled.'));
        this.#unwatch();
      },
    });
    waiter.request = request;
    this.#waiters.add(waiter);
    try {
      this.#watchOn();
      if (this.#threshold > 0) this.#arm(what, this.#depth, this.#threshold);
    } catch (error) {
      this.#waiters.delete(waiter);
      this.#unwatch();
      throw this.adapter.terms.error(error, what);
    }
    return this.issued(request);
  }

  receive(context: unknown, sgl: readonly Nd2Sge[]): void {
    const what = 'Receive';
    this.alive(what);
    const sg = this.#sg;
    sg.translate(sgl, what);
    const record = this.#pool.take(context, sg.total);
    try {
      this.wv.postReceive(record, sg.list);
    } catch (error) {
      this.#pool.done(record);
      throw this.adapter.terms.error(error, what);
    }
  }

  cancelOverlappedRequests(): void {
    const what = 'CancelOverlappedRequests';
    this.alive(what);
    this.#cancelAll();
  }

  #cancelAll(): void {
    this.#processEvents();
    const canceled = refuse(Status.CANCELED, 'Notify', 'The request was canceled.');
    for (const waiter of this.#waiters) this.#end(waiter, canceled);
    this.#unwatch();
  }

  /**
   * Requests an event for fewer than `limit` Receives, which occurs immediately if there are already fewer. 0 requests
   * no event.
   */
  #arm(what: string, depth: number, limit: number): void {
    this.adapter.terms.call(what, () => this.wv.modify(depth, limit));
  }

  #watchOn(): void {
    if (this.#watch !== undefined) return;
    const watch = this.wv.notify();
    this.#watch = watch;
    const process = () => this.#processEvents();
    watch.then(process, process);
  }

  /** Cancels the WinVerbs request if no Notify waits. */
  #unwatch(): void {
    if (this.#waiters.size > 0) return;
    this.#watch?.cancel();
    this.#watch = undefined;
  }

  /** Processes completed requests. */
  #processEvents(): void {
    while (this.#watch?.completed === true) {
      const watch = this.#watch;
      this.#watch = undefined;
      if (this.#waiters.size === 0) return;
      let outcome: StatusError | 'done' | undefined;
      try {
        outcome = this.#isForNotify(watch.getResult()) ? 'done' : undefined;
        if (outcome === undefined) this.#watchOn();
      } catch (error) {
        outcome = this.adapter.terms.error(error as StatusError, 'Notify');
      }
      if (outcome !== undefined) for (const waiter of this.#waiters) this.#end(waiter, outcome);
    }
  }

  /** Whether ND waits for this event. An earlier event would leave the limit armed. */
  #isForNotify(event: WvSrqEvent): boolean {
    return event === 'limit' && this.wv.query().srqLimit === 0;
  }

  #end(waiter: Waiter, outcome: StatusError | 'done'): void {
    if (!this.#waiters.delete(waiter)) return;
    waiter.outcome = outcome;
    waiter.request?.settle();
  }

  protected override released(): void {
    this.#cancelAll();
  }

  protected end(): void {
    this.wv.release();
    this.adapter.removeChild(this);
  }
}
