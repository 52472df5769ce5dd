import { channel as diagnostics } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import { inspect } from 'node:util';
import type { SocketAddress } from '../../index.js';
import { checkFunction, checkSignal, defined } from '../base/checks.js';
import { aborted, closed, NetError, refusalBy, tooLong, violation } from '../base/errors.js';
import { signalOf } from '../base/option-places.js';
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

/** Events that do not exist although programs may expect them, and what to use instead. */
const noEvents: ReadonlyMap<unknown, string> = new Map(
  ['message', 'data', 'request'].map((name) => [
    name,
    name === 'request' ? 'handle requests with onRequest()' : 'read messages with `for await` or receive()',
  ]),
);

/** Rejects listeners that would never be called. */
function refuseListener(name: unknown): void {
  const instead = noEvents.get(name);
  if (instead !== undefined)
    throw Object.assign(new TypeError(`Channels do not emit '${String(name)}'; ${instead}.`), {
      code: 'ERR_INVALID_ARG_VALUE',
    });
}

/**
 * A connection that carries messages, and requests with answers (RPC). The channel emits `'close'` once, when the connection has ended.
 * There is no `'message'` event: messages are queued until the program reads them.
 *
 * @example
 * ```ts
 * const channel = await connectChannel(7000, 'localhost');
 * const answer = await channel.request('how are you?');
 * for await (const message of channel) console.log(message.toString());
 * ```
 */
export class Channel extends EventEmitter implements AsyncIterable<Buffer>, AsyncDisposable {
  /** The error that ended the connection; undefined while it is open and after a clean end. @category Lifetime */
  error: Error | undefined;
  /**
   * Messages of `Server.broadcast` that the peer did not get because it was too slow or does not accept messages of that length.
   * @category Statistics
   */
  droppedMessages = 0;
  /** Whether the server of the channel holds a reference to it, for broadcasts. @internal */
  kept = false;
  /** Bytes of broadcasts queued for the peer. @internal */
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
  /** The received pieces of an incomplete payload. */
  #pieces: Pieces | undefined;
  /** Large messages that have not been read yet. */
  #reading = 0;
  /** The handle through which other objects refer to it. @internal */
  readonly handle = new WeakHandle<Channel>(this);
  /** Whether the channel has exposed memory that peers may be using. */
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

  /** The user and the options for its link. @internal */
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

  /** Whether anything besides the program still needs this channel. */
  get #needed(): boolean {
    if (this.#ended) return false;
    const awaited = this.#pendingRequests.size > 0 || this.#inbox.awaited || !this.#outbox.done;
    const serves = this.#incomingRequests.serves || this.#exposes || this.listenerCount('close') > 0;
    return awaited || serves || this.#closing || this.kept;
  }

  /** Drops its reference to itself when only the program needs it. */
  #settle(): void {
    this.handle.strong = this.#needed ? this : undefined;
  }

  /** The same as in EventEmitter. @internal */
  override on(event: string | symbol, listener: (...parameters: never[]) => void): this {
    this.handle.strong = this;
    return super.on(event, listener as (...parameters: unknown[]) => void);
  }

  /** The same as in EventEmitter. @internal */
  override addListener(event: string | symbol, listener: (...parameters: never[]) => void): this {
    return this.on(event, listener);
  }

  /** The same as in EventEmitter. @internal */
  override prependListener(event: string | symbol, listener: (...parameters: never[]) => void): this {
    this.handle.strong = this;
    return super.prependListener(event, listener as (...parameters: unknown[]) => void);
  }

  /** The context that it shares with other connections. @internal */
  get context(): LocalContext {
    return this.#link.context;
  }

  /** Local address and port. @category Connect */
  get localAddress(): SocketAddress {
    return this.#link.connector.getLocalAddress();
  }

  /** The peer's address and port. @category Connect */
  get remoteAddress(): SocketAddress {
    return this.#link.connector.getPeerAddress();
  }

  /** Whether the connection has ended. @category Lifetime */
  get destroyed(): boolean {
    return this.#ended;
  }

  /** Whether nothing is being sent, read or answered, and no message waits for the program. @internal */
  get idle(): boolean {
    if (this.#closing || this.#ended || this.#pieces !== undefined) return false;
    const busy = this.#incomingRequests.busy || this.#pendingRequests.size > 0 || !this.#outbox.done;
    return !busy && this.#reading === 0 && this.#inbox.length === 0;
  }

  /** Makes the connection keep the process alive, which is the default. @category Lifetime */
  ref(): this {
    this.#link.processRef.setRef(true);
    return this;
  }

  /**
   * Stops the connection and unanswered requests from keeping the process alive. Unsent data still does.
   * @category Lifetime
   */
  unref(): this {
    this.#link.processRef.setRef(false);
    return this;
  }

  /** Sets the handler of the peer's requests. Without a handler, they fail. @category Receive */
  onRequest(handler: RequestHandler): this {
    checkFunction('handler', handler);
    this.handle.strong = this;
    this.#incomingRequests.use(handler);
    return this;
  }

  /**
   * Sends a message. Resolves when the bytes may be reused. Short messages are copied; long or lent ones are read by the peer.
   *
   * @param bytes - the message; do not change it before the promise resolves
   * @param options - `signal`
   * @throws NetError `EMSGSIZE` (longer than the peer accepts), `ECONNRESET` and others; AbortError, only if sending has not begun
   * @category Send
   */
  send(bytes: MessageBytes, options?: AbortOptions): Promise<void> {
    const signal = signalOf('send', options);
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

  /** Whether a broadcast of this length may be sent to the peer. @internal */
  accepts(length: number): boolean {
    return !this.#closing && !this.#ended && length <= this.#link.mostMessage;
  }

  /** Sends a broadcast. Bytes that are not copied immediately count in {@link broadcastBytes} until the peer has them. @internal */
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
    const shared = length > most && context.windows && context.reads ? message.shared(context) : undefined;
    const own = shared === undefined ? message.own() : undefined;
    let waits = true;
    const over = (): void => {
      if (!waits) return;
      waits = false;
      this.broadcastBytes -= charge;
      (shared ?? own!).over();
    };
    const lost = (): void => {
      // Messages that an ended channel has not sent are not counted as dropped.
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
   * Sends a request and resolves with its answer (RPC).
   *
   * @param bytes - bytes of the request; do not change them before the promise resolves
   * @param options - `signal`, which also aborts the signal of the peer's handler
   * @throws NetError `ERR_REMOTE` (the peer's handler threw; the message is that of its error), `ECONNRESET` and others (the connection
   *   ended first); AbortError
   * @category Send
   */
  request(bytes: MessageBytes, options?: AbortOptions): Promise<Buffer> {
    return this.#sendRequest(Frame.REQUEST, bytesOf(bytes), signalOf('request', options));
  }

  /** Rejects a payload that exceeds the limit announced by the peer, because the peer would end the connection. */
  #tooLong(what: string, { length }: Uint8Array): NetError | undefined {
    const { mostMessage: most, context } = this.#link;
    return length > most ? tooLong(what, length, most, context.reads) : undefined;
  }

  #sendRequest(type: number, data: Uint8Array, signal: AbortSignal | undefined): Promise<Buffer> {
    const refusal =
      refusalBy(signal) ?? (type === Frame.REQUEST ? this.#tooLong('request', data) : undefined);
    if (refusal !== undefined) return Promise.reject(refusal);
    // After END, the peer sends no more answers.
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
   * Receives the next message. Resolves with undefined when the peer has closed and all messages were received.
   *
   * @param options - `signal`
   * @throws the error that ended the connection, after all messages that arrived before it; AbortError
   * @category Receive
   */
  receive(options?: AbortOptions): Promise<Buffer | undefined> {
    const message = this.#inbox.take(signalOf('receive', options));
    this.#settle();
    return message;
  }

  /** Iterates over messages until the peer closes. Leaving the loop does not close the channel. @category Receive */
  [Symbol.asyncIterator](): AsyncIterableIterator<Buffer> {
    return iterate(() => this.receive());
  }

  /**
   * Makes memory accessible to peers that get its handle, on all connections at this local address, until it is released. It is readable
   * and, with `writable`, writable.
   *
   * @param buffer - preferably from `allocate()`, so that processes on this host can access it directly
   * @param options - rights, by default read only
   * @throws NetError `EINVAL` (`buffer` cannot be registered, or `views` requires memory from `allocate()`)
   * @category Memory
   */
  expose(buffer: Uint8Array, options?: ExposeOptions): Promise<ExposedMemory> {
    if (this.#closing || this.#ended) return Promise.reject(this.error ?? closed('expose'));
    this.#exposes = true;
    this.handle.strong = this;
    return exposeAt([this.#link.context], buffer, options);
  }

  /**
   * Opens memory that the peer has exposed.
   *
   * @param handle - the bytes of its handle, as received in a message
   * @throws NetError `EPROTO` (not a handle), `ERR_STREAM_DESTROYED` (the channel is closed)
   * @category Memory
   */
  open(handle: Uint8Array): RemoteMemory {
    const checkOpen = (what: string): void => {
      if (this.#closing || this.#ended) throw this.error ?? closed(what);
    };
    checkOpen('open');
    const request = (data: Uint8Array, signal: AbortSignal | undefined): Promise<Buffer> =>
      this.#sendRequest(Frame.ATOMIC, data, signal);
    return new RemoteMemory(this.#link, request, checkOpen, handle);
  }

  /**
   * Registers memory once so that peers read messages in it without a copy on this side, until it is released. It serves all channels at
   * this local address. A peer has access only to its own messages, and only until it has read them.
   *
   * @param buffer - the memory; {@link send} and {@link request} accept any part of it
   * @category Memory
   */
  lend(buffer: Uint8Array): Promise<LentMemory> {
    if (this.#closing || this.#ended) return Promise.reject(this.error ?? closed('lend'));
    return lendAt(this.#link.context, buffer);
  }

  /**
   * Sends all queued data, waits for the answers to its requests and for the peer's end, and ends the connection. The peer ends its side
   * automatically.
   *
   * @param options - `signal`, which ends the connection immediately
   * @category Lifetime
   */
  async close(options?: AbortOptions): Promise<void> {
    const signal = signalOf('close', options);
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

  /**
   * Ends the connection immediately. Pending operations fail with the error; the peer gets `ECONNRESET`.
   * @category Lifetime
   */
  destroy(error?: Error): this {
    if (!this.#ended) this.#link.end(error ?? closed('destroy'));
    return this;
  }

  /** {@link close}, for `await using`. @category Lifetime */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #writable(): void {
    this.#outbox.pump();
    if (this.#closing || this.#endReceived) this.#proceed();
    this.#settle();
  }

  /** Sends END and ends the link as soon as everything before it is done. */
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
      this.#link.end(violation('a frame followed END'));
      return;
    }
    const before = this.#pieces;
    if (before !== undefined && (before.type !== type || before.id !== id || flags === LARGE)) {
      this.#link.end(violation(`a frame of type ${type} interrupted the pieces of a payload`));
      return;
    }
    const bytes = before === undefined ? length : before.bytes + length;
    if (exceeds(type, flags, bytes, this.#options.maxMessageBytes)) {
      this.#link.end(violation(`a message of ${bytes} bytes exceeds the limit of this side`));
      return;
    }
    if (type === Frame.REQUEST && this.#incomingRequests.has(id)) {
      this.#link.end(violation(`it reused the id ${id} of an unanswered request`));
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
    else if (this.#endSent && expectsReply(type)) this.#decline(slot, before);
    else if (type === Frame.DATA) this.#inbox.put(this.#link, slot, at, length, before);
    else if (type === Frame.REQUEST) this.#request(id, slot, at, length, before);
    else if (type === Frame.ANSWER || type === Frame.FAILURE)
      this.#settleRequest(type, id, takePayload(this.#link, slot, at, length, before));
    else if (type === Frame.ATOMIC) this.#atomic(id, slot, at, length);
    else this.#cancelled(id, slot);
  }

  /** Handles a piece whose payload continues in the next frame. */
  #piece(type: number, id: number, slot: Slot, at: number, length: number): void {
    if (length !== this.#link.most) {
      this.#link.end(
        violation(`a piece must have ${this.#link.most} bytes unless it is the last; got ${length}`),
      );
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

  /** The request waits in its slots until the account has room for it, and is held until its handler has answered. */
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

  /** Resolves or rejects the request to which this reply belongs, if it is still pending. */
  #settleRequest(type: number, id: number, bytes: Buffer): void {
    const pending = this.#pendingRequests.take(id);
    if (type === Frame.ANSWER) pending?.resolve(bytes);
    else pending?.reject(new NetError('ERR_REMOTE', bytes.toString()));
  }

  /** Executes an atomic operation. Its frame keeps the slot until the reply has been sent, which bounds the number of waiting replies. */
  #atomic(id: number, slot: Slot, at: number, length: number): void {
    const link = this.#link;
    const operation = link.payload(at, length);
    if (!isAtomic(operation)) {
      link.end(violation('unknown atomic operation'));
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

  /** Sends an answer. If the answer has to wait or is read by the peer, its bytes are charged to the peer's account. */
  #reply(type: number, id: number, bytes: Uint8Array, gone: () => void): HeldAnswer | undefined {
    let charge: Charge | undefined;
    // The connection may end within `send`. In that case nothing is charged, because the account is closed.
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

  /** Handles the description of a large payload in the peer's memory. */
  #large(type: number, id: number, slot: Slot, at: number, length: number): void {
    const memory = decodeMemory(this.#link.payload(at, length));
    if (memory === undefined) {
      this.#link.end(violation('a long message has no valid memory description'));
      return;
    }
    const most = this.#options.maxMessageBytes;
    if (memory.length > most || memory.length === 0) {
      this.#link.end(violation(`a long message must have from 1 to ${most} bytes; got ${memory.length}`));
      return;
    }
    if (this.#endSent && expectsReply(type)) this.#reader.decline(memory, slot);
    else if (type === Frame.DATA) this.#message(memory, slot);
    else if (type === Frame.REQUEST) this.#incomingRequests.arrive(this.#largeRequest(id, memory, slot));
    else if (!this.#pendingRequests.has(id)) this.#reader.decline(memory, slot);
    else
      void this.#reader.fetch(this.#account.replies, memory, slot).then((fetched) => {
        fetched?.charge.release();
        if (fetched !== undefined) this.#settleRequest(type, id, fetched.bytes);
      });
  }

  /** A large request is read when the limit allows, and held until its handler has answered. */
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

  /** A large message is read when the program receives messages. */
  #message(memory: MemoryDescription, slot: Slot): void {
    this.#reading += 1;
    const place = this.#inbox.reserve();
    deliver(this.handle, this.#reader.fetch(this.#account.messages, memory, slot), place);
  }

  /** Called when a large message has been read. @internal */
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

/** Encodes text as UTF-8, truncated before the first character that exceeds `most` bytes. */
function textOf(text: string, most: number): Uint8Array {
  const bytes = new Uint8Array(Math.min(most, 3 * text.length));
  return bytes.subarray(0, new TextEncoder().encodeInto(text, bytes).written);
}

const expectsReply = (type: number): boolean => type === Frame.REQUEST || type === Frame.ATOMIC;

const sent = Promise.resolve();

/** This function is separate from the channel, so that an unreferenced channel can be collected while messages wait for admission. */
function deliver(handle: WeakHandle<Channel>, fetching: Promise<Fetched | undefined>, place: Arrival): void {
  void fetching.then((fetched) => {
    if (fetched !== undefined) handle.get()?.fetched(place, fetched);
  });
}
