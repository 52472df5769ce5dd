/** `networkdirect/net`: streams, by the idioms of `node:net`. */
import { createHash } from 'node:crypto';
import diagnostics from 'node:diagnostics_channel';
import { once } from 'node:events';
import { Duplex, Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { inspect } from 'node:util';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { connect, createServer, type Socket } from '../../nd/net/index.js';
import { endAll, listening, sockets } from '../helpers/net-pair.js';
import { patternOf } from '../helpers/net-pattern.js';

test.after.each(endAll);

/** All bytes up to the end. Not by `for await`, which destroys the stream behind it. */
function all(stream: Socket): Promise<Buffer> {
  const pieces: Buffer[] = [];
  stream.on('data', (piece) => pieces.push(piece));
  return new Promise((resolve, reject) => {
    stream.once('end', () => resolve(Buffer.concat(pieces)));
    stream.once('error', reject);
  });
}

test('an echo server in the style of node:net: pipe, end, close without an error', async () => {
  const server = createServer((socket) => socket.pipe(socket));
  const port = await listening(server);
  const client = connect({ port, host: 'localhost' });
  const events: string[] = [];
  for (const name of ['connect', 'ready', 'end', 'finish', 'close'])
    client.on(name, (value) => events.push(value === undefined ? name : `${name} ${value}`));
  const closed = once(client, 'close');
  // Written before it is connected.
  client.write('hello ');
  client.end('world');
  assert.is(String(await all(client)), 'hello world');
  await closed;
  assert.equal(events.slice(0, 2), ['connect', 'ready']);
  assert.equal([...events].sort(), ['close false', 'connect', 'end', 'finish', 'ready']);
  assert.is(client.bytesRead, 11);
  assert.is(client.bytesWritten, 11);
});

test('bytes arrive in order whatever the sizes of writes and slots are', async () => {
  const [client, server] = await sockets({ slots: 3, slotBytes: 100 });
  const bytes = patternOf(100_000);
  const reading = all(server);
  for (let at = 0, n = 1; at < bytes.length; at += n, n = (n * 7 + 3) % 500)
    client.write(bytes.subarray(at, at + n));
  client.end();
  // The whole of it, because subarrays may overlap nowhere.
  assert.equal(await reading, bytes);
});

test('a reader that does not read makes write return false, and drain comes when it reads', async () => {
  const [client, server] = await sockets({ slots: 2, slotBytes: 1040 });
  const piece = patternOf(1024);
  let written = 0;
  while (client.write(piece)) written += 1;
  // More than this can nowhere be: queues of both streams, slots of both sides.
  assert.ok(written < 200, `${written}`);
  let drained = false;
  client.once('drain', () => (drained = true));
  assert.is(drained, false);
  const total = written + 1;
  let read = 0;
  const counted = (async () => {
    for await (const bytes of server) read += bytes.length;
  })();
  if (!drained) await once(client, 'drain');
  client.end();
  await counted;
  assert.is(read, 1024 * total);
});

test('half-close: one side has ended and still reads', async () => {
  const [client, server] = await sockets({ allowHalfOpen: true });
  const closed = once(client, 'close');
  client.end('question');
  assert.is(String(await all(server)), 'question');
  assert.is(server.readyState, 'writeOnly');
  server.end('answer');
  assert.is(String(await all(client)), 'answer');
  await closed;
  assert.is(client.readyState, 'closed');
});

test('pipeline moves a large stream through a transform, unchanged', async () => {
  const [client, server] = await sockets();
  const hash = createHash('sha256');
  const sent = createHash('sha256');
  const through = new Transform({
    transform(chunk, _encoding, done) {
      sent.update(chunk);
      done(null, chunk);
    },
  });
  const source = Readable.from(
    (function* () {
      for (let n = 0; n < 200; n += 1) yield patternOf(50_000 + n);
    })(),
  );
  await Promise.all([pipeline(source, through, client), pipeline(server, hash)]);
  assert.is(hash.digest('hex'), sent.digest('hex'));
});

test('web streams', async () => {
  const [client, server] = await sockets();
  const { writable } = Duplex.toWeb(client);
  const { readable } = Duplex.toWeb(server);
  const writer = writable.getWriter();
  await writer.write(Buffer.from('by web streams'));
  const reader = readable.getReader();
  const { value } = await reader.read();
  assert.is(String(Buffer.from(value as Uint8Array)), 'by web streams');
  await writer.close();
  assert.is((await reader.read()).done, true);
});

test('destroy with an error: the peer gets ECONNRESET; without one, an end', async () => {
  const [client, server] = await sockets();
  const failed = once(client, 'error');
  const atPeer = once(server, 'error');
  client.destroy(new Error('enough'));
  assert.is(((await failed)[0] as Error).message, 'enough');
  assert.is(((await atPeer)[0] as { code?: string }).code, 'ECONNRESET');

  const [second, peer] = await sockets();
  const closed = once(second, 'close');
  second.write('last words');
  const reading = all(peer);
  second.destroySoon();
  assert.is(String(await reading), 'last words');
  await closed;
  assert.match(inspect(second), /Socket { closed, 0 bytes read, 10 written }/);
});

test('nobody listens: ECONNREFUSED and close; an aborted signal: AbortError', async () => {
  const [, , server] = await sockets();
  const { port } = server.address()!;
  await Promise.all([once(server, 'close'), server[Symbol.asyncDispose]()]);
  const refused = connect(port, '127.0.0.1');
  // Not once(), which fails with the error.
  const closed = new Promise((resolve) => refused.once('close', resolve));
  const [error] = (await once(refused, 'error')) as [Error & { code: string }];
  assert.is(error.code, 'ECONNREFUSED');
  assert.is(await closed, true);

  for (const signal of [AbortSignal.abort(), AbortSignal.timeout(0)]) {
    const aborted = connect({ port, host: '127.0.0.1', signal });
    const [reason] = (await once(aborted, 'error')) as [Error];
    assert.ok(reason.name === 'AbortError' || (reason as { code?: string }).code === 'ECONNREFUSED');
  }
});

test('setTimeout tells of idle time, and of no time at all with 0', async () => {
  const [client, server] = await sockets();
  let early = 0;
  server.setTimeout(1, () => (early += 1));
  server.setTimeout(0);
  client.setTimeout(20);
  assert.is(client.timeout, 20);
  await once(client, 'timeout');
  assert.is(early, 0);
  assert.is(client.destroyed, false);
});

test('addresses, states, and what diagnostics_channel tells', async () => {
  const told: string[] = [];
  const listeners = ['connect', 'accept', 'close'].map((name) => {
    const listener = (message: unknown): void => {
      assert.ok((message as { connection: Socket }).connection);
      told.push(name);
    };
    diagnostics.subscribe(`networkdirect.net.${name}`, listener);
    return [name, listener] as const;
  });
  try {
    const [client, server] = await sockets();
    assert.is(client.remotePort, server.localPort);
    assert.is(client.localAddress, '127.0.0.1');
    assert.is(client.readyState, 'open');
    assert.match(inspect(client), new RegExp(`Socket { 127.0.0.1:${client.remotePort}, open`));
    client.end();
    server.resume();
    client.resume();
    await Promise.all([once(client, 'close'), once(server, 'close')]);
    assert.equal(told.sort(), ['accept', 'close', 'close', 'connect']);
  } finally {
    for (const [name, listener] of listeners) diagnostics.unsubscribe(`networkdirect.net.${name}`, listener);
  }
});

test('many clients of one server', async () => {
  const server = createServer((socket) => socket.pipe(socket));
  const port = await listening(server);
  const answers = await Promise.all(
    Array.from({ length: 40 }, async (_, n) => {
      const client = connect(port, '127.0.0.1');
      client.end(`client ${n}`);
      return String(await all(client));
    }),
  );
  assert.equal(
    answers,
    Array.from({ length: 40 }, (_, n) => `client ${n}`),
  );
});

test.run();
