/** `nd mrlat`: measures the time to register and deregister memory, with two methods of waiting. */
import { Command } from 'commander';
import * as z from 'zod';
import { memoryFor } from '../sides/connected-side.js';
import { column, machineLine, Stopwatch } from './measure.js';
import { sweepOptions, withSweep } from './measure-options.js';
import { openRegistrar, type Registration } from './registrar.js';
import { commonOptions, Interrupted, type Tool, tool } from './tool.js';

const ITERATIONS = 10_000;

/** Averages of a size over the completed iterations, in microseconds. */
interface Row {
  readonly size: number;
  readonly iterations: number;
  readonly registerCall: number;
  readonly registerTotal: number;
  readonly deregisterCall: number;
  readonly deregisterTotal: number;
  readonly cpu: number;
}

/**
 * The sections by name. With true, the thread blocks until the request has completed; with false, the event loop delivers the completion.
 */
const sections = { 'Event Driven': true, IOCP: false } as const;

async function measure(
  tool: Tool,
  registration: Registration,
  block: boolean,
  size: number,
  iterations: number,
): Promise<Row> {
  const sums = { registerCall: 0, registerTotal: 0, deregisterCall: 0, deregisterTotal: 0 };
  const watch = new Stopwatch();
  let done = 0;
  while (done < iterations && !tool.signal.aborted) {
    const t0 = performance.now();
    const registering = registration.register();
    const t1 = performance.now();
    if (block) registering.getResult({ wait: true });
    else await registering;
    const t2 = performance.now();
    const deregistering = registration.deregister();
    const t3 = performance.now();
    if (block) deregistering.getResult({ wait: true });
    else await deregistering;
    const t4 = performance.now();
    sums.registerCall += t1 - t0;
    sums.registerTotal += t2 - t0;
    sums.deregisterCall += t3 - t2;
    sums.deregisterTotal += t4 - t2;
    done += 1;
    if (done % 256 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  const average = (sum: number): number => (sum * 1000) / done;
  return {
    size,
    iterations: done,
    registerCall: average(sums.registerCall),
    registerTotal: average(sums.registerTotal),
    deregisterCall: average(sums.deregisterCall),
    deregisterTotal: average(sums.deregisterTotal),
    cpu: watch.stop().cpu,
  };
}

export const mrlatCommand = tool(
  withSweep(
    new Command('mrlat').description(
      'measure the latency of memory registration in µs; call: time of the call, total: time until completion',
    ),
    ITERATIONS,
  ),
  z.object({ ...commonOptions, ...sweepOptions }),
  {},
  async (one, address, { spi, sizes, iterations = ITERATIONS }) => {
    using registrar = openRegistrar(spi, address);
    const result: Record<string, Row[]> = {};
    const print = (more: object): void =>
      one.result({ tool: one.name, spi, address: address.address, sections: result, ...more });
    one.partial = () => print({ interrupted: true });
    one.line(machineLine());
    for (const [name, block] of Object.entries(sections)) {
      one.line();
      one.line(` ${name}:`);
      one.line('              Register (usec)   Deregister (usec)     CPU');
      one.line('     Size      call     total      call     total');
      const rows: Row[] = [];
      result[name] = rows;
      for (const size of sizes) {
        one.progress(`${size} bytes, ${iterations} times`);
        using registration = registrar.registration(memoryFor(size));
        const row = await measure(one, registration, block, size, iterations);
        if (row.iterations === 0) throw new Interrupted();
        rows.push(row);
        const { registerCall, registerTotal, deregisterCall, deregisterTotal, cpu } = row;
        const times = [registerCall, registerTotal, deregisterCall, deregisterTotal];
        one.line(
          `${column(size, 9)} ${times.map((time) => column(time, 9, 2)).join(' ')} ${column(cpu, 7, 2)}`,
        );
        if (one.signal.aborted) throw new Interrupted();
      }
    }
    print({});
  },
);
