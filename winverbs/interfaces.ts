/**
 * The WinVerbs interfaces as TypeScript contracts. The implementing classes, one file each, document semantics, sources
 * and statuses.
 */
import type { DeviceFile } from '../kernel-bridge/door/device-file.js';
import type { GetResultOptions, Overlapped } from '../kernel-bridge/door/overlapped.js';
import type {
  IWVConnectEndpoint,
  IWVConnectQueuePair,
  IWVDatagramEndpoint,
  IWVDatagramQueuePair,
  IWVEndpoint,
  IWVQueuePair,
  WvQpCreate,
} from './interfaces-queue-pairs.js';

export type * from './interfaces-queue-pairs.js';

/** The interfaces of WinVerbs by name. */
export interface WvInterfaces {
  /** Every object has it. */
  readonly IUnknown: WvUnknown;
  /** Every object with requests that can wait. */
  readonly IWVOverlapped: WvOverlappedObject;
  /** The root, made by `openProvider`. */
  readonly IWVProvider: IWVProvider;
  /** Made by {@link IWVProvider.openDevice}. */
  readonly IWVDevice: IWVDevice;
  /** Made by {@link IWVDevice.createCompletionQueue}. */
  readonly IWVCompletionQueue: IWVCompletionQueue;
  /** Made by {@link IWVDevice.allocateProtectionDomain}. */
  readonly IWVProtectionDomain: IWVProtectionDomain;
  /** Made by {@link IWVProtectionDomain.createSharedReceiveQueue}. */
  readonly IWVSharedReceiveQueue: IWVSharedReceiveQueue;
  /** Made by {@link IWVProtectionDomain.allocateMemoryWindow}. */
  readonly IWVMemoryWindow: IWVMemoryWindow;
  /** Made by {@link IWVProtectionDomain.allocateFastRegion}. */
  readonly IWVFastRegion: IWVFastRegion;
  /** Made by {@link IWVProtectionDomain.createAddressHandle}. */
  readonly IWVAddressHandle: IWVAddressHandle;
  /** Connected queue pairs and those of datagrams have it. */
  readonly IWVQueuePair: IWVQueuePair;
  /** Made by {@link IWVProtectionDomain.createConnectQueuePair}. */
  readonly IWVConnectQueuePair: IWVConnectQueuePair;
  /** Made by {@link IWVProtectionDomain.createDatagramQueuePair}. */
  readonly IWVDatagramQueuePair: IWVDatagramQueuePair;
  /** Connect and datagram endpoints have it. */
  readonly IWVEndpoint: IWVEndpoint;
  /** Made by {@link IWVProvider.createConnectEndpoint}. */
  readonly IWVConnectEndpoint: IWVConnectEndpoint;
  /** Made by {@link IWVProvider.createDatagramEndpoint}. */
  readonly IWVDatagramEndpoint: IWVDatagramEndpoint;
}

/** Reference counts, as in COM. Releasing never fails and may come in any order. */
export interface WvUnknown {
  /** Adds a reference; returns their number. */
  addRef(): number;
  /** Releases a reference; returns the number left. The last one ends the object. */
  release(): number;
  /**
   * The object as an interface that it has, with a reference added: its own, those that it extends, and IUnknown.
   *
   * @param name - 'IWVQueuePair', …: TypeScript's names stand for the IIDs.
   * @throws WvError NOT_SUPPORTED (E_NOINTERFACE): the object has no such interface.
   */
  queryInterface<N extends keyof WvInterfaces>(name: N): WvInterfaces[N];
  /** The same as {@link release}, for `using`. */
  [Symbol.dispose](): void;
}

/** An object with overlapped requests. */
export interface WvOverlappedObject extends WvUnknown {
  /** Completes every waiting request of this object with CANCELED before it returns. */
  cancelOverlappedRequests(): void;
  /**
   * The result of a request, of this object or any other; the same as {@link Overlapped.getResult}.
   *
   * @param options - With `wait: true` the thread waits for the end of the request.
   * @throws WvError with the request's status, INVALID_PARAMETER: not a request; StatusError PENDING: it has not completed.
   * @see IWVOverlapped::GetOverlappedResult
   */
  getOverlappedResult<T>(request: Overlapped<T>, options?: GetResultOptions): T;
}

// ── Addresses of devices and peers, and those in datagrams ─────────────────────────────────────────────────

/** An IP address and port. `family` is 4 or 6; `address` is text, with `%scope` for IPv6 link-local ones. */
export interface SocketAddress {
  /** 4 for IPv4, 6 for IPv6. */
  readonly family: 4 | 6;
  /** The IP address as text, with `%scope` for IPv6 link-local ones; no name of a host. */
  readonly address: string;
  /** 0 to 65535; 0 lets the kernel choose, where an address is bound. */
  readonly port: number;
}

/** The device, port and partition of an IP address (IBAT). */
export interface WvDeviceAddress {
  /** CA GUID. */
  readonly deviceGuid: bigint;
  /** The P_Key of the partition, 16 bits; 0xFFFF is the default one. */
  readonly pkey: number;
  /** The port of the device, from 1. */
  readonly portNumber: number;
}

/** The destination of datagrams (WV_ADDRESS_VECTOR). GIDs are 16 bytes, or IP addresses as text. */
export interface WvAddressVector {
  /** An address of the sending device. */
  readonly sourceGid: Uint8Array | string;
  /** A host's address, or a multicast group's. */
  readonly destinationGid: Uint8Array | string;
  /** 20 bits. */
  readonly flowLabel?: number;
  /** 8 bits: IPv4's TOS, IPv6's traffic class; default 0. */
  readonly trafficClass?: number;
  /** 0 (default): 64. */
  readonly hopLimit?: number;
  /** From 1, the default. */
  readonly portNumber?: number;
}

/**
 * How packets reach a peer (ib_path_rec_t). Members that are left out, or 0, are chosen as without a path record: by the port and the
 * options of the kernel.
 */
export interface WvPathRecord extends Omit<WvAddressVector, 'portNumber'> {
  /** The partition: an entry of the P_Key table of the port where the path begins. */
  readonly pkey?: number;
  /** Largest payload of a packet in bytes, 256 to 4096; the port's limit holds in any case. */
  readonly mtu?: number;
  /**
   * How long a packet may be under way, 4.096 µs × 2^n, n up to 63. Twice that is the ACK timeout of a reliable connection, of both
   * sides.
   */
  readonly packetLifeTime?: number;
}

/** The path to an address: the device to open, and the address vector to use on it. */
export interface WvPath {
  /** The device of this side, its port and partition. */
  readonly device: WvDeviceAddress;
  /** For {@link IWVProtectionDomain.createAddressHandle} on that device. */
  readonly addressVector: WvAddressVector;
  /** The whole path, for {@link IWVEndpoint.modify}; of a multicast group addresses alone. */
  readonly record: WvPathRecord;
}

/** The IP header of a received datagram, as far as the first 40 bytes of its buffer have it (IBA 1 Annex A17). */
export interface WvGrh {
  /** 4 or 6, the version of the IP header. */
  readonly ipVersion: 4 | 6;
  /** The sender's GID, 16 bytes; IPv4 behind ::ffff:0:0/96. */
  readonly sourceGid: Uint8Array;
  /** The GID that the datagram was sent to: a host's, or a group's. */
  readonly destinationGid: Uint8Array;
  /** 8 bits: IPv4's TOS, IPv6's traffic class, with the ECN bits of the packet. */
  readonly trafficClass: number;
  /** 0 with IPv4. */
  readonly flowLabel: number;
  /** What was left of IPv4's TTL or IPv6's hop limit, 8 bits. */
  readonly hopLimit: number;
}

// ── The provider, its devices, and the objects of a device ─────────────────────────────────────────────────

/**
 * The root of WinVerbs: the devices of this host, and endpoints.
 *
 * @example
 * ```ts
 * await using provider = openProvider();
 * const { deviceGuid } = provider.translateAddress('127.0.0.1');
 * const device = provider.openDevice(deviceGuid);
 * const endpoint = provider.createConnectEndpoint();
 * ```
 */
export interface IWVProvider extends WvUnknown {
  /**
   * The provider's file on `\\.\WinVerbs`, for IOCTLs beside those of the objects. Ids are those of this provider. It is
   * not to be closed.
   */
  getFileHandle(): DeviceFile;
  /** CA GUIDs of all devices. */
  queryDeviceList(): bigint[];
  /**
   * Waits for a change of the devices, their ports or their addresses, and answers how many there were. Ends at once if there were others
   * than `known` changes: begin with 0. Throws NOT_SUPPORTED: a driver of the system does not tell.
   */
  notifyDeviceChange(known: number): Overlapped<number>;
  /**
   * Private data of a connection's Accept, in bytes: 196, all that a REP carries, or 56 where a Windows driver takes no more. A
   * Connect has at most 56, a Reject 148.
   */
  readonly maxAcceptData: number;
  /** Attributes and limits of a device without opening it. Throws NO_SUCH_DEVICE. */
  queryDevice(guid: bigint): WvDeviceAttributes;
  /** The device that has an IP address of this host. Throws NOT_FOUND. */
  translateAddress(address: string | SocketAddress): WvDeviceAddress;
  /**
   * The path to an address, from `local` or from the address that the host's routes choose. For a multicast group
   * `local` must name the interface by one of its addresses.
   */
  resolvePath(remote: string | SocketAddress, local?: string | SocketAddress): WvPath;
  /** Opens a device. Throws NO_SUCH_DEVICE. */
  openDevice(guid: bigint): IWVDevice;
  /**
   * An endpoint for one connection, or for a listener. `protocol`: the IP protocol whose port space its port is of, 0 to 255 but
   * for UDP (17); default 6 (TCP). Listeners of two protocols may have one port.
   */
  createConnectEndpoint(protocol?: number): IWVConnectEndpoint;
  /** An endpoint for datagrams: any number of peers and groups, or a listener. */
  createDatagramEndpoint(): IWVDatagramEndpoint;
  /** Releases all that was made from it, whoever holds references, and then itself; for `await using`. It does not fail. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Limits of a device (IBA 1 §11.2.1.2). Sizes are bytes, `localAckDelay` is 4.096 µs × 2^code. */
export interface WvDeviceAttributes {
  /** The firmware's version, 64 bits in a form of the vendor's. */
  readonly fwVersion: bigint;
  /** The GUID of the node, an EUI-64. */
  readonly nodeGuid: bigint;
  /** The same for all devices of one piece of hardware. */
  readonly systemImageGuid: bigint;
  /** The vendor's IEEE OUI, 24 bits. */
  readonly vendorId: number;
  /** The vendor's number of this kind of device. */
  readonly vendorPartId: number;
  /** The vendor's number of the hardware's revision. */
  readonly hwVersion: number;
  /** An OR of WvCapability. */
  readonly capabilityFlags: number;
  /** A value of AtomicCapability. */
  readonly atomicCapability: number;
  /** An OR of the page sizes in bytes that memory may be registered by. */
  readonly pageSizeCapabilityFlags: number;
  /** Bytes of the largest memory region. */
  readonly maxMrSize: bigint;
  /** Queue pairs of the device. */
  readonly maxQp: number;
  /** Requests in one queue of a queue pair. */
  readonly maxQpWr: number;
  /** SGEs of one request. */
  readonly maxSge: number;
  /** Completion queues of the device. */
  readonly maxCq: number;
  /** Entries of one completion queue. */
  readonly maxCqEntries: number;
  /** Memory regions of the device. */
  readonly maxMr: number;
  /** Protection domains of the device. */
  readonly maxPd: number;
  /** RDMA reads and atomics of a peer that one queue pair answers at a time. */
  readonly maxQpResponderResources: number;
  /** The same, of all queue pairs together. */
  readonly maxResponderResources: number;
  /** RDMA reads and atomics that one queue pair may have outstanding. */
  readonly maxQpInitiatorDepth: number;
  /** Bytes of an INLINE request. */
  readonly maxInlineSend: number;
  /** Memory windows of the device; 0: not supported. */
  readonly maxMw: number;
  /** Multicast groups that have an attached queue pair. */
  readonly maxMulticast: number;
  /** Queue pairs that are attached to one group. */
  readonly maxQpAttach: number;
  /** Attachments of all groups together. */
  readonly maxMulticastQp: number;
  /** Fast memory regions of the old kind (FMR), which the software HCA does not have: 0. */
  readonly maxFmr: number;
  /** How often an FMR may be mapped before it must be unmapped; 0 on the software HCA. */
  readonly maxMapPerFmr: number;
  /** Shared receive queues of the device; 0: not supported. */
  readonly maxSrq: number;
  /** Receives in one shared receive queue. */
  readonly maxSrqWr: number;
  /** SGEs of a receive of a shared receive queue. */
  readonly maxSrqSge: number;
  /** Address handles of the device. */
  readonly maxAh: number;
  /** Entries of a port's P_Key table. */
  readonly maxPkeys: number;
  /** A value of DeviceType. */
  readonly deviceType: number;
  /** How long the device may take to acknowledge, as a code. */
  readonly localAckDelay: number;
  /** The number of ports; a device of the software HCA has one. */
  readonly physPortCount: number;
  /** SGEs of an RDMA read; no more than `maxSge`. */
  readonly maxReadSge: number;
}

/** State and limits of a port (IBA 1 §11.2.1.2). MTUs and message sizes are bytes. */
export interface WvPortAttributes {
  /** An OR of WvCapability. */
  readonly portCapabilityFlags: number;
  /** A value of PortState. */
  readonly state: number;
  /** Payload of the largest packet that the port can have: 256, 512, 1024, 2048 or 4096. */
  readonly maxMtu: number;
  /** Payload of the largest packet at present; it follows the MTU of the network interface. */
  readonly activeMtu: number;
  /** Entries of the GID table, see {@link IWVDevice.queryGid}. */
  readonly gidTableLength: number;
  /** Bytes of the longest message. */
  readonly maxMessageSize: number;
  /** Entries of the P_Key table, see {@link IWVDevice.queryPkey}. */
  readonly pkeyTableLength: number;
  /** A value of PortTransport. */
  readonly transport: number;
  /** The state of the link as a code (IBA 1 §14.2.5.6): 5 is up, 3 disabled. */
  readonly physicalState: number;
  /** Packets with a P_Key that the port does not have. */
  readonly badPkeyCounter: number;
  /** Datagrams whose Q_Key was not that of their queue pair. */
  readonly qkeyViolationCounter: number;
  /** The port's LID; 0 on RoCE. */
  readonly lid: number;
  /** The LID of the subnet manager; 0 on RoCE. */
  readonly smLid: number;
  /** How many low bits of the LID the port ignores, 0 to 7; 0 on RoCE. */
  readonly lmc: number;
  /** The service level of messages to the subnet manager; 0 on RoCE. */
  readonly smSl: number;
  /** How long a packet takes through the subnet, as a code: 4.096 µs × 2^code; 0 on RoCE. */
  readonly subnetTimeout: number;
  /** A code of the number of virtual lanes (IBA 1 §14.2.5.6): 1 is one lane. */
  readonly maxVls: number;
  /** The type of initialisation that the subnet manager has carried out; 0 on RoCE. */
  readonly initTypeReply: number;
  /** The number of lanes as a code (IBA 1 §14.2.5.6): 1, 2, 4, 8 for 1, 4, 8 and 12 lanes. */
  readonly activeWidth: number;
  /** The speed of a lane as a code (IBA 1 §14.2.5.6): 1 is 2.5 Gbit/s. */
  readonly activeSpeed: number;
  /** The speed of a lane where `activeSpeed` has no code for it; 0 otherwise. */
  readonly extActiveSpeed: number;
  /** How the link encodes its bits, as a code; 0: not told. */
  readonly linkEncoding: number;
}

/**
 * An open device: an RDMA NIC, or the software HCA on a network interface.
 *
 * @example
 * ```ts
 * using device = provider.openDevice(guid);
 * const { maxCqEntries } = device.query();
 * console.log(device.name, device.queryPort(1).activeMtu);
 * const cq = device.createCompletionQueue(Math.min(1024, maxCqEntries));
 * const pd = device.allocateProtectionDomain();
 * ```
 */
export interface IWVDevice extends WvOverlappedObject {
  /** The CA GUID, an EUI-64. */
  readonly guid: bigint;
  /**
   * What the system calls it: an RDMA device by its own name (`mlx5_0`), the software HCA by that of its network interface (`eth0`); where a
   * driver does not tell, the GUID in hexadecimal.
   */
  readonly name: string;
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
  /** Waits for an event of a port: an OR of WV_EVENT_*. Events without a waiter are stored for the next. */
  notify(port: number): Overlapped<number>;
  /** A protection domain: memory, windows and queue pairs that may be used together. */
  allocateProtectionDomain(): IWVProtectionDomain;
  /** Releases all that was made from it, whoever holds references, and then itself; for `await using`. It does not fail. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** One entry of a completion queue, reused by {@link IWVCompletionQueue.poll}. */
export interface WvCompletion {
  /** The context of the request. */
  context: unknown;
  /** The context of the queue pair. */
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
  /** The device's own number of an error; 0 if it has none. */
  vendorCode: number;
  /** Place in the port's P_Key table; receives of datagrams only, as the rest. */
  pkeyIndex: number;
  /** The sender's LID, which only InfiniBand has; 0 on RoCE. */
  sLid: number;
  /** The service level of the packet; 0 on RoCE. */
  sl: number;
  /** The low bits of the LID that the packet came to; 0 on RoCE. */
  dLidPathBits: number;
}

/** The event of a completion queue to wait for: WvCqNextCompletion, WvCqSolicited, WvCqError. */
export type WvCqNotifyType = 'any' | 'solicited' | 'errors';

/**
 * Reports finished requests of queue pairs. Polling makes no system call.
 *
 * @example
 * ```ts
 * const completions: WvCompletion[] = [];
 * await cq.notify('any');
 * for (let count = cq.poll(completions, 32); count > 0; count = cq.poll(completions, 32))
 *   for (const { context, status } of completions.slice(0, count)) console.log(context, status === 0);
 * ```
 */
export interface IWVCompletionQueue extends WvOverlappedObject {
  /** Number of entries, at least as many as requested. */
  readonly entries: number;
  /** Changes the number of entries; waiting completions stay. Throws BUFFER_OVERFLOW if they would not fit. */
  resize(entries: number): void;
  /** Number of waiting completions. */
  peek(): number;
  /**
   * Fills `completions` from the start with at most `n` completions (default: its length, at least one)
   * and returns their number. Objects in the array are reused; if their setters poll this queue, that inner call takes
   * none. Throws INVALID_PARAMETER if `completions` is no array, or `n` not a whole number from 0 on. A thread that
   * calls it again at once after an empty poll polls inside the engine for half a microsecond.
   */
  poll(completions: WvCompletion[], n?: number): number;
  /** @internal As `shouldPoll` of the device's provider. */
  shouldPoll?(): boolean;
  /** Waits for the next completion ('any'), the next solicited one, or a CQ error. */
  notify(type: WvCqNotifyType): Overlapped<void>;
  /** Waits until there are `n` completions, 1 to {@link entries}; may end earlier. Poll until empty afterwards. */
  batchNotify(n: number): Overlapped<void>;
}

/**
 * Memory regions, windows and queue pairs that may be used together (IBA 1 §10.2.3).
 *
 * @example
 * ```ts
 * using pd = device.allocateProtectionDomain();
 * const region = pd.registerMemory(allocate(1 << 20), WvAccess.LOCAL_WRITE | WvAccess.REMOTE_READ);
 * const sizes = { sendDepth: 64, sendSge: 1, receiveDepth: 64, receiveSge: 1 };
 * const qp = pd.createConnectQueuePair({ sendCq: cq, receiveCq: cq, ...sizes });
 * ```
 */
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
  /** A region for {@link IWVConnectQueuePair.fastRegister} of at most `maxLength` bytes, not registered yet. */
  allocateFastRegion(maxLength: number): IWVFastRegion;
  /**
   * A queue of receives for several queue pairs. The limit 0 requests no event. Throws INVALID_PARAMETER,
   * NOT_SUPPORTED.
   */
  createSharedReceiveQueue(maxWr: number, maxSge: number, srqLimit?: number): IWVSharedReceiveQueue;
  /** A connected queue pair (RC or UC) in RESET. Throws INVALID_PARAMETER. */
  createConnectQueuePair(create: WvQpCreate): IWVConnectQueuePair;
  /** A datagram queue pair (UD) in RESET. Throws INVALID_PARAMETER. */
  createDatagramQueuePair(create: WvQpCreate): IWVDatagramQueuePair;
  /** The destination of datagrams. Throws INVALID_ADDRESS, INVALID_PORT_HANDLE, INVALID_PARAMETER. */
  createAddressHandle(vector: WvAddressVector): IWVAddressHandle;
  /** Releases all that was made from it, whoever holds references, and then itself; for `await using`. It does not fail. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * The destination of datagrams. Releasing it makes posted datagrams fail that were not sent yet.
 *
 * @example
 * ```ts
 * const { addressVector } = provider.resolvePath('192.0.2.9');
 * const handle = pd.createAddressHandle(addressVector);
 * datagrams.send('hello', handle, { region, offset: 0, length: 100 }, WvSend.SIGNALED, peerQpn, 0x1234);
 * ```
 */
export interface IWVAddressHandle extends WvUnknown {}

/** Size and limit of a shared receive queue (IBA 1 §11.2.3.3). */
export interface WvSrqAttributes {
  /** Number of receives, at least as many as requested. */
  readonly maxWr: number;
  /** SGEs of a receive. */
  readonly maxSge: number;
  /** The event is reported when fewer receives are left; 0: no event. */
  readonly srqLimit: number;
}

/** Events of a shared receive queue: fewer receives are left than its limit, or a queue pair takes no more from it. */
export type WvSrqEvent = 'limit' | 'lastWqe';

/**
 * Receives for the messages of several queue pairs, taken in the order in which messages begin (IBA 1 §10.2.9).
 *
 * @example
 * ```ts
 * const srq = pd.createSharedReceiveQueue(256, 1, 32);
 * for (let n = 0; n < 256; n++) srq.postReceive(n, [{ region, offset: 4096 * n, length: 4096 }]);
 * const sizes = { sendDepth: 16, sendSge: 1, receiveDepth: 0, receiveSge: 0 };
 * const qp = pd.createConnectQueuePair({ sendCq: cq, receiveCq: cq, srq, ...sizes });
 * if ((await srq.notify()) === 'limit') console.log('fewer than 32 receives are left');
 * ```
 */
export interface IWVSharedReceiveQueue extends WvOverlappedObject {
  /** The actual size, and the limit until its event was reported. */
  query(): WvSrqAttributes;
  /**
   * Changes size and limit while queue pairs use the queue. Throws BUFFER_OVERFLOW if the waiting receives would not
   * fit.
   */
  modify(maxWr: number, limit: number): void;
  /** Posts a receive. Throws NO_MORE_ENTRIES if the queue is full, and for SGEs as {@link IWVQueuePair.postReceive}. */
  postReceive(context: unknown, sgl: readonly WvSge[]): void;
  /** Waits for the next event; one without a waiter is stored. */
  notify(): Overlapped<WvSrqEvent>;
}

// ── Memory ─────────────────────────────────────────────────────────────────────────────────────────────────

/** Registered memory: its keys and address. Requests address it by offset. */
export interface WvMemoryRegion {
  /** The key that the HCA checks this side's SGEs by. */
  readonly lkey: number;
  /** 0 if no remote right was requested. */
  readonly rkey: number;
  /** What its first byte is called: the native address, below 2^47, or 0 with ZERO_BASED. Peers are told this. */
  readonly address: number;
  /** Bytes. */
  readonly length: number;
  /**
   * The memory itself; INLINE requests copy from it. Once its ArrayBuffer was detached, reading this and requests that
   * name the region throw ACCESS_VIOLATION: the device keeps the memory until it is deregistered, but the program has
   * lost it.
   */
  readonly bytes?: Uint8Array;
}

/** A part of registered memory: `length` bytes at `offset` bytes into the region. */
export interface WvSge {
  /** The region that `registerMemory` returned. The HCA checks that the entry lies within it. */
  region: Pick<WvMemoryRegion, 'lkey' | 'address' | 'bytes'>;
  /** Bytes from the start of the region. */
  offset: number;
  /** Bytes; an entry of 0 names no memory. */
  length: number;
}

/** A peer's description of its memory: a {@link RemoteMemory} is made from it. */
export interface WvRemoteMemory {
  /** Of the first byte, 64 bits: a bigint, or a number below 2^53. */
  readonly address: bigint | number;
  /** The number on the wire, 32 bits. */
  readonly rkey: number;
}

/** Remote memory in requests: `RemoteMemory` of this package. */
export interface RemoteMemoryRef {
  /** The low 32 bits of the first byte's address. */
  readonly addressLow: number;
  /** The high 32 bits of the first byte's address. */
  readonly addressHigh: number;
  /** The peer's key, 32 bits, as the number on the wire. */
  readonly rkey: number;
}

/**
 * A region that is allocated once and registered by requests, without the kernel: fast registration (IBA 1 §10.6.6), the type of memory
 * region that Linux calls `IB_MR_TYPE_MEM_REG` and NDKPI a fast-register MR. Its key grants nothing until a request has registered
 * memory, nor after it was invalidated by its owner or by the peer's Send with Invalidate. While it is registered, SGEs may name it.
 * @example
 * ```ts
 * const fast = pd.allocateFastRegion(1 << 20);
 * const memory = { region, offset: 65_536, length: 4096 };
 * const rkey = qp.fastRegister(fast, 'register', memory, WvAccess.REMOTE_WRITE, WvSend.SIGNALED);
 * // The peer writes by this key, until it ends.
 * qp.invalidateRegion(fast, 'invalidate', WvSend.SIGNALED);
 * ```
 */
export interface IWVFastRegion extends WvUnknown, WvMemoryRegion {
  /** The greatest length of a registration in bytes. */
  readonly maxLength: number;
}

/**
 * A key for a part of a region, granted and withdrawn by requests (IBA 1 §10.6.7).
 *
 * @example
 * ```ts
 * const window = pd.allocateMemoryWindow();
 * const rkey = qp.bindMemoryWindow(window, 'bind', region, 0, 4096, WvAccess.REMOTE_READ, WvSend.SIGNALED);
 * // The peer reads by this key, until it ends.
 * qp.invalidateMemoryWindow(window, 'invalidate', WvSend.SIGNALED);
 * ```
 */
export interface IWVMemoryWindow extends WvUnknown {
  /** The key of the latest bind. */
  readonly rkey: number;
}
