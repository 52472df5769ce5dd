import type { Overlapped } from '../../index.js';
import type { Poller } from './poller.js';

/**
 * Whether a connection keeps the process alive: while the program wants it, which is the default, and in any case while something is
 * unsent or on its way. So does a write under way of `net.Socket`.
 */
export class ProcessRef {
  #wanted = true;
  #holds = true;
  #ended = false;
  #ending: Overlapped<void> | undefined;

  constructor(
    private readonly poller: Poller,
    /** Something is unsent or on its way. */
    private readonly busy: () => boolean,
  ) {
    poller.hold(true);
  }

  /** What the program wants. */
  want(wanted: boolean): void {
    this.#wanted = wanted;
    this.update();
  }

  /** The request that waits for the end of the connection. */
  waitFor(ending: Overlapped<void>): void {
    this.#ending = ending;
    if (!this.#holds) ending.unref();
  }

  /** Something was written, sent or completed. */
  update(): void {
    if (!this.#wanted || !this.#holds) this.#set(this.#wanted || this.busy());
  }

  /** The connection has ended. */
  end(): void {
    this.#set(false);
    this.#ended = true;
  }

  #set(holds: boolean): void {
    if (holds === this.#holds || this.#ended) return;
    this.#holds = holds;
    this.poller.hold(holds);
    if (holds) this.#ending?.ref();
    else this.#ending?.unref();
  }
}
