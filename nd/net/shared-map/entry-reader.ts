import { kindOf } from '../../../kernel-bridge/ioctl/shown.js';
import { outOfRange, wrongType } from '../base/checks.js';
import { NetError } from '../base/errors.js';
import { ABSENT, CHANGING, type EntryLookup } from './entry-lookup.js';
import type { KeyHash } from './key-hash.js';

/** Attempts to read an entry that the owner is changing before the reader sleeps between them. */
const SPINS = 100;
const SLEEP_MS = 0.05;
/** How long a reader waits. Changing an entry takes less than 1 ms unless the owner is stopped meanwhile. */
const MOST_MS = 100;

/** Up to this many bytes, a loop copies faster than a call. */
const SHORT = 96;
/** 32-bit words of a slab, which has 8 KiB like those of `Buffer.allocUnsafe()`. */
const SLAB_WORDS = 2048;

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** Copies values from memory whose owner may change them at any time. */
export class EntryReader {
  /** When the reader gives up. */
  #until = 0;
  /** The memory of short values. */
  #slab = new Int32Array(SLAB_WORDS);
  /** Index of its first free word. */
  #free = 0;

  constructor(
    private readonly lookup: EntryLookup,
    private readonly hash: KeyHash,
  ) {}

  /** Whether there is an entry with the key. */
  has(key: string): boolean {
    this.hash.of(key);
    for (let attempts = 0; ; attempts += 1) {
      const length = this.lookup.find(this.hash);
      if (length !== CHANGING) return length >= 0;
      this.#wait(attempts, MOST_MS);
    }
  }

  /** Copies the value. @param mostMs - maximum wait for the owner, in ms */
  get(key: string, mostMs = MOST_MS): Buffer | undefined {
    this.hash.of(key);
    for (let attempts = 0; ; attempts += 1) {
      const length = this.lookup.find(this.hash);
      if (length === ABSENT) return undefined;
      if (length >= 0) {
        const value = length <= SHORT ? this.#shortValue(length) : this.#longValue(length);
        if (this.lookup.whole) return value;
      }
      this.#wait(attempts, mostMs);
    }
  }

  /** Copies the value. Returns its length, or -1 if the key has no entry. */
  getInto(key: string, target: Uint8Array): number {
    if (!(target instanceof Uint8Array))
      throw wrongType(`\`target\` must be a Uint8Array; got ${kindOf(target)}.`);
    this.hash.of(key);
    for (let attempts = 0; ; attempts += 1) {
      const length = this.lookup.find(this.hash);
      if (length === ABSENT) return -1;
      if (length >= 0) {
        const fits = length <= target.length;
        if (fits) this.#copy(target, length);
        if (this.lookup.whole) {
          if (fits) return length;
          throw outOfRange(
            `\`target\` must have at least ${length} bytes, the length of the value; got ${target.length}.`,
          );
        }
      }
      this.#wait(attempts, MOST_MS);
    }
  }

  #longValue(length: number): Buffer {
    const value = Buffer.allocUnsafe(length);
    this.#copy(value, length);
    return value;
  }

  /** Copies a short value by words, which is faster than by bytes. Values begin at multiples of 8, both in the map and here. */
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

  /** Waits while the owner changes the entry. @throws NetError `EBUSY` after `mostMs` */
  #wait(attempts: number, mostMs: number): void {
    if (attempts < SPINS) return;
    if (attempts === SPINS) this.#until = performance.now() + mostMs;
    if (performance.now() >= this.#until)
      throw new NetError(
        'EBUSY',
        'The owner of the shared map stopped while it was changing this entry. Retry, or use getAsync(), which waits.',
      );
    Atomics.wait(sleeper, 0, 0, SLEEP_MS);
  }
}
