/**
 * Ping-pong of RDMA Writes to memory from `allocate()`, detected by polling the memory. The last four bytes of a message are its number,
 * which a Write changes last. The number -1 ends the ping-pong.
 */

import { WvSend } from 'networkdirect/winverbs';
import type { MemoryWv } from '../../nd/cli/sides/winverbs-side.js';
import { each, type Sample, timed } from '../samples.js';
import type { JobOf } from './job.js';
import { makeMemory } from './library.js';
import type { Connection, Side } from './side.js';

type WritePoll = JobOf<'write-poll'>;

const DEPTH = 64;
const SIGNAL_EVERY = DEPTH / 2;
/** Longest inline message. */
const INLINE = 16;
const BATCH = 32;
const END = -1;
/** Reads of the memory per poll of the completion queue, which processes packets. */
const LOOKS = 256;

/** One side of the ping-pong. Its memory has room for the peer's message, followed by its own message. */
export class Writer {
  readonly #memory: MemoryWv;
  readonly #words: Int32Array;
  readonly #at: number;
  readonly #outAt: number;
  readonly #out: ReturnType<MemoryWv['sge']>;
  readonly #flags: number;
  #sent = 0;
  /** Send queue entries that may be used before the next poll. */
  #free = DEPTH;
  #looks = 0;
  #connection!: Connection;

  constructor(
    readonly side: Side,
    private readonly job: WritePoll,
  ) {
    const room = Math.ceil(job.size / 64) * 64;
    this.#memory = side.memory(makeMemory('allocate', 2 * room));
    this.#words = new Int32Array(this.#memory.bytes.buffer);
    this.#at = Math.floor(job.size / 4) - 1;
    this.#outAt = room / 4 + this.#at;
    this.#out = this.#memory.sge(room, 4 * (this.#at + 1));
    this.#flags = job.size <= INLINE ? WvSend.INLINE : 0;
  }

  queuePair() {
    return this.side.queuePair({ sends: DEPTH, receives: 1, inline: this.job.size <= INLINE ? INLINE : 0 });
  }

  set connection(connection: Connection) {
    this.#connection = connection;
  }

  write(number: number): void {
    while (this.#free === 0) this.#poll();
    this.#free -= 1;
    this.#words[this.#outAt] = number;
    this.#sent += 1;
    const flags = this.#sent % SIGNAL_EVERY === 0 ? this.#flags | WvSend.SIGNALED : this.#flags;
    this.#connection.qp.write(0, this.#out, flags, this.#connection.remote, 0);
  }

  /** Spins until the number differs from `last`. */
  await(last: number): number {
    for (;;) {
      const number = Atomics.load(this.#words, this.#at);
      if (number !== last) return number;
      this.#looks = (this.#looks + 1) % LOOKS;
      if (this.#looks === 0) this.#poll();
    }
  }

  #poll(): void {
    this.#free += SIGNAL_EVERY * this.side.poll(DEPTH);
  }
}

export function answerWrites(writer: Writer): void {
  let number = 0;
  for (;;) {
    number = writer.await(number);
    if (number === END) return;
    writer.write(number);
  }
}

export function playWrites(writer: Writer, job: WritePoll): Sample {
  let last = 0;
  const sample = timed(job.seconds, () => {
    for (let i = 0; i < BATCH; i += 1) {
      const next = (last + 1) & 0x7fff_ffff;
      writer.write(next);
      writer.await(last);
      last = next;
    }
  });
  writer.write(END);
  return each(sample, 2 * BATCH);
}
