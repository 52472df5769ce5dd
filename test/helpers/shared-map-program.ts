// A process or a thread for tests of shared maps. It owns a map or has a view of one, and executes the operations that messages request.
// Each reply is a message.
import { parentPort, workerData } from 'node:worker_threads';
import { createSharedMap, openSharedMap, type SharedMap, type SharedMapView } from '../../nd/net/index.js';

/** An operation and its arguments. */
export type MapOrder = readonly [what: string, ...parameters: (string | number)[]];

const [role, name, entries, bytes] = (workerData as string[] | null) ?? process.argv.slice(2);

function post(message: unknown): void {
  if (parentPort !== null) parentPort.postMessage(message);
  else process.send!(message);
}

function onOrder(listener: (order: MapOrder) => void): void {
  if (parentPort !== null) parentPort.on('message', listener);
  else process.on('message', listener as (message: unknown) => void);
}

/** A value whose consistency can be checked, because it repeats the turn. `scale` sets its length. */
export function valueAt(turn: number, scale = 1): Buffer {
  const value = Buffer.alloc(scale * (8 + (turn % 61) * 8));
  for (let at = 0; at < value.length; at += 4) value.writeInt32LE(turn, at);
  return value;
}

/** Whether a value was created by {@link valueAt}. */
export function isWhole(value: Buffer, scale = 1): boolean {
  return value.equals(valueAt(value.readInt32LE(0), scale));
}

async function own(): Promise<SharedMap<Uint8Array | string, Buffer>> {
  const map = await createSharedMap({
    name: name!,
    entries: Number(entries ?? 1000),
    bytes: Number(bytes ?? 2 ** 20),
  });
  let turn = 0;
  let writing: NodeJS.Immediate | undefined;
  /** Stores, evicts and removes entries endlessly. */
  const write = (keys: number): void => {
    for (let n = 0; n < 50; n += 1) {
      turn += 1;
      const key = `key ${(turn * 7) % keys}`;
      if (turn % 97 === 0) map.delete(key);
      else map.set(key, valueAt(turn), turn % 11 === 0 ? { ttl: 1 } : undefined);
    }
    writing = setImmediate(write, keys);
  };
  let replacing: NodeJS.Timeout | undefined;
  const replace = (scale: number): void => {
    // The length is constant, so that the value is replaced in place.
    turn += 61 - (turn % 61);
    map.set('key', valueAt(turn, scale));
  };
  onOrder(async ([what, ...parameters]) => {
    const [key, value] = parameters as [string, string];
    if (what === 'set') post(map.set(key, value) ?? null);
    else if (what === 'replace') {
      clearInterval(replacing);
      replace(Number(key));
      replacing = setInterval(replace, Number(value), Number(key));
      post(null);
    } else if (what === 'get') post(map.get(key)?.toString() ?? null);
    else if (what === 'add') post(map.add(key, Number(value)));
    else if (what === 'size') post(map.size);
    else if (what === 'write') post(write(Number(key)) ?? null);
    else if (what === 'rest') {
      clearImmediate(writing);
      clearInterval(replacing);
      post(turn);
    } else if (what === 'close') post((await map.close()) ?? null);
  });
  return map;
}

async function view(): Promise<SharedMapView<Uint8Array | string, Buffer>> {
  const opened = await openSharedMap({ name: name! });
  opened.once('close', () => post('closed'));
  onOrder(async ([what, ...parameters]) => {
    const [key, value] = parameters as [string, string];
    if (what === 'set') post((await opened.set(key, value)) ?? null);
    else if (what === 'get') post(opened.get(key)?.toString() ?? null);
    else if (what === 'getAsync') post((await opened.getAsync(key))?.toString() ?? null);
    else if (what === 'add') {
      for (let n = 0; n < Number(value); n += 1) opened.add(key, 1);
      post(opened.add(key, 0));
    } else if (what === 'check') {
      // Counts the inconsistent values and all values that were found.
      let [torn, found] = [0, 0];
      for (let n = 0; n < Number(value); n += 1) {
        const one = opened.get(`key ${n % Number(key)}`);
        if (one === undefined) continue;
        found += 1;
        if (!isWhole(one)) torn += 1;
      }
      post([torn, found]);
    } else if (what === 'looks') {
      // Returns the first inconsistent value among lookups with RDMA Reads.
      let wrong: string | null = null;
      for (let n = 0; n < Number(key) && wrong === null; n += 1) {
        const one = await opened.getAsync('key');
        if (one === undefined || !isWhole(one, Number(value))) wrong = `lookup ${n}: ${one?.length} bytes`;
      }
      post(wrong);
    } else if (what === 'close') post((await opened.close()) ?? null);
  });
  return opened;
}

if (role === 'own' || role === 'view') {
  const made = role === 'own' ? await own() : await view();
  post(made.constructor.name === 'SharedMapView' ? (made as SharedMapView).direct : true);
}
