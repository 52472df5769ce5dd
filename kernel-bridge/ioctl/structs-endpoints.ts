/** Structures of the IOCTLs of endpoints, of IBAT and of connection management: see structs.ts. */
import { Capacity } from './constants.js';
import { bytes, layouts, list, reserved, u8, u16, u16be, u32, u32be, u64, u64be } from './layout.js';
import { madeCode } from './made-code.js';
import { WvIoAv, WvIoId } from './structs-objects.js';

const { struct, union } = layouts(madeCode);

/** A SOCKADDR, SOCKADDR_IN or SOCKADDR_IN6, depending on its family: see sockaddr.ts. */
const sockaddr28 = bytes(28, 4);

// ── Addresses ───────────────────────────────────────────────────────────────────────────────────────────────

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
