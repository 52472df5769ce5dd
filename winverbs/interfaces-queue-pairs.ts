/** Queue pairs and endpoints, of connections and of datagrams. */

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

/** Attributes of a new queue pair. Depths are numbers of requests, SGEs entries per request, `maxInlineSend` bytes. */
export interface WvQpCreate {
  /** The completion queue of send requests, of the same device. */
  sendCq: IWVCompletionQueue;
  /** The completion queue of receives; it may be the same. */
  receiveCq: IWVCompletionQueue;
  /** The source of receives; `receiveDepth` and `receiveSge` are ignored then. */
  srq?: IWVSharedReceiveQueue;
  /** The caller's own value: `qpContext` of completions. */
  context?: unknown;
  /** Outstanding send requests, up to the device's `maxQpWr`. */
  sendDepth: number;
  /** SGEs of a send request, up to the device's `maxSge`. */
  sendSge: number;
  /** Outstanding receives, up to the device's `maxQpWr`. */
  receiveDepth: number;
  /** SGEs of a receive, up to the device's `maxSge`. */
  receiveSge: number;
  /** Bytes of an INLINE request, up to the device's limit of that name; default 0. */
  maxInlineSend?: number;
  /** RDMA reads and atomics of this side that may be outstanding, and what a connection asks for; default 16, of UC 0. */
  initiatorDepth?: number;
  /** RDMA reads and atomics of the peer that are served at a time, and what a connection offers; default 16, of UC 0. */
  responderResources?: number;
  /** WV_QP_SIGNAL_SENDS. */
  signalSends?: boolean;
  /** WV_QP_MEMORY_MANAGEMENT: it takes {@link IWVConnectQueuePair.fastRegister}. */
  memoryManagement?: boolean;
  /**
   * WV_QP_TYPE of a connected queue pair: RC 0 (default), UC 1. An unreliable one has sends and writes only, and lost
   * messages are not reported.
   */
  type?: number;
}

/** Attributes of a queue pair (IBA 1 §11.2.5.2). PSNs and QPNs have 24 bits, MTUs are bytes, timeouts codes. */
export interface WvQpAttributes {
  /** WV_QP_TYPE. */
  readonly qpType: number;
  /** WV_QP_STATE; in a modify the state to move to. */
  readonly qpState: number;
  /** The same as `qpState`; in a modify, the state that the caller assumes. */
  readonly currentQpState: number;
  /** This queue pair's number; a modify does not change it. */
  readonly qpn: number;
  /** The peer's queue pair number; connected queue pairs, from RTR on. */
  readonly destinationQpn: number;
  /** The number of the first packet that is sent; from RTS on. */
  readonly sendPsn: number;
  /** The number of the first packet that is expected; from RTR on. */
  readonly receivePsn: number;
  /** Payload of a full packet: 256, 512, 1024, 2048 or 4096; from RTR on. */
  readonly pathMtu: number;
  /** Outstanding send requests, as granted. */
  readonly sendDepth: number;
  /** SGEs of a send request, as granted. */
  readonly sendSge: number;
  /** Outstanding receives, as granted. */
  readonly receiveDepth: number;
  /** SGEs of a receive, as granted. */
  readonly receiveSge: number;
  /** Bytes of an INLINE request, as granted. */
  readonly maxInlineSend: number;
  /** RDMA reads and atomics of this side that may be outstanding. */
  readonly initiatorDepth: number;
  /** RDMA reads and atomics of the peer that are served at a time. */
  readonly responderResources: number;
  /** WV_ACCESS_* values below 0x100: what the peer may do. */
  readonly accessFlags: number;
  /** The Q_Key of a datagram queue pair, 32 bits; values from 0x80000000 on are for the system. */
  readonly qkey: number;
  /** The place of its P_Key in the port's table. */
  readonly pkeyIndex: number;
  /** The port of this side, from 1. */
  readonly portNumber: number;
  /** How long to wait for an acknowledgement, 5 bits: 4.096 µs × 2^code; 0 is infinite. */
  readonly localAckTimeout: number;
  /** Repetitions without an acknowledgement, 0 to 7. */
  readonly retryCount: number;
  /** Repetitions when the peer has no receive, 0 to 6; 7: without end. */
  readonly rnrRetryCount: number;
  /** How long the peer is told to wait for a receive: a code of 5 bits (IBA 1 §9.7.5.2.8). */
  readonly rnrNakTimeout: number;
  /** With the option AV: the GID of this side, 16 bytes. */
  readonly sourceGid: Uint8Array;
  /** With the option AV: the GID of the peer, 16 bytes. */
  readonly destinationGid: Uint8Array;
  /**
   * 8 bits, with the option AV: IPv4's TOS, IPv6's traffic class. The upper six are the DSCP; on a connection the HCA
   * sets the lower two, ECN (option `ecn`).
   */
  readonly trafficClass: number;
  /**
   * 20 bits, with the option AV: the flow label of IPv6 headers; 0 leaves it to the operating system. IPv4 has none.
   */
  readonly flowLabel: number;
  /** 8 bits, with the option AV: IPv4's TTL, IPv6's hop limit. 0 (default): 64. */
  readonly hopLimit: number;
  /** WV_QP_SIGNAL_SENDS, as created. */
  readonly qpFlags: number;
  /** The peer's LID, which only InfiniBand has: 0 on RoCE. */
  readonly destinationLid: number;
  /** The service level of packets, 0 to 15, which only InfiniBand has: 0 on RoCE. */
  readonly serviceLevel: number;
  /** The low bits of the source LID, which only InfiniBand has: 0 on RoCE. */
  readonly sourcePathBits: number;
  /** The rate of injection as a code, which only InfiniBand has: 0 on RoCE. */
  readonly staticRate: number;
  /** WV_APM_STATE: path migration, which the software HCA does not have: 0. */
  readonly apmState: number;
  /** `pathMtu` of the path to migrate to; 0 on the software HCA. */
  readonly alternatePathMtu: number;
  /** `pkeyIndex` of the path to migrate to; 0 on the software HCA. */
  readonly alternatePkeyIndex: number;
  /** `localAckTimeout` of the path to migrate to; 0 on the software HCA. */
  readonly alternateLocalAckTimeout: number;
  /** The protection domain that it was made in; a modify does not change it, nor the queues. No reference is added. */
  readonly pd: IWVProtectionDomain;
  /** The completion queue of its send requests. No reference is added. */
  readonly sendCq: IWVCompletionQueue;
  /** The completion queue of its receives. No reference is added. */
  readonly receiveCq: IWVCompletionQueue;
  /** The shared receive queue; undefined: it has receives of its own. No reference is added. */
  readonly srq: IWVSharedReceiveQueue | undefined;
}

/** A request of {@link IWVQueuePair.postSend} (WV_SEND_REQUEST). What an opcode does not use is ignored. */
export interface WvSendRequest {
  /** The caller's own value, which the completion has. */
  readonly context?: unknown;
  /**
   * WV_OPCODE: Send 0 (default), RdmaWrite 1, RdmaRead 2, CompareExchange 3, FetchAdd 4, Invalidate 6, FastRegister 7.
   * Datagram queue pairs have Send alone.
   */
  readonly opcode?: number;
  /** WV_SEND_*; default 0. */
  readonly flags?: number;
  /** The memory that is sent, or, for reads and atomics, filled; default: none. */
  readonly sgl?: readonly WvSge[];
  /** Sent with the flag IMMEDIATE. */
  readonly immediate?: number;
  /** A Send: the peer's key whose window or region its arrival invalidates. */
  readonly invalidateRkey?: number;
  /** The remote memory of RDMA and atomics. */
  readonly remote?: RemoteMemoryRef;
  /** Bytes from the start of `remote`; default 0. */
  readonly remoteOffset?: number;
  /** CompareExchange: the value that must be there; FetchAdd: the value to add. */
  readonly compareOrAdd?: bigint;
  /** CompareExchange: the new value. */
  readonly exchange?: bigint;
  /** FastRegister, Invalidate: the region. Of a FastRegister, `sgl` has one entry, the memory. */
  readonly fastRegion?: IWVFastRegion;
  /** FastRegister: WV_ACCESS_*; default 0. */
  readonly access?: number;
  /** FastRegister: the low byte of the new key; default: the present one's successor. */
  readonly keyByte?: number;
  /** A datagram: where it goes; of the same protection domain. */
  readonly addressHandle?: IWVAddressHandle;
  /** A datagram: the queue pair number of the destination, 24 bits; MULTICAST_QPN for a group. */
  readonly destinationQpn?: number;
  /** A datagram: the Q_Key of the destination; from 0x80000000 on the queue pair's own is used. Default: 0. */
  readonly destinationQkey?: number;
}

/** The common part of all types of queue pairs. */
export interface IWVQueuePair extends WvOverlappedObject {
  /** The queue pair's number on the wire, 24 bits. */
  readonly qpn: number;
  /** The WV_QP_STATE that the HCA published last; no IOCTL. */
  readonly state: number;
  /** Maximum SGEs of a request other than a receive; at least as many as requested. */
  readonly sendSge: number;
  /** Maximum SGEs of a receive; 0 if receives come from a shared receive queue. */
  readonly receiveSge: number;
  /** Maximum bytes of an INLINE request. */
  readonly maxInlineSend: number;
  /** All attributes. */
  query(): WvQpAttributes;
  /** `options` WV_QP_ATTR_* selects the attributes to change. */
  modify(attributes: Partial<WvQpAttributes>, options: number): void;
  /** As {@link modify}, overlapped; wrong arguments throw at once. */
  modifyOverlapped(attributes: Partial<WvQpAttributes>, options: number): Overlapped<void>;
  /**
   * Posts the buffers for an incoming message; throws only if nothing was queued. INVALID_DEVICE_REQUEST: its receives
   * come from a shared receive queue.
   */
  postReceive(context: unknown, sgl: readonly WvSge[]): void;
  /**
   * Posts requests in their order, with one doorbell for all. If one cannot be queued, those before it are, and the
   * error names it: `failedRequest`. Those after it are not queued.
   *
   * @throws WvError as the single calls of this type of queue pair
   * @see IWVQueuePair::PostSend
   */
  postSend(requests: readonly WvSendRequest[]): void;
  /** Requests posted from now on are submitted together by {@link submitBatch}. */
  startBatch(): void;
  /** Submits the requests posted since {@link startBatch}. */
  submitBatch(): void;
}

/**
 * Requests throw only if nothing was queued (NO_MORE_ENTRIES for a full queue, DATA_OVERRUN for too many SGEs,
 * BUFFER_OVERFLOW for too many inline bytes, ACCESS_VIOLATION for an inline SGE that ends beyond its region,
 * INVALID_DEVICE_STATE before RTS, …). The completion reports the result of a queued request: LOCAL_PROTECTION_ERROR for
 * any other SGE that ends beyond its region. `flags` is an OR of WV_SEND_*: IMMEDIATE 1, FENCE 2, SIGNALED 4, SOLICITED 8, INLINE 0x10.
 * @example
 * ```ts
 * qp.postReceive('answer', [{ region, offset: 4096, length: 4096 }]);
 * qp.send('question', [{ region, offset: 0, length: 100 }], WvSend.SIGNALED);
 * qp.read('read', [{ region, offset: 8192, length: 4096 }], WvSend.SIGNALED, remote, 0);
 * qp.fetchAdd('count', { region, offset: 0, length: 8 }, WvSend.SIGNALED, 1n, remote, 64);
 * const { context, status } = await nextCompletion(cq);
 * ```
 */
export interface IWVConnectQueuePair extends IWVQueuePair {
  /**
   * Posts a message; `immediate` is sent with the flag IMMEDIATE.
   *
   * @throws WvError NOT_SUPPORTED: immediate data on an iWARP device; so does {@link write}.
   */
  send(context: unknown, sgl: readonly WvSge[], flags: number, immediate?: number): void;
  /** Posts a message whose arrival invalidates the peer's key `rkey`. */
  sendAndInvalidate(context: unknown, sgl: readonly WvSge[], flags: number, rkey: number): void;
  /** Posts a read of remote memory; `offset` is in bytes from the start of `remote`. */
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
  /**
   * Executes an operation between bytes of any memory, registered or not, and the peer's memory, `offset` bytes into it. It is done when the
   * call returns, before requests that were posted earlier, and makes no completion. Rights and bounds are those of {@link write},
   * {@link read} and {@link fetchAdd}. An addition to WinVerbs; missing where the device cannot reach the memory of any peer, as real
   * HCAs cannot.
   *
   * @param bytes - of an atomic operation 8 or 16, at a multiple of 8 of the peer's addresses; may be empty, to ask whether the peer can be
   *   reached at all
   * @returns after `REFUSED`, which says nothing about a later call, a part of the bytes may have been copied
   * @throws WvError INVALID_PARAMETER, INVALID_HANDLE
   */
  direct?(operation: WvDirect, bytes: Uint8Array, remote: RemoteMemoryRef, offset: number): WvDirectResult;
  /**
   * Maps `length` bytes of the peer's memory, from `offset` on, into this process, where they stay until they are collected: longer than the
   * peer's registration, the connection and the peer. They show what the peer has there. A page of them that is written to becomes this
   * process's own, and shows the peer's no more. The peer must have registered the memory with REMOTE_VIEW. At most 4096 views exist at
   * a time. An addition to WinVerbs; missing where there is no {@link direct}.
   *
   * @returns the bytes, in a buffer of their own; or `NOT_MAPPED`: call again in a millisecond or so; `REFUSED`
   * @throws WvError INVALID_PARAMETER, INVALID_HANDLE; INSUFFICIENT_RESOURCES: no file descriptor is left, or too many views exist; NO_MEMORY;
   *   NOT_SUPPORTED: the runtime has no external ArrayBuffers.
   */
  view?(
    remote: RemoteMemoryRef,
    offset: number,
    length: number,
  ): Uint8Array<ArrayBuffer> | typeof WvDirectResult.NOT_MAPPED | typeof WvDirectResult.REFUSED;
  /**
   * Posts an atomic exchange of 8 remote bytes, done if they equal `compare`; `sge` receives their previous value.
   *
   * @throws WvError NOT_SUPPORTED: the device has no atomics (`atomicCapability`); so does {@link fetchAdd}.
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
  /** Posts an atomic addition to 8 remote bytes; `sge` receives their previous value. */
  fetchAdd(
    context: unknown,
    sge: WvSge,
    flags: number,
    value: bigint,
    remote: RemoteMemoryRef,
    offset: number,
  ): void;
  /**
   * Binds `length` bytes at `offset` of the region. Returns the window's new rkey, valid for requests posted after this
   * one.
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
  /** Posts the end of a window's binding. */
  invalidateMemoryWindow(window: IWVMemoryWindow, context: unknown, flags: number): void;
  /**
   * Posts the registration of `memory`, a part of a registered region, as `region`. Returns the new key, valid for requests posted after
   * this one. `keyByte`, its low byte, is by default the present one's successor. So a key comes back after 256 registrations: by then take
   * another region if its peers should not reach later memory.
   */
  fastRegister(
    region: IWVFastRegion,
    context: unknown,
    memory: WvSge,
    access: number,
    flags: number,
    keyByte?: number,
  ): number;
  /** Posts the end of a fast registration. */
  invalidateRegion(region: IWVFastRegion, context: unknown, flags: number): void;
}

/** A datagram to send (WV_SEND_DATAGRAM). The caller may reuse it; it is read during the call only. */
export interface WvSendDatagram {
  /** The caller's own value, which the completion has. */
  context: unknown;
  /** Where the datagram goes; of the same protection domain. */
  addressHandle: IWVAddressHandle;
  /** The memory that is sent: together at most the MTU of the path. */
  sgl: readonly WvSge[];
  /** WV_SEND_* except FENCE. */
  flags: number;
  /** Sent with the flag IMMEDIATE, 32 bits. */
  immediateData?: number;
  /** MULTICAST_QPN for a group. */
  destinationQpn: number;
  /** From 0x80000000 on: the queue pair's own Q_Key is used. */
  destinationQkey: number;
}

/** Attributes for starting a datagram queue pair that differ from the defaults. */
export interface WvDatagramStart {
  /** Default: 1. */
  portNumber?: number;
  /** Default: 0. */
  pkeyIndex?: number;
  /** 24 bits; default: random. */
  sendPsn?: number;
}

/**
 * Unreliable datagrams (UD): messages of at most the port's active MTU, to any queue pair whose number and Q_Key are
 * known. The first 40 bytes of a receive's buffers get the GRH; a completion's length includes them. Datagrams that do
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
  /** Receives datagrams of a group, an IP address or its GID, with this queue pair's Q_Key. */
  attachMulticast(group: string | Uint8Array, lid?: number): Overlapped<void>;
  /** Undoes {@link attachMulticast}. */
  detachMulticast(group: string | Uint8Array, lid?: number): Overlapped<void>;
}

/** The common part of connect and datagram endpoints. Their classes document all statuses. */
export interface IWVEndpoint extends WvOverlappedObject {
  /** Resolves the route to a peer (IBAT) and sets it: AddressBound → RouteResolved. */
  resolveRoute(peer: SocketAddress): void;
  /** Sets the path to a peer as a whole: AddressBound → RouteResolved. */
  modify(path: WvPathRecord): void;
  /**
   * With port 0 it gets a free port. Returns the address with the port, as query() does. With `device` the wildcard means the
   * addresses of that device.
   */
  bindAddress(address: SocketAddress, device?: WvDeviceAddress): SocketAddress;
  /**
   * Accepts requests from now on; `backlog` is the maximum of waiting requests, at most 1024, which 0 means, too. With
   * `pkey` only requests for the partition of that P_Key.
   */
  listen(backlog: number, pkey?: number): void;
  /** Rejects the request or the reply, with at most 148 bytes for the peer, 136 for a datagram service. */
  reject(privateData?: Uint8Array): void;
}

/** Connection parameters. Depths are this side's view: reads that it accepts and reads that it issues. */
export interface WvConnectParam {
  /** At most 56 bytes. */
  privateData?: Uint8Array;
  /** RDMA reads and atomics of the peer that this side serves at a time; default: those of the queue pair. */
  responderResources?: number;
  /** RDMA reads and atomics that this side wants to have outstanding; default: those of the queue pair. */
  initiatorDepth?: number;
  /** Repetitions without an acknowledgement, 0 to 7, the default. */
  retryCount?: number;
  /**
   * 0..7: how often the peer repeats a send that finds no receive here. 7 is infinite and the default of QPs with an
   * SRQ; 6 is the default of others. With 6 the peer also waits for at least one second (the option `rnrPatienceMs`); a
   * smaller count limits the retries alone.
   */
  rnrRetryCount?: number;
}

/** Attributes of an endpoint's connection: addresses, device, and the peer's last private data. */
export interface WvConnectAttributes {
  /** This side's address and port; the wildcard of IPv4 while there is none. */
  readonly localAddress: SocketAddress;
  /** The peer's address and port; undefined while there is no peer. */
  readonly peerAddress: SocketAddress | undefined;
  /** Of a connection, or a request for one, with its partition. */
  readonly device: WvDeviceAddress;
  /**
   * The peer's last private data. Messages do not carry its length: it is padded with zeros to 56 bytes, and longer
   * only if the REP (at most 196 bytes) or REJ (148) has other bytes than zeros behind them.
   */
  readonly privateData: Uint8Array;
  /** RDMA reads and atomics of the peer that this side serves at a time. */
  readonly responderResources: number;
  /** RDMA reads and atomics that this side may have outstanding. */
  readonly initiatorDepth: number;
  /** Repetitions without an acknowledgement, 0 to 7. */
  readonly retryCount: number;
  /** Repetitions when no receive is posted, 0 to 6; 7: without end. */
  readonly rnrRetryCount: number;
  /** How many requests may wait, of a listener; 0 of all others. */
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
  /** Waits for a request and puts it into a fresh endpoint. */
  getRequest(endpoint: IWVConnectEndpoint): Overlapped<void>;
  /** Requests a connection. It ends when the peer has replied: accept or reject the reply then. */
  connect(qp: IWVConnectQueuePair, peer: SocketAddress, param: WvConnectParam): Overlapped<void>;
  /** Accepts the request, or the reply; the queue pair is in RTS when it ends. On the active side `qp` may be null. */
  accept(qp: IWVConnectQueuePair | null, param: WvConnectParam): Overlapped<void>;
  /** Ends the connection and flushes the queue pair at once; ends when the peer has confirmed. */
  disconnect(): Overlapped<void>;
  /**
   * Chooses what a disconnect by the peer does to the queue pair: with true it stays as it is until {@link disconnect},
   * so that its owner decides what becomes of outstanding requests; with false (default) it is flushed at once.
   */
  keepQueuePairOnDisconnect(keep: boolean): void;
  /** Waits for the end of the connection; never ends in SUCCESS. */
  notifyDisconnect(): Overlapped<void>;
  /** Addresses, private data and read depths, in the view of this side. */
  query(): WvConnectAttributes;
}

/** A datagram endpoint's answer to a look-up of its queue pair. */
export interface WvDatagramParam {
  /** A UD queue pair of this provider, or any queue pair number. */
  qp: IWVDatagramQueuePair | number;
  /** Default: 0x01234567, as in RDMA CM. */
  qkey?: number;
  /** At most 136 bytes. */
  privateData?: Uint8Array;
}

/** Attributes of a datagram endpoint, and of one of its peers or groups (WV_DATAGRAM_ATTRIBUTES). */
export interface WvDatagramAttributes {
  /** This side's address and port. */
  readonly localAddress: SocketAddress;
  /** The peer's address and port, or the group's; undefined if there is no peer. */
  readonly peerAddress: SocketAddress | undefined;
  /** The device of the local address, its port and partition. */
  readonly device: WvDeviceAddress;
  /** Of a listener. */
  readonly backlog: number;
  /** For an address handle on {@link device}. Undefined if there is no peer. */
  readonly addressVector: WvAddressVector | undefined;
  /** 0: unknown, as for the sender of a look-up; 0xFFFFFF: the group. */
  readonly qpn: number;
  /** The Q_Key that datagrams to the peer must carry. */
  readonly qkey: number;
  /** The peer's answer: 0 yes, 1 nobody there, 2 rejected, 3 no queue pair, 4 elsewhere, 5 another version. */
  readonly sidrStatus: number;
  /** The peer's private data, zero-padded: 180 bytes of a request, 136 of an answer. */
  readonly privateData: Uint8Array;
}

/**
 * Looks up datagram peers, answers look-ups, and joins groups (IBA 1 §12.11). Its class documents all statuses.
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
  /** Waits for a look-up and puts it into a fresh endpoint. */
  getRequest(endpoint: IWVDatagramEndpoint): Overlapped<void>;
  /** Looks up the peer's queue pair, with at most 180 bytes of private data. Several may be outstanding. */
  lookup(peer: SocketAddress, privateData?: Uint8Array): Overlapped<WvDatagramAttributes>;
  /** Answers a look-up with a queue pair. */
  accept(param: WvDatagramParam): Overlapped<void>;
  /** Joins a multicast group; returns what is needed to attach a queue pair and to send. */
  joinMulticast(group: SocketAddress): Overlapped<WvDatagramAttributes>;
  /** Leaves a group. */
  leaveMulticast(group: SocketAddress): Overlapped<void>;
  /** Attributes of a peer or group; without an address, of the look-up's sender, or of the endpoint alone. */
  query(peer?: SocketAddress): WvDatagramAttributes;
}
