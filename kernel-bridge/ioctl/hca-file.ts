/**
 * Verbs on the file of an HCA for which WinVerbs has no IOCTL, as named by the IRP-based verbs RFC (2005), and their
 * structures. The RFC does not define buffers; codes and layouts are this package's own.
 */
import { layouts, reserved, u8, u32, u64, u64be } from './layout.js';
import { madeCode } from './made-code.js';
import { WvIoDeviceAttributes, WvIoPortAttributes } from './structs.js';

const { struct } = layouts(madeCode);

/** A CA GUID as used in names: 16 hexadecimal digits. */
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
 * Head of the output of CiQueryPort and CA_PORT_QUERY. The GIDs (16 bytes each) and the P_Keys (2 bytes each, in
 * network order) follow; `size` includes them.
 */
export const IbPortAttr = struct('IB_PORT_ATTR', {
  /** Size in bytes. */
  Size: u32,
  /** {@link PortCapability} bits that are set by any instance. */
  Capabilities: u32,
  /** State and limits, as returned by DEVICE_PORT_QUERY. */
  Attributes: WvIoPortAttributes,
  /** Number of GIDs that follow: the whole table. */
  GidCount: u32,
  /** Number of P_Keys that follow the GIDs: the whole table. */
  PkeyCount: u32,
});

/** Head of the output of CiQueryCa and CA_QUERY. An IB_PORT_ATTR for each port follows, aligned to 8 bytes. */
export const IbCaAttr = struct('IB_CA_ATTR', {
  /** Size in bytes. */
  Size: u32,
  /** Number of IB_PORT_ATTRs that follow. */
  PortCount: u32,
  /** Limits of the HCA, as returned by DEVICE_QUERY. */
  Attributes: WvIoDeviceAttributes,
});

/** CA_PORT_EVENT's output: one event of one port. */
export const IbIoPortEvent = struct('IB_IO_PORT_EVENT', {
  /** Port number, from 1. */
  PortNumber: u32,
  /** One {@link WvEvent} value. */
  Event: u32,
});

/** Capabilities announced by a port; only one instance at a time may hold each. */
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

/** Valid fields of CA_MODIFY. */
export const ModifyCaFlag = {
  /** SystemImageGuid of {@link IbIoCaModify}. */
  SYSTEM_IMAGE_GUID: 0x1,
} as const;
/** Valid fields of CA_PORT_MODIFY. */
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
  /** Id of the instance. */
  Id: u64,
  /** {@link ModifyCaFlag} */
  Flags: u32,
  /** Padding of 4 bytes: written as 0, ignored when read. */
  Reserved: reserved(4),
  /** The new system image GUID. Its initial value is the CA GUID. */
  SystemImageGuid: u64be,
});

/** CA_PORT_MODIFY's input. */
export const IbIoPortModify = struct('IB_IO_PORT_MODIFY', {
  /** Id of the instance. */
  Id: u64,
  /** {@link ModifyPortFlag} */
  Flags: u32,
  /** {@link PortCapability} */
  SetCapabilities: u32,
  /** {@link PortCapability} */
  ClearCapabilities: u32,
  /** Port number, from 1. */
  PortNumber: u8,
  /** The requested type of initialisation, 4 bits (IBA 1 §14.2.5.6). */
  InitType: u8,
  /** Padding of 2 bytes: written as 0, ignored when read. */
  Reserved: reserved(2),
});
