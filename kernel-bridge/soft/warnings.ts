/**
 * Warnings of the soft kernel, emitted as warnings of the process (event `warning`, `--no-warnings`). Node.js emits a warning on the
 * next turn; a program that exits at once has no next turn.
 */
export class Warnings {
  #pending: Error[] = [];

  add(text: string): void {
    const warning = new Error(text);
    warning.name = 'NetworkDirectWarning';
    this.#pending.push(warning);
    process.emitWarning(warning);
    process.nextTick(() => {
      this.#pending = this.#pending.filter((other) => other !== warning);
    });
  }

  /** Emits the pending warnings at once, because the process exits. */
  emitNow(): void {
    for (const warning of this.#pending) process.emit('warning', warning);
    this.#pending = [];
  }
}
