/** Waits without a spin after failures, at most. */
const MOST_SKIPS = 64;

/** A longer time, in ms, between two polls was another program's. */
const PREEMPTION = 0.2;

/**
 * Adaptive spinning: whether polling before a sleep pays. It does if the next result mostly comes at once; after failures it is tried ever
 * less often. The engine has the same for sleeps of its own, with the same numbers (`progress/adaptive_spin.h`); this one works for every
 * provider of the SPI.
 */
export class AdaptiveSpin {
  /** Waits that pass without a spin. */
  #skips = 0;
  /** Their number after the next failure. */
  #next = 1;

  /** Before a wait: whether to spin. If so, {@link found} or {@link failed} follows. */
  pays(): boolean {
    if (this.#skips === 0) return true;
    this.#skips -= 1;
    return false;
  }

  /**
   * A result was there, `ms` after the poll before. If another program had the CPU meanwhile, spinning has not brought it: the
   * CPU is wanted, and a sleep would have released it at once.
   */
  found(ms: number): void {
    if (ms > PREEMPTION) this.failed();
    else this.#next = 1;
  }

  /** No result came during the spin. */
  failed(): void {
    this.#skips = this.#next;
    this.#next = Math.min(2 * this.#next, MOST_SKIPS);
  }
}
