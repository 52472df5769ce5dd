import { channel as diagnostics } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import { inspect } from 'node:util';
import { shown } from '../../kernel-bridge/ioctl/shown.js';
import type { IND2Connector, Overlapped } from '../index.js';
import {
  checkBoolean,
  checkFunction,
  checkSignal,
  defined,
  hostOf,
  outOfRange,
  portOf,
  wrongValue,
} from './base/checks.js';
import { emitEvent } from './base/emit.js';
import { aborted, NetError, netError, otherVersion, reset } from './base/errors.js';
import { checkOptionNames } from './base/option-places.js';
import { Broadcaster, type BroadcastOptions, type BroadcastResult } from './channel/broadcast.js';
import { Budget, threadBudget } from './channel/budget.js';
import { Channel } from './channel/channel.js';
import { type ChannelOptions, checkChannelOptions, type MessageBytes } from './channel/channel-options.js';
import { familyOf } from './connection/address-text.js';
import {
  decodeHello,
  encodeHello,
  encodeVersion,
  type Hello,
  Kind,
  otherVersionIn,
} from './connection/frames.js';
import { Link, type LinkUser } from './connection/link.js';
import type { LocalContext } from './connection/local-context.js';
import { checkNameAlone, claimName, type LocalNameClaim, NAMED_HOST } from './connection/names.js';
import type { Opening } from './connection/open-link.js';
import { checkSizes } from './connection/size-bounds.js';
import type { WeakHandle } from './connection/weak-handle.js';
import { leave, listenAt, localAddresses, type Post } from './listen-addresses.js';
import { type ExposedMemory, type ExposeOptions, exposeAt } from './memory/exposed-memory.js';
import type { NodeServerOptions } from './node-options.js';
import { Socket, type SocketOptions } from './stream/socket.js';

const accepted = diagnostics('networkdirect.net.accept');
const failed = diagnostics('networkdirect.net.clientError');

/**
 * Maximum number of accepted connections that peers have not established yet. The connection management of the software HCA has lower
 * limits, in total and per peer; this one applies to other providers.
 */
const MOST_ENTERING = 256;

/**
 * Maximum wait for connections that are being accepted, in ms: before the last free connections within {@link Server.maxConnections} are
 * given to others, and before the server closes.
 */
const KEPT_MS = 500;

/** The user of a link that the program has not received yet. Frames wait in the link, and accepting fails if the link ends. */
const detachedUser: LinkUser = {
  frame() {},
  wasRead() {},
  writable() {},
  ended() {},
  unsent: () => false,
};

/** A connection that is being created for a peer's request, and the options of its link. */
interface Entrant {
  readonly connection: Socket | Channel;
  readonly needs: Opening;
  readonly event: string;
}

/** Options of {@link Server.listen}: the listening address or name of a server. */
export interface ListenOptions {
  /** Port to listen on. Default 0, a free one. */
  readonly port?: number | undefined;
  /** A local address or host name. Default, and `'::'`: all addresses of all adapters; `'0.0.0.0'`: all IPv4 addresses. */
  readonly host?: string | undefined;
  /**
   * A name, instead of `port` and `host`, for connections from other programs of this user on this host. 1 to 48 letters, digits, or characters
   * of `_.:@-`. The server listens on a free port of 127.0.0.1. Linux releases the name when the process dies. Linux only.
   */
  readonly name?: string | undefined;
  /** Maximum number of waiting connection requests. By default the kernel's limit applies. */
  readonly backlog?: number | undefined;
  /** Closes the server when aborted. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of a server and the connections that it accepts. */
export interface ServerOptions extends NodeServerOptions {
  /** Options of accepted channels. */
  readonly channel?: ChannelOptions | undefined;
  /** Whether the server holds references to its channels, which {@link Server.broadcast} requires; default false. */
  readonly broadcasts?: boolean | undefined;
  /**
   * Maximum bytes that its channels hold together: large messages and requests, and answers that peers have not read. Peers wait while it
   * is reached. Queued broadcasts are included, except one for each channel. Default: the bound of {@link setMaxBufferedBytes}, which also
   * applies to all connections of the thread together.
   */
  readonly maxBufferedBytes?: number | undefined;
  /** Options of accepted sockets. */
  readonly socket?: SocketOptions | undefined;
  /** Default for `socket.allowHalfOpen`, as in `net.Server`. */
  readonly allowHalfOpen?: boolean | undefined;
  /** Default for `socket.highWaterMark`, as in `net.Server`. */
  readonly highWaterMark?: number | undefined;
  /** Whether sockets are paused before they are passed to the handler, as in `net.Server`; default false. */
  readonly pauseOnConnect?: boolean | undefined;
}

/** The addresses of a dropped connection, as `net.Server` emits them with `'drop'`. */
export interface DroppedAddresses {
  /** This side's address. Like the other properties, it is undefined if it is no longer known. */
  readonly localAddress?: string | undefined;
  /** The port on which the server listens. */
  readonly localPort?: number | undefined;
  /** The family of `localAddress`. */
  readonly localFamily?: 'IPv4' | 'IPv6' | undefined;
  /** The peer's address. */
  readonly remoteAddress?: string | undefined;
  /** The peer's port. */
  readonly remotePort?: number | undefined;
  /** The family of `remoteAddress`. */
  readonly remoteFamily?: 'IPv4' | 'IPv6' | undefined;
}

/**
 * Listens for connections. It emits the events of `net.Server`: `'listening'`, `'connection'` (a {@link Socket}), `'close'`, `'error'` and
 * `'drop'` (see {@link Server.maxConnections}), and `'channel'` (a {@link Channel}). Connections of a kind without a listener are rejected.
 *
 * `'clientError'` (a {@link NetError} and the {@link DroppedAddresses}) is emitted when a requested connection failed before the program
 * received it. No socket has to be destroyed, and no listener is required.
 * @example
 * ```ts
 * const server = createServer((socket) => socket.pipe(socket));
 * server.on('error', (error) => console.error(error.message));
 * server.listen(7000, '192.0.2.1', () => console.log(server.address()));
 * // …
 * await server.close();
 * ```
 */
export class Server extends EventEmitter implements AsyncDisposable {
  /**
   * Maximum number of connections, as in `net.Server`. Further ones are rejected or, if already established, ended; `'drop'` is emitted
   * with their {@link DroppedAddresses}. Undefined: unlimited.
   * @category Connect
   */
  get maxConnections(): number | undefined {
    return this.#maxConnections;
  }

  /** @throws RangeError `ERR_OUT_OF_RANGE` (not a non-negative number) @category Connect */
  set maxConnections(most: number | undefined) {
    if (most !== undefined && !(typeof most === 'number' && most >= 0))
      throw outOfRange(
        `\`maxConnections\` must be a non-negative number, or undefined for no limit; got ${shown(most)}.`,
      );
    this.#maxConnections = most;
  }

  #maxConnections: number | undefined;
  /**
   * No effect: connections above {@link maxConnections} are always rejected. For programs written for `net.Server`.
   * @category Connect
   */
  dropMaxConnection = false;
  /** Connections that are being accepted. */
  readonly #entering = new Map<IND2Connector, number>();
  /** Connections for which one of {@link maxConnections} is reserved. */
  readonly #reserved = new Set<IND2Connector>();
  /** Called when a connection that is being accepted is established or has failed. */
  #entered: (() => void)[] = [];
  #clientErrors = 0;
  readonly #options: ServerOptions;
  readonly #budget: Budget;
  readonly #broadcaster: Broadcaster;
  readonly #connections = new Set<Socket | WeakHandle<Channel>>();
  /** The listeners of the current listen call. */
  #posts: Post[] = [];
  /** The pending GetConnectionRequest of each listener. */
  readonly #waiting = new Map<IND2Connector, Overlapped<void>>();
  #wanted = true;
  /** The wildcard address if the server listens on all addresses. */
  #all: string | undefined;
  /** The claim of the server's name, if any. */
  #name: LocalNameClaim | undefined;
  #begun = false;
  /** Number of listen calls. */
  #attempt = 0;
  /** The connections of this listen call and of earlier ones are no longer passed to the program. */
  #endedAttempt = 0;
  #closed = false;
  /** The pending promise of {@link close}. */
  #over: Promise<void> | undefined;
  /** Whether the server was closed but has not emitted `'close'` yet. */
  #ending = false;

  /** @internal */
  constructor(options: ServerOptions = {}, call?: string) {
    super();
    checkOptionNames('server', options, call);
    checkOptionNames('serverSockets', options.socket);
    checkBoolean('broadcasts', options.broadcasts);
    checkSizes(options.socket ?? {});
    checkChannelOptions('serverChannels', options.channel === undefined ? {} : options.channel);
    const { maxBufferedBytes, highWaterMark } = options;
    checkSizes({ maxBufferedBytes, highWaterMark });
    this.#budget = maxBufferedBytes === undefined ? threadBudget : new Budget(maxBufferedBytes, threadBudget);
    this.#broadcaster = new Broadcaster(this.#budget);
    this.#options = options;
  }

  /** Whether the server accepts connections. @category Connect */
  get listening(): boolean {
    return this.#posts.length > 0 && !this.#closed;
  }

  /** Number of open connections. @category Statistics */
  get connections(): number {
    return this.#connections.size;
  }

  /**
   * Number of connections that failed before the program received them, each with a `'clientError'`.
   * @category Statistics
   */
  get clientErrors(): number {
    return this.#clientErrors;
  }

  /**
   * Passes the number of open connections to a callback, as `net.Server` does.
   *
   * @param callback - called in the next tick
   * @category Statistics
   */
  getConnections(callback: (error: Error | null, count: number) => void): this {
    checkFunction('callback', callback);
    process.nextTick(callback, null, this.#connections.size);
    return this;
  }

  /** Makes listening keep the process alive, which is the default. @category Lifetime */
  ref(): this {
    this.#wanted = true;
    for (const request of this.#waiting.values()) request.ref();
    return this;
  }

  /** Stops listening from keeping the process alive; open connections still do. @category Lifetime */
  unref(): this {
    this.#wanted = false;
    for (const request of this.#waiting.values()) request.unref();
    return this;
  }

  /** The address and port, as in `net.Server`; null if not listening. @category Connect */
  address(): {
    /** The local IP address, or the wildcard address if it listens on all of them. */
    address: string;
    /** The family of the address. */
    family: 'IPv4' | 'IPv6';
    /** The port that was chosen or requested. */
    port: number;
  } | null {
    if (!this.listening) return null;
    const { address, port } = this.#posts[0]!.listener.getLocalAddress();
    const shown = this.#all ?? address;
    return { address: shown, family: shown.includes(':') ? 'IPv6' : 'IPv4', port };
  }

  /**
   * Starts listening, as `net.Server` does, and then emits `'listening'` or `'error'`. A server that was closed or failed to listen can
   * listen again.
   *
   * @param port - a port, all options, or only the callback. Default 0, a free port.
   * @param host - see {@link ListenOptions}; a number is the backlog
   * @param backlog - see {@link ListenOptions}
   * @param listening - called once it listens; accepted in place of any other argument
   * @throws RangeError `ERR_SOCKET_BAD_PORT`, TypeError (`host` is not a host, or `name` not a name), NetError `ERR_SERVER_ALREADY_LISTEN`
   * @category Connect
   */
  listen(
    port?: number | ListenOptions | (() => void) | null,
    host?: string | number | (() => void) | null,
    backlog?: number | (() => void) | null,
    listening?: () => void,
  ): this {
    const all = [port, host, backlog, listening];
    const done = all.find((one) => typeof one === 'function') as (() => void) | undefined;
    const given: ListenOptions =
      typeof port === 'object' && port !== null
        ? port
        : {
            port: typeof port === 'function' ? 0 : (port ?? 0),
            host: typeof host === 'number' || typeof host === 'function' ? undefined : hostOf(host),
            backlog: all.slice(1).find((one) => typeof one === 'number') as number | undefined,
          };
    checkOptionNames('listen', given);
    checkSignal(given.signal);
    checkNameAlone('listen()', given);
    const at = given.name === undefined ? hostOf(given.host) : NAMED_HOST;
    const options = { ...given, port: portOf(given.port ?? 0, 0), host: at };
    if (this.#begun && !this.#closed)
      throw new NetError('ERR_SERVER_ALREADY_LISTEN', 'The server is already listening. Close it first.');
    let refusal: NetError | undefined;
    if (given.name !== undefined) {
      try {
        this.#name = claimName(given.name);
      } catch (error) {
        if (!(error instanceof NetError)) throw error;
        refusal = error;
      }
    }
    if (done !== undefined) this.once('listening', done);
    this.#begun = true;
    this.#closed = false;
    this.#attempt += 1;
    const attempt = this.#attempt;
    const listens = refusal === undefined ? this.#listen(options, attempt) : Promise.reject(refusal);
    listens.then(
      () => {
        if (this.#goesOn(attempt)) emitEvent(this, 'listening');
      },
      (error) => {
        if (!this.#goesOn(attempt)) return;
        this.#closed = true;
        this.#drop();
        const { host: address = '::', port: number } = options;
        emitEvent(this, 'error', netError(error, { syscall: 'listen', address, port: number }));
      },
    );
    return this;
  }

  /** Whether this listen call has not been ended by a close. */
  #goesOn(attempt: number): boolean {
    return attempt === this.#attempt && !this.#closed;
  }

  async #listen({ port = 0, host, backlog = 0, signal }: ListenOptions, attempt: number): Promise<void> {
    if (signal?.aborted) throw aborted(signal);
    const addresses = await localAddresses(host);
    if (signal?.aborted) throw aborted(signal);
    if (!this.#goesOn(attempt)) return;
    this.#posts = listenAt(addresses, port, backlog);
    this.#name?.publish(this.#posts[0]!.listener.getLocalAddress().port);
    this.#all = undefined;
    if (host === undefined || host === '::' || host === '0.0.0.0')
      this.#all = addresses.some(({ family }) => family === 6) ? '::' : '0.0.0.0';
    if (signal !== undefined) {
      const abort = (): void => {
        if (this.#goesOn(attempt)) void this.close();
      };
      signal.addEventListener('abort', abort, { once: true });
      // An earlier listen call may end after this one has begun.
      const over = (): void => {
        if (this.#goesOn(attempt)) return;
        this.off('close', over);
        signal.removeEventListener('abort', abort);
      };
      this.on('close', over);
    }
    for (const post of this.#posts) void this.#accept(post, attempt);
  }

  async #accept({ context, listener }: Post, attempt: number): Promise<void> {
    while (this.#goesOn(attempt)) {
      const connector = context.adapter.createConnector();
      try {
        const request = listener.getConnectionRequest(connector);
        this.#waiting.set(connector, this.#wanted ? request : request.unref());
        await request;
        this.#waiting.delete(connector);
      } catch (error) {
        this.#waiting.delete(connector);
        connector.release();
        if (!this.#goesOn(attempt)) return;
        emitEvent(this, 'error', netError(error, 'accept'));
        await this.close();
        return;
      }
      // Requests are handled sequentially, so that at most one connection has memory before its peer gets a reply.
      await this.#acceptOrReject(context, connector, attempt);
      while (this.#entering.size >= MOST_ENTERING) await this.#nextEntered();
    }
  }

  /** Accepts or rejects a connection. Returns as soon as the reply is on its way. */
  async #acceptOrReject(context: LocalContext, connector: IND2Connector, attempt: number): Promise<void> {
    this.#entering.set(connector, attempt);
    let link: Link | undefined;
    try {
      const privateData = connector.getPrivateData();
      const version = otherVersionIn(privateData);
      if (version !== undefined) {
        this.#refuseVersion(connector, version, attempt);
        return;
      }
      const hello = decodeHello(privateData);
      const entrant = hello === undefined ? undefined : this.#make(hello);
      if (entrant === undefined || !this.#goesOn(attempt)) {
        connector.reject(hello && encodeHello(hello));
        this.#refused(connector);
        return;
      }
      if (this.#connections.size + this.#reserved.size >= this.#most) {
        await this.#settled();
        if (!this.#goesOn(attempt)) throw reset();
      }
      if (this.#full) {
        const addresses = addressesOf(connector);
        connector.reject();
        this.#refused(connector);
        emitEvent(this, 'drop', addresses);
        return;
      }
      this.#reserved.add(connector);
      const { options } = entrant.needs;
      link = await Link.make(context, connector, options, detachedUser);
      if (!this.#goesOn(attempt)) throw reset();
      link.applyHello(hello!);
      const made = link;
      const accepting = connector.accept(made.queuePair, { privateData: encodeHello(options) });
      if (!this.#wanted) accepting.unref();
      void accepting.then(
        () => this.#enter(entrant, made, attempt),
        (error) => this.#fail(connector, made, error, attempt),
      );
    } catch (error) {
      this.#fail(connector, link, error, attempt);
    }
  }

  /** Passes an established connection to the program. */
  #enter({ connection, needs, event }: Entrant, link: Link, attempt: number): void {
    const { connector } = link;
    if (link.over || attempt <= this.#endedAttempt) {
      this.#fail(connector, link, reset(), attempt);
      return;
    }
    // The limit is checked again, because other connections may have been established first. Connections that may never complete do not
    // reserve capacity.
    if (this.#full) {
      const addresses = addressesOf(connector);
      link.end(undefined);
      this.#left(connector);
      emitEvent(this, 'drop', addresses);
      return;
    }
    const entered = (): void => {
      connection.attach(link);
      link.user = needs.user;
      this.#count(connection);
      if (accepted.hasSubscribers) accepted.publish({ connection, server: this });
      this.#left(connector);
      // The program may end the connection immediately.
      emitEvent(this, event, connection);
    };
    try {
      link.establish(entered);
    } catch (error) {
      this.#fail(connector, link, error, attempt);
    }
  }

  /**
   * Handles a connection that failed before the program received it. This is neither an error of the server nor of a program without a
   * `'clientError'` listener.
   */
  #fail(
    connector: IND2Connector,
    link: Link | undefined,
    failure: unknown,
    attempt: number,
    addresses = addressesOf(connector),
  ): void {
    if (link === undefined) connector.release();
    else link.end(undefined);
    if (this.#goesOn(attempt)) {
      const error = netError(failure, 'accept');
      this.#clientErrors += 1;
      if (failed.hasSubscribers) failed.publish({ server: this, error, ...addresses });
      emitEvent(this, 'clientError', error, addresses);
    }
    this.#left(connector);
  }

  /** Rejects a client of another version. The Reject's private data has this side's version. */
  #refuseVersion(connector: IND2Connector, version: number, attempt: number): void {
    // The connector knows the addresses until the Reject.
    const addresses = addressesOf(connector);
    connector.reject(encodeVersion());
    this.#fail(connector, undefined, otherVersion('accept', 'the client', version), attempt, addresses);
  }

  /** Whether `maxConnections` is reached. */
  get #full(): boolean {
    return this.#connections.size >= this.#most;
  }

  get #most(): number {
    return this.#maxConnections ?? Number.POSITIVE_INFINITY;
  }

  /** Waits until the connections that are being accepted are established or one has failed, for at most {@link KEPT_MS}. */
  async #settled(): Promise<void> {
    let waits = true;
    const timer = setTimeout(() => {
      waits = false;
      this.#notifyEntered();
    }, KEPT_MS);
    while (waits && !this.#full && this.#connections.size + this.#reserved.size >= this.#most)
      await this.#nextEntered();
    clearTimeout(timer);
  }

  /** Resolves when a connection that is being accepted is established or has failed. */
  #nextEntered(): Promise<void> {
    return new Promise((resolve) => this.#entered.push(resolve));
  }

  #notifyEntered(): void {
    for (const entered of this.#entered.splice(0)) entered();
  }

  /** Called when the peer's request was rejected. */
  #refused(connector: IND2Connector): void {
    connector.release();
    this.#left(connector);
  }

  /** Called when a connection is no longer being accepted. */
  #left(connector: IND2Connector): void {
    this.#entering.delete(connector);
    this.#reserved.delete(connector);
    this.#notifyEntered();
    this.#endIfEmpty();
  }

  #make(hello: Hello): Entrant | undefined {
    if (hello.kind === Kind.CHANNEL) {
      const { broadcasts = false, channel } = this.#options;
      if (this.listenerCount('channel') === 0 && !broadcasts) return undefined;
      const connection = new Channel(channel, this.#budget);
      connection.kept = broadcasts;
      return { connection, needs: connection.linkNeeds, event: 'channel' };
    }
    if (this.listenerCount('connection') === 0) return undefined;
    const { socket, allowHalfOpen, highWaterMark, pauseOnConnect } = this.#options;
    const connection = new Socket({ ...socket, ...defined({ allowHalfOpen, highWaterMark }) });
    if (pauseOnConnect) connection.pause();
    return { connection, needs: connection.linkNeeds, event: 'connection' };
  }

  #count(connection: Socket | Channel): void {
    if (connection instanceof Channel) this.#countChannel(connection.handle);
    else {
      this.#connections.add(connection);
      connection.once('close', () => this.#gone(connection));
    }
  }

  /** Counts a channel without holding a reference to it. */
  #countChannel(handle: WeakHandle<Channel>): void {
    this.#connections.add(handle);
    handle.gone = () => this.#gone(handle);
  }

  #gone(connection: Socket | WeakHandle<Channel>): void {
    this.#connections.delete(connection);
    this.#endIfEmpty();
  }

  #endIfEmpty(): void {
    if (this.#ending && this.#empty) {
      this.#ending = false;
      this.#broadcaster.close();
      this.emit('close');
    }
  }

  /** Whether the server has no connections, including those that are being accepted. */
  get #empty(): boolean {
    return this.#connections.size === 0 && this.#entering.size === 0;
  }

  /**
   * Exposes memory to the peers of all connections of this server, as {@link Channel.expose} does. If the server listens on several
   * addresses, send each peer the handle from {@link ExposedMemory.handleFor}.
   *
   * @param buffer - the memory; preferably from `allocate()`
   * @param options - the rights, by default read only
   * @throws as {@link Channel.expose}; NetError `ERR_SERVER_NOT_RUNNING`
   * @category Memory
   */
  expose(buffer: Uint8Array, options?: ExposeOptions): Promise<ExposedMemory> {
    if (!this.listening) return Promise.reject(notRunning());
    return exposeAt(
      this.#posts.map(({ context }) => context),
      buffer,
      options,
    );
  }

  /**
   * Sends a message to all current channels, in order with all other data sent to each, without waiting for any of them. `slow` and
   * `maxQueuedBytes` control what happens to a channel whose peer does not keep up; other channels are not affected. A message that is
   * longer than a slot is copied once, and all peers read that copy, each peer with its own key. The caller may change the bytes as soon as
   * the call returns.
   *
   * The server must have the option `broadcasts`; otherwise channels without other references end when they are garbage-collected.
   *
   * @param message - bytes, or text as UTF-8
   * @param options - `except`, `slow`, `maxQueuedBytes`
   * @returns how many channels get the message, and how many do not; see also {@link Server.droppedMessages} and {@link
   *   Channel.droppedMessages}
   * @category Send
   */
  broadcast(message: MessageBytes, options?: BroadcastOptions): BroadcastResult {
    if (this.#options.broadcasts !== true)
      throw wrongValue(
        `\`broadcasts\` of createChannelServer() must be true for broadcast(); got ${this.#options.broadcasts}.`,
      );
    return this.#broadcaster.send(this.#channels(), message, options);
  }

  /**
   * Number of broadcast messages that channels did not get. A message counts once for each channel that did not get it.
   * @category Statistics
   */
  get droppedMessages(): number {
    return this.#broadcaster.dropped;
  }

  *#channels(): Generator<Channel> {
    for (const connection of this.#connections) {
      const channel = connection instanceof Socket ? undefined : connection.get();
      if (channel !== undefined && !channel.destroyed) yield channel;
    }
  }

  /**
   * Stops accepting connections. Resolves and emits `'close'` when all open connections have ended. Connections that are being accepted
   * have 0.5 s to complete.
   *
   * @param done - called at the same time, with an error if the server is not listening
   * @category Lifetime
   */
  close(done?: (error?: Error) => void): Promise<void> {
    if (done !== undefined) checkFunction('done', done);
    if (this.#closed || !this.#begun) {
      if (done !== undefined) process.nextTick(done, notRunning());
      return this.#over ?? Promise.resolve();
    }
    const over = new Promise<void>((resolve) => this.once('close', () => resolve()));
    this.#over = over;
    void over.then(() => (this.#over = undefined));
    if (done !== undefined) this.once('close', () => done());
    this.#closed = true;
    this.#drop();
    this.#ending = true;
    // The clients of these connections may already have received the Accept and sent all their data.
    const attempt = this.#attempt;
    const timer = setTimeout(() => this.#endEntering(attempt), KEPT_MS);
    if (!this.#wanted) timer.unref();
    this.once('close', () => clearTimeout(timer));
    setImmediate(() => this.#endIfEmpty());
    return over;
  }

  /** Ends the connections whose accept began under this listen call or an earlier one and is still in progress. */
  #endEntering(attempt: number): void {
    this.#endedAttempt = attempt;
    for (const [connector, since] of this.#entering)
      if (since <= attempt) connector.cancelOverlappedRequests();
  }

  /**
   * Ends all connections immediately and, if the server was closed, also those that are being accepted.
   * @category Lifetime
   */
  closeAllConnections(): void {
    if (this.#closed) this.#endEntering(this.#attempt);
    for (const connection of [...this.#connections]) connection.destroy();
  }

  /**
   * Ends idle connections, as `node:http` does, but in order, so that data that peers have sent meanwhile is still delivered. A channel is
   * idle if no request is pending in either direction and no message waits to be sent or received. A socket is idle if no byte waits to be
   * sent or read. Whether its peer expects data is unknown to this layer.
   * @category Lifetime
   */
  closeIdleConnections(): void {
    for (const connection of [...this.#connections]) {
      if (connection instanceof Socket) {
        if (connection.idle) connection.end();
      } else {
        const channel = connection.get();
        if (channel?.idle) void channel.close();
      }
    }
  }

  /** Closes the server and ends its connections, for `await using`. @category Lifetime */
  async [Symbol.asyncDispose](): Promise<void> {
    const closing = this.close();
    this.closeAllConnections();
    await closing;
  }

  #drop(): void {
    this.#name?.release();
    this.#name = undefined;
    for (const connector of this.#waiting.keys()) connector.cancelOverlappedRequests();
    for (const post of this.#posts.splice(0)) leave(post);
  }

  /** @internal */
  [inspect.custom](): string {
    const at = this.address();
    const where = at === null ? (this.#closed ? 'closed' : 'not listening') : `${at.address}:${at.port}`;
    return `Server { ${where}, ${this.#connections.size} connections }`;
  }
}

function notRunning(): NetError {
  return new NetError('ERR_SERVER_NOT_RUNNING', 'The server is not listening. Call listen() first.');
}

/** The addresses of a connection; empty if they are no longer known. */
function addressesOf(connector: IND2Connector): DroppedAddresses {
  try {
    const local = connector.getLocalAddress();
    const remote = connector.getPeerAddress();
    return {
      localAddress: local.address,
      localPort: local.port,
      localFamily: familyOf(local),
      remoteAddress: remote.address,
      remotePort: remote.port,
      remoteFamily: familyOf(remote),
    };
  } catch {
    return {};
  }
}
