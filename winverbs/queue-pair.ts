import { IoctlCode } from '../kernel-bridge/ioctl/codes.js';
import { QpAttr, QpFlag, QpType, WvAccess, WvOpcode } from '../kernel-bridge/ioctl/constants.js';
import { WvIoQpAttributes, WvIoQpCreate } from '../kernel-bridge/ioctl/structs.js';
import {
  type UserVerbs,
  UvpBindRequest,
  type UvpHandle,
  type UvpQpCreate,
  UvpSendRequest,
} from '../kernel-bridge/user-verbs.js';
import { WVCompletionQueue } from './completion-queue.js';
import type {
  IWVConnectQueuePair,
  IWVMemoryWindow,
  RemoteMemoryRef,
  WvMemoryRegion,
  WvQpAttributes,
  WvQpCreate,
  WvSge,
} from './interfaces.js';
import { WVMemoryWindow } from './memory-window.js';
import { WvOverlapped } from './object.js';
import type { WVProtectionDomain } from './protection-domain.js';
import { guarded, Status, toWvError, WvError } from './status.js';

/** Read depths of a queue pair whose creator names none; connecting reduces them to what device and peer can. */
const DEFAULT_READ_DEPTH = 16;
const KNOWN_ACCESS = WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE | WvAccess.REMOTE_ATOMIC | WvAccess.MW_BIND;
const NO_SGES: readonly WvSge[] = [];
/** Takes 64-bit operands apart without making new bigints. */
const wide = new BigUint64Array(1);
const halves = new Uint32Array(wide.buffer);

/** IWVConnectQueuePair: the two queues of a reliable connection. */
export class WVConnectQueuePair extends WvOverlapped implements IWVConnectQueuePair {
  readonly qpn: number;
  private readonly verbs: UserVerbs;
  /** Requests are handed to the UVP in these, so that posting allocates nothing. */
  private readonly request = new UvpSendRequest();
  private readonly bindRequest = new UvpBindRequest();
  private readonly single: WvSge[] = [];

  private constructor(
    /** @internal */
    readonly pd: WVProtectionDomain,
    id: bigint,
    private readonly sendCq: WVCompletionQueue,
    private readonly receiveCq: WVCompletionQueue,
    /** @internal */
    readonly handle: UvpHandle,
    /** Bytes that an INLINE request may have. */
    readonly maxInlineSend: number,
    /** Reads and atomics it may have in flight, and accepts: defaults for connecting. */
    readonly initiatorDepth: number,
    readonly responderResources: number,
  ) {
    super('queue pair', pd.file, IoctlCode.QP_CANCEL, id);
    this.verbs = pd.verbs;
    pd.hold();
    sendCq.hold();
    receiveCq.hold();
    this.qpn = this.verbs.ndGetQpn?.(handle) ?? this.attributes().qpn;
  }

  /** @internal */
  static create(pd: WVProtectionDomain, create: WvQpCreate): WVConnectQueuePair {
    const { file, verbs } = pd;
    const sendCq = checkedCq(pd, 'sendCq', create.sendCq);
    const receiveCq = checkedCq(pd, 'receiveCq', create.receiveCq);
    const sizes: UvpQpCreate = {
      sendCq: sendCq.handle,
      receiveCq: receiveCq.handle,
      context: create.context,
      sendDepth: create.sendDepth,
      sendSge: create.sendSge,
      receiveDepth: create.receiveDepth,
      receiveSge: create.receiveSge,
      maxInlineSend: create.maxInlineSend ?? 0,
    };
    const depths = {
      initiatorDepth: create.initiatorDepth ?? DEFAULT_READ_DEPTH,
      responderResources: create.responderResources ?? DEFAULT_READ_DEPTH,
    };
    let handle: UvpHandle = null;
    const reply = file.verb(IoctlCode.QP_CREATE, WvIoQpCreate, WvIoQpCreate, {
      pre: (umv) => {
        handle = verbs.preCreateQp(pd.handle, sizes, umv);
        return {
          id: { id: pd.id },
          sendCqId: sendCq.id,
          receiveCqId: receiveCq.id,
          sendDepth: sizes.sendDepth,
          sendSge: sizes.sendSge,
          receiveDepth: sizes.receiveDepth,
          receiveSge: sizes.receiveSge,
          maxInlineSend: sizes.maxInlineSend,
          ...depths,
          qpType: QpType.RC,
          qpFlags: create.signalSends === true ? QpFlag.SIGNAL_SENDS : 0,
        };
      },
      post: (status, umv) => verbs.postCreateQp?.(pd.handle, status, handle, umv),
      undo: (answer) => WVConnectQueuePair.end(pd, answer.id.id, handle),
    });
    const inline = Math.min(sizes.maxInlineSend, reply.maxInlineSend);
    return new WVConnectQueuePair(
      pd,
      reply.id.id,
      sendCq,
      receiveCq,
      handle,
      inline,
      depths.initiatorDepth,
      depths.responderResources,
    );
  }

  private static end(pd: WVProtectionDomain, id: bigint, handle: UvpHandle): void {
    const { file, verbs } = pd;
    verbs.preDestroyQp?.(handle);
    file.destroy(IoctlCode.QP_DESTROY, id, (status) => verbs.postDestroyQp?.(handle, status));
  }

  /** WV_QP_STATE as the HCA last published it. */
  get state(): number {
    this.check();
    return this.verbs.ndGetQpState?.(this.handle) ?? this.attributes().qpState;
  }

  /** All attributes (QP_QUERY). */
  query(): WvQpAttributes {
    this.check();
    return this.attributes();
  }

  private attributes(): WvQpAttributes {
    const output = this.file.callId(IoctlCode.QP_QUERY, this.id, WvIoQpAttributes.size);
    const { addressVector, sequenceErrorRetryCount, rnrNakTimeout, ...rest } =
      WvIoQpAttributes.decode(output);
    return {
      qpState: rest.qpState,
      qpn: rest.qpn,
      destinationQpn: rest.destinationQpn,
      sendPsn: rest.sendPsn,
      receivePsn: rest.receivePsn,
      pathMtu: rest.pathMtu,
      sendDepth: rest.sendDepth,
      sendSge: rest.sendSge,
      receiveDepth: rest.receiveDepth,
      receiveSge: rest.receiveSge,
      maxInlineSend: rest.maxInlineSend,
      initiatorDepth: rest.initiatorDepth,
      responderResources: rest.responderResources,
      accessFlags: rest.accessFlags,
      qkey: rest.qkey,
      pkeyIndex: rest.pkeyIndex,
      portNumber: addressVector.portNumber,
      localAckTimeout: rest.localAckTimeout,
      retryCount: sequenceErrorRetryCount,
      rnrRetryCount: rest.rnrRetryCount,
      rnrNakTimeout,
      sourceGid: addressVector.sGid,
      destinationGid: addressVector.dGid,
    };
  }

  /**
   * Changes attributes (QP_MODIFY). `options` names those that count, WV_QP_ATTR_*; without STATE the state stays.
   *
   * @throws WvError INVALID_PARAMETER; INVALID_DEVICE_STATE: no such transition (IBA 1 §10.3.1).
   */
  modify(attributes: Partial<WvQpAttributes>, options: number): void {
    this.check();
    const { accessFlags, portNumber, sourceGid, destinationGid, retryCount, ...rest } = attributes;
    if (accessFlags !== undefined && (accessFlags & ~KNOWN_ACCESS) !== 0) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `accessFlags is 0x${(accessFlags >>> 0).toString(16)}; a queue pair takes 0x${KNOWN_ACCESS.toString(16)} at most.`,
      );
    }
    const state = this.state;
    const sink = this.verbs.ndModifyQp(this.handle);
    const input = guarded('QP_MODIFY', () =>
      WvIoQpAttributes.encode({
        ...rest,
        id: { id: this.id },
        options: options >>> 0,
        qpType: QpType.RC,
        currentQpState: state,
        // A driver that looks at the state only must not be told RESET where the state is not meant.
        qpState: (options & QpAttr.STATE) !== 0 ? (attributes.qpState ?? state) : state,
        accessFlags,
        sequenceErrorRetryCount: retryCount,
        addressVector: {
          networkRouteValid: 1,
          hopLimit: 64,
          sGid: sourceGid,
          dGid: destinationGid,
          portNumber: portNumber ?? 1,
        },
      }),
    );
    sink.moved(this.file.call(IoctlCode.QP_MODIFY, input, sink.size));
  }

  /**
   * Posts a receive for the next message.
   *
   * @throws WvError INVALID_DEVICE_STATE: RESET; NO_MORE_ENTRIES, DATA_OVERRUN, BUFFER_OVERFLOW, INVALID_PARAMETER
   */
  postReceive(context: unknown, sgl: readonly WvSge[]): void {
    this.check();
    try {
      this.verbs.postReceive(this.handle, context, sgl);
    } catch (error) {
      throw refusal(error, 'PostReceive');
    }
  }

  /** Posts a message. `immediate` goes along with the flag IMMEDIATE. */
  send(context: unknown, sgl: readonly WvSge[], flags: number, immediate = 0): void {
    const request = this.prepare(WvOpcode.SEND, context, sgl, flags);
    request.immediate = immediate;
    this.post(request);
  }

  /** Posts a message whose arrival makes the peer's memory window or region of key `rkey` unusable. */
  sendAndInvalidate(context: unknown, sgl: readonly WvSge[], flags: number, rkey: number): void {
    const request = this.prepare(WvOpcode.SEND, context, sgl, flags);
    request.immediate = rkey;
    request.invalidate = true;
    this.post(request);
  }

  /** Posts a read of remote memory into local. `offset` in bytes from the remote address. */
  read(
    context: unknown,
    sgl: readonly WvSge[],
    flags: number,
    remote: RemoteMemoryRef,
    offset: number,
  ): void {
    const request = this.prepare(WvOpcode.RDMA_READ, context, sgl, flags);
    this.setRemote(request, remote, offset);
    this.post(request);
  }

  /** Posts a write of local memory to remote. With the flag IMMEDIATE it takes a receive of the peer. */
  write(
    context: unknown,
    sgl: readonly WvSge[],
    flags: number,
    remote: RemoteMemoryRef,
    offset: number,
    immediate = 0,
  ): void {
    const request = this.prepare(WvOpcode.RDMA_WRITE, context, sgl, flags);
    request.immediate = immediate;
    this.setRemote(request, remote, offset);
    this.post(request);
  }

  /** Posts an atomic exchange of 8 remote bytes, done if they equal `compare`; `sge` receives what was there. */
  compareExchange(
    context: unknown,
    sge: WvSge,
    flags: number,
    compare: bigint,
    exchange: bigint,
    remote: RemoteMemoryRef,
    offset: number,
  ): void {
    const request = this.prepare(WvOpcode.COMPARE_EXCHANGE, context, this.alone(sge), flags);
    this.setRemote(request, remote, offset);
    setWide('compare', compare);
    request.compareLow = halves[0]!;
    request.compareHigh = halves[1]!;
    setWide('exchange', exchange);
    request.swapLow = halves[0]!;
    request.swapHigh = halves[1]!;
    this.post(request);
  }

  /** Posts an atomic addition to 8 remote bytes; `sge` receives what was there. */
  fetchAdd(
    context: unknown,
    sge: WvSge,
    flags: number,
    value: bigint,
    remote: RemoteMemoryRef,
    offset: number,
  ): void {
    const request = this.prepare(WvOpcode.FETCH_ADD, context, this.alone(sge), flags);
    this.setRemote(request, remote, offset);
    setWide('value', value);
    request.compareLow = halves[0]!;
    request.compareHigh = halves[1]!;
    request.swapLow = 0;
    request.swapHigh = 0;
    this.post(request);
  }

  /**
   * Posts the binding of a window to `length` bytes at `offset` of a region that was registered with MW_BIND. Answers
   * the window's new key: requests posted after this one may already tell it to the peer.
   *
   * @throws WvError NOT_SUPPORTED, and as all requests
   */
  bindMemoryWindow(
    window: IWVMemoryWindow,
    context: unknown,
    region: WvMemoryRegion,
    offset: number,
    length: number,
    access: number,
    flags: number,
  ): number {
    this.check();
    const mw = this.checkedWindow(window);
    if (this.verbs.bindMw === undefined) noWindows();
    const request = this.bindRequest;
    request.context = context;
    request.flags = flags;
    request.region = region;
    request.offset = offset;
    request.length = length;
    request.access = access;
    try {
      return this.verbs.bindMw(mw.handle, this.handle, request);
    } catch (error) {
      throw refusal(error, 'BindMemoryWindow');
    } finally {
      request.context = undefined;
    }
  }

  /** Posts the end of a window's binding. */
  invalidateMemoryWindow(window: IWVMemoryWindow, context: unknown, flags: number): void {
    this.check();
    const mw = this.checkedWindow(window);
    if (this.verbs.invalidateMw === undefined) noWindows();
    try {
      this.verbs.invalidateMw(mw.handle, this.handle, context, flags);
    } catch (error) {
      throw refusal(error, 'InvalidateMemoryWindow');
    }
  }

  /** Requests posted from here on wait for {@link submitBatch}, so that the device hears of them once. */
  startBatch(): void {
    this.check();
    this.verbs.startBatch?.(this.handle);
  }

  /** Hands over what was posted since {@link startBatch}. */
  submitBatch(): void {
    this.check();
    this.verbs.submitBatch?.(this.handle);
  }

  protected override destroy(): void {
    WVConnectQueuePair.end(this.pd, this.id, this.handle);
    this.sendCq.letGo();
    this.receiveCq.letGo();
    this.pd.letGo();
  }

  private prepare(opcode: number, context: unknown, sgl: readonly WvSge[], flags: number): UvpSendRequest {
    this.check();
    const request = this.request;
    request.opcode = opcode;
    request.context = context;
    request.sgl = sgl;
    request.flags = flags;
    request.invalidate = false;
    return request;
  }

  private alone(sge: WvSge): readonly WvSge[] {
    this.single[0] = sge;
    return this.single;
  }

  private setRemote(request: UvpSendRequest, remote: RemoteMemoryRef, offset: number): void {
    if (typeof remote?.addressLow !== 'number') {
      throw new WvError(
        Status.INVALID_PARAMETER,
        'The remote memory is missing; make one: new RemoteMemory().',
      );
    }
    request.remoteLow = remote.addressLow;
    request.remoteHigh = remote.addressHigh;
    request.rkey = remote.rkey;
    request.remoteOffset = offset;
  }

  private post(request: UvpSendRequest): void {
    try {
      this.verbs.postSend(this.handle, request);
    } catch (error) {
      throw refusal(error, 'PostSend');
    } finally {
      request.context = undefined;
      request.sgl = NO_SGES;
    }
  }

  private checkedWindow(window: IWVMemoryWindow): WVMemoryWindow {
    if (!(window instanceof WVMemoryWindow) || window.pd !== this.pd) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        'The memory window is not of the protection domain of this queue pair.',
      );
    }
    window.check();
    return window;
  }
}

/** What a post throws. Callers without types may hand in anything in place of SGEs. */
function refusal(error: unknown, what: string): unknown {
  if (!(error instanceof TypeError)) return toWvError(error, what);
  const message = `${what}: SGEs are an array of { region, offset, length }, and numbers are numbers (${error.message}).`;
  return new WvError(Status.INVALID_PARAMETER, message, { cause: error });
}

function noWindows(): never {
  throw new WvError(Status.NOT_SUPPORTED, 'This device has no memory windows.');
}

function setWide(what: string, value: bigint): void {
  if (typeof value !== 'bigint' || value < 0n || value > 0xffff_ffff_ffff_ffffn) {
    throw new WvError(
      Status.INVALID_PARAMETER,
      `${what} is ${String(value)}; it takes a bigint from 0 to 2^64 - 1.`,
    );
  }
  wide[0] = value;
}

function checkedCq(pd: WVProtectionDomain, what: string, cq: unknown): WVCompletionQueue {
  if (!(cq instanceof WVCompletionQueue) || cq.device !== pd.device) {
    throw new WvError(
      Status.INVALID_PARAMETER,
      `${what} is no completion queue of this protection domain's device.`,
    );
  }
  cq.check();
  return cq;
}
