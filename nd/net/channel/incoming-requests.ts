import { Fifo, type Member } from '../base/fifo.js';
import type { Channel } from './channel.js';
import { bytesOf, type IncomingRequest, type MessageBytes, type RequestHandler } from './channel-options.js';

/** A received request that is still in its slot or in the peer's memory. */
export interface Arrived {
  /** Request id, echoed in the answer. */
  readonly id: number;
  /** Returns the bytes of the request; undefined if the connection ends first. */
  take(): Buffer | Promise<Buffer | undefined>;
  /** Called when the handler has answered: the bytes of the request are no longer held. */
  answered?(): void;
  /** Releases its slots and memory because the request was canceled. */
  drop(): void;
}

/** An answer that the peer has not received. */
export interface HeldAnswer {
  /** Withdraws the answer if no part of it was sent. Returns whether it was withdrawn. */
  withdraw(): boolean;
}

/** The functions of the channel that {@link IncomingRequests} uses. */
export interface Answering {
  /** The channel on which the requests arrive. */
  readonly channel: Channel;
  /** Maximum number of requests in progress. */
  readonly limit: number;
  /** Sends an answer. Returns undefined if it was sent immediately; otherwise `gone` is called when the answer is no longer held. */
  answer(id: number, bytes: Uint8Array, gone: () => void): HeldAnswer | undefined;
  /** The same as {@link answer}, with the text of an error. */
  fail(id: number, text: string, gone: () => void): HeldAnswer | undefined;
  /** Whether too many bytes are held for another request to begin. */
  full(): boolean;
  /** Calls `retry` whenever bytes were released, until it returns true. */
  whenReleased(retry: () => boolean): void;
  /** Called when no requests are left. */
  idle(): void;
}

/** A request that is being handled or whose answer is held for the peer. Its signal is created on first access. */
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

  /** Whether the request was canceled or the connection has ended. */
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
 * Passes the peer's requests to the handler, up to the limit of requests in progress. A request counts until the peer has its answer.
 * Further requests stay in their slots, which stops the peer when its credits run out.
 */
export class IncomingRequests {
  #handler: RequestHandler | undefined;
  /** The handler that caused the last warning; each handler warns once. */
  #warned: RequestHandler | undefined;
  readonly #answering: Answering;
  /** The requests that count towards the limit, by id. */
  readonly #serving = new Map<number, Serving>();
  readonly #waiting = new Fifo<Arrived>();
  readonly #waitingById = new Map<number, Member<Arrived>>();
  #due = false;
  #ended = false;

  constructor(answering: Answering, handler: RequestHandler | undefined) {
    this.#answering = answering;
    this.#handler = handler;
  }

  /** Sets the handler. */
  use(handler: RequestHandler): void {
    this.#handler = handler;
  }

  /** Whether there is a handler or a request in progress. */
  get serves(): boolean {
    return this.#handler !== undefined || this.busy;
  }

  /** Whether requests are in progress or waiting. */
  get busy(): boolean {
    return this.#serving.size > 0 || this.#waiting.length > 0;
  }

  /** Whether a request that arrives now begins immediately. */
  get free(): boolean {
    return this.#waiting.length === 0 && this.#admits;
  }

  /** Whether one more request may begin. If no request is in progress, one always may. */
  get #admits(): boolean {
    const { size } = this.#serving;
    return size === 0 || (size < this.#answering.limit && !this.#answering.full());
  }

  /** Whether the peer's request with this id has not been answered. */
  has(id: number): boolean {
    return this.#serving.has(id) || this.#waitingById.has(id);
  }

  /** Handles a received request, which may have to wait. */
  arrive(request: Arrived): void {
    if (this.free) this.#begin(request);
    else {
      this.#waitingById.set(request.id, this.#waiting.push(request));
      this.#awaitRelease();
    }
  }

  /** Handles a request that was received while this is {@link free}. */
  serve(id: number, bytes: Buffer): void {
    this.#handle(this.#enter(id, undefined), bytes);
  }

  /** Cancels a request. */
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

  /** Called when the connection has ended. */
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
    // The request was canceled while its bytes were read, so it needs no answer.
    if (bytes === undefined || serving.aborted) {
      serving.arrived?.answered?.();
      this.#gone(serving);
      return;
    }
    const handler = this.#handler;
    if (handler === undefined) {
      this.#fail(serving, new Error('The peer has no request handler.'));
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
      const bytes = answer === undefined ? EMPTY : bytesOf(answer, 'The answer of a handler');
      this.#hold(
        serving,
        this.#answering.answer(serving.id, bytes, () => this.#gone(serving)),
      );
    } catch (error) {
      this.#warn(error as Error);
      this.#fail(serving, error);
    }
  }

  /** Warns of an answer that cannot be sent. The program of the handler does not see the requester's error. */
  #warn({ message }: Error): void {
    if (this.#warned === this.#handler) return;
    this.#warned = this.#handler;
    process.emitWarning(
      `A request failed because the answer of its handler cannot be sent: ${message}`,
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

  /** Called when the handler has answered. The request counts until the peer has the answer. */
  #hold(serving: Serving, answer: HeldAnswer | undefined): void {
    serving.arrived?.answered?.();
    serving.answer = answer;
    if (answer === undefined) this.#gone(serving);
  }

  /** Removes a finished request. Called a second time when the memory of a withdrawn answer is free. */
  #gone(serving: Serving): void {
    // The peer may have reused the id.
    if (this.#ended || this.#serving.get(serving.id) !== serving) return;
    this.#serving.delete(serving.id);
    if (this.#waiting.length === 0) {
      if (this.#serving.size === 0) this.#answering.idle();
    } else this.#nextLater();
  }

  /** The call is deferred, because handlers that return synchronously would otherwise recurse. */
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

  /** Requests that wait because of other connections are retried when those release bytes. */
  #awaitRelease(): void {
    if (this.#waiting.length === 0 || !this.#answering.full()) return;
    this.#answering.whenReleased(() => {
      if (this.#answering.full()) return false;
      this.#nextLater();
      return true;
    });
  }
}
