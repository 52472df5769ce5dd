/** A client that sends requests over any transport. */
export interface Client {
  request(bytes: Uint8Array): Promise<Uint8Array>;
}

/** Resolves with the reply to a request. */
export type Answer = (bytes: Buffer) => Buffer | string;

/** Pending requests. Replies arrive in the order of requests. */
export class Waiting {
  readonly #requests: ((bytes: Uint8Array) => void)[] = [];

  next(): Promise<Uint8Array> {
    return new Promise((resolve) => this.#requests.push(resolve));
  }

  answer(bytes: Uint8Array): void {
    this.#requests.shift()!(bytes);
  }
}
