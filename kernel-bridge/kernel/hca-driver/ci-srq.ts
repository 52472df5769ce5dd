/**
 * IRP-based verbs of the HCA: shared receive queues (IBA 1 §10.2.9, §11.2.3). The rules are those of ci-ca.ts.
 */
import { type SrqAttributeValues, SrqEventType, SrqMask } from '../../hca/soft-hca-binding.js';
import { SrqProviderIn, SrqProviderOut } from '../../ioctl/provider-data.js';
import { Status } from '../../ioctl/status.js';
import type { Irp } from '../io-manager/irp.js';
import {
  type CiUdata,
  finish,
  type IbPd,
  type IbQp,
  IbSrq,
  type IbSrqDispatch,
  outputFits,
  providerInput,
  putOutput,
  ringAddress,
} from './ib-objects.js';

/** Attributes of a shared receive queue. */
export interface IbSrqAttributes {
  /** Number of receives. */
  maxWr: number;
  /** SGEs of a receive. */
  maxSge: number;
  /** The limit: one event is reported when fewer receives are left; 0: not requested, or already reported. */
  srqLimit: number;
}

/**
 * Creates a shared receive queue with at least `maxWr` receives over the provider's ring, and arms its limit. Callbacks
 * receive `context`; their table and each of its members are optional.
 *
 * @returns SUCCESS (Information: the {@link IbSrq}), INVALID_PARAMETER for 0 receives, a limit above them or a ring of
 * the wrong size, INSUFFICIENT_RESOURCES above the HCA's limits, BUFFER_TOO_SMALL (provider data), FILE_FORCED_CLOSED.
 */
export function ciCreateSrq<C>(
  pd: IbPd,
  request: IbSrqAttributes,
  context: C,
  dispatch: IbSrqDispatch<C> | undefined,
  udata: CiUdata,
  irp: Irp<IbSrq>,
): number {
  const { native, limits, gone, registry } = pd.ca.hca;
  if (gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  const ring = providerInput(udata, SrqProviderIn);
  if (!ring || !outputFits(udata, SrqProviderOut.size)) return finish(irp, Status.BUFFER_TOO_SMALL);
  const { maxWr, maxSge, srqLimit } = request;
  if (maxWr === 0) return finish(irp, Status.INVALID_PARAMETER);
  if (maxWr > limits.maxSrqWr || maxSge > limits.maxSrqSge) return finish(irp, Status.INSUFFICIENT_RESOURCES);
  if (ring.entries < maxWr || srqLimit > ring.entries) return finish(irp, Status.INVALID_PARAMETER);
  const { status, srq: handle } = native.createSrq({
    pd: pd.handle,
    ringAddress: ringAddress(ring.ringAddress),
    ringBytes: ring.ringBytes,
    entries: ring.entries,
    stride: ring.stride,
    sge: maxSge,
  });
  if (status !== Status.SUCCESS) return finish(irp, status);
  const srq = new IbSrq(pd, handle, ring.entries, maxSge, context, dispatch ?? {});
  // The queue is recorded before the limit is armed, because an empty queue is below any limit, and the event must find
  // its queue.
  registry.srqs.set(handle, srq);
  const armed =
    srqLimit === 0 ? Status.SUCCESS : native.modifySrq(handle, SrqMask.limit, { limit: srqLimit });
  if (armed !== Status.SUCCESS) {
    registry.srqs.delete(handle);
    native.destroySrq(handle);
    return finish(irp, armed);
  }
  pd.resources.acquire();
  putOutput(udata, SrqProviderOut.encode({ handle }));
  return finish(irp, Status.SUCCESS, srq);
}

/**
 * Modifies the size and the limit of a shared receive queue; both are always set. A larger size needs a new ring of the
 * provider, to which the posted receives are moved; without one the size is unchanged and must be sufficient. A limit
 * above 0 is armed again: if fewer receives are already left, its event follows immediately.
 *
 * @returns SUCCESS, BUFFER_OVERFLOW (the posted receives do not fit into the new ring), INVALID_PARAMETER, and the
 * others of {@link ciCreateSrq}. On failure nothing has changed.
 */
export function ciModifySrq(
  srq: IbSrq,
  { maxWr, srqLimit }: Pick<IbSrqAttributes, 'maxWr' | 'srqLimit'>,
  udata: CiUdata,
  irp: Irp,
): number {
  const { native, limits, gone } = srq.pd.ca.hca;
  if (gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  const ring = udata.input.length === 0 ? undefined : providerInput(udata, SrqProviderIn);
  const moves = udata.input.length > 0;
  if ((moves && !ring) || !outputFits(udata, SrqProviderOut.size))
    return finish(irp, Status.BUFFER_TOO_SMALL);
  if (maxWr === 0) return finish(irp, Status.INVALID_PARAMETER);
  if (maxWr > limits.maxSrqWr) return finish(irp, Status.INSUFFICIENT_RESOURCES);
  const entries = ring?.entries ?? srq.maxWr;
  if (entries < maxWr || srqLimit > entries) return finish(irp, Status.INVALID_PARAMETER);
  const attributes: Partial<SrqAttributeValues> = { limit: srqLimit };
  if (ring) {
    attributes.entries = ring.entries;
    attributes.ringAddress = ringAddress(ring.ringAddress);
    attributes.ringBytes = ring.ringBytes;
  }
  const status = native.modifySrq(
    srq.handle,
    ring ? SrqMask.entries | SrqMask.limit : SrqMask.limit,
    attributes,
  );
  if (status !== Status.SUCCESS) return finish(irp, status);
  srq.maxWr = entries;
  // The old limit's event is void: if the new limit is already reached, its event follows.
  srq.limitUnreported = false;
  putOutput(udata, SrqProviderOut.encode({ handle: srq.handle }));
  return finish(irp, Status.SUCCESS, 0);
}

/** Queries size and limit of a shared receive queue. @returns SUCCESS (Information: the attributes) or the HCA's status. */
export function ciQuerySrq(srq: IbSrq, irp: Irp<IbSrqAttributes>): number {
  const { status, entries, limit, sge } = srq.pd.ca.hca.native.querySrq(srq.handle);
  return finish(irp, status, { maxWr: entries, maxSge: sge, srqLimit: limit });
}

/**
 * Destroys a shared receive queue; its receives never complete. Its event requests complete with CANCELED.
 *
 * @returns SUCCESS, DEVICE_BUSY while queue pairs use it.
 */
export function ciDestroySrq(srq: IbSrq, irp: Irp): number {
  if (srq.resources.users > 0) return finish(irp, Status.DEVICE_BUSY);
  const status = srq.pd.ca.hca.native.destroySrq(srq.handle);
  if (status !== Status.SUCCESS) return finish(irp, status);
  srq.waits.cancelAll();
  srq.pd.ca.hca.registry.srqs.delete(srq.handle);
  srq.pd.resources.release();
  return finish(irp, Status.SUCCESS, 0);
}

/**
 * Waits for an event of a shared receive queue. Any number of requests may be pending; an event completes all of them.
 * An event without a request is stored for the next one, once for each kind.
 *
 * @returns PENDING; completes with ALERTED (fewer receives are left than the limit), NOTIFY_CLEANUP (a queue pair in
 * ERROR consumes no more receives), UNEXPECTED_IO_ERROR (the queue has failed permanently), CANCELED, DEVICE_REMOVED,
 * FILE_FORCED_CLOSED. INVALID_HANDLE for a destroyed queue.
 */
export function ciGetSrqEvent(srq: IbSrq, irp: Irp): number {
  const { gone, unplugged, registry } = srq.pd.ca.hca;
  if (registry.srqs.get(srq.handle) !== srq) return finish(irp, Status.INVALID_HANDLE);
  if (gone) return finish(irp, unplugged ? Status.DEVICE_REMOVED : Status.FILE_FORCED_CLOSED);
  const status = srq.waits.insert(irp, undefined);
  report(srq);
  return status;
}

/** Completes all event requests of a shared receive queue with CANCELED. */
export function ciCancelSrqEvents(srq: IbSrq): void {
  srq.waits.cancelAll();
}

function report(srq: IbSrq): void {
  if (srq.waits.size === 0) return;
  if (srq.broken) srq.waits.completeAll(Status.UNEXPECTED_IO_ERROR);
  else if (srq.limitUnreported) {
    srq.limitUnreported = false;
    srq.waits.completeAll(Status.ALERTED);
  } else if (srq.endedUnreported.size > 0) {
    srq.endedUnreported.clear();
    srq.waits.completeAll(Status.NOTIFY_CLEANUP);
  }
}

/** Handles an event of the HCA for a shared receive queue; `event` as in SrqEventType. */
export function raiseSrqEvent(srq: IbSrq, event: number): void {
  const { context, dispatch } = srq;
  if (event === SrqEventType.limit) {
    const waiting = srq.waits.size > 0;
    srq.limitUnreported = waiting || dispatch.limitEvent === undefined;
    if (dispatch.limitEvent) srq.pd.ca.al.callBack(() => dispatch.limitEvent?.(srq, context));
  } else {
    srq.broken = true;
    if (dispatch.asyncEvent) srq.pd.ca.al.callBack(() => dispatch.asyncEvent?.(srq, context, event));
  }
  report(srq);
}

/**
 * Reports that a queue pair is in ERROR and no longer consumes receives from its shared receive queue (IBA 1
 * §11.6.3.4).
 */
export function raiseLastWqe(srq: IbSrq, qp: IbQp): void {
  const { context, dispatch } = srq;
  if (srq.waits.size > 0 || !dispatch.lastWqeEvent) srq.endedUnreported.add(qp);
  if (dispatch.lastWqeEvent) srq.pd.ca.al.callBack(() => dispatch.lastWqeEvent?.(srq, context, qp));
  report(srq);
}
