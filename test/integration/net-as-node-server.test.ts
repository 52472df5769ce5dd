/** Behavior of servers and errors that programs for `node:net` rely on. Each case runs with `node:net` and with `networkdirect/net`. */
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  closed,
  connected,
  HOST,
  listening,
  type Socket,
  testEach,
  textOf,
  turn,
} from '../helpers/net-layers.js';

/** A port in a form that only JavaScript programs can pass. */
const untyped = (port: unknown): number => port as number;

/** The visible parts of an error. */
type Failure = NodeJS.ErrnoException & { address?: string; port?: number };

testEach({
  'a server closes after its connections, and emits that once': async (net) => {
    let open: Socket | undefined;
    const server = net.createServer((socket) => (open = socket.resume()));
    const client = net.connect(await listening(server), HOST).resume();
    await once(client, 'connect');
    while (open === undefined) await turn();
    let count = 0;
    server.on('close', () => (count += 1));
    const ending = closed(server);
    for (let n = 0; n < 20; n += 1) await turn();
    assert.is(count, 0);
    assert.is(server.listening, false);
    client.end();
    await ending;
    assert.is(count, 1);
  },

  'listen twice, and close without listen, are errors with codes': async (net) => {
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

  'an exception in a listener is uncaught, and the connection continues': async (net) => {
    const thrown: string[] = [];
    const take = ({ message }: Error): void => void thrown.push(message);
    process.on('uncaughtException', take);
    try {
      const errors: Error[] = [];
      const server = net.createServer((socket) => {
        socket.on('error', (error) => errors.push(error));
        socket.pipe(socket);
        throw new Error('connection');
      });
      const client = net.connect(await listening(server), HOST);
      client.on('error', (error) => errors.push(error));
      client.once('data', () => {
        throw new Error('data');
      });
      client.write('a');
      while (thrown.length < 2) await turn();
      assert.equal(thrown, ['connection', 'data']);
      const coming = once(client, 'data');
      client.write('b');
      assert.is(String((await coming)[0]), 'b');
      client.end();
      await closed(server);
      assert.equal(errors, []);
    } finally {
      process.off('uncaughtException', take);
    }
  },

  'a backlog may precede the callback, and an empty host is the default': async (net) => {
    const forms: unknown[][] = [[0, HOST, 5], [0, 5], [0, HOST], [0, ''], [0, null], [0]];
    for (const form of forms) {
      const server = net.createServer((socket) => socket.end());
      await new Promise<void>((resolve) => (server.listen as (...all: unknown[]) => void)(...form, resolve));
      const { port } = server.address() as { port: number };
      const client = net.connect(port, form[1] === HOST ? HOST : '').resume();
      await once(client, 'end');
      await closed(server);
    }
  },

  'an invalid port throws at once': async (net) => {
    const refused = (error: NodeJS.ErrnoException): boolean =>
      error instanceof RangeError && error.code === 'ERR_SOCKET_BAD_PORT';
    for (const port of [-1, 65_536, 1.5, '65536'])
      assert.throws(() => net.connect(untyped(port), HOST), refused, String(port));
    const server = net.createServer(() => {});
    for (const port of [-1, 65_536, 1.5, '65536'])
      assert.throws(() => server.listen(untyped(port), HOST), refused, String(port));
    assert.is(server.listening, false);
  },

  'ports may be text, as in environment variables': async (net) => {
    const server = net.createServer((socket) => socket.end());
    server.listen(untyped('0'), HOST);
    await once(server, 'listening');
    const { address, port } = server.address() as { address: string; port: number };
    assert.is(address, HOST);
    const client = net.connect(untyped(String(port)), HOST).resume();
    await once(client, 'end');
    client.end();
    await closed(server);
  },

  'listen accepts a function alone, and after omitted arguments': async (net) => {
    const alone = net.createServer(() => {});
    await new Promise<void>((resolve) => alone.listen(resolve));
    assert.is(alone.listening, true);
    const other = net.createServer(() => {});
    await new Promise<void>((resolve) => other.listen(untyped(null), HOST, resolve));
    assert.is((other.address() as { address: string }).address, HOST);
    await Promise.all([closed(alone), closed(other)]);
  },

  'the addresses of both sides match': async (net) => {
    const [client, other, server] = await connected(net);
    assert.equal(client.address(), { address: HOST, family: 'IPv4', port: client.localPort });
    assert.equal([client.localFamily, client.remoteFamily], ['IPv4', 'IPv4']);
    assert.equal(
      [client.remoteAddress, client.remotePort, client.localPort],
      [other.localAddress, other.localPort, other.remotePort],
    );
    assert.equal(server.address(), { address: HOST, family: 'IPv4', port: client.remotePort });
    client.destroy();
    other.resume();
    await closed(server);
    assert.equal(client.address(), {});
  },

  'a server has an address while it listens': async (net) => {
    const server = net.createServer(() => {});
    assert.equal([server.address(), server.listening], [null, false]);
    await listening(server);
    assert.is(server.listening, true);
    server.close();
    assert.equal([server.address(), server.listening], [null, false]);
    await once(server, 'close');
  },

  'getConnections counts open connections, and calls back later': async (net) => {
    const [client, other, server] = await connected(net);
    const count = (): Promise<number> =>
      new Promise((resolve, reject) => {
        let at = 'at once';
        server.getConnections((error, open) =>
          error === null && at === 'later' ? resolve(open) : reject(at),
        );
        at = 'later';
      });
    assert.is(await count(), 1);
    client.end();
    await once(other.resume(), 'close');
    assert.is(await count(), 0);
    await closed(server);
  },

  'a server that was closed listens again': async (net) => {
    const server = net.createServer((socket) => socket.end('again'));
    await listening(server);
    await closed(server);
    const port = await listening(server);
    assert.is(await textOf(net.connect(port, HOST)), 'again');
    await closed(server);
  },

  'a second close reports that the server is not running': async (net) => {
    const server = net.createServer(() => {});
    await listening(server);
    const ends: unknown[] = [];
    server.close((error) => ends.push(error));
    server.close((error) => ends.push((error as NodeJS.ErrnoException | undefined)?.code));
    while (ends.length < 2) await turn();
    assert.equal(new Set(ends), new Set([undefined, 'ERR_SERVER_NOT_RUNNING']));
  },

  'a port in use is an error of listen, and the server tries again': async (net) => {
    const first = net.createServer(() => {});
    const port = await listening(first);
    const second = net.createServer((socket) => socket.end('second'));
    second.listen(port, HOST);
    const [error] = (await once(second, 'error')) as [Failure];
    assert.equal(
      [error.code, error.syscall, error.address, error.port],
      ['EADDRINUSE', 'listen', HOST, port],
    );
    assert.is(second.listening, false);
    await closed(first);
    second.listen(port, HOST);
    await once(second, 'listening');
    assert.is(await textOf(net.connect(port, HOST)), 'second');
    await closed(second);
  },

  'no listener: an error with code, call and address, then close': async (net) => {
    const server = net.createServer(() => {});
    const port = await listening(server);
    await closed(server);
    const client = net.connect(port, HOST);
    const closing = new Promise((resolve) => client.once('close', resolve));
    const [error] = (await once(client, 'error')) as [Failure];
    assert.equal(
      [error.code, error.syscall, error.address, error.port],
      ['ECONNREFUSED', 'connect', HOST, port],
    );
    assert.is(await closing, true);
  },

  'a name without an address': async (net) => {
    const client = net.connect(7, 'no-such-name.invalid');
    const [error] = (await once(client, 'error')) as [NodeJS.ErrnoException];
    // The second code is that of hosts without a name server.
    assert.ok(['ENOTFOUND', 'EAI_AGAIN'].includes(error.code!), error.code);
  },

  'a server may pause accepted connections': async (net) => {
    const [client, other, server] = await connected(net, { pauseOnConnect: true });
    client.end('kept');
    let text = '';
    other.on('data', (bytes) => (text += bytes));
    for (let n = 0; n < 20; n += 1) await turn();
    assert.equal([text, other.isPaused()], ['', true]);
    other.resume();
    await once(other, 'end');
    assert.is(text, 'kept');
    await closed(server);
  },

  'many clients at once, each with its own reply': async (net) => {
    const server = net.createServer((socket) => socket.pipe(socket));
    const port = await listening(server);
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, n) => textOf(net.connect(port, HOST).end(`client ${n}`))),
    );
    assert.equal(
      answers,
      answers.map((_, n) => `client ${n}`),
    );
    await closed(server);
  },
});

test.run();
