/** `networkdirect/net`: errors of a program are reported with the codes of Node.js. */
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Frame, Header } from '../../nd/net/connection/frames.js';
import {
  allocate,
  type Channel,
  connect,
  connectChannel,
  createChannelServer,
  createServer,
  type NetError,
} from '../../nd/net/index.js';
import { channels, endAll, listening, rejection } from '../helpers/net-pair.js';
import { RawPeer } from '../helpers/net-raw.js';

test.after.each(endAll);

/** A frame with a payload. */
function frame(type: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.alloc(Header.BYTES + payload.length);
  bytes[Header.TYPE] = type;
  bytes.writeUInt32BE(payload.length, Header.LENGTH);
  bytes.set(payload, Header.BYTES);
  return bytes;
}

test('ranges of remote memory: zero bytes have no effect, and invalid ranges are ERR_OUT_OF_RANGE', async () => {
  const [client, server] = await channels();
  using exposed = await server.expose(allocate(64), { writable: true });
  const remote = client.open(exposed.handle);
  for (const offset of [0, 64]) {
    assert.is((await remote.read(offset, 0)).length, 0);
    await remote.write(offset, new Uint8Array(0));
  }
  for (const wrong of [
    () => remote.read(65, 0),
    () => remote.write(65, new Uint8Array(0)),
    () => remote.read(0, 65),
    () => remote.read(-1, 0),
    () => remote.read(Number.NaN, 1),
    () => remote.write(60, new Uint8Array(5)),
    () => remote.fetchAdd(60, 1n),
    () => remote.fetchAdd(4, 1n),
    () => remote.fetchAdd(0, 2n ** 63n),
  ]) {
    const error = await rejection(wrong());
    assert.equal([error.name, error.code], ['RangeError', 'ERR_OUT_OF_RANGE'], String(wrong));
  }
  for (const wrong of [
    () => remote.write(0, 'text' as never),
    () => remote.fetchAdd(0, 1 as never),
    () => remote.compareExchange(0, 0n, undefined as never),
  ]) {
    const error = await rejection(wrong());
    assert.equal([error.name, error.code], ['TypeError', 'ERR_INVALID_ARG_TYPE'], String(wrong));
  }
  for (const zeros of [0, 3, 24]) assert.throws(() => client.open(new Uint8Array(zeros)), /must be a handle/);
});

test('an invalid reply of a handler fails the request, and the handler’s program gets a warning', async () => {
  const [client, server] = await channels();
  server.onRequest((bytes) => (String(bytes) === 'ok' ? 'fine' : ({ answer: 42 } as never)));
  const warned = once(process, 'warning');
  const first = await rejection(client.request('?'));
  assert.is(first.code, 'ERR_REMOTE');
  const [warning] = (await warned) as [Error];
  assert.is(warning.name, 'NetworkDirectWarning');
  assert.match(warning.message, /answer of (?:a|its) handler .*Uint8Array or a string; got an object/);
  assert.is(String(await client.request('ok')), 'fine');
});

test('an invalid host is a TypeError, not localhost or all addresses', async () => {
  const wrong = { host: '192.0.2.1' } as never;
  const refused = (error: Error & { code?: string }): boolean =>
    error instanceof TypeError && error.code === 'ERR_INVALID_ARG_TYPE' && /host/.test(error.message);
  assert.throws(() => connect(7000, wrong), refused);
  assert.throws(() => connect({ port: 7000, host: 5 as never }), refused);
  assert.throws(() => createServer(() => {}).listen(0, wrong), refused);
  assert.throws(() => createServer(() => {}).listen({ host: 5 as never }), refused);
  assert.ok(refused(await rejection(connectChannel(7000, 5 as never))));
  assert.ok(refused(await rejection(connectChannel({ port: 7000, host: 5 as never }))));
});

test('the error for an address with an unknown scope names the scope', async () => {
  const error = await rejection(connectChannel(7000, 'fe80::1%nosuch'));
  assert.is(error.code, 'EADDRNOTAVAIL');
  assert.match(error.message, /no interface 'nosuch'/);
});

test('a failed connect has a plain message, and the error of the SPI as its cause', async () => {
  const server = createChannelServer(() => {});
  const port = await listening(server);
  await server.close();
  const error = await rejection(connectChannel(port, '127.0.0.1'));
  assert.is(error.code, 'ECONNREFUSED');
  assert.match(error.message, new RegExp(`^connect 127\\.0\\.0\\.1:${port}: [A-Z][a-z]`));
  assert.not.match(error.message, /EP_|Connect:/);
  assert.match((error.cause as Error).message, /Connect/);
});

for (const kind of ['streams', 'channels'] as const) {
  test(`${kind}: a server with maxConnections drops further ones, with their addresses, until one has ended`, async () => {
    const server = kind === 'streams' ? createServer(() => {}) : createChannelServer(() => {});
    Object.assign(server, { maxConnections: 1 });
    const port = await listening(server);
    const meet = async (): Promise<{ destroy(): unknown }> => {
      if (kind === 'channels') return connectChannel(port, '127.0.0.1');
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      return socket;
    };
    const first = await meet();
    const dropped = once(server, 'drop');
    assert.is((await rejection(meet())).code, 'ECONNREFUSED');
    const [data] = await dropped;
    const { remotePort, ...rest } = data;
    assert.ok(remotePort > 0);
    assert.equal(rest, {
      localAddress: '127.0.0.1',
      localPort: port,
      localFamily: 'IPv4',
      remoteAddress: '127.0.0.1',
      remoteFamily: 'IPv4',
    });
    first.destroy();
    while (server.connections > 0) await new Promise((resolve) => setImmediate(resolve));
    // A client may be notified of its connection before the server is.
    const entered = once(server, kind === 'streams' ? 'connection' : 'channel');
    const next = await meet();
    await entered;
    next.destroy();
    // Connections that arrive at the same time are also counted.
    while (server.connections > 0) await new Promise((resolve) => setImmediate(resolve));
    const results = await Promise.allSettled([meet(), meet(), meet()]);
    assert.is(results.filter(({ status }) => status === 'fulfilled').length, 1);
    for (const result of results) if (result.status === 'fulfilled') result.value.destroy();
  });
}

test('a message that exceeds the peer’s limit fails at its sender with both sizes, and the channel continues', async () => {
  const [client, server] = await channels(
    { maxMessageBytes: 50 },
    { maxMessageBytes: 100, onRequest: (b) => b },
  );
  for (const length of [101, 100_000]) {
    for (const call of [
      () => client.send(new Uint8Array(length)),
      () => client.request(new Uint8Array(length)),
    ]) {
      const error = await rejection(call());
      assert.is(error.code, 'EMSGSIZE');
      assert.match(
        error.message,
        new RegExp(`must have at most 100 bytes, .*maxMessageBytes; got ${length}`),
      );
    }
  }
  await client.send(new Uint8Array(100));
  assert.is((await server.receive())?.length, 100);
  assert.is((await client.request(new Uint8Array(50))).length, 50);
  const answer = await rejection(client.request(new Uint8Array(51)));
  assert.equal([answer.code, /at most 50 bytes, .*; got 51/.test(answer.message)], ['ERR_REMOTE', true]);
  assert.is((await rejection(server.send(new Uint8Array(51)))).code, 'EMSGSIZE');
  await client.close();
  assert.is(client.error, undefined);
});

test('a limit below 8 bytes does not affect replies to atomic operations', async () => {
  const [client, server] = await channels({ maxMessageBytes: 1 });
  using exposed = await server.expose(allocate(64), { writable: true });
  const remote = client.open(exposed.handle);
  await remote.fetchAdd(0, 5n);
  assert.is(await remote.fetchAdd(0, 1n), 5n);
});

test('a peer that sends a short message above the limit loses its connection', async () => {
  const server = createChannelServer({ channel: { maxMessageBytes: 10 } });
  const accepted = once(server, 'channel') as Promise<[Channel]>;
  const port = await listening(server);
  using peer = await RawPeer.connect(port);
  const [channel] = await accepted;
  peer.send(frame(Frame.DATA, Buffer.alloc(11)));
  const error = await rejection(channel.receive());
  assert.equal([error.code, /11 bytes/.test(error.message)], ['EPROTO', true]);
});

test('paths are not ports and messages are not events: the error names the alternative', async () => {
  const path = '/tmp/no.sock';
  for (const call of [
    () => connect(path as never),
    () => connect({ path } as never),
    () => createServer().listen(path as never),
  ])
    assert.throws(
      call,
      (error: NetError) =>
        error.code === 'ERR_SOCKET_BAD_PORT' &&
        /must be a number; got the path '.*listen\(\{ name \}\)/.test(error.message),
      String(call),
    );
  const [client, served] = await channels();
  for (const on of ['on', 'once', 'addListener', 'prependListener'] as const)
    assert.throws(() => client[on]('message', () => {}), /^Channels do not emit 'message'; .*receive/);
  assert.throws(() => served.on('request', () => {}), /onRequest/);
  assert.is(client.listenerCount('message'), 0);
});

test('invalid handlers, signals and options are rejected with the expected type', async () => {
  const [client, , server] = await channels();
  const { port } = server.address()!;
  for (const call of [
    () => client.onRequest(5 as never),
    () => createChannelServer({ channel: { onRequest: 'x' as never } }),
    () => connect({ port, signal: 5 as never }),
    () => createChannelServer().listen({ signal: 5 as never }),
    () => createServer(5 as never),
    () => client.send(5 as never),
  ])
    assert.throws(call, (error: NetError) => error.code === 'ERR_INVALID_ARG_TYPE', String(call));
  const signal = 5 as never;
  for (const call of [
    () => client.send('x', { signal }),
    () => client.request('x', { signal }),
    () => client.receive({ signal }),
    () => client.close({ signal }),
    () => connectChannel(port, '127.0.0.1', { signal }),
  ])
    assert.is((await rejection(call())).code, 'ERR_INVALID_ARG_TYPE', String(call));
  const misspelt = { slotBytez: 4096 } as object;
  for (const call of [
    () => connect({ port, ...misspelt }),
    () => createServer(misspelt),
    () => createServer({ socket: misspelt }),
    () => createChannelServer({ channel: misspelt }),
    () => createServer().listen(misspelt),
  ])
    assert.throws(
      call,
      (error: NetError) =>
        error.code === 'ERR_INVALID_ARG_VALUE' &&
        / must contain only .*; got 'slotBytez'/.test(error.message),
      String(call),
    );
  for (const call of [
    () => connectChannel(port, '127.0.0.1', misspelt),
    () => connectChannel({ port, ...misspelt }),
  ])
    assert.is((await rejection(call())).code, 'ERR_INVALID_ARG_VALUE');
  assert.throws(
    () => createChannelServer({ channel: { slots: 0 } }),
    (error: NetError) => error.code === 'ERR_OUT_OF_RANGE',
  );
  await client.close();
});

test('options of node:net are accepted, and timeout takes effect', async () => {
  const server = createServer({ noDelay: true, keepAlive: true, highWaterMark: 1024 }, (socket) =>
    socket.resume(),
  );
  const port = await listening(server);
  const socket = connect({
    ...{ port, host: '127.0.0.1', timeout: 10 },
    ...{
      noDelay: true,
      keepAlive: true,
      family: 4,
      lookup: () => {},
      autoSelectFamily: true,
      highWaterMark: 1,
    },
  });
  await once(socket, 'timeout');
  socket.destroy();
  await server[Symbol.asyncDispose]();
});

test.run();
