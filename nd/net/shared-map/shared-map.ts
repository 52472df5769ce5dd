import { once } from 'node:events';
import { inspect } from 'node:util';
import { kindOf, shown } from '../../../kernel-bridge/ioctl/shown.js';
import { allocate } from '../../index.js';
import { outOfRange, portOf, wrongType } from '../base/checks.js';
import { NetError, netError } from '../base/errors.js';
import { checkGivenOptions, checkOptionNames } from '../base/option-places.js';
import type { Channel } from '../channel/channel.js';
import { checkPlace } from '../connection/names.js';
import type { ExposedMemory } from '../memory/exposed-memory.js';
import { Server } from '../server.js';
import { EntryReader } from './entry-reader.js';
import { EntryStore } from './entry-store.js';
import { hostClock } from './host-clock.js';
import { KeyHash } from './key-hash.js';
import { COUNTER_BYTES, checkAmount, OwnCounters } from './map-counters.js';
import {
  bytesOfMap,
  checkMapSizes,
  type Geometry,
  geometryFor,
  MOST_VALUE_BYTES,
  mostValueBytes,
} from './map-layout.js';
import { decodeChanges, encodeDescription, MapRequest, malformed } from './map-requests.js';
import { type Codec, codecOf, type NamedCodec } from './value-codec.js';

/** Defaults of {@link SharedMapOptions}. */
const BYTES = 2 ** 26;
const COUNTERS = 1024;

/** Maximum bytes of a view's request: one change of the longest value, or many short ones. */
export const MOST_REQUEST_BYTES = 2 * MOST_VALUE_BYTES;
/** Requests of one view that are executed concurrently. */
const REQUESTS = 16;

/** Location and sizes of a shared map, and other options. */
export interface SharedMapOptions {
  /** The name under which processes of this user on this host open the map, as in `listen({ name })`. Replaces `port` and `host`. */
  readonly name?: string | undefined;
  /** The port on which the map can be opened; 0: a free one. Every client that can connect to the port can read and change the map. */
  readonly port?: number | undefined;
  /** The local address for `port`; default `'localhost'`. */
  readonly host?: string | undefined;
  /** Maximum entries, 1 to 2 ** 26. Each needs 48 bytes in addition to `bytes`, and 87 of private memory of the owner. */
  readonly entries: number;
  /**
   * Bytes for keys and values, at least 2 ** 16, less than 4 GiB; default 64 MiB. An eighth is kept free. The whole memory is allocated at
   * creation.
   */
  readonly bytes?: number | undefined;
  /** Maximum counters, 1 to 2 ** 20; default 1024. Each needs 16 bytes. */
  readonly counters?: number | undefined;
}

/** Options of a change. */
export interface SetOptions {
  /** Milliseconds until the entry expires, more than 0; default: never. */
  readonly ttl?: number | undefined;
}

/** Returns the lifetime in ms; 0 if the entry never expires. @throws TypeError, RangeError */
export function ttlOf(options: SetOptions | undefined): number {
  if (options === undefined) return 0;
  checkOptionNames('setEntry', options);
  const { ttl } = options;
  if (ttl === undefined) return 0;
  if (typeof ttl !== 'number')
    throw wrongType(`\`ttl\` must be a number of milliseconds; got ${shown(ttl)}.`);
  if (!(ttl > 0 && ttl < Number.POSITIVE_INFINITY))
    throw outOfRange(`\`ttl\` must be a number of milliseconds above 0; got ${shown(ttl)}.`);
  return ttl;
}

/** Encodes a value. @throws RangeError `ERR_OUT_OF_RANGE` (it is too long); errors of the codec */
export function encodeValue(codec: Codec<unknown>, value: unknown, most: number): Uint8Array {
  const bytes = codec.encode(value);
  if (!(bytes instanceof Uint8Array))
    throw wrongType(`\`codec.encode\` must return a Uint8Array; got ${kindOf(bytes)}.`);
  if (bytes.length <= most) return bytes;
  const why = most < MOST_VALUE_BYTES ? ", an eighth of the map's `bytes`" : '';
  throw outOfRange(`\`value\` must have at most ${most} bytes${why}; got ${bytes.length}.`);
}

/**
 * A map in memory that other processes read, for example as a cache. Only its owner changes entries, so readers never wait for a lock,
 * and a process that dies cannot leave one locked. When the owner closes the map or dies, all views end.
 *
 * When memory is needed, entries are evicted, beginning with the oldest that neither the owner nor a view has used recently (CLOCK). Views
 * report a fraction of their reads. A key has sixteen possible slots. If all of them are in use, one of their entries is evicted. In a full
 * map this happens for one key in 100,000. Expired entries are no longer found; they are removed when others are stored.
 * @example
 * ```ts
 * const map = await createSharedMap({ name: 'sessions', entries: 100_000, codec: 'json' });
 * map.set('key', { user: 7 }, { ttl: 60_000 });
 * map.get('key');
 * map.add('hits', 1);
 * ```
 */
export class SharedMap<V = Uint8Array | string, R = V> implements AsyncDisposable {
  readonly #server: Server;
  readonly #store: EntryStore;
  readonly #hash: KeyHash;
  readonly #reader: EntryReader;
  readonly #counters: OwnCounters;
  readonly #codec: NamedCodec;
  readonly #geometry: Geometry;
  readonly #exposed: readonly ExposedMemory[];
  readonly #description: () => Omit<Parameters<typeof encodeDescription>[0], 'handles'>;
  /** The promise of {@link close}, once called. */
  #over: Promise<void> | undefined;

  /** @internal */
  constructor(
    server: Server,
    parts: {
      readonly geometry: Geometry;
      readonly capacity: number;
      readonly codec: NamedCodec;
      readonly entries: Uint8Array;
      readonly counters: Uint8Array;
      readonly exposed: readonly ExposedMemory[];
    },
  ) {
    const key = [...crypto.getRandomValues(new Int32Array(2))] as [number, number];
    const { geometry, codec, capacity } = parts;
    this.#server = server;
    this.#codec = codec;
    this.#geometry = geometry;
    this.#exposed = parts.exposed;
    this.#hash = new KeyHash(...key);
    this.#store = new EntryStore(parts.entries, geometry, capacity, hostClock);
    this.#reader = new EntryReader(this.#store.lookup, this.#hash);
    this.#counters = new OwnCounters(parts.counters, this.#hash);
    const counters = parts.counters.length / COUNTER_BYTES;
    this.#description = () => ({ ...geometry, counters, codec: codec.name, key, now: hostClock() });
  }

  /** Number of entries, including expired ones that have not been removed. @category Statistics */
  get size(): number {
    return this.#store.count;
  }

  /** The address and port on which the map can be opened; null once it is closed. @category Connect */
  address(): ReturnType<Server['address']> {
    return this.#server.address();
  }

  /**
   * Stores a value.
   *
   * @param key - at most 1024 bytes in UTF-8
   * @param value - at most 1 MiB, and about an eighth of the map's `bytes`
   * @param options - `ttl`
   * @throws RangeError `ERR_OUT_OF_RANGE` (key or value is too long); NetError `ERR_STREAM_DESTROYED` (the map is closed)
   * @category Write
   */
  set(key: string, value: V, options?: SetOptions): void {
    this.#checkOpen('set');
    const ttl = ttlOf(options);
    const bytes = encodeValue(this.#codec.codec, value, mostValueBytes(this.#geometry));
    this.#hash.of(key);
    this.#store.set(this.#hash, bytes, ttl === 0 ? 0 : hostClock() + ttl);
  }

  /** Returns the value of a key; undefined if it has no entry, or an expired one. */
  /** Returns the value of a key; undefined if it has none or it has expired. @category Read */
  get(key: string): R | undefined {
    this.#checkOpen('get');
    const bytes = this.#reader.get(key);
    if (bytes === undefined) return undefined;
    this.#store.touch(this.#store.lookup.slot);
    return this.#codec.codec.decode(bytes) as R;
  }

  /**
   * Copies the encoded bytes of a value into `target` without allocating memory.
   *
   * @returns length of the value in bytes; -1 if the key has none
   * @throws RangeError `ERR_OUT_OF_RANGE` (`target` is too short)
   * @category Read
   */
  getInto(key: string, target: Uint8Array): number {
    this.#checkOpen('getInto');
    const length = this.#reader.getInto(key, target);
    if (length >= 0) this.#store.touch(this.#store.lookup.slot);
    return length;
  }

  /** Returns whether there is an entry with this key. @category Read */
  has(key: string): boolean {
    this.#checkOpen('has');
    return this.#reader.has(key);
  }

  /** Removes an entry. Returns whether it existed. @category Write */
  delete(key: string): boolean {
    this.#checkOpen('delete');
    this.#hash.of(key);
    return this.#store.delete(this.#hash);
  }

  /** Removes all entries. Counters keep their values. @category Write */
  clear(): void {
    this.#checkOpen('clear');
    this.#store.clear();
  }

  /**
   * Adds to a counter, atomically with all views. Counters are separate from entries: they start at 0, never expire and are never evicted.
   *
   * @param name - at most 1024 bytes in UTF-8
   * @param amount - an integer, possibly negative; 0 reads the counter
   * @returns the sum, exact up to 2 ** 53
   * @throws NetError `ENOBUFS` (all counters of the map are in use)
   * @category Atomics
   */
  add(name: string, amount: number): number {
    this.#checkOpen('add');
    checkAmount(amount);
    return this.#counters.add(name, amount);
  }

  /** Makes the map keep the process alive, which is the default. @category Lifetime */
  ref(): this {
    this.#server.ref();
    return this;
  }

  /** Stops the map from keeping the process alive, unless views are open. @category Lifetime */
  unref(): this {
    this.#server.unref();
    return this;
  }

  /** Closes the map and ends all its views. @category Lifetime */
  async close(): Promise<void> {
    if (this.#over === undefined) {
      this.#over = this.#server.close();
      this.#server.closeAllConnections();
      for (const memory of this.#exposed) memory.release();
    }
    await this.#over;
  }

  /** {@link close}, for `await using`. @category Lifetime */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #checkOpen(what: string): void {
    if (this.#over !== undefined) throw new NetError('ERR_STREAM_DESTROYED', `${what}: the map is closed.`);
  }

  /** Returns the answer to a view's request. @internal */
  answer(channel: Channel, request: Buffer): Uint8Array | string {
    switch (request[0]) {
      case MapRequest.OPEN: {
        const [entries, counters] = this.#exposed.map((memory) => memory.handleFor(channel));
        return encodeDescription({ ...this.#description(), handles: [entries!, counters!] });
      }
      case MapRequest.CHANGE:
        return this.#change(request);
      case MapRequest.GET: {
        const value = this.#reader.get(request.toString('utf8', 1));
        return value === undefined ? new Uint8Array(1) : Buffer.concat([Uint8Array.of(1), value]);
      }
      default:
        throw malformed();
    }
  }

  #change(request: Buffer): Uint8Array {
    const changes = decodeChanges(request);
    const most = mostValueBytes(this.#geometry);
    const found = new Uint8Array(changes.length);
    for (const [index, { key, value, ttl }] of changes.entries()) {
      if (value !== undefined && value.length > most) throw malformed();
      this.#hash.of(key.toString());
      if (value === undefined) found[index] = this.#store.delete(this.#hash) ? 1 : 0;
      else this.#store.set(this.#hash, value, ttl === 0 ? 0 : hostClock() + ttl);
    }
    return found;
  }

  /** Receives a view's reports of slots whose entries it has read. @internal */
  async receiveReports(channel: Channel): Promise<void> {
    try {
      for await (const slots of channel)
        for (let at = 0; at + 4 <= slots.length; at += 4) this.#store.touch(slots.readUInt32LE(at));
      await channel.close();
    } catch {
      // The view has ended, which the view reports to its own program.
    }
  }

  /** @internal */
  [inspect.custom](): string {
    return `SharedMap { ${this.size} entries, ${this.#over !== undefined ? 'closed' : `${this.#server.connections} views`} }`;
  }
}

/**
 * Creates a map in memory of this process that other processes open with {@link openSharedMap}, for example a cache.
 *
 * @param options - `name`, or `port` and `host`; `entries`, and optionally `bytes`, `counters` and `codec`
 * @throws TypeError, RangeError (invalid options); NetError `EADDRINUSE` (the name or the port is in use), `ENOMEM` (not enough memory);
 *   errors of `listen`
 */
export function createSharedMap(
  options: SharedMapOptions & { readonly codec?: 'bytes' | undefined },
): Promise<SharedMap<Uint8Array | string, Buffer>>;
export function createSharedMap(
  options: SharedMapOptions & { readonly codec: 'string' },
): Promise<SharedMap<string>>;
export function createSharedMap<V = unknown>(
  options: SharedMapOptions & { readonly codec: 'json' | 'v8' | Codec<V> },
): Promise<SharedMap<V>>;
export async function createSharedMap(
  options: SharedMapOptions & { readonly codec?: unknown },
): Promise<SharedMap<never>> {
  checkGivenOptions('createSharedMap', options);
  const { name, port, host = 'localhost', entries: capacity, bytes = BYTES, counters = COUNTERS } = options;
  const codec = codecOf(options.codec);
  const sizes = { entries: capacity, bytes, counters };
  checkMapSizes(sizes);
  checkPlace('createSharedMap()', options);
  if (name === undefined) portOf(port, 0);
  const geometry = geometryFor(sizes);
  let made: (map: SharedMap<never>) => void = () => {};
  const map = new Promise<SharedMap<never>>((resolve) => (made = resolve));
  const server = new Server({
    channel: {
      maxMessageBytes: MOST_REQUEST_BYTES,
      maxRequests: REQUESTS,
      onRequest: async (request, { channel }) => (await map).answer(channel, request),
    },
  });
  server.on('channel', (channel: Channel) => void map.then((one) => one.receiveReports(channel)));
  const exposed: ExposedMemory[] = [];
  try {
    server.listen(name === undefined ? { port, host } : { name, host: options.host, port });
    await once(server, 'listening');
    const memory = allocate(bytesOfMap(geometry));
    const counted = allocate(counters * COUNTER_BYTES);
    exposed.push(
      await server.expose(memory, { views: true }),
      await server.expose(counted, { writable: true }),
    );
    const one = new SharedMap<never>(server, {
      geometry,
      capacity,
      codec,
      entries: memory,
      counters: counted,
      exposed,
    });
    made(one);
    return one;
  } catch (error) {
    for (const memory of exposed) memory.release();
    void server[Symbol.asyncDispose]();
    throw netError(error, 'createSharedMap');
  }
}
