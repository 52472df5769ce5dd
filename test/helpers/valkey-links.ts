/** Tests of the client and the server of examples/valkey, over either link of the software HCA. */
import { once } from 'node:events';
import type { Test } from 'uvu';
import * as assert from 'uvu/assert';
import { patternOf } from './net-pattern.js';
import { RespClient, requestOf } from './resp-client.js';
import { perTier } from './tiers.js';
import { clientOf, connecting, failure, serving, servingProcess } from './valkey-scene.js';

export const requestsOf = (one: RespClient): RespClient['request'] => one.request.bind(one);

/** Adds these tests to a suite. */
export function overAnyLink(test: Test): void {
  test('commands and their errors', async () => {
    const { port } = serving();
    const request = requestsOf(clientOf(port));
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

  // The first tier has the values that start at each multiple of 4.
  const step = perTier(4, 1);
  test('requests and replies that are split at every byte modulo 64', async () => {
    const size = 4096;
    const sizes = { receiveBytes: size, sendBytes: 3 * 4096 + 1 };
    const { port } = serving(sizes);
    const one = clientOf(port, sizes);
    // Bytes sent in each direction so far. They determine where the next ones are placed.
    let [there, back] = [0, 0];
    const echo = async (bytes: number): Promise<void> => {
      const value = Buffer.from(patternOf(bytes).map((byte) => byte + there));
      const request = requestOf('ECHO', value);
      there += request.length;
      back += `$${bytes}\r\n`.length + bytes + 2;
      assert.equal(await one.send(request), value);
    };
    /** The length of a value (at least 1000 bytes) that moves a position to `left` bytes before the end of a buffer. */
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

  test('values of 8 MiB through small buffers', async () => {
    const value = patternOf(8 << 20);
    // The smaller one of the send buffer and the peer's buffer is the limit.
    for (const [receiveBytes, sendBytes] of [[1 << 16, 1 << 16] as const, [1 << 20, 1 << 14] as const]) {
      const sizes = { receiveBytes, sendBytes };
      const { port } = serving(sizes);
      const request = requestsOf(clientOf(port, sizes));
      assert.is(await request('SET', 'big', value), '+OK');
      const got = await request('GET', 'big');
      assert.ok(value.equals(got as Buffer));
    }
  });

  test('10,000 requests in one go', async () => {
    const { port } = serving();
    const one = clientOf(port);
    const replies = await Promise.all(Array.from({ length: 10_000 }, () => one.request('INCR', 'n')));
    assert.equal(
      replies,
      replies.map((_, n) => `:${n + 1}`),
    );
  });

  test(`a client that does not read does not delay others`, async () => {
    const [receiveBytes, sendBytes] = [1 << 16, 1 << 16];
    const { port } = serving({ receiveBytes, sendBytes });
    const other = clientOf(port);
    await other.request('SET', 'k', patternOf(100_000));
    const slow = connecting(port, { receiveBytes, sendBytes });
    await once(slow, 'connect');
    const requests = Buffer.from('GET k\r\n'.repeat(1000));
    // The server reads its requests as long as there is room for replies in the buffers of both sides and in their streams.
    const most = 2 * (receiveBytes + sendBytes) + slow.writableHighWaterMark + requests.length;
    let written = 0;
    for (let stands = false; !stands; ) {
      written += requests.length;
      assert.ok(written <= most, 'the server does not stop reading');
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
  });

  test('data written before end() arrives', async () => {
    const { port } = serving({ receiveBytes: 1 << 16 });
    const one = connecting(port, { sendBytes: 1 << 16 });
    const value = patternOf(3 << 20);
    one.end(requestOf('SET', 'last', value));
    assert.is((await failure(one.resume())).message, 'no error');
    const request = requestsOf(clientOf(port));
    assert.ok(value.equals((await request('GET', 'last')) as Buffer));
  });

  test('a client detects that the server was killed', async () => {
    const { child, port } = await servingProcess();
    const one = connecting(port, { keepAliveMs: 20 });
    const resp = new RespClient(one);
    assert.is(await resp.request('PING'), '+PONG');
    const lost = failure(one);
    child.kill('SIGKILL');
    assert.is((await lost).code, 'ECONNRESET');
  });
}
