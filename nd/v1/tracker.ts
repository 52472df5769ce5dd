import type { Overlapped, StatusError } from '../../winverbs/index.js';

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
    const tracked: Overlapped<U> = request.map<U>(
      (value) => {
        this.#outstanding.delete(tracked);
        return onSuccess(value);
      },
      (error) => {
        this.#outstanding.delete(tracked);
        return onFailure(error);
      },
    );
    this.#outstanding.add(tracked);
    return tracked;
  }

  /** Cancels what is outstanding; each request still completes by itself. */
  cancel(): void {
    for (const request of this.#outstanding) request.cancel();
  }

  /** Lets the object's state follow what has completed, without the event loop. */
  settle(): void {
    for (const request of this.#outstanding) request.settle();
  }
}
