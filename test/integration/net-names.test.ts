/** `networkdirect/net`: servers that listen under a name, in this thread, in others, and in other processes. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  connect,
  connectChannel,
  createChannelServer,
  createServer,
  type Server,
} from '../../nd/net/index.js';
import { rejection } from '../helpers/net-pair.js';
import { programFile } from '../helpers/programs.js';

const program = programFile(new URL('../helpers/name-program.js', import.meta.url));
const servers = new Set<Server>();
const children = new Set<ChildProcess>();
const nameOf = (what: string): string => `test-${process.pid}.${what}`;

test.after.each(async () => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
  for (const server of servers) await server[Symbol.asyncDispose]();
  servers.clear();
});

async function listening(name: string, server: Server): Promise<Server> {
  servers.add(server);
  server.listen({ name });
  await once(server, 'listening');
  return server;
}

const echo = (): Server => createChannelServer((channel) => channel.onRequest((bytes) => bytes));

async function forked(name: string): Promise<ChildProcess> {
  const child = fork(program, [name]);
  children.add(child);
  assert.equal(await once(child, 'message'), ['listening', undefined]);
  return child;
}

if (process.platform !== 'linux') {
  test('names of listeners are ENOTSUP except on Linux', async () => {
    assert.is((await rejection(connectChannel({ name: 'x' }))).code, 'ENOTSUP');
  });
} else {
  test('channels and streams connect by name; a second server with the same name is EADDRINUSE until the first one closes', async () => {
    const name = nameOf('own');
    const first = await listening(name, echo());
    const channel = await connectChannel({ name });
    assert.is(String(await channel.request('hello')), 'hello');
    await channel.close();
    const second = echo();
    servers.add(second);
    const [error] = await once(second.listen({ name }), 'error');
    assert.is(error.code, 'EADDRINUSE');
    assert.match(error.message, new RegExp(`owns the name '${name}'; end it, or choose another`));
    await first.close();
    await listening(name, second);
    await second.close();
    const streams = createServer((socket) => socket.end('bye'));
    await listening(name, streams);
    const socket = connect({ name });
    assert.is(String((await once(socket, 'data'))[0]), 'bye');
    socket.destroy();
  });

  test('a name without a listener is ECONNREFUSED, and an invalid name is ERR_INVALID_ARG_VALUE', async () => {
    const error = await rejection(connectChannel({ name: nameOf('nobody') }));
    assert.is(error.code, 'ECONNREFUSED');
    assert.match(error.message, /no process of this user listens under the name/);
    const [failed] = await once(connect({ name: nameOf('nobody') }), 'error');
    assert.is(failed.code, 'ECONNREFUSED');
    for (const name of ['', 'a/b', 'a~b', 'a\0b', 'x'.repeat(49), 'ä', 5 as never]) {
      const wrong = await rejection(connectChannel({ name }));
      assert.is(wrong.code, 'ERR_INVALID_ARG_VALUE', String(name));
      assert.match(wrong.message, /^`name` must be 1 to 48 letters, digits, .*; got /);
      assert.throws(
        () => createServer().listen({ name }),
        (thrown: Error & { code?: string }) => thrown.code === 'ERR_INVALID_ARG_VALUE',
      );
    }
    await listening('x'.repeat(48), echo());
    for (const beside of [{ port: 1 }, { host: 'localhost' }]) {
      const call = /`name` of .* must be given without `port` and `host`/;
      assert.match((await rejection(connectChannel({ name: 'x', ...beside }))).message, call);
      assert.throws(() => connect({ name: 'x', ...beside }), call);
      assert.throws(() => createServer().listen({ name: 'x', ...beside }), call);
    }
  });

  test('a name that is a prefix of another one is distinct', async () => {
    await listening(nameOf('a'), echo());
    await listening(
      nameOf('ab'),
      createChannelServer((channel) => channel.onRequest(() => 'ab')),
    );
    const channel = await connectChannel({ name: nameOf('a') });
    assert.is(String(await channel.request('a')), 'a');
    await channel.close();
  });

  test('the name of a killed process is released at once', async () => {
    const name = nameOf('killed');
    const child = await forked(name);
    const channel = await connectChannel({ name });
    assert.is(String(await channel.request('?')), String(child.pid));
    const refused = echo();
    servers.add(refused);
    assert.is((await once(refused.listen({ name }), 'error'))[0].code, 'EADDRINUSE');
    child.kill('SIGKILL');
    await once(child, 'exit');
    assert.is((await rejection(connectChannel({ name }))).code, 'ECONNREFUSED');
    const next = await forked(name);
    const again = await connectChannel({ name });
    assert.is(String(await again.request('?')), String(next.pid));
    await again.close();
  });

  test('a thread owns a name on behalf of its process, and its termination releases the name', async () => {
    const name = nameOf('thread');
    const worker = new Worker(program, { workerData: name });
    assert.equal(await once(worker, 'message'), ['listening']);
    const channel = await connectChannel({ name });
    assert.is(String(await channel.request('?')), String(process.pid));
    const refused = echo();
    servers.add(refused);
    assert.is((await once(refused.listen({ name }), 'error'))[0].code, 'EADDRINUSE');
    await worker.terminate();
    assert.is((await rejection(connectChannel({ name }))).code, 'ECONNREFUSED');
    await listening(name, echo());
  });

  test('if many processes claim a name at once, exactly one gets it', async () => {
    const name = nameOf('many');
    const reported = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const child = fork(program, [name]);
        children.add(child);
        return (await once(child, 'message'))[0] as string;
      }),
    );
    assert.equal(reported.sort(), ['EADDRINUSE', 'EADDRINUSE', 'EADDRINUSE', 'listening']);
  });
}

test.run();
