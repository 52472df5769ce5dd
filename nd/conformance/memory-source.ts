/** Sources of a half's memory: plain arrays, or the provider's own allocator. */

/** An allocator of zeroed bytes, as a provider's module may export it under the name `allocate`. */
export type Allocate = (bytes: number) => Uint8Array;

/** The memory of a half. */
export interface MemorySource {
  /** Returns zeroed bytes, which stay valid until {@link MemorySource.reset}. */
  take(bytes: number): Uint8Array;
  /** Ends a case: memory allocated before is no longer in use. */
  reset(): void;
}

/** Allocates an array for every memory. */
export const plainMemory: MemorySource = { take: (bytes) => new Uint8Array(bytes), reset: () => {} };

const CHUNK = 16 << 20;
const PAGE = 4096;

/**
 * Parts of large allocations, which the next case reuses. Anything that a provider prepares for an allocation, such as
 * a mapping, therefore exists from its second use on. A case that accesses memory of an earlier case is also detected.
 */
export class ChunkedMemory implements MemorySource {
  readonly #chunks: Uint8Array[] = [];
  #current = 0;
  #used = 0;

  constructor(private readonly allocate: Allocate) {}

  take(bytes: number): Uint8Array {
    for (; this.#current < this.#chunks.length; this.#current += 1, this.#used = 0) {
      if (this.#used + bytes <= this.#chunks[this.#current]!.length) return this.#cut(bytes);
    }
    this.#chunks.push(this.allocate(Math.max(bytes, CHUNK)));
    return this.#cut(bytes);
  }

  reset(): void {
    this.#current = 0;
    this.#used = 0;
  }

  #cut(bytes: number): Uint8Array {
    const part = this.#chunks[this.#current]!.subarray(this.#used, this.#used + bytes);
    this.#used += Math.ceil(bytes / PAGE) * PAGE;
    return part.fill(0);
  }
}
