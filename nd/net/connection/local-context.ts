import {
  allocate,
  type IND2Adapter,
  type IND2MemoryRegion,
  Nd2MrFlag,
  NdError,
  ndCleanup,
  ndOpenAdapter,
  ndStartup,
  Status,
} from '../../index.js';
import { closed } from '../base/errors.js';
import { LinkMemoryPool, registerNew } from './link-memory.js';
import { Poller } from './poller.js';

/** Memory that a program has exposed and on which peers execute atomic operations. */
export interface Exposed {
  readonly bytes: Uint8Array;
  readonly atomics: BigInt64Array | undefined;
}

/** Registered memory and its bytes. */
export interface Registered {
  readonly region: IND2MemoryRegion;
  readonly bytes: Uint8Array;
  /** For lent memory, which many connections use: the grants that currently give access to it. */
  readonly grants?: Set<{ cut(): void }>;
}

/** Registered memory for one Read or Write. */
export interface Bounce extends Registered {
  readonly offset: number;
  /** Whether the memory was allocated for this use only; otherwise it is part of the context's memory and must be returned. */
  readonly own: boolean;
  /** For part of the context's memory: the index in {@link BOUNCES}. */
  readonly size: number;
}

/** Parts of the context's memory for Reads and Writes, by size: bytes of each, and their number. */
const BOUNCES = [
  [4096, 64],
  [2 ** 17, 64],
] as const;

/** Access of memory that Reads write to. iWARP requires the second flag; the others accept it. */
const READ_SINK = Nd2MrFlag.ALLOW_LOCAL_WRITE | Nd2MrFlag.RDMA_READ_SINK;

/** A connection of a context. */
interface ContextUser {
  /** Called when the completion queue has failed. */
  end(error: unknown): void;
  /** Called at intervals if the adapter does not probe idle connections. */
  probe(): void;
}

/** Interval between probes of idle connections, in ms: the default of the software HCA's own probes. */
const PROBE_MS = 10_000;

/** State that all connections from one local address share. */
export class LocalContext {
  readonly adapter: IND2Adapter;
  readonly poller: Poller;
  readonly linkMemory: LinkMemoryPool;
  /**
   * Whether the adapter supports memory windows. If so, peers get tokens of windows instead of regions, because a region's token is valid
   * on every queue pair of the adapter. Without windows, memory is registered for each grant, and lent memory for each message.
   */
  readonly windows: boolean;
  /** Whether the adapter supports RDMA Reads. Without them, every payload is copied to the peer's slots. */
  readonly reads: boolean;
  /** Maximum bytes of a request. */
  readonly mostTransfer: number;
  /** Exposed memory by token. */
  readonly exposed = new Map<number, Exposed>();
  /** Lent memory by ArrayBuffer. */
  readonly lent = new Map<ArrayBufferLike, Registered[]>();
  readonly #users = new Set<ContextUser>();
  #probes: NodeJS.Timeout | undefined;
  #references = 0;
  /** Whether the completion queue has failed. */
  #failed = false;
  readonly #bounces: (Promise<Bounce[]> | undefined)[] = BOUNCES.map(() => undefined);
  readonly #bounceRegions: IND2MemoryRegion[] = [];

  private constructor(private readonly address: string) {
    ndStartup();
    let adapter: IND2Adapter | undefined;
    try {
      adapter = ndOpenAdapter(address);
      this.adapter = adapter;
      this.linkMemory = new LinkMemoryPool(this.adapter, () => {
        if (this.#references === 0) this.#close();
      });
      const { maxTransferLength, maxWindowSize, maxInboundReadLimit, maxOutboundReadLimit } =
        this.adapter.query();
      this.mostTransfer = maxTransferLength;
      this.windows = maxWindowSize > 0;
      this.reads = maxInboundReadLimit > 0 && maxOutboundReadLimit > 0;
      this.poller = new Poller(this.adapter, (error) => {
        this.#failed = true;
        for (const user of [...this.#users]) user.end(error);
      });
    } catch (error) {
      adapter?.release();
      ndCleanup();
      throw error;
    }
  }

  static readonly #contexts = new Map<string, LocalContext>();

  /** Returns the context of a local address, with a reference for the caller. @throws NdError */
  static at(address: string): LocalContext {
    let context = LocalContext.#contexts.get(address);
    if (context?.isStale) {
      context.#close();
      context = undefined;
    }
    if (context === undefined) {
      context = new LocalContext(address);
      LocalContext.#contexts.set(address, context);
    }
    context.#references += 1;
    return context;
  }

  /** Adds a reference. @throws NetError if the last one was released */
  addRef(): this {
    if (this.#references === 0) throw closed('open');
    this.#references += 1;
    return this;
  }

  /**
   * Releases a reference. After the last one, the adapter stays open as long as memory of ended links is kept, because a client that
   * connects again would have to reopen it, which took 15 of a connection's 36 requests to the kernel.
   */
  releaseRef(): void {
    this.#references -= 1;
    if (this.#references === 0 && (this.#failed || this.linkMemory.size === 0)) this.#close();
  }

  /** Whether the context is unused and its device is gone, which is not reported while nothing is pending. */
  private get isStale(): boolean {
    if (this.#references > 0) return false;
    try {
      this.adapter.query();
      return false;
    } catch {
      return true;
    }
  }

  #close(): void {
    LocalContext.#contexts.delete(this.address);
    this.poller.close();
    this.linkMemory.close();
    for (const region of this.#bounceRegions) region.release();
    this.adapter.release();
    ndCleanup();
  }

  join(user: ContextUser): void {
    this.#users.add(user);
    // The software HCA, the only provider with `shouldPoll`, probes its connections itself.
    if (this.poller.queue.shouldPoll !== undefined) return;
    this.#probes ??= setInterval(() => {
      for (const each of this.#users) each.probe();
    }, PROBE_MS).unref();
  }

  leave(user: ContextUser): void {
    this.#users.delete(user);
    if (this.#users.size > 0) return;
    clearInterval(this.#probes);
    this.#probes = undefined;
  }

  /** Registers memory. @throws NdError */
  async register(bytes: Uint8Array, flags: number): Promise<Registered> {
    const region = this.adapter.createMemoryRegion();
    try {
      await region.register(bytes, flags);
      return { region, bytes };
    } catch (error) {
      region.release();
      throw error;
    }
  }

  /** Registers memory for grants. Remote rights in `flags` become those of the windows. @throws NdError */
  registerFor(bytes: Uint8Array, flags: number): Promise<Registered> {
    return this.register(bytes, this.windows ? flags & Nd2MrFlag.ALLOW_LOCAL_WRITE : flags);
  }

  /** Registers bytes for a peer to read: the bytes themselves or, if the runtime does not permit that, a copy. */
  async offer(bytes: Uint8Array): Promise<Registered> {
    try {
      return await this.registerFor(bytes, Nd2MrFlag.ALLOW_REMOTE_READ);
    } catch (error) {
      if (!(error instanceof NdError) || !copied.has(error.status)) throw error;
      const copy = allocate(bytes.length);
      copy.set(bytes);
      return await this.registerFor(copy, Nd2MrFlag.ALLOW_REMOTE_READ);
    }
  }

  /** Registers new memory as the target of Reads. */
  blank(bytes: number): Promise<Registered> {
    return registerNew(this.adapter, () => new Uint8Array(bytes), READ_SINK);
  }

  /** Returns registered memory for a Read or a Write. */
  async borrow(bytes: number): Promise<Bounce> {
    const size = BOUNCES.findIndex(([room]) => bytes <= room);
    if (size >= 0) {
      let parts = this.#bounces[size];
      if (parts === undefined) {
        parts = this.#makeBounces(size);
        this.#bounces[size] = parts;
        // The next call tries again.
        parts.catch(() => (this.#bounces[size] = undefined));
      }
      const bounce = (await parts).pop();
      if (bounce !== undefined) return bounce;
    }
    return { ...(await this.blank(bytes)), offset: 0, own: true, size };
  }

  /** Returns memory from {@link borrow} that is no longer used. */
  returnBounce(bounce: Bounce): void {
    void this.#bounces[bounce.size]?.then((free) => free.push(bounce));
  }

  async #makeBounces(size: number): Promise<Bounce[]> {
    const [bytes, count] = BOUNCES[size]!;
    this.addRef();
    try {
      const memory = await this.blank(count * bytes);
      this.#bounceRegions.push(memory.region);
      return Array.from({ length: count }, (_, i) => ({ ...memory, offset: i * bytes, own: false, size }));
    } finally {
      this.releaseRef();
    }
  }

  /** The lent memory that contains these bytes. */
  lentOf(bytes: Uint8Array): Registered | undefined {
    if (this.lent.size === 0 || !this.windows || !this.reads) return undefined;
    const end = bytes.byteOffset + bytes.length;
    return this.lent
      .get(bytes.buffer)
      ?.find(
        (lent) =>
          lent.bytes.byteOffset <= bytes.byteOffset && end <= lent.bytes.byteOffset + lent.bytes.length,
      );
  }
}

/** Statuses for memory that cannot be registered directly because it is resizable or on the runtime's own heap. */
const copied: ReadonlySet<number> = new Set([Status.NOT_SUPPORTED, Status.INVALID_PARAMETER]);
