/**
 * Unpredictable numbers: PSNs, ids, the variable byte of keys. Loading `node:crypto` takes milliseconds, and longer in
 * a thread that is starting; the global `crypto` is loaded with the first number.
 */
const words = new Uint32Array(64);
let taken = words.length;

/** A random number of `bits` bits, 1 to 32. */
export function randomBits(bits: number): number {
  if (taken === words.length) {
    globalThis.crypto.getRandomValues(words);
    taken = 0;
  }
  const word = words[taken]!;
  words[taken++] = 0;
  return word >>> (32 - bits);
}
