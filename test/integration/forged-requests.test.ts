// Connection requests that another user of this host forges over UDP, and the connections that they end. Runs in a private network
// namespace, because other processes on the port would receive them.
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LOOPBACK, socketAddress } from '../../nd/cli/sides/connected-side.js';
import { SideWv } from '../../nd/cli/sides/winverbs-side.js';
import { openProvider } from '../../winverbs/index.js';
import { runApart } from '../helpers/apart.js';
import { Forger, forgedReq } from '../helpers/forged-mads.js';
import { endPeers, Peer, type PeerListener } from '../helpers/peer/peer.js';
import { long } from '../helpers/tiers.js';

/** Number of QPNs on either side of the targeted one. */
const AROUND = 40;
const AT_ONCE = 16;
/** A QPN that no process owns here. */
let localCommId = 0x7f00_0000;
const test = suite('forged requests');

test.after.each(() => endPeers());

const received = async (server: Peer): Promise<number> => (await server.counters()).cm!['received.REQ'] ?? 0;

/** Sends a REQ for each of the QPNs, at most as many at a time as fit in a socket's buffer. */
async function forge(to: PeerListener, caGuid: bigint, qpns: readonly number[]): Promise<void> {
  const forger = await Forger.open(LOOPBACK);
  let sent = await received(to.peer);
  for (let n = 0; n < qpns.length; n += AT_ONCE) {
    const some = qpns.slice(n, n + AT_ONCE);
    for (const localQpn of some) {
      const says = { localQpn, localCommId: localCommId++, localCaGuid: caGuid };
      await forger.send(forgedReq(LOOPBACK, to.port, says));
    }
    sent += some.length;
    while ((await received(to.peer)) < sent) await new Promise(setImmediate);
  }
  forger.close();
}

test('a connection over shared memory survives requests over UDP for its queue pair', async () => {
  const server = await Peer.start();
  await server.openToStrangers();
  const listener = await server.listen('wv', LOOPBACK);
  const accepting = listener.accept(1);
  const provider = openProvider();
  const side = new SideWv(provider);
  await side.establish(socketAddress(LOOPBACK, listener.port));
  const passive = await accepting;
  const { qpn } = side.qp;
  const { deviceGuid } = provider.translateAddress(LOOPBACK);
  await forge(listener, deviceGuid, [qpn, ...Array.from({ length: 2 * AROUND }, (_, n) => qpn - AROUND + n)]);
  const { cm, hca } = await server.counters();
  assert.is(hca!.local_link_pairs_up, 1);
  assert.is(cm!['dropped.foreignQpn'], 2);
  assert.is(cm!['refused.10'], undefined);
  side.send('text', side.sge(0, side.memory.write('still here')));
  const { receives } = await passive.results(0, 1);
  assert.equal([receives[0]!.status, receives[0]!.text], ['SUCCESS', 'still here']);
  side.release();
  provider.release();
});

long(
  test,
  'over the network, a second request from a queue pair means that the peer has restarted, and ends the first connection',
  async () => {
    const server = await Peer.start({ kernel: { link: 'wire' } });
    const listener = await server.listen('wv', LOOPBACK);
    await forge(listener, 1n, [0x7f_1234]);
    assert.is((await server.counters()).cm!.waitingRequests, 1);
    await forge(listener, 1n, [0x7f_1234]);
    const { cm } = await server.counters();
    assert.equal([cm!['refused.10'], cm!.waitingRequests], [1, 0]);
  },
);

runApart(import.meta.url, () => test.run());
