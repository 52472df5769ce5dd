// Threads of one process: Workers with their own kernels, and threads that never return to their event loop.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { connectTo, endPeers, Peer, type PeerLink } from '../helpers/peer/peer.js';
import type { Layer } from '../helpers/peer/protocol.js';
import { firstIf } from '../helpers/tiers.js';

const ADDRESS = '127.0.0.1';
const LAYERS: readonly Layer[] = ['nd', 'wv'];
const peersEnd: Record<Layer, string> = { nd: 'SUCCESS', nd2: 'SUCCESS', wv: 'CONNECTION_DISCONNECTED' };

/** Sends one message from a link to another one that has a Receive for it. */
async function tell(from: PeerLink, to: PeerLink, text: string): Promise<void> {
  await from.send(text);
  const [{ sends }, { receives }] = await Promise.all([from.results(1, 0), to.results(0, 1)]);
  assert.equal([sends[0]!.status, receives[0]!.status, receives[0]!.text], ['SUCCESS', 'SUCCESS', text]);
}

test.after.each(() => endPeers());

for (const layer of LAYERS) {
  firstIf(layer === 'wv', test)(
    `${layer}: of two Workers one is terminated; its peer is notified and the other continues`,
    async () => {
      const [server, client] = await Promise.all([Peer.start(), Peer.start()]);
      await client.call('startWorker', { worker: 'one' });
      await client.call('startWorker', { worker: 'two' });
      const listener = await server.listen(layer, ADDRESS);
      const [one, atOne] = await connectTo(listener, client, { worker: 'one', accepterReceives: 4 });
      const [two, atTwo] = await connectTo(listener, client, { worker: 'two', accepterReceives: 20 });
      await tell(one, atOne, 'from one');
      await tell(two, atTwo, 'from two');
      const [endOne, endTwo] = [atOne.notifyDisconnect(), atTwo.notifyDisconnect()];
      // Both sides have outstanding requests.
      await Promise.all([one.receive(3), two.receive(3)]);
      const terminated = client.call('terminateWorker', { worker: 'one' });
      for (let n = 0; n < 10; n += 1) await tell(two, atTwo, `meanwhile ${n}`);
      assert.is(await terminated, 1);
      // A terminated thread sends one DREQ, which is not retransmitted. If it is late or lost, the peer only detects the end itself.
      const ends = layer === 'wv' ? ['CONNECTION_DISCONNECTED', 'CONNECTION_ABORTED'] : [peersEnd[layer]];
      const end = await endOne;
      assert.ok(ends.includes(end), end);
      const { receives } = await atOne.results(0, 3);
      assert.equal(
        new Set(receives.map(({ status }) => status)),
        new Set([layer === 'nd' ? 'CANCELED' : 'FLUSHED']),
      );

      await tell(two, atTwo, 'still there');
      await tell(atTwo, two, 'so am I');
      assert.is(await two.disconnect(), 'SUCCESS');
      assert.is(await endTwo, peersEnd[layer]);
      // The remaining Worker waits for commands. Without it, nothing keeps the process alive.
      assert.is(await client.call('terminateWorker', { worker: 'two' }), 1);
      assert.is((await client.call('traces', {})).engineThreads, 0);
      assert.equal(await client.leave('end'), { code: 0, signal: null });
      assert.is(client.errors, '');
    },
  );
}

test('Workers and their main thread connect to each other within one process', async () => {
  const peer = await Peer.start();
  await peer.call('startWorker', { worker: 'one' });
  const listener = await peer.listen('nd', ADDRESS);
  const [active, passive] = await connectTo(listener, peer, { worker: 'one', accepterReceives: 1 });
  await tell(active, passive, 'from HCA to HCA');
  const ended = passive.notifyDisconnect();
  assert.is(await peer.call('terminateWorker', { worker: 'one' }), 1);
  assert.is(await ended, 'SUCCESS');
});

test('a program that blocks its only thread runs a whole session as a client', async () => {
  const [server, client] = await Promise.all([Peer.start(), Peer.start()]);
  const listener = await server.listen('nd', ADDRESS);
  const texts = ['one', 'two', 'three'];
  const accepting = listener.accept(texts.length);
  const session = client.call('blockingSession', { address: ADDRESS, port: listener.port, texts });
  const link = await accepting;
  const ended = link.notifyDisconnect();
  const { receives } = await link.results(0, texts.length);
  assert.equal(
    receives.map(({ text }) => text),
    texts,
  );
  await link.send(...texts.map((text) => `${text} heard`));
  assert.equal(await session, {
    replies: texts.map((text) => `${text} heard`),
    disconnect: 'SUCCESS',
    turns: 0,
  });
  assert.is(await ended, 'SUCCESS');
});

for (const layer of LAYERS) {
  firstIf(layer === 'nd', test)(
    `${layer}: a thread that spins still responds to requests, retransmissions and the disconnect of its peers`,
    async () => {
      const DREQ = 0x15;
      const [spinner, lossy, stranger] = await Promise.all([
        Peer.start(),
        Peer.start({
          kernel: {
            cm: { responseTimeoutCode: 14 },
            rc: { ackTimeoutCode: 14 },
            faults: { seed: 7, drop: 0.2, dropMads: { [DREQ]: 1 } },
          },
        }),
        // Sends a request without a Receive, retransmits it soon, and then gets the response.
        Peer.start({ kernel: { cm: { responseTimeoutCode: 15, maxRetries: 15 } } }),
      ]);
      const listener = await spinner.listen(layer, ADDRESS);
      const [active, passive] = await connectTo(listener, lossy, { accepterReceives: 25 });
      const begun = spinner.spinning();
      const spin = passive.spinUntilDisconnected();
      await begun;

      const as = stranger.newLink();
      const args = { as, layer, from: ADDRESS, to: ADDRESS, port: listener.port };
      const asking = stranger.call('connect', args);

      const texts = Array.from({ length: 20 }, (_, n) => `message ${n}`);
      await active.send(...texts);
      const { sends } = await active.results(20, 0);
      assert.equal(new Set(sends.map(({ status }) => status)), new Set(['SUCCESS']));
      assert.is(await active.disconnect(), 'SUCCESS');

      const { status, turns, completions } = await spin;
      assert.equal([status, turns], [peersEnd[layer], 0]);
      assert.equal(
        completions.receives.slice(0, 20).map(({ text }) => text),
        texts,
      );
      assert.is(completions.receives.length, 25);
      const { cm, hca } = await lossy.counters();
      assert.ok(hca!.fault_dropped! > 0 && hca!.retransmitted_pkts! > 0);
      assert.ok(cm!['retransmitted.DREQ']! > 0);
      // The request has waited, because the spinner's kernel has requested more time.
      let ended = false;
      asking
        .catch(() => {})
        .finally(() => {
          ended = true;
        });
      let mras = 0;
      while (mras === 0 && !ended) mras = (await stranger.counters()).cm!['received.MRA'] ?? 0;
      assert.ok(mras > 0);
      const late = await listener.accept();
      await asking;
      assert.is(await late.disconnect(), 'SUCCESS');
    },
  );
}

test.run();
