import { shown } from '../kernel-bridge/ioctl/shown.js';
import { DirectOperation, DirectResult } from '../kernel-bridge/schema/generated/numbers.js';
import { asAddress } from './checked-numbers.js';
import type { RemoteMemoryRef, WvRemoteMemory } from './interfaces.js';
import { checkedObject, Status, WvError } from './status.js';

/** Operations of a queue pair's `direct` on the peer's memory. @enum */
export const WvDirect = {
  /** Copies the bytes to the peer's memory. */
  WRITE: DirectOperation.write,
  /** Copies the peer's memory into the bytes. */
  READ: DirectOperation.read,
  /**
   * Adds the 8 bytes, an integer in the CPU's byte order, to the peer's memory; the bytes receive the previous value.
   */
  FETCH_ADD: DirectOperation.fetchAdd,
  /** Stores the second 8 bytes if the peer's memory equals the first 8; these receive the previous value. */
  COMPARE_EXCHANGE: DirectOperation.compareExchange,
} as const;
/** A value of {@link WvDirect}. */
export type WvDirect = (typeof WvDirect)[keyof typeof WvDirect];

/** Results of a queue pair's `direct`. @enum */
export const WvDirectResult = {
  /** The operation is done. */
  DONE: DirectResult.done,
  /**
   * The peer's memory is not mapped in this process yet, but has been requested. Until then, post a request instead.
   */
  NOT_MAPPED: DirectResult.notMapped,
  /** The peer's key does not allow it, or the peer is not a process on this host whose memory this process can map. */
  REFUSED: DirectResult.refused,
  /** The peer withdrew its memory during an atomic operation, which may have been executed. */
  UNKNOWN: DirectResult.unknown,
} as const;
/** A value of {@link WvDirectResult}. */
export type WvDirectResult = (typeof WvDirectResult)[keyof typeof WvDirectResult];

/**
 * A peer's memory, created once from the peer's description. Read, write and atomic requests add an offset in bytes.
 *
 * @example
 * const remote = new RemoteMemory({ address: message.readBigUInt64BE(0), rkey: message.readUInt32BE(8) });
 * qp.write(context, [{ region, offset: 0, length: 4096 }], WvSend.SIGNALED, remote, 0);
 */
export class RemoteMemory implements RemoteMemoryRef {
  /** The address of the first byte, 64 bits. */
  readonly address: bigint;
  /** The peer's key, 32 bits. */
  readonly rkey: number;
  /** The low 32 bits of the address. */
  readonly addressLow: number;
  /** The high 32 bits of the address. */
  readonly addressHigh: number;

  /** @throws WvError INVALID_PARAMETER (the address has more than 64 bits, or the key more than 32) */
  constructor(memory: WvRemoteMemory) {
    const { address: given, rkey } = checkedObject('memory', memory, 'address and rkey');
    const address = asAddress(given);
    if (address === undefined) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`address\` must be a bigint from 0 to 2^64 - 1, or an integer below 2^53; got ${shown(given)}.`,
      );
    }
    if (typeof rkey !== 'number' || rkey >>> 0 !== rkey) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`rkey\` must be an unsigned 32-bit integer; got ${shown(rkey)}.`,
      );
    }
    this.address = address;
    this.rkey = rkey;
    this.addressLow = Number(address & 0xffff_ffffn);
    this.addressHigh = Number(address >> 32n);
  }
}

// As for MemoryRegion, this gives the fields of the class their widest representation from the start.
new RemoteMemory({ address: 0xffff_ffff_ffff_ffffn, rkey: 0xffff_ffff });
