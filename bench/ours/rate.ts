/**
 * A stream of messages in one direction. The receiver grants {@link CREDITS} credits whenever it has posted as many new Receives, so that a
 * Receive is posted before each message arrives. An empty message ends the stream.
 */

import { WvOpcode, WvSend } from 'networkdirect/winverbs';
import type { MemoryWv } from '../../nd/cli/sides/winverbs-side.js';
import { perSecond, type Sample, timed } from '../samples.js';
import type { JobOf } from './job.js';
import type { Connection, Side } from './side.js';

type Rate = JobOf<'rate'>;

const DEPTH = 1024;
const CREDITS = 256;
/** Requests posted with one doorbell. The last one is signaled, and its completion covers all. */
const BATCH = 64;
const COMPLETIONS = 128;
const INLINE = 16;
/** Messages between two readings of the clock. */
const PART = 16 * CREDITS;
const NOTHING: ReturnType<MemoryWv['sge']>[0][] = [];

export function rateQueuePair(side: Side, job: Rate) {
  return side.queuePair({ sends: DEPTH, receives: DEPTH, inline: job.size <= INLINE ? INLINE : 0 });
}

/** The receiver. */
export class Sink {
  readonly #room: ReturnType<MemoryWv['sge']>;

  constructor(
    private readonly side: Side,
    job: Rate,
  ) {
    this.#room = side.memory(new Uint8Array(new SharedArrayBuffer(job.size))).sge(0, job.size);
  }

  /** Posts the Receives. Call this before the peer may send. */
  prepare(qp: Connection['qp']): void {
    for (let i = 0; i < DEPTH; i += 1) qp.postReceive(0, this.#room);
  }

  run({ qp }: Connection): void {
    const { side } = this;
    let taken = 0;
    for (;;) {
      const count = side.poll(COMPLETIONS);
      for (let i = 0; i < count; i += 1) {
        const { opcode, length } = side.completions[i]!;
        if (opcode !== WvOpcode.RECEIVE) continue;
        if (length === 0) return;
        qp.postReceive(0, this.#room);
        taken += 1;
      }
      for (; taken >= CREDITS; taken -= CREDITS) qp.send(0, NOTHING, WvSend.SIGNALED);
    }
  }
}

/** The sender. */
export class Source {
  readonly #out: ReturnType<MemoryWv['sge']>;
  readonly #flags: number;
  #credits = DEPTH;
  #unfinished = 0;

  constructor(
    private readonly side: Side,
    job: Rate,
  ) {
    this.#out = side.memory(new Uint8Array(new SharedArrayBuffer(job.size))).sge(0, job.size);
    this.#flags = job.size <= INLINE ? WvSend.INLINE : 0;
  }

  prepare(qp: Connection['qp']): void {
    for (let i = 0; i < DEPTH; i += 1) qp.postReceive(0, NOTHING);
  }

  run({ qp }: Connection, job: Rate): Sample {
    const sample = timed(job.seconds, () => {
      for (let sent = 0; sent < PART; sent += BATCH) this.#send(qp);
    });
    while (this.#credits === 0 || this.#unfinished > 0) this.#account(qp);
    qp.send(0, NOTHING, WvSend.SIGNALED);
    return perSecond(sample, PART);
  }

  #send(qp: Connection['qp']): void {
    while (this.#credits < BATCH || this.#unfinished > DEPTH - BATCH) this.#account(qp);
    qp.startBatch();
    for (let i = 1; i < BATCH; i += 1) qp.send(0, this.#out, this.#flags);
    qp.send(0, this.#out, this.#flags | WvSend.SIGNALED);
    qp.submitBatch();
    this.#credits -= BATCH;
    this.#unfinished += BATCH;
  }

  #account(qp: Connection['qp']): void {
    const { side } = this;
    const count = side.poll(COMPLETIONS);
    for (let i = 0; i < count; i += 1) {
      if (side.completions[i]!.opcode === WvOpcode.RECEIVE) {
        this.#credits += CREDITS;
        qp.postReceive(0, NOTHING);
      } else this.#unfinished -= BATCH;
    }
  }
}
