/** What programs for `node:net` rely on: each case runs over `node:net` and over `networkdirect/net`. */
import { once } from 'node:events';
import nodeNet from 'node:net';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { connect, createServer } from '../../nd/net/index.js';

const HOST = '127.0.0.1';

/** What both have. */
type Socket = nodeNet.Socket;
type Server = nodeNet.Server;
interface Net {
  createServer(handler: (socket: Socket) => void): Server;
  connect(port: number, host: string): Socket;
  /** A server that leaves its sockets open for writing. */
  createHalfOpen(handler: (socket: Socket) => void): Server;
}

const layers: Readonly<Record<string, Net>> = {
  'node:net': {
    createServer: (handler) => nodeNet.createServer(handler),
    connect: (port, host) => nodeNet.connect(port, host),
    createHalfOpen: (handler) => nodeNet.createServer({ allowHalfOpen: true }, handler),
  },
  // The types differ in what programs of this kind do not use.
  'networkdirect/net': {
    createServer: (handler) => createServer(handler as never) as unknown as Server,
    connect: (port, host) => connect(port, host) as unknown as Socket,
    createHalfOpen: (handler) =>
      createServer({ socket: { allowHalfOpen: true } }, handler as never) as unknown as Server,
  },
};

async function listening(server: Server): Promise<number> {
  server.listen(0, HOST);
  await once(server, 'listening');
  return (server.address() as nodeNet.AddressInfo).port;
}

async function closed(server: Server): Promise<void> {
  await new Promise<void>((resolve) => server.close(() => resolve()));
}

async function textOf(socket: Socket): Promise<string> {
  let text = '';
  for await (const bytes of socket) text += bytes;
  return text;
}

const cases: Readonly<Record<string, (net: Net) => Promise<void>>> = {
  'what is written before the connection is made arrives first': async (net) => {
    const received = new Promise<string>((resolve) => {
      const server = net.createServer((socket) => {
        textOf(socket).then(resolve);
        server.close();
      });
      void listening(server).then((port) => {
        const client = net.connect(port, HOST);
        client.write('before, ');
        client.once('connect', () => client.write('after, ', () => client.end('last')));
      });
    });
    assert.is(await received, 'before, after, last');
  },

  'end before the connection is made sends what was given': async (net) => {
    const server = net.createServer((socket) => socket.pipe(socket));
    const client = net.connect(await listening(server), HOST).end('all');
    assert.is(await textOf(client), 'all');
    await closed(server);
  },

  'a socket that is destroyed at once does not connect, and closes once': async (net) => {
    const server = net.createServer(() => {});
    const client = net.connect(await listening(server), HOST);
    const events: string[] = [];
    client.on('connect', () => events.push('connect')).on('error', () => events.push('error'));
    client.on('close', (had) => events.push(`close ${had}`));
    client.destroy();
    client.destroy();
    await once(client, 'close');
    await closed(server);
    assert.equal(events, ['close false']);
  },

  'events of a connection come in their order': async (net) => {
    const server = net.createServer((socket) => socket.resume().end());
    const client = net.connect(await listening(server), HOST);
    const events: string[] = [];
    for (const name of ['lookup', 'connect', 'ready', 'end', 'finish', 'close'])
      client.on(name, () => name !== 'lookup' && events.push(name));
    client.resume();
    await once(client, 'close');
    await closed(server);
    assert.equal(events.slice(0, 3), ['connect', 'ready', 'end']);
    assert.is(events.at(-1), 'close');
  },

  'bytes are counted on both sides': async (net) => {
    const counts: number[] = [];
    const server = net.createServer((socket) => {
      socket.resume().on('end', () => {
        counts.push(socket.bytesRead);
        socket.end('four');
      });
    });
    const halfOpen = net.createHalfOpen((socket) => {
      socket.resume().on('end', () => {
        counts.push(socket.bytesRead);
        socket.end('four');
      });
    });
    await closed(server.listen(0, HOST));
    const client = net.connect(await listening(halfOpen), HOST);
    client.end(Buffer.alloc(100_000));
    assert.is(await textOf(client), 'four');
    await closed(halfOpen);
    assert.equal(counts, [100_000]);
    assert.equal([client.bytesWritten, client.bytesRead], [100_000, 4]);
  },

  'a paused socket keeps what comes until it is resumed': async (net) => {
    const server = net.createServer((socket) => socket.end('kept'));
    const client = net.connect(await listening(server), HOST);
    client.pause();
    let text = '';
    client.on('data', (bytes) => (text += bytes));
    await once(client, 'connect');
    client.pause();
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    assert.is(text, '');
    client.resume();
    await once(client, 'end');
    assert.is(text, 'kept');
    await closed(server);
  },

  'characters are not broken between chunks': async (net) => {
    const text = 'ä€𝄞'.repeat(50_000);
    const server = net.createServer((socket) => socket.end(text));
    const client = net.connect(await listening(server), HOST).setEncoding('utf8');
    assert.is(await textOf(client), text);
    await closed(server);
  },

  'a server closes after its connections, and tells so once': async (net) => {
    let open: Socket | undefined;
    const server = net.createServer((socket) => (open = socket.resume()));
    const client = net.connect(await listening(server), HOST).resume();
    await once(client, 'connect');
    while (open === undefined) await new Promise((resolve) => setImmediate(resolve));
    let count = 0;
    server.on('close', () => (count += 1));
    const ending = closed(server);
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    assert.is(count, 0);
    assert.is(server.listening, false);
    client.end();
    await ending;
    assert.is(count, 1);
  },

  'listen twice, and close of what does not listen, are errors with codes': async (net) => {
    const server = net.createServer(() => {});
    const error = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => server.close(resolve));
    assert.is(error?.code, 'ERR_SERVER_NOT_RUNNING');
    await listening(server);
    assert.throws(
      () => server.listen(0, HOST),
      ({ code }: NodeJS.ErrnoException) => code === 'ERR_SERVER_ALREADY_LISTEN',
    );
    await closed(server);
  },

  'a port that is none is thrown at once': async (net) => {
    for (const port of [-1, 65_536, 1.5])
      assert.throws(
        () => net.connect(port, HOST),
        (error: NodeJS.ErrnoException) => error instanceof RangeError && error.code === 'ERR_SOCKET_BAD_PORT',
      );
  },

  'a write behind the end is an error of the writer': async (net) => {
    const server = net.createServer((socket) => socket.resume());
    const client = net.connect(await listening(server), HOST).resume();
    await once(client, 'connect');
    client.end();
    const failed = once(client, 'error');
    client.write('too late');
    const [error] = (await failed) as [NodeJS.ErrnoException];
    assert.is(error.code, 'ERR_STREAM_WRITE_AFTER_END');
    await closed(server);
  },

  'a socket that has closed can be asked everything': async (net) => {
    const server = net.createServer((socket) => socket.end());
    const client = net.connect(await listening(server), HOST).resume();
    await once(client, 'close');
    await closed(server);
    assert.equal(
      [client.remoteAddress, client.remotePort, client.readyState],
      [undefined, undefined, 'closed'],
    );
    assert.equal([client.destroyed, client.connecting, client.pending], [true, false, true]);
    client.setTimeout(10);
    client.end();
    client.destroy();
  },
};

for (const [name, run] of Object.entries(cases))
  for (const [layer, net] of Object.entries(layers)) test(`${name}: ${layer}`, () => run(net));

test.run();
