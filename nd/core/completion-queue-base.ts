import { kindOf, shown } from '../../kernel-bridge/ioctl/shown.js';
import { Overlapped, Status, WcStatus, WvWc } from '../../winverbs/index.js';
import type { NdNotifyType } from '../spi/common-types.js';
import { refuse } from '../status.js';
import type { AdapterObject } from './adapter-object.js';
import { type CompletionBelow, POLL_BATCH, type QueueBelow } from './below.js';
import type { MemoryWindow } from './memory-window.js';
import { NdOverlappedBase } from './nd-object.js';
import { RequestRecord, RequestType } from './request-queue.js';

// V8 treats a module's own names as constants, but not imported ones (uvp/queue-pair.ts).
const BATCH = POLL_BATCH;
const { SUCCESS } = WcStatus;
const { INVALIDATED } = WvWc;

const notifyTypes: readonly NdNotifyType[] = ['any', 'solicited', 'errors'];

/** Base of INDCompletionQueue and IND2CompletionQueue, over the layer below; `R` is the type of results. */
export abstract class CompletionQueueBase<R, W extends QueueBelow = QueueBelow> extends NdOverlappedBase {
  readonly adapter: AdapterObject;
  readonly wv: W;
  readonly #batch: CompletionBelow[] = [];
  /** Results that did not fit into the caller's array, because a completion can produce two. */
  readonly #leftOver: R[] = [];
  #leftOverHead = 0;
  /** Whether results are being written. They are the client's objects, and their setters may call anything. */
  #writing = false;

  constructor(adapter: AdapterObject, wv: W) {
    super();
    this.adapter = adapter;
    this.wv = wv;
    adapter.addChild(this);
  }

  /** The name of the number of entries in this version. */
  protected abstract readonly sizeName: 'entries' | 'depth';

  get entries(): number {
    return this.wv.entries;
  }

  resize(entries: number): void {
    const what = 'Resize';
    this.alive(what);
    this.adapter.checkCqEntries(entries, what, Status.INVALID_PARAMETER, this.sizeName);
    const waiting = this.wv.peek();
    if (entries < waiting) {
      throw refuse(
        Status.BUFFER_OVERFLOW,
        what,
        `\`${this.sizeName}\` must be at least the ${waiting} waiting completions; got ${shown(entries)}. Take results first.`,
      );
    }
    this.adapter.terms.call(what, () => this.wv.resize(entries));
  }

  notify(type: NdNotifyType): Overlapped<void> {
    const what = 'Notify';
    this.alive(what);
    const { terms } = this.adapter;
    if (!notifyTypes.includes(type)) {
      throw refuse(
        Status.INVALID_PARAMETER,
        what,
        `\`type\` must be 'any', 'solicited' or 'errors'; got ${shown(type)}.`,
      );
    }
    // A result that did not fit is an event that has not been reported yet.
    if (this.#leftOver.length > 0 && type === 'any') return this.issued(Overlapped.succeeded(undefined));
    return this.issued(
      terms
        .call(what, () => this.wv.notify(type))
        .map(
          (value) => value,
          (error) => terms.error(error, what),
        ),
    );
  }

  getResults(results: R[], max?: number): number {
    if (!Array.isArray(results)) throw noArray(results);
    // A nested call would take completions after those of the running call, free their records too early
    // (RequestQueue.done), and overwrite the batch.
    if (this.#writing) return 0;
    const most = max ?? Math.max(results.length, 1);
    if (!(Number.isInteger(most) && most >= 0 && most <= 0xffff_ffff)) throw noCount(most);
    let count = this.#leftOver.length > 0 ? this.#takeLeftOver(results, most) : 0;
    if (this.ended) return count;
    while (count < most) {
      const wanted = Math.min(most - count, BATCH);
      let taken: number;
      try {
        taken = this.wv.poll(this.#batch, wanted);
      } catch {
        // The queue has overrun or its device is gone, which Notify reports. The waiting completions have already been
        // returned.
        break;
      }
      if (taken === 0) break;
      count = this.#write(results, count, most, taken);
      if (taken < wanted || this.#leftOver.length > 0) break;
    }
    return count;
  }

  /** Writes the batch after the first `count` results; returns their new number. */
  #write(results: R[], count: number, most: number, taken: number): number {
    let written = count;
    /** Index of the first completion whose outcome has not been stored. */
    let i = 0;
    this.#writing = true;
    try {
      for (; i < taken; i += 1) {
        const completion = this.#batch[i]!;
        const record = completion.context;
        if (!(record instanceof RequestRecord)) continue;
        this.put(results, written, record, completion);
        record.owner.done(record);
        written += 1;
        if (completion.status === SUCCESS && (completion.flags & INVALIDATED) !== 0) {
          const result = this.#peerInvalidated(completion.immediateData);
          if (result === undefined) continue;
          // The rest of the batch already has slots.
          if (written + (taken - 1 - i) < most && setAt(results, written, result)) written += 1;
          else this.#leftOver.push(result);
        }
      }
    } catch {
      for (; i < taken; i += 1) this.#keep(this.#batch[i]!);
      // Returns the number of results written; the others are kept for the next call.
      if (written === 0) throw unwritable();
    } finally {
      this.#writing = false;
    }
    return written;
  }

  /** Keeps the outcome of a completion for another array. */
  #keep(completion: CompletionBelow): void {
    const record = completion.context;
    if (!(record instanceof RequestRecord)) return;
    this.#leftOver.push(this.newResult(record, completion));
    record.owner.done(record);
    if (completion.status !== SUCCESS || (completion.flags & INVALIDATED) === 0) return;
    const result = this.#peerInvalidated(completion.immediateData);
    if (result !== undefined) this.#leftOver.push(result);
  }

  #takeLeftOver(results: R[], max: number): number {
    const leftOver = this.#leftOver;
    let count = 0;
    while (this.#leftOverHead < leftOver.length && count < max) {
      if (!setAt(results, count, leftOver[this.#leftOverHead]!)) {
        if (count === 0) throw unwritable();
        return count;
      }
      this.#leftOverHead += 1;
      count += 1;
    }
    if (this.#leftOverHead === leftOver.length) {
      leftOver.length = 0;
      this.#leftOverHead = 0;
    }
    return count;
  }

  cancelOverlappedRequests(): void {
    const what = 'CancelOverlappedRequests';
    this.alive(what);
    this.adapter.terms.call(what, () => this.wv.cancelOverlappedRequests());
  }

  /** Returns the outcome of a request as a new object. */
  protected abstract newResult(record: RequestRecord, completion: CompletionBelow): R;

  /** Writes the outcome of a request into `results` at `index`. Throws if the array cannot be written. */
  protected abstract put(
    results: R[],
    index: number,
    record: RequestRecord,
    completion: CompletionBelow,
  ): void;

  /** Returns the result for a window that the peer has invalidated, if it has one. */
  protected resultOf(_window: MemoryWindow): R | undefined {
    return undefined;
  }

  /** Returns the status of a failed request's result. */
  protected failureOf(type: RequestType, wcStatus: number): number {
    // An Invalidate can fail only for a window that is not bound.
    if (type === RequestType.invalidate && wcStatus !== WcStatus.FLUSHED) {
      return Status.INVALID_DEVICE_REQUEST;
    }
    return this.adapter.terms.completion(wcStatus);
  }

  #peerInvalidated(key: number): R | undefined {
    const window = this.adapter.windows.get(key);
    if (window === undefined) return undefined;
    window.invalidated(key);
    return this.resultOf(window);
  }

  protected override released(): void {
    // Queue pairs keep the queue alive, but no client is left to notify.
    try {
      this.wv.cancelOverlappedRequests();
    } catch {
      // The device is gone, so its notifications have ended.
    }
  }

  protected end(): void {
    this.wv.release();
    this.adapter.removeChild(this);
  }
}

/** Returns false if the array is frozen, or sealed and too short. */
function setAt<T>(array: T[], index: number, value: T): boolean {
  try {
    array[index] = value;
    return true;
  } catch {
    return false;
  }
}

function unwritable(): unknown {
  return refuse(
    Status.INVALID_PARAMETER,
    'GetResults',
    '`results` must be writable; got an array that is frozen or of fixed length. Pass another array to get these results.',
  );
}

function noArray(value: unknown): unknown {
  return refuse(
    Status.INVALID_PARAMETER,
    'GetResults',
    `\`results\` must be an array; got ${kindOf(value)}. Pass the maximum number of results as \`max\`.`,
  );
}

function noCount(value: unknown): unknown {
  return refuse(
    Status.INVALID_PARAMETER,
    'GetResults',
    `\`max\` must be an integer from 0 to 4294967295; got ${shown(value)}.`,
  );
}
