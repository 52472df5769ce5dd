import type { IWVCompletionQueue, WvCompletion } from '../../winverbs/index.js';
import { Overlapped, Status, WcStatus, WvWc } from '../../winverbs/index.js';
import type { INDCompletionQueue, NdNotifyType, NdResult } from '../spi/v1.js';
import { refuse, v1Call, v1Error } from '../status.js';
import type { Adapter } from './adapter.js';
import { NdOverlappedBase } from './object.js';
import { RequestRecord } from './requests.js';

/** Completions taken from WinVerbs at once. */
const BATCH = 32;

const notifyTypes: Readonly<Record<NdNotifyType, 'any' | 'solicited' | 'error'>> = {
  any: 'any',
  solicited: 'solicited',
  errors: 'error',
};

/** INDCompletionQueue over IWVCompletionQueue. */
export class CompletionQueue extends NdOverlappedBase implements INDCompletionQueue {
  readonly adapter: Adapter;
  readonly wv: IWVCompletionQueue;
  readonly #batch: WvCompletion[] = [];
  /** Results that did not fit the array of the call that found them: one completion can mean two. */
  readonly #leftOver: NdResult[] = [];
  #leftOverHead = 0;

  constructor(adapter: Adapter, wv: IWVCompletionQueue) {
    super();
    this.adapter = adapter;
    this.wv = wv;
    adapter.hold();
  }

  get entries(): number {
    return this.wv.entries;
  }

  resize(entries: number): void {
    const what = 'Resize';
    this.alive(what);
    this.adapter.checkCqEntries(entries, what);
    const waiting = this.wv.peek();
    if (entries < waiting) {
      throw refuse(
        Status.BUFFER_OVERFLOW,
        what,
        `${waiting} completions wait in the queue; ${entries} entries would not hold them. Take results first.`,
      );
    }
    v1Call(what, () => this.wv.resize(entries));
  }

  notify(type: NdNotifyType): Overlapped<void> {
    const what = 'Notify';
    this.alive(what);
    const wvType = Object.hasOwn(notifyTypes, type) ? notifyTypes[type] : undefined;
    if (wvType === undefined) {
      throw refuse(
        Status.INVALID_PARAMETER,
        what,
        `'${String(type)}' is no event of a completion queue; 'any', 'solicited' and 'errors' are.`,
      );
    }
    // A result that found no room is an event that nobody has seen.
    if (this.#leftOver.length > 0 && type === 'any') return Overlapped.succeeded(undefined);
    return v1Call(what, () => this.wv.notify(wvType)).map(
      (value) => value,
      (error) => v1Error(error, what),
    );
  }

  getResults(results: NdResult[], max: number = Math.max(results.length, 1)): number {
    let count = 0;
    while (this.#leftOverHead < this.#leftOver.length && count < max) {
      results[count] = this.#leftOver[this.#leftOverHead]!;
      this.#leftOverHead += 1;
      count += 1;
    }
    if (this.#leftOverHead === this.#leftOver.length && this.#leftOverHead > 0) {
      this.#leftOver.length = 0;
      this.#leftOverHead = 0;
    }
    if (this.ended) return count;
    while (count < max) {
      const asked = Math.min(max - count, BATCH);
      let taken: number;
      try {
        taken = this.wv.poll(this.#batch, asked);
      } catch {
        // The queue overran or its device is gone. Notify tells; what was there has been taken.
        break;
      }
      for (let i = 0; i < taken; i += 1) {
        const completion = this.#batch[i]!;
        const record = completion.context;
        if (!(record instanceof RequestRecord)) continue;
        results[count] = record.queue.complete(record, completion);
        count += 1;
        if (completion.status === WcStatus.SUCCESS && (completion.flags & WvWc.INVALIDATED) !== 0) {
          const result = this.#invalidatedByPeer(completion.immediateData);
          if (result === undefined) continue;
          // The rest of the batch has its places already.
          if (count + (taken - 1 - i) < max) {
            results[count] = result;
            count += 1;
          } else {
            this.#leftOver.push(result);
          }
        }
      }
      if (taken < asked) break;
    }
    return count;
  }

  cancelOverlappedRequests(): void {
    this.alive('CancelOverlappedRequests');
    v1Call('CancelOverlappedRequests', () => this.wv.cancelOverlappedRequests());
  }

  #invalidatedByPeer(key: number): NdResult | undefined {
    const window = this.adapter.windows.get(key);
    if (window === undefined) return undefined;
    window.invalidated(key);
    const result = window.invalidateResult;
    if (result !== undefined) {
      result.status = Status.SUCCESS;
      result.bytesTransferred = 0;
    }
    return result;
  }

  protected override released(): void {
    // Endpoints keep the queue, but nobody is left to be notified.
    try {
      this.wv.cancelOverlappedRequests();
    } catch {
      // The device is gone, and the notifications with it.
    }
  }

  protected end(): void {
    this.wv.release();
    this.adapter.letGo();
  }
}
