import type { Overlapped } from '../../index.js';
import type { Poller } from './poller.js';

/**
 * Controls whether a connection keeps the process alive: while it is ref'ed, which is the default, and also while data is unsent or in
 * flight, as a pending write of `net.Socket` does.
 */
export class ProcessRef {
  #wanted = true;
  #holds = true;
  #ended = false;
  #ending: Overlapped<void> | undefined;

  constructor(
    private readonly poller: Poller,
    /** Whether data is unsent or in flight. */
    private readonly busy: () => boolean,
  ) {
    poller.hold(true);
  }

  /** Sets whether the connection is ref'ed. */
  setRef(wanted: boolean): void {
    this.#wanted = wanted;
    this.update();
  }

  /** Sets the request that waits for the end of the connection. */
  waitFor(ending: Overlapped<void>): void {
    this.#ending = ending;
    if (!this.#holds) ending.unref();
  }

  /** Called when something was written, sent or completed. */
  update(): void {
    if (!this.#wanted || !this.#holds) this.#set(this.#wanted || this.busy());
  }

  /** Called when the connection has ended. */
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
