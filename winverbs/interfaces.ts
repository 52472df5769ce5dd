/**
 * The WinVerbs interfaces as TypeScript contracts. Method semantics, sources and statuses are documented on the
 * classes that implement them, one file each.
 */
import type { Overlapped } from '../kernel-bridge/overlapped.js';

/** An IP address and port. `family` is 4 or 6; `address` is text, with `%scope` for IPv6 link-local ones. */
export interface SocketAddress {
  readonly family: 4 | 6;
  readonly address: string;
  readonly port: number;
}

/** The device, port and partition that an IP address belongs to (IBAT). */
export interface WvDeviceAddress {
  /** CA GUID. */
  readonly deviceGuid: bigint;
  readonly pkey: number;
  readonly portNumber: number;
}

/** Registered memory: keys and where it lies. Requests address it by offset. */
export interface WvMemoryRegion {
  readonly lkey: number;
  /** 0 when no remote right was asked for. */
  readonly rkey: number;
  /** Native start address, below 2^47. */
  readonly address: number;
  /** Bytes. */
  readonly length: number;
  /**
   * The memory itself; INLINE requests are copied from it. ACCESS_VIOLATION is thrown, here and by requests that name the region, once its
   * ArrayBuffer was detached: the device has the memory until it is deregistered, and the program has not.
   */
  readonly bytes?: Uint8Array;
}

/** A piece of registered memory: `length` bytes at `offset` bytes into the region. */
export interface WvSge {
  region: Pick<WvMemoryRegion, 'lkey' | 'address' | 'bytes'>;
  offset: number;
  length: number;
}

/** Connection parameters. Depths are this side's view: reads it accepts and reads it issues. */
export interface WvConnectParam {
  /** At most 56 bytes. */
  privateData?: Uint8Array;
  responderResources?: number;
  initiatorDepth?: number;
  /** 0..7 */
  retryCount?: number;
  /**
   * 0..7: how often the peer repeats a send that finds no receive here. 7 is for ever: the default of QPs with an SRQ, and 6
   * for others. 6, the default of those, also waits for a second (the option `rnrPatienceMs`); a smaller count is all there is.
   */
  rnrRetryCount?: number;
}

/** What is known of an endpoint's connection: addresses, device, and what the peer sent last. */
export interface WvConnectAttributes {
  readonly localAddress: SocketAddress;
  readonly peerAddress: SocketAddress | undefined;
  readonly device: WvDeviceAddress;
  /**
   * What the peer sent last. Messages do not tell its length: it is padded with zeros to 56 bytes, and longer only if the REP
   * (196 bytes at most) or REJ (148) has anything but zeros behind them.
   */
  readonly privateData: Uint8Array;
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly backlog: number;
}

/** One entry of a completion queue, reused by {@link IWVCompletionQueue.poll}. */
export interface WvCompletion {
  /** The value given with the request. */
  context: unknown;
  /** The value given at queue pair creation. */
  qpContext: unknown;
  /** WV_OPCODE: Send 0, RdmaWrite 1, RdmaRead 2, CompareExchange 3, FetchAdd 4, BindWindow 5, Invalidate 6, Receive 128, ReceiveRdmaWrite 129. */
  opcode: number;
  /** WV_WC_STATUS, 0 is success. */
  status: number;
  /** Bytes. */
  length: number;
  /** WV_WC_*: 1 immediate, 2 invalidated, 4 GRH, 8 solicited. */
  flags: number;
  /** Immediate data or the invalidated rkey. */
  immediateData: number;
  /** The sender's QPN; receives of datagrams only. */
  sourceQpn: number;
  vendorCode: number;
  /** Place in the port's P_Key table; receives of datagrams only, as the rest. */
  pkeyIndex: number;
  /** Source LID, service level and path bits are InfiniBand's; 0 on RoCE. */
  sLid: number;
  sl: number;
  dLidPathBits: number;
}

/** Where datagrams go (WV_ADDRESS_VECTOR). GIDs are 16 bytes, or IP addresses as text. */
export interface WvAddressVector {
  /** An address of the device that sends. */
  readonly sourceGid: Uint8Array | string;
  /** A host's address, or a multicast group's. */
  readonly destinationGid: Uint8Array | string;
  /** 20 bits. */
  readonly flowLabel?: number;
  readonly trafficClass?: number;
  /** 0 or left out: 64. */
  readonly hopLimit?: number;
  /** From 1; left out: 1. */
  readonly portNumber?: number;
}

/** A resolved way to an address: the device to open, and the address vector to use on it. */
export interface WvPath {
  readonly device: WvDeviceAddress;
  readonly addressVector: WvAddressVector;
}

/** The IP header of a received datagram, as far as the first 40 bytes of its buffer tell (IBA 1 Annex A17). */
export interface WvGrh {
  readonly ipVersion: 4 | 6;
  readonly sourceGid: Uint8Array;
  readonly destinationGid: Uint8Array;
  readonly trafficClass: number;
  /** 0 with IPv4. */
  readonly flowLabel: number;
  readonly hopLimit: number;
}

/** Reference counts, as in COM. Releasing never fails and may come in any order. */
export interface WvUnknown {
  /** One more reference; answers how many there are. */
  addRef(): number;
  /** One reference less; answers how many are left. The last one ends the object. */
  release(): number;
  /** The same as {@link release}, for `using`. */
  [Symbol.dispose](): void;
}

/** An object with requests that wait. */
export interface WvOverlappedObject extends WvUnknown {
  /** Completes every request of this object that still waits with CANCELLED before it returns. */
  cancelOverlappedRequests(): void;
}

/** What a queue pair is to be. Depths are requests, SGEs entries per request, `maxInlineSend` bytes. */
export interface WvQpCreate {
  sendCq: IWVCompletionQueue;
  receiveCq: IWVCompletionQueue;
  /** Receives are taken from there; `receiveDepth` and `receiveSge` are not looked at then. */
  srq?: IWVSharedReceiveQueue;
  context?: unknown;
  sendDepth: number;
  sendSge: number;
  receiveDepth: number;
  receiveSge: number;
  maxInlineSend?: number;
  initiatorDepth?: number;
  responderResources?: number;
  /** WV_QP_SIGNAL_SENDS. */
  signalSends?: boolean;
  /**
   * WV_QP_TYPE of a connected queue pair: RC 0 (left out), UC 1. An unreliable one sends and writes; what is lost on the way
   * is lost, and nobody is told.
   */
  type?: number;
}

/** Size and limit of a shared receive queue (IBA 1 §11.2.3.3). */
export interface WvSrqAttributes {
  /** Receives it holds, at least as many as asked for. */
  readonly maxWr: number;
  /** SGEs of a receive. */
  readonly maxSge: number;
  /** The event comes when fewer receives are left; 0: there is none to come. */
  readonly srqLimit: number;
}

/** What a shared receive queue tells: fewer receives are left than its limit, or a queue pair has done with it. */
export type WvSrqEvent = 'limit' | 'lastWqe';

/** Receives for the messages of several queue pairs, taken in the order in which messages begin (IBA 1 §10.2.9). */
export interface IWVSharedReceiveQueue extends WvOverlappedObject {
  /** The actual size, and the limit as far as its event has not come. */
  query(): WvSrqAttributes;
  /** Changes size and limit, while queue pairs use it. Throws BUFFER_OVERFLOW if what waits would not fit. */
  modify(maxWr: number, limit: number): void;
  /** Posts a receive. Throws NO_MORE_ENTRIES for a full queue, and what {@link IWVQueuePair.postReceive} throws of SGEs. */
  postReceive(context: unknown, sgl: readonly WvSge[]): void;
  /** Waits for the next event; one that nobody waited for is kept. */
  notify(): Overlapped<WvSrqEvent>;
}

/** The root of WinVerbs: the devices of this host, and endpoints. */
export interface IWVProvider extends WvUnknown {
  /** CA GUIDs of all devices. */
  queryDeviceList(): bigint[];
  /** Attributes and limits of a device without opening it. Throws NO_SUCH_DEVICE. */
  queryDevice(guid: bigint): WvDeviceAttributes;
  /** The device that has an IP address of this host. Throws NOT_FOUND. */
  translateAddress(address: string | SocketAddress): WvDeviceAddress;
  /**
   * The way to an address: from `local`, or from the address that the host's routes choose. A multicast group is reached
   * from an interface: `local` has to name it by an address.
   */
  resolvePath(remote: string | SocketAddress, local?: string | SocketAddress): WvPath;
  /** Opens a device. Throws NO_SUCH_DEVICE. */
  openDevice(guid: bigint): IWVDevice;
  /** An endpoint for one connection, or for a listener. */
  createConnectEndpoint(): IWVConnectEndpoint;
  /** An endpoint for datagrams: any number of peers and groups, or a listener. */
  createDatagramEndpoint(): IWVDatagramEndpoint;
}

/** Limits of a device (IBA 1 §11.2.1.2). Sizes are bytes, `localAckDelay` is 4.096 µs × 2^code. */
export interface WvDeviceAttributes {
  readonly fwVersion: bigint;
  readonly nodeGuid: bigint;
  readonly systemImageGuid: bigint;
  readonly vendorId: number;
  readonly vendorPartId: number;
  readonly hwVersion: number;
  readonly capabilityFlags: number;
  readonly atomicCapability: number;
  readonly pageSizeCapabilityFlags: number;
  readonly maxMrSize: bigint;
  readonly maxQp: number;
  readonly maxQpWr: number;
  readonly maxSge: number;
  readonly maxCq: number;
  readonly maxCqEntries: number;
  readonly maxMr: number;
  readonly maxPd: number;
  readonly maxQpResponderResources: number;
  readonly maxResponderResources: number;
  readonly maxQpInitiatorDepth: number;
  readonly maxInlineSend: number;
  readonly maxMw: number;
  /** Shared receive queues, and receives and SGEs in one; 0: there are none. */
  readonly maxSrq: number;
  readonly maxSrqWr: number;
  readonly maxSrqSge: number;
  /** Address handles. */
  readonly maxAh: number;
  readonly maxPkeys: number;
  readonly deviceType: number;
  readonly localAckDelay: number;
  readonly physPortCount: number;
}

/** State and limits of a port (IBA 1 §11.2.1.2). MTUs and message sizes are bytes. */
export interface WvPortAttributes {
  readonly portCapabilityFlags: number;
  readonly state: number;
  readonly maxMtu: number;
  readonly activeMtu: number;
  readonly gidTableLength: number;
  readonly maxMessageSize: number;
  readonly pkeyTableLength: number;
  readonly transport: number;
  readonly physicalState: number;
  readonly badPkeyCounter: number;
  readonly qkeyViolationCounter: number;
}

/** An opened device: an RDMA NIC, or the software HCA on a network interface. */
export interface IWVDevice extends WvOverlappedObject {
  readonly guid: bigint;
  /** Attributes and limits. */
  query(): WvDeviceAttributes;
  /** Attributes of a port; ports count from 1. Throws INVALID_PORT_HANDLE. */
  queryPort(port: number): WvPortAttributes;
  /** An entry of the port's GID table, 16 bytes. Throws INVALID_PARAMETER_2. */
  queryGid(port: number, index: number): Uint8Array;
  /** The index of a GID in the port's table. Throws INVALID_ADDRESS. */
  findGid(port: number, gid: Uint8Array): number;
  /** An entry of the port's P_Key table. Throws INVALID_PARAMETER_2. */
  queryPkey(port: number, index: number): number;
  /** The index of a P_Key in the port's table. Throws INVALID_ADDRESS. */
  findPkey(port: number, pkey: number): number;
  /** A completion queue of at least `entries` entries. Throws INVALID_PARAMETER. */
  createCompletionQueue(entries: number): IWVCompletionQueue;
  /** Waits for an event of a port: an OR of WV_EVENT_*; what happens while nobody waits is kept for the next. */
  notify(port: number): Overlapped<number>;
  /** A protection domain: what memory, windows and queue pairs of it may use together. */
  allocateProtectionDomain(): IWVProtectionDomain;
}

/** Where queue pairs report how their requests ended. Polling makes no system call. */
export interface IWVCompletionQueue extends WvOverlappedObject {
  /** Entries, at least as many as asked for. */
  readonly entries: number;
  /** Changes the number of entries; what waits stays. Throws BUFFER_OVERFLOW if it would not fit. */
  resize(entries: number): void;
  /** Completions waiting now. */
  peek(): number;
  /**
   * Fills `completions` from the start, at most `n` (its length, unless told: an empty array alone takes none); returns how many.
   * Objects already in the array are reused; if they have setters that poll this queue, that takes none. Throws
   * INVALID_PARAMETER for what is no array and for an `n` that is no whole number from 0 on. A thread that asks again at once after it got none looks out in the engine
   * for half a microsecond.
   */
  poll(completions: WvCompletion[], n?: number): number;
  /** Waits for the next completion ('any'), the next solicited one, or a CQ error. */
  notify(type: 'any' | 'solicited' | 'error'): Overlapped<void>;
  /** Waits until `n` completions have come, 1 to {@link entries}; may end earlier. Poll until empty after it. */
  batchNotify(n: number): Overlapped<void>;
}

/** Memory regions, windows and queue pairs that may be used together (IBA 1 §10.2.3). */
export interface IWVProtectionDomain extends WvOverlappedObject {
  /**
   * Registers memory. `access` is an OR of WV_ACCESS_*. The buffer is pinned while registered.
   */
  registerMemory(buffer: ArrayBufferLike | ArrayBufferView, access: number): WvMemoryRegion;
  /** As {@link registerMemory}, overlapped; bad arguments throw at once. */
  registerMemoryOverlapped(
    buffer: ArrayBufferLike | ArrayBufferView,
    access: number,
  ): Overlapped<WvMemoryRegion>;
  /** Ends a registration. Throws DEVICE_BUSY while memory windows are bound to it. */
  deregisterMemory(region: WvMemoryRegion): void;
  /** As {@link deregisterMemory}, overlapped. */
  deregisterMemoryOverlapped(region: WvMemoryRegion): Overlapped<void>;
  /** A memory window, not bound yet. */
  allocateMemoryWindow(): IWVMemoryWindow;
  /** A queue of receives for several queue pairs. The limit 0 asks for no event. Throws INVALID_PARAMETER, NOT_SUPPORTED. */
  createSharedReceiveQueue(maxWr: number, maxSge: number, srqLimit?: number): IWVSharedReceiveQueue;
  /** A connected queue pair (RC or UC) in RESET. Throws INVALID_PARAMETER. */
  createConnectQueuePair(create: WvQpCreate): IWVConnectQueuePair;
  /** A datagram queue pair (UD) in RESET. Throws INVALID_PARAMETER. */
  createDatagramQueuePair(create: WvQpCreate): IWVDatagramQueuePair;
  /** Where datagrams go. Throws INVALID_ADDRESS, INVALID_PORT_HANDLE, INVALID_PARAMETER. */
  createAddressHandle(vector: WvAddressVector): IWVAddressHandle;
}

/** Where datagrams go; releasing it makes datagrams fail that are posted and not sent yet. */
export interface IWVAddressHandle extends WvUnknown {}

/** A key for a part of a region, granted and withdrawn by requests (IBA 1 §10.6.7). */
export interface IWVMemoryWindow extends WvUnknown {
  /** The key of the latest bind. */
  readonly rkey: number;
}

/** Attributes of a queue pair (IBA 1 §11.2.5.2). PSNs and QPNs have 24 bits, MTUs are bytes, timeouts codes. */
export interface WvQpAttributes {
  /** WV_QP_TYPE. */
  readonly qpType: number;
  readonly qpState: number;
  /** The same as `qpState`; in a modify the state that the caller believes the queue pair to be in. */
  readonly currentQpState: number;
  readonly qpn: number;
  readonly destinationQpn: number;
  readonly sendPsn: number;
  readonly receivePsn: number;
  readonly pathMtu: number;
  readonly sendDepth: number;
  readonly sendSge: number;
  readonly receiveDepth: number;
  readonly receiveSge: number;
  readonly maxInlineSend: number;
  readonly initiatorDepth: number;
  readonly responderResources: number;
  readonly accessFlags: number;
  readonly qkey: number;
  readonly pkeyIndex: number;
  readonly portNumber: number;
  readonly localAckTimeout: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly rnrNakTimeout: number;
  readonly sourceGid: Uint8Array;
  readonly destinationGid: Uint8Array;
  /**
   * 8 bits, with the option AV: IPv4's TOS, IPv6's traffic class. The upper six are the DSCP; the lower two, ECN, are the
   * HCA's own on a connection (option `ecn`).
   */
  readonly trafficClass: number;
  /** 20 bits, with the option AV: what IPv6 headers carry; 0 leaves it to the operating system. IPv4 has none. */
  readonly flowLabel: number;
  /** 8 bits, with the option AV: IPv4's TTL, IPv6's hop limit. 0, as left out: 64. */
  readonly hopLimit: number;
}

/** What a peer tells of its memory: a {@link RemoteMemory} is made of it. */
export interface WvRemoteMemory {
  /** Of the first byte, 64 bits. */
  readonly address: bigint;
  /** The number on the wire, 32 bits. */
  readonly rkey: number;
}

/** What queue pairs of all types can do. */
export interface IWVQueuePair extends WvOverlappedObject {
  readonly qpn: number;
  /** WV_QP_STATE as the HCA last published it; no IOCTL. */
  readonly state: number;
  /** SGEs that a request other than a receive may have: what was asked for, or more where its queue has room for more. */
  readonly sendSge: number;
  /** The same of a receive; 0 where receives come from a shared receive queue. */
  readonly receiveSge: number;
  /** Bytes that an INLINE request may have. */
  readonly maxInlineSend: number;
  /** All attributes. */
  query(): WvQpAttributes;
  /** `options` WV_QP_ATTR_* names which attributes count. */
  modify(attributes: Partial<WvQpAttributes>, options: number): void;
  /**
   * Posts the buffers of a message to come; throws only if nothing was queued. INVALID_DEVICE_REQUEST: it receives from a
   * shared receive queue.
   */
  postReceive(context: unknown, sgl: readonly WvSge[]): void;
}

/**
 * Requests throw only when nothing was queued (NO_MORE_ENTRIES for a full queue, DATA_OVERRUN for too many
 * SGEs, BUFFER_OVERFLOW for too many inline bytes, INVALID_DEVICE_STATE before RTS, …); whatever happens to a queued request is told by its completion.
 * `flags` is an OR of WV_SEND_*: IMMEDIATE 1, FENCE 2, SIGNALED 4, SOLICITED 8, INLINE 0x10.
 */
export interface IWVConnectQueuePair extends IWVQueuePair {
  /** Posts a message; `immediate` goes along with the flag IMMEDIATE. */
  send(context: unknown, sgl: readonly WvSge[], flags: number, immediate?: number): void;
  /** Posts a message whose arrival makes the peer's key `rkey` unusable. */
  sendAndInvalidate(context: unknown, sgl: readonly WvSge[], flags: number, rkey: number): void;
  /** Posts a read of remote memory; `offset` is bytes from where `remote` starts. */
  read(context: unknown, sgl: readonly WvSge[], flags: number, remote: RemoteMemoryRef, offset: number): void;
  /** Posts a write to remote memory; with the flag IMMEDIATE it takes one of the peer's receives. */
  write(
    context: unknown,
    sgl: readonly WvSge[],
    flags: number,
    remote: RemoteMemoryRef,
    offset: number,
    immediate?: number,
  ): void;
  /** Posts an atomic exchange of 8 remote bytes, done if they equal `compare`; `sge` gets what was there. */
  compareExchange(
    context: unknown,
    sge: WvSge,
    flags: number,
    compare: bigint,
    exchange: bigint,
    remote: RemoteMemoryRef,
    offset: number,
  ): void;
  /** Posts an atomic addition to 8 remote bytes; `sge` gets what was there. */
  fetchAdd(
    context: unknown,
    sge: WvSge,
    flags: number,
    value: bigint,
    remote: RemoteMemoryRef,
    offset: number,
  ): void;
  /** Binds `length` bytes at `offset` of the region; the window's new rkey is returned (and valid in order). */
  bindMemoryWindow(
    window: IWVMemoryWindow,
    context: unknown,
    region: WvMemoryRegion,
    offset: number,
    length: number,
    access: number,
    flags: number,
  ): number;
  /** Posts the end of a window's binding. */
  invalidateMemoryWindow(window: IWVMemoryWindow, context: unknown, flags: number): void;
  /** Requests posted from here on are handed to the HCA together, by {@link submitBatch}. */
  startBatch(): void;
  /** Hands over what was posted since {@link startBatch}. */
  submitBatch(): void;
}

/** A datagram to send (WV_SEND_DATAGRAM). The caller may reuse it; it is read during the call only. */
export interface WvSendDatagram {
  context: unknown;
  addressHandle: IWVAddressHandle;
  sgl: readonly WvSge[];
  /** WV_SEND_* but FENCE. */
  flags: number;
  immediateData?: number;
  /** MULTICAST_QPN for a group. */
  destinationQpn: number;
  /** One from 0x80000000 on stands for the queue pair's own. */
  destinationQkey: number;
}

/** Attributes of a datagram queue pair that is to be made ready, where they are not what they mostly are. */
export interface WvDatagramStart {
  /** 1 if left out. */
  portNumber?: number;
  /** 0 if left out. */
  pkeyIndex?: number;
  /** 24 bits; random if left out. */
  sendPsn?: number;
}

/**
 * Unreliable datagrams (UD): messages of at most the port's active MTU, to any queue pair whose number and Q_Key are known.
 * The first 40 bytes of a receive's buffers get the GRH; a completion's length counts them. What does not fit is dropped.
 */
export interface IWVDatagramQueuePair extends IWVQueuePair {
  /** RESET or INIT → RTS. */
  start(qkey: number, options?: WvDatagramStart): void;
  /** Posts a datagram of one SGE, without immediate data. */
  send(
    context: unknown,
    addressHandle: IWVAddressHandle,
    sge: WvSge,
    flags: number,
    destinationQpn: number,
    destinationQkey: number,
  ): void;
  /** Posts a datagram. Throws only if nothing was queued. */
  sendMessage(message: WvSendDatagram): void;
  /** Receives what is sent to a group, an IP address or its GID, with this queue pair's Q_Key. */
  attachMulticast(group: string | Uint8Array, lid?: number): Overlapped<void>;
  /** Ends that. */
  detachMulticast(group: string | Uint8Array, lid?: number): Overlapped<void>;
}

/** What requests take as remote memory: `RemoteMemory` of this package. */
export interface RemoteMemoryRef {
  readonly addressLow: number;
  readonly addressHigh: number;
  readonly rkey: number;
}

/** What endpoints of connections and of datagrams have in common. Their classes tell all statuses. */
export interface IWVEndpoint extends WvOverlappedObject {
  /** Resolves the route to a peer (IBAT) and sets it: AddressBound → RouteResolved. */
  resolveRoute(peer: SocketAddress): void;
  /** Port 0 asks for a free one; query() tells it. With `device` the wildcard address stands for those of that device. */
  bindAddress(address: SocketAddress, device?: WvDeviceAddress): void;
  /** Takes requests from now on; `backlog` are kept while nobody takes them, 1024 at most and with 0. */
  listen(backlog: number): void;
  /** Refuses the request, or the reply: at most 148 bytes for the peer, 136 in the service of datagrams. */
  reject(privateData?: Uint8Array): void;
}

/** Establishes and ends one connection, or listens for requests (IBA 1 §12). Its class tells all statuses. */
export interface IWVConnectEndpoint extends IWVEndpoint {
  /** Waits for a request and puts it into a fresh endpoint. */
  getRequest(endpoint: IWVConnectEndpoint): Overlapped<void>;
  /** Asks a peer for a connection. Ends when it has replied: accept or reject the reply then. */
  connect(qp: IWVConnectQueuePair, peer: SocketAddress, param: WvConnectParam): Overlapped<void>;
  /** Accepts the request, or the reply; the queue pair is in RTS when it ends. Active: `qp` may be null. */
  accept(qp: IWVConnectQueuePair | null, param: WvConnectParam): Overlapped<void>;
  /** Ends the connection and flushes the queue pair at once; ends when the peer has confirmed. */
  disconnect(): Overlapped<void>;
  /** Waits for the end of the connection; never ends in SUCCESS. */
  notifyDisconnect(): Overlapped<void>;
  /** Addresses, private data and read depths, in the view of this side. */
  query(): WvConnectAttributes;
}

/** What a datagram endpoint tells a peer that has asked for its queue pair. */
export interface WvDatagramParam {
  /** A UD queue pair of this provider, or the number of any. */
  qp: IWVDatagramQueuePair | number;
  /** Left out: 0x01234567, as RDMA CM has it. */
  qkey?: number;
  /** At most 136 bytes. */
  privateData?: Uint8Array;
}

/** What is known of a datagram endpoint, and of one of its peers or groups (WV_DATAGRAM_ATTRIBUTES). */
export interface WvDatagramAttributes {
  readonly localAddress: SocketAddress;
  readonly peerAddress: SocketAddress | undefined;
  readonly device: WvDeviceAddress;
  /** Of a listener. */
  readonly backlog: number;
  /** For an address handle on {@link device}. Undefined where no peer is meant. */
  readonly addressVector: WvAddressVector | undefined;
  /** 0: not known, as of a peer that asks; 0xFFFFFF: the group. */
  readonly qpn: number;
  readonly qkey: number;
  /** How the peer answered: 0 yes, 1 nobody there, 2 rejected, 3 no queue pair, 4 elsewhere, 5 another version. */
  readonly sidrStatus: number;
  /** What the peer sent, zero-padded by the messages: 180 bytes of a request, 136 of an answer. */
  readonly privateData: Uint8Array;
}

/** Finds peers of datagrams, is found by them, and joins groups (IBA 1 §12.11). Its class tells all statuses. */
export interface IWVDatagramEndpoint extends IWVEndpoint {
  /** Waits for a peer that asks and puts its request into a fresh endpoint. */
  getRequest(endpoint: IWVDatagramEndpoint): Overlapped<void>;
  /** Asks the peer for its queue pair, with at most 180 bytes for it. Several may wait at once. */
  lookup(peer: SocketAddress, privateData?: Uint8Array): Overlapped<WvDatagramAttributes>;
  /** Tells the peer that has asked a queue pair. */
  accept(param: WvDatagramParam): Overlapped<void>;
  /** Joins a multicast group; the answer has all that attaching a queue pair and sending take. */
  joinMulticast(group: SocketAddress): Overlapped<WvDatagramAttributes>;
  /** Undoes {@link joinMulticast}. */
  leaveMulticast(group: SocketAddress): Overlapped<void>;
  /** What is known of a peer or group; without an address, of the peer that has asked, or of the endpoint alone. */
  query(peer?: SocketAddress): WvDatagramAttributes;
}
