import type { IWVSharedReceiveQueue, WvSrqEvent } from '../../winverbs/index.js';
import { Overlapped, Status, StatusError } from '../../winverbs/index.js';
import { isCount } from '../core/limits.js';
import { NdOverlappedBase } from '../core/object.js';
import { plainRefused } from '../core/queue-pair.js';
import { type RecordOwner, RequestRecord, RequestType } from '../core/requests.js';
import { ScatterGather } from '../core/scatter-gather.js';
import type { IND2SharedReceiveQueue, Nd2Affinity, Nd2Sge } from '../spi/v2.js';
import { refuse } from '../status.js';
import type { Adapter } from './adapter.js';
import { noAffinity } from './affinity.js';

/** Records of Receives that come back in any order: queue pairs take them as their messages come. */
class RecordPool implements RecordOwner {
  readonly #free: RequestRecord[] = [];
  #made = 0;

  take(context: unknown, length: number): RequestRecord {
    let record = this.#free.pop();
    if (record === undefined) {
      record = new RequestRecord(this, this.#made);
      this.#made += 1;
    }
    record.context = context;
    record.type = RequestType.receive;
    record.length = length;
    return record;
  }

  done(record: RequestRecord): void {
    record.clear();
    this.#free.push(record);
  }
}

/** A Notify that waits. */
interface Waiter {
  request: Overlapped<void> | undefined;
  /** How it ended. */
  outcome: StatusError | 'done' | undefined;
}

/**
 * IND2SharedReceiveQueue over IWVSharedReceiveQueue, whose events are other than ND's: they are armed by Modify, tell of
 * queue pairs that have ended too, and are kept while nobody waits. All Notify requests wait behind one of WinVerbs.
 */
export class SharedReceiveQueue extends NdOverlappedBase implements IND2SharedReceiveQueue {
  readonly adapter: Adapter;
  readonly wv: IWVSharedReceiveQueue;
  readonly #pool = new RecordPool();
  readonly #sg: ScatterGather;
  #depth: number;
  #threshold: number;
  /** In the order they were issued. */
  readonly #waiters = new Set<Waiter>();
  #watch: Overlapped<WvSrqEvent> | undefined;

  constructor(adapter: Adapter, wv: IWVSharedReceiveQueue, depth: number, threshold: number) {
    super();
    this.adapter = adapter;
    this.wv = wv;
    this.#depth = depth;
    this.#threshold = threshold;
    this.#sg = new ScatterGather(adapter);
    adapter.hold();
  }

  getNotifyAffinity(): Nd2Affinity {
    this.alive('GetNotifyAffinity');
    throw noAffinity();
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
        `Depth ${depth} and threshold ${notifyThreshold}: a depth is 1 to ${maxSrqWr}, a threshold not above it, and 0 leaves either as it is.`,
      );
    }
    this.#arm(what, newDepth, this.#waiters.size > 0 ? threshold : 0);
    this.#depth = newDepth;
    this.#threshold = threshold;
  }

  notify(): Overlapped<void> {
    const what = 'Notify';
    this.alive(what);
    this.#look();
    const waiter: Waiter = { outcome: undefined, request: undefined };
    const request = new Overlapped<void>({
      completed: () => {
        this.#look();
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
            // It is looked at below.
          }
          this.#look();
        }
      },
      cancel: () => {
        this.#look();
        this.#end(waiter, refuse(Status.CANCELED, what, 'The notification was cancelled.'));
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
    return request;
  }

  receive(context: unknown, sgl: readonly Nd2Sge[]): void {
    const what = 'Receive';
    this.alive(what);
    const sg = this.#sg;
    sg.translate(sgl, what);
    if (sg.plain) throw plainRefused(what);
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
    this.#look();
    const canceled = refuse(Status.CANCELED, 'Notify', 'The notification was cancelled.');
    for (const waiter of this.#waiters) this.#end(waiter, canceled);
    this.#unwatch();
  }

  /** Asks for an event below `limit`, at once if there are fewer already; 0 asks for none. */
  #arm(what: string, depth: number, limit: number): void {
    this.adapter.terms.call(what, () => this.wv.modify(depth, limit));
  }

  #watchOn(): void {
    if (this.#watch !== undefined) return;
    const watch = this.wv.notify();
    this.#watch = watch;
    const look = () => this.#look();
    watch.then(look, look);
  }

  /** Nobody waits: WinVerbs need not either. */
  #unwatch(): void {
    if (this.#waiters.size > 0) return;
    this.#watch?.cancel();
    this.#watch = undefined;
  }

  /** Follows what has happened by now. */
  #look(): void {
    while (this.#watch?.completed === true) {
      const watch = this.#watch;
      this.#watch = undefined;
      if (this.#waiters.size === 0) return;
      let outcome: StatusError | 'done' | undefined;
      try {
        outcome = this.#tells(watch.getResult()) ? 'done' : undefined;
        if (outcome === undefined) this.#watchOn();
      } catch (error) {
        outcome = this.adapter.terms.error(error as StatusError, 'Notify');
      }
      if (outcome !== undefined) for (const waiter of this.#waiters) this.#end(waiter, outcome);
    }
  }

  /** Whether the event is what ND waits for, and not one from before, which would leave the limit armed. */
  #tells(event: WvSrqEvent): boolean {
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
    this.adapter.letGo();
  }
}
