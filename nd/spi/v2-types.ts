/**
 * Values that clients and providers of ND SPI v2 exchange: flags, request types, scatter/gather entries, results,
 * remote memory, adapter information, and options of the Create… methods. Sources: ND SPI v2 (ndspi.h, nddef.h).
 */
import { shown } from '../../kernel-bridge/ioctl/shown.js';
import { asAddress, WvDirect, WvDirectResult } from '../../winverbs/index.js';
import { NdOpFlag, type NdOverlappedFile, wireView } from './common-types.js';
import type { IND2CompletionQueue, IND2MemoryRegion, IND2QueuePair, IND2SharedReceiveQueue } from './v2.js';

/** ND_OP_FLAG_* of v2: those of v1, and INLINE. Unknown bits fail with INVALID_PARAMETER_n. @enum */
export const Nd2OpFlag = {
  ...NdOpFlag,
  /**
   * Send and Write only: the bytes are copied during the call. Their memory need not be registered, and the queue
   * pair's limit of scatter/gather entries does not apply.
   */
  INLINE: 0x20,
} as const;

/** Operations of {@link IND2QueuePair.direct} on the peer's memory. */
export const Nd2Direct = WvDirect;
/** A value of {@link Nd2Direct}. */
export type Nd2Direct = WvDirect;

/** Results of {@link IND2QueuePair.direct}. */
export const Nd2DirectResult = WvDirectResult;
/** A value of {@link Nd2DirectResult}. */
export type Nd2DirectResult = WvDirectResult;

/** ND_MR_FLAG_*: access rights of registered memory, in addition to reading by local requests. @enum */
export const Nd2MrFlag = {
  /** Receives and Reads may write to it. */
  ALLOW_LOCAL_WRITE: 0x1,
  /** Peers may Read it with its remote token. */
  ALLOW_REMOTE_READ: 0x2,
  /** Peers may Write to it with its remote token. Includes ALLOW_LOCAL_WRITE; its own bit is 0x4. */
  ALLOW_REMOTE_WRITE: 0x5,
  /** A Read may write to it. Equivalent to ALLOW_LOCAL_WRITE if the transport does not distinguish the two. */
  RDMA_READ_SINK: 0x8,
  /** All rights, for local requests and for peers. An addition to the SPI. */
  ALL: 0xf,
  /**
   * Peers may execute atomic operations on it. Ignored if the adapter does not support them. An addition to the SPI.
   */
  ALLOW_REMOTE_ATOMIC: 0x40,
  /**
   * Peers on this host may map the memory, which must come from `allocate()`, with {@link IND2QueuePair.view}, and keep
   * the mapping. Requires ALLOW_REMOTE_READ. Ignored if the adapter's queue pairs have no `view`. An addition to the
   * SPI.
   */
  ALLOW_REMOTE_VIEW: 0x80,
  /** Accepted, but has no effect here. */
  DO_NOT_SECURE_VM: 0x8000_0000,
} as const;

/** ND_ADAPTER_FLAG_*. @enum */
export const Nd2AdapterFlag = {
  /** Within a Write, lower addresses are written before higher ones, and its last byte last. */
  IN_ORDER_DMA_SUPPORTED: 0x1,
  /** Completion queues can delay their notifications for some time, or until there are several completions. */
  CQ_INTERRUPT_MODERATION_SUPPORTED: 0x4,
  /** The adapter has several engines; queue pairs are distributed among them by their completion queues. */
  MULTI_ENGINE_SUPPORTED: 0x8,
  /** Completion queues can be resized. */
  CQ_RESIZE_SUPPORTED: 0x100,
  /** Two queue pairs of one adapter can be connected to each other. */
  LOOPBACK_CONNECTIONS_SUPPORTED: 0x1_0000,
} as const;

/** ND2_REQUEST_TYPE: the kind of a completed request. @enum */
export const Nd2RequestType = {
  /** A Receive completed by a message. */
  RECEIVE: 0,
  /** A Send. */
  SEND: 1,
  /** A Bind of a memory window. */
  BIND: 2,
  /** An Invalidate of a memory window. */
  INVALIDATE: 3,
  /** An RDMA Read. */
  READ: 4,
  /** An RDMA Write. */
  WRITE: 5,
} as const;

/** A value of {@link Nd2RequestType}. */
export type Nd2RequestType = (typeof Nd2RequestType)[keyof typeof Nd2RequestType];

/**
 * ND2_SGE: `length` bytes at `offset` bytes into a registered memory region. The entries are read during the call and
 * can be reused after it. An entry of 0 bytes is valid.
 *
 * `memory` may be unregistered bytes if the request has the flag INLINE; otherwise the request throws INVALID_HANDLE.
 */
export interface Nd2Sge {
  /** A region with registered memory, or its local token; with INLINE, any bytes. */
  memory: IND2MemoryRegion | number | Uint8Array;
  /** Offset from the start of the memory, in bytes. */
  offset: number;
  /** Length in bytes; an entry of 0 refers to no memory. */
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
  /** The type of the request. */
  requestType: Nd2RequestType;
}

/** ND2_ADAPTER_INFO: limits of an adapter, inclusive. Sizes are in bytes. */
export interface Nd2AdapterInfo {
  /** The version of this structure, ND_VERSION_2. */
  readonly infoVersion: number;
  /** The vendor's IEEE OUI. */
  readonly vendorId: number;
  /** The vendor's device number. */
  readonly deviceId: number;
  /** The adapter's id, as `resolveAddress` returns it. */
  readonly adapterId: bigint;
  /** Maximum length of a registration, in bytes. */
  readonly maxRegistrationSize: number;
  /** Maximum length of a memory window, in bytes; 0: the adapter does not support windows. */
  readonly maxWindowSize: number;
  /** Maximum scatter/gather entries of a Send or Write. */
  readonly maxInitiatorSge: number;
  /** Maximum scatter/gather entries of a Receive. */
  readonly maxReceiveSge: number;
  /** Maximum scatter/gather entries of a Read. */
  readonly maxReadSge: number;
  /** Maximum total length of a request, in bytes: 2^31, or the port's maximum message size if that is less. */
  readonly maxTransferLength: number;
  /** Maximum length of a request with INLINE, in bytes. */
  readonly maxInlineDataSize: number;
  /** Maximum Reads that peers may have in flight to a queue pair. */
  readonly maxInboundReadLimit: number;
  /** Maximum Reads that a queue pair may have in flight. */
  readonly maxOutboundReadLimit: number;
  /** Maximum outstanding Receives of a queue pair. */
  readonly maxReceiveQueueDepth: number;
  /** Maximum other outstanding requests of a queue pair. */
  readonly maxInitiatorQueueDepth: number;
  /** Maximum Receives of a shared receive queue; 0: not supported. */
  readonly maxSharedReceiveQueueDepth: number;
  /** Maximum entries of a completion queue. */
  readonly maxCompletionQueueDepth: number;
  /** Length in bytes up to which INLINE is faster; at most maxInlineDataSize. */
  readonly inlineRequestThreshold: number;
  /**
   * Smallest length in bytes that is faster to register for a Read or Write than to copy for a Send. It is
   * measured when it is first read.
   */
  readonly largeRequestThreshold: number;
  /** Maximum private data for Connect, in bytes. */
  readonly maxCallerData: number;
  /** Maximum private data for Accept and Reject, in bytes. */
  readonly maxCalleeData: number;
  /** Flags of the adapter, an OR of {@link Nd2AdapterFlag}. */
  readonly adapterFlags: number;
}

/** Limits of Reads in flight, as seen from this side. */
export interface Nd2ReadLimits {
  /**
   * Maximum Reads that the peer wants to have in flight to this side: its outbound limit, within this side's limits.
   */
  readonly inbound: number;
  /** Maximum Reads that the peer allows this side to have in flight: its inbound limit, within this side's limits. */
  readonly outbound: number;
}

/**
 * Memory of the peer for Read and Write: an address in its address space and the remote token of a region or window. It
 * is created once from the peer's description; requests add a numeric offset. {@link of}, {@link encode} and {@link
 * decode} implement one format of the description; an application may use another.
 *
 * @example
 * ```ts
 * // The owner of the memory, in a message or in the private data of a connection:
 * Nd2RemoteMemory.of(region).encode(message, 8);
 * // Its peer:
 * const remote = Nd2RemoteMemory.decode(message, 8);
 * queuePair.read(context, sgl, remote, 4096);
 * ```
 */
export class Nd2RemoteMemory {
  /** Length of the wire form, in bytes: address (8), token (4), each in network byte order. @category Encode */
  static readonly size = 12;

  /** The address of the first byte. @category Memory */
  readonly address: bigint;
  /** The token, as returned by the peer's getRemoteToken. @category Memory */
  readonly token: number;

  // Requests use no BigInt, so the words of the address and the token are also available in WinVerbs' form.
  /** Low 32 bits of the address. @category Memory */
  readonly addressLow: number;
  /** High 32 bits of the address. @category Memory */
  readonly addressHigh: number;
  /** The token, under its name in WinVerbs. @category Memory */
  readonly rkey: number;

  /**
   * @param address - 64 bits: a bigint, or a number below 2^53
   * @throws RangeError if the address exceeds 64 bits, or the token 32 bits
   * @category Encode
   */
  constructor(address: bigint | number, token: number) {
    const wide = asAddress(address);
    if (wide === undefined) {
      throw new RangeError(
        `\`address\` must be a bigint from 0 to 2^64 - 1, or an integer below 2^53; got ${shown(address)}.`,
      );
    }
    if (typeof token !== 'number' || token >>> 0 !== token) {
      throw new RangeError(`\`token\` must be an unsigned 32-bit integer; got ${shown(token)}.`);
    }
    this.address = wide;
    this.token = token;
    this.addressLow = Number(wide & 0xffff_ffffn);
    this.addressHigh = Number(wide >> 32n);
    this.rkey = token;
  }

  /**
   * Returns the description that a peer needs to reach a region of this side from its first byte on. The flags of its
   * registration determine what the peer may do.
   *
   * @param region - a region with registered memory
   * @throws NdError INVALID_DEVICE_STATE unless registered
   * @category Encode
   */
  static of(region: Pick<IND2MemoryRegion, 'address' | 'getRemoteToken'>): Nd2RemoteMemory {
    if (typeof region?.getRemoteToken !== 'function')
      throw new TypeError(`\`region\` must be an IND2MemoryRegion; got ${shown(region)}.`);
    return new Nd2RemoteMemory(region.address, region.getRemoteToken());
  }

  /**
   * Writes the 12 bytes of the wire form into `out` at `offset` and returns them.
   *
   * @param out - where to write them, by default into new bytes
   * @param offset - bytes from the start of `out`
   * @throws RangeError if they do not fit
   * @category Encode
   */
  encode(out: Uint8Array = new Uint8Array(Nd2RemoteMemory.size), offset = 0): Uint8Array {
    const view = wireView(out, offset, Nd2RemoteMemory.size, 'out');
    view.setBigUint64(0, this.address);
    view.setUint32(8, this.token);
    return out.subarray(offset, offset + Nd2RemoteMemory.size);
  }

  /**
   * Reads the wire form from `bytes` at `offset`.
   *
   * @param bytes - bytes that contain it
   * @param offset - bytes from the start of `bytes`
   * @throws RangeError if there are fewer bytes
   * @category Encode
   */
  static decode(bytes: Uint8Array, offset = 0): Nd2RemoteMemory {
    const view = wireView(bytes, offset, Nd2RemoteMemory.size);
    return new Nd2RemoteMemory(view.getBigUint64(0), view.getUint32(8));
  }
}

/** The CPUs that completions should interrupt: a preference, which a provider may ignore. */
export interface Nd2Affinity {
  /** CPU group. */
  readonly group: number;
  /** One bit for each CPU of the group; 0: no preference. */
  readonly mask: bigint;
}

/** Attributes of a new shared receive queue. */
export interface Nd2SharedReceiveQueueOptions {
  /** Maximum outstanding Receives. */
  depth: number;
  /** Maximum scatter/gather entries of a Receive; default 1. */
  maxRequestSge?: number;
  /** Number of outstanding Receives below which `notify` completes; 0 (default): never. */
  notifyThreshold?: number;
  /** The CPUs that events should interrupt. By default, any CPU. */
  affinity?: Nd2Affinity;
  /** The file that collects the requests of the queue. */
  overlappedFile?: NdOverlappedFile;
}

/** Common attributes of queue pairs with and without a shared receive queue. */
export interface Nd2InitiatorOptions {
  /** The queue for results of Receives. */
  receiveCompletionQueue: IND2CompletionQueue;
  /** The queue for results of all other requests; may be the same queue. */
  initiatorCompletionQueue: IND2CompletionQueue;
  /** Any value, returned in every result. */
  context?: unknown;
  /** Maximum outstanding requests other than Receives. */
  initiatorQueueDepth: number;
  /** Minimum scatter/gather entries of a Send, Read or Write; default 1. The queue pair has the granted number. */
  maxInitiatorRequestSge?: number;
  /** Maximum length of a request with INLINE, in bytes; default 0. */
  inlineDataSize?: number;
}

/** Attributes of a new queue pair. */
export interface Nd2QueuePairOptions extends Nd2InitiatorOptions {
  /** Maximum outstanding Receives. */
  receiveQueueDepth: number;
  /** Minimum scatter/gather entries of a Receive; default 1. The queue pair has the granted number. */
  maxReceiveRequestSge?: number;
}

/** Attributes of a new queue pair whose Receives come from a shared receive queue. */
export interface Nd2SrqQueuePairOptions extends Nd2InitiatorOptions {
  /** The shared receive queue. */
  sharedReceiveQueue: IND2SharedReceiveQueue;
}
