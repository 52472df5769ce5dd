/** Memory for received bytes, which several chunks share. */

/** The memory for allocations of {@link unfilled}, and the number of allocated bytes. */
let slab = new ArrayBuffer(0);
let taken = 0;

/** Size in bytes of a slab, and minimum length of chunks that share one. */
const SLAB_BYTES = 262_144;
const PART_BYTES = 16_384;

/**
 * Allocates uninitialized memory. Several long chunks share an allocation, because new memory costs more than a copy: Linux zeroes each
 * page, and the allocator returns freed memory to Linux. Large allocations reduce that cost.
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

/** Copies bytes to new memory. */
export function copyOf(bytes: Uint8Array): Buffer {
  const copy = unfilled(bytes.length);
  copy.set(bytes);
  return copy;
}
