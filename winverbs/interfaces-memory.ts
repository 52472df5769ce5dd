/** Memory: registered regions, scatter/gather entries, windows, and memory of a peer. */
import type { WvUnknown } from './interfaces-objects.js';

/** Registered memory: its keys and address. Requests address it by offset. */
export interface WvMemoryRegion {
  /** The key that the HCA checks this side's SGEs by. */
  readonly lkey: number;
  /** 0 if no remote right was requested. */
  readonly rkey: number;
  /** What its first byte is called: the native address, below 2^47, or 0 with ZERO_BASED. Peers are told this. */
  readonly address: number;
  /** Bytes. */
  readonly length: number;
  /**
   * The memory itself; INLINE requests copy from it. Once its ArrayBuffer was detached, reading this and requests that
   * name the region throw ACCESS_VIOLATION: the device keeps the memory until it is deregistered, but the program has
   * lost it.
   */
  readonly bytes?: Uint8Array;
}

/** A part of registered memory: `length` bytes at `offset` bytes into the region. */
export interface WvSge {
  /** The region that `registerMemory` returned. The HCA checks that the entry lies within it. */
  region: Pick<WvMemoryRegion, 'lkey' | 'address' | 'bytes'>;
  /** Bytes from the start of the region. */
  offset: number;
  /** Bytes; an entry of 0 names no memory. */
  length: number;
}

/** A peer's description of its memory: a {@link RemoteMemory} is made from it. */
export interface WvRemoteMemory {
  /** Of the first byte, 64 bits: a bigint, or a number below 2^53. */
  readonly address: bigint | number;
  /** The number on the wire, 32 bits. */
  readonly rkey: number;
}

/** Remote memory in requests: `RemoteMemory` of this package. */
export interface RemoteMemoryRef {
  /** The low 32 bits of the first byte's address. */
  readonly addressLow: number;
  /** The high 32 bits of the first byte's address. */
  readonly addressHigh: number;
  /** The peer's key, 32 bits, as the number on the wire. */
  readonly rkey: number;
}

/**
 * A region that is allocated once and registered by requests, without the kernel: fast registration (IBA 1 §10.6.6), the type of memory
 * region that Linux calls `IB_MR_TYPE_MEM_REG` and NDKPI a fast-register MR. Its key grants nothing until a request has registered
 * memory, nor after it was invalidated by its owner or by the peer's Send with Invalidate. While it is registered, SGEs may name it.
 * @example
 * ```ts
 * const fast = pd.allocateFastRegion(1 << 20);
 * const memory = { region, offset: 65_536, length: 4096 };
 * const rkey = qp.fastRegister(fast, 'register', memory, WvAccess.REMOTE_WRITE, WvSend.SIGNALED);
 * // The peer writes by this key, until it ends.
 * qp.invalidateRegion(fast, 'invalidate', WvSend.SIGNALED);
 * ```
 */
export interface IWVFastRegion extends WvUnknown, WvMemoryRegion {
  /** The greatest length of a registration in bytes. */
  readonly maxLength: number;
}

/**
 * A key for a part of a region, granted and withdrawn by requests (IBA 1 §10.6.7).
 *
 * @example
 * ```ts
 * const window = pd.allocateMemoryWindow();
 * const rkey = qp.bindMemoryWindow(window, 'bind', region, 0, 4096, WvAccess.REMOTE_READ, WvSend.SIGNALED);
 * // The peer reads by this key, until it ends.
 * qp.invalidateMemoryWindow(window, 'invalidate', WvSend.SIGNALED);
 * ```
 */
export interface IWVMemoryWindow extends WvUnknown {
  /** The key of the latest bind. */
  readonly rkey: number;
}
