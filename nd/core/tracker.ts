import { Overlapped, StatusError } from '../../winverbs/index.js';

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
    const tracked = new Overlapped<U>({
      completed: () => request.completed,
      take: () => {
        this.#outstanding.delete(tracked);
        let value: T;
        try {
          value = request.getResult();
        } catch (error) {
          if (!(error instanceof StatusError)) throw error;
          const outcome = onFailure(error);
          if (outcome instanceof StatusError) throw outcome;
          return outcome;
        }
        return onSuccess(value);
      },
      wait: () => {
        try {
          request.getResult({ wait: true });
        } catch {
          // take() tells.
        }
      },
      cancel: () => request.cancel(),
    });
    this.#outstanding.add(tracked);
    const observe = (): void => {
      tracked.settle();
    };
    request.then(observe, observe);
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
