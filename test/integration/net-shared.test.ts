/** `networkdirect/net`: exposed memory. */
import { once } from 'node:events';
import { inspect } from 'node:util';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { allocate, type Channel, type RemoteMemory } from '../../nd/net/index.js';
import { needing } from '../helpers/needs.js';
import { channels, endAll, rejection } from '../helpers/net-pair.js';
import { patternOf } from '../helpers/net-pattern.js';

test.after.each(endAll);

/** Name, code and message of a thrown error. */
function thrown(use: () => unknown): string {
  try {
    use();
  } catch (error) {
    const { name, code, message } = error as Error & { code?: string };
    return `${name} ${code} ${message}`;
  }
  return 'nothing was thrown';
}

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

test('a handle is sent in a message; small and large parts of its memory are read and written', async () => {
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

test('more concurrent reads than a link has entries', async () => {
  const bytes = patternOf(65_536);
  const { remote } = await opened(bytes, false);
  await Promise.all(
    Array.from({ length: 300 }, async (_, n) =>
      assert.equal(await remote.read(n * 100, 100 + n), bytes.subarray(n * 100, n * 200 - n * 100 + 100 + n)),
    ),
  );
});

test('counters of several peers lose no updates; compareExchange can implement a lock', async () => {
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

test('operations that the memory does not permit are rejected locally, and the connection stays open', async () => {
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
  assert.throws(() => client.open(new Uint8Array(3)), /must be a handle/);
  assert.is((await rejection(remote.read(0, 1, { signal: AbortSignal.abort() }))).name, 'AbortError');
  assert.is((await remote.read(0, 1)).length, 1);
});

test('accessing released memory ends the connection', async () => {
  const { client, remote, release } = await opened(patternOf(100), true);
  release();
  release();
  assert.match((await rejection(remote.fetchAdd(0, 1n))).message, /no longer exposed/);
  const closed = once(client, 'close');
  assert.is((await rejection(remote.read(0, 1))).code, 'ECONNRESET');
  await closed;
  assert.is((await rejection(remote.read(0, 1))).code, 'ECONNRESET');
});

const direct = needing(test, 'direct access');

direct('memory of this process is accessed synchronously, in any order with other operations', async () => {
  const bytes = allocate(200_000);
  bytes.set(patternOf(200_000));
  const { remote, client, release } = await opened(bytes, true);
  assert.ok(remote.direct);
  for (const [offset, length] of [
    [0, 0],
    [3, 1],
    [5, 4096],
    [0, 200_000],
    [199_999, 1],
    [200_000, 0],
  ] as const) {
    const into = new Uint8Array(length);
    remote.readSync(offset, into);
    assert.equal(into, bytes.slice(offset, offset + length));
  }
  const written = remote.write(64, Buffer.alloc(50_000, 1));
  remote.writeSync(100_001, Buffer.from('at once'));
  assert.is(Buffer.from(bytes.subarray(100_001, 100_008)).toString(), 'at once');
  await written;
  const words = new BigInt64Array(bytes.buffer, bytes.byteOffset, 4);
  words.set([5n, -1n, 0n, 0n]);
  assert.is(remote.fetchAddSync(0, -7n), 5n);
  assert.is(remote.fetchAddSync(8, 1n), -1n);
  assert.is(remote.compareExchangeSync(16, 0n, 2n ** 63n - 1n), 0n);
  assert.is(remote.compareExchangeSync(16, 0n, 1n), 2n ** 63n - 1n);
  assert.equal([...words], [-2n, 0n, 2n ** 63n - 1n, 0n]);
  for (const [use, error] of [
    [() => remote.readSync(199_999, new Uint8Array(2)), /RangeError.*within the 200000/],
    [() => remote.readSync(0.5, new Uint8Array(1)), /RangeError/],
    [() => remote.readSync(0, 'text' as never), /`into` must be a Uint8Array; got a string/],
    [
      () => remote.writeSync(0, new DataView(new ArrayBuffer(8)) as never),
      /`from` must be a Uint8Array; got a DataView/,
    ],
    [() => remote.fetchAddSync(4, 1n), /`offset` must be a multiple of 8/],
    [() => remote.fetchAddSync(0, 1 as never), /`value` must be a bigint; got 1/],
    [() => remote.compareExchangeSync(0, 2n ** 63n, 1n), /64-bit/],
  ] as const) {
    assert.match(thrown(use), error);
  }
  release();
  for (const use of [
    () => remote.readSync(0, new Uint8Array(1)),
    () => remote.writeSync(0, new Uint8Array(1)),
    () => remote.fetchAddSync(0, 1n),
    () => remote.compareExchangeSync(0, 1n, 1n),
  ])
    assert.match(
      thrown(use),
      /ENOTSUP .*the peer has released it.* Use (read|write|fetchAdd|compareExchange)\(\)/,
    );
  assert.ok(remote.direct, 'the connection has not ended by that');
  await client.close();
  assert.not.ok(remote.direct);
  assert.match(
    thrown(() => remote.readSync(0, new Uint8Array(1))),
    /ERR_STREAM_DESTROYED/,
  );
});

test('an atomic operation does not overtake earlier reads, writes or atomic operations', async () => {
  const words = new BigInt64Array(8);
  const { client, server, remote } = await opened(new Uint8Array(words.buffer), true);
  await server.send((await server.expose(new Uint8Array(words.buffer), { writable: true })).handle);
  const second = client.open((await client.receive())!);
  for (let n = 0; n < 20; n += 1) {
    const hundred = Buffer.alloc(8);
    hundred.writeBigInt64LE(100n);
    await Promise.all([remote.write(0, hundred), second.fetchAdd(0, 1n), remote.fetchAdd(0, 1n)]);
    assert.is(words[0], 102n);
    const [seen] = await Promise.all([remote.read(0, 8), second.fetchAdd(0, 1n)]);
    assert.is(seen.readBigInt64LE(), 102n);
  }
});

test('read-only memory cannot be written synchronously; unaligned atomic operations are rejected', async () => {
  const { remote } = await opened(allocate(64), false);
  assert.match(
    thrown(() => remote.writeSync(0, new Uint8Array(1))),
    /EACCES/,
  );
  assert.match(
    thrown(() => remote.fetchAddSync(0, 1n)),
    /EACCES/,
  );
  const odd = allocate(64).subarray(4, 60);
  const { remote: other } = await opened(odd, true);
  assert.match(
    thrown(() => other.fetchAddSync(0, 1n)),
    /ENOTSUP/,
  );
  assert.match((await rejection(other.fetchAdd(0, 1n))).message, /must be writable and aligned to 8 bytes/);
});

test('after close, every use of memory reports that this side has ended', async () => {
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
