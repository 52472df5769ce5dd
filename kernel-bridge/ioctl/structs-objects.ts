/** Structures of the IOCTLs of devices, ports, memory, address handles and queues: see structs.ts. */
import { bytes, layouts, list, reserved, u8, u16, u16be, u32, u32be, u64, u64be } from './layout.js';
import { madeCode } from './made-code.js';

const { struct } = layouts(madeCode);

// ── Identifiers ─────────────────────────────────────────────────────────────────────────────────────────────

/** A single `u64 Id`: the input of destroy, cancel and query requests, and the output of EP_CREATE. */
export const WvIoObject = struct('u64 Id', {
  /** Offset 0: the number of an object of this file, below 2^32; 0 names none. */
  Id: u64,
});

/** A CA GUID in network order: LIBRARY_QUERY's input. */
export const WvIoGuid = struct('u64be Guid', {
  /** Offset 0: the CA GUID of a device, its EUI-64. */
  Guid: u64be,
});

/** Data is the port (DEVICE_NOTIFY), entries (CQ_*), lkey (MEMORY_DEREGISTER), notify type or option. */
export const WvIoId = struct('WV_IO_ID', {
  /** Offset 0: the object that the request is about; in an answer of a create request the new object. */
  Id: u64,
  /** Offset 8: the command of the provider's `ci_umv_buf_t` in, its status out; 0 where no provider data goes with it. */
  VerbInfo: u32,
  /** Offset 12: depends on the IOCTL, see {@link IoctlCode}. */
  Data: u32,
});

/** Offset of VerbInfo in a WV_IO_ID, which begins every structure with provider data. */
export const VERB_INFO = 8;

/** The input of DEVICE_OPEN: a WV_IO_ID whose Id is the CA GUID in network order. The output is a plain WV_IO_ID. */
export const WvIoDeviceOpen = struct('WV_IO_ID (CA GUID)', {
  /** Offset 0: the CA GUID of the device to open. */
  Guid: u64be,
  /** Offset 8: as in {@link WvIoId}. */
  VerbInfo: u32,
  /** Offset 12: not used; 0. */
  Data: u32,
});

/** The output of MW_ALLOCATE: a WV_IO_ID whose Data is the rkey in network order. */
export const WvIoMwKey = struct('WV_IO_ID (rkey)', {
  /** Offset 0: the new memory window. */
  Id: u64,
  /** Offset 8: as in {@link WvIoId}. */
  VerbInfo: u32,
  /** Offset 12: the window's first rkey; it grants nothing until the window is bound. */
  Rkey: u32be,
});

/** GUID_QUERY: the number of devices, then the GUIDs that fit (at least one place): {@link WvGuidEntries}. */
export const WvIoGuidList = struct('WV_IO_GUID_LIST', {
  /** Offset 0: how many devices there are, also those whose GUIDs did not fit. */
  Count: u64,
  /** Offset 8: the GUID of the first device; those of the others follow. 0 if there is no device. */
  Guid: u64be,
});

// ── Devices and ports ───────────────────────────────────────────────────────────────────────────────────────

/** DEVICE_QUERY's output: the limits of a device. Counts, unless stated otherwise. */
export const WvIoDeviceAttributes = struct('WV_IO_DEVICE_ATTRIBUTES', {
  /** Offset 0: the firmware's version, in a form of the vendor's; libibverbs' order of 16-bit parts is usual. */
  FwVersion: u64,
  /** Offset 8: the GUID of the node; the software HCA gives that of the device. */
  NodeGuid: u64be,
  /** Offset 16: the same for all devices of one piece of hardware; CA_MODIFY sets it. */
  SystemImageGuid: u64be,
  /** Offset 24: the vendor's IEEE OUI, 24 bits. */
  VendorId: u32,
  /** Offset 28: the vendor's number of this kind of device. */
  VendorPartId: u32,
  /** Offset 32: the vendor's number of the hardware's revision. */
  HwVersion: u32,
  /** Offset 36: an OR of {@link WvCapability}. */
  CapabilityFlags: u32,
  /** Offset 40: an {@link AtomicCapability}. */
  AtomicCapability: u32,
  /** Offset 44: an OR of the page sizes in bytes that memory may be registered by. */
  PageSizeCapabilityFlags: u32,
  /** Offset 48: bytes of the largest memory region. */
  MaxMrSize: u64,
  /** Offset 56: queue pairs, of all processes together on hardware, of this process on the software HCA. */
  MaxQp: u32,
  /** Offset 60: requests in one queue of a queue pair. */
  MaxQpWr: u32,
  /** Offset 64: SGEs of one request. */
  MaxSge: u32,
  /** Offset 68: completion queues. */
  MaxCq: u32,
  /** Offset 72: entries of one completion queue. */
  MaxCqEntries: u32,
  /** Offset 76: memory regions. */
  MaxMr: u32,
  /** Offset 80: protection domains. */
  MaxPd: u32,
  /** Offset 84: RDMA reads and atomics of a peer that one queue pair answers at a time. */
  MaxQpResponderResources: u32,
  /** Offset 88: the same, of all queue pairs together. */
  MaxResponderResources: u32,
  /** Offset 92: RDMA reads and atomics that one queue pair may have outstanding. */
  MaxQpInitiatorDepth: u32,
  /** Offset 96: bytes of an INLINE request. */
  MaxInlineSend: u32,
  /** Offset 100: memory windows; 0: the device has none. */
  MaxMw: u32,
  /** Offset 104: multicast groups that have an attached queue pair. */
  MaxMulticast: u32,
  /** Offset 108: queue pairs that are attached to one multicast group. */
  MaxQpAttach: u32,
  /** Offset 112: attachments of all groups together. */
  MaxMulticastQp: u32,
  /** Offset 116: address handles. */
  MaxAh: u32,
  /** Offset 120: fast memory regions of the old kind (FMR); 0 on the software HCA. */
  MaxFmr: u32,
  /** Offset 124: how often one FMR may be mapped before it must be unmapped; 0 on the software HCA. */
  MaxMapPerFmr: u32,
  /** Offset 128: shared receive queues; 0: the device has none. */
  MaxSrq: u32,
  /** Offset 132: receives in one shared receive queue. */
  MaxSrqWr: u32,
  /** Offset 136: SGEs of a receive of a shared receive queue. */
  MaxSrqSge: u32,
  /** Offset 140: entries of a port's P_Key table. */
  MaxPkeys: u32,
  /** Offset 144: a {@link DeviceType}. */
  DeviceType: u32,
  /** Offset 148: how long this device may take to acknowledge, as a code: 4.096 µs × 2^code. */
  LocalAckDelay: u8,
  /** Offset 149: the number of ports; each WinVerbs device of the software HCA has one. */
  PhysPortCount: u8,
  /** Offset 150: SGEs of an RDMA read, at most 255; 0: as MaxSge. This stack's addition, a pad of 0 in Windows' structure. */
  MaxReadSge: u8,
  /** Pad of 1 byte: written as 0, not read. */
  Reserved: reserved(1),
});

/** Input of DEVICE_PORT_QUERY, DEVICE_GID_QUERY and DEVICE_PKEY_QUERY: a port of a device. */
export const WvIoDevicePortQuery = struct('WV_IO_DEVICE_PORT_QUERY', {
  /** Offset 0: the open device. */
  Id: u64,
  /** Offset 8: the port, from 1. */
  PortNumber: u8,
  /** Pad of 7 bytes: written as 0, not read. */
  Reserved: reserved(7),
});

/** DEVICE_PORT_QUERY's output: the state and limits of a port (IBA 1 §11.2.2.3). */
export const WvIoPortAttributes = struct('WV_IO_PORT_ATTRIBUTES', {
  /** Offset 0: an OR of {@link WvCapability}; spelled as in the interface. */
  PortCabilityFlags: u32,
  /** Offset 4: a {@link PortState}. */
  State: u32,
  /** Offset 8: bytes of payload of the largest packet that the port can have: 256, 512, 1024, 2048 or 4096. */
  MaxMtu: u32,
  /** Offset 12: bytes of payload of the largest packet at present; it follows the MTU of the network interface. */
  ActiveMtu: u32,
  /** Offset 16: entries of the GID table. */
  GidTableLength: u32,
  /** Offset 20: bytes of the longest message. */
  MaxMessageSize: u32,
  /** Offset 24: packets with a P_Key that the port does not have. */
  BadPkeyCounter: u32,
  /** Offset 28: datagrams whose Q_Key was not that of their queue pair. */
  QkeyViolationCounter: u32,
  /** Offset 32: entries of the P_Key table. */
  PkeyTableLength: u16,
  /** Offset 34: the port's LID; 0 on RoCE. */
  Lid: u16be,
  /** Offset 36: the LID of the subnet manager; 0 on RoCE. */
  SmLid: u16be,
  /** Offset 38: how many low bits of the LID the port ignores, 0 to 7; 0 on RoCE. */
  Lmc: u8,
  /** Offset 39: a code of the number of virtual lanes (IBA 1 §14.2.5.6): 1 is one lane. */
  MaxVls: u8,
  /** Offset 40: the service level of messages to the subnet manager; 0 on RoCE. */
  SmSl: u8,
  /** Offset 41: how long a packet takes through the subnet, as a code: 4.096 µs × 2^code; 0 on RoCE. */
  SubnetTimeout: u8,
  /** Offset 42: the type of initialisation that the subnet manager has carried out; 0 on RoCE. */
  InitTypeReply: u8,
  /** Offset 43: the number of lanes as a code: 1, 2, 4, 8 for 1, 4, 8 and 12 lanes. */
  ActiveWidth: u8,
  /** Offset 44: the speed of a lane as a code (IBA 1 §14.2.5.6): 1 is 2.5 Gbit/s. */
  ActiveSpeed: u8,
  /** Offset 45: the state of the link as a code (IBA 1 §14.2.5.6): 5 is up, 3 disabled. */
  PhysicalState: u8,
  /** Offset 46: a {@link PortTransport}. */
  Transport: u8,
  /** Offset 47: the speed of a lane where ActiveSpeed has no code for it; 0 otherwise. */
  ExtActiveSpeed: u8,
  /** Offset 48: how the link encodes its bits, as a code; 0: not told. */
  LinkEncoding: u8,
  /** Pad of 3 bytes: written as 0, not read. */
  Pad: reserved(3),
});

/** A GID, 16 bytes in network order. */
export const WvIoGid = struct('WV_IO_GID', {
  /** Offset 0: the GID; on RoCE v2 the IPv6 address, or the IPv4 address behind ::ffff:0:0/96. */
  Raw: bytes(16),
});

/** Declared by the interface, used by no IOCTL. */
export const WvIoEvent = struct('WV_IO_EVENT', {
  /** Offset 0: reserved for a status. */
  Status: u32,
  /** Offset 4: reserved for the kind of event. */
  Type: u32,
  /** Offset 8: reserved for the port, from 1. */
  PortNumber: u8,
  /** Pad of 3 bytes: written as 0, not read. */
  Reserved: reserved(3),
});

/** WV_EVENT_* events since the last answer: DEVICE_NOTIFY's output. */
export const WvIoEventFlags = struct('u32 Flags', {
  /** Offset 0: an OR of {@link WvEvent}, never 0 in an answer that succeeds. */
  Flags: u32,
});

// ── Memory and address handles ──────────────────────────────────────────────────────────────────────────────

/** MEMORY_REGISTER's input: an address range of the calling process and its access rights. */
export const WvIoMemoryRegister = struct('WV_IO_MEMORY_REGISTER', {
  /** Offset 0: the protection domain. */
  Id: u64,
  /** Offset 8: the first byte, a virtual address of the calling process. */
  Address: u64,
  /** Offset 16: bytes, from 1. */
  BufferLength: u64,
  /** Offset 24: an OR of {@link WvAccess}. */
  AccessFlags: u32,
  /** Pad of 4 bytes: written as 0, not read. */
  Reserved: reserved(4),
});

/** MEMORY_REGISTER's output. The rkey is in network order; its value is the number on the wire. */
export const WvIoMemoryKeys = struct('WV_IO_MEMORY_KEYS', {
  /** Offset 0: the key for SGEs of this side, opaque. */
  Lkey: u32,
  /** Offset 4: the key for the peer; it grants what the access flags allow. */
  Rkey: u32be,
});

/**
 * An address vector: the destination of a queue pair's or address handle's packets (IBA 1 §11.2.3.1). RoCE has no LIDs.
 */
export const WvIoAv = struct('WV_IO_AV', {
  /** Offset 0: 1: the fields of the network route (to DGid) are valid; always on RoCE. */
  NetworkRouteValid: u8,
  /** Pad of 1 byte: written as 0, not read. */
  Reserved1: reserved(1),
  /** Offset 2: IPv4's TTL or IPv6's hop limit; 0: the driver's choice. */
  HopLimit: u8,
  /** Offset 3: IPv4's TOS or IPv6's traffic class; the upper six bits are the DSCP. */
  TrafficClass: u8,
  /** Offset 4: the flow label of IPv6 headers in the low 20 bits. */
  FlowLabel: u32be,
  /** Offset 8: the source GID, one of the port's table. */
  SGid: bytes(16),
  /** Offset 24: the destination GID. */
  DGid: bytes(16),
  /** Pad of 2 bytes: written as 0, not read. */
  Reserved2: reserved(2),
  /** Offset 42: the destination LID; 0 on RoCE. */
  DLid: u16be,
  /** Offset 44: the InfiniBand service level, 0 to 15; not used on RoCE. */
  ServiceLevel: u8,
  /** Offset 45: the low bits of the source LID; 0 on RoCE. */
  SourcePathBits: u8,
  /** Offset 46: the rate of injection as a code (IBA 1 §9.11); 0: as fast as the port. */
  StaticRate: u8,
  /** Offset 47: the port of this side, from 1. */
  PortNumber: u8,
});

/** AH_CREATE: Id is the protection domain in, the address handle out. */
export const WvIoAhCreate = struct('WV_IO_AH_CREATE', {
  /** Offset 0: the protection domain in, the address handle out. */
  Id: WvIoId,
  /** Offset 16: where datagrams with the handle go. */
  AddressVector: WvIoAv,
});

// ── Queues ──────────────────────────────────────────────────────────────────────────────────────────────────

/** SRQ_CREATE, SRQ_QUERY and SRQ_MODIFY: Id is the protection domain or the shared receive queue. */
export const WvIoSrqAttributes = struct('WV_IO_SRQ_ATTRIBUTES', {
  /** Offset 0: the protection domain or the shared receive queue. */
  Id: WvIoId,
  /** Offset 16: the number of receives, requested in, granted out. */
  MaxWr: u32,
  /** Offset 20: SGEs of a receive; fixed when the queue is made. */
  MaxSge: u32,
  /** Offset 24: the event is reported once, when fewer receives are left; 0 asks for none. */
  SrqLimit: u32,
  /** Pad of 4 bytes: written as 0, not read. */
  Reserved: reserved(4),
});

/** QP_CREATE: Id is the protection domain in, the queue pair out; depths and limits are requested in, granted out. */
export const WvIoQpCreate = struct('WV_IO_QP_CREATE', {
  /** Offset 0: the protection domain in, the queue pair out. */
  Id: WvIoId,
  /** Offset 16: the completion queue of send requests. */
  SendCqId: u64,
  /** Offset 24: the completion queue of receives; it may be the same. */
  ReceiveCqId: u64,
  /** Offset 32: the shared receive queue; 0: the queue pair has receives of its own. */
  SrqId: u64,
  /** Offset 40: outstanding send requests. */
  SendDepth: u32,
  /** Offset 44: SGEs of a send request. */
  SendSge: u32,
  /** Offset 48: outstanding receives; ignored with a shared receive queue. */
  ReceiveDepth: u32,
  /** Offset 52: SGEs of a receive; ignored with a shared receive queue. */
  ReceiveSge: u32,
  /** Offset 56: bytes of an INLINE request. */
  MaxInlineSend: u32,
  /** Offset 60: outstanding RDMA reads and atomics of this side; 0: up to the HCA's limit. */
  InitiatorDepth: u32,
  /** Offset 64: RDMA reads and atomics of the peer that are served at a time; 0: up to the HCA's limit. */
  ResponderResources: u32,
  /** Offset 68: a {@link QpType}. */
  QpType: u8,
  /** Offset 69: an OR of {@link QpFlag}. */
  QpFlags: u8,
  /** Pad of 2 bytes: written as 0, not read. */
  Reserved: reserved(2),
});

/** QP_QUERY's output and QP_MODIFY's input (IBA 1 §11.2.5.2). */
export const WvIoQpAttributes = struct('WV_IO_QP_ATTRIBUTES', {
  /** Offset 0: the queue pair. */
  Id: WvIoId,
  /** Offset 16: outstanding send requests. */
  SendDepth: u32,
  /** Offset 20: SGEs of a send request. */
  SendSge: u32,
  /** Offset 24: outstanding receives. */
  ReceiveDepth: u32,
  /** Offset 28: SGEs of a receive. */
  ReceiveSge: u32,
  /** Offset 32: bytes of an INLINE request. */
  MaxInlineSend: u32,
  /** Offset 36: outstanding RDMA reads and atomics of this side. */
  InitiatorDepth: u32,
  /** Offset 40: RDMA reads and atomics of the peer that are served at a time. */
  ResponderResources: u32,
  /** Offset 44: an OR of {@link QpAttr}: the attributes that are valid, or to be changed. */
  Options: u32,
  /** Offset 48: a {@link QpType}; a modify does not change it. */
  QpType: u8,
  /** Offset 49: the {@link QpState} that the caller assumes; in an answer the same as QpState. */
  CurrentQpState: u8,
  /** Offset 50: the {@link QpState} that is reached or to be reached. */
  QpState: u8,
  /** Offset 51: an {@link ApmState}; 0 on the software HCA, which has no path migration. */
  ApmState: u8,
  /** Offset 52: this queue pair's number, 24 bits. */
  Qpn: u32be,
  /** Offset 56: the peer's queue pair number, 24 bits. */
  DestinationQpn: u32be,
  /** Offset 60: the Q_Key of a datagram queue pair; values from 0x80000000 on are for the system. */
  Qkey: u32be,
  /** Offset 64: the number of the first packet that is sent, 24 bits. */
  SendPsn: u32be,
  /** Offset 68: the number of the first packet that is expected, 24 bits. */
  ReceivePsn: u32be,
  /** Offset 72: the path to the peer. */
  AddressVector: WvIoAv,
  /** Offset 120: the path that the connection may migrate to; not used by the software HCA. */
  AlternateAddressVector: WvIoAv,
  /** Offset 168: bytes of payload of a full packet: 256, 512, 1024, 2048 or 4096. */
  PathMtu: u32,
  /** Offset 172: the same of the alternate path. */
  AlternatePathMtu: u32,
  /** Offset 176: the place of the queue pair's P_Key in the port's table. */
  PkeyIndex: u16,
  /** Offset 178: the same of the alternate path. */
  AlternatePkeyIndex: u16,
  /** Offset 180: how long to wait for an acknowledgement, 5 bits: 4.096 µs × 2^code; 0 is infinite. */
  LocalAckTimeout: u8,
  /** Offset 181: the same of the alternate path. */
  AlternateLocalAckTimeout: u8,
  /** Offset 182: how long the peer is told to wait for a receive, a code of 5 bits (IBA 1 §9.7.5.2.8). */
  RnrNakTimeout: u8,
  /** Offset 183: repetitions without an acknowledgement, 0 to 7. */
  SequenceErrorRetryCount: u8,
  /** Offset 184: repetitions when the peer has no receive, 0 to 6; 7: without end. */
  RnrRetryCount: u8,
  /** Offset 185: an OR of the {@link WvAccess} values below 0x100: what the peer may do. */
  AccessFlags: u8,
  /** Offset 186: an OR of {@link QpFlag}, as created. */
  QpFlags: u8,
  /** Pad of 5 bytes: written as 0, not read. */
  Reserved: reserved(5),
});

/** Id.Data carries the multicast LID in its low 16 bits, in network order. */
export const WvIoQpMulticast = struct('WV_IO_QP_MULTICAST', {
  /** Offset 0: the datagram queue pair; Data has the multicast LID. */
  Id: WvIoId,
  /** Offset 16: the group's GID; on RoCE v2 its IP address as a GID. */
  Gid: WvIoGid,
});

// ── Lists ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Output of DEVICE_GID_QUERY. */
export const WvGidList = list(bytes(16));

/** Output of DEVICE_PKEY_QUERY. */
export const WvPkeyList = list(u16be);

/** The GUIDs of GUID_QUERY's output, from byte 8 on. */
export const WvGuidEntries = list(u64be);
