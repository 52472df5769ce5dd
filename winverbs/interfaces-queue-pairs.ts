/** Queue pairs of connections and of datagrams. */
import type { Overlapped } from '../kernel-bridge/overlapped.js';
import type { IWVAddressHandle, IWVCompletionQueue, IWVSharedReceiveQueue } from './interfaces-device.js';
import type {
  IWVFastRegion,
  IWVMemoryWindow,
  RemoteMemoryRef,
  WvMemoryRegion,
  WvSge,
} from './interfaces-memory.js';
import type { WvOverlappedObject } from './interfaces-objects.js';

/** Attributes of a new queue pair. Depths are numbers of requests, SGEs entries per request, `maxInlineSend` bytes. */
export interface WvQpCreate {
  sendCq: IWVCompletionQueue;
  receiveCq: IWVCompletionQueue;
  /** The source of receives; `receiveDepth` and `receiveSge` are ignored then. */
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
  readonly qpState: number;
  /** The same as `qpState`; in a modify, the state that the caller assumes. */
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
  /** The rest of the path, which only InfiniBand has: 0 on RoCE. */
  readonly destinationLid: number;
  readonly serviceLevel: number;
  readonly sourcePathBits: number;
  readonly staticRate: number;
  /** WV_APM_STATE and the alternate path (path migration), which the software HCA does not have: 0. */
  readonly apmState: number;
  readonly alternatePathMtu: number;
  readonly alternatePkeyIndex: number;
  readonly alternateLocalAckTimeout: number;
}

/** A request of {@link IWVConnectQueuePair.postSend} (WV_SEND_REQUEST). What an opcode does not use is ignored. */
export interface WvSendRequest {
  readonly context?: unknown;
  /** WV_OPCODE: Send 0 (default), RdmaWrite 1, RdmaRead 2, CompareExchange 3, FetchAdd 4, Invalidate 6, FastRegister 7. */
  readonly opcode?: number;
  /** WV_SEND_*; default 0. */
  readonly flags?: number;
  readonly sgl?: readonly WvSge[];
  /** Sent with the flag IMMEDIATE. */
  readonly immediate?: number;
  /** A Send: the peer's key whose window or region its arrival invalidates. */
  readonly invalidateRkey?: number;
  /** The remote memory, and bytes from its start. */
  readonly remote?: RemoteMemoryRef;
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
}

/** The common part of all types of queue pairs. */
export interface IWVQueuePair extends WvOverlappedObject {
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
}

/**
 * Requests throw only if nothing was queued (NO_MORE_ENTRIES for a full queue, DATA_OVERRUN for too many SGEs,
 * BUFFER_OVERFLOW for too many inline bytes, ACCESS_VIOLATION for an SGE that ends beyond its region, INVALID_DEVICE_STATE before RTS, …). The completion reports the result of
 * a queued request. `flags` is an OR of WV_SEND_*: IMMEDIATE 1, FENCE 2, SIGNALED 4, SOLICITED 8, INLINE 0x10.
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
  /** Posts a message; `immediate` is sent with the flag IMMEDIATE. */
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
  /** Posts an atomic exchange of 8 remote bytes, done if they equal `compare`; `sge` gets their previous value. */
  compareExchange(
    context: unknown,
    sge: WvSge,
    flags: number,
    compare: bigint,
    exchange: bigint,
    remote: RemoteMemoryRef,
    offset: number,
  ): void;
  /** Posts an atomic addition to 8 remote bytes; `sge` gets their previous value. */
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
   * this one. `keyByte`, its low byte, is by default the present one's successor.
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
  /**
   * Posts requests in their order, with one doorbell for all. If one cannot be queued, those before it are, and the
   * error names it: `failedRequest`. Those after it are not queued.
   */
  postSend(requests: readonly WvSendRequest[]): void;
  /** Requests posted from now on are submitted together by {@link submitBatch}. */
  startBatch(): void;
  /** Submits the requests posted since {@link startBatch}. */
  submitBatch(): void;
}

/** A datagram to send (WV_SEND_DATAGRAM). The caller may reuse it; it is read during the call only. */
export interface WvSendDatagram {
  context: unknown;
  addressHandle: IWVAddressHandle;
  sgl: readonly WvSge[];
  /** WV_SEND_* except FENCE. */
  flags: number;
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
