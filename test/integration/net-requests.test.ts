/** `networkdirect/net`: requests that wait because of limits, and replies that arrive regardless of unread messages. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { channels, endAll, rejection } from '../helpers/net-pair.js';
import { patternOf } from '../helpers/net-pattern.js';

test.after.each(endAll);

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a program that sends a request for every message gets its replies while further messages wait', async () => {
  const [client, server] = await channels({ slots: 4, slotBytes: 256 });
  client.onRequest((question) => question);
  // Each message fills a slot, so none is free after the first four.
  const sends = Promise.all(Array.from({ length: 100 }, () => client.send(patternOf(200))));
  for (let n = 0; n < 100; n += 1) {
    assert.equal(await server.receive(), patternOf(200));
    assert.is(String(await server.request(`${n}`)), `${n}`);
  }
  await sends;
});

test('replies of any length overtake unread messages of any length', async () => {
  const [client, server] = await channels({ slots: 2, slotBytes: 256 });
  client.onRequest((question) => question);
  const long = patternOf(2 ** 24);
  const sends = [long, long, long, ...Array.from({ length: 20 }, () => patternOf(200))].map((bytes) =>
    client.send(bytes),
  );
  await sends[0];
  for (const length of [3, 200, 1_000_000])
    assert.equal(await server.request(patternOf(length)), patternOf(length));
  for (let n = 0; n < sends.length; n += 1) await server.receive();
  await Promise.all(sends);
});

for (const [name, length] of [
  ['short', 10],
  ['long', 100_000],
] as const) {
  test(`only as many ${name} requests are served at once as the limit permits, and all are served eventually`, async () => {
    const [client, server] = await channels({ slots: 8, slotBytes: 256, maxRequests: 3 });
    let active = 0;
    let most = 0;
    server.onRequest(async (bytes) => {
      active += 1;
      most = Math.max(most, active);
      await turn();
      active -= 1;
      return String(bytes.length);
    });
    const answers = Array.from({ length: 60 }, () => client.request(patternOf(length)));
    for (const answer of answers) assert.is(String(await answer), String(length));
    assert.is(most, 3);
  });

  test(`a ${name} request that is aborted while it waits behind the limit never reaches the program`, async () => {
    const [client, server] = await channels({ slots: 2, slotBytes: 256, maxRequests: 1 });
    const seen: string[] = [];
    let finish: (() => void) | undefined;
    server.onRequest((bytes) => {
      seen.push(String.fromCharCode(bytes[0]!));
      if (seen.length > 1) return bytes.subarray(0, 1);
      return new Promise((resolve) => {
        finish = () => resolve('first');
      });
    });
    const first = client.request(Buffer.alloc(length, 'a'));
    while (finish === undefined) await turn();
    // There are more requests than slots, so some wait there and some here.
    for (let n = 0; n < 10; n += 1) {
      const controller = new AbortController();
      const aborted = rejection(client.request(Buffer.alloc(length, 'b'), { signal: controller.signal }));
      await turn();
      controller.abort();
      assert.is((await aborted).name, 'AbortError');
    }
    const last = client.request(Buffer.alloc(length, 'c'));
    finish();
    assert.is(String(await first), 'first');
    assert.is(String(await last), 'c');
    assert.equal(seen, ['a', 'c']);
  });
}

test('a closing side replies to requests that wait because of its limit', async () => {
  const [client, server] = await channels({ slots: 8, slotBytes: 256, maxRequests: 1 });
  server.onRequest(async (bytes) => {
    await turn();
    return bytes;
  });
  const answers = Promise.all(['a', 'b', 'c', 'd'].map((text) => client.request(text)));
  let closing: Promise<void> | undefined;
  server.onRequest(async (bytes) => {
    closing ??= server.close();
    await turn();
    return bytes;
  });
  assert.equal((await answers).map(String), ['a', 'b', 'c', 'd']);
  await closing;
  assert.is(client.error, undefined);
});

test.run();
