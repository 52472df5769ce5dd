/** What a request was (ND2_REQUEST_TYPE); the HCA does not report it for failed ones. */
export const RequestType = { receive: 0, send: 1, bind: 2, invalidate: 3, read: 4, write: 5 } as const;

/** A value of {@link RequestType}. */
export type RequestType = (typeof RequestType)[keyof typeof RequestType];

/** What an Invalidate tells of its end: the window with the key it had then. */
export interface InvalidatedWindow {
  invalidated(key: number): void;
}

/** Whose records they are. */
export interface RecordOwner {
  /** The request has completed: its record is free. */
  done(record: RequestRecord): void;
}

/**
 * An outstanding request. Records are the contexts given to WinVerbs: those of the client need not be unique, so they
 * cannot tell requests apart.
 */
export class RequestRecord {
  /** The client's. */
  context: unknown = undefined;
  type: RequestType = RequestType.receive;
  /** Bytes of the scatter/gather list. */
  length = 0;
  /** The window of an Invalidate. */
  window: InvalidatedWindow | undefined = undefined;
  /** The window's key that it ends. */
  windowKey = 0;

  constructor(
    readonly owner: RecordOwner,
    readonly index: number,
  ) {}

  /** Forgets the request; an Invalidate has taken place, or its connection has ended. */
  clear(): void {
    this.context = undefined;
    if (this.window !== undefined) {
      if (this.type === RequestType.invalidate) this.window.invalidated(this.windowKey);
      this.window = undefined;
    }
  }
}

/**
 * The outstanding requests of one work queue, oldest first, in records that are made once. WinVerbs frees the place of
 * a silent request when a later one of the queue completes; so does this.
 */
export class RequestQueue implements RecordOwner {
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

  /** The record of a new request; undefined when all are in use. */
  take(context: unknown, type: RequestType, length: number): RequestRecord | undefined {
    if (this.#count === this.#records.length) return undefined;
    let index = this.#oldest + this.#count;
    if (index >= this.#records.length) index -= this.#records.length;
    const record = this.#records[index]!;
    this.#count += 1;
    record.context = context;
    record.type = type;
    record.length = length;
    return record;
  }

  /** Takes the newest request back: it was not queued. */
  undo(record: RequestRecord): void {
    this.#count -= 1;
    record.context = undefined;
    record.window = undefined;
  }

  /** Frees the record of a completed request, and those of silent requests before it. */
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
