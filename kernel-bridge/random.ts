/**
 * Numbers that nobody foretells: PSNs, ids, the changing byte of keys. Node takes milliseconds to load `node:crypto`, and many
 * for a thread that starts; the global is loaded with the first number.
 */
const words = new Uint32Array(64);
let taken = words.length;

/** A number of so many bits, 1 to 32. */
export function randomBits(bits: number): number {
  if (taken === words.length) {
    globalThis.crypto.getRandomValues(words);
    taken = 0;
  }
  const word = words[taken]!;
  words[taken++] = 0;
  return word >>> (32 - bits);
}
