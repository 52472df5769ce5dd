import type { Observed } from '../door/soft/index.js';
import { shown } from '../ioctl/shown.js';
import { type KernelStatistics, STATISTICS_FORM } from '../ioctl/statistics-form.js';
import { Status, StatusError } from '../ioctl/status.js';
import { lazy } from '../option-checks/option-schemas.js';
import { memoryShape, queuePairShape } from '../schema/generated/statistics.js';

/** Default timeout of {@link readProcesses} in milliseconds. A kernel replies within a few, unless its process is stopped. */
const DEFAULT_MS = 1000;
const MOST_MS = 60_000;

/** One soft kernel of a process. Each thread of a program that uses RDMA has one. */
export interface ObservedKernel {
  /** The process id; 0 if the process is in another PID namespace. */
  readonly pid: number;
  /** The kernel's slot on this host, which is the high byte of its queue pair numbers. */
  readonly slot: number;
  /** The statistics. Undefined: none were returned, for the reason in `problem`. */
  readonly statistics?: KernelStatistics;
  /**
   * `refused`: the process has the option `statistics: false`. `silent`: the process did not reply in time, for example
   * because it is stopped. `otherVersion`: the process runs another version of this package and was not queried.
   * `unreadable`: the reply is malformed.
   */
  readonly problem?: 'refused' | 'silent' | 'otherVersion' | 'unreadable';
}

/** Options of {@link readProcesses}. */
export interface ReadProcessesOptions {
  /** Limits the query to this process. */
  readonly pid?: number;
  /** Maximum wait for the replies, in milliseconds: 1 to 60,000, default 1000. */
  readonly timeoutMs?: number;
}

/**
 * Maximum number of values in a reply; full lists have some 45,000. Checking more could cost many times the memory of
 * the text, because zod creates an object for each invalid value.
 */
const MOST_VALUES = 65_536;
/** Maximum depth of nested lists and objects; an access right of a registration is at level four. */
const MOST_LEVELS = 6;

/** The schema of {@link KernelStatistics}. The text comes from another process. */
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

/** Removes control characters, which would reach the terminals and pages of the reader. */
const clean = (text: string): string => text.replace(/[\p{Cc}\p{Cf}]/gu, '?');

/** A JSON value with cleaned strings and names. @throws Error if it has too many values or levels. */
function printable(value: unknown): unknown {
  let values = 0;
  const walk = (one: unknown, level: number): unknown => {
    values += 1;
    if (values > MOST_VALUES || level > MOST_LEVELS)
      throw new Error('The reply has more values or levels than a kernel reports.');
    if (typeof one === 'string') return clean(one);
    if (Array.isArray(one)) return one.map((item) => walk(item, level + 1));
    if (typeof one !== 'object' || one === null) return one;
    return Object.fromEntries(Object.entries(one).map(([key, item]) => [clean(key), walk(item, level + 1)]));
  };
  return walk(value, 0);
}

function check({ pid, timeoutMs = DEFAULT_MS }: ReadProcessesOptions): number {
  if (pid !== undefined && !(Number.isSafeInteger(pid) && pid > 0)) {
    throw new StatusError(Status.INVALID_PARAMETER, `\`pid\` must be a process id; got ${shown(pid)}.`);
  }
  if (!(Number.isSafeInteger(timeoutMs) && timeoutMs >= 1 && timeoutMs <= MOST_MS)) {
    throw new StatusError(
      Status.INVALID_PARAMETER,
      `\`timeoutMs\` must be an integer from 1 to ${MOST_MS}; got ${shown(timeoutMs)}.`,
    );
  }
  return timeoutMs;
}

/** Decodes the replies of processes to `observe`. */
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
      // The sender is not a process of this package.
    }
    // The OS's process id is more reliable than the one reported by the process.
    const id = pid === 0 ? (statistics?.pid ?? 0) : pid;
    if (options.pid !== undefined && options.pid !== id) return [];
    return [{ pid: id, slot, ...(statistics ? { statistics } : { problem: 'unreadable' as const }) }];
  });
}
