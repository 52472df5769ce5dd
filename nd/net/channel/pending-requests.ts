/** Who waits for an answer. */
export interface Waiting {
  resolve(bytes: Buffer): void;
  reject(error: unknown): void;
}

/** The requests of this side that wait for their answers, by their ids. */
export class PendingRequests {
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;

  /** Requests that wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /** An id that no waiting request has. */
  nextId(): number {
    do this.#lastId = (this.#lastId + 1) >>> 0;
    while (this.#waiting.has(this.#lastId));
    return this.#lastId;
  }

  /** Somebody waits for the answer with this id. */
  has(id: number): boolean {
    return this.#waiting.has(id);
  }

  add(id: number, waiting: Waiting): void {
    this.#waiting.set(id, waiting);
  }

  /** The request with this id: nobody waits for it any more. */
  take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }

  /** None of them is answered any more. */
  reject(error: unknown): void {
    for (const waiting of this.#waiting.values()) waiting.reject(error);
    this.#waiting.clear();
  }
}
