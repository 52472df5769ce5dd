/**
 * IRP-based verbs of the HCA: address handles and multicast groups, for UD queue pairs. The rules are those of ci-ca.ts.
 */
import { QpType } from '../../ioctl/constants.js';
import { AvProviderOut } from '../../ioctl/provider-data.js';
import { Status } from '../../ioctl/status.js';
import type { Irp } from '../io-manager/irp.js';
import { assertPassive } from '../io-manager/irql.js';
import { type IbAddressVector, isMulticast, pathOfAv, sameGid } from './hca-ports.js';
import {
  type CiUdata,
  finish,
  IbAv,
  type IbMcast,
  type IbPd,
  type IbQp,
  outputFits,
  putOutput,
} from './ib-objects.js';

/**
 * Creates an address handle, the destination in a datagram's work request. Datagrams sent with it are limited to the
 * port's active MTU at the time of creation.
 *
 * @returns SUCCESS (Information: the {@link IbAv}), INVALID_PARAMETER without a network route, INVALID_PORT_HANDLE,
 * INVALID_ADDRESS for GIDs that are missing, not the port's, or of two families, INSUFFICIENT_RESOURCES,
 * BUFFER_TOO_SMALL (provider output), FILE_FORCED_CLOSED.
 */
export function ciCreateAv(pd: IbPd, av: IbAddressVector, udata: CiUdata, irp: Irp<IbAv>): number {
  const { native, port, gone } = pd.ca.hca;
  if (gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (!outputFits(udata, AvProviderOut.size)) return finish(irp, Status.BUFFER_TOO_SMALL);
  if (av.portNumber !== 1) return finish(irp, Status.INVALID_PORT_HANDLE);
  const found = pathOfAv(port, av);
  if ('status' in found) return finish(irp, found.status);
  const { status, ah: handle } = native.createAh(pd.handle, found.path, port.activeMtu);
  if (status !== Status.SUCCESS) return finish(irp, status);
  pd.resources.acquire();
  putOutput(udata, AvProviderOut.encode({ handle }));
  return finish(irp, Status.SUCCESS, new IbAv(pd, handle, av));
}

/** The address vector of an address handle. @returns SUCCESS (Information: the vector), FILE_FORCED_CLOSED. */
export function ciQueryAv(av: IbAv, irp: Irp<IbAddressVector>): number {
  if (av.pd.ca.hca.gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  return finish(irp, Status.SUCCESS, av.attributes);
}

/** Destroys an address handle. Posted datagrams that have not been sent fail. @returns SUCCESS or the HCA's status. */
export function ciDestroyAv(av: IbAv, irp: Irp): number {
  const status = av.pd.ca.hca.native.destroyAh(av.handle);
  if (status === Status.SUCCESS) av.pd.resources.release();
  return finish(irp, status, 0);
}

function indexOfGroup(qp: IbQp, gid: Uint8Array): number {
  return qp.groups.findIndex((one) => sameGid(one.gid, gid));
}

/**
 * Attaches a UD queue pair to a multicast group: it receives a copy of every datagram to the group that arrives at the
 * HCA's interface with its Q_Key. The request pends while the interface joins the group (IGMP, MLD).
 *
 * @param lid - ignored on RoCE, but {@link ciDetachMcast} must pass the same.
 * @returns PENDING; completes with SUCCESS, CANCELED, INVALID_HANDLE for a queue pair destroyed in the meantime.
 * NOT_SUPPORTED for one that is not UD, INVALID_ADDRESS for a GID that is not a group, ADDRESS_ALREADY_EXISTS if it is
 * already attached, NETWORK_UNREACHABLE if the interface cannot join, INSUFFICIENT_RESOURCES if the HCA (MaxMulticast,
 * MaxQpAttach, MaxMulticastQp) or the host allows no more groups, FILE_FORCED_CLOSED.
 */
export function ciAttachMcast(qp: IbQp, gid: Uint8Array, lid: number, irp: Irp): number {
  const { hca } = qp.pd.ca;
  if (hca.gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (qp.create.type !== QpType.UD) return finish(irp, Status.NOT_SUPPORTED);
  if (!isMulticast(gid)) return finish(irp, Status.INVALID_ADDRESS);
  const group: IbMcast = { gid: gid.slice(), lid, interfaceIndex: hca.port.interfaceIndex };
  return hca.work.pend(irp, () => finish(irp, attach(qp, group), 0));
}

/** Joins the group. The queue pair may have been destroyed in the meantime, or attached by another request. */
function attach(qp: IbQp, group: IbMcast): number {
  assertPassive('joining a multicast group');
  const { hca } = qp.pd.ca;
  if (hca.gone) return Status.FILE_FORCED_CLOSED;
  if (hca.registry.qps.get(qp.handle) !== qp) return Status.INVALID_HANDLE;
  if (indexOfGroup(qp, group.gid) >= 0) return Status.ADDRESS_ALREADY_EXISTS;
  const status = hca.native.attachMulticast(qp.handle, group.gid, group.interfaceIndex);
  if (status === Status.SUCCESS) qp.groups = [...qp.groups, group];
  return status;
}

/** Reverses {@link ciAttachMcast}. @returns SUCCESS, NOT_FOUND if the queue pair is not attached with this GID and LID. */
export function ciDetachMcast(qp: IbQp, gid: Uint8Array, lid: number, irp: Irp): number {
  const index = indexOfGroup(qp, gid);
  const group = qp.groups[index];
  if (group?.lid !== lid) return finish(irp, Status.NOT_FOUND);
  const status = qp.pd.ca.hca.native.detachMulticast(qp.handle, group.gid, group.interfaceIndex);
  if (status === Status.SUCCESS) qp.groups = qp.groups.filter((one) => one !== group);
  return finish(irp, status, 0);
}
