/** Key-value stores: networkdirect, lmdb, Redis over a UNIX socket, and a Map. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSharedMap, openSharedMap } from 'networkdirect/net';
import { missingPackage, npmPackage } from '../peers/npm-package.js';
import { isInstalled } from '../processes.js';
import type { MapJob } from './job.js';

/** A value, or a promise for it. */
type Soon<T> = T | Promise<T>;

/** A store as used by its owner or a reader. */
export interface Store {
  /** Returns a copy of the value. */
  get(key: string): Soon<Uint8Array | undefined | null>;
  /** Copies the value to `target` or to memory that the store reuses. Returns its length. */
  getInto?(key: string, target: Uint8Array): number;
  set(key: string, value: Uint8Array): Soon<unknown>;
  /** Adds 1 to a counter and returns the sum. */
  add?(name: string): Soon<number>;
}

/** A store that this process created, and its location for others. */
export interface OwnStore {
  readonly where: string;
  readonly store: Store;
}

/** The used parts of the packages. */
interface Lmdb {
  open(options: object): {
    getBinary(key: string): Buffer | undefined;
    getBinaryFast(key: string): Buffer | undefined;
    put(key: string, value: Uint8Array): Promise<boolean>;
    putSync(key: string, value: Uint8Array): void;
    transactionSync<T>(work: () => T): T;
  };
}
interface RedisClient {
  on(event: 'error', listener: (error: Error) => void): unknown;
  connect(): Promise<unknown>;
  get(key: string): Promise<Buffer | null>;
  set(key: string, value: Uint8Array): Promise<unknown>;
  incr(key: string): Promise<number>;
  withTypeMapping(types: Readonly<Record<number, unknown>>): RedisClient;
}
interface Redis {
  createClient(options: object): RedisClient;
  readonly RESP_TYPES: { readonly BLOB_STRING: number };
}

const REDIS_SERVER = 'redis-server';
const COUNTER_BYTES = 8;

/** Why the store cannot be measured on this machine; undefined if it can. */
export function missingStore(over: MapJob['over']): string | undefined {
  if (over === 'lmdb') return missingPackage('lmdb');
  if (over !== 'Redis') return undefined;
  if (!isInstalled(REDIS_SERVER)) return 'redis-server is not installed (scripts/install-bench-peers.sh)';
  return missingPackage('redis');
}

/** A folder in memory if the OS has one, until the process exits. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'nd-bench-map-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Creates an empty store. */
export async function own(job: MapJob): Promise<OwnStore> {
  if (job.over === 'lmdb') {
    const where = temporaryFolder();
    return { where, store: openLmdb(where) };
  }
  if (job.over === 'Redis') {
    const where = startRedis();
    return { where, store: await openRedis(where) };
  }
  if (job.over === 'Map') return { where: 'nowhere', store: mapOfBuffers() };
  const { keys, size } = job;
  const where = `nd-bench-map-${process.pid}`;
  // Twice the required size, so that hardly anything is evicted.
  const map = await createSharedMap({
    name: where,
    entries: 2 * keys,
    bytes: 2 * keys * (size + 64) + 2 ** 20,
  });
  return { where, store: { get: (key) => map.get(key), set: (key, value) => map.set(key, value) } };
}

/** Opens the store of another process. */
export async function open(job: MapJob, where: string): Promise<Store> {
  if (job.over === 'lmdb') return openLmdb(where);
  if (job.over === 'Redis') return openRedis(where);
  if (job.over === 'Map') return mapOfBuffers();
  const view = await openSharedMap({ name: where });
  return {
    get: (key) => view.get(key),
    getInto: (key, target) => view.getInto(key, target),
    set: (key, value) => view.set(key, value),
    add: (name) => view.add(name, 1),
  };
}

/** In memory and without flushing each transaction, as for a cache. */
function openLmdb(path: string): Store {
  const db = npmPackage<Lmdb>('lmdb').open({ path, encoding: 'binary', noSync: true });
  const sum = (name: string): number => {
    const before = db.getBinary(name);
    const counter = Buffer.alloc(COUNTER_BYTES);
    counter.writeDoubleLE((before?.readDoubleLE() ?? 0) + 1);
    db.putSync(name, counter);
    return counter.readDoubleLE();
  };
  return {
    get: (key) => db.getBinary(key),
    getInto: (key) => db.getBinaryFast(key)!.length,
    set: (key, value) => db.put(key, value),
    add: (name) => db.transactionSync(() => sum(name)),
  };
}

/** Starts a server that writes no files. Returns the path of its socket. */
function startRedis(): string {
  const socket = join(temporaryFolder(), 'socket');
  const options = ['--port', '0', '--unixsocket', socket, '--save', '', '--appendonly', 'no'];
  const server = spawn(REDIS_SERVER, options, { stdio: 'ignore' });
  process.on('exit', () => server.kill());
  server.on('exit', (code) => {
    console.error(`${REDIS_SERVER} exited with code ${code}`);
    process.exit(1);
  });
  return socket;
}

async function openRedis(path: string): Promise<Store> {
  const { createClient, RESP_TYPES } = npmPackage<Redis>('redis');
  const client = createClient({ socket: { path, reconnectStrategy: 10 } });
  // Connecting fails until the server listens.
  client.on('error', () => {});
  await client.connect();
  const bytes = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  return {
    get: (key) => bytes.get(key),
    set: (key, value) => client.set(key, value),
    add: (name) => client.incr(name),
  };
}

/** A Map whose values are copied: the upper bound for a map within one process. */
function mapOfBuffers(): Store {
  const map = new Map<string, Buffer>();
  return {
    get: (key) => Buffer.from(map.get(key)!),
    getInto(key, target) {
      const value = map.get(key)!;
      target.set(value);
      return value.length;
    },
    set: (key, value) => map.set(key, Buffer.from(value)),
  };
}
