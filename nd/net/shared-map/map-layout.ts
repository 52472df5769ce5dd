/**
 * Layout of the memory of a shared map, which only the owner writes: a head, an index of buckets, and a heap.
 *
 * A key has one bucket of 16 slots. A slot has 16 bytes: version (odd while it changes), tag (32 bits of the key's hash; 0: free), and the
 * offset of the entry in the heap and its space, in units of 16 bytes. An entry consists of the lengths of key and value (4 bytes each),
 * the expiry time (8; 0: none), the key, and the value at the next multiple of 8. All integers are in the byte order of the host.
 *
 * The owner changes an entry or its slot only while the version is odd. A reader that finds the same even version before and after reading
 * has read a consistent entry.
 */
import { shown } from '../../../kernel-bridge/ioctl/shown.js';
import { outOfRange } from '../base/checks.js';

/** Size of the head in bytes. Its first word is the number of entries. */
export const HEAD_BYTES = 128;

export const BUCKET_SLOTS = 16;
export const SLOT_BYTES = 16;
export const BUCKET_BYTES = BUCKET_SLOTS * SLOT_BYTES;

/** The 32-bit words of a slot. */
export const Slot = { VERSION: 0, TAG: 1, OFFSET: 2, ROOM: 3 } as const;
export const SLOT_WORDS = 4;

/** Size of a heap unit in bytes. */
export const UNIT_BYTES = 16;

/** Size in bytes of an entry before its key. */
export const ENTRY_HEAD_BYTES = 16;

/** Maximum length of a key in UTF-8, in bytes. */
export const MOST_KEY_BYTES = 1024;
/** Maximum length of a value in bytes, even in larger maps. */
export const MOST_VALUE_BYTES = 2 ** 20;

/** Slots for each entry: in a full map, a bucket is full for about one key in 100,000. */
const SLOTS_PER_ENTRY = 3;

const MOST_ENTRIES = 2 ** 26;
const LEAST_BYTES = 2 ** 16;
/** Maximum bytes of the whole memory, which is one ArrayBuffer. */
const MOST_BYTES = 2 ** 32 - 2 ** 16;
const MOST_COUNTERS = 2 ** 20;

/** The sizes of a map. */
export interface MapSizes {
  readonly entries: number;
  /** Size of the heap in bytes. */
  readonly bytes: number;
  readonly counters: number;
}

/** @throws RangeError if a size is not an integer within its bounds */
export function checkMapSizes(sizes: MapSizes): void {
  const bounds = {
    entries: [1, MOST_ENTRIES],
    bytes: [LEAST_BYTES, MOST_BYTES],
    counters: [1, MOST_COUNTERS],
  } as const;
  for (const [name, [least, most]] of Object.entries(bounds)) {
    const value = sizes[name as keyof typeof bounds];
    if (Number.isSafeInteger(value) && value >= least && value <= most) continue;
    throw outOfRange(`\`${name}\` must be an integer from ${least} to ${most}; got ${shown(value)}.`);
  }
  const all = bytesOfMap(geometryFor(sizes));
  if (all > MOST_BYTES)
    throw outOfRange(`\`bytes\` + 48 × \`entries\` must be less than 4 GiB; got ${all} bytes.`);
}

/** The sizes of a map's parts. */
export interface Geometry {
  readonly buckets: number;
  /** Size of the heap in units. */
  readonly units: number;
}

/** The geometry for a number of entries and the bytes of their keys and values. */
export function geometryFor({ entries, bytes }: MapSizes): Geometry {
  return {
    buckets: Math.ceil((entries * SLOTS_PER_ENTRY) / BUCKET_SLOTS),
    units: Math.ceil(bytes / UNIT_BYTES),
  };
}

/** Offset of the heap in bytes. */
export function heapStart({ buckets }: Geometry): number {
  return HEAD_BYTES + buckets * BUCKET_BYTES;
}

/** Size of the whole memory in bytes. */
export function bytesOfMap(geometry: Geometry): number {
  return heapStart(geometry) + geometry.units * UNIT_BYTES;
}

/** Offset of the value within an entry, in bytes. */
export function valueStart(keyBytes: number): number {
  return ENTRY_HEAD_BYTES + ((keyBytes + 7) & ~7);
}

/** Units of an entry. */
export function unitsOf(keyBytes: number, valueBytes: number): number {
  return Math.ceil((valueStart(keyBytes) + valueBytes) / UNIT_BYTES);
}

/** Maximum length of a value in this heap. It is a fraction of the heap, so that one entry does not evict all others. */
export function mostValueBytes({ units }: Geometry): number {
  return Math.min(MOST_VALUE_BYTES, Math.floor(units / 8) * UNIT_BYTES - valueStart(MOST_KEY_BYTES));
}
