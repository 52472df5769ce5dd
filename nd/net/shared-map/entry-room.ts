/** What happens to entries when room is made for others. */
export interface RoomUser {
  /** An entry goes to another place, which may overlap the one that it has. All are in units. */
  move(slot: number, from: number, to: number, length: number): void;
  /** An entry ends. */
  evict(slot: number): void;
  /** Whether an entry has expired. */
  expired(slot: number): boolean;
}

/** Part of the heap that entries fill. What is above is room in which they can be moved. */
const FILL = 7 / 8;
/** Rooms that stay where they are and become the newest, for one entry at most. */
const MOST_SKIPS = 2 ** 16;
/** Units that are moved for one entry at most, for each of its own, and at least. */
const MOVES_PER_UNIT = 8;
const LEAST_MOVES = 4096;

/**
 * Rooms of entries in the heap of a shared map, in the order of their allocation: a ring. New entries are written at its end; when there is
 * no room, the oldest one goes. One that was used since it was last looked at is moved to the end instead, which is the CLOCK algorithm
 * (first in, first out, with a second chance); so is any other as long as the heap has room that removed entries have left. Moving closes
 * the gaps that values of different lengths leave, so there are neither size classes, which keep their memory when the lengths of values
 * change, nor fragments that fit nothing.
 *
 * Allocating takes bounded time: when too much would have to be moved, it goes on behind the oldest, which leaves a gap; and without room enough, or behind
 * too many, entries are evicted.
 */
export class EntryRoom {
  /** Of each slot: the offset and length of its room, in units. A length of 0: it has none. */
  readonly offset: Uint32Array;
  readonly room: Uint32Array;
  /** Used since it was last looked at. */
  readonly used: Uint8Array;
  /** Units of all rooms. */
  live = 0;
  /** Slots with a room, from the oldest to the newest. */
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  #oldest = -1;
  #newest = -1;
  /** Where the next room begins, unless it does not fit there. */
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
   * Finds room, which {@link take} takes.
   *
   * @param length - units, at most an eighth of the heap
   * @param kept - a slot that is not evicted; -1: none
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

  /** Whether a room fits where the next begins. If it does not fit before the end of the heap, that is the heap's start from now on. */
  #fits(length: number): boolean {
    const first = this.offset[this.#oldest]!;
    if (this.#end > first) {
      if (this.units - this.#end >= length) return true;
      this.#end = 0;
    }
    return first - this.#end >= length;
  }

  /** The oldest becomes the newest. Its own room counts as free. Returns whether it has moved. */
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

  /** Gives a slot room that was found. */
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

  /** Takes the room of a slot away. */
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

  /** Evicts one entry, because there are too many of them. */
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
