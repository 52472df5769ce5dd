/** A crowd of client processes with connections to one server process: what the requests of all of them cost. */
import { type ChildProcess, fork } from 'node:child_process';
import { once, setMaxListeners } from 'node:events';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { quantile, type Sample } from '../samples.js';
import type { ClientReport, Command, Event, Expense, Load, Part, Who } from './crowd-messages.js';

const program = fileURLToPath(new URL('./program.js', import.meta.url));
/** Of a process that has a processor: V8 compiles the measured code meanwhile. */
const WARM_UP_SECONDS = 1;
/** Time limit of one measurement. */
const LIMIT_MS = 120_000;

export interface CrowdJob {
  readonly who: Who;
  readonly clients: number;
  /** Of each client. */
  readonly connections: number;
  readonly seconds: number;
  /** `mixed`: every other client of this library is held to the wire, and bulk data goes between the requests. */
  readonly load: Load;
}

export interface CrowdFigures {
  /** Answered requests per second. */
  readonly rate: number;
  /** Half of the answers came within so many ms, */
  readonly p50: number;
  /** 99 of 100 within these. */
  readonly p99: number;
  /** Answers of the slowest connection by those of the mean one. */
  readonly slowest: number;
  /** The same among the connections of one link, by the mean of that link: the lesser of both. */
  readonly slowestOfLink: number;
  /** Answers of the mean connection by the wire, by those of the mean one of all. */
  readonly wire: number;
  /** Processor time of all processes for a request, in µs. */
  readonly processor: number;
  /** Memory of all processes, in bytes; they share some pages. */
  readonly memory: number;
  /** Time until all connections are established, in ms. */
  readonly setUp: number;
}

/** The figures of a job in one round: several rows show one measurement. */
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

/** The next message of a process. @throws Error if it ends instead. */
async function heard<T extends Event>(child: ChildProcess, signal: AbortSignal): Promise<T> {
  // 'exit' may come before the last messages.
  const ended = once(child, 'close', { signal }).then(([code]) => {
    throw new Error(`A process of the crowd has ended with code ${String(code)}.`);
  });
  ended.catch(() => {});
  const [event] = await Promise.race([once(child, 'message', { signal }), ended]);
  return event as T;
}

/** Every other client is held to the wire, where the load says so. */
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
