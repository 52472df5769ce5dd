// Establishes a connection whose last CM message is lost.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { endPeers, Peer } from '../helpers/peer/peer.js';
import type { Layer } from '../helpers/peer/protocol.js';

const RTU = 0x14;

test.after.each(() => endPeers());

for (const layer of ['nd', 'wv'] satisfies Layer[]) {
  test(`${layer}: without the RTU, the first message completes Accept, and nothing is retransmitted`, async () => {
    const [server, client] = await Promise.all([
      Peer.start(),
      Peer.start({ kernel: { faults: { dropMads: { [RTU]: 1000 } } } }),
    ]);
    const listener = await server.listen(layer, '127.0.0.1');
    const accepting = listener.accept(1, 'reply');
    let accepted = false;
    accepting.then(
      () => {
        accepted = true;
      },
      () => {},
    );
    const link = client.newLink();
    const { port } = listener;
    assert.is(
      await client.call('connect', { as: link, layer, from: '127.0.0.1', to: '127.0.0.1', port }),
      'reply',
    );
    assert.is((await client.counters()).hca!.fault_mads_dropped, 1);
    // Its Accept is still pending after a complete exchange with the server.
    await server.counters();
    assert.not(accepted);
    await client.call('send', { link, texts: ['first'] });
    const passive = await accepting;
    const { receives } = await passive.results(0, 1);
    assert.equal(
      receives.map(({ status, text }) => [status, text]),
      [['SUCCESS', 'first']],
    );
    const { cm } = await server.counters();
    assert.is(cm!['retransmitted.REP'] ?? 0, 0);
    assert.is(await passive.disconnect(), 'SUCCESS');
  });
}

test.run();
