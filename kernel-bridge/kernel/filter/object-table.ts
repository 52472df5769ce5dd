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
  /** Reserved ids, with the function that makes the object. */
  private readonly promised = new Map<number, () => T>();
  private live = 0;

  constructor(private readonly limit = indexCount) {}

  get size(): number {
    return this.live;
  }

  get full(): boolean {
    return this.live + this.promised.size >= this.limit;
  }

  /** Adds an object and returns its id, never 0. The caller has checked {@link full}. */
  add(value: T): number {
    const id = this.newId();
    this.put(id, value);
    return id;
  }

  /** Reserves an id; its object is made on first use. Until then the id only takes a place in the table. */
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

  /** The present objects and their ids; the table may change meanwhile. */
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
