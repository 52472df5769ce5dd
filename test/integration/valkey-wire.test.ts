/** Valkey's RDMA transport (examples/valkey) over the network. All HCAs of a process have the same link, so it is a separate file. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readCounters } from '../../kernel-bridge/index.js';
import { overAnyLink, requestsOf } from '../helpers/valkey-links.js';
import { clientOf, endValkeys, failure, servingProcess } from '../helpers/valkey-scene.js';

// Keep-alive probes detect a host that does not acknowledge, long before the HCA's retries are exhausted (8 s each).
process.env.ND_OPTIONS = JSON.stringify({ link: 'wire', rc: { ackTimeoutCode: 21 } });

const test = suite('valkey wire');
test.after.each(endValkeys);

overAnyLink(test);

test('a server whose host has stopped is given up', async () => {
  const { child, port } = await servingProcess();
  const one = clientOf(port, { keepAliveMs: 10 });
  assert.is(await requestsOf(one)('PING'), '+PONG');
  const lost = failure(one.stream as never);
  child.kill('SIGSTOP');
  assert.match((await lost).message, /does not respond/);
});

test('everything went over the network', () => {
  const { local_link_tx_packets, sent_pkts } = readCounters().hca;
  assert.ok(sent_pkts! > 1000);
  assert.is(local_link_tx_packets, 0);
});

test.run();
