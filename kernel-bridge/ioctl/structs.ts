/**
 * The structures of all WinVerbs and IBAT IOCTLs: pointer-free, the same for 32- and 64-bit callers. Field names are
 * those of the WinVerbs and IBAT interfaces. Sources: WinVerbs IOCTL interface, IBAT interface version 6, IBA 1 Annex
 * A11 (RDMA IP CM service) for IB_CMA_HEADER, and IBA 1 §15.2.5.16 (PathRecord) for ib_path_rec_t.
 *
 * "Id" fields refer to objects of the device file; 0 is none. VerbInfo carries `ci_umv_buf_t.command` in and its
 * `status` out (provider-data.ts).
 *
 * Offsets in the comments of fields are bytes from the start of the structure.
 */
import { Capacity } from './constants.js';
import { bytes, layouts, list, reserved, u8, u16, u16be, u32, u32be, u64, u64be } from './layout.js';
import { madeCode } from './made-code.js';

const { struct, union } = layouts(madeCode);

// ── Identifiers ─────────────────────────────────────────────────────────────────────────────────────────────

/** A single `u64 Id`: the input of destroy, cancel and query requests, and the output of EP_CREATE. */
export const WvIoObject = struct('u64 Id', {
  /** Offset 0: the id of an object of this file, below 2^32; 0: none. */
  Id: u64,
});

/** A CA GUID in network order: LIBRARY_QUERY's input. */
export const WvIoGuid = struct('u64be Guid', {
  /** Offset 0: the CA GUID of a device, its EUI-64. */
  Guid: u64be,
});

/** Data is the port (DEVICE_NOTIFY), entries (CQ_*), lkey (MEMORY_DEREGISTER), notify type or option. */
export const WvIoId = struct('WV_IO_ID', {
  /** Offset 0: the object of the request, or the new object in the output of a create request. */
  Id: u64,
  /** Offset 8: the command of the provider's `ci_umv_buf_t` in and its status out, or 0 without provider data. */
  VerbInfo: u32,
  /** Offset 12: its meaning depends on the IOCTL, see {@link IoctlCode}. */
  Data: u32,
});

/** Offset of VerbInfo in a WV_IO_ID, the head of every structure with provider data. */
export const VERB_INFO = 8;

/** The input of DEVICE_OPEN: a WV_IO_ID whose Id is the CA GUID in network order. The output is a plain WV_IO_ID. */
export const WvIoDeviceOpen = struct('WV_IO_ID (CA GUID)', {
  /** Offset 0: the CA GUID of the device to open. */
  Guid: u64be,
  /** Offset 8: as in {@link WvIoId}. */
  VerbInfo: u32,
  /** Offset 12: unused; 0. */
  Data: u32,
});

/** The output of MW_ALLOCATE: a WV_IO_ID whose Data is the rkey in network order. */
export const WvIoMwKey = struct('WV_IO_ID (rkey)', {
  /** Offset 0: the new memory window. */
  Id: u64,
  /** Offset 8: as in {@link WvIoId}. */
  VerbInfo: u32,
  /** Offset 12: the window's first rkey, which grants nothing until the window is bound. */
  Rkey: u32be,
});

/** GUID_QUERY: the number of devices, then the GUIDs that fit (at least one entry, see {@link WvGuidEntries}). */
export const WvIoGuidList = struct('WV_IO_GUID_LIST', {
  /** Offset 0: the number of devices, including those whose GUIDs did not fit. */
  Count: u64,
  /** Offset 8: the GUID of the first device, or 0 without devices. The others follow. */
  Guid: u64be,
});

// ── Devices and ports ───────────────────────────────────────────────────────────────────────────────────────

/** DEVICE_QUERY's output: limits of a device, as counts unless stated otherwise. */
export const WvIoDeviceAttributes = struct('WV_IO_DEVICE_ATTRIBUTES', {
  /** Offset 0: the firmware version in a vendor-specific form, usually the 16-bit parts of libibverbs. */
  FwVersion: u64,
  /** Offset 8: the GUID of the node. The software HCA reports the device's GUID. */
  NodeGuid: u64be,
  /** Offset 16: the same for all devices of one piece of hardware. CA_MODIFY sets it. */
  SystemImageGuid: u64be,
  /** Offset 24: the vendor's IEEE OUI, 24 bits. */
  VendorId: u32,
  /** Offset 28: the vendor's device type number. */
  VendorPartId: u32,
  /** Offset 32: the vendor's hardware revision number. */
  HwVersion: u32,
  /** Offset 36: an OR of {@link WvCapability}. */
  CapabilityFlags: u32,
  /** Offset 40: an {@link AtomicCapability}. */
  AtomicCapability: u32,
  /** Offset 44: an OR of the supported page sizes for registering memory, in bytes. */
  PageSizeCapabilityFlags: u32,
  /** Offset 48: maximum size of a memory region, in bytes. */
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
  /** Offset 84: RDMA Reads and atomics of a peer that one queue pair serves at a time. */
  MaxQpResponderResources: u32,
  /** Offset 88: the same limit for all queue pairs together. */
  MaxResponderResources: u32,
  /** Offset 92: outstanding RDMA Reads and atomics of one queue pair. */
  MaxQpInitiatorDepth: u32,
  /** Offset 96: maximum size of an INLINE request, in bytes. */
  MaxInlineSend: u32,
  /** Offset 100: memory windows; 0: not supported. */
  MaxMw: u32,
  /** Offset 104: multicast groups with an attached queue pair. */
  MaxMulticast: u32,
  /** Offset 108: queue pairs attached to one multicast group. */
  MaxQpAttach: u32,
  /** Offset 112: attachments of all groups together. */
  MaxMulticastQp: u32,
  /** Offset 116: address handles. */
  MaxAh: u32,
  /** Offset 120: fast memory regions of the old kind (FMR), 0 on the software HCA. */
  MaxFmr: u32,
  /** Offset 124: number of times that an FMR may be mapped before it must be unmapped, 0 on the software HCA. */
  MaxMapPerFmr: u32,
  /** Offset 128: shared receive queues; 0: not supported. */
  MaxSrq: u32,
  /** Offset 132: receives in one shared receive queue. */
  MaxSrqWr: u32,
  /** Offset 136: SGEs of a receive of a shared receive queue. */
  MaxSrqSge: u32,
  /** Offset 140: entries of a port's P_Key table. */
  MaxPkeys: u32,
  /** Offset 144: a {@link DeviceType}. */
  DeviceType: u32,
  /** Offset 148: maximum delay of this device's acknowledgements, as a code: 4.096 µs × 2^code. */
  LocalAckDelay: u8,
  /** Offset 149: the number of ports. Each WinVerbs device of the software HCA has one. */
  PhysPortCount: u8,
  /**
   * Offset 150: SGEs of an RDMA Read, at most 255; 0: the same as MaxSge. This package's addition, padding of 0 in
   * Windows' structure.
   */
  MaxReadSge: u8,
  /** Padding of 1 byte: written as 0, ignored when read. */
  Reserved: reserved(1),
});

/** Input of DEVICE_PORT_QUERY, DEVICE_GID_QUERY and DEVICE_PKEY_QUERY: a port of a device. */
export const WvIoDevicePortQuery = struct('WV_IO_DEVICE_PORT_QUERY', {
  /** Offset 0: the open device. */
  Id: u64,
  /** Offset 8: the port, from 1. */
  PortNumber: u8,
  /** Padding of 7 bytes: written as 0, ignored when read. */
  Reserved: reserved(7),
});

/** DEVICE_PORT_QUERY's output: the state and limits of a port (IBA 1 §11.2.2.3). */
export const WvIoPortAttributes = struct('WV_IO_PORT_ATTRIBUTES', {
  /** Offset 0: an OR of {@link WvCapability}. The spelling is that of the interface. */
  PortCabilityFlags: u32,
  /** Offset 4: a {@link PortState}. */
  State: u32,
  /** Offset 8: largest supported payload of a packet in bytes (256, 512, 1024, 2048 or 4096). */
  MaxMtu: u32,
  /** Offset 12: largest current payload of a packet in bytes, which follows the MTU of the network interface. */
  ActiveMtu: u32,
  /** Offset 16: entries of the GID table. */
  GidTableLength: u32,
  /** Offset 20: maximum size of a message, in bytes. */
  MaxMessageSize: u32,
  /** Offset 24: number of packets whose P_Key the port does not have. */
  BadPkeyCounter: u32,
  /** Offset 28: number of datagrams whose Q_Key did not match that of their queue pair. */
  QkeyViolationCounter: u32,
  /** Offset 32: entries of the P_Key table. */
  PkeyTableLength: u16,
  /** Offset 34: the port's LID, 0 on RoCE. */
  Lid: u16be,
  /** Offset 36: the LID of the subnet manager, 0 on RoCE. */
  SmLid: u16be,
  /** Offset 38: how many low bits of the LID the port ignores, 0 to 7, and 0 on RoCE. */
  Lmc: u8,
  /** Offset 39: a code of the number of virtual lanes (IBA 1 §14.2.5.6): 1 is one lane. */
  MaxVls: u8,
  /** Offset 40: the service level of messages to the subnet manager, 0 on RoCE. */
  SmSl: u8,
  /** Offset 41: maximum time that a packet takes through the subnet, as a code: 4.096 µs × 2^code; 0 on RoCE. */
  SubnetTimeout: u8,
  /** Offset 42: the type of initialisation executed by the subnet manager, 0 on RoCE. */
  InitTypeReply: u8,
  /** Offset 43: the number of lanes as a code (1, 2, 4, 8 for 1, 4, 8 and 12 lanes). */
  ActiveWidth: u8,
  /** Offset 44: the speed of a lane as a code (IBA 1 §14.2.5.6): 1 is 2.5 Gbit/s. */
  ActiveSpeed: u8,
  /** Offset 45: the state of the link as a code (IBA 1 §14.2.5.6): 5 is up, 3 disabled. */
  PhysicalState: u8,
  /** Offset 46: a {@link PortTransport}. */
  Transport: u8,
  /** Offset 47: the speed of a lane where ActiveSpeed has no code for it, otherwise 0. */
  ExtActiveSpeed: u8,
  /** Offset 48: the link's encoding, as a code; 0: not reported. */
  LinkEncoding: u8,
  /** Padding of 3 bytes: written as 0, ignored when read. */
  Pad: reserved(3),
});

/** A GID, 16 bytes in network order. */
export const WvIoGid = struct('WV_IO_GID', {
  /** Offset 0: the GID, on RoCE v2 the IPv6 address or the IPv4 address as ::ffff:a.b.c.d. */
  Raw: bytes(16),
});

/** Declared by the interface; no IOCTL uses it. */
export const WvIoEvent = struct('WV_IO_EVENT', {
  /** Offset 0: reserved for a status. */
  Status: u32,
  /** Offset 4: reserved for the kind of event. */
  Type: u32,
  /** Offset 8: reserved for the port, from 1. */
  PortNumber: u8,
  /** Padding of 3 bytes: written as 0, ignored when read. */
  Reserved: reserved(3),
});

/** DEVICE_NOTIFY's output: events since the last one that it returned. */
export const WvIoEventFlags = struct('u32 Flags', {
  /** Offset 0: an OR of {@link WvEvent}, never 0 on success. */
  Flags: u32,
});

// ── Memory and address handles ──────────────────────────────────────────────────────────────────────────────

/** MEMORY_REGISTER's input: an address range of the calling process and its access rights. */
export const WvIoMemoryRegister = struct('WV_IO_MEMORY_REGISTER', {
  /** Offset 0: the protection domain. */
  Id: u64,
  /** Offset 8: the first byte, a virtual address of the calling process. */
  Address: u64,
  /** Offset 16: length in bytes, from 1. */
  BufferLength: u64,
  /** Offset 24: an OR of {@link WvAccess}. */
  AccessFlags: u32,
  /** Padding of 4 bytes: written as 0, ignored when read. */
  Reserved: reserved(4),
});

/** MEMORY_REGISTER's output. The rkey is in network order; its value is the number in packets. */
export const WvIoMemoryKeys = struct('WV_IO_MEMORY_KEYS', {
  /** Offset 0: the key for local SGEs, opaque. */
  Lkey: u32,
  /** Offset 4: the key for the peer, with the rights of the access flags. */
  Rkey: u32be,
});

/**
 * An address vector: the destination of a queue pair's or address handle's packets (IBA 1 §11.2.3.1). RoCE has no LIDs.
 */
export const WvIoAv = struct('WV_IO_AV', {
  /** Offset 0: 1: the fields of the network route (up to DGid) are valid; always 1 on RoCE. */
  NetworkRouteValid: u8,
  /** Padding of 1 byte: written as 0, ignored when read. */
  Reserved1: reserved(1),
  /** Offset 2: IPv4's TTL or IPv6's hop limit; 0: the driver's choice. */
  HopLimit: u8,
  /** Offset 3: IPv4's TOS or IPv6's traffic class. The upper six bits are the DSCP. */
  TrafficClass: u8,
  /** Offset 4: the flow label of IPv6 headers in the low 20 bits. */
  FlowLabel: u32be,
  /** Offset 8: the source GID, from the port's table. */
  SGid: bytes(16),
  /** Offset 24: the destination GID. */
  DGid: bytes(16),
  /** Padding of 2 bytes: written as 0, ignored when read. */
  Reserved2: reserved(2),
  /** Offset 42: the destination LID, 0 on RoCE. */
  DLid: u16be,
  /** Offset 44: the InfiniBand service level, 0 to 15. Unused on RoCE. */
  ServiceLevel: u8,
  /** Offset 45: the low bits of the source LID, 0 on RoCE. */
  SourcePathBits: u8,
  /** Offset 46: the injection rate as a code (IBA 1 §9.11); 0: the rate of the port. */
  StaticRate: u8,
  /** Offset 47: the local port, from 1. */
  PortNumber: u8,
});

/** AH_CREATE: Id is the protection domain in, the address handle out. */
export const WvIoAhCreate = struct('WV_IO_AH_CREATE', {
  /** Offset 0: the protection domain in, the address handle out. */
  Id: WvIoId,
  /** Offset 16: the destination of datagrams sent with the handle. */
  AddressVector: WvIoAv,
});

// ── Queues ──────────────────────────────────────────────────────────────────────────────────────────────────

/** SRQ_CREATE, SRQ_QUERY and SRQ_MODIFY: Id is the protection domain or the shared receive queue. */
export const WvIoSrqAttributes = struct('WV_IO_SRQ_ATTRIBUTES', {
  /** Offset 0: the protection domain or the shared receive queue. */
  Id: WvIoId,
  /** Offset 16: the number of receives, requested in, granted out. */
  MaxWr: u32,
  /** Offset 20: SGEs of a receive, fixed at creation. */
  MaxSge: u32,
  /** Offset 24: the limit. One event is reported when fewer receives are left; 0: no event. */
  SrqLimit: u32,
  /** Padding of 4 bytes: written as 0, ignored when read. */
  Reserved: reserved(4),
});

/** QP_CREATE: Id is the protection domain in and the queue pair out. Depths and limits are requested in and granted out. */
export const WvIoQpCreate = struct('WV_IO_QP_CREATE', {
  /** Offset 0: the protection domain in, the queue pair out. */
  Id: WvIoId,
  /** Offset 16: the completion queue of send requests. */
  SendCqId: u64,
  /** Offset 24: the completion queue of receives, which may be the same. */
  ReceiveCqId: u64,
  /** Offset 32: the shared receive queue; 0: the queue pair has its own receive queue. */
  SrqId: u64,
  /** Offset 40: maximum number of outstanding send requests. */
  SendDepth: u32,
  /** Offset 44: SGEs of a send request. */
  SendSge: u32,
  /** Offset 48: maximum number of outstanding receives, ignored with a shared receive queue. */
  ReceiveDepth: u32,
  /** Offset 52: SGEs of a receive, ignored with a shared receive queue. */
  ReceiveSge: u32,
  /** Offset 56: maximum size of an INLINE request, in bytes. */
  MaxInlineSend: u32,
  /** Offset 60: maximum number of outstanding RDMA Reads and atomics of this side; 0: the HCA's limit. */
  InitiatorDepth: u32,
  /** Offset 64: maximum number of the peer's RDMA Reads and atomics served at a time; 0: the HCA's limit. */
  ResponderResources: u32,
  /** Offset 68: a {@link QpType}. */
  QpType: u8,
  /** Offset 69: an OR of {@link QpFlag}. */
  QpFlags: u8,
  /** Padding of 2 bytes: written as 0, ignored when read. */
  Reserved: reserved(2),
});

/** QP_QUERY's output and QP_MODIFY's input (IBA 1 §11.2.5.2). */
export const WvIoQpAttributes = struct('WV_IO_QP_ATTRIBUTES', {
  /** Offset 0: the queue pair. */
  Id: WvIoId,
  /** Offset 16: maximum number of outstanding send requests. */
  SendDepth: u32,
  /** Offset 20: SGEs of a send request. */
  SendSge: u32,
  /** Offset 24: maximum number of outstanding receives. */
  ReceiveDepth: u32,
  /** Offset 28: SGEs of a receive. */
  ReceiveSge: u32,
  /** Offset 32: maximum size of an INLINE request, in bytes. */
  MaxInlineSend: u32,
  /** Offset 36: maximum number of outstanding RDMA Reads and atomics of this side. */
  InitiatorDepth: u32,
  /** Offset 40: maximum number of the peer's RDMA Reads and atomics served at a time. */
  ResponderResources: u32,
  /** Offset 44: the attributes that are valid, or to be changed, as an OR of {@link QpAttr}. */
  Options: u32,
  /** Offset 48: a {@link QpType}, which QP_MODIFY does not change. */
  QpType: u8,
  /** Offset 49: the {@link QpState} that the caller assumes. In an output it equals QpState. */
  CurrentQpState: u8,
  /** Offset 50: the current or requested {@link QpState}. */
  QpState: u8,
  /** Offset 51: an {@link ApmState}, 0 on the software HCA, which does not support path migration. */
  ApmState: u8,
  /** Offset 52: this queue pair's number, 24 bits. */
  Qpn: u32be,
  /** Offset 56: the peer's queue pair number, 24 bits. */
  DestinationQpn: u32be,
  /** Offset 60: the Q_Key of a datagram queue pair. Values from 0x80000000 on are privileged. */
  Qkey: u32be,
  /** Offset 64: the PSN of the first packet sent, 24 bits. */
  SendPsn: u32be,
  /** Offset 68: the expected PSN of the first packet received, 24 bits. */
  ReceivePsn: u32be,
  /** Offset 72: the path to the peer. */
  AddressVector: WvIoAv,
  /** Offset 120: the path that the connection may migrate to. The software HCA does not use it. */
  AlternateAddressVector: WvIoAv,
  /** Offset 168: payload of a full packet in bytes (256, 512, 1024, 2048 or 4096). */
  PathMtu: u32,
  /** Offset 172: the same for the alternate path. */
  AlternatePathMtu: u32,
  /** Offset 176: the index of the queue pair's P_Key in the port's table. */
  PkeyIndex: u16,
  /** Offset 178: the same for the alternate path. */
  AlternatePkeyIndex: u16,
  /** Offset 180: how long to wait for an acknowledgement, 5 bits: 4.096 µs × 2^code; 0 is infinite. */
  LocalAckTimeout: u8,
  /** Offset 181: the same for the alternate path. */
  AlternateLocalAckTimeout: u8,
  /** Offset 182: how long RNR NAKs make the peer wait for a receive, as a code of 5 bits (IBA 1 §9.7.5.2.8). */
  RnrNakTimeout: u8,
  /** Offset 183: retries without an acknowledgement, 0 to 7. */
  SequenceErrorRetryCount: u8,
  /** Offset 184: retries when the peer has no receive posted, 0 to 6; 7: unlimited. */
  RnrRetryCount: u8,
  /** Offset 185: the operations permitted to the peer, as an OR of the {@link WvAccess} values below 0x100. */
  AccessFlags: u8,
  /** Offset 186: an OR of {@link QpFlag}, as created. */
  QpFlags: u8,
  /** Padding of 5 bytes: written as 0, ignored when read. */
  Reserved: reserved(5),
});

/** Id.Data carries the multicast LID in its low 16 bits, in network order. */
export const WvIoQpMulticast = struct('WV_IO_QP_MULTICAST', {
  /** Offset 0: the datagram queue pair. Data has the multicast LID. */
  Id: WvIoId,
  /** Offset 16: the group's GID, which is its IP address on RoCE v2. */
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
  /** Offset 2: port and address, in the format of the family. */
  SaData: bytes(14),
});

/** SOCKADDR_IN: family 2. */
export const WvIoSockaddrIn = struct('WV_IO_SOCKADDR_IN', {
  /** Offset 0: {@link AddressFamily}.IPV4. */
  SinFamily: u16,
  /** Offset 2: the port; 0: none. */
  SinPort: u16be,
  /** Offset 4: the IPv4 address. 0 is the wildcard. */
  SinAddr: u32be,
  /** Padding of 8 bytes: written as 0, ignored when read. */
  SinZero: reserved(8),
});

/** SOCKADDR_IN6: family 23. */
export const WvIoSockaddrIn6 = struct('WV_IO_SOCKADDR_IN6', {
  /** Offset 0: {@link AddressFamily}.IPV6. */
  Sin6Family: u16,
  /** Offset 2: the port; 0: none. */
  Sin6Port: u16be,
  /** Offset 4: traffic class and flow label, written as 0. */
  Sin6FlowInfo: u32be,
  /** Offset 8: the IPv6 address. All zero is the wildcard. */
  Sin6Addr: bytes(16),
  /** Offset 24: the index of the interface for link-local addresses, 0 for all others. */
  Sin6ScopeId: u32,
});

/** An address of either family, as `encodeSockaddr` writes and `decodeSockaddr` reads it. */
export const WvIoSockaddrData = struct('WV_IO_SOCKADDR_DATA', {
  /** Offset 0: a SOCKADDR_IN or SOCKADDR_IN6. Unused bytes are 0. */
  SockAddr: sockaddr28,
  /** Padding of 4 bytes: written as 0, ignored when read. */
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
  /** Padding of 5 bytes: written as 0, ignored when read. */
  Reserved: reserved(5),
});

// ── Endpoints ───────────────────────────────────────────────────────────────────────────────────────────────

/** EP_CREATE's input: {@link EpType} in the low 16 bits. */
export const WvIoEpCreate = struct('u64 EpType', {
  /** Offset 0: an {@link EpType}. The upper 48 bits are ignored. */
  EpType: u64,
});

/** EP_BIND: the requested address and its device in, the granted address out. */
export const WvIoEpBind = struct('WV_IO_EP_BIND', {
  /** Offset 0: the endpoint. */
  Id: u64,
  /** Offset 8: the address and port, 0 for a port chosen by the kernel. The output has those that were granted. */
  Address: WvIoSockaddrData,
  /** Offset 40: the device of the address. The output has the device found by the kernel. */
  Device: WvIoDeviceAddress,
});

/** EP_LISTEN: the backlog limits the number of waiting requests; 0: the driver's limit. */
export const WvIoEpListen = struct('WV_IO_EP_LISTEN', {
  /** Offset 0: a bound endpoint. */
  Id: u64,
  /** Offset 8: how many requests may wait for GetRequest. Further ones are refused. */
  Backlog: u64,
});

/** Id is the listener, EpId the endpoint for the next request. */
export const WvIoEpGetRequest = struct('WV_IO_EP_GET_REQUEST', {
  /** Offset 0: the listener. */
  Id: u64,
  /** Offset 8: a new endpoint, which receives the request. */
  EpId: u64,
});

/** Connection parameters exchanged by both sides. Depths and resources are numbers of outstanding RDMA Reads. */
export const WvIoConnectParam = struct('WV_IO_CONNECT_PARAM', {
  /** Offset 0: the peer's RDMA Reads and atomics that this side serves at a time, 0 to 255. */
  ResponderResources: u64,
  /** Offset 8: outstanding RDMA Reads and atomics of this side, 0 to 255. */
  InitiatorDepth: u64,
  /** Offset 16: retries without an acknowledgement, 0 to 7. */
  RetryCount: u8,
  /** Offset 17: retries when the peer has no receive posted, 0 to 6; 7: unlimited. */
  RnrRetryCount: u8,
  /** Offset 18: length of the private data in bytes, at most 56, in Data. For EP_ACCEPT at most 196; the rest follows the structure. */
  DataLength: u8,
  /** Padding of 5 bytes: written as 0, ignored when read. */
  Reserved: reserved(5),
  /** Offset 24: private data for the peer, or from it. */
  Data: bytes(56),
});

/** EP_CONNECT: the endpoint, its queue pair and the peer. */
export const WvIoEpConnect = struct('WV_IO_EP_CONNECT', {
  /** Offset 0: the endpoint. */
  Id: u64,
  /** Offset 8: the queue pair to connect, which moves to RTS when the connection is established. */
  QpId: u64,
  /** Offset 16: the listener's address and port. */
  PeerAddress: WvIoSockaddrData,
  /** Offset 48: the parameters sent to the peer. */
  Param: WvIoConnectParam,
});

/** EP_ACCEPT: the endpoint and its queue pair. */
export const WvIoEpAccept = struct('WV_IO_EP_ACCEPT', {
  /** Offset 0: the endpoint with the request or the reply. */
  Id: u64,
  /** Offset 8: the queue pair to connect. */
  QpId: u64,
  /** Offset 16: the parameters sent to the peer. */
  Param: WvIoConnectParam,
});

/** Param of {@link WvIoEpAttributes}: Backlog for a listener, Connect for every other endpoint. */
export const WvIoEpParam = union('WV_IO_EP_ATTRIBUTES.Param', {
  /** Offset 0: the parameters received from the peer, for endpoints that do not listen. */
  Connect: WvIoConnectParam,
  /** Offset 0: a listener's maximum number of waiting requests. */
  Backlog: u64,
});

/**
 * EP_QUERY's output. Addresses that are not set are all zero. Data holds 56 bytes of the private data of a REP (196) or
 * REJ (148); the rest, up to the last byte that is not 0, follows the structure in a larger output.
 */
export const WvIoEpAttributes = struct('WV_IO_EP_ATTRIBUTES', {
  /** Offset 0: this side's address and port. */
  LocalAddress: WvIoSockaddrData,
  /** Offset 32: the peer's address and port, all zero for a listener. */
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
  /** Offset 8: its queue pair, which moves to ERROR. */
  QpId: u64,
});

// ── Datagram endpoints: this package's own layouts, because WinVerbs does not define any ───────────────────

/** Path to a datagram peer or multicast group, and the peer's reply. */
export const WvIoDatagramParam = struct('WV_IO_DATAGRAM_PARAM', {
  /** All zero without a peer. */
  AddressVector: WvIoAv,
  /** The peer's queue pair number, 0 if unknown, or 0xFFFFFF for a multicast group. */
  Qpn: u32be,
  /** The Q_Key that datagrams to it must carry. */
  Qkey: u32be,
  /** Number of valid bytes in Data. */
  DataLength: u8,
  /** The status of the peer's reply (IBA 1 §12.11.2): 0 is success; all others are reasons for CONNECTION_REFUSED. */
  SidrStatus: u8,
  /** Padding of 2 bytes: written as 0, ignored when read. */
  Reserved: reserved(2),
  /** From the peer: 180 bytes of a request, 136 of a reply. To the peer: at most 136. */
  Data: bytes(180),
});

/** EP_LOOKUP: requests a peer's queue pair. Data: at most 180 bytes. Output: {@link WvIoEpDatagramAttributes}. */
export const WvIoEpLookup = struct('WV_IO_EP_LOOKUP', {
  /** The datagram endpoint; it is given an address if it has none. */
  Id: u64,
  /** Address and port of the peer's datagram listener. */
  PeerAddress: WvIoSockaddrData,
  /** Length of the private data in Data, 0 to 180 bytes. */
  DataLength: u8,
  /** Padding of 3 bytes: written as 0, ignored when read. */
  Reserved: reserved(3),
  /** Private data for the peer's application. */
  Data: bytes(180),
});

/** EP_ACCEPT of a datagram endpoint: QpId is a UD queue pair of the file. If it is 0, Param.Qpn is used. */
export const WvIoEpDatagramAccept = struct('WV_IO_EP_DATAGRAM_ACCEPT', {
  /** The datagram endpoint with the request. */
  Id: u64,
  /** The queue pair whose number is sent to the peer; 0: that of Param. */
  QpId: u64,
  /** The reply to the peer: queue pair number, Q_Key and private data. */
  Param: WvIoDatagramParam,
});

/** EP_QUERY of a datagram endpoint: PeerAddress selects a peer or a group. All zero selects the requester. */
export const WvIoEpDatagramQuery = struct('WV_IO_EP_DATAGRAM_QUERY', {
  /** The datagram endpoint. */
  Id: u64,
  /** Selects the output: a peer, a group, or, all zero, the requester. */
  PeerAddress: WvIoSockaddrData,
});

/** Output of EP_QUERY of a datagram endpoint, of EP_LOOKUP and of EP_MULTICAST_JOIN. Unset addresses are zero. */
export const WvIoEpDatagramAttributes = struct('WV_IO_EP_DATAGRAM_ATTRIBUTES', {
  /** This side's address and port. */
  LocalAddress: WvIoSockaddrData,
  /** The peer's address and port, or the group's address. */
  PeerAddress: WvIoSockaddrData,
  /** The device of the local address. */
  Device: WvIoDeviceAddress,
  /** A listener's maximum number of waiting requests; 0 for all others. */
  Backlog: u64,
  /** The path to the peer or the group, and the peer's reply. */
  Param: WvIoDatagramParam,
});

/** EP_MULTICAST_JOIN and EP_MULTICAST_LEAVE: the group's address. Its port is ignored. */
export const WvIoEpMulticast = struct('WV_IO_EP_MULTICAST', {
  /** The datagram endpoint; its address determines the interface. */
  Id: u64,
  /** The group's address; its port is ignored. */
  Address: WvIoSockaddrData,
});

// ── IBAT and connection management ──────────────────────────────────────────────────────────────────────────

/** IP_TO_PORT's input: an address of this host. Version is {@link IBAT_VERSION}. */
export const IbatIpToPortIn = struct('IOCTL_IBAT_IP_TO_PORT_IN', {
  /** Offset 0: {@link IBAT_VERSION}. Others are refused. */
  Version: u32,
  /** Offset 4: an address of this host. Its port is ignored. */
  Address: sockaddr28,
});

/** IP_TO_PORT's output: the device and port of the address. */
export const IbatPortRecord = struct('IBAT_PORT_RECORD', {
  /** Offset 0: the CA GUID of the device that has the address. */
  CaGuid: u64be,
  /** Offset 8: the GUID of the port. */
  PortGuid: u64be,
  /** Offset 16: the P_Key of the address's partition. */
  PKey: u16be,
  /** Offset 18: the port, from 1. */
  PortNum: u8,
  /** Padding of 5 bytes: written as 0, ignored when read. */
  Pad: reserved(5),
});

/** PATH's input: an address of this host and the peer's. Version is {@link IBAT_VERSION}. */
export const IbatPathIn = struct('IOCTL_IBAT_IP_TO_PATH_IN', {
  /** Offset 0: {@link IBAT_VERSION}. Others are refused. */
  Version: u32,
  /** An address of this host, on the interface to use. */
  LocalAddress: sockaddr28,
  /** The address of the peer or of a group; its port is ignored. */
  RemoteAddress: sockaddr28,
});

/** PATH's output and the data of EP_MODIFY's ROUTE option: a PathRecord (IBA 1 §15.2.5.16). */
export const IbPathRecord = struct('ib_path_rec_t', {
  /** Offset 0: unused; 0. */
  service_id: u64be,
  /** Offset 8: the destination GID. */
  dgid: bytes(16),
  /** Offset 24: the source GID. */
  sgid: bytes(16),
  /** Offset 40: the destination LID, 0 on RoCE. */
  dlid: u16be,
  /** Offset 42: the source LID, 0 on RoCE. */
  slid: u16be,
  /** Offset 44: the hop limit in the low 8 bits, the flow label in the 20 above. */
  hop_flow_raw: u32be,
  /** Offset 48: IPv4's TOS or IPv6's traffic class. */
  tclass: u8,
  /** Offset 49: the number of paths in the low 7 bits, ignored. */
  num_path: u8,
  /** Offset 50: the P_Key of the path. */
  pkey: u16be,
  /** Offset 52: the QoS class in the high 12 bits and the service level in the low 4, ignored on RoCE. */
  qos_class_sl: u16be,
  /** Offset 54: the selector in the high 2 bits, the IB MTU code (1 to 5 for 256 to 4096 bytes) in the low 6. */
  mtu: u8,
  /** Offset 55: the selector in the high 2 bits, the rate code in the low 6 (IBA 1 §15.2.5.16); ignored. */
  rate: u8,
  /** Offset 56: the selector in the high 2 bits, the packet life time in the low 6: 4.096 µs × 2^code. */
  pkt_life: u8,
  /** Offset 57: the preference among several paths (lower is better), ignored. */
  preference: u8,
  /** Padding of 6 bytes: written as 0, ignored when read. */
  resv2: reserved(6),
});

/** Number of changes of devices and addresses that the kernel has seen; with 0 the request completes immediately. */
export const ChangeCount = struct('CHANGE_COUNT', {
  /** Offset 0: incremented with each change, from 1 on. */
  Count: u32,
});

/** EP_MODIFY with option ROUTE. */
export const WvIoEpRoute = struct('WV_IO_ID + ib_path_rec_t', {
  /** Offset 0: the endpoint. Data is {@link EpOption}.ROUTE. */
  Id: WvIoId,
  /** Offset 16: the path for the endpoint's connection. */
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
  /** Offset 4: the sender's IP address. IPv4 uses the last 4 bytes; the others are 0. */
  SrcAddress: bytes(16),
  /** Offset 20: the destination IP address, in the same form. */
  DstAddress: bytes(16),
});

/** @deprecated EP_CREATE returns one id, {@link WvIoObject}. */
export const WvEpIds = list(u64);
