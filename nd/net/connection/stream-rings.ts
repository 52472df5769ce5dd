/**
 * Additional memory for a busy stream. The sender copies bytes into it directly if it can map the receiver's memory, and otherwise uses
 * RDMA Writes (docs/internals/net.md).
 */
import {
  allocate,
  type IND2MemoryRegion,
  type IND2QueuePair,
  Nd2Direct,
  Nd2DirectResult,
  Nd2MrFlag,
  Nd2RemoteMemory,
  type Nd2Sge,
} from '../../index.js';
import { decodeMemory, encodeMemory, Notice, RING_UNIT } from './frames.js';
import { type Grant, type Grants, Right } from './grants.js';
import type { Slot } from './link-types.js';
import type { Registered } from './local-context.js';
import { REMOTE_OPERATIONS } from './operations.js';

// V8 treats imported names as constants only under a local name.
const { DONE } = Nd2DirectResult;

/** A stream is busy if it receives this many bytes in full slots within this many ms. */
const BUSY_BYTES = 2 ** 18;
const BUSY_MS = 250;

/** Maximum value of that threshold, which rises after refusals. */
const MOST_BUSY_BYTES = 2 ** 30;

/** Maximum bytes that one frame announces: the size of the largest chunk that a program reads. */
const MOST_ANNOUNCED = 2 ** 18;

/** Number of failed attempts to place bytes before the sender allocates memory for Writes. Mapping the peer's memory takes a few ms. */
const MOST_TRIES = 256;

/** Maximum bytes of all rings of this thread. */
export const MOST_BYTES = 2 ** 27;

/** Interval between checks, in ms. A ring that received nothing between two checks is withdrawn. */
const CHECK_MS = 5000;

const EMPTY = Buffer.alloc(0);

/** A RING frame to be sent. */
export interface RingNotice {
  /** A value of {@link Notice}. */
  readonly kind: number;
  /** Description of the ring for an offer; otherwise empty. */
  readonly payload: Uint8Array;
}

/** The rings of this thread that peers may write to. */
class Rings {
  #bytes = 0;
  readonly #all = new Set<InRing>();
  #timer: NodeJS.Timeout | undefined;

  /** Reserves bytes of the thread's limit. Returns false if too few are left. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > MOST_BYTES) return false;
    this.#bytes += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#bytes -= bytes;
  }

  add(ring: InRing): void {
    this.#all.add(ring);
    this.#timer ??= setInterval(() => this.reclaimIdle(), CHECK_MS).unref();
  }

  remove(ring: InRing): void {
    this.#all.delete(ring);
    if (this.#all.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Withdraws the rings that received nothing since the last check. */
  reclaimIdle(): void {
    for (const ring of this.#all) ring.reclaimIdle();
  }

  get bytes(): number {
    return this.#bytes;
  }
}

/** @internal */
export const rings = new Rings();

/** The functions of a queue pair that put bytes into the peer's memory. */
type Writer = Pick<IND2QueuePair, 'write' | 'direct'>;

/** Bytes in each part of a ring with one part per receive slot; 0 if the ring is too small. */
const partBytesOf = (bytes: number, parts: number): number =>
  RING_UNIT * Math.floor(bytes / parts / RING_UNIT);

/** Registers memory for rings and gives the peer access. */
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

  /** Allocates and registers memory, or returns undefined if that fails. */
  static async of(registrar: Registrar, bytes: number, flags: number): Promise<RingMemory | undefined> {
    if (!rings.take(bytes)) return undefined;
    try {
      const memory = await registrar.register(allocate(bytes), flags);
      const all = memory.bytes;
      return new RingMemory(Buffer.from(all.buffer, all.byteOffset, bytes), memory);
    } catch {
      rings.release(bytes);
      return undefined;
    }
  }

  get region(): IND2MemoryRegion {
    return this.memory.region;
  }

  /** Gives the peer write access to the whole ring. Calls one of the functions unless the connection ends first. */
  open(registrar: Registrar, opened: (description: Uint8Array) => void, failed: () => void): void {
    const { memory, region } = this;
    const { length } = this.bytes;
    this.#access = registrar.open({ memory, offset: 0, length }, Right.WRITE, {
      opened: (token) => opened(encodeMemory({ address: region.address, token, id: 0, length })),
      failed,
    });
  }

  release(): void {
    this.#access?.cut();
    this.region.release();
    rings.release(this.bytes.length);
  }
}

/**
 * The receiver's side of a ring. It offers a ring when the stream becomes busy and memory is available, and withdraws it when no data
 * arrives any more. Each Send has a part of the ring. Parts are used round-robin, and a part is free when the slot of its Send is.
 */
export class InRing {
  #state: 'none' | 'making' | 'offered' | 'withdrawn' | 'returned' | 'over' = 'none';
  readonly #partBytes: number;
  /** Bytes within the interval that make a stream count as busy; raised after a refusal. */
  #busyBytes = BUSY_BYTES;
  #memory: RingMemory | undefined;
  /** Parts whose bytes the program has not read yet: a flag for each, and their number. */
  readonly #holds: Uint8Array;
  #held = 0;
  #received = 0;
  #since = 0;
  /** Whether nothing has arrived since the last check. */
  #still = false;

  /**
   * Creates the receiver's side, without a ring.
   *
   * @param parts - slots of this side
   * @param bytes - size of the ring; if it is less than a unit for each part, there is never a ring
   * @param notify - sends a RING frame
   */
  constructor(
    private readonly registrar: Registrar,
    private readonly parts: number,
    bytes: number,
    private readonly notify: (kind: number, payload: Uint8Array) => void,
  ) {
    this.#partBytes = partBytesOf(bytes, parts);
    this.#holds = new Uint8Array(parts);
  }

  /** Called when bytes arrived in a full slot, to detect whether the stream is busy. */
  received(bytes: number): void {
    if (this.#state !== 'none' || this.#partBytes === 0) return;
    this.#received += bytes;
    if (this.#received < this.#busyBytes) return;
    const now = performance.now();
    if (now - this.#since < (BUSY_MS * this.#busyBytes) / BUSY_BYTES) void this.#make();
    this.#since = now;
    this.#received = 0;
  }

  async #make(): Promise<void> {
    this.#state = 'making';
    const flags = Nd2MrFlag.ALLOW_LOCAL_WRITE | Nd2MrFlag.ALLOW_REMOTE_WRITE;
    const made = await RingMemory.of(this.registrar, this.parts * this.#partBytes, flags);
    if (made === undefined) {
      // If there is no memory, the stream continues with its slots.
      this.#wasRefused();
      if (!this.#over) this.#state = 'none';
      return;
    }
    this.#memory = made;
    if (this.#over) {
      this.#free();
      return;
    }
    made.open(
      this.registrar,
      (description) => {
        if (this.#over) return;
        this.#state = 'offered';
        this.#still = false;
        rings.add(this);
        this.notify(Notice.OFFER, description);
      },
      () => {
        this.#wasRefused();
        this.#free();
      },
    );
  }

  /** Raises the threshold for the next attempt. */
  #wasRefused(): void {
    this.#busyBytes = Math.min(4 * this.#busyBytes, MOST_BUSY_BYTES);
  }

  get #over(): boolean {
    return this.#state === 'over';
  }

  /**
   * Accepts bytes that the sender has announced in the slot `carrier`. Returns undefined if the announcement violates the protocol.
   *
   * @param send - number of the Send among those that use data slots
   */
  take(send: number, bytes: number, carrier: Slot): Slot | undefined {
    if (this.#state !== 'offered' && this.#state !== 'withdrawn') return undefined;
    const part = send % this.parts;
    if (bytes === 0 || bytes > this.#partBytes || this.#holds[part] !== 0) return undefined;
    this.#holds[part] = 1;
    this.#held += 1;
    this.#still = false;
    // This slot is never posted. It only describes where the bytes are.
    return { ...carrier, memory: this.#memory!.bytes, offset: part * this.#partBytes, carrier };
  }

  /** Releases the bytes of a part that {@link take} returned. */
  released({ offset }: Slot): void {
    this.#holds[offset / this.#partBytes] = 0;
    this.#held -= 1;
    if (this.#state === 'returned' && this.#held === 0) this.#free();
  }

  /** Withdraws the ring if nothing arrived since the last check. */
  reclaimIdle(): void {
    if (this.#state !== 'offered') return;
    if (this.#still && this.#held === 0) {
      this.#state = 'withdrawn';
      this.notify(Notice.WITHDRAW, EMPTY);
    }
    this.#still = true;
  }

  /**
   * Called when the sender has returned the ring because of a request or because it has no memory for its Writes. Returns false if there is
   * no ring.
   */
  wasReturned(): boolean {
    if (this.#state !== 'withdrawn' && this.#state !== 'offered') return false;
    if (this.#state === 'offered') this.#wasRefused();
    this.#state = 'returned';
    if (this.#held === 0) this.#free();
    return true;
  }

  #free(): void {
    if (this.#memory === undefined) return;
    this.#memory.release();
    this.#memory = undefined;
    rings.remove(this);
    if (!this.#over) this.#state = 'none';
  }

  /** Called when the connection has ended. Memory with unread bytes is kept. */
  end(): void {
    this.#state = 'over';
    this.#free();
  }
}

/**
 * The sender's side of a ring. Each Send announces the bytes of its own part. The credit for that Send shows that the receiver has read the
 * part's previous bytes. If the peer's memory cannot be mapped, the bytes are copied to local memory of the same size and sent by RDMA
 * Write.
 */
export class OutRing {
  readonly partBytes: number;
  readonly #remote: Nd2RemoteMemory;
  readonly #parts: number;
  /** Requests memory for Writes; called once. */
  #want: (() => void) | undefined;
  #memory: RingMemory | undefined;
  #sgl: [Nd2Sge] | undefined;
  /** Failed attempts to place bytes. */
  #tries = 0;
  /** Send numbers of the Writes in flight; their local memory must not change. */
  readonly #writes: number[] = [];
  #over = false;

  /**
   * Creates the sender's side of the ring that the peer has offered.
   *
   * @param remote - the ring, which has `parts` parts
   * @param want - called when memory for Writes is needed
   */
  constructor(remote: Nd2RemoteMemory, bytes: number, parts: number, want: () => void) {
    this.#remote = remote;
    this.#parts = parts;
    this.partBytes = partBytesOf(bytes, parts);
    this.#want = want;
  }

  /** Allocates memory for Writes. Returns false if that fails. */
  async make(registrar: Registrar): Promise<boolean> {
    const made = await RingMemory.of(registrar, this.#parts * this.partBytes, Nd2MrFlag.ALLOW_LOCAL_WRITE);
    if (made === undefined) return false;
    this.#memory = made;
    if (this.#over) this.#free();
    else this.#sgl = [{ memory: made.region, offset: 0, length: 0 }];
    return true;
  }

  /**
   * Copies pieces of `length` bytes in total, at most {@link partBytes}, to the part of Send number `send`, which must be the next one.
   * Returns false if the bytes can neither be placed nor written now.
   */
  put(queuePair: Writer, send: number, pieces: readonly Uint8Array[], length: number): boolean {
    const at = (send % this.#parts) * this.partBytes;
    if (this.#place(queuePair, at, pieces)) return true;
    const sgl = this.#sgl;
    if (sgl === undefined) {
      this.#tries += 1;
      if (queuePair.direct !== undefined && this.#tries < MOST_TRIES) return false;
      this.#want?.();
      this.#want = undefined;
      return false;
    }
    const writes = this.#writes;
    if (writes.length === REMOTE_OPERATIONS || (writes.length > 0 && writes[0]! <= send - this.#parts))
      return false;
    const { bytes } = this.#memory!;
    let to = at;
    for (const piece of pieces) {
      bytes.set(piece, to);
      to += piece.length;
    }
    sgl[0].offset = at;
    sgl[0].length = length;
    queuePair.write(this, sgl, this.#remote, at);
    writes.push(send);
    return true;
  }

  #place(queuePair: Writer, at: number, pieces: readonly Uint8Array[]): boolean {
    if (queuePair.direct === undefined) return false;
    let to = at;
    for (const piece of pieces) {
      if (queuePair.direct(Nd2Direct.WRITE, piece, this.#remote, to) !== DONE) return false;
      to += piece.length;
    }
    return true;
  }

  /** Called when the oldest Write has completed. */
  wrote(): void {
    this.#writes.shift();
    if (this.#over && this.#writes.length === 0) this.#free();
  }

  /** Stops writing. `now` means that no Write is in flight. */
  end(now: boolean): void {
    this.#over = true;
    this.#sgl = undefined;
    if (now || this.#writes.length === 0) this.#free();
  }

  #free(): void {
    this.#memory?.release();
    this.#memory = undefined;
  }
}

/** The rings of both directions of a stream and the pending RING frames. */
export class StreamRings {
  readonly #in: InRing;
  #out: OutRing | undefined;
  /** There is at most one notice of each kind, because a peer that proceeds before it has received one violates the protocol. */
  #notices: RingNotice[] = [];

  /**
   * Creates the state of both directions, without rings.
   *
   * @param bytes - ring size that both sides agreed on
   * @param slots - slots of this side
   * @param peerSlots - slots of the peer
   * @param news - called when a notice is to be sent
   */
  constructor(
    private readonly registrar: Registrar,
    private readonly bytes: number,
    slots: number,
    private readonly peerSlots: number,
    private readonly news: () => void,
  ) {
    this.#in = new InRing(registrar, slots, bytes, (kind, payload) => this.#queueNotice(kind, payload));
  }

  #queueNotice(kind: number, payload: Uint8Array): void {
    this.#notices.push({ kind, payload });
    this.news();
  }

  /** Whether a notice of this kind is still to be sent. */
  #isQueued(kind: number): boolean {
    return this.#notices.some((notice) => notice.kind === kind);
  }

  /** The ring that the peer writes to. */
  get in(): InRing {
    return this.#in;
  }

  /** Maximum bytes that one Send can announce; 0 if the peer has offered no ring. */
  get room(): number {
    return Math.min(this.#out?.partBytes ?? 0, MOST_ANNOUNCED);
  }

  /** The same as {@link OutRing.put}. */
  put(queuePair: Writer, send: number, pieces: readonly Uint8Array[], length: number): boolean {
    return this.#out!.put(queuePair, send, pieces, length);
  }

  /** Removes and returns the next notice. */
  notice(): RingNotice | undefined {
    return this.#notices.shift();
  }

  /** Whether a notice is to be sent. */
  get hasNotice(): boolean {
    return this.#notices.length > 0;
  }

  /**
   * Handles a notice of the peer. Returns a description of the protocol violation, if any. Replies are sent after frames that were created
   * earlier.
   */
  receive(kind: number, payload: Uint8Array): string | undefined {
    if (kind === Notice.OFFER && payload.length > 0) return this.#offered(payload);
    if (payload.length > 0) return `a notice of ${payload.length} bytes is malformed`;
    if (kind === Notice.RETURN) {
      if (this.#isQueued(Notice.OFFER) || !this.#in.wasReturned())
        return 'it returned a ring that it does not have';
      this.#notices = this.#notices.filter((notice) => notice.kind !== Notice.WITHDRAW);
      return undefined;
    }
    if (kind !== Notice.WITHDRAW) return `unknown notice ${kind}`;
    // The ring may have been returned already.
    if (this.#out !== undefined) this.#returnRing(this.#out);
    return undefined;
  }

  #offered(payload: Uint8Array): string | undefined {
    const memory = decodeMemory(payload);
    if (memory === undefined) return `a notice of ${payload.length} bytes is malformed`;
    const { address, token, id, length } = memory;
    if (this.#out !== undefined || this.#isQueued(Notice.RETURN)) return 'it offered a second ring';
    if (id !== 0) return `the id in the description of a ring must be 0; got ${id}`;
    const parts = this.peerSlots;
    if (length === 0 || length > this.bytes || length % (parts * RING_UNIT) !== 0)
      return `a ring of ${length} bytes does not fit ${parts} slots and the maximum of ${this.bytes} bytes`;
    const out = new OutRing(new Nd2RemoteMemory(address, token), length, parts, () => void this.#write(out));
    this.#out = out;
    return undefined;
  }

  /** The peer's memory can only be reached by Writes. */
  async #write(out: OutRing): Promise<void> {
    if (!(await out.make(this.registrar)) && this.#out === out) this.#returnRing(out);
  }

  #returnRing(out: OutRing): void {
    this.#out = undefined;
    out.end(false);
    this.#queueNotice(Notice.RETURN, EMPTY);
  }

  /** Called when the connection has ended and has no requests in flight. */
  end(): void {
    this.#in.end();
    this.#out?.end(true);
  }
}
