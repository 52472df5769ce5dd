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
import { LinkMemoryPool } from './link-memory.js';
import { Poller } from './poller.js';

/** Memory that a program has exposed: atomic operations of peers are executed on it. */
export interface Exposed {
  readonly bytes: Uint8Array;
  readonly atomics: BigInt64Array | undefined;
}

/** Registered memory and its bytes. */
export interface Registered {
  readonly region: IND2MemoryRegion;
  readonly bytes: Uint8Array;
  /** Of lent memory, which many connections use: who may access it at present. */
  readonly grants?: Set<{ cut(): void }>;
}

/** Registered memory for one Read or Write. */
export interface Bounce extends Registered {
  readonly offset: number;
  /** Made for this use alone; otherwise a part of the context's own memory, to be given back. */
  readonly own: boolean;
  /** Of a part of the context's own memory: which of {@link BOUNCES}. */
  readonly size: number;
}

/** Parts of the context's own memory for Reads and Writes, by size: bytes of each, and their number. */
const BOUNCES = [
  [4096, 64],
  [2 ** 17, 64],
] as const;

/** What all connections from one local address share. */
export class LocalContext {
  readonly adapter: IND2Adapter;
  readonly poller: Poller;
  readonly linkMemory: LinkMemoryPool;
  /**
   * The adapter has memory windows, and peers get tokens of these, not of regions: a region's token is good on each queue pair of the
   * adapter. Without them, memory is registered for each grant, and lent memory for each message.
   */
  readonly windows: boolean;
  /** Exposed memory by its token. */
  readonly exposed = new Map<number, Exposed>();
  /** Lent memory by its ArrayBuffer. */
  readonly lent = new Map<ArrayBufferLike, Registered[]>();
  readonly #users = new Set<{ end(error: unknown): void }>();
  #references = 0;
  /** Its completion queue has failed. */
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
      this.windows = this.adapter.query().maxWindowSize > 0;
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

  /** The context of a local address, with a reference for the caller. @throws NdError */
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

  /** Adds a reference. @throws NetError: the last one was released */
  hold(): this {
    if (this.#references === 0) throw closed('open');
    this.#references += 1;
    return this;
  }

  /**
   * Releases a reference. Without any, the adapter stays open as long as memory of ended links is kept, because a client that connects
   * again would open it anew, which took 15 of a connection's 36 requests to the kernel.
   */
  letGo(): void {
    this.#references -= 1;
    if (this.#references === 0 && (this.#failed || this.linkMemory.size === 0)) this.#close();
  }

  /** Nobody has used it for a while, in which its device may have gone: nothing would have told it. */
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

  /** Whoever must know when the completion queue fails. */
  join(user: { end(error: unknown): void }): void {
    this.#users.add(user);
  }

  leave(user: { end(error: unknown): void }): void {
    this.#users.delete(user);
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

  /** Registers memory for grants: remote rights among the flags become those of the windows. @throws NdError */
  registerFor(bytes: Uint8Array, flags: number): Promise<Registered> {
    return this.register(bytes, this.windows ? flags & Nd2MrFlag.ALLOW_LOCAL_WRITE : flags);
  }

  /** Registers bytes that a peer is to read: the bytes themselves, or where the runtime cannot, a copy. */
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

  /** New memory that own Reads can write to. */
  async blank(bytes: number): Promise<Registered> {
    try {
      return await this.register(new Uint8Array(bytes), Nd2MrFlag.ALLOW_LOCAL_WRITE);
    } catch (error) {
      if (!(error instanceof NdError) || error.status !== Status.NOT_SUPPORTED) throw error;
      return await this.register(allocate(bytes), Nd2MrFlag.ALLOW_LOCAL_WRITE);
    }
  }

  /** Memory for a Read or a Write. */
  async borrow(bytes: number): Promise<Bounce> {
    const size = BOUNCES.findIndex(([room]) => bytes <= room);
    if (size >= 0) {
      let parts = this.#bounces[size];
      if (parts === undefined) {
        parts = this.#makeBounces(size);
        this.#bounces[size] = parts;
        // The next one tries again.
        parts.catch(() => (this.#bounces[size] = undefined));
      }
      const bounce = (await parts).pop();
      if (bounce !== undefined) return bounce;
    }
    return { ...(await this.blank(bytes)), offset: 0, own: true, size };
  }

  /** Memory of {@link borrow} that nobody uses any more. */
  giveBack(bounce: Bounce): void {
    void this.#bounces[bounce.size]?.then((free) => free.push(bounce));
  }

  async #makeBounces(size: number): Promise<Bounce[]> {
    const [bytes, count] = BOUNCES[size]!;
    this.hold();
    try {
      const memory = await this.blank(count * bytes);
      this.#bounceRegions.push(memory.region);
      return Array.from({ length: count }, (_, i) => ({ ...memory, offset: i * bytes, own: false, size }));
    } finally {
      this.letGo();
    }
  }

  /** The lent memory that these bytes are a part of. */
  lentOf(bytes: Uint8Array): Registered | undefined {
    if (this.lent.size === 0 || !this.windows) return undefined;
    const end = bytes.byteOffset + bytes.length;
    return this.lent
      .get(bytes.buffer)
      ?.find(
        (lent) =>
          lent.bytes.byteOffset <= bytes.byteOffset && end <= lent.bytes.byteOffset + lent.bytes.length,
      );
  }
}

/** Statuses of memory that cannot be registered as it is: resizable, or of the runtime's own heap. */
const copied: ReadonlySet<number> = new Set([Status.NOT_SUPPORTED, Status.INVALID_PARAMETER]);
