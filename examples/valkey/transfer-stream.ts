/**
 * A byte stream over a reliable connection, as Valkey's RDMA transport has it; both roles are alike.
 *
 * Each side has a receive buffer, which the other one writes to. A command of 32 bytes, sent as a message, names it
 * (RegisterXferMemory). Data are RDMA Writes with immediate data, one behind the other from the start of the buffer; the immediate is
 * their number of bytes, and nothing else says where they lie. A full buffer is written to again only after its owner has read all
 * of it, and has named it again.
 */
import { Duplex } from 'node:stream';
import {
  RemoteMemory,
  Status,
  StatusError,
  WcStatus,
  type WvCompletion,
  WvOpcode,
  WvSend,
} from 'networkdirect/winverbs';
import { COMMAND_BYTES, SENDS, type TransferQueue } from './transfer-queue.js';

/** The first two bytes of a command, and where its fields begin. Numbers are big-endian. */
const Opcode = {
  GET_SERVER_FEATURE: 0,
  SET_CLIENT_FEATURE: 1,
  KEEPALIVE: 2,
  REGISTER_XFER_MEMORY: 3,
} as const;
const Field = { SELECT: 2, ADDRESS: 16, LENGTH: 24, FEATURES: 24, RKEY: 28 } as const;
/** One request of so many makes a completion, which stands for those before it, too. */
const SIGNAL_EVERY = 64;
/** Requests that data may have outstanding; the rest is for commands. */
const DATA_SENDS = SENDS - 16;
/** Completions of a poll, and polls in one turn of the event loop, which a peer's flood must not hold. */
const BATCH = 64;
const POLLS = 16;
/** The largest chunk that a reader gets, in bytes. */
const CHUNK = 64 * 1024;
/** A peer is lost when a keep-alive was not acknowledged for so many intervals. */
const MISSED = 5;

type Callback = (error?: Error | null) => void;

/** A Duplex with the few members of `net.Socket` that client libraries use. `end` closes both directions, after all was sent. */
export class TransferStream extends Duplex {
  /** Until 'connect' is emitted. What is written meanwhile waits. */
  connecting = true;
  #queue: TransferQueue | undefined;
  #keepAlive: NodeJS.Timeout | undefined;
  #missed = 0;
  #timeout: NodeJS.Timeout | undefined;
  /** No more bytes come; those in the buffer can still be read. */
  #ended = false;
  // The receive buffer: bytes from #taken to #arrived wait for the reader.
  #arrived = 0;
  #taken = 0;
  #wanted = false;
  // The peer's buffer, and how much of it has been written.
  #remote: RemoteMemory | undefined;
  #remoteLength = 0;
  #remoteAt = 0;
  // The send buffer, as positions in the stream: copied into it, posted, free again. Then what it has no room for.
  #copied = 0;
  #posted = 0;
  #free = 0;
  #rest: Uint8Array = new Uint8Array(0);
  #written: Callback | undefined;
  #finished: Callback | undefined;
  #flushing = false;
  /** The request that follows the last byte before the end, and that of the last keep-alive. */
  #last = 0;
  #kept = 0;
  // Numbers of requests: of the last one, with a completion, and completed. Then the position that each one leads up to.
  #request = 0;
  #signaled = 0;
  #completed = 0;
  readonly #ends = new Float64Array(SENDS);
  readonly #batch: WvCompletion[] = [];

  constructor(
    private readonly role: 'client' | 'server',
    private readonly keepAliveMs = 3000,
  ) {
    super({ allowHalfOpen: false });
  }

  /** Takes over the queue, and connects it by `establish`; what goes wrong destroys the stream. */
  async open(queue: TransferQueue, establish: () => PromiseLike<unknown>): Promise<void> {
    this.#queue = queue;
    if (this.destroyed) return this.#release();
    void this.#pump(queue);
    try {
      await establish();
      if (this.destroyed) return;
      // What has come before the peer's disconnect can be read after it.
      queue.endpoint.keepQueuePairOnDisconnect(true);
      queue.endpoint.notifyDisconnect().then(undefined, (error: unknown) => this.#disconnected(queue, error));
      this.#register(queue);
      this.#keepAlive = setInterval(() => this.#beat(queue), this.keepAliveMs);
      this.connecting = false;
      this.emit('connect');
      this.#flush();
    } catch (error) {
      this.destroy(error as Error);
    }
  }

  async #pump(queue: TransferQueue): Promise<void> {
    try {
      for (let polls = 1; !this.destroyed && !this.#ended; polls += 1) {
        if (this.#poll(queue) === 0) await queue.cq.notify('any');
        else if (polls % POLLS === 0) await new Promise(setImmediate);
      }
    } catch (error) {
      this.destroy(error as Error);
    }
  }

  #poll(queue: TransferQueue): number {
    const count = queue.cq.poll(this.#batch, BATCH);
    for (let n = 0; n < count; n += 1) this.#handle(queue, this.#batch[n]!);
    this.#deliver(queue);
    // What a reader has answered goes out before anybody sleeps.
    this.#flush();
    return count;
  }

  #handle(queue: TransferQueue, { opcode, status, context, length, immediateData }: WvCompletion): void {
    if (status !== WcStatus.SUCCESS) throw lost(`a request has ended in status ${status}`);
    const slot = context as number;
    if (opcode === WvOpcode.RECEIVE) this.#obey(queue, queue.command(slot), length);
    else if (opcode === WvOpcode.RECEIVE_RDMA_WRITE) this.#count(queue.received.length, immediateData);
    else this.#acknowledged(slot);
    if (opcode >= WvOpcode.RECEIVE) queue.receive(slot);
  }

  #count(size: number, bytes: number): void {
    if (bytes > size - this.#arrived) throw wrong(`${bytes} bytes where ${size - this.#arrived} are left`);
    this.#arrived += bytes;
  }

  #obey(queue: TransferQueue, command: Buffer, length: number): void {
    const opcode = command.readUInt16BE(0);
    const server = this.role === 'server';
    if (length !== COMMAND_BYTES) throw wrong(`a command of ${length} bytes`);
    if (opcode === Opcode.REGISTER_XFER_MEMORY) {
      const address = command.readBigUInt64BE(Field.ADDRESS);
      const bytes = command.readUInt32BE(Field.LENGTH);
      if (bytes === 0 || address + BigInt(bytes) > 2n ** 64n)
        throw wrong(`${bytes} bytes of memory at ${address}`);
      if (this.#remoteAt < this.#remoteLength) throw wrong('another buffer before the last one was full');
      this.#remote = new RemoteMemory({ address, rkey: command.readUInt32BE(Field.RKEY) });
      this.#remoteLength = bytes;
      this.#remoteAt = 0;
    } else if (opcode === Opcode.GET_SERVER_FEATURE && server) {
      const select = command.readUInt16BE(Field.SELECT);
      this.#command(queue, opcode, (answer) => answer.writeUInt16BE(select, Field.SELECT));
    } else if (opcode === Opcode.SET_CLIENT_FEATURE && server) {
      if (command.readBigUInt64BE(Field.FEATURES) !== 0n) throw wrong('features, of which there are none');
    } else if (opcode !== Opcode.KEEPALIVE) throw wrong(`a command of opcode ${opcode}`);
  }

  // ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────

  override _read(): void {
    this.#wanted = true;
    if (this.#queue !== undefined) this.#deliver(this.#queue);
  }

  /** Gives the reader copies, because the peer overwrites the buffer as soon as it is named again. */
  #deliver(queue: TransferQueue): void {
    while (this.#wanted && this.#taken < this.#arrived) {
      const to = Math.min(this.#arrived, this.#taken + CHUNK);
      const chunk = Buffer.from(queue.received.subarray(this.#taken, to));
      this.#taken = to;
      if (to === queue.received.length && !this.#ended) this.#register(queue);
      this.#wanted = false;
      if (this.push(chunk)) this.#wanted = true;
    }
    if (this.#ended && this.#taken === this.#arrived) this.push(null);
  }

  #register(queue: TransferQueue): void {
    const { address, rkey, length } = queue.receivedRegion;
    this.#arrived = 0;
    this.#taken = 0;
    this.#command(queue, Opcode.REGISTER_XFER_MEMORY, (command) => {
      command.writeBigUInt64BE(BigInt(address), Field.ADDRESS);
      command.writeUInt32BE(length, Field.LENGTH);
      command.writeUInt32BE(rkey, Field.RKEY);
    });
  }

  // ── Writing ──────────────────────────────────────────────────────────────────────────────────────────────

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, written: Callback): void {
    if (this.#ended) {
      written(lost('the peer has ended it'));
      return;
    }
    this.#rest = chunk;
    this.#written = written;
    this.#copy();
    // What a program writes in one go becomes one Write.
    if (!this.#flushing) queueMicrotask(this.#flushNow);
    this.#flushing = true;
  }

  override _final(finished: Callback): void {
    this.#finished = finished;
    if (this.#ended) finished();
    else this.#flushNow();
  }

  readonly #flushNow = (): void => {
    this.#flushing = false;
    try {
      this.#flush();
    } catch (error) {
      this.destroy(error as Error);
    }
  };

  /** Copies what the send buffer has room for. */
  #copy(): void {
    const { sending } = this.#queue ?? {};
    const written = this.#written;
    if (sending === undefined || written === undefined) return;
    while (this.#rest.length > 0) {
      const at = this.#copied % sending.length;
      const room = Math.min(sending.length - at, sending.length - (this.#copied - this.#free));
      if (room === 0) return;
      sending.set(this.#rest.subarray(0, room), at);
      this.#copied += Math.min(room, this.#rest.length);
      this.#rest = this.#rest.subarray(room);
    }
    this.#written = undefined;
    written();
  }

  /** Posts what was copied, as far as the peer's buffer has room. */
  #flush(): void {
    const queue = this.#queue;
    if (queue === undefined || this.connecting || this.#ended || this.destroyed) return;
    this.#copy();
    const size = queue.sending.length;
    while (
      this.#posted < this.#copied &&
      this.#remoteAt < this.#remoteLength &&
      this.#request - this.#completed < DATA_SENDS
    ) {
      const from = this.#posted % size;
      const length = Math.min(this.#copied - this.#posted, size - from, this.#remoteLength - this.#remoteAt);
      this.#posted += length;
      const unsignaled = this.#posted - this.#ends[this.#signaled % SENDS]!;
      const flags = this.#next(unsignaled >= size / 4);
      queue.write(this.#request, flags, from, length, this.#remote!, this.#remoteAt);
      this.#remoteAt += length;
    }
    const done = this.#finished !== undefined && this.#written === undefined && this.#posted === this.#copied;
    if (!done || this.#last > 0) return;
    // When this has been acknowledged, all bytes before it have been, too.
    this.#command(queue, Opcode.KEEPALIVE);
    this.#last = this.#request;
  }

  /** The flags of the next request. */
  #next(signaled: boolean): number {
    this.#request += 1;
    this.#ends[this.#request % SENDS] = this.#posted;
    if (!signaled && this.#request - this.#signaled < SIGNAL_EVERY) return 0;
    this.#signaled = this.#request;
    return WvSend.SIGNALED;
  }

  #command(queue: TransferQueue, opcode: number, fill?: (command: Buffer) => void): void {
    if (this.#request - this.#completed >= SENDS) throw lost('the peer takes no commands');
    const flags = this.#next(true);
    const command = queue.newCommand(this.#request);
    command.writeUInt16BE(opcode, 0);
    fill?.(command);
    queue.send(this.#request, flags);
  }

  #acknowledged(request: number): void {
    this.#completed = request;
    this.#free = this.#ends[request % SENDS]!;
    if (this.#last === 0 || request < this.#last) return;
    // There is no end of one direction alone.
    this.#ended = true;
    void this.#release();
    this.#finished?.();
  }

  // ── The end ──────────────────────────────────────────────────────────────────────────────────────────────

  /** Every `keepAliveMs`. A peer whose program stands still acknowledges; one whose host is gone does not. */
  #beat(queue: TransferQueue): void {
    this.#missed = this.#kept > this.#completed ? this.#missed + 1 : 0;
    if (this.#ended || this.#missed > 0) {
      if (this.#missed >= MISSED)
        this.destroy(lost(`nothing was acknowledged for ${MISSED * this.keepAliveMs} ms`));
      return;
    }
    try {
      this.#command(queue, Opcode.KEEPALIVE);
      this.#kept = this.#request;
    } catch (error) {
      this.destroy(error as Error);
    }
  }

  #disconnected(queue: TransferQueue, error: unknown): void {
    if (this.destroyed || this.#ended) return;
    try {
      while (this.#poll(queue) > 0);
      const clean = error instanceof StatusError && error.status === Status.CONNECTION_DISCONNECTED;
      if (!clean || this.#written !== undefined || this.#posted < this.#copied)
        throw lost('the peer is gone');
      this.#ended = true;
      this.#deliver(queue);
      void this.#release();
    } catch (failed) {
      this.destroy(failed as Error);
    }
  }

  override _destroy(error: Error | null, callback: Callback): void {
    clearTimeout(this.#timeout);
    void this.#release();
    this.#written?.(error ?? lost('the stream is destroyed'));
    callback(error);
  }

  async #release(): Promise<void> {
    clearInterval(this.#keepAlive);
    try {
      await this.#queue?.endpoint.disconnect();
    } catch {
      // There was no connection, or the peer does not confirm its end.
    }
    this.#queue?.release();
  }

  /** As that of a `net.Socket` for one period of silence: client libraries set and clear it around what they wait for. */
  setTimeout(ms: number, callback?: () => void): this {
    clearTimeout(this.#timeout);
    if (ms > 0) this.#timeout = setTimeout(() => callback?.(), ms);
    return this;
  }

  /** Nothing waits here for more data. */
  setNoDelay(): this {
    return this;
  }

  /** It is always there. */
  setKeepAlive(): this {
    return this;
  }
}

const failure = (code: string, message: string): Error => Object.assign(new Error(message), { code });
const lost = (why: string): Error => failure('ECONNRESET', `The connection is lost: ${why}.`);
const wrong = (what: string): Error =>
  failure('EPROTO', `The peer does not keep to the protocol: it has sent ${what}.`);
