/** Memory: registered regions, the pieces of them that requests name, windows, and memory of a peer. */
import type { WvUnknown } from './interfaces-objects.js';

/** Registered memory: keys and where it lies. Requests address it by offset. */
export interface WvMemoryRegion {
  readonly lkey: number;
  /** 0 when no remote right was asked for. */
  readonly rkey: number;
  /** Native start address, below 2^47. */
  readonly address: number;
  /** Bytes. */
  readonly length: number;
  /**
   * The memory itself; INLINE requests are copied from it. ACCESS_VIOLATION is thrown, here and by requests that name the region, once its
   * ArrayBuffer was detached: the device has the memory until it is deregistered, and the program has not.
   */
  readonly bytes?: Uint8Array;
}

/** A piece of registered memory: `length` bytes at `offset` bytes into the region. */
export interface WvSge {
  region: Pick<WvMemoryRegion, 'lkey' | 'address' | 'bytes'>;
  offset: number;
  length: number;
}

/** What a peer tells of its memory: a {@link RemoteMemory} is made of it. */
export interface WvRemoteMemory {
  /** Of the first byte, 64 bits. */
  readonly address: bigint;
  /** The number on the wire, 32 bits. */
  readonly rkey: number;
}

/** What requests take as remote memory: `RemoteMemory` of this package. */
export interface RemoteMemoryRef {
  readonly addressLow: number;
  readonly addressHigh: number;
  readonly rkey: number;
}

/** A key for a part of a region, granted and withdrawn by requests (IBA 1 §10.6.7). */
export interface IWVMemoryWindow extends WvUnknown {
  /** The key of the latest bind. */
  readonly rkey: number;
}
