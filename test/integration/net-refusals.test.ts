/** `networkdirect/net`: what a program does wrong is told to it, with the codes that Node.js has. */
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { allocate, connect, connectChannel, createChannelServer, createServer } from '../../nd/net/index.js';
import { channels, endAll, listening, rejection } from '../helpers/net-pair.js';

test.after.each(endAll);

test('ranges of remote memory: zero bytes within them are none, and what is outside is ERR_OUT_OF_RANGE', async () => {
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
  for (const zeros of [0, 3, 24]) assert.throws(() => client.open(new Uint8Array(zeros)), /no handle/);
});

test('what a handler of requests must not answer fails the request, and warns the program that has it', async () => {
  const [client, server] = await channels();
  server.onRequest((bytes) => (String(bytes) === 'ok' ? 'fine' : ({ answer: 42 } as never)));
  const warned = once(process, 'warning');
  const first = await rejection(client.request('?'));
  assert.is(first.code, 'ERR_REMOTE');
  const [warning] = (await warned) as [Error];
  assert.is(warning.name, 'NetworkDirectWarning');
  assert.match(warning.message, /handler of requests .*Uint8Array or a string, not object/);
  assert.is(String(await client.request('ok')), 'fine');
});

test('what does not connect is told in plain words, and the SPI has its say in the cause', async () => {
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
    (await meet()).destroy();
    // Several that come at once are counted, too.
    while (server.connections > 0) await new Promise((resolve) => setImmediate(resolve));
    const results = await Promise.allSettled([meet(), meet(), meet()]);
    assert.is(results.filter(({ status }) => status === 'fulfilled').length, 1);
    for (const result of results) if (result.status === 'fulfilled') result.value.destroy();
  });
}

test.run();
