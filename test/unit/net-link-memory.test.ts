// Memory of ended links that is kept for the next ones: how much, and for how long.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { IND2Adapter } from '../../nd/index.js';
import { type LinkMemory, LinkMemoryPool } from '../../nd/net/connection/link-memory.js';

/** A pool, and the lengths of currently registered memory, including that of other pools. */
function pool(limit = 2 ** 40, registered: number[] = []) {
  const adapter = {
    createMemoryRegion() {
      let length = -1;
      return {
        async register(bytes: Uint8Array) {
          if (registered.reduce((sum, one) => sum + one, bytes.length) > limit) throw new Error('no memory');
          length = bytes.length;
          registered.push(length);
        },
        release() {
          const at = registered.indexOf(length);
          if (at >= 0) registered.splice(at, 1);
        },
      };
    },
  } as unknown as IND2Adapter;
  return { pool: new LinkMemoryPool(adapter), registered };
}

test('the next link of the same length reuses the memory, the latest first', async () => {
  const { pool: memories, registered } = pool();
  const [first, second, long] = [
    await memories.take(100),
    await memories.take(100),
    await memories.take(200),
  ] as [LinkMemory, LinkMemory, LinkMemory];
  for (const memory of [first, long, second]) memories.release(memory);
  assert.is(await memories.take(100), second);
  assert.is(await memories.take(100), first);
  assert.is.not(await memories.take(100), first);
  assert.is(await memories.take(200), long);
  assert.equal(registered, [100, 100, 200, 100]);
  memories.close();
});

test('at most sixteen regions are kept, and the oldest is released', async () => {
  const { pool: memories, registered } = pool();
  const lengths = Array.from({ length: 20 }, (_, i) => 100 + i);
  for (const memory of await Promise.all(lengths.map((length) => memories.take(length))))
    memories.release(memory);
  assert.is(memories.size, 16);
  assert.equal(registered, lengths.slice(4));
  memories.close();
  assert.equal(registered, []);
});

test('a region that no link needed between two checks is released', async () => {
  const { pool: memories, registered } = pool();
  const some = await Promise.all([100, 101, 102].map((length) => memories.take(length)));
  for (const memory of some) memories.release(memory);
  memories.trim();
  assert.equal(registered, [100, 101, 102]);
  memories.release(await memories.take(101));
  memories.trim();
  assert.equal(registered, [101]);
  memories.trim();
  assert.equal(registered, []);
  memories.close();
});

test('memory returned after the end is released, and failed allocations leave nothing behind', async () => {
  const { pool: memories, registered } = pool(150);
  const memory = await memories.take(100);
  const refused = await memories.take(60).catch((error: Error) => error);
  assert.is((refused as Error).message, 'no memory');
  memories.close();
  assert.equal(registered, [100]);
  memories.release(memory);
  assert.equal(registered, []);
});

test('at most 64 MiB are kept, and longer memory is never kept', async () => {
  const { pool: memories, registered } = pool();
  const part = 2 ** 24;
  const lengths = [part, part + 1, part + 2, part - 3];
  for (const memory of await Promise.all(lengths.map((length) => memories.take(length))))
    memories.release(memory);
  assert.equal(registered, lengths);
  memories.release(await memories.take(4));
  assert.equal(registered, [...lengths.slice(1), 4]);
  memories.release(await memories.take(2 ** 26 + 1));
  assert.equal(registered, [...lengths.slice(1), 4]);
  memories.close();
});

test('kept regions are released when another one cannot be registered', async () => {
  const { pool: memories, registered } = pool(250);
  const [first, second] = await Promise.all([memories.take(100), memories.take(101)]);
  memories.release(first!);
  memories.release(second!);
  await memories.take(200);
  assert.equal(registered, [200]);
  assert.is(memories.size, 0);
  memories.close();
});

test('regions kept by another pool are released when memory cannot be registered', async () => {
  const { pool: one, registered } = pool(150);
  const { pool: other } = pool(150, registered);
  one.release(await one.take(100));
  const memory = await other.take(60);
  assert.equal(registered, [60]);
  assert.is(one.size, 0);
  other.release(memory);
  one.close();
  other.close();
});

test.run();
