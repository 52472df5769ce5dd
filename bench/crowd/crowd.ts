/** A crowd of client processes with connections to one server process: what the echoes of all of them cost. */
import { type ChildProcess, fork } from 'node:child_process';
import { once, setMaxListeners } from 'node:events';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { quantile, type Sample } from '../statistics.js';
import type { ClientReport, Command, Event, Who } from './messages.js';

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
}

export interface CrowdFigures {
  /** Echoes per second. */
  readonly rate: number;
  /** In ms. */
  readonly p99: number;
  /** Echoes of the slowest connection by those of the mean one. */
  readonly slowest: number;
  /** Processor time of all processes for an echo, in µs. */
  readonly processor: number;
  /** Time until all connections are established, in ms. */
  readonly setUp: number;
}

/** The figures of a job in one round: several rows show one measurement. */
const measured = new Map<string, Promise<CrowdFigures>>();

export async function crowdSample(job: CrowdJob, figure: keyof CrowdFigures, round: number): Promise<Sample> {
  const key = JSON.stringify([job.who, job.clients, job.connections, job.seconds, round]);
  let figures = measured.get(key);
  if (figures === undefined) {
    figures = measureCrowd(job);
    measured.set(key, figures);
  }
  return { mean: (await figures)[figure] };
}

/** The next message of a process. @throws Error if it ends instead. */
async function heard<T extends Event>(child: ChildProcess, signal: AbortSignal): Promise<T> {
  const ended = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`A process of the crowd has ended with code ${String(code)}.`);
  });
  ended.catch(() => {});
  const [event] = await Promise.race([once(child, 'message', { signal }), ended]);
  return event as T;
}

async function measureCrowd({ who, clients, connections, seconds }: CrowdJob): Promise<CrowdFigures> {
  const children: ChildProcess[] = [];
  const limit = AbortSignal.timeout(LIMIT_MS);
  setMaxListeners(0, limit);
  const start = (...args: string[]): ChildProcess => {
    const child = fork(program, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    children.push(child);
    return child;
  };
  const tell = (child: ChildProcess, command: Command): void => void child.send(command);
  try {
    const server = start('server', who);
    const { port } = await heard<{ port: number }>(server, limit);
    const all = Array.from({ length: clients }, () => start('client', who, `${port}`, `${connections}`));
    await Promise.all(all.map((client) => heard(client, limit)));
    const connecting = performance.now();
    const connected = all.map((client) => heard(client, limit));
    for (const client of all) tell(client, { do: 'connect' });
    await Promise.all(connected);
    const setUp = performance.now() - connecting;
    const reports = all.map((client) => heard<ClientReport>(client, limit));
    const warmUp = WARM_UP_SECONDS * Math.max(1, (clients + 1) / availableParallelism());
    for (const client of all) tell(client, { do: 'begin', warmUp, seconds });
    await sleep(warmUp * 1000);
    tell(server, { do: 'begin' });
    await sleep(seconds * 1000);
    const served = heard<{ processor: number }>(server, limit);
    tell(server, { do: 'report' });
    return figuresOf(await Promise.all(reports), (await served).processor, seconds, setUp);
  } finally {
    for (const child of children) child.kill('SIGKILL');
  }
}

function figuresOf(
  reports: readonly ClientReport[],
  served: number,
  seconds: number,
  setUp: number,
): CrowdFigures {
  const counts = reports.flatMap((report) => report.counts);
  const echoes = counts.reduce((sum, count) => sum + count, 0);
  const processor = reports.reduce((sum, report) => sum + report.processor, served);
  const latencies = reports.flatMap((report) => report.latencies);
  return {
    rate: echoes / seconds,
    p99: quantile(latencies, 0.99),
    slowest: Math.min(...counts) / (echoes / counts.length),
    processor: processor / echoes,
    setUp,
  };
}
