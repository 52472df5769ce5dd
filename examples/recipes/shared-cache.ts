// One cache for all workers of a cluster: the primary process owns it, and the workers read it directly from its memory. They count their
// requests in shared counters, which limit the request rate of each client.
//
//   node dist/examples/recipes/shared-cache.js
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { createSharedMap, openSharedMap } from 'networkdirect/net';

interface Session {
  readonly user: string;
}

const WORKERS = 3;
const REQUESTS = 1000;
/** Maximum requests of a client per time window. */
const LIMIT = 50;

/** Clients choose their addresses, so all of them share a fixed number of counters. */
function counterOf(client: string): string {
  let sum = 0;
  for (const letter of client) sum = (31 * sum + letter.charCodeAt(0)) % 256;
  return `client ${sum}`;
}

async function primary(): Promise<void> {
  const name = `cache-${process.pid}`;
  const cache = await createSharedMap<Session>({ name, entries: 10_000, codec: 'json' });
  for (let n = 0; n < 100; n += 1) cache.set(`session ${n}`, { user: `user ${n}` }, { ttl: 60_000 });
  // At the start of each window, the counters of clients are reset to 0.
  const begin = (): void => {
    for (let n = 0; n < 256; n += 1) cache.add(`client ${n}`, -cache.add(`client ${n}`, 0));
  };
  const windows = setInterval(begin, 60_000);
  const workers = Array.from({ length: WORKERS }, () => cluster.fork({ CACHE: name }));
  for (const [worker] of await Promise.all(workers.map((one: Worker) => once(one, 'exit').then(() => [one]))))
    if (worker!.process.exitCode !== 0) process.exitCode = 1;
  console.log(`requests of all workers: ${cache.add('requests', 0)}`);
  console.log(`answered: ${cache.add('answered', 0)}, refused: ${cache.add('refused', 0)}`);
  console.log(`user 7 was renamed: ${cache.get('session 7')?.user === 'somebody else'}`);
  clearInterval(windows);
  await cache.close();
}

async function worker(name: string): Promise<void> {
  const cache = await openSharedMap<Session>({ name, codec: 'json' });
  for (let n = 0; n < REQUESTS; n += 1) {
    cache.add('requests', 1);
    if (cache.add(counterOf('192.0.2.1'), 1) > LIMIT) {
      cache.add('refused', 1);
      continue;
    }
    // This reads the owner's memory, without a message or a system call.
    const session = cache.get(`session ${n % 100}`);
    if (session !== undefined) cache.add('answered', 1);
  }
  // Only the owner changes entries.
  await cache.set('session 7', { user: 'somebody else' });
  await cache.close();
  cluster.worker!.disconnect();
}

if (cluster.isPrimary) await primary();
else await worker(process.env.CACHE!);
