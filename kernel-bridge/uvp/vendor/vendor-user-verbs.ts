import { TokenTable } from '../../door/token-table.js';
import type {
  UmvBuffer,
  UserVerbs,
  UvpAddressVector,
  UvpCompletion,
  UvpPin,
  UvpQpCreate,
  UvpQpState,
  UvpSendRequest,
  UvpSge,
  UvpSrqAttributes,
} from '../../door/user-verbs.js';
import { QpState } from '../../ioctl/constants.js';
import { MemoryPins } from '../../windows/memory-pins.js';
import type { NativeBytes } from '../../windows/steady-memory.js';
import { HookMemory } from './hook-memory.js';
import { IB_SUCCESS, IB_VERBS_PROCESSING_DONE, ibFailure, resultOf, statusOfIb } from './ib-status.js';
import type { UvpTable } from './native-library.js';
import { layouts, swapped } from './uvp-layouts.js';
import { VendorCompletionQueue } from './vendor-completion-queue.js';
import {
  VendorHandle,
  VendorMemoryWindow,
  type VendorOwner,
  VendorQueuePair,
  VendorSharedReceiveQueue,
} from './vendor-queue-pair.js';

/** `ib_srq_attr_mask_t`: both attributes. */
const SRQ_MAX_WR_AND_LIMIT = 3;

/** `ib_qp_state_t` → WV_QP_STATE. As in WinVerbs, all others are ERROR. */
const states: Readonly<Record<number, number>> = {
  1: QpState.RESET,
  2: QpState.INIT,
  4: QpState.RTR,
  8: QpState.RTS,
  16: QpState.SQD,
  48: QpState.SQD,
  80: QpState.SQD,
  128: QpState.SQERROR,
};

/** An open device, and the tokens of its queues. */
class VendorCa extends VendorHandle {
  readonly tokens = new TokenTable<VendorOwner>();
}

class VendorPd extends VendorHandle {
  constructor(readonly ca: VendorCa) {
    super();
  }
}

function srqValues({ maxWr, maxSge, srqLimit }: UvpSrqAttributes) {
  return { maxWr, maxSge, srqLimit };
}

function addressOf(handle: unknown): number {
  return handle instanceof VendorHandle ? handle.address : 0;
}

function qpValues(create: UvpQpCreate, token: number) {
  return {
    qpCreate: {
      qpType: create.type,
      sqMaxInline: create.maxInlineSend,
      sqDepth: create.sendDepth,
      rqDepth: create.receiveDepth,
      sqSge: create.sendSge,
      rqSge: create.receiveSge,
      hSqCq: addressOf(create.sendCq),
      hRqCq: addressOf(create.receiveCq),
      hSrq: addressOf(create.srq),
      sqSignaled: create.signalSends === true ? 1 : 0,
    },
    // Returned in completions.
    context: token,
    maxInlineSend: create.maxInlineSend,
    initiatorDepth: create.initiatorDepth ?? 0,
    responderResources: create.responderResources ?? 0,
  };
}

/** A GRH does not have a field for a port's GID index. WinVerbs writes it to the first reserved bytes, IBAL to the second. */
function avValues(av: UvpAddressVector) {
  const index = av.sourceGidIndex();
  return {
    portNum: av.portNumber,
    grhValid: 1,
    grh: {
      verClassFlow: av.trafficClass * 2 ** 20 + av.flowLabel,
      resv1: index,
      resv2: index & 0xff,
      hopLimit: av.hopLimit,
      srcGid: av.sourceGid,
      destGid: av.destinationGid,
    },
  };
}

/** Converts a GUID to a number whose bytes in memory are in network byte order, as in the driver's reply. */
function inNetworkOrder(guid: bigint): bigint {
  swapView.setBigUint64(0, guid, false);
  return swapView.getBigUint64(0, true);
}

const swapView = new DataView(new ArrayBuffer(8));

/** Throws the error for a function that has failed. */
function check(slot: string, result: unknown): void {
  if (result !== undefined && result !== IB_SUCCESS) throw ibFailure(slot, result as number);
}

/**
 * A vendor's user-mode verbs provider: the functions of a DLL (`uvp_interface_t`), called through koffi. Optional functions of the data path
 * that a provider lacks are undefined, and WinVerbs manages without them. Missing hooks have no effect.
 */
export class VendorUserVerbs implements UserVerbs {
  readonly postSrqReceive?: NonNullable<UserVerbs['postSrqReceive']>;
  readonly peekCq?: NonNullable<UserVerbs['peekCq']>;
  readonly rearmNCq?: NonNullable<UserVerbs['rearmNCq']>;
  readonly ndGetQpState?: NonNullable<UserVerbs['ndGetQpState']>;
  readonly bindMw?: NonNullable<UserVerbs['bindMw']>;
  readonly invalidateMw?: NonNullable<UserVerbs['invalidateMw']>;
  readonly mwRkey?: NonNullable<UserVerbs['mwRkey']>;
  readonly #memory: HookMemory;
  readonly #pins: MemoryPins;

  constructor(
    private readonly native: NativeBytes,
    private readonly table: UvpTable,
  ) {
    const memory = new HookMemory(native);
    this.#memory = memory;
    this.#pins = new MemoryPins(native);
    const { post_srq_recv, peek_cq, rearm_n_cq, nd_get_qp_state, bind_mw } = table;
    if (post_srq_recv !== undefined) {
      this.postSrqReceive = (srq, context, sgl) =>
        (srq as VendorSharedReceiveQueue).postReceive(context, sgl);
    }
    if (peek_cq !== undefined) {
      this.peekCq = (cq) => {
        check('peek_cq', peek_cq((cq as VendorCompletionQueue).address, memory.number));
        return memory.numberValue;
      };
    }
    if (rearm_n_cq !== undefined) {
      this.rearmNCq = (cq, n) => statusOfIb(rearm_n_cq((cq as VendorCompletionQueue).address, n) as number);
    }
    if (nd_get_qp_state !== undefined) {
      this.ndGetQpState = (qp) =>
        states[nd_get_qp_state((qp as VendorQueuePair).address) as number] ?? QpState.ERROR;
    }
    if (bind_mw !== undefined) {
      this.bindMw = (mw, qp, request) => (qp as VendorQueuePair).bind(mw as VendorMemoryWindow, request);
      this.invalidateMw = (mw, qp, context, flags) =>
        (qp as VendorQueuePair).invalidate(mw as VendorMemoryWindow, context, flags);
      this.mwRkey = (mw) => (mw as VendorMemoryWindow).rkey;
    }
  }

  // ── Device and protection domain
  preOpenCa(guid: bigint, umv: UmvBuffer): VendorCa {
    const ca = new VendorCa();
    const memory = this.#memory;
    memory.clear();
    check('pre_open_ca', this.table.pre_open_ca?.(inNetworkOrder(guid), memory.umv, memory.handle));
    memory.readUmv(umv, ca);
    return ca;
  }

  postOpenCa(guid: bigint, status: number, ca: VendorCa, umv: UmvBuffer): void {
    const memory = this.#memory;
    const ioctlResult = memory.writeUmv(status, umv, ca);
    const result = this.table.post_open_ca?.(inNetworkOrder(guid), ioctlResult, memory.handle, memory.umv);
    ca.address = memory.handleValue;
    if (ioctlResult === IB_SUCCESS) check('post_open_ca', result);
  }

  preCloseCa(ca: VendorCa): void {
    this.table.pre_close_ca?.(ca.address);
  }

  postCloseCa(ca: VendorCa, status: number): void {
    this.table.post_close_ca?.(ca.address, resultOf(status));
  }

  preAllocatePd(ca: VendorCa, umv: UmvBuffer): VendorPd {
    const pd = new VendorPd(ca);
    const memory = this.#memory;
    memory.clear();
    check('pre_allocate_pd', this.table.pre_allocate_pd?.(ca.address, memory.umv, memory.handle));
    memory.readUmv(umv, pd);
    return pd;
  }

  postAllocatePd(ca: VendorCa, status: number, pd: VendorPd, umv: UmvBuffer): void {
    const memory = this.#memory;
    const ioctlResult = memory.writeUmv(status, umv, pd);
    this.table.post_allocate_pd?.(ca.address, ioctlResult, memory.handle, memory.umv);
    pd.address = memory.handleValue;
  }

  preDeallocatePd(pd: VendorPd): void {
    this.table.pre_deallocate_pd?.(pd.address);
  }

  postDeallocatePd(pd: VendorPd, status: number): void {
    this.table.post_deallocate_pd?.(pd.address, resultOf(status));
  }

  // ── Completion queues
  preCreateCq(ca: VendorCa, size: { entries: number }, umv: UmvBuffer): VendorCompletionQueue {
    const cq = new VendorCompletionQueue(this.native, this.table, ca.tokens, size.entries);
    const memory = this.#memory;
    memory.clear();
    memory.numberValue = size.entries;
    const result = this.table.pre_create_cq?.(ca.address, memory.number, memory.umv, memory.handle);
    check('pre_create_cq', result);
    size.entries = memory.numberValue;
    memory.readUmv(umv, cq);
    return cq;
  }

  postCreateCq(
    ca: VendorCa,
    status: number,
    entries: number,
    cq: VendorCompletionQueue,
    umv: UmvBuffer,
  ): void {
    const memory = this.#memory;
    const ioctlResult = memory.writeUmv(status, umv, cq);
    this.table.post_create_cq?.(ca.address, ioctlResult, entries, memory.handle, memory.umv);
    cq.address = memory.handleValue;
  }

  preResizeCq(cq: VendorCompletionQueue, size: { entries: number }, umv: UmvBuffer): void {
    const memory = this.#memory;
    memory.clear();
    memory.numberValue = size.entries;
    check('pre_resize_cq', this.table.pre_resize_cq?.(cq.address, memory.number, memory.umv));
    size.entries = memory.numberValue;
    memory.readUmv(umv);
  }

  postResizeCq(cq: VendorCompletionQueue, status: number, entries: number, umv: UmvBuffer): void {
    const memory = this.#memory;
    const ioctlResult = memory.writeUmv(status, umv);
    this.table.post_resize_cq?.(cq.address, ioctlResult, entries, memory.umv);
  }

  preDestroyCq(cq: VendorCompletionQueue): void {
    this.table.pre_destroy_cq?.(cq.address);
  }

  postDestroyCq(cq: VendorCompletionQueue, status: number): void {
    this.table.post_destroy_cq?.(cq.address, resultOf(status));
  }

  pollCq(cq: VendorCompletionQueue, completions: UvpCompletion[], n: number): number {
    return cq.poll(completions, n);
  }

  rearmCq(cq: VendorCompletionQueue, solicitedOnly: boolean): number {
    // A mandatory function of the table.
    return statusOfIb(this.table.rearm_cq!(cq.address, solicitedOnly ? 1 : 0) as number);
  }

  // ── Shared receive queues
  preCreateSrq(pd: VendorPd, attributes: UvpSrqAttributes, umv: UmvBuffer): VendorSharedReceiveQueue {
    const { maxWr, maxSge } = attributes;
    const srq = new VendorSharedReceiveQueue(this.native, this.table, pd.ca.tokens, maxWr, maxSge);
    const memory = this.#memory;
    memory.clear();
    try {
      layouts.srqAttr.encode(srqValues(attributes), memory.attributeBytes);
      const hook = this.table.pre_create_srq;
      check('pre_create_srq', hook?.(pd.address, memory.attributes, memory.umv, memory.handle));
      memory.readUmv(umv, srq);
    } catch (error) {
      srq.end();
      throw error;
    }
    return srq;
  }

  postCreateSrq(pd: VendorPd, status: number, srq: VendorSharedReceiveQueue, umv: UmvBuffer): void {
    const memory = this.#memory;
    const ioctlResult = memory.writeUmv(status, umv, srq);
    this.table.post_create_srq?.(pd.address, ioctlResult, memory.handle, memory.umv);
    srq.address = memory.handleValue;
    if (ioctlResult !== IB_SUCCESS) srq.end();
  }

  preModifySrq(srq: VendorSharedReceiveQueue, attributes: UvpSrqAttributes, umv: UmvBuffer): void {
    const memory = this.#memory;
    memory.clear();
    layouts.srqAttr.encode(srqValues(attributes), memory.attributeBytes);
    const { attributes: at, umv: umvAt } = memory;
    check('pre_modify_srq', this.table.pre_modify_srq?.(srq.address, at, SRQ_MAX_WR_AND_LIMIT, umvAt));
    srq.nextDepth = attributes.maxWr;
    memory.readUmv(umv);
  }

  postModifySrq(srq: VendorSharedReceiveQueue, status: number, umv: UmvBuffer): void {
    const memory = this.#memory;
    const ioctlResult = memory.writeUmv(status, umv);
    this.table.post_modify_srq?.(srq.address, ioctlResult, memory.umv);
    if (ioctlResult === IB_SUCCESS) srq.requests.depth = srq.nextDepth;
  }

  preQuerySrq(srq: VendorSharedReceiveQueue, umv: UmvBuffer): void {
    const memory = this.#memory;
    memory.clear();
    check('pre_query_srq', this.table.pre_query_srq?.(srq.address, memory.umv));
    memory.readUmv(umv);
  }

  postQuerySrq(
    srq: VendorSharedReceiveQueue,
    status: number,
    attributes: UvpSrqAttributes,
    umv: UmvBuffer,
  ): void {
    const memory = this.#memory;
    const ioctlResult = memory.writeUmv(status, umv);
    layouts.srqAttr.encode(srqValues(attributes), memory.attributeBytes);
    this.table.post_query_srq?.(srq.address, ioctlResult, memory.attributes, memory.umv);
    if (ioctlResult === IB_SUCCESS) Object.assign(attributes, layouts.srqAttr.decode(memory.attributesLeft));
  }

  preDestroySrq(srq: VendorSharedReceiveQueue): void {
    this.table.pre_destroy_srq?.(srq.address);
  }

  postDestroySrq(srq: VendorSharedReceiveQueue, status: number): void {
    this.table.post_destroy_srq?.(srq.address, resultOf(status));
    srq.end();
  }

  // ── Queue pairs
  preCreateQp(pd: VendorPd, create: UvpQpCreate, umv: UmvBuffer): VendorQueuePair {
    const qp = new VendorQueuePair(this.native, this.table, pd.ca.tokens, create);
    const memory = this.#memory;
    memory.clear();
    try {
      layouts.uvpQpCreate.encode(qpValues(create, qp.token), memory.attributeBytes);
      // A mandatory function of the table.
      const hook = this.table.wv_pre_create_qp!;
      check('wv_pre_create_qp', hook(pd.address, memory.attributes, memory.umv, memory.handle));
      memory.readUmv(umv, qp);
    } catch (error) {
      qp.end();
      throw error;
    }
    return qp;
  }

  postCreateQp(pd: VendorPd, status: number, qp: VendorQueuePair, umv: UmvBuffer): void {
    const memory = this.#memory;
    const ioctlResult = memory.writeUmv(status, umv, qp);
    const result = this.table.post_create_qp?.(pd.address, ioctlResult, memory.handle, memory.umv);
    qp.address = memory.handleValue;
    if (ioctlResult === IB_SUCCESS && (result ?? IB_SUCCESS) === IB_SUCCESS) return;
    qp.end();
    if (ioctlResult === IB_SUCCESS) check('post_create_qp', result);
  }

  preDestroyQp(qp: VendorQueuePair): void {
    this.table.pre_destroy_qp?.(qp.address);
  }

  postDestroyQp(qp: VendorQueuePair, status: number): void {
    this.table.post_destroy_qp?.(qp.address, resultOf(status));
    qp.end();
  }

  /** The driver writes the state to memory of the provider, so nothing has to be passed on. */
  ndModifyQp(qp: VendorQueuePair): UvpQpState {
    const memory = this.#memory;
    memory.clear();
    // A mandatory function of the table.
    this.table.nd_modify_qp!(qp.address, memory.handle, memory.number);
    return {
      size: memory.numberValue,
      address: memory.handleValue,
      moved: (_output, state) => {
        if (state === QpState.RESET) qp.forget();
      },
    };
  }

  postSend(qp: VendorQueuePair, request: UvpSendRequest): void {
    qp.postSend(request);
  }

  postReceive(qp: VendorQueuePair, context: unknown, sgl: readonly UvpSge[]): void {
    qp.postReceive(context, sgl);
  }

  // ── Address handles
  preCreateAv(pd: VendorPd, av: UvpAddressVector, umv: UmvBuffer): VendorHandle {
    const made = new VendorHandle();
    const values = avValues(av);
    const memory = this.#memory;
    memory.clear();
    layouts.avAttr.encode(values, memory.attributeBytes);
    const result = this.table.pre_create_av?.(pd.address, memory.attributes, memory.umv, memory.handle);
    umv.processingDone = result === IB_VERBS_PROCESSING_DONE;
    if (umv.processingDone) made.address = memory.handleValue;
    else {
      check('pre_create_av', result);
      memory.readUmv(umv, made);
    }
    return made;
  }

  postCreateAv(pd: VendorPd, status: number, av: VendorHandle, umv: UmvBuffer): void {
    const memory = this.#memory;
    const ioctlResult = memory.writeUmv(status, umv, av);
    this.table.post_create_av?.(pd.address, ioctlResult, memory.handle, memory.umv);
    av.address = memory.handleValue;
  }

  preDestroyAv(av: VendorHandle): boolean {
    return this.table.pre_destroy_av?.(av.address) === IB_VERBS_PROCESSING_DONE;
  }

  postDestroyAv(av: VendorHandle, status: number): void {
    this.table.post_destroy_av?.(av.address, resultOf(status));
  }

  // ── Memory
  preCreateMw(pd: VendorPd, umv: UmvBuffer): VendorMemoryWindow {
    const mw = new VendorMemoryWindow();
    const memory = this.#memory;
    memory.clear();
    check('pre_create_mw', this.table.pre_create_mw?.(pd.address, memory.umv, memory.handle));
    memory.readUmv(umv, mw);
    return mw;
  }

  postCreateMw(pd: VendorPd, status: number, rkey: number, mw: VendorMemoryWindow, umv: UmvBuffer): void {
    const memory = this.#memory;
    const ioctlResult = memory.writeUmv(status, umv, mw);
    mw.rkey = rkey;
    this.table.post_create_mw?.(pd.address, ioctlResult, swapped(rkey), memory.handle, memory.umv);
    mw.address = memory.handleValue;
  }

  preDestroyMw(mw: VendorMemoryWindow): void {
    this.table.pre_destroy_mw?.(mw.address);
  }

  postDestroyMw(mw: VendorMemoryWindow, status: number): void {
    this.table.post_destroy_mw?.(mw.address, resultOf(status));
  }

  pinMemory(view: Uint8Array): UvpPin {
    return this.#pins.pin(view);
  }

  unpinMemory(pin: UvpPin): void {
    this.#pins.unpin(pin);
  }
}
