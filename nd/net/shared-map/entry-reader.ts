import { kindOf, outOfRange, wrongType } from '../base/checks.js';
import { NetError } from '../base/errors.js';
import { ABSENT, CHANGING, type EntryLookup } from './entry-lookup.js';
import type { KeyHash } from './key-hash.js';

/** Looks at an entry that the owner is changing, before the reader sleeps between them. */
const SPINS = 100;
const SLEEP_MS = 0.05;
/** How long a reader waits. An entry changes in less than 1 ms, unless the owner has been stopped meanwhile. */
const MOST_MS = 100;

/** Bytes that are copied by a loop faster than by a call. */
const SHORT = 96;
/** Words of 4 bytes of a slab. With 8 KiB, as those of `Buffer.allocUnsafe()`. */
const SLAB_WORDS = 2048;

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** Copies values out of memory in which the owner may change them at any time. */
export class EntryReader {
  /** When the reader gives up. */
  #until = 0;
  /** Short values are parts of it. */
  #slab = new Int32Array(SLAB_WORDS);
  /** Its first free word. */
  #free = 0;

  constructor(
    private readonly lookup: EntryLookup,
    private readonly hash: KeyHash,
  ) {}

  /** Whether there is an entry with the key. */
  has(key: string): boolean {
    this.hash.of(key);
    for (let looks = 0; ; looks += 1) {
      const length = this.lookup.find(this.hash);
      if (length !== CHANGING) return length >= 0;
      this.#wait(looks, MOST_MS);
    }
  }

  /** A copy of the value. @param mostMs - how long it may wait for the owner */
  get(key: string, mostMs = MOST_MS): Buffer | undefined {
    this.hash.of(key);
    for (let looks = 0; ; looks += 1) {
      const length = this.lookup.find(this.hash);
      if (length === ABSENT) return undefined;
      if (length >= 0) {
        const value = length <= SHORT ? this.#shortValue(length) : this.#longValue(length);
        if (this.lookup.whole) return value;
      }
      this.#wait(looks, mostMs);
    }
  }

  /** Copies the value. Returns its length; -1: there is none. */
  getInto(key: string, target: Uint8Array): number {
    if (!(target instanceof Uint8Array))
      throw wrongType(`\`target\` must be a Uint8Array; got ${kindOf(target)}.`);
    this.hash.of(key);
    for (let looks = 0; ; looks += 1) {
      const length = this.lookup.find(this.hash);
      if (length === ABSENT) return -1;
      if (length >= 0) {
        const fits = length <= target.length;
        if (fits) this.#copy(target, length);
        if (this.lookup.whole) {
          if (fits) return length;
          throw outOfRange(
            `\`target\` must have at least the ${length} bytes of the value; got ${target.length}.`,
          );
        }
      }
      this.#wait(looks, MOST_MS);
    }
  }

  #longValue(length: number): Buffer {
    const value = Buffer.allocUnsafe(length);
    this.#copy(value, length);
    return value;
  }

  /** Copied by words, which takes less time than by bytes. Values begin at multiples of 8 in the map, and so they do here. */
  #shortValue(length: number): Buffer {
    const { words, at } = this.lookup;
    const count = (length + 3) >>> 2;
    if (this.#free + count > SLAB_WORDS) {
      this.#slab = new Int32Array(SLAB_WORDS);
      this.#free = 0;
    }
    const slab = this.#slab;
    const free = this.#free;
    const from = at >>> 2;
    for (let i = 0; i < count; i += 1) slab[free + i] = words[from + i]!;
    this.#free = free + ((count + 1) & ~1);
    return Buffer.from(slab.buffer, 4 * free, length);
  }

  #copy(target: Uint8Array, length: number): void {
    const { bytes, at } = this.lookup;
    if (length <= SHORT) for (let i = 0; i < length; i += 1) target[i] = bytes[at + i]!;
    else target.set(bytes.subarray(at, at + length));
  }

  /** The owner is changing the entry. @throws NetError `EBUSY`: for a long time */
  #wait(looks: number, mostMs: number): void {
    if (looks < SPINS) return;
    if (looks === SPINS) this.#until = performance.now() + mostMs;
    if (performance.now() >= this.#until)
      throw new NetError(
        'EBUSY',
        'The owner of the shared map has stopped while it was changing this entry. Try again, or use getAsync(), which waits for it.',
      );
    Atomics.wait(sleeper, 0, 0, SLEEP_MS);
  }
}
