/** Ping-pong of Send and Receive. An empty message ends it. */

import { WvOpcode, WvSend } from 'networkdirect/winverbs';
import type { MemoryWv } from '../../nd/cli/sides/winverbs-side.js';
import { each, type Sample, spin, timed, timedAsync, without } from '../samples.js';
import type { JobOf } from './job.js';
import type { Connection, Side } from './side.js';

type PingPong = JobOf<'ping-pong'>;

/** Queue pair depth that the targets for many queue pairs assume. */
export const DEPTH = 16;
/** One Send in this many is signaled; its completion covers all before it. */
const SIGNAL_EVERY = DEPTH / 2;
/** Posted Receives. */
const RECEIVES = 4;
/** Longest inline message. */
const INLINE = 16;
/** Round trips between two readings of the clock. */
const BATCH = 32;

/** One side of the ping-pong. It sends and receives messages on its queue pairs, which are identified by index. */
export class Player {
  /** The queue pair of the last received message. */
  from = 0;
  readonly #out: ReturnType<MemoryWv['sge']>;
  readonly #room: ReturnType<MemoryWv['sge']>;
  readonly #inline: number;
  readonly #flags: number;
  readonly #sent: Int32Array;
  readonly #queuePairs: Connection['qp'][] = [];

  constructor(
    readonly side: Side,
    { size, queuePairs }: Pick<PingPong, 'size' | 'queuePairs'>,
  ) {
    const memory = side.memory(new Uint8Array(new SharedArrayBuffer(2 * size)));
    this.#room = memory.sge(0, size);
    this.#out = memory.sge(size, size);
    this.#inline = size <= INLINE ? INLINE : 0;
    this.#flags = size <= INLINE ? WvSend.INLINE : 0;
    this.#sent = new Int32Array(queuePairs);
  }

  /** Creates a queue pair and posts its Receives. */
  queuePair(): Connection['qp'] {
    const context = this.#queuePairs.length;
    const qp = this.side.queuePair({ sends: DEPTH, receives: DEPTH, inline: this.#inline, context });
    for (let i = 0; i < RECEIVES; i += 1) qp.postReceive(0, this.#room);
    this.#queuePairs.push(qp);
    return qp;
  }

  /** Sends the message on a queue pair; `end`: the empty one. */
  send(index: number, end = false): void {
    const sent = this.#sent[index]!;
    this.#sent[index] = sent + 1;
    const flags = sent % SIGNAL_EVERY === SIGNAL_EVERY - 1 ? this.#flags | WvSend.SIGNALED : this.#flags;
    this.#queuePairs[index]!.send(0, end ? NOTHING : this.#out, flags);
  }

  /** Reposts a Receive that a message has consumed. */
  renew(index: number): void {
    this.#queuePairs[index]!.postReceive(0, this.#room);
  }

  /** Spins until a message arrives. Returns its length. */
  take(): number {
    for (;;) {
      const length = this.#poll();
      if (length >= 0) return length;
    }
  }

  /** The same, but the thread blocks. */
  takeBlocking(): number {
    for (;;) {
      const length = this.#poll();
      if (length >= 0) return length;
      if (length === EMPTY) this.side.cq.notify('any').getResult({ wait: true });
    }
  }

  /** The same, but the event loop waits. */
  async takeAwaiting(): Promise<number> {
    for (;;) {
      const length = this.#poll();
      if (length >= 0) return length;
      if (length === EMPTY) await this.side.cq.notify('any');
    }
  }

  /** Polls once. Returns the length of a message, {@link OTHER} for another completion, or {@link EMPTY}. */
  #poll(): number {
    const { side } = this;
    if (side.poll(1) === 0) return EMPTY;
    const { opcode, length, qpContext } = side.completions[0]!;
    if (opcode !== WvOpcode.RECEIVE) return OTHER;
    this.from = qpContext as number;
    return length;
  }
}

const EMPTY = -1;
const OTHER = -2;
const NOTHING: ReturnType<MemoryWv['sge']>[0][] = [];

/** Replies until the empty message arrives. */
export async function answer(
  player: Player,
  { wait, pause }: Pick<PingPong, 'wait' | 'pause'>,
): Promise<void> {
  const reply = () => {
    spin(pause);
    player.send(player.from);
    player.renew(player.from);
  };
  if (wait === 'loop') {
    while ((await player.takeAwaiting()) > 0) reply();
  } else if (wait === 'block') {
    while (player.takeBlocking() > 0) reply();
  } else {
    while (player.take() > 0) reply();
  }
}

/** Measures for the duration of the job. */
export async function play(player: Player, job: PingPong): Promise<Sample> {
  const turns = job.inTurn ? job.queuePairs : 1;
  let index = 0;
  const sendNext = () => {
    spin(job.pause);
    player.send(index);
    player.renew(index);
    index = index + 1 === turns ? 0 : index + 1;
  };
  const rounds = () => {
    for (let i = 0; i < BATCH; i += 1) {
      sendNext();
      player.take();
    }
  };
  const blockingRound = () => {
    sendNext();
    player.takeBlocking();
  };
  const awaitingRound = async () => {
    sendNext();
    await player.takeAwaiting();
  };
  const sample =
    job.wait === 'poll'
      ? each(timed(job.seconds, rounds), BATCH)
      : job.wait === 'block'
        ? timed(job.seconds, blockingRound)
        : await timedAsync(job.seconds, awaitingRound);
  player.send(0, true);
  // Both sides pause in each round trip.
  return each(without(sample, 2 * job.pause), 2);
}
