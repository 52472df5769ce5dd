import { Status, StatusError } from '../ioctl/status.js';

/** The source of an {@link Overlapped}'s outcome: a slot of the request channel, a Windows OVERLAPPED, another layer. */
export interface OverlappedSource<T> {
  /** Whether the request has completed; reads memory, without a call. */
  completed(): boolean;
  /** The result; called once, after completion. Throws the StatusError of a failed request. */
  take(): T;
  /** Blocks this thread until the request has completed. */
  wait(): void;
  /** Requests cancellation; the request may still complete with another status. */
  cancel(): void;
  /**
   * For a completed request: settles requests that completed earlier and were not delivered yet, in order of
   * completion, and then this one. Without this method, only this request is settled.
   */
  deliver?(): void;
  /**
   * Sets whether the request keeps the process alive; initially it does. Without this method, the request always keeps
   * it alive.
   */
  hold?(holds: boolean): void;
}

type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: StatusError };

/** Options of {@link Overlapped.getResult}. */
export interface GetResultOptions {
  /** Block the thread until the request has completed, like GetOverlappedResult(bWait = TRUE). */
  readonly wait?: boolean;
}

/**
 * One asynchronous request: an OVERLAPPED structure and a promise in one.
 *
 * It can be awaited, polled without a call (`completed`), waited for without an event loop (`getResult({ wait: true
 * })`) and cancelled. A request that completes with any status other than SUCCESS, whatever its severity bits are,
 * rejects or throws a {@link StatusError} with that status. A pending request keeps the process alive unless {@link
 * unref} was called. A failed Overlapped that was never awaited causes no unhandledRejection.
 *
 * @example
 * ```ts
 * // As returned by an endpoint's disconnect().
 * while (!request.completed) poll();
 * request.getResult(); // throws StatusError TIMEOUT if the peer never replied
 * ```
 */
export class Overlapped<T> implements PromiseLike<T> {
  #source: OverlappedSource<T> | undefined;
  #outcome: Outcome<T> | undefined;
  /**
   * Called once there is an outcome. Most requests have only one observer, and an array for it would be the largest
   * part of the request.
   */
  #observer: (() => void) | undefined;
  #moreObservers: (() => void)[] | undefined;
  #promise: Promise<T> | undefined;
  #settling = false;
  #translate: ((error: StatusError) => StatusError) | undefined;

  /** The creator calls {@link settle} on the event loop once the source has completed. */
  constructor(source: OverlappedSource<T>) {
    this.#source = source;
  }

  /** A request that has already succeeded. */
  static succeeded<T>(value: T): Overlapped<T> {
    return new Overlapped(settledSource<T>({ ok: true, value }));
  }

  /** A request that has already failed: a refused request reports its error here instead of throwing. */
  static failed<T = never>(error: StatusError): Overlapped<T> {
    const overlapped = new Overlapped(settledSource<T>({ ok: false, error }));
    // No event reports the completion of this request, so a translation of the failure runs here, whether or not the
    // outcome is observed.
    inMicrotask(() => overlapped.settle());
    return overlapped;
  }

  /** Whether the request has completed; reads a word of memory, like HasOverlappedIoCompleted. @category Complete */
  get completed(): boolean {
    return this.#outcome !== undefined || (!this.#settling && this.#source?.completed() === true);
  }

  /** The request's NTSTATUS, {@link Status.PENDING} while it is outstanding. @category Complete */
  get status(): number {
    this.settle();
    if (this.#outcome === undefined) return Status.PENDING;
    return this.#outcome.ok ? Status.SUCCESS : this.#outcome.error.status;
  }

  /**
   * The result of a completed request.
   *
   * @throws StatusError with the request's status; with {@link Status.PENDING} if it has not completed and `wait` is
   * not set.
   * @category Complete
   */
  getResult(options: GetResultOptions = {}): T {
    if (!this.settle() && options.wait === true && !this.#settling) {
      this.#source?.wait();
      this.settle();
    }
    if (this.#outcome === undefined) {
      throw new StatusError(
        Status.PENDING,
        'The request has not completed; await it, or call getResult({ wait: true }) to block until it has.',
      );
    }
    if (!this.#outcome.ok) throw this.#outcome.error;
    return this.#outcome.value;
  }

  /**
   * Requests cancellation: the request completes with CANCELED, or with another status if it completed first.
   * @category Complete
   */
  cancel(): void {
    if (this.#outcome === undefined) this.#source?.cancel();
  }

  /**
   * Makes the pending request keep the process alive, as every request does before {@link unref}.
   * @category Lifetime
   */
  ref(): this {
    if (this.#outcome === undefined) this.#source?.hold?.(true);
    return this;
  }

  /**
   * Lets the process end although the request is pending. It has no effect on requests of a Windows driver, or on
   * requests completed by this package itself, such as the notification of a shared receive queue.
   * @category Lifetime
   */
  unref(): this {
    if (this.#outcome === undefined) this.#source?.hold?.(false);
    return this;
  }

  /**
   * Cancels the request when the signal aborts, or immediately if it has already aborted. The outcome is still a
   * status.
   * @category Complete
   */
  abortOn(signal: AbortSignal): this {
    if (this.completed) return this;
    if (signal.aborted) {
      this.cancel();
      return this;
    }
    const onAbort = (): void => this.cancel();
    signal.addEventListener('abort', onAbort, { once: true });
    this.#addObserver(() => signal.removeEventListener('abort', onAbort));
    return this;
  }

  /**
   * Translates the failure into another layer's terms, for all observers. The function runs once, like those of {@link
   * map}, but unlike map() this creates no second request. Call it once, before the outcome is observed. For a request
   * that has already failed it runs in the next microtask.
   * @category Translate
   */
  translateFailure(translate: (error: StatusError) => StatusError): this {
    this.#translate = translate;
    return this;
  }

  /**
   * The same request in another layer's terms. The functions run once: when the outcome is first observed, at the
   * latest when the event loop delivers it. If one throws, its error becomes the new outcome.
   * @category Translate
   */
  map<U>(onSuccess: (value: T) => U, onFailure?: (error: StatusError) => StatusError): Overlapped<U> {
    return this.derive(onSuccess, (error) => {
      throw onFailure === undefined ? error : onFailure(error);
    });
  }

  /**
   * The same request with some failures turned into results, for statuses that report an event instead of an error.
   * `recover` returns the result, or undefined for a real failure.
   * @category Translate
   */
  recover<U>(recover: (error: StatusError) => U | undefined): Overlapped<T | U> {
    return this.derive<T | U>(
      (value) => value,
      (error) => {
        const value = recover(error);
        if (value === undefined) throw error;
        return value;
      },
    );
  }

  /**
   * The same request with another outcome: the function's result, or the error that it throws. The functions run once,
   * like those of {@link map}.
   * @category Translate
   */
  derive<U>(onSuccess: (value: T) => U, onFailure: (error: StatusError) => U): Overlapped<U> {
    const derived = new Overlapped<U>({
      completed: () => this.completed,
      take: () => {
        const outcome = this.#observe();
        return outcome.ok ? onSuccess(outcome.value) : onFailure(outcome.error);
      },
      wait: () => {
        if (!this.settle()) this.#source?.wait();
      },
      cancel: () => this.cancel(),
      hold: (holds) => void (holds ? this.ref() : this.unref()),
      deliver: () => this.#deliver(),
    });
    this.#whenSettled(() => derived.settle());
    return derived;
  }

  /**
   * If the request has completed, takes its outcome and runs the functions of map() now, so that a layer's state is
   * updated without the event loop. Returns whether it has completed.
   * @category Complete
   */
  settle(): boolean {
    if (this.#outcome !== undefined) return true;
    const source = this.#source;
    if (source === undefined || this.#settling || !source.completed()) return false;
    this.#settling = true;
    this.#outcome = outcomeOf(source, this.#translate);
    this.#settling = false;
    this.#source = undefined;
    const observer = this.#observer;
    const more = this.#moreObservers;
    this.#observer = this.#moreObservers = undefined;
    observer?.();
    if (more !== undefined) for (const one of more) one();
    return true;
  }

  /** The same as `then` of a promise. The first call creates the promise. @category Complete */
  // biome-ignore lint/suspicious/noThenProperty: being awaitable is what this class is for
  then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#toPromise().then(onFulfilled, onRejected);
  }

  /** The same as in a promise. @category Complete */
  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.#toPromise().catch(onRejected);
  }

  /** The same as in a promise. @category Complete */
  finally(onFinally?: (() => void) | null): Promise<T> {
    return this.#toPromise().finally(onFinally);
  }

  /** `Overlapped`, as shown by Object.prototype.toString. @category Lifetime */
  get [Symbol.toStringTag](): string {
    return 'Overlapped';
  }

  #toPromise(): Promise<T> {
    this.#promise ??= new Promise<T>((resolve, reject) => {
      this.#whenSettled(() => {
        const outcome = this.#observe();
        if (outcome.ok) resolve(outcome.value);
        else reject(outcome.error);
      });
    });
    return this.#promise;
  }

  /** Runs the function once there is an outcome; if there is one already, in the next microtask. */
  #whenSettled(observer: () => void): void {
    if (this.#outcome !== undefined) {
      inMicrotask(observer);
      return;
    }
    this.#addObserver(observer);
    if (this.completed) inMicrotask(() => this.#deliver());
  }

  #addObserver(observer: () => void): void {
    if (this.#observer === undefined) this.#observer = observer;
    else if (this.#moreObservers === undefined) this.#moreObservers = [observer];
    else this.#moreObservers.push(observer);
  }

  /** Settles a completed request after those that completed earlier, so that their order is kept. */
  #deliver(): void {
    if (this.#outcome === undefined) this.#source?.deliver?.();
    this.settle();
  }

  #observe(): Outcome<T> {
    this.settle();
    if (this.#outcome === undefined) throw new StatusError(Status.PENDING);
    return this.#outcome;
  }
}

/** Used instead of queueMicrotask(), which creates an async_hooks resource each time. The function must not throw. */
function inMicrotask(run: () => void): void {
  void nothing.then(run);
}

const nothing = Promise.resolve();

function outcomeOf<T>(
  source: OverlappedSource<T>,
  translate: ((error: StatusError) => StatusError) | undefined,
): Outcome<T> {
  try {
    return { ok: true, value: source.take() };
  } catch (thrown) {
    const error = statusErrorOf(thrown);
    if (translate === undefined) return { ok: false, error };
    try {
      return { ok: false, error: translate(error) };
    } catch (other) {
      return { ok: false, error: statusErrorOf(other) };
    }
  }
}

/** An error thrown by a layer's own code is a defect of that layer; it is kept as the cause. */
function statusErrorOf(thrown: unknown): StatusError {
  if (thrown instanceof StatusError) return thrown;
  const text = `The request completed, but its result could not be used: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
  return new StatusError(Status.INTERNAL_ERROR, text, { cause: thrown });
}

function settledSource<T>(outcome: Outcome<T>): OverlappedSource<T> {
  return {
    completed: () => true,
    take: () => {
      if (outcome.ok) return outcome.value;
      throw outcome.error;
    },
    wait: () => {},
    cancel: () => {},
  };
}
