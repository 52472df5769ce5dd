/** Valkey's RDMA transport (examples/valkey): our client and server, over the local link and over the wire. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { connectValkey, type ValkeyOptions } from '../../examples/valkey/connect.js';
import { ValkeyConnector } from '../../examples/valkey/connector.js';
import type { TransferStream } from '../../examples/valkey/transfer-stream.js';
import { type ServerOptions, ValkeyServer } from '../../examples/valkey/valkey-server.js';
import { readCounters } from '../../kernel-bridge/index.js';
import { RespClient, requestOf } from '../helpers/resp-client.js';
import { root } from '../helpers/root.js';
import { firstIf, long, perTier } from '../helpers/tiers.js';
import { ValkeyPeer } from '../helpers/valkey-peer.js';
import { HANG_MS, within } from '../helpers/within.js';

const test = suite('valkey');
const program = fileURLToPath(new URL('../../examples/valkey/server.js', import.meta.url));
const servers = new Set<ValkeyServer>();
const streams = new Set<TransferStream>();
const children = new Set<ChildProcess>();
test.after.each(() => {
  for (const stream of streams) stream.destroy();
  for (const server of servers) server.close();
  for (const child of children) child.kill('SIGKILL');
  for (const set of [streams, servers, children]) set.clear();
});

function serving(options: ServerOptions = {}): ValkeyServer {
  const server = new ValkeyServer({ port: 0, ...options });
  servers.add(server);
  return server;
}

function connecting(port: number, options: ValkeyOptions = {}): TransferStream {
  const stream = connectValkey({ port, ...options });
  streams.add(stream);
  return stream;
}

const client = (port: number, options?: ValkeyOptions): RespClient =>
  new RespClient(connecting(port, options));

/** The error that a stream ends in; its message if it is none. */
async function failure(stream: TransferStream): Promise<Error & { code?: string | number }> {
  const late = () => new Error('the stream does not end');
  const ended = new Promise<Error>((resolve) => {
    stream.once('error', resolve);
    stream.once('close', () => resolve(new Error('no error')));
  });
  return within(ended, HANG_MS, late);
}

async function until(what: () => boolean): Promise<void> {
  const end = Date.now() + HANG_MS;
  while (!what()) {
    assert.ok(Date.now() < end, `never: ${what}`);
    await new Promise(setImmediate);
  }
}

function pattern(length: number, seed = 0): Buffer {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; at += 1) bytes[at] = (at * 31 + (at >> 8) * 7 + seed) & 0xff;
  return bytes;
}

/** Both links of the software HCA. */
const links = [
  { name: 'the local link', kernel: undefined },
  { name: 'the wire', kernel: { link: 'wire' } },
] as const;

for (const { name, kernel } of links) {
  test(`commands and their errors, over ${name}`, async () => {
    const { port } = serving({ kernel });
    const { request } = withRequest(client(port, { kernel }));
    assert.is(await request('PING'), '+PONG');
    assert.equal(await request('ping', 'hello'), Buffer.from('hello'));
    assert.equal(await request('ECHO', ''), Buffer.from(''));
    assert.is(await request('GET', 'a'), null);
    assert.is(await request('SET', 'a', 'b\r\n\0'), '+OK');
    assert.equal(await request('GET', 'a'), Buffer.from('b\r\n\0'));
    assert.is(await request('INCR', 'n'), ':1');
    assert.is(await request('INCR', 'n'), ':2');
    assert.is(await request('INCR', 'a'), '-ERR value is not an integer or out of range');
    assert.is(await request('SET', 'n', `${2n ** 63n - 1n}`), '+OK');
    assert.is(await request('INCR', 'n'), '-ERR increment or decrement would overflow');
    assert.is(await request('DEL', 'a', 'n', 'x'), ':2');
    assert.is(await request('BGSAVE'), '+Background saving started');
    assert.is(await request('SET', 'a'), "-ERR wrong number of arguments for 'set' command");
    assert.is(await request('FLUSHALL'), '-ERR unknown command');
    assert.is(await request('HELLO', '3'), '-NOPROTO unsupported protocol version');
    assert.is(await request('CLIENT', 'SETINFO', 'lib-name', 'x'), '+OK');
    assert.match(String(await request('INFO')), /loading:0/);
  });

  // The first tier has the values that begin at each multiple of 4.
  const step = perTier(4, 1);
  test(`requests and replies that are split at every byte modulo 64, over ${name}`, async () => {
    const size = 4096;
    const sizes = { receiveBytes: size, sendBytes: 3 * 4096 + 1, kernel };
    const { port } = serving(sizes);
    const one = client(port, sizes);
    // Bytes of both directions so far, by which the next ones are placed.
    let [there, back] = [0, 0];
    const echo = async (bytes: number): Promise<void> => {
      const value = pattern(bytes, there);
      const request = requestOf('ECHO', value);
      there += request.length;
      back += `$${bytes}\r\n`.length + bytes + 2;
      assert.equal(await one.send(request), value);
    };
    /** What moves a position to `left` bytes before the end of a buffer, by a value of more than 1000 bytes. */
    const filler = (at: number, left: number, around: number) => {
      const wanted = (((size - left - at - around) % size) + size) % size;
      return wanted < 1000 ? wanted + size : wanted;
    };
    const [aroundRequest, aroundReply] = [requestOf('ECHO', Buffer.alloc(1000)).length - 1000, 9];
    for (let left = 0; left < 64; left += step) {
      await echo(filler(there, left, aroundRequest));
      assert.is((there + left) % size, 0);
      await echo(200);
      await echo(filler(back, left, aroundReply));
      assert.is((back + left) % size, 0);
      await echo(200);
    }
  });

  test(`values of 8 MiB, and buffers of 64 KiB, over ${name}`, async () => {
    const sizes = { receiveBytes: 1 << 16, sendBytes: 1 << 16, kernel };
    const { port } = serving(sizes);
    const { request } = withRequest(client(port, sizes));
    const value = pattern(8 << 20);
    assert.is(await request('SET', 'big', value), '+OK');
    const got = await request('GET', 'big');
    assert.ok(value.equals(got as Buffer));
  });

  test(`10,000 requests in one go, over ${name}`, async () => {
    const { port } = serving({ kernel });
    const one = client(port, { kernel });
    const replies = await Promise.all(Array.from({ length: 10_000 }, () => one.request('INCR', 'n')));
    assert.equal(
      replies,
      replies.map((_, n) => `:${n + 1}`),
    );
  });

  firstIf(kernel === undefined, test)(
    `a client that does not read holds nobody else up, over ${name}`,
    async () => {
      const [receiveBytes, sendBytes] = [1 << 16, 1 << 16];
      const { port } = serving({ receiveBytes, sendBytes, kernel });
      const other = client(port, { kernel });
      await other.request('SET', 'k', pattern(100_000));
      const slow = connecting(port, { receiveBytes, sendBytes, kernel });
      await once(slow, 'connect');
      const requests = Buffer.from('GET k\r\n'.repeat(1000));
      // Its requests are read as long as there is room for replies: the buffers of both sides, and what their streams hold.
      const most = 2 * (receiveBytes + sendBytes) + slow.writableHighWaterMark + requests.length;
      let written = 0;
      for (let stands = false; !stands; ) {
        written += requests.length;
        assert.ok(written <= most, 'the server reads on and on');
        if (slow.write(requests)) continue;
        const drained = once(slow, 'drain').then(() => true);
        const others = (async () => {
          for (let n = 0; n < 300; n += 1) assert.is(await other.request('PING'), '+PONG');
          return false;
        })();
        stands = !(await Promise.race([drained, others]));
        await others;
      }
      const wanted = (written / 7) * ('$100000\r\n'.length + 100_000 + 2);
      let come = 0;
      for await (const chunk of slow) {
        come += (chunk as Buffer).length;
        if (come >= wanted) break;
      }
      assert.is(come, wanted);
    },
  );

  test(`what was written before end() arrives, over ${name}`, async () => {
    const { port } = serving({ receiveBytes: 1 << 16, kernel });
    const one = connecting(port, { sendBytes: 1 << 16, kernel });
    const value = pattern(3 << 20);
    one.end(requestOf('SET', 'last', value));
    assert.is((await failure(one.resume())).message, 'no error');
    const { request } = withRequest(client(port, { kernel }));
    assert.ok(value.equals((await request('GET', 'last')) as Buffer));
  });

  test(`a server that is killed is noticed, over ${name}`, async () => {
    const env = { ...process.env, ND_OPTIONS: JSON.stringify(kernel ?? {}) };
    const child = fork(program, ['127.0.0.1', '0'], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'], env });
    children.add(child);
    const [line] = (await once(createInterface(child.stdout!), 'line')) as [string];
    const one = connecting(Number(/^port (\d+)$/.exec(line)![1]), { keepAliveMs: 20, kernel });
    const resp = new RespClient(one);
    assert.is(await resp.request('PING'), '+PONG');
    const lost = failure(one);
    child.kill('SIGKILL');
    assert.is((await lost).code, 'ECONNRESET');
  });
}

function withRequest(one: RespClient) {
  return { one, request: one.request.bind(one) };
}

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

test('bytes that came before the end can be read after it, and writes are refused', async () => {
  const listener = ValkeyPeer.listen();
  const one = connecting(listener.port);
  const peer = await listener.next();
  await peer.named();
  const bytes = pattern(1000);
  peer.write(bytes);
  await peer.close();
  // Nobody has read yet, and both sides have let go of the connection.
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

test('where nobody listens, and where there is no such host, the stream ends in an error', async () => {
  const server = serving();
  const { port } = server;
  server.close();
  assert.match((await failure(connecting(port))).message, /refused/);
  const unknown = await failure(connecting(port, { host: 'nowhere.invalid' }));
  assert.ok(['ENOTFOUND', 'EAI_AGAIN'].includes(String(unknown.code)), unknown.message);
  assert.match((await failure(connecting(port, { receiveBytes: 0 }))).message, /bytes/i);
});

test('a server that names smaller and larger buffers gets no byte more than they hold', async () => {
  const listener = ValkeyPeer.listen();
  const one = connecting(listener.port);
  const peer = await listener.next();
  await peer.named();
  const bytes = pattern(200_000);
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

test('a client is kept alive by commands, and lost when they are not acknowledged', async () => {
  const listener = ValkeyPeer.listen();
  const one = connecting(listener.port, { keepAliveMs: 10 });
  const lost = failure(one);
  const peer = await listener.next();
  await peer.named();
  // Receives that are not posted again: sooner or later a keep-alive finds none.
  for (let n = 0; n < 30; n += 1) {
    const arrival = await peer.next(false);
    assert.ok('command' in arrival && arrival.command.readUInt16BE() === 2 && arrival.command.length === 32);
  }
  assert.is((await lost).code, 'ECONNRESET');
  await peer.close();
  listener.close();
});

test('a client too many is rejected, and another one can come for each that goes', async () => {
  const server = serving({ maxClients: 2 });
  const two = [client(server.port), client(server.port)];
  for (const one of two) assert.is(await one.request('PING'), '+PONG');
  assert.match((await failure(connecting(server.port))).message, /refused/);
  two[0]!.stream.destroy();
  await until(() => server.clients === 1);
  assert.is(await client(server.port).request('PING'), '+PONG');
});

test('a store that is full takes no more, and goes on', async () => {
  const { port } = serving({ storeBytes: 10_000 });
  const { request } = withRequest(client(port));
  assert.is(await request('SET', 'a', Buffer.alloc(5000)), '+OK');
  assert.match(String(await request('SET', 'b', Buffer.alloc(5000))), /^-OOM /);
  assert.is(await request('SET', 'a', Buffer.alloc(9000)), '+OK');
  assert.match(String(await request('SET', 'a', Buffer.alloc(9999))), /^-OOM /);
  assert.is(await request('DEL', 'a'), ':1');
  assert.is(await request('SET', 'b', Buffer.alloc(5000)), '+OK');
});

test('the connector gives client libraries a stream that does what they ask of a socket', async () => {
  const { port } = serving();
  const connector = new ValkeyConnector({ port });
  const stream = await connector.connect();
  streams.add(stream);
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
  // A library tries again by itself when it sees the end of a stream.
  const refused = await new ValkeyConnector({ port: 1 }).connect();
  assert.match((await failure(refused)).message, /refused/);
});

long(test, 'a hundred clients', async () => {
  const { port } = serving({ receiveBytes: 1 << 16, sendBytes: 1 << 16 });
  const clients = Array.from({ length: 100 }, () =>
    client(port, { receiveBytes: 1 << 16, sendBytes: 1 << 16 }),
  );
  await Promise.all(
    clients.map(async (one, n) => {
      const value = pattern(50_000, n);
      for (let round = 0; round < 5; round += 1) {
        await one.request('SET', `key ${n}`, value);
        assert.ok(value.equals((await one.request('GET', `key ${n}`)) as Buffer));
      }
    }),
  );
});

test('nothing is left of connections that have ended in any way', async () => {
  const left = (): number => {
    const { pd, mr, cq, qp } = readCounters().objects;
    return pd! + mr! + cq! + qp!;
  };
  const server = serving();
  await until(() => left() === 0);
  const one = client(server.port);
  await one.request('PING');
  assert.ok(left() > 0);
  one.stream.destroy();
  await client(server.port).request('QUIT');
  connecting(server.port).destroy();
  await until(() => server.clients === 0 && left() === 0);
});

test('the client is short enough to be copied', () => {
  const files = ['transfer-stream.ts', 'connect.ts', 'connector.ts'];
  const lines = files.flatMap((file) =>
    readFileSync(join(root, 'examples/valkey', file), 'utf8')
      .split('\n')
      .filter((line) => !/^\s*($|\/\/|\/\*|\*)/.test(line)),
  );
  assert.ok(lines.length <= 350, `${lines.length} lines of code`);
});

test.run();
