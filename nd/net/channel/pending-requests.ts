/** The functions that settle a pending request. */
export interface Waiting {
  resolve(bytes: Buffer): void;
  reject(error: unknown): void;
}

/** Requests of this side without an answer, by id. */
export class PendingRequests {
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;

  /** Number of pending requests. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Returns an id that no pending request has. */
  nextId(): number {
    do this.#lastId = (this.#lastId + 1) >>> 0;
    while (this.#waiting.has(this.#lastId));
    return this.#lastId;
  }

  /** Whether a request with this id is pending. */
  has(id: number): boolean {
    return this.#waiting.has(id);
  }

  add(id: number, waiting: Waiting): void {
    this.#waiting.set(id, waiting);
  }

  /** Removes and returns the request with this id. */
  take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }

  /** Rejects all pending requests. */
  reject(error: unknown): void {
    for (const waiting of this.#waiting.values()) waiting.reject(error);
    this.#waiting.clear();
  }
}
