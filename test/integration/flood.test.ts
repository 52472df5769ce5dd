// A stranger floods the host with connection requests. Others can still connect, and existing connections continue.
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runApart } from '../helpers/apart.js';
import { duringFlood, FloodScene } from '../helpers/flooded.js';
import { endPeers } from '../helpers/peer/peer.js';
import { firstIf } from '../helpers/tiers.js';

const LOOPBACK = '127.0.0.1';
const COUNT = 20;
/** A fraction of this time is enough to end a connection that gets no replies, because of its keep-alive probes and retries. */
const IDLE_MS = 3000;

runApart(import.meta.url, define);

function define(): void {
  const test = suite('a flood of requests');
  test.after.each(() => endPeers());

  for (const link of ['auto', 'wire'] as const) {
    firstIf(link === 'auto', test)(
      `link ${link}: new connections are established, and an existing one continues`,
      async () => {
        const scene = await FloodScene.start(LOOPBACK, { link });
        await duringFlood(LOOPBACK, () => scene.measure(COUNT));
        assert.ok((await scene.dropped()) > 1000, 'the flood was heard');
      },
    );

    firstIf(link === 'wire', test)(
      `link ${link}: a connection with a keep-alive outlives one that fills its service's backlog`,
      async () => {
        const scene = await FloodScene.start(LOOPBACK, { link, keepAliveMs: 100 });
        await duringFlood(
          LOOPBACK,
          async () => {
            await scene.echo(COUNT);
            await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
            await scene.echo(COUNT);
          },
          scene.listener.port,
        );
        assert.ok((await scene.dropped()) > 1000, 'the flood was heard');
      },
    );
  }
  test.run();
}
