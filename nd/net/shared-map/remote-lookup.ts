import type { RemoteMemory } from '../memory/remote-memory.js';
import { firstSlot } from './entry-lookup.js';
import type { KeyHash } from './key-hash.js';
import {
  BUCKET_BYTES,
  ENTRY_HEAD_BYTES,
  type Geometry,
  HEAD_BYTES,
  heapStart,
  SLOT_BYTES,
  Slot,
  UNIT_BYTES,
  valueStart,
} from './map-layout.js';

/** Attempts before the value is requested from the owner. */
const ATTEMPTS = 3;

/** The result of {@link lookUp}: the value, undefined if the key has no entry, or `'changing'` if the owner changed it in every attempt. */
export type RemoteValue = Buffer | undefined | 'changing';

/**
 * Finds the value of a key with three sequential RDMA Reads: its bucket, the entry, and the slot again, which shows whether the entry has
 * changed meanwhile. The last two are not sent together: if a response is lost, the entry is read again and could then be newer than its
 * slot.
 *
 * @param now - the owner's clock, in ms
 */
export async function lookUp(
  memory: RemoteMemory,
  geometry: Geometry,
  hash: KeyHash,
  now: () => number,
): Promise<RemoteValue> {
  // Other calls may use the hash meanwhile.
  const { tag } = hash;
  const key = Buffer.from(hash.bytes.subarray(0, hash.length));
  const bucketAt = HEAD_BYTES + firstSlot(hash, geometry.buckets) * SLOT_BYTES;
  for (let attempts = 0; attempts < ATTEMPTS; attempts += 1) {
    const bucket = await memory.read(bucketAt, BUCKET_BYTES);
    let value: RemoteValue;
    for (let at = 0; at < BUCKET_BYTES && value === undefined; at += SLOT_BYTES) {
      if (wordOf(bucket, at, Slot.TAG) !== tag) continue;
      value = await readEntry(
        memory,
        geometry,
        bucketAt + at,
        bucket.subarray(at, at + SLOT_BYTES),
        key,
        now,
      );
    }
    if (value !== 'changing') return value;
  }
  return 'changing';
}

async function readEntry(
  memory: RemoteMemory,
  geometry: Geometry,
  slotAt: number,
  slot: Buffer,
  key: Buffer,
  now: () => number,
): Promise<RemoteValue> {
  const offset = wordOf(slot, 0, Slot.OFFSET) >>> 0;
  const room = wordOf(slot, 0, Slot.ROOM) >>> 0;
  if ((wordOf(slot, 0, Slot.VERSION) & 1) !== 0) return 'changing';
  // The entry is invalid unless the slot has just been changed.
  if (room === 0 || offset + room > geometry.units) return 'changing';
  const length = room * UNIT_BYTES;
  const entry = await memory.read(heapStart(geometry) + offset * UNIT_BYTES, length);
  if (!(await memory.read(slotAt, SLOT_BYTES)).equals(slot)) return 'changing';
  const keyLength = entry.readUInt32LE(0);
  const valueLength = entry.readUInt32LE(4);
  const start = valueStart(keyLength);
  if (keyLength !== key.length || start + valueLength > length) return undefined;
  if (!entry.subarray(ENTRY_HEAD_BYTES, ENTRY_HEAD_BYTES + keyLength).equals(key)) return undefined;
  const expiry = entry.readDoubleLE(8);
  return expiry === 0 || now() < expiry ? entry.subarray(start, start + valueLength) : undefined;
}

function wordOf(bytes: Buffer, at: number, word: number): number {
  return bytes.readInt32LE(at + 4 * word);
}
