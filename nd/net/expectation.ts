/** Waits without polling after failures, at most. */
const MOST_PASSES = 64;

/** A longer time, in ms, between two looks was that of another program. */
const INTERRUPTED = 0.2;

/**
 * Whether polling before a sleep pays: it does if the next result mostly comes at once. After failures it is tried ever less often, as
 * the engine does it for its own sleeps.
 */
export class Expectation {
  /** Waits that pass without polling. */
  #passes = 0;
  /** Their number after the next failure. */
  #next = 1;

  /** Before a wait: whether to poll. If so, {@link met} or {@link inVain} follows. */
  worthIt(): boolean {
    if (this.#passes === 0) return true;
    this.#passes -= 1;
    return false;
  }

  /**
   * A result was there, `ms` after the look before. If another program had the processor meanwhile, polling has not brought it: the
   * processor is wanted, and a sleep would have given it away at once.
   */
  met(ms: number): void {
    if (ms > INTERRUPTED) this.inVain();
    else this.#next = 1;
  }

  /** No result came while the poller polled. */
  inVain(): void {
    this.#passes = this.#next;
    this.#next = Math.min(2 * this.#next, MOST_PASSES);
  }
}
