// Two hosts, simulated by network namespaces with a cable between them. The tests only cover properties of the network path.
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { KernelOptionsInput } from '../../winverbs/index.js';
import { needing } from '../helpers/needs.js';
import { TwoHosts } from '../helpers/peer/hosts.js';
import { connectTo, endPeers, type Joining, Peer, type PeerLink } from '../helpers/peer/peer.js';
import type { Layer } from '../helpers/peer/protocol.js';
import { firstIf } from '../helpers/tiers.js';

const LAYERS: readonly Layer[] = ['nd', 'nd2', 'wv'];
const flushedAs: Record<Layer, string> = { nd: 'CANCELED', nd2: 'CANCELED', wv: 'FLUSHED' };
const timedOutAs: Record<Layer, string> = { nd: 'TIMEOUT', nd2: 'IO_TIMEOUT', wv: 'TIMEOUT_RETRY_ERROR' };
const lostEnd: Record<Layer, string> = { nd: 'SUCCESS', nd2: 'SUCCESS', wv: 'CONNECTION_ABORTED' };
const peersEnd: Record<Layer, string> = { nd: 'SUCCESS', nd2: 'SUCCESS', wv: 'CONNECTION_DISCONNECTED' };

/** Retries are exhausted after about 0.7 s, which is soon, but longer than the delays of a busy machine. */
const hasty: KernelOptionsInput = { rc: { ackTimeoutCode: 14, minRnrTimerCode: 0 }, keepAliveMs: 0 };
const probing: KernelOptionsInput = { ...hasty, keepAliveMs: 150 };

const test = needing(suite<{ hosts: TwoHosts }>('two hosts'), 'namespaces');

/** A process with a listener on the first host, and a client process on the second. */
async function pair(
  { hosts: [a, b] }: TwoHosts,
  layer: Layer,
  kernel: KernelOptionsInput,
  joining: Joining = {},
): Promise<[PeerLink, PeerLink]> {
  const [server, client] = await Promise.all([
    Peer.start({ kernel, by: a.by }),
    Peer.start({ kernel, by: b.by }),
  ]);
  const listener = await server.listen(layer, a.address);
  return await connectTo(listener, client, { from: b.address, ...joining });
}

test.before(async (context) => {
  context.hosts = await TwoHosts.start();
});
test.after.each(() => endPeers());
test.after(({ hosts }) => hosts.end());

for (const layer of LAYERS) {
  firstIf(layer === 'nd', test)(
    `${layer}: messages cross the network, and a process that ends disconnects`,
    async ({ hosts }) => {
      const [active, passive] = await pair(hosts, layer, hasty, { request: 'hello', accepterReceives: 3 });
      assert.is(passive.said, 'hello');
      const ended = passive.notifyDisconnect();
      await active.send('over', 'the wire');
      await active.results(2, 0);
      assert.equal(await active.peer.leave('exit'), { code: 0, signal: null });
      assert.is(await ended, peersEnd[layer]);
      assert.equal((await passive.results(0, 3)).receives, [
        { label: 'receive 0', status: 'SUCCESS', text: 'over' },
        { label: 'receive 1', status: 'SUCCESS', text: 'the wire' },
        { label: 'receive 2', status: flushedAs[layer] },
      ]);
    },
  );

  firstIf(layer === 'nd2', test)(
    `${layer}: a killed peer is noticed by the retries of outstanding requests`,
    async ({ hosts }) => {
      const [active, passive] = await pair(hosts, layer, hasty, { accepterReceives: 2 });
      const ended = passive.notifyDisconnect();
      await active.peer.kill();
      await passive.send('into', 'the', 'void');
      const { sends, receives } = await passive.results(3, 2);
      assert.equal(
        sends.map(({ status }) => status),
        [timedOutAs[layer], flushedAs[layer], flushedAs[layer]],
      );
      assert.equal(
        receives.map(({ status }) => status),
        [flushedAs[layer], flushedAs[layer]],
      );
      assert.is(await ended, lostEnd[layer]);
      assert.ok((await passive.peer.counters()).hca!.ack_timeout! > 1);
      assert.is(await passive.disconnect(), 'SUCCESS');
    },
  );

  firstIf(layer === 'wv', test)(
    `${layer}: an idle connection has a keep-alive, which notices that the peer was killed`,
    async ({ hosts }) => {
      const [active, passive] = await pair(hosts, layer, probing, {
        accepterReceives: 2,
        connecterReceives: 1,
      });
      const ended = passive.notifyDisconnect();
      // Acknowledged keep-alive probes have no effect.
      for (let probes = 0; probes < 3; ) {
        const { hca } = await passive.peer.counters();
        probes = hca!.keep_alive!;
      }
      assert.equal(await passive.poll(), { sends: [], receives: [] });
      await passive.send('still connected');
      assert.equal((await active.results(0, 1)).receives[0]!.text, 'still connected');
      await passive.results(1, 0);

      await active.peer.kill();
      assert.is(await ended, lostEnd[layer]);
      assert.equal(await passive.results(0, 2), {
        sends: [],
        receives: [
          { label: 'receive 0', status: flushedAs[layer] },
          { label: 'receive 1', status: flushedAs[layer] },
        ],
      });
    },
  );

  firstIf(layer === 'nd2', test)(
    `${layer}: a pulled cable ends both sides; plugged in again, it supports new connections`,
    async ({ hosts }) => {
      const [a] = hosts.hosts;
      const [active, passive] = await pair(hosts, layer, probing);
      const ends = [active.notifyDisconnect(), passive.notifyDisconnect()];
      hosts.pullCable(a);
      try {
        assert.equal(await Promise.all(ends), [lostEnd[layer], lostEnd[layer]]);
      } finally {
        hosts.plugCable(a);
      }
      await active.release();
      const listener = await passive.peer.listen(layer, a.address);
      const again = await connectTo(listener, active.peer, {
        from: hosts.hosts[1].address,
        accepterReceives: 1,
      });
      await again[0].send('again');
      assert.equal((await again[1].results(0, 1)).receives[0]!.text, 'again');
    },
  );
}

test.run();
