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
/** Result of {@link EntryLookup.find} if the owner is changing the entry. */
export const CHANGING = -2;

/** Orders earlier loads before later ones: a release store followed by an acquire load. */
const fence = new Int32Array(1);

/**
 * Finds entries in the memory of a shared map: its owner's, or a view of it. The memory is not trusted. Each offset and length is checked,
 * so arbitrary memory contents yield no entry or the bytes of another one, but never bytes from outside the map.
 */
export class EntryLookup {
  /** The memory of the map. */
  readonly bytes: Buffer;
  /** The same memory as 32-bit words. */
  readonly words: Int32Array;
  readonly #times: Float64Array;
  readonly #heap: number;
  readonly #buckets: number;
  readonly #units: number;
  /** The slot that was found. */
  slot = -1;
  /** Offset of its value in {@link bytes}. */
  at = 0;
  /** Expiry time on the owner's clock; 0: never. */
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

  /** Number of entries, including expired ones that have not been removed. */
  get size(): number {
    return Atomics.load(this.words, 0) >>> 0;
  }

  /**
   * Finds the entry of a key.
   *
   * @param expired - whether to find expired entries
   * @returns bytes of its value, which begins at {@link at}; or ABSENT or CHANGING. The value is valid only if {@link whole} is true after
   *   it was copied.
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
      // It is another key, or the slot of this one has changed meanwhile.
      if (!this.whole) return CHANGING;
    }
    return ABSENT;
  }

  /** Size in bytes of the value if an entry with the key is there; otherwise -1. */
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

  /** Whether the entry that was found is unchanged. */
  get whole(): boolean {
    Atomics.store(fence, 0, 0);
    return Atomics.load(this.words, HEAD_BYTES / 4 + this.slot * SLOT_WORDS + Slot.VERSION) === this.#version;
  }
}

/** The first slot of a key's bucket. */
export function firstSlot(hash: KeyHash, buckets: number): number {
  return Math.floor((hash.high * buckets) / 2 ** 32) * BUCKET_SLOTS;
}
