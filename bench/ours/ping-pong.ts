/** Send and Receive, there and back. A message of 0 bytes is the end. */
import { WvOpcode, WvSend } from '../../winverbs/index.js';
import { each, type Sample, timed, timedAsync, without } from '../statistics.js';
import type { JobOf } from './job.js';
import { type Connection, piece, type Side } from './side.js';

type PingPong = JobOf<'ping-pong'>;

/** Depth of a queue pair, as the targets for many of them have it. */
export const DEPTH = 16;
/** Every so many sends one tells that it is done, and those before it. */
const SIGNAL_EVERY = DEPTH / 2;
/** Receives that wait. */
const RECEIVES = 4;
/** Longest message that a request carries itself. */
const INLINE = 16;
/** Round trips between two looks at the clock. */
const BATCH = 32;

/** One player: sends and takes messages on any of its queue pairs, each known by its number. */
export class Player {
  /** Where the message came that was taken last. */
  from = 0;
  readonly #out: ReturnType<typeof piece>;
  readonly #room: ReturnType<typeof piece>;
  readonly #inline: number;
  readonly #flags: number;
  readonly #sent: Int32Array;
  readonly #queuePairs: Connection['qp'][] = [];

  constructor(
    readonly side: Side,
    { size, queuePairs }: PingPong,
  ) {
    const memory = side.memory(new Uint8Array(new SharedArrayBuffer(2 * size)));
    this.#room = piece(memory, 0, size);
    this.#out = piece(memory, size, size);
    this.#inline = size <= INLINE ? INLINE : 0;
    this.#flags = size <= INLINE ? WvSend.INLINE : 0;
    this.#sent = new Int32Array(queuePairs);
  }

  /** A queue pair with its receives. */
  queuePair(): Connection['qp'] {
    const context = this.#queuePairs.length;
    const qp = this.side.queuePair({ sends: DEPTH, receives: DEPTH, inline: this.#inline, context });
    for (let i = 0; i < RECEIVES; i += 1) qp.postReceive(0, this.#room);
    this.#queuePairs.push(qp);
    return qp;
  }

  /** Sends the message on a queue pair, or the empty one. */
  send(index: number, end = false): void {
    const sent = this.#sent[index]!;
    this.#sent[index] = sent + 1;
    const flags = sent % SIGNAL_EVERY === SIGNAL_EVERY - 1 ? this.#flags | WvSend.SIGNALED : this.#flags;
    this.#queuePairs[index]!.send(0, end ? NOTHING : this.#out, flags);
  }

  /** A new receive for the one that a message took. */
  renew(index: number): void {
    this.#queuePairs[index]!.postReceive(0, this.#room);
  }

  /** Spins until a message is there; answers its length. */
  take(): number {
    for (;;) {
      const length = this.#look();
      if (length >= 0) return length;
    }
  }

  /** The same, but the thread sleeps meanwhile. */
  takeBlocking(): number {
    for (;;) {
      const length = this.#look();
      if (length >= 0) return length;
      if (length === EMPTY) this.side.cq.notify('any').getResult({ wait: true });
    }
  }

  /** The same, but the event loop waits meanwhile. */
  async takeAwaiting(): Promise<number> {
    for (;;) {
      const length = this.#look();
      if (length >= 0) return length;
      if (length === EMPTY) await this.side.cq.notify('any');
    }
  }

  /** The length of a message, or that there was something else, or nothing. */
  #look(): number {
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
const NOTHING: ReturnType<typeof piece>[0][] = [];

/** Answers until the end comes. */
export async function answer(player: Player, { wait, pause }: PingPong): Promise<void> {
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

function spin(us: number): void {
  if (us === 0) return;
  for (const end = performance.now() + us / 1000; performance.now() < end; );
}

/** Plays for the job's time. */
export async function play(player: Player, job: PingPong): Promise<Sample> {
  const turns = job.inTurn ? job.queuePairs : 1;
  let index = 0;
  const serveBall = () => {
    spin(job.pause);
    player.send(index);
    player.renew(index);
    index = index + 1 === turns ? 0 : index + 1;
  };
  const rounds = () => {
    for (let i = 0; i < BATCH; i += 1) {
      serveBall();
      player.take();
    }
  };
  const blockingRound = () => {
    serveBall();
    player.takeBlocking();
  };
  const awaitingRound = async () => {
    serveBall();
    await player.takeAwaiting();
  };
  const sample =
    job.wait === 'poll'
      ? each(timed(job.seconds, rounds), BATCH)
      : job.wait === 'block'
        ? timed(job.seconds, blockingRound)
        : await timedAsync(job.seconds, awaitingRound);
  player.send(0, true);
  // Both sides have paused.
  return each(without(sample, 2 * job.pause), 2);
}
