/** The control connection of the conformance suite: bad input ends its connection, and no other. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { loadSubject, makeHalf, remoteParty, serveHalf } from './index.js';

const HOST = '127.0.0.1';

test('garbage, unknown methods and wrong arguments are refused; the next client is served', async () => {
  const subject = await loadSubject('v1');
  const errors: unknown[] = [];
  const { server, port } = await serveHalf({
    host: HOST,
    port: 0,
    half: (spi, patienceMs) => makeHalf(spi, subject.open(), HOST, patienceMs),
    onError: (error) => errors.push(error),
  });
  try {
    for (const garbage of ['garbage', '{}', '[1]', '{"id":1,"method":"constructor","args":[]}']) {
      const socket = connect(port, HOST);
      socket.write(`${garbage}\n`);
      socket.resume();
      await once(socket, 'close');
    }
    assert.is(errors.length, 4);

    const socket = connect(port, HOST);
    const answers = createInterface({ input: socket });
    const ask = async (method: string, ...args: unknown[]): Promise<{ error?: { message: string } }> => {
      socket.write(`${JSON.stringify({ id: 1, method, args })}\n`);
      const [line] = (await once(answers, 'line')) as [string];
      return JSON.parse(line) as { error?: { message: string } };
    };
    assert.match((await ask('info')).error!.message, 'Say hello first');
    assert.ok((await ask('hello', { protocol: 2, spi: 'v1', patienceMs: 100 })).error !== undefined);
    assert.ok((await ask('hello', { protocol: 1, spi: 'v1', patienceMs: 100 })).error === undefined);
    assert.ok((await ask('cq', 'many')).error !== undefined);
    assert.ok((await ask('inOneTurn', [['toString']])).error !== undefined);
    assert.match((await ask('cqEntries', 77)).error!.message, 'no completion queue 77');
    socket.destroy();

    await using remote = await remoteParty(HOST, port, 'v1', 1000);
    await remote.party.begin();
    assert.is((await remote.party.info()).spi, 'v1');
    await remote.party.end();
  } finally {
    server.close();
  }
});

test.run();
