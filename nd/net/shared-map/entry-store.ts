import { EntryLookup, firstSlot } from './entry-lookup.js';
import { EntryRoom, type RoomUser } from './entry-room.js';
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
  unitsOf,
  valueStart,
} from './map-layout.js';

/** Slots to check for expired entries at each change, and at an insertion into a full map. */
const SWEEP = 2;
const SWEEP_FULL = 64;

/**
 * The entries of a shared map, in memory that others read while it changes. All decisions use private state, because a malicious program of
 * the same user could overwrite the memory.
 */
export class EntryStore implements RoomUser {
  readonly lookup: EntryLookup;
  /** Number of entries, including expired ones that have not been found. */
  count = 0;
  readonly #room: EntryRoom;
  readonly #words: Int32Array;
  readonly #times: Float64Array;
  readonly #heap: number;
  readonly #buckets: number;
  readonly #versions: Int32Array;
  readonly #expiry: Float64Array;
  /** The next slot to check for expired entries. */
  #sweep = 0;
  /** The first slot that the next eviction from a full bucket searches. */
  #turn = 0;

  constructor(
    memory: Uint8Array,
    geometry: Geometry,
    private readonly capacity: number,
    private readonly now: () => number,
  ) {
    const { buffer, byteOffset, length } = memory;
    const slots = geometry.buckets * BUCKET_SLOTS;
    this.lookup = new EntryLookup(memory, geometry, now);
    this.#room = new EntryRoom(slots, geometry.units, this);
    this.#words = new Int32Array(buffer, byteOffset, length >>> 2);
    this.#times = new Float64Array(buffer, byteOffset, length >>> 3);
    this.#heap = heapStart(geometry);
    this.#buckets = geometry.buckets;
    this.#versions = new Int32Array(slots);
    this.#expiry = new Float64Array(slots);
  }

  /** Stores a value within the length limit. @param expiry - expiry time on the clock, in ms; 0: never */
  set(hash: KeyHash, value: Uint8Array, expiry: number): void {
    this.#sweepExpired(SWEEP);
    const room = this.#room;
    const units = unitsOf(hash.length, value.length);
    let slot = this.#find(hash);
    const found = slot >= 0;
    if (found && room.room[slot]! >= units && room.room[slot]! <= 2 * units) {
      this.#begin(slot);
      this.#write(room.offset[slot]!, hash, value, expiry);
      this.#end(slot);
    } else {
      if (!found) {
        if (this.count >= this.capacity) this.#sweepExpired(SWEEP_FULL);
        if (this.count >= this.capacity) room.evictOne();
        slot = this.#freeSlot(hash);
      }
      const offset = room.find(units, found ? slot : -1);
      this.#write(offset, hash, value, expiry);
      const words = this.#words;
      const at = wordsAt(slot);
      this.#begin(slot);
      words[at + Slot.TAG] = hash.tag;
      words[at + Slot.OFFSET] = offset;
      words[at + Slot.ROOM] = units;
      this.#end(slot);
      if (found) room.remove(slot);
      else this.#counted(1);
      room.take(slot, offset, units);
    }
    room.used[slot] = found ? 1 : 0;
    this.#expiry[slot] = expiry;
  }

  /** Removes an entry. Returns whether it existed. */
  delete(hash: KeyHash): boolean {
    const slot = this.#find(hash);
    if (slot < 0) return false;
    const there = !this.expired(slot);
    this.evict(slot);
    return there;
  }

  /** Marks an entry as used, which delays its eviction. */
  touch(slot: number): void {
    if (slot < this.#versions.length) this.#room.used[slot] = 1;
  }

  /** Removes all entries. */
  clear(): void {
    for (let slot = 0; slot < this.#versions.length; slot += 1)
      if (this.#room.room[slot] !== 0) this.evict(slot);
  }

  /** Finds the slot of a key; -1 if it has none. */
  #find(hash: KeyHash): number {
    if (this.lookup.find(hash, true) < 0) return -1;
    const { slot } = this.lookup;
    return this.#room.room[slot] === 0 ? -1 : slot;
  }

  /** Finds a free slot of the key's bucket, evicting an entry if the bucket is full. */
  #freeSlot(hash: KeyHash): number {
    const first = firstSlot(hash, this.#buckets);
    const { room, used } = this.#room;
    for (let slot = first; slot < first + BUCKET_SLOTS; slot += 1) if (room[slot] === 0) return slot;
    this.#turn += 1;
    let slot = first + (this.#turn % BUCKET_SLOTS);
    for (let checked = 0; checked < BUCKET_SLOTS && used[slot] !== 0; checked += 1) {
      used[slot] = 0;
      slot = slot + 1 < first + BUCKET_SLOTS ? slot + 1 : first;
    }
    this.evict(slot);
    return slot;
  }

  #sweepExpired(slots: number): void {
    for (let i = 0; i < slots; i += 1) {
      const slot = this.#sweep;
      this.#sweep = slot + 1 < this.#versions.length ? slot + 1 : 0;
      if (this.#room.room[slot] !== 0 && this.expired(slot)) this.evict(slot);
    }
  }

  /** @internal */
  expired(slot: number): boolean {
    const expiry = this.#expiry[slot]!;
    return expiry !== 0 && this.now() >= expiry;
  }

  /** @internal */
  evict(slot: number): void {
    const words = this.#words;
    const at = wordsAt(slot);
    this.#begin(slot);
    words[at + Slot.TAG] = 0;
    words[at + Slot.OFFSET] = 0;
    words[at + Slot.ROOM] = 0;
    this.#end(slot);
    this.#room.remove(slot);
    this.#counted(-1);
  }

  /** @internal */
  move(slot: number, from: number, to: number, length: number): void {
    const start = this.#heap + from * UNIT_BYTES;
    this.#begin(slot);
    this.lookup.bytes.copyWithin(this.#heap + to * UNIT_BYTES, start, start + length * UNIT_BYTES);
    this.#words[wordsAt(slot) + Slot.OFFSET] = to;
    this.#end(slot);
  }

  #counted(change: number): void {
    this.count += change;
    Atomics.store(this.#words, 0, this.count);
  }

  /** Marks the entry as changing. The load keeps subsequent stores after that of the version. */
  #begin(slot: number): void {
    const at = wordsAt(slot);
    Atomics.store(this.#words, at, this.#next(slot));
    Atomics.load(this.#words, at);
  }

  #end(slot: number): void {
    Atomics.store(this.#words, wordsAt(slot), this.#next(slot));
  }

  #next(slot: number): number {
    const version = (this.#versions[slot]! + 1) | 0;
    this.#versions[slot] = version;
    return version;
  }

  #write(offset: number, hash: KeyHash, value: Uint8Array, expiry: number): void {
    const { bytes } = this.lookup;
    const start = this.#heap + offset * UNIT_BYTES;
    this.#words[start / 4] = hash.length;
    this.#words[start / 4 + 1] = value.length;
    this.#times[start / 8 + 1] = expiry;
    for (let i = 0; i < hash.length; i += 1) bytes[start + ENTRY_HEAD_BYTES + i] = hash.bytes[i]!;
    bytes.set(value, start + valueStart(hash.length));
  }
}

/** Index of a slot's first word, its version. */
function wordsAt(slot: number): number {
  return HEAD_BYTES / 4 + slot * SLOT_WORDS + Slot.VERSION;
}
