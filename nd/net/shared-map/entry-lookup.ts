import type { KeyHash } from './key-hash.js';
import {
  BUCKET_SLOTS,
  ENTRY_HEAD_BYTES,
  type Geometry,
  HEAD_BYTES,
  heapStart,
  SLOT_WORDS,
  Slot,
  UNIT_BYTES,
  valueStart,
} from './map-layout.js';

/** Results of {@link EntryLookup.find} besides the length of a value. */
export const ABSENT = -1;
/** The owner is just changing it. */
export const CHANGING = -2;

/** Orders loads before a fence and loads behind it: a release store, and an acquire load behind it. */
const fence = new Int32Array(1);

/**
 * Finds entries in the memory of a shared map: its owner's, or a view of it. Nothing in it is trusted: each offset and length is checked, so
 * that memory full of nonsense yields no entry, or another one's bytes, but none from outside the map.
 */
export class EntryLookup {
  /** The memory. */
  readonly bytes: Buffer;
  /** The same memory in words of 4 bytes. */
  readonly words: Int32Array;
  readonly #times: Float64Array;
  readonly #heap: number;
  readonly #buckets: number;
  readonly #units: number;
  /** The slot that was found. */
  slot = -1;
  /** Where its value begins, in {@link bytes}. */
  at = 0;
  /** When the entry expires, on the owner's clock; 0: never. */
  expiry = 0;
  #version = 0;

  constructor(
    memory: Uint8Array,
    geometry: Geometry,
    /** The owner's clock, in ms. */
    private readonly now: () => number,
  ) {
    const { buffer, byteOffset, length } = memory;
    this.bytes = Buffer.from(buffer, byteOffset, length);
    this.words = new Int32Array(buffer, byteOffset, length >>> 2);
    this.#times = new Float64Array(buffer, byteOffset, length >>> 3);
    this.#heap = heapStart(geometry);
    this.#buckets = geometry.buckets;
    this.#units = geometry.units;
  }

  /** Number of entries, expired ones that are not removed yet included. */
  get size(): number {
    return Atomics.load(this.words, 0) >>> 0;
  }

  /**
   * Finds the entry of a key.
   *
   * @param expired - also finds an entry that has expired
   * @returns bytes of its value, which begins at {@link at}; or ABSENT or CHANGING. The value counts if {@link whole} says so after it was
   *   copied.
   */
  find(hash: KeyHash, expired = false): number {
    const words = this.words;
    const first = firstSlot(hash, this.#buckets);
    for (let slot = first; slot < first + BUCKET_SLOTS; slot += 1) {
      const at = HEAD_BYTES / 4 + slot * SLOT_WORDS;
      if (words[at + Slot.TAG] !== hash.tag) continue;
      const version = Atomics.load(words, at + Slot.VERSION);
      if ((version & 1) !== 0) return CHANGING;
      this.slot = slot;
      this.#version = version;
      const length = this.#valueLength(hash, words[at + Slot.OFFSET]! >>> 0, words[at + Slot.ROOM]! >>> 0);
      if (length >= 0) {
        if (this.expiry === 0 || expired || this.now() < this.expiry) return length;
        return this.whole ? ABSENT : CHANGING;
      }
      // Another key, or the slot of this one has changed meanwhile.
      if (!this.whole) return CHANGING;
    }
    return ABSENT;
  }

  /** Bytes of the value, if an entry with the key is there; otherwise -1. */
  #valueLength(hash: KeyHash, offset: number, room: number): number {
    if (offset + room > this.#units) return -1;
    const start = this.#heap + offset * UNIT_BYTES;
    const keyLength = this.words[start / 4]!;
    const length = this.words[start / 4 + 1]! >>> 0;
    if (keyLength !== hash.length || valueStart(keyLength) + length > room * UNIT_BYTES) return -1;
    const { bytes, words } = this;
    const key = start + ENTRY_HEAD_BYTES;
    const whole = keyLength >>> 2;
    for (let i = 0; i < whole; i += 1) if (words[key / 4 + i] !== hash.words[i]) return -1;
    for (let i = 4 * whole; i < keyLength; i += 1) if (bytes[key + i] !== hash.bytes[i]) return -1;
    this.expiry = this.#times[start / 8 + 1]!;
    this.at = start + valueStart(keyLength);
    return length;
  }

  /** Whether the entry that was found has not changed since. */
  get whole(): boolean {
    Atomics.store(fence, 0, 0);
    return Atomics.load(this.words, HEAD_BYTES / 4 + this.slot * SLOT_WORDS + Slot.VERSION) === this.#version;
  }
}

/** The first slot of a key's bucket. */
export function firstSlot(hash: KeyHash, buckets: number): number {
  return Math.floor((hash.high * buckets) / 2 ** 32) * BUCKET_SLOTS;
}
