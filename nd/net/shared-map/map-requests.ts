/** What views of a shared map send to its owner, and the answers. Numbers are little-endian. */
import { NetError } from '../base/errors.js';
import type { Geometry } from './map-layout.js';

/** The first byte of a request. */
export const MapRequest = { OPEN: 1, CHANGE: 2, GET: 3 } as const;

/** Versions of these requests and of the memory's layout. Both sides must have the same. */
const VERSION = 1;

/** What a view needs. */
export interface MapDescription extends Geometry {
  readonly counters: number;
  /** The name of its codec. */
  readonly codec: string;
  /** Of the hash. */
  readonly key: readonly [number, number];
  /** The owner's clock, in ms. */
  readonly now: number;
  /** Of the memory of its entries, and of its counters. */
  readonly handles: readonly [Uint8Array, Uint8Array];
}

/** The answer to OPEN. */
export function encodeDescription({ handles, ...rest }: MapDescription): string {
  const [entries, counted] = handles.map((handle) => Buffer.from(handle).toString('base64'));
  return JSON.stringify({ version: VERSION, ...rest, entries, counted });
}

/** @throws NetError `EPROTO` */
export function decodeDescription(bytes: Buffer): MapDescription {
  let given: Record<string, unknown>;
  try {
    given = Object(JSON.parse(bytes.toString()));
  } catch {
    given = {};
  }
  if (typeof given.version === 'number' && given.version !== VERSION)
    throw new NetError(
      'EPROTO',
      `The map's owner has version ${given.version} of shared maps, this side version ${VERSION}; install the same version of networkdirect on both sides.`,
    );
  const { buckets, units, counters, codec, key, now, entries, counted } = given;
  const whole = [buckets, units, counters].every((n) => Number.isSafeInteger(n) && (n as number) > 0);
  const hashKey = Array.isArray(key) && key.length === 2 && key.every((n) => Number.isInteger(n));
  const text =
    [codec, entries, counted].every((one) => typeof one === 'string') && /^\w{1,16}$/.test(codec as string);
  if (given.version !== VERSION || !whole || !hashKey || !text || !Number.isFinite(now))
    throw new NetError('EPROTO', 'The server is not the owner of a shared map.');
  return {
    buckets: buckets as number,
    units: units as number,
    counters: counters as number,
    codec: codec as string,
    key: key as [number, number],
    now: now as number,
    handles: [Buffer.from(entries as string, 'base64'), Buffer.from(counted as string, 'base64')],
  };
}

/** A change of an entry; without a value it is removed. */
export interface Change {
  readonly key: Uint8Array;
  readonly value: Uint8Array | undefined;
  /** In ms; 0: it does not expire. */
  readonly ttl: number;
}

/** Bytes of a change before key and value: what it is (1), zero (1), bytes of the key (2) and of the value (4), ttl (8). */
const CHANGE_HEAD = 16;
const [REMOVE, STORE] = [0, 1];

/** Bytes of a change in a request. */
export function bytesOfChange({ key, value }: Change): number {
  return CHANGE_HEAD + key.length + (value?.length ?? 0);
}

/** A request with changes. Its answer has a byte for each: whether the entry was there. */
export function encodeChanges(changes: readonly Change[]): Buffer {
  let bytes = 1;
  for (const change of changes) bytes += bytesOfChange(change);
  const request = Buffer.allocUnsafe(bytes);
  request[0] = MapRequest.CHANGE;
  let at = 1;
  for (const { key, value, ttl } of changes) {
    request.writeUInt16LE(value === undefined ? REMOVE : STORE, at);
    request.writeUInt16LE(key.length, at + 2);
    request.writeUInt32LE(value?.length ?? 0, at + 4);
    request.writeDoubleLE(ttl, at + 8);
    request.set(key, at + CHANGE_HEAD);
    if (value !== undefined) request.set(value, at + CHANGE_HEAD + key.length);
    at += CHANGE_HEAD + key.length + (value?.length ?? 0);
  }
  return request;
}

/** The changes of a request. @throws Error, which the peer gets */
export function decodeChanges(request: Buffer): Change[] {
  const changes: Change[] = [];
  for (let at = 1; at < request.length; ) {
    if (request.length - at < CHANGE_HEAD) throw malformed();
    const kind = request.readUInt16LE(at);
    const keyEnd = at + CHANGE_HEAD + request.readUInt16LE(at + 2);
    const end = keyEnd + request.readUInt32LE(at + 4);
    const ttl = request.readDoubleLE(at + 8);
    if (kind > STORE || end > request.length || !(ttl >= 0 && ttl < Number.POSITIVE_INFINITY))
      throw malformed();
    const key = request.subarray(at + CHANGE_HEAD, keyEnd);
    changes.push({ key, value: kind === STORE ? request.subarray(keyEnd, end) : undefined, ttl });
    at = end;
  }
  return changes;
}

/** @throws Error, for the peer */
export function malformed(): Error {
  return new Error('The request to the shared map is malformed.');
}
