import { DirectOperation, DirectResult } from '../kernel-bridge/schema/generated/numbers.js';
import { asAddress } from './checked-numbers.js';
import type { RemoteMemoryRef, WvRemoteMemory } from './interfaces.js';
import { checkedObject, Status, WvError } from './status.js';

/** What `direct` of a queue pair does with the peer's memory. */
export const WvDirect = {
  /** Copies the bytes there. */
  WRITE: DirectOperation.write,
  /** Copies into the bytes. */
  READ: DirectOperation.read,
  /** Adds the 8 bytes, an integer in the processor's byte order; they become the previous value. */
  FETCH_ADD: DirectOperation.fetchAdd,
  /** Puts the second 8 bytes there if the first 8 are there. These become the previous value. */
  COMPARE_EXCHANGE: DirectOperation.compareExchange,
} as const;
/** A value of {@link WvDirect}. */
export type WvDirect = (typeof WvDirect)[keyof typeof WvDirect];

/** How `direct` of a queue pair ends. */
export const WvDirectResult = {
  /** It is done. */
  DONE: DirectResult.done,
  /** The peer's memory is not mapped in this process yet; the peer has been asked for it. Until then, post a request. */
  NOT_MAPPED: DirectResult.notMapped,
  /** The peer's key does not allow it, or the peer is not a process on this host whose memory this process can map. */
  REFUSED: DirectResult.refused,
  /** The peer took its memory away during an atomic operation, which may have been executed. */
  UNKNOWN: DirectResult.unknown,
} as const;
/** A value of {@link WvDirectResult}. */
export type WvDirectResult = (typeof WvDirectResult)[keyof typeof WvDirectResult];

/**
 * A peer's memory: made once from the peer's description; read, write and atomic requests add an offset in bytes.
 *
 * @example
 * const remote = new RemoteMemory({ address: message.readBigUInt64BE(0), rkey: message.readUInt32BE(8) });
 * qp.write(context, [{ region, offset: 0, length: 4096 }], WvSend.SIGNALED, remote, 0);
 */
export class RemoteMemory implements RemoteMemoryRef {
  /** Of the first byte, 64 bits. */
  readonly address: bigint;
  /** The number on the wire. */
  readonly rkey: number;
  /** The low 32 bits of the address. */
  readonly addressLow: number;
  /** The high 32 bits of the address. */
  readonly addressHigh: number;

  /** @throws WvError INVALID_PARAMETER: the address has more than 64 bits, or the key more than 32. */
  constructor(memory: WvRemoteMemory) {
    const { address: given, rkey } = checkedObject('The remote memory', memory, 'address and rkey');
    const address = asAddress(given);
    if (address === undefined) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `The remote address is ${String(given)}; it takes a bigint from 0 to 2^64 - 1, or a whole number below 2^53.`,
      );
    }
    if (rkey >>> 0 !== rkey) {
      throw new WvError(Status.INVALID_PARAMETER, `The rkey is ${rkey}; it takes an unsigned 32-bit number.`);
    }
    this.address = address;
    this.rkey = rkey;
    this.addressLow = Number(address & 0xffff_ffffn);
    this.addressHigh = Number(address >> 32n);
  }
}

// As for MemoryRegion: its fields have their widest representation from the first on.
new RemoteMemory({ address: 0xffff_ffff_ffff_ffffn, rkey: 0xffff_ffff });
