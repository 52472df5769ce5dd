import {
  argumentMemory,
  type ComObject,
  type NativeFunction,
  SgeWord,
  type SteadyMemory,
  type TokenOwner,
  type TokenTable,
} from '../../kernel-bridge/windows/nd-provider/index.js';
import {
  QpState,
  type RemoteMemoryRef,
  Status,
  StatusError,
  WvAccess,
  type WvMemoryRegion,
  WvSend,
  type WvSge,
} from '../../winverbs/index.js';
import type { ObjectBelow, QueuePairBelow } from '../core/below.js';
import type { RequestRecord } from '../core/request-queue.js';
import { Nd2OpFlag } from '../spi/v2.js';
import type { NativeRegion } from './native-memory.js';
import type { NativeQueue } from './native-queue.js';

const UPPER = 2 ** -32;
/** Greatest address that is passed as a number; those above are passed as BigInts. */
const MOST = Number.MAX_SAFE_INTEGER;
const INLINE = WvSend.INLINE;
const { length: LENGTH, token: TOKEN, size: SGE } = SgeWord;

/** WV_SEND_* → ND_OP_FLAG_*, by index. */
const opFlags: readonly number[] = Array.from(
  { length: 0x20 },
  (_, flags) =>
    (flags & WvSend.SIGNALED ? 0 : Nd2OpFlag.SILENT_SUCCESS) |
    (flags & WvSend.FENCE ? Nd2OpFlag.READ_FENCE : 0) |
    (flags & WvSend.SOLICITED ? Nd2OpFlag.SEND_AND_SOLICIT_EVENT : 0) |
    (flags & WvSend.INLINE ? Nd2OpFlag.INLINE : 0),
);

/** A shared receive queue: the source of a queue pair's Receives. */
export interface ReceiveSource {
  /** Removes and returns the record of a Receive, or undefined if it has no record. */
  take(index: number): RequestRecord | undefined;
}

/** Depths and limits of a queue pair. */
export interface QueuePairSizes {
  readonly receiveDepth: number;
  readonly initiatorDepth: number;
  readonly receiveSge: number;
  readonly sendSge: number;
  readonly maxInline: number;
  readonly maxReads: number;
}

/** An array of ND2_SGE in memory. */
export class SgeList {
  readonly #memory: SteadyMemory;
  readonly address: number;

  constructor(
    private readonly most: number,
    private readonly kind: string,
  ) {
    this.#memory = argumentMemory(4 * SGE * Math.max(1, most));
    this.address = this.#memory.address;
  }

  /** Writes the entries and returns their number. @throws StatusError DATA_OVERRUN */
  write(sgl: readonly WvSge[]): number {
    const n = sgl.length;
    if (n > this.most) tooManySges(this.kind, n, this.most);
    const { words } = this.#memory;
    for (let i = 0; i < n; i++) {
      const { region, offset, length } = sgl[i]!;
      this.#put(words, SGE * i, region.address + offset, length, region.lkey);
    }
    return n;
  }

  /** Writes a single entry. */
  single(address: number, length: number): void {
    this.#put(this.#memory.words, 0, address, length, 0);
  }

  #put(words: Uint32Array, at: number, address: number, length: number, token: number): void {
    words[at] = address;
    words[at + 1] = address * UPPER;
    words[at + LENGTH] = length;
    words[at + TOKEN] = token;
  }
}

/** The outstanding requests of a queue, in the order of their posts. */
class Outstanding {
  count = 0;
  #oldest = 0;
  readonly #records: (RequestRecord | undefined)[];

  constructor(depth: number) {
    this.#records = new Array<undefined>(depth).fill(undefined);
  }

  add(record: RequestRecord): void {
    if (this.#records[record.index] === undefined) this.count++;
    this.#records[record.index] = record;
  }

  /** Removes and returns the record of a completed request, if it has one. Earlier ones have succeeded silently. */
  take(index: number): RequestRecord | undefined {
    const records = this.#records;
    const record = records[index];
    if (record === undefined) return undefined;
    let at = this.#oldest;
    for (;;) {
      if (records[at] !== undefined) this.count--;
      records[at] = undefined;
      const done = at === index;
      at = at + 1 === records.length ? 0 : at + 1;
      if (done) break;
    }
    this.#oldest = at;
    return record;
  }

  clear(): void {
    this.#records.length = 0;
  }
}

/**
 * IND2QueuePair of a provider. The context of a request is the index of its record. A result is therefore matched with the posted request,
 * even if the provider reports the wrong type for a failed request. Posting allocates nothing, except for BigInts of high remote addresses.
 */
export class NativeQueuePair implements QueuePairBelow, TokenOwner {
  readonly token: number;
  /** Number of requests whose results may be returned after the release. */
  unread = 0;
  /** Whether the connection has ended or the queue pair was flushed. */
  broken = false;
  #com: ComObject<'IND2QueuePair'> | undefined;
  #address = 0;
  readonly #initiators: Outstanding;
  readonly #receives: Outstanding;
  #released = false;
  #onEnd: () => void = () => {};
  readonly #sends: SgeList;
  readonly #receiveList: SgeList;
  readonly #inline: SteadyMemory;
  #send!: NativeFunction;
  #receive!: NativeFunction;

  constructor(
    private readonly tokens: TokenTable<NativeQueuePair>,
    readonly context: unknown,
    private readonly sizes: QueuePairSizes,
    private readonly queues: readonly NativeQueue[],
    private readonly shared?: ReceiveSource,
  ) {
    this.#initiators = new Outstanding(sizes.initiatorDepth);
    this.#receives = new Outstanding(sizes.receiveDepth);
    this.#sends = new SgeList(sizes.sendSge, 'request');
    this.#receiveList = new SgeList(sizes.receiveSge, 'Receive');
    this.#inline = argumentMemory(Math.max(8, sizes.maxInline));
    this.token = tokens.add(this);
  }

  /** Takes over the object, which was created with the {@link token}. */
  begin(com: ComObject<'IND2QueuePair'>, onEnd: () => void): void {
    this.#com = com;
    this.#onEnd = onEnd;
    this.#address = com.address;
    this.#send = com.slots.Send;
    this.#receive = com.slots.Receive;
  }

  /** The object. Only valid after {@link begin}. */
  get com(): ComObject<'IND2QueuePair'> {
    return this.#com!;
  }

  get state(): number {
    return this.broken ? QpState.ERROR : QpState.INIT;
  }

  get sendSge(): number {
    return this.sizes.sendSge;
  }

  get receiveSge(): number {
    return this.sizes.receiveSge;
  }

  /** Moves the queue pair to ERROR, the only transition that the layer above requests. */
  modify(): void {
    this.com.run('Flush');
    this.broken = true;
  }

  send(record: unknown, sgl: readonly WvSge[], flags: number): void {
    const n = this.#entries(sgl, flags);
    const result = this.#send(this.#address, idOf(record), this.#sends.address, n, opFlags[flags]!) as number;
    if (result !== 0) throw this.com.failure('Send', result >>> 0);
    this.#initiators.add(record as RequestRecord);
  }

  /** Used by v1 only. */
  sendAndInvalidate(): void {
    throw new StatusError(Status.NOT_SUPPORTED);
  }

  postReceive(record: unknown, sgl: readonly WvSge[]): void {
    const n = this.#receiveList.write(sgl);
    const { index } = record as RequestRecord;
    const result = this.#receive(this.#address, 2 * index + 1, this.#receiveList.address, n) as number;
    if (result !== 0) throw this.com.failure('Receive', result >>> 0);
    this.#receives.add(record as RequestRecord);
  }

  read(record: unknown, sgl: readonly WvSge[], flags: number, remote: RemoteMemoryRef, offset: number): void {
    if (this.sizes.maxReads === 0) unsupported(this.com.library, 'RDMA Reads');
    this.#transfer('Read', record, this.#entries(sgl, flags), flags, remote, offset);
  }

  write(
    record: unknown,
    sgl: readonly WvSge[],
    flags: number,
    remote: RemoteMemoryRef,
    offset: number,
  ): void {
    this.#transfer('Write', record, this.#entries(sgl, flags), flags, remote, offset);
  }

  #transfer(
    method: 'Read' | 'Write',
    record: unknown,
    n: number,
    flags: number,
    remote: RemoteMemoryRef,
    offset: number,
  ): void {
    const { com } = this;
    const { rkey } = remote;
    const at = addressOf(remote, offset);
    const list = this.#sends.address;
    const call = com.slots[method];
    const result = call(this.#address, idOf(record), list, n, at, rkey, opFlags[flags]!) as number;
    if (result !== 0) throw com.failure(method, result >>> 0);
    this.#initiators.add(record as RequestRecord);
  }

  bindMemoryWindow(
    window: ObjectBelow,
    record: unknown,
    region: WvMemoryRegion,
    offset: number,
    length: number,
    access: number,
    flags: number,
  ): number {
    const com = window as ComObject<'IND2MemoryWindow'>;
    const rights =
      (access & WvAccess.REMOTE_READ ? Nd2OpFlag.ALLOW_READ : 0) |
      (access & WvAccess.REMOTE_WRITE ? Nd2OpFlag.ALLOW_WRITE : 0);
    const memory = [(region as NativeRegion).com.address, com.address, region.address + offset, length];
    this.com.run('Bind', idOf(record), ...memory, opFlags[flags]! | rights);
    this.#initiators.add(record as RequestRecord);
    return com.call('GetRemoteToken');
  }

  invalidateMemoryWindow(window: ObjectBelow, record: unknown, flags: number): void {
    const { address } = window as ComObject<'IND2MemoryWindow'>;
    this.com.run('Invalidate', idOf(record), address, opFlags[flags]!);
    this.#initiators.add(record as RequestRecord);
  }

  /** Writes the scatter/gather list of a request. Copies inline bytes, whose memory may move. Returns the number of entries. */
  #entries(sgl: readonly WvSge[], flags: number): number {
    if ((flags & INLINE) === 0) return this.#sends.write(sgl);
    const { bytes: to, address } = this.#inline;
    let total = 0;
    for (let i = 0; i < sgl.length; i++) {
      const { region, offset, length } = sgl[i]!;
      if (length === 0) continue;
      const from = region.bytes;
      if (from === undefined || offset + length > from.length) beyond(i);
      if (total + length > this.sizes.maxInline) tooMuchInline(this.sizes.maxInline);
      for (let j = 0; j < length; j++) to[total + j] = from[offset + j]!;
      total += length;
    }
    if (total === 0) return 0;
    this.#sends.single(address, total);
    return 1;
  }

  /** Removes and returns the record of a completed request, or undefined if it has no record. */
  take(id: number, failed: boolean): RequestRecord | undefined {
    if (failed) this.broken = true;
    const index = id >>> 1;
    const record =
      (id & 1) === 0 ? this.#initiators.take(index) : (this.shared ?? this.#receives).take(index);
    if (record !== undefined && this.#released) this.#readOne();
    return record;
  }

  /** Releases the object. Results of outstanding requests may still be returned to the client. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#onEnd();
    this.#com?.release();
    this.unread = this.#unread;
    if (this.unread > 0) for (const queue of this.queues) queue.keep(this);
    this.tokens.remove(this);
  }

  /** Maximum results that may follow. How many Receives of a shared queue were used is unknown. */
  get #unread(): number {
    return this.#initiators.count + this.#receives.count + (this.shared === undefined ? 0 : 1);
  }

  #readOne(): void {
    this.unread = this.#unread;
    if (this.unread === 0) this.forgetUnread();
  }

  /** Called when no more results can be returned. */
  forgetUnread(): void {
    this.unread = 0;
    for (const queue of this.queues) queue.unread.delete(this);
    this.tokens.remove(this);
  }

  forget(): void {
    this.#initiators.clear();
    this.#receives.clear();
  }
}

/** Returns the context of an initiator request. Those of Receives are odd. */
function idOf(record: unknown): number {
  return 2 * (record as RequestRecord).index;
}

/** Returns a number if it is exact, as it is for all memory of processes. @throws StatusError INVALID_PARAMETER */
function addressOf({ addressLow, addressHigh }: RemoteMemoryRef, offset: number): number | bigint {
  const at = addressHigh * 2 ** 32 + addressLow + offset;
  if (at <= MOST) return at;
  const wide = (BigInt(addressHigh) << 32n) + BigInt(addressLow) + BigInt(offset);
  if (wide < 1n << 64n) return wide;
  const text = `\`offset\` must stay within the 64-bit address space; got ${offset}.`;
  throw new StatusError(Status.INVALID_PARAMETER, text);
}

function tooManySges(kind: string, n: number, most: number): never {
  const text = `\`sgl\` of a ${kind} of this queue pair must have at most ${most} entries; got ${n}.`;
  throw new StatusError(Status.DATA_OVERRUN, text);
}

function beyond(index: number): never {
  throw new StatusError(
    Status.ACCESS_VIOLATION,
    `Entry ${index} of \`sgl\` must end within its memory region.`,
  );
}

function tooMuchInline(most: number): never {
  throw new StatusError(
    Status.BUFFER_OVERFLOW,
    `INLINE requests of this queue pair must have at most ${most} bytes.`,
  );
}

/** Throws NOT_SUPPORTED with the provider's name. */
export function unsupported(library: string, what: string): never {
  throw new StatusError(Status.NOT_SUPPORTED, `The provider ${library} does not support ${what}.`);
}
