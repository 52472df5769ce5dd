/**
 * IRP-based verbs of the HCA: channel adapter, protection domains, memory. Source: IRP-based verbs RFC (2005).
 *
 * Every verb takes an IRP and completes it, or returns PENDING and completes it later; none blocks, so all may be
 * called at DISPATCH_LEVEL. What is made comes back in IoStatus.Information. Destroys answer DEVICE_BUSY while
 * others use the object; nothing is destroyed in cascade. Verbs other than closes and destroys answer
 * FILE_FORCED_CLOSED when the HCA is gone.
 */

import {
  AtomicCapability,
  DeviceType,
  PortTransport,
  WvAccess,
  WvCapability,
} from '../../ioctl/constants.js';
import type { Input } from '../../ioctl/layout.js';
import { CaProviderOut, MwProviderOut, PdProviderOut } from '../../ioctl/provider-data.js';
import { Status } from '../../ioctl/status.js';
import type { WvIoDeviceAttributes, WvIoPortAttributes } from '../../ioctl/structs.js';
import type { DeviceObject } from '../io-manager/device.js';
import type { Irp } from '../io-manager/irp.js';
import {
  type CiUdata,
  finish,
  type Hca,
  IbCa,
  type IbCaDispatch,
  IbMr,
  IbMw,
  IbPd,
  outputFits,
  putOutput,
} from './objects.js';
import { pkeyTable } from './ports.js';

/** The largest number a native address can be. */
const maxAddress = 2n ** 47n;
/** Bytes of one message (IBA 1 §9.7.7: 2^31). */
const maxMessageSize = 0x8000_0000;
/** Access flags a region may have; NON_CACHABLE is taken and has no effect on a software HCA. */
const regionAccess =
  WvAccess.REMOTE_READ |
  WvAccess.REMOTE_WRITE |
  WvAccess.REMOTE_ATOMIC |
  WvAccess.LOCAL_WRITE |
  WvAccess.MW_BIND;

/** Attributes of an HCA as DEVICE_QUERY carries them. */
export type IbCaAttributes = Input<typeof WvIoDeviceAttributes>;
/** Attributes of a port as DEVICE_PORT_QUERY carries them. */
export type IbPortAttributes = Input<typeof WvIoPortAttributes>;

/**
 * Opens an instance of an HCA. Takes a reference on its device object until the instance is closed.
 *
 * @returns SUCCESS (Information: the {@link IbCa}), DEVICE_REMOVED, BUFFER_TOO_SMALL (provider output).
 */
export function ciOpenCa(
  device: DeviceObject<Hca>,
  dispatch: IbCaDispatch,
  udata: CiUdata,
  irp: Irp<IbCa>,
): number {
  const { limits, removed, instances } = device.extension;
  if (removed || device.references.ending) return finish(irp, Status.DEVICE_REMOVED);
  if (!outputFits(udata, CaProviderOut.size)) return finish(irp, Status.BUFFER_TOO_SMALL);
  device.references.acquire();
  const ca = new IbCa(device, dispatch);
  instances.add(ca);
  const { maxSge, maxInline, maxQpWr, maxCqEntries } = limits;
  putOutput(udata, CaProviderOut.encode({ maxSge, maxInline, maxQpWr, maxCqEntries }));
  return finish(irp, Status.SUCCESS, ca);
}

/**
 * Closes an instance.
 *
 * @returns SUCCESS, DEVICE_BUSY while objects made from it live.
 */
export function ciCloseCa(ca: IbCa, irp: Irp): number {
  if (ca.resources.users > 0) return finish(irp, Status.DEVICE_BUSY);
  if (!ca.closed) {
    ca.closed = true;
    ca.hca.instances.delete(ca);
    ca.device.references.release();
  }
  return finish(irp, Status.SUCCESS, 0);
}

/** Attributes of an HCA. @returns SUCCESS (Information: the attributes), FILE_FORCED_CLOSED. */
export function ciQueryCa(ca: IbCa, irp: Irp<IbCaAttributes>): number {
  if (ca.hca.removed) return finish(irp, Status.FILE_FORCED_CLOSED);
  const { limits, guid } = ca.hca;
  return finish(irp, Status.SUCCESS, {
    fwVersion: 1n,
    nodeGuid: guid,
    systemImageGuid: guid,
    capabilityFlags:
      WvCapability.RC_RNR_NAK_GENERATION | WvCapability.PORT_ACTIVE_EVENT | WvCapability.SYSTEM_IMAGE_GUID,
    atomicCapability: AtomicCapability.DEVICE,
    pageSizeCapabilityFlags: 0x1000,
    maxMrSize: BigInt(limits.maxMrSize),
    maxQp: limits.maxQp,
    maxQpWr: limits.maxQpWr,
    maxSge: limits.maxSge,
    maxCq: limits.maxCq,
    maxCqEntries: limits.maxCqEntries,
    maxMr: limits.maxMr,
    maxPd: limits.maxPd,
    maxQpResponderResources: limits.maxReadDepth,
    maxResponderResources: Math.min(limits.maxReadDepth * limits.maxQp, 0xffff_ffff),
    maxQpInitiatorDepth: limits.maxReadDepth,
    maxInlineSend: limits.maxInline,
    maxMw: limits.maxMw,
    maxPkeys: pkeyTable.length,
    deviceType: DeviceType.INFINIBAND,
    localAckDelay: 15,
    physPortCount: 1,
  });
}

/** Attributes of a port. @returns SUCCESS (Information: the attributes), INVALID_PORT_HANDLE, FILE_FORCED_CLOSED. */
export function ciQueryPort(ca: IbCa, portNumber: number, irp: Irp<IbPortAttributes>): number {
  if (ca.hca.removed) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (portNumber !== 1) return finish(irp, Status.INVALID_PORT_HANDLE);
  const { port } = ca.hca;
  return finish(irp, Status.SUCCESS, {
    portCabilityFlags:
      WvCapability.QP_STATE_MODIFIER | WvCapability.RC_RNR_NAK_GENERATION | WvCapability.SYSTEM_IMAGE_GUID,
    state: port.state,
    maxMtu: 4096,
    activeMtu: port.activeMtu,
    gidTableLength: port.gids.length,
    maxMessageSize,
    pkeyTableLength: pkeyTable.length,
    maxVls: 1,
    activeWidth: 2,
    activeSpeed: 4,
    // 5 is LinkUp, 3 is Disabled (IBA 1 §14.2.5.6).
    physicalState: port.state === 4 ? 5 : 3,
    transport: PortTransport.RDMAOE,
  });
}

/** A port's GID table, 16 bytes each. @returns SUCCESS (Information: the GIDs), INVALID_PORT_HANDLE, FILE_FORCED_CLOSED. */
export function ciQueryGids(ca: IbCa, portNumber: number, irp: Irp<readonly Uint8Array[]>): number {
  if (ca.hca.removed) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (portNumber !== 1) return finish(irp, Status.INVALID_PORT_HANDLE);
  return finish(irp, Status.SUCCESS, ca.hca.port.gids);
}

/** A port's P_Key table. @returns SUCCESS (Information: the P_Keys), INVALID_PORT_HANDLE, FILE_FORCED_CLOSED. */
export function ciQueryPkeys(ca: IbCa, portNumber: number, irp: Irp<readonly number[]>): number {
  if (ca.hca.removed) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (portNumber !== 1) return finish(irp, Status.INVALID_PORT_HANDLE);
  return finish(irp, Status.SUCCESS, pkeyTable);
}

/**
 * Allocates a protection domain.
 *
 * @returns SUCCESS (Information: the {@link IbPd}), INSUFFICIENT_RESOURCES, BUFFER_TOO_SMALL (provider output),
 * FILE_FORCED_CLOSED.
 */
export function ciAllocatePd(ca: IbCa, udata: CiUdata, irp: Irp<IbPd>): number {
  if (ca.hca.removed) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (!outputFits(udata, PdProviderOut.size)) return finish(irp, Status.BUFFER_TOO_SMALL);
  const { status, pd: handle } = ca.hca.native.allocatePd();
  if (status !== Status.SUCCESS) return finish(irp, status);
  ca.resources.acquire();
  putOutput(udata, PdProviderOut.encode({ handle }));
  return finish(irp, Status.SUCCESS, new IbPd(ca, handle));
}

/** Frees a protection domain. @returns SUCCESS, DEVICE_BUSY while regions, windows or queue pairs are in it. */
export function ciDeallocatePd(pd: IbPd, irp: Irp): number {
  if (pd.resources.users > 0) return finish(irp, Status.DEVICE_BUSY);
  const status = pd.ca.hca.native.deallocatePd(pd.handle);
  if (status === Status.SUCCESS) pd.ca.resources.release();
  return finish(irp, status, 0);
}

/**
 * Registers `length` bytes of pinned memory at `address`.
 *
 * @param access - WV_ACCESS_*; remote write and atomic need LOCAL_WRITE.
 * @returns SUCCESS (Information: the {@link IbMr}), INVALID_BUFFER_SIZE for length 0, INVALID_PARAMETER for other
 * lengths or flags that cannot be, ACCESS_VIOLATION for memory that is not pinned, INSUFFICIENT_RESOURCES,
 * FILE_FORCED_CLOSED.
 */
export function ciRegisterMr(
  pd: IbPd,
  address: bigint,
  length: bigint,
  access: number,
  irp: Irp<IbMr>,
): number {
  const { native, limits, removed } = pd.ca.hca;
  if (removed) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (length === 0n) return finish(irp, Status.INVALID_BUFFER_SIZE);
  const known = (regionAccess | WvAccess.NON_CACHABLE) >>> 0;
  if ((access & ~known) !== 0 || length > BigInt(limits.maxMrSize))
    return finish(irp, Status.INVALID_PARAMETER);
  if (address >= maxAddress || length > maxAddress - address) return finish(irp, Status.ACCESS_VIOLATION);
  const { status, lkey, rkey } = native.registerMr(
    pd.handle,
    Number(address),
    Number(length),
    access & regionAccess,
  );
  if (status !== Status.SUCCESS) return finish(irp, status);
  pd.resources.acquire();
  return finish(irp, Status.SUCCESS, new IbMr(pd, lkey, rkey));
}

/** Ends a registration. @returns SUCCESS, DEVICE_BUSY while windows are bound to it. */
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
  if (pd.ca.hca.removed) return finish(irp, Status.FILE_FORCED_CLOSED);
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
