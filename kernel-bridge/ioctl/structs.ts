/**
 * The structures of every WinVerbs and IBAT IOCTL: pointer-free, the same for 32- and 64-bit callers. Field names are
 * those of the WinVerbs and IBAT interfaces. Sources: WinVerbs IOCTL interface; IBAT interface version 6; IBA 1 Annex
 * A11 (RDMA IP CM service) for IB_CMA_HEADER, IBA 1 §15.2.5.16 (PathRecord) for ib_path_rec_t.
 *
 * "Id" fields name objects of the device file; 0 is none. VerbInfo carries `ci_umv_buf_t.command` in and its `status`
 * out (provider-data.ts).
 *
 * An offset in a field's comment counts bytes from the start of its structure.
 */
import { Capacity } from './constants.js';
import { bytes, layouts, list, reserved, u8, u16, u16be, u32, u32be, u64, u64be } from './layout.js';
import { madeCode } from './made-code.js';

const { struct, union } = layouts(madeCode);

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

// ── Addresses ───────────────────────────────────────────────────────────────────────────────────────────────

/** A SOCKADDR, SOCKADDR_IN or SOCKADDR_IN6, depending on its family: see sockaddr.ts. */
const sockaddr28 = bytes(28, 4);

/** SOCKADDR: the family determines the data. */
export const WvIoSockaddr = struct('WV_IO_SOCKADDR', {
  /** Offset 0: an {@link AddressFamily}. */
  SaFamily: u16,
  /** Offset 2: port and address, in the form of the family. */
  SaData: bytes(14),
});

/** SOCKADDR_IN: family 2. */
export const WvIoSockaddrIn = struct('WV_IO_SOCKADDR_IN', {
  /** Offset 0: {@link AddressFamily}.IPV4. */
  SinFamily: u16,
  /** Offset 2: the port; 0: none. */
  SinPort: u16be,
  /** Offset 4: the IPv4 address; 0 is the wildcard. */
  SinAddr: u32be,
  /** Pad of 8 bytes: written as 0, not read. */
  SinZero: reserved(8),
});

/** SOCKADDR_IN6: family 23. */
export const WvIoSockaddrIn6 = struct('WV_IO_SOCKADDR_IN6', {
  /** Offset 0: {@link AddressFamily}.IPV6. */
  Sin6Family: u16,
  /** Offset 2: the port; 0: none. */
  Sin6Port: u16be,
  /** Offset 4: traffic class and flow label; written as 0. */
  Sin6FlowInfo: u32be,
  /** Offset 8: the IPv6 address; all zero is the wildcard. */
  Sin6Addr: bytes(16),
  /** Offset 24: the index of the interface, for link-local addresses; 0 for all others. */
  Sin6ScopeId: u32,
});

/** An address of either family, as `encodeSockaddr` writes and `decodeSockaddr` reads it. */
export const WvIoSockaddrData = struct('WV_IO_SOCKADDR_DATA', {
  /** Offset 0: a SOCKADDR_IN or SOCKADDR_IN6; unused bytes are 0. */
  SockAddr: sockaddr28,
  /** Pad of 4 bytes: written as 0, not read. */
  Reserved: reserved(4),
});

/** The device, port and partition that an address belongs to. */
export const WvIoDeviceAddress = struct('WV_IO_DEVICE_ADDRESS', {
  /** Offset 0: the CA GUID of the device. */
  DeviceGuid: u64be,
  /** Offset 8: the P_Key of the partition, 0xFFFF for the default one. */
  Pkey: u16be,
  /** Offset 10: the port, from 1. */
  PortNumber: u8,
  /** Pad of 5 bytes: written as 0, not read. */
  Reserved: reserved(5),
});

// ── Endpoints ───────────────────────────────────────────────────────────────────────────────────────────────

/** EP_CREATE's input: {@link EpType} in the low 16 bits. */
export const WvIoEpCreate = struct('u64 EpType', {
  /** Offset 0: an {@link EpType}; the upper 48 bits are ignored. */
  EpType: u64,
});

/** EP_BIND: the requested address and its device in, the granted address out. */
export const WvIoEpBind = struct('WV_IO_EP_BIND', {
  /** Offset 0: the endpoint. */
  Id: u64,
  /** Offset 8: the address and port, port 0: the kernel's choice; in the answer those that were granted. */
  Address: WvIoSockaddrData,
  /** Offset 40: the device that the address belongs to; in the answer as the kernel found it. */
  Device: WvIoDeviceAddress,
});

/** EP_LISTEN: backlog is the maximum of waiting requests; 0 is the driver's limit. */
export const WvIoEpListen = struct('WV_IO_EP_LISTEN', {
  /** Offset 0: a bound endpoint. */
  Id: u64,
  /** Offset 8: how many requests may wait for GetRequest; further ones are refused. */
  Backlog: u64,
});

/** Id is the listener, EpId the endpoint for the next request. */
export const WvIoEpGetRequest = struct('WV_IO_EP_GET_REQUEST', {
  /** Offset 0: the listener. */
  Id: u64,
  /** Offset 8: a fresh endpoint, which gets the request. */
  EpId: u64,
});

/** Connection parameters that both sides exchange. Depths and resources are numbers of outstanding reads. */
export const WvIoConnectParam = struct('WV_IO_CONNECT_PARAM', {
  /** Offset 0: RDMA reads and atomics of the peer that this side serves at a time, 0 to 255. */
  ResponderResources: u64,
  /** Offset 8: RDMA reads and atomics that this side has outstanding, 0 to 255. */
  InitiatorDepth: u64,
  /** Offset 16: repetitions without an acknowledgement, 0 to 7. */
  RetryCount: u8,
  /** Offset 17: repetitions when the peer has no receive, 0 to 6; 7: without end. */
  RnrRetryCount: u8,
  /** Offset 18: bytes of private data: at most 56, those in Data; of EP_ACCEPT at most 196, whose rest follows the structure. */
  DataLength: u8,
  /** Pad of 5 bytes: written as 0, not read. */
  Reserved: reserved(5),
  /** Offset 24: private data for the peer, or from it. */
  Data: bytes(56),
});

/** EP_CONNECT: the endpoint, its queue pair and the peer. */
export const WvIoEpConnect = struct('WV_IO_EP_CONNECT', {
  /** Offset 0: the endpoint. */
  Id: u64,
  /** Offset 8: the queue pair that is to be connected; it goes to RTS with the connection. */
  QpId: u64,
  /** Offset 16: address and port of the listener. */
  PeerAddress: WvIoSockaddrData,
  /** Offset 48: what the peer is told. */
  Param: WvIoConnectParam,
});

/** EP_ACCEPT: the endpoint and its queue pair. */
export const WvIoEpAccept = struct('WV_IO_EP_ACCEPT', {
  /** Offset 0: the endpoint that has the request, or the reply. */
  Id: u64,
  /** Offset 8: the queue pair that is to be connected. */
  QpId: u64,
  /** Offset 16: what the peer is told. */
  Param: WvIoConnectParam,
});

/** Param of {@link WvIoEpAttributes}: Backlog for a listener, Connect for every other endpoint. */
export const WvIoEpParam = union('WV_IO_EP_ATTRIBUTES.Param', {
  /** Offset 0: what the peer has told, of endpoints that do not listen. */
  Connect: WvIoConnectParam,
  /** Offset 0: how many requests may wait, of a listener. */
  Backlog: u64,
});

/**
 * EP_QUERY's output. Addresses that are not set are all zero. Data holds 56 bytes of the private data of a REP (196) or
 * REJ (148); the rest, up to the last byte that is not 0, follows the structure in a larger output.
 */
export const WvIoEpAttributes = struct('WV_IO_EP_ATTRIBUTES', {
  /** Offset 0: this side's address and port. */
  LocalAddress: WvIoSockaddrData,
  /** Offset 32: the peer's address and port; all zero of a listener. */
  PeerAddress: WvIoSockaddrData,
  /** Offset 64: the device of the local address. */
  Device: WvIoDeviceAddress,
  /** Offset 80: the peer's parameters, or the backlog. */
  Param: WvIoEpParam,
});

/** Size in bytes of an endpoint's attributes with the longest private data. */
export const epAttributesRoom = WvIoEpAttributes.size + Capacity.REP_DATA - Capacity.CONNECT_DATA;

/** EP_DISCONNECT: the endpoint and its queue pair. */
export const WvIoEpDisconnect = struct('WV_IO_EP_DISCONNECT', {
  /** Offset 0: the endpoint. */
  Id: u64,
  /** Offset 8: its queue pair, which goes to ERROR. */
  QpId: u64,
});

// ── Datagram endpoints: our own layouts; the WinVerbs interface never defined any ──────────────────────────

/** Path to a datagram peer or multicast group, and the peer's answer. */
export const WvIoDatagramParam = struct('WV_IO_DATAGRAM_PARAM', {
  /** All zero if there is no peer. */
  AddressVector: WvIoAv,
  /** The peer's queue pair number; 0: unknown; 0xFFFFFF: the multicast group. */
  Qpn: u32be,
  /** The Q_Key that datagrams to it must carry. */
  Qkey: u32be,
  /** Number of valid bytes in Data. */
  DataLength: u8,
  /** The peer's answer (IBA 1 §12.11.2): 0 is yes, all others are reasons for CONNECTION_REFUSED. */
  SidrStatus: u8,
  /** Pad of 2 bytes: written as 0, not read. */
  Reserved: reserved(2),
  /** From the peer: 180 bytes of a request, 136 of an answer. To the peer: at most 136. */
  Data: bytes(180),
});

/** EP_LOOKUP: requests a peer's queue pair. Data: at most 180 bytes. Output: {@link WvIoEpDatagramAttributes}. */
export const WvIoEpLookup = struct('WV_IO_EP_LOOKUP', {
  /** The datagram endpoint, which gets an address if it has none. */
  Id: u64,
  /** Address and port of the peer's datagram listener. */
  PeerAddress: WvIoSockaddrData,
  /** Bytes of private data in Data, 0 to 180. */
  DataLength: u8,
  /** Pad of 3 bytes: written as 0, not read. */
  Reserved: reserved(3),
  /** Private data for the peer's application. */
  Data: bytes(180),
});

/** EP_ACCEPT of a datagram endpoint: QpId names a UD queue pair of the file. If it is 0, Param.Qpn is used. */
export const WvIoEpDatagramAccept = struct('WV_IO_EP_DATAGRAM_ACCEPT', {
  /** The datagram endpoint that has the request. */
  Id: u64,
  /** The queue pair whose number the peer is told; 0: that of Param. */
  QpId: u64,
  /** What the peer is told: queue pair number, Q_Key and private data. */
  Param: WvIoDatagramParam,
});

/** EP_QUERY of a datagram endpoint: PeerAddress selects a peer or a group; all zero: the requester, if there is one. */
export const WvIoEpDatagramQuery = struct('WV_IO_EP_DATAGRAM_QUERY', {
  /** The datagram endpoint. */
  Id: u64,
  /** Selects what is answered: a peer, a group, or, all zero, the requester. */
  PeerAddress: WvIoSockaddrData,
});

/** Output of EP_QUERY of a datagram endpoint, of EP_LOOKUP and of EP_MULTICAST_JOIN. Addresses not set are zero. */
export const WvIoEpDatagramAttributes = struct('WV_IO_EP_DATAGRAM_ATTRIBUTES', {
  /** This side's address and port. */
  LocalAddress: WvIoSockaddrData,
  /** The peer's address and port, or the group's address. */
  PeerAddress: WvIoSockaddrData,
  /** The device of the local address. */
  Device: WvIoDeviceAddress,
  /** How many requests may wait, of a listener; 0 of all others. */
  Backlog: u64,
  /** How datagrams reach the peer or the group, and what the peer has told. */
  Param: WvIoDatagramParam,
});

/** EP_MULTICAST_JOIN and EP_MULTICAST_LEAVE: the group's address. Its port is ignored. */
export const WvIoEpMulticast = struct('WV_IO_EP_MULTICAST', {
  /** The datagram endpoint, whose address names the interface. */
  Id: u64,
  /** The group's address; its port is ignored. */
  Address: WvIoSockaddrData,
});

// ── IBAT and connection management ──────────────────────────────────────────────────────────────────────────

/** IP_TO_PORT's input: an address of this host. Version is {@link IBAT_VERSION}. */
export const IbatIpToPortIn = struct('IOCTL_IBAT_IP_TO_PORT_IN', {
  /** Offset 0: {@link IBAT_VERSION}; others are refused. */
  Version: u32,
  /** Offset 4: an address of this host; the port is ignored. */
  Address: sockaddr28,
});

/** IP_TO_PORT's output: the device and port of the address. */
export const IbatPortRecord = struct('IBAT_PORT_RECORD', {
  /** Offset 0: the CA GUID of the device that has the address. */
  CaGuid: u64be,
  /** Offset 8: the GUID of the port. */
  PortGuid: u64be,
  /** Offset 16: the P_Key of the address' partition. */
  PKey: u16be,
  /** Offset 18: the port, from 1. */
  PortNum: u8,
  /** Pad of 5 bytes: written as 0, not read. */
  Pad: reserved(5),
});

/** PATH's input: an address of this host and the peer's. Version is {@link IBAT_VERSION}. */
export const IbatPathIn = struct('IOCTL_IBAT_IP_TO_PATH_IN', {
  /** Offset 0: {@link IBAT_VERSION}; others are refused. */
  Version: u32,
  /** An address of this host, of the interface that is to be used. */
  LocalAddress: sockaddr28,
  /** The peer's address, or a group's; the port is ignored. */
  RemoteAddress: sockaddr28,
});

/** PATH's output and the data of EP_MODIFY's ROUTE option: a PathRecord (IBA 1 §15.2.5.16). */
export const IbPathRecord = struct('ib_path_rec_t', {
  /** Offset 0: not used here; 0. */
  service_id: u64be,
  /** Offset 8: the destination GID. */
  dgid: bytes(16),
  /** Offset 24: the source GID. */
  sgid: bytes(16),
  /** Offset 40: the destination LID; 0 on RoCE. */
  dlid: u16be,
  /** Offset 42: the source LID; 0 on RoCE. */
  slid: u16be,
  /** Offset 44: the hop limit in the low 8 bits, the flow label in the 20 above. */
  hop_flow_raw: u32be,
  /** Offset 48: IPv4's TOS or IPv6's traffic class. */
  tclass: u8,
  /** Offset 49: the number of paths, in the low 7 bits; not read here. */
  num_path: u8,
  /** Offset 50: the P_Key of the path. */
  pkey: u16be,
  /** Offset 52: the QoS class in the high 12 bits, the service level in the low 4; not read on RoCE. */
  qos_class_sl: u16be,
  /** Offset 54: the selector in the high 2 bits, the IB MTU code (1 to 5: 256 to 4096 bytes) in the low 6. */
  mtu: u8,
  /** Offset 55: the selector in the high 2 bits, a code of the rate in the low 6 (IBA 1 §15.2.5.16); not read here. */
  rate: u8,
  /** Offset 56: the selector in the high 2 bits, the time of a packet on its way in the low 6: 4.096 µs × 2^code. */
  pkt_life: u8,
  /** Offset 57: the lower, the better among several paths; not read here. */
  preference: u8,
  /** Pad of 6 bytes: written as 0, not read. */
  resv2: reserved(6),
});

/** How many changes of devices and addresses the kernel has seen; 0: the program knows of none, and is answered at once. */
export const ChangeCount = struct('CHANGE_COUNT', {
  /** Offset 0: grows by one with each change, from 1 on. */
  Count: u32,
});

/** EP_MODIFY with option ROUTE. */
export const WvIoEpRoute = struct('WV_IO_ID + ib_path_rec_t', {
  /** Offset 0: the endpoint; Data is {@link EpOption}.ROUTE. */
  Id: WvIoId,
  /** Offset 16: the path that the endpoint's connection is to use. */
  Path: IbPathRecord,
});

/** Precedes the consumer's private data in a REQ. Port is the sender's; IPv4 addresses use the last 4 bytes. */
export const IbCmaHeader = struct('IB_CMA_HEADER', {
  /** Offset 0: the version of the header, 0 (IBA 1 Annex A11). */
  CmaVersion: u8,
  /** Offset 1: 0x40 for IPv4, 0x60 for IPv6. */
  IpVersion: u8,
  /** Offset 2: the sender's port in its port space. */
  Port: u16be,
  /** Offset 4: the sender's IP address; IPv4 in the last 4 bytes, the others 0. */
  SrcAddress: bytes(16),
  /** Offset 20: the IP address that the sender wants to reach, in the same form. */
  DstAddress: bytes(16),
});

/** @deprecated EP_CREATE returns one id, {@link WvIoObject}. */
export const WvEpIds = list(u64);
