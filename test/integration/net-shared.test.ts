/** `networkdirect/net`: exposed memory. */
import { once } from 'node:events';
import { inspect } from 'node:util';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { allocate, type Channel, type RemoteMemory } from '../../nd/net/index.js';
import { channels, endAll, rejection } from '../helpers/net-pair.js';
import { patternOf } from '../helpers/net-pattern.js';

test.after.each(endAll);

async function opened(
  bytes: Uint8Array,
  writable: boolean,
): Promise<{ client: Channel; server: Channel; remote: RemoteMemory; release: () => void }> {
  const [client, server] = await channels();
  const exposed = await server.expose(bytes, { writable });
  await server.send(exposed.handle);
  const remote = client.open((await client.receive())!);
  return { client, server, remote, release: () => exposed.release() };
}

test('a handle travels in a message; its memory is read and written, small and large parts', async () => {
  const bytes = allocate(100_000);
  bytes.set(patternOf(100_000));
  const { remote } = await opened(bytes, true);
  assert.match(inspect(remote), /RemoteMemory { 100000 bytes, read and write }/);
  for (const [offset, length] of [
    [0, 1],
    [5, 4096],
    [7, 4097],
    [0, 100_000],
    [99_999, 1],
    [100_000, 0],
  ] as const) {
    assert.equal(await remote.read(offset, length), Buffer.from(bytes.subarray(offset, offset + length)));
  }
  await Promise.all([remote.write(10, Buffer.from('written')), remote.write(50_000, patternOf(40_000))]);
  assert.is(Buffer.from(bytes.subarray(10, 17)).toString(), 'written');
  assert.equal(Buffer.from(bytes.subarray(50_000, 90_000)), patternOf(40_000));
});

test('more reads at once than a link has places for', async () => {
  const bytes = patternOf(65_536);
  const { remote } = await opened(bytes, false);
  await Promise.all(
    Array.from({ length: 300 }, async (_, n) =>
      assert.equal(await remote.read(n * 100, 100 + n), bytes.subarray(n * 100, n * 200 - n * 100 + 100 + n)),
    ),
  );
});

test('counters of several peers lose nothing; compareExchange is a lock', async () => {
  const counters = new BigInt64Array(4);
  const { client, server, remote } = await opened(new Uint8Array(counters.buffer), true);
  await server.send((await server.expose(new Uint8Array(counters.buffer), { writable: true })).handle);
  const second = client.open((await client.receive())!);
  const seen = await Promise.all(
    Array.from({ length: 100 }, (_, n) => [remote, second][n % 2]!.fetchAdd(8, 3n)),
  );
  assert.is(counters[1], 300n);
  assert.is(new Set(seen).size, 100);
  assert.is(await remote.compareExchange(16, 0n, -5n), 0n);
  assert.is(await second.compareExchange(16, 0n, 7n), -5n);
  assert.is(counters[2], -5n);
});

test('what the memory does not allow is refused here, and the connection stays', async () => {
  const { client, remote } = await opened(new Uint8Array(100), false);
  for (const [offset, length] of [
    [0, 101],
    [100, 1],
    [-1, 1],
    [0.5, 1],
  ] as const) {
    assert.is((await rejection(remote.read(offset, length))).name, 'RangeError');
  }
  assert.is((await rejection(remote.write(0, new Uint8Array(1)))).code, 'EACCES');
  assert.is((await rejection(remote.fetchAdd(0, 1n))).code, 'EACCES');
  assert.throws(() => client.open(new Uint8Array(3)), /no handle/);
  assert.is((await rejection(remote.read(0, 1, { signal: AbortSignal.abort() }))).name, 'AbortError');
  assert.is((await remote.read(0, 1)).length, 1);
});

test('released memory cannot be reached: the connection ends', async () => {
  const { client, remote, release } = await opened(patternOf(100), true);
  release();
  release();
  assert.match((await rejection(remote.fetchAdd(0, 1n))).message, /not exposed any more/);
  const closed = once(client, 'close');
  assert.is((await rejection(remote.read(0, 1))).code, 'ECONNRESET');
  await closed;
  assert.is((await rejection(remote.read(0, 1))).code, 'ECONNRESET');
});

test('after close every use of memory says that this side has ended', async () => {
  const [client, server] = await channels();
  const exposed = await server.expose(allocate(64));
  const remote = client.open(exposed.handle);
  await remote.read(0, 8);
  await client.close();
  for (const use of [
    () => remote.read(0, 8),
    () => remote.read(0, 0),
    () => remote.read(0, 100),
    () => remote.write(0, new Uint8Array(0)),
    () => remote.write(0, new Uint8Array(8)),
    () => remote.fetchAdd(0, 1n),
    () => client.expose(allocate(64)),
    () => client.lend(allocate(64)),
    () => client.send('late'),
    () => client.request('late'),
    async () => client.open(exposed.handle),
  ])
    assert.is((await rejection(use())).code, 'ERR_STREAM_DESTROYED', String(use));
  exposed.release();
});

test.run();
