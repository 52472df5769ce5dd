/** The other side of a measurement: the owner of a map, which stores values while others read. */
import { once } from 'node:events';
import { allocate, createChannelServer } from 'networkdirect/net';
import { keysOf, type MapJob } from './job.js';
import { own, type Store } from './stores.js';

export const LOOPBACK = '127.0.0.1';
const EXPOSED_BYTES = 2 ** 20;

/** Stores `stores` values per second, a few in each turn of the event loop. */
function storeMeanwhile({ stores, size }: MapJob, store: Store, keys: readonly string[]): void {
  const value = Buffer.alloc(size, 7);
  const begin = performance.now();
  let stored = 0;
  setInterval(() => {
    const due = ((performance.now() - begin) / 1000) * stores;
    for (; stored < due; stored += 1) void store.set(keys[stored % keys.length]!, value);
  }, 1);
}

/** Prints the port of a channel server that exposes memory. */
async function exposeMemory(): Promise<void> {
  const server = createChannelServer();
  await once(server.listen(0, LOOPBACK), 'listening');
  const exposed = await server.expose(allocate(EXPOSED_BYTES));
  server.on('channel', (channel) => channel.onRequest(() => exposed.handle));
  console.log(JSON.stringify({ port: server.address()!.port }));
}

/** Fills the map with all keys and prints its location. */
export async function serve(job: MapJob): Promise<void> {
  if (job.kind === 'readSync') {
    await exposeMemory();
    return;
  }
  const { where, store } = await own(job);
  const keys = keysOf(job);
  for (const key of keys) await store.set(key, Buffer.alloc(job.size, 7));
  console.log(JSON.stringify({ port: where }));
  if (job.stores > 0) storeMeanwhile(job, store, keys);
  else setInterval(() => {}, 1000);
}
