/** Memory that clients can make the Valkey server of examples/valkey hold: incomplete requests and unread replies. */
import { once } from 'node:events';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { RequestParser } from '../../examples/valkey/request-parser.js';
import { requestOf } from '../helpers/resp-client.js';
import { ValkeyPeer } from '../helpers/valkey-peer.js';
import { clientOf, connecting, endValkeys, serving, until } from '../helpers/valkey-scene.js';

const test = suite('valkey memory');
test.after.each(endValkeys);

const MEBI = 1 << 20;

test('a request that arrives byte by byte costs little more than its bytes', () => {
  const parser = new RequestParser(MEBI);
  parser.push(Buffer.from(`*1\r\n$${MEBI}\r\n`));
  assert.is(parser.next(), undefined);
  const before = process.memoryUsage().heapUsed;
  for (let n = 0; n < MEBI; n += 1) {
    parser.push(Buffer.from([n & 0xff]));
    assert.is(parser.next(), undefined);
  }
  // A Buffer for each byte would need a hundred bytes.
  assert.ok(process.memoryUsage().heapUsed - before < 40 * MEBI);
  parser.push(Buffer.from('\r\n'));
  const [string] = parser.next()!;
  assert.is(string!.length, MEBI);
  assert.ok(string!.every((byte, n) => byte === (n & 0xff)));
});

test('a parser reports the memory that it holds', () => {
  const parser = new RequestParser(MEBI);
  const push = (bytes: Buffer | string): readonly Buffer[] | undefined => {
    parser.push(Buffer.from(bytes));
    return parser.next();
  };
  const key = 'k'.repeat(1000);
  // The key shares memory with everything that arrived with it.
  assert.is(push(`*3\r\n$3\r\nSET\r\n$1000\r\n${key}\r\n$5000\r\n${'v'.repeat(2000)}`), undefined);
  const first = parser.heldBytes;
  assert.ok(first >= 3000);
  assert.is(push('v'.repeat(1000)), undefined);
  assert.is(parser.heldBytes, first + 1000);
  // When a request is complete, its bytes belong to its strings and no longer to the parser.
  const two = new RequestParser(MEBI);
  two.push(Buffer.from(`*2\r\n$1000\r\n${key}\r\n`));
  assert.is(two.next(), undefined);
  assert.ok(two.heldBytes >= 1000);
  two.push(Buffer.from(`$1000\r\n${key}`));
  assert.is(two.next(), undefined);
  assert.ok(two.heldBytes >= 2000);
  two.push(Buffer.from('\r\n'));
  assert.equal(two.next(), [Buffer.from(key), Buffer.from(key)]);
  assert.is(two.next(), undefined);
  assert.is(two.heldBytes, 0);
  // Empty strings cost memory, too.
  two.push(Buffer.from(`*1000\r\n${'$0\r\n\r\n'.repeat(999)}`));
  assert.is(two.next(), undefined);
  assert.ok(two.heldBytes >= 100_000);
});

interface Holder {
  readonly stream: ReturnType<typeof connecting>;
  readonly bytes: number;
}

/** The first `bytes` bytes of a request. */
const unfinished = (bytes: number): Buffer => requestOf('SET', 'k', 'x'.repeat(bytes)).subarray(0, bytes);

test('when all clients together hold too much, the one with the most incomplete bytes is disconnected', async () => {
  const server = serving({ clientBytes: 100_000 });
  const good = clientOf(server.port);
  // Complete requests and replies that have been read do not count.
  assert.is(await good.request('SET', 'big', Buffer.alloc(90_000)), '+OK');
  assert.is((await good.request('GET', 'big'))!.length, 90_000);
  const hold = async (bytes: number): Promise<Holder> => {
    const stream = connecting(server.port);
    await once(stream, 'connect');
    stream.write(unfinished(bytes));
    // When another client gets replies, the server has received everything sent before.
    for (let n = 0; n < 10; n += 1) assert.is(await good.request('PING'), '+PONG');
    return { stream, bytes };
  };
  const [most, other] = [await hold(60_000), await hold(30_000)];
  assert.is(server.clients, 3);
  most.stream.resume();
  const last = await hold(20_000);
  await until(() => most.stream.closed);
  await until(() => server.clients === 3);
  for (const { stream, bytes } of [other, last]) {
    assert.not(stream.destroyed);
    stream.write(requestOf('SET', 'k', 'x'.repeat(bytes)).subarray(bytes));
    assert.is(String((await once(stream, 'data'))[0]), '+OK\r\n');
  }
  assert.is(await good.request('PING'), '+PONG');
});

test('replies that are not read count as well', async () => {
  const server = serving({ clientBytes: 100_000 });
  const good = clientOf(server.port);
  assert.is(await good.request('SET', 'big', Buffer.alloc(30_000)), '+OK');
  // None of these clients announces a buffer for the reply.
  const silent: ValkeyPeer[] = [];
  const ask = async (clients: number) => {
    const peer = await ValkeyPeer.connect(server.port);
    silent.push(peer);
    await until(() => server.clients === clients);
    peer.write(Buffer.from('GET big\r\n'));
    return peer;
  };
  for (const clients of [2, 3, 4]) {
    await ask(clients);
    for (let ping = 0; ping < 10; ping += 1) assert.is(await good.request('PING'), '+PONG');
  }
  assert.is(server.clients, 4);
  // All hold the same amount: the client that requests more is disconnected.
  await (await ask(5)).ended();
  await until(() => server.clients === 4);
  assert.is(await good.request('PING'), '+PONG');
  for (const peer of silent) await peer.close();
});

test.run();
