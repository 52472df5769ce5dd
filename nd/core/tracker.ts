import { type Overlapped, StatusError } from '../../winverbs/index.js';

/** The overlapped requests that an object's state depends on, in the order they were issued. */
export class RequestTracker {
  readonly #outstanding = new Set<Overlapped<unknown>>();

  /**
   * A request in ND terms. The functions run once, when anyone observes its outcome or {@link settle} does.
   * `onFailure` answers the error that the request ends in, or a value if in ND terms it has succeeded.
   */
  track<T, U>(
    request: Overlapped<T>,
    onSuccess: (value: T) => U,
    onFailure: (error: StatusError) => StatusError | U,
  ): Overlapped<U> {
    // Not map(): a failure of the layer below can be a success here.
    const tracked: Overlapped<U> = request.derive(
      (value) => {
        this.#outstanding.delete(tracked);
        return onSuccess(value);
      },
      (error) => {
        this.#outstanding.delete(tracked);
        const outcome = onFailure(error);
        if (outcome instanceof StatusError) throw outcome;
        return outcome;
      },
    );
    this.#outstanding.add(tracked);
    return tracked;
  }

  /** Cancels what is outstanding; each request still completes by itself. */
  cancel(): void {
    for (const request of this.#outstanding) request.cancel();
  }

  /** Cancels what is outstanding, and blocks until all of it has completed. */
  cancelAndWait(): void {
    for (const request of [...this.#outstanding]) request.cancel();
    for (const request of [...this.#outstanding]) {
      try {
        request.getResult({ wait: true });
      } catch {
        // It has told its owner.
      }
    }
  }

  /** Lets the object's state follow what has completed, without the event loop. */
  settle(): void {
    for (const request of this.#outstanding) request.settle();
  }
}
