import type { UvpSge } from '../door/user-verbs.js';
import type { NativeRing, UserHca } from '../hca/user-hca.js';
import { Status, StatusError } from '../ioctl/status.js';
import { abi } from '../schema/generated/ring.js';
import { RECEIVE_HEADER_WORDS, receiveStride, writeSgl } from './work-request.js';

/** Number of context entries, as a multiple of the ring's entries: completions may lag that far behind without an allocation. */
const SLACK = 4;

export function srqRingBytes(entries: number, sge: number): number {
  return abi.srqHeaderBytes + entries * receiveStride(sge);
}

/**
 * Contexts by the index of their receive. The HCA frees a ring entry when a message consumes the receive, but the
 * completion comes later and in any order, so a context outlives its ring entry. If a newer context needs its slot, it
 * moves to a map.
 */
class Contexts {
  private readonly mask: number;
  private readonly values: unknown[];
  private readonly owners: Uint32Array;
  private readonly used: Uint8Array;
  private readonly late = new Map<number, unknown>();

  constructor(places: number) {
    this.mask = places - 1;
    this.values = new Array<unknown>(places).fill(undefined);
    this.owners = new Uint32Array(places);
    this.used = new Uint8Array(places);
  }

  put(index: number, context: unknown): void {
    const place = index & this.mask;
    if (this.used[place] !== 0) this.late.set(this.owners[place]!, this.values[place]);
    this.used[place] = 1;
    this.owners[place] = index;
    this.values[place] = context;
  }

  /** Removes and returns the context of a receive, or undefined. */
  take(index: number): unknown {
    const place = index & this.mask;
    if (this.used[place] !== 0 && this.owners[place] === index) {
      const context = this.values[place];
      this.used[place] = 0;
      this.values[place] = undefined;
      return context;
    }
    const context = this.late.get(index);
    this.late.delete(index);
    return context;
  }

  /** Calls `found` for each context. */
  each(found: (index: number, context: unknown) => void): void {
    for (const [index, context] of this.late) found(index, context);
    for (let place = 0; place <= this.mask; place++) {
      if (this.used[place] !== 0) found(this.owners[place]!, this.values[place]);
    }
  }
}

/** The producer side of a shared receive queue's ring (schema/ring.ts). The HCA is the consumer. */
export class SoftSharedReceiveQueue {
  handle = 0;
  ring: NativeRing;
  private words: Uint32Array;
  private contexts: Contexts;
  /** The new ring, during a resize. */
  next: { readonly ring: NativeRing; readonly entries: number } | undefined = undefined;
  private producer = 0;
  private readonly strideWords: number;

  constructor(
    private readonly hca: UserHca,
    /** A power of two. */
    public entries: number,
    readonly sge: number,
    /** The device's limit, checked when the queue is resized. */
    readonly maxEntries: number,
  ) {
    this.strideWords = receiveStride(sge) / 4;
    this.contexts = new Contexts(entries * SLACK);
    this.ring = hca.allocateRing(srqRingBytes(entries, sge));
    this.words = new Uint32Array(this.ring.buffer);
  }

  /** @throws StatusError NO_MORE_ENTRIES, or the status of an invalid SGE. */
  postReceive(context: unknown, sgl: readonly UvpSge[]): void {
    const words = this.words;
    const index = this.producer;
    // An entry is free as soon as a message has consumed its receive.
    if (this.isFull(index) && !this.freed(index)) {
      throw new StatusError(
        Status.NO_MORE_ENTRIES,
        `All ${this.entries} entries of the shared receive queue are in use; wait for messages, or enlarge it.`,
      );
    }
    const wqe = abi.srqHeaderBytes / 4 + (index & (this.entries - 1)) * this.strideWords;
    words[wqe + abi.rwSgeCount] = writeSgl(words, wqe + RECEIVE_HEADER_WORDS, sgl, this.sge);
    this.contexts.put(index, context);
    this.producer = (index + 1) >>> 0;
    Atomics.store(words, abi.srqProducer, this.producer);
    // The HCA requests the doorbell and selects its value. The software HCA does so while a message waits, for the message's queue pair.
    const named = Atomics.load(words, abi.srqReceiveBell);
    if (named !== 0) {
      this.hca.doorbell[0] = named;
      this.hca.ringReceiveDoorbell();
    }
  }

  private isFull(index: number): boolean {
    return (index - Atomics.load(this.words, abi.srqConsumer)) >>> 0 >= this.entries;
  }

  /** Makes the HCA process completions: an HCA that learns of messages from completions frees entries only then. */
  private freed(index: number): boolean {
    const named = Atomics.load(this.words, abi.srqReceiveBell);
    if (named === 0) return false;
    this.hca.doorbell[0] = named;
    this.hca.progress();
    return !this.isFull(index);
  }

  /** Removes and returns the context of a receive that has completed, or whose completion will never be read. */
  take(index: number): unknown {
    return this.contexts.take(index);
  }

  /** Switches to the new ring, to which the HCA has moved the posted receives. Indexes continue. Returns the old ring. */
  moved(): NativeRing | undefined {
    const { next, ring } = this;
    if (next === undefined) return undefined;
    this.next = undefined;
    this.ring = next.ring;
    this.words = new Uint32Array(next.ring.buffer);
    this.entries = next.entries;
    const contexts = new Contexts(next.entries * SLACK);
    this.contexts.each((index, context) => contexts.put(index, context));
    this.contexts = contexts;
    return ring;
  }

  /** Releases the ring, after the HCA has destroyed the queue. */
  close(): void {
    this.hca.releaseRing(this.ring.address);
  }
}
