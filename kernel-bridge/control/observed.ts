import type { Observed } from '../door/soft/index.js';
import { type KernelStatistics, STATISTICS_FORM } from '../ioctl/statistics-form.js';
import { Status, StatusError } from '../ioctl/status.js';
import { lazy } from '../option-checks/option-schemas.js';
import { memoryShape, queuePairShape } from '../schema/generated/statistics.js';

/** How long {@link readProcesses} waits by default, in milliseconds. A kernel answers within a few, unless its process is stopped. */
const DEFAULT_MS = 1000;
const MOST_MS = 60_000;

/** One soft kernel of a process: each thread of a program that uses RDMA has one. */
export interface ObservedKernel {
  /** The process id; 0: the process is in another namespace of process ids. */
  readonly pid: number;
  /** Its slot on this host: the upper byte of its queue pair numbers. */
  readonly slot: number;
  /** What it tells; undefined: nothing, for the reason in `problem`. */
  readonly statistics?: KernelStatistics;
  /**
   * `refused`: its option `statistics` is false. `silent`: it did not answer in time, as a process that is stopped. `otherVersion`: it
   * runs another version of this package, and was not asked. `unreadable`: it answered nonsense.
   */
  readonly problem?: 'refused' | 'silent' | 'otherVersion' | 'unreadable';
}

/** Options of {@link readProcesses}. */
export interface ReadProcessesOptions {
  /** Only this process. */
  readonly pid?: number;
  /** The longest wait for the answers, in milliseconds: 1 to 60,000, by default 1000. */
  readonly timeoutMs?: number;
}

/**
 * Values that an answer may have; full lists have some 45,000. Checking more could cost the asker many times the memory of the text, because
 * zod makes an object for each value that is wrong.
 */
const MOST_VALUES = 65_536;
/** Lists and objects within each other: a right of a registration is at the fourth level. */
const MOST_LEVELS = 6;

/** The shape of {@link KernelStatistics}. The text comes from another process. */
const statisticsSchema = lazy((z) => {
  const count = z.number().min(0);
  const text = z.string().max(256);
  const counters = z.record(z.string().max(64), z.number());
  return z.object({
    form: z.literal(STATISTICS_FORM),
    pid: count,
    node: text,
    uptime: count,
    at: count,
    devices: z.array(z.object({ name: text, guid: text, hca: text })),
    wire: z.enum(['open', 'unused', 'held', 'never', 'none']),
    counters: z.record(z.string().max(64), counters),
    sharedReceived: count,
    queuePairs: z.array(queuePairShape(z, count, text)),
    connections: z.array(
      z.object({ type: z.enum(['connect', 'datagram']), state: text, local: text, remote: text, qpn: count }),
    ),
    memory: z.array(memoryShape(z, count, text)),
    omitted: z.object({ queuePairs: count, connections: count, memory: count }),
  });
});

/** Control characters would reach the terminals and pages of whoever reads it. */
const clean = (text: string): string => text.replace(/[\p{Cc}\p{Cf}]/gu, '?');

/** A JSON value with clean texts and names. @throws Error if it has too many values, or too many levels. */
function printable(value: unknown): unknown {
  let values = 0;
  const walk = (one: unknown, level: number): unknown => {
    values += 1;
    if (values > MOST_VALUES || level > MOST_LEVELS) throw new Error('No kernel tells so much.');
    if (typeof one === 'string') return clean(one);
    if (Array.isArray(one)) return one.map((item) => walk(item, level + 1));
    if (typeof one !== 'object' || one === null) return one;
    return Object.fromEntries(Object.entries(one).map(([key, item]) => [clean(key), walk(item, level + 1)]));
  };
  return walk(value, 0);
}

function check({ pid, timeoutMs = DEFAULT_MS }: ReadProcessesOptions): number {
  if (pid !== undefined && !(Number.isSafeInteger(pid) && pid > 0)) {
    throw new StatusError(Status.INVALID_PARAMETER, `pid is ${String(pid)}; it takes the id of a process.`);
  }
  if (!(Number.isSafeInteger(timeoutMs) && timeoutMs >= 1 && timeoutMs <= MOST_MS)) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `timeoutMs is ${String(timeoutMs)}; it takes a whole number from 1 to ${MOST_MS}.`,
    );
  }
  return timeoutMs;
}

/** Reads what processes have answered to `observe`. */
export async function readObserved(
  observe: (longestMs: number) => Promise<Observed[]>,
  options: ReadProcessesOptions,
): Promise<ObservedKernel[]> {
  const longest = check(options);
  const all = await observe(longest);
  return all.flatMap(({ slot, pid, answer, text }): ObservedKernel[] => {
    if (answer !== 'text')
      return options.pid === undefined || options.pid === pid ? [{ pid, slot, problem: answer }] : [];
    let statistics: KernelStatistics | undefined;
    try {
      statistics = statisticsSchema.parse(printable(JSON.parse(new TextDecoder().decode(text))));
    } catch {
      // Not one of ours.
    }
    // The system knows the id better than the process.
    const id = pid === 0 ? (statistics?.pid ?? 0) : pid;
    if (options.pid !== undefined && options.pid !== id) return [];
    return [{ pid: id, slot, ...(statistics ? { statistics } : { problem: 'unreadable' as const }) }];
  });
}
