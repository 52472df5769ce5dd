/**
 * IRP-based verbs of the HCA: opening and closing its instances. Source: IRP-based verbs RFC (2005). The other ci-
 * files have the verbs for the objects of an instance.
 *
 * Every verb takes an IRP and completes it, or returns PENDING and completes it later; none blocks, so all may be
 * called at DISPATCH_LEVEL. New objects are returned in IoStatus.Information. Verbs that destroy an object return
 * DEVICE_BUSY while other objects use it; nothing is destroyed in cascade. When the HCA is gone, all verbs except those
 * that close or destroy objects return FILE_FORCED_CLOSED.
 */

import { WvEvent } from '../../ioctl/constants.js';
import { CaProviderOut, PROVIDER_ABI } from '../../ioctl/provider-data.js';
import { Status } from '../../ioctl/status.js';
import type { DeviceObject } from '../io-manager/device-object.js';
import type { Irp } from '../io-manager/irp.js';
import type { IbAl } from './al.js';
import { endCaEvents, raisePortEvents } from './ci-events.js';
import {
  type CiUdata,
  finish,
  type Hca,
  IbCa,
  type IbCaDispatch,
  outputFits,
  putOutput,
} from './ib-objects.js';

/**
 * Opens an instance of an HCA. References its device object, and the client's, until the instance is closed. Callbacks
 * are kernel code: an IOCTL's buffer cannot contain one, in either mode.
 *
 * @param context - The client's value, passed to its callbacks.
 * @param dispatch - Its callbacks; the table and each of its members are optional.
 * @param udata - Its command is the version of the provider's structures and rings ({@link PROVIDER_ABI}), its status
 * the driver's.
 * @returns SUCCESS (Information: the {@link IbCa}), DEVICE_REMOVED, BUFFER_TOO_SMALL (provider output), NOT_SUPPORTED
 * (a provider with another {@link PROVIDER_ABI}), FILE_FORCED_CLOSED while instances from before a fatal error are
 * open, INVALID_HANDLE after {@link ibCloseAl}.
 */
export function ciOpenCa<C>(
  al: IbAl,
  device: DeviceObject<Hca>,
  context: C,
  dispatch: IbCaDispatch<C> | undefined,
  udata: CiUdata,
  irp: Irp<IbCa>,
): number {
  const { limits, gone, instances } = device.extension;
  if (al.closed) return finish(irp, Status.INVALID_HANDLE);
  if (device.references.ending) return finish(irp, Status.DEVICE_REMOVED);
  if (gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (!outputFits(udata, CaProviderOut.size)) return finish(irp, Status.BUFFER_TOO_SMALL);
  const { command = 0 } = udata;
  if (command !== 0 && command !== PROVIDER_ABI) return finish(irp, Status.NOT_SUPPORTED);
  device.references.acquire();
  al.resources.acquire();
  const ca = new IbCa(al, device, context, dispatch ?? {});
  instances.add(ca);
  udata.status = PROVIDER_ABI;
  putOutput(udata, CaProviderOut.encode(limits));
  return finish(irp, Status.SUCCESS, ca);
}

/**
 * Closes an instance. Its event requests complete with CANCELED before this returns, and its port capabilities are
 * released.
 *
 * @returns SUCCESS, DEVICE_BUSY while objects created from it exist.
 */
export function ciCloseCa(ca: IbCa, irp: Irp): number {
  if (ca.resources.users > 0) return finish(irp, Status.DEVICE_BUSY);
  if (!ca.closed) {
    ca.closed = true;
    endCaEvents(ca, Status.CANCELED);
    if (ca.hca.release(ca)) raisePortEvents(ca.hca, WvEvent.MANAGEMENT);
    ca.device.references.release();
    ca.al.resources.release();
  }
  return finish(irp, Status.SUCCESS, 0);
}
