/** Measures times and prints tables, for all tools that measure. */
import { cpus } from 'node:os';
import type { TransferOptions } from './measure-options.js';
import { format, type Tool } from './tool.js';
import { type Link, modeOf, type Side } from './tool-side.js';

/** Size of a warm-up message in bytes. */
export const WARM_BYTES = 40;
/** Number of Receives that a side posts for short control messages. */
export const CONTROL_RECEIVES = 16;

/** Throws if the adapter does not support this many scatter/gather entries. */
export function checkSge(side: Side, entries: number, most = side.limits.sge): void {
  if (entries > most) {
    throw new Error(`--nSge must be at most ${most} for this adapter; got ${entries}.`);
  }
}

/** A measured period. */
export class Stopwatch {
  readonly #cpus = busyTime();
  readonly #start = performance.now();

  /** Returns the seconds since its creation, and the CPU load of the machine in % of one core. */
  stop(): { seconds: number; cpu: number } {
    const seconds = (performance.now() - this.#start) / 1000;
    const now = busyTime();
    const all = now.all - this.#cpus.all;
    const busy = now.busy - this.#cpus.busy;
    return { seconds, cpu: all > 0 ? (busy / all) * 100 * cpus().length : 0 };
  }
}

function busyTime(): { busy: number; all: number } {
  let idle = 0;
  let all = 0;
  for (const { times } of cpus()) {
    idle += times.idle;
    for (const time of Object.values(times)) all += time;
  }
  return { busy: all - idle, all };
}

/** A line of the table. */
export interface Row {
  readonly size: number;
  readonly iterations: number;
  /** In microseconds; its meaning depends on the tool. */
  readonly latency: number;
  readonly cpu: number;
  readonly bytesPerSecond: number;
}

/** Completed iterations of a size. */
export interface Round {
  done: number;
}

/** The meaning of a tool's columns. */
export interface Columns {
  /** Maximum iterations of a size. */
  readonly iterations: number;
  /** Latencies per iteration; 2 if the latency is half a round trip. */
  readonly halves: 1 | 2;
  /** Counted transfers per iteration, one for each direction. */
  readonly directions: 1 | 2;
}

/** Formats a number for a column. */
export function column(value: number, width: number, decimals = 0): string {
  return value.toFixed(decimals).padStart(width);
}

/** Returns the line about the machine and its clock, in the format of the original tools. */
export function machineLine(): string {
  return `Using ${cpus().length} processors. Sender Frequency is 1000000000`;
}

/** Runs `transfer` for each size and prints the table. The row of an interrupted size covers the completed iterations. */
export async function sweep(
  tool: Tool,
  side: Side,
  link: Link,
  options: TransferOptions,
  columns: Columns,
  transfer: (size: number, iterations: number, round: Round) => Promise<void>,
): Promise<void> {
  const { sizes, volume, warmup, spi, nSge } = options;
  const rows: Row[] = [];
  const peer = format(link.side.peerAddress);
  const result = (more: object): void =>
    tool.result({
      tool: tool.name,
      spi,
      mode: modeOf(options),
      local: side.address.address,
      peer,
      nSge,
      rows,
      ...more,
    });
  tool.partial = () => result({ interrupted: true });
  if (warmup > 0) {
    await transfer(WARM_BYTES, warmup, { done: 0 });
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, 1000);
      tool.signal.addEventListener('abort', () => resolve(clearTimeout(timer)), { once: true });
    });
    await link.yieldToLoop();
  }
  tool.line(machineLine());
  tool.line();
  tool.line('      Size      Iter   Latency     CPU   Bytes/Sec');
  for (const size of sizes) {
    const most = Math.min(options.iterations ?? columns.iterations, Math.floor(volume / size));
    const wanted = Math.max(most, 1);
    tool.progress(`${size} bytes, ${wanted} times`);
    const round: Round = { done: 0 };
    const watch = new Stopwatch();
    try {
      await transfer(size, wanted, round);
    } finally {
      // A lost peer may be detected late, so the time is not a valid measurement.
      if (round.done === wanted || (round.done > 0 && tool.signal.aborted))
        add(size, round.done, watch.stop());
    }
  }
  result({});

  function add(size: number, iterations: number, { seconds, cpu }: ReturnType<Stopwatch['stop']>): void {
    const latency = (seconds * 1e6) / iterations / columns.halves;
    const bytesPerSecond = (columns.directions * size * iterations) / seconds;
    rows.push({ size, iterations, latency, cpu, bytesPerSecond });
    tool.line(
      ` ${column(size, 9)} ${column(iterations, 9)} ${column(latency, 9, 2)} ${column(cpu, 7, 2)} ${column(bytesPerSecond, 11)}`,
    );
  }
}
