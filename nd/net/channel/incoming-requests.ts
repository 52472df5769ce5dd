import { Fifo, type Member } from '../base/fifo.js';
import type { Channel } from './channel.js';
import { bytesOf, type IncomingRequest, type MessageBytes, type RequestHandler } from './channel-options.js';

/** A request that has come, and is still in its slot or in the peer's memory. */
export interface Arrived {
  /** By which its answer names it. */
  readonly id: number;
  /** Takes its bytes; undefined if the connection ends meanwhile. */
  take(): Buffer | Promise<Buffer | undefined>;
  /** The handler has answered: its bytes are not held any more. */
  answered?(): void;
  /** Gives back what it keeps: nobody wants it any more. */
  drop(): void;
}

/** An answer that the peer has not taken. */
export interface HeldAnswer {
  /** Takes it back, if nothing of it was sent. */
  withdraw(): boolean;
}

/** What its channel does for its channel. */
export interface Answering {
  /** Where the requests come from. */
  readonly channel: Channel;
  /** Requests that are answered at the same time. */
  readonly limit: number;
  /** Answers; undefined: at once. Otherwise `gone` is called when the answer is not held any more. */
  answer(id: number, bytes: Uint8Array, gone: () => void): HeldAnswer | undefined;
  /** As {@link answer}, with the text of an error. */
  fail(id: number, text: string, gone: () => void): HeldAnswer | undefined;
  /** So much is held that no further request should begin. */
  full(): boolean;
  /** Calls `retry` whenever less is held, until it returns true. */
  whenReleased(retry: () => boolean): void;
  /** Nothing is to be answered any more. */
  idle(): void;
}

/** A request whose answer is awaited, or held for the peer. Its signal is made when somebody looks at it. */
class Serving implements IncomingRequest {
  answer: HeldAnswer | undefined;
  #controller: AbortController | undefined;
  #aborted = false;

  constructor(
    readonly channel: Channel,
    readonly id: number,
    readonly arrived: Arrived | undefined,
  ) {}

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#aborted) this.#controller.abort();
    return this.#controller.signal;
  }

  /** Nobody waits for the answer any more. */
  get aborted(): boolean {
    return this.#aborted;
  }

  abort(): void {
    this.#aborted = true;
    this.#controller?.abort();
  }
}

const EMPTY = Buffer.alloc(0);

/**
 * Answers the peer's requests: as many at once as the limit allows, counted until the peer has their answers. The others wait where they
 * are, which holds the peer back.
 */
export class IncomingRequests {
  #handler: RequestHandler | undefined;
  /** The handler that caused a warning: one is enough. */
  #warned: RequestHandler | undefined;
  readonly #answering: Answering;
  /** Those that count, by their ids. */
  readonly #serving = new Map<number, Serving>();
  readonly #waiting = new Fifo<Arrived>();
  readonly #waitingById = new Map<number, Member<Arrived>>();
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
    return this.#serving.size > 0 || this.#waiting.length > 0;
  }

  /** A request that comes now is answered at once. */
  get free(): boolean {
    return this.#waiting.length === 0 && this.#admits;
  }

  /** One more may begin. One alone always may, however much others hold. */
  get #admits(): boolean {
    const { size } = this.#serving;
    return size === 0 || (size < this.#answering.limit && !this.#answering.full());
  }

  /** The peer's request with this id has no answer yet. */
  has(id: number): boolean {
    return this.#serving.has(id) || this.#waitingById.has(id);
  }

  /** A request has come, which may have to wait. */
  arrive(request: Arrived): void {
    if (this.free) this.#begin(request);
    else {
      this.#waitingById.set(request.id, this.#waiting.push(request));
      this.#awaitRelease();
    }
  }

  /** A request has come while this is {@link free}. */
  serve(id: number, bytes: Buffer): void {
    this.#handle(this.#enter(id, undefined), bytes);
  }

  /** The peer has lost interest in a request. */
  cancel(id: number): void {
    const serving = this.#serving.get(id);
    if (serving !== undefined) {
      if (serving.answer === undefined) serving.abort();
      else if (serving.answer.withdraw()) this.#gone(serving);
      return;
    }
    const member = this.#waitingById.get(id);
    if (member === undefined) return;
    this.#waitingById.delete(id);
    this.#waiting.remove(member);
    member.value.drop();
    if (!this.busy) this.#answering.idle();
  }

  /** The connection has ended. */
  end(): void {
    this.#ended = true;
    for (const serving of this.#serving.values()) if (serving.answer === undefined) serving.abort();
    this.#serving.clear();
    this.#waiting.drain();
    this.#waitingById.clear();
  }

  #begin(arrived: Arrived): void {
    const serving = this.#enter(arrived.id, arrived);
    const bytes = arrived.take();
    if (bytes instanceof Promise) void bytes.then((late) => this.#handle(serving, late));
    else this.#handle(serving, bytes);
  }

  #enter(id: number, arrived: Arrived | undefined): Serving {
    const serving = new Serving(this.#answering.channel, id, arrived);
    this.#serving.set(id, serving);
    return serving;
  }

  #handle(serving: Serving, bytes: Buffer | undefined): void {
    if (this.#ended) return;
    // Cancelled while its bytes were read: there is nobody to answer.
    if (bytes === undefined || serving.aborted) {
      serving.arrived?.answered?.();
      this.#gone(serving);
      return;
    }
    const handler = this.#handler;
    if (handler === undefined) {
      this.#fail(serving, new Error('The peer answers no requests.'));
      return;
    }
    try {
      const answer = handler(bytes, serving);
      if (answer instanceof Promise) {
        answer.then(
          (late) => this.#answer(serving, late),
          (error) => this.#fail(serving, error),
        );
      } else this.#answer(serving, answer);
    } catch (error) {
      this.#fail(serving, error);
    }
  }

  #answer(serving: Serving, answer: MessageBytes | undefined): void {
    if (this.#ended) return;
    try {
      const bytes = answer === undefined ? EMPTY : bytesOf(answer);
      this.#hold(
        serving,
        this.#answering.answer(serving.id, bytes, () => this.#gone(serving)),
      );
    } catch (error) {
      this.#warn(error as Error);
      this.#fail(serving, error);
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

  #fail(serving: Serving, error: unknown): void {
    if (this.#ended) return;
    const text = error instanceof Error ? error.message : String(error);
    this.#hold(
      serving,
      this.#answering.fail(serving.id, text, () => this.#gone(serving)),
    );
  }

  /** The handler has answered. The request counts until the peer has the answer. */
  #hold(serving: Serving, answer: HeldAnswer | undefined): void {
    serving.arrived?.answered?.();
    serving.answer = answer;
    if (answer === undefined) this.#gone(serving);
  }

  /** Nothing of the request is left. It may be called twice, when the memory of a withdrawn answer is free, too. */
  #gone(serving: Serving): void {
    // The peer may have used the id again.
    if (this.#ended || this.#serving.get(serving.id) !== serving) return;
    this.#serving.delete(serving.id);
    if (this.#waiting.length === 0) {
      if (this.#serving.size === 0) this.#answering.idle();
    } else this.#nextLater();
  }

  /** Not at once: handlers that answer at once would call each other. */
  #nextLater(): void {
    if (this.#due) return;
    this.#due = true;
    setImmediate(() => this.#next());
  }

  #next(): void {
    this.#due = false;
    while (this.#waiting.length > 0 && this.#admits) {
      const request = this.#waiting.shift()!;
      this.#waitingById.delete(request.id);
      this.#begin(request);
    }
    this.#awaitRelease();
  }

  /** Requests that wait for what other connections hold are tried again when they hold less. */
  #awaitRelease(): void {
    if (this.#waiting.length === 0 || !this.#answering.full()) return;
    this.#answering.whenReleased(() => {
      if (this.#answering.full()) return false;
      this.#nextLater();
      return true;
    });
  }
}
