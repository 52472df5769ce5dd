import { channel as diagnostics } from 'node:diagnostics_channel';
import { Duplex } from 'node:stream';
import { inspect } from 'node:util';
import type { SocketAddress } from '../../index.js';
import { checkFunction, checkMs, defined } from '../base/checks.js';
import { reset, violation } from '../base/errors.js';
import { familyOf } from '../connection/address-text.js';
import { Frame, Kind, RING_UNIT } from '../connection/frames.js';
import type { Link, LinkUser, Slot } from '../connection/link.js';
import { checkSizes } from '../connection/size-bounds.js';
import { memoryOf, type OnReadOptions, wantsMore } from './on-read.js';
import { copyOf } from './slab.js';
import { UnreadBytes } from './unread-bytes.js';

const closings = diagnostics('networkdirect.net.close');

/** Sizes of a stream. */
export interface SocketOptions {
  /** Writes that the peer may have in flight, each of at most `slotBytes`; default 16. */
  readonly slots?: number | undefined;
  /** Size of a slot in bytes, including a header of 16 bytes; default 4096. */
  readonly slotBytes?: number | undefined;
  /**
   * Bytes of additional memory for each direction while it carries much data; the smaller value of both sides applies. Each slot of the
   * receiver has a multiple of 4 KiB of it. Default 4 MiB; 0: none. All streams of a thread together use at most 128 MiB.
   */
  readonly ringBytes?: number | undefined;
  /** Whether this side stays writable when the peer has ended, as in `net.Socket`; default false. */
  readonly allowHalfOpen?: boolean | undefined;
  /** Bytes buffered on this side before `write` returns false or the peer is stopped, as in `node:stream`; default: that of Node.js. */
  readonly highWaterMark?: number | undefined;
}

const defaults = { slots: 16, slotBytes: 4096, ringBytes: 2 ** 22, allowHalfOpen: false } as const;

type Callback = (error?: Error | null) => void;

/** Returns the first pieces that fit and have at most `most` bytes together, or that many bytes of the first. */
function partOf(
  pieces: readonly Uint8Array[],
  most: number,
  fits: (bytes: number, piece: Uint8Array) => boolean,
): { part: Uint8Array[]; bytes: number } {
  const first = pieces[0]!;
  if (first.length > most) return { part: [first.subarray(0, most)], bytes: most };
  let bytes = first.length;
  let count = 1;
  for (; count < pieces.length; count += 1) {
    const piece = pieces[count]!;
    const more = bytes + piece.length;
    if (more > most || !fits(more, piece)) break;
    bytes = more;
  }
  return { part: pieces.slice(0, count), bytes };
}

/** Removes what {@link partOf} has returned. */
function drop(pieces: Uint8Array[], part: readonly Uint8Array[]): void {
  const first = pieces[0]!;
  const cut = part[0]!.length;
  if (cut < first.length) pieces[0] = first.subarray(cut);
  else pieces.splice(0, part.length);
}

/**
 * A byte stream over a connection of an adapter: a Duplex like `net.Socket`, with `'connect'`, `'ready'`, `'timeout'` and `setTimeout`. It
 * is created by `connect` and by the `'connection'` event of a server.
 * @example
 * ```ts
 * const socket = connect(7000, 'localhost');
 * socket.on('connect', () => socket.write('a question'));
 * socket.on('data', (bytes) => console.log(bytes.toString()));
 * socket.setTimeout(10_000, () => socket.destroy(new Error('no answer')));
 * ```
 */
export class Socket extends Duplex {
  readonly #options: { readonly slots: number; readonly slotBytes: number; readonly ringBytes: number };
  #link: Link | undefined;
  /** The current write and the number of its bytes that were sent. */
  #pieces: Uint8Array[] = [];
  #written: Callback | undefined;
  /** Bytes of the current write. */
  #writing = 0;
  #wanted = true;
  #resets = false;
  #final: Callback | undefined;
  #destroying: Callback | undefined;
  #destroyError: Error | null = null;
  #endSent = false;
  #endReceived = false;
  #endPushed = false;
  readonly #unread = new UnreadBytes();
  /** Whether the reader has not paused. */
  #flowing = true;
  readonly #onRead: OnReadOptions | undefined;
  /** Whether {@link #giveUnread} is running. */
  #giving = false;
  #timeout: NodeJS.Timeout | undefined;
  #idleMs = 0;
  readonly #user: LinkUser;

  /** @internal */
  constructor(options: SocketOptions = {}, onRead?: OnReadOptions) {
    const { slots, slotBytes, ringBytes, allowHalfOpen, highWaterMark } = {
      ...defaults,
      ...defined(options),
    };
    // As in `net.Socket`, 'close' has an argument.
    checkSizes({ slots, slotBytes, ringBytes, highWaterMark });
    super({
      allowHalfOpen,
      emitClose: false,
      autoDestroy: true,
      ...(highWaterMark !== undefined && { highWaterMark }),
    });
    this.#options = { slots, slotBytes, ringBytes };
    this.#onRead = onRead;
    this.#user = {
      frame: (type, _flags, _id, slot, at, length) => this.#frame(type, slot, at, length),
      wasRead: () => {},
      writable: () => this.#pump(),
      ended: (error) => this.#ended(error),
      unsent: () => this.#written !== undefined || this.#final !== undefined,
    };
  }

  /** The user and the options for its link. @internal */
  get linkNeeds() {
    return { options: { kind: Kind.STREAM, maxMessageBytes: 0, ...this.#options }, user: this.#user };
  }

  /** @internal */
  attach(link: Link): void {
    this.#link = link;
    if (!this.#wanted) link.processRef.setRef(false);
  }

  /** Makes the connection keep the process alive, which is the default. @category Lifetime */
  ref(): this {
    return this.#keepAlive(true);
  }

  /** Stops an established connection from keeping the process alive. Unsent data still does. @category Lifetime */
  unref(): this {
    return this.#keepAlive(false);
  }

  #keepAlive(wanted: boolean): this {
    this.#wanted = wanted;
    this.#link?.processRef.setRef(wanted);
    return this;
  }

  /** Whether the connection is not established yet. @category Connect */
  get connecting(): boolean {
    return this.#link === undefined && !this.destroyed;
  }

  /** Whether the socket is not connected (not yet or no longer), as in `net.Socket`. @category Connect */
  get pending(): boolean {
    return this.destroyed || this.#link === undefined || this.#link.over;
  }

  /** Whether no byte waits to be sent or to be read by the program. @internal */
  get idle(): boolean {
    if (this.destroyed || this.#link === undefined || this.#endSent) return false;
    return this.writableLength === 0 && this.readableLength === 0 && this.#unread.empty;
  }

  /** Number of bytes received. @category Statistics */
  get bytesRead(): number {
    return this.#link?.bytesRead ?? 0;
  }

  /** Number of bytes sent and, as in `net.Socket`, queued. @category Statistics */
  get bytesWritten(): number {
    return (this.#link?.bytesWritten ?? 0) + this.#waiting;
  }

  /** Bytes that are queued: the rest of the current write, and later writes. */
  get #waiting(): number {
    let rest = 0;
    for (const piece of this.#pieces) rest += piece.length;
    return rest + this.writableLength - this.#writing;
  }

  /** The local address, port and family; empty without a connection, as in `net.Socket`. @category Connect */
  address(): {
    /** The local IP address. Like the other properties, it is absent before the socket is connected. */
    address?: string;
    /** The family of the address. */
    family?: 'IPv4' | 'IPv6';
    /** The local port. */
    port?: number;
  } {
    const local = this.#local;
    if (local === undefined) return {};
    return { address: local.address, family: familyOf(local), port: local.port };
  }

  /** The family of {@link localAddress}. @category Connect */
  get localFamily(): 'IPv4' | 'IPv6' | undefined {
    return this.#local && familyOf(this.#local);
  }

  /** The family of {@link remoteAddress}. @category Connect */
  get remoteFamily(): 'IPv4' | 'IPv6' | undefined {
    return this.#remote && familyOf(this.#remote);
  }

  /** The local address; undefined before the socket is connected. @category Connect */
  get localAddress(): string | undefined {
    return this.#local?.address;
  }

  /** The local port; undefined before the socket is connected. @category Connect */
  get localPort(): number | undefined {
    return this.#local?.port;
  }

  /** The peer's address; undefined before the socket is connected. @category Connect */
  get remoteAddress(): string | undefined {
    return this.#remote?.address;
  }

  /** The peer's port; undefined before the socket is connected. @category Connect */
  get remotePort(): number | undefined {
    return this.#remote?.port;
  }

  get #local(): SocketAddress | undefined {
    return this.#link?.over === false ? this.#link.connector.getLocalAddress() : undefined;
  }

  get #remote(): SocketAddress | undefined {
    return this.#link?.over === false ? this.#link.connector.getPeerAddress() : undefined;
  }

  /** Milliseconds without traffic until `'timeout'`; 0: none. @category Flow */
  get timeout(): number {
    return this.#idleMs;
  }

  /**
   * Emits `'timeout'` when nothing was sent or received for some time. The connection stays open, as in `net.Socket`.
   *
   * @param ms - milliseconds; 0: no timeout
   * @param callback - called at the first timeout
   * @throws TypeError, RangeError (`ms` is not a number from 0 to 2^31 - 1)
   * @category Flow
   */
  setTimeout(ms: number, callback?: () => void): this {
    checkMs('ms', ms);
    if (callback !== undefined) {
      checkFunction('callback', callback);
      if (ms === 0) this.off('timeout', callback);
      else this.once('timeout', callback);
    }
    clearTimeout(this.#timeout);
    this.#timeout = undefined;
    this.#idleMs = ms;
    if (ms > 0 && !this.destroyed) this.#timeout = setTimeout(() => this.emit('timeout'), ms).unref();
    return this;
  }

  /** No effect: data is never delayed to combine it. For programs written for `net.Socket`. @category Flow */
  setNoDelay(): this {
    return this;
  }

  /** No effect: idle connections are always probed. For programs written for `net.Socket`. @category Flow */
  setKeepAlive(): this {
    return this;
  }

  /** Ends the connection immediately. The peer gets `ECONNRESET`; this side gets no error. @category Lifetime */
  resetAndDestroy(): this {
    this.#resets = true;
    return this.destroy();
  }

  /** Writes all queued data, then destroys the socket. @category Lifetime */
  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  /** @internal */
  override _write(chunk: Uint8Array, _encoding: BufferEncoding, callback: Callback): void {
    if (this.#link?.over) {
      callback(reset());
      return;
    }
    this.#queue(chunk);
    this.#written = callback;
    this.#pump();
  }

  /** @internal */
  override _writev(chunks: { chunk: Uint8Array }[], callback: Callback): void {
    if (this.#link?.over) {
      callback(reset());
      return;
    }
    for (const { chunk } of chunks) this.#queue(chunk);
    this.#written = callback;
    this.#pump();
  }

  /** Skips empty chunks: a frame without bytes would release its slot before earlier ones. */
  #queue(chunk: Uint8Array): void {
    if (chunk.length > 0) this.#pieces.push(chunk);
    this.#writing += chunk.length;
  }

  /** @internal */
  override _final(callback: Callback): void {
    if (this.#link?.over) {
      callback();
      return;
    }
    this.#final = callback;
    this.#pump();
  }

  /** @internal */
  override _read(): void {
    // With `onread`, only pause() and resume() stop and start reading.
    if (this.#onRead !== undefined) return;
    this.#flowing = true;
    this.#giveUnread();
  }

  /** Pauses reading, as in `node:net`; also stops calls of the `onread` callback. @category Flow */
  override pause(): this {
    if (this.#onRead !== undefined) this.#flowing = false;
    return super.pause();
  }

  /**
   * Resumes reading, as in `node:net`; also resumes calls of the `onread` callback after {@link pause} or a callback that returned false.
   * @category Flow
   */
  override resume(): this {
    if (this.#onRead !== undefined) {
      this.#flowing = true;
      this.#giveUnread();
    }
    return super.resume();
  }

  /** Delivers unread bytes until the reader pauses, then the end of the stream. */
  #giveUnread(): void {
    // A callback that calls resume() must not recurse.
    if (this.#giving) return;
    this.#giving = true;
    const link = this.#link!;
    const unread = this.#unread;
    try {
      while (this.#flowing && !unread.empty && !this.destroyed) {
        if (this.#onRead === undefined) this.#flowing = this.push(unread.chunk(link));
        else this.#readInto(link, this.#onRead);
      }
    } finally {
      this.#giving = false;
    }
    if (this.#endReceived && unread.empty) this.#pushEnd();
  }

  #readInto(link: Link, onRead: OnReadOptions): void {
    try {
      const memory = memoryOf(onRead);
      const bytes = this.#unread.into(memory, link);
      if (!wantsMore(onRead, bytes, memory)) this.#flowing = false;
    } catch (error) {
      this.destroy(error as Error);
    }
  }

  #pushEnd(): void {
    if (this.#endPushed) return;
    this.#endPushed = true;
    this.push(null);
  }

  /** @internal */
  override _destroy(error: Error | null, callback: Callback): void {
    clearTimeout(this.#timeout);
    const link = this.#link;
    if (link === undefined || link.over) {
      this.#closed(error, callback);
      return;
    }
    this.#destroying = callback;
    this.#destroyError = error;
    // Without an error, END is sent, as `net.Socket` sends a FIN. The last Sends may still be in flight.
    const clean = error === null && !this.#resets;
    if (clean && !this.#endSent && this.#pieces.length === 0 && link.takes(Frame.END, 0)) {
      this.#endSent = true;
      link.send(Frame.END, 0, 0, undefined);
    }
    if (clean && this.#endSent) this.#pump();
    else link.end(error ?? undefined);
  }

  #closed(error: Error | null, callback: Callback): void {
    if (closings.hasSubscribers) closings.publish({ connection: this, error: error ?? undefined });
    callback(error);
    process.nextTick(() => this.emit('close', error !== null));
  }

  /** Sends written data while there are credits, then END. */
  #pump(): void {
    const link = this.#link;
    if (link === undefined) return;
    const pieces = this.#pieces;
    while (pieces.length > 0 && this.#sendSome(link)) this.#active();
    if (pieces.length > 0) {
      link.processRef.update();
      return;
    }
    if (this.#written !== undefined) {
      const written = this.#written;
      this.#written = undefined;
      this.#writing = 0;
      written();
    }
    if (this.#final !== undefined && !this.#endSent && link.takes(Frame.END, 0)) {
      this.#endSent = true;
      link.send(Frame.END, 0, 0, undefined);
      const final = this.#final;
      this.#final = undefined;
      final();
    }
    if (this.destroyed && this.#endSent && link.quiet) link.end(undefined);
  }

  /** Sends one frame with as many pieces as fit, or part of the first. Returns false if nothing can be sent now. */
  #sendSome(link: Link): boolean {
    const pieces = this.#pieces;
    const first = pieces[0]!.length;
    const room = first < RING_UNIT ? 0 : link.ringRoom;
    if (room > link.most) {
      const { part, bytes } = partOf(pieces, room, (_, piece) => piece.length >= RING_UNIT);
      if (link.sendInRing(part, bytes)) {
        drop(pieces, part);
        return true;
      }
    }
    if (!link.takes(Frame.DATA, Math.min(first, link.most))) return false;
    // The open slot may have room for only this frame.
    const { part, bytes } = partOf(pieces, link.most, (length) => link.takes(Frame.DATA, length));
    drop(pieces, part);
    link.sendPieces(Frame.DATA, part, bytes);
    return true;
  }

  #frame(type: number, slot: Slot, at: number, length: number): void {
    const link = this.#link!;
    this.#active();
    if (this.#endReceived) this.destroy(violation('a frame followed END'));
    else if (type === Frame.END) {
      link.release(slot);
      this.#endReceived = true;
      this.#giveUnread();
      // There may be no reader. If no bytes are left, this call ends the stream.
      this.read(0);
    } else if (length === 0) link.release(slot);
    else if (this.#flowing && this.#unread.empty && this.#onRead === undefined) {
      const bytes = copyOf(slot.memory.subarray(at, at + length));
      link.release(slot);
      this.#flowing = this.push(bytes);
    } else {
      this.#unread.put(slot, at, length);
      this.#giveUnread();
    }
  }

  #active(): void {
    this.#timeout?.refresh();
  }

  #ended(error: unknown): void {
    const destroying = this.#destroying;
    this.#destroying = undefined;
    if (destroying !== undefined) this.#closed(this.#destroyError, destroying);
    else if (!this.#endReceived || this.#pieces.length > 0)
      this.destroy((error as Error | undefined) ?? reset());
    else this.#finish();
  }

  /** Called when the peer has ended and nothing is left to send. Received bytes can still be read, then the stream destroys itself. */
  #finish(): void {
    const final = this.#final;
    this.#final = undefined;
    this.#endSent = true;
    if (final !== undefined) final();
  }

  /** Called when the connection could not be established. @internal */
  refused(error: Error): void {
    this.destroy(error);
  }

  /** @internal */
  [inspect.custom](): string {
    const peer = this.#remote === undefined ? '' : ` ${this.remoteAddress}:${this.remotePort},`;
    const state = this.destroyed ? 'closed' : this.connecting ? 'connecting' : this.readyState;
    return `Socket {${peer} ${state}, ${this.bytesRead} bytes read, ${this.bytesWritten} written }`;
  }

  /** The state as in `net.Socket`: `'opening'`, `'open'`, `'readOnly'`, `'writeOnly'` or `'closed'`. @category Connect */
  get readyState(): 'opening' | 'open' | 'readOnly' | 'writeOnly' | 'closed' {
    if (this.connecting) return 'opening';
    if (this.readable && this.writable) return 'open';
    if (this.readable) return 'readOnly';
    return this.writable ? 'writeOnly' : 'closed';
  }
}
