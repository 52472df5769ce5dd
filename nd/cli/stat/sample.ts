/** The data of `nd stat` and `nd top`: the processes of this user, and their rates between two samples. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { KernelStatistics, ObservedKernel, QueuePairStatistics } from '../../../kernel-bridge/index.js';

/** Events per second. */
export interface Rates {
  /** Completed requests of send queues: Sends, Writes, Reads, atomics. */
  readonly messagesOut: number;
  /** Receives that completed with a message. */
  readonly messagesIn: number;
  /** Bytes in packets. Direct access does not use packets. */
  readonly bytesOut: number;
  readonly bytesIn: number;
  /** Requests that this process executed directly in a peer's memory from `allocate()`. */
  readonly direct: number;
  /** Retransmitted packets. */
  readonly retransmits: number;
  /** NAKs other than RNR NAKs: received ones, and sent ones that end a connection. */
  readonly naks: number;
  /** RNR NAKs, sent and received: messages without a posted Receive. */
  readonly rnr: number;
  /** Waits for an ACK that timed out. */
  readonly timeouts: number;
}

/** The counters of the HCA that form each rate. */
const counted = {
  bytesOut: ['sent_bytes'],
  bytesIn: ['rcvd_bytes'],
  direct: ['direct_write', 'direct_read', 'direct_atomic'],
  retransmits: ['retransmitted_pkts'],
  naks: ['rcvd_seq_err', 'rcvd_fatal_nak', 'send_fatal_nak'],
  rnr: ['rcvd_rnr_err', 'send_rnr_err'],
  timeouts: ['ack_timeout'],
} as const satisfies Partial<Record<keyof Rates, readonly string[]>>;

/** A queue pair and its messages per second. */
export interface QueuePairRow extends QueuePairStatistics {
  readonly sentRate: number;
  readonly receivedRate: number;
}

/** A software HCA of a process: a row of a table. */
export interface Row {
  readonly pid: number;
  readonly slot: number;
  /** Script and arguments; empty if the OS does not report them. */
  readonly program: string;
  /** Why there is no further data. */
  readonly problem?: NonNullable<ObservedKernel['problem']>;
  readonly queuePairs: number;
  /** Number of connected endpoints. */
  readonly connections: number;
  readonly listeners: number;
  /** State of its UDP port 4791; empty if the process reports nothing. */
  readonly wire: KernelStatistics['wire'] | '';
  readonly regions: number;
  /** Size of all regions in bytes. */
  readonly registered: number;
  /** Packets in flight, and the sum of the windows, of all queue pairs with a peer. */
  readonly inFlight: number;
  readonly window: number;
  /** The sums of {@link Rates} since the start of the process, without messages, which are counted per queue pair. */
  readonly totals: Readonly<Record<keyof typeof counted, number>>;
  /** Undefined in the first sample. */
  readonly rates?: Rates;
}

/** The reason why a process shows no data, as text. */
export const problemText: Readonly<Record<NonNullable<Row['problem']>, string>> = {
  refused: 'reports nothing: its option statistics is false',
  silent: 'does not respond: it is stopped',
  otherVersion: 'runs another version of networkdirect; use nd stat of that version',
  unreadable: 'sends malformed replies',
};

/** The state of the UDP port, as text. */
export const wireText: Readonly<Record<KernelStatistics['wire'], string>> = {
  open: 'open on all addresses',
  unused: 'not open: not needed so far',
  held: 'not open: in use by another process, user or driver',
  never: "never open: its option link is 'local'",
  none: 'not open: it only uses real HCAs',
};

/** A row and its source data. */
export interface Seen extends Row {
  readonly statistics?: KernelStatistics;
  readonly pairs: readonly QueuePairRow[];
}

const MOST_PROGRAM = 60;
const WRAP = 2 ** 32;

/** The program of a process and its arguments, if the OS reports them. */
export function programOf(pid: number): string {
  let words: string[];
  try {
    words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return '';
  }
  const script = /^node/.test(basename(words[0] ?? ''))
    ? words.findIndex((one, n) => n > 0 && !one.startsWith('-'))
    : 0;
  const shown = words.slice(Math.max(script, 0));
  const text = [basename(shown[0] ?? ''), ...shown.slice(1)]
    .join(' ')
    .trim()
    .replace(/[\p{Cc}\p{Cf}]/gu, '?');
  return text.length > MOST_PROGRAM ? `${text.slice(0, MOST_PROGRAM - 1)}…` : text;
}

const sumOf = (counters: Readonly<Record<string, number>> | undefined, names: readonly string[]): number =>
  names.reduce((sum, name) => sum + (counters?.[name] ?? 0), 0);

function totalsOf({ counters }: KernelStatistics): Row['totals'] {
  const totals: Record<string, number> = {};
  for (const [name, names] of Object.entries(counted)) totals[name] = sumOf(counters.hca, names);
  return totals as Row['totals'];
}

/** The difference of two 32-bit counter values. */
const steps = (before: number, after: number): number => (after - before + WRAP) % WRAP;

function pairsOf(before: KernelStatistics | undefined, after: KernelStatistics): QueuePairRow[] {
  const seconds = before === undefined ? 0 : (after.at - before.at) / 1000;
  const known = new Map(before?.queuePairs.map((one) => [one.qpn, one]));
  return after.queuePairs.map((pair) => {
    if (seconds <= 0) return { ...pair, sentRate: 0, receivedRate: 0 };
    const old = known.get(pair.qpn);
    // A queue pair that is new or has reused a number started at 0.
    const same = old !== undefined && old.remoteQpn === pair.remoteQpn && old.remote === pair.remote;
    return {
      ...pair,
      sentRate: steps(same ? old.sent : 0, pair.sent) / seconds,
      receivedRate: steps(same ? old.received : 0, pair.received) / seconds,
    };
  });
}

function ratesOf(
  before: KernelStatistics,
  after: KernelStatistics,
  pairs: readonly QueuePairRow[],
): Rates | undefined {
  const seconds = (after.at - before.at) / 1000;
  if (seconds <= 0) return undefined;
  const [old, now] = [totalsOf(before), totalsOf(after)];
  const rate = (name: keyof typeof counted): number => Math.max(now[name] - old[name], 0) / seconds;
  const sum = (each: (pair: QueuePairRow) => number): number =>
    pairs.reduce((all, pair) => all + each(pair), 0);
  return {
    messagesOut: sum((pair) => pair.sentRate),
    messagesIn:
      sum((pair) => pair.receivedRate) + steps(before.sharedReceived, after.sharedReceived) / seconds,
    bytesOut: rate('bytesOut'),
    bytesIn: rate('bytesIn'),
    direct: rate('direct'),
    retransmits: rate('retransmits'),
    naks: rate('naks'),
    rnr: rate('rnr'),
    timeouts: rate('timeouts'),
  };
}

/** The values of a process that reports nothing. */
const nothing: Omit<Seen, 'pid' | 'slot' | 'program'> = {
  queuePairs: 0,
  connections: 0,
  listeners: 0,
  wire: '',
  regions: 0,
  registered: 0,
  inFlight: 0,
  window: 0,
  totals: { bytesOut: 0, bytesIn: 0, direct: 0, retransmits: 0, naks: 0, rnr: 0, timeouts: 0 },
  pairs: [],
};

function rowOf(kernel: ObservedKernel, before: KernelStatistics | undefined, program: string): Seen {
  const { pid, slot, statistics, problem } = kernel;
  if (statistics === undefined) return { pid, slot, program, ...nothing, ...(problem && { problem }) };
  const { objects = {} } = statistics.counters;
  const pairs = pairsOf(before, statistics);
  const peers = pairs.filter(({ link }) => link !== 'none');
  const rates = before && ratesOf(before, statistics, pairs);
  const inState = (state: string): number =>
    statistics.connections.filter((one) => one.state === state).length;
  return {
    pid,
    slot,
    program,
    queuePairs: objects.qp ?? 0,
    connections: inState('connected'),
    listeners: inState('listening'),
    wire: statistics.wire,
    regions: objects.mr ?? 0,
    registered: statistics.memory.reduce(
      (sum, { kind, live, length }) => sum + (kind !== 'window' && live ? length : 0),
      0,
    ),
    inFlight: peers.reduce((sum, pair) => sum + pair.inFlight, 0),
    window: peers.reduce((sum, pair) => sum + pair.window, 0),
    totals: totalsOf(statistics),
    ...(rates && { rates }),
    statistics,
    pairs,
  };
}

/** Creates rows from samples, with rates since the previous one. */
export class Sampler {
  #before = new Map<string, KernelStatistics>();
  #programs = new Map<number, string>();

  take(kernels: readonly ObservedKernel[]): Seen[] {
    const next = new Map<string, KernelStatistics>();
    const programs = new Map<number, string>();
    const rows = kernels.map((kernel) => {
      const { pid, slot, statistics } = kernel;
      const key = `${pid}/${slot}`;
      const program = this.#programs.get(pid) ?? programOf(pid);
      programs.set(pid, program);
      const old = this.#before.get(key);
      // The clock of a successor with the same id and slot has started again.
      const before =
        old !== undefined && statistics !== undefined && old.at < statistics.at ? old : undefined;
      if (statistics !== undefined) next.set(key, statistics);
      return rowOf(kernel, before, program);
    });
    this.#before = next;
    this.#programs = programs;
    return rows;
  }
}
