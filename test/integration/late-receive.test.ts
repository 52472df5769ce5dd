// A Receive that is posted late, with default options on both links. The Send is delivered once the Receive is posted, and fails with
// IO_TIMEOUT without one. The delay is printed. It is not compared with a limit, but packets are counted.
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { connectTo, endPeers, Peer, type PeerLink } from '../helpers/peer/peer.js';
import type { Layer } from '../helpers/peer/protocol.js';
import { firstIf, long } from '../helpers/tiers.js';

const ADDRESS = '127.0.0.1';
const LINKS = ['auto', 'wire'] as const;

async function pair(link: (typeof LINKS)[number], layer: Layer = 'wv'): Promise<[PeerLink, PeerLink]> {
  const [server, client] = await Promise.all([
    Peer.start({ kernel: { link } }),
    Peer.start({ kernel: { link } }),
  ]);
  return connectTo(await server.listen(layer, ADDRESS), client);
}

const hca = async (link: PeerLink): Promise<Readonly<Record<string, number>>> =>
  (await link.peer.counters()).hca!;

test.after.each(() => endPeers());

for (const link of LINKS) {
  firstIf(link === 'auto', test)(
    `${link}: a Send succeeds although its Receive is 5, 100 or 900 ms late`,
    async () => {
      const [sender, receiver] = await pair(link);
      const reported: string[] = [];
      for (const late of [5, 100, 900, 20, 20, 20]) {
        const [here, there] = [await hca(sender), await hca(receiver)];
        await sender.send(`${late} ms`);
        await sleep(late);
        const { text, microseconds } = await receiver.receiveNow();
        assert.is(text, `${late} ms`);
        assert.is((await sender.results(1, 0)).sends[0]!.status, 'SUCCESS');
        reported.push(`${late} ms late: ${microseconds.toFixed(0)} µs`);
        const [after, afterThere] = [await hca(sender), await hca(receiver)];
        assert.ok(after.rcvd_rnr_err! - here.rcvd_rnr_err! <= 6);
        // The receiver has announced its Receive, so the sender has not waited for its timer, which ends some 200 ms later.
        if (late !== 900) continue;
        assert.is(afterThere.late_receive! - there.late_receive!, 1);
        assert.is(after.rnr_wait_shortened! - here.rnr_wait_shortened!, 1);
      }
      console.log(`${link}: delivered after the Receive was posted, ${reported.join('; ')}`);
    },
  );

  for (const layer of ['nd', 'nd2'] as const) {
    firstIf(link === 'wire' && layer === 'nd2', test)(
      `${link}, ${layer}: without a Receive, a Send ends`,
      async () => {
        const [sender, receiver] = await pair(link, layer);
        const start = performance.now();
        await sender.send('into the void');
        const { status } = (await sender.results(1, 0)).sends[0]!;
        assert.is(status, layer === 'nd' ? 'TIMEOUT' : 'IO_TIMEOUT');
        assert.ok(performance.now() - start >= 1000, 'a second has passed');
        assert.is((await hca(receiver)).send_rnr_err, 7);
      },
    );
  }
}

long(test, 'a steady stream to a receiver that pauses loses no messages', async () => {
  for (const link of LINKS) {
    const [sender, receiver] = await pair(link);
    for (let round = 0; round < 60; round += 1) {
      const texts = Array.from({ length: 4 }, (_, i) => `round ${round}, message ${i}`);
      await sender.send(...texts);
      if (round % 3 !== 0) await sleep(round % 12);
      const got: string[] = [];
      for (const _ of texts) got.push((await receiver.receiveNow()).text);
      assert.equal(got, texts);
      const { sends } = await sender.results(4, 0);
      assert.equal(
        sends.map(({ status }) => status),
        Array(4).fill('SUCCESS'),
      );
    }
    await endPeers();
  }
});

test.run();
