/** Our own provider keeps the rules over the wire between two hosts, played by network namespaces with a cable. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { needing } from '../helpers/needs.js';
import { TwoHosts } from '../helpers/peer/hosts.js';
import { command } from './command.js';
import { passesAll } from './passes-all.js';

const test = needing(suite<{ hosts: TwoHosts }>('conformance of two hosts'), 'namespaces');

test.before(async (context) => {
  context.hosts = await TwoHosts.start();
});
test.after(({ hosts }) => hosts.end());

test('SPI v2, each half on a host of its own', async ({ hosts: { hosts } }) => {
  const [a, b] = hosts;
  const [file = '', ...args] = [...a.by, process.execPath, command, 'conformance', '--serve'];
  const server = spawn(file, [...args, '--spi', 'v2', '--address', a.address, '--port', '0'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(server, 'close');
  try {
    const [line] = (await once(createInterface({ input: server.stderr }), 'line')) as [string];
    const port = /port (\d+)$/.exec(line)?.[1];
    assert.ok(port !== undefined, line);
    await passesAll('v2', { by: b.by }, '--address', b.address, '--peer', `${a.address}:${port}`);
  } finally {
    server.kill();
    await ended;
  }
});

test.run();
