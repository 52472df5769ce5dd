/**
 * Events of an HCA instance and of queue pairs, reported by request or by callback. Source: IRP-based verbs RFC (2005),
 * CiGetCaFatalEvent and CiGetCaPortEvent. Any number of requests may be pending; an event completes the oldest. Events
 * without a request are stored individually and in order for later requests.
 */
import { Status } from '../../ioctl/status.js';
import { type Irp, IrpQueue } from '../io-manager/irp.js';
import { finish, type Hca, type IbCa, type IbQp } from './ib-objects.js';

/** Maximum number of stored events of one object; beyond it the oldest are dropped. */
const maxUnreported = 64;

function store(unreported: number[], event: number): void {
  unreported.push(event);
  if (unreported.length > maxUnreported) unreported.shift();
}

/**
 * Waits for the HCA's fatal error.
 *
 * @returns PENDING; completes with SUCCESS (close the instance), CANCELED (also when the instance is closed), DEVICE_REMOVED.
 */
export function ciGetCaFatalEvent(ca: IbCa, irp: Irp): number {
  const refused = refusal(ca);
  if (refused !== undefined) return finish(irp, refused);
  ca.fatalWaits.insert(irp, undefined);
  reportFatal(ca);
  return Status.PENDING;
}

/**
 * Waits for a change of a port.
 *
 * @returns PENDING; completes with SUCCESS (Information is the event, one WV_EVENT_* value), CANCELED (also when the instance is closed),
 * DEVICE_REMOVED. INVALID_PORT_HANDLE for a port that does not exist.
 */
export function ciGetCaPortEvent(ca: IbCa, portNumber: number, irp: Irp): number {
  const refused = refusal(ca) ?? (portNumber === 1 ? undefined : Status.INVALID_PORT_HANDLE);
  if (refused !== undefined) return finish(irp, refused);
  ca.portWaits.insert(irp, undefined);
  reportPort(ca);
  return Status.PENDING;
}

function refusal(ca: IbCa): number | undefined {
  if (ca.closed) return Status.CANCELED;
  return ca.hca.unplugged ? Status.DEVICE_REMOVED : undefined;
}

function reportFatal(ca: IbCa): void {
  if (!ca.fatalUnreported) return;
  const waiting = ca.fatalWaits.removeFirst();
  if (!waiting) return;
  ca.fatalUnreported = false;
  waiting.irp.complete(Status.SUCCESS, 0);
}

function reportPort(ca: IbCa): void {
  if (ca.portUnreported.length === 0) return;
  const waiting = ca.portWaits.removeFirst();
  if (waiting) waiting.irp.complete(Status.SUCCESS, ca.portUnreported.shift()!);
}

/** Reports the failure of an instance's HCA to its callback, or to one request. */
export function raiseFatalEvent(ca: IbCa): void {
  ca.fatalUnreported = true;
  reportFatal(ca);
  if (!ca.dispatch.fatalEvent) return;
  ca.fatalUnreported = false;
  ca.al.callBack(() => ca.dispatch.fatalEvent?.(ca, ca.context));
}

/**
 * Reports a change of an instance's port to its callback, and to one request. `event` is one WV_EVENT_* value: two simultaneous changes are
 * two events.
 */
export function raisePortEvent(ca: IbCa, event: number): void {
  store(ca.portUnreported, event);
  reportPort(ca);
  if (!ca.dispatch.portEvent) return;
  ca.portUnreported.length = 0;
  ca.al.callBack(() => ca.dispatch.portEvent?.(ca, ca.context, 1, event));
}

/**
 * Reports a change of an HCA's port: each instance receives each event, whatever clients of other instances do.
 *
 * @param flags - One or more WV_EVENT_* values.
 */
export function raisePortEvents(hca: Hca, flags: number): void {
  for (let event = 1; event <= flags; event *= 2) {
    if ((flags & event) === 0) continue;
    for (const ca of [...hca.instances]) ca.al.contain(() => raisePortEvent(ca, event));
  }
}

/**
 * Waits for an event of a queue pair. A queue pair with a callback stores no events.
 *
 * @returns PENDING; completes with SUCCESS (Information is the event, as in QpEventType), CANCELED (also when the queue pair is destroyed),
 * DEVICE_REMOVED, FILE_FORCED_CLOSED. INVALID_HANDLE for a destroyed queue pair.
 */
export function ciGetQpEvent(qp: IbQp, irp: Irp): number {
  const { gone, unplugged, registry } = qp.pd.ca.hca;
  if (registry.qps.get(qp.handle) !== qp) return finish(irp, Status.INVALID_HANDLE);
  if (gone) return finish(irp, unplugged ? Status.DEVICE_REMOVED : Status.FILE_FORCED_CLOSED);
  qp.waits ??= new IrpQueue();
  qp.waits.insert(irp, undefined);
  reportQp(qp);
  return Status.PENDING;
}

/** Cancels all event requests of a queue pair. */
export function ciCancelQpEvents(qp: IbQp): void {
  qp.waits?.cancelAll();
}

function reportQp({ waits, unreported }: IbQp): void {
  if (!unreported || unreported.length === 0) return;
  const waiting = waits?.removeFirst();
  if (waiting) waiting.irp.complete(Status.SUCCESS, unreported.shift()!);
}

/** Reports an event of the HCA for a queue pair to its callback, and to one request. */
export function raiseQpEvent(qp: IbQp, event: number, reason: number): void {
  const called = qp.dispatch.asyncEvent !== undefined;
  if (!called || (qp.waits?.size ?? 0) > 0) {
    qp.unreported ??= [];
    store(qp.unreported, event);
    reportQp(qp);
  }
  if (called) qp.pd.ca.al.callBack(() => qp.dispatch.asyncEvent?.(qp, qp.context, event, reason));
}

/** Cancels all event requests of an instance. */
export function ciCancelCaEvents(ca: IbCa): void {
  ca.fatalWaits.cancelAll();
  ca.portWaits.cancelAll();
}

/** Ends all event requests of an instance. */
export function endCaEvents(ca: IbCa, status: number): void {
  ca.fatalWaits.completeAll(status);
  ca.portWaits.completeAll(status);
}
