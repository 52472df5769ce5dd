import type { Overlapped } from '../kernel-bridge/door/overlapped.js';
import {
  type UserVerbs,
  type UvpHandle,
  type UvpQpCreate,
  UvpSendRequest,
} from '../kernel-bridge/door/user-verbs.js';
import { IoctlCode } from '../kernel-bridge/ioctl/codes.js';
import {
  AtomicCapability,
  DeviceType,
  QpAttr,
  QpFlag,
  WvAccess,
  WvOpcode,
  WvSend,
} from '../kernel-bridge/ioctl/constants.js';
import { shown, shownFlags } from '../kernel-bridge/ioctl/shown.js';
import { WvIoQpAttributes, WvIoQpCreate } from '../kernel-bridge/ioctl/structs.js';
import { checkBits } from './checked-numbers.js';
import { WVCompletionQueue } from './completion-queue.js';
import { explainAttributes, explainModify, explainQp } from './explain.js';
import type { IWVQueuePair, WvQpAttributes, WvQpCreate, WvSendRequest, WvSge } from './interfaces.js';
import type { WVProtectionDomain } from './protection-domain.js';
import { WVSharedReceiveQueue } from './shared-receive-queue.js';
import { checkedObject, refusal, Status, toWvError, WvError } from './status.js';
import { WvOverlapped } from './wv-object.js';

const KNOWN_ACCESS = WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE | WvAccess.REMOTE_ATOMIC | WvAccess.MW_BIND;
/** @internal */
export const NO_SGES: readonly WvSge[] = [];
/** Stands for no request. It has the same class as requests, so that V8 sees a single type. */
const NO_REQUEST = new UvpSendRequest();
/** Flags of optional capabilities. */
const HAS_IMMEDIATE = 1;
const HAS_ATOMICS = 2;
// V8 treats a module's own constants as constants, but not the fields of another module's object.
const { IMMEDIATE } = WvSend;
const { COMPARE_EXCHANGE, FETCH_ADD } = WvOpcode;
/** Hop limit of packets if the queue pair sets none. */
const DEFAULT_HOP_LIMIT = 64;

/** A queue pair that the kernel has created. */
export interface CreatedQueuePair {
  readonly id: bigint;
  readonly handle: UvpHandle;
  /** {@link QpType} */
  readonly type: number;
  readonly sendCq: WVCompletionQueue;
  readonly receiveCq: WVCompletionQueue;
  readonly srq: WVSharedReceiveQueue | undefined;
  readonly sendSge: number;
  readonly receiveSge: number;
  readonly maxInlineSend: number;
}

/** IWVQueuePair: the common part of all types of queue pairs. */
export abstract class WVQueuePair extends WvOverlapped implements IWVQueuePair {
  readonly qpn: number;
  readonly sendSge: number;
  readonly receiveSge: number;
  readonly maxInlineSend: number;
  /** @internal */
  readonly handle: UvpHandle;
  /** @internal */
  protected readonly verbs: UserVerbs;
  /** @internal {@link QpType} */
  readonly type: number;
  /** @internal */
  readonly srq: WVSharedReceiveQueue | undefined;
  private readonly sendCq: WVCompletionQueue;
  private readonly receiveCq: WVCompletionQueue;
  /** The request for the UVP, created by the first post and reused, so that posting allocates nothing. */
  private request = NO_REQUEST;
  /** Whether the program has started a batch, which it submits itself. */
  private batching = false;
  /** Optional capabilities that this queue pair has found its device to have. */
  private able = 0;

  /** @internal */
  protected constructor(
    /** @internal */
    readonly pd: WVProtectionDomain,
    created: CreatedQueuePair,
    own: 'IWVConnectQueuePair' | 'IWVDatagramQueuePair',
  ) {
    super('queue pair', pd.file, IoctlCode.QP_CANCEL, created.id, ['IWVQueuePair', own]);
    this.verbs = pd.verbs;
    this.handle = created.handle;
    this.type = created.type;
    this.sendCq = created.sendCq;
    this.receiveCq = created.receiveCq;
    this.srq = created.srq;
    this.sendSge = created.sendSge;
    this.receiveSge = created.receiveSge;
    this.maxInlineSend = created.maxInlineSend;
    pd.addChild(this);
    this.sendCq.addInternalRef();
    this.receiveCq.addInternalRef();
    this.srq?.addInternalRef();
    this.qpn = this.verbs.ndGetQpn?.(this.handle) ?? this.attributes().qpn;
  }

  /** @internal QP_CREATE. `type` is one of {@link QpType}. */
  static make(
    pd: WVProtectionDomain,
    type: number,
    create: WvQpCreate,
    depths: { readonly initiatorDepth: number; readonly responderResources: number },
  ): CreatedQueuePair {
    const { file, verbs } = pd;
    const sendCq = checkedCq(pd, 'sendCq', create.sendCq);
    const receiveCq = checkedCq(pd, 'receiveCq', create.receiveCq);
    const srq = create.srq === undefined ? undefined : checkedSrq(pd, create.srq);
    checkFlag('signalSends', create.signalSends);
    checkFlag('memoryManagement', create.memoryManagement);
    const sizes: UvpQpCreate = {
      type,
      sendCq: sendCq.handle,
      receiveCq: receiveCq.handle,
      srq: srq?.handle,
      context: create.context,
      sendDepth: create.sendDepth,
      sendSge: create.sendSge,
      receiveDepth: srq === undefined ? create.receiveDepth : 0,
      receiveSge: srq === undefined ? create.receiveSge : 0,
      maxInlineSend: create.maxInlineSend ?? 0,
      ...depths,
      signalSends: create.signalSends === true,
      memoryManagement: create.memoryManagement === true,
    };
    let handle: UvpHandle = null;
    const reply = file.verb(IoctlCode.QP_CREATE, WvIoQpCreate, WvIoQpCreate, {
      pre: (umv) => {
        handle = verbs.preCreateQp(pd.handle, sizes, umv);
        return {
          id: { id: pd.id },
          sendCqId: sendCq.id,
          receiveCqId: receiveCq.id,
          srqId: srq?.id ?? 0n,
          sendDepth: sizes.sendDepth,
          sendSge: sizes.sendSge,
          receiveDepth: sizes.receiveDepth,
          receiveSge: sizes.receiveSge,
          maxInlineSend: sizes.maxInlineSend,
          initiatorDepth: depths.initiatorDepth,
          responderResources: depths.responderResources,
          qpType: type,
          qpFlags:
            (sizes.signalSends ? QpFlag.SIGNAL_SENDS : 0) |
            (sizes.memoryManagement ? QpFlag.MEMORY_MANAGEMENT : 0),
        };
      },
      post: (status, umv) => verbs.postCreateQp?.(pd.handle, status, handle, umv),
      explain: (error) => explainQp(error, pd.device, depths),
      undo: (answer) => WVQueuePair.end(pd, answer.id.id, handle),
    });
    const maxInlineSend = Math.min(sizes.maxInlineSend, reply.maxInlineSend);
    const { sendSge, receiveSge } = reply;
    return { id: reply.id.id, handle, type, sendCq, receiveCq, srq, sendSge, receiveSge, maxInlineSend };
  }

  private static end(pd: WVProtectionDomain, id: bigint, handle: UvpHandle): void {
    const { file, verbs } = pd;
    verbs.preDestroyQp?.(handle);
    file.destroy(IoctlCode.QP_DESTROY, id, (status) => verbs.postDestroyQp?.(handle, status));
  }

  /** The WV_QP_STATE that the HCA published last. @category Queues */
  get state(): number {
    this.check();
    return this.verbs.ndGetQpState?.(this.handle) ?? this.attributes().qpState;
  }

  /** Returns all attributes (QP_QUERY). @category Queues */
  query(): WvQpAttributes {
    this.check();
    return this.attributes();
  }

  private attributes(): WvQpAttributes {
    const output = this.file.callId(IoctlCode.QP_QUERY, this.id, WvIoQpAttributes.size);
    const { addressVector, sequenceErrorRetryCount, rnrNakTimeout, ...rest } =
      WvIoQpAttributes.decode(output);
    return {
      qpType: rest.qpType,
      qpState: rest.qpState,
      currentQpState: rest.currentQpState,
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
      trafficClass: addressVector.trafficClass,
      flowLabel: addressVector.flowLabel,
      hopLimit: addressVector.hopLimit,
      qpFlags: rest.qpFlags,
      destinationLid: addressVector.dLid,
      serviceLevel: addressVector.serviceLevel,
      sourcePathBits: addressVector.sourcePathBits,
      staticRate: addressVector.staticRate,
      apmState: rest.apmState,
      alternatePathMtu: rest.alternatePathMtu,
      alternatePkeyIndex: rest.alternatePkeyIndex,
      alternateLocalAckTimeout: rest.alternateLocalAckTimeout,
      pd: this.pd,
      sendCq: this.sendCq,
      receiveCq: this.receiveCq,
      srq: this.srq,
    };
  }

  /**
   * Changes attributes (QP_MODIFY). `options` (WV_QP_ATTR_*) selects them; without STATE the state does not change.
   *
   * @throws WvError INVALID_PARAMETER (also for a path MTU above the port's), INVALID_DEVICE_STATE (no such transition,
   *   IBA 1 §10.3.1)
   * @category Queues
   */
  modify(attributes: Partial<WvQpAttributes>, options: number): void {
    const input = this.modifyInput(attributes, options);
    const sink = this.verbs.ndModifyQp(this.handle);
    let output: Uint8Array;
    try {
      output = this.file.call(IoctlCode.QP_MODIFY, input, sink.size, sink.address);
    } catch (error) {
      throw this.explained(error, attributes, options);
    }
    sink.moved(output, requestedState(attributes, options));
  }

  /** The overlapped form of {@link modify}; invalid arguments throw immediately. @category Queues */
  modifyOverlapped(attributes: Partial<WvQpAttributes>, options: number): Overlapped<void> {
    const input = this.modifyInput(attributes, options);
    const sink = this.verbs.ndModifyQp(this.handle);
    const moved = (output: Uint8Array): void => sink.moved(output, requestedState(attributes, options));
    return this.overlapped<void>(
      IoctlCode.QP_MODIFY,
      input,
      sink.size,
      moved,
      (error) => this.explained(error, attributes, options),
      sink.address,
    );
  }

  private modifyInput(attributes: Partial<WvQpAttributes>, options: number): Uint8Array {
    this.check();
    if (!Number.isInteger(options))
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`options\` must be an OR of QpAttr values; got ${shown(options)}.`,
      );
    checkedObject('attributes', attributes, 'attributes of the queue pair, such as { qpState: 6 }');
    const { accessFlags, portNumber, trafficClass, flowLabel, hopLimit } = attributes;
    checkBits('trafficClass', trafficClass, 8);
    checkBits('flowLabel', flowLabel, 20);
    checkBits('hopLimit', hopLimit, 8);
    if (accessFlags !== undefined && (accessFlags & ~KNOWN_ACCESS) !== 0) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`accessFlags\` must contain only bits of 0x${KNOWN_ACCESS.toString(16)}; got ${shownFlags(accessFlags)}.`,
      );
    }
    const state = this.state;
    const encode = () =>
      // The members are listed one by one, because V8 reads a spread object of so many members slowly.
      WvIoQpAttributes.encodeOnce({
        id: { id: this.id },
        sendDepth: attributes.sendDepth,
        sendSge: attributes.sendSge,
        receiveDepth: attributes.receiveDepth,
        receiveSge: attributes.receiveSge,
        maxInlineSend: attributes.maxInlineSend,
        initiatorDepth: attributes.initiatorDepth,
        responderResources: attributes.responderResources,
        options: options >>> 0,
        qpType: this.type,
        currentQpState: attributes.currentQpState ?? state,
        // A driver that reads only the state must not see RESET if the state is not to change.
        qpState: (options & QpAttr.STATE) !== 0 ? (attributes.qpState ?? state) : state,
        qpn: attributes.qpn,
        destinationQpn: attributes.destinationQpn,
        qkey: attributes.qkey,
        sendPsn: attributes.sendPsn,
        receivePsn: attributes.receivePsn,
        addressVector: {
          networkRouteValid: 1,
          hopLimit: hopLimit || DEFAULT_HOP_LIMIT,
          trafficClass,
          flowLabel,
          sGid: attributes.sourceGid,
          dGid: attributes.destinationGid,
          portNumber: portNumber ?? 1,
        },
        pathMtu: attributes.pathMtu,
        pkeyIndex: attributes.pkeyIndex,
        localAckTimeout: attributes.localAckTimeout,
        rnrNakTimeout: attributes.rnrNakTimeout,
        sequenceErrorRetryCount: attributes.retryCount,
        rnrRetryCount: attributes.rnrRetryCount,
        accessFlags,
      });
    try {
      return encode();
    } catch (error) {
      throw explainAttributes(toWvError(error, 'QP_MODIFY'), attributes);
    }
  }

  /** Returns the error of a modify, with the name of the wrong attribute or option. */
  private explained(error: unknown, attributes: Partial<WvQpAttributes>, options: number): unknown {
    if (this.released) return error;
    return explainModify(error, this.pd.device, this.state, attributes, options);
  }

  /**
   * Posts a receive for the next message.
   *
   * @throws WvError INVALID_DEVICE_REQUEST (the queue pair uses a shared receive queue), INVALID_DEVICE_STATE (RESET),
   *   NO_MORE_ENTRIES, DATA_OVERRUN, BUFFER_OVERFLOW, INVALID_PARAMETER
   * @category Post
   */
  postReceive(context: unknown, sgl: readonly WvSge[]): void {
    this.check();
    try {
      this.verbs.postReceive(this.handle, context, sgl);
    } catch (error) {
      throw refusal(error, 'PostReceive', sgl);
    }
  }

  /**
   * Starts a batch: requests posted from now on wait for {@link submitBatch}, so that one doorbell submits them all.
   * @category Post
   */
  startBatch(): void {
    this.check();
    this.batching = true;
    this.verbs.startBatch?.(this.handle);
  }

  /** Submits the requests posted since {@link startBatch}. @category Post */
  submitBatch(): void {
    this.check();
    this.batching = false;
    this.verbs.submitBatch?.(this.handle);
  }

  /**
   * Posts requests in order, with one doorbell for all (PostSend).
   *
   * @throws WvError as for the single calls; `failedRequest` is the index of the request that was not queued. Those
   *   before it are queued, and those after it are not.
   * @category Post
   */
  postSend(requests: readonly WvSendRequest[]): void {
    this.check();
    if (!Array.isArray(requests)) {
      throw new WvError(Status.INVALID_PARAMETER, `\`requests\` must be an array; got ${shown(requests)}.`);
    }
    if (!this.batching) this.verbs.startBatch?.(this.handle);
    let index = 0;
    try {
      for (; index < requests.length; index++) this.postOne(requests[index]!);
    } catch (error) {
      if (error instanceof WvError) {
        error.message = `Request ${index + 1} of ${requests.length}: ${error.message}`;
        error.failedRequest = index;
      }
      throw error;
    } finally {
      if (!this.batching) this.verbs.submitBatch?.(this.handle);
    }
  }

  /** @internal Posts one request of {@link postSend}. */
  protected abstract postOne(posted: WvSendRequest): void;

  protected override destroy(): void {
    WVQueuePair.end(this.pd, this.id, this.handle);
    this.sendCq.releaseInternalRef();
    this.receiveCq.releaseInternalRef();
    this.srq?.releaseInternalRef();
    this.pd.removeChild(this);
  }

  /**
   * @internal Returns the request for {@link post}, with the common members set. Throws if the device does not support
   *   it.
   */
  protected prepare(opcode: number, context: unknown, sgl: readonly WvSge[], flags: number): UvpSendRequest {
    this.check();
    if (typeof flags !== 'number') checkWord('flags', flags);
    if ((flags & IMMEDIATE) !== 0 && (this.able & HAS_IMMEDIATE) === 0) this.need(HAS_IMMEDIATE);
    if ((opcode === COMPARE_EXCHANGE || opcode === FETCH_ADD) && (this.able & HAS_ATOMICS) === 0) {
      this.need(HAS_ATOMICS);
    }
    if (this.request === NO_REQUEST) this.request = new UvpSendRequest();
    const request = this.request;
    request.opcode = opcode;
    request.context = context;
    request.sgl = sgl;
    request.flags = flags;
    request.invalidate = false;
    return request;
  }

  private need(kind: number): void {
    const { name, traits } = this.pd.device;
    if (
      kind === HAS_IMMEDIATE
        ? traits.deviceType === DeviceType.IWARP
        : traits.atomicCapability === AtomicCapability.NONE
    ) {
      const what =
        kind === HAS_IMMEDIATE
          ? 'immediate data, because it is an iWARP device'
          : 'atomic operations (atomicCapability)';
      throw new WvError(Status.NOT_SUPPORTED, `The device ${name} does not support ${what}.`);
    }
    this.able |= kind;
  }

  /** @internal Passes a request to the UVP. */
  protected post(request: UvpSendRequest): void {
    try {
      this.verbs.postSend(this.handle, request);
    } catch (error) {
      throw refusal(error, 'PostSend', request.sgl);
    } finally {
      request.context = undefined;
      request.sgl = NO_SGES;
    }
  }
}

/** @internal */
export function checkedRequest(posted: WvSendRequest): WvSendRequest {
  const fields = 'opcode and sgl, both optional';
  if (!Array.isArray(posted)) return checkedObject('request', posted, fields);
  throw new WvError(Status.INVALID_PARAMETER, `\`request\` must be an object with ${fields}; got an array.`);
}

function checkFlag(what: string, value: boolean | undefined): void {
  if (value === undefined || typeof value === 'boolean') return;
  throw new WvError(Status.INVALID_PARAMETER, `\`${what}\` must be a boolean; got ${shown(value)}.`);
}

/** @internal Checks that `value` has 32 bits, signed or unsigned. */
export function checkWord(what: string, value: number): void {
  if (typeof value === 'number' && (value === value >>> 0 || value === (value | 0))) return;
  throw new WvError(Status.INVALID_PARAMETER, `\`${what}\` must be a 32-bit number; got ${shown(value)}.`);
}

function checkedSrq(pd: WVProtectionDomain, srq: unknown): WVSharedReceiveQueue {
  if (!(srq instanceof WVSharedReceiveQueue) || srq.pd.device !== pd.device) {
    throw new WvError(
      Status.INVALID_PARAMETER,
      `\`srq\` must be a shared receive queue of this protection domain's device; got ${shown(srq)}.`,
    );
  }
  srq.check();
  return srq;
}

function checkedCq(pd: WVProtectionDomain, what: string, cq: unknown): WVCompletionQueue {
  if (!(cq instanceof WVCompletionQueue) || cq.device !== pd.device) {
    throw new WvError(
      Status.INVALID_PARAMETER,
      `\`${what}\` must be a completion queue of this protection domain's device; got ${shown(cq)}.`,
    );
  }
  cq.check();
  return cq;
}

/** The state that a modify requests, if any. */
function requestedState({ qpState }: Partial<WvQpAttributes>, options: number): number | undefined {
  return (options & QpAttr.STATE) !== 0 ? qpState : undefined;
}
