/** A process that runs random verbs concurrently in its main thread and two Workers: `program seed runs milliseconds`. */
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { runPlans } from './verbs-model.js';
import { Coverage } from './verbs-model-coverage.js';
import { nothingLeft } from './verbs-model-outcome.js';

interface Task {
  readonly seed: number;
  readonly runs: number;
  readonly milliseconds: number;
}

async function work(task: Task): Promise<number> {
  return runPlans({ ...task, alone: false, coverage: new Coverage() });
}

async function inWorker(task: Task): Promise<number> {
  const worker = new Worker(process.argv[1]!, { workerData: task });
  // From the start, because the event may directly follow the message.
  const exit = once(worker, 'exit');
  const [done] = (await once(worker, 'message')) as [number];
  const [code] = (await exit) as [number];
  if (code !== 0) throw new Error(`A Worker exited with code ${code}.`);
  return done;
}

if (isMainThread) {
  const [seed, runs, milliseconds] = process.argv.slice(2).map(Number) as [number, number, number];
  const task = (n: number): Task => ({ seed: seed + n, runs, milliseconds });
  const counts = await Promise.all([work(task(0)), inWorker(task(1)), inWorker(task(2))]);
  await nothingLeft();
  process.send?.(counts.every((count) => count > 0) ? counts.reduce((a, b) => a + b) : 0, () =>
    process.disconnect(),
  );
} else {
  parentPort!.postMessage(await work(workerData as Task));
}
