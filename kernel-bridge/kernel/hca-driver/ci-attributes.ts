/**
 * Querying and modifying attributes of an HCA and its port. Source: IRP-based verbs RFC (2005), CiQueryCa, CiQueryPort,
 * CiModifyCa and CiModifyPort.
 */

import { PortState, WvEvent } from '../../ioctl/constants.js';
import { IbCaAttr, IbPortAttr, ModifyCaFlag, ModifyPortFlag, PortCapability } from '../../ioctl/hca-file.js';
import type { Input } from '../../ioctl/layout.js';
import { Status } from '../../ioctl/status.js';
import {
  WvGidList,
  type WvIoDeviceAttributes,
  type WvIoPortAttributes,
  WvPkeyList,
} from '../../ioctl/structs.js';
import type { Irp } from '../io-manager/irp.js';
import { raisePortEvents } from './ci-events.js';
import { finish, type Hca, type IbCa } from './ib-objects.js';

/** Attributes of an HCA, as in DEVICE_QUERY. */
export type IbCaAttributes = Input<typeof WvIoDeviceAttributes>;
/** Attributes of a port as in DEVICE_PORT_QUERY. */
export type IbPortAttributes = Input<typeof WvIoPortAttributes>;

const allCapabilities = Object.values(PortCapability).reduce<number>((all, bit) => all | bit, 0);

/** Fields of CiModifyCa. */
export interface IbModifyCa {
  /** The new system image GUID, an EUI-64. */
  systemImageGuid: bigint;
}

/** Fields of CiModifyPort. Capabilities are {@link PortCapability} bits. */
export interface IbModifyPort {
  /** Capabilities to set for the instance; FILE_LOCK_CONFLICT if another instance holds any. */
  setCapabilities: number;
  /** Capabilities that the instance releases. */
  clearCapabilities: number;
  /** The requested type of initialisation, 4 bits (IBA 1 §14.2.5.6). */
  initType: number;
}

function caAttributes(hca: Hca): IbCaAttributes {
  const { limits, guid } = hca;
  return {
    ...hca.backend.attributes,
    nodeGuid: guid,
    systemImageGuid: hca.systemImageGuid ?? guid,
    maxMrSize: BigInt(limits.maxMrSize),
    maxQp: limits.maxQp,
    maxQpWr: limits.maxQpWr,
    maxSge: limits.maxSge,
    maxReadSge: Math.min(limits.maxReadSge, 255),
    maxCq: limits.maxCq,
    maxCqEntries: limits.maxCqEntries,
    maxMr: limits.maxMr,
    maxPd: limits.maxPd,
    maxQpResponderResources: limits.maxReadDepth,
    maxResponderResources: Math.min(limits.maxReadDepth * limits.maxQp, 0xffff_ffff),
    maxQpInitiatorDepth: limits.maxReadDepth,
    maxInlineSend: limits.maxInline,
    maxMw: limits.maxMw,
    maxSrq: limits.maxSrq,
    maxSrqWr: limits.maxSrqWr,
    maxSrqSge: limits.maxSrqSge,
    maxAh: limits.maxAh,
    maxMulticast: limits.maxGroups,
    maxQpAttach: limits.maxGroupQps,
    maxMulticastQp: limits.maxAttached,
    maxPkeys: limits.maxPkeys,
    physPortCount: 1,
  };
}

function portAttributes({ own, port, initType }: Hca): IbPortAttributes {
  const { badPkeys, badQkeys } = own.violations();
  return {
    ...port.link,
    state: port.state,
    activeMtu: port.activeMtu,
    gidTableLength: port.gids.length,
    pkeyTableLength: port.pkeys.length,
    badPkeyCounter: Math.min(badPkeys, 0xffff_ffff),
    qkeyViolationCounter: Math.min(badQkeys, 0xffff_ffff),
    initTypeReply: initType,
    // 5 is LinkUp, 3 is Disabled (IBA 1 §14.2.5.6).
    physicalState: port.state === PortState.ACTIVE ? 5 : 3,
  };
}

/** Attributes of an HCA. @returns SUCCESS (Information: the attributes), FILE_FORCED_CLOSED. */
export function ciGetCaAttributes(ca: IbCa, irp: Irp<IbCaAttributes>): number {
  if (ca.hca.gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  return finish(irp, Status.SUCCESS, caAttributes(ca.hca));
}

/** Attributes of a port. @returns SUCCESS (Information: the attributes), INVALID_PORT_HANDLE, FILE_FORCED_CLOSED. */
export function ciGetPortAttributes(ca: IbCa, portNumber: number, irp: Irp<IbPortAttributes>): number {
  if (ca.hca.gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (portNumber !== 1) return finish(irp, Status.INVALID_PORT_HANDLE);
  return finish(irp, Status.SUCCESS, portAttributes(ca.hca));
}

/** A port's GID table, 16 bytes each. @returns SUCCESS (Information: the GIDs), INVALID_PORT_HANDLE, FILE_FORCED_CLOSED. */
export function ciQueryGids(ca: IbCa, portNumber: number, irp: Irp<readonly Uint8Array[]>): number {
  if (ca.hca.gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (portNumber !== 1) return finish(irp, Status.INVALID_PORT_HANDLE);
  return finish(irp, Status.SUCCESS, ca.hca.port.gids);
}

/** A port's P_Key table. @returns SUCCESS (Information: the P_Keys), INVALID_PORT_HANDLE, FILE_FORCED_CLOSED. */
export function ciQueryPkeys(ca: IbCa, portNumber: number, irp: Irp<readonly number[]>): number {
  if (ca.hca.gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (portNumber !== 1) return finish(irp, Status.INVALID_PORT_HANDLE);
  return finish(irp, Status.SUCCESS, ca.hca.port.pkeys);
}

function alignedTo8(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}

function wholePort(hca: Hca): Uint8Array {
  const { gids, pkeys } = hca.port;
  const tables = IbPortAttr.size + 16 * gids.length;
  const size = alignedTo8(tables + 2 * pkeys.length);
  const whole = new Uint8Array(size);
  IbPortAttr.encode(
    {
      size,
      capabilities: [...hca.capabilityHolders.keys()].reduce((held, bit) => held | bit, 0),
      attributes: portAttributes(hca),
      gidCount: gids.length,
      pkeyCount: pkeys.length,
    },
    whole,
  );
  whole.set(WvGidList.encode(gids, 16 * gids.length), IbPortAttr.size);
  whole.set(WvPkeyList.encode(pkeys, 2 * pkeys.length), tables);
  return whole;
}

function wholeCa(hca: Hca): Uint8Array {
  const port = wholePort(hca);
  const portAt = alignedTo8(IbCaAttr.size);
  const whole = new Uint8Array(portAt + port.length);
  IbCaAttr.encode({ size: whole.length, portCount: 1, attributes: caAttributes(hca) }, whole);
  whole.set(port, portAt);
  return whole;
}

/** Writes as much as fits; `whole` starts with its own size. */
function answer(whole: Uint8Array, attr: Uint8Array, irp: Irp): number {
  if (attr.length < 4) return irp.complete(Status.BUFFER_TOO_SMALL);
  const part = whole.subarray(0, attr.length);
  attr.set(part);
  return irp.complete(part.length < whole.length ? Status.BUFFER_OVERFLOW : Status.SUCCESS, part.length);
}

/**
 * Writes all attributes of an HCA, its port and the port's tables to `attr`, as {@link IbCaAttr}.
 *
 * @returns SUCCESS, or BUFFER_OVERFLOW if only a part fits; in both cases Information is the number of bytes written
 *   and `Size` the number needed. BUFFER_TOO_SMALL below 4 bytes, FILE_FORCED_CLOSED.
 */
export function ciQueryCa(ca: IbCa, attr: Uint8Array, irp: Irp): number {
  if (ca.hca.gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  return answer(wholeCa(ca.hca), attr, irp);
}

/**
 * Writes all attributes of a port and its tables to `attr`, as {@link IbPortAttr}.
 *
 * @returns as {@link ciQueryCa}; INVALID_PORT_HANDLE.
 */
export function ciQueryPort(ca: IbCa, portNumber: number, attr: Uint8Array, irp: Irp): number {
  if (ca.hca.gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (portNumber !== 1) return finish(irp, Status.INVALID_PORT_HANDLE);
  return answer(wholePort(ca.hca), attr, irp);
}

/**
 * Modifies an HCA, for all of its instances.
 *
 * @param flags - {@link ModifyCaFlag} bits: the fields of `modify` that are valid.
 * @returns SUCCESS (a change is a MANAGEMENT event of the port), INVALID_PARAMETER for other flags, ACCESS_DENIED for
 *   requests of user mode, FILE_FORCED_CLOSED.
 */
export function ciModifyCa(ca: IbCa, flags: number, modify: Partial<IbModifyCa>, irp: Irp): number {
  if (ca.hca.gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (irp.requestorMode !== 'kernel') return finish(irp, Status.ACCESS_DENIED);
  const { systemImageGuid } = modify;
  if ((flags & ~ModifyCaFlag.SYSTEM_IMAGE_GUID) !== 0) return finish(irp, Status.INVALID_PARAMETER);
  if ((flags & ModifyCaFlag.SYSTEM_IMAGE_GUID) !== 0) {
    if (systemImageGuid === undefined || systemImageGuid < 0n || systemImageGuid >= 2n ** 64n) {
      return finish(irp, Status.INVALID_PARAMETER);
    }
    const { hca } = ca;
    const before = hca.systemImageGuid ?? hca.guid;
    hca.systemImageGuid = systemImageGuid;
    if (before !== systemImageGuid) raisePortEvents(hca, WvEvent.MANAGEMENT);
  }
  return finish(irp, Status.SUCCESS, 0);
}

/**
 * Modifies a port. A capability belongs to the instance that has set it, until that instance clears it or is closed. A
 * change is a MANAGEMENT event of the port.
 *
 * @param flags - {@link ModifyPortFlag} bits: the fields of `modify` that are valid.
 * @returns SUCCESS, FILE_LOCK_CONFLICT for a capability that belongs to another instance (nothing is changed then),
 *   INVALID_PARAMETER for other flags or bits, INVALID_PORT_HANDLE, ACCESS_DENIED for requests of user mode,
 *   FILE_FORCED_CLOSED.
 */
export function ciModifyPort(
  ca: IbCa,
  portNumber: number,
  flags: number,
  modify: Partial<IbModifyPort>,
  irp: Irp,
): number {
  const { hca } = ca;
  if (hca.gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (irp.requestorMode !== 'kernel') return finish(irp, Status.ACCESS_DENIED);
  if (portNumber !== 1) return finish(irp, Status.INVALID_PORT_HANDLE);
  const { SET_CAPABILITIES, CLEAR_CAPABILITIES, INIT_TYPE } = ModifyPortFlag;
  const set = (flags & SET_CAPABILITIES) === 0 ? 0 : (modify.setCapabilities ?? 0);
  const clear = (flags & CLEAR_CAPABILITIES) === 0 ? 0 : (modify.clearCapabilities ?? 0);
  const initType = (flags & INIT_TYPE) === 0 ? hca.initType : (modify.initType ?? -1);
  const unknownFlags = flags & ~(SET_CAPABILITIES | CLEAR_CAPABILITIES | INIT_TYPE);
  const unknownBits = (set | clear) & ~allCapabilities;
  if (unknownFlags !== 0 || unknownBits !== 0 || (set & clear) !== 0 || initType < 0 || initType > 15) {
    return finish(irp, Status.INVALID_PARAMETER);
  }
  const holders = hca.capabilityHolders;
  const bits = Object.values(PortCapability).filter((bit) => ((set | clear) & bit) !== 0);
  if (bits.some((bit) => (holders.get(bit) ?? ca) !== ca)) return finish(irp, Status.FILE_LOCK_CONFLICT);
  const changed = bits.some((bit) => holders.has(bit) !== ((set & bit) !== 0)) || initType !== hca.initType;
  for (const bit of bits) {
    if ((set & bit) !== 0) holders.set(bit, ca);
    else holders.delete(bit);
  }
  hca.initType = initType;
  if (changed) raisePortEvents(hca, WvEvent.MANAGEMENT);
  return finish(irp, Status.SUCCESS, 0);
}

/**
 * Replaces the P_Key table of a port, as a subnet manager does. The HCA uses it immediately for all queue pairs of the
 * port; a change is a PARTITION event. Pends, because the devices are scanned.
 *
 * @param pkeys - 1 to MaxPkeys values of 16 bits; at least one entry must name a partition (low 15 bits not 0).
 * @returns PENDING; completes with SUCCESS, CANCELED. INVALID_PARAMETER for an invalid table, INVALID_PORT_HANDLE,
 * NOT_SUPPORTED if the OS owns the table, ACCESS_DENIED for user-mode requests, FILE_FORCED_CLOSED.
 */
export function ciModifyPkeys(ca: IbCa, portNumber: number, pkeys: readonly number[], irp: Irp): number {
  const { hca } = ca;
  if (hca.gone) return finish(irp, Status.FILE_FORCED_CLOSED);
  if (irp.requestorMode !== 'kernel') return finish(irp, Status.ACCESS_DENIED);
  if (portNumber !== 1) return finish(irp, Status.INVALID_PORT_HANDLE);
  const { backend, guid } = hca;
  if (!backend.setPkeys) return finish(irp, Status.NOT_SUPPORTED);
  const valid = pkeys.every((pkey) => Number.isInteger(pkey) && pkey >= 0 && pkey <= 0xffff);
  const named = pkeys.some((pkey) => (pkey & 0x7fff) !== 0);
  if (!valid || !named || pkeys.length > hca.limits.maxPkeys) return finish(irp, Status.INVALID_PARAMETER);
  return hca.work.pend(irp, () => {
    backend.setPkeys?.(guid, pkeys);
    hca.ports.refresh(true);
    finish(irp, hca.gone ? Status.FILE_FORCED_CLOSED : Status.SUCCESS, 0);
  });
}
