/** `networkdirect/net`: messages that are longer than a slot and are copied to several slots. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readCounters } from '../../kernel-bridge/index.js';
import { encodeHello, Frame, MORE } from '../../nd/net/connection/frames.js';
import { type Channel, connectChannel, createChannelServer, type NetError } from '../../nd/net/index.js';
import { channels, endAll, listening } from '../helpers/net-pair.js';
import { patternOf } from '../helpers/net-pattern.js';
import { frameOf, honest, RawPeer } from '../helpers/net-raw.js';

test.after.each(endAll);

const HEADER = 16;
/** Size in bytes of a payload that fills a slot of the default length. */
const PIECE = 4096 - HEADER;
const LONGEST = 32 * PIECE;
const regions = (): number => readCounters().objects.mr!;
/** A test of the soft kernel's counters, which do not include the objects of a vendor's provider (scripts/test-windows.sh). */
const counted = process.env.NETWORKDIRECT_ND_PROVIDERS === undefined ? test : test.skip;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

for (const [slots, slotBytes] of [
  [128, 4096],
  [16, 80],
  [9, 256],
  [3, 512],
] as const) {
  const piece = slotBytes - HEADER;
  test(`messages, requests and replies of all lengths: ${slots} slots of ${slotBytes} bytes`, async () => {
    const [client, server] = await channels({ slots, slotBytes });
    const most = Math.max(1, Math.floor(slots / 4));
    const lengths = [0, 1, 2, most, most + 1, 2 * most, slots]
      .flatMap((pieces) => [-1, 0, 1, 17].map((more) => pieces * piece + more))
      .filter((length) => length >= 0);
    for (const one of [client, server]) one.onRequest((bytes) => bytes);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      const sent = Promise.all(lengths.map((length) => from.send(patternOf(length))));
      for (const length of lengths) assert.equal(await to.receive(), patternOf(length), `${length} bytes`);
      await sent;
      const answers = await Promise.all(lengths.map((length) => from.request(patternOf(length))));
      for (const [n, length] of lengths.entries()) assert.equal(answers[n], patternOf(length), `${length}`);
    }
  });
}

counted('messages up to a quarter of the slots are not registered, and longer ones are', async () => {
  const [client, server] = await channels();
  let seen = 0;
  server.onRequest((bytes) => {
    seen = regions();
    return bytes;
  });
  const idle = regions();
  for (const length of [1, PIECE, PIECE + 1, 50_000, LONGEST]) {
    assert.is((await client.request(patternOf(length))).length, length);
    assert.is(seen, idle, `${length} bytes`);
  }
  assert.is((await client.request(patternOf(LONGEST + 1))).length, LONGEST + 1);
  assert.ok(seen > idle);
});

test('long messages that the program does not receive leave slots for others, and all arrive in order', async () => {
  const [client, server] = await channels();
  server.onRequest((bytes) => bytes);
  const sending = Promise.all(Array.from({ length: 10 }, (_, n) => client.send(patternOf(LONGEST - n))));
  assert.is(String(await client.request('still there?')), 'still there?');
  for (let n = 0; n < 10; n += 1) assert.equal(await server.receive(), patternOf(LONGEST - n));
  await sending;
});

test('a handler that awaits a message gets it, no matter how many long requests are queued after it', async () => {
  const [client, server] = await channels({}, { maxRequests: 1 });
  server.onRequest(async () => (await server.receive())!);
  const asking = Array.from({ length: 5 }, () => client.request(patternOf(128_000)));
  for (let n = 0; n < 5; n += 1) await client.send(`message ${n}`);
  assert.equal(
    (await Promise.all(asking)).map(String),
    ['0', '1', '2', '3', '4'].map((n) => `message ${n}`),
  );
});

test('waiting short requests do not block a long message', async () => {
  const [client, server] = await channels({}, { maxRequests: 1 });
  let message: Buffer | undefined;
  server.onRequest(async () => {
    message ??= await server.receive();
    return 'answer';
  });
  // Each message fills a slot, and together they use all credits.
  const asking = Array.from({ length: 120 }, () => client.request(patternOf(PIECE)));
  await client.send(patternOf(LONGEST));
  await Promise.all(asking);
  assert.equal(message, patternOf(LONGEST));
});

test('a reply that exceeds the free slots arrives while the program receives no messages', async () => {
  const [client, server] = await channels();
  client.onRequest(() => patternOf(LONGEST));
  // Each message fills a slot.
  const sending = Promise.all(Array.from({ length: 128 }, () => client.send(patternOf(PIECE))));
  await sending;
  assert.equal(await server.request('long, please'), patternOf(LONGEST));
  for (let n = 0; n < 128; n += 1) assert.is((await server.receive())!.length, PIECE);
});

test('requests in pieces count against the budget until they get a reply', async () => {
  const bound = 2 ** 20;
  const bytes = 100_000;
  const held: (() => void)[] = [];
  const server = createChannelServer({ maxBufferedBytes: bound }, (channel) => {
    channel.onRequest((request) => new Promise((resolve) => held.push(() => resolve(request))));
  });
  const port = await listening(server);
  await using client = await connectChannel(port, '127.0.0.1');
  let answered = 0;
  const asking = Array.from({ length: 20 }, () =>
    client.request(patternOf(bytes)).then(() => (answered += 1)),
  );
  // One connection uses at most half of the budget.
  const most = Math.floor(bound / 2 / bytes);
  while (held.length < most) await turn();
  for (let n = 0; n < 20; n += 1) await turn();
  assert.is(held.length, most);
  while (answered < 20) {
    held.shift()?.();
    await turn();
  }
  await Promise.all(asking);
});

/** A server's end of a channel, and the peer connected to it. */
async function accepted(options = {}): Promise<{ channel: Channel; peer: RawPeer }> {
  const server = createChannelServer({ channel: options });
  const first = new Promise<Channel>((resolve) => server.once('channel', resolve));
  const peer = await RawPeer.connect(await listening(server), encodeHello(honest));
  return { channel: await first, peer };
}

test('a payload whose last piece never arrives is discarded with the connection, and no part of it is delivered', async () => {
  const { channel, peer } = await accepted();
  const message = channel.receive();
  for (let n = 0; n < 3; n += 1)
    peer.sendAt(2 * n * PIECE, frameOf(Frame.DATA, { flags: MORE, payload: Buffer.alloc(PIECE) }));
  await peer.until(({ sending }) => sending === 0);
  const failed = message.catch((error: NetError) => error.code);
  peer[Symbol.dispose]();
  assert.is(await failed, 'ECONNRESET');
});

test('pieces that together exceed the limit of this side end the connection', async () => {
  const { channel, peer } = await accepted({ maxMessageBytes: 2 * PIECE });
  using _ = peer;
  const message = channel.receive().catch((error: NetError) => error);
  for (let n = 0; n < 3; n += 1)
    peer.sendAt(2 * n * PIECE, frameOf(Frame.DATA, { flags: MORE, payload: Buffer.alloc(PIECE) }));
  const { code, message: text } = (await message) as NetError;
  assert.is(code, 'EPROTO');
  assert.match(text, /12240 bytes exceeds the limit of this side/);
});

test.run();
