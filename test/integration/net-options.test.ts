/** `networkdirect/net`: misplaced options, exhausted file descriptors, and idle connections of a server. */
import { once } from 'node:events';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { defaultOptions } from '../../kernel-bridge/schema/generated/options.js';
import { adapterOptionNames } from '../../nd/net/base/option-places.js';
import { connect, connectChannel, createChannelServer, createServer } from '../../nd/net/index.js';
import { runLimited } from '../helpers/limited.js';
import { channels, endAll, rejection, sockets } from '../helpers/net-pair.js';

test.after.each(endAll);

/** The error that a call throws or rejects with. */
const errorOf = (call: () => unknown): Promise<Error & { code?: string }> =>
  rejection((async () => call())());

test('an option of another call is rejected, and the error names the call that accepts it', async () => {
  const loose = (options: object): never => options as never;
  for (const [call, option, place] of [
    [() => connect(loose({ port: 1, backlog: 3 })), 'backlog', /listen\(\)/],
    [() => connect(loose({ port: 1, keepAliveMs: 3 })), 'keepAliveMs', /ND_OPTIONS/],
    [() => connect(loose({ port: 1, maxRequests: 3 })), 'maxRequests', /connectChannel\(\)/],
    [() => connectChannel(loose({ port: 1, onread: {} })), 'onread', /connect\(\)/],
    [() => connectChannel(1, 'localhost', loose({ direct: false })), 'direct', /ND_OPTIONS/],
    [() => createServer(loose({ backlog: 3 })), 'backlog', /listen\(\)/],
    [() => createServer(loose({ maxConnections: 3 })), 'maxConnections', /server\.maxConnections/],
    [() => createServer(loose({ slotBytes: 64 })), 'slotBytes', /createServer\(\{ socket \}\)/],
    [() => createServer({ socket: loose({ host: '::1' }) }), 'host', /listen\(\)/],
    [() => createChannelServer({ channel: loose({ ringBytes: 0 }) }), 'ringBytes', /connect\(\)/],
    [() => createServer().listen(loose({ maxConnections: 3 })), 'maxConnections', /server\.maxConnections/],
  ] as const) {
    const error = await errorOf(call);
    assert.equal([error.name, error.code], ['TypeError', 'ERR_INVALID_ARG_VALUE'], option);
    assert.match(
      error.message,
      new RegExp(`^\`${option}\` must be given to .*; got it among the options of `),
    );
    assert.match(error.message, place);
  }
  const unknown = await errorOf(() => connect(loose({ port: 1, hots: 'localhost' })));
  assert.match(unknown.message, /^`options` of connect\(\) must contain only port, host, .*; got 'hots'\.$/);
});

test('the options of the adapter are those in the schema', () => {
  assert.equal([...adapterOptionNames].sort(), Object.keys(defaultOptions).sort());
});

const own = JSON.stringify(new URL('../../nd/net/index.js', import.meta.url));

test('invalid options of the adapter are EINVAL with one line, also in all causes', () => {
  const source = `
    import { inspect } from 'node:util';
    const { createServer } = await import(${own});
    const server = createServer(() => {});
    server.on('error', (error) => {
      const messages = [];
      for (let one = error; one !== undefined; one = one.cause) messages.push(one.name, one.message);
      console.log(JSON.stringify({ code: error.code, messages }));
    });
    server.listen(0, '127.0.0.1');`;
  const run = runLimited(`export ND_OPTIONS='{"keepAliveMs":"a","nope":1}'`, source);
  const { code, messages } = JSON.parse(run.stdout) as { code: string; messages: string[] };
  assert.is(code, 'EINVAL');
  assert.ok(
    messages.some((message) =>
      /`keepAliveMs` must be .*; got 'a'\..* must contain only .*; got 'nope'/.test(message),
    ),
  );
  assert.not.ok(messages.includes('ZodError'));
  for (const message of messages) assert.not.match(message, /\n/);
});

/**
 * Returns the errors of a program with few file descriptors. It leaves `left` of them free, then runs the code, which reports errors with
 * `tell`.
 */
function without(left: number, before: string, code: string): { code: string; message: string } {
  const source = `
    import { closeSync, openSync } from 'node:fs';
    import { once } from 'node:events';
    const { connectChannel, createChannelServer, createServer } = await import(${own});
    const tell = ({ code, message }) => {
      console.log(JSON.stringify({ code, message }));
      process.exit();
    };
    ${before}
    const taken = [];
    try { for (;;) taken.push(openSync('/dev/null')); } catch {}
    for (let n = 0; n < ${left}; n += 1) closeSync(taken.pop());
    ${code}`;
  const { stdout, stderr } = runLimited('ulimit -n 128', source);
  assert.ok(stdout.startsWith('{'), stdout + stderr);
  return JSON.parse(stdout);
}

const LISTEN = "createServer(() => {}).on('error', tell).listen(0, '127.0.0.1');";
const STARTED = `await once(createChannelServer(() => {}).listen(0, '127.0.0.1'), 'listening');`;

if (process.platform === 'linux')
  for (const [name, left, before, code] of [
    ['the addon', 0, '', LISTEN],
    ["the kernel's thread", 4, '', LISTEN],
    ['the HCA', 12, '', LISTEN],
    ['another listener', 0, STARTED, LISTEN],
    ['a connection', 0, STARTED, "connectChannel(7, '127.0.0.1').catch(tell);"],
  ] as const)
    test(`no file descriptors for ${name}: EMFILE at once, with a cure`, () => {
      const error = without(left, before, code);
      assert.is(error.code, 'EMFILE');
      assert.match(error.message, /file descriptor.*close some, or raise/);
    });

if (process.platform === 'linux')
  test('a refused connection is reported as such even if few file descriptors are left', () => {
    const { code } = without(6, STARTED, "connectChannel(7, '127.0.0.1').catch(tell);");
    assert.is(code, 'ECONNREFUSED');
  });

test('closeIdleConnections of channels: those with a request or an unread message stay open', async () => {
  const [client, accepted, server] = await channels();
  let answer = (_: string): void => {};
  accepted.onRequest(() => new Promise((resolve) => (answer = resolve)));
  const asked = client.request('?');
  while (accepted.idle) await new Promise(setImmediate);
  server.closeIdleConnections();
  answer('!');
  assert.is(String(await asked), '!');
  await client.send('unread');
  while (accepted.idle) await new Promise(setImmediate);
  server.closeIdleConnections();
  assert.is(String(await accepted.receive()), 'unread');
  const gone = once(client, 'close');
  server.closeIdleConnections();
  assert.equal(await gone, [false]);
  assert.is(client.error, undefined);
});

test('closeIdleConnections of sockets: one with unread bytes stays open, the others end normally', async () => {
  const [client, accepted, server] = await sockets();
  client.write('unread');
  await once(accepted, 'readable');
  server.closeIdleConnections();
  assert.is(String(accepted.read()), 'unread');
  assert.ok(accepted.writable);
  server.closeIdleConnections();
  const ended = once(client, 'end');
  client.resume();
  await ended;
});

test.run();
