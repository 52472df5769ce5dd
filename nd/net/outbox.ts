import { closed, netError } from './errors.js';
import type { Link } from './link.js';
import type { Registered } from './place.js';
import { encodeMemory, LARGE } from './wire.js';

/** From this length on lent memory is read by the peer, and not copied. */
const LENT_LEAST = 4096;

const nothing = (): void => {};

/** A frame that waits for a credit, for its memory, or for the peer to read it. */
interface Entry {
  readonly type: number;
  flags: number;
  readonly id: number;
  payload: Uint8Array | undefined;
  /** Its payload can be sent. */
  ready: boolean;
  /** The sender may use its bytes again. */
  resolve(): void;
  reject(error: unknown): void;
}

/** Memory that the peer reads. */
interface Offer {
  readonly memory: Registered;
  /** The caller has lent it: it stays registered. */
  readonly lent: boolean;
  resolve(): void;
  reject(error: unknown): void;
}

/** What a channel sends: in order, at once where credits allow. */
export class Outbox {
  readonly #entries: Entry[] = [];
  #head = 0;
  readonly #offers = new Map<number, Offer>();
  #lastOffer = 0;

  constructor(private readonly link: () => Link) {}

  /** Nothing waits to be sent. */
  get empty(): boolean {
    return this.#head === this.#entries.length;
  }

  /** Nothing waits to be sent, nor to be read by the peer. */
  get done(): boolean {
    return this.empty && this.#offers.size === 0;
  }

  /** Frames that wait. */
  get length(): number {
    return this.#entries.length - this.#head;
  }

  /**
   * Sends a frame. True: its bytes were copied, and neither function is called. False: one of them is called when the bytes may be used
   * again, or when they never will be sent.
   */
  send(
    type: number,
    id: number,
    bytes: Uint8Array | undefined,
    resolve: () => void = nothing,
    reject: (error: unknown) => void = nothing,
  ): boolean {
    const link = this.link();
    const length = bytes === undefined ? 0 : bytes.length;
    const lent = length >= LENT_LEAST ? link.place.lentOf(bytes!) : undefined;
    if (length <= link.most && lent === undefined) {
      if (this.empty && link.takes(length)) {
        link.send(type, 0, id, bytes);
        return true;
      }
      this.#entries.push({ type, flags: 0, id, payload: bytes, ready: true, resolve, reject });
      link.keepAlive.update();
      return false;
    }
    const entry: Entry = {
      type,
      flags: LARGE,
      id,
      payload: undefined,
      ready: false,
      resolve: nothing,
      reject,
    };
    this.#entries.push(entry);
    link.keepAlive.update();
    if (lent !== undefined) {
      this.#offer(entry, { memory: lent, lent: true, resolve, reject }, bytes!);
      this.pump();
    } else void this.#register(entry, bytes!, resolve, reject);
    return false;
  }

  async #register(
    entry: Entry,
    bytes: Uint8Array,
    resolve: () => void,
    reject: (error: unknown) => void,
  ): Promise<void> {
    const { place } = this.link();
    try {
      const memory = await place.offer(bytes);
      if (this.link().over) {
        memory.region.release();
        return;
      }
      this.#offer(entry, { memory, lent: false, resolve, reject }, memory.bytes);
      this.pump();
    } catch (error) {
      const at = this.#entries.indexOf(entry, this.#head);
      if (at >= 0) this.#entries.splice(at, 1);
      reject(netError(error, 'send'));
      this.pump();
    }
  }

  #offer(entry: Entry, offer: Offer, bytes: Uint8Array): void {
    this.#lastOffer = (this.#lastOffer + 1) >>> 0;
    const id = this.#lastOffer;
    this.#offers.set(id, offer);
    const { region, bytes: whole } = offer.memory;
    const address = region.address + BigInt(bytes.byteOffset - whole.byteOffset);
    entry.payload = encodeMemory({ address, token: region.getRemoteToken(), id, length: bytes.length });
    entry.ready = true;
  }

  /** Sends what credits allow. */
  pump(): void {
    const entries = this.#entries;
    const link = this.link();
    while (this.#head < entries.length) {
      const entry = entries[this.#head]!;
      if (!entry.ready || !link.takes(entry.payload?.length ?? 0)) break;
      link.send(entry.type, entry.flags, entry.id, entry.payload);
      this.#head += 1;
      entry.resolve();
    }
    if (this.#head === entries.length && this.#head > 0) {
      entries.length = 0;
      this.#head = 0;
    } else if (this.#head > 1024) {
      entries.splice(0, this.#head);
      this.#head = 0;
    }
  }

  /** Takes a frame back that was not sent. */
  cancel(type: number, id: number): boolean {
    for (let i = this.#head; i < this.#entries.length; i += 1) {
      const entry = this.#entries[i]!;
      if (entry.type !== type || entry.id !== id || entry.flags !== 0) continue;
      this.#entries.splice(i, 1);
      return true;
    }
    return false;
  }

  /** The peer has read a large payload. */
  wasRead(id: number): void {
    const offer = this.#offers.get(id);
    if (offer === undefined) return;
    this.#offers.delete(id);
    if (!offer.lent) offer.memory.region.release();
    offer.resolve();
  }

  /** The connection has ended: nothing more is sent. */
  end(error: unknown = closed('send')): void {
    const entries = this.#entries.splice(0).slice(this.#head);
    this.#head = 0;
    for (const entry of entries) entry.reject(error);
    for (const offer of this.#offers.values()) {
      if (!offer.lent) offer.memory.region.release();
      offer.reject(error);
    }
    this.#offers.clear();
  }
}
