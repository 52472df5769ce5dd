/**
 * The control connection of the conformance suite: bad input ends only its own connection, and clients without the
 * token get no access.
 */
import { once } from 'node:events';
import { connect, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HANDSHAKE_BYTES } from '../../nd/conformance/handshake.js';
import { loadSubject, makeHalf, makeToken, remoteParty, serveHalf } from '../../nd/conformance/index.js';

const HOST = '127.0.0.1';
const HANDSHAKE_MS = 300;

interface Context {
  server: Server;
  port: number;
  token: string;
  /** Errors that the server has reported. */
  errors: string[];
  /** Number of halves created. */
  halves: number;
}

const test = suite<Context>('control connection');

test.before.each(async (context) => {
  const subject = await loadSubject('v1');
  const token = makeToken();
  Object.assign(context, { token, errors: [], halves: 0 });
  const served = await serveHalf({
    host: HOST,
    port: 0,
    token,
    half: (spi, stepTimeoutMs) => {
      context.halves += 1;
      return makeHalf(spi, subject.open(), HOST, stepTimeoutMs);
    },
    onError: (error) => context.errors.push(error instanceof Error ? error.message : String(error)),
    handshakeMs: HANDSHAKE_MS,
  });
  Object.assign(context, served);
});
test.after.each(({ server }) => {
  server.close();
});

const helloOf = (token: unknown, more: object = {}): string =>
  JSON.stringify({
    id: 1,
    method: 'hello',
    args: [{ protocol: 2, token, spi: 'v1', stepTimeoutMs: 1000, ...more }],
  });

/** Returns all lines of a connection until the server closes it. */
async function linesUntilClosed(socket: Socket): Promise<string> {
  let reported = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    reported += chunk;
  });
  socket.on('error', () => {}); // after the server has closed it, if it is still sending
  await once(socket, 'close');
  return reported;
}

async function answersOf(
  socket: Socket,
): Promise<(line: string) => Promise<{ error?: { message: string } }>> {
  const answers = createInterface({ input: socket });
  await once(socket, 'connect');
  return async (line) => {
    socket.write(`${line}\n`);
    const [answer] = (await once(answers, 'line')) as [string];
    return JSON.parse(answer) as { error?: { message: string } };
  };
}

test('a client without the token gets the reason and is disconnected; no half is created', async (context) => {
  const { port, token, errors } = context;
  const strangers = [
    'garbage',
    '{}',
    '[1]',
    'GET / HTTP/1.1',
    '{"id":1,"method":"info","args":[]}',
    helloOf(undefined),
    helloOf(''),
    helloOf(7),
    helloOf(token.slice(1)),
    helloOf(`${token} `),
    helloOf(token.toUpperCase().replace(/^./, 'x')),
    helloOf(makeToken()),
  ];
  for (const line of strangers) {
    const socket = connect(port, HOST);
    // Commands in the same packet must not be executed.
    socket.write(`${line}\n{"id":2,"method":"info","args":[]}\n`);
    assert.match(
      await linesUntilClosed(socket),
      /^{"id":0,"error":{"message":"The token is missing or wrong.*\n$/,
    );
  }
  assert.is(errors.length, strangers.length);
  assert.is(context.halves, 0);
  const wrong = { host: HOST, port, token: makeToken(), spi: 'v1', stepTimeoutMs: 1000 } as const;
  const { message } = await remoteParty(wrong).then(
    () => new Error('The other half accepted the wrong token.'),
    (error: Error) => error,
  );
  assert.match(message, 'The token is missing or wrong');
});

test('a first line that is too long or missing ends its connection', async (context) => {
  const { port, token } = context;
  const long = connect(port, HOST);
  long.write('x'.repeat(HANDSHAKE_BYTES + 1));
  assert.match(await linesUntilClosed(long), `must have at most ${HANDSHAKE_BYTES} bytes`);
  const padded = connect(port, HOST);
  padded.write(`${helloOf(token, { more: 'x'.repeat(HANDSHAKE_BYTES) })}\n`);
  assert.match(await linesUntilClosed(padded), `must have at most ${HANDSHAKE_BYTES} bytes`);

  const silent = connect(port, HOST);
  assert.match(await linesUntilClosed(silent), `The first line did not arrive within ${HANDSHAKE_MS} ms`);
  // Single bytes must not extend the time limit.
  const slow = connect(port, HOST);
  const dripping = setInterval(() => slow.write(' '), HANDSHAKE_MS / 10);
  assert.match(await linesUntilClosed(slow), `The first line did not arrive within ${HANDSHAKE_MS} ms`);
  clearInterval(dripping);
  assert.is(context.halves, 0);
});

test('garbage, unknown methods and wrong arguments are refused; the next client is served', async (context) => {
  const { port, token, errors } = context;
  const mismatch = connect(port, HOST);
  mismatch.write(`${helloOf(token, { protocol: 1 })}\n`);
  assert.match(await linesUntilClosed(mismatch), 'the same version on both sides');

  for (const garbage of [
    'garbage',
    '{}',
    '[1]',
    '{"id":1,"method":"constructor","args":[]}',
    helloOf(token),
  ]) {
    const socket = connect(port, HOST);
    socket.write(`${helloOf(token)}\n${garbage}\n`);
    assert.match(await linesUntilClosed(socket), 'Invalid command');
  }
  assert.is(errors.length, 6);

  const socket = connect(port, HOST);
  const ask = await answersOf(socket);
  const command = (method: string, ...args: unknown[]) => ask(JSON.stringify({ id: 1, method, args }));
  assert.ok((await ask(helloOf(token))).error === undefined);
  assert.ok((await command('cq', 'many')).error !== undefined);
  assert.ok((await command('inOneTurn', [['toString']])).error !== undefined);
  assert.match((await command('cqEntries', 77)).error!.message, 'Unknown completion queue 77');
  socket.destroy();

  await using remote = await remoteParty({ host: HOST, port, token, spi: 'v1', stepTimeoutMs: 1000 });
  await remote.party.begin();
  assert.is((await remote.party.info()).spi, 'v1');
  await remote.party.end();
});

test('it listens only on the given address', async ({ server, port }) => {
  assert.equal(server.address(), { address: HOST, family: 'IPv4', port });
  const elsewhere = connect(port, '127.0.0.2');
  const [error] = (await once(elsewhere, 'error')) as [NodeJS.ErrnoException];
  assert.is(error.code, 'ECONNREFUSED');
});

test.run();
