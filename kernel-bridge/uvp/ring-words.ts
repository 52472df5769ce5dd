/**
 * Access to ring words that the HCA's threads read and write as well. A counter is read before the entries that it counts, and
 * written after them.
 *
 * V8 calls a builtin for each use of `Atomics`. On x86 plain accesses suffice, except where a store must become visible before a
 * later load: x86 reorders neither loads with loads nor stores with stores, and V8 reads a typed array's element from memory each
 * time.
 */
const PLAIN = process.arch === 'x64' || process.arch === 'ia32';

/** Reads a word; later reads see memory at least as new. */
export function loadAcquire(words: Uint32Array, index: number): number {
  return PLAIN ? words[index]! : Atomics.load(words, index);
}

/** Writes a word; a thread that sees it also sees all earlier writes. */
export function storeRelease(words: Uint32Array, index: number, value: number): void {
  if (PLAIN) words[index] = value;
  else Atomics.store(words, index, value);
}
