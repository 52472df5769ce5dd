// Disconnect and errors between two processes: which side disconnects, which requests are flushed when, and the statuses of each layer.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { KernelOptionsInput } from '../../winverbs/index.js';
import { connectTo, endPeers, type Joining, Peer, type PeerLink } from '../helpers/peer/peer.js';
import type { Layer, RequestResult } from '../helpers/peer/protocol.js';
import { firstIf } from '../helpers/tiers.js';

const ADDRESS = '127.0.0.1';

/** Codes of the CM messages that the fault layer can drop. */
const DREQ = 0x15;
const DREP = 0x16;

/** A Send without a Receive is retransmitted six times, each after 0.66 s, and stays outstanding that long. */
const patient: KernelOptionsInput = { rc: { minRnrTimerCode: 0 } };

/** Neither retries nor keep-alive probes are exhausted within a test. */
const slow: KernelOptionsInput = { rc: { ackTimeoutCode: 24, minRnrTimerCode: 0 }, keepAliveMs: 0 };

/** A request is retransmitted if it has no reply after half a second. */
const unhurried = { responseTimeoutCode: 17 };
const UNHURRIED_MS = 537;

/** The status of flushed requests in each layer. */
const flushedAs: Record<Layer, string> = { nd: 'CANCELED', nd2: 'CANCELED', wv: 'FLUSHED' };
const timedOutAs: Record<Layer, string> = { nd: 'TIMEOUT', nd2: 'IO_TIMEOUT', wv: 'TIMEOUT_RETRY_ERROR' };
/** Status of NotifyDisconnect on the side that disconnects. */
const ownEnd: Record<Layer, string> = {
  nd: 'CANCELED',
  nd2: 'CONNECTION_DISCONNECTED',
  wv: 'CONNECTION_DISCONNECTED',
};
const peersEnd: Record<Layer, string> = { nd: 'SUCCESS', nd2: 'SUCCESS', wv: 'CONNECTION_DISCONNECTED' };
const lostEnd: Record<Layer, string> = { nd: 'SUCCESS', nd2: 'SUCCESS', wv: 'CONNECTION_ABORTED' };

/** Status of Disconnect if all DREQs are lost. In v2 it succeeds, because the connection has ended as requested. */
const lostDisconnect: Record<Layer, string> = { nd: 'TIMEOUT', nd2: 'SUCCESS', wv: 'TIMEOUT' };

const LAYERS: readonly Layer[] = ['nd', 'nd2', 'wv'];

/** Tests with their own processes are in the first tier for one layer only. */
const costly = (layer: Layer, first: Layer) => firstIf(layer === first, test);

const flushed = (layer: Layer, what: 'send' | 'receive', from: number, count: number): RequestResult[] =>
  Array.from({ length: count }, (_, i) => ({ label: `${what} ${from + i}`, status: flushedAs[layer] }));

/**
 * Two lost messages were retransmitted, and more only if replies were slow. The first retransmission is sent early and does not count
 * against the retries.
 */
function assertTwiceAgain(again: number, ms: number): void {
  assert.ok(again >= 2, `${again} repetitions`);
  assert.ok(again === 2 || ms >= (again - 1) * UNHURRIED_MS, `${again} repetitions within ${ms} ms`);
}

const messages = (count: number): string[] => Array.from({ length: count }, (_, i) => `message ${i}`);

interface Pair {
  active: PeerLink;
  passive: PeerLink;
}

/** Processes that most tests share. Other tests have their own processes, because these have other options or are killed. */
const shared = new Map<string, Promise<Peer>>();

function sharedPeer(name: string, kernel: KernelOptionsInput = patient): Promise<Peer> {
  const peer = shared.get(name) ?? Peer.start({ kernel });
  shared.set(name, peer);
  return peer;
}

/** Two processes and a connection between them. */
async function pair(
  layer: Layer,
  options: Joining & { server?: KernelOptionsInput | Promise<Peer>; client?: KernelOptionsInput } = {},
): Promise<Pair> {
  const { server: given, client: wanted } = options;
  const [server, client] = await Promise.all([
    given === undefined
      ? sharedPeer('server')
      : given instanceof Promise
        ? given
        : Peer.start({ kernel: given }),
    wanted === undefined ? sharedPeer('client') : Peer.start({ kernel: wanted }),
  ]);
  const listener = await server.listen(layer, ADDRESS);
  const [active, passive] = await connectTo(listener, client, options);
  return { active, passive };
}

test.after.each(async () => {
  const kept = await Promise.all(shared.values());
  await endPeers(kept);
  await Promise.all(kept.map((peer) => peer.call('releaseAll', {})));
});
test.after(() => endPeers());

for (const layer of LAYERS) {
  for (const disconnecter of ['active', 'passive'] as const) {
    const other = disconnecter === 'active' ? 'passive' : 'active';

    test(`${layer}: the ${disconnecter} side disconnects, and its own requests are flushed at once, in order`, async () => {
      const both = await pair(layer);
      const here = both[disconnecter];
      const there = both[other];
      await here.receive(6);
      await here.send(...messages(5));
      const ends = [here.notifyDisconnect(), there.notifyDisconnect()];
      assert.equal(await here.poll(), { sends: [], receives: [] });
      assert.equal(await here.startDisconnect(), {
        sends: flushed(layer, 'send', 0, 5),
        receives: flushed(layer, 'receive', 0, 6),
      });
      assert.is(await here.disconnected(), 'SUCCESS');
      assert.equal(await Promise.all(ends), [ownEnd[layer], peersEnd[layer]]);
      // Each request completed once, and requests posted after the disconnect are also flushed.
      await here.send('too late');
      await here.receive(1);
      assert.equal(await here.results(1, 1), {
        sends: flushed(layer, 'send', 5, 1),
        receives: flushed(layer, 'receive', 6, 1),
      });
      assert.equal(await here.poll(), { sends: [], receives: [] });
    });

    test(`${layer}: the ${disconnecter} side disconnects and the other side's requests are flushed, in order`, async () => {
      const both = await pair(layer);
      const here = both[disconnecter];
      const there = both[other];
      await there.receive(6);
      await there.send(...messages(5));
      const end = there.notifyDisconnect();
      assert.equal(await there.poll(), { sends: [], receives: [] });
      assert.is(await here.disconnect(), 'SUCCESS');
      assert.equal(await there.results(5, 6), {
        sends: flushed(layer, 'send', 0, 5),
        receives: flushed(layer, 'receive', 0, 6),
      });
      assert.is(await end, peersEnd[layer]);
      assert.equal(await there.poll(), { sends: [], receives: [] });
      // The other side's own Disconnect completes immediately.
      assert.is(await there.disconnect(), 'SUCCESS');
    });
  }

  test(`${layer}: requests completed before Disconnect are delivered, and the rest is flushed`, async () => {
    const { active, passive } = await pair(layer, { accepterReceives: 8 });
    await active.send(...messages(5));
    const { sends } = await active.results(5, 0);
    assert.equal([...new Set(sends.map(({ status }) => status))], ['SUCCESS']);
    assert.is(await active.disconnect(), 'SUCCESS');
    const { receives } = await passive.results(0, 8);
    const delivered = messages(5).map((text, i) => ({ label: `receive ${i}`, status: 'SUCCESS', text }));
    assert.equal(receives, [...delivered, ...flushed(layer, 'receive', 5, 3)]);
  });

  costly(layer, 'wv')(`${layer}: DREQs that cross let both sides succeed`, async () => {
    // All DREQs are lost until both sides have disconnected. The retransmitted ones arrive.
    const crossing: KernelOptionsInput = {
      cm: { responseTimeoutCode: 17, maxRetries: 15 },
      faults: { dropMads: { [DREQ]: 1000 } },
    };
    const { active, passive } = await pair(layer, { server: crossing, client: crossing });
    await Promise.all([active.receive(3), passive.receive(3)]);
    const ends = [active.notifyDisconnect(), passive.notifyDisconnect()];
    const issued = await Promise.all([active.startDisconnect(), passive.startDisconnect()]);
    for (const { receives } of issued) assert.equal(receives, flushed(layer, 'receive', 0, 3));
    await Promise.all([active, passive].map(({ peer }) => peer.call('setFaults', { faults: {} })));
    assert.equal(await Promise.all([active.disconnected(), passive.disconnected()]), ['SUCCESS', 'SUCCESS']);
    assert.equal(await Promise.all(ends), [ownEnd[layer], ownEnd[layer]]);
    for (const { peer } of [active, passive]) {
      const { cm, hca } = await peer.counters();
      assert.is(cm!['sent.DREQ'], 1);
      assert.ok(hca!.fault_mads_dropped! > 0);
    }
  });

  costly(layer, 'nd2')(`${layer}: both sides disconnect at once, repeatedly`, async () => {
    const [server, client] = await Promise.all([sharedPeer('server'), sharedPeer('client')]);
    const listener = await server.listen(layer, ADDRESS);
    for (let n = 0; n < 20; n += 1) {
      const [active, passive] = await connectTo(listener, client);
      const ended = await Promise.all([active.disconnect(), passive.disconnect()]);
      assert.equal(ended, ['SUCCESS', 'SUCCESS']);
      await Promise.all([active.release(), passive.release()]);
    }
  });

  costly(layer, 'nd')(`${layer}: a killed peer is detected at once, by outstanding requests`, async () => {
    const { active, passive } = await pair(layer, { server: sharedPeer('slow', slow), client: slow });
    const end = passive.notifyDisconnect();
    await passive.receive(3);
    // A stopped process does not reply, but exists.
    active.peer.suspend();
    await passive.send(...messages(4));
    assert.equal(await passive.poll(), { sends: [], receives: [] });
    await active.peer.kill();
    const { sends, receives } = await passive.results(4, 3);
    assert.equal(sends, [{ label: 'send 0', status: timedOutAs[layer] }, ...flushed(layer, 'send', 1, 3)]);
    assert.equal(receives, flushed(layer, 'receive', 0, 3));
    assert.is(await end, lostEnd[layer]);
    assert.equal(await passive.poll(), { sends: [], receives: [] });
    assert.is(await passive.disconnect(), 'SUCCESS');
  });

  costly(layer, 'wv')(
    `${layer}: a peer that is killed is noticed at once, on an idle connection`,
    async () => {
      const { active, passive } = await pair(layer, { server: sharedPeer('slow', slow), client: slow });
      const before = (await passive.peer.counters()).hca!.peer_lost!;
      const end = passive.notifyDisconnect();
      await passive.receive(2);
      await active.peer.kill();
      assert.is(await end, lostEnd[layer]);
      assert.equal((await passive.results(0, 2)).receives, flushed(layer, 'receive', 0, 2));
      assert.is((await passive.peer.counters()).hca!.peer_lost, before + 1);
    },
  );

  for (const [how, first] of [
    ['exit', 'nd'],
    ['end', 'nd2'],
    ['throw', 'wv'],
  ] as const) {
    costly(layer, first)(`${layer}: a peer whose process ends by '${how}' disconnects cleanly`, async () => {
      const { active, passive } = await pair(layer, { accepterReceives: 2, client: {} });
      const end = passive.notifyDisconnect();
      await active.send('last words');
      await active.results(1, 0);
      const { code, signal } = await active.peer.leave(how);
      assert.equal([code === 0, signal], [how !== 'throw', null]);
      if (how === 'throw') assert.match(active.peer.errors, 'thrown at the request of the test');
      else assert.is(active.peer.errors, '');
      assert.is(await end, peersEnd[layer]);
      assert.equal((await passive.results(0, 2)).receives, [
        { label: 'receive 0', status: 'SUCCESS', text: 'last words' },
        ...flushed(layer, 'receive', 1, 1),
      ]);
    });
  }

  costly(layer, 'nd2')(`${layer}: a lost DREQ is retransmitted`, async () => {
    const client: KernelOptionsInput = {
      cm: unhurried,
      faults: { dropMads: { [DREQ]: 2 } },
    };
    const { active, passive } = await pair(layer, { client });
    const end = passive.notifyDisconnect();
    const begun = performance.now();
    assert.is(await active.disconnect(), 'SUCCESS');
    const ms = performance.now() - begun;
    assert.is(await end, peersEnd[layer]);
    const { cm, hca } = await active.peer.counters();
    assert.equal([cm!['sent.DREQ'], hca!.fault_mads_dropped], [1, 2]);
    assertTwiceAgain(cm!['retransmitted.DREQ']!, ms);
  });

  costly(layer, 'nd')(
    `${layer}: when every DREQ is lost Disconnect ends in ${lostDisconnect[layer]}, and the connection is over`,
    async () => {
      const client: KernelOptionsInput = {
        // The REQ also times out after 1.2 s.
        cm: { responseTimeoutCode: 15, maxRetries: 8 },
        faults: { dropMads: { [DREQ]: 1000 } },
      };
      const server: KernelOptionsInput = { rc: { ackTimeoutCode: 13 }, keepAliveMs: 100 };
      const { active, passive } = await pair(layer, { client, server });
      const ends = [active.notifyDisconnect(), passive.notifyDisconnect()];
      await active.receive(2);
      assert.equal((await active.startDisconnect()).receives, flushed(layer, 'receive', 0, 2));
      assert.is(await active.disconnected(), lostDisconnect[layer]);
      assert.is(await ends[0], layer === 'wv' ? 'TIMEOUT' : ownEnd[layer]);
      assert.is((await active.peer.counters()).hca!.fault_mads_dropped, 9);
      // The other side does not get a DREQ, but its keep-alive probes detect that responses are missing.
      assert.is(await ends[1], lostEnd[layer]);
    },
  );

  costly(layer, 'wv')(`${layer}: a lost DREP is repeated for the retransmitted DREQ`, async () => {
    const client: KernelOptionsInput = { cm: unhurried };
    const server: KernelOptionsInput = { cm: { timewaitMs: 60_000 }, faults: { dropMads: { [DREP]: 2 } } };
    const { active, passive } = await pair(layer, { client, server });
    const end = passive.notifyDisconnect();
    const begun = performance.now();
    assert.is(await active.disconnect(), 'SUCCESS');
    const ms = performance.now() - begun;
    assert.is(await end, peersEnd[layer]);
    const { cm, hca } = await passive.peer.counters();
    assert.equal([hca!.fault_mads_dropped, cm!.timewait], [2, 1]);
    assertTwiceAgain((await active.peer.counters()).cm!['retransmitted.DREQ']!, ms);
  });
}

test.run();
