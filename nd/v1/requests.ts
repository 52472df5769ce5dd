import type { WvCompletion } from '../../winverbs/index.js';
import { Status, WcStatus } from '../../winverbs/index.js';
import type { NdResult } from '../spi/v1.js';
import { v1CompletionStatus } from '../status.js';
import type { MemoryWindow } from './memory-window.js';

/** What a request was; the HCA does not report it for failed ones. */
export const RequestType = { receive: 0, transfer: 1, bind: 2, invalidate: 3 } as const;

/**
 * An outstanding request. Records are the contexts given to WinVerbs: results belong to the client, who may use one for
 * several requests, so they cannot tell requests apart.
 */
export class RequestRecord {
  result: NdResult | undefined;
  type: number = RequestType.transfer;
  /** Bytes of the scatter/gather list. */
  length = 0;
  /** The window of an Invalidate. */
  window: MemoryWindow | undefined;
  /** The window's key that it ends. */
  windowKey = 0;

  constructor(
    readonly queue: RequestQueue,
    readonly index: number,
  ) {}
}

/**
 * The outstanding requests of one work queue, oldest first, in records that are made once. WinVerbs frees the place of
 * a silent request when a later one of the queue completes; so does this.
 */
export class RequestQueue {
  readonly #records: RequestRecord[] = [];
  #oldest = 0;
  #count = 0;

  constructor(depth: number) {
    for (let index = 0; index < depth; index += 1) this.#records.push(new RequestRecord(this, index));
  }

  /** Requests that have not come back, the silent ones included that will not. */
  get outstanding(): number {
    return this.#count;
  }

  /**
   * The record of a new request. Undefined when all are in use, or without a result: its completion would fail in the
   * way of all others of its queue.
   */
  take(result: NdResult, type: number, length: number): RequestRecord | undefined {
    if (this.#count === this.#records.length || typeof result !== 'object' || result === null)
      return undefined;
    let index = this.#oldest + this.#count;
    if (index >= this.#records.length) index -= this.#records.length;
    const record = this.#records[index]!;
    this.#count += 1;
    record.result = result;
    record.type = type;
    record.length = length;
    return record;
  }

  /** Takes the newest request back: it was not queued. */
  undo(record: RequestRecord): void {
    this.#count -= 1;
    record.result = undefined;
    record.window = undefined;
  }

  /** Fills in the result of a completed request, and frees its record and those of silent requests before it. */
  complete(record: RequestRecord, completion: WvCompletion): NdResult {
    while (this.#oldest !== record.index) this.#drop();
    const result = record.result!;
    if (completion.status === WcStatus.SUCCESS) {
      result.status = Status.SUCCESS;
      result.bytesTransferred = record.type === RequestType.receive ? completion.length : record.length;
    } else {
      result.status = failureOf(record.type, completion.status);
      result.bytesTransferred = 0;
    }
    this.#drop();
    return result;
  }

  #drop(): void {
    const record = this.#records[this.#oldest]!;
    this.#oldest += 1;
    if (this.#oldest === this.#records.length) this.#oldest = 0;
    this.#count -= 1;
    record.result = undefined;
    if (record.window !== undefined) {
      if (record.type === RequestType.invalidate) record.window.invalidated(record.windowKey);
      record.window = undefined;
    }
  }
}

function failureOf(type: number, wcStatus: number): number {
  // The only thing an Invalidate can do wrong is to name a window that is not bound.
  if (type === RequestType.invalidate && wcStatus !== WcStatus.FLUSHED) return Status.INVALID_DEVICE_REQUEST;
  return v1CompletionStatus(wcStatus);
}
