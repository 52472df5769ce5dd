// One process broadcasts prices, and others subscribe by name. Two subscribers keep up and acknowledge from time to time. One sleeps and
// loses prices, which are counted, without delaying the others.
//
//   node dist/examples/recipes/broadcast.js
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type Channel, connectChannel, createChannelServer } from 'networkdirect/net';

const PRICES = 3000;
/** Subscribers that keep up acknowledge after this many prices. */
const EACH = 20;

async function publish(): Promise<void> {
  const name = `prices-${process.pid}`;
  const server = createChannelServer({ broadcasts: true });
  server.listen({ name });
  await once(server, 'listening');
  const children: ChildProcess[] = [];
  const awake: Channel[] = [];
  for (const kind of ['sleepy', 'awake', 'awake']) {
    const joined = once(server, 'channel');
    children.push(fork(new URL(import.meta.url), [name, kind]));
    const [channel] = (await joined) as [Channel];
    if (kind === 'awake') awake.push(channel);
  }

  for (let price = 1; price <= PRICES; price += 1) {
    // A message has 4000 bytes; at most 256 KiB are queued per subscriber.
    server.broadcast(String(price).padEnd(4000), { maxQueuedBytes: 2 ** 18 });
    if (price % EACH === 0) await Promise.all(awake.map((channel) => channel.receive()));
  }
  // The last message has a higher limit, so that every subscriber gets it.
  server.broadcast('end', { maxQueuedBytes: 2 ** 20 });
  for (const child of children) {
    child.send('wake up');
    console.log((await once(child, 'message'))[0]);
  }
  console.log(`prices were lost: ${server.droppedMessages > 0}`);
  await server.close();
}

async function subscribe(name: string, kind: string): Promise<void> {
  const woken = once(process, 'message');
  const channel = await connectChannel({ name });
  if (kind === 'sleepy') await woken;
  let prices = 0;
  for await (const message of channel) {
    if (String(message) === 'end') break;
    prices += 1;
    if (kind === 'awake' && prices % EACH === 0) await channel.send('more, please');
  }
  await woken;
  process.send!(
    `a subscriber that is ${kind} has ${prices === PRICES ? 'all prices' : 'some of the prices'}`,
  );
  await channel.close();
  process.disconnect();
}

const [name, kind] = process.argv.slice(2);
if (name !== undefined) await subscribe(name, kind!);
else await publish();
