import type { TokenTable } from '../door/token-table.js';
import type {
  UvpBindRequest,
  UvpCompletion,
  UvpQpCreate,
  UvpSendRequest,
  UvpSge,
} from '../door/user-verbs.js';
import type { UserHca } from '../hca/user-hca.js';
import { QpState, QpType, WvOpcode, WvSend } from '../ioctl/constants.js';
import { Status, StatusError } from '../ioctl/status.js';
import { abi } from '../schema/generated/ring.js';
import type { SoftCompletionQueue } from './completion-queue.js';
import type { ChangingKey, SoftMemoryWindow } from './memory-keys.js';
import * as memoryKeys from './memory-keys.js';
import * as rings from './rings.js';
import { addressOf, type QpRingLayout, type RingPlace, RingPool } from './rings.js';
import type { SoftSharedReceiveQueue } from './shared-receive-queue.js';
import * as workRequest from './work-request.js';
import { badRange, full, invalid, outsideOfRegion, writeDestination } from './work-request.js';

// V8 treats constants of this module as constants. It loads an import, and the fields of an imported object, at each
// use, and checks that the import is initialized.
const { loadAcquire, storeRelease } = rings;
const { writeSgl, NO_REQUEST, SEND_FLAGS, UPPER, TWO_32, RECEIVE_HEADER_WORDS } = workRequest;
const HEADER_WORDS = abi.sendWqeHeaderBytes / 4;
const { qpSendProducer, qpReceiveProducer, qpState, qpUnfenced, qpReceiveBell, rwSgeCount } = abi;
const { swOpcode, swFlags, swSgeCount, swImmediate, swRemoteLo, swRemoteHi, swRkey, sendFlagInvalidate } =
  abi;
const { cqeWqe, cqeOpcode, cqeStatus, cqeLength, cqeFlags, cqeImmediate, cqeSourceQpn, cqeVendor } = abi;
const { cqePkeyIndex, cqeFlagReceiveQueue, cqeFlagSharedReceive } = abi;
const { SEND, COMPARE_EXCHANGE, FETCH_ADD, INVALIDATE, FAST_REGISTER } = WvOpcode;
const { INLINE, IMMEDIATE, FENCE } = WvSend;
const { INIT, RTS } = QpState;
/** The flags of a completion that are part of WV_COMPLETION. */
const PUBLIC_FLAGS = abi.cqeFlagImmediate | abi.cqeFlagInvalidated | abi.cqeFlagGrh | abi.cqeFlagSolicited;
const WITH_IMMEDIATE = abi.cqeFlagImmediate | abi.cqeFlagInvalidated;

/** Contexts before the first post. They have the hidden class of later ones, so that accesses stay monomorphic. */
const NO_CONTEXTS = contextsFor(0);
const NO_BYTES = new Uint8Array(0);
/**
 * Replaces the ring of a destroyed queue pair, because another queue pair may use that memory. Its state is RESET, so
 * that every post is refused. Only the getters of a request can destroy the queue pair after a post has checked the
 * state (docs/internals/memory-and-rings.md).
 */
const ENDED = new Uint32Array(abi.qpHeaderBytes / 4);

function contextsFor(mask: number): unknown[] {
  return new Array<unknown>(mask + 1).fill(undefined);
}

/** The producer side of a queue pair's rings. The HCA is the consumer. */
export class SoftQueuePair {
  handle = 0;
  qpn = 0;
  readonly token: number;
  /** Number of completion queues that still hold completions of this queue pair after its destruction. */
  unread = 0;

  readonly sendDepth: number;
  readonly sendSge: number;
  readonly receiveDepth: number;
  readonly receiveSge: number;
  readonly maxInline: number;
  private readonly qpContext: unknown;
  private readonly datagram: boolean;
  /** Flags refused by opcode, or {@link NO_REQUEST}. */
  private readonly refused: Int32Array;
  private readonly reliable: boolean;

  private readonly place: RingPlace;
  private words: Uint32Array;
  /** The same memory as bytes. Created by the first inline request that does not consist of whole words. */
  private bytes: Uint8Array = NO_BYTES;
  private batching = false;

  private readonly sendBase: number;
  private readonly sendStrideWords: number;
  private readonly sendMask: number;
  /** Created by the first post. */
  private sendContexts = NO_CONTEXTS;
  /** Free-running indexes of the next request and of the oldest one whose completion has not been polled. */
  private sendProducer = 0;
  private sendConsumer = 0;
  /** Changing keys by slot; created by the first such request. */
  private changes: (ChangingKey | undefined)[] | undefined = undefined;

  private readonly receiveBase: number;
  private readonly receiveStrideWords: number;
  private readonly receiveMask: number;
  private receiveContexts = NO_CONTEXTS;
  private receiveProducer = 0;
  private receiveConsumer = 0;

  constructor(
    private readonly hca: UserHca,
    private readonly tokens: TokenTable<SoftQueuePair>,
    create: UvpQpCreate,
    layout: QpRingLayout,
    readonly sendCq: SoftCompletionQueue,
    readonly receiveCq: SoftCompletionQueue,
    readonly srq: SoftSharedReceiveQueue | null = null,
    private readonly rings: RingPool = new RingPool(hca),
  ) {
    this.refused = workRequest.refusedFlags(create.type, create.memoryManagement);
    this.reliable = create.type === QpType.RC;
    this.sendDepth = create.sendDepth;
    this.sendSge = create.sendSge;
    this.receiveDepth = create.receiveDepth;
    this.receiveSge = create.receiveSge;
    this.maxInline = create.maxInlineSend;
    this.qpContext = create.context;
    this.datagram = create.type === QpType.UD;
    this.sendMask = layout.sendEntries - 1;
    this.sendStrideWords = layout.sendStride / 4;
    this.sendBase = abi.qpHeaderBytes / 4;
    this.receiveMask = layout.receiveEntries - 1;
    this.receiveStrideWords = layout.receiveStride / 4;
    this.receiveBase = this.sendBase + layout.sendEntries * this.sendStrideWords;
    this.place = rings.take(layout.bytes);
    this.words = new Uint32Array(this.place.block.ring.buffer, this.place.offset, layout.bytes / 4);
    try {
      this.token = tokens.add(this);
    } catch (error) {
      rings.give(this.place, layout.bytes, true);
      throw error;
    }
  }

  /** The ring's address, for the HCA. */
  get address(): number {
    return addressOf(this.place);
  }

  /** Call after the HCA has created the queue pair. */
  open(handle: number, qpn: number): void {
    this.handle = handle;
    this.qpn = qpn;
  }

  /** Call when the HCA writes no more completions of this queue pair. `gone`: the HCA no longer accesses the ring. */
  close(gone = false): void {
    // A second close would free a slot that another queue pair may already use.
    if (this.words === ENDED) return;
    this.sendCq.retire(this);
    if (this.receiveCq !== this.sendCq) this.receiveCq.retire(this);
    this.tokens.remove(this);
    this.handle = 0;
    const { byteLength } = this.words;
    this.words = ENDED;
    this.bytes = NO_BYTES;
    this.rings.give(this.place, byteLength, gone);
  }

  /** No more completions follow, so the outstanding silent requests have succeeded. */
  forget(): void {
    if (this.changes !== undefined) for (const key of this.changes) key?.changed();
    this.changes = undefined;
    this.sendContexts.fill(undefined);
    this.receiveContexts.fill(undefined);
  }

  /** WV_QP_STATE as the HCA last published it. */
  get state(): number {
    return Atomics.load(this.words, abi.qpState);
  }

  /**
   * Resets the queue pair: both queues become empty, and their requests never complete (IBA 1 §10.3.1.1). The HCA's
   * counters continue from the published values, so that completions from before the reset can be recognized and
   * dropped.
   */
  reset(): void {
    this.sendProducer = this.sendConsumer = Atomics.load(this.words, abi.qpSendProducer);
    this.receiveProducer = this.receiveConsumer = Atomics.load(this.words, abi.qpReceiveProducer);
    this.sendContexts.fill(undefined);
    this.receiveContexts.fill(undefined);
    if (this.changes !== undefined) for (const key of this.changes) key?.failed();
    this.changes = undefined;
  }

  postSend(request: UvpSendRequest): void {
    const { opcode, sgl } = request;
    if (!(opcode >= SEND && opcode <= FETCH_ADD)) {
      this.postLocal(request);
      return;
    }
    const words = this.words;
    let flags = request.flags;
    const wqe = this.takeSlot(opcode, flags);
    if (request.invalidate) {
      if (!this.reliable) invalid('Only a reliable queue pair can invalidate the peer’s key.');
      if (opcode !== SEND || (flags & IMMEDIATE) !== 0) {
        invalid('Only a Send without immediate data can invalidate the peer’s key.');
      }
      flags |= sendFlagInvalidate;
    }
    words[wqe + swOpcode] = opcode;
    words[wqe + swFlags] = flags;
    words[wqe + swImmediate] = request.immediate;
    if (this.datagram) {
      if (opcode !== SEND || request.invalidate || (flags & FENCE) !== 0) {
        invalid('A datagram queue pair supports Sends only, without FENCE and without invalidation.');
      }
      writeDestination(words, wqe, request);
    } else if (opcode !== SEND) {
      this.writeRemote(wqe, request);
      if (opcode >= COMPARE_EXCHANGE) {
        if (sgl.length !== 1 || sgl[0]!.length !== 8) {
          invalid('`sgl` of an atomic operation must be one SGE of 8 bytes, for the returned value.');
        }
        words[wqe + abi.swCompareLo] = request.compareLow;
        words[wqe + abi.swCompareHi] = request.compareHigh;
        words[wqe + abi.swSwapLo] = request.swapLow;
        words[wqe + abi.swSwapHi] = request.swapHigh;
      }
    }
    words[wqe + swSgeCount] =
      (flags & INLINE) !== 0
        ? this.writeInline(wqe, sgl)
        : writeSgl(words, wqe + HEADER_WORDS, sgl, this.sendSge);
    this.queueSend(request.context);
  }

  /** These requests change local keys; nothing is sent to the peer. */
  private postLocal(request: UvpSendRequest): void {
    const { opcode } = request;
    if (opcode !== INVALIDATE && opcode !== FAST_REGISTER) noRequest(opcode);
    const { region, next } = memoryKeys.regionOf(request);
    if (opcode === INVALIDATE) this.invalidate(region, request.context, request.flags);
    else this.changeKey(opcode, memoryKeys.memoryOfRegistration(request), region, next);
  }

  bind(mw: SoftMemoryWindow, request: UvpBindRequest): number {
    const memory = memoryKeys.memoryOfBind(request);
    const next = mw.nextKey();
    this.changeKey(WvOpcode.BIND_WINDOW, memory, mw, next);
    return next;
  }

  private changeKey(opcode: number, memory: memoryKeys.NamedMemory, key: ChangingKey, next: number): void {
    const wqe = this.takeSlot(opcode, memory.flags);
    memoryKeys.writeKeyChange(this.words, wqe, opcode, memory, key, next);
    this.changes ??= new Array<ChangingKey | undefined>(this.sendMask + 1).fill(undefined);
    this.changes[this.sendProducer & this.sendMask] = key;
    key.changing(next);
    this.queueSend(memory.context);
  }

  invalidate(key: ChangingKey, context: unknown, flags: number): void {
    const wqe = this.takeSlot(INVALIDATE, flags);
    memoryKeys.writeInvalidation(this.words, wqe, key.rkey, flags);
    this.queueSend(context);
  }

  postReceive(context: unknown, sgl: readonly UvpSge[]): void {
    const words = this.words;
    if (this.srq !== null) {
      throw new StatusError(
        Status.INVALID_DEVICE_REQUEST,
        'The queue pair receives from a shared receive queue; post the receive there.',
      );
    }
    if (loadAcquire(words, qpState) < INIT) {
      throw new StatusError(
        Status.INVALID_DEVICE_STATE,
        'The queue pair is in RESET; receives can be posted from INIT on.',
      );
    }
    const index = this.receiveProducer;
    if ((index - this.receiveConsumer) >>> 0 >= this.receiveDepth) full('receive', this.receiveDepth);
    const slot = index & this.receiveMask;
    const wqe = this.receiveBase + slot * this.receiveStrideWords;
    words[wqe + rwSgeCount] = writeSgl(words, wqe + RECEIVE_HEADER_WORDS, sgl, this.receiveSge);
    if (this.receiveContexts === NO_CONTEXTS) this.receiveContexts = contextsFor(this.receiveMask);
    this.receiveContexts[slot] = context;
    this.receiveProducer = (index + 1) >>> 0;
    // The HCA requests the receive doorbell; the software HCA does so in ERROR, and while a message waits. It sets the
    // request before it reads the queue, so that at least one side notices the other. The load must not overtake this
    // store, unless the HCA prevents that (schema/ring.ts).
    if (words[qpUnfenced] === 1) storeRelease(words, qpReceiveProducer, this.receiveProducer);
    else Atomics.store(words, qpReceiveProducer, this.receiveProducer);
    if (loadAcquire(words, qpReceiveBell) !== 0) this.ringReceiveDoorbell();
  }

  /** One native function for all queue pairs: V8 calls native code directly only if a call site has a single target. */
  private ringDoorbell(): void {
    const { hca } = this;
    hca.doorbell[0] = this.handle;
    hca.ringDoorbell();
  }

  private ringReceiveDoorbell(): void {
    const { hca } = this;
    hca.doorbell[0] = this.handle;
    hca.ringReceiveDoorbell();
  }

  startBatch(): void {
    this.batching = true;
  }

  submitBatch(): void {
    this.batching = false;
    const { words } = this;
    if (words[qpSendProducer] === this.sendProducer || words === ENDED) return;
    storeRelease(words, qpSendProducer, this.sendProducer);
    this.ringDoorbell();
  }

  /** Fills a completion from a CQE of this queue pair and frees the completed requests. Returns false if the CQE is from before a reset. */
  complete(cq: Uint32Array, cqe: number, completion: UvpCompletion): boolean {
    const index = cq[cqe + cqeWqe]!;
    const flags = cq[cqe + cqeFlags]!;
    const status = cq[cqe + cqeStatus]!;
    if ((flags & cqeFlagSharedReceive) !== 0) {
      completion.context = this.srq?.take(index);
    } else if ((flags & cqeFlagReceiveQueue) !== 0) {
      const consumer = this.receiveConsumer;
      if ((index - consumer) >>> 0 >= (this.receiveProducer - consumer) >>> 0) return false;
      const slot = index & this.receiveMask;
      completion.context = this.receiveContexts[slot];
      this.receiveContexts[slot] = undefined;
      this.receiveConsumer = (index + 1) >>> 0;
    } else {
      const consumer = this.sendConsumer;
      if ((index - consumer) >>> 0 >= (this.sendProducer - consumer) >>> 0) return false;
      completion.context = this.sendContexts[index & this.sendMask];
      this.freeSends(index, status);
    }
    completion.qpContext = this.qpContext;
    completion.opcode = cq[cqe + cqeOpcode]!;
    completion.status = status;
    completion.length = cq[cqe + cqeLength]!;
    completion.flags = flags & PUBLIC_FLAGS;
    // Flags and status show whether these two fields are valid; most completions have neither (schema/ring.ts).
    completion.immediateData = (flags & WITH_IMMEDIATE) !== 0 ? cq[cqe + cqeImmediate]! : 0;
    completion.vendorCode = status !== 0 ? cq[cqe + cqeVendor]! : 0;
    completion.sourceQpn = cq[cqe + cqeSourceQpn]!;
    completion.pkeyIndex = cq[cqe + cqePkeyIndex]!;
    return true;
  }

  /** Frees a completed send and all unsignaled ones before it (ND SPI: initiator queue depth). */
  private freeSends(index: number, status: number): void {
    let consumer = this.sendConsumer;
    const end = (index + 1) >>> 0;
    while (consumer !== end) {
      const slot = consumer & this.sendMask;
      this.sendContexts[slot] = undefined;
      if (this.changes !== undefined) {
        const key = this.changes[slot];
        if (key !== undefined) {
          this.changes[slot] = undefined;
          if (consumer !== index || status === 0) key.changed();
          else key.failed();
        }
      }
      consumer = (consumer + 1) >>> 0;
    }
    this.sendConsumer = end;
  }

  /** Checks that one more request may be posted; returns the first word of its WQE. */
  private takeSlot(opcode: number, flags: number): number {
    const index = this.sendProducer;
    const refused = this.refused[opcode]!;
    if (
      loadAcquire(this.words, qpState) < RTS ||
      (flags & refused) !== 0 ||
      refused === NO_REQUEST ||
      (index - this.sendConsumer) >>> 0 >= this.sendDepth
    ) {
      this.refuseSend(opcode, flags);
    }
    return this.sendBase + (index & this.sendMask) * this.sendStrideWords;
  }

  private refuseSend(opcode: number, flags: number): never {
    if (loadAcquire(this.words, qpState) < RTS) {
      throw new StatusError(
        Status.INVALID_DEVICE_STATE,
        'The queue pair is not ready to send yet; send requests can be posted from RTS on.',
      );
    }
    const refused = this.refused[opcode]!;
    if (refused === NO_REQUEST) {
      invalid(
        `This queue pair does not support opcode ${opcode}: unreliable ones support Send and Write only, and fast registration (${FAST_REGISTER}) requires memoryManagement.`,
      );
    }
    const wrong = flags & ~SEND_FLAGS[opcode]!;
    if (wrong !== 0) {
      invalid(`Flags 0x${(wrong >>> 0).toString(16)} are not valid for opcode ${opcode}.`);
    }
    return full('send', this.sendDepth);
  }

  private queueSend(context: unknown): void {
    const index = this.sendProducer;
    if (this.sendContexts === NO_CONTEXTS) this.sendContexts = contextsFor(this.sendMask);
    this.sendContexts[index & this.sendMask] = context;
    this.sendProducer = (index + 1) >>> 0;
    if (this.batching) return;
    storeRelease(this.words, qpSendProducer, this.sendProducer);
    this.ringDoorbell();
  }

  private writeRemote(wqe: number, request: UvpSendRequest): void {
    const offset = request.remoteOffset;
    if (!(offset >= 0 && Number.isSafeInteger(offset))) badRange('remote offset', offset);
    const low = request.remoteLow + (offset >>> 0);
    const high = request.remoteHigh + Math.floor(offset * UPPER) + (low >= TWO_32 ? 1 : 0);
    if (!(high < TWO_32)) invalid(`The remote offset ${offset} leaves the 64-bit address space.`);
    this.words[wqe + swRemoteLo] = low;
    this.words[wqe + swRemoteHi] = high;
    this.words[wqe + swRkey] = request.rkey;
  }

  private writeInline(wqe: number, sgl: readonly UvpSge[]): number {
    const { words, maxInline } = this;
    const start = wqe + HEADER_WORDS;
    let total = 0;
    for (let i = 0; i < sgl.length; i++) {
      const sge = sgl[i]!;
      const length = sge.length;
      const { region, offset } = sge;
      if (length >>> 0 !== length) badRange('SGE length', length);
      if (length === 0) continue;
      if (total + length > maxInline) tooMuchInline(maxInline);
      const bytes = region.bytes;
      if (bytes === undefined) noInlineBytes(i);
      if (!(offset >= 0 && Number.isSafeInteger(offset) && offset + length <= bytes.length)) {
        outsideOfRegion(i, offset, length, bytes.length);
      }
      // A loop is used, because set(subarray) allocates, and there are few bytes.
      const source = region.words;
      let k = 0;
      if (source !== undefined && ((total | offset) & 3) === 0 && offset >>> 0 === offset) {
        const from = offset >>> 2;
        const at = start + (total >>> 2);
        const count = length >>> 2;
        for (let word = 0; word < count; word++) words[at + word] = source[from + word]!;
        k = count << 2;
      }
      if (k < length) this.copyBytes(4 * start + total + k, bytes, offset + k, length - k);
      total += length;
    }
    return total;
  }

  private copyBytes(at: number, source: Uint8Array, from: number, length: number): void {
    if (this.bytes === NO_BYTES) {
      const { words } = this;
      this.bytes = new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
    }
    const target = this.bytes;
    for (let k = 0; k < length; k++) target[at + k] = source[from + k]!;
  }
}

// Error texts are kept out of hot functions: V8 would format their numbers on every call, before the test that needs
// them.

function noRequest(opcode: number): never {
  invalid(`Opcode ${opcode} is not a valid send request.`);
}

function tooMuchInline(maxInline: number): never {
  throw new StatusError(
    Status.BUFFER_OVERFLOW,
    `The request exceeds the ${maxInline} bytes that this queue pair can send inline.`,
  );
}

function noInlineBytes(i: number): never {
  invalid(`SGE ${i} cannot be sent inline: its region does not have \`bytes\`.`);
}
