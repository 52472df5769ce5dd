/** Valkey's RDMA transport (examples/valkey): this package's client and server over the local link. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ValkeyConnector } from '../../examples/valkey/connector.js';
import { readCounters } from '../../kernel-bridge/index.js';
import { patternOf } from '../helpers/net-pattern.js';
import { root } from '../helpers/root.js';
import { long } from '../helpers/tiers.js';
import { overAnyLink, requestsOf } from '../helpers/valkey-links.js';
import { ValkeyPeer } from '../helpers/valkey-peer.js';
import { clientOf, connecting, endValkeys, failure, serving, until } from '../helpers/valkey-scene.js';

const test = suite('valkey');
test.after.each(endValkeys);

overAnyLink(test);

test('a server that ends the connection ends the stream, after its last bytes', async () => {
  const server = serving();
  const one = connecting(server.port);
  const closed = once(one, 'close');
  let text = '';
  one.on('data', (chunk) => (text += String(chunk)));
  one.write('PING\r\nQUIT\r\nPING\r\n');
  await once(one, 'end');
  assert.is(text, '+PONG\r\n+OK\r\n');
  await closed;
  await until(() => server.clients === 0);
});

test('bytes that arrived before the end can be read after it, and writes are rejected', async () => {
  const listener = ValkeyPeer.listen();
  const one = connecting(listener.port);
  const peer = await listener.next();
  await peer.named();
  const bytes = patternOf(1000);
  peer.write(bytes);
  await peer.close();
  // The data has not been read yet, and both sides have released the connection.
  await until(() => readCounters().objects.qp === 0);
  assert.equal(Buffer.concat(await one.toArray()), bytes);

  const other = connecting(listener.port);
  const lost = failure(other);
  const peerOfOther = await listener.next();
  await peerOfOther.named();
  await peerOfOther.close();
  while (!other.destroyed) {
    other.write('x');
    await new Promise(setImmediate);
  }
  assert.is((await lost).code, 'ECONNRESET');
  listener.close();
});

test('a signal ends a connection, and an attempt', async () => {
  const server = serving();
  const before = new AbortController();
  const attempt = connecting(server.port, { signal: before.signal });
  before.abort();
  assert.is((await failure(attempt)).name, 'AbortError');
  assert.is((await failure(connecting(server.port, { signal: AbortSignal.abort() }))).name, 'AbortError');
  const later = new AbortController();
  const one = connecting(server.port, { signal: later.signal });
  await once(one, 'connect');
  const ended = failure(one);
  later.abort();
  assert.is((await ended).name, 'AbortError');
  await until(() => server.clients === 0);
});

test('without a listener, or for an unknown host, the stream ends in an error', async () => {
  const server = serving();
  const { port } = server;
  server.close();
  assert.match((await failure(connecting(port))).message, /refused/);
  const unknown = await failure(connecting(port, { host: 'nowhere.invalid' }));
  assert.ok(['ENOTFOUND', 'EAI_AGAIN'].includes(String(unknown.code)), unknown.message);
  assert.match((await failure(connecting(port, { receiveBytes: 0 }))).message, /bytes/i);
});

test('a server that describes smaller and larger buffers gets no more bytes than they hold', async () => {
  const listener = ValkeyPeer.listen();
  const one = connecting(listener.port);
  const peer = await listener.next();
  await peer.named();
  const bytes = patternOf(200_000);
  one.write(bytes);
  let got = Buffer.alloc(0);
  for (const size of [100, 1, 7, 64, 4096, 150_000, 100_000]) {
    peer.name(size);
    let come = 0;
    while (come < size && got.length + come < bytes.length) {
      const arrival = await peer.next();
      if ('count' in arrival) come += arrival.count;
    }
    assert.ok(come <= size);
    got = Buffer.concat([got, peer.buffer.bytes.subarray(0, come)]);
  }
  assert.ok(got.equals(bytes));
  one.destroy();
  await peer.close();
  listener.close();
});

test('keep-alive commands detect a client that no longer acknowledges them', async () => {
  const listener = ValkeyPeer.listen();
  const one = connecting(listener.port, { keepAliveMs: 10 });
  const lost = failure(one);
  const peer = await listener.next();
  await peer.named();
  // Its Receives are not posted again, so that sooner or later a keep-alive command finds none.
  for (let n = 0; n < 30; n += 1) {
    const arrival = await peer.next(false);
    assert.ok('command' in arrival && arrival.command.readUInt16BE() === 2 && arrival.command.length === 32);
  }
  assert.is((await lost).code, 'ECONNRESET');
  await peer.close();
  listener.close();
});

test('a client beyond the limit is rejected, and each one that disconnects makes room for another', async () => {
  const server = serving({ maxClients: 2 });
  const two = [clientOf(server.port), clientOf(server.port)];
  for (const one of two) assert.is(await one.request('PING'), '+PONG');
  assert.match((await failure(connecting(server.port))).message, /refused/);
  two[0]!.stream.destroy();
  await until(() => server.clients === 1);
  assert.is(await clientOf(server.port).request('PING'), '+PONG');
});

test('a full store rejects further values, and continues', async () => {
  const { port } = serving({ storeBytes: 10_000 });
  const request = requestsOf(clientOf(port));
  assert.is(await request('SET', 'a', Buffer.alloc(5000)), '+OK');
  assert.match(String(await request('SET', 'b', Buffer.alloc(5000))), /^-OOM /);
  assert.is(await request('SET', 'a', Buffer.alloc(9000)), '+OK');
  assert.match(String(await request('SET', 'a', Buffer.alloc(9999))), /^-OOM /);
  assert.is(await request('DEL', 'a'), ':1');
  assert.is(await request('SET', 'b', Buffer.alloc(5000)), '+OK');
});

test('the connector gives client libraries a stream that behaves like a socket', async () => {
  const { port } = serving();
  const connector = new ValkeyConnector({ port });
  const stream = await connector.connect();
  assert.ok(stream.connecting && connector.check());
  stream.setNoDelay().setKeepAlive();
  const fired: string[] = [];
  stream.setTimeout(1, () => fired.push('cleared'));
  stream.setTimeout(0);
  await once(stream, 'connect');
  assert.is(stream.connecting, false);
  await new Promise<void>((resolve) => stream.setTimeout(1, resolve));
  assert.equal(fired, []);
  const closed = once(stream.resume(), 'close');
  connector.disconnect();
  await closed;
  // A library reconnects by itself after the end of a stream.
  const refused = await new ValkeyConnector({ port: 1 }).connect();
  assert.match((await failure(refused)).message, /refused/);
});

long(test, 'a hundred clients', async () => {
  const { port } = serving({ receiveBytes: 1 << 16, sendBytes: 1 << 16 });
  const clients = Array.from({ length: 100 }, () =>
    clientOf(port, { receiveBytes: 1 << 16, sendBytes: 1 << 16 }),
  );
  await Promise.all(
    clients.map(async (one, n) => {
      const value = patternOf(50_000 + n);
      for (let round = 0; round < 5; round += 1) {
        await one.request('SET', `key ${n}`, value);
        assert.ok(value.equals((await one.request('GET', `key ${n}`)) as Buffer));
      }
    }),
  );
});

test('nothing is left of connections, no matter how they have ended', async () => {
  const left = (): number => {
    const { pd, mr, cq, qp } = readCounters().objects;
    return pd! + mr! + cq! + qp!;
  };
  const server = serving();
  await until(() => left() === 0);
  const one = clientOf(server.port);
  await one.request('PING');
  assert.ok(left() > 0);
  one.stream.destroy();
  await clientOf(server.port).request('QUIT');
  connecting(server.port).destroy();
  await until(() => server.clients === 0 && left() === 0);
});

test('the client is short enough to copy', () => {
  const files = ['transfer-stream.ts', 'connect.ts', 'connector.ts'];
  const lines = files.flatMap((file) =>
    readFileSync(join(root, 'examples/valkey', file), 'utf8')
      .split('\n')
      .filter((line) => !/^\s*($|\/\/|\/\*|\*)/.test(line)),
  );
  assert.ok(lines.length <= 350, `${lines.length} lines of code`);
});

test.run();
