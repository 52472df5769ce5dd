import { type IND2Adapter, type IND2MemoryRegion, Nd2MrFlag } from '../../index.js';

/** Registered memory for the slots of one link. */
export interface LinkMemory {
  /** All of it. */
  readonly bytes: Buffer;
  /** Local rights only. */
  readonly region: IND2MemoryRegion;
}

/** Maximum number of regions that are kept for later links, and of their bytes. */
const MOST_KEPT = 16;
const MOST_KEPT_BYTES = 2 ** 26;

/** A region that no link needs between two checks is released; ms between checks. */
export const IDLE_MS = 5000;

/** Those of all local contexts of the thread. */
const pools = new Set<LinkMemoryPool>();

/**
 * Keeps the memory of ended links for the next ones of the same length, because allocating and registering it takes more than a third of a
 * connection's CPU time. No peer has a key to this memory, so none can reach the next connection through it.
 */
export class LinkMemoryPool {
  readonly #adapter: IND2Adapter;
  /** In the order in which they were returned. */
  readonly #kept: { readonly memory: LinkMemory; idle: boolean }[] = [];
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  /** @param emptied - called when nothing is kept any more, because no link has needed it for a while */
  constructor(
    adapter: IND2Adapter,
    private readonly emptied: () => void = () => {},
  ) {
    this.#adapter = adapter;
    pools.add(this);
  }

  /** Number of kept regions. */
  get size(): number {
    return this.#kept.length;
  }

  /** Registered memory of `length` bytes, with any contents. @throws NdError */
  async take(length: number): Promise<LinkMemory> {
    const at = this.#kept.findLastIndex(({ memory }) => memory.bytes.length === length);
    if (at >= 0) return this.#remove(at);
    try {
      return await this.#register(length);
    } catch (error) {
      // Kept regions, of other adapters, too, count against the same limits, such as that of locked memory.
      const keeping = [...pools].filter(({ size }) => size > 0);
      if (keeping.length === 0) throw error;
      for (const pool of keeping) pool.empty();
      return await this.#register(length);
    }
  }

  async #register(length: number): Promise<LinkMemory> {
    const region = this.#adapter.createMemoryRegion();
    try {
      // Zeroing could commit the pages of links that carry nothing, such as half-open ones. Each byte is written before it is read.
      const bytes = Buffer.allocUnsafeSlow(length);
      await region.register(bytes, Nd2MrFlag.ALLOW_LOCAL_WRITE);
      return { bytes, region };
    } catch (error) {
      region.release();
      throw error;
    }
  }

  /** Returns memory that neither the HCA nor a user of the link uses any more. */
  giveBack(memory: LinkMemory): void {
    const { length } = memory.bytes;
    if (this.#closed || length > MOST_KEPT_BYTES) {
      memory.region.release();
      return;
    }
    while (this.#kept.length === MOST_KEPT || this.#bytes + length > MOST_KEPT_BYTES) this.#release(1);
    this.#kept.push({ memory, idle: false });
    this.#bytes += length;
    this.#timer ??= setInterval(() => this.trim(), IDLE_MS).unref();
  }

  /** Releases the regions that no link has needed since the last check. @internal */
  trim(): void {
    const idle = this.#kept.findLastIndex((one) => one.idle);
    this.#release(idle + 1);
    for (const one of this.#kept) one.idle = true;
    if (this.#kept.length === 0) this.emptied();
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

  /** Releases all kept regions. */
  empty(): void {
    this.#release(this.#kept.length);
    this.emptied();
  }

  /** Releases all kept regions, and from now on every one that is returned. */
  close(): void {
    this.#closed = true;
    pools.delete(this);
    this.#release(this.#kept.length);
  }
}
