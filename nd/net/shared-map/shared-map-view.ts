import { EventEmitter } from 'node:events';
import { inspect } from 'node:util';
import { hostOf, wrongValue } from '../base/checks.js';
import { aborted, NetError, reset } from '../base/errors.js';
import { checkGivenOptions } from '../base/option-places.js';
import { Channel } from '../channel/channel.js';
import { checkPlace } from '../connection/names.js';
import { checkDestination, openLink } from '../connection/open-link.js';
import type { RemoteMemory } from '../memory/remote-memory.js';
import { EntryLookup } from './entry-lookup.js';
import { EntryReader } from './entry-reader.js';
import { hostClock } from './host-clock.js';
import { KeyHash } from './key-hash.js';
import { COUNTER_BYTES, checkAmount, RemoteCounters } from './map-counters.js';
import { bytesOfMap, type Geometry, MOST_VALUE_BYTES, mostValueBytes } from './map-layout.js';
import {
  bytesOfChange,
  type Change,
  decodeDescription,
  encodeChanges,
  type MapDescription,
  MapRequest,
} from './map-requests.js';
import { lookUp } from './remote-lookup.js';
import { encodeValue, MOST_REQUEST_BYTES, type SetOptions, ttlOf } from './shared-map.js';
import { type Codec, codecOf, type NamedCodec } from './value-codec.js';

/** Location of a shared map, and other options. */
export interface OpenSharedMapOptions {
  /** The name of the map; replaces `port` and `host`. */
  readonly name?: string | undefined;
  /** The owner's port. */
  readonly port?: number | undefined;
  /** The owner's IP address or host name; default `'localhost'`. */
  readonly host?: string | undefined;
  /** Aborts the attempt to open the map with an AbortError. */
  readonly signal?: AbortSignal | undefined;
}

/** One of this many reads is reported to the owner. The same number of reports is sent together. */
const REPORTED = 32;
const REPORTS = 64;

/** A change that is being sent to the owner. */
interface Sending {
  readonly change: Change;
  readonly resolve: (found: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A map of another process, or of another thread of this one. If {@link direct} is true, the map's memory is mapped, and reading requires
 * neither a message nor a system call. Emits `'close'` once when the map or its owner has ended or {@link close} was called; afterwards all
 * methods throw.
 * @example
 * ```ts
 * const view = await openSharedMap<{ user: number }>({ name: 'sessions', codec: 'json' });
 * view.get('key');
 * await view.set('key', { user: 8 });
 * ```
 */
export class SharedMapView<V = Uint8Array | string, R = V> extends EventEmitter implements AsyncDisposable {
  readonly #channel: Channel;
  readonly #geometry: Geometry;
  readonly #codec: NamedCodec;
  readonly #hash: KeyHash;
  readonly #entries: RemoteMemory;
  readonly #counters: RemoteCounters;
  readonly #lookup: EntryLookup | undefined;
  readonly #reader: EntryReader | undefined;
  /** Why {@link #reader} is undefined. */
  readonly #unmapped: Error | undefined;
  /** The owner's clock, in ms. */
  readonly #now: () => number;
  #over: Error | undefined;
  #closing: Promise<void> | undefined;
  readonly #changes: Sending[] = [];
  readonly #slots = Buffer.alloc(REPORTS * 4);
  #reads = 0;
  #reporting = false;

  /** @internal */
  constructor(
    channel: Channel,
    parts: {
      readonly description: MapDescription;
      readonly codec: NamedCodec;
      readonly entries: RemoteMemory;
      readonly counters: RemoteMemory;
      /** The mapped memory, or why it is not mapped. */
      readonly memory: Uint8Array | Error;
      readonly now: () => number;
    },
  ) {
    super();
    const { description, memory, codec, entries, now } = parts;
    this.#channel = channel;
    this.#geometry = description;
    this.#codec = codec;
    this.#now = now;
    this.#hash = new KeyHash(...description.key);
    this.#entries = entries;
    this.#counters = new RemoteCounters(parts.counters, description.counters, this.#hash);
    if (memory instanceof Error) this.#unmapped = memory;
    else {
      this.#lookup = new EntryLookup(memory, description, now);
      this.#reader = new EntryReader(this.#lookup, this.#hash);
    }
    channel.once('close', () => {
      this.#over ??= channel.error ?? new NetError('ECONNRESET', 'The owner closed the shared map.');
      this.emit('close');
    });
  }

  /** Whether the map's memory is mapped in this process, so that `get`, `getInto` and `has` work. @category Memory */
  get direct(): boolean {
    return this.#reader !== undefined && this.#over === undefined;
  }

  /**
   * Number of entries, including expired ones that have not been removed; undefined where {@link direct} is false.
   * @category Statistics
   */
  get size(): number | undefined {
    return this.direct ? this.#lookup?.size : undefined;
  }

  /**
   * Returns the value of a key; undefined if it has no entry, or an expired one.
   *
   * @throws NetError `ENOTSUP` (the map is not {@link direct}), `ECONNRESET` (the owner has ended), `EBUSY` (the owner stopped while it was
   *   changing the entry)
   * @category Read
   */
  get(key: string): R | undefined {
    const bytes = this.#direct('get').get(key);
    if (bytes === undefined) return undefined;
    this.#used();
    return this.#codec.codec.decode(bytes) as R;
  }

  /**
   * Copies the encoded bytes of a value into `target` without allocating memory.
   *
   * @returns length of the value in bytes; -1 if the key has none
   * @throws as {@link get}, and RangeError `ERR_OUT_OF_RANGE` (`target` is too short)
   * @category Read
   */
  getInto(key: string, target: Uint8Array): number {
    const length = this.#direct('getInto').getInto(key, target);
    if (length >= 0) this.#used();
    return length;
  }

  /** Returns whether there is an entry with this key. @throws as {@link get} @category Read */
  has(key: string): boolean {
    return this.#direct('has').has(key);
  }

  /**
   * The same as {@link get}, but also from other hosts, with three sequential RDMA Reads. If the entry keeps changing, the owner sends its
   * value.
   * @category Read
   */
  async getAsync(key: string): Promise<R | undefined> {
    this.#checkOpen();
    const bytes = await this.#bytes(key);
    return bytes === undefined ? undefined : (this.#codec.codec.decode(bytes) as R);
  }

  async #bytes(key: string): Promise<Buffer | undefined> {
    try {
      if (this.#reader !== undefined) {
        const value = this.#reader.get(key, 0);
        if (value !== undefined) this.#used();
        return value;
      }
      this.#hash.of(key);
      const value = await lookUp(this.#entries, this.#geometry, this.#hash, this.#now);
      if (value !== 'changing') return value;
    } catch (error) {
      if (!(error instanceof NetError) || error.code !== 'EBUSY') throw error;
    }
    const answer = await this.#channel.request(
      Buffer.concat([Uint8Array.of(MapRequest.GET), Buffer.from(key)]),
    );
    // The value is a separate, aligned copy, like values obtained in other ways.
    return answer[0] === 1 ? Buffer.from(answer.subarray(1)) : undefined;
  }

  /**
   * Makes the owner store a value. Changes made in one turn of the event loop are sent together. Resolves when all views see the value.
   *
   * @param key - at most 1024 bytes in UTF-8
   * @param value - within the limits of the owner's `set`
   * @param options - `ttl`
   * @throws RangeError `ERR_OUT_OF_RANGE` (key or value is too long); NetError `ECONNRESET` (the owner has ended)
   * @category Write
   */
  async set(key: string, value: V, options?: SetOptions): Promise<void> {
    this.#checkOpen();
    const ttl = ttlOf(options);
    await this.#change(key, encodeValue(this.#codec.codec, value, mostValueBytes(this.#geometry)), ttl);
  }

  /** Makes the owner remove an entry. Resolves with whether it existed. @category Write */
  async delete(key: string): Promise<boolean> {
    this.#checkOpen();
    return this.#change(key, undefined, 0);
  }

  /**
   * Adds to a counter synchronously and atomically with the owner and all other views.
   *
   * @param name - at most 1024 bytes in UTF-8
   * @param amount - an integer, possibly negative; 0 reads the counter
   * @returns the sum, exact up to 2 ** 53
   * @throws NetError `ENOTSUP` (the map cannot be accessed directly; use {@link addAsync}), `ENOBUFS` (all counters of the map are in use)
   * @category Atomics
   */
  add(name: string, amount: number): number {
    this.#checkOpen();
    checkAmount(amount);
    return this.#counters.add(name, amount);
  }

  /** The same as {@link add}, but also from other hosts. @category Atomics */
  async addAsync(name: string, amount: number): Promise<number> {
    this.#checkOpen();
    checkAmount(amount);
    return this.#counters.addAsync(name, amount);
  }

  /** Makes the view keep the process alive, which is the default. @category Lifetime */
  ref(): this {
    this.#channel.ref();
    return this;
  }

  /** Stops the view from keeping the process alive, except while changes are being sent. @category Lifetime */
  unref(): this {
    this.#channel.unref();
    return this;
  }

  /** Ends the view after its changes were sent. @category Lifetime */
  async close(): Promise<void> {
    if (this.#closing === undefined) {
      this.#flush();
      this.#over ??= new NetError('ERR_STREAM_DESTROYED', 'The view of the shared map is closed.');
      this.#closing = this.#channel.close();
    }
    await this.#closing;
  }

  /** {@link close}, for `await using`. @category Lifetime */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #checkOpen(): void {
    if (this.#over !== undefined) throw this.#over;
  }

  #direct(what: string): EntryReader {
    if (this.#over !== undefined) throw this.#over;
    if (this.#reader !== undefined) return this.#reader;
    const cause = this.#unmapped;
    throw new NetError(
      'ENOTSUP',
      `${what}: the memory of the map is not mapped in this process. Use getAsync().`,
      { cause },
    );
  }

  /** Reports a fraction of the reads to the owner, so that used entries are kept longer. */
  #used(): void {
    this.#reads += 1;
    if (this.#reads % REPORTED !== 0) return;
    const index = (this.#reads / REPORTED - 1) % REPORTS;
    this.#slots.writeUInt32LE(this.#lookup!.slot, 4 * index);
    if (index < REPORTS - 1 || this.#reporting) return;
    this.#reporting = true;
    const reported = (): void => {
      this.#reporting = false;
    };
    this.#channel.send(Buffer.from(this.#slots)).then(reported, reported);
  }

  #change(key: string, value: Uint8Array | undefined, ttl: number): Promise<boolean> {
    this.#hash.of(key);
    // The caller may reuse its bytes as soon as the call returns.
    const own = value && Uint8Array.from(value);
    const change = { key: Uint8Array.from(this.#hash.bytes.subarray(0, this.#hash.length)), value: own, ttl };
    return new Promise((resolve, reject) => {
      if (this.#changes.length === 0) queueMicrotask(() => this.#flush());
      this.#changes.push({ change, resolve, reject });
    });
  }

  #flush(): void {
    const all = this.#changes.splice(0);
    for (let first = 0; first < all.length; ) {
      let bytes = 1;
      let end = first;
      for (; end < all.length; end += 1) {
        bytes += bytesOfChange(all[end]!.change);
        if (bytes > MOST_REQUEST_BYTES && end > first) break;
      }
      void this.#send(all.slice(first, end));
      first = end;
    }
  }

  async #send(sendings: readonly Sending[]): Promise<void> {
    try {
      const answer = await this.#channel.request(encodeChanges(sendings.map(({ change }) => change)));
      for (const [index, { resolve }] of sendings.entries()) resolve(answer[index] === 1);
    } catch (error) {
      for (const { reject } of sendings) reject(error);
    }
  }

  /** @internal */
  [inspect.custom](): string {
    const state = this.#over !== undefined ? 'closed' : this.direct ? 'direct' : 'not direct';
    return `SharedMapView { ${state} }`;
  }
}

/**
 * Opens a map that another process or thread created with `createSharedMap`, for example a cache.
 *
 * @param options - `name`, or `port` and `host`; optionally `signal`, and `codec` (by default the owner's)
 * @throws TypeError, RangeError (invalid options); NetError `ECONNREFUSED` (there is no such map), `EPROTO` (the server does not own a
 *   shared map)
 */
export function openSharedMap(
  options: OpenSharedMapOptions & { readonly codec?: 'bytes' | undefined },
): Promise<SharedMapView<Uint8Array | string, Buffer>>;
export function openSharedMap(
  options: OpenSharedMapOptions & { readonly codec: 'string' },
): Promise<SharedMapView<string>>;
export function openSharedMap<V = unknown>(
  options: OpenSharedMapOptions & { readonly codec: 'json' | 'v8' | Codec<V> },
): Promise<SharedMapView<V>>;
export async function openSharedMap(
  options: OpenSharedMapOptions & { readonly codec?: unknown },
): Promise<SharedMapView<never>> {
  checkGivenOptions('openSharedMap', options);
  const { name, port, signal } = options;
  const codec = codecOf(options.codec);
  checkPlace('openSharedMap()', options);
  const destination = { name, port, host: hostOf(options.host) };
  checkDestination('openSharedMap()', destination);
  const channel = new Channel({ maxMessageBytes: 2 * MOST_VALUE_BYTES });
  await openLink(destination, channel.linkNeeds, (link) => channel.attach(link), signal);
  const abort = (): void => void channel.destroy(aborted(signal!));
  signal?.addEventListener('abort', abort, { once: true });
  try {
    const { description, behind } = await describe(channel);
    if (description.codec !== codec.name)
      throw wrongValue(`\`codec\` must be '${description.codec}', as for the owner; got '${codec.name}'.`);
    const [entries, counters] = description.handles.map((handle) => channel.open(handle)) as [
      RemoteMemory,
      RemoteMemory,
    ];
    const whole =
      entries.length >= bytesOfMap(description) && counters.length >= description.counters * COUNTER_BYTES;
    if (!whole)
      throw new NetError('EPROTO', 'The memory of the shared map is shorter than its owner announced.');
    const memory = await entries.map().catch((error: unknown) => {
      if (error instanceof NetError && error.code === 'ENOTSUP') return error;
      throw error;
    });
    if (!(memory instanceof Error)) await counters.mappedForAtomics();
    if (channel.destroyed) throw channel.error ?? reset();
    // Memory is only mapped on the same host, which has one clock.
    const now = memory instanceof Error ? (): number => hostClock() - behind : hostClock;
    return new SharedMapView<never>(channel, { description, codec, entries, counters, memory, now });
  } catch (error) {
    channel.destroy();
    throw signal?.aborted ? aborted(signal) : error;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

/** A round trip this short, in ms, shows the owner's clock with sufficient accuracy. */
const SHORT_TRIP_MS = 1;
const MOST_TRIPS = 5;

/**
 * Requests the owner's description of the map, and measures how far the owner's clock is behind this host's, with an error of at most half
 * the shortest round trip.
 */
async function describe(channel: Channel): Promise<{ description: MapDescription; behind: number }> {
  let shortest = Number.POSITIVE_INFINITY;
  let behind = 0;
  for (let trips = 1; ; trips += 1) {
    const sent = hostClock();
    const description = decodeDescription(await channel.request(Uint8Array.of(MapRequest.OPEN)));
    const received = hostClock();
    if (received - sent < shortest) {
      shortest = received - sent;
      behind = (sent + received) / 2 - description.now;
    }
    if (shortest <= SHORT_TRIP_MS || trips === MOST_TRIPS) return { description, behind };
  }
}
