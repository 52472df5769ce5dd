/** `networkdirect/net`: messages, requests and replies, in one process. */
import { once } from 'node:events';
import { inspect } from 'node:util';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ndCleanup, ndQueryAddressList, ndStartup } from '../../nd/index.js';
import {
  allocate,
  type Channel,
  connectChannel,
  createChannelServer,
  createServer,
  NetError,
} from '../../nd/net/index.js';
import { collect } from '../helpers/collect.js';
import { channels, endAll, listening, rejection } from '../helpers/net-pair.js';
import { patternOf } from '../helpers/net-pattern.js';

test.after.each(endAll);

test('messages of any length arrive complete and in order, in both directions', async () => {
  const [client, server] = await channels({ slots: 4, slotBytes: 256 });
  const lengths = [0, 1, 239, 240, 241, 5000, 3, 1_000_000, 100, 65_536, 7];
  for (const [from, to] of [
    [client, server],
    [server, client],
  ] as const) {
    const sending = Promise.all(lengths.map((length) => from.send(patternOf(length))));
    for (const length of lengths) assert.equal(await to.receive(), patternOf(length), `${length} bytes`);
    await sending;
  }
});

test('a receiver that reads nothing stops the sender, and nothing is lost', async () => {
  const [client, server] = await channels({ slots: 4, slotBytes: 128 });
  let resolved = 0;
  // Each message fills a slot.
  const text = (n: number): string => `message ${n}`.padEnd(100);
  const sends = Array.from({ length: 50 }, (_, n) => client.send(text(n)).then(() => (resolved += 1)));
  // The server's program has received a later request, so everything that credits permit was sent before.
  await Promise.all(sends.slice(0, 4));
  assert.is(resolved, 4);
  for (let n = 0; n < 50; n += 1) assert.is(String(await server.receive()), text(n));
  await Promise.all(sends);
});

test('short messages of one turn share slots and keep their order', async () => {
  const [client, server] = await channels({ slots: 4, slotBytes: 1024 });
  const sends = Array.from({ length: 100 }, (_, n) => client.send(`message ${n}`));
  // A slot holds 36 of them. If messages did not share slots, only 4 would have been sent.
  await Promise.all(sends);
  for (let n = 0; n < 100; n += 1) assert.is(String(await server.receive()), `message ${n}`);
});

test('the bytes of a message may be changed once send has resolved', async () => {
  const [client, server] = await channels();
  for (const length of [10, 100_000]) {
    const bytes = patternOf(length);
    const before = Buffer.from(bytes);
    const taken = server.receive();
    await client.send(bytes);
    bytes.fill(0xff);
    assert.equal(await taken, before);
  }
});

test('lent memory is read by the peer, including small parts', async () => {
  const [client, server] = await channels();
  const bytes = allocate(50_000);
  const memory = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  patternOf(50_000).copy(memory);
  using lent = await client.lend(memory);
  const taken = Promise.all([server.receive(), server.receive(), server.receive()]);
  await Promise.all([
    client.send(memory.subarray(100, 45_000)),
    client.send(memory.subarray(5000, 10_000)),
    client.send(memory.subarray(1, 3)),
  ]);
  assert.equal(await taken, [
    memory.subarray(100, 45_000),
    memory.subarray(5000, 10_000),
    memory.subarray(1, 3),
  ]);
  assert.match(inspect(lent), /LentMemory { 50000 bytes }/);
});

test('an error text that is too long is truncated between characters', async () => {
  const [client, server] = await channels();
  server.onRequest((bytes) => {
    throw new Error('x'.repeat(bytes[0]!) + '€'.repeat(100_000));
  });
  for (const before of [0, 1, 2]) {
    const { message } = await rejection(client.request(Uint8Array.of(before)));
    assert.match(message, /€$/);
    assert.not.match(message, /\ufffd/);
  }
});

test('replies may be sent in any order, at once or later; errors are transferred', async () => {
  const [client, server] = await channels();
  const gate: (() => void)[] = [];
  server.onRequest((bytes) => {
    const text = String(bytes);
    if (text === 'late') return new Promise((resolve) => gate.push(() => resolve('late answer')));
    if (text === 'throw') throw new Error('it has failed');
    if (text === 'nothing') return undefined;
    return Buffer.concat([bytes, bytes]);
  });
  const late = client.request('late');
  assert.is(String(await client.request('ab')), 'abab');
  assert.is((await client.request('nothing')).length, 0);
  assert.is((await client.request(patternOf(70_000))).length, 140_000);
  const error = await rejection(client.request('throw'));
  assert.instance(error, NetError);
  assert.is(error.code, 'ERR_REMOTE');
  assert.is(error.message, 'it has failed');
  gate[0]!();
  assert.is(String(await late), 'late answer');
});

test('an exception in the handler of a channel server is uncaught, and the channel stays open', async () => {
  const server = createChannelServer((channel) => {
    channel.onRequest((bytes) => bytes);
    throw new Error('a fault of the program');
  });
  const port = await listening(server);
  const thrown = new Promise<Error>((resolve) => process.once('uncaughtException', resolve));
  const client = await connectChannel({ port, host: '127.0.0.1' });
  assert.is((await thrown).message, 'a fault of the program');
  assert.is(String(await client.request('still there?')), 'still there?');
  await client.close();
});

test('without a handler, requests fail and the connection stays open', async () => {
  const [client, server] = await channels();
  assert.match((await rejection(client.request('?'))).message, /has no request handler/);
  await client.send('still there');
  assert.is(String(await server.receive()), 'still there');
});

test('a thousand requests in flight in both directions at once, over few slots', async () => {
  const [client, server] = await channels({ slots: 8, slotBytes: 128, maxRequests: 5 });
  const answer = async (bytes: Buffer): Promise<string> => `${bytes}!`;
  client.onRequest(answer);
  server.onRequest(answer);
  const asking = [client, server].flatMap((side) =>
    Array.from({ length: 1000 }, async (_, n) => assert.is(String(await side.request(`${n}`)), `${n}!`)),
  );
  await Promise.all(asking);
});

test('close replies to requests, delivers all sent messages, and ends both sides', async () => {
  const [client, server] = await channels({ slots: 4, slotBytes: 128 });
  server.onRequest((bytes) => new Promise((resolve) => setImmediate(() => resolve(bytes))));
  const answers = Promise.all([client.request('a'), client.request('b')]);
  const sends = Array.from({ length: 20 }, (_, n) => client.send(`${n}`));
  const closing = client.close();
  assert.match((await rejection(client.send('too late'))).message, /is closed/);
  const got: string[] = [];
  for await (const message of server) got.push(String(message));
  assert.equal(
    got,
    Array.from({ length: 20 }, (_, n) => `${n}`),
  );
  await Promise.all(sends);
  assert.equal((await answers).map(String), ['a', 'b']);
  await closing;
  assert.is(client.error, undefined);
  if (!server.destroyed) await once(server, 'close');
  assert.is(server.error, undefined);
  assert.match(inspect(client), /closed/);
});

test('destroy fails pending operations, and the peer gets ECONNRESET', async () => {
  const [client, server] = await channels();
  let aborted: AbortSignal | undefined;
  server.onRequest((_, { signal }) => {
    aborted = signal;
    return new Promise(() => {});
  });
  const asked = client.request('?');
  const receiving = server.receive();
  while (aborted === undefined) await new Promise(setImmediate);
  const closed = Promise.all([once(client, 'close'), once(server, 'close')]);
  client.destroy(new Error('enough'));
  assert.is((await rejection(asked)).message, 'enough');
  assert.is((await rejection(receiving)).code, 'ECONNRESET');
  await closed;
  assert.ok(aborted.aborted);
  assert.is((await rejection(server.send('x'))).code, 'ECONNRESET');
});

test('signals abort connecting, receiving, requests and closing', async () => {
  const [client, server, listener] = await channels();
  const isAborted = async (promise: Promise<unknown>): Promise<void> => {
    const error = await rejection(promise);
    assert.is(error.name, 'AbortError');
    assert.is(error.code, 'ABORT_ERR');
  };
  const signal = AbortSignal.abort();
  await isAborted(client.receive({ signal }));
  await isAborted(client.request('x', { signal }));
  await isAborted(client.send('x', { signal }));
  await isAborted(connectChannel(listener.address()!.port, '127.0.0.1', { signal }));

  const controller = new AbortController();
  const receiving = client.receive({ signal: controller.signal });
  const seen = new Promise<void>((resolve) => {
    server.onRequest(
      (_, request) => new Promise(() => request.signal.addEventListener('abort', () => resolve())),
    );
  });
  const asked = client.request('?', { signal: controller.signal });
  // The next request is queued after the first.
  await rejection(client.request('!', { signal: AbortSignal.timeout(20) }));
  controller.abort();
  await isAborted(receiving);
  await isAborted(asked);
  await seen;
  await isAborted(client.close({ signal }));
});

test('an unsupported kind of connection is rejected with the reason; an unused port is ECONNREFUSED', async () => {
  const streams = createServer(() => {});
  const port = await listening(streams);
  const error = await rejection(connectChannel(port, '127.0.0.1'));
  assert.is(error.code, 'EPROTO');
  assert.match(error.message, /does not serve this kind/);
  await streams.close();
  assert.is((await rejection(connectChannel(port, '127.0.0.1'))).code, 'ECONNREFUSED');
  assert.is((await rejection(connectChannel(0))).name, 'RangeError');
});

test('without a host, a server listens on one port of all addresses; exposed memory has a handle for each', async () => {
  const server = createChannelServer();
  const port = await listening(server, null);
  assert.ok(['::', '0.0.0.0'].includes(server.address()!.address));
  using exposed = await server.expose(allocate(64), { writable: true });
  exposed.bytes[5] = 7;
  server.on('channel', (channel: Channel) => channel.onRequest(() => exposed.handleFor(channel)));
  ndStartup();
  const addresses = ndQueryAddressList();
  ndCleanup();
  for (const { address } of addresses) {
    const channel = await connectChannel(port, address);
    const remote = channel.open(await channel.request('?'));
    assert.equal([...(await remote.read(5, 1))], [7], address);
    await channel.close();
  }
  if (addresses.length > 1) assert.throws(() => exposed.handle, /handleFor/);

  const narrow = createChannelServer((channel) => void channel.onRequest(() => 'here'));
  narrow.listen(port);
  const [error] = (await once(narrow, 'error')) as [NetError];
  assert.is(error.code, 'EADDRINUSE');
});

test('an idle connection has no timer', async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  const [client, server] = await channels();
  await client.send('x');
  await server.receive();
  assert.is(timers(), before);
});

test('a signal closes a listening server or prevents it from listening', async () => {
  const controller = new AbortController();
  const server = createChannelServer();
  server.listen({ host: '127.0.0.1', signal: controller.signal });
  await once(server, 'listening');
  const closed = once(server, 'close');
  controller.abort();
  await closed;
  assert.is(server.listening, false);
  const never = createChannelServer();
  never.listen({ host: '127.0.0.1', signal: controller.signal });
  const [error] = (await once(never, 'error')) as [Error];
  assert.is(error.name, 'AbortError');
});

test('memory that is collected without release causes a warning', async () => {
  const [client] = await channels();
  const warnings: Error[] = [];
  const warned = (warning: Error): void => void warnings.push(warning);
  process.on('warning', warned);
  await client.expose(allocate(64));
  // Channels of other tests may also be collected.
  let seen: Error | undefined;
  for (; seen === undefined; seen = warnings.find(({ message }) => message.startsWith('Exposed'))) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  process.off('warning', warned);
  assert.is(seen.name, 'NetworkDirectWarning');
  assert.match(seen.message, /Exposed memory of 64 bytes was not released\. Call release\(\)/);
});

test('a server closes when its connections have ended; a port in use is EADDRINUSE', async () => {
  const [client, , server] = await channels();
  const { port } = server.address()!;
  const second = createChannelServer(() => {});
  second.listen(port, '127.0.0.1');
  const [error] = (await once(second, 'error')) as [Error & { code: string }];
  assert.is(error.code, 'EADDRINUSE');
  let closed = false;
  const closing = server.close().then(() => (closed = true));
  assert.is(server.listening, false);
  await client.send('x');
  assert.is(closed, false);
  await client.close();
  await closing;
});

test.run();
