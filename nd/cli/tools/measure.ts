/** Sizes, iterations and the table of the tools that measure transfers. */
import { cpus } from 'node:os';
import type { Command } from 'commander';
import * as z from 'zod';
import { count } from '../argument-schemas.js';
import {
  commonOptions,
  format,
  ONE_ROLE,
  oneRole,
  roleOptions,
  type Tool,
  upperCase,
  withRole,
} from './tool.js';
import type { Link, Mode, Side } from './tool-side.js';

/** The longest message of all tools. */
export const MAX_BYTES = 4_194_304;
/** Bytes of a warm-up message, and of all but the last entry of a list. */
export const WARM_BYTES = 40;
/** Receives that a side posts for short control messages. */
export const CONTROL_RECEIVES = 16;

const sizeList = z
  .string()
  .regex(/^\d+(,\d+)*$/, 'must be sizes in bytes, as in 1,64,4096')
  .transform((text) => text.split(',').map(Number))
  .refine(
    (sizes) => sizes.every((size) => size >= 1 && size <= MAX_BYTES),
    `must be sizes from 1 to ${MAX_BYTES}`,
  );

/** 1, 2, 4 … 4 MiB. */
const allSizes = Array.from({ length: 23 }, (_, power) => 2 ** power);

/** The sizes, and the maximum number of iterations. */
export const sweepOptions = {
  sizes: sizeList.default(allSizes),
  iterations: count(1, 1e9).optional(),
};

export function withSweep(command: Command, iterations: number): Command {
  return command
    .option('--sizes <list>', 'sizes in bytes, as in 1,64,4096 (default: powers of 2 up to 4194304)')
    .option('--iterations <n>', `of a size, at most (default: ${iterations})`);
}

/** The command line of ping, pingpong, rping and rpingpong. */
export const transferShape = {
  ...commonOptions,
  ...roleOptions,
  ...sweepOptions,
  blocking: z.boolean().default(false),
  polling: z.boolean().default(false),
  nSge: count(1, 256).default(1),
  pipeline: count(1, 4096).default(128),
  volume: count(1, Number.MAX_SAFE_INTEGER).default(2_097_152_000),
  warmup: count(0, 1e9).default(1000),
};
export const transferOptions = z
  .object(transferShape)
  .refine(oneRole, ONE_ROLE)
  .refine(
    ({ blocking, polling }) => !(blocking && polling),
    '-b (blocking) and -p (polling) exclude each other',
  );
export type TransferOptions = z.output<typeof transferOptions>;

/** Adds them to a command. */
export function withTransfer(command: Command, iterations: number): Command {
  withRole(command)
    .option('-b, --blocking', 'wait for completions by notification')
    .option('-p, --polling', 'wait for completions by polling (the default)')
    .option('-n, --nSge <n>', 'scatter/gather entries of a transfer (default: 1)')
    .option('-q, --pipeline <n>', 'requests in flight (default: 128)');
  return upperCase(withSweep(command, iterations), '-B', '-P', '-N <n>', '-Q <n>')
    .option('--volume <bytes>', 'bytes of all transfers of a size, at most (default: 2097152000)')
    .option('--warmup <n>', 'transfers before the table; a rest of 1 s follows; 0: neither (default: 1000)');
}

export function modeOf({ blocking }: { blocking: boolean }): Mode {
  return blocking ? 'blocking' : 'polling';
}

/** Refuses more scatter/gather entries than the adapter has. */
export function checkSge(side: Side, entries: number, most = side.limits.sge): void {
  if (entries > most) {
    throw new Error(`This adapter takes at most ${most} scatter/gather entries, not ${entries}.`);
  }
}

/** A measured period. */
export class Stopwatch {
  readonly #processors = busyTime();
  readonly #start = performance.now();

  /** Seconds since it was made, and the machine's load: 100 is one processor. */
  stop(): { seconds: number; cpu: number } {
    const seconds = (performance.now() - this.#start) / 1000;
    const now = busyTime();
    const all = now.all - this.#processors.all;
    const busy = now.busy - this.#processors.busy;
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
  /** Microseconds; the tool documents of what. */
  readonly latency: number;
  readonly cpu: number;
  readonly bytesPerSecond: number;
}

/** The meaning of a tool's columns. */
export interface Columns {
  /** Maximum of iterations of a size. */
  readonly iterations: number;
  /** Latencies per iteration: 2 for half round trips. */
  readonly halves: 1 | 2;
  /** Counted transfers per iteration. */
  readonly directions: 1 | 2;
}

/** Decimals in a column. */
export function column(value: number, width: number, decimals = 0): string {
  return value.toFixed(decimals).padStart(width);
}

/** The machine and its clock, as Node.js reports them. */
export function machineLine(): string {
  return `Using ${cpus().length} processors. Sender Frequency is 1000000000`;
}

/** Runs `transfer` for each size, and prints the table. */
export async function sweep(
  tool: Tool,
  side: Side,
  link: Link,
  options: TransferOptions,
  columns: Columns,
  transfer: (size: number, iterations: number) => Promise<void>,
): Promise<void> {
  const { sizes, volume, warmup, spi, nSge } = options;
  if (warmup > 0) {
    await transfer(WARM_BYTES, warmup);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, 1000);
      tool.signal.addEventListener('abort', () => resolve(clearTimeout(timer)), { once: true });
    });
    await link.rest();
  }
  tool.line(machineLine());
  tool.line();
  tool.line('      Size      Iter   Latency     CPU   Bytes/Sec');
  const rows: Row[] = [];
  for (const size of sizes) {
    const most = Math.min(options.iterations ?? columns.iterations, Math.floor(volume / size));
    const iterations = Math.max(most, 1);
    tool.progress(`${size} bytes, ${iterations} times`);
    const watch = new Stopwatch();
    await transfer(size, iterations);
    const { seconds, cpu } = watch.stop();
    const latency = (seconds * 1e6) / iterations / columns.halves;
    const bytesPerSecond = (columns.directions * size * iterations) / seconds;
    rows.push({ size, iterations, latency, cpu, bytesPerSecond });
    tool.line(
      ` ${column(size, 9)} ${column(iterations, 9)} ${column(latency, 9, 2)} ${column(cpu, 7, 2)} ${column(bytesPerSecond, 11)}`,
    );
  }
  const { address } = side;
  tool.result({
    tool: tool.name,
    spi,
    mode: modeOf(options),
    local: address.address,
    peer: format(link.side.peerAddress),
    nSge,
    rows,
  });
}
