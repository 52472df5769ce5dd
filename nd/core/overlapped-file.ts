import type { Overlapped } from '../../winverbs/index.js';
import type { NdCompletedRequest, NdOverlappedFile, NdOverlappedObject } from '../spi/common-types.js';

/** An overlapped file as a completion port: collects completed requests in the order of their delivery. */
export class OverlappedFile implements NdOverlappedFile {
  readonly #outstanding = new Set<Overlapped<unknown>>();
  readonly #ended: NdCompletedRequest[] = [];
  /** Callers that wait for the next request. */
  readonly #waiting: ((result: IteratorResult<NdCompletedRequest, undefined>) => void)[] = [];
  #closed = false;

  /** Adds a request that was issued on an object of the file. */
  add(request: Overlapped<unknown>, issuer: NdOverlappedObject): void {
    if (this.#closed) return;
    this.#outstanding.add(request);
    const ended = (): void => {
      this.#outstanding.delete(request);
      const next = this.#waiting.shift();
      if (next === undefined) this.#ended.push({ request, issuer });
      else next({ done: false, value: { request, issuer } });
      this.#endIfClosed();
    };
    request.then(ended, ended);
  }

  get outstanding(): number {
    return this.#outstanding.size;
  }

  get closed(): boolean {
    return this.#closed;
  }

  next(): Promise<IteratorResult<NdCompletedRequest, undefined>> {
    const value = this.#ended.shift();
    if (value !== undefined) return Promise.resolve({ done: false, value });
    if (this.#closed && this.#outstanding.size === 0)
      return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const request of [...this.#outstanding]) request.cancel();
    this.#endIfClosed();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #endIfClosed(): void {
    if (!this.#closed || this.#outstanding.size > 0) return;
    for (const next of this.#waiting.splice(0)) next({ done: true, value: undefined });
  }
}
