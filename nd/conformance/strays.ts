/**
 * Errors that a provider under test throws, or rejects with, where nothing waits for them. They make the current case
 * fail, not the run.
 */
export class Strays implements Disposable {
  /** Errors without a waiting case, kept for the next one. */
  readonly #waiting: Stray[] = [];
  #fail: ((stray: Stray) => void) | undefined;
  readonly #onStray = (cause: unknown): void => {
    const stray = new Stray(cause);
    if (this.#fail === undefined) this.#waiting.push(stray);
    else this.#fail(stray);
  };

  constructor() {
    process.on('uncaughtException', this.#onStray);
    process.on('unhandledRejection', this.#onStray);
  }

  [Symbol.dispose](): void {
    process.off('uncaughtException', this.#onStray);
    process.off('unhandledRejection', this.#onStray);
  }

  /** Settles like `work`, or rejects with the first stray error until then. */
  async during<T>(work: Promise<T>): Promise<T> {
    let fail: ((stray: Stray) => void) | undefined;
    const strays = new Promise<never>((_, reject) => {
      const earlier = this.#waiting.shift();
      if (earlier !== undefined) reject(earlier);
      else fail = this.#fail = reject;
    });
    try {
      return await Promise.race([work, strays]);
    } finally {
      // Work that has exceeded its time limit may end while other work waits.
      if (this.#fail === fail) this.#fail = undefined;
      work.catch(() => {});
    }
  }
}

/** An error that was not caught; its cause is the thrown value. */
export class Stray extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause), { cause });
    this.name = 'Uncaught';
  }
}
