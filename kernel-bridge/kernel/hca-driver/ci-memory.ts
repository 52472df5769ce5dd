/**
 * IRP-based verbs of the HCA: protection domains, memory regions and memory windows. The rules are those of ci-ca.ts.
 */

import { WvAccess } from '../../ioctl/constants.js';
import { MwProviderOut, PdProviderOut } from '../../ioctl/provider-data.js';
import { Status } from '../../ioctl/status.js';
import type { Irp } from '../io-manager/irp.js';
import { assertPassive } from '../io-manager/irql.js';
import { type CiUdata, finish, type IbCa, IbMr, IbMw, IbPd, outputFits, putOutput } from './ib-objects.js';

/** Native addresses are below this. */
const maxAddress = 2n ** 47n;
/** Access flags that a region may have; NON_CACHABLE is accepted and has no effect on a software HCA. */
const regionAccess =
  WvAccess.REMOTE_READ |
  WvAccess.REMOTE_WRITE |
  WvAccess.REMOTE_ATOMIC |
  WvAccess.LOCAL_WRITE |
  WvAccess.MW_BIND |
  WvAccess.ZERO_BASED |
  WvAccess.REMOTE_VIEW;

/** Smallest size in bytes of a registration that takes too long for DISPATCH_LEVEL, because it accesses each page. */
export const largeRegistration = 1n << 24n;

/**
 * Allocates a protection domain.
 *
 * @returns SUCCESS (Information: the {@link IbPd}), INSUFFICIENT_RESOURCES, BUFFER_TOO_SMALL (provider output),
 * FILE_FORCED_CLOSED.
 */
export function ciAllocatePd(ca: IbCa, udata: CiUdata, irp: Irp<IbPd>): number {
  if (ca.hca.gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (!outputFits(udata, PdProviderOut.size)) return finish(irp, Status.BUFFER_TOO_SMALL);
  const { status, pd: handle } = ca.hca.native.allocatePd();
  if (status !== Status.SUCCESS) return finish(irp, status);
  ca.resources.acquire();
  putOutput(udata, PdProviderOut.encode({ handle }));
  return finish(irp, Status.SUCCESS, new IbPd(ca, handle));
}

/** Frees a protection domain. @returns SUCCESS, DEVICE_BUSY while it has regions, windows or queue pairs. */
export function ciDeallocatePd(pd: IbPd, irp: Irp): number {
  if (pd.resources.users > 0) return finish(irp, Status.DEVICE_BUSY);
  const status = pd.ca.hca.native.deallocatePd(pd.handle);
  if (status === Status.SUCCESS) pd.ca.resources.release();
  return finish(irp, status, 0);
}

/**
 * Registers `length` bytes of pinned memory at `address`. A registration of {@link largeRegistration} or more pends.
 *
 * @param access - WV_ACCESS_*; remote write and atomic need LOCAL_WRITE.
 * @returns SUCCESS (Information: the {@link IbMr}), PENDING, CANCELED, INVALID_BUFFER_SIZE for length 0, INVALID_PARAMETER for other
 *   invalid lengths or flags, ACCESS_VIOLATION for memory that is not pinned, INSUFFICIENT_RESOURCES,
 *   FILE_FORCED_CLOSED.
 */
export function ciRegisterMr(
  pd: IbPd,
  address: bigint,
  length: bigint,
  access: number,
  irp: Irp<IbMr>,
): number {
  const { native, limits, gone } = pd.ca.hca;
  if (gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (length === 0n) return finish(irp, Status.INVALID_BUFFER_SIZE);
  const known = (regionAccess | WvAccess.NON_CACHABLE) >>> 0;
  if ((access & ~known) !== 0 || length > BigInt(limits.maxMrSize))
    return finish(irp, Status.INVALID_PARAMETER);
  if (address >= maxAddress || length > maxAddress - address) return finish(irp, Status.ACCESS_VIOLATION);
  const register = (): number => {
    if (length >= largeRegistration) assertPassive('registering large memory');
    const { status, lkey, rkey } = pd.ca.hca.gone
      ? { status: Status.FILE_FORCED_CLOSED, lkey: 0, rkey: 0 }
      : native.registerMr(pd.handle, Number(address), Number(length), access & regionAccess);
    if (status !== Status.SUCCESS) return finish(irp, status);
    pd.resources.acquire();
    return finish(irp, Status.SUCCESS, new IbMr(pd, lkey, rkey));
  };
  if (length < largeRegistration) return register();
  // The domain must exist until then.
  pd.resources.acquire();
  return pd.ca.hca.work.pend(irp, register, () => pd.resources.release());
}

/**
 * Allocates a region for fast registration of at most `length` bytes (Allocate L_Key, IBA 1 §11.2.8.2). Requests of
 * queue pairs register its memory; until then its key grants no access.
 *
 * @returns SUCCESS (Information: the {@link IbMr}), INVALID_PARAMETER for an invalid length, INSUFFICIENT_RESOURCES,
 * NOT_SUPPORTED, FILE_FORCED_CLOSED.
 */
export function ciAllocateFastRegMr(pd: IbPd, length: bigint, irp: Irp<IbMr>): number {
  const { native, limits, gone } = pd.ca.hca;
  if (gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (native.allocateMr === undefined) return finish(irp, Status.NOT_SUPPORTED);
  if (length < 1n || length > BigInt(limits.maxMrSize)) return finish(irp, Status.INVALID_PARAMETER);
  const { status, lkey } = native.allocateMr(pd.handle, Number(length));
  if (status !== Status.SUCCESS) return finish(irp, status);
  pd.resources.acquire();
  return finish(irp, Status.SUCCESS, new IbMr(pd, lkey, lkey));
}

/** Deregisters a region. @returns SUCCESS, DEVICE_BUSY while windows are bound to it. */
export function ciDeregisterMr(mr: IbMr, irp: Irp): number {
  const status = mr.pd.ca.hca.native.deregisterMr(mr.pd.handle, mr.lkey);
  if (status === Status.SUCCESS) mr.pd.resources.release();
  return finish(irp, status, 0);
}

/**
 * Allocates a memory window (type 2).
 *
 * @returns SUCCESS (Information: the {@link IbMw}), INSUFFICIENT_RESOURCES, BUFFER_TOO_SMALL (provider output),
 * FILE_FORCED_CLOSED.
 */
export function ciAllocateMw(pd: IbPd, udata: CiUdata, irp: Irp<IbMw>): number {
  if (pd.ca.hca.gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (!outputFits(udata, MwProviderOut.size)) return finish(irp, Status.BUFFER_TOO_SMALL);
  const { status, mw: handle, rkey } = pd.ca.hca.native.allocateMw(pd.handle);
  if (status !== Status.SUCCESS) return finish(irp, status);
  pd.resources.acquire();
  putOutput(udata, MwProviderOut.encode({ handle, rkey }));
  return finish(irp, Status.SUCCESS, new IbMw(pd, handle, rkey));
}

/** Frees a memory window and unbinds it. @returns SUCCESS or the HCA's status. */
export function ciDeallocateMw(mw: IbMw, irp: Irp): number {
  const status = mw.pd.ca.hca.native.deallocateMw(mw.handle);
  if (status === Status.SUCCESS) mw.pd.resources.release();
  return finish(irp, status, 0);
}
