/** Test data that both sides generate from a seed, so that the receiver can compare every byte. */

/** Fills a buffer with pseudo-random 32-bit words of this seed (xorshift32), and the remaining bytes. */
export function fillPattern(bytes: Uint8Array, seed: number): void {
  // The generator would never leave a state of 0.
  let state = (seed ^ 0x9e37_79b9) >>> 0 || 1;
  const words = new Uint32Array(Math.ceil(bytes.length / 4));
  for (let i = 0; i < words.length; i += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    words[i] = state;
  }
  bytes.set(new Uint8Array(words.buffer, 0, bytes.length));
}

/** Compares all bytes. Returns the offset of the first difference, or -1. */
export function firstDifference(actual: Uint8Array, expected: Uint8Array): number {
  if (actual.length === expected.length && Buffer.compare(actual, expected) === 0) return -1;
  const length = Math.min(actual.length, expected.length);
  for (let i = 0; i < length; i += 1) if (actual[i] !== expected[i]) return i;
  return length;
}
