// A stranger floods the host with connection requests: others connect all the same, and what is connected stays so.
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runApart } from '../helpers/apart.js';
import { duringFlood, FloodScene } from '../helpers/flooded.js';
import { endPeers } from '../helpers/peer/peer.js';

const LOOPBACK = '127.0.0.1';
const COUNT = 5;
/** So that a machine of two processors has time left for those that are flooded. */
const PAUSE_MS = 20;

runApart(import.meta.url, define);

function define(): void {
  const test = suite('a flood of requests');
  test.after.each(() => endPeers());

  for (const link of ['auto', 'wire'] as const) {
    test(`link ${link}: connections are made, and one that is there goes on`, async () => {
      const scene = await FloodScene.start(LOOPBACK, { link });
      await duringFlood(LOOPBACK, PAUSE_MS, async () => {
        const { connects, echoes } = await scene.measure(COUNT);
        assert.ok(connects > 0 && echoes > 0);
      });
      await scene.echo(1);
      const { cm } = await scene.server.counters();
      assert.ok(cm!['received.REQ']! > 2 * COUNT, 'the flood was heard');
    });
  }
  test.run();
}
