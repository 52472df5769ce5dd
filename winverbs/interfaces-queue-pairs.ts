/** Interfaces of connected and datagram queue pairs and of endpoints. */

import type { Overlapped } from '../kernel-bridge/door/overlapped.js';
import type {
  IWVAddressHandle,
  IWVCompletionQueue,
  IWVFastRegion,
  IWVMemoryWindow,
  IWVProtectionDomain,
  IWVSharedReceiveQueue,
  RemoteMemoryRef,
  SocketAddress,
  WvAddressVector,
  WvDeviceAddress,
  WvMemoryRegion,
  WvOverlappedObject,
  WvPathRecord,
  WvSge,
} from './interfaces.js';
import type { WvDirect, WvDirectResult } from './remote-memory.js';

/**
 * Attributes of a new queue pair. Depths are numbers of requests, SGE counts apply to each request, and `maxInlineSend`
 * is in bytes.
 */
export interface WvQpCreate {
  /** Completion queue for send requests; it must belong to the same device. */
  sendCq: IWVCompletionQueue;
  /** Completion queue for receives; may be the same as `sendCq`. */
  receiveCq: IWVCompletionQueue;
  /** Shared receive queue. `receiveDepth` and `receiveSge` are then ignored. */
  srq?: IWVSharedReceiveQueue;
  /** A value of the caller's choice, returned as `qpContext` in completions. */
  context?: unknown;
  /** Maximum number of outstanding send requests, up to the device's `maxQpWr`. */
  sendDepth: number;
  /** Maximum number of SGEs in a send request, up to the device's `maxSge`. */
  sendSge: number;
  /** Maximum number of outstanding receives, up to the device's `maxQpWr`. */
  receiveDepth: number;
  /** Maximum number of SGEs in a receive, up to the device's `maxSge`. */
  receiveSge: number;
  /** Maximum size of an INLINE request in bytes, up to the device's limit of that name; default 0. */
  maxInlineSend?: number;
  /**
   * Maximum number of outstanding RDMA reads and atomics of this side; a connection requests the same number. Default:
   * 16, or 0 for UC.
   */
  initiatorDepth?: number;
  /**
   * Maximum number of the peer's RDMA reads and atomics served at a time; a connection offers the same number. Default:
   * 16, or 0 for UC.
   */
  responderResources?: number;
  /** WV_QP_SIGNAL_SENDS. */
  signalSends?: boolean;
  /** WV_QP_MEMORY_MANAGEMENT: the queue pair supports {@link IWVConnectQueuePair.fastRegister}. */
  memoryManagement?: boolean;
  /**
   * WV_QP_TYPE of a connected queue pair: RC 0 (default) or UC 1. A UC queue pair supports only sends and writes, and
   * does not report lost messages.
   */
  type?: number;
}

/**
 * Attributes of a queue pair (IBA 1 §11.2.5.2). PSNs and QPNs have 24 bits, MTUs are in bytes, and timeouts are codes.
 */
export interface WvQpAttributes {
  /** WV_QP_TYPE. */
  readonly qpType: number;
  /** WV_QP_STATE; in a modify, the state to move to. */
  readonly qpState: number;
  /** The same as `qpState`; in a modify, the state in which the caller assumes the queue pair to be. */
  readonly currentQpState: number;
  /** This queue pair's number; a modify does not change it. */
  readonly qpn: number;
  /** The peer's queue pair number, for connected queue pairs from RTR on. */
  readonly destinationQpn: number;
  /** PSN of the first packet to send; valid from RTS on. */
  readonly sendPsn: number;
  /** PSN of the first packet expected; valid from RTR on. */
  readonly receivePsn: number;
  /** Payload of a full packet: 256, 512, 1024, 2048 or 4096 bytes. Valid from RTR on. */
  readonly pathMtu: number;
  /** Maximum number of outstanding send requests, as granted. */
  readonly sendDepth: number;
  /** Maximum number of SGEs in a send request, as granted. */
  readonly sendSge: number;
  /** Maximum number of outstanding receives, as granted. */
  readonly receiveDepth: number;
  /** Maximum number of SGEs in a receive, as granted. */
  readonly receiveSge: number;
  /** Maximum size of an INLINE request in bytes, as granted. */
  readonly maxInlineSend: number;
  /** Maximum number of outstanding RDMA reads and atomics of this side. */
  readonly initiatorDepth: number;
  /** Maximum number of the peer's RDMA reads and atomics served at a time. */
  readonly responderResources: number;
  /** Access rights of the peer: an OR of WV_ACCESS_* values below 0x100. */
  readonly accessFlags: number;
  /** The Q_Key of a datagram queue pair, 32 bits; values from 0x80000000 on are reserved for the OS. */
  readonly qkey: number;
  /** The index of the queue pair's P_Key in the port's table. */
  readonly pkeyIndex: number;
  /** Port number of this side, starting at 1. */
  readonly portNumber: number;
  /** Time to wait for an acknowledgement, as a 5-bit code: 4.096 µs × 2^code. 0 means infinite. */
  readonly localAckTimeout: number;
  /** Retries without an acknowledgement, 0 to 7. */
  readonly retryCount: number;
  /** Retries when the peer has no receive posted, 0 to 6, or 7 for unlimited. */
  readonly rnrRetryCount: number;
  /** RNR NAK timer: how long the peer must wait before it retries, a 5-bit code (IBA 1 §9.7.5.2.8). */
  readonly rnrNakTimeout: number;
  /** The GID of this side, 16 bytes; valid with the option AV. */
  readonly sourceGid: Uint8Array;
  /** The GID of the peer, 16 bytes; valid with the option AV. */
  readonly destinationGid: Uint8Array;
  /**
   * IPv4 TOS or IPv6 traffic class, 8 bits; valid with the option AV. The upper six bits are the DSCP. On a connection
   * the HCA sets the lower two, the ECN field (option `ecn`).
   */
  readonly trafficClass: number;
  /** Flow label of IPv6 headers, 20 bits; valid with the option AV. With 0 the OS chooses it. */
  readonly flowLabel: number;
  /** IPv4 TTL or IPv6 hop limit, 8 bits; valid with the option AV. 0 (default) selects 64. */
  readonly hopLimit: number;
  /** WV_QP_SIGNAL_SENDS, as created. */
  readonly qpFlags: number;
  /** The peer's LID, used only on InfiniBand; 0 on RoCE. */
  readonly destinationLid: number;
  /** Service level of packets, 0 to 15, used only on InfiniBand; 0 on RoCE. */
  readonly serviceLevel: number;
  /** Low bits of the source LID, used only on InfiniBand; 0 on RoCE. */
  readonly sourcePathBits: number;
  /** Injection rate as a code, used only on InfiniBand; 0 on RoCE. */
  readonly staticRate: number;
  /** WV_APM_STATE of path migration; 0 on the software HCA, which does not support it. */
  readonly apmState: number;
  /** `pathMtu` of the path to migrate to; 0 on the software HCA. */
  readonly alternatePathMtu: number;
  /** `pkeyIndex` of the path to migrate to; 0 on the software HCA. */
  readonly alternatePkeyIndex: number;
  /** `localAckTimeout` of the path to migrate to; 0 on the software HCA. */
  readonly alternateLocalAckTimeout: number;
  /** The protection domain of the queue pair. A modify changes neither it nor the queues. No reference is added. */
  readonly pd: IWVProtectionDomain;
  /** The completion queue of send requests. No reference is added. */
  readonly sendCq: IWVCompletionQueue;
  /** The completion queue of receives. No reference is added. */
  readonly receiveCq: IWVCompletionQueue;
  /** The shared receive queue; undefined if the queue pair has its own receives. No reference is added. */
  readonly srq: IWVSharedReceiveQueue | undefined;
}

/** A request of {@link IWVQueuePair.postSend} (WV_SEND_REQUEST). Members that an opcode does not use are ignored. */
export interface WvSendRequest {
  /** A value of the caller's choice, returned in the completion. */
  readonly context?: unknown;
  /**
   * WV_OPCODE: Send 0 (default), RdmaWrite 1, RdmaRead 2, CompareExchange 3, FetchAdd 4, Invalidate 6, FastRegister 7.
   * Datagram queue pairs support only Send.
   */
  readonly opcode?: number;
  /** WV_SEND_*; default 0. */
  readonly flags?: number;
  /** Memory to send, or memory that reads and atomics fill; default: none. */
  readonly sgl?: readonly WvSge[];
  /** Immediate data, sent with the flag IMMEDIATE. */
  readonly immediate?: number;
  /** For Send: the peer's key of a window or region, which the arrival invalidates. */
  readonly invalidateRkey?: number;
  /** The remote memory of RDMA requests and atomics. */
  readonly remote?: RemoteMemoryRef;
  /** Offset from the start of `remote`, in bytes; default 0. */
  readonly remoteOffset?: number;
  /** For CompareExchange the expected value, for FetchAdd the value to add. */
  readonly compareOrAdd?: bigint;
  /** For CompareExchange: the new value. */
  readonly exchange?: bigint;
  /** For FastRegister and Invalidate: the region. The `sgl` of a FastRegister has one entry, the memory. */
  readonly fastRegion?: IWVFastRegion;
  /** For FastRegister: an OR of WV_ACCESS_*, by default 0. */
  readonly access?: number;
  /** For FastRegister: the low byte of the new key, by default that of the current key plus one. */
  readonly keyByte?: number;
  /** For datagrams: the destination, an address handle of the same protection domain. */
  readonly addressHandle?: IWVAddressHandle;
  /** For datagrams: the queue pair number of the destination, 24 bits, or MULTICAST_QPN for a group. */
  readonly destinationQpn?: number;
  /**
   * For datagrams: the Q_Key of the destination, by default 0. Values from 0x80000000 on select the queue pair's own.
   */
  readonly destinationQkey?: number;
}

/** The common part of all types of queue pairs. */
export interface IWVQueuePair extends WvOverlappedObject {
  /** The queue pair number, 24 bits. @category Queues */
  readonly qpn: number;
  /** The last WV_QP_STATE that the HCA published; reading it needs no IOCTL. @category Queues */
  readonly state: number;
  /** Maximum number of SGEs in a request other than a receive; at least as many as requested. @category Queues */
  readonly sendSge: number;
  /** Maximum number of SGEs in a receive; 0 if receives come from a shared receive queue. @category Queues */
  readonly receiveSge: number;
  /** Maximum size of an INLINE request, in bytes. @category Queues */
  readonly maxInlineSend: number;
  /** Returns all attributes. @category Queues */
  query(): WvQpAttributes;
  /** Changes the attributes that `options` (WV_QP_ATTR_*) selects. @category Queues */
  modify(attributes: Partial<WvQpAttributes>, options: number): void;
  /** The overlapped form of {@link modify}; invalid arguments throw immediately. @category Queues */
  modifyOverlapped(attributes: Partial<WvQpAttributes>, options: number): Overlapped<void>;
  /**
   * Posts the buffers for an incoming message; throws only if nothing was queued. Throws INVALID_DEVICE_REQUEST if the
   * queue pair uses a shared receive queue.
   * @category Post
   */
  postReceive(context: unknown, sgl: readonly WvSge[]): void;
  /**
   * Posts requests in order, with one doorbell for all. If a request cannot be queued, those before it are queued,
   * those after it are not, and the error's `failedRequest` is its index.
   *
   * @throws WvError as for a single call on this type of queue pair
   * @see IWVQueuePair::PostSend
   * @category Post
   */
  postSend(requests: readonly WvSendRequest[]): void;
  /** Starts a batch: requests posted from now on are submitted together by {@link submitBatch}. @category Post */
  startBatch(): void;
  /** Submits the requests posted since {@link startBatch}. @category Post */
  submitBatch(): void;
}

/**
 * The two queues of a connection. A request throws only if nothing was queued: NO_MORE_ENTRIES for a full queue,
 * DATA_OVERRUN for too many SGEs, BUFFER_OVERFLOW for too many inline bytes, ACCESS_VIOLATION for an inline SGE that
 * ends beyond its region, INVALID_DEVICE_STATE before RTS, and others. The completion reports the result of a queued
 * request, such as LOCAL_PROTECTION_ERROR for any other SGE that ends beyond its region. `flags` is an OR of WV_SEND_*:
 * IMMEDIATE 1, FENCE 2, SIGNALED 4, SOLICITED 8, INLINE 0x10.
 * @example
 * ```ts
 * qp.postReceive('reply', [{ region, offset: 4096, length: 4096 }]);
 * qp.send('request', [{ region, offset: 0, length: 100 }], WvSend.SIGNALED);
 * qp.read('read', [{ region, offset: 8192, length: 4096 }], WvSend.SIGNALED, remote, 0);
 * qp.fetchAdd('count', { region, offset: 0, length: 8 }, WvSend.SIGNALED, 1n, remote, 64);
 * const { context, status } = await nextCompletion(cq);
 * ```
 */
export interface IWVConnectQueuePair extends IWVQueuePair {
  /**
   * Posts a message; `immediate` is sent with the flag IMMEDIATE.
   *
   * @throws WvError NOT_SUPPORTED (immediate data on an iWARP device, as in {@link write})
   * @category Post
   */
  send(context: unknown, sgl: readonly WvSge[], flags: number, immediate?: number): void;
  /** Posts a message whose arrival invalidates the peer's key `rkey`. @category Post */
  sendAndInvalidate(context: unknown, sgl: readonly WvSge[], flags: number, rkey: number): void;
  /** Posts an RDMA Read; `offset` is in bytes from the start of `remote`. @category Post */
  read(context: unknown, sgl: readonly WvSge[], flags: number, remote: RemoteMemoryRef, offset: number): void;
  /** Posts an RDMA Write; with the flag IMMEDIATE it consumes one of the peer's receives. @category Post */
  write(
    context: unknown,
    sgl: readonly WvSge[],
    flags: number,
    remote: RemoteMemoryRef,
    offset: number,
    immediate?: number,
  ): void;
  /**
   * Executes an operation between bytes of any memory, registered or not, and the peer's memory at `offset` bytes. The
   * operation is done when the call returns, ahead of requests that were posted earlier, and creates no completion.
   * Rights and bounds are those of {@link write}, {@link read} and {@link fetchAdd}. An addition to WinVerbs, absent on
   * devices that cannot reach any peer's memory, such as real HCAs.
   *
   * @param bytes - For an atomic operation, 8 or 16 bytes; the peer's address must then be a multiple of 8. May be
   *   empty, to test whether the peer's memory can be reached at all.
   * @returns after `REFUSED`, some of the bytes may have been copied, and a later call may succeed
   * @throws WvError INVALID_PARAMETER, INVALID_HANDLE
   * @category Memory
   */
  direct?(operation: WvDirect, bytes: Uint8Array, remote: RemoteMemoryRef, offset: number): WvDirectResult;
  /**
   * Maps `length` bytes of the peer's memory, from `offset` on, into this process. They stay mapped until they are
   * garbage-collected, even after the peer's registration, the connection and the peer have ended. They show the peer's
   * memory. A page that this process writes to becomes a private copy, which no longer follows the peer's memory. The
   * peer must have registered the memory with REMOTE_VIEW. At most 4096 views exist at a time. An addition to WinVerbs;
   * missing where {@link direct} is missing.
   *
   * @returns the bytes in a separate buffer, `NOT_MAPPED` (call again in about a millisecond), or `REFUSED`
   * @throws WvError INVALID_PARAMETER, INVALID_HANDLE, INSUFFICIENT_RESOURCES (no file descriptor is left, or too many
   *   views exist), NO_MEMORY, NOT_SUPPORTED (the runtime has no external ArrayBuffers)
   * @category Memory
   */
  view?(
    remote: RemoteMemoryRef,
    offset: number,
    length: number,
  ): Uint8Array<ArrayBuffer> | typeof WvDirectResult.NOT_MAPPED | typeof WvDirectResult.REFUSED;
  /**
   * Posts an atomic exchange of 8 remote bytes, executed if they equal `compare`; `sge` receives their previous value.
   *
   * @throws WvError NOT_SUPPORTED: the device has no atomics (`atomicCapability`), as in {@link fetchAdd}.
   * @category Atomics
   */
  compareExchange(
    context: unknown,
    sge: WvSge,
    flags: number,
    compare: bigint,
    exchange: bigint,
    remote: RemoteMemoryRef,
    offset: number,
  ): void;
  /** Posts an atomic addition to 8 remote bytes; `sge` receives their previous value. @category Atomics */
  fetchAdd(
    context: unknown,
    sge: WvSge,
    flags: number,
    value: bigint,
    remote: RemoteMemoryRef,
    offset: number,
  ): void;
  /**
   * Posts a request that binds a window to `length` bytes at `offset` of the region. Returns the window's new rkey,
   * valid for requests posted after this one.
   * @category Post
   */
  bindMemoryWindow(
    window: IWVMemoryWindow,
    context: unknown,
    region: WvMemoryRegion,
    offset: number,
    length: number,
    access: number,
    flags: number,
  ): number;
  /** Posts a request that invalidates a window's binding. @category Post */
  invalidateMemoryWindow(window: IWVMemoryWindow, context: unknown, flags: number): void;
  /**
   * Posts a request that registers `memory`, a part of a registered region, as `region`. Returns the new key, valid for
   * requests posted after this one. `keyByte` is the low byte of the key, by default that of the current key plus one.
   * A key therefore recurs after 256 registrations. Use another region by then if peers must not access later memory
   * with an old key.
   * @category Post
   */
  fastRegister(
    region: IWVFastRegion,
    context: unknown,
    memory: WvSge,
    access: number,
    flags: number,
    keyByte?: number,
  ): number;
  /** Posts a request that invalidates a fast registration. @category Post */
  invalidateRegion(region: IWVFastRegion, context: unknown, flags: number): void;
}

/** A datagram to send (WV_SEND_DATAGRAM). It is read only during the call, so the caller may reuse it. */
export interface WvSendDatagram {
  /** A value of the caller's choice, returned in the completion. */
  context: unknown;
  /** The destination, an address handle of the same protection domain. */
  addressHandle: IWVAddressHandle;
  /** The memory to send; its total length is at most the MTU of the path. */
  sgl: readonly WvSge[];
  /** WV_SEND_* except FENCE. */
  flags: number;
  /** Immediate data, 32 bits, sent with the flag IMMEDIATE. */
  immediateData?: number;
  /** The queue pair number of the destination; MULTICAST_QPN for a group. */
  destinationQpn: number;
  /** The Q_Key of the destination; values from 0x80000000 on select the queue pair's own. */
  destinationQkey: number;
}

/** Attributes for starting a datagram queue pair. */
export interface WvDatagramStart {
  /** The port of the device; default: 1. */
  portNumber?: number;
  /** The index of the P_Key in the port's table; default: 0. */
  pkeyIndex?: number;
  /** PSN of the first packet, 24 bits; default: random. */
  sendPsn?: number;
}

/**
 * Unreliable datagrams (UD): messages of at most the port's active MTU, to any queue pair whose number and Q_Key are
 * known. The first 40 bytes of a receive's buffers hold the GRH; a completion's length includes them. Datagrams that do
 * not fit are dropped.
 * @example
 * ```ts
 * const sizes = { sendDepth: 16, sendSge: 1, receiveDepth: 16, receiveSge: 1 };
 * const datagrams = pd.createDatagramQueuePair({ sendCq: cq, receiveCq: cq, ...sizes });
 * datagrams.start(0x1234);
 * // A datagram begins with 40 bytes for the GRH.
 * datagrams.postReceive('next', [{ region, offset: 0, length: 40 + 1024 }]);
 * ```
 */
export interface IWVDatagramQueuePair extends IWVQueuePair {
  /** Moves the queue pair from RESET or INIT to RTS. @category Queues */
  start(qkey: number, options?: WvDatagramStart): void;
  /** Posts a datagram of one SGE, without immediate data. @category Post */
  send(
    context: unknown,
    addressHandle: IWVAddressHandle,
    sge: WvSge,
    flags: number,
    destinationQpn: number,
    destinationQkey: number,
  ): void;
  /** Posts a datagram. Throws only if nothing was queued. @category Post */
  sendMessage(message: WvSendDatagram): void;
  /**
   * Receives the datagrams of a group, given as an IP address or its GID, that have this queue pair's Q_Key.
   * @category Queues
   */
  attachMulticast(group: string | Uint8Array, lid?: number): Overlapped<void>;
  /** Reverts {@link attachMulticast}. @category Queues */
  detachMulticast(group: string | Uint8Array, lid?: number): Overlapped<void>;
}

/** The common part of connect and datagram endpoints. Their classes document all statuses. */
export interface IWVEndpoint extends WvOverlappedObject {
  /** Resolves the route to a peer (IBAT) and sets it: AddressBound → RouteResolved. @category Connect */
  resolveRoute(peer: SocketAddress): void;
  /** Sets the complete path to a peer: AddressBound → RouteResolved. @category Connect */
  modify(path: WvPathRecord): void;
  /**
   * Binds the endpoint to an address. Port 0 selects a free port. Returns the address with the port, as query() does.
   * With `device`, the wildcard stands for the addresses of that device.
   * @category Connect
   */
  bindAddress(address: SocketAddress, device?: WvDeviceAddress): SocketAddress;
  /**
   * Accepts requests from now on. `backlog` is the maximum number of waiting requests, up to 1024; 0 selects 1024. With
   * `pkey`, only requests for the partition of that P_Key are accepted.
   * @category Connect
   */
  listen(backlog: number, pkey?: number): void;
  /**
   * Rejects the request or the reply, with at most 148 bytes of private data for the peer (136 for a datagram service).
   * @category Connect
   */
  reject(privateData?: Uint8Array): void;
}

/**
 * Connection parameters. Read depths are those of this side: the reads that it serves, and the reads that it issues.
 */
export interface WvConnectParam {
  /** Private data for the peer: at most 56 bytes for Connect, {@link IWVProvider.maxAcceptData} for Accept. */
  privateData?: Uint8Array;
  /**
   * Maximum number of the peer's RDMA reads and atomics that this side serves at a time. Default: that of the queue
   * pair.
   */
  responderResources?: number;
  /** Maximum number of RDMA reads and atomics of this side that may be outstanding. Default: that of the queue pair. */
  initiatorDepth?: number;
  /** Retries without an acknowledgement, 0 to 7; default: 7. */
  retryCount?: number;
  /**
   * Number of times that the peer retries a send when no receive is posted here (RNR): 0 to 6, or 7 for unlimited. The
   * default is 7 for queue pairs with an SRQ and 6 for others. With 6 the peer also waits for at least one second
   * (option `rnrTimeoutMs`). Smaller counts limit only the number of retries.
   */
  rnrRetryCount?: number;
}

/** Attributes of an endpoint's connection: addresses, device, and the peer's last private data. */
export interface WvConnectAttributes {
  /** This side's address and port, or the IPv4 wildcard if no address is bound. */
  readonly localAddress: SocketAddress;
  /** The peer's address and port; undefined without a peer. */
  readonly peerAddress: SocketAddress | undefined;
  /** The device, port and partition of the connection, or of the request for one. */
  readonly device: WvDeviceAddress;
  /**
   * The peer's last private data. Its length is not transmitted, so it is padded with zeros to 56 bytes. It is longer
   * only if a REP (at most 196 bytes) or REJ (at most 148) has nonzero bytes beyond those.
   */
  readonly privateData: Uint8Array;
  /** Maximum number of the peer's RDMA reads and atomics that this side serves at a time. */
  readonly responderResources: number;
  /** Maximum number of RDMA reads and atomics of this side that may be outstanding. */
  readonly initiatorDepth: number;
  /** Retries without an acknowledgement, 0 to 7. */
  readonly retryCount: number;
  /** Retries when no receive is posted, 0 to 6, or 7 for unlimited. */
  readonly rnrRetryCount: number;
  /** Maximum number of waiting requests of a listener; otherwise 0. */
  readonly backlog: number;
}

/**
 * Establishes and ends one connection, or listens for requests (IBA 1 §12). Its class documents all statuses.
 *
 * @example
 * ```ts
 * endpoint.bindAddress({ family: 4, address: '192.0.2.1', port: 0 });
 * const peer = { family: 4, address: '192.0.2.2', port: 5000 } as const;
 * endpoint.resolveRoute(peer);
 * await endpoint.connect(qp, peer, { privateData: Buffer.from('who I am') });
 * console.log(endpoint.query().privateData);
 * await endpoint.accept(null, {});
 * // …
 * await endpoint.disconnect();
 * ```
 */
export interface IWVConnectEndpoint extends IWVEndpoint {
  /** Waits for a request and moves it into a fresh endpoint. @category Connect */
  getRequest(endpoint: IWVConnectEndpoint): Overlapped<void>;
  /**
   * Requests a connection. The request completes when the peer has replied; then accept or reject the reply.
   * @category Connect
   */
  connect(qp: IWVConnectQueuePair, peer: SocketAddress, param: WvConnectParam): Overlapped<void>;
  /**
   * Accepts the request or the reply. The queue pair is in RTS when the request completes. On the active side `qp` may
   * be null.
   * @category Connect
   */
  accept(qp: IWVConnectQueuePair | null, param: WvConnectParam): Overlapped<void>;
  /**
   * Ends the connection and flushes the queue pair immediately. The request completes when the peer has confirmed.
   * @category Connect
   */
  disconnect(): Overlapped<void>;
  /**
   * Selects what a disconnect by the peer does to the queue pair. With false (default) the queue pair is flushed
   * immediately. With true it remains unchanged until {@link disconnect}, so that its owner decides about outstanding
   * requests.
   * @category Connect
   */
  keepQueuePairOnDisconnect(keep: boolean): void;
  /** Waits for the end of the connection; never completes with SUCCESS. @category Connect */
  notifyDisconnect(): Overlapped<void>;
  /** Returns addresses, private data and read depths, as seen from this side. @category Connect */
  query(): WvConnectAttributes;
}

/** A datagram endpoint's reply to a lookup of its queue pair. */
export interface WvDatagramParam {
  /** A UD queue pair of this provider, or any queue pair number. */
  qp: IWVDatagramQueuePair | number;
  /** The Q_Key to send with. Default: 0x01234567, as in RDMA CM. */
  qkey?: number;
  /** Private data for the peer, at most 136 bytes. */
  privateData?: Uint8Array;
}

/** Attributes of a datagram endpoint, and of one of its peers or groups (WV_DATAGRAM_ATTRIBUTES). */
export interface WvDatagramAttributes {
  /** This side's address and port. */
  readonly localAddress: SocketAddress;
  /** The peer's address and port, or the group's; undefined without a peer. */
  readonly peerAddress: SocketAddress | undefined;
  /** The device of the local address, its port and partition. */
  readonly device: WvDeviceAddress;
  /** Maximum number of waiting requests of a listener. */
  readonly backlog: number;
  /** The address vector for an address handle on {@link device}; undefined without a peer. */
  readonly addressVector: WvAddressVector | undefined;
  /** The peer's queue pair number; 0 if unknown, as for the sender of a lookup, or 0xFFFFFF for a group. */
  readonly qpn: number;
  /** The Q_Key that datagrams to the peer must carry. */
  readonly qkey: number;
  /**
   * The peer's SIDR status: 0 valid, 1 service ID not supported, 2 rejected, 3 no queue pair, 4 redirected, or 5
   * version not supported.
   */
  readonly sidrStatus: number;
  /** The peer's private data, zero-padded: 180 bytes of a request, 136 of a reply. */
  readonly privateData: Uint8Array;
}

/**
 * Looks up datagram peers, replies to lookups, and joins groups (IBA 1 §12.11). Its class documents all statuses.
 *
 * @example
 * ```ts
 * using endpoint = provider.createDatagramEndpoint();
 * endpoint.bindAddress({ family: 4, address: '192.0.2.1', port: 0 });
 * const { qpn, qkey, addressVector } = await endpoint.lookup({ family: 4, address: '192.0.2.2', port: 5000 });
 * const handle = pd.createAddressHandle(addressVector!);
 * datagrams.send('hello', handle, { region, offset: 0, length: 100 }, WvSend.SIGNALED, qpn, qkey);
 * ```
 */
export interface IWVDatagramEndpoint extends IWVEndpoint {
  /** Waits for a lookup and moves it into a fresh endpoint. @category Connect */
  getRequest(endpoint: IWVDatagramEndpoint): Overlapped<void>;
  /**
   * Looks up the peer's queue pair, with at most 180 bytes of private data. Several lookups may be outstanding.
   * @category Connect
   */
  lookup(peer: SocketAddress, privateData?: Uint8Array): Overlapped<WvDatagramAttributes>;
  /** Replies to a lookup with a queue pair. @category Connect */
  accept(param: WvDatagramParam): Overlapped<void>;
  /** Joins a multicast group; returns what is needed to attach a queue pair and to send. @category Connect */
  joinMulticast(group: SocketAddress): Overlapped<WvDatagramAttributes>;
  /** Leaves a group. @category Connect */
  leaveMulticast(group: SocketAddress): Overlapped<void>;
  /**
   * Returns the attributes of a peer or group. Without an address, they are those of the sender of the lookup, or only
   * those of the endpoint.
   * @category Connect
   */
  query(peer?: SocketAddress): WvDatagramAttributes;
}
