import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { Status, StatusError } from '../ioctl/status.js';
import type { Address, Handle, Native, NativeMemory } from './win32.js';

/** OVERLAPPED_ENTRY: key at 0, context at 8, NTSTATUS at 16, bytes at 24. */
const entrySize = 32;
/** Maximum packets of one call. */
const batch = 64;
/** Offset of the number of entries, which follows them. */
const removedAt = batch * entrySize;

const INFINITE = 0xffff_ffff;
/** libuv's default number of pool threads. */
const poolThreads = 4;
/** Time limit of a call that shares its pool thread with others. */
const turnMs = 20;
const STATUS_ABANDONED = 0x80;

/** Completion keys of this port. */
const Key = { wake: 0, request: 1, end: 2, overlapped: 3 } as const;

/** The context of a packet that is identified by its OVERLAPPED. It is negative; those of other requests are positive. */
const contextOf = (overlapped: Address): number => -overlapped;

/** The output of `GetQueuedCompletionStatusEx`, for one call at a time. */
class Batch {
  readonly #memory: NativeMemory;
  readonly #words: Int32Array;

  constructor(native: Native) {
    this.#memory = native.allocate(removedAt + 16);
    const { bytes } = this.#memory;
    this.#words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  }

  get entries(): number {
    return this.#memory.address;
  }

  get removedAt(): number {
    return this.#memory.address + removedAt;
  }

  clear(): void {
    Atomics.store(this.#words, removedAt / 4, 0);
  }

  /** Whether the call has returned packets. */
  get filled(): boolean {
    return Atomics.load(this.#words, removedAt / 4) > 0;
  }

  /** Returns the contexts of completed requests in the order of their packets, each packet once. */
  take(): number[] {
    const count = Atomics.exchange(this.#words, removedAt / 4, 0);
    const contexts: number[] = [];
    for (let i = 0; i < count; i++) {
      const at = (i * entrySize) / 4;
      const low = this.#words[at + 2]! >>> 0;
      if (this.#words[at] === Key.request) contexts.push(low);
      else if (this.#words[at] === Key.overlapped)
        contexts.push(contextOf(low + this.#words[at + 3]! * 2 ** 32));
    }
    return contexts;
  }
}

/**
 * An I/O completion port whose packets reach this thread's event loop.
 *
 * While packets are expected, a call on a thread of libuv's pool waits for them. Node.js waits for this call before a process or a Worker
 * ends, so something must end the call. `process.exit()` emits `exit`. A terminated Worker no longer runs JavaScript, but Node.js closes
 * its sockets before it waits. Therefore a pipe connects the port with such a socket: when the pipe breaks, its packet ends the call.
 */
export class CompletionPort {
  readonly #port: Handle;
  readonly #due = new Map<number, () => void>();
  /** Contexts of dequeued packets that are not processed yet. */
  readonly #taken: number[] = [];
  /** Output of the call that waits. */
  readonly #waited: Batch;
  /** Output of calls that do not wait. */
  readonly #polled: Batch;
  #listening = false;
  #endPipe: Handle = 0;
  #waitMs = INFINITE;
  #last = 0;

  constructor(private readonly native: Native) {
    this.#port = native.own(native.createPort());
    if (this.#port === 0) {
      throw new StatusError(
        Status.INSUFFICIENT_RESOURCES,
        'Windows cannot create another I/O completion port.',
      );
    }
    this.#waited = new Batch(native);
    this.#polled = new Batch(native);
  }

  /** Associates a file. Its requests with a context from {@link expect} complete here. */
  attach(file: Handle): boolean {
    return this.native.associate(file, this.#port, Key.request);
  }

  /** Associates a file. Its requests that are passed to {@link expectAt} complete here. */
  attachOverlapped(file: Handle): boolean {
    return this.native.associate(file, this.#port, Key.overlapped);
  }

  /** Number of expected packets. */
  get due(): number {
    return this.#due.size;
  }

  /**
   * Returns a context for a request that is about to start. Calls `onPacket` when its packet has been dequeued. Until then
   * the event loop is kept alive.
   */
  expect(onPacket: () => void): number {
    do this.#last = this.#last === 0xffff_ffff ? 1 : this.#last + 1;
    while (this.#due.has(this.#last));
    this.#expect(this.#last, onPacket);
    return this.#last;
  }

  /** The same as {@link expect}, for a request that is identified by the address of its OVERLAPPED. */
  expectAt(overlapped: Address, onPacket: () => void): void {
    this.#expect(contextOf(overlapped), onPacket);
  }

  #expect(context: number, onPacket: () => void): void {
    // This call precedes the recording of the request, because it may fail.
    this.#listen();
    this.#due.set(context, onPacket);
  }

  /** Reverts {@link expect}: the request completed immediately, without a packet. */
  forget(context: number): void {
    this.#due.delete(context);
    this.#stopIfIdle();
  }

  /** The same as {@link forget}, for a request of {@link expectAt}. */
  forgetAt(overlapped: Address): void {
    this.forget(contextOf(overlapped));
  }

  /** Processes the packets that have arrived, in order, without the event loop. It may be called while a packet is processed. */
  drain(): void {
    // The waiting call dequeued its packets first.
    this.#deliver(this.#waited);
    const { entries, removedAt: at } = this.#polled;
    // Without a packet, the count is undefined.
    while (this.native.dequeue(this.#port, entries, batch, at)) this.#deliver(this.#polled);
    this.#stopIfIdle();
  }

  #deliver(packets: Batch): void {
    this.#taken.push(...packets.take());
    while (this.#taken.length > 0) {
      const context = this.#taken.shift()!;
      const onPacket = this.#due.get(context);
      this.#due.delete(context);
      onPacket?.();
    }
  }

  #listen(): void {
    if (this.#listening) return;
    if (this.#endPipe === 0) {
      this.#openEndPipe();
      this.#waitMs = this.#claimPoolThread() ? INFINITE : turnMs;
    }
    this.#listening = true;
    const { entries, removedAt: at } = this.#waited;
    this.#waited.clear();
    this.native.dequeueAsync(this.#port, entries, batch, at, this.#waitMs, (error, ok) => {
      this.#listening = false;
      if (ok === 0) this.#waited.clear();
      if (error !== null || (ok === 0 && this.#waitMs === INFINITE)) {
        throw new StatusError(Status.INTERNAL_ERROR, 'The I/O completion port failed.', { cause: error });
      }
      try {
        this.#deliver(this.#waited);
      } finally {
        if (this.#due.size > 0) this.#listen();
      }
    });
  }

  /** Ends the waiting call if no packets are expected, so that the event loop can end. */
  #stopIfIdle(): void {
    if (this.#listening && this.#due.size === 0 && !this.#waited.filled)
      this.native.post(this.#port, Key.wake);
  }

  /**
   * Claims one of the pool's threads, which all threads of the process share, and returns whether that succeeded. A claim is a mutex, which
   * becomes free when its thread ends. One pool thread is never claimed; threads without a claim take turns on it.
   */
  #claimPoolThread(): boolean {
    const { native } = this;
    const noTime = native.allocate(16);
    const threads = Number(process.env.UV_THREADPOOL_SIZE) || poolThreads;
    for (let i = 0; i < threads - 1; i++) {
      const claim = native.own(native.createMutex(`Local\\networkdirect-${process.pid}-${i}`));
      const status = native.waitForSingleObject(claim, noTime.address);
      if (status === Status.SUCCESS || status === STATUS_ABANDONED) return true;
      native.close(claim);
    }
    process.emitWarning(
      `More threads of this process wait for completions than the ${threads} threads of libuv's pool permit, so some take turns of ${turnMs} ms. ` +
        'Start the process with a larger UV_THREADPOOL_SIZE.',
      'NetworkDirectWarning',
    );
    return false;
  }

  #openEndPipe(): void {
    const { native } = this;
    const name = `\\\\.\\pipe\\networkdirect-${process.pid}-${randomBytes(16).toString('hex')}`;
    const pipe = native.own(native.createPipe(name));
    const socket = connect(name);
    socket.unref();
    // The pipe carries no data and is expected to break.
    socket.on('error', () => {});
    const memory = native.allocate(32);
    native.associate(pipe, this.#port, Key.end);
    const status = native.readFile(pipe, 1, memory.address, memory.address + 16, 1);
    if (status !== Status.PENDING) {
      socket.destroy();
      throw new StatusError(status, 'Windows cannot read the pipe that ends waits for completions.');
    }
    this.#endPipe = pipe;
    process.on('exit', () => native.post(this.#port, Key.wake));
  }
}
