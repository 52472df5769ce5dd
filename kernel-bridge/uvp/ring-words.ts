/**
 * Words of the rings that the HCA's threads read and write, too. A counter is read before what it counts, and written after.
 *
 * V8 calls a builtin for each use of `Atomics`. x86 keeps loads in order among each other, and stores, and V8 takes
 * nothing out of a typed array twice from a register: so plain ones will do there, wherever no store must be seen before a
 * later load.
 */
const PLAIN = process.arch === 'x64' || process.arch === 'ia32';

/** What is read afterwards is at least as new. */
export function loadAcquire(words: Uint32Array, index: number): number {
  return PLAIN ? words[index]! : Atomics.load(words, index);
}

/** What was written before is seen by who sees this. */
export function storeRelease(words: Uint32Array, index: number, value: number): void {
  if (PLAIN) words[index] = value;
  else Atomics.store(words, index, value);
}
