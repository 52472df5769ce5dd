/**
 * One process of a crowd: `program.js PART`, a {@link Part} as JSON. Messages from the parent make it connect, begin and report.
 * Each connection of a client has one request in flight.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import {
  BULK_EVERY,
  type ClientReport,
  type Command,
  type Event,
  type Expense,
  type Part,
} from './crowd-messages.js';
import { connectOurs, serveOurs } from './ours.js';
import { connectNet, serveNet } from './sockets.js';

/** Maximum number of latencies that a client records. */
const SAMPLES = 1 << 14;

const tell = (event: Event): void => void process.send!(event);

async function next(of: Command['do']): Promise<Command> {
  for (;;) {
    const [command] = (await once(process, 'message')) as [Command];
    if (command.do === of) return command;
  }
}

/** Memory of this process in bytes: its share of shared pages, or the resident set size if the OS does not report that. */
function memory(): number {
  try {
    const kilobytes = /^Pss:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/smaps_rollup', 'utf8'))?.[1];
    return Number(kilobytes) * 1024;
  } catch {
    return process.memoryUsage.rss();
  }
}

/** From now on the other processes exit, which ends connections. */
function expectTheEnd(): void {
  process.on('unhandledRejection', () => {});
}

function expense(since: NodeJS.CpuUsage): Expense {
  const { user, system } = process.cpuUsage(since);
  return { processor: user + system, memory: memory() };
}

async function beServer(part: Part): Promise<void> {
  tell({ port: await (part.who === 'net' ? serveNet() : serveOurs(part)) });
  let before = process.cpuUsage();
  process.on('message', (command: Command) => {
    if (command.do === 'begin') before = process.cpuUsage();
    if (command.do !== 'report') return;
    expectTheEnd();
    tell(expense(before));
  });
}

async function beClient(part: Part, own: NonNullable<Part['client']>): Promise<void> {
  tell({ ready: true });
  await next('connect');
  const client = part.who === 'net' ? connectNet(own) : connectOurs(part, own);
  await client.connected;
  tell({ connected: true });
  const { seconds = 1, warmUp = 0 } = await next('begin');
  const start = performance.now() + warmUp * 1000;
  const end = start + seconds * 1000;
  const counts: number[] = Array(own.connections).fill(0);
  const latencies = new Float64Array(SAMPLES);
  const bulkEvery = part.load === 'mixed' ? BULK_EVERY : Number.POSITIVE_INFINITY;
  let taken = 0;
  let before = process.cpuUsage();
  setTimeout(() => {
    before = process.cpuUsage();
  }, warmUp * 1000);
  const converse = async (index: number) => {
    // Staggers the bulk requests of the connections.
    let asked = index;
    for (let sent = performance.now(); sent < end; ) {
      asked += 1;
      await client.ask(index, asked % bulkEvery === 0);
      const now = performance.now();
      if (sent >= start && now < end) {
        counts[index]! += 1;
        latencies[taken++ % SAMPLES] = now - sent;
      }
      sent = now;
    }
  };
  await Promise.all(counts.map((_, index) => converse(index)));
  expectTheEnd();
  const report: ClientReport = {
    ...expense(before),
    counts,
    latencies: [...latencies.subarray(0, Math.min(taken, SAMPLES))],
  };
  tell(report);
}

// Exits with the parent, even if that is killed.
process.on('disconnect', () => process.exit());
const part = JSON.parse(process.argv[2]!) as Part;
if (part.client === undefined) await beServer(part);
else await beClient(part, part.client);
