/** `createSharedMap` and `openSharedMap` of `networkdirect/net`, between processes and threads. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  connectChannel,
  createChannelServer,
  createSharedMap,
  openSharedMap,
  type SharedMap,
  type SharedMapView,
} from '../../nd/net/index.js';
import { rejection } from '../helpers/net-pair.js';
import { programFile } from '../helpers/programs.js';
import { isWhole, type MapOrder } from '../helpers/shared-map-program.js';

const program = programFile(new URL('../helpers/shared-map-program.js', import.meta.url));
const children = new Set<ChildProcess>();
const opened = new Set<{ close(): Promise<unknown> }>();
/** A length for values that span many packets. */
const SCALE = 2500;
let names = 0;
const newName = (): string => `map-${process.pid}.${++names}`;

test.after.each(async () => {
  for (const one of opened) await one.close();
  opened.clear();
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});

function kept<T extends { close(): Promise<unknown> }>(one: T): T {
  opened.add(one);
  return one;
}

/** Starts a process. Returns it with its first message. */
async function forked(parameters: string[], options: object = {}): Promise<[ChildProcess, unknown]> {
  const child = fork(program, parameters, { env: { ...process.env, ND_OPTIONS: JSON.stringify(options) } });
  children.add(child);
  return [child, (await once(child, 'message'))[0]];
}

async function ordered(to: ChildProcess | Worker, ...order: MapOrder): Promise<unknown> {
  const answer = once(to, 'message');
  if (to instanceof Worker) to.postMessage(order);
  else to.send([...order]);
  return (await answer)[0];
}

/**
 * Waits until both sides of a connection over the network have ended. If the peer was killed, the disconnect is retransmitted for a minute.
 */
async function ended(owner: ChildProcess, view: { close(): Promise<unknown> }): Promise<void> {
  await view.close();
  await ordered(owner, 'close');
}

/** A map of this process and a view of it in the same process. */
async function both(
  entries = 1000,
): Promise<[SharedMap<Uint8Array | string, Buffer>, SharedMapView<Uint8Array | string, Buffer>]> {
  const name = newName();
  const map = kept(await createSharedMap({ name, entries, bytes: 2 ** 20 }));
  return [map, kept(await openSharedMap({ name }))];
}

test('a view in another process reads the owner’s values and stores others through the owner', async () => {
  const name = newName();
  const map = kept(await createSharedMap({ name, entries: 1000, bytes: 2 ** 20 }));
  const [child, direct] = await forked(['view', name]);
  assert.is(direct, true);
  assert.is(await ordered(child, 'get', 'a'), null);
  map.set('a', 'one');
  assert.is(await ordered(child, 'get', 'a'), 'one');
  assert.is(await ordered(child, 'getAsync', 'a'), 'one');
  assert.is(await ordered(child, 'set', 'b', 'two'), null);
  assert.is(String(map.get('b')), 'two');
  assert.ok(map.delete('a'));
  assert.is(await ordered(child, 'get', 'a'), null);
  assert.is(await ordered(child, 'get', 'b'), 'two');
});

test("all operations of a view, in the owner's own process", async () => {
  const [map, view] = await both();
  assert.ok(view.direct);
  map.set('bytes', Uint8Array.of(1, 2, 3));
  assert.equal(view.get('bytes'), Buffer.of(1, 2, 3));
  const target = new Uint8Array(4);
  assert.is(view.getInto('bytes', target), 3);
  assert.equal(target, Uint8Array.of(1, 2, 3, 0));
  assert.throws(() => view.getInto('bytes', new Uint8Array(2)), /`target` must have at least 3 bytes/);
  assert.is(view.getInto('none', target), -1);
  assert.ok(view.has('bytes') && !view.has('none'));
  assert.is(view.size, 1);
  // All operations are started in one turn, and take effect in order.
  const changes = [view.set('x', '1'), view.set('x', '2'), view.delete('bytes'), view.delete('bytes')];
  assert.equal(await Promise.all(changes), [undefined, undefined, true, false]);
  assert.is(String(map.get('x')), '2');
  assert.is(map.size, 1);
  map.clear();
  assert.is(view.size, 0);
  const long = Buffer.alloc(100_000, 'long');
  await Promise.all(Array.from({ length: 50 }, (_, n) => view.set(`long ${n}`, long.subarray(n))));
  assert.ok(view.get('long 49')!.equals(long.subarray(49)));
});

test('a view stores the value at the time of the call although the caller changes its bytes at once; it closes once', async () => {
  const [map, view] = await both();
  const bytes = Buffer.from('first');
  const stored = [view.set('a', bytes)];
  bytes.fill('x');
  stored.push(view.set('b', bytes));
  const order: string[] = [];
  const ends = [view.close().then(() => order.push('close')), view.close().then(() => order.push('again'))];
  await Promise.all([...stored.map((one) => one.then(() => order.push('set'))), ...ends]);
  assert.equal(order, ['set', 'set', 'close', 'again']);
  assert.is(view.size, undefined);
  assert.equal([String(map.get('a')), String(map.get('b'))], ['first', 'xxxxx']);
  assert.throws(() => map.getInto('a', 'x' as never), /`target` must be a Uint8Array; got a string/);
  assert.throws(() => view.add('n', 1), /The view of the shared map is closed/);
});

test('a signal aborts opening even while the owner is stopped', async () => {
  const name = newName();
  const [owner] = await forked(['own', name]);
  owner.kill('SIGSTOP');
  const opening = openSharedMap({ name, signal: AbortSignal.timeout(100) });
  assert.is((await rejection(opening)).name, 'AbortError');
  const silent = createChannelServer((channel) => channel.onRequest(() => new Promise(() => {})));
  const other = newName();
  silent.listen({ name: other });
  await once(silent, 'listening');
  const waiting = openSharedMap({ name: other, signal: AbortSignal.timeout(100) });
  assert.is((await rejection(waiting)).name, 'AbortError');
  await silent.close();
});

test('entries expire for the owner and for all views', async () => {
  const [map, view] = await both();
  map.set('short', 'x', { ttl: 1 });
  await view.set('long', 'y', { ttl: 60_000 });
  while (map.has('short') || view.has('short')) await new Promise((resolve) => setTimeout(resolve, 1));
  assert.is(map.get('short'), undefined);
  assert.is(await view.getAsync('short'), undefined);
  assert.is(String(view.get('long')), 'y');
});

test("codecs: each built-in one, a custom one, and one that differs from the owner's", async () => {
  const values = { string: 'tüxt', json: { a: [1, null] }, v8: new Map([[1n, new Date(5)]]) };
  for (const codec of ['string', 'json', 'v8'] as const) {
    const name = newName();
    const map = kept(
      await createSharedMap<unknown>({ name, entries: 10, bytes: 2 ** 16, codec: codec as 'json' }),
    );
    const view = kept(await openSharedMap<unknown>({ name, codec: codec as 'json' }));
    map.set('k', values[codec]);
    assert.equal(view.get('k'), values[codec]);
    assert.equal(await view.getAsync('k'), values[codec]);
    await view.set('l', values[codec]);
    assert.equal(map.get('l'), values[codec]);
    const error = await rejection(openSharedMap({ name }));
    assert.is(error.message, `\`codec\` must be '${codec}', as for the owner; got 'bytes'.`);
  }
  const name = newName();
  const codec = { encode: (value: number) => Buffer.from([value]), decode: (bytes: Buffer) => bytes[0]! };
  const map = kept(await createSharedMap({ name, entries: 10, bytes: 2 ** 16, codec }));
  const view = kept(await openSharedMap({ name, codec }));
  map.set('k', 200);
  assert.is(view.get('k'), 200);
});

test('if memory cannot be mapped, get reports it, and everything else works', async () => {
  const name = newName();
  const [owner] = await forked(['own', name], { link: 'wire' });
  const view = kept(await openSharedMap({ name }));
  assert.is(view.direct, false);
  assert.throws(
    () => view.get('k'),
    (error: Error & { code?: string }) =>
      error.code === 'ENOTSUP' && /^get: .* Use getAsync\(\)\.$/.test(error.message),
  );
  assert.is(await view.getAsync('k'), undefined);
  for (let n = 0; n < 100; n += 1) await ordered(owner, 'set', `key ${n}`, `value ${n}`);
  for (let n = 0; n < 100; n += 1) assert.is(String(await view.getAsync(`key ${n}`)), `value ${n}`);
  await view.set('key 7', 'x'.repeat(50_000));
  assert.is(String(await view.getAsync('key 7')), 'x'.repeat(50_000));
  assert.is(await view.delete('key 7'), true);
  assert.is(await view.getAsync('key 7'), undefined);
  assert.is(await view.addAsync('hits', 5), 5);
  assert.is(await ordered(owner, 'add', 'hits', -2), 3);
  assert.is(await view.addAsync('hits', 0), 3);
  await ended(owner, view);
});

test('counters of several processes lose no updates, and their number is limited', async () => {
  const name = newName();
  const map = kept(await createSharedMap({ name, entries: 10, bytes: 2 ** 16, counters: 4 }));
  const adders = await Promise.all(Array.from({ length: 3 }, () => forked(['view', name])));
  const sums = Promise.all(adders.map(([child]) => ordered(child, 'add', 'hits', 20_000)));
  let own = 0;
  for (let more = true; more; ) {
    for (let n = 0; n < 1000; n += 1) map.add('hits', 1);
    own += 1000;
    more = await Promise.race([
      sums.then(() => false),
      new Promise<boolean>((resolve) => setImmediate(resolve, true)),
    ]);
  }
  assert.is(map.add('hits', 0), 60_000 + own);
  const view = kept(await openSharedMap({ name }));
  assert.is(view.add('hits', -60_000), own);
  assert.is(view.add('far', -(2 ** 40)), -(2 ** 40));
  assert.is(await view.addAsync('far', 2 ** 41), 2 ** 40);
  for (const counter of ['a', 'b']) map.add(counter, 1);
  for (const add of [() => map.add('c', 1), () => view.add('c', 1)])
    assert.throws(
      add,
      (error: Error & { code?: string }) =>
        error.code === 'ENOBUFS' && /All 4 counters .* option `counters`/.test(error.message),
    );
  assert.is((await rejection(view.addAsync('c', 1))).code, 'ENOBUFS');
  assert.throws(
    () => view.add('a', 0.5),
    /`amount` must be an integer from -\(2 \*\* 53 - 1\) to 2 \*\* 53 - 1; got 0.5/,
  );
});

test('values are never torn while the owner stores, removes and evicts', async () => {
  const name = newName();
  const [owner] = await forked(['own', name, '100', String(2 ** 16)]);
  const [reader] = await forked(['view', name]);
  await ordered(owner, 'write', 300);
  const view = kept(await openSharedMap({ name }));
  const results = await Promise.all([
    ordered(reader, 'check', 300, 300_000),
    (async () => {
      let [torn, found] = [0, 0];
      for (let n = 0; n < 300; n += 1) {
        const value = await view.getAsync(`key ${n}`);
        if (value === undefined) continue;
        found += 1;
        if (!isWhole(value)) torn += 1;
      }
      return [torn, found];
    })(),
  ]);
  for (const [torn, found] of results as [number, number][]) {
    assert.is(torn, 0);
    assert.ok(found > 0);
  }
  assert.ok(((await ordered(owner, 'rest')) as number) > 100);
});

test('values are never torn, and keys are always found, over a lossy network', async () => {
  const name = newName();
  const options = { link: 'wire', faults: { drop: 0.03, seed: 3 } };
  const [owner] = await forked(['own', name, '100', String(2 ** 20)], options);
  // One entry of many packets, which always exists. It is first replaced every 2 ms, so that two lookups may see the same version, and then
  // continuously.
  await ordered(owner, 'replace', SCALE, 2);
  const [reader, direct] = await forked(['view', name], options);
  assert.is(direct, false);
  assert.is(await ordered(reader, 'looks', 1500, SCALE), null);
  await ordered(owner, 'replace', SCALE, 0);
  assert.is(await ordered(reader, 'looks', 100, SCALE), null);
  await ordered(owner, 'rest');
});

test('a view ends with its owner, and another owner can use the name', async () => {
  const name = newName();
  const [owner] = await forked(['own', name]);
  await ordered(owner, 'set', 'k', 'v');
  const view = kept(await openSharedMap({ name }));
  const [child] = await forked(['view', name]);
  assert.is(String(view.get('k')), 'v');
  const ends = [once(view, 'close'), once(child, 'message')];
  owner.kill('SIGKILL');
  assert.equal((await Promise.all(ends))[1], ['closed', undefined]);
  for (const use of [
    () => view.get('k'),
    () => view.has('k'),
    () => view.getInto('k', new Uint8Array(9)),
    () => view.add('n', 1),
  ])
    assert.throws(use, (error: Error & { code?: string }) => error.code === 'ECONNRESET');
  assert.is((await rejection(view.getAsync('k'))).code, 'ECONNRESET');
  assert.is((await rejection(view.set('k', 'v'))).code, 'ECONNRESET');
  assert.not(view.direct);
  const [next] = await forked(['own', name]);
  await ordered(next, 'set', 'k', 'new');
  assert.is(String(kept(await openSharedMap({ name })).get('k')), 'new');
});

test('threads can have views', async () => {
  const name = newName();
  const map = kept(await createSharedMap({ name, entries: 10, bytes: 2 ** 16 }));
  map.set('k', 'v');
  const worker = new Worker(program, { workerData: ['view', name] });
  assert.equal(await once(worker, 'message'), [true]);
  assert.is(await ordered(worker, 'get', 'k'), 'v');
  assert.is(await ordered(worker, 'add', 'n', 10), 10);
  assert.is(map.add('n', 1), 11);
  await worker.terminate();
});

test('invalid arguments are rejected with a full message', async () => {
  const name = newName();
  const wrong: [object, RegExp][] = [
    [{ name, entries: 0 }, /`entries` must be an integer from 1 to 67108864; got 0/],
    [{ name, entries: 1, bytes: 100 }, /`bytes` must be an integer from 65536/],
    [{ name, entries: 1, counters: 1.5 }, /`counters` must be/],
    [{ entries: 1 }, /`name` or `port` of createSharedMap\(\) must be given/],
    [{ name, port: 1, entries: 1 }, /`name` of listen\(\) must be given without/],
    [{ name, entries: 1, ttl: 5 }, /`ttl` must be given to set\(\)/],
    [{ name, entries: 1, codec: 'yaml' }, /`codec` must be 'bytes', 'string', 'json', 'v8' or an object/],
  ];
  for (const [options, message] of wrong)
    assert.match((await rejection(createSharedMap(options as never))).message, message);
  assert.is((await rejection(openSharedMap({ name }))).code, 'ECONNREFUSED');
  const map = kept(await createSharedMap({ name, entries: 10, bytes: 2 ** 16 }));
  assert.is((await rejection(createSharedMap({ name, entries: 10, bytes: 2 ** 16 }))).code, 'EADDRINUSE');
  const view = kept(await openSharedMap({ name }));
  assert.throws(
    () => map.set('k', 'x'.repeat(10_000)),
    /`value` must have at most \d+ bytes, an eighth of the map's `bytes`; got 10000/,
  );
  assert.match((await rejection(view.set('k', 'x'.repeat(10_000)))).message, /`value` must have at most/);
  assert.throws(() => map.set('k', 7 as never), /`value` must be a Uint8Array or a string; got a number/);
  assert.throws(() => map.set('k', 'v', { ttl: 0 }), /`ttl` must be a number of milliseconds above 0; got 0/);
  assert.throws(() => view.get('x'.repeat(1025)), /`key` must have at most 1024 bytes/);
  await map.close();
  assert.throws(
    () => map.get('k'),
    (error: Error & { code?: string }) => error.code === 'ERR_STREAM_DESTROYED',
  );
});

test('opening a view of a server without a map is EPROTO, and malformed requests have no effect', async () => {
  const name = newName();
  const server = createChannelServer((channel) => channel.onRequest(() => '{"version":1}'));
  server.listen({ name });
  await once(server, 'listening');
  const error = await rejection(openSharedMap({ name }));
  assert.is(`${error.code} ${error.message}`, 'EPROTO The server does not own a shared map.');
  await server.close();
  const map = kept(await createSharedMap({ name, entries: 10, bytes: 2 ** 16 }));
  const channel = kept(await connectChannel({ name }));
  const change = (kind: number, key: number, value: number, ttl: number, more: number): Buffer => {
    const bytes = Buffer.alloc(17 + more);
    bytes[0] = 2;
    bytes.writeUInt16LE(kind, 1);
    bytes.writeUInt16LE(key, 3);
    bytes.writeUInt32LE(value, 5);
    bytes.writeDoubleLE(ttl, 9);
    return bytes;
  };
  const malformed = [
    Buffer.alloc(0),
    Buffer.of(9),
    Buffer.of(2, 1),
    change(2, 0, 0, 0, 0),
    change(1, 1, 1, 0, 1),
    change(1, 0, 2 ** 32 - 1, 0, 0),
    change(1, 1, 1, -1, 2),
    change(1, 1, 1, Number.NaN, 2),
    change(1, 1, 60_000, 0, 60_001),
    change(1, 1025, 0, 0, 1025),
  ];
  for (const request of malformed) assert.is((await rejection(channel.request(request))).code, 'ERR_REMOTE');
  await channel.send(Buffer.alloc(4001, 255));
  assert.equal(await channel.request(change(1, 1, 1, 0, 2)), Buffer.of(0));
  assert.equal(map.get('\0'), Buffer.of(0));
  assert.is(map.size, 1);
});

test.run();
