/**
 * The structures of every WinVerbs and IBAT IOCTL: pointer-free, the same for 32- and 64-bit callers. Field names are
 * those of the WinVerbs and IBAT interfaces. Sources: WinVerbs IOCTL interface; IBAT interface version 6; IBA 1 Annex
 * A11 (RDMA IP CM service) for IB_CMA_HEADER, IBA 1 §15.2.5.16 (PathRecord) for ib_path_rec_t.
 *
 * "Id" fields name objects of the device file; 0 is none. VerbInfo carries `ci_umv_buf_t.command` in and its `status`
 * out (provider-data.ts).
 */
import { Capacity } from './constants.js';
import { bytes, layouts, list, reserved, u8, u16, u16be, u32, u32be, u64, u64be } from './layout.js';
import { madeCode } from './made-code.js';

const { struct, union } = layouts(madeCode);

/** A SOCKADDR, SOCKADDR_IN or SOCKADDR_IN6, depending on its family: see sockaddr.ts. */
const sockaddr28 = bytes(28, 4);

// ── Identifiers ─────────────────────────────────────────────────────────────────────────────────────────────

/** A single `u64 Id`: the input of destroy, cancel and query requests, and the output of EP_CREATE. */
export const WvIoObject = struct('u64 Id', { Id: u64 });

/** A CA GUID in network order: LIBRARY_QUERY's input. */
export const WvIoGuid = struct('u64be Guid', { Guid: u64be });

/** Data is the port (DEVICE_NOTIFY), entries (CQ_*), lkey (MEMORY_DEREGISTER), notify type or option. */
export const WvIoId = struct('WV_IO_ID', { Id: u64, VerbInfo: u32, Data: u32 });

/** Offset of VerbInfo in a WV_IO_ID, which begins every structure with provider data. */
export const VERB_INFO = 8;

/** The input of DEVICE_OPEN: a WV_IO_ID whose Id is the CA GUID in network order. The output is a plain WV_IO_ID. */
export const WvIoDeviceOpen = struct('WV_IO_ID (CA GUID)', { Guid: u64be, VerbInfo: u32, Data: u32 });

/** The output of MW_ALLOCATE: a WV_IO_ID whose Data is the rkey in network order. */
export const WvIoMwKey = struct('WV_IO_ID (rkey)', { Id: u64, VerbInfo: u32, Rkey: u32be });

/** GUID_QUERY: the number of devices, then the GUIDs that fit (at least one place): {@link WvGuidEntries}. */
export const WvIoGuidList = struct('WV_IO_GUID_LIST', { Count: u64, Guid: u64be });

// ── Devices and ports ───────────────────────────────────────────────────────────────────────────────────────

/** DEVICE_QUERY's output: the limits of a device. Counts, unless stated otherwise. */
export const WvIoDeviceAttributes = struct('WV_IO_DEVICE_ATTRIBUTES', {
  FwVersion: u64,
  NodeGuid: u64be,
  SystemImageGuid: u64be,
  VendorId: u32,
  VendorPartId: u32,
  HwVersion: u32,
  CapabilityFlags: u32,
  AtomicCapability: u32,
  PageSizeCapabilityFlags: u32,
  /** Bytes. */
  MaxMrSize: u64,
  MaxQp: u32,
  MaxQpWr: u32,
  MaxSge: u32,
  MaxCq: u32,
  MaxCqEntries: u32,
  MaxMr: u32,
  MaxPd: u32,
  MaxQpResponderResources: u32,
  MaxResponderResources: u32,
  MaxQpInitiatorDepth: u32,
  /** Bytes. */
  MaxInlineSend: u32,
  MaxMw: u32,
  MaxMulticast: u32,
  MaxQpAttach: u32,
  MaxMulticastQp: u32,
  MaxAh: u32,
  MaxFmr: u32,
  MaxMapPerFmr: u32,
  MaxSrq: u32,
  MaxSrqWr: u32,
  MaxSrqSge: u32,
  MaxPkeys: u32,
  /** {@link DeviceType} */
  DeviceType: u32,
  /** 4.096 µs × 2^code. */
  LocalAckDelay: u8,
  PhysPortCount: u8,
  Reserved: reserved(2),
});

/** Input of DEVICE_PORT_QUERY, DEVICE_GID_QUERY and DEVICE_PKEY_QUERY: a port of a device. */
export const WvIoDevicePortQuery = struct('WV_IO_DEVICE_PORT_QUERY', {
  Id: u64,
  /** From 1. */
  PortNumber: u8,
  Reserved: reserved(7),
});

/** DEVICE_PORT_QUERY's output: the state and limits of a port (IBA 1 §11.2.2.3). */
export const WvIoPortAttributes = struct('WV_IO_PORT_ATTRIBUTES', {
  /** Spelled as in the interface. */
  PortCabilityFlags: u32,
  State: u32,
  /** Bytes. */
  MaxMtu: u32,
  /** Bytes. */
  ActiveMtu: u32,
  GidTableLength: u32,
  /** Bytes. */
  MaxMessageSize: u32,
  BadPkeyCounter: u32,
  QkeyViolationCounter: u32,
  PkeyTableLength: u16,
  Lid: u16be,
  SmLid: u16be,
  Lmc: u8,
  MaxVls: u8,
  SmSl: u8,
  SubnetTimeout: u8,
  InitTypeReply: u8,
  ActiveWidth: u8,
  ActiveSpeed: u8,
  PhysicalState: u8,
  Transport: u8,
  ExtActiveSpeed: u8,
  LinkEncoding: u8,
  Pad: reserved(3),
});

/** A GID, 16 bytes in network order. */
export const WvIoGid = struct('WV_IO_GID', { Raw: bytes(16) });

/** Declared by the interface, used by no IOCTL. */
export const WvIoEvent = struct('WV_IO_EVENT', {
  Status: u32,
  Type: u32,
  PortNumber: u8,
  Reserved: reserved(3),
});

/** WV_EVENT_* events since the last answer: DEVICE_NOTIFY's output. */
export const WvIoEventFlags = struct('u32 Flags', { Flags: u32 });

// ── Memory and address handles ──────────────────────────────────────────────────────────────────────────────

/** MEMORY_REGISTER's input: an address range of the calling process and its access rights. */
export const WvIoMemoryRegister = struct('WV_IO_MEMORY_REGISTER', {
  /** Protection domain. */
  Id: u64,
  Address: u64,
  /** Bytes. */
  BufferLength: u64,
  /** WV_ACCESS_* */
  AccessFlags: u32,
  Reserved: reserved(4),
});

/** MEMORY_REGISTER's output. The rkey is in network order; its value is the number on the wire. */
export const WvIoMemoryKeys = struct('WV_IO_MEMORY_KEYS', { Lkey: u32, Rkey: u32be });

/**
 * An address vector: the destination of a queue pair's or address handle's packets (IBA 1 §11.2.3.1). RoCE has no LIDs.
 */
export const WvIoAv = struct('WV_IO_AV', {
  NetworkRouteValid: u8,
  Reserved1: reserved(1),
  HopLimit: u8,
  TrafficClass: u8,
  FlowLabel: u32be,
  SGid: bytes(16),
  DGid: bytes(16),
  Reserved2: reserved(2),
  DLid: u16be,
  ServiceLevel: u8,
  SourcePathBits: u8,
  StaticRate: u8,
  PortNumber: u8,
});

/** AH_CREATE: Id is the protection domain in, the address handle out. */
export const WvIoAhCreate = struct('WV_IO_AH_CREATE', { Id: WvIoId, AddressVector: WvIoAv });

// ── Queues ──────────────────────────────────────────────────────────────────────────────────────────────────

/** SRQ_CREATE, SRQ_QUERY and SRQ_MODIFY: Id is the protection domain or the shared receive queue. */
export const WvIoSrqAttributes = struct('WV_IO_SRQ_ATTRIBUTES', {
  Id: WvIoId,
  MaxWr: u32,
  MaxSge: u32,
  SrqLimit: u32,
  Reserved: reserved(4),
});

/** QP_CREATE: Id is the protection domain in, the queue pair out; depths and limits are requested in, granted out. */
export const WvIoQpCreate = struct('WV_IO_QP_CREATE', {
  Id: WvIoId,
  SendCqId: u64,
  ReceiveCqId: u64,
  SrqId: u64,
  SendDepth: u32,
  SendSge: u32,
  ReceiveDepth: u32,
  ReceiveSge: u32,
  /** Bytes. */
  MaxInlineSend: u32,
  InitiatorDepth: u32,
  ResponderResources: u32,
  /** {@link QpType} */
  QpType: u8,
  /** {@link QpFlag} */
  QpFlags: u8,
  Reserved: reserved(2),
});

/** QP_QUERY's output and QP_MODIFY's input (IBA 1 §11.2.5.2). */
export const WvIoQpAttributes = struct('WV_IO_QP_ATTRIBUTES', {
  Id: WvIoId,
  SendDepth: u32,
  SendSge: u32,
  ReceiveDepth: u32,
  ReceiveSge: u32,
  /** Bytes. */
  MaxInlineSend: u32,
  InitiatorDepth: u32,
  ResponderResources: u32,
  /** {@link QpAttr}: the valid attributes. */
  Options: u32,
  QpType: u8,
  CurrentQpState: u8,
  QpState: u8,
  ApmState: u8,
  Qpn: u32be,
  DestinationQpn: u32be,
  Qkey: u32be,
  SendPsn: u32be,
  ReceivePsn: u32be,
  AddressVector: WvIoAv,
  AlternateAddressVector: WvIoAv,
  /** Bytes: 256, 512, 1024, 2048 or 4096. */
  PathMtu: u32,
  AlternatePathMtu: u32,
  PkeyIndex: u16,
  AlternatePkeyIndex: u16,
  /** 4.096 µs × 2^code; 0 is infinite. */
  LocalAckTimeout: u8,
  AlternateLocalAckTimeout: u8,
  /** RNR NAK timer code (IBA 1 §9.7.5.2.8). */
  RnrNakTimeout: u8,
  SequenceErrorRetryCount: u8,
  RnrRetryCount: u8,
  /** WV_ACCESS_* below 0x100. */
  AccessFlags: u8,
  QpFlags: u8,
  Reserved: reserved(5),
});

/** Id.Data carries the multicast LID in its low 16 bits, in network order. */
export const WvIoQpMulticast = struct('WV_IO_QP_MULTICAST', { Id: WvIoId, Gid: WvIoGid });

// ── Addresses ───────────────────────────────────────────────────────────────────────────────────────────────

/** SOCKADDR: the family determines the data. */
export const WvIoSockaddr = struct('WV_IO_SOCKADDR', { SaFamily: u16, SaData: bytes(14) });

/** SOCKADDR_IN: family 2. */
export const WvIoSockaddrIn = struct('WV_IO_SOCKADDR_IN', {
  SinFamily: u16,
  SinPort: u16be,
  SinAddr: u32be,
  SinZero: reserved(8),
});

/** SOCKADDR_IN6: family 23. */
export const WvIoSockaddrIn6 = struct('WV_IO_SOCKADDR_IN6', {
  Sin6Family: u16,
  Sin6Port: u16be,
  Sin6FlowInfo: u32be,
  Sin6Addr: bytes(16),
  Sin6ScopeId: u32,
});

/** An address of either family, as `encodeSockaddr` writes and `decodeSockaddr` reads it. */
export const WvIoSockaddrData = struct('WV_IO_SOCKADDR_DATA', {
  SockAddr: sockaddr28,
  Reserved: reserved(4),
});

/** The device, port and partition that an address belongs to. */
export const WvIoDeviceAddress = struct('WV_IO_DEVICE_ADDRESS', {
  DeviceGuid: u64be,
  Pkey: u16be,
  PortNumber: u8,
  Reserved: reserved(5),
});

// ── Endpoints ───────────────────────────────────────────────────────────────────────────────────────────────

/** EP_CREATE's input: {@link EpType} in the low 16 bits. */
export const WvIoEpCreate = struct('u64 EpType', { EpType: u64 });

/** EP_BIND: the requested address and its device in, the granted address out. */
export const WvIoEpBind = struct('WV_IO_EP_BIND', {
  Id: u64,
  Address: WvIoSockaddrData,
  Device: WvIoDeviceAddress,
});

/** EP_LISTEN: backlog is the maximum of waiting requests; 0 is the driver's limit. */
export const WvIoEpListen = struct('WV_IO_EP_LISTEN', { Id: u64, Backlog: u64 });

/** Id is the listener, EpId the endpoint for the next request. */
export const WvIoEpGetRequest = struct('WV_IO_EP_GET_REQUEST', { Id: u64, EpId: u64 });

/** Connection parameters that both sides exchange. Depths and resources are numbers of outstanding reads. */
export const WvIoConnectParam = struct('WV_IO_CONNECT_PARAM', {
  ResponderResources: u64,
  InitiatorDepth: u64,
  RetryCount: u8,
  RnrRetryCount: u8,
  /** Bytes of private data: at most 56, those in Data; of EP_ACCEPT at most 196, whose rest follows the structure. */
  DataLength: u8,
  Reserved: reserved(5),
  Data: bytes(56),
});

/** EP_CONNECT: the endpoint, its queue pair and the peer. */
export const WvIoEpConnect = struct('WV_IO_EP_CONNECT', {
  Id: u64,
  QpId: u64,
  PeerAddress: WvIoSockaddrData,
  Param: WvIoConnectParam,
});

/** EP_ACCEPT: the endpoint and its queue pair. */
export const WvIoEpAccept = struct('WV_IO_EP_ACCEPT', { Id: u64, QpId: u64, Param: WvIoConnectParam });

/** Param of {@link WvIoEpAttributes}: Backlog for a listener, Connect for every other endpoint. */
export const WvIoEpParam = union('WV_IO_EP_ATTRIBUTES.Param', { Connect: WvIoConnectParam, Backlog: u64 });

/**
 * EP_QUERY's output. Addresses that are not set are all zero. Data holds 56 bytes of the private data of a REP (196) or
 * REJ (148); the rest, up to the last byte that is not 0, follows the structure in a larger output.
 */
export const WvIoEpAttributes = struct('WV_IO_EP_ATTRIBUTES', {
  LocalAddress: WvIoSockaddrData,
  PeerAddress: WvIoSockaddrData,
  Device: WvIoDeviceAddress,
  Param: WvIoEpParam,
});

/** Size in bytes of an endpoint's attributes with the longest private data. */
export const epAttributesRoom = WvIoEpAttributes.size + Capacity.REP_DATA - Capacity.CONNECT_DATA;

/** EP_DISCONNECT: the endpoint and its queue pair. */
export const WvIoEpDisconnect = struct('WV_IO_EP_DISCONNECT', { Id: u64, QpId: u64 });

// ── Datagram endpoints: our own layouts; the WinVerbs interface never defined any ──────────────────────────

/** Path to a datagram peer or multicast group, and the peer's answer. */
export const WvIoDatagramParam = struct('WV_IO_DATAGRAM_PARAM', {
  /** All zero if there is no peer. */
  AddressVector: WvIoAv,
  /** 0: unknown; 0xFFFFFF: the multicast group. */
  Qpn: u32be,
  Qkey: u32be,
  /** Number of valid bytes in Data. */
  DataLength: u8,
  /** The peer's answer (IBA 1 §12.11.2): 0 is yes, all others are reasons for CONNECTION_REFUSED. */
  SidrStatus: u8,
  Reserved: reserved(2),
  /** From the peer: 180 bytes of a request, 136 of an answer. To the peer: at most 136. */
  Data: bytes(180),
});

/** EP_LOOKUP: requests a peer's queue pair. Data: at most 180 bytes. Output: {@link WvIoEpDatagramAttributes}. */
export const WvIoEpLookup = struct('WV_IO_EP_LOOKUP', {
  Id: u64,
  PeerAddress: WvIoSockaddrData,
  DataLength: u8,
  Reserved: reserved(3),
  Data: bytes(180),
});

/** EP_ACCEPT of a datagram endpoint: QpId names a UD queue pair of the file. If it is 0, Param.Qpn is used. */
export const WvIoEpDatagramAccept = struct('WV_IO_EP_DATAGRAM_ACCEPT', {
  Id: u64,
  QpId: u64,
  Param: WvIoDatagramParam,
});

/** EP_QUERY of a datagram endpoint: PeerAddress selects a peer or a group; all zero: the requester, if there is one. */
export const WvIoEpDatagramQuery = struct('WV_IO_EP_DATAGRAM_QUERY', {
  Id: u64,
  PeerAddress: WvIoSockaddrData,
});

/** Output of EP_QUERY of a datagram endpoint, of EP_LOOKUP and of EP_MULTICAST_JOIN. Addresses not set are zero. */
export const WvIoEpDatagramAttributes = struct('WV_IO_EP_DATAGRAM_ATTRIBUTES', {
  LocalAddress: WvIoSockaddrData,
  PeerAddress: WvIoSockaddrData,
  Device: WvIoDeviceAddress,
  /** Of a listener. */
  Backlog: u64,
  Param: WvIoDatagramParam,
});

/** EP_MULTICAST_JOIN and EP_MULTICAST_LEAVE: the group's address. Its port is ignored. */
export const WvIoEpMulticast = struct('WV_IO_EP_MULTICAST', { Id: u64, Address: WvIoSockaddrData });

// ── IBAT and connection management ──────────────────────────────────────────────────────────────────────────

/** IP_TO_PORT's input: an address of this host. Version is {@link IBAT_VERSION}. */
export const IbatIpToPortIn = struct('IOCTL_IBAT_IP_TO_PORT_IN', { Version: u32, Address: sockaddr28 });

/** IP_TO_PORT's output: the device and port of the address. */
export const IbatPortRecord = struct('IBAT_PORT_RECORD', {
  CaGuid: u64be,
  PortGuid: u64be,
  PKey: u16be,
  PortNum: u8,
  Pad: reserved(5),
});

/** PATH's input: an address of this host and the peer's. Version is {@link IBAT_VERSION}. */
export const IbatPathIn = struct('IOCTL_IBAT_IP_TO_PATH_IN', {
  Version: u32,
  LocalAddress: sockaddr28,
  RemoteAddress: sockaddr28,
});

/** PATH's output and the data of EP_MODIFY's ROUTE option: a PathRecord (IBA 1 §15.2.5.16). */
export const IbPathRecord = struct('ib_path_rec_t', {
  service_id: u64be,
  dgid: bytes(16),
  sgid: bytes(16),
  dlid: u16be,
  slid: u16be,
  /** Hop limit in the low 8 bits, the flow label in the 20 above. */
  hop_flow_raw: u32be,
  tclass: u8,
  num_path: u8,
  pkey: u16be,
  qos_class_sl: u16be,
  /** Selector in the high 2 bits, IB MTU code (1…5) in the low 6. */
  mtu: u8,
  rate: u8,
  /** Selector in the high 2 bits, 4.096 µs × 2^code in the low 6. */
  pkt_life: u8,
  preference: u8,
  resv2: reserved(6),
});

/** How many changes of devices and addresses the kernel has seen; 0: the program knows of none, and is answered at once. */
export const ChangeCount = struct('CHANGE_COUNT', { Count: u32 });

/** EP_MODIFY with option ROUTE. */
export const WvIoEpRoute = struct('WV_IO_ID + ib_path_rec_t', { Id: WvIoId, Path: IbPathRecord });

/** Precedes the consumer's private data in a REQ. Port is the sender's; IPv4 addresses use the last 4 bytes. */
export const IbCmaHeader = struct('IB_CMA_HEADER', {
  CmaVersion: u8,
  /** 0x40 for IPv4, 0x60 for IPv6. */
  IpVersion: u8,
  Port: u16be,
  SrcAddress: bytes(16),
  DstAddress: bytes(16),
});

// ── Lists ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Output of DEVICE_GID_QUERY. */
export const WvGidList = list(bytes(16));

/** Output of DEVICE_PKEY_QUERY. */
export const WvPkeyList = list(u16be);

/** The GUIDs of GUID_QUERY's output, from byte 8 on. */
export const WvGuidEntries = list(u64be);

/**
 * EP_CREATE's output with room for several ids: the requested endpoint, and ids of endpoints that the kernel creates
 * when they are first named.
 */
export const WvEpIds = list(u64);
