/** Objects of one kind that a device file owns, by id. */

const indexBits = 20;
/** Ids are exact numbers: 20 bits index, 32 bits generation. */
const indexCount = 2 ** indexBits;

/** The id in an IOCTL as a number; ids that no table gives out become 0. */
export function idOf(id: bigint): number {
  return id > 0n && id <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(id) : 0;
}

/**
 * A table whose ids carry a generation: an id that was freed is never found again, although its place is used anew.
 */
export class ObjectTable<T> {
  private readonly values: (T | undefined)[] = [];
  private readonly generations: number[] = [];
  private readonly free: number[] = [];
  /** Ids that were given out before there is an object, with what makes it. */
  private readonly promised = new Map<number, () => T>();
  private live = 0;

  constructor(private readonly limit = indexCount) {}

  get size(): number {
    return this.live;
  }

  get full(): boolean {
    return this.live + this.promised.size >= this.limit;
  }

  /** Answers the new object's id, never 0. The caller has looked at {@link full}. */
  add(value: T): number {
    const id = this.newId();
    this.put(id, value);
    return id;
  }

  /** An id whose object is made when it is first asked for; until then it takes the room of one, and nothing else. */
  promise(make: () => T): number {
    const id = this.newId();
    this.promised.set(id, make);
    return id;
  }

  get(id: number): T | undefined {
    const index = id % indexCount;
    if (this.generations[index] !== Math.floor(id / indexCount)) return undefined;
    return this.values[index] ?? this.made(id);
  }

  delete(id: number): T | undefined {
    const value = this.get(id);
    if (value === undefined) return undefined;
    const index = id % indexCount;
    this.values[index] = undefined;
    this.free.push(index);
    this.live--;
    return value;
  }

  /** The objects and their ids now; the table may change meanwhile. */
  entries(): [number, T][] {
    const found: [number, T][] = [];
    for (const [index, value] of this.values.entries()) {
      if (value !== undefined) found.push([this.generations[index]! * indexCount + index, value]);
    }
    return found;
  }

  private newId(): number {
    const index = this.free.pop() ?? this.values.length;
    // The first generation is 1, so that no id is 0.
    const generation = ((this.generations[index] ?? 0) + 1) >>> 0 || 1;
    this.generations[index] = generation;
    this.values[index] = undefined;
    return generation * indexCount + index;
  }

  private put(id: number, value: T): void {
    this.values[id % indexCount] = value;
    this.live++;
  }

  private made(id: number): T | undefined {
    const make = this.promised.get(id);
    if (make === undefined) return undefined;
    const value = make();
    this.promised.delete(id);
    this.put(id, value);
    return value;
  }
}
