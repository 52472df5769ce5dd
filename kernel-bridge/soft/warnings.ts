/**
 * Warnings of the soft kernel, as the process's own (event `warning`, `--no-warnings`). Node.js tells a warning on the next turn, which a
 * program that exits at once never has.
 */
export class Warnings {
  #untold: Error[] = [];

  add(text: string): void {
    const warning = new Error(text);
    warning.name = 'NetworkDirectWarning';
    this.#untold.push(warning);
    process.emitWarning(warning);
    process.nextTick(() => {
      this.#untold = this.#untold.filter((other) => other !== warning);
    });
  }

  /** The process exits. */
  tellNow(): void {
    for (const warning of this.#untold) process.emit('warning', warning);
    this.#untold = [];
  }
}
