/**
 * Values that clients and providers of ND SPI v2 exchange: flags, request types, scatter/gather entries, results,
 * remote memory, adapter information, and options of the Create… methods. Sources: ND SPI v2 (ndspi.h, nddef.h).
 */
import { asAddress, WvDirect, WvDirectResult } from '../../winverbs/index.js';
import { NdOpFlag, type NdOverlappedFile, wireView } from './common-types.js';
import type { IND2CompletionQueue, IND2MemoryRegion, IND2QueuePair, IND2SharedReceiveQueue } from './v2.js';

/** ND_OP_FLAG_* of v2: those of v1, and INLINE. Unknown bits are refused with INVALID_PARAMETER_n. */
export const Nd2OpFlag = {
  ...NdOpFlag,
  /**
   * Send and Write only: the bytes are copied during the call. Their memory need not be registered, and the number of
   * scatter/gather entries is not limited by the queue pair's.
   */
  INLINE: 0x20,
} as const;

/** What {@link IND2QueuePair.direct} does with the peer's memory. */
export const Nd2Direct = WvDirect;
/** A value of {@link Nd2Direct}. */
export type Nd2Direct = WvDirect;

/** How {@link IND2QueuePair.direct} ends. */
export const Nd2DirectResult = WvDirectResult;
/** A value of {@link Nd2DirectResult}. */
export type Nd2DirectResult = WvDirectResult;

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
  /** Ours: every right, for local requests and for peers. */
  ALL: 0xf,
  /** Ours: peers may execute atomic operations there. Without effect where the adapter has none. */
  ALLOW_REMOTE_ATOMIC: 0x40,
  /**
   * Ours: peers of this host may map the memory, which is one of `allocate()`, by {@link IND2QueuePair.view}, and keep what they have mapped. It
   * goes with ALLOW_REMOTE_READ. Without effect where the adapter's queue pairs have no `view`.
   */
  ALLOW_REMOTE_VIEW: 0x80,
  /** Has no meaning here. */
  DO_NOT_SECURE_VM: 0x8000_0000,
} as const;

/** ND_ADAPTER_FLAG_*. */
export const Nd2AdapterFlag = {
  /** Within a Write, lower addresses are written before higher ones, and its last byte last. */
  IN_ORDER_DMA_SUPPORTED: 0x1,
  /** Completion queues can delay their notifications until there are several completions, or for a time. */
  CQ_INTERRUPT_MODERATION_SUPPORTED: 0x4,
  /** The adapter has several engines, among which queue pairs are spread by their completion queues. */
  MULTI_ENGINE_SUPPORTED: 0x8,
  /** Completion queues can be resized. */
  CQ_RESIZE_SUPPORTED: 0x100,
  /** Two queue pairs of one adapter can be connected with each other. */
  LOOPBACK_CONNECTIONS_SUPPORTED: 0x1_0000,
} as const;

/** ND2_REQUEST_TYPE: the kind of a completed request. */
export const Nd2RequestType = {
  /** A Receive that a message has ended. */
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
 * can be reused after it. An entry of 0 bytes is legal.
 *
 * `memory` may be unregistered bytes if the request has the flag INLINE; otherwise that is INVALID_HANDLE.
 */
export interface Nd2Sge {
  /** A region with memory registered, or its local token; with INLINE also any bytes. */
  memory: IND2MemoryRegion | number | Uint8Array;
  /** Bytes from the start of the memory. */
  offset: number;
  /** Bytes; an entry of 0 names no memory. */
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
  /** What the request was. */
  requestType: Nd2RequestType;
}

/** ND2_ADAPTER_INFO: limits of an adapter. Sizes in bytes; a value equal to a limit works. */
export interface Nd2AdapterInfo {
  /** ND_VERSION_2. */
  readonly infoVersion: number;
  /** The vendor's IEEE number. */
  readonly vendorId: number;
  /** The vendor's number of the device. */
  readonly deviceId: number;
  /** As `resolveAddress` returns it. */
  readonly adapterId: bigint;
  /** Maximum bytes of a registration. */
  readonly maxRegistrationSize: number;
  /** Maximum bytes of a memory window; 0: the adapter has no windows. */
  readonly maxWindowSize: number;
  /** Scatter/gather entries of a Send or Write. */
  readonly maxInitiatorSge: number;
  /** Scatter/gather entries of a Receive. */
  readonly maxReceiveSge: number;
  /** Scatter/gather entries of a Read. */
  readonly maxReadSge: number;
  /** Maximum total bytes of a request's entries: 2^31, or less if a message of the port is. */
  readonly maxTransferLength: number;
  /** Maximum bytes of a request with INLINE. */
  readonly maxInlineDataSize: number;
  /** Reads that peers may have in flight against a queue pair. */
  readonly maxInboundReadLimit: number;
  /** Reads that a queue pair may have in flight. */
  readonly maxOutboundReadLimit: number;
  /** Maximum of outstanding Receives of a queue pair. */
  readonly maxReceiveQueueDepth: number;
  /** Maximum of other outstanding requests of a queue pair. */
  readonly maxInitiatorQueueDepth: number;
  /** 0: there are no shared receive queues. */
  readonly maxSharedReceiveQueueDepth: number;
  /** Maximum entries of a completion queue. */
  readonly maxCompletionQueueDepth: number;
  /** Up to this length INLINE is faster; not above maxInlineDataSize. */
  readonly inlineRequestThreshold: number;
  /** From this length on, registering memory for a Read or Write is faster than copying it for a Send: measured when it is first read. */
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
 * Made once from the peer's description; requests add a number offset. {@link of}, {@link encode} and {@link decode} tell a peer of
 * memory; an application may choose another form.
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
  /** Bytes of the wire form: address (8), token (4), each in network byte order. */
  static readonly size = 12;

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
   * @param address - 64 bits: a bigint, or a number below 2^53
   * @throws RangeError if the address does not fit 64 bits, or the token 32 bits.
   */
  constructor(address: bigint | number, token: number) {
    const wide = asAddress(address);
    if (wide === undefined) {
      throw new RangeError(
        `A remote address is a bigint from 0 to 2^64 - 1, or a whole number below 2^53, not ${String(address)}.`,
      );
    }
    if (token >>> 0 !== token) {
      throw new RangeError(`A remote token is an unsigned 32-bit number, not ${String(token)}.`);
    }
    this.address = wide;
    this.token = token;
    this.addressLow = Number(wide & 0xffff_ffffn);
    this.addressHigh = Number(wide >> 32n);
    this.rkey = token;
  }

  /**
   * What a peer needs to reach a region of this side from its first byte on. The flags of its registration say what the peer may do.
   *
   * @param region - with memory registered
   * @throws NdError INVALID_DEVICE_STATE unless registered
   */
  static of(region: Pick<IND2MemoryRegion, 'address' | 'getRemoteToken'>): Nd2RemoteMemory {
    return new Nd2RemoteMemory(region.address, region.getRemoteToken());
  }

  /**
   * Writes the 12 bytes of the wire form into `out` at `offset` and returns them.
   *
   * @param out - where to write them; default: new bytes
   * @param offset - bytes from the start of `out`
   * @throws RangeError if there is no room for them
   */
  encode(out: Uint8Array = new Uint8Array(Nd2RemoteMemory.size), offset = 0): Uint8Array {
    const view = wireView(out, offset, Nd2RemoteMemory.size);
    view.setBigUint64(0, this.address);
    view.setUint32(8, this.token);
    return out.subarray(offset, offset + Nd2RemoteMemory.size);
  }

  /**
   * Reads the wire form from `bytes` at `offset`.
   *
   * @param bytes - that hold them
   * @param offset - bytes from the start of `bytes`
   * @throws RangeError if there are fewer bytes
   */
  static decode(bytes: Uint8Array, offset = 0): Nd2RemoteMemory {
    const view = wireView(bytes, offset, Nd2RemoteMemory.size);
    return new Nd2RemoteMemory(view.getBigUint64(0), view.getUint32(8));
  }
}

/** The processors that completions should interrupt: a wish, which a provider may ignore. */
export interface Nd2Affinity {
  /** Processor group. */
  readonly group: number;
  /** A bit for each processor of the group; 0: no wish. */
  readonly mask: bigint;
}

/** Attributes of a new shared receive queue. */
export interface Nd2SharedReceiveQueueOptions {
  /** Maximum of outstanding Receives. */
  depth: number;
  /** Scatter/gather entries of a Receive; default 1. */
  maxRequestSge?: number;
  /** `notify` completes when fewer Receives are outstanding; 0, the default: never. */
  notifyThreshold?: number;
  /** Processors that events should interrupt; default: no wish. */
  affinity?: Nd2Affinity;
  /** Collects the requests of the queue. */
  overlappedFile?: NdOverlappedFile;
}

/** Common attributes of queue pairs with and without a shared receive queue. */
export interface Nd2InitiatorOptions {
  /** Gets the results of Receives. */
  receiveCompletionQueue: IND2CompletionQueue;
  /** Gets the results of all other requests; may be the same. */
  initiatorCompletionQueue: IND2CompletionQueue;
  /** Every result returns it. */
  context?: unknown;
  /** Maximum of outstanding requests other than Receives. */
  initiatorQueueDepth: number;
  /** Scatter/gather entries of a Send, Read or Write, at least; default 1. The queue pair has the granted number. */
  maxInitiatorRequestSge?: number;
  /** Maximum bytes of a request with INLINE; default 0. */
  inlineDataSize?: number;
}

/** Attributes of a new queue pair. */
export interface Nd2QueuePairOptions extends Nd2InitiatorOptions {
  /** Maximum of outstanding Receives. */
  receiveQueueDepth: number;
  /** Scatter/gather entries of a Receive, at least; default 1. The queue pair has the granted number. */
  maxReceiveRequestSge?: number;
}

/** Attributes of a new queue pair whose Receives come from a shared receive queue. */
export interface Nd2SrqQueuePairOptions extends Nd2InitiatorOptions {
  /** Where it takes its Receives from. */
  sharedReceiveQueue: IND2SharedReceiveQueue;
}
