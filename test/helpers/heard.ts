/** Collects the text of a stream, for tests that wait for part of it. */
export class Heard {
  text = '';
  #look: (() => void)[] = [];
  #ended = false;

  constructor(stream: NodeJS.ReadableStream) {
    stream.setEncoding('utf8');
    stream.on('data', (part: string) => this.#wake(() => (this.text += part)));
    for (const end of ['close', 'error']) stream.on(end, () => this.#wake(() => (this.#ended = true)));
  }

  /** Waits until the text contains this part, and returns the match. @throws Error if the stream ends without it */
  async until(part: string | RegExp): Promise<string> {
    for (;;) {
      const found = typeof part === 'string' ? this.text.includes(part) && part : part.exec(this.text)?.[0];
      if (typeof found === 'string') return found;
      if (this.#ended) throw new Error(`It ended without ${part}:\n${this.text}`);
      await new Promise<void>((resolve) => this.#look.push(resolve));
    }
  }

  /** Waits for the end of the stream. */
  async end(): Promise<void> {
    while (!this.#ended) await new Promise<void>((resolve) => this.#look.push(resolve));
  }

  #wake(change: () => void): void {
    change();
    for (const look of this.#look.splice(0)) look();
  }
}
