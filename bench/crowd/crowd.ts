/** A crowd of client processes with connections to one server process: the cost of their requests. */
import { type ChildProcess, fork } from 'node:child_process';
import { once, setMaxListeners } from 'node:events';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { quantile, type Sample } from '../samples.js';
import type { ClientReport, Command, Event, Expense, Load, Part, Who } from './crowd-messages.js';

const program = fileURLToPath(new URL('./program.js', import.meta.url));
/** Warm-up per process that has its own CPU, during which V8 compiles the measured code. */
const WARM_UP_SECONDS = 1;
/** Time limit of one measurement, in ms. */
const LIMIT_MS = 120_000;

export interface CrowdJob {
  readonly who: Who;
  readonly clients: number;
  /** Connections of each client. */
  readonly connections: number;
  readonly seconds: number;
  /** `mixed`: every other client of this library uses the wire, and bulk data is transferred between requests. */
  readonly load: Load;
}

export interface CrowdFigures {
  /** Completed requests per second. */
  readonly rate: number;
  /** Median latency of a request, in ms. */
  readonly p50: number;
  /** 99th percentile of the latency, in ms. */
  readonly p99: number;
  /** Requests of the slowest connection, divided by the mean of all connections. */
  readonly slowest: number;
  /** The same among connections over the same link, divided by the mean of that link; the lower of both links. */
  readonly slowestOfLink: number;
  /** Mean requests of the connections over UDP, divided by the mean of all connections. */
  readonly wire: number;
  /** CPU time of all processes per request, in µs. */
  readonly processor: number;
  /** Memory of all processes, in bytes. They share some pages. */
  readonly memory: number;
  /** Time until all connections are established, in ms. */
  readonly setUp: number;
}

/** The figures of a job in one round, because several rows show one measurement. */
const measured = new Map<string, Promise<CrowdFigures>>();

export async function crowdSample(job: CrowdJob, figure: keyof CrowdFigures, round: number): Promise<Sample> {
  const key = JSON.stringify([job.who, job.clients, job.connections, job.seconds, job.load, round]);
  let figures = measured.get(key);
  if (figures === undefined) {
    figures = measureCrowd(job);
    measured.set(key, figures);
  }
  return { mean: (await figures)[figure] };
}

/** The next message of a process. @throws Error if the process exits instead */
async function heard<T extends Event>(child: ChildProcess, signal: AbortSignal): Promise<T> {
  // 'exit' may be emitted before the last messages.
  const ended = once(child, 'close', { signal }).then(([code]) => {
    throw new Error(`A process of the crowd exited with code ${String(code)}.`);
  });
  ended.catch(() => {});
  const [event] = await Promise.race([once(child, 'message', { signal }), ended]);
  return event as T;
}

/** With a mixed load, every other client uses the wire. */
const linkOf = (load: Load, client: number): 'auto' | 'wire' =>
  load === 'mixed' && client % 2 === 1 ? 'wire' : 'auto';

async function measureCrowd({ who, clients, connections, seconds, load }: CrowdJob): Promise<CrowdFigures> {
  const children: ChildProcess[] = [];
  const limit = AbortSignal.timeout(LIMIT_MS);
  setMaxListeners(0, limit);
  const start = (part: Part): ChildProcess => {
    const child = fork(program, [JSON.stringify(part)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    children.push(child);
    return child;
  };
  const tell = (child: ChildProcess, command: Command): void => void child.send(command);
  try {
    const server = start({ who, load });
    const { port } = await heard<{ port: number }>(server, limit);
    const all = Array.from({ length: clients }, (_, i) =>
      start({ who, load, client: { port, connections, link: linkOf(load, i) } }),
    );
    await Promise.all(all.map((client) => heard(client, limit)));
    const connecting = performance.now();
    const connected = all.map((client) => heard(client, limit));
    for (const client of all) tell(client, { do: 'connect' });
    await Promise.all(connected);
    const setUp = performance.now() - connecting;
    const reports = Promise.all(all.map((client) => heard<ClientReport>(client, limit)));
    reports.catch(() => {});
    const warmUp = WARM_UP_SECONDS * Math.max(1, (clients + 1) / availableParallelism());
    for (const client of all) tell(client, { do: 'begin', warmUp, seconds });
    await sleep(warmUp * 1000);
    tell(server, { do: 'begin' });
    await sleep(seconds * 1000);
    const served = heard<Expense>(server, limit);
    tell(server, { do: 'report' });
    const wireIs = (client: number) => linkOf(load, client) === 'wire';
    return { ...figuresOf(await reports, await served, seconds, wireIs), setUp };
  } finally {
    for (const child of children) child.kill('SIGKILL');
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);
const mean = (numbers: readonly number[]): number => sum(numbers) / numbers.length;
const leastShare = (counts: readonly number[]): number => Math.min(...counts) / mean(counts);

function figuresOf(
  reports: readonly ClientReport[],
  served: Expense,
  seconds: number,
  wireIs: (client: number) => boolean,
): Omit<CrowdFigures, 'setUp'> {
  const counts = reports.flatMap((report) => report.counts);
  const [wire, local] = [true, false].map((is) =>
    reports.filter((_, client) => wireIs(client) === is).flatMap((report) => report.counts),
  ) as [number[], number[]];
  const latencies = reports.flatMap((report) => report.latencies);
  const all = [...reports, served];
  return {
    rate: sum(counts) / seconds,
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
    slowest: leastShare(counts),
    slowestOfLink: Math.min(...[wire, local].filter(({ length }) => length > 0).map(leastShare)),
    wire: mean(wire) / mean(counts),
    processor: sum(all.map(({ processor }) => processor)) / sum(counts),
    memory: sum(all.map(({ memory }) => memory)),
  };
}
