/**
 * Verbs on the file of an HCA: those of the IRP-based verbs RFC (2005) for which WinVerbs has no IOCTL, and their
 * structures. The RFC names the verbs but not their buffers; codes and layouts are ours.
 */
import { layouts, reserved, u8, u32, u64, u64be } from './layout.js';
import { madeCode } from './made-code.js';
import { WvIoDeviceAttributes, WvIoPortAttributes } from './structs.js';

const { struct } = layouts(madeCode);

/** A CA GUID in names: 16 hexadecimal digits. */
export function guidText(guid: bigint): string {
  return guid.toString(16).padStart(16, '0');
}

/**
 * The name of an HCA's file: opening it opens the HCA's own device, and all ids of the file belong to that HCA.
 *
 * @example
 * ```ts
 * const file = openDeviceFile(hcaFileName(guid));
 * const { id } = WvIoId.decode(file.ioctl(IoctlCode.DEVICE_OPEN, WvIoDeviceOpen.encode({ guid }), WvIoId.size));
 * ```
 */
export function hcaFileName(guid: bigint): string {
  return `\\Device\\ibal\\${guidText(guid)}`;
}

/**
 * Head of the output of CiQueryPort and CA_PORT_QUERY; the GIDs (16 bytes each) and the P_Keys (2 bytes each, in
 * network order) follow. `size` includes them.
 */
export const IbPortAttr = struct('IB_PORT_ATTR', {
  /** Bytes. */
  Size: u32,
  /** {@link PortCapability} bits that some instance holds. */
  Capabilities: u32,
  /** State and limits, as DEVICE_PORT_QUERY answers them. */
  Attributes: WvIoPortAttributes,
  /** The number of GIDs that follow, the whole table. */
  GidCount: u32,
  /** The number of P_Keys that follow the GIDs, the whole table. */
  PkeyCount: u32,
});

/** Head of the output of CiQueryCa and CA_QUERY; an IB_PORT_ATTR for each port follows, at a multiple of 8 bytes. */
export const IbCaAttr = struct('IB_CA_ATTR', {
  /** Bytes. */
  Size: u32,
  /** The number of IB_PORT_ATTRs that follow. */
  PortCount: u32,
  /** Limits of the HCA, as DEVICE_QUERY answers them. */
  Attributes: WvIoDeviceAttributes,
});

/** CA_PORT_EVENT's output: one event of one port. */
export const IbIoPortEvent = struct('IB_IO_PORT_EVENT', {
  /** From 1. */
  PortNumber: u32,
  /** One WV_EVENT_* value. */
  Event: u32,
});

/** Capabilities that a port announces and that only one instance at a time may hold. */
export const PortCapability = {
  /** The port has a subnet manager (IBA 1 §14.2.5.6, IsSM). */
  IS_SM: 0x1,
  /** The port has an SNMP agent (IsSNMPTunnelingSupported). */
  SNMP_SUP: 0x2,
  /** The port has an agent for device management (IsDeviceManagementSupported). */
  DEV_MGMT_SUP: 0x4,
  /** The port has an agent for the vendor's class (IsVendorClassSupported). */
  VENDOR_SUP: 0x8,
  /** The port has connection management (IsCommunicationManagementSupported). */
  CM_SUP: 0x10,
} as const;

/** Fields of CA_MODIFY that are valid. */
export const ModifyCaFlag = {
  /** SystemImageGuid of {@link IbIoCaModify}. */
  SYSTEM_IMAGE_GUID: 0x1,
} as const;
/** Fields of CA_PORT_MODIFY that are valid. */
export const ModifyPortFlag = {
  /** SetCapabilities of {@link IbIoPortModify}. */
  SET_CAPABILITIES: 0x1,
  /** ClearCapabilities of {@link IbIoPortModify}. */
  CLEAR_CAPABILITIES: 0x2,
  /** InitType of {@link IbIoPortModify}. */
  INIT_TYPE: 0x4,
} as const;

/** CA_MODIFY's input. */
export const IbIoCaModify = struct('IB_IO_CA_MODIFY', {
  /** The instance. */
  Id: u64,
  /** {@link ModifyCaFlag} */
  Flags: u32,
  /** Pad of 4 bytes: written as 0, not read. */
  Reserved: reserved(4),
  /** The new system image GUID; it is that of the CA until it is set. */
  SystemImageGuid: u64be,
});

/** CA_PORT_MODIFY's input. */
export const IbIoPortModify = struct('IB_IO_PORT_MODIFY', {
  /** The instance. */
  Id: u64,
  /** {@link ModifyPortFlag} */
  Flags: u32,
  /** {@link PortCapability} */
  SetCapabilities: u32,
  /** {@link PortCapability} */
  ClearCapabilities: u32,
  /** From 1. */
  PortNumber: u8,
  /** The requested type of initialisation, 4 bits (IBA 1 §14.2.5.6). */
  InitType: u8,
  /** Pad of 2 bytes: written as 0, not read. */
  Reserved: reserved(2),
});
