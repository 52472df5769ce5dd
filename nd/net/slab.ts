/** Copies of received bytes, in memory that several of them share. */

/** Memory from which {@link copyOf} takes, and how much of it has been taken. */
let slab = new ArrayBuffer(0);
let taken = 0;

/** Bytes of a slab, and of a copy that is worth a part of one. */
const SLAB_BYTES = 262_144;
const PART_BYTES = 16_384;

/**
 * A copy in new memory. Several long ones share an allocation: new memory costs more than the copy, because the system fills each page
 * with zeros and the allocator gives what was freed back to the system. That is less so for large allocations.
 */
export function copyOf(bytes: Uint8Array): Buffer {
  const { length } = bytes;
  if (length < PART_BYTES || length > SLAB_BYTES) return Buffer.from(bytes);
  if (taken + length > slab.byteLength) {
    slab = Buffer.allocUnsafeSlow(SLAB_BYTES).buffer as ArrayBuffer;
    taken = 0;
  }
  const copy = Buffer.from(slab, taken, length);
  taken += length;
  copy.set(bytes);
  return copy;
}
