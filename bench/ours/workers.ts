/**
 * Workers with an HCA each: polling Send/Receive ping-pong between two queue pairs of each Worker, or between the Workers of two processes.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { Sample } from '../samples.js';
import { type JobOf, jobSchema } from './job.js';
import { answer, Player } from './ping-pong.js';
import { Side } from './side.js';

type Workers = JobOf<'workers'>;

/** The current phase: one word that all Workers read. */
const Phase = { wait: 0, warmUp: 1, count: 2, end: 3, over: 4 } as const;
/** Warm-up per Worker that has its own CPU, in ms. V8 compiles the measured code during this time. */
const WARM_UP_MS = 500;
/** Round trips between two checks of the phase. */
const BATCH = 32;

interface Shared {
  readonly job: Workers;
  readonly index: number;
  /** The phase, and the number of round trips of each Worker. */
  readonly words: Int32Array;
  /** The port of the Worker in the other process. */
  readonly port: number | undefined;
}

/** A Worker that replies to one of another process. */
interface Answering {
  readonly answering: Workers;
}

const SELF = new URL(import.meta.url);

/** Round trips per second of all Workers, or of the slowest one times their number. */
export async function workersRate(job: Workers): Promise<Sample> {
  const words = new Int32Array(new SharedArrayBuffer(4 * (1 + job.workers)));
  const partner = job.across ? await startPartner(job) : undefined;
  const threads = Array.from({ length: job.workers }, (_, index) => {
    const shared: Shared = { job, index, words, port: partner?.ports[index] };
    return new Worker(SELF, { workerData: shared });
  });
  await Promise.all(threads.map((thread) => once(thread, 'message')));
  const go = (phase: number): number => {
    Atomics.store(words, 0, phase);
    Atomics.notify(words, 0);
    return performance.now();
  };
  go(Phase.warmUp);
  await sleep(WARM_UP_MS * Math.max(1, job.workers / availableParallelism()));
  const start = go(Phase.count);
  await sleep(1000 * job.seconds);
  const ended = Promise.all(threads.map((thread) => once(thread, 'message')));
  const seconds = (go(Phase.end) - start) / 1000;
  // No Worker may exit while another one still waits for a reply.
  await ended;
  if (partner !== undefined) {
    const gone = once(partner.process, 'exit');
    partner.process.kill('SIGKILL');
    await gone;
  }
  const exits = Promise.all(threads.map((thread) => once(thread, 'exit')));
  go(Phase.over);
  await exits;
  const counts = [...words.subarray(1)];
  const trips =
    job.of === 'slowest' ? Math.min(...counts) * job.workers : counts.reduce((sum, count) => sum + count, 0);
  return { mean: trips / seconds };
}

/** Starts another process with as many replying Workers. */
async function startPartner(job: Workers): Promise<{ process: ChildProcess; ports: number[] }> {
  const process = fork(fileURLToPath(SELF), [JSON.stringify(job)]);
  const [ports] = (await once(process, 'message')) as [number[]];
  return { process, ports };
}

async function bePartner(job: Workers): Promise<void> {
  const ports = Array.from({ length: job.workers }, async () => {
    const data: Answering = { answering: job };
    const [port] = (await once(new Worker(SELF, { workerData: data }), 'message')) as [number];
    return port;
  });
  process.send!(await Promise.all(ports));
  process.once('disconnect', () => process.exit());
}

async function answerOne(job: Workers): Promise<void> {
  const player = new Player(new Side(job), { size: 8, queuePairs: 1 });
  const listener = player.side.host.listen(0, 1);
  parentPort!.postMessage(listener.address.port);
  await player.side.accept(await listener.next(), player.queuePair());
  await answer(player, { wait: 'poll', pause: 0 });
}

/** Connects a player's two queue pairs to each other. */
async function connectToItself(player: Player): Promise<void> {
  const { side } = player;
  const listener = side.host.listen(0, 1);
  const connecting = side.connect(listener.address.port, player.queuePair());
  await side.accept(await listener.next(), player.queuePair());
  await connecting;
}

async function run({ job, index, words, port }: Shared): Promise<void> {
  const player = new Player(new Side(job), { size: 8, queuePairs: 2 });
  if (port === undefined) await connectToItself(player);
  else await player.side.connect(port, player.queuePair());
  parentPort!.postMessage('ready');
  Atomics.wait(words, 0, Phase.wait);
  // A message to this Worker itself is half a round trip.
  const [messages, other] = port === undefined ? [2 * BATCH, 1] : [BATCH, 0];
  let trips = 0;
  for (let phase = 0; phase !== Phase.end; ) {
    for (let message = 0; message < messages; message += 1) {
      player.send(message & other);
      player.take();
      player.renew(player.from);
    }
    phase = Atomics.load(words, 0);
    if (phase === Phase.count) trips += BATCH;
  }
  words[1 + index] = trips;
  parentPort!.postMessage('ended');
  Atomics.wait(words, 0, Phase.end);
  process.exit(0);
}

const data = (isMainThread ? {} : (workerData ?? {})) as Partial<Shared & Answering>;
if (data.words !== undefined) await run(data as Shared);
else if (data.answering !== undefined) await answerOne(data.answering);
else if (isMainThread && process.send !== undefined && process.argv[1] === fileURLToPath(SELF))
  await bePartner(jobSchema.parse(JSON.parse(process.argv[2]!)) as Workers);
