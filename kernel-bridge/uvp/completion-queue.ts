import type { TokenTable } from '../door/token-table.js';
import type { UvpCompletion } from '../door/user-verbs.js';
import type { NativeRing, UserHca } from '../hca/user-hca.js';
import { abi } from '../schema/generated/ring.js';
import type { SoftQueuePair } from './queue-pair.js';
import * as rings from './rings.js';

/** A completion. Its constructor sets all fields, so that all completions have the same shape in V8. */
export class Completion implements UvpCompletion {
  context: unknown = undefined;
  qpContext: unknown = undefined;
  opcode = 0;
  status = 0;
  length = 0;
  flags = 0;
  immediateData = 0;
  sourceQpn = 0;
  vendorCode = 0;
  pkeyIndex = 0;
  /** LIDs and service levels exist on InfiniBand only, not on RoCE. */
  sLid = 0;
  sl = 0;
  dLidPathBits = 0;
}

const HEADER_WORDS = abi.cqHeaderBytes / 4;
const CQE_WORDS = abi.cqeBytes / 4;
// V8 treats constants of this module as constants, but not imported ones (queue-pair.ts).
const { loadAcquire, storeRelease } = rings;
const { cqProducer, cqConsumer, cqState, cqeToken } = abi;

export function cqRingBytes(entries: number): number {
  return abi.cqHeaderBytes + entries * abi.cqeBytes;
}

/** A destroyed queue pair with completions left in the ring. */
interface Retired {
  readonly qp: SoftQueuePair;
  /** CQEs before this position may belong to the queue pair. */
  position: number;
}

/** The consumer side of a completion queue's ring. The HCA is the producer. */
export class SoftCompletionQueue {
  handle = 0;
  /** The device's limit, checked when the queue is resized. */
  maxEntries = 0;
  ring: NativeRing;
  entries: number;
  private words: Uint32Array;
  private mask: number;
  /** Number of CQEs consumed, modulo 2^32. */
  private consumer = 0;
  private retired: Retired[] = [];
  /** Whether a poll is filling completions. They may be objects of the client, whose setters may call back into this class. */
  private filling = false;

  constructor(
    readonly hca: UserHca,
    private readonly tokens: TokenTable<SoftQueuePair>,
    entries: number,
  ) {
    this.entries = entries;
    this.mask = entries - 1;
    this.ring = hca.allocateRing(cqRingBytes(entries));
    this.words = new Uint32Array(this.ring.buffer);
  }

  /** Makes the HCA write finished completions into this ring. The doorbell is passed the queue's word. */
  private progress(): void {
    const { hca } = this;
    hca.doorbell[0] = this.handle;
    hca.progress();
  }

  /** Number of completions in the ring. */
  peek(): number {
    const waiting = (loadAcquire(this.words, cqProducer) - this.consumer) >>> 0;
    if (waiting > 0) return waiting;
    this.progress();
    return (loadAcquire(this.words, cqProducer) - this.consumer) >>> 0;
  }

  /** The same as {@link UserHca.shouldPoll}. */
  shouldPoll(): boolean {
    const { hca } = this;
    hca.doorbell[0] = this.handle;
    return hca.shouldPoll?.() ?? false;
  }

  /** Consumes at most `n` completions and returns their number; -1 if the queue has overrun and is empty. */
  poll(completions: UvpCompletion[], n: number): number {
    const words = this.words;
    let consumer = this.consumer;
    let producer = loadAcquire(words, cqProducer);
    if (producer === consumer) {
      this.progress();
      producer = loadAcquire(words, cqProducer);
      if (producer === consumer) return loadAcquire(words, cqState) === 0 ? 0 : -1;
    }
    // A nested poll would consume the same CQEs again: the outer poll has not published its consumer index yet.
    if (this.filling) return 0;
    this.filling = true;
    try {
      let count = 0;
      while (count < n && consumer !== producer) {
        const cqe = HEADER_WORDS + (consumer & this.mask) * CQE_WORDS;
        consumer = (consumer + 1) >>> 0;
        const qp = this.tokens.find(words[cqe + cqeToken]!);
        if (qp === undefined) continue;
        let completion = completions[count];
        if (completion === undefined) {
          completion = new Completion();
          completions[count] = completion;
        }
        if (qp.complete(words, cqe, completion)) count++;
      }
      this.consumer = consumer;
      storeRelease(words, cqConsumer, consumer);
      if (this.retired.length > 0) this.releaseRetired();
      return count;
    } finally {
      this.filling = false;
    }
  }

  /**
   * Call after the HCA has destroyed the queue pair. Its completions in the ring remain readable, and its token is not
   * reused before they have been read.
   */
  retire(qp: SoftQueuePair): void {
    const position = Atomics.load(this.words, abi.cqProducer);
    if (position === this.consumer) return;
    qp.unread++;
    this.retired.push({ qp, position });
  }

  /** Switches to the new ring, to which the HCA has moved the unread completions. */
  moveTo(ring: NativeRing, entries: number): void {
    const words = new Uint32Array(ring.buffer);
    const consumer = Atomics.load(words, abi.cqConsumer);
    const shift = consumer - this.consumer;
    for (const entry of this.retired) entry.position = (entry.position + shift) >>> 0;
    this.ring = ring;
    this.words = words;
    this.entries = entries;
    this.mask = entries - 1;
    this.consumer = consumer;
  }

  /** Releases the ring and discards its unread completions. */
  close(): void {
    this.dropShared();
    for (const { qp } of this.retired) this.tokens.read(qp);
    this.retired = [];
    this.hca.releaseRing(this.ring.address);
  }

  /** Frees the contexts of shared receives whose completions will never be read. */
  private dropShared(): void {
    if (this.retired.length === 0) return;
    const { words } = this;
    const producer = Atomics.load(words, abi.cqProducer);
    for (let at = this.consumer; at !== producer; at = (at + 1) >>> 0) {
      const cqe = HEADER_WORDS + (at & this.mask) * CQE_WORDS;
      if ((words[cqe + abi.cqeFlags]! & abi.cqeFlagSharedReceive) === 0) continue;
      this.tokens.find(words[cqe + abi.cqeToken]!)?.srq?.take(words[cqe + abi.cqeWqe]!);
    }
  }

  private releaseRetired(): void {
    const consumer = this.consumer;
    this.retired = this.retired.filter(({ qp, position }) => {
      // Counters wrap: a position at most one ring ahead has not been read yet.
      const ahead = (position - consumer) >>> 0;
      if (ahead !== 0 && ahead <= this.entries) return true;
      this.tokens.read(qp);
      return false;
    });
  }
}
