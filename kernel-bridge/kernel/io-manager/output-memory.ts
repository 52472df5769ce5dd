/**
 * Reused memory for answers. V8 moves small arrays out of its heap when a view of them is made, and all longer ones;
 * that costs more than clearing used memory.
 */

/** Longer answers are rare. */
const LONGEST = 512;
/** Per length; most requests are completed before the next is taken. */
const MOST = 4;

/** Free arrays by their length. */
export class OutputMemory {
  readonly #spare = new Map<number, Uint8Array[]>();

  /** Zeroed bytes for exclusive use until they are given back. */
  take(length: number): Uint8Array {
    return this.#spare.get(length)?.pop()?.fill(0) ?? new Uint8Array(new ArrayBuffer(length));
  }

  /** The caller has no further use for these bytes. */
  giveBack(bytes: Uint8Array): void {
    const { length } = bytes;
    if (length === 0 || length > LONGEST) return;
    const spare = this.#spare.get(length);
    if (spare === undefined) this.#spare.set(length, [bytes]);
    else if (spare.length < MOST) spare.push(bytes);
  }
}
