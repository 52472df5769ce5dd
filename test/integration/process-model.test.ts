// Random connections between threads of several processes against a model. ND_MODEL_SECONDS=n runs for n seconds,
// ND_MODEL_SEED=n repeats a failure's seed.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { endPeers, Peer } from '../helpers/peer/peer.js';
import { type Place, runRounds } from '../helpers/process-model.js';
import { perTier } from '../helpers/tiers.js';

const milliseconds = Number(process.env.ND_MODEL_SECONDS ?? perTier(2, 8)) * 1000;
const seed = Number(process.env.ND_MODEL_SEED ?? perTier(1, Date.now() % 0x7fff_0000));

test.after.each(() => endPeers());

test('connections between three processes with two threads each behave as the model predicts, and nothing is left', async () => {
  const peers = await Promise.all([1, 2, 3].map(() => Peer.start()));
  const places: Place[] = [];
  for (const peer of peers) {
    await peer.call('startWorker', { worker: 'w' });
    places.push({ peer, worker: undefined }, { peer, worker: 'w' });
  }
  const sessions = await runRounds(places, seed, milliseconds);
  assert.ok(sessions > 0);
  for (const { peer, worker } of places) await peer.call('releaseAll', {}, worker);
  for (const peer of peers) {
    // Connections end when the peer has confirmed and the TIMEWAIT period is over.
    for (let left = 1; left > 0; ) left = (await peer.counters()).cm!.connections ?? 0;
    assert.is(await peer.call('terminateWorker', { worker: 'w' }), 1);
    assert.is((await peer.call('traces', {})).engineThreads, 1);
    const { objects } = await peer.counters();
    assert.equal(new Set(Object.values(objects!)), new Set([0]), JSON.stringify(objects));
    assert.equal(await peer.leave('end'), { code: 0, signal: null });
    assert.is(peer.errors, '');
  }
});

test.run();
