/**
 * Our own provider follows the rules over the network between two hosts, simulated by network namespaces with a cable.
 */
import { once } from 'node:events';
import { suite } from 'uvu';
import { serving } from '../helpers/conformance-command.js';
import { passesAll } from '../helpers/conformance-passes.js';
import { needing } from '../helpers/needs.js';
import { TwoHosts } from '../helpers/peer/hosts.js';
import { long } from '../helpers/tiers.js';

const test = needing(suite('conformance of two hosts'), 'namespaces');

long(test, 'SPI v2, each half on its own host', async () => {
  const two = await TwoHosts.start();
  const [a, b] = two.hosts;
  try {
    const { child, peer, token } = await serving(a, '--spi', 'v2', '--address', a.address, '--port', '0');
    const ended = once(child, 'close');
    try {
      await passesAll('v2', b, '--address', b.address, '--peer', peer, '--token', token);
    } finally {
      child.kill();
      await ended;
    }
  } finally {
    two.end();
  }
});

test.run();
