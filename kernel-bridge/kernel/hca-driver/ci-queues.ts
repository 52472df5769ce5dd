/**
 * IRP-based verbs of the HCA: completion queues and queue pairs. The rules are those of ci-ca.ts.
 */
import {
  type ConnectAttributes,
  type ConnectSteps,
  CqEventType,
  type HcaLimits,
  type PathParameters,
  type QpAttributeValues,
  QpMask,
} from '../../hca/soft-hca-binding.js';
import { CqNotifyType, QpFlag, QpState } from '../../ioctl/constants.js';
import type { Value } from '../../ioctl/layout.js';
import { CqProviderIn, CqProviderOut, QpProviderIn, QpProviderOut } from '../../ioctl/provider-data.js';
import { Status } from '../../ioctl/status.js';
import type { WvIoQpCreate } from '../../ioctl/structs.js';
import type { Irp } from '../io-manager/irp.js';
import {
  type CiUdata,
  finish,
  type IbCa,
  IbCq,
  type IbCqDispatch,
  type IbPd,
  IbQp,
  type IbQpCreate,
  type IbQpDispatch,
  type IbSrq,
  outputFits,
  providerInput,
  putOutput,
  ringAddress,
} from './ib-objects.js';

/**
 * Creates a completion queue with at least `entries` entries over the provider's ring. Callbacks receive `context`;
 * their table and each of its members are optional.
 *
 * @returns SUCCESS (Information: the {@link IbCq}), INVALID_PARAMETER for 0 entries or a ring of the wrong size,
 * INSUFFICIENT_RESOURCES above the limit, BUFFER_TOO_SMALL (provider data), FILE_FORCED_CLOSED.
 */
export function ciCreateCq<C>(
  ca: IbCa,
  entries: number,
  context: C,
  dispatch: IbCqDispatch<C> | undefined,
  udata: CiUdata,
  irp: Irp<IbCq>,
): number {
  const { native, limits, gone, registry } = ca.hca;
  if (gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  const ring = providerInput(udata, CqProviderIn);
  if (!ring || !outputFits(udata, CqProviderOut.size)) return finish(irp, Status.BUFFER_TOO_SMALL);
  const refused = cqSize(entries, ring.entries, limits.maxCqEntries);
  if (refused !== Status.SUCCESS) return finish(irp, refused);
  // The value is read before anything is created, because it belongs to the client's object.
  const called = dispatch?.compEvent !== undefined;
  const { status, cq: handle } = native.createCq(ringAddress(ring.ringAddress), ring.ringBytes, ring.entries);
  if (status !== Status.SUCCESS) return finish(irp, status);
  ca.resources.acquire();
  const cq = new IbCq(ca, handle, context, dispatch ?? {}, ring.entries);
  registry.cqs.set(handle, cq);
  if (called) listen(cq);
  putOutput(udata, CqProviderOut.encode({ handle }));
  return finish(irp, Status.SUCCESS, cq);
}

function cqSize(requested: number, ring: number, limit: number): number {
  if (requested === 0) return Status.INVALID_PARAMETER;
  if (requested > limit || ring > limit) return Status.INSUFFICIENT_RESOURCES;
  return ring < requested ? Status.INVALID_PARAMETER : Status.SUCCESS;
}

/**
 * Moves a completion queue with its entries to a new ring.
 *
 * @returns SUCCESS, BUFFER_OVERFLOW if the entries do not fit, otherwise as {@link ciCreateCq}.
 */
export function ciResizeCq(cq: IbCq, entries: number, udata: CiUdata, irp: Irp): number {
  const { native, limits, gone } = cq.ca.hca;
  if (gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  const ring = providerInput(udata, CqProviderIn);
  if (!ring || !outputFits(udata, CqProviderOut.size)) return finish(irp, Status.BUFFER_TOO_SMALL);
  const refused = cqSize(entries, ring.entries, limits.maxCqEntries);
  if (refused !== Status.SUCCESS) return finish(irp, refused);
  const status = native.resizeCq(cq.handle, ringAddress(ring.ringAddress), ring.ringBytes, ring.entries);
  if (status !== Status.SUCCESS) return finish(irp, status);
  cq.numCqes = ring.entries;
  putOutput(udata, CqProviderOut.encode({ handle: cq.handle }));
  return finish(irp, Status.SUCCESS, 0);
}

/**
 * Destroys a completion queue. Its event requests complete with CANCELED. @returns SUCCESS, DEVICE_BUSY while QPs use
 * it.
 */
export function ciDestroyCq(cq: IbCq, irp: Irp): number {
  if (cq.resources.users > 0) return finish(irp, Status.DEVICE_BUSY);
  ciCancelCqEvents(cq);
  const status = cq.ca.hca.native.destroyCq(cq.handle);
  if (status !== Status.SUCCESS) return finish(irp, status);
  cq.ca.hca.registry.cqs.delete(cq.handle);
  cq.ca.resources.release();
  return finish(irp, Status.SUCCESS, 0);
}

/** Makes the HCA report the queue's completions to this kernel. */
function listen(cq: IbCq): void {
  if (!cq.listening) cq.listening = cq.ca.hca.native.listenCq(cq.handle) === Status.SUCCESS;
}

/**
 * Requests an event for the next completion, or the next solicited one, for its callback or its pending requests. Part
 * of the data path: no IRP, at any level.
 *
 * @returns SUCCESS, BUFFER_OVERFLOW (the queue has overrun), FILE_FORCED_CLOSED.
 */
export function ciArmCq(cq: IbCq, solicitedOnly: boolean): number {
  const { native, gone } = cq.ca.hca;
  return gone ? Status.FILE_FORCED_CLOSED : native.armCq(cq.handle, solicitedOnly);
}

/** Reports an event of the HCA to the callbacks and requests of kernel clients. `event` as in CqEventType. */
export function raiseCqEvent(cq: IbCq, event: number): void {
  if (event === CqEventType.overrun) {
    cq.dead = true;
    // The HCA itself has completed requests of the channel.
    cq.kernelWaits.completeAll(Status.BUFFER_OVERFLOW);
    if (cq.dispatch.asyncEvent) cq.ca.al.callBack(() => cq.dispatch.asyncEvent?.(cq, cq.context, event));
    return;
  }
  const completed = cq.kernelWaits.completeWhere((type) => type !== CqNotifyType.ERROR, Status.SUCCESS, 0);
  cq.unreported = completed === 0 && cq.dispatch.compEvent === undefined;
  if (cq.dispatch.compEvent) cq.ca.al.callBack(() => cq.dispatch.compEvent?.(cq, cq.context));
}

/** Pends a kernel client's request, which has no channel slot that the HCA could complete. */
function waitInKernel(cq: IbCq, type: number, irp: Irp): number {
  if (cq.dead) return finish(irp, Status.BUFFER_OVERFLOW);
  listen(cq);
  cq.kernelWaits.insert(irp, type);
  if (cq.unreported && type !== CqNotifyType.ERROR) {
    cq.unreported = false;
    cq.kernelWaits.remove(irp);
    irp.complete(Status.SUCCESS, 0);
  }
  return Status.PENDING;
}

/**
 * Waits for an event of a completion queue. The IRP's slot is passed to the HCA, which completes it itself and notifies
 * the driver afterwards. IRPs of kernel clients wait in the driver, as do all IRPs if the HCA cannot complete them
 * itself.
 *
 * @param type - CQ_NOTIFY's: 0 errors, 1 the next completion, 2 the next solicited one.
 * @returns PENDING; completes with SUCCESS, BUFFER_OVERFLOW (the queue has overrun), CANCELED, DEVICE_REMOVED.
 * INVALID_PARAMETER for other types, INVALID_HANDLE for a destroyed queue.
 */
export function ciGetCqEvent(cq: IbCq, type: number, irp: Irp): number {
  const { native, server, gone, registry } = cq.ca.hca;
  if (registry.cqs.get(cq.handle) !== cq) return finish(irp, Status.INVALID_HANDLE);
  if (gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (type > 2) return finish(irp, Status.INVALID_PARAMETER);
  // IRPs that the HCA cannot complete itself wait here, like requests of kernel clients.
  if (!irp.native || !native.addCqWaiter) return waitInKernel(cq, type, irp);
  const { slot, serial } = irp.native;
  irp.markPending();
  cq.waiters.add(irp);
  irp.setCancelRoutine((cancelled) => {
    cq.waiters.delete(cancelled);
    // If the HCA has already completed the request, the caller has that outcome, and the channel ignores ours.
    native.removeCqWaiter?.(cq.handle, slot, serial);
    cancelled.complete(Status.CANCELED);
  });
  irp.driverContext = cq;
  const status = native.addCqWaiter(cq.handle, type, server, slot, serial);
  if (status !== Status.SUCCESS) {
    cq.waiters.delete(irp);
    irp.setCancelRoutine(undefined);
    irp.complete(status);
  }
  return Status.PENDING;
}

/** Removes an event request that the HCA has completed. */
export function ciCqEventDelivered(irp: Irp): void {
  if (!(irp.driverContext instanceof IbCq) || !irp.driverContext.waiters.delete(irp)) return;
  irp.setCancelRoutine(undefined);
  irp.complete(Status.SUCCESS, 0);
}

/** Cancels all event requests of a completion queue, in order: the first one went through the kernel. */
export function ciCancelCqEvents(cq: IbCq): void {
  for (const irp of [...cq.waiters]) irp.cancel();
  cq.ca.hca.native.endCqEvents?.(cq.handle, Status.CANCELED);
  cq.kernelWaits.cancelAll();
}

/** Completes all event requests of a completion queue with `status`, except those already completed by the HCA. */
export function ciEndCqEvents(cq: IbCq, status: number): void {
  for (const irp of [...cq.waiters]) {
    cq.waiters.delete(irp);
    irp.setCancelRoutine(undefined);
    if (irp.native) cq.ca.hca.native.removeCqWaiter?.(cq.handle, irp.native.slot, irp.native.serial);
    irp.complete(status);
  }
  cq.ca.hca.native.endCqEvents?.(cq.handle, status);
  cq.kernelWaits.completeAll(status);
}

/** Q_Keys from this value on, including QP1's, are reserved for the kernel (IBA 1 §10.2.5). */
const controlledQkey = 0x8000_0000;

/** The parameters of QP_CREATE. */
export type IbQpRequest = Omit<Value<typeof WvIoQpCreate>, 'id' | 'sendCqId' | 'receiveCqId' | 'srqId'>;

/**
 * Creates a queue pair in state RESET over the provider's ring. With a shared receive queue it has no receive queue of
 * its own: receive depth and SGEs are ignored. Callbacks receive `context`; their table and each of its members are
 * optional.
 *
 * @returns SUCCESS (Information: the {@link IbQp}), INVALID_PARAMETER for an unknown type, CQs or an SRQ of another HCA
 * or a ring of the wrong size, INSUFFICIENT_RESOURCES above a limit, NOT_SUPPORTED for flags that the HCA lacks,
 * BUFFER_TOO_SMALL (provider data), FILE_FORCED_CLOSED.
 */
export function ciCreateQp<C>(
  pd: IbPd,
  sendCq: IbCq,
  receiveCq: IbCq,
  srq: IbSrq | undefined,
  requested: IbQpRequest,
  context: C,
  dispatch: IbQpDispatch<C> | undefined,
  udata: CiUdata,
  irp: Irp<IbQp>,
): number {
  const { native, limits, gone, registry } = pd.ca.hca;
  if (gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  const ring = providerInput(udata, QpProviderIn);
  if (!ring || !outputFits(udata, QpProviderOut.size)) return finish(irp, Status.BUFFER_TOO_SMALL);
  const others = [sendCq.ca, receiveCq.ca, ...(srq ? [srq.pd.ca] : [])];
  if (others.some(({ hca }) => hca !== pd.ca.hca)) return finish(irp, Status.INVALID_PARAMETER);
  const request = srq ? { ...requested, receiveDepth: 0, receiveSge: 0 } : requested;
  const managed = native.allocateMr === undefined ? 0 : QpFlag.MEMORY_MANAGEMENT;
  if ((request.qpFlags & ~(QpFlag.SIGNAL_SENDS | managed)) !== 0) return finish(irp, Status.NOT_SUPPORTED);
  const refused = qpSize(request, ring, limits);
  if (refused !== Status.SUCCESS) return finish(irp, refused);
  const { pkeyTable } = pd.ca.hca.own;
  const { qpType: type, sendSge, receiveSge, maxInlineSend: maxInline } = request;
  const signalAll = (request.qpFlags & QpFlag.SIGNAL_SENDS) !== 0;
  const memoryManagement = (request.qpFlags & QpFlag.MEMORY_MANAGEMENT) !== 0;
  // The members are listed one by one, because V8 creates and reads a spread object with so many members slowly.
  const {
    status,
    qp: handle,
    qpn,
  } = native.createQp({
    pd: pd.handle,
    sendCq: sendCq.handle,
    receiveCq: receiveCq.handle,
    srq: srq?.handle ?? 0,
    pkeyTable,
    type,
    signalAll,
    ringAddress: ringAddress(ring.ringAddress),
    ringBytes: ring.ringBytes,
    sendEntries: ring.sendEntries,
    sendStride: ring.sendStride,
    sendSge,
    maxInline,
    receiveEntries: ring.receiveEntries,
    receiveStride: ring.receiveStride,
    receiveSge,
    token: ring.token,
  });
  if (status !== Status.SUCCESS) return finish(irp, status);
  pd.resources.acquire();
  sendCq.resources.acquire();
  receiveCq.resources.acquire();
  srq?.resources.acquire();
  const { sendDepth, receiveDepth, initiatorDepth, responderResources } = request;
  const create: IbQpCreate = {
    pkeyTable,
    type,
    signalAll,
    memoryManagement,
    sendSge,
    maxInline,
    receiveSge,
    sendDepth,
    receiveDepth,
    initiatorDepth,
    responderResources,
  };
  const qp = new IbQp(pd, sendCq, receiveCq, srq, handle, qpn, create, context, dispatch ?? {});
  registry.qps.set(handle, qp);
  putOutput(udata, QpProviderOut.encode({ handle, qpn }));
  return finish(irp, Status.SUCCESS, qp);
}

/** SUCCESS, or the error for an invalid size of a queue pair. */
function qpSize(requested: IbQpRequest, ring: Value<typeof QpProviderIn>, limits: HcaLimits): number {
  if (
    requested.sendDepth > limits.maxQpWr ||
    requested.receiveDepth > limits.maxQpWr ||
    requested.sendSge > limits.maxSge ||
    requested.receiveSge > limits.maxSge ||
    requested.maxInlineSend > limits.maxInline ||
    requested.initiatorDepth > limits.maxReadDepth ||
    requested.responderResources > limits.maxReadDepth
  ) {
    return Status.INSUFFICIENT_RESOURCES;
  }
  const fits = ring.sendEntries >= requested.sendDepth && ring.receiveEntries >= requested.receiveDepth;
  return fits ? Status.SUCCESS : Status.INVALID_PARAMETER;
}

/**
 * Modifies attributes or the state of a queue pair.
 *
 * @param mask - QpMask bits of the given attributes.
 * @returns SUCCESS (Information: the QP's state), INVALID_DEVICE_STATE for transitions that do not exist,
 *   INVALID_PARAMETER for missing or invalid attributes, including a path MTU above the port's, ACCESS_DENIED for a
 *   controlled Q_Key of user mode, FILE_FORCED_CLOSED (but RESET and ERROR always work).
 */
export function ciModifyQp(qp: IbQp, mask: number, attributes: Partial<QpAttributeValues>, irp: Irp): number {
  const controlled = (mask & QpMask.qkey) !== 0 && (attributes.qkey ?? 0) >= controlledQkey;
  // As in all other verbs, the error for a missing HCA has precedence.
  const refused = controlled && irp.requestorMode !== 'kernel' && !qp.pd.ca.hca.gone;
  if (refused) return finish(irp, Status.ACCESS_DENIED);
  const status = modifyQp(qp, mask, attributes);
  return status === Status.SUCCESS ? ciQueryQpState(qp, irp) : finish(irp, status);
}

/** {@link ciModifyQp} for connection management, which moves each queue pair several times: no IRP, at any level. */
export function modifyQp(qp: IbQp, mask: number, attributes: Partial<QpAttributeValues>): number {
  const { native, gone, port } = qp.pd.ca.hca;
  const ends = attributes.state === QpState.ERROR || attributes.state === QpState.RESET;
  if (gone && !ends) return Status.FILE_FORCED_CLOSED;
  const tooLong = (mask & QpMask.pathMtu) !== 0 && (attributes.pathMtu ?? 0) > port.activeMtu;
  if (tooLong) return Status.INVALID_PARAMETER;
  const status = native.modifyQp(qp.handle, mask, attributes);
  if (status !== Status.SUCCESS) return status;
  const reset = (mask & QpMask.state) !== 0 && attributes.state === QpState.RESET;
  qp.given = reset ? 0 : qp.given | mask;
  if ((mask & QpMask.pkeyIndex) !== 0) qp.pkeyIndex = attributes.pkeyIndex ?? 0;
  return status;
}

/**
 * Moves a queue pair in RESET or INIT to RTS, for connection management: no IRP, at any level.
 *
 * @returns As {@link ciModifyQp} of the step that fails; the queue pair remains in the state of that step.
 */
export function connectQp(qp: IbQp, steps: ConnectSteps, attributes: ConnectAttributes): number {
  const { native, gone, port } = qp.pd.ca.hca;
  if (gone) return Status.FILE_FORCED_CLOSED;
  if (attributes.pathMtu > port.activeMtu) return Status.INVALID_PARAMETER;
  const status = native.connectQp(qp.handle, steps, attributes);
  if (status !== Status.SUCCESS) return status;
  qp.given |= QpMask.state | steps.init | steps.rtr | steps.rts;
  qp.pkeyIndex = attributes.pkeyIndex;
  return status;
}

/** Queries the state of a queue pair. @returns SUCCESS (Information: the state), INVALID_HANDLE if the HCA does not have it. */
export function ciQueryQpState(qp: IbQp, irp: Irp): number {
  const state = queryQpState(qp);
  return state < 0 ? finish(irp, Status.INVALID_HANDLE) : finish(irp, Status.SUCCESS, state);
}

/** {@link ciQueryQpState} for connection management: no IRP, at any level. Returns the state, or -1. */
export function queryQpState({ pd, handle }: IbQp): number {
  return pd.ca.hca.native.queryQpState(handle);
}

/** Queries the attributes of a queue pair. @returns SUCCESS (Information: the attributes) or the HCA's status. */
export function ciQueryQp(qp: IbQp, irp: Irp<QpAttributeValues>): number {
  const { status, attributes } = qp.pd.ca.hca.native.queryQp(qp.handle);
  return finish(irp, status, attributes);
}

/** Destroys a queue pair in any state. @returns SUCCESS or the HCA's status. */
export function ciDestroyQp(qp: IbQp, irp: Irp): number {
  const status = qp.pd.ca.hca.native.destroyQp(qp.handle);
  if (status !== Status.SUCCESS) return finish(irp, status);
  qp.pd.ca.hca.registry.qps.delete(qp.handle);
  qp.dispatch = {};
  qp.waits?.cancelAll();
  qp.pd.resources.release();
  qp.sendCq.resources.release();
  qp.receiveCq.resources.release();
  qp.srq?.resources.release();
  qp.srq?.endedUnreported.delete(qp);
  return finish(irp, Status.SUCCESS, 0);
}

/**
 * Passes a MAD to the HCA, which sends it to `path` if this kernel dies while the queue pair is connected. For
 * connection management: no IRP, at any level.
 */
export function setQpDreqOnExit(qp: IbQp, path: PathParameters, mad: Uint8Array): number {
  return qp.pd.ca.hca.native.setDreqOnExit?.(qp.handle, path, mad) ?? Status.SUCCESS;
}
