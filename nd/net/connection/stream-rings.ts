/** Memory for the bytes of a busy stream, besides its slots: the sender writes there by RDMA (docs/internals/net.md). */
import {
  allocate,
  type IND2MemoryRegion,
  type IND2QueuePair,
  Nd2MrFlag,
  Nd2RemoteMemory,
  type Nd2Sge,
} from '../../index.js';
import { decodeMemory, encodeMemory, type MemoryDescription, Notice, RING_UNIT } from './frames.js';
import { type Grant, type Grants, Right } from './grants.js';
import type { Slot } from './link-types.js';
import type { Registered } from './local-context.js';
import { REMOTE_OPERATIONS } from './operations.js';

/** A stream is busy that has received so many bytes within so many ms. */
const BUSY_BYTES = 2 ** 22;
const BUSY_MS = 1000;

/** So many are awaited at most, after refusals. */
const MOST_BUSY_BYTES = 2 ** 30;

/** Bytes of all rings of this thread, at most. */
export const MOST_BYTES = 2 ** 27;

/** A ring that nothing was written to between two looks is taken back; ms between them. */
const LOOK_MS = 5000;

/** One of so many parts of a ring may be free without the sender's knowledge. */
const UNTOLD_PARTS = 4;

/** Units that so many bytes take. */
const unitsOf = (bytes: number): number => Math.ceil(bytes / RING_UNIT);

const EMPTY = Buffer.alloc(0);

/** A notice that is to be sent. */
export interface RingNotice {
  /** Of {@link Notice}. */
  readonly kind: number;
  /** The ring, of an offer; else empty. */
  readonly payload: Uint8Array;
}

/** The rings of this thread that peers may write to. */
class Rings {
  #bytes = 0;
  readonly #all = new Set<InRing>();
  #timer: NodeJS.Timeout | undefined;

  /** Takes so many bytes of what all may have; false: there are not so many. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > MOST_BYTES) return false;
    this.#bytes += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#bytes -= bytes;
  }

  add(ring: InRing): void {
    this.#all.add(ring);
    this.#timer ??= setInterval(() => this.look(), LOOK_MS).unref();
  }

  remove(ring: InRing): void {
    this.#all.delete(ring);
    if (this.#all.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Takes back those that nothing was written to since the last time. */
  look(): void {
    for (const ring of this.#all) ring.look();
  }

  get bytes(): number {
    return this.#bytes;
  }
}

/** @internal */
export const rings = new Rings();

/** What posts Writes. */
type Writer = Pick<IND2QueuePair, 'write'>;

/** What registers memory for rings, and lets the peer write to it. */
interface Registrar extends Pick<Grants, 'register'> {
  open(...parameters: Parameters<Grants['open']>): Access;
}

/** The peer's access to a ring. */
type Access = Pick<Grant, 'cut'>;

/** Memory of one side of a ring. */
class RingMemory {
  #access: Access | undefined;

  private constructor(
    readonly bytes: Buffer,
    readonly memory: Registered,
  ) {}

  /** Undefined: there is none. */
  static async of(registrar: Registrar, bytes: number, flags: number): Promise<RingMemory | undefined> {
    if (!rings.take(bytes)) return undefined;
    try {
      const memory = await registrar.register(allocate(bytes), flags);
      const all = memory.bytes;
      return new RingMemory(Buffer.from(all.buffer, all.byteOffset, bytes), memory);
    } catch {
      rings.giveBack(bytes);
      return undefined;
    }
  }

  get region(): IND2MemoryRegion {
    return this.memory.region;
  }

  /** Lets the peer write to it. */
  open(registrar: Registrar, opened: (description: Uint8Array) => void): void {
    const { memory, region } = this;
    const { length } = this.bytes;
    this.#access = registrar.open({ memory, offset: 0, length }, Right.WRITE, {
      opened: (token) => opened(encodeMemory({ address: region.address, token, id: 0, length })),
      // The connection has ended with it.
      failed: () => {},
    });
  }

  release(): void {
    this.#access?.cut();
    this.region.release();
    rings.giveBack(this.bytes.length);
  }
}

/**
 * The receiver's side of a ring. It has none until the stream is busy, offers one then if there is memory, and takes it back when nothing
 * comes any more.
 */
export class InRing {
  #state: 'none' | 'making' | 'offered' | 'taken back' | 'given back' | 'over' = 'none';
  readonly #units: number;
  /** So many bytes within the time for so many show that the stream is busy; more after a refusal. */
  #busyBytes = BUSY_BYTES;
  #memory: RingMemory | undefined;
  /** All of it. */
  #sgl: [Nd2Sge] | undefined;
  /** The next unit that is written to. */
  #head = 0;
  /** Units with bytes that were not taken. */
  #held = 0;
  /** Free units that the sender does not know of. */
  #owed = 0;
  #came = 0;
  #since = 0;
  /** Nothing was written since the last look. */
  #still = false;

  /**
   * @param bytes - of the ring; less than a unit: there never is one
   * @param tell - sends a notice
   */
  constructor(
    private readonly registrar: Registrar,
    bytes: number,
    private readonly tell: (kind: number, payload: Uint8Array) => void,
  ) {
    this.#units = Math.floor(bytes / RING_UNIT);
  }

  /** Bytes came in a slot: whether the stream is busy shows by them. */
  came(bytes: number): void {
    if (this.#state !== 'none' || this.#units === 0) return;
    this.#came += bytes;
    if (this.#came < this.#busyBytes) return;
    const now = performance.now();
    if (now - this.#since < (BUSY_MS * this.#busyBytes) / BUSY_BYTES) void this.#make();
    this.#since = now;
    this.#came = 0;
  }

  async #make(): Promise<void> {
    const bytes = this.#units * RING_UNIT;
    this.#state = 'making';
    const flags = Nd2MrFlag.ALLOW_LOCAL_WRITE | Nd2MrFlag.ALLOW_REMOTE_WRITE;
    const made = await RingMemory.of(this.registrar, bytes, flags);
    if (made === undefined) {
      // Without memory the stream goes on with its slots.
      this.#wasRefused();
      if (!this.#over) this.#state = 'none';
      return;
    }
    const { region } = made;
    this.#memory = made;
    this.#sgl = [{ memory: region, offset: 0, length: bytes }];
    if (this.#over) {
      this.#free();
      return;
    }
    this.#state = 'offered';
    this.#head = 0;
    this.#owed = 0;
    this.#still = false;
    rings.add(this);
    made.open(this.registrar, (description) => this.tell(Notice.OFFER, description));
  }

  /** It is tried again, but later. */
  #wasRefused(): void {
    this.#busyBytes = Math.min(4 * this.#busyBytes, MOST_BUSY_BYTES);
  }

  get #over(): boolean {
    return this.#state === 'over';
  }

  /** The sender has written so many bytes: the part of the ring that has them. Undefined: it cannot have done so. */
  take(bytes: number): Slot | undefined {
    const units = unitsOf(bytes);
    const memory = this.#memory;
    const sgl = this.#sgl;
    if (memory === undefined || sgl === undefined || bytes === 0) return undefined;
    if (units > this.#units - this.#held - this.#owed || units > this.#units - this.#head) return undefined;
    const at = this.#head * RING_UNIT;
    this.#head = (this.#head + units) % this.#units;
    this.#held += units;
    this.#still = false;
    return { memory: memory.bytes, offset: at, units, used: 0, frames: 1, sgl };
  }

  /** Bytes of the ring were taken. */
  released(units: number): void {
    this.#held -= units;
    this.#owed += units;
    if (this.#state === 'given back' && this.#held === 0) this.#free();
  }

  /** The sender should hear of free units. */
  get owes(): boolean {
    return this.#state === 'offered' && this.#owed > 0 && UNTOLD_PARTS * this.#owed >= this.#units;
  }

  /** Units that the next Send returns: none of a ring that the sender shall give back, which may have done so. */
  takeOwed(): number {
    if (this.#state !== 'offered') return 0;
    const owed = this.#owed;
    this.#owed = 0;
    return owed;
  }

  /** Takes the ring back if nothing came since the last look. */
  look(): void {
    if (this.#state !== 'offered') return;
    if (this.#still && this.#held === 0) {
      this.#state = 'taken back';
      this.tell(Notice.TAKE_BACK, EMPTY);
    }
    this.#still = true;
  }

  /** The sender writes there no more: it was asked not to, or has no memory for its side. False: there is no ring. */
  gaveBack(): boolean {
    if (this.#state !== 'taken back' && this.#state !== 'offered') return false;
    if (this.#state === 'offered') this.#wasRefused();
    this.#state = 'given back';
    if (this.#held === 0) this.#free();
    return true;
  }

  #free(): void {
    if (this.#memory === undefined) return;
    this.#memory.release();
    this.#memory = undefined;
    rings.remove(this);
    this.#sgl = undefined;
    if (!this.#over) this.#state = 'none';
  }

  /** The connection has ended. Bytes that were not taken stay with their slots. */
  end(): void {
    this.#state = 'over';
    this.#free();
  }
}

/** RDMA Writes to one ring in flight. */
const RING_WRITES = 64;

/** Bytes of one Write, at most. */
const PIECE = 65_536;

/**
 * The sender's side of a ring: where the next bytes go, and how much room there is. It has memory of the same size, from which the bytes are
 * written: of `allocate()`, so that a peer on this host copies them from there.
 */
export class OutRing {
  readonly #remote: Nd2RemoteMemory;
  readonly #units: number;
  #memory: RingMemory | undefined;
  #sgl: [Nd2Sge] | undefined;
  #head = 0;
  /** Units that were ever taken, came back, and whose Writes have completed. */
  #taken = 0;
  #returned = 0;
  #wrote = 0;
  /** Units of the Writes that are in flight, in order: from `#first` on, `#writes` of them. */
  readonly #inFlight = new Uint16Array(RING_WRITES);
  #first = 0;
  #writes = 0;
  #over = false;

  private constructor({ address, token, length }: MemoryDescription) {
    this.#remote = new Nd2RemoteMemory(address, token);
    this.#units = length / RING_UNIT;
  }

  /** The ring that a peer offers; undefined: it has another size than one of at most so many bytes. */
  static of(memory: MemoryDescription, most: number): OutRing | undefined {
    const { length } = memory;
    return length > 0 && length % RING_UNIT === 0 && length <= most ? new OutRing(memory) : undefined;
  }

  /** Gets its memory. False: there is none. */
  async make(registrar: Registrar): Promise<boolean> {
    const made = await RingMemory.of(registrar, RING_UNIT * this.#units, Nd2MrFlag.ALLOW_LOCAL_WRITE);
    if (made === undefined) return false;
    this.#memory = made;
    this.#sgl = [{ memory: made.region, offset: 0, length: 0 }];
    if (this.#over) this.#free();
    return !this.#over;
  }

  /** Bytes that can be written in one piece. */
  get room(): number {
    if (this.#sgl === undefined || this.#writes === RING_WRITES) return 0;
    const free = this.#units - (this.#taken - Math.min(this.#returned, this.#wrote));
    return Math.min(RING_UNIT * Math.min(free, this.#units - this.#head), PIECE);
  }

  /** Writes pieces of `length` bytes, at most {@link room}. Its result goes to {@link wrote}. */
  write(queuePair: Writer, pieces: readonly Uint8Array[], length: number): void {
    const at = this.#head * RING_UNIT;
    const { bytes } = this.#memory!;
    let to = at;
    for (const piece of pieces) {
      bytes.set(piece, to);
      to += piece.length;
    }
    const sgl = this.#sgl!;
    sgl[0].offset = at;
    sgl[0].length = length;
    queuePair.write(this, sgl, this.#remote, at);
    const units = unitsOf(length);
    this.#head = (this.#head + units) % this.#units;
    this.#taken += units;
    this.#inFlight[(this.#first + this.#writes) % RING_WRITES] = units;
    this.#writes += 1;
  }

  /** The oldest Write has completed. */
  wrote(): void {
    this.#wrote += this.#inFlight[this.#first]!;
    this.#first = (this.#first + 1) % RING_WRITES;
    this.#writes -= 1;
    if (this.#over && this.#writes === 0) this.#free();
  }

  /** Units that came back. False: more than were taken. */
  returned(units: number): boolean {
    this.#returned += units;
    return this.#returned <= this.#taken;
  }

  /** Nothing more is written. `now`: nothing is under way, either. */
  end(now: boolean): void {
    this.#over = true;
    this.#sgl = undefined;
    if (now || this.#writes === 0) this.#free();
  }

  #free(): void {
    this.#memory?.release();
    this.#memory = undefined;
  }
}

/** The rings of both directions of a stream, and what is to be said about them. */
export class StreamRings {
  readonly #in: InRing;
  #out: OutRing | undefined;
  /** At most one of each kind: a peer that goes on before it has heard one is refused. */
  #notices: RingNotice[] = [];
  readonly #registrar: Registrar;
  readonly #bytes: number;
  readonly #news: () => void;
  /** Writes to this ring, and to those before it, in flight. */
  #writes = 0;

  /**
   * @param bytes - of a ring, as both sides want it
   * @param news - called when there is something to say
   */
  constructor(registrar: Registrar, bytes: number, news: () => void) {
    this.#registrar = registrar;
    this.#bytes = bytes;
    this.#news = news;
    this.#in = new InRing(registrar, bytes, (kind, payload) => this.#say(kind, payload));
  }

  #say(kind: number, payload: Uint8Array): void {
    this.#notices.push({ kind, payload });
    this.#news();
  }

  /** A notice of this kind was not sent yet. */
  #untold(kind: number): boolean {
    return this.#notices.some((notice) => notice.kind === kind);
  }

  /** The ring that the peer writes to. */
  get in(): InRing {
    return this.#in;
  }

  /** Places of the send queue that are not free for Sends: Writes have so many more than their own. */
  get borrowed(): number {
    return Math.max(0, this.#writes - REMOTE_OPERATIONS);
  }

  /** Bytes that can be written in one piece. */
  get room(): number {
    return this.#out?.room ?? 0;
  }

  /** Writes pieces of `length` bytes, at most {@link room}. */
  write(queuePair: Writer, pieces: readonly Uint8Array[], length: number): void {
    this.#out!.write(queuePair, pieces, length);
    this.#writes += 1;
  }

  /** A Write has completed; its context. */
  wrote(ring: OutRing): void {
    this.#writes -= 1;
    ring.wrote();
  }

  /** A frame should be sent for them. */
  get speak(): boolean {
    return this.#notices.length > 0 || this.#in.owes;
  }

  /** The next thing to say. */
  notice(): RingNotice | undefined {
    return this.#notices.shift();
  }

  /** Units that came back. False: more than there are. */
  returned(units: number): boolean {
    return this.#out?.returned(units) === true;
  }

  /**
   * The peer says something. Returns what is wrong with it.
   *
   * @param posted - posts what was written before
   */
  heard(kind: number, payload: Uint8Array, posted: () => void): string | undefined {
    const memory = kind === Notice.OFFER ? decodeMemory(payload) : undefined;
    if (memory !== undefined) {
      if (this.#out !== undefined || this.#untold(Notice.GIVE_BACK)) return 'it offers a second ring';
      if (memory.id !== 0) return `the description of its ring has the id ${memory.id}`;
      const out = OutRing.of(memory, this.#bytes);
      if (out === undefined)
        return `its ring of ${memory.length} bytes is none for this side, which wants at most ${this.#bytes}`;
      this.#out = out;
      void out.make(this.#registrar).then((made) => {
        if (made || this.#out !== out) return;
        this.#out = undefined;
        this.#say(Notice.GIVE_BACK, EMPTY);
      });
      return undefined;
    }
    if (payload.length > 0) return `a notice of ${payload.length} bytes has another form`;
    if (kind === Notice.GIVE_BACK) {
      if (this.#untold(Notice.OFFER) || !this.#in.gaveBack()) return 'it gives back a ring that it has not';
      this.#notices = this.#notices.filter((notice) => notice.kind !== Notice.TAKE_BACK);
      return undefined;
    }
    if (kind !== Notice.TAKE_BACK) return `there is no notice ${kind}`;
    const out = this.#out;
    // It may have been given back meanwhile.
    if (out === undefined) return undefined;
    posted();
    this.#out = undefined;
    out.end(false);
    this.#say(Notice.GIVE_BACK, EMPTY);
    return undefined;
  }

  /** The connection has ended, and nothing of it is under way. */
  end(): void {
    this.#in.end();
    this.#out?.end(true);
  }
}
