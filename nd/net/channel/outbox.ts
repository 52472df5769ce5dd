import { closed, netError, violation } from '../base/errors.js';
import { Fifo, type Member } from '../base/fifo.js';
import { encodeMemory, Frame, isHeld, LARGE } from '../connection/frames.js';
import { type Grant, Right } from '../connection/grants.js';
import type { Link } from '../connection/link.js';
import type { Registered } from '../connection/local-context.js';
import type { SharedCopy } from '../memory/shared-copies.js';

/** Lent payloads of at least this length are read by the peer instead of being copied. */
const LENT_LEAST = 4096;

const nothing = (): void => {};

/** A frame that waits for a credit or for registration of its memory. */
export interface Entry {
  readonly type: number;
  readonly flags: number;
  readonly id: number;
  payload: Uint8Array | undefined;
  /** Whether its payload can be sent. */
  ready: boolean;
  /** The id in the memory description of a large payload. */
  offer: number | undefined;
  /** The frame's element in the queue. */
  member: Member<Entry> | undefined;
  /** Called when the sender may reuse its bytes. */
  resolve(): void;
  reject(error: unknown): void;
}

/** Memory that the peer reads. */
interface Offer {
  readonly memory: Registered;
  /** Whether the caller has lent the memory, so that it stays registered. */
  readonly lent: boolean;
  /** The peer's access, if requested. */
  grant: Grant | undefined;
  /** Whether the description was sent to the peer. */
  sent: boolean;
  /** Whether the peer's access is being revoked. */
  withdrawn: boolean;
  resolve(): void;
  reject(error: unknown): void;
}

/** State of an offer that the peer cannot access yet. */
const fresh = { grant: undefined, sent: false, withdrawn: false } as const;

const waits = ({ member }: Entry): boolean => member?.waits === true;

/**
 * Frames of a channel. They are sent immediately where credits allow: messages and requests in one order, replies in another. Replies never
 * wait behind messages, which wait for the peer's program.
 */
export class Outbox {
  readonly #held = new Fifo<Entry>();
  readonly #replies = new Fifo<Entry>();
  readonly #offers = new Map<number, Offer>();
  #lastOffer = 0;

  constructor(private readonly link: () => Link) {}

  /** Whether nothing waits to be sent or to be read by the peer. */
  get done(): boolean {
    return this.length === 0 && this.#offers.size === 0;
  }

  /** Number of waiting frames. */
  get length(): number {
    return this.#held.length + this.#replies.length;
  }

  #queueOf(type: number): Fifo<Entry> {
    return isHeld(type) ? this.#held : this.#replies;
  }

  /**
   * Sends a frame. Returns undefined if its bytes were copied, and calls neither function. Otherwise one of them is called when the bytes
   * may be reused or will never be sent, unless {@link cancel} removes the frame.
   */
  send(
    type: number,
    id: number,
    bytes: Uint8Array | undefined,
    resolve: () => void = nothing,
    reject: (error: unknown) => void = nothing,
  ): Entry | undefined {
    const link = this.link();
    const queue = this.#queueOf(type);
    const length = bytes === undefined ? 0 : bytes.length;
    const lent = length >= LENT_LEAST ? link.context.lentOf(bytes!) : undefined;
    const long = length > link.most;
    const free = queue.length === 0 && lent === undefined;
    if (free && (long ? link.takesPieces(type, length) : link.takes(type, length))) {
      link.send(type, 0, id, bytes);
      return undefined;
    }
    // Without RDMA Reads, a long payload waits until there are credits for all its pieces.
    const large = lent !== undefined || (long && link.context.reads);
    const entry: Entry = {
      type,
      flags: large ? LARGE : 0,
      id,
      payload: large ? undefined : bytes,
      ready: !large,
      offer: undefined,
      member: undefined,
      // The bytes of a large payload may be reused when the peer has read them.
      resolve: large ? nothing : resolve,
      reject,
    };
    entry.member = queue.push(entry);
    link.processRef.update();
    if (lent !== undefined) {
      this.#offer(entry, { ...fresh, memory: lent, lent: true, resolve, reject }, bytes!);
    } else if (large) void this.#register(entry, bytes!, resolve, reject);
    return entry;
  }

  /** Whether {@link send} copies a message of this length immediately. */
  copies(type: number, length: number): boolean {
    return this.#queueOf(type).length === 0 && this.link().takes(type, length);
  }

  /**
   * Sends a message from memory that several peers read. `over` is called when this peer no longer has access to it, possibly twice; `lost`
   * is called if the peer does not get the message.
   */
  share(copied: SharedCopy | Promise<SharedCopy>, over: () => void, lost: () => void): void {
    const entry: Entry = {
      type: Frame.DATA,
      flags: LARGE,
      id: 0,
      payload: undefined,
      ready: false,
      offer: undefined,
      member: undefined,
      resolve: nothing,
      reject: lost,
    };
    entry.member = this.#held.push(entry);
    this.link().processRef.update();
    const offer = ({ memory, bytes }: SharedCopy): void => {
      // The memory is marked as lent, so that it stays registered.
      if (waits(entry))
        this.#offer(entry, { ...fresh, memory, lent: true, resolve: over, reject: lost }, bytes);
    };
    if (copied instanceof Promise) copied.then(offer, (error) => this.#failed(entry, error));
    else offer(copied);
  }

  async #register(
    entry: Entry,
    bytes: Uint8Array,
    resolve: () => void,
    reject: (error: unknown) => void,
  ): Promise<void> {
    try {
      const memory = await this.link().context.offer(bytes);
      if (!waits(entry)) {
        memory.region.release();
        return;
      }
      this.#offer(entry, { ...fresh, memory, lent: false, resolve, reject }, memory.bytes);
    } catch (error) {
      this.#failed(entry, error);
    }
  }

  /** Removes an entry because the peer cannot be given access to its memory. */
  #failed(entry: Entry, error: unknown): void {
    if (!this.#remove(entry)) return;
    entry.reject(netError(error, 'send'));
    this.pump();
  }

  /** Gives the peer access to the bytes, which are part of the offer's memory, and then sends the frame. */
  #offer(entry: Entry, offer: Offer, bytes: Uint8Array): void {
    this.#lastOffer = (this.#lastOffer + 1) >>> 0;
    const id = this.#lastOffer;
    this.#offers.set(id, offer);
    entry.offer = id;
    const { memory } = offer;
    const { length } = bytes;
    const offset = bytes.byteOffset - memory.bytes.byteOffset;
    offer.grant = this.link().grants.open({ memory, offset, length }, Right.READ, {
      opened: (token) => {
        const address = memory.region.address + BigInt(offset);
        entry.payload = encodeMemory({ address, token, id, length });
        entry.ready = true;
        this.pump();
      },
      failed: (error) => {
        this.#cut(id);
        this.#failed(entry, error);
      },
    });
  }

  /** Revokes the peer's access to an offer's memory. Its bytes may be reused when no access can succeed any more. */
  #withdraw(id: number): void {
    const offer = this.#offers.get(id);
    if (offer === undefined || offer.withdrawn) return;
    offer.withdrawn = true;
    offer.grant!.close(() => this.#cut(id)?.resolve());
  }

  /** Revokes the access immediately and returns the offer. */
  #cut(id: number): Offer | undefined {
    const offer = this.#offers.get(id);
    if (offer === undefined) return undefined;
    this.#offers.delete(id);
    offer.grant?.cut();
    if (!offer.lent) offer.memory.region.release();
    return offer;
  }

  /** Sends as many frames as credits allow. */
  pump(): void {
    this.#pump(this.#replies);
    this.#pump(this.#held);
  }

  #pump(queue: Fifo<Entry>): void {
    const link = this.link();
    for (;;) {
      const entry = queue.first;
      if (entry === undefined || !entry.ready) return;
      const length = entry.payload === undefined ? 0 : entry.payload.length;
      const fits = length > link.most ? link.takesPieces(entry.type, length) : link.takes(entry.type, length);
      if (!fits) return;
      // Sending may end the connection, which rejects all entries.
      queue.shift();
      link.send(entry.type, entry.flags, entry.id, entry.payload);
      if (entry.offer !== undefined) this.#markSent(entry.offer);
      entry.resolve();
    }
  }

  #markSent(id: number): void {
    const offer = this.#offers.get(id);
    if (offer !== undefined) offer.sent = true;
  }

  #remove(entry: Entry): boolean {
    return entry.member !== undefined && this.#queueOf(entry.type).remove(entry.member);
  }

  /** Removes a frame that was not sent. */
  cancel(entry: Entry): boolean {
    if (!this.#remove(entry)) return false;
    if (entry.offer !== undefined) this.#withdraw(entry.offer);
    this.pump();
    return true;
  }

  /** Called when the peer has read a large payload. */
  wasRead(id: number): void {
    if (this.#offers.get(id)?.sent === false)
      this.link().end(violation(`it reported reading memory ${id}, which was not offered`));
    else this.#withdraw(id);
  }

  /** Ends the outbox: nothing more is sent. */
  end(error: unknown = closed('send')): void {
    for (const entry of [...this.#replies.drain(), ...this.#held.drain()]) {
      entry.reject(error);
    }
    for (const id of [...this.#offers.keys()]) {
      const offer = this.#cut(id)!;
      // The peer has read it, or the connection is over.
      if (offer.withdrawn) offer.resolve();
      else offer.reject(error);
    }
  }
}
