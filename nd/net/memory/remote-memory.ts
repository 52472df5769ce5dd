import { inspect } from 'node:util';
import { Nd2Direct, Nd2RemoteMemory, type Nd2Sge } from '../../index.js';
import { kindOf, outOfRange, wrongType } from '../base/checks.js';
import { aborted, NetError, netError, refusalBy } from '../base/errors.js';
import { ATOMIC_BYTES, decodeMemory, type MemoryDescription, viewOf } from '../connection/frames.js';
import type { Link } from '../connection/link.js';
import type { Bounce } from '../connection/local-context.js';
import { Transfer } from '../connection/operations.js';
import { DirectMemory } from './direct-memory.js';
import { Atomic, rightsText, VIEWS, WRITABLE } from './exposed-memory.js';

/** An operation that can be aborted. */
export interface RemoteOptions {
  /** Rejects the operation with an AbortError. One that has begun is still executed. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Memory that the peer has exposed. Reading and writing do not involve the peer's program. `compareExchange` and `fetchAdd` are atomic
 * with its own `Atomics`, and with those of all other peers; its program executes them where {@link direct} is false.
 *
 * Memory of `allocate()` of a process of this user on this host can be reached at once, by the methods whose names end in `Sync`: a call takes
 * less than a microsecond for a few bytes. They are executed when they are called, before unfinished operations of other methods: await a
 * `write` before a method in `Sync` that must come after it. The first one maps the memory, which takes some milliseconds.
 *
 * Such memory can also be mapped, if the peer has exposed it with `views`: {@link map} is for data that is too large to be copied.
 *
 * Memory that the peer has released is gone: using it ends the connection, but for the methods in `Sync` and `map`, which throw.
 * @example
 * ```ts
 * const remote = channel.open(await channel.request('the table, please'));
 * const row = await remote.read(64 * 5, 64);
 * await remote.write(64 * 5, Buffer.alloc(64));
 * const before = await remote.fetchAdd(0, 1n);
 * ```
 */
export class RemoteMemory {
  /** Bytes. */
  readonly length: number;
  /** Writing is allowed. */
  readonly writable: boolean;
  /** The peer lets processes of its user on its host {@link map} it. */
  readonly views: boolean;
  readonly #remote: Nd2RemoteMemory;
  readonly #direct: DirectMemory;

  /** @internal */
  constructor(
    private readonly link: Link,
    private readonly ask: (data: Uint8Array, signal: AbortSignal | undefined) => Promise<Buffer>,
    /** Throws once the channel is closed. */
    private readonly checkOpen: (what: string) => void,
    handle: Uint8Array,
  ) {
    const memory = handle instanceof Uint8Array ? decodeMemory(handle) : undefined;
    if (memory === undefined || !isExposed(memory))
      throw new NetError('EPROTO', 'These bytes are no handle of exposed memory.');
    this.length = memory.length;
    this.writable = (memory.id & WRITABLE) !== 0;
    this.views = (memory.id & VIEWS) !== 0;
    this.#remote = new Nd2RemoteMemory(memory.address, memory.token);
    this.#direct = new DirectMemory(link, this.#remote);
  }

  /**
   * Whether the peer is a process of this user on this host, and neither side has the option `direct: false`. Then the methods in `Sync`
   * work, if the memory is one of `allocate()`.
   */
  get direct(): boolean {
    return !this.link.over && this.#direct.reachable;
  }

  /**
   * Reads bytes at once.
   *
   * @param offset - bytes from the start
   * @param into - gets the bytes: as many as it has
   * @throws as {@link read}; NetError `ENOTSUP`: the memory cannot be reached directly, with the reason; a part of `into` may have been written
   */
  readSync(offset: number, into: Uint8Array): void {
    this.checkOpen('readSync');
    checkBytes('into', into);
    this.#checkRange(offset, into.length);
    if (into.length === 0) return;
    this.#direct.execute(Nd2Direct.READ, into, offset, 'readSync', 'read');
  }

  /**
   * Writes bytes at once.
   *
   * @param offset - bytes from the start
   * @param from - what to write
   * @throws as {@link write}; NetError `ENOTSUP`: the memory cannot be reached directly, with the reason; a part may have been written
   */
  writeSync(offset: number, from: Uint8Array): void {
    this.checkOpen('writeSync');
    checkBytes('from', from);
    this.#checkRange(offset, from.length);
    this.#checkWritable();
    if (from.length === 0) return;
    this.#direct.execute(Nd2Direct.WRITE, from, offset, 'writeSync', 'write');
  }

  /**
   * As {@link compareExchange}, at once.
   *
   * @param offset - a multiple of 8 bytes
   * @param expected - the value that must be there
   * @param replacement - the new value
   * @throws as {@link writeSync}; NetError `ETIMEDOUT`: the peer took its memory away meanwhile, so that it may have been executed
   */
  compareExchangeSync(offset: number, expected: bigint, replacement: bigint): bigint {
    this.#checkAtomic('compareExchangeSync', offset, expected, replacement);
    operands[0] = expected;
    operands[1] = replacement;
    const { COMPARE_EXCHANGE } = Nd2Direct;
    this.#direct.execute(COMPARE_EXCHANGE, twoOperands, offset, 'compareExchangeSync', 'compareExchange');
    return operands[0];
  }

  /**
   * As {@link fetchAdd}, at once.
   *
   * @param offset - a multiple of 8 bytes
   * @param value - what to add
   * @throws as {@link compareExchangeSync}
   */
  fetchAddSync(offset: number, value: bigint): bigint {
    this.#checkAtomic('fetchAddSync', offset, value, 0n);
    operands[0] = value;
    this.#direct.execute(Nd2Direct.FETCH_ADD, oneOperand, offset, 'fetchAddSync', 'fetchAdd');
    return operands[0];
  }

  /** Resolves when {@link addSync} need not wait for the mapping any more. @internal */
  mappedForAtomics(): Promise<void> {
    return this.#direct.mapped(Nd2Direct.FETCH_ADD, new Uint8Array(8));
  }

  /** {@link fetchAddSync} without bigints: of whole numbers that are exact as numbers. @internal */
  addSync(offset: number, value: number): number {
    this.checkOpen('add');
    this.#checkRange(offset, 8);
    this.#checkWritable();
    halves[0] = value;
    halves[1] = Math.floor(value / 2 ** 32);
    this.#direct.execute(Nd2Direct.FETCH_ADD, oneOperand, offset, 'add', 'addAsync');
    return halves[1] * 2 ** 32 + (halves[0] >>> 0);
  }

  /**
   * Maps the memory: returns an array of the very bytes that the peer has there. Nothing is copied, so it takes no memory whatever its
   * length, and shows at once what the peer writes, as memory that threads share does.
   *
   * The array is this process's own: the peer sees nothing of what is written to it. A page that is written to shows what this process
   * has, from then on, and no more what the peer writes there; so do not write to it but by mistake. It stays as it is when the peer has
   * released the memory, when the connection has ended, and when the peer's process has; its pages are freed when it was collected. A process
   * has at most 4096 of them.
   *
   * The peer must be a process of this user on this host, or a Worker of this process ({@link direct}), and have exposed the memory with
   * `views: true`.
   *
   * @throws NetError `ENOTSUP`: the memory cannot be mapped, with the reason; `ENOBUFS`: too many are mapped, or there is no file descriptor;
   *   `ENOMEM`; `ERR_STREAM_DESTROYED`: the channel is closed; `ECONNRESET`: the connection has ended
   */
  async map(): Promise<Uint8Array<ArrayBuffer>> {
    this.checkOpen('map');
    return await this.#direct.map(this.length, this.views);
  }

  /**
   * Reads bytes, by RDMA Read.
   *
   * @param offset - bytes from the start
   * @param length - bytes
   * @param options - `signal`
   * @throws RangeError `ERR_OUT_OF_RANGE`: outside the memory; NetError `ERR_STREAM_DESTROYED`: the channel is closed; AbortError; NetError `ECONNRESET`: the connection has ended
   */
  async read(offset: number, length: number, options?: RemoteOptions): Promise<Buffer> {
    this.checkOpen('read');
    this.#check(offset, length, options);
    if (length === 0) return Buffer.alloc(0);
    return this.#counted(async () => {
      const bounce = await this.#borrow('read', length);
      const from = bounce.offset;
      await this.#operate(false, bounce, length, offset, options?.signal);
      const bytes = bounce.bytes.subarray(from, from + length);
      if (bounce.own) return Buffer.from(bytes.buffer, bytes.byteOffset, length);
      const copy = Buffer.from(bytes);
      this.link.context.giveBack(bounce);
      return copy;
    });
  }

  /**
   * Writes bytes, by RDMA Write. It resolves when they are in the peer's memory.
   *
   * @param offset - bytes from the start
   * @param bytes - what to write
   * @param options - `signal`
   * @throws as {@link read}; NetError `EACCES`: the memory is not writable
   */
  async write(offset: number, bytes: Uint8Array, options?: RemoteOptions): Promise<void> {
    this.checkOpen('write');
    checkBytes('bytes', bytes);
    this.#check(offset, bytes.length, options);
    this.#checkWritable();
    if (bytes.length === 0) return;
    await this.#counted(async () => {
      const bounce = await this.#borrow('write', bytes.length);
      bounce.bytes.set(bytes, bounce.offset);
      await this.#operate(true, bounce, bytes.length, offset, options?.signal);
      if (!bounce.own) this.link.context.giveBack(bounce);
    });
  }

  /**
   * Replaces 8 bytes by `replacement` if they are `expected`. Returns what they were before. They are an integer in the byte order of the
   * owner's processor, as `BigInt64Array` has it.
   *
   * @param offset - a multiple of 8 bytes
   * @param expected - the value that must be there
   * @param replacement - the new value
   * @param options - `signal`
   * @throws as {@link write}; NetError `ERR_REMOTE`: the peer cannot do it
   */
  compareExchange(
    offset: number,
    expected: bigint,
    replacement: bigint,
    options?: RemoteOptions,
  ): Promise<bigint> {
    return this.#atomic(Atomic.COMPARE_EXCHANGE, offset, expected, replacement, options);
  }

  /**
   * Adds to 8 bytes, and returns what they were before.
   *
   * @param offset - a multiple of 8 bytes
   * @param value - what to add
   * @param options - `signal`
   * @throws as {@link compareExchange}
   */
  fetchAdd(offset: number, value: bigint, options?: RemoteOptions): Promise<bigint> {
    return this.#atomic(Atomic.FETCH_ADD, offset, value, 0n, options);
  }

  async #atomic(
    operation: number,
    offset: number,
    first: bigint,
    second: bigint,
    options: RemoteOptions | undefined,
  ): Promise<bigint> {
    this.#checkAtomic('atomic operation', offset, first, second);
    this.#check(offset, 8, options);
    // Not before what was called earlier.
    if (this.link.operatesNothing) {
      operands[0] = first;
      operands[1] = second;
      const add = operation === Atomic.FETCH_ADD;
      const code = add ? Nd2Direct.FETCH_ADD : Nd2Direct.COMPARE_EXCHANGE;
      if (this.#direct.attempt(code, add ? oneOperand : twoOperands, offset)) return operands[0];
    }
    const data = new Uint8Array(ATOMIC_BYTES);
    const view = viewOf(data);
    view.setUint8(0, operation);
    view.setUint32(4, this.#remote.token);
    view.setBigUint64(8, BigInt(offset));
    view.setBigInt64(16, first);
    view.setBigInt64(24, second);
    const answer = await this.#counted(() => this.ask(data, options?.signal));
    if (answer.length !== 8)
      throw new NetError('EPROTO', 'The answer to an atomic operation has another form.');
    return answer.readBigInt64BE(0);
  }

  #checkAtomic(what: string, offset: number, first: bigint, second: bigint): void {
    this.checkOpen(what);
    checkOperand(first);
    checkOperand(second);
    this.#checkRange(offset, 8);
    this.#checkWritable();
    if (offset % 8 !== 0) throw outOfRange(`Offset ${offset} is not a multiple of 8.`);
  }

  #check(offset: number, length: number, options: RemoteOptions | undefined): void {
    this.#checkRange(offset, length);
    const refusal = refusalBy(options?.signal);
    if (refusal !== undefined) throw refusal;
  }

  #checkRange(offset: number, length: number): void {
    const whole = Number.isSafeInteger(offset) && Number.isSafeInteger(length);
    if (!whole || offset < 0 || length < 0 || offset + length > this.length) {
      throw outOfRange(`${length} bytes at offset ${offset} are not within ${this.length} bytes.`);
    }
  }

  #checkWritable(): void {
    if (!this.writable) throw new NetError('EACCES', 'The peer has exposed this memory for reading only.');
  }

  /** Runs an operation that atomic operations must not overtake. */
  async #counted<T>(operation: () => Promise<T>): Promise<T> {
    this.link.remoteCalls += 1;
    try {
      return await operation();
    } finally {
      this.link.remoteCalls -= 1;
    }
  }

  /** Registered memory for an operation. @throws NetError */
  async #borrow(what: string, bytes: number): Promise<Bounce> {
    try {
      return await this.link.context.borrow(bytes);
    } catch (error) {
      throw netError(error, what);
    }
  }

  /** The memory is given back when the request has ended, also if nobody waits for it any more. */
  #operate(
    write: boolean,
    bounce: Bounce,
    length: number,
    offset: number,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { link } = this;
    return new Promise<void>((resolve, reject) => {
      let abandoned = false;
      const onAbort = (): void => {
        abandoned = true;
        reject(aborted(signal!));
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      const done = (error: unknown): void => {
        signal?.removeEventListener('abort', onAbort);
        if (bounce.own) bounce.region.release();
        else if (abandoned || error !== undefined) link.context.giveBack(bounce);
        if (error === undefined) resolve();
        else reject(error);
      };
      const sgl: [Nd2Sge] = [{ memory: bounce.region, offset: bounce.offset, length }];
      link.operate(new Transfer(write, sgl, this.#remote, offset, done));
    });
  }

  /** @internal */
  [inspect.custom](): string {
    return `RemoteMemory { ${this.length} bytes, ${rightsText(this)} }`;
  }
}

/** Handles have a place, bytes, and no rights that nobody knows. */
function isExposed({ address, length, id }: MemoryDescription): boolean {
  return address !== 0n && length > 0 && (id & ~(WRITABLE | VIEWS)) === 0;
}

/** Operands of an atomic operation; its result is in the first. */
const operands = new BigInt64Array(2);
const twoOperands = new Uint8Array(operands.buffer);
const oneOperand = new Uint8Array(operands.buffer, 0, 8);
/** Low and high half of the first. */
const halves = new Int32Array(operands.buffer, 0, 2);

/** @throws TypeError */
function checkBytes(what: string, bytes: unknown): asserts bytes is Uint8Array {
  if (bytes instanceof Uint8Array) return;
  throw wrongType(`\`${what}\` must be a Uint8Array; got ${kindOf(bytes)}.`);
}

/** @throws TypeError, RangeError: not a signed integer of 64 bits */
function checkOperand(value: bigint): void {
  if (typeof value !== 'bigint') throw wrongType(`An operand is a bigint, not ${kindOf(value)}.`);
  if (BigInt.asIntN(64, value) !== value)
    throw outOfRange(`The operand ${value} is not a signed integer of 64 bits.`);
}
