// Unreferenced channels that were not closed are garbage-collected. Their connection ends, and a warning is emitted. Channels that are
// still needed are kept although the program does not reference them.
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  allocate,
  type Channel,
  connectChannel,
  createChannelServer,
  type RemoteMemory,
  type Server,
} from '../../nd/net/index.js';
import { collect } from '../helpers/collect.js';
import { firstIf } from '../helpers/tiers.js';

/** Warnings emitted since the test began. */
const warnings: Error[] = [];
process.on('warning', (warning) => warnings.push(warning));

/** Collects garbage until the condition holds. */
async function collectUntil(condition: () => boolean): Promise<void> {
  while (!condition()) await collectOnce();
}

async function collectOnce(): Promise<void> {
  collect();
  await new Promise((resolve) => setImmediate(resolve));
}

/** Collects garbage several times as often as an unreferenced channel requires. */
async function collectALot(): Promise<void> {
  for (let n = 0; n < 20; n += 1) await collectOnce();
}

const servers: Server[] = [];

async function listening(handler: (channel: Channel) => void): Promise<number> {
  const server = createChannelServer(handler);
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server.address()!.port;
}

test.before.each(() => {
  warnings.length = 0;
});
test.after.each(async () => {
  for (const server of servers.splice(0)) {
    const closed = server.close();
    server.closeAllConnections();
    await closed;
  }
});

test('an unreferenced channel is collected: the peer’s channel closes, and a warning names the peer', async () => {
  let ended: Error | undefined;
  const port = await listening((channel) => {
    channel.onRequest((bytes) => bytes);
    channel.once('close', () => (ended = channel.error));
  });
  await (async () => {
    const channel = await connectChannel(port, '127.0.0.1');
    assert.is(String(await channel.request('used')), 'used');
    await channel.send('and more');
  })();
  await collectUntil(() => ended !== undefined && warnings.length > 0);
  assert.is((ended as NodeJS.ErrnoException | undefined)?.code, 'ECONNRESET');
  assert.equal(
    warnings.map(({ name, message }) => [name, message]),
    [
      [
        'NetworkDirectWarning',
        `The channel to 127.0.0.1:${port} was garbage-collected and its connection ended. Call close() or use \`await using\`.`,
      ],
    ],
  );
});

test('an unreferenced channel of a server’s handler is collected and removed from the server', async () => {
  const port = await listening(() => {});
  const channel = await connectChannel(port, '127.0.0.1');
  const closed = once(channel, 'close');
  await collectUntil(() => warnings.length > 0);
  await closed;
  assert.is((channel.error as NodeJS.ErrnoException | undefined)?.code, 'ECONNRESET');
  assert.is(servers[0]!.connections, 0);
  assert.match(warnings[0]!.message, /^The channel to 127\.0\.0\.1:\d+ was garbage-collected/);
});

// A closure that refers to the channel keeps it alive, and so do all other closures of the same function. Each of these functions therefore
// has at most one closure.

const handled = (channel: Channel): Promise<Buffer> =>
  new Promise((resolve) => channel.onRequest(resolve as (bytes: Buffer) => undefined));

async function firstOf(channel: Channel): Promise<string | undefined> {
  for await (const message of channel) return String(message);
  return undefined;
}

const flood = (channel: Channel): Promise<unknown> =>
  Promise.all(Array.from({ length: 300 }, () => channel.send(Buffer.alloc(4000))));

async function exposeTo(channel: Channel, memory: Uint8Array): Promise<void> {
  const { handle } = await channel.expose(memory, { writable: true });
  await channel.send(handle);
}

async function openOf(channel: Channel): Promise<RemoteMemory> {
  return channel.open(await channel.request('your memory'));
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

/** Reasons why an unreferenced channel stays alive. Each resolves with a proof that the channel still exists. */
const kept: Record<string, (channel: Channel) => { shown: () => Promise<unknown>; is: unknown }> = {
  'a request that waits for its answer': (channel) => {
    const answer = channel.request('late');
    return { shown: async () => String(await answer), is: 'late' };
  },
  'a message that is awaited': (channel) => {
    const message = channel.receive();
    void channel.send('please');
    return { shown: async () => String(await message), is: 'a message' };
  },
  'a loop over its messages': (channel) => {
    const first = firstOf(channel);
    void channel.send('please');
    return { shown: () => first, is: 'a message' };
  },
  'a listener for its end': (channel) => {
    const closed = once(channel, 'close');
    void channel.send('the end, please');
    return { shown: () => closed, is: [false] };
  },
  'a handler of requests': (channel) => {
    const asked = handled(channel);
    void channel.send('a question, please');
    return { shown: async () => String(await asked), is: 'a question' };
  },
  'messages that the peer has no room for': (channel) => {
    const sent = flood(channel);
    return { shown: async () => ((await sent) as unknown[]).length, is: 300 };
  },
  'memory that it has exposed': (channel) => {
    const memory = allocate(64);
    void exposeTo(channel, memory);
    return { shown: () => until(() => memory[0] === 7), is: undefined };
  },
  'remote memory': (channel) => {
    const remote = openOf(channel);
    return { shown: async () => (await (await remote).read(0, 1))[0], is: 9 };
  },
};

for (const [n, [what, begin]] of Object.entries(kept).entries()) {
  firstIf(n % 3 === 0, test)(`${what} keeps a channel`, async () => {
    let goOn = (): void => {};
    const later = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const peers: Channel[] = [];
    const port = await listening((channel) => {
      peers.push(channel);
      const memory = allocate(1).fill(9);
      channel.onRequest(async (bytes) => {
        if (String(bytes) === 'your memory') return (await channel.expose(memory)).handle;
        await later;
        return bytes;
      });
      void (async () => {
        await later;
        for await (const message of channel) {
          if (message.length === 24) await channel.open(message).write(0, Buffer.of(7));
          if (String(message) === 'please') await channel.send('a message');
          if (String(message) === 'a question, please') void channel.request('a question').catch(() => {});
          if (String(message) === 'the end, please') await channel.close();
        }
      })().catch(() => {});
    });
    const { shown, is } = await (async () => begin(await connectChannel(port, '127.0.0.1')))();
    await collectALot();
    // Channels of earlier tests may only be collected now.
    assert.equal(
      warnings.filter(({ message }) => message.includes(`:${port} `)),
      [],
    );
    goOn();
    assert.equal(await shown(), is);
  });
}

test('a channel that was closed causes no warning', async () => {
  const port = await listening((channel) => void channel.once('close', () => {}));
  await (async () => {
    await using channel = await connectChannel(port, '127.0.0.1');
    await channel.send('x');
  })();
  await collectALot();
  assert.equal(warnings, []);
});

test('an unreferenced channel with waiting long messages is collected, and its budget is released', async () => {
  const server = createChannelServer({ maxBufferedBytes: 2 ** 20 });
  servers.push(server);
  server.on('channel', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = server.address()!.port;
  const bytes = allocate(2 ** 20);
  for (let round = 0; round < 2; round += 1) {
    const client = await connectChannel(port, '127.0.0.1');
    const sends = Array.from({ length: 4 }, () => client.send(bytes).catch(() => 'lost'));
    await sends[0];
    await collectUntil(() => client.destroyed);
    await Promise.all(sends);
  }
  server.removeAllListeners('channel');
  const accepted = once(server, 'channel') as Promise<[Channel]>;
  server.on('channel', () => {});
  const client = await connectChannel(port, '127.0.0.1');
  const [channel] = await accepted;
  const sends = Array.from({ length: 4 }, () => client.send(bytes));
  for (let n = 0; n < 4; n += 1) assert.is((await channel.receive())!.length, 2 ** 20);
  await Promise.all(sends);
  await client.close();
});

test.run();
