/** Memory for received bytes, which several chunks share. */

/** Memory from which {@link unfilled} takes, and how much of it has been taken. */
let slab = new ArrayBuffer(0);
let taken = 0;

/** Bytes of a slab, and of a chunk that is worth a part of one. */
const SLAB_BYTES = 262_144;
const PART_BYTES = 16_384;

/**
 * New memory with any contents. Several long chunks share an allocation: new memory costs more than a copy, because the system fills each
 * page with zeros and the allocator gives what was freed back to the system. That is less so for large allocations.
 */
export function unfilled(length: number): Buffer {
  if (length < PART_BYTES || length > SLAB_BYTES) return Buffer.allocUnsafe(length);
  if (taken + length > slab.byteLength) {
    slab = Buffer.allocUnsafeSlow(SLAB_BYTES).buffer as ArrayBuffer;
    taken = 0;
  }
  const part = Buffer.from(slab, taken, length);
  taken += length;
  return part;
}

/** A copy in new memory. */
export function copyOf(bytes: Uint8Array): Buffer {
  const copy = unfilled(bytes.length);
  copy.set(bytes);
  return copy;
}
