import type { Channel } from './channel.js';
import { type MessageBytes, Request, type RequestHandler } from './channel-options.js';
import { bytesOf } from './helpers.js';

/** A request that has come, and is still in its slot or in the peer's memory. */
export interface Arrived {
  /** By which its answer names it. */
  readonly id: number;
  /** Takes its bytes; undefined if the connection ends meanwhile. */
  take(): Buffer | Promise<Buffer | undefined>;
  /** Gives back what it keeps: nobody wants it any more. */
  drop(): void;
}

/** What a responder does for its channel. */
export interface Answering {
  /** Where the requests come from. */
  readonly channel: Channel;
  /** Requests that are answered at the same time. */
  readonly limit: number;
  answer(id: number, bytes: Uint8Array): void;
  fail(id: number, text: string): void;
  /** Nothing is to be answered any more. */
  idle(): void;
}

const EMPTY = Buffer.alloc(0);

/** Answers the peer's requests: as many at once as the limit allows. The others wait where they are, which holds the peer back. */
export class Responder {
  #handler: RequestHandler | undefined;
  /** The handler that caused a warning: one is enough. */
  #warned: RequestHandler | undefined;
  readonly #answering: Answering;
  readonly #serving = new Map<number, Request>();
  #active = 0;
  readonly #waiting: Arrived[] = [];
  #due = false;
  #ended = false;

  constructor(answering: Answering, handler: RequestHandler | undefined) {
    this.#answering = answering;
    this.#handler = handler;
  }

  /** Answers requests by this function from now on. */
  use(handler: RequestHandler): void {
    this.#handler = handler;
  }

  /** It has a handler, or something to answer. */
  get serves(): boolean {
    return this.#handler !== undefined || this.busy;
  }

  /** Requests are being answered, or wait for it. */
  get busy(): boolean {
    return this.#active > 0 || this.#waiting.length > 0;
  }

  /** A request that comes now is answered at once. */
  get free(): boolean {
    return this.#waiting.length === 0 && this.#active < this.#answering.limit;
  }

  /** A request has come, which may have to wait. */
  arrive(request: Arrived): void {
    if (this.free) this.#begin(request);
    else this.#waiting.push(request);
  }

  /** A request has come while this is {@link free}. */
  serve(id: number, bytes: Buffer): void {
    this.#handle(id, this.#enter(id), bytes);
  }

  /** The peer has lost interest in a request. */
  cancel(id: number): void {
    const serving = this.#serving.get(id);
    if (serving !== undefined) {
      serving.abort();
      return;
    }
    const at = this.#waiting.findIndex((request) => request.id === id);
    if (at < 0) return;
    this.#waiting.splice(at, 1)[0]!.drop();
    if (!this.busy) this.#answering.idle();
  }

  /** The connection has ended. */
  end(): void {
    this.#ended = true;
    for (const request of this.#serving.values()) request.abort();
    this.#serving.clear();
    this.#waiting.length = 0;
  }

  #begin({ id, take }: Arrived): void {
    const request = this.#enter(id);
    const bytes = take();
    if (bytes instanceof Promise) void bytes.then((late) => this.#handle(id, request, late));
    else this.#handle(id, request, bytes);
  }

  #enter(id: number): Request {
    const request = new Request(this.#answering.channel);
    this.#active += 1;
    this.#serving.set(id, request);
    return request;
  }

  #handle(id: number, request: Request, bytes: Buffer | undefined): void {
    if (this.#ended) return;
    // Cancelled while its bytes were read: there is nobody to answer.
    if (bytes === undefined || request.aborted) {
      this.#served(id);
      return;
    }
    const handler = this.#handler;
    if (handler === undefined) {
      this.#fail(id, new Error('The peer answers no requests.'));
      return;
    }
    try {
      const answer = handler(bytes, request);
      if (answer instanceof Promise) {
        answer.then(
          (late) => this.#answer(id, late),
          (error) => this.#fail(id, error),
        );
      } else this.#answer(id, answer);
    } catch (error) {
      this.#fail(id, error);
    }
  }

  #answer(id: number, answer: MessageBytes | undefined): void {
    if (this.#ended) return;
    try {
      this.#answering.answer(id, answer === undefined ? EMPTY : bytesOf(answer));
      this.#served(id);
    } catch (error) {
      this.#warn(error as Error);
      this.#fail(id, error);
    }
  }

  /** An answer that cannot be sent is a fault of the handler's program, which does not see the requester's error. */
  #warn({ message }: Error): void {
    if (this.#warned === this.#handler) return;
    this.#warned = this.#handler;
    process.emitWarning(
      `The handler of requests gave an answer that cannot be sent, and the request failed: ${message}`,
      'NetworkDirectWarning',
    );
  }

  #fail(id: number, error: unknown): void {
    if (this.#ended) return;
    this.#answering.fail(id, error instanceof Error ? error.message : String(error));
    this.#served(id);
  }

  #served(id: number): void {
    this.#serving.delete(id);
    this.#active -= 1;
    if (this.#waiting.length === 0) {
      if (this.#active === 0) this.#answering.idle();
    } else if (!this.#due) {
      // Not at once: handlers that answer at once would call each other.
      this.#due = true;
      setImmediate(() => this.#next());
    }
  }

  #next(): void {
    this.#due = false;
    while (this.#waiting.length > 0 && this.#active < this.#answering.limit)
      this.#begin(this.#waiting.shift()!);
  }
}
