import { abi } from '../hca/abi.js';
import type { NativeRing } from '../hca/binding.js';
import { Status, StatusError } from '../ioctl/status.js';
import type { UvpSge } from '../user-verbs.js';
import type { UvpAddon } from './completion-queue.js';
import { RECEIVE_HEADER_WORDS, receiveStride, writeSgl } from './work-request.js';

/** Places for contexts, as many times the ring: so far may completions lag behind without anything being allocated. */
const SLACK = 4;

export function srqRingBytes(entries: number, sge: number): number {
  return abi.srqHeaderBytes + entries * receiveStride(sge);
}

/**
 * Contexts by the index of their receive. The HCA frees a place of the ring when a message takes the receive, while its
 * completion comes later and in any order; so contexts live longer than places do. One that is in the way of a newer one
 * goes to a map.
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

  /** The context of a receive, which is forgotten; undefined if there is none. */
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

  /** Calls back for each that is there. */
  each(found: (index: number, context: unknown) => void): void {
    for (const [index, context] of this.late) found(index, context);
    for (let place = 0; place <= this.mask; place++) {
      if (this.used[place] !== 0) found(this.owners[place]!, this.values[place]);
    }
  }
}

/** A shared receive queue's ring, written where the HCA reads it (engine/abi.h). */
export class SoftSharedReceiveQueue {
  handle = 0;
  ring: NativeRing;
  private words: Uint32Array;
  private contexts: Contexts;
  /** The ring that a resize is about to give it. */
  next: { readonly ring: NativeRing; readonly entries: number } | undefined = undefined;
  private producer = 0;
  private readonly strideWords: number;

  constructor(
    private readonly addon: UvpAddon,
    /** A power of two. */
    public entries: number,
    readonly sge: number,
    /** The device's limit, for resizing. */
    readonly maxEntries: number,
  ) {
    this.strideWords = receiveStride(sge) / 4;
    this.contexts = new Contexts(entries * SLACK);
    this.ring = addon.allocateRing(srqRingBytes(entries, sge));
    this.words = new Uint32Array(this.ring.buffer);
  }

  /** @throws StatusError NO_MORE_ENTRIES, and what SGEs can have wrong. */
  postReceive(context: unknown, sgl: readonly UvpSge[]): void {
    const words = this.words;
    const index = this.producer;
    // A place is free as soon as a message has taken what was in it.
    if ((index - Atomics.load(words, abi.srqConsumer)) >>> 0 >= this.entries) {
      throw new StatusError(
        Status.NO_MORE_ENTRIES,
        `All ${this.entries} entries of the shared receive queue are taken; wait for messages, or make it larger.`,
      );
    }
    const wqe = abi.srqHeaderBytes / 4 + (index & (this.entries - 1)) * this.strideWords;
    words[wqe + abi.rwSgeCount] = writeSgl(words, wqe + RECEIVE_HEADER_WORDS, sgl, this.sge);
    this.contexts.put(index, context);
    this.producer = (index + 1) >>> 0;
    Atomics.store(words, abi.srqProducer, this.producer);
  }

  /** The context of a receive that has completed, or never will be told. */
  take(index: number): unknown {
    return this.contexts.take(index);
  }

  /** The HCA has moved to the new ring and has taken along the receives that wait. Indexes run on. */
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

  /** The HCA reads it no more. */
  close(): void {
    this.addon.releaseRing(this.ring.address);
  }
}
