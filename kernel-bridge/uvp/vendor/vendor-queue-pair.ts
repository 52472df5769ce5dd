import type { TokenOwner, TokenTable } from '../../door/token-table.js';
import type { UvpBindRequest, UvpQpCreate, UvpSendRequest, UvpSge } from '../../door/user-verbs.js';
import { QpType, WvOpcode, WvSend } from '../../ioctl/constants.js';
import { Status, StatusError } from '../../ioctl/status.js';
import type { NativeBytes, SteadyMemory } from '../../windows/steady-memory.js';
import type { NativeFunction } from '../../windows/win32.js';
import {
  badRange,
  full,
  invalid,
  MAX_ADDRESS,
  NO_REQUEST,
  outsideOfRegion,
  refusedFlags,
  SEND_FLAGS,
  TWO_32,
  UPPER,
  writeSgl,
} from '../work-request.js';
import { ibFailure, postFailure } from './ib-status.js';
import type { UvpTable } from './native-library.js';
import { OrderedRequests, Queue, requestId, SharedRequests } from './request-ids.js';
import { BindWord, layouts, ReceiveWord, SendWord, swapped, writeAddress } from './uvp-layouts.js';

/** An object of the provider, with its handle. */
export class VendorHandle {
  address = 0;
}

const sgeBytes = layouts.localDs.size;

/** Returns the total bytes of an SGL that {@link writeSgl} has checked. */
function totalOf(sgl: readonly UvpSge[]): number {
  let total = 0;
  for (let i = 0; i < sgl.length; i++) total += sgl[i]!.length;
  return total;
}

/** Checks the bounds of inline data. The provider copies it without checks, and keys only protect accesses of the HCA. */
function checkInline(sgl: readonly UvpSge[]): void {
  for (let i = 0; i < sgl.length; i++) {
    const { region, offset, length } = sgl[i]!;
    const size = region.bytes?.length ?? 0;
    if (length !== 0 && offset + length > size) outsideOfRegion(i, offset, length, size);
  }
}

/** A request in native memory with its SGEs, and space for the provider's pointer to the first failed request. */
class RequestBlock {
  readonly memory: SteadyMemory;
  readonly words: Uint32Array;
  readonly address: number;
  /** Offset of the SGEs, in words. */
  readonly sgl: number;
  readonly failed: number;

  constructor(native: NativeBytes, size: number, sges: number) {
    this.memory = native.memory(4 * size + 8 + sges * sgeBytes);
    this.words = this.memory.words;
    this.address = this.memory.address;
    this.failed = this.address + 4 * size;
    this.sgl = size + 2;
  }

  get sglAddress(): number {
    return this.address + 4 * this.sgl;
  }
}

/** Posts Receives of a queue pair or a shared receive queue, one `ib_recv_wr_t` at a time. */
class ReceivePoster {
  readonly #block: RequestBlock;

  constructor(
    native: NativeBytes,
    private readonly slot: string,
    private readonly post: NativeFunction,
    private readonly sges: number,
  ) {
    this.#block = new RequestBlock(native, ReceiveWord.size, sges);
    writeAddress(this.#block.words, ReceiveWord.sgl, this.#block.sglAddress);
  }

  /** @throws StatusError if the Receive was not queued */
  run(handle: number, id: number, token: number, sgl: readonly UvpSge[]): void {
    const { words, address, failed, sgl: at } = this.#block;
    words[ReceiveWord.sges] = writeSgl(words, at, sgl, this.sges);
    words[ReceiveWord.id] = id;
    words[ReceiveWord.id + 1] = token;
    const result = this.post(handle, address, failed) as number;
    if (result !== 0) throw postFailure(this.slot, result);
  }
}

/** A shared receive queue of a provider. */
export class VendorSharedReceiveQueue extends VendorHandle implements TokenOwner {
  readonly token: number;
  unread = 0;
  readonly requests: SharedRequests;
  readonly #poster: ReceivePoster | undefined;
  /** The depth after the current modification, if it succeeds. */
  nextDepth = 0;

  constructor(
    native: NativeBytes,
    table: UvpTable,
    private readonly tokens: TokenTable<VendorOwner>,
    depth: number,
    sges: number,
  ) {
    super();
    this.requests = new SharedRequests(depth);
    if (table.post_srq_recv !== undefined)
      this.#poster = new ReceivePoster(native, 'post_srq_recv', table.post_srq_recv, sges);
    this.token = tokens.add(this);
  }

  forget(): void {
    this.requests.clear();
  }

  /** Called when the provider has destroyed it. Completions that it still reports are dropped. */
  end(): void {
    this.tokens.remove(this);
  }

  postReceive(context: unknown, sgl: readonly UvpSge[]): void {
    const { requests } = this;
    if (requests.full) full('shared receive', requests.depth);
    this.#poster?.run(this.address, requestId(requests.next, Queue.SHARED), this.token, sgl);
    requests.posted(context);
  }
}

/** A memory window of a provider. */
export class VendorMemoryWindow extends VendorHandle {
  rkey = 0;
}

/** An object that a completion's token identifies. */
export type VendorOwner = VendorQueuePair | VendorSharedReceiveQueue;

/** A queue pair of a provider. */
export class VendorQueuePair extends VendorHandle implements TokenOwner {
  readonly token: number;
  unread = 0;
  readonly qpContext: unknown;
  readonly sends: OrderedRequests;
  readonly receives: OrderedRequests;
  readonly #shared: boolean;
  readonly #datagram: boolean;
  readonly #refused: Int32Array;
  readonly #sendSge: number;
  readonly #maxInline: number;
  readonly #send: RequestBlock;
  readonly #postSend: NativeFunction;
  readonly #receive: ReceivePoster;
  #bind: RequestBlock | undefined;

  constructor(
    private readonly native: NativeBytes,
    private readonly table: UvpTable,
    private readonly tokens: TokenTable<VendorOwner>,
    create: UvpQpCreate,
  ) {
    super();
    this.qpContext = create.context;
    this.#shared = (create.srq ?? null) !== null;
    this.#datagram = create.type === QpType.UD;
    this.#refused = refusedFlags(create.type);
    this.#sendSge = create.sendSge;
    this.#maxInline = create.maxInlineSend;
    this.sends = new OrderedRequests(create.sendDepth);
    this.receives = new OrderedRequests(create.receiveDepth);
    // These two functions are mandatory.
    this.#postSend = table.post_send!;
    this.#receive = new ReceivePoster(native, 'post_recv', table.post_recv!, create.receiveSge);
    this.#send = new RequestBlock(native, SendWord.size, create.sendSge);
    writeAddress(this.#send.words, SendWord.sgl, this.#send.sglAddress);
    this.token = tokens.add(this);
  }

  /** Removes all requests, because no completions follow. */
  forget(): void {
    this.sends.clear();
    this.receives.clear();
  }

  /** Called when the provider has destroyed it. Completions that it still reports are dropped. */
  end(): void {
    this.tokens.remove(this);
  }

  postSend(request: UvpSendRequest): void {
    const { opcode, sgl, flags } = request;
    // Later opcodes have separate calls or are not supported.
    if (!(opcode <= WvOpcode.FETCH_ADD))
      invalid(`Opcode ${opcode} is not a send request that this provider supports.`);
    this.#checkRequest(opcode, flags);
    if (request.invalidate) noInvalidation();
    const { words, sgl: sglAt, address, failed } = this.#send;
    const sges = writeSgl(words, sglAt, sgl, this.#sendSge);
    const length = totalOf(sgl);
    if ((flags & WvSend.INLINE) !== 0) {
      if (length > this.#maxInline) tooMuchInline(length, this.#maxInline);
      checkInline(sgl);
    }
    const position = this.sends.next;
    words[SendWord.id] = requestId(position, Queue.SEND);
    words[SendWord.id + 1] = this.token;
    words[SendWord.sges] = sges;
    words[SendWord.type] = opcode;
    words[SendWord.flags] = flags;
    words[SendWord.immediate] = swapped(request.immediate);
    if (this.#datagram) this.#writeDestination(request);
    else if (opcode !== WvOpcode.SEND) this.#writeRemote(request);
    const result = this.#postSend(this.address, address, failed) as number;
    if (result !== 0) throw postFailure('post_send', result);
    this.sends.posted(request.context, length);
  }

  #checkRequest(opcode: number, flags: number): void {
    const refused = this.#refused[opcode];
    if (refused === undefined || refused === NO_REQUEST) {
      invalid(`A queue pair of this type does not support opcode ${opcode}.`);
    }
    const wrong = flags & ~SEND_FLAGS[opcode]!;
    if (wrong !== 0) invalid(`Flags 0x${(wrong >>> 0).toString(16)} are not valid for opcode ${opcode}.`);
    if (this.sends.full) full('send', this.sends.depth);
  }

  #writeDestination({ av, remoteQpn, remoteQkey }: UvpSendRequest): void {
    if (!(av instanceof VendorHandle)) invalid('`av` must be an address handle of the same device.');
    const { words } = this.#send;
    writeAddress(words, SendWord.av, av.address);
    words[SendWord.remoteQpn] = swapped(remoteQpn);
    words[SendWord.remoteQkey] = swapped(remoteQkey);
  }

  #writeRemote(request: UvpSendRequest): void {
    const { words } = this.#send;
    const offset = request.remoteOffset;
    if (!(offset >= 0 && Number.isSafeInteger(offset))) badRange('remote offset', offset);
    const low = request.remoteLow + (offset >>> 0);
    const high = request.remoteHigh + Math.floor(offset * UPPER) + (low >= TWO_32 ? 1 : 0);
    if (!(high < TWO_32)) invalid(`The remote offset ${offset} leaves the 64-bit address space.`);
    words[SendWord.remote] = low;
    words[SendWord.remote + 1] = high;
    words[SendWord.rkey] = swapped(request.rkey);
    if (request.opcode < WvOpcode.COMPARE_EXCHANGE) return;
    const { sgl } = request;
    if (sgl.length !== 1 || sgl[0]!.length !== 8) {
      invalid('`sgl` of an atomic operation must be one SGE of 8 bytes, for the returned value.');
    }
    words[SendWord.compare] = swapped(request.compareHigh);
    words[SendWord.compare + 1] = swapped(request.compareLow);
    words[SendWord.swap] = swapped(request.swapHigh);
    words[SendWord.swap + 1] = swapped(request.swapLow);
  }

  postReceive(context: unknown, sgl: readonly UvpSge[]): void {
    if (this.#shared) {
      throw new StatusError(
        Status.INVALID_DEVICE_REQUEST,
        'The queue pair receives from a shared receive queue; post the receive there.',
      );
    }
    const { receives } = this;
    if (receives.full) full('receive', receives.depth);
    this.#receive.run(this.address, requestId(receives.next, Queue.RECEIVE), this.token, sgl);
    receives.posted(context, 0);
  }

  bind(mw: VendorMemoryWindow, request: UvpBindRequest): number {
    const { region, offset, length, flags, access, context } = request;
    void region.bytes; // throws if the buffer was detached
    this.#checkRequest(WvOpcode.BIND_WINDOW, flags);
    const start = region.address + offset;
    if (!(offset >= 0 && start <= MAX_ADDRESS && Number.isSafeInteger(start))) badRange('offset', offset);
    if (length >>> 0 !== length) badRange('length', length);
    return this.#runBind(mw, Queue.SEND, context, flags, access, start, length, region.lkey);
  }

  /** Unbinds a window by binding it to 0 bytes (IBA 1 §10.6.7.2). */
  invalidate(mw: VendorMemoryWindow, context: unknown, flags: number): void {
    this.#checkRequest(WvOpcode.INVALIDATE, flags);
    this.#runBind(mw, Queue.INVALIDATE, context, flags, 0, 0, 0, 0);
  }

  #runBind(
    mw: VendorMemoryWindow,
    queue: number,
    context: unknown,
    flags: number,
    access: number,
    start: number,
    length: number,
    lkey: number,
  ): number {
    this.#bind ??= new RequestBlock(this.native, BindWord.size, 0);
    const { words, address, failed } = this.#bind;
    words[BindWord.id] = requestId(this.sends.next, queue);
    words[BindWord.id + 1] = this.token;
    words[BindWord.flags] = flags;
    words[BindWord.access] = access;
    words[BindWord.rkey] = swapped(mw.rkey);
    words[BindWord.address] = start;
    words[BindWord.address + 1] = start * UPPER;
    words[BindWord.length] = length;
    words[BindWord.lkey] = lkey;
    const result = this.table.bind_mw?.(mw.address, this.address, address, failed) as number;
    if (result !== 0) throw ibFailure('bind_mw', result);
    this.sends.posted(context, 0);
    mw.rkey = swapped(words[BindWord.size]!);
    return mw.rkey;
  }
}

function noInvalidation(): never {
  throw new StatusError(
    Status.NOT_SUPPORTED,
    'User-mode verbs providers do not support Send with Invalidate. Let the peer invalidate its own key.',
  );
}

function tooMuchInline(length: number, most: number): never {
  throw new StatusError(
    Status.BUFFER_OVERFLOW,
    `Inline requests of this queue pair must have at most ${most} bytes; got ${length}.`,
  );
}
