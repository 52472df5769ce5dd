import { TokenTable } from '../door/token-table.js';
import type {
  UmvBuffer,
  UserVerbs,
  UvpAddressVector,
  UvpBindRequest,
  UvpCompletion,
  UvpPin,
  UvpQpCreate,
  UvpQpState,
  UvpSendRequest,
  UvpSge,
  UvpSrqAttributes,
} from '../door/user-verbs.js';
import type { NativeRing, UserHca } from '../hca/user-hca.js';
import { QpState } from '../ioctl/constants.js';
import type { Value } from '../ioctl/layout.js';
import {
  AvProviderOut,
  CaProviderOut,
  CqProviderIn,
  CqProviderOut,
  MwProviderOut,
  PdProviderOut,
  PROVIDER_ABI,
  QpProviderIn,
  QpProviderOut,
  QpStateOut,
  SrqProviderIn,
  SrqProviderOut,
} from '../ioctl/provider-data.js';
import { shown } from '../ioctl/shown.js';
import { Status, StatusError } from '../ioctl/status.js';
import { DirectResult, MOST_VIEWS } from '../schema/generated/numbers.js';
import { cqRingBytes, SoftCompletionQueue } from './completion-queue.js';
import { SoftFastRegion, SoftMemoryWindow } from './memory-keys.js';
import { SoftQueuePair } from './queue-pair.js';
import { qpRingLayout, RingPool } from './rings.js';
import { SoftSharedReceiveQueue, srqRingBytes } from './shared-receive-queue.js';
import { powerOfTwo, receiveStride, SoftAddressHandle } from './work-request.js';

/** An open device: the state shared by its objects. */
class SoftCa {
  readonly tokens = new TokenTable<SoftQueuePair>();
  readonly rings: RingPool;
  limits: Value<typeof CaProviderOut> = CaProviderOut.zero();

  constructor(hca: UserHca) {
    this.rings = new RingPool(hca);
  }
}

class SoftPd {
  handle = 0;
  constructor(readonly ca: SoftCa) {}
}

/** A completion queue that supports resizing. */
class SoftCq extends SoftCompletionQueue {
  /** The new ring, during a resize. */
  next: { ring: NativeRing; entries: number } | undefined = undefined;
}

function checkLimit(what: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw new StatusError(
    Status.INVALID_PARAMETER,
    `\`${what}\` must be an integer from ${least} to ${most}; got ${shown(value)}.`,
  );
}

/** The user-mode verbs provider of HCAs that execute the WQEs of this package's rings: the software HCA, or another {@link UserHca}. */
export class SoftUserVerbs implements UserVerbs {
  readonly shouldPoll?: (cq: SoftCq) => boolean;
  readonly direct?: NonNullable<UserVerbs['direct']>;
  readonly view?: NonNullable<UserVerbs['view']>;

  constructor(private readonly hca: UserHca) {
    if (hca.shouldPoll !== undefined) this.shouldPoll = (cq) => cq.shouldPoll();
    const direct = hca.direct?.bind(hca);
    if (direct !== undefined) {
      this.direct = (qp, operation, bytes, low, high, rkey) => {
        hca.doorbell[0] = (qp as SoftQueuePair).handle;
        return direct(operation, bytes, low, high, rkey);
      };
    }
    const view = hca.view?.bind(hca);
    if (view !== undefined) {
      this.view = (qp, low, high, rkey, length) => {
        hca.doorbell[0] = (qp as SoftQueuePair).handle;
        const { status, result, bytes } = view(low, high, rkey, length);
        if (status !== Status.SUCCESS) throw new StatusError(status, whyNoView(status, length));
        return bytes ?? (result === DirectResult.notMapped ? DirectResult.notMapped : DirectResult.refused);
      };
    }
  }

  // ── Device and protection domain
  preOpenCa(_guid: bigint, umv: UmvBuffer): SoftCa {
    umv.command = PROVIDER_ABI;
    umv.outputSize = CaProviderOut.size;
    return new SoftCa(this.hca);
  }

  postOpenCa(_guid: bigint, status: number, ca: SoftCa, umv: UmvBuffer): void {
    if (status === Status.SUCCESS) ca.limits = CaProviderOut.decode(umv.output);
  }

  preAllocatePd(ca: SoftCa, umv: UmvBuffer): SoftPd {
    umv.outputSize = PdProviderOut.size;
    return new SoftPd(ca);
  }

  postAllocatePd(_ca: SoftCa, status: number, pd: SoftPd, umv: UmvBuffer): void {
    if (status === Status.SUCCESS) pd.handle = PdProviderOut.decode(umv.output).handle;
  }

  // ── Completion queues
  preCreateCq(ca: SoftCa, size: { entries: number }, umv: UmvBuffer): SoftCq {
    checkLimit('entries', size.entries, 1, ca.limits.maxCqEntries);
    size.entries = powerOfTwo(size.entries);
    const cq = new SoftCq(this.hca, ca.tokens, size.entries);
    cq.maxEntries = ca.limits.maxCqEntries;
    umv.input = cqInput(cq.ring.address, size.entries);
    umv.outputSize = CqProviderOut.size;
    return cq;
  }

  postCreateCq(_ca: SoftCa, status: number, _entries: number, cq: SoftCq, umv: UmvBuffer): void {
    if (status === Status.SUCCESS) cq.handle = CqProviderOut.decode(umv.output).handle;
    else cq.close();
  }

  preResizeCq(cq: SoftCq, size: { entries: number }, umv: UmvBuffer): void {
    checkLimit('entries', size.entries, 1, cq.maxEntries);
    size.entries = powerOfTwo(size.entries);
    const ring = this.hca.allocateRing(cqRingBytes(size.entries));
    cq.next = { ring, entries: size.entries };
    umv.input = cqInput(ring.address, size.entries);
    umv.outputSize = CqProviderOut.size;
  }

  postResizeCq(cq: SoftCq, status: number): void {
    const next = cq.next;
    cq.next = undefined;
    if (next === undefined) return;
    let unused = next.ring;
    if (status === Status.SUCCESS) {
      unused = cq.ring;
      cq.moveTo(next.ring, next.entries);
    }
    this.hca.releaseRing(unused.address);
  }

  postDestroyCq(cq: SoftCq): void {
    cq.close();
  }

  pollCq(cq: SoftCq, completions: UvpCompletion[], n: number): number {
    return cq.poll(completions, n);
  }

  peekCq(cq: SoftCq): number {
    return cq.peek();
  }

  rearmCq(cq: SoftCq, solicitedOnly: boolean): number {
    return this.hca.armCq(cq.handle, solicitedOnly);
  }

  rearmNCq(cq: SoftCq, count: number): number {
    return this.hca.armCqBatch(cq.handle, count);
  }

  // ── Shared receive queues
  preCreateSrq(pd: SoftPd, attributes: UvpSrqAttributes, umv: UmvBuffer): SoftSharedReceiveQueue {
    const { maxSrqWr, maxSrqSge } = pd.ca.limits;
    checkLimit('maxWr', attributes.maxWr, 1, maxSrqWr);
    checkLimit('maxSge', attributes.maxSge, 0, maxSrqSge);
    attributes.maxWr = powerOfTwo(attributes.maxWr);
    const srq = new SoftSharedReceiveQueue(this.hca, attributes.maxWr, attributes.maxSge, maxSrqWr);
    umv.input = srqInput(srq.ring.address, attributes.maxWr, srq.sge);
    umv.outputSize = SrqProviderOut.size;
    return srq;
  }

  postCreateSrq(_pd: SoftPd, status: number, srq: SoftSharedReceiveQueue, umv: UmvBuffer): void {
    if (status === Status.SUCCESS) srq.handle = SrqProviderOut.decode(umv.output).handle;
    else srq.close();
  }

  preModifySrq(srq: SoftSharedReceiveQueue, attributes: UvpSrqAttributes, umv: UmvBuffer): void {
    checkLimit('maxWr', attributes.maxWr, 1, srq.maxEntries);
    attributes.maxWr = powerOfTwo(attributes.maxWr);
    if (attributes.maxWr === srq.entries) return;
    const ring = this.hca.allocateRing(srqRingBytes(attributes.maxWr, srq.sge));
    srq.next = { ring, entries: attributes.maxWr };
    umv.input = srqInput(ring.address, attributes.maxWr, srq.sge);
    umv.outputSize = SrqProviderOut.size;
  }

  postModifySrq(srq: SoftSharedReceiveQueue, status: number): void {
    const unused = status === Status.SUCCESS ? srq.moved() : srq.next?.ring;
    srq.next = undefined;
    if (unused !== undefined) this.hca.releaseRing(unused.address);
  }

  postDestroySrq(srq: SoftSharedReceiveQueue): void {
    srq.close();
  }

  postSrqReceive(srq: SoftSharedReceiveQueue, context: unknown, sgl: readonly UvpSge[]): void {
    srq.postReceive(context, sgl);
  }

  // ── Queue pairs
  preCreateQp(pd: SoftPd, create: UvpQpCreate, umv: UmvBuffer): SoftQueuePair {
    const { limits, tokens, rings } = pd.ca;
    checkLimit('sendDepth', create.sendDepth, 0, limits.maxQpWr);
    const srq = create.srq ?? null;
    if (srq === null) {
      checkLimit('receiveDepth', create.receiveDepth, 0, limits.maxQpWr);
      checkLimit('receiveSge', create.receiveSge, 0, limits.maxSge);
    }
    checkLimit('sendSge', create.sendSge, 0, limits.maxSge);
    checkLimit('maxInlineSend', create.maxInlineSend, 0, limits.maxInline);
    const { sendCq, receiveCq } = create;
    if (!(sendCq instanceof SoftCq && receiveCq instanceof SoftCq)) {
      throw new StatusError(
        Status.INVALID_PARAMETER,
        'The completion queues of a queue pair must belong to its device.',
      );
    }
    if (srq !== null && !(srq instanceof SoftSharedReceiveQueue)) {
      throw new StatusError(
        Status.INVALID_PARAMETER,
        'The shared receive queue must belong to the same device.',
      );
    }
    const layout = qpRingLayout(create);
    create.sendSge = Math.min(layout.sendSge, limits.maxSge);
    const qp = new SoftQueuePair(this.hca, tokens, create, layout, sendCq, receiveCq, srq, rings);
    umv.input = QpProviderIn.encode({
      ringAddress: BigInt(qp.address),
      ringBytes: layout.bytes,
      sendEntries: layout.sendEntries,
      sendStride: layout.sendStride,
      receiveEntries: layout.receiveEntries,
      receiveStride: layout.receiveStride,
      token: qp.token,
    });
    umv.outputSize = QpProviderOut.size;
    return qp;
  }

  postCreateQp(_pd: SoftPd, status: number, qp: SoftQueuePair, umv: UmvBuffer): void {
    if (status === Status.SUCCESS) {
      const { handle, qpn } = QpProviderOut.decode(umv.output);
      qp.open(handle, qpn);
    } else qp.close(true);
  }

  postDestroyQp(qp: SoftQueuePair, status: number): void {
    qp.close(status === Status.SUCCESS);
  }

  ndModifyQp(qp: SoftQueuePair): UvpQpState {
    return {
      size: QpStateOut.size,
      moved: (output) => {
        if (QpStateOut.decode(output).state === QpState.RESET) qp.reset();
      },
    };
  }

  ndGetQpState(qp: SoftQueuePair): number {
    return qp.state;
  }

  ndGetQpn(qp: SoftQueuePair): number {
    return qp.qpn;
  }

  postSend(qp: SoftQueuePair, request: UvpSendRequest): void {
    qp.postSend(request);
  }

  postReceive(qp: SoftQueuePair, context: unknown, sgl: readonly UvpSge[]): void {
    qp.postReceive(context, sgl);
  }

  startBatch(qp: SoftQueuePair): void {
    qp.startBatch();
  }

  submitBatch(qp: SoftQueuePair): void {
    qp.submitBatch();
  }

  // ── Address handles
  preCreateAv(_pd: SoftPd, _av: UvpAddressVector, umv: UmvBuffer): SoftAddressHandle {
    umv.outputSize = AvProviderOut.size;
    return new SoftAddressHandle();
  }

  postCreateAv(_pd: SoftPd, status: number, av: SoftAddressHandle, umv: UmvBuffer): void {
    if (status === Status.SUCCESS) av.handle = AvProviderOut.decode(umv.output).handle;
  }

  // ── Memory
  preCreateMw(_pd: SoftPd, umv: UmvBuffer): SoftMemoryWindow {
    umv.outputSize = MwProviderOut.size;
    return new SoftMemoryWindow();
  }

  postCreateMw(_pd: SoftPd, status: number, _rkey: number, mw: SoftMemoryWindow, umv: UmvBuffer): void {
    if (status !== Status.SUCCESS) return;
    const { handle, rkey } = MwProviderOut.decode(umv.output);
    mw.open(handle, rkey);
  }

  bindMw(mw: SoftMemoryWindow, qp: SoftQueuePair, request: UvpBindRequest): number {
    return qp.bind(mw, request);
  }

  invalidateMw(mw: SoftMemoryWindow, qp: SoftQueuePair, context: unknown, flags: number): void {
    qp.invalidate(mw, context, flags);
  }

  fastRegion(lkey: number): SoftFastRegion {
    return new SoftFastRegion(lkey);
  }

  fastRegionKey(region: SoftFastRegion): number {
    return region.rkey;
  }

  mwRkey(mw: SoftMemoryWindow): number {
    return mw.rkey;
  }

  pinMemory(view: Uint8Array): UvpPin {
    const { status, pin, address, detachable, allocated } = this.hca.pin(view);
    if (status === Status.NOT_SUPPORTED) {
      throw new StatusError(
        status,
        'This runtime does not allow native code to hold the memory of an ArrayBuffer; register memory from allocate().',
      );
    }
    if (status !== Status.SUCCESS) {
      throw new StatusError(status, `Cannot pin the ${view.byteLength} bytes to register.`);
    }
    return { pin, address, detachable, allocated };
  }

  unpinMemory({ pin }: UvpPin): void {
    this.hca.unpin(pin);
  }
}

function whyNoView(status: number, length: number): string {
  switch (status) {
    case Status.INSUFFICIENT_RESOURCES:
      return `This process has no file descriptor left, or has ${MOST_VIEWS} views, the maximum. A view is released when it is garbage-collected.`;
    case Status.NOT_SUPPORTED:
      return 'This runtime does not allow native code to create ArrayBuffers.';
    default:
      return `The address space has no room for ${length} bytes, or the process has its maximum number of mappings.`;
  }
}

function srqInput(ringAddress: number, entries: number, sge: number): Uint8Array {
  return SrqProviderIn.encode({
    ringAddress: BigInt(ringAddress),
    ringBytes: srqRingBytes(entries, sge),
    entries,
    stride: receiveStride(sge),
  });
}

function cqInput(ringAddress: number, entries: number): Uint8Array {
  return CqProviderIn.encode({ ringAddress: BigInt(ringAddress), ringBytes: cqRingBytes(entries), entries });
}
