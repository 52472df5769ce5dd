import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { Status, StatusError } from '../ioctl/status.js';
import type { Address, Handle, Native, NativeMemory } from './win32.js';

/** OVERLAPPED_ENTRY: key at 0, context at 8, NTSTATUS at 16, bytes at 24. */
const entrySize = 32;
/** Packets that one call takes. */
const batch = 64;
/** Behind the entries: how many there are. */
const removedAt = batch * entrySize;

const INFINITE = 0xffff_ffff;
/** libuv's default. */
const poolThreads = 4;
/** How long a call waits that shares its thread of the pool with others. */
const turnMs = 20;
const STATUS_ABANDONED = 0x80;

/** Completion keys of this port. */
const Key = { wake: 0, request: 1, end: 2, overlapped: 3 } as const;

/** The context of a packet that is identified by its OVERLAPPED. It is negative; those of other requests are positive. */
const contextOf = (overlapped: Address): number => -overlapped;

/** What `GetQueuedCompletionStatusEx` writes, for one call at a time. */
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

  /** Whether the call has returned, and with packets. */
  get filled(): boolean {
    return Atomics.load(this.#words, removedAt / 4) > 0;
  }

  /** Contexts of the requests that have completed, in the order of their packets; each packet is given once. */
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
 * While packets are due, and only then, one call that waits for them is on a thread of libuv's pool. Node.js waits for such a call
 * before a process or a Worker ends, so something has to end the call. `process.exit()` emits `exit`. A Worker that is terminated
 * runs no JavaScript any more, but Node.js closes its sockets before it waits: the port has a pipe with such a socket at its other end,
 * which breaks then, and the packet of that ends the call.
 */
export class CompletionPort {
  readonly #port: Handle;
  readonly #due = new Map<number, () => void>();
  /** Of the call that waits, and of those that only look. */
  readonly #waited: Batch;
  readonly #looked: Batch;
  #listening = false;
  #endPipe: Handle = 0;
  #waitMs = INFINITE;
  #last = 0;

  constructor(private readonly native: Native) {
    this.#port = native.own(native.createPort());
    if (this.#port === 0) {
      throw new StatusError(Status.INSUFFICIENT_RESOURCES, 'The system has no I/O completion port left.');
    }
    this.#waited = new Batch(native);
    this.#looked = new Batch(native);
  }

  /** Requests of the file that have a context from {@link expect} complete here. */
  attach(file: Handle): boolean {
    return this.native.associate(file, this.#port, Key.request);
  }

  /** Associates a file whose requests are passed to {@link expectAt}, and complete here. */
  attachOverlapped(file: Handle): boolean {
    return this.native.associate(file, this.#port, Key.overlapped);
  }

  /** Number of packets that are due. */
  get due(): number {
    return this.#due.size;
  }

  /**
   * Answers the context of a request that is about to start. `onPacket` runs when its packet was dequeued; until then the
   * event loop goes on.
   */
  expect(onPacket: () => void): number {
    do this.#last = this.#last === 0xffff_ffff ? 1 : this.#last + 1;
    while (this.#due.has(this.#last));
    this.#expect(this.#last, onPacket);
    return this.#last;
  }

  /** As {@link expect}, for a request that is identified by the address of its OVERLAPPED. */
  expectAt(overlapped: Address, onPacket: () => void): void {
    this.#expect(contextOf(overlapped), onPacket);
  }

  #expect(context: number, onPacket: () => void): void {
    // First what can fail.
    this.#listen();
    this.#due.set(context, onPacket);
  }

  /** The request ended at once, and no packet comes. */
  forget(context: number): void {
    this.#due.delete(context);
    this.#rest();
  }

  /** As {@link forget}, for a request of {@link expectAt}. */
  forgetAt(overlapped: Address): void {
    this.forget(contextOf(overlapped));
  }

  /** Takes the packets that have come, in their order, without the event loop. */
  drain(): void {
    // What the waiting call has taken came first.
    if (this.#waited.filled) this.#deliver(this.#waited);
    const { entries, removedAt: at } = this.#looked;
    // Where there is no packet, the count means nothing.
    while (this.native.dequeue(this.#port, entries, batch, at)) this.#deliver(this.#looked);
    this.#rest();
  }

  #deliver(packets: Batch): void {
    for (const context of packets.take()) {
      const onPacket = this.#due.get(context);
      this.#due.delete(context);
      onPacket?.();
    }
  }

  #listen(): void {
    if (this.#listening) return;
    if (this.#endPipe === 0) {
      this.#openEndPipe();
      this.#waitMs = this.#hasPlace() ? INFINITE : turnMs;
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

  /** Nothing is due any more: the call that waits is ended, so that the event loop may end. */
  #rest(): void {
    if (this.#listening && this.#due.size === 0 && !this.#waited.filled)
      this.native.post(this.#port, Key.wake);
  }

  /**
   * Whether this thread may keep one of the pool's threads: they are the process's, and one is left for everybody else. A place is a mutex,
   * which is free again when the thread has ended. Threads without one take turns on what is left.
   */
  #hasPlace(): boolean {
    const { native } = this;
    const noTime = native.allocate(16);
    const threads = Number(process.env.UV_THREADPOOL_SIZE) || poolThreads;
    for (let i = 0; i < threads - 1; i++) {
      const place = native.own(native.createMutex(`Local\\networkdirect-${process.pid}-${i}`));
      const status = native.waitForSingleObject(place, noTime.address);
      if (status === Status.SUCCESS || status === STATUS_ABANDONED) return true;
      native.close(place);
    }
    process.emitWarning(
      `More threads of this process wait for completions than libuv's pool has to spare, so they take turns of ${turnMs} ms. ` +
        `Start it with a larger UV_THREADPOOL_SIZE (it is ${threads}).`,
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
    // It carries nothing, and its end is its purpose.
    socket.on('error', () => {});
    const memory = native.allocate(32);
    native.associate(pipe, this.#port, Key.end);
    const status = native.readFile(pipe, 1, memory.address, memory.address + 16, 1);
    if (status !== Status.PENDING) {
      socket.destroy();
      throw new StatusError(status, 'The pipe that ends the wait for completions cannot be read.');
    }
    this.#endPipe = pipe;
    process.on('exit', () => native.post(this.#port, Key.wake));
  }
}
