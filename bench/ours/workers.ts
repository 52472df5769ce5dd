/** Workers of one process, each with an HCA of its own: Send/Receive ping-pong between two queue pairs of each, polling. */
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { Sample } from '../statistics.js';
import type { JobOf } from './job.js';
import { Player } from './ping-pong.js';
import { Side } from './side.js';

type Workers = JobOf<'workers'>;

/** What the Workers do: one word that all of them read. */
const Phase = { wait: 0, warmUp: 1, count: 2, end: 3 } as const;
/** Of each Worker that has a processor: V8 compiles the measured code meanwhile. */
const WARM_UP_MS = 500;
/** Round trips between two looks at the phase. */
const BATCH = 32;

interface Shared {
  readonly job: Workers;
  readonly index: number;
  /** The phase, and the round trips of each Worker. */
  readonly words: Int32Array;
}

/** Round trips per second: of all Workers, or of the slowest one times their number. */
export async function workersRate(job: Workers): Promise<Sample> {
  const words = new Int32Array(new SharedArrayBuffer(4 * (1 + job.workers)));
  const threads = Array.from({ length: job.workers }, (_, index) => {
    const shared: Shared = { job, index, words };
    return new Worker(new URL(import.meta.url), { workerData: shared });
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
  const seconds = (go(Phase.end) - start) / 1000;
  await Promise.all(threads.map((thread) => once(thread, 'exit')));
  const counts = [...words.subarray(1)];
  const trips =
    job.of === 'slowest' ? Math.min(...counts) * job.workers : counts.reduce((sum, count) => sum + count, 0);
  return { mean: trips / seconds };
}

async function run({ job, index, words }: Shared): Promise<void> {
  const player = new Player(new Side(job), { size: 8, queuePairs: 2 });
  const { side } = player;
  const listener = side.host.listen(0, 1);
  const connecting = side.connect(listener.address.port, player.queuePair());
  await side.accept(await listener.next(), player.queuePair());
  await connecting;
  parentPort!.postMessage('ready');
  Atomics.wait(words, 0, Phase.wait);
  let trips = 0;
  for (let phase = 0; phase !== Phase.end; ) {
    for (let half = 0; half < 2 * BATCH; half += 1) {
      player.send(half & 1);
      player.take();
      player.renew(player.from);
    }
    phase = Atomics.load(words, 0);
    if (phase === Phase.count) trips += BATCH;
  }
  words[1 + index] = trips;
  process.exit(0);
}

if (!isMainThread && (workerData as Partial<Shared> | null)?.words !== undefined)
  await run(workerData as Shared);
