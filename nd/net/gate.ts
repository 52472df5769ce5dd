/** Bytes of large messages that a channel holds for its program, unless it is one alone. */
const MOST_HELD = 2 ** 24;

interface Waiting {
  readonly bytes: number;
  enter(): void;
}

/**
 * Lets large messages in, as far as the program takes them. A message that waits at the gate is still in the sender's memory, and keeps
 * its slot here: so the sender is held back.
 */
export class Gate {
  #held = 0;
  readonly #waiting: Waiting[] = [];

  /** Calls `enter` as soon as there is room for so many bytes, in order. */
  pass(bytes: number, enter: () => void): void {
    this.#waiting.push({ bytes, enter });
    this.#open();
  }

  /** The program has taken a message of so many bytes. */
  left(bytes: number): void {
    this.#held -= bytes;
    this.#open();
  }

  #open(): void {
    while (this.#waiting.length > 0) {
      const { bytes, enter } = this.#waiting[0]!;
      if (this.#held > 0 && this.#held + bytes > MOST_HELD) return;
      this.#waiting.shift();
      this.#held += bytes;
      enter();
    }
  }
}
