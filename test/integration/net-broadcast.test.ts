/** `Server.broadcast` of `networkdirect/net`: one message to many channels. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { NdError, Status } from '../../nd/index.js';
import {
  type Channel,
  type ChannelOptions,
  connectChannel,
  createChannelServer,
  type Server,
  setMaxBufferedBytes,
} from '../../nd/net/index.js';
import { collect } from '../helpers/collect.js';
import { endAll, listening } from '../helpers/net-pair.js';
import { patternOf } from '../helpers/net-pattern.js';

const DEFAULT_BUFFERED = 2 ** 29;
test.after.each(async () => {
  setMaxBufferedBytes(DEFAULT_BUFFERED);
  await endAll();
});

/** A server and its clients. The channels of both sides are in the same order. */
async function joined(count: number, options: ChannelOptions = {}): Promise<[Server, Channel[], Channel[]]> {
  const server = createChannelServer({ broadcasts: true });
  const port = await listening(server);
  const clients: Channel[] = [];
  const accepted: Channel[] = [];
  while (clients.length < count) {
    const entered = once(server, 'channel');
    clients.push(await connectChannel(port, '127.0.0.1', options));
    accepted.push((await entered)[0] as Channel);
  }
  return [server, clients, accepted];
}

/** Receives `count` messages. */
async function take(channel: Channel, count: number): Promise<Buffer[]> {
  const messages: Buffer[] = [];
  while (messages.length < count) messages.push((await channel.receive())!);
  return messages;
}

/** Short messages, messages of a slot's length, and long messages, all different. */
const LENGTHS = [1, 70_000, 5, 0, 4080, 4081, 65_536, 3, 300_000, 9, 2_000_000, 2];

test('all channels but one get each message once and in order, although the caller changes the bytes at once', async () => {
  const [server, clients, accepted] = await joined(5);
  const [sender, ...others] = clients;
  const all = Promise.all(others.map((client) => take(client, LENGTHS.length + 1)));
  all.catch(() => {});
  for (const length of LENGTHS) {
    const bytes = patternOf(length);
    const result = server.broadcast(bytes, { except: accepted[0], maxQueuedBytes: 2 ** 24 });
    assert.equal(result, { sent: 4, dropped: 0 });
    bytes.fill(255);
  }
  assert.equal(server.broadcast('text', { maxQueuedBytes: 2 ** 24 }), { sent: 5, dropped: 0 });
  for (const messages of await all) {
    assert.is(String(messages.pop()), 'text');
    assert.equal(
      messages.map(({ length }) => length),
      LENGTHS,
    );
    for (const message of messages)
      assert.ok(message.equals(patternOf(message.length)), `${message.length} bytes`);
  }
  assert.is(String(await sender!.receive()), 'text');
});

test('a peer that reads nothing does not delay the others; its messages beyond the limit are dropped, and it gets the rest intact', async () => {
  setMaxBufferedBytes(2 ** 20);
  const [server, clients, accepted] = await joined(3);
  const [slow, ...others] = clients;
  let sent = 0;
  // Continues until the slow channel has lost 20. Its peer reads as much as its budget permits, and the limit only counts unread data.
  while (accepted[0]!.droppedMessages < 20) {
    const message = Buffer.alloc(65_536);
    message.writeUInt32BE(sent);
    message.fill(sent & 0xff, 4);
    const { dropped } = server.broadcast(message);
    sent += 1;
    assert.ok(dropped <= 1);
    for (const other of others) {
      const got = (await other.receive())!;
      assert.is(got.readUInt32BE(), sent - 1);
    }
    assert.ok(sent < 200, 'nothing is ever dropped');
  }
  assert.is(server.droppedMessages, 20);
  assert.equal(
    accepted.map((channel) => channel.droppedMessages),
    [20, 0, 0],
  );
  // The blocks of its unread messages were not reused for a later message.
  for (let number = 0; number < sent - 20; number += 1) {
    const got = (await slow!.receive())!;
    assert.is(got.readUInt32BE(), number);
    assert.ok(got.subarray(4).every((byte) => byte === (number & 0xff)));
  }
  while (accepted[0]!.broadcastBytes > 0) await new Promise(setImmediate);
  server.broadcast('again');
  assert.is(String(await slow!.receive()), 'again');
});

test('stopped peers together hold half of the server’s budget, with one copy of each message; peers that keep up get everything', async () => {
  const budget = 4 << 20;
  // The peers read nothing, and run in separate processes.
  const server = createChannelServer({ broadcasts: true, maxBufferedBytes: budget });
  const port = await listening(server);
  const stopped: Channel[] = [];
  const source = `
    const { connectChannel, setMaxBufferedBytes } = await import(${JSON.stringify(new URL('../../nd/net/index.js', import.meta.url))});
    setMaxBufferedBytes(65536);
    globalThis.channel = await connectChannel(${port}, '127.0.0.1');
    setInterval(() => {}, 1000);`;
  const peers = [0, 1].map(() =>
    spawn(process.execPath, ['--input-type=module', '-e', source], { stdio: 'inherit' }),
  );
  try {
    while (stopped.length < peers.length) stopped.push((await once(server, 'channel'))[0] as Channel);
    for (const peer of peers) peer.kill('SIGSTOP');
    const entered = once(server, 'channel');
    const client = await connectChannel(port, '127.0.0.1');
    const accepted = (await entered)[0] as Channel;
    const bytes = 262_144;
    const most = budget / 2 / bytes;
    for (let number = 0; number < 3 * most; number += 1) {
      const { sent } = server.broadcast(Buffer.alloc(bytes, number), { maxQueuedBytes: 2 ** 30 });
      assert.ok(sent === 3 || number >= most, `message ${number} was dropped`);
      assert.is((await client.receive())![0], number);
      while (accepted.broadcastBytes > 0) await new Promise(setImmediate);
    }
    for (const channel of stopped) {
      assert.is(channel.broadcastBytes, most * bytes);
      assert.is(channel.droppedMessages, 2 * most);
    }
    // The memory held for these peers is released when they end.
    const ended = stopped.map((channel) => once(channel, 'close'));
    for (const peer of peers) peer.kill('SIGKILL');
    for (const channel of stopped) channel.on('error', () => {});
    await Promise.all(ended);
    assert.equal(server.broadcast(Buffer.alloc(bytes), { maxQueuedBytes: 2 ** 30 }), { sent: 1, dropped: 0 });
  } finally {
    for (const peer of peers) peer.kill('SIGKILL');
  }
});

test("slow: 'close' ends a channel that does not keep up, even with short messages", async () => {
  const [server, clients, accepted] = await joined(2);
  const closed = once(accepted[0]!, 'close');
  void (async () => {
    for await (const _ of clients[1]!);
  })().catch(() => {});
  while (!accepted[0]!.destroyed) {
    server.broadcast(Buffer.alloc(1000), { slow: 'close', maxQueuedBytes: 10_000 });
    await new Promise(setImmediate);
  }
  await closed;
  assert.is((accepted[0]!.error as { code?: string }).code, 'ENOBUFS');
  assert.ok(!accepted[1]!.destroyed);
  assert.is(server.droppedMessages, 1);
});

test('a message that is too long for one peer is dropped only there, and invalid options are rejected', async () => {
  const [server, clients] = await joined(1, { maxMessageBytes: 100 });
  assert.equal(server.broadcast(Buffer.alloc(101)), { sent: 0, dropped: 1 });
  assert.equal(server.broadcast(Buffer.alloc(100)), { sent: 1, dropped: 0 });
  assert.is((await clients[0]!.receive())!.length, 100);
  const refused = (call: () => unknown, code: string): void =>
    assert.throws(call, (error: Error & { code?: string }) => error.code === code);
  refused(() => server.broadcast(5 as never), 'ERR_INVALID_ARG_TYPE');
  refused(() => server.broadcast('', { slow: 'wait' as never }), 'ERR_INVALID_ARG_VALUE');
  refused(() => server.broadcast('', { maxQueuedBytes: 0 }), 'ERR_OUT_OF_RANGE');
  refused(() => server.broadcast('', { slots: 5 } as never), 'ERR_INVALID_ARG_VALUE');
});

test('long messages of one turn share the memory that the first one allocates', async () => {
  const [server, clients, accepted] = await joined(2);
  let sent = 0;
  for (let number = 0; number < 200; number += 1) sent += server.broadcast(Buffer.alloc(5000, number)).sent;
  assert.is(sent, 400);
  while (accepted.some(({ broadcastBytes }) => broadcastBytes === 200 * 5000))
    await new Promise(setImmediate);
  // A MiB has 128 blocks for such messages.
  assert.ok(accepted[0]!.context.lent.size <= 2, `${accepted[0]!.context.lent.size} regions`);
  for (const client of clients)
    for (let number = 0; number < 200; number += 1) assert.is((await client.receive())![0], number);
  while (accepted.some(({ broadcastBytes }) => broadcastBytes > 0)) await new Promise(setImmediate);
  assert.is(server.droppedMessages, 0);
});

test('a copy that cannot be allocated counts as dropped for each channel, and the channels stay open', async () => {
  const [server, clients, accepted] = await joined(2);
  const { context } = accepted[0]!;
  const { registerFor } = context;
  context.registerFor = () => Promise.reject(new NdError(Status.NO_MEMORY, 'no memory'));
  assert.equal(server.broadcast(Buffer.alloc(70_000)), { sent: 2, dropped: 0 });
  while (server.droppedMessages < 2) await new Promise(setImmediate);
  assert.equal(
    accepted.map(({ droppedMessages, broadcastBytes }) => [droppedMessages, broadcastBytes]),
    [
      [1, 0],
      [1, 0],
    ],
  );
  context.registerFor = registerFor;
  server.broadcast(Buffer.alloc(70_001));
  for (const client of clients) assert.is((await client.receive())!.length, 70_001);
});

test('all channels get a message before the messages that the program sends when a slow channel ends', async () => {
  const [server, clients, accepted] = await joined(3);
  while (accepted[0]!.broadcastBytes < 9000) {
    server.broadcast(Buffer.alloc(1000), { maxQueuedBytes: 10_000 });
    for (const client of clients.slice(1)) await client.receive();
  }
  accepted[0]!.on('error', () => {});
  accepted[1]!.onRequest(() => void server.broadcast('second'));
  const answered = clients[1]!.request('');
  // The request arrives while this thread is busy.
  const until = performance.now() + 50;
  while (performance.now() < until);
  server.broadcast(Buffer.alloc(2000, 'f'), { slow: 'close', maxQueuedBytes: 10_000 });
  for (const client of clients.slice(1)) {
    assert.is((await client.receive())!.length, 2000);
    assert.is(String(await client.receive()), 'second');
  }
  await answered;
});

test('the unread messages of a killed peer are released', async () => {
  setMaxBufferedBytes(2 ** 20);
  const [server, clients, accepted] = await joined(2);
  for (let number = 0; accepted[0]!.droppedMessages === 0; number += 1) {
    server.broadcast(Buffer.alloc(65_536, number));
    assert.is((await clients[1]!.receive())![0], number & 0xff);
  }
  const gone = once(accepted[0]!, 'close');
  clients[0]!.destroy();
  await gone;
  assert.is(accepted[0]!.broadcastBytes, 0);
  for (let number = 0; number < 40; number += 1) {
    server.broadcast(Buffer.alloc(65_536, number));
    assert.is((await clients[1]!.receive())![0], number);
  }
  assert.is(accepted[1]!.droppedMessages, 0);
});

test('the server keeps channels without other references; without the option, broadcast is rejected', async () => {
  const server = createChannelServer({ broadcasts: true });
  const client = await connectChannel(await listening(server), '127.0.0.1');
  while (server.connections < 1) await new Promise(setImmediate);
  for (let round = 0; round < 3; round += 1) {
    for (let n = 0; n < 20; n += 1) {
      collect();
      await new Promise(setImmediate);
    }
    assert.is(server.broadcast('still there').sent, 1);
    assert.is(String(await client.receive()), 'still there');
  }
  assert.throws(
    () => createChannelServer(() => {}).broadcast(''),
    /^`broadcasts` of createChannelServer\(\) must be true/,
  );
});

test.run();
