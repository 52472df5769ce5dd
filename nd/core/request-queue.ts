import { Status } from '../../winverbs/index.js';
import { refuse } from '../status.js';

/** The kind of a request (ND2_REQUEST_TYPE); the HCA does not report it for failed requests. */
export const RequestType = { receive: 0, send: 1, bind: 2, invalidate: 3, read: 4, write: 5 } as const;

/** A value of {@link RequestType}. */
export type RequestType = (typeof RequestType)[keyof typeof RequestType];

/** Notifies a window that its Invalidate has completed, with the key that the window had at posting. */
export interface InvalidatedWindow {
  invalidated(key: number): void;
}

/** The owner of records. */
export interface RecordOwner {
  /** Frees the record of a completed request. */
  done(record: RequestRecord): void;
}

/**
 * An outstanding request. The record is the context for WinVerbs, because the client's contexts need not be unique and
 * so cannot identify requests.
 */
export class RequestRecord {
  /** The client's context. */
  context: unknown = undefined;
  type: RequestType = RequestType.receive;
  /** Total length of the scatter/gather list, in bytes. */
  length = 0;
  /** The window of an Invalidate. */
  window: InvalidatedWindow | undefined = undefined;
  /** The key that the Invalidate ends. */
  windowKey = 0;

  constructor(
    readonly owner: RecordOwner,
    readonly index: number,
  ) {}

  /** Clears the request after the Invalidate was executed or its connection has ended. */
  clear(): void {
    this.context = undefined;
    if (this.window !== undefined) {
      if (this.type === RequestType.invalidate) this.window.invalidated(this.windowKey);
      this.window = undefined;
    }
  }
}

/**
 * The outstanding requests of one work queue, oldest first, in reused records. As in WinVerbs, the slot of a silent
 * request is freed when a later request of the queue completes.
 */
export class RequestQueue implements RecordOwner {
  readonly #records: RequestRecord[] = [];
  #oldest = 0;
  #count = 0;

  constructor(depth: number) {
    for (let index = 0; index < depth; index += 1) this.#records.push(new RequestRecord(this, index));
  }

  /** Number of requests that have not completed, including silent ones. */
  get outstanding(): number {
    return this.#count;
  }

  /** Returns the record for a new request. Throws NO_MORE_ENTRIES if all are in use. */
  take(what: string, context: unknown, type: RequestType, length: number): RequestRecord {
    if (this.#count === this.#records.length) throw noEntries(what);
    let index = this.#oldest + this.#count;
    if (index >= this.#records.length) index -= this.#records.length;
    const record = this.#records[index]!;
    this.#count += 1;
    record.context = context;
    record.type = type;
    record.length = length;
    return record;
  }

  /** Removes the newest request, which was not queued. */
  undo(record: RequestRecord): void {
    this.#count -= 1;
    record.context = undefined;
    record.window = undefined;
  }

  /** Frees the record of a completed request, and those of earlier silent requests. */
  done(record: RequestRecord): void {
    while (this.#oldest !== record.index) this.#drop();
    this.#drop();
  }

  #drop(): void {
    const record = this.#records[this.#oldest]!;
    this.#oldest += 1;
    if (this.#oldest === this.#records.length) this.#oldest = 0;
    this.#count -= 1;
    record.clear();
  }
}

/** Records of Receives that complete in any order, because queue pairs consume them as messages arrive. */
export class RecordPool implements RecordOwner {
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

function noEntries(what: string): unknown {
  return refuse(
    Status.NO_MORE_ENTRIES,
    what,
    'All entries of the queue are in use. Take results from its completion queue first.',
  );
}
