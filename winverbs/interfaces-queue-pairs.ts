/** Queue pairs of connections and of datagrams. */
import type { Overlapped } from '../kernel-bridge/overlapped.js';
import type { IWVAddressHandle, IWVCompletionQueue, IWVSharedReceiveQueue } from './interfaces-device.js';
import type { IWVMemoryWindow, RemoteMemoryRef, WvMemoryRegion, WvSge } from './interfaces-memory.js';
import type { WvOverlappedObject } from './interfaces-objects.js';

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
