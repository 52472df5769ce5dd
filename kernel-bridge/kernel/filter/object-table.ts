/** Objects of one kind of a device file, by id. */

const indexBits = 20;
/** Ids are exact numbers: 20 bits index, 32 bits generation. */
const indexCount = 2 ** indexBits;

/** The id of an IOCTL as a number; impossible ids become 0. */
export function idOf(id: bigint): number {
  return id > 0n && id <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(id) : 0;
}

/** A table whose ids contain a generation: a freed id is never found again, although its place is reused. */
export class ObjectTable<T> {
  private readonly values: (T | undefined)[] = [];
  private readonly generations: number[] = [];
  private readonly free: number[] = [];
  private live = 0;

  constructor(private readonly limit = indexCount) {}

  get size(): number {
    return this.live;
  }

  get full(): boolean {
    return this.live >= this.limit;
  }

  /** Adds an object and returns its id, never 0. The caller has checked {@link full}. */
  add(value: T): number {
    const index = this.free.pop() ?? this.values.length;
    // The first generation is 1, so that no id is 0.
    const generation = ((this.generations[index] ?? 0) + 1) >>> 0 || 1;
    this.generations[index] = generation;
    this.values[index] = value;
    this.live++;
    return generation * indexCount + index;
  }

  get(id: number): T | undefined {
    const index = id % indexCount;
    return this.generations[index] === Math.floor(id / indexCount) ? this.values[index] : undefined;
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

  /** The present objects and their ids; the table may change meanwhile. */
  entries(): [number, T][] {
    const found: [number, T][] = [];
    for (const [index, value] of this.values.entries()) {
      if (value !== undefined) found.push([this.generations[index]! * indexCount + index, value]);
    }
    return found;
  }
}
