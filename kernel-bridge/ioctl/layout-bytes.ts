/** Reads and writes numbers and byte runs of structures, for the table interpreter and the generated code. */

/** Byte runs up to this length are copied in a loop, which costs less than a view. */
const shortRun = 40;

/** Scratch for 64-bit numbers: a view of the input would make V8 move its bytes out of the heap. */
const longBytes = new Uint8Array(8);
const longView = new DataView(longBytes.buffer);

/** Whether a value is an unsigned integer of at most 32 bits and not above `max`. */
export function isUint(value: unknown, max: number): value is number {
  return typeof value === 'number' && value >>> 0 === value && value <= max;
}

/** Whether a value is an unsigned integer of 64 bits. */
export function isLong(value: unknown): value is bigint {
  return typeof value === 'bigint' && BigInt.asUintN(64, value) === value;
}

/** Whether a value is a run of at most `size` bytes. */
export function isRun(value: unknown, size: number): value is Uint8Array {
  return value instanceof Uint8Array && value.length <= size;
}

/** The unsigned integer of 32 bits at `at`, little-endian. */
export function get32(from: Uint8Array, at: number): number {
  return (from[at]! | (from[at + 1]! << 8) | (from[at + 2]! << 16) | (from[at + 3]! << 24)) >>> 0;
}

/** Writes an unsigned integer of 32 bits, little-endian. */
export function put32(to: Uint8Array, at: number, value: number): void {
  to[at] = value;
  to[at + 1] = value >>> 8;
  to[at + 2] = value >>> 16;
  to[at + 3] = value >>> 24;
}

/** The unsigned integer of 16 bits at `at`, in network order. */
export function get16be(from: Uint8Array, at: number): number {
  return (from[at]! << 8) | from[at + 1]!;
}

/** Writes an unsigned integer of 16 bits, in network order. */
export function put16be(to: Uint8Array, at: number, value: number): void {
  to[at] = value >>> 8;
  to[at + 1] = value;
}

/** The unsigned integer of 32 bits at `at`, in network order. */
export function get32be(from: Uint8Array, at: number): number {
  return ((from[at]! << 24) | (from[at + 1]! << 16) | (from[at + 2]! << 8) | from[at + 3]!) >>> 0;
}

/** Writes an unsigned integer of 32 bits, in network order. */
export function put32be(to: Uint8Array, at: number, value: number): void {
  to[at] = value >>> 24;
  to[at + 1] = value >>> 16;
  to[at + 2] = value >>> 8;
  to[at + 3] = value;
}

/** The unsigned integer of 64 bits at `at`. */
export function get64(from: Uint8Array, at: number, little: boolean): bigint {
  for (let i = 0; i < 8; i++) longBytes[i] = from[at + i]!;
  return longView.getBigUint64(0, little);
}

/** Writes an unsigned integer of 64 bits. */
export function put64(to: Uint8Array, at: number, value: bigint, little: boolean): void {
  longView.setBigUint64(0, value, little);
  for (let i = 0; i < 8; i++) to[at + i] = longBytes[i]!;
}

/** A copy of the `size` bytes at `at`, in a new array: slice() of a Buffer returns a view. */
export function copyBytes(from: Uint8Array, at: number, size: number): Uint8Array {
  const copy = new Uint8Array(size);
  if (size <= shortRun) for (let i = 0; i < size; i++) copy[i] = from[at + i]!;
  else copy.set(from.subarray(at, at + size));
  return copy;
}

/** Writes a field of `size` bytes; bytes beyond `value` become zero. */
export function putBytes(to: Uint8Array, at: number, size: number, value: Uint8Array): void {
  const { length } = value;
  if (length <= shortRun) for (let i = 0; i < length; i++) to[at + i] = value[i]!;
  else to.set(value, at);
  clearBytes(to, at + length, size - length);
}

/** Zeroes `size` bytes. */
export function clearBytes(to: Uint8Array, at: number, size: number): void {
  if (size > shortRun) to.fill(0, at, at + size);
  else for (let i = 0; i < size; i++) to[at + i] = 0;
}

/**
 * The bits of the byte at `index` within the bits from `first` to `end`: their number, and their distance from the
 * lowest bit.
 */
function partOf(index: number, first: number, end: number): { take: number; up: number } {
  const last = Math.min(end, index * 8 + 8);
  return { take: last - Math.max(first, index * 8), up: index * 8 + 8 - last };
}

/** The unsigned integer of `size` bytes, or eighths of one, at `at`. */
export function getUint(from: Uint8Array, at: number, size: number, littleEndian: boolean): number {
  let value = 0;
  if (littleEndian) {
    for (let i = size; i-- > 0; ) value = value * 256 + from[at + i]!;
    return value;
  }
  const end = at + size;
  for (let index = Math.floor(at); index < end; index++) {
    const { take, up } = partOf(index, at * 8, end * 8);
    value = value * 2 ** take + ((from[index]! >> up) & (2 ** take - 1));
  }
  return value;
}

/** Writes an unsigned integer of `size` bytes, or eighths of one; big-endian into bits that are zero. */
export function putUint(
  to: Uint8Array,
  at: number,
  size: number,
  littleEndian: boolean,
  value: number,
): void {
  let left = value;
  if (littleEndian) {
    for (let i = 0; i < size; i++, left = Math.floor(left / 256)) to[at + i] = left % 256;
    return;
  }
  const end = at + size;
  for (let index = Math.ceil(end) - 1; index + 1 > at; index--) {
    const { take, up } = partOf(index, at * 8, end * 8);
    to[index]! |= (left % 2 ** take) << up;
    left = Math.floor(left / 2 ** take);
  }
}
