/** Entries of a shared map in memory, as seen by a reader while they are stored, changed, moved, evicted and expire. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { EntryLookup } from '../../nd/net/shared-map/entry-lookup.js';
import { EntryReader } from '../../nd/net/shared-map/entry-reader.js';
import { EntryStore } from '../../nd/net/shared-map/entry-store.js';
import { KeyHash } from '../../nd/net/shared-map/key-hash.js';
import {
  bytesOfMap,
  geometryFor,
  HEAD_BYTES,
  heapStart,
  mostValueBytes,
  Slot,
} from '../../nd/net/shared-map/map-layout.js';
import { seeded } from '../helpers/random.js';

/** A map with a given number of entries and bytes, its memory, its owner and a separate reader. */
function map(entries: number, bytes: number, hashOf = (): KeyHash => new KeyHash(11, -12)) {
  const clock = { now: 1 };
  const now = (): number => clock.now;
  const geometry = geometryFor({ entries, bytes, counters: 1 });
  const memory = new Uint8Array(bytesOfMap(geometry));
  const hash = hashOf();
  const store = new EntryStore(memory, geometry, entries, now);
  const lookup = new EntryLookup(memory, geometry, now);
  const reader = new EntryReader(lookup, hashOf());
  return {
    clock,
    geometry,
    memory,
    store,
    lookup,
    reader,
    set: (key: string, value: Uint8Array | string, expiry = 0): void => {
      hash.of(key);
      store.set(hash, Buffer.from(value as string), expiry);
    },
    delete: (key: string): boolean => {
      hash.of(key);
      return store.delete(hash);
    },
    touch: (key: string): void => {
      assert.ok(reader.has(key), key);
      store.touch(lookup.slot);
    },
  };
}

/** A value of a given length that identifies its key and its turn. */
function valueAt(key: string, turn: number, length: number): Buffer {
  return Buffer.alloc(length, `${key}#${turn};`);
}

/** A hash function that returns the same value for all keys. */
class ConstantHash extends KeyHash {
  override of(key: string): void {
    super.of(key);
    this.tag = 7;
    this.high = 0;
  }
}

test('keys with the same hash are distinguished by each of their bytes', () => {
  const { set, reader } = map(100, 2 ** 16, () => new ConstantHash(1, 2));
  const name = 'key:12345';
  const keys = [...name].map((_, at) => `${name.slice(0, at)}_${name.slice(at + 1)}`);
  for (const key of keys) set(key, key);
  assert.is(reader.get(name), undefined);
  for (const key of keys) assert.is(String(reader.get(key)), key);
});

test('short values that a reader returned do not change', () => {
  const { set, reader } = map(100, 2 ** 16);
  const got: Buffer[] = [];
  for (let turn = 0; turn < 1000; turn += 1) {
    set('key', valueAt('key', turn, turn % 97));
    got.push(reader.get('key')!);
  }
  for (const [turn, value] of got.entries()) assert.equal(value, valueAt('key', turn, turn % 97));
});

test('values of all lengths are returned by get and getInto', () => {
  const { set, reader, lookup, geometry } = map(100, 2 ** 20);
  const lengths = [0, 1, 7, 8, 95, 96, 97, 4096, mostValueBytes(geometry)];
  for (const length of lengths) set(`key ${length}`, valueAt('key', length, length));
  for (const length of lengths) {
    const value = valueAt('key', length, length);
    assert.ok(reader.get(`key ${length}`)!.equals(value), String(length));
    const target = Buffer.alloc(length + 1, 0xee);
    assert.is(reader.getInto(`key ${length}`, target), length);
    assert.ok(target.subarray(0, length).equals(value));
    assert.is(target[length], 0xee);
    assert.ok(reader.has(`key ${length}`));
  }
  assert.is(lookup.size, lengths.length);
  assert.is(reader.get('none'), undefined);
  assert.is(reader.getInto('none', Buffer.alloc(1)), -1);
  assert.not(reader.has('none'));
  assert.throws(
    () => reader.getInto('key 8', Buffer.alloc(7)),
    /`target` must have at least 8 bytes, .*; got 7/,
  );
});

test('in every case, a reader finds the last value of a key, or none if it was removed or evicted', () => {
  for (let seed = 1; seed <= 30; seed += 1) {
    const random = seeded(seed);
    const entries = [4, 40, 400][seed % 3]!;
    const { set, delete: remove, store, reader, lookup, clock } = map(entries, [2 ** 16, 2 ** 17][seed % 2]!);
    const model = new Map<string, { value: Buffer; expiry: number }>();
    for (let turn = 0; turn < 3000; turn += 1) {
      const key = `key ${Math.floor(random() ** 2 * entries * 2)}`;
      const action = random();
      clock.now += random();
      if (action < 0.7) {
        const length = Math.floor(random() < 0.1 ? random() * 6000 : random() * 200);
        const expiry = random() < 0.2 ? clock.now + random() * 200 : 0;
        set(key, valueAt(key, turn, length), expiry);
        model.set(key, { value: valueAt(key, turn, length), expiry });
      } else if (action < 0.8) {
        const there = reader.has(key);
        assert.is(remove(key), there, `seed ${seed}, turn ${turn}`);
        model.delete(key);
      } else if (reader.has(key)) store.touch(lookup.slot);
      const shown = reader.get(key);
      const should = model.get(key);
      if (action < 0.7 && should!.expiry !== clock.now)
        assert.ok(shown, `seed ${seed}, turn ${turn}: just stored`);
      if (shown !== undefined) {
        assert.ok(should !== undefined && shown.equals(should.value), `seed ${seed}, turn ${turn}`);
        assert.ok(should.expiry === 0 || clock.now < should.expiry);
      }
    }
    let found = 0;
    for (const [key, { value, expiry }] of model) {
      const shown = reader.get(key);
      if (shown === undefined) continue;
      found += 1;
      assert.ok(shown.equals(value) && (expiry === 0 || clock.now < expiry), `seed ${seed}, at the end`);
    }
    assert.ok(store.count <= entries && lookup.size === store.count && found <= store.count);
    assert.ok(found > 0);
    store.clear();
    assert.is(lookup.size, 0);
    for (const key of model.keys()) assert.not(reader.has(key));
  }
});

test('nothing is evicted while everything fits, even if the lengths of values keep changing', () => {
  const random = seeded(3);
  const { set, reader, store } = map(64, 2 ** 17);
  const turns = new Map<string, [number, number]>();
  for (let turn = 0; turn < 40_000; turn += 1) {
    // At most 40 entries of 1,100 bytes, in 128 KiB.
    const key = `key ${Math.floor(random() * 40)}`;
    const length = Math.floor(random() * 1100);
    set(key, valueAt(key, turn, length));
    turns.set(key, [turn, length]);
  }
  assert.is(store.count, 40);
  for (const [key, [turn, length]] of turns)
    assert.ok(reader.get(key)?.equals(valueAt(key, turn, length)), key);
});

test('nothing is evicted while there is room, even if another key is stored and removed repeatedly', () => {
  for (const [count, length] of [
    [1, 100_000],
    [40, 10_000],
    [800, 500],
  ] as const) {
    const { set, delete: remove, reader, store } = map(1000, 2 ** 20);
    for (let n = 0; n < count; n += 1) set(`old ${n}`, valueAt('old', n, length));
    for (let turn = 0; turn < 20_000; turn += 1) {
      const key = `new ${turn % 7}`;
      set(key, valueAt(key, turn, (turn % 50) * 40));
      remove(key);
    }
    assert.is(store.count, count, `${length} bytes`);
    for (let n = 0; n < count; n += 1) assert.ok(reader.get(`old ${n}`)?.equals(valueAt('old', n, length)));
  }
});

test('if there are too many entries, expired ones are removed before live ones', () => {
  const { set, reader, store, clock } = map(200, 2 ** 20);
  for (let n = 0; n < 100; n += 1) set(`long ${n}`, 'x');
  for (let n = 0; n < 100; n += 1) set(`short ${n}`, 'x', 10);
  clock.now = 11;
  for (let n = 0; n < 80; n += 1) set(`new ${n}`, 'x');
  assert.ok(store.count <= 200);
  // A full bucket may have evicted one entry.
  assert.ok(Array.from({ length: 100 }, (_, n) => reader.has(`long ${n}`)).filter(Boolean).length >= 99);
});

test('used entries stay, and others are evicted, oldest first', () => {
  const { set, touch, reader, store } = map(100, 2 ** 20);
  for (let n = 0; n < 100; n += 1) set(`old ${n}`, 'x');
  for (let n = 0; n < 100; n += 2) touch(`old ${n}`);
  // A full bucket rarely evicts one of its own entries, which may be any of them.
  for (let n = 0; n < 50; n += 1) set(`new ${n}`, 'x');
  const left = Array.from({ length: 100 }, (_, n) => reader.has(`old ${n}`));
  assert.is(store.count, 100);
  assert.ok(left.filter((is, n) => is && n % 2 === 0).length >= 49);
  assert.ok(left.filter((is, n) => is && n % 2 === 1).length <= 1);
});

test('used entries stay even if there is no room', () => {
  const { set, touch, reader } = map(1000, 2 ** 17);
  for (let n = 0; n < 100; n += 1) set(`old ${n}`, valueAt('old', n, 1000));
  for (let turn = 0; turn < 10; turn += 1) {
    for (let n = 0; n < 10; n += 1) touch(`old ${n}`);
    for (let n = 0; n < 50; n += 1) set(`new ${turn} ${n}`, valueAt('new', n, 1000));
  }
  const left = Array.from({ length: 100 }, (_, n) => reader.has(`old ${n}`));
  assert.is(left.slice(0, 10).filter(Boolean).length, 10);
  assert.is(left.slice(10).filter(Boolean).length, 0);
});

test('an entry that would end beyond the heap is not found', () => {
  const { set, reader, memory, geometry } = map(10, 2 ** 16);
  set('key', 'value');
  assert.ok(reader.has('key'));
  const words = new Int32Array(memory.buffer);
  const heap = heapStart(geometry) / 4;
  const slot = words.findIndex(
    (word, at) => at >= HEAD_BYTES / 4 && at < heap && at % 4 === Slot.TAG && word !== 0,
  );
  // The last two of the entry's four units.
  const last = geometry.units - 2;
  words.copyWithin(heap + last * 4, heap, heap + 8);
  words[slot - Slot.TAG + Slot.OFFSET] = last;
  assert.is(String(reader.get('key')), 'value');
  words[slot - Slot.TAG + Slot.ROOM] = 4;
  words[heap + last * 4 + 1] = 30;
  assert.is(reader.get('key'), undefined);
});

test('expired entries are not found, and make room', () => {
  const { set, reader, store, clock } = map(50, 2 ** 16);
  for (let n = 0; n < 25; n += 1) set(`short ${n}`, 'x'.repeat(200), 10);
  for (let n = 0; n < 25; n += 1) set(`long ${n}`, 'x'.repeat(200), 0);
  clock.now = 9.9;
  assert.ok(reader.has('short 0'));
  clock.now = 10;
  assert.is(reader.get('short 0'), undefined);
  assert.is(reader.getInto('short 0', Buffer.alloc(200)), -1);
  assert.not(reader.has('short 0'));
  // Each change checks two slots, and each entry has three.
  for (let n = 0; n < 100; n += 1) set('another', 'x');
  assert.is(store.count, 26);
  set('short 0', 'again');
  assert.is(String(reader.get('short 0')), 'again');
});

test('arbitrary memory contents yield values or none, and reading always terminates', () => {
  const random = seeded(5);
  const { set, delete: remove, reader, memory } = map(100, 2 ** 16);
  for (let round = 0; round < 40; round += 1) {
    for (let n = 0; n < 100; n += 1) set(`key ${n}`, 'x'.repeat(n));
    const kind = round % 4;
    for (let at = 0; at < memory.length; at += kind === 3 ? 977 : 1)
      memory[at] =
        kind === 0 ? random() * 256 : kind === 1 ? 0xff : kind === 2 ? (memory[at]! & 1 ? 0 : 255) : 1;
    for (let n = 0; n < 100; n += 1) {
      let value: Buffer | undefined;
      try {
        value = reader.get(`key ${n}`);
      } catch (error) {
        assert.is((error as { code?: string }).code, 'EBUSY');
        break;
      }
      assert.ok(value === undefined || value.length <= memory.length);
    }
    for (let n = 0; n < 100; n += 3) remove(`key ${n}`);
  }
  for (let n = 0; n < 100; n += 1) set(`after ${n}`, 'y'.repeat(n));
  assert.ok(
    Array.from({ length: 100 }, (_, n) => reader.get(`after ${n}`)?.equals(Buffer.alloc(n, 'y'))).filter(
      Boolean,
    ).length >= 95,
  );
});

test.run();
