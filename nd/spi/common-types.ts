/**
 * Types that both versions of the ND SPI share, and values that clients and providers of v1 exchange: flags,
 * scatter/gather entries, results, memory handles and memory window descriptors. Sources: ND SPI v1 (ndspi.h, nddef.h).
 */
import { kindOf, shown } from '../../kernel-bridge/ioctl/shown.js';
import {
  asAddress,
  type GetResultOptions,
  type Overlapped,
  type SocketAddress,
} from '../../winverbs/index.js';

/**
 * An IP address and port, as every method accepts it: text (`'192.0.2.1:18515'`, `'[fe80::1%2]:18515'`) or an object.
 * The object's `family` is optional, because the address determines it.
 */
export type NdAddress =
  | string
  | (Omit<SocketAddress, 'family'> & {
      /** 4 for IPv4 or 6 for IPv6. By default, that of the address. */
      readonly family?: 4 | 6 | undefined;
    });

/** Interfaces of both versions by name, in place of IIDs. More may be added. */
export interface NdInterfaces {
  /** The interface of every object. */
  IUnknown: NdUnknown;
}

/** The base of every object. */
export interface NdUnknown {
  /**
   * Returns the object as another of its interfaces, given by name instead of by IID, with a reference of its own. A
   * program can use it to find out what an object is.
   *
   * @param name - name of an interface, such as `'INDAdapter'`
   * @throws NOT_SUPPORTED (the object does not have this interface; the message names those that it has)
   * @see IUnknown::QueryInterface
   * @category Lifetime
   */
  queryInterface<N extends keyof NdInterfaces>(name: N): NdInterfaces[N];

  /**
   * Adds a reference and returns the new count. Never fails.
   *
   * @see IUnknown::AddRef
   * @category Lifetime
   */
  addRef(): number;
  /**
   * Releases a reference and returns the remaining count. The last release destroys the object. Never fails.
   *
   * @see IUnknown::Release
   * @category Lifetime
   */
  release(): number;
  /** {@link release}, for `using`. @category Lifetime */
  [Symbol.dispose](): void;
}

/** The common part of INDOverlapped and IND2Overlapped. */
export interface NdOverlappedObject extends NdUnknown {
  /**
   * Cancels every outstanding overlapped request of this object. When it returns, all of them have completed, with
   * CANCELED unless they completed before. It does nothing if no requests are outstanding, and does not affect requests
   * of other objects.
   *
   * @throws UNSUCCESSFUL if it could not cancel them
   * @see INDOverlapped::CancelOverlappedRequests, IND2Overlapped::CancelOverlappedRequests
   * @category Complete
   */
  cancelOverlappedRequests(): void;

  /**
   * Returns the result of a request, as `request.getResult(options)` does. It can be called any number of times.
   *
   * @param request - a request of this or any other object of the adapter
   * @param options - `wait`: block the thread until the request has completed
   * @throws the request's status; PENDING if it is outstanding and `wait` is not set
   * @see INDOverlapped::GetOverlappedResult, IND2Overlapped::GetOverlappedResult
   * @category Complete
   */
  getOverlappedResult<T>(request: Overlapped<T>, options?: GetResultOptions): T;
}

/** A completed request, as an {@link NdOverlappedFile} delivers it. */
export interface NdCompletedRequest {
  /** The request, with its status and result. */
  readonly request: Overlapped<unknown>;
  /** The object on which it was issued. */
  readonly issuer: NdOverlappedObject;
}

/**
 * A file for overlapped requests. In C it is a handle to bind to a completion port; here it is the port itself. It
 * delivers all completed requests that were issued on its objects, in order of completion, so that one loop can serve
 * any number of connectors and listeners. The requests can be awaited as well. Completed requests accumulate until
 * {@link next} returns them, so keep calling it.
 *
 * @example
 * ```ts
 * for await (const { request, issuer } of file) console.log(issuer, request.status);
 * ```
 */
export interface NdOverlappedFile extends AsyncIterableIterator<NdCompletedRequest, undefined>, Disposable {
  /** Number of requests that have not completed. */
  readonly outstanding: number;
  /** Whether {@link close} was called. */
  readonly closed: boolean;
  /**
   * Returns the next completed request, or `done` once the file is closed and all completed requests have been
   * returned. A failed request is returned like any other, so the call itself never fails.
   */
  next(): Promise<IteratorResult<NdCompletedRequest, undefined>>;
  /**
   * Cancels the outstanding requests and accepts no new ones. The objects created with the file remain usable. Never
   * fails.
   */
  close(): void;
}

/** Options of an adapter instance. They are not part of the SPI. */
export interface NdAdapterOptions {
  /**
   * The P_Key of the partition for connecting and listening: a 16-bit number, with the highest bit set for full
   * membership. Listeners of the instance refuse requests for other partitions. By default the instance connects in the
   * first partition of the port, and accepts requests of every partition that the port is in. The partition is an
   * attribute of the instance, because an address belongs to all partitions of its port.
   */
  readonly pkey?: number | undefined;
  /**
   * Selects what a peer's disconnect does to the queue pairs of the instance's connectors. With false (default), their
   * outstanding requests are flushed immediately, as NetworkDirect programs expect. With true, the requests remain
   * outstanding until this side disconnects, so that the program decides about them. `notifyDisconnect` completes in
   * either case. The value true requires the soft kernel; with others, creating a connector fails with
   * INVALID_PARAMETER.
   */
  readonly keepQueuePairsOnDisconnect?: boolean | undefined;
}

/** ND_OP_FLAG_*: flags of requests. Unknown bits fail with INVALID_PARAMETER_n. @enum */
export const NdOpFlag = {
  /** No result if the request succeeds; failures and cancellations still produce one. */
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
 * ND_MR_HANDLE: registered memory of one adapter instance. It is opaque: only the provider that created it can use it,
 * and only until it is deregistered.
 */
export interface NdMemoryHandle {
  /** Native address of the first byte. */
  readonly address: bigint;
  /** Length in bytes. */
  readonly length: number;
  /**
   * The handle in 4 bytes, the size of ND_MR_HANDLE in a 32-bit program. Every method accepts it in place of this
   * object.
   */
  readonly handle: number;
}

/**
 * ND_SGE: `length` bytes at `offset` bytes into registered memory. The entries are read during the call and can be
 * reused after it.
 *
 * `memory` may be a handle in 4 bytes, {@link NdMemoryHandle.handle}. It may be unregistered bytes if the request is
 * inline, that is, a Send or Write of at most `endpoint.maxInline` bytes in total; otherwise the request throws
 * INVALID_HANDLE.
 */
export interface NdSge {
  /** The result of registerMemory or its handle; for small Sends and Writes, any bytes. */
  memory: NdMemoryHandle | number | Uint8Array;
  /** Offset from the start of the memory, in bytes. */
  offset: number;
  /** Length in bytes; an entry of 0 refers to no memory. */
  length: number;
}

/**
 * ND_RESULT: the outcome of a request. It belongs to the client, which passes it with the request and recognizes it by
 * identity. `getResults` fills it in and returns it; afterwards it can be reused. Requests whose outcomes need not be
 * distinguished may share one.
 */
export interface NdResult {
  /** SUCCESS, or the reason of the failure; CANCELED for a flushed request. */
  status: number;
  /** Bytes received, or the length of the Send, Read or Write; 0 for Bind, Invalidate and failures. */
  bytesTransferred: number;
  /** Any value of the client; the provider ignores it. */
  context?: unknown;
}

/** ND_ADAPTER_INFO: limits of an adapter, inclusive. Sizes are in bytes. */
export interface NdAdapterInfo {
  /** The vendor's IEEE OUI. */
  readonly vendorId: number;
  /** The vendor's device number. */
  readonly deviceId: number;
  /** Maximum scatter/gather entries of a Receive. */
  readonly maxInboundSge: number;
  /** Maximum outstanding Receives per endpoint. */
  readonly maxInboundRequests: number;
  /** Maximum total length of a Receive, in bytes. */
  readonly maxInboundLength: number;
  /** Maximum scatter/gather entries of a Send, Read or Write. */
  readonly maxOutboundSge: number;
  /** Maximum outstanding Sends, Reads, Writes, Binds and Invalidates per endpoint. */
  readonly maxOutboundRequests: number;
  /** Maximum total length of any other request, in bytes. */
  readonly maxOutboundLength: number;
  /** Maximum length of an inline request, in bytes; its data is copied when it is posted. */
  readonly maxInlineData: number;
  /** Maximum Reads that peers may have in flight to an endpoint. */
  readonly maxInboundReadLimit: number;
  /** Maximum Reads that an endpoint may have in flight. */
  readonly maxOutboundReadLimit: number;
  /** Maximum entries of a completion queue. */
  readonly maxCqEntries: number;
  /** Maximum length of a registration, in bytes. */
  readonly maxRegistrationSize: number;
  /** Maximum length of a memory window, in bytes; 0: the adapter does not support windows. */
  readonly maxWindowSize: number;
  /**
   * Smallest length in bytes that is faster to register for a Read or Write than to copy for a Send. It is
   * measured when it is first read.
   */
  readonly largeRequestThreshold: number;
  /** Maximum private data for Connect, in bytes. */
  readonly maxCallerData: number;
  /** Maximum private data for Accept and Reject, in bytes. */
  readonly maxCalleeData: number;
}

/**
 * ND_MW_DESCRIPTOR: the description of a bound memory window, which a peer needs to Read or Write through it. The owner
 * sends its 20 bytes by any means; the peer decodes them once and passes the object to its requests.
 */
export class NdMwDescriptor {
  /**
   * Length of the wire form, in bytes: base (8), length (8), token (4), each in network byte order.
   * @category Encode
   */
  static readonly size = 20;

  /** Address of the window's first byte at its owner. @category Memory */
  readonly base: bigint;
  /** Length in bytes. @category Memory */
  readonly length: bigint;
  /** The window's key; it changes with every Bind. @category Memory */
  readonly token: number;

  // Requests add a numeric offset to the base without using BigInt. Therefore the words of the base and the token are
  // also available under the names that WinVerbs uses for remote memory.
  /** Low 32 bits of the base. @category Memory */
  readonly addressLow: number;
  /** High 32 bits of the base. @category Memory */
  readonly addressHigh: number;
  /** The token, under its name in WinVerbs. @category Memory */
  readonly rkey: number;

  /**
   * @param base - 64 bits: a bigint, or a number below 2^53 (also for `length`)
   * @throws RangeError if base or length exceed 64 bits, or token 32 bits
   * @category Encode
   */
  constructor(base: bigint | number, length: bigint | number, token: number) {
    const start = asAddress(base);
    const bytes = asAddress(length);
    if (start === undefined || bytes === undefined) {
      throw new RangeError(
        `\`base\` and \`length\` must be bigints from 0 to 2^64 - 1, or integers below 2^53; got ${shown(base)} and ${shown(length)}.`,
      );
    }
    if (typeof token !== 'number' || token >>> 0 !== token) {
      throw new RangeError(`\`token\` must be an unsigned 32-bit integer; got ${shown(token)}.`);
    }
    this.base = start;
    this.length = bytes;
    this.token = token;
    this.addressLow = Number(start & 0xffff_ffffn);
    this.addressHigh = Number(start >> 32n);
    this.rkey = token;
  }

  /**
   * Writes the wire form, 20 bytes, into `out` at `offset` and returns these bytes.
   *
   * @param out - where to write them, by default into new bytes
   * @param offset - bytes from the start of `out`
   * @throws RangeError if they do not fit
   * @category Encode
   */
  encode(out: Uint8Array = new Uint8Array(NdMwDescriptor.size), offset = 0): Uint8Array {
    const view = wireView(out, offset, NdMwDescriptor.size, 'out');
    view.setBigUint64(0, this.base);
    view.setBigUint64(8, this.length);
    view.setUint32(16, this.token);
    return out.subarray(offset, offset + NdMwDescriptor.size);
  }

  /**
   * Reads the wire form from `bytes` at `offset`.
   *
   * @param bytes - bytes that contain it
   * @param offset - bytes from the start of `bytes`
   * @throws RangeError if there are fewer bytes
   * @category Encode
   */
  static decode(bytes: Uint8Array, offset = 0): NdMwDescriptor {
    const view = wireView(bytes, offset, NdMwDescriptor.size);
    return new NdMwDescriptor(view.getBigUint64(0), view.getBigUint64(8), view.getUint32(16));
  }
}

/** @internal Returns a view of a wire form of `size` bytes. */
export function wireView(bytes: Uint8Array, offset: number, size: number, name = 'bytes'): DataView {
  if (!(bytes instanceof Uint8Array))
    throw new TypeError(`\`${name}\` must be a Uint8Array; got ${kindOf(bytes)}.`);
  if (!Number.isInteger(offset) || offset < 0 || offset + size > bytes.length) {
    throw new RangeError(
      `\`offset\` must leave ${size} bytes for the wire form; got ${shown(offset)} in ${bytes.length} bytes.`,
    );
  }
  return new DataView(bytes.buffer, bytes.byteOffset + offset, size);
}
