/// <reference lib="esnext.disposable" preserve="true" />
/**
 * Streams, messages and shared memory over NetworkDirect, in the style of `node:net`.
 *
 * @module networkdirect/net
 */

import { channel as diagnostics } from 'node:diagnostics_channel';
import { checkFunction, checkMs, checkSignal, hostOf } from './base/checks.js';
import { emitEvent } from './base/emit.js';
import { aborted } from './base/errors.js';
import { checkOptionNames } from './base/option-places.js';
import { Channel } from './channel/channel.js';
import type { ChannelOptions } from './channel/channel-options.js';
import { checkDestination, openLink } from './connection/open-link.js';
import type { NodeSocketOptions } from './node-options.js';
import { Server, type ServerOptions } from './server.js';
import { checkOnRead, type OnReadOptions } from './stream/on-read.js';
import { Socket, type SocketOptions } from './stream/socket.js';

export { type AllocateOptions, allocate, type SocketAddress } from '../index.js';
export { NetError } from './base/errors.js';
export type { BroadcastOptions, BroadcastResult } from './channel/broadcast.js';
export { setMaxBufferedBytes } from './channel/budget.js';
export { Channel } from './channel/channel.js';
export type {
  AbortOptions,
  ChannelOptions,
  IncomingRequest,
  MessageBytes,
  RequestHandler,
} from './channel/channel-options.js';
export type { ExposeOptions } from './memory/exposed-memory.js';
export { ExposedMemory } from './memory/exposed-memory.js';
export { LentMemory } from './memory/lent-memory.js';
export type { RemoteOptions } from './memory/remote-memory.js';
export { RemoteMemory } from './memory/remote-memory.js';
export type { NodeServerOptions, NodeSocketOptions } from './node-options.js';
export type { DroppedAddresses, ListenOptions, ServerOptions } from './server.js';
export { Server } from './server.js';
export type { SetOptions, SharedMapOptions } from './shared-map/shared-map.js';
export { createSharedMap, SharedMap } from './shared-map/shared-map.js';
export type { OpenSharedMapOptions } from './shared-map/shared-map-view.js';
export { openSharedMap, SharedMapView } from './shared-map/shared-map-view.js';
export type { Codec } from './shared-map/value-codec.js';
export type { OnReadOptions } from './stream/on-read.js';
export type { SocketOptions } from './stream/socket.js';
export { Socket } from './stream/socket.js';

const connected = diagnostics('networkdirect.net.connect');

/** Options of {@link connect}. */
export interface ConnectOptions extends SocketOptions, NodeSocketOptions {
  /** Port of the server; required unless `name` is given. */
  readonly port?: number | undefined;
  /** The name under which a server of this user listens on this host; replaces `port` and `host`. */
  readonly name?: string | undefined;
  /** IP address or host name of the server; default `'localhost'`. */
  readonly host?: string | undefined;
  /** Destroys the socket with an AbortError, even after it is connected. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds without traffic until `'timeout'`, as in {@link Socket.setTimeout}. */
  readonly timeout?: number | undefined;
  /** Reads into a buffer of the program instead of emitting `'data'`. The events `'end'`, `'error'` and `'close'` are emitted as usual. */
  readonly onread?: OnReadOptions | null | undefined;
}

/** Called when the connection is established. */
export type ConnectListener = () => void;

/** Options of {@link connectChannel}. */
export interface ConnectChannelOptions extends ChannelOptions {
  /** Aborts the connection attempt with an AbortError. */
  readonly signal?: AbortSignal | undefined;
}

/** All parameters of {@link connectChannel} in one object. */
export interface ConnectChannelParameters extends ConnectChannelOptions {
  /** Port of the server; required unless `name` is given. */
  readonly port?: number | undefined;
  /** The name under which a server of this user listens on this host; replaces `port` and `host`. */
  readonly name?: string | undefined;
  /** IP address or host name of the server; default `'localhost'`. */
  readonly host?: string | undefined;
}

/**
 * Connects a stream, as `net.connect` does, and then emits `'connect'` or `'error'`.
 *
 * @param port - a port, or all options
 * @param host - an IP address or host name; default `'localhost'`
 * @param options - `signal`, sizes
 * @param listener - listener for `'connect'`; always the last argument
 * @throws RangeError `ERR_SOCKET_BAD_PORT`, TypeError (`host` is not a host)
 * @example
 * ```ts
 * const socket = connect(7000, 'localhost');
 * await pipeline(createReadStream('file'), socket);
 * ```
 */
export function connect(
  port: number | ConnectOptions,
  host?: string | ConnectListener,
  options?: Omit<ConnectOptions, 'port' | 'host' | 'name'> | ConnectListener,
  listener?: ConnectListener,
): Socket {
  if (options !== undefined && typeof options !== 'function') checkOptionNames('connect', options);
  const all: ConnectOptions =
    typeof port === 'object' && port !== null
      ? port
      : {
          ...(typeof options === 'function' ? {} : options),
          port,
          host: typeof host === 'function' ? undefined : hostOf(host),
        };
  checkOptionNames('connect', all);
  const { name, signal, slots, slotBytes, ringBytes, allowHalfOpen, highWaterMark, timeout, onread } = all;
  checkSignal(signal);
  checkOnRead(onread);
  if (timeout !== undefined) checkMs('timeout', timeout);
  const destination = {
    name,
    port: all.port === undefined ? (all as { path?: number }).path : all.port,
    host: hostOf(all.host),
  };
  checkDestination('connect()', destination);
  const socket = new Socket(
    { slots, slotBytes, ringBytes, allowHalfOpen, highWaterMark },
    onread ?? undefined,
  );
  if (timeout !== undefined) socket.setTimeout(timeout);
  for (const one of [host, options, listener]) if (typeof one === 'function') socket.once('connect', one);
  if (signal !== undefined) {
    const abort = (): void => void socket.destroy(aborted(signal));
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    socket.once('close', () => signal.removeEventListener('abort', abort));
  }
  const giveUp = new AbortController();
  socket.once('close', () => giveUp.abort());
  openLink(destination, socket.linkNeeds, (link) => socket.attach(link), giveUp.signal).then(
    (link) => {
      if (socket.destroyed) {
        link.end(undefined);
        return;
      }
      if (connected.hasSubscribers) connected.publish({ connection: socket });
      emitEvent(socket, 'connect');
      emitEvent(socket, 'ready');
    },
    (error) => socket.destroy(error),
  );
  return socket;
}

/** As {@link connect}. */
export const createConnection = connect;

/**
 * Connects a channel for messages, requests and shared memory.
 *
 * @param port - port of the server, or all options
 * @param host - an IP address or host name; default `'localhost'`
 * @param options - `signal`, sizes, `onRequest`
 * @throws NetError `ECONNREFUSED`, `ETIMEDOUT`, `EHOSTUNREACH`, `EPROTO` (the server does not accept channels) …; AbortError
 */
export async function connectChannel(
  port: number | ConnectChannelParameters,
  host?: string,
  options: ConnectChannelOptions = {},
): Promise<Channel> {
  checkOptionNames('connectChannel', options);
  const all: ConnectChannelParameters =
    typeof port === 'object' && port !== null ? port : { ...options, port, host };
  const { port: number, host: at, name, signal, ...rest } = all;
  const channel = new Channel(rest);
  const destination = { name, port: number, host: hostOf(at) };
  checkDestination('connectChannel()', destination);
  await openLink(destination, channel.linkNeeds, (link) => channel.attach(link), signal);
  if (connected.hasSubscribers) connected.publish({ connection: channel });
  return channel;
}

/**
 * Creates a server for streams, as `net.createServer` does.
 *
 * @param options - options of its connections; optional
 * @param handler - listener for `'connection'`
 */
export function createServer(
  options?: ServerOptions | ((socket: Socket) => void),
  handler?: (socket: Socket) => void,
): Server {
  return makeServer('createServer()', 'connection', options, handler);
}

/**
 * Creates a server for channels.
 *
 * @param options - options of its connections; optional
 * @param handler - listener for `'channel'`
 * @example
 * ```ts
 * const server = createChannelServer((channel) => channel.onRequest((bytes) => bytes));
 * server.listen(7000);
 * ```
 */
export function createChannelServer(
  options?: ServerOptions | ((channel: Channel) => void),
  handler?: (channel: Channel) => void,
): Server {
  return makeServer('createChannelServer()', 'channel', options, handler);
}

function makeServer<T>(
  call: string,
  event: string,
  options: ServerOptions | ((connection: T) => void) | undefined,
  handler: ((connection: T) => void) | undefined,
): Server {
  const server = new Server(typeof options === 'function' ? undefined : options, call);
  const listener = typeof options === 'function' ? options : handler;
  if (listener !== undefined) {
    checkFunction('handler', listener);
    server.on(event, listener);
  }
  return server;
}
