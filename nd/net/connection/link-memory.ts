import {
  allocate,
  type IND2Adapter,
  type IND2MemoryRegion,
  Nd2MrFlag,
  NdError,
  Status,
} from '../../index.js';

/** Registered memory for the slots of one link. */
export interface LinkMemory {
  /** The whole memory. */
  readonly bytes: Buffer;
  /** The region of the memory, with local rights only. */
  readonly region: IND2MemoryRegion;
}

/**
 * Registers new memory: that returned by `make` or, if the provider cannot pin it, the same length from `allocate()`.
 *
 * @throws NdError
 */
export async function registerNew(
  adapter: IND2Adapter,
  make: () => Uint8Array<ArrayBuffer>,
  flags: number,
): Promise<{ readonly bytes: Uint8Array<ArrayBuffer>; readonly region: IND2MemoryRegion }> {
  const region = adapter.createMemoryRegion();
  try {
    let bytes = make();
    try {
      await region.register(bytes, flags);
    } catch (error) {
      if (!(error instanceof NdError) || error.status !== Status.NOT_SUPPORTED) throw error;
      bytes = allocate(bytes.length);
      await region.register(bytes, flags);
    }
    return { bytes, region };
  } catch (error) {
    region.release();
    throw error;
  }
}

/** Maximum number of regions kept for later links, and of their bytes. */
const MOST_KEPT = 16;
const MOST_KEPT_BYTES = 2 ** 26;

/** Interval between checks, in ms. A region that no link has used between two checks is released. */
export const IDLE_MS = 5000;

/** The pools of all local contexts of the thread. */
const pools = new Set<LinkMemoryPool>();

/**
 * Keeps the memory of ended links for later links of the same length, because allocating and registering it takes more than a third of a
 * connection's CPU time. Peers have no key to this memory, so they cannot access the next connection through it.
 */
export class LinkMemoryPool {
  readonly #adapter: IND2Adapter;
  /** Kept regions in the order of their return. */
  readonly #kept: { readonly memory: LinkMemory; idle: boolean }[] = [];
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  /** @param emptied - called when the pool is empty because no link has used it for a while */
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

  /** Returns registered memory of `length` bytes with arbitrary contents. @throws NdError */
  async take(length: number): Promise<LinkMemory> {
    const at = this.#kept.findLastIndex(({ memory }) => memory.bytes.length === length);
    if (at >= 0) return this.#remove(at);
    try {
      return await this.#register(length);
    } catch (error) {
      // Kept regions, including those of other adapters, count towards the same limits, such as that for locked memory.
      const keeping = [...pools].filter(({ size }) => size > 0);
      if (keeping.length === 0) throw error;
      for (const pool of keeping) pool.empty();
      return await this.#register(length);
    }
  }

  async #register(length: number): Promise<LinkMemory> {
    // Zeroing could commit pages for links that carry no data, such as half-open ones. Each byte is written before it is read.
    const make = (): Buffer<ArrayBuffer> => Buffer.allocUnsafeSlow(length);
    const { region, bytes } = await registerNew(this.#adapter, make, Nd2MrFlag.ALLOW_LOCAL_WRITE);
    return { bytes: Buffer.from(bytes.buffer, bytes.byteOffset, length), region };
  }

  /** Returns memory that neither the HCA nor a user of the link uses any more. */
  release(memory: LinkMemory): void {
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

  /** Releases the regions that no link has used since the last check. @internal */
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

  /** Releases the oldest regions. */
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

  /** Releases all kept regions and every region that is returned later. */
  close(): void {
    this.#closed = true;
    pools.delete(this);
    this.#release(this.#kept.length);
  }
}
