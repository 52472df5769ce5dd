/**
 * Memory of answers, used again: small arrays of which somebody makes a view, and all longer ones, are moved out of the engine's
 * heap, which costs more than to clear what was used before.
 */

/** Longer answers are rare. */
const LONGEST = 512;
/** Of each length: most requests are over before the next is taken. */
const MOST = 4;

/** Arrays by their length. */
export class OutputMemory {
  readonly #spare = new Map<number, Uint8Array[]>();

  /** Bytes that are all zero, and nobody else's until they are given back. */
  take(length: number): Uint8Array {
    return this.#spare.get(length)?.pop()?.fill(0) ?? new Uint8Array(new ArrayBuffer(length));
  }

  /** Nobody looks at these bytes any more. */
  giveBack(bytes: Uint8Array): void {
    const { length } = bytes;
    if (length === 0 || length > LONGEST) return;
    const spare = this.#spare.get(length);
    if (spare === undefined) this.#spare.set(length, [bytes]);
    else if (spare.length < MOST) spare.push(bytes);
  }
}
