/** Requests of views to the owner of a shared map, and their answers. Integers are little-endian. */
import { NetError } from '../base/errors.js';
import type { Geometry } from './map-layout.js';

/** The first byte of a request. */
export const MapRequest = { OPEN: 1, CHANGE: 2, GET: 3 } as const;

/** Version of these requests and of the memory layout. Both sides must have the same. */
const VERSION = 1;

/** The information that a view needs. */
export interface MapDescription extends Geometry {
  readonly counters: number;
  /** The name of the codec. */
  readonly codec: string;
  /** The secret key of the hash. */
  readonly key: readonly [number, number];
  /** The owner's clock, in ms. */
  readonly now: number;
  /** Handles of the memory of the entries and of the counters. */
  readonly handles: readonly [Uint8Array, Uint8Array];
}

/** Encodes the answer to OPEN. */
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
      `The owner of the shared map uses version ${given.version}, and this side uses version ${VERSION}. Install the same version of networkdirect on both sides.`,
    );
  const { buckets, units, counters, codec, key, now, entries, counted } = given;
  const whole = [buckets, units, counters].every((n) => Number.isSafeInteger(n) && (n as number) > 0);
  const hashKey = Array.isArray(key) && key.length === 2 && key.every((n) => Number.isInteger(n));
  const text =
    [codec, entries, counted].every((one) => typeof one === 'string') && /^\w{1,16}$/.test(codec as string);
  if (given.version !== VERSION || !whole || !hashKey || !text || !Number.isFinite(now))
    throw new NetError('EPROTO', 'The server does not own a shared map.');
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

/** A change of an entry. Without a value, the entry is removed. */
export interface Change {
  readonly key: Uint8Array;
  readonly value: Uint8Array | undefined;
  /** Lifetime in ms; 0: it does not expire. */
  readonly ttl: number;
}

/** Size in bytes of a change before key and value: kind (1), zero (1), length of the key (2) and of the value (4), ttl (8). */
const CHANGE_HEAD = 16;
const [REMOVE, STORE] = [0, 1];

/** Size in bytes of a change in a request. */
export function bytesOfChange({ key, value }: Change): number {
  return CHANGE_HEAD + key.length + (value?.length ?? 0);
}

/** Encodes a request with changes. Its answer has a byte for each, which says whether the entry existed. */
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

/** Decodes the changes of a request. @throws Error, which is sent to the peer */
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

/** Creates the error for a malformed request, which is sent to the peer. */
export function malformed(): Error {
  return new Error('The request to the shared map is malformed.');
}
