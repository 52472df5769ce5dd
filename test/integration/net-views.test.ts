/** `networkdirect/net`: views of memory of a peer in another process, in a Worker, and in this process. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { inspect } from 'node:util';
import { Worker } from 'node:worker_threads';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { MOST_VIEWS } from '../../kernel-bridge/schema/generated/numbers.js';
import { allocate, type Channel, connectChannel, type RemoteMemory } from '../../nd/net/index.js';
import { collect } from '../helpers/collect.js';
import { needing } from '../helpers/needs.js';
import { channels, endAll, rejection } from '../helpers/net-pair.js';
import { patternOf } from '../helpers/net-pattern.js';
import { programFile } from '../helpers/programs.js';

const program = programFile(new URL('../helpers/net-views-program.js', import.meta.url));
const direct = needing(test, 'direct access');
const children = new Set<ChildProcess>();
const open = new Set<Channel>();
const workers = new Set<Worker>();
const BYTES = 1 << 20;

test.after.each(async () => {
  for (const channel of open) channel.destroy();
  open.clear();
  await Promise.all([...children].map(kill));
  await Promise.all([...workers].map((worker) => worker.terminate()));
  workers.clear();
  await endAll();
});

async function kill(child: ChildProcess): Promise<void> {
  children.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

interface Owner {
  readonly child: ChildProcess;
  readonly channel: Channel;
  order(words: string): Promise<Buffer>;
  expose(words: string): Promise<RemoteMemory>;
}

/** Starts another process with memory. Returns it with a channel to it. */
async function owner(options = {}, bytes = BYTES): Promise<Owner> {
  const child = fork(program, [String(bytes)], {
    env: { ...process.env, ND_OPTIONS: JSON.stringify(options) },
  });
  children.add(child);
  const [{ port }] = await once(child, 'message');
  const channel = await connectChannel(port, '127.0.0.1');
  open.add(channel);
  const order = (words: string): Promise<Buffer> => channel.request(words);
  return { child, channel, order, expose: async (words) => channel.open(await order(`expose ${words}`)) };
}

/** The sum of all bytes, which reads every page. */
const sum = (bytes: Uint8Array): number => bytes.reduce((total, byte) => total + byte, 0);

// This test runs first, because V8 may subtract the bytes of earlier views at any time.
direct('V8 counts the bytes of views', async () => {
  const { expose } = await owner();
  const remote = await expose(`views 0 ${BYTES}`);
  collect();
  const before = process.memoryUsage().external;
  // V8 may free a few megabytes of other memory in the meantime.
  const views = await Promise.all(Array.from({ length: 16 }, () => remote.map()));
  const grown = process.memoryUsage().external - before;
  assert.ok(grown > 8 * BYTES, `${grown} bytes for ${views.length} views of ${BYTES}`);
});

direct('a view shows what the other process has, and writes to it stay here', async () => {
  const { order, expose } = await owner();
  const remote = await expose(`views 0 ${BYTES}`);
  assert.ok(remote.views && !remote.writable);
  assert.match(inspect(remote), /RemoteMemory { 1048576 bytes, read, views }/);
  const view = await remote.map();
  assert.is(view.length, BYTES);
  assert.is(sum(view), BYTES);
  await order('fill 2');
  assert.is(sum(view), 2 * BYTES);
  view[5000] = 77;
  assert.is((await order('look 0 5000'))[0], 2);
  await order('fill 3');
  assert.equal([view[4095], view[4096], view[5000], view[8191], view[8192]], [3, 2, 77, 2, 3]);
  assert.is((await remote.map())[5000], 3, 'another view has nothing of it');
  assert.is((await remote.read(5000, 1))[0], 3);
});

direct('a view has exactly the exposed bytes, wherever they start', async () => {
  const { order, expose } = await owner();
  for (const [from, to] of [
    [4096, 8192],
    [1, 2],
    [5001, 70_003],
    [BYTES - 8, BYTES],
  ] as const) {
    const remote = await expose(`views ${from} ${to}`);
    const view = await remote.map();
    assert.is(view.length, to - from);
    assert.is(view.byteOffset, from % 8);
    assert.is(view.buffer.byteLength, view.byteOffset + view.length);
    await order('fill 9');
    assert.is(sum(view), 9 * view.length);
    await order('fill 1');
    assert.is(sum(view), view.length);
    await order('release');
  }
});

direct('many calls at once, and views beside the methods in Sync', async () => {
  const { expose } = await owner();
  const remote = await expose(`views 0 ${BYTES}`);
  const byte = new Uint8Array(1);
  remote.readSync(7, byte);
  const views = await Promise.all(Array.from({ length: 20 }, () => remote.map()));
  assert.is(new Set(views.map(({ buffer }) => buffer)).size, 20);
  for (const view of views) assert.is(sum(view), BYTES);
  remote.readSync(7, byte);
  assert.is(byte[0], 1);
});

direct('a view outlives the release, the connection, and a process that is killed', async () => {
  const { child, channel, order, expose } = await owner();
  const remote = await expose(`views 0 ${BYTES}`);
  const view = await remote.map();
  await order('release');
  const error = await rejection(remote.map());
  assert.is(error.code, 'ENOTSUP');
  assert.match(error.message, /^map: .*the peer has released it, or does not publish it\. Use read\(\)\.$/);
  await order('fill 4');
  assert.is(sum(view), 4 * BYTES);
  const closed = once(channel, 'close');
  await kill(child);
  await closed;
  assert.is((await rejection(remote.map())).code, 'ECONNRESET');
  // The sum includes pages that have not been accessed yet.
  assert.is(sum(view), 4 * BYTES);
  view.fill(5);
  assert.is(sum(view), 5 * BYTES);
});

/** Views mapped by this process, as listed by Linux. */
const mapped = (): number =>
  readFileSync('/proc/self/maps', 'utf8').match(/rw-p .*memfd:networkdirect/g)?.length ?? 0;

async function collected(left: number): Promise<void> {
  for (const end = performance.now() + 30_000; mapped() > left; await setTimeout(5)) {
    assert.ok(performance.now() < end, `${mapped()} views are left`);
    collect();
  }
}

direct('views are unmapped when they are collected, and bounded in number', async () => {
  await collected(0);
  const [client, server] = await channels();
  const remote = client.open((await server.expose(allocate(4096), { views: true })).handle);
  const kept: Uint8Array[] = [];
  while (kept.length < MOST_VIEWS) kept.push(await remote.map());
  assert.is(mapped(), MOST_VIEWS);
  const error = await rejection(remote.map());
  assert.is(error.code, 'ENOBUFS');
  assert.match(
    error.message,
    /^map: .*has 4096 views, the maximum\. A view is released when it is garbage-collected\.$/,
  );
  kept.length = 1;
  await collected(1);
  assert.is((await remote.map()).length, 4096);
  assert.is(kept[0]!.length, 4096);
});

direct('within one process', async () => {
  const [client, server] = await channels();
  const bytes = allocate(100_000);
  bytes.set(patternOf(100_000));
  const exposed = await server.expose(bytes, { views: true, writable: true });
  assert.match(inspect(exposed), /ExposedMemory { 100000 bytes, read and write, views }/);
  const remote = client.open(exposed.handle);
  const view = await remote.map();
  assert.equal(Buffer.from(view), Buffer.from(bytes));
  await remote.write(10, Buffer.from('written'));
  assert.is(Buffer.from(view.subarray(10, 17)).toString(), 'written');
  view[50_000]! ^= 0xff;
  assert.is.not(view[50_000], bytes[50_000]);
  exposed.release();
  assert.is((await rejection(remote.map())).code, 'ENOTSUP');
  bytes[0]! ^= 0xff;
  assert.is(view[0], bytes[0]);
});

direct('between Workers of a process, after whose end a view is still there', async () => {
  const worker = new Worker(program, { argv: [String(BYTES)] });
  workers.add(worker);
  const [{ port }] = await once(worker, 'message');
  const channel = await connectChannel(port, '127.0.0.1');
  open.add(channel);
  const view = await channel.open(await channel.request(`expose views 0 ${BYTES}`)).map();
  await channel.request('fill 2');
  assert.is(sum(view), 2 * BYTES);
  view[0] = 7;
  assert.is((await channel.request('look 0 0'))[0], 2);
  const closed = once(channel, 'close');
  await worker.terminate();
  await closed;
  assert.is(sum(view), 2 * BYTES + 5);
});

direct('forbidden and impossible operations are refused with the reason', async () => {
  const [client, server] = await channels();
  const error = await rejection(server.expose(new Uint8Array(4096), { views: true }));
  assert.is(error.code, 'EINVAL');
  assert.match(error.message, /^expose: `buffer` must be memory from allocate\(\)/);
  const closed = client.open((await server.expose(allocate(4096))).handle);
  assert.not.ok(closed.views);
  const refused = await rejection(closed.map());
  assert.is(refused.code, 'ENOTSUP');
  assert.match(
    refused.message,
    /map: the memory cannot be mapped: the peer did not expose it with views: true\. Use read/,
  );
  // Changing the handle gives no additional access.
  const { handle } = await server.expose(allocate(4096));
  const forged = Uint8Array.from(handle);
  forged[15]! |= 2;
  assert.is((await rejection(client.open(forged).map())).code, 'ENOTSUP');
  forged[15]! |= 4;
  assert.throws(() => client.open(forged), /must be a handle/);
  const far = await owner({ direct: false });
  const remote = await far.expose(`views 0 ${BYTES}`);
  assert.ok(remote.views && !remote.direct);
  assert.match(
    (await rejection(remote.map())).message,
    /one side has the option direct: false\. Use read\(\)/,
  );
  assert.is((await remote.read(0, 1))[0], 1);
  const own = await owner();
  const kept = await own.expose(`views 0 ${BYTES}`);
  await own.channel.close();
  assert.is((await rejection(kept.map())).code, 'ERR_STREAM_DESTROYED');
});

test.run();
