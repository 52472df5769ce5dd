/** `networkdirect/net` over a provider without RDMA Reads: everything is copied to the peer's slots, and what does not fit is refused. */
import '../helpers/without-reads.js';
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  allocate,
  type Channel,
  connectChannel,
  createChannelServer,
  type NetError,
} from '../../nd/net/index.js';
import { channels, endAll, listening, rejection } from '../helpers/net-pair.js';
import { patternOf } from '../helpers/net-pattern.js';
import './net-socket.test.js';

test.after.each(endAll);

const HEADER = 16;

for (const [slots, slotBytes] of [
  [128, 4096],
  [16, 80],
  [3, 512],
] as const) {
  const most = Math.max(1, Math.floor(slots / 4)) * (slotBytes - HEADER);

  test(`without Reads, messages of up to a quarter of ${slots} slots arrive`, async () => {
    const [client, server] = await channels({ slots, slotBytes });
    const lengths = [0, 1, slotBytes - HEADER, slotBytes, most - 1, most].filter((length) => length <= most);
    // More than there are credits for, so that most of them wait.
    const sent = Array.from({ length: 20 }, () => lengths).flat();
    const sending = Promise.all(sent.map((length) => client.send(patternOf(length))));
    for (const length of sent) assert.equal(await server.receive(), patternOf(length), `${length} bytes`);
    await sending;
    server.onRequest((bytes) => bytes);
    const answers = await Promise.all(sent.map((length) => client.request(patternOf(length))));
    for (const [n, length] of sent.entries()) assert.equal(answers[n], patternOf(length), `${length} bytes`);
  });

  test(`without Reads, longer ones than a quarter of ${slots} slots are refused, and the channel goes on`, async () => {
    const [client, server] = await channels({ slots, slotBytes });
    const long = patternOf(most + 1);
    for (const call of [client.send(long), client.request(long)]) {
      const error = (await rejection(call)) as NetError;
      assert.is(error.code, 'EMSGSIZE');
      assert.match(error.message, new RegExp(`at most ${most} bytes.*RDMA Reads; got ${most + 1}`));
    }
    server.onRequest(() => long);
    assert.is(((await rejection(client.request(patternOf(1)))) as NetError).code, 'ERR_REMOTE');
    await client.send(patternOf(most));
    assert.equal(await server.receive(), patternOf(most));
  });
}

test('without Reads, lent memory is copied', async () => {
  const [client, server] = await channels();
  const bytes = allocate(50_000);
  using _lent = await client.lend(bytes);
  const sending = client.send(bytes.subarray(0, 45_000));
  assert.is((await server.receive())?.length, 45_000);
  await sending;
});

test('without Reads, a broadcast of several slots reaches every channel', async () => {
  const server = createChannelServer({ broadcasts: true });
  const port = await listening(server);
  const clients: Channel[] = [];
  while (clients.length < 2) {
    const entered = once(server, 'channel');
    clients.push(await connectChannel(port, '127.0.0.1'));
    await entered;
  }
  const message = patternOf(50_000);
  assert.equal(server.broadcast(message), { sent: 2, dropped: 0 });
  for (const client of clients) {
    assert.equal(await client.receive(), message);
    client.destroy();
  }
});

test.run();
