/** Many connections: their rate, their memory, and their CPU time while idle. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ListenerWv } from '../../nd/cli/sides/winverbs-side.js';
import type { Sample } from '../samples.js';
import type { JobOf } from './job.js';
import { DEPTH } from './ping-pong.js';
import type { Connection, Side } from './side.js';

/** Concurrent connection attempts while connecting is not measured. */
const IN_FLIGHT = 32;

/** Creates `count` connections with `one`, `inFlight` at a time. */
async function many(count: number, inFlight: number, one: () => Promise<Connection>): Promise<Connection[]> {
  const made: Connection[] = [];
  let left = count;
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      made.push(await one());
    }
  };
  await Promise.all(Array.from({ length: Math.min(inFlight, count) }, worker));
  return made;
}

/** Connects `count` times, `inFlight` at a time. */
export function connectMany(
  side: Side,
  port: number,
  count: number,
  queuePair: () => Connection['qp'],
  inFlight = IN_FLIGHT,
): Promise<Connection[]> {
  return many(count, inFlight, () => side.connect(port, queuePair()));
}

/** Accepts `count` connections, `inFlight` at a time. */
export function acceptMany(
  side: Side,
  listener: ListenerWv,
  count: number,
  queuePair: () => Connection['qp'],
  inFlight = IN_FLIGHT,
): Promise<Connection[]> {
  return many(count, inFlight, async () => {
    const endpoint = await listener.next();
    return side.accept(endpoint, queuePair());
  });
}

export function smallQueuePair(side: Side): Connection['qp'] {
  return side.queuePair({ sends: DEPTH, receives: DEPTH });
}

const warmUpOf = (job: JobOf<'connect'>): number => job.warmUp ?? job.count;

/** Times the last `count` connections. Earlier ones are the warm-up and stay open. */
export async function connectRate(side: Side, port: number, job: JobOf<'connect'>): Promise<Sample> {
  const make = (count: number) => connectMany(side, port, count, () => smallQueuePair(side), job.inFlight);
  const warm = await make(warmUpOf(job));
  const start = performance.now();
  const made = await make(job.count);
  const elapsed = performance.now() - start;
  if (warm.length + made.length < rateConnections(job)) throw new Error('Fewer connections than expected.');
  return { mean: (job.count * 1000) / elapsed };
}

/** Number of connections that {@link connectRate} creates. */
export const rateConnections = (job: JobOf<'connect'>): number => warmUpOf(job) + job.count;

/** Growth of this process's resident memory per connection. */
export async function residentBytes(side: Side, port: number, job: JobOf<'resident'>): Promise<Sample> {
  // The first connections also allocate code and pools, which do not count.
  const first = await connectMany(side, port, 64, () => smallQueuePair(side));
  const before = resident();
  const made = await connectMany(side, port, job.queuePairs, () => smallQueuePair(side));
  const bytes = resident() - before;
  if (first.length + made.length < job.queuePairs) throw new Error('Fewer connections than expected.');
  // With few connections, V8 may meanwhile release more memory than they use.
  return { mean: Math.max(0, bytes) / job.queuePairs };
}

/** Number of connections that {@link residentBytes} creates. */
export const residentConnections = (job: JobOf<'resident'>): number => 64 + job.queuePairs;

function resident(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss();
}

/** CPU time while all connections are open and idle. */
export async function restingCost(job: JobOf<'rest'>): Promise<Sample> {
  // Lets pending work of connecting finish first.
  await sleep(500);
  const start = performance.now();
  const before = process.cpuUsage();
  await sleep(job.seconds * 1000);
  const { user, system } = process.cpuUsage(before);
  return { mean: (user + system) / 10 / (performance.now() - start) };
}
