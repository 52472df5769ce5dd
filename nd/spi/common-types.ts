/**
 * Types that both versions of the ND SPI share, and values that clients and providers of v1 exchange: flags,
 * scatter/gather entries, results, memory handles and memory window descriptors. Sources: ND SPI v1 (ndspi.h, nddef.h).
 */
import {
  asAddress,
  type GetResultOptions,
  type Overlapped,
  type SocketAddress,
} from '../../winverbs/index.js';

/**
 * An IP address and port, as every method accepts it: text (`'192.0.2.1:18515'`, `'[fe80::1%2]:18515'`), or an object whose `family`
 * may be left out, because the address shows it.
 */
export type NdAddress =
  | string
  | (Omit<SocketAddress, 'family'> & {
      /** 4 for IPv4, 6 for IPv6; default: that of the address. */
      readonly family?: 4 | 6 | undefined;
    });

/** All interfaces by name, in place of IIDs: those of both versions, to which others may be added. */
export interface NdInterfaces {
  /** Every object has it. */
  IUnknown: NdUnknown;
}

/** The base of every object. */
export interface NdUnknown {
  /**
   * The object as another of its interfaces, named instead of by IID, with a reference of its own. So a program learns what an object
   * that it got from elsewhere is.
   *
   * @param name - of an interface, such as `'INDAdapter'`
   * @throws NOT_SUPPORTED: the object has no such interface; the message names those that it has.
   * @see IUnknown::QueryInterface
   */
  queryInterface<N extends keyof NdInterfaces>(name: N): NdInterfaces[N];

  /**
   * Adds a reference and returns their number. It never fails.
   *
   * @see IUnknown::AddRef
   */
  addRef(): number;
  /**
   * Releases a reference and returns the number left. The last one ends the object; it never fails.
   *
   * @see IUnknown::Release
   */
  release(): number;
  /** {@link release}, for `using`. */
  [Symbol.dispose](): void;
}

/** The common part of INDOverlapped and IND2Overlapped. */
export interface NdOverlappedObject extends NdUnknown {
  /**
   * Cancels every outstanding overlapped request of this object. When it returns, all of them have completed, with
   * CANCELED unless they were faster. Without outstanding requests it does nothing; requests of other objects continue.
   *
   * @throws UNSUCCESSFUL if it could not.
   * @see INDOverlapped::CancelOverlappedRequests, IND2Overlapped::CancelOverlappedRequests
   */
  cancelOverlappedRequests(): void;

  /**
   * GetOverlappedResult: the result of a request, of this or of any other object of the adapter, any number of times.
   * The same as `request.getResult(options)`.
   *
   * @param request - of this or of any other object of the adapter
   * @param options - `wait`: block the thread until the request has completed
   * @throws the request's status; PENDING if it is outstanding and `wait` is not set.
   * @see INDOverlapped::GetOverlappedResult, IND2Overlapped::GetOverlappedResult
   */
  getOverlappedResult<T>(request: Overlapped<T>, options?: GetResultOptions): T;
}

/** A request that has ended, as an {@link NdOverlappedFile} delivers it. */
export interface NdCompletedRequest {
  /** Its status and its result. */
  readonly request: Overlapped<unknown>;
  /** The object on which it was issued. */
  readonly issuer: NdOverlappedObject;
}

/**
 * A file for overlapped requests. In C it is a handle to bind to a completion port; here it is the port: it delivers all requests that
 * were issued on its objects and have ended, in that order, so that one loop can serve any number of connectors and listeners.
 * What it delivers can be awaited as well. It collects until somebody takes, so take from it.
 *
 * @example
 * ```ts
 * for await (const { request, issuer } of file) console.log(issuer, request.status);
 * ```
 */
export interface NdOverlappedFile extends AsyncIterableIterator<NdCompletedRequest, undefined>, Disposable {
  /** Requests that have not ended. */
  readonly outstanding: number;
  /** Whether {@link close} was called. */
  readonly closed: boolean;
  /**
   * The next request that has ended; `done` once the file is closed and all have been taken. A request that failed is a result like others,
   * so that the call itself never fails.
   */
  next(): Promise<IteratorResult<NdCompletedRequest, undefined>>;
  /** Cancels the outstanding requests, and takes no new ones. Its objects stay, and can be used without it. It never fails. */
  close(): void;
}

/** Of one adapter instance; the SPI itself has no such options. */
export interface NdAdapterOptions {
  /**
   * The partition in which the instance connects and listens, by its P_Key: a number of 16 bits, the highest for a full
   * member. Its listeners refuse requests for another partition. Default: it connects in the first partition of the port,
   * and accepts requests of each that the port is in. An address belongs to all partitions of its port, so that it is the
   * instance that has one.
   */
  readonly pkey?: number | undefined;
  /**
   * What a peer's disconnect does to the queue pairs of the instance's connectors. Default, false: their outstanding requests are
   * flushed at once, as programs for NetworkDirect expect. True: they stay as they are until this side disconnects, so that the
   * program decides what becomes of them; `notifyDisconnect` ends all the same. Needs the soft kernel: otherwise connectors are
   * refused with INVALID_PARAMETER.
   */
  readonly keepQueuePairsOnDisconnect?: boolean | undefined;
}

/** ND_OP_FLAG_*: flags of requests. Unknown bits are refused with INVALID_PARAMETER_n. */
export const NdOpFlag = {
  /** No result if the request succeeds; failures and cancellations give one all the same. */
  SILENT_SUCCESS: 0x1,
  /** The request starts after all earlier Reads of the endpoint have completed. */
  READ_FENCE: 0x2,
  /** Send only: wakes the peer's `notify('solicited')`. */
  SEND_AND_SOLICIT_EVENT: 0x4,
  /** Bind only: the peer may Read through the window. */
  ALLOW_READ: 0x8,
  /** Bind only: the peer may Write through the window. */
  ALLOW_WRITE: 0x10,
} as const;

/** ND_CQ_NOTIFY_*: the event of a completion queue to wait for. */
export type NdNotifyType = 'errors' | 'any' | 'solicited';

/**
 * ND_MR_HANDLE: registered memory of one adapter instance. Opaque: only the provider that made it can use it, and
 * only until it is deregistered.
 */
export interface NdMemoryHandle {
  /** Native address of the first byte. */
  readonly address: bigint;
  /** Bytes. */
  readonly length: number;
  /** The handle in 4 bytes, as ND_MR_HANDLE is in a 32-bit program: every method takes it in place of this object. */
  readonly handle: number;
}

/**
 * ND_SGE: `length` bytes at `offset` bytes into registered memory. The entries are read during the call and can be
 * reused after it.
 *
 * `memory` may be a handle in 4 bytes, {@link NdMemoryHandle.handle}. It may be unregistered bytes if the request goes inline (a Send or Write of at most `endpoint.maxInline` bytes
 * in all); otherwise that is INVALID_HANDLE.
 */
export interface NdSge {
  /** What registerMemory answered, or its handle; for small Sends and Writes also any bytes. */
  memory: NdMemoryHandle | number | Uint8Array;
  /** Bytes from the start of the memory. */
  offset: number;
  /** Bytes; an entry of 0 names no memory. */
  length: number;
}

/**
 * ND_RESULT: the outcome of a request. It belongs to the client, which passes it with the request; its identity is the
 * request's context. `getResults` fills it in and returns it. It can then be used again. Requests whose outcomes need
 * not be distinguished may share one.
 */
export interface NdResult {
  /** SUCCESS, or the reason of the failure; CANCELED for a flushed request. */
  status: number;
  /** Bytes received, or the length of the Send, Read or Write; 0 for Bind, Invalidate and failures. */
  bytesTransferred: number;
  /** Any value of the client; the provider ignores it. */
  context?: unknown;
}

/** ND_ADAPTER_INFO: limits of an adapter. Sizes in bytes; a value equal to a limit works. */
export interface NdAdapterInfo {
  /** The vendor's IEEE number. */
  readonly vendorId: number;
  /** The vendor's number of the device. */
  readonly deviceId: number;
  /** Scatter/gather entries of a Receive. */
  readonly maxInboundSge: number;
  /** Maximum of outstanding Receives per endpoint. */
  readonly maxInboundRequests: number;
  /** Maximum total bytes of a Receive. */
  readonly maxInboundLength: number;
  /** Scatter/gather entries of a Send, Read or Write. */
  readonly maxOutboundSge: number;
  /** Maximum of outstanding Sends, Reads, Writes, Binds and Invalidates per endpoint. */
  readonly maxOutboundRequests: number;
  /** Maximum total bytes of any other request. */
  readonly maxOutboundLength: number;
  /** Maximum bytes that are copied when the request is posted. */
  readonly maxInlineData: number;
  /** Reads that peers may have in flight against an endpoint. */
  readonly maxInboundReadLimit: number;
  /** Reads that an endpoint may have in flight. */
  readonly maxOutboundReadLimit: number;
  /** Maximum entries of a completion queue. */
  readonly maxCqEntries: number;
  /** Maximum bytes of a registration. */
  readonly maxRegistrationSize: number;
  /** Maximum bytes of a memory window; 0: the adapter has no windows. */
  readonly maxWindowSize: number;
  /** From this length on, registering memory for a Read or Write is faster than copying it for a Send: measured when it is first read. */
  readonly largeRequestThreshold: number;
  /** Private data of Connect. */
  readonly maxCallerData: number;
  /** Private data of Accept and Reject. */
  readonly maxCalleeData: number;
}

/**
 * ND_MW_DESCRIPTOR: the description of a bound memory window with which a peer can Read or Write through it. The owner
 * sends its 20 bytes (in any way); the peer decodes them once and passes the object to its requests.
 */
export class NdMwDescriptor {
  /** Bytes of the wire form: base (8), length (8), token (4), each in network byte order. */
  static readonly size = 20;

  /** Address of the window's first byte at its owner. */
  readonly base: bigint;
  /** Bytes. */
  readonly length: bigint;
  /** The window's key, as the number that is on the wire; it changes with every Bind. */
  readonly token: number;

  // Requests add a number offset to the base and use no BigInt: its words, and the token, by the names that the verbs
  // below use for remote memory.
  /** Low 32 bits of the base. */
  readonly addressLow: number;
  /** High 32 bits of the base. */
  readonly addressHigh: number;
  /** The token, under its name in the verbs. */
  readonly rkey: number;

  /**
   * @param base - 64 bits: a bigint, or a number below 2^53; so is `length`
   * @throws RangeError if base or length do not fit 64 bits, or token 32 bits.
   */
  constructor(base: bigint | number, length: bigint | number, token: number) {
    const start = asAddress(base);
    const bytes = asAddress(length);
    if (start === undefined || bytes === undefined) {
      throw new RangeError(
        `Base ${String(base)} and length ${String(length)} of a window must be bigints from 0 to 2^64 - 1, or whole numbers below 2^53.`,
      );
    }
    if (token >>> 0 !== token) {
      throw new RangeError(`The token of a window must be an unsigned 32-bit number, not ${String(token)}.`);
    }
    this.base = start;
    this.length = bytes;
    this.token = token;
    this.addressLow = Number(start & 0xffff_ffffn);
    this.addressHigh = Number(start >> 32n);
    this.rkey = token;
  }

  /**
   * Writes the 20 bytes of the wire form into `out` at `offset` and returns them.
   *
   * @param out - where to write them; default: new bytes
   * @param offset - bytes from the start of `out`
   * @throws RangeError if there is no room for them
   */
  encode(out: Uint8Array = new Uint8Array(NdMwDescriptor.size), offset = 0): Uint8Array {
    const view = wireView(out, offset, NdMwDescriptor.size);
    view.setBigUint64(0, this.base);
    view.setBigUint64(8, this.length);
    view.setUint32(16, this.token);
    return out.subarray(offset, offset + NdMwDescriptor.size);
  }

  /**
   * Reads the wire form from `bytes` at `offset`.
   *
   * @param bytes - that hold them
   * @param offset - bytes from the start of `bytes`
   * @throws RangeError if there are fewer bytes
   */
  static decode(bytes: Uint8Array, offset = 0): NdMwDescriptor {
    const view = wireView(bytes, offset, NdMwDescriptor.size);
    return new NdMwDescriptor(view.getBigUint64(0), view.getBigUint64(8), view.getUint32(16));
  }
}

/** @internal The place of a wire form of `size` bytes. */
export function wireView(bytes: Uint8Array, offset: number, size: number): DataView {
  if (!Number.isInteger(offset) || offset < 0 || offset + size > bytes.length) {
    throw new RangeError(
      `The wire form is ${size} bytes long; at offset ${offset} of ${bytes.length} bytes there is no room for it.`,
    );
  }
  return new DataView(bytes.buffer, bytes.byteOffset + offset, size);
}
