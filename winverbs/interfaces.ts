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
  /** The interface of every object. */
  readonly IUnknown: WvUnknown;
  /** The interface of every object with overlapped requests. */
  readonly IWVOverlapped: WvOverlappedObject;
  /** The root, created by `openProvider`. */
  readonly IWVProvider: IWVProvider;
  /** Created by {@link IWVProvider.openDevice}. */
  readonly IWVDevice: IWVDevice;
  /** Created by {@link IWVDevice.createCompletionQueue}. */
  readonly IWVCompletionQueue: IWVCompletionQueue;
  /** Allocated by {@link IWVDevice.allocateProtectionDomain}. */
  readonly IWVProtectionDomain: IWVProtectionDomain;
  /** Created by {@link IWVProtectionDomain.createSharedReceiveQueue}. */
  readonly IWVSharedReceiveQueue: IWVSharedReceiveQueue;
  /** Allocated by {@link IWVProtectionDomain.allocateMemoryWindow}. */
  readonly IWVMemoryWindow: IWVMemoryWindow;
  /** Allocated by {@link IWVProtectionDomain.allocateFastRegion}. */
  readonly IWVFastRegion: IWVFastRegion;
  /** Created by {@link IWVProtectionDomain.createAddressHandle}. */
  readonly IWVAddressHandle: IWVAddressHandle;
  /** The interface of connected and datagram queue pairs. */
  readonly IWVQueuePair: IWVQueuePair;
  /** Created by {@link IWVProtectionDomain.createConnectQueuePair}. */
  readonly IWVConnectQueuePair: IWVConnectQueuePair;
  /** Created by {@link IWVProtectionDomain.createDatagramQueuePair}. */
  readonly IWVDatagramQueuePair: IWVDatagramQueuePair;
  /** The interface of connect and datagram endpoints. */
  readonly IWVEndpoint: IWVEndpoint;
  /** Created by {@link IWVProvider.createConnectEndpoint}. */
  readonly IWVConnectEndpoint: IWVConnectEndpoint;
  /** Created by {@link IWVProvider.createDatagramEndpoint}. */
  readonly IWVDatagramEndpoint: IWVDatagramEndpoint;
}

/** Reference counts, as in COM. Releasing never fails, and the order does not matter. */
export interface WvUnknown {
  /** Adds a reference; returns the new count. @category Lifetime */
  addRef(): number;
  /** Releases a reference; returns the remaining count. The last release destroys the object. @category Lifetime */
  release(): number;
  /**
   * Adds a reference and returns the object as one of its interfaces: its own, one that this one extends, or IUnknown.
   *
   * @param name - name of the interface, such as 'IWVQueuePair', in place of its IID
   * @throws WvError NOT_SUPPORTED (E_NOINTERFACE): the object does not have this interface.
   * @category Lifetime
   */
  queryInterface<N extends keyof WvInterfaces>(name: N): WvInterfaces[N];
  /** The same as {@link release}, for `using`. @category Lifetime */
  [Symbol.dispose](): void;
}

/** An object with overlapped requests. */
export interface WvOverlappedObject extends WvUnknown {
  /** Completes every waiting request of this object with CANCELED before it returns. @category Complete */
  cancelOverlappedRequests(): void;
  /**
   * Returns the result of a request of this object or any other; the same as {@link Overlapped.getResult}.
   *
   * @param options - With `wait: true` the thread blocks until the request has completed.
   * @throws WvError with the request's status or INVALID_PARAMETER (not a request); StatusError PENDING if it has not
   *   completed
   * @see IWVOverlapped::GetOverlappedResult
   * @category Complete
   */
  getOverlappedResult<T>(request: Overlapped<T>, options?: GetResultOptions): T;
}

// ── Addresses of devices and peers, and those in datagrams ─────────────────────────────────────────────────

/** An IP address and port. `family` is 4 or 6; `address` is text, with `%scope` for IPv6 link-local ones. */
export interface SocketAddress {
  /** 4 for IPv4, 6 for IPv6. */
  readonly family: 4 | 6;
  /** The IP address as text, with `%scope` for IPv6 link-local ones; not a host name. */
  readonly address: string;
  /** The port, 0 to 65535; with 0 the kernel chooses one when the address is bound. */
  readonly port: number;
}

/** The device, port and partition that an IP address belongs to (IBAT). */
export interface WvDeviceAddress {
  /** The CA GUID of the device. */
  readonly deviceGuid: bigint;
  /** The P_Key of the partition, 16 bits; 0xFFFF is the default partition. */
  readonly pkey: number;
  /** The port of the device, from 1. */
  readonly portNumber: number;
}

/** The destination of datagrams (WV_ADDRESS_VECTOR). GIDs are 16 bytes, or IP addresses as text. */
export interface WvAddressVector {
  /** An address of the sending device. */
  readonly sourceGid: Uint8Array | string;
  /** The address of a host or a multicast group. */
  readonly destinationGid: Uint8Array | string;
  /** The flow label, 20 bits; default 0. */
  readonly flowLabel?: number;
  /** IPv4 TOS or IPv6 traffic class, 8 bits; default 0. */
  readonly trafficClass?: number;
  /** The hop limit or TTL, 8 bits; 0 (default) selects 64. */
  readonly hopLimit?: number;
  /** The port of the device, from 1; default 1. */
  readonly portNumber?: number;
}

/**
 * How packets reach a peer (ib_path_rec_t). Members that are left out or 0 get the values of the port and of the
 * kernel's options.
 */
export interface WvPathRecord extends Omit<WvAddressVector, 'portNumber'> {
  /** The P_Key of the partition; it must be in the P_Key table of the source port. */
  readonly pkey?: number;
  /** Maximum payload of a packet, 256 to 4096 bytes; never more than the port's limit. */
  readonly mtu?: number;
  /**
   * Maximum time that a packet may be in transit, 4.096 µs × 2^n, n up to 63. The ACK timeout of a reliable connection
   * is twice that, on both sides.
   */
  readonly packetLifeTime?: number;
}

/** The path to an address: the device to open, and the address vector to use on it. */
export interface WvPath {
  /** The device of this side, its port and partition. */
  readonly device: WvDeviceAddress;
  /** For {@link IWVProtectionDomain.createAddressHandle} on that device. */
  readonly addressVector: WvAddressVector;
  /** The whole path, for {@link IWVEndpoint.modify}. For a multicast group it has only the addresses. */
  readonly record: WvPathRecord;
}

/** The part of a received datagram's IP header that is in the first 40 bytes of the buffer (IBA 1 Annex A17). */
export interface WvGrh {
  /** Version of the IP header: 4 or 6. */
  readonly ipVersion: 4 | 6;
  /** The sender's GID, 16 bytes; an IPv4 address is mapped to ::ffff:0:0/96. */
  readonly sourceGid: Uint8Array;
  /** The GID that the datagram was sent to, of a host or a group. */
  readonly destinationGid: Uint8Array;
  /** IPv4 TOS or IPv6 traffic class, 8 bits, with the ECN bits of the packet. */
  readonly trafficClass: number;
  /** The flow label of IPv6, 20 bits; 0 with IPv4. */
  readonly flowLabel: number;
  /** The remaining TTL of IPv4 or hop limit of IPv6, 8 bits. */
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
   * Returns the provider's file on `\\.\WinVerbs`, for IOCTLs other than those of the objects. IDs in these IOCTLs are
   * those of this provider. Do not close the file.
   * @category Devices
   */
  getFileHandle(): DeviceFile;
  /** Returns the CA GUIDs of all devices. @category Devices */
  queryDeviceList(): bigint[];
  /**
   * Waits for a change of the devices, their ports or their addresses, and returns the number of changes so far.
   * Completes immediately if that number differs from `known`; start with 0. Throws NOT_SUPPORTED if an OS driver does
   * not report changes.
   * @category Devices
   */
  notifyDeviceChange(known: number): Overlapped<number>;
  /**
   * Maximum private data for Accept, in bytes: 196, all that a REP carries, or 56 with a Windows driver that supports
   * no more. The maximum is 56 for Connect and 148 for Reject.
   * @category Connect
   */
  readonly maxAcceptData: number;
  /** Returns attributes and limits of a device, which need not be open. Throws NO_SUCH_DEVICE. @category Devices */
  queryDevice(guid: bigint): WvDeviceAttributes;
  /** Returns the device that has an IP address of this host. Throws NOT_FOUND. @category Connect */
  translateAddress(address: string | SocketAddress): WvDeviceAddress;
  /**
   * Returns the path to an address, from `local` or from the address that the host's routes select. For a multicast
   * group `local` must be an address of the interface to use.
   * @category Connect
   */
  resolvePath(remote: string | SocketAddress, local?: string | SocketAddress): WvPath;
  /** Opens a device. Throws NO_SUCH_DEVICE. @category Devices */
  openDevice(guid: bigint): IWVDevice;
  /**
   * Creates an endpoint for one connection, or for a listener. `protocol` is the IP protocol whose port space it uses,
   * 0 to 255 except UDP (17); default 6 (TCP). Listeners of two protocols may share a port number.
   * @category Connect
   */
  createConnectEndpoint(protocol?: number): IWVConnectEndpoint;
  /** Creates an endpoint for datagrams: any number of peers and groups, or a listener. @category Connect */
  createDatagramEndpoint(): IWVDatagramEndpoint;
  /**
   * Releases all objects created from this one, regardless of reference counts, and then this object; for `await
   * using`. Never fails.
   * @category Lifetime
   */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Limits of a device (IBA 1 §11.2.1.2). Sizes are in bytes. */
export interface WvDeviceAttributes {
  /** The firmware version, 64 bits in a vendor-specific format. */
  readonly fwVersion: bigint;
  /** The GUID of the node, an EUI-64. */
  readonly nodeGuid: bigint;
  /** GUID shared by all devices of one piece of hardware. */
  readonly systemImageGuid: bigint;
  /** The vendor's IEEE OUI, 24 bits. */
  readonly vendorId: number;
  /** The vendor's part number of this kind of device. */
  readonly vendorPartId: number;
  /** The vendor's number of the hardware revision. */
  readonly hwVersion: number;
  /** An OR of WvCapability. */
  readonly capabilityFlags: number;
  /** A value of AtomicCapability. */
  readonly atomicCapability: number;
  /** An OR of the page sizes in bytes that memory may be registered with. */
  readonly pageSizeCapabilityFlags: number;
  /** Size of the largest memory region, in bytes. */
  readonly maxMrSize: bigint;
  /** Maximum number of queue pairs. */
  readonly maxQp: number;
  /** Maximum number of requests in one queue of a queue pair. */
  readonly maxQpWr: number;
  /** Maximum number of SGEs of a request. */
  readonly maxSge: number;
  /** Maximum number of completion queues. */
  readonly maxCq: number;
  /** Maximum number of entries of a completion queue. */
  readonly maxCqEntries: number;
  /** Maximum number of memory regions. */
  readonly maxMr: number;
  /** Maximum number of protection domains. */
  readonly maxPd: number;
  /** Maximum number of a peer's RDMA reads and atomics that a queue pair serves at a time. */
  readonly maxQpResponderResources: number;
  /** Maximum number of RDMA reads and atomics that all queue pairs together serve at a time. */
  readonly maxResponderResources: number;
  /** Maximum number of RDMA reads and atomics that a queue pair may have outstanding. */
  readonly maxQpInitiatorDepth: number;
  /** Maximum size of an INLINE request, in bytes. */
  readonly maxInlineSend: number;
  /** Maximum number of memory windows; 0: not supported. */
  readonly maxMw: number;
  /** Maximum number of multicast groups with attached queue pairs. */
  readonly maxMulticast: number;
  /** Maximum number of queue pairs attached to one group. */
  readonly maxQpAttach: number;
  /** Maximum number of attachments of all groups together. */
  readonly maxMulticastQp: number;
  /** Maximum number of old-style fast memory regions (FMR); 0 on the software HCA, which has none. */
  readonly maxFmr: number;
  /** Number of times that an FMR may be mapped before it must be unmapped; 0 on the software HCA. */
  readonly maxMapPerFmr: number;
  /** Maximum number of shared receive queues; 0: not supported. */
  readonly maxSrq: number;
  /** Maximum number of receives in a shared receive queue. */
  readonly maxSrqWr: number;
  /** Maximum number of SGEs of a receive of a shared receive queue. */
  readonly maxSrqSge: number;
  /** Maximum number of address handles. */
  readonly maxAh: number;
  /** Number of entries of a port's P_Key table. */
  readonly maxPkeys: number;
  /** A value of DeviceType. */
  readonly deviceType: number;
  /** Maximum time that the device takes to acknowledge a packet, as a code: 4.096 µs × 2^code. */
  readonly localAckDelay: number;
  /** The number of ports; 1 on devices of the software HCA. */
  readonly physPortCount: number;
  /** Maximum number of SGEs of an RDMA Read; at most `maxSge`. */
  readonly maxReadSge: number;
}

/** State and limits of a port (IBA 1 §11.2.1.2). MTUs and message sizes are in bytes. */
export interface WvPortAttributes {
  /** An OR of WvCapability. */
  readonly portCapabilityFlags: number;
  /** A value of PortState. */
  readonly state: number;
  /** Maximum payload of a packet that the port can support: 256, 512, 1024, 2048 or 4096. */
  readonly maxMtu: number;
  /** Maximum payload of a packet at present; it follows the MTU of the network interface. */
  readonly activeMtu: number;
  /** Number of entries of the GID table, see {@link IWVDevice.queryGid}. */
  readonly gidTableLength: number;
  /** Maximum length of a message, in bytes. */
  readonly maxMessageSize: number;
  /** Number of entries of the P_Key table, see {@link IWVDevice.queryPkey}. */
  readonly pkeyTableLength: number;
  /** A value of PortTransport. */
  readonly transport: number;
  /** The state of the link as a code (IBA 1 §14.2.5.6): 5 is up, 3 disabled. */
  readonly physicalState: number;
  /** Number of packets received with a P_Key that the port does not have. */
  readonly badPkeyCounter: number;
  /** Number of datagrams received with a Q_Key that differs from that of their queue pair. */
  readonly qkeyViolationCounter: number;
  /** The port's LID; 0 on RoCE. */
  readonly lid: number;
  /** The LID of the subnet manager; 0 on RoCE. */
  readonly smLid: number;
  /** Number of low bits of the LID that the port ignores, 0 to 7; 0 on RoCE. */
  readonly lmc: number;
  /** The service level of messages to the subnet manager; 0 on RoCE. */
  readonly smSl: number;
  /** Maximum time that a packet takes through the subnet, as a code: 4.096 µs × 2^code; 0 on RoCE. */
  readonly subnetTimeout: number;
  /** The number of virtual lanes as a code (IBA 1 §14.2.5.6): 1 is one lane. */
  readonly maxVls: number;
  /** The type of initialization that the subnet manager has carried out; 0 on RoCE. */
  readonly initTypeReply: number;
  /** The number of lanes as a code (IBA 1 §14.2.5.6): 1, 2, 4, 8 for 1, 4, 8 and 12 lanes. */
  readonly activeWidth: number;
  /** The speed of a lane as a code (IBA 1 §14.2.5.6): 1 is 2.5 Gbit/s. */
  readonly activeSpeed: number;
  /** The speed of a lane if `activeSpeed` has no code for it; otherwise 0. */
  readonly extActiveSpeed: number;
  /** The encoding of the link as a code; 0: not reported. */
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
  /** The CA GUID, an EUI-64. @category Devices */
  readonly guid: bigint;
  /**
   * The name in the OS: an RDMA device's own name (`mlx5_0`), or the network interface of the software HCA (`eth0`). It
   * is the GUID in hexadecimal if a driver does not report a name.
   * @category Devices
   */
  readonly name: string;
  /** Returns attributes and limits. @category Devices */
  query(): WvDeviceAttributes;
  /** Returns attributes of a port; ports count from 1. Throws INVALID_PORT_HANDLE. @category Devices */
  queryPort(port: number): WvPortAttributes;
  /** Returns an entry of the port's GID table, 16 bytes. Throws INVALID_PARAMETER_2. @category Devices */
  queryGid(port: number, index: number): Uint8Array;
  /** Returns the index of a GID in the port's table. Throws INVALID_ADDRESS. @category Devices */
  findGid(port: number, gid: Uint8Array): number;
  /** Returns an entry of the port's P_Key table. Throws INVALID_PARAMETER_2. @category Devices */
  queryPkey(port: number, index: number): number;
  /** Returns the index of a P_Key in the port's table. Throws INVALID_ADDRESS. @category Devices */
  findPkey(port: number, pkey: number): number;
  /** Creates a completion queue of at least `entries` entries. Throws INVALID_PARAMETER. @category Queues */
  createCompletionQueue(entries: number): IWVCompletionQueue;
  /**
   * Waits for an event of a port: an OR of WV_EVENT_*. Events without a waiter are stored for the next.
   * @category Devices
   */
  notify(port: number): Overlapped<number>;
  /** Allocates a protection domain: memory, windows and queue pairs that may be used together. @category Memory */
  allocateProtectionDomain(): IWVProtectionDomain;
  /**
   * Releases all objects created from this one, regardless of reference counts, and then this object; for `await
   * using`. Never fails.
   * @category Lifetime
   */
  [Symbol.asyncDispose](): Promise<void>;
}

/** One entry of a completion queue, reused by {@link IWVCompletionQueue.poll}. */
export interface WvCompletion {
  /** The context of the request. */
  context: unknown;
  /** The context of the queue pair. */
  qpContext: unknown;
  /**
   * WV_OPCODE: Send 0, RdmaWrite 1, RdmaRead 2, CompareExchange 3, FetchAdd 4, BindWindow 5, Invalidate 6, Receive 128,
   * ReceiveRdmaWrite 129.
   */
  opcode: number;
  /** WV_WC_STATUS; 0 is success. */
  status: number;
  /** Length of the message, in bytes. */
  length: number;
  /** WV_WC_*: 1 immediate, 2 invalidated, 4 GRH, 8 solicited. */
  flags: number;
  /** Immediate data or the invalidated rkey. */
  immediateData: number;
  /** The sender's QPN; receives of datagrams only. */
  sourceQpn: number;
  /** The device's own error code; 0 if it has none. */
  vendorCode: number;
  /** Index in the port's P_Key table. This and the following members are set only for receives of datagrams. */
  pkeyIndex: number;
  /** The sender's LID, used only on InfiniBand; 0 on RoCE. */
  sLid: number;
  /** The service level of the packet; 0 on RoCE. */
  sl: number;
  /** The low bits of the LID that the packet was sent to; 0 on RoCE. */
  dLidPathBits: number;
}

/** The event of a completion queue to wait for: WvCqNextCompletion, WvCqSolicited, WvCqError. */
export type WvCqNotifyType = 'any' | 'solicited' | 'errors';

/**
 * Reports completed requests of queue pairs. Polling makes no system call.
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
  /** Number of entries; at least as many as requested. @category Queues */
  readonly entries: number;
  /**
   * Changes the number of entries and keeps waiting completions. Throws BUFFER_OVERFLOW if these would not fit.
   * @category Queues
   */
  resize(entries: number): void;
  /** Returns the number of waiting completions. @category Complete */
  peek(): number;
  /**
   * Fills `completions` from the start with at most `n` completions (default: the length of the array, at least one)
   * and returns their number. Objects in the array are reused. If their setters poll this queue, that inner call
   * returns 0. Throws INVALID_PARAMETER if `completions` is not an array, or `n` is not a non-negative integer. If the
   * queue was empty, a second call that follows immediately on the same thread polls inside the engine for half a
   * microsecond.
   * @category Complete
   */
  poll(completions: WvCompletion[], n?: number): number;
  /** @internal See `shouldPoll` of the device's provider. */
  shouldPoll?(): boolean;
  /** Waits for the next completion ('any'), the next solicited one, or a CQ error. @category Complete */
  notify(type: WvCqNotifyType): Overlapped<void>;
  /**
   * Waits until there are `n` completions (1 to {@link entries}), but may complete earlier. Afterwards, poll until the
   * queue is empty.
   * @category Complete
   */
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
   * @category Memory
   */
  registerMemory(buffer: ArrayBufferLike | ArrayBufferView, access: number): WvMemoryRegion;
  /** The overlapped form of {@link registerMemory}; invalid arguments throw immediately. @category Memory */
  registerMemoryOverlapped(
    buffer: ArrayBufferLike | ArrayBufferView,
    access: number,
  ): Overlapped<WvMemoryRegion>;
  /** Ends a registration. Throws DEVICE_BUSY while memory windows are bound to it. @category Memory */
  deregisterMemory(region: WvMemoryRegion): void;
  /** The overlapped form of {@link deregisterMemory}. @category Memory */
  deregisterMemoryOverlapped(region: WvMemoryRegion): Overlapped<void>;
  /** Allocates an unbound memory window. @category Memory */
  allocateMemoryWindow(): IWVMemoryWindow;
  /**
   * Allocates an unregistered region of at most `maxLength` bytes for {@link IWVConnectQueuePair.fastRegister}.
   * @category Memory
   */
  allocateFastRegion(maxLength: number): IWVFastRegion;
  /**
   * Creates a queue of receives for several queue pairs. A limit of 0 requests no event. Throws INVALID_PARAMETER,
   * NOT_SUPPORTED.
   * @category Queues
   */
  createSharedReceiveQueue(maxWr: number, maxSge: number, srqLimit?: number): IWVSharedReceiveQueue;
  /** Creates a connected queue pair (RC or UC) in RESET. Throws INVALID_PARAMETER. @category Queues */
  createConnectQueuePair(create: WvQpCreate): IWVConnectQueuePair;
  /** Creates a datagram queue pair (UD) in RESET. Throws INVALID_PARAMETER. @category Queues */
  createDatagramQueuePair(create: WvQpCreate): IWVDatagramQueuePair;
  /**
   * Creates a destination of datagrams. Throws INVALID_ADDRESS, INVALID_PORT_HANDLE, INVALID_PARAMETER.
   * @category Datagrams
   */
  createAddressHandle(vector: WvAddressVector): IWVAddressHandle;
  /**
   * Releases all objects created from this one, regardless of reference counts, and then this object; for `await
   * using`. Never fails.
   * @category Lifetime
   */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * The destination of datagrams. Releasing it fails posted datagrams that have not been sent yet.
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
  /** Number of receives; at least as many as requested. */
  readonly maxWr: number;
  /** Maximum number of SGEs of a receive. */
  readonly maxSge: number;
  /** The event is reported when fewer receives than this are left; 0: no event. */
  readonly srqLimit: number;
}

/**
 * Events of a shared receive queue. 'limit' means that fewer receives than its limit are left; 'lastWqe' means that a
 * queue pair no longer consumes receives from it.
 */
export type WvSrqEvent = 'limit' | 'lastWqe';

/**
 * Receives for the messages of several queue pairs, consumed in the order in which messages begin (IBA 1 §10.2.9).
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
  /** Returns the actual size and limit; the limit is 0 once its event has been reported. @category Queues */
  query(): WvSrqAttributes;
  /**
   * Changes the size and the limit while queue pairs use the queue. Throws BUFFER_OVERFLOW if the waiting receives
   * would not fit.
   * @category Queues
   */
  modify(maxWr: number, limit: number): void;
  /**
   * Posts a receive. Throws NO_MORE_ENTRIES if the queue is full, and for invalid SGEs the errors of {@link
   * IWVQueuePair.postReceive}.
   * @category Post
   */
  postReceive(context: unknown, sgl: readonly WvSge[]): void;
  /** Waits for the next event; an event without a waiter is stored. @category Queues */
  notify(): Overlapped<WvSrqEvent>;
}

// ── Memory ─────────────────────────────────────────────────────────────────────────────────────────────────

/** Registered memory: its keys and address. Requests address it by offset. */
export interface WvMemoryRegion {
  /** The key for this side's SGEs, checked by the HCA. @category Memory */
  readonly lkey: number;
  /** The key for peers; 0 if no remote right was requested. @category Memory */
  readonly rkey: number;
  /** The address of the first byte for peers: the native address, below 2^47, or 0 with ZERO_BASED. @category Memory */
  readonly address: number;
  /** Length in bytes. @category Memory */
  readonly length: number;
  /**
   * The memory itself; INLINE requests copy from it. Once its ArrayBuffer has been detached, reading this property
   * throws ACCESS_VIOLATION, as do requests that refer to the region. The device keeps the memory until it is
   * deregistered, but the program can no longer access it.
   * @category Memory
   */
  readonly bytes?: Uint8Array;
}

/** A part of registered memory: `length` bytes at `offset` bytes into the region. */
export interface WvSge {
  /** The region that `registerMemory` returned. The HCA checks that the entry lies within it. */
  region: Pick<WvMemoryRegion, 'lkey' | 'address' | 'bytes'>;
  /** Offset from the start of the region, in bytes. */
  offset: number;
  /** Length in bytes; an entry of 0 refers to no memory. */
  length: number;
}

/** A peer's description of its memory, used to create a {@link RemoteMemory}. */
export interface WvRemoteMemory {
  /** The address of the first byte, 64 bits: a bigint, or a number below 2^53. */
  readonly address: bigint | number;
  /** The peer's key, 32 bits. */
  readonly rkey: number;
}

/** Remote memory in requests; this package's {@link RemoteMemory} implements it. */
export interface RemoteMemoryRef {
  /** The low 32 bits of the first byte's address. */
  readonly addressLow: number;
  /** The high 32 bits of the first byte's address. */
  readonly addressHigh: number;
  /** The peer's key, 32 bits. */
  readonly rkey: number;
}

/**
 * A region that is allocated once and registered by requests, without the kernel: fast registration (IBA 1 §10.6.6).
 * Linux calls this type of memory region `IB_MR_TYPE_MEM_REG`, NDKPI a fast-register MR. Its key grants access from the
 * time when a request registers memory until the owner or the peer's Send with Invalidate invalidates the key. SGEs may
 * refer to the region while it is registered.
 * @example
 * ```ts
 * const fast = pd.allocateFastRegion(1 << 20);
 * const memory = { region, offset: 65_536, length: 4096 };
 * const rkey = qp.fastRegister(fast, 'register', memory, WvAccess.REMOTE_WRITE, WvSend.SIGNALED);
 * // The peer writes with this key until it is invalidated.
 * qp.invalidateRegion(fast, 'invalidate', WvSend.SIGNALED);
 * ```
 */
export interface IWVFastRegion extends WvUnknown, WvMemoryRegion {
  /** Maximum length of a registration, in bytes. @category Memory */
  readonly maxLength: number;
}

/**
 * A key for a part of a region, granted and withdrawn by requests (IBA 1 §10.6.7).
 *
 * @example
 * ```ts
 * const window = pd.allocateMemoryWindow();
 * const rkey = qp.bindMemoryWindow(window, 'bind', region, 0, 4096, WvAccess.REMOTE_READ, WvSend.SIGNALED);
 * // The peer reads with this key until it is invalidated.
 * qp.invalidateMemoryWindow(window, 'invalidate', WvSend.SIGNALED);
 * ```
 */
export interface IWVMemoryWindow extends WvUnknown {
  /** The key of the latest bind. @category Memory */
  readonly rkey: number;
}
