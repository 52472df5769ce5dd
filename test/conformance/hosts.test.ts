/** Our own provider obeys the rules over the wire between two hosts, simulated by network namespaces with a cable. */
import { once } from 'node:events';
import { suite } from 'uvu';
import { needing } from '../helpers/needs.js';
import { TwoHosts } from '../helpers/peer/hosts.js';
import { serving } from '../helpers/conformance-command.js';
import { passesAll } from '../helpers/conformance-passes.js';

const test = needing(suite<{ hosts: TwoHosts }>('conformance of two hosts'), 'namespaces');

test.before(async (context) => {
  context.hosts = await TwoHosts.start();
});
test.after(({ hosts }) => hosts.end());

test('SPI v2, each half on a host of its own', async ({ hosts: { hosts } }) => {
  const [a, b] = hosts;
  const { child, peer, token } = await serving(a, '--spi', 'v2', '--address', a.address, '--port', '0');
  const ended = once(child, 'close');
  try {
    await passesAll('v2', b, '--address', b.address, '--peer', peer, '--token', token);
  } finally {
    child.kill();
    await ended;
  }
});

test.run();
