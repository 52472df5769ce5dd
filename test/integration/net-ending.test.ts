/** Ended connections of `networkdirect/net` leave nothing behind. */
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readCounters } from '../../kernel-bridge/index.js';
import { NdError, Status } from '../../nd/index.js';
import { LocalContext } from '../../nd/net/connection/local-context.js';
import {
  type Channel,
  connect,
  connectChannel,
  createChannelServer,
  type NetError,
  type Socket,
} from '../../nd/net/index.js';
import { QueuePair } from '../../nd/v2/queue-pair.js';
import { collect } from '../helpers/collect.js';
import { endAll, listening } from '../helpers/net-pair.js';
import { perTier } from '../helpers/tiers.js';

test.after.each(endAll);

/** Number of connections that are opened and ended. `NET_CONNECTIONS=10000` is the long run. */
const CONNECTIONS = Number(process.env.NET_CONNECTIONS ?? perTier(200, 600));
const AT_A_TIME = 20;

test('a handler may end its new connection; the server continues', async () => {
  const ends: readonly ((connection: Socket | Channel) => unknown)[] = [
    (connection) => connection.destroy(),
    (connection) => connection.destroy(new Error('turned away')),
    (connection) => ('end' in connection ? connection.end('bye') : connection.close()),
    (connection) => ('resetAndDestroy' in connection ? connection.resetAndDestroy() : connection.destroy()),
    () => {
      throw new Error('a mistake of the program');
    },
  ];
  let turn = 0;
  const uncaught: unknown[] = [];
  const catches = (error: unknown): void => void uncaught.push(error);
  process.on('uncaughtException', catches);
  const handle = (connection: Socket | Channel): void => {
    connection.on('error', () => {});
    ends[turn]!(connection);
  };
  const server = createChannelServer(handle).on('connection', handle);
  const port = await listening(server);
  for (turn = 0; turn < ends.length; turn += 1) {
    const socket = connect(port, '127.0.0.1').resume();
    const codes: unknown[] = [];
    socket.on('error', ({ code }: { code?: string }) => codes.push(code));
    if (turn < ends.length - 1) {
      await new Promise((resolve) => socket.once('close', resolve));
      // As in node:net, the peer gets an end after end() and after destroy() without an error, and otherwise a reset.
      assert.equal(codes, turn === 1 || turn === 3 ? ['ECONNRESET'] : []);
      assert.is(socket.bytesRead, turn === 2 ? 3 : 0);
    } else {
      await once(socket, 'connect');
      socket.destroy();
    }
    const channel = await connectChannel(port, '127.0.0.1').catch(() => undefined);
    if (turn === ends.length - 1) await channel!.close();
    else await channel?.receive().catch(() => {});
  }
  while (server.connections > 0) await new Promise((resolve) => setImmediate(resolve));
  process.off('uncaughtException', catches);
  assert.equal(
    uncaught.map((error) => (error as Error).message),
    ['a mistake of the program', 'a mistake of the program'],
  );
});

test('the signal of a listen after a close takes effect even if the close ends later', async () => {
  const server = createChannelServer();
  await listening(server);
  const abort = new AbortController();
  const ended = once(server, 'close');
  void server.close();
  server.listen({ host: '127.0.0.1', signal: abort.signal });
  await Promise.all([ended, once(server, 'listening')]);
  const closed = once(server, 'close');
  abort.abort();
  await closed;
  assert.is(server.listening, false);
});

test('a Receive that the provider rejects ends its connection with an error, and no other', async () => {
  const failures: unknown[] = [];
  const server = createChannelServer().on('connection', (socket) =>
    socket.on('error', (error: NetError) => failures.push(error.code)).pipe(socket),
  );
  const port = await listening(server);
  const [socket, other] = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')];
  await Promise.all([once(socket, 'connect'), once(other, 'connect')]);
  const { receive } = QueuePair.prototype;
  QueuePair.prototype.receive = () => {
    throw new NdError(Status.INSUFFICIENT_RESOURCES, 'Receive: no place');
  };
  try {
    // The server's slot cannot be used for another Receive.
    socket.resume().write('x');
    const [error] = await once(socket, 'error');
    assert.is((error as NetError).code, 'ECONNRESET');
    assert.equal(failures, ['ENOBUFS']);
  } finally {
    QueuePair.prototype.receive = receive;
  }
  other.end('y');
  for await (const bytes of other) assert.is(String(bytes), 'y');
});

test('connections that end in different ways leave no objects and no memory', async () => {
  const server = createChannelServer((channel) => {
    channel.onRequest((bytes) => bytes);
  }).on('connection', (socket) => {
    socket.on('error', () => {});
    socket.pipe(socket);
  });
  const port = await listening(server);

  const ends = [
    async () => {
      const channel = await connectChannel(port, '127.0.0.1');
      await channel.request('x');
      await channel.close();
    },
    async () => {
      const channel = await connectChannel(port, '127.0.0.1');
      const closed = once(channel, 'close');
      await channel.send(Buffer.alloc(10_000));
      channel.destroy();
      await closed;
    },
    async () => {
      const socket = connect(port, '127.0.0.1', { slots: 2 });
      socket.end('x');
      for await (const bytes of socket) assert.is(String(bytes), 'x');
      if (!socket.closed) await once(socket, 'close');
    },
    async () => {
      const socket = connect(port, '127.0.0.1', { slots: 2 });
      socket.on('error', () => {});
      const closed = new Promise((resolve) => socket.once('close', resolve));
      socket.write('x', () => socket.destroy(new Error('enough')));
      await closed;
    },
  ];
  const rounds = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n += AT_A_TIME)
      await Promise.all(Array.from({ length: AT_A_TIME }, (_, k) => ends[(n + k) % ends.length]!()));
    // The server has ended its sides when it has no connections and no pending requests.
    while (server.connections > 0) await new Promise((resolve) => setImmediate(resolve));
  };

  await rounds(80);
  const before = await left();
  await rounds(CONNECTIONS);
  assert.equal(await left(), before);
});

/** Live objects, without memory kept for the next connections and without queue pairs, which end when both sides have. */
async function left(): Promise<Record<string, number>> {
  while (readCounters().objects.qp! > 0) await new Promise((resolve) => setImmediate(resolve));
  const context = LocalContext.at('127.0.0.1');
  context.linkMemory.empty();
  context.releaseRef();
  // The garbage collector frees a ring's memory. The last ones used are still reachable.
  while (readCounters().objects.ring! > AT_A_TIME) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { ...readCounters().objects, ring: 0 };
}

test.run();
