/**
 * Values that clients and providers of ND SPI v2 exchange: flags, request types, scatter/gather entries, results,
 * remote memory, adapter information. Sources: ND SPI v2 (ndspi.h, nddef.h).
 */
import { NdOpFlag } from './types.js';
import type { IND2MemoryRegion } from './v2.js';

/** ND_OP_FLAG_* of v2: those of v1, and INLINE. Unknown bits are refused with INVALID_PARAMETER_n. */
export const Nd2OpFlag = {
  ...NdOpFlag,
  /**
   * Send and Write only: the bytes are copied during the call. Their memory need not be registered, and the number of
   * scatter/gather entries is not limited by the queue pair's.
   */
  INLINE: 0x20,
} as const;

/** ND_MR_FLAG_*: access rights of registered memory, besides reading by local requests. */
export const Nd2MrFlag = {
  /** Receives and Reads may write to it. */
  ALLOW_LOCAL_WRITE: 0x1,
  /** Peers may Read it by its remote token. */
  ALLOW_REMOTE_READ: 0x2,
  /** Peers may Write to it by its remote token. Includes ALLOW_LOCAL_WRITE; its own bit is 0x4. */
  ALLOW_REMOTE_WRITE: 0x5,
  /** A Read may write to it; the same as ALLOW_LOCAL_WRITE where the transport makes no difference. */
  RDMA_READ_SINK: 0x8,
  /** Has no meaning here. */
  DO_NOT_SECURE_VM: 0x8000_0000,
} as const;

/** ND_ADAPTER_FLAG_*. */
export const Nd2AdapterFlag = {
  /** Within a Write, lower addresses are written before higher ones, and its last byte last. */
  IN_ORDER_DMA_SUPPORTED: 0x1,
  CQ_INTERRUPT_MODERATION_SUPPORTED: 0x4,
  MULTI_ENGINE_SUPPORTED: 0x8,
  /** Completion queues can be resized. */
  CQ_RESIZE_SUPPORTED: 0x100,
  /** Two queue pairs of one adapter can be connected with each other. */
  LOOPBACK_CONNECTIONS_SUPPORTED: 0x1_0000,
} as const;

/** ND2_REQUEST_TYPE: the kind of a completed request. */
export const Nd2RequestType = { RECEIVE: 0, SEND: 1, BIND: 2, INVALIDATE: 3, READ: 4, WRITE: 5 } as const;

/** A value of {@link Nd2RequestType}. */
export type Nd2RequestType = (typeof Nd2RequestType)[keyof typeof Nd2RequestType];

/**
 * ND2_SGE: `length` bytes at `offset` bytes into a registered memory region. The entries are read during the call and
 * can be reused after it. An entry of 0 bytes is legal.
 *
 * `memory` may be unregistered bytes if the request has the flag INLINE; otherwise that is INVALID_HANDLE.
 */
export interface Nd2Sge {
  memory: IND2MemoryRegion | Uint8Array;
  offset: number;
  length: number;
}

/** ND2_RESULT: the outcome of a request. `getResults` fills it in; every field is valid for every status. */
export interface Nd2Result {
  /** SUCCESS, or the reason of the failure; CANCELED for a flushed request. */
  status: number;
  /** Bytes received; 0 for all other requests and for failures. */
  bytesTransferred: number;
  /** The context of the queue pair. */
  queuePairContext: unknown;
  /** The context of the request. */
  requestContext: unknown;
  requestType: Nd2RequestType;
}

/** ND2_ADAPTER_INFO: limits of an adapter. Sizes in bytes; a value equal to a limit works. */
export interface Nd2AdapterInfo {
  /** ND_VERSION_2. */
  readonly infoVersion: number;
  readonly vendorId: number;
  readonly deviceId: number;
  /** As `resolveAddress` returns it. */
  readonly adapterId: bigint;
  readonly maxRegistrationSize: number;
  readonly maxWindowSize: number;
  /** Scatter/gather entries of a Send or Write. */
  readonly maxInitiatorSge: number;
  readonly maxReceiveSge: number;
  /** Scatter/gather entries of a Read. */
  readonly maxReadSge: number;
  /** Maximum total bytes of a request's entries. */
  readonly maxTransferLength: number;
  /** Maximum bytes of a request with INLINE. */
  readonly maxInlineDataSize: number;
  /** Reads that peers may have in flight against a queue pair. */
  readonly maxInboundReadLimit: number;
  /** Reads that a queue pair may have in flight. */
  readonly maxOutboundReadLimit: number;
  readonly maxReceiveQueueDepth: number;
  readonly maxInitiatorQueueDepth: number;
  /** 0: there are no shared receive queues. */
  readonly maxSharedReceiveQueueDepth: number;
  readonly maxCompletionQueueDepth: number;
  /** Up to this length INLINE is faster; not above maxInlineDataSize. */
  readonly inlineRequestThreshold: number;
  /** From this length on, a Read or Write is faster than copying through Sends. */
  readonly largeRequestThreshold: number;
  /** Private data of Connect. */
  readonly maxCallerData: number;
  /** Private data of Accept and Reject. */
  readonly maxCalleeData: number;
  /** {@link Nd2AdapterFlag}. */
  readonly adapterFlags: number;
}

/** Reads in flight, in this side's view. */
export interface Nd2ReadLimits {
  /** Reads that the peer wants to have in flight to us: its outbound limit, within our limits. */
  readonly inbound: number;
  /** Reads that the peer allows us to have in flight: its inbound limit, within our limits. */
  readonly outbound: number;
}

/**
 * Memory of the peer for Read and Write: an address in its address space and the remote token of a region or window.
 * Made once from the peer's description, whose form the application chooses; requests add a number offset.
 *
 * @example
 * ```ts
 * const remote = new Nd2RemoteMemory(message.readBigUInt64BE(0), message.readUInt32BE(8));
 * queuePair.read(context, sgl, remote, 4096);
 * ```
 */
export class Nd2RemoteMemory {
  /** Of the first byte. */
  readonly address: bigint;
  /** As the peer's getRemoteToken returned it. */
  readonly token: number;

  // Requests use no BigInt: the words of the address, and the token, as the verbs below take them.
  /** Low 32 bits of the address. */
  readonly addressLow: number;
  /** High 32 bits of the address. */
  readonly addressHigh: number;
  /** The token, under its name in the verbs. */
  readonly rkey: number;

  /**
   * @throws RangeError if the address does not fit 64 bits, or the token 32 bits.
   */
  constructor(address: bigint, token: number) {
    if (typeof address !== 'bigint' || BigInt.asUintN(64, address) !== address) {
      throw new RangeError(`A remote address is a bigint from 0 to 2^64 - 1, not ${String(address)}.`);
    }
    if (token >>> 0 !== token) {
      throw new RangeError(`A remote token is an unsigned 32-bit number, not ${String(token)}.`);
    }
    this.address = address;
    this.token = token;
    this.addressLow = Number(address & 0xffff_ffffn);
    this.addressHigh = Number(address >> 32n);
    this.rkey = token;
  }
}
