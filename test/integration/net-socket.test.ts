/** `networkdirect/net`: streams, used as in `node:net`. */
import { createHash } from 'node:crypto';
import diagnostics from 'node:diagnostics_channel';
import { EventEmitter, once } from 'node:events';
import { Duplex, Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import { inspect } from 'node:util';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { connect, createServer, type OnReadOptions, type Socket } from '../../nd/net/index.js';
import { endAll, listening, sockets } from '../helpers/net-pair.js';
import { patternOf } from '../helpers/net-pattern.js';

test.after.each(endAll);

/** Reads all bytes up to the end. It does not use `for await`, which destroys the stream afterwards. */
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
  // This data is written before the socket is connected.
  client.write('hello ');
  client.end('world');
  assert.is(String(await all(client)), 'hello world');
  await closed;
  assert.equal(events.slice(0, 2), ['connect', 'ready']);
  assert.equal([...events].sort(), ['close false', 'connect', 'end', 'finish', 'ready']);
  assert.is(client.bytesRead, 11);
  assert.is(client.bytesWritten, 11);
});

test('bytes arrive in order, for all sizes of writes and slots', async () => {
  const [client, server] = await sockets({ slots: 3, slotBytes: 100 });
  const bytes = patternOf(100_000);
  const reading = all(server);
  for (let at = 0, n = 1; at < bytes.length; at += n, n = (n * 7 + 3) % 500)
    client.write(bytes.subarray(at, at + n));
  client.end();
  // Compares whole buffers, because subarrays must not overlap anywhere.
  assert.equal(await reading, bytes);
});

test('write returns false if the peer does not read, and drain is emitted when it reads', async () => {
  const [client, server] = await sockets({ slots: 2, slotBytes: 1040 });
  const piece = patternOf(1024);
  let written = 0;
  while (client.write(piece)) written += 1;
  // Upper bound of queued bytes: the queues of both streams and the slots of both sides.
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

test('half-close: a side that has ended can still read', async () => {
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

for (const [own, peers, filled] of [
  [16, 16, 16],
  [1, 1, 1],
  [1, 16, 2],
] as const)
  test(`destroy is an end for the peer after all data was sent: ${filled} full slots, of ${own} and ${peers}`, async () => {
    const options = { ringBytes: 0 };
    const [client, server] = await sockets(
      { ...options, slots: own },
      { socket: { ...options, slots: peers }, pauseOnConnect: true },
    );
    const bytes = patternOf(filled * 4080);
    client.write(bytes, () => client.destroy());
    while (server.bytesRead < bytes.length) await setImmediate();
    const reading = all(server);
    server.resume();
    assert.equal(await reading, bytes);
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

test('no listener: ECONNREFUSED and close; an aborted signal: AbortError', async () => {
  const [, , server] = await sockets();
  const { port } = server.address()!;
  await Promise.all([once(server, 'close'), server[Symbol.asyncDispose]()]);
  const refused = connect(port, '127.0.0.1');
  // Does not use once(), which would fail with the error.
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

test('setTimeout reports idle time, and 0 disables it', async () => {
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

test('addresses, states, and events of diagnostics_channel', async () => {
  const reported: string[] = [];
  const listeners = ['connect', 'accept', 'close'].map((name) => {
    const listener = (message: unknown): void => {
      assert.ok((message as { connection: Socket }).connection);
      reported.push(name);
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
    assert.equal(reported.sort(), ['accept', 'close', 'close', 'connect']);
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

/** A client with `onread`, connected to a server's socket. */
async function reading(onread: OnReadOptions): Promise<[client: Socket, server: Socket]> {
  const server = createServer({ allowHalfOpen: true });
  const accepted = once(server, 'connection');
  const client = connect({ port: await listening(server), host: '127.0.0.1', onread });
  client.on('data', () => assert.unreachable('no chunk is made'));
  const [socket] = await accepted;
  return [client, socket];
}

test('onread: bytes arrive in the program’s memory, up to its size, and the end is reported as usual', async () => {
  const bytes = patternOf(300_000);
  for (const size of [7, 1000, 65_536, 1_000_000]) {
    const buffer = Buffer.alloc(size);
    const came: Buffer[] = [];
    const [client, server] = await reading({
      buffer,
      callback: (length, memory) => {
        assert.is(memory, buffer);
        came.push(Buffer.from(memory.subarray(0, length)));
      },
    });
    server.end(bytes);
    client.end();
    await once(client, 'close');
    assert.equal(Buffer.concat(came), bytes);
    assert.is(client.bytesRead, bytes.length);
  }
});

test('onread: a function returns new memory for each chunk', async () => {
  const bytes = patternOf(100_000);
  const came: Uint8Array[] = [];
  const [client, server] = await reading({
    buffer: () => Buffer.alloc(900),
    callback: (length, memory) => void came.push(memory.subarray(0, length)),
  });
  server.end(bytes);
  client.end();
  await once(client, 'close');
  assert.equal(Buffer.concat(came), bytes);
});

test('onread: false stops the sender until resume, even after the end has arrived', async () => {
  const bytes = patternOf(3_000_000);
  const came: Buffer[] = [];
  const news = new EventEmitter();
  let pauses = 0;
  const [client, server] = await reading({
    buffer: Buffer.alloc(100_000),
    callback: (length, memory) => {
      came.push(Buffer.from(memory.subarray(0, length)));
      pauses += 1;
      news.emit('paused');
      return false;
    },
  });
  let paused = once(news, 'paused');
  server.end(bytes);
  await paused;
  // At most 16 slots are in flight.
  assert.is(server.writableFinished, false);
  let total = came[0]!.length;
  while (total < bytes.length) {
    const before = pauses;
    paused = once(news, 'paused');
    client.resume();
    await paused;
    assert.is(pauses, before + 1);
    total += came.at(-1)!.length;
  }
  assert.is(client.readableEnded, false);
  const ended = once(client, 'end');
  client.resume();
  await ended;
  assert.equal(Buffer.concat(came), bytes);
  client.end();
});

test('onread: pause and resume, even within the callback', async () => {
  const came: Buffer[] = [];
  const [client, server] = await reading({
    buffer: Buffer.alloc(10),
    callback: (length, memory) => {
      came.push(Buffer.from(memory.subarray(0, length)));
      client.pause();
      client.resume();
    },
  });
  const bytes = patternOf(50_000);
  server.end(bytes);
  client.end();
  await once(client, 'close');
  assert.equal(Buffer.concat(came), bytes);
});

test('onread: an exception in the callback is uncaught and loses no bytes; invalid memory ends the socket', async () => {
  const uncaught: unknown[] = [];
  const catches = (error: unknown): void => void uncaught.push(error);
  process.once('uncaughtException', catches);
  const bytes = patternOf(5000);
  const came: Buffer[] = [];
  const [client, server] = await reading({
    buffer: Buffer.alloc(1000),
    callback: (length, memory) => {
      came.push(Buffer.from(memory.subarray(0, length)));
      if (came.length === 1) throw new Error('a mistake of the program');
    },
  });
  server.end(bytes);
  client.end();
  await once(client, 'close');
  process.off('uncaughtException', catches);
  assert.is((uncaught[0] as Error).message, 'a mistake of the program');
  assert.equal(Buffer.concat(came), bytes);

  const [other, sender] = await reading({ buffer: () => new Uint8Array(0), callback: () => {} });
  sender.on('error', () => {});
  sender.write('a');
  const [error] = await once(other, 'error');
  assert.is((error as { code: string }).code, 'ERR_INVALID_ARG_TYPE');
});

test('onread: invalid options are rejected by name', () => {
  const callback = (): void => {};
  for (const [onread, name] of [
    [5, 'onread'],
    [{ callback }, 'onread.buffer'],
    [{ buffer: new Uint8Array(0), callback }, 'onread.buffer'],
    [{ buffer: Buffer.alloc(1) }, 'onread.callback'],
  ] as const) {
    assert.throws(
      () => connect({ port: 1, onread: onread as unknown as OnReadOptions }),
      (error: Error & { code: string }) =>
        error.code === 'ERR_INVALID_ARG_TYPE' && error.message.startsWith(`\`${name}\` must be `),
    );
  }
});

test('waiting bytes are delivered to a reader in chunks of up to 256 KiB', async () => {
  const [client, server] = await sockets({ slots: 64, slotBytes: 8016, ringBytes: 0 });
  const bytes = patternOf(64 * 8000);
  server.pause();
  client.end(bytes);
  while (server.bytesRead < bytes.length) await setImmediate();
  const chunks: number[] = [];
  server.on('data', (chunk) => chunks.push(chunk.length));
  const reading = all(server);
  server.resume();
  assert.equal(await reading, bytes);
  assert.ok(Math.max(...chunks) > 8000 && Math.max(...chunks) <= 262_144, `${chunks}`);
});

test.run();
