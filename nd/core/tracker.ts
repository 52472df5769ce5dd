import { type Overlapped, StatusError } from '../../winverbs/index.js';

/** The overlapped requests that an object's state depends on, in the order of issue. */
export class RequestTracker {
  readonly #outstanding = new Set<Overlapped<unknown>>();

  constructor(private readonly issued: (request: Overlapped<unknown>) => void = () => {}) {}

  /**
   * Translates a request to ND terms. The functions run once, when its outcome is observed or {@link settle} runs.
   * `onFailure` returns the request's error, or a value if it has succeeded in ND terms. `byOther` means that another
   * object has issued the request.
   */
  track<T, U>(
    request: Overlapped<T>,
    onSuccess: (value: T) => U,
    onFailure: (error: StatusError) => StatusError | U,
    byOther = false,
  ): Overlapped<U> {
    // map() cannot be used, because a failure in WinVerbs can be a success here.
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
    if (!byOther) this.issued(tracked);
    return tracked;
  }

  /** Cancels the outstanding requests; each still completes separately. */
  cancel(): void {
    for (const request of this.#outstanding) request.cancel();
  }

  /** Cancels the outstanding requests, and blocks until all have completed. */
  cancelAndWait(): void {
    for (const request of [...this.#outstanding]) request.cancel();
    for (const request of [...this.#outstanding]) {
      try {
        request.getResult({ wait: true });
      } catch {
        // The request has reported the error to its owner.
      }
    }
  }

  /** Updates the object's state from completed requests, without the event loop. */
  settle(): void {
    for (const request of this.#outstanding) request.settle();
  }
}
