/**
 * Events of an HCA instance, by request or by call-back. Source: IRP-based verbs RFC (2005), CiGetCaFatalEvent and
 * CiGetCaPortEvent. Any number of requests may wait; an event completes the oldest. Events without a request are stored
 * for the next one.
 */
import { Status } from '../../ioctl/status.js';
import type { Irp } from '../io-manager/irp.js';
import { finish, type IbCa } from './objects.js';

/**
 * Waits for the HCA's fatal error.
 *
 * @returns PENDING; ends in SUCCESS (close the instance), CANCELLED (also when the instance is closed), DEVICE_REMOVED.
 */
export function ciGetCaFatalEvent(ca: IbCa, irp: Irp): number {
  const refused = refusal(ca);
  if (refused !== undefined) return finish(irp, refused);
  ca.fatalWaits.insert(irp, undefined);
  tellFatal(ca);
  return Status.PENDING;
}

/**
 * Waits for a change of a port.
 *
 * @returns PENDING; ends in SUCCESS (Information: the event, WV_EVENT_* flags), CANCELLED (also when the instance is
 * closed), DEVICE_REMOVED. INVALID_PORT_HANDLE for a port that is not there.
 */
export function ciGetCaPortEvent(ca: IbCa, portNumber: number, irp: Irp): number {
  const refused = refusal(ca) ?? (portNumber === 1 ? undefined : Status.INVALID_PORT_HANDLE);
  if (refused !== undefined) return finish(irp, refused);
  ca.portWaits.insert(irp, undefined);
  tellPort(ca);
  return Status.PENDING;
}

function refusal(ca: IbCa): number | undefined {
  if (ca.closed) return Status.CANCELLED;
  return ca.hca.unplugged ? Status.DEVICE_REMOVED : undefined;
}

function tellFatal(ca: IbCa): void {
  if (!ca.fatalUntold) return;
  const waiting = ca.fatalWaits.removeFirst();
  if (!waiting) return;
  ca.fatalUntold = false;
  waiting.irp.complete(Status.SUCCESS, 0);
}

function tellPort(ca: IbCa): void {
  if (ca.portUntold === 0) return;
  const waiting = ca.portWaits.removeFirst();
  if (!waiting) return;
  const event = ca.portUntold;
  ca.portUntold = 0;
  waiting.irp.complete(Status.SUCCESS, event);
}

/** The HCA of an instance has failed: reports it to its call-back, or to one request. */
export function raiseFatalEvent(ca: IbCa): void {
  ca.fatalUntold = true;
  tellFatal(ca);
  if (!ca.dispatch.fatalEvent) return;
  ca.fatalUntold = false;
  ca.dispatch.fatalEvent(ca);
}

/** The port of an instance has changed: reports it to its call-back, and to one request. `flags` WV_EVENT_*. */
export function raisePortEvent(ca: IbCa, flags: number): void {
  ca.portUntold |= flags;
  tellPort(ca);
  if (!ca.dispatch.portEvent) return;
  ca.portUntold = 0;
  ca.dispatch.portEvent(ca, 1, flags);
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
