/**
 * Peers of `networkdirect/net` that request connections and do not complete them: strangers, and honest clients that abandon them early.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { channel as diagnostics } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { encodeHello } from '../../nd/net/connection/frames.js';
import {
  connect,
  connectChannel,
  createChannelServer,
  createServer,
  type DroppedAddresses,
  type NetError,
  type Server,
  type Socket,
} from '../../nd/net/index.js';
import { runApart } from '../helpers/apart.js';
import type { CrowdOrder, CrowdReport } from '../helpers/crowd-program.js';
import { brief, type HalfOpenTiming, halfOpenReqs, hasty, streaming } from '../helpers/half-open.js';
import { endAll, listening } from '../helpers/net-pair.js';
import { RawPeer } from '../helpers/net-raw.js';
import { openToStrangers } from '../helpers/open-to-strangers.js';
import { programFile } from '../helpers/programs.js';
import { firstIf, long } from '../helpers/tiers.js';

const ADDRESS = '127.0.0.1';
/** Connections of a memory test, 32 at a time, each with 24 MiB of slots, so that garbage is collected several times. */
const ENDED = 192;
const LARGE_SLOTS = { slots: 16, slotBytes: 2 ** 19 };
const program = (name: string): string => programFile(new URL(`../helpers/${name}.js`, import.meta.url));

runApart(import.meta.url, define);

/** Sends requests of a stranger, each for a different connection. */
async function strange(
  port: number,
  kind: 'stream' | 'channel',
  count: number,
  timing?: HalfOpenTiming,
): Promise<void> {
  const { forger, packetOf } = await halfOpenReqs(ADDRESS, port, kind, timing);
  for (let n = 0; n < count; n += 1) await forger.sendPacket(packetOf(n));
  forger.close();
}

/** Waits for a number of connection failures reported by the server. */
async function clientErrors(server: Server, count: number): Promise<void> {
  while (server.clientErrors < count) await once(server, 'clientError');
}

function define(): void {
  const test = suite('half-open connections');
  const children = new Set<ChildProcess>();

  function start(name: string, ...args: string[]): ChildProcess {
    const child = fork(program(name), args);
    children.add(child);
    return child;
  }

  async function end(child: ChildProcess): Promise<void> {
    const exited = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined;
    child.kill('SIGKILL');
    await exited;
    children.delete(child);
  }

  /** A process of honest clients with an open adapter. */
  async function crowd(): Promise<ChildProcess> {
    const child = start('crowd-program');
    await once(child, 'message');
    return child;
  }

  async function order(child: ChildProcess, what: CrowdOrder): Promise<CrowdReport> {
    const report = once(child, 'message') as Promise<[CrowdReport]>;
    child.send(what);
    return (await report)[0];
  }

  test.before(() => openToStrangers());
  test.after.each(async () => {
    await Promise.all([...children].map(end));
    await endAll();
  });

  const servers: [string, 'stream' | 'channel', () => Server, (port: number) => Promise<void>][] = [
    [
      'stream',
      'stream',
      () => createServer((socket) => socket.pipe(socket)),
      async (port) => {
        const socket = connect(port, ADDRESS);
        socket.end('echo');
        assert.is(String((await socket.toArray())[0]), 'echo');
      },
    ],
    [
      'channel',
      'channel',
      () => createChannelServer((channel) => void channel.onRequest((bytes) => bytes)),
      async (port) => {
        const channel = await connectChannel(port, ADDRESS);
        assert.is(String(await channel.request('echo')), 'echo');
        await channel.close();
      },
    ],
    [
      'node:http',
      'stream',
      () => {
        const http = createHttpServer((_request, response) => response.end('echo'));
        return createServer((socket) => void http.emit('connection', socket));
      },
      async (port) => {
        const socket = connect(port, ADDRESS);
        socket.write('GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n');
        assert.match(Buffer.concat(await socket.toArray()).toString(), /200 OK[\s\S]*echo/);
      },
    ],
  ];

  for (const [name, kind, make, use] of servers) {
    test(`a ${name} server survives a request that is never completed, and no error listener is required`, async () => {
      const server = make();
      const port = await listening(server);
      await strange(port, kind, 1, hasty);
      await use(port);
      while (server.clientErrors === 0) await new Promise((resolve) => setImmediate(resolve));
      await use(port);
      assert.is(server.clientErrors, 1);
      assert.is(server.listening, true);
    });
  }

  test('such a failure is an event with its error and addresses, and is published', async () => {
    const server = createServer(() => assert.unreachable('no connection is expected'));
    const port = await listening(server);
    const published: Record<string, unknown>[] = [];
    const hear = (message: unknown): void => void published.push(message as Record<string, unknown>);
    const topic = diagnostics('networkdirect.net.clientError');
    topic.subscribe(hear);
    const failed = once(server, 'clientError') as Promise<[NetError, DroppedAddresses]>;
    await strange(port, 'stream', 1, hasty);
    const [error, addresses] = await failed;
    topic.unsubscribe(hear);
    assert.ok(error.code !== undefined, error.message);
    assert.match(error.message, /^accept: /);
    assert.equal(addresses, {
      localAddress: ADDRESS,
      localPort: port,
      localFamily: 'IPv4',
      remoteAddress: ADDRESS,
      remotePort: 1,
      remoteFamily: 'IPv4',
    });
    assert.equal(published, [{ server, error, ...addresses }]);
    assert.is(server.connections, 0);
  });

  test('closing a server ends half-open connections that are not completed', async () => {
    const server = createServer();
    server.on('connection', () => {});
    const port = await listening(server);
    using undecided = await RawPeer.connectHalfOpen(port, encodeHello(streaming));
    const closed = once(server, 'close');
    void server.close();
    await closed;
    // The client may be notified of the end before or after it completes the connection.
    const completed = await undecided.connector.completeConnect().then(
      () => true,
      () => false,
    );
    if (completed) await undecided.connector.notifyDisconnect();
    assert.is(server.clientErrors, 0, 'this end is the server’s own');
    // The port is free, so the same server can listen again.
    await listening(server);
  });

  test('a connection that is completed while its server closes belongs to the program', async () => {
    const server = createServer((socket) => void socket.resume());
    const port = await listening(server);
    using client = await RawPeer.connectHalfOpen(port, encodeHello(streaming));
    const connection = once(server, 'connection') as Promise<[Socket]>;
    const closed = once(server, 'close');
    void server.close();
    await client.connector.completeConnect();
    const [socket] = await connection;
    assert.is(server.connections, 1);
    socket.destroy();
    await closed;
    assert.is(server.clientErrors, 0);
  });

  test('closeAllConnections of a closing server leaves no connection in any state', async () => {
    for (let turns = 0; turns < 20; turns += 1) {
      const server = createServer((socket) => void socket.resume());
      const port = await listening(server);
      using client = await RawPeer.connectHalfOpen(port, encodeHello(streaming));
      await client.connector.completeConnect();
      for (let n = 0; n < turns; n += 1) await new Promise((resolve) => setImmediate(resolve));
      const closed = once(server, 'close');
      void server.close();
      server.closeAllConnections();
      await closed;
      assert.is(server.connections, 0);
    }
  });

  test('half-open connections do not count towards maxConnections', async () => {
    const server = createServer((socket) => socket.pipe(socket));
    server.maxConnections = 2;
    const port = await listening(server);
    using _first = await RawPeer.connectHalfOpen(port, encodeHello(streaming));
    using _second = await RawPeer.connectHalfOpen(port, encodeHello(streaming));
    const one = connect(port, ADDRESS);
    const two = connect(port, ADDRESS);
    await Promise.all([once(one, 'connect'), once(two, 'connect')]);
    const drop = once(server, 'drop');
    const three = connect(port, ADDRESS).on('error', () => {});
    await drop;
    assert.is(server.connections, 2);
    for (const socket of [one, two, three]) socket.destroy();
  });

  test('clients that destroy their sockets at once, and clients killed while connecting, end no other connections', async () => {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket
        .on('error', () => {})
        .on('close', () => sockets.delete(socket))
        .resume();
    });
    const port = await listening(server);
    const impatient = await crowd();
    const { failures } = await order(impatient, { what: 'hasty', count: 200, port });
    assert.equal(failures, []);
    for (let n = 0; n < 4; n += 1) {
      const victim = await crowd();
      const next = once(server, 'connection');
      victim.send({ what: 'endless', count: 0, port } satisfies CrowdOrder);
      await next;
      await end(victim);
    }
    const { failures: none } = await order(impatient, { what: 'streams', count: 1, port });
    assert.equal(none, []);
    assert.is(server.listening, true);
    for (const socket of sockets) await once(socket, 'close');
    assert.is(server.connections, 0);
  });

  for (const [what, endMany] of [
    [
      'half-open connections that have ended',
      async (server: Server, port: number) => {
        await strange(port, 'stream', ENDED, brief);
        await clientErrors(server, ENDED);
      },
    ],
    [
      'connections that have ended without a byte',
      async (_server: Server, port: number) => {
        const clients = await crowd();
        for (let n = 32; n <= ENDED; n += 32)
          assert.equal((await order(clients, { what: 'streams', count: 32, port })).failures, []);
      },
    ],
  ] as const) {
    firstIf(what.startsWith('half-open'), test)(
      `${what} leave no memory in a stream server, no matter when they are collected`,
      async () => {
        const server = createServer({ socket: LARGE_SLOTS }, (socket) => socket.resume());
        const port = await listening(server);
        const before = process.memoryUsage.rss();
        await endMany(server, port);
        const grown = process.memoryUsage.rss() - before;
        console.log(`${ENDED} ${what}: grew by ${(grown / 2 ** 20).toFixed()} MiB`);
        assert.ok(grown < 64 * 2 ** 20, `it grew by ${(grown / 2 ** 20).toFixed()} MiB`);
      },
    );
  }

  for (const kind of ['channel', 'stream'] as const) {
    long(
      test,
      `20,000 requests do not cost a ${kind} server memory for as many, and other sources can connect meanwhile`,
      async () => {
        const server =
          kind === 'stream' ? createServer((socket) => socket.resume()) : createChannelServer(() => {});
        const port = await listening(server);
        const what = kind === 'stream' ? 'streams' : 'channels';
        const honest = await crowd();
        assert.equal((await order(honest, { what, count: 1, port })).failures, []);
        const before = process.memoryUsage().rss;
        const flood = start('half-open-program', ADDRESS, String(port), kind, '20000');
        let sent = false;
        const [first] = await once(flood, 'message');
        assert.is(first, 'flooding');
        const over = once(flood, 'message').then(() => {
          sent = true;
        });
        // The server needs seconds to process a hoarder's last requests. Each of these connections is established in the meantime.
        const times: number[] = [];
        do {
          const report = await order(honest, { what, count: 1, port });
          assert.equal(report.failures, []);
          times.push(...report.times);
        } while (!sent || times.length < 5);
        await over;
        await clientErrors(server, 32);
        const grown = process.memoryUsage().rss - before;
        assert.ok(grown < 120 * 2 ** 20, `it grew by ${(grown / 2 ** 20).toFixed()} MiB`);
        assert.ok(server.clientErrors < 20_000);
        console.log(
          `${kind}: grew by ${(grown / 2 ** 20).toFixed()} MiB; honest connections of ${times.map((ms) => ms.toFixed()).join(', ')} ms`,
        );
      },
    );
  }

  long(test, '1,000 connections at once from 20 processes are all established', async () => {
    const server = createChannelServer(() => {});
    const port = await listening(server);
    const crowds: ChildProcess[] = [];
    for (let n = 0; n < 20; n += 1) crowds.push(await crowd());
    const reports = await Promise.all(
      crowds.map((child) => order(child, { what: 'channels', count: 50, port })),
    );
    assert.equal(
      reports.flatMap(({ failures }) => failures),
      [],
    );
    assert.is(reports.flatMap(({ times }) => times).length, 1000);
    assert.is(server.clientErrors, 0);
  });

  test.run();
}
