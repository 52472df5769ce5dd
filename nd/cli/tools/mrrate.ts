/** `nd mrrate`: measures the rate of memory registrations of one or more threads. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { Command } from 'commander';
import * as z from 'zod';
import type { SocketAddress } from '../../index.js';
import { count } from '../argument-schemas.js';
import { column, machineLine, Stopwatch } from './measure.js';
import { sweepOptions, withSweep } from './measure-options.js';
import type { ThreadData, ThreadOrder } from './mrrate-thread.js';
import { commonOptions, Interrupted, tool } from './tool.js';

const ITERATIONS = 10_000;
/** Maximum total bytes of all registrations of a size. */
const VOLUME = 8_388_608_000;

/** A thread that executes one order at a time. */
class Thread {
  readonly #worker: Worker;

  constructor(data: ThreadData) {
    this.#worker = new Worker(new URL('./mrrate-thread.js', import.meta.url), { workerData: data });
  }

  async execute(order: ThreadOrder, signal?: AbortSignal): Promise<void> {
    this.#worker.postMessage(order);
    const [error] = (await once(this.#worker, 'message', signal === undefined ? {} : { signal })) as [
      string | null,
    ];
    if (error !== null) throw new Error(error);
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}

/** Makes all threads execute an order. Returns the microseconds per registration and the CPU load. */
async function timed(threads: readonly Thread[], order: ThreadOrder, times: number, signal: AbortSignal) {
  const watch = new Stopwatch();
  await Promise.all(threads.map((thread) => thread.execute(order, signal)));
  const { seconds, cpu } = watch.stop();
  return { usec: (seconds * 1e6) / times, cpu };
}

export const mrrateCommand = tool(
  withSweep(
    new Command('mrrate').description(
      'measure the rate of memory registration; usec: time per registration and thread',
    ),
    ITERATIONS,
  ).option('-t, --threads <n>', 'concurrent threads (default: 1)'),
  z.object({ ...commonOptions, ...sweepOptions, threads: count(1, 64).default(1) }),
  {},
  async (one, address: SocketAddress, { spi, sizes, iterations = ITERATIONS, threads }) => {
    one.line(`Running test with ${threads} threads`);
    one.line(machineLine());
    one.line();
    one.line('                        Register            Deregister');
    one.line('     Size     Iter      usec        CPU     usec         CPU');
    const workers = Array.from({ length: threads }, () => new Thread({ spi, address }));
    const rows: object[] = [];
    const print = (more: object): void =>
      one.result({ tool: one.name, spi, address: address.address, threads, rows, ...more });
    one.partial = () => print({ interrupted: true });
    try {
      for (const size of sizes) {
        const times = Math.min(iterations, Math.max(Math.floor(VOLUME / size), 1));
        one.progress(`${size} bytes, ${times} times`);
        await Promise.all(
          workers.map((worker) => worker.execute({ step: 'prepare', size, count: times }, one.signal)),
        );
        const register = await timed(workers, { step: 'register' }, times, one.signal);
        const deregister = await timed(workers, { step: 'deregister' }, times, one.signal);
        rows.push({ size, iterations: times, register, deregister });
        const first = `${column(size, 9)} ${column(times, 9)} ${column(register.usec, 9, 2)} ${column(register.cpu, 9, 2)}`;
        one.line(`${first}  ${column(deregister.usec, 9, 2)} ${column(deregister.cpu, 9, 2)}`);
      }
      await Promise.all(workers.map((worker) => worker.execute({ step: 'end' }, one.signal)));
    } catch (error) {
      throw one.signal.aborted ? new Interrupted() : error;
    } finally {
      await Promise.all(workers.map((worker) => worker.stop()));
    }
    print({});
  },
);
