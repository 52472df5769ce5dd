import { type IND2Adapter, type IND2MemoryRegion, Nd2MrFlag } from '../index.js';

/** Registered memory for the slots of one link. */
export interface LinkMemory {
  /** All of it. */
  readonly bytes: Buffer;
  /** Local rights only. */
  readonly region: IND2MemoryRegion;
}

/** Kept for later links, at most: so many, and bytes of all of them. */
const MOST_KEPT = 16;
const MOST_KEPT_BYTES = 2 ** 26;

/** What was kept, and not needed, from one look to the next is released; ms between them. */
const IDLE_MS = 5000;

/**
 * Memory of ended links, for the next ones of the same length: allocating and registering it costs as much as all else of a connection.
 * Peers have no key to it, so what they do to a connection cannot reach the next one.
 */
export class LinkMemoryPool {
  readonly #adapter: IND2Adapter;
  /** The one that was given back last is at the end. */
  readonly #kept: { readonly memory: LinkMemory; idle: boolean }[] = [];
  #bytes = 0;
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
    if (at >= 0) return this.#remove(at);
    try {
      return await this.#register(length);
    } catch (error) {
      // What is kept counts against the same limits of the system.
      if (this.#kept.length === 0) throw error;
      this.#release(this.#kept.length);
      return await this.#register(length);
    }
  }

  async #register(length: number): Promise<LinkMemory> {
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
    const { length } = memory.bytes;
    if (this.#closed || length > MOST_KEPT_BYTES) {
      memory.region.release();
      return;
    }
    while (this.#kept.length === MOST_KEPT || this.#bytes + length > MOST_KEPT_BYTES) this.#release(1);
    this.#kept.push({ memory, idle: false });
    this.#bytes += length;
    this.#timer ??= setInterval(() => this.look(), IDLE_MS).unref();
  }

  /** Releases what was not needed since the last time. */
  look(): void {
    const idle = this.#kept.findLastIndex((one) => one.idle);
    this.#release(idle + 1);
    for (const one of this.#kept) one.idle = true;
  }

  #remove(at: number): LinkMemory {
    const { memory } = this.#kept.splice(at, 1)[0]!;
    this.#bytes -= memory.bytes.length;
    return memory;
  }

  /** Releases the oldest ones. */
  #release(count: number): void {
    for (let n = 0; n < count; n += 1) this.#remove(0).region.release();
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
