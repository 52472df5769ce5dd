/** Callbacks for entries that are moved or evicted to free space. */
export interface RoomUser {
  /** Moves an entry to another offset; old and new space may overlap. All values are in units. */
  move(slot: number, from: number, to: number, length: number): void;
  /** Evicts an entry. */
  evict(slot: number): void;
  /** Whether an entry has expired. */
  expired(slot: number): boolean;
}

/** Fraction of the heap for entries. The rest is free space for moving them. */
const FILL = 7 / 8;
/** Maximum entries that are skipped and become the newest, for one new entry. */
const MOST_SKIPS = 2 ** 16;
/** Maximum units that are moved for one new entry: for each of its units, and the minimum. */
const MOVES_PER_UNIT = 8;
const LEAST_MOVES = 4096;

/**
 * Allocates the heap of a shared map as a ring of entries in the order of their allocation. New entries are written at its end; if it is
 * full, the oldest entry is evicted. An entry that was used since it was last examined is moved to the end instead, as in the CLOCK
 * algorithm (first in, first out, with a second chance). Other entries are also moved as long as removed entries have left free space.
 * Moving closes the gaps between values of different lengths. So there are neither size classes, which keep their memory when the lengths
 * of values change, nor unusable fragments.
 *
 * Allocating takes bounded time. If too much would have to be moved, the oldest entry is skipped, which leaves a gap; if there is too
 * little space or too many were skipped, entries are evicted.
 */
export class EntryRoom {
  /** For each slot, the offset and length of its space in units. The length is 0 if it has none. */
  readonly offset: Uint32Array;
  readonly room: Uint32Array;
  /** Whether a slot was used since it was last examined. */
  readonly used: Uint8Array;
  /** Units of all entries. */
  live = 0;
  /** Slots with space, from the oldest to the newest. */
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  #oldest = -1;
  #newest = -1;
  /** Offset of the next entry, unless it does not fit there. */
  #end = 0;

  constructor(
    slots: number,
    private readonly units: number,
    private readonly user: RoomUser,
  ) {
    this.offset = new Uint32Array(slots);
    this.room = new Uint32Array(slots);
    this.used = new Uint8Array(slots);
    this.#next = new Int32Array(slots).fill(-1);
    this.#previous = new Int32Array(slots).fill(-1);
  }

  /**
   * Finds space, which {@link take} then allocates.
   *
   * @param length - units, at most an eighth of the heap
   * @param kept - a slot that must not be evicted; -1: none
   * @returns the offset
   */
  find(length: number, kept: number): number {
    let moves = Math.max(LEAST_MOVES, MOVES_PER_UNIT * length);
    let skips = MOST_SKIPS;
    for (;;) {
      const oldest = this.#oldest;
      if (oldest < 0) {
        this.#end = 0;
        return 0;
      }
      if (this.#fits(length)) return this.#end;
      const own = this.room[oldest]!;
      const roomy = this.live + length <= this.units * FILL;
      const lives = oldest === kept || !this.user.expired(oldest);
      if (oldest === kept || (lives && skips > 0 && own <= moves && (roomy || this.used[oldest] !== 0))) {
        if (this.#moveOldest()) moves -= own;
        else skips -= 1;
      } else if (lives && roomy && skips > 0) {
        skips -= 1;
        const at = this.offset[oldest]!;
        this.remove(oldest);
        this.take(oldest, at, own);
      } else this.user.evict(oldest);
    }
  }

  /** Whether `length` units fit at the next offset. If they do not fit before the end of the heap, the next offset becomes 0. */
  #fits(length: number): boolean {
    const first = this.offset[this.#oldest]!;
    if (this.#end > first) {
      if (this.units - this.#end >= length) return true;
      this.#end = 0;
    }
    return first - this.#end >= length;
  }

  /** Makes the oldest entry the newest. Its own space counts as free. Returns whether it was moved. */
  #moveOldest(): boolean {
    const slot = this.#oldest;
    const length = this.room[slot]!;
    this.used[slot] = 0;
    this.remove(slot);
    if (this.#oldest < 0 || !this.#fits(length)) this.#end = 0;
    const from = this.offset[slot]!;
    const to = this.#end;
    if (to !== from) this.user.move(slot, from, to, length);
    this.take(slot, to, length);
    return to !== from;
  }

  /** Allocates the space that was found to a slot. */
  take(slot: number, offset: number, length: number): void {
    this.offset[slot] = offset;
    this.room[slot] = length;
    this.live += length;
    this.#end = offset + length;
    this.#previous[slot] = this.#newest;
    this.#next[slot] = -1;
    if (this.#newest >= 0) this.#next[this.#newest] = slot;
    else this.#oldest = slot;
    this.#newest = slot;
  }

  /** Frees the space of a slot. */
  remove(slot: number): void {
    const next = this.#next[slot]!;
    const previous = this.#previous[slot]!;
    if (previous >= 0) this.#next[previous] = next;
    else this.#oldest = next;
    if (next >= 0) this.#previous[next] = previous;
    else this.#newest = previous;
    this.live -= this.room[slot]!;
    this.room[slot] = 0;
  }

  /** Evicts one entry because there are too many. */
  evictOne(): void {
    for (let moves = LEAST_MOVES; ; ) {
      const oldest = this.#oldest;
      const own = this.room[oldest]!;
      if (this.used[oldest] === 0 || own > moves || this.user.expired(oldest)) {
        this.user.evict(oldest);
        return;
      }
      moves -= own;
      this.#moveOldest();
    }
  }
}
