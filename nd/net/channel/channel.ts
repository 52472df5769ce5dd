import { channel as diagnostics } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import { inspect } from 'node:util';
import type { SocketAddress } from '../../index.js';
import { checkHandler, checkSignal, defined } from '../base/checks.js';
import { aborted, closed, NetError, refusalBy, tooLong, violation } from '../base/errors.js';
import { abortable, iterate } from '../base/promises.js';
import { peerText } from '../connection/address-text.js';
import {
  decodeMemory,
  exceeds,
  Frame,
  Kind,
  LARGE,
  type MemoryDescription,
  MORE,
} from '../connection/frames.js';
import type { Link, LinkUser, Slot } from '../connection/link.js';
import type { LocalContext } from '../connection/local-context.js';
import { WeakHandle, weakUser } from '../connection/weak-handle.js';
import {
  type ExposedMemory,
  type ExposeOptions,
  executeAtomic,
  exposeAt,
  isAtomic,
} from '../memory/exposed-memory.js';
import { type LentMemory, lendAt } from '../memory/lent-memory.js';
import { RemoteMemory } from '../memory/remote-memory.js';
import type { BroadcastMessage } from './broadcast.js';
import { Account, type Budget, type Charge, threadBudget } from './budget.js';
import {
  type AbortOptions,
  bytesOf,
  type ChannelOptions,
  channelDefaults,
  checkChannelOptions,
  type MessageBytes,
  type RequestHandler,
} from './channel-options.js';
import { type Arrival, Inbox } from './inbox.js';
import { type Arrived, type HeldAnswer, IncomingRequests } from './incoming-requests.js';
import { type Entry, Outbox } from './outbox.js';
import { PendingRequests } from './pending-requests.js';
import { Pieces, takePayload } from './pieces.js';
import { type Fetched, Reader } from './reader.js';
import { unwatchChannel, watchChannel } from './unclosed-channels.js';

const closings = diagnostics('networkdirect.net.close');

/** Events that programs may look for, and what there is in their place. */
const noEvents: ReadonlyMap<unknown, string> = new Map(
  ['message', 'data', 'request'].map((name) => [
    name,
    name === 'request' ? 'answer requests with onRequest()' : 'read messages with `for await` or receive()',
  ]),
);

/** A listener that is never called would hide the mistake. */
function refuseListener(name: unknown): void {
  const instead = noEvents.get(name);
  if (instead !== undefined)
    throw Object.assign(new TypeError(`A channel has no event '${String(name)}': ${instead}.`), {
      code: 'ERR_INVALID_ARG_VALUE',
    });
}

/**
 * A connection that carries whole messages, requests and answers. Emits `'close'` once, after its end. It has no `'message'` event: messages
 * wait until they are read.
 *
 * @example
 * ```ts
 * const channel = await connectChannel(7000, 'localhost');
 * const answer = await channel.request('how are you?');
 * for await (const message of channel) console.log(message.toString());
 * ```
 */
export class Channel extends EventEmitter implements AsyncIterable<Buffer>, AsyncDisposable {
  /** The error that ended the connection; undefined while it lasts, and after a clean end. */
  error: Error | undefined;
  /** Messages of `Server.broadcast` that the peer does not get, because it was too slow or does not accept so many bytes. */
  droppedMessages = 0;
  /** Its server keeps it, for broadcasts. @internal */
  kept = false;
  /** Bytes of broadcasts that wait for the peer. @internal */
  broadcastBytes = 0;
  readonly #options: { readonly [K in keyof typeof channelDefaults]: number };
  #link!: Link;
  readonly #outbox = new Outbox(() => this.#link);
  readonly #inbox = new Inbox();
  readonly #account: Account;
  #reader!: Reader;
  readonly #pendingRequests = new PendingRequests();
  readonly #incomingRequests: IncomingRequests;
  #closing = false;
  #endSent = false;
  #endReceived = false;
  #ended = false;
  /** Of a payload whose last piece has not come. */
  #pieces: Pieces | undefined;
  /** Large messages that are not read yet. */
  #reading = 0;
  /** How others refer to it. @internal */
  readonly handle = new WeakHandle<Channel>(this);
  /** Peers may be using memory that it has exposed. */
  #exposes = false;

  /** @internal */
  constructor(options: ChannelOptions = {}, budget: Budget = threadBudget) {
    super();
    this.on('newListener', refuseListener);
    checkChannelOptions('connectChannel', options);
    const { onRequest, ...sizes } = options;
    this.#options = { ...channelDefaults, ...defined(sizes) };
    this.#account = new Account(budget, this);
    this.#incomingRequests = new IncomingRequests(
      {
        channel: this,
        limit: this.#options.maxRequests,
        answer: (id, bytes, gone) => {
          const refusal = this.#tooLong('answer', bytes);
          if (refusal !== undefined) throw refusal;
          return this.#reply(Frame.ANSWER, id, bytes, gone);
        },
        fail: (id, text, gone) => this.#reply(Frame.FAILURE, id, textOf(text, this.#link.most), gone),
        full: () => this.#account.answers.full,
        whenReleased: (retry) => this.#account.whenReleased(retry),
        idle: () => {
          if (this.#endReceived || this.#closing) this.#proceed();
        },
      },
      onRequest,
    );
  }

  /** @internal */
  readonly linkUser: LinkUser = {
    frame: (type, flags, id, slot, at, length) => this.#frame(type, flags, id, slot, at, length),
    wasRead: (id) => this.#outbox.wasRead(id),
    writable: () => this.#writable(),
    ended: (error) => this.#finish(error),
    unsent: () => !this.#outbox.done,
  };

  /** What its link needs. @internal */
  get linkNeeds() {
    const { slots, slotBytes, maxMessageBytes } = this.#options;
    const options = { kind: Kind.CHANNEL, slots, slotBytes, maxMessageBytes, ringBytes: 0 };
    return { options, user: weakUser(this.handle) };
  }

  /** @internal */
  attach(link: Link): void {
    this.#link = link;
    this.#reader = new Reader(link);
    watchChannel(this, link);
  }

  /** Whether something besides the program can still have a use for it. */
  get #needed(): boolean {
    if (this.#ended) return false;
    const awaited = this.#pendingRequests.size > 0 || this.#inbox.awaited || !this.#outbox.done;
    const serves = this.#incomingRequests.serves || this.#exposes || this.listenerCount('close') > 0;
    return awaited || serves || this.#closing || this.kept;
  }

  /** Lets go of itself when nothing but the program needs it. */
  #settle(): void {
    this.handle.strong = this.#needed ? this : undefined;
  }

  /** As in EventEmitter. @internal */
  override on(event: string | symbol, listener: (...parameters: never[]) => void): this {
    this.handle.strong = this;
    return super.on(event, listener as (...parameters: unknown[]) => void);
  }

  /** As in EventEmitter. @internal */
  override addListener(event: string | symbol, listener: (...parameters: never[]) => void): this {
    return this.on(event, listener);
  }

  /** As in EventEmitter. @internal */
  override prependListener(event: string | symbol, listener: (...parameters: never[]) => void): this {
    this.handle.strong = this;
    return super.prependListener(event, listener as (...parameters: unknown[]) => void);
  }

  /** What it shares with other connections. @internal */
  get context(): LocalContext {
    return this.#link.context;
  }

  /** This side's address and port. */
  get localAddress(): SocketAddress {
    return this.#link.connector.getLocalAddress();
  }

  /** The peer's address and port. */
  get remoteAddress(): SocketAddress {
    return this.#link.connector.getPeerAddress();
  }

  /** The connection has ended. */
  get destroyed(): boolean {
    return this.#ended;
  }

  /** Nothing is being sent, read or answered, and no message waits for the program. @internal */
  get idle(): boolean {
    if (this.#closing || this.#ended || this.#pieces !== undefined) return false;
    const busy = this.#incomingRequests.busy || this.#pendingRequests.size > 0 || !this.#outbox.done;
    return !busy && this.#reading === 0 && this.#inbox.length === 0;
  }

  /** The connection keeps the process alive, as it does before {@link unref}. */
  ref(): this {
    this.#link.processRef.want(true);
    return this;
  }

  /** The connection does not keep the process alive, nor do requests that wait for their answers. What is not sent yet does. */
  unref(): this {
    this.#link.processRef.want(false);
    return this;
  }

  /** Answers the peer's requests from now on. Without a handler they fail. */
  onRequest(handler: RequestHandler): this {
    checkHandler(handler);
    this.handle.strong = this;
    this.#incomingRequests.use(handler);
    return this;
  }

  /**
   * Sends a message. It resolves when the bytes may be used again: they were copied or, if they are long or were lent, the peer has read
   * them.
   *
   * @param bytes - the message, not to be changed before the promise resolves
   * @param options - `signal`
   * @throws NetError `EMSGSIZE`: longer than the peer takes; `ECONNRESET` and others; AbortError, only if it has not begun
   */
  send(bytes: MessageBytes, options?: AbortOptions): Promise<void> {
    const signal = options?.signal;
    if (this.#closing || this.#ended) return Promise.reject(this.error ?? closed('send'));
    const data = bytesOf(bytes);
    const refusal = refusalBy(signal) ?? this.#tooLong('message', data);
    if (refusal !== undefined) return Promise.reject(refusal);
    let settle: (error: unknown) => void = () => {};
    let resolved = (): void => {};
    const entry = this.#outbox.send(
      Frame.DATA,
      0,
      data,
      () => resolved(),
      (error) => settle(error),
    );
    if (entry === undefined) return sent;
    this.handle.strong = this;
    return abortable(
      (resolve, reject) => {
        resolved = () => resolve();
        settle = reject;
      },
      signal,
      () => this.#outbox.cancel(entry),
    );
  }

  /** Whether a broadcast of this length may be sent to it. @internal */
  accepts(length: number): boolean {
    return !this.#closing && !this.#ended && length <= this.#link.mostMessage;
  }

  /** Sends a broadcast. What is not copied at once is charged to {@link broadcastBytes} until the peer has it. @internal */
  relay(message: BroadcastMessage, charge: number): void {
    const { length } = message.bytes;
    const { context, most } = this.#link;
    const outbox = this.#outbox;
    if (length <= most && outbox.copies(Frame.DATA, length)) {
      outbox.send(Frame.DATA, 0, message.bytes);
      return;
    }
    this.handle.strong = this;
    this.broadcastBytes += charge;
    const shared = length > most && context.windows ? message.shared(context) : undefined;
    const own = shared === undefined ? message.own() : undefined;
    let waits = true;
    const over = (): void => {
      if (!waits) return;
      waits = false;
      this.broadcastBytes -= charge;
      (shared ?? own!).over();
    };
    const lost = (): void => {
      // What an ended channel has not sent is not dropped for being slow.
      if (waits && !this.#ended) {
        this.droppedMessages += 1;
        message.lost();
      }
      over();
    };
    if (shared !== undefined) outbox.share(shared.copy, over, lost);
    else if (outbox.send(Frame.DATA, 0, own!.bytes, over, lost) === undefined) over();
  }

  /**
   * Sends a request and resolves with its answer.
   *
   * @param bytes - of the request, not to be changed before the promise resolves
   * @param options - `signal`: the peer's handler gets the abort
   * @throws NetError `ERR_REMOTE` with the message of what the peer's handler threw; `ECONNRESET` and others if the connection ends first;
   *   AbortError
   */
  request(bytes: MessageBytes, options?: AbortOptions): Promise<Buffer> {
    return this.#ask(Frame.REQUEST, bytesOf(bytes), options?.signal);
  }

  /** The peer has told its limit: nothing is sent that would end the connection. */
  #tooLong(what: string, { length }: Uint8Array): NetError | undefined {
    const most = this.#link.mostMessage;
    return length > most ? tooLong(what, length, most) : undefined;
  }

  #ask(type: number, data: Uint8Array, signal: AbortSignal | undefined): Promise<Buffer> {
    const refusal =
      refusalBy(signal) ?? (type === Frame.REQUEST ? this.#tooLong('request', data) : undefined);
    if (refusal !== undefined) return Promise.reject(refusal);
    // A peer that has sent END answers nothing any more.
    if (this.#closing || this.#endReceived || this.#ended)
      return Promise.reject(this.error ?? closed('request'));
    const id = this.#pendingRequests.nextId();
    this.handle.strong = this;
    let entry: Entry | undefined;
    const promise = abortable<Buffer>(
      (resolve, reject) => this.#pendingRequests.add(id, { resolve, reject }),
      signal,
      () => {
        this.#pendingRequests.take(id);
        const unsent = entry !== undefined && this.#outbox.cancel(entry);
        if (!unsent && !this.#ended) this.#outbox.send(Frame.CANCEL, id, undefined);
        return true;
      },
    );
    entry = this.#outbox.send(type, id, data, undefined, (error) =>
      this.#pendingRequests.take(id)?.reject(error),
    );
    return promise;
  }

  /**
   * The next message; undefined when the peer has closed and all were taken.
   *
   * @param options - `signal`
   * @throws the error that ended the connection, after the messages that came before it; AbortError
   */
  receive(options?: AbortOptions): Promise<Buffer | undefined> {
    const message = this.#inbox.take(options?.signal);
    this.#settle();
    return message;
  }

  /** The messages until the peer closes. Leaving the loop does not close the channel. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Buffer> {
    return iterate(() => this.receive());
  }

  /**
   * Makes memory readable, and if asked writable, for peers that get the handle, on all connections at this local address. It stays so
   * until the handle is released.
   *
   * @param buffer - best of `allocate()`: processes of this host then reach it without this process
   * @param options - rights; default: reading only
   * @throws NetError `EINVAL`: it cannot be registered, or is to have `views` and is not of `allocate()`
   */
  expose(buffer: Uint8Array, options?: ExposeOptions): Promise<ExposedMemory> {
    if (this.#closing || this.#ended) return Promise.reject(this.error ?? closed('expose'));
    this.#exposes = true;
    this.handle.strong = this;
    return exposeAt([this.#link.context], buffer, options);
  }

  /**
   * Access to memory that the peer has exposed.
   *
   * @param handle - the bytes of its handle, as they came in a message
   * @throws NetError `EPROTO`: not a handle; `ERR_STREAM_DESTROYED`: the channel is closed
   */
  open(handle: Uint8Array): RemoteMemory {
    const checkOpen = (what: string): void => {
      if (this.#closing || this.#ended) throw this.error ?? closed(what);
    };
    checkOpen('open');
    const ask = (data: Uint8Array, signal: AbortSignal | undefined): Promise<Buffer> =>
      this.#ask(Frame.ATOMIC, data, signal);
    return new RemoteMemory(this.#link, ask, checkOpen, handle);
  }

  /**
   * Registers memory once, so that messages from it are read by the peer without any copy here, until it is released. It serves all
   * channels at this local address; each peer gets at its own messages alone, until it has read them.
   *
   * @param buffer - the memory; {@link send} and {@link request} take any part of it
   */
  lend(buffer: Uint8Array): Promise<LentMemory> {
    if (this.#closing || this.#ended) return Promise.reject(this.error ?? closed('lend'));
    return lendAt(this.#link.context, buffer);
  }

  /**
   * Sends what is queued, waits for the answers of requests, and ends the connection when the peer does the same, which it does by itself.
   *
   * @param options - `signal`: ends the connection at once
   */
  async close(options?: AbortOptions): Promise<void> {
    const signal = options?.signal;
    checkSignal(signal);
    this.#closing = true;
    if (this.#ended) return;
    this.handle.strong = this;
    const gone = new Promise<void>((resolve) => this.once('close', () => resolve()));
    const abort = (): void => void this.destroy(signal && aborted(signal));
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
    this.#proceed();
    await gone;
    signal?.removeEventListener('abort', abort);
    if (signal?.aborted) throw aborted(signal);
  }

  /** Ends the connection at once. What is outstanding fails with the error; the peer gets `ECONNRESET`. */
  destroy(error?: Error): this {
    if (!this.#ended) this.#link.end(error ?? closed('destroy'));
    return this;
  }

  /** {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #writable(): void {
    this.#outbox.pump();
    if (this.#closing || this.#endReceived) this.#proceed();
    this.#settle();
  }

  /** Sends END, and ends the link, as soon as all that comes before is done. */
  #proceed(): void {
    if (this.#ended) return;
    const busy = this.#incomingRequests.busy || this.#pendingRequests.size > 0;
    if (!this.#endSent && !busy && this.#outbox.done && this.#link.takes(Frame.END, 0)) {
      this.#endSent = true;
      this.#closing = true;
      this.#link.send(Frame.END, 0, 0, undefined);
    }
    if (this.#endSent && this.#endReceived && this.#reading === 0 && this.#link.quiet)
      this.#link.end(undefined);
  }

  #finish(reason: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    const clean = this.#endSent && this.#endReceived;
    const error = clean || reason === undefined ? undefined : (reason as Error);
    this.error = error;
    this.#outbox.end(error);
    this.#incomingRequests.end();
    this.#account.close();
    this.#pendingRequests.reject(error ?? closed('request'));
    this.#inbox.end(error);
    if (closings.hasSubscribers) closings.publish({ connection: this, error });
    unwatchChannel(this);
    this.handle.strong = undefined;
    setImmediate(() => {
      this.handle.gone?.();
      this.emit('close', error !== undefined);
    });
  }

  #frame(type: number, flags: number, id: number, slot: Slot, at: number, length: number): void {
    if (this.#endReceived) {
      this.#link.end(violation('a frame came behind END'));
      return;
    }
    const before = this.#pieces;
    if (before !== undefined && (before.type !== type || before.id !== id || flags === LARGE)) {
      this.#link.end(violation(`a frame of type ${type} came between the pieces of a payload`));
      return;
    }
    const bytes = before === undefined ? length : before.bytes + length;
    if (exceeds(type, flags, bytes, this.#options.maxMessageBytes)) {
      this.#link.end(violation(`a message of ${bytes} bytes is longer than this side takes`));
      return;
    }
    if (type === Frame.REQUEST && this.#incomingRequests.has(id)) {
      this.#link.end(violation(`it has not heard of the end of its request with the id ${id}`));
      return;
    }
    if (flags === MORE) {
      this.#piece(type, id, slot, at, length);
      return;
    }
    this.#pieces = undefined;
    if (type === Frame.END) {
      this.#link.release(slot);
      this.#endReceived = true;
      this.#pendingRequests.reject(closed('request'));
      if (this.#reading === 0) this.#inbox.end(undefined);
    } else if (flags === LARGE) this.#large(type, id, slot, at, length);
    else if (this.#endSent && asks(type)) this.#decline(slot, before);
    else if (type === Frame.DATA) this.#inbox.put(this.#link, slot, at, length, before);
    else if (type === Frame.REQUEST) this.#request(id, slot, at, length, before);
    else if (type === Frame.ANSWER || type === Frame.FAILURE)
      this.#settleQuestion(type, id, takePayload(this.#link, slot, at, length, before));
    else if (type === Frame.ATOMIC) this.#atomic(id, slot, at, length);
    else this.#cancelled(id, slot);
  }

  /** A payload goes on in the next frame. */
  #piece(type: number, id: number, slot: Slot, at: number, length: number): void {
    if (length !== this.#link.most) {
      this.#link.end(violation(`a piece of ${length} bytes; all but the last have ${this.#link.most}`));
      return;
    }
    this.#pieces ??= new Pieces(type, id);
    this.#pieces.add(slot, at, length);
  }

  #decline(slot: Slot, before: Pieces | undefined): void {
    before?.release(this.#link);
    this.#link.release(slot);
  }

  #request(id: number, slot: Slot, at: number, length: number, before: Pieces | undefined): void {
    const requests = this.#incomingRequests;
    if (before !== undefined) requests.arrive(this.#piecedRequest(id, slot, at, length, before));
    else if (requests.free) requests.serve(id, takePayload(this.#link, slot, at, length, before));
    else {
      const take = (): Buffer => takePayload(this.#link, slot, at, length, undefined);
      requests.arrive({ id, take, drop: () => this.#link.release(slot) });
    }
  }

  /** It waits in its slots until the account has room for it, and is held until its handler has answered. */
  #piecedRequest(id: number, slot: Slot, at: number, length: number, before: Pieces): Arrived {
    let charge: Charge | undefined;
    return {
      id,
      take: () =>
        new Promise((resolve) => {
          this.#account.requests.pass(before.bytes + length, (passed) => {
            charge = passed;
            resolve(takePayload(this.#link, slot, at, length, before));
          });
        }),
      answered: () => charge?.release(),
      drop: () => this.#decline(slot, before),
    };
  }

  #cancelled(id: number, slot: Slot): void {
    this.#link.release(slot);
    this.#incomingRequests.cancel(id);
  }

  /** Somebody may wait for this reply. */
  #settleQuestion(type: number, id: number, bytes: Buffer): void {
    const question = this.#pendingRequests.take(id);
    if (type === Frame.ANSWER) question?.resolve(bytes);
    else question?.reject(new NetError('ERR_REMOTE', bytes.toString()));
  }

  /** Executes an atomic operation. Its frame keeps the slot until the answer was sent: so many answers wait at most. */
  #atomic(id: number, slot: Slot, at: number, length: number): void {
    const link = this.#link;
    const operation = link.payload(at, length);
    if (!isAtomic(operation)) {
      link.end(violation('there is no such atomic operation'));
      return;
    }
    const answer = executeAtomic(link.context, operation);
    const release = (): void => link.release(slot);
    const waits =
      typeof answer === 'string'
        ? this.#outbox.send(Frame.FAILURE, id, textOf(answer, link.most), release, release)
        : this.#outbox.send(Frame.ANSWER, id, answer, release, release);
    if (waits === undefined) release();
  }

  /** Sends an answer. One that waits, or is read by the peer, is held on the peer's account. */
  #reply(type: number, id: number, bytes: Uint8Array, gone: () => void): HeldAnswer | undefined {
    let charge: Charge | undefined;
    // The connection may end within `send`: then nothing is charged, because its account is closed.
    const over = (): void => {
      charge?.release();
      gone();
    };
    const entry = this.#outbox.send(type, id, bytes, over, over);
    if (entry === undefined) return undefined;
    charge = this.#account.answers.hold(bytes.length);
    return {
      withdraw: () => {
        if (!this.#outbox.cancel(entry)) return false;
        charge?.release();
        return true;
      },
    };
  }

  /** Reads a large payload from the peer's memory. */
  #large(type: number, id: number, slot: Slot, at: number, length: number): void {
    const memory = decodeMemory(this.#link.payload(at, length));
    if (memory === undefined) {
      this.#link.end(violation('a long message has no description of its memory'));
      return;
    }
    const most = this.#options.maxMessageBytes;
    if (memory.length > most || memory.length === 0) {
      this.#link.end(
        violation(`a long message has ${memory.length} bytes; this side takes from 1 to ${most}`),
      );
      return;
    }
    if (this.#endSent && asks(type)) this.#reader.decline(memory, slot);
    else if (type === Frame.DATA) this.#message(memory, slot);
    else if (type === Frame.REQUEST) this.#incomingRequests.arrive(this.#largeRequest(id, memory, slot));
    else if (!this.#pendingRequests.has(id)) this.#reader.decline(memory, slot);
    else
      void this.#reader.fetch(this.#account.replies, memory, slot).then((fetched) => {
        fetched?.charge.release();
        if (fetched !== undefined) this.#settleQuestion(type, id, fetched.bytes);
      });
  }

  /** A large request: it is read when the limit allows, and held until its handler has answered. */
  #largeRequest(id: number, memory: MemoryDescription, slot: Slot): Arrived {
    let fetched: Fetched | undefined;
    return {
      id,
      take: async () => {
        fetched = await this.#reader.fetch(this.#account.requests, memory, slot);
        return fetched?.bytes;
      },
      answered: () => fetched?.charge.release(),
      drop: () => this.#reader.decline(memory, slot),
    };
  }

  /** A large message: it is read when the program takes messages. */
  #message(memory: MemoryDescription, slot: Slot): void {
    this.#reading += 1;
    const place = this.#inbox.reserve();
    deliver(this.handle, this.#reader.fetch(this.#account.messages, memory, slot), place);
  }

  /** A large message was read. @internal */
  fetched(place: Arrival, { bytes, charge }: Fetched): void {
    this.#reading -= 1;
    this.#inbox.fill(place, bytes, () => charge.release());
    if (this.#endReceived && this.#reading === 0) this.#inbox.end(undefined);
    this.#writable();
  }

  /** @internal */
  [inspect.custom](): string {
    const peer = this.#link === undefined ? 'no peer' : peerText(this.#link);
    const state = this.#ended ? (this.error?.message ?? 'closed') : this.#closing ? 'closing' : 'open';
    return `Channel { ${peer}, ${state}, ${this.#outbox.length} queued, ${this.#pendingRequests.size} requests, ${this.#inbox.length} unread }`;
  }
}

/** Nothing is sent behind END, and nobody there waits for an answer. */
/** The text in UTF-8, cut before the first character that does not fit in so many bytes. */
function textOf(text: string, most: number): Uint8Array {
  const bytes = new Uint8Array(Math.min(most, 3 * text.length));
  return bytes.subarray(0, new TextEncoder().encodeInto(text, bytes).written);
}

const asks = (type: number): boolean => type === Frame.REQUEST || type === Frame.ATOMIC;

const sent = Promise.resolve();

/** Apart from the channel, so that one that the program has lost is collected though messages wait for their turn. */
function deliver(handle: WeakHandle<Channel>, fetching: Promise<Fetched | undefined>, place: Arrival): void {
  void fetching.then((fetched) => {
    if (fetched !== undefined) handle.get()?.fetched(place, fetched);
  });
}
