import { inspect } from 'node:util';
import { kindOf, shown } from '../../../kernel-bridge/ioctl/shown.js';
import { Nd2Direct, Nd2RemoteMemory, type Nd2Sge } from '../../index.js';
import { outOfRange, wrongType } from '../base/checks.js';
import { aborted, NetError, netError, refusalBy } from '../base/errors.js';
import { signalOf } from '../base/option-places.js';
import { ATOMIC_BYTES, decodeMemory, type MemoryDescription, viewOf } from '../connection/frames.js';
import type { Link } from '../connection/link.js';
import type { Bounce } from '../connection/local-context.js';
import { Transfer } from '../connection/operations.js';
import { DirectMemory } from './direct-memory.js';
import { Atomic, rightsText, VIEWS, WRITABLE } from './exposed-memory.js';

/** An operation that can be aborted. */
export interface RemoteOptions {
  /** Rejects the operation with an AbortError. An operation that has begun is still executed. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Memory that the peer has exposed. Reads and writes do not involve the peer's program. `compareExchange` and `fetchAdd` are atomic with
 * its own `Atomics` and with the operations of all other peers; where {@link direct} is false, the peer's program executes them.
 *
 * Memory from `allocate()` in a process of this user on this host can be accessed synchronously with the methods whose names end in `Sync`;
 * a call takes less than a microsecond for a few bytes. These methods are executed immediately, before unfinished operations of other
 * methods, so await a `write` before a `Sync` method that must follow it. The first `Sync` method maps the memory, which takes some
 * milliseconds.
 *
 * Such memory can also be mapped if the peer has exposed it with `views`. {@link map} is for data that is too large to be copied.
 *
 * Using memory that the peer has released ends the connection, except for `map` and the `Sync` methods, which throw.
 * @example
 * ```ts
 * const remote = channel.open(await channel.request('the table, please'));
 * const row = await remote.read(64 * 5, 64);
 * await remote.write(64 * 5, Buffer.alloc(64));
 * const before = await remote.fetchAdd(0, 1n);
 * ```
 */
export class RemoteMemory {
  /** Length in bytes. @category Memory */
  readonly length: number;
  /** Whether writing is permitted. @category Memory */
  readonly writable: boolean;
  /** Whether the peer lets processes of its user on its host {@link map} the memory. @category Memory */
  readonly views: boolean;
  readonly #remote: Nd2RemoteMemory;
  readonly #direct: DirectMemory;

  /** @internal */
  constructor(
    private readonly link: Link,
    private readonly request: (data: Uint8Array, signal: AbortSignal | undefined) => Promise<Buffer>,
    /** Throws if the channel is closed. */
    private readonly checkOpen: (what: string) => void,
    handle: Uint8Array,
  ) {
    checkBytes('handle', handle);
    const memory = decodeMemory(handle);
    if (memory === undefined || !isExposed(memory))
      throw new NetError(
        'EPROTO',
        `\`handle\` must be a handle of exposed memory, as sent by the peer; got ${handle.length} other bytes.`,
      );
    this.length = memory.length;
    this.writable = (memory.id & WRITABLE) !== 0;
    this.views = (memory.id & VIEWS) !== 0;
    this.#remote = new Nd2RemoteMemory(memory.address, memory.token);
    this.#direct = new DirectMemory(link, this.#remote);
  }

  /**
   * Whether the peer is a process of this user on this host and neither side has the option `direct: false`. If so, the `Sync` methods work
   * on memory from `allocate()`.
   * @category Memory
   */
  get direct(): boolean {
    return !this.link.over && this.#direct.reachable;
  }

  /**
   * Reads bytes synchronously.
   *
   * @param offset - bytes from the start
   * @param into - the buffer to fill
   * @throws as {@link read}, and NetError `ENOTSUP` (the memory cannot be accessed directly; the message has the reason). Part of `into`
   *   may have been written.
   * @category Read
   */
  readSync(offset: number, into: Uint8Array): void {
    this.checkOpen('readSync');
    checkBytes('into', into);
    this.#checkRange(offset, into.length);
    if (into.length === 0) return;
    this.#direct.execute(Nd2Direct.READ, into, offset, 'readSync', 'read');
  }

  /**
   * Writes bytes synchronously.
   *
   * @param offset - bytes from the start
   * @param from - the bytes to write
   * @throws as {@link write}, and NetError `ENOTSUP` (the memory cannot be accessed directly; the message has the reason). Some of the
   *   bytes may have been written.
   * @category Write
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
   * Synchronous form of {@link compareExchange}.
   *
   * @param offset - a multiple of 8 bytes
   * @param expected - the value to compare with
   * @param replacement - the new value
   * @throws as {@link writeSync}, and NetError `ETIMEDOUT` (the peer revoked the memory meanwhile, so the operation may have been executed)
   * @category Atomics
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
   * Synchronous form of {@link fetchAdd}.
   *
   * @param offset - a multiple of 8 bytes
   * @param value - the value to add
   * @throws as {@link compareExchangeSync}
   * @category Atomics
   */
  fetchAddSync(offset: number, value: bigint): bigint {
    this.#checkAtomic('fetchAddSync', offset, value, undefined);
    operands[0] = value;
    this.#direct.execute(Nd2Direct.FETCH_ADD, oneOperand, offset, 'fetchAddSync', 'fetchAdd');
    return operands[0];
  }

  /** Resolves when {@link addSync} no longer has to wait for the mapping. @internal */
  mappedForAtomics(): Promise<void> {
    return this.#direct.mapped(Nd2Direct.FETCH_ADD, new Uint8Array(8));
  }

  /** {@link fetchAddSync} without bigints, for safe integers. @internal */
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
   * Maps the memory and returns an array of the peer's actual bytes. Nothing is copied, so the length does not matter, and writes of the
   * peer are visible immediately, as in a SharedArrayBuffer.
   *
   * The mapping is private (copy-on-write): the peer does not see writes to the array, and a page that was written no longer shows the
   * peer's changes. Treat the array as read-only. It stays valid after the peer has released the memory, after the connection has ended and
   * after the peer's process has exited; its pages are freed when it is garbage-collected. A process can have at most 4096 such arrays.
   *
   * The peer must be a process of this user on this host or a Worker of this process ({@link direct}), and must have exposed the memory
   * with `views: true`.
   *
   * @throws NetError `ENOTSUP` (the memory cannot be mapped; the message has the reason), `ENOBUFS` (too many mappings, or no file
   *   descriptor is left), `ENOMEM`, `ERR_STREAM_DESTROYED` (the channel is closed), `ECONNRESET` (the connection has ended)
   * @category Memory
   */
  async map(): Promise<Uint8Array<ArrayBuffer>> {
    this.checkOpen('map');
    return await this.#direct.map(this.length, this.views);
  }

  /**
   * Reads bytes with an RDMA Read.
   *
   * @param offset - bytes from the start
   * @param length - number of bytes
   * @param options - `signal`
   * @throws RangeError `ERR_OUT_OF_RANGE` (outside the memory); NetError `ERR_STREAM_DESTROYED` (the channel is closed), `ECONNRESET` (the
   *   connection has ended); AbortError
   * @category Read
   */
  async read(offset: number, length: number, options?: RemoteOptions): Promise<Buffer> {
    this.checkOpen('read');
    this.#check('read', offset, length, options);
    if (length === 0) return Buffer.alloc(0);
    return this.#counted(async () => {
      const bounce = await this.#borrow('read', length);
      const from = bounce.offset;
      await this.#operate(false, bounce, length, offset, options?.signal);
      const bytes = bounce.bytes.subarray(from, from + length);
      if (bounce.own) return Buffer.from(bytes.buffer, bytes.byteOffset, length);
      const copy = Buffer.from(bytes);
      this.link.context.returnBounce(bounce);
      return copy;
    });
  }

  /**
   * Writes bytes with an RDMA Write. Resolves when they are in the peer's memory.
   *
   * @param offset - bytes from the start
   * @param bytes - the bytes to write
   * @param options - `signal`
   * @throws as {@link read}, and NetError `EACCES` (the memory is not writable)
   * @category Write
   */
  async write(offset: number, bytes: Uint8Array, options?: RemoteOptions): Promise<void> {
    this.checkOpen('write');
    checkBytes('bytes', bytes);
    this.#check('write', offset, bytes.length, options);
    this.#checkWritable();
    if (bytes.length === 0) return;
    await this.#counted(async () => {
      const bounce = await this.#borrow('write', bytes.length);
      bounce.bytes.set(bytes, bounce.offset);
      await this.#operate(true, bounce, bytes.length, offset, options?.signal);
      if (!bounce.own) this.link.context.returnBounce(bounce);
    });
  }

  /**
   * Replaces 8 bytes with `replacement` if they equal `expected`, and resolves with the previous value. The value is a signed integer in
   * the byte order of the owner's CPU, as in `BigInt64Array`.
   *
   * @param offset - a multiple of 8 bytes
   * @param expected - the value to compare with
   * @param replacement - the new value
   * @param options - `signal`
   * @throws as {@link write}, and NetError `ERR_REMOTE` (the peer cannot execute it)
   * @category Atomics
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
   * Adds to 8 bytes and resolves with the previous value.
   *
   * @param offset - a multiple of 8 bytes
   * @param value - the value to add
   * @param options - `signal`
   * @throws as {@link compareExchange}
   * @category Atomics
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
    const call = operation === Atomic.FETCH_ADD ? 'fetchAdd' : 'compareExchange';
    this.#checkAtomic(call, offset, first, second);
    this.#check(call, offset, 8, options);
    // Direct execution must not overtake earlier operations.
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
    const answer = await this.#counted(() => this.request(data, options?.signal));
    if (answer.length !== 8) throw new NetError('EPROTO', 'The reply to an atomic operation is malformed.');
    return answer.readBigInt64BE(0);
  }

  /** For a fetchAdd, `replacement` is omitted. */
  #checkAtomic(what: string, offset: number, first: bigint, replacement: bigint | undefined): void {
    this.checkOpen(what);
    const adds = what.startsWith('fetchAdd');
    checkOperand(adds ? 'value' : 'expected', first);
    if (!adds) checkOperand('replacement', replacement!);
    this.#checkRange(offset, 8);
    this.#checkWritable();
    if (offset % 8 !== 0) throw outOfRange(`\`offset\` must be a multiple of 8; got ${offset}.`);
  }

  #check(call: string, offset: number, length: number, options: RemoteOptions | undefined): void {
    this.#checkRange(offset, length);
    const refusal = refusalBy(signalOf(call, options));
    if (refusal !== undefined) throw refusal;
  }

  #checkRange(offset: number, length: number): void {
    const whole = Number.isSafeInteger(offset) && Number.isSafeInteger(length);
    if (!whole || offset < 0 || length < 0 || offset + length > this.length) {
      checkCount('offset', offset);
      checkCount('length', length);
      throw outOfRange(
        `Accessed bytes must be within the ${this.length} bytes of the memory; got ${length} bytes at offset ${offset}.`,
      );
    }
  }

  #checkWritable(): void {
    if (!this.writable)
      throw new NetError('EACCES', 'The memory is read-only. The peer must expose it with writable: true.');
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

  /** Returns registered memory for an operation. @throws NetError */
  async #borrow(what: string, bytes: number): Promise<Bounce> {
    try {
      return await this.link.context.borrow(bytes);
    } catch (error) {
      throw netError(error, what);
    }
  }

  /** The memory is returned when the request has completed, even if the operation was aborted. */
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
        else if (abandoned || error !== undefined) link.context.returnBounce(bounce);
        if (error === undefined) resolve();
        else reject(error);
      };
      const sgl: [Nd2Sge] = [{ memory: bounce.region, offset: bounce.offset, length }];
      link.operate(new Transfer(write, sgl, this.#remote, offset, link.context.mostTransfer, done));
    });
  }

  /** @internal */
  [inspect.custom](): string {
    return `RemoteMemory { ${this.length} bytes, ${rightsText(this)} }`;
  }
}

/** Whether a handle has an address, a length and only known rights. */
function isExposed({ address, length, id }: MemoryDescription): boolean {
  return address !== 0n && length > 0 && (id & ~(WRITABLE | VIEWS)) === 0;
}

/** Operands of an atomic operation. The first also receives the result. */
const operands = new BigInt64Array(2);
const twoOperands = new Uint8Array(operands.buffer);
const oneOperand = new Uint8Array(operands.buffer, 0, 8);
/** Low and high half of the first operand. */
const halves = new Int32Array(operands.buffer, 0, 2);

/** @throws TypeError */
function checkBytes(what: string, bytes: unknown): asserts bytes is Uint8Array {
  if (bytes instanceof Uint8Array) return;
  throw wrongType(`\`${what}\` must be a Uint8Array; got ${kindOf(bytes)}.`);
}

/** @throws RangeError */
function checkCount(what: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0)
    throw outOfRange(`\`${what}\` must be a non-negative integer; got ${shown(value)}.`);
}

/** @throws TypeError, RangeError if `value` is not a signed 64-bit integer */
function checkOperand(what: string, value: bigint): void {
  if (typeof value !== 'bigint') throw wrongType(`\`${what}\` must be a bigint; got ${shown(value)}.`);
  if (BigInt.asIntN(64, value) !== value)
    throw outOfRange(`\`${what}\` must be a signed 64-bit integer; got ${shown(value)}.`);
}
