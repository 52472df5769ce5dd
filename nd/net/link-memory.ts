import { type IND2Adapter, type IND2MemoryRegion, Nd2MrFlag } from '../index.js';

/** Registered memory for the slots of one link. */
export interface LinkMemory {
  readonly bytes: Buffer;
  readonly region: IND2MemoryRegion;
}

/** Kept for later links, at most. */
const MOST_KEPT = 16;

/** What was kept, and not needed, from one look to the next is released; ms between them. */
const LOOK_MS = 5000;

/**
 * Memory of ended links, for the next ones of the same length: allocating and registering it costs as much as all else of a connection.
 * Peers have no key to it, so what they do to a connection cannot reach the next one.
 */
export class LinkMemoryPool {
  readonly #adapter: IND2Adapter;
  /** The one that was given back last is at the end. */
  readonly #kept: { readonly memory: LinkMemory; idle: boolean }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(adapter: IND2Adapter) {
    this.#adapter = adapter;
  }

  /** How many wait for a link. */
  get size(): number {
    return this.#kept.length;
  }

  /** Memory of so many bytes, which may have any values. @throws NdError */
  async take(length: number): Promise<LinkMemory> {
    const at = this.#kept.findLastIndex(({ memory }) => memory.bytes.length === length);
    if (at >= 0) return this.#kept.splice(at, 1)[0]!.memory;
    const region = this.#adapter.createMemoryRegion();
    try {
      // Zeroing could commit all pages of links that carry nothing, such as half-open ones. Each byte is written before it is read.
      const bytes = Buffer.allocUnsafeSlow(length);
      await region.register(bytes, Nd2MrFlag.ALLOW_LOCAL_WRITE);
      return { bytes, region };
    } catch (error) {
      region.release();
      throw error;
    }
  }

  /** Nothing of it is in use any more. */
  giveBack(memory: LinkMemory): void {
    if (this.#closed) {
      memory.region.release();
      return;
    }
    if (this.#kept.length === MOST_KEPT) this.#kept.shift()!.memory.region.release();
    this.#kept.push({ memory, idle: false });
    this.#timer ??= setInterval(() => this.look(), LOOK_MS).unref();
  }

  /** Releases what was not needed since the last time. */
  look(): void {
    const idle = this.#kept.findLastIndex((one) => one.idle);
    this.#release(idle + 1);
    for (const one of this.#kept) one.idle = true;
  }

  /** Releases the oldest ones. */
  #release(count: number): void {
    for (const { memory } of this.#kept.splice(0, count)) memory.region.release();
    if (this.#kept.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Releases all; nothing is kept any more. */
  close(): void {
    this.#closed = true;
    this.#release(this.#kept.length);
  }
}
