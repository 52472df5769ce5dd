// Exact ICRC checks: between two hosts, over the loopback interface, and without the required privilege.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { KernelOptionsInput } from '../../winverbs/index.js';
import { runApart } from '../helpers/apart.js';
import { needing } from '../helpers/needs.js';
import { TwoHosts } from '../helpers/peer/hosts.js';
import { connectTo, endPeers, Peer } from '../helpers/peer/peer.js';
import { firstIf } from '../helpers/tiers.js';

const exact: KernelOptionsInput = { link: 'wire', icrc: 'exact' };
const winverbs = new URL('../../winverbs/index.js', import.meta.url).href;
const opens = `import { openProvider } from '${winverbs}'; openProvider({ icrc: 'exact' }).release();`;
const program = ['--input-type=module', '-e', opens];
const WITHOUT = ['--bounding-set', '-net_raw', '--inh-caps', '-net_raw'];

const local = suite('exact ICRC');
local.after.each(() => endPeers());

/** The number of raw sockets of a process, which receive IPv4 packets with their headers. */
function rawSockets({ pid }: Peer): number {
  const rows = readFileSync(`/proc/${pid}/net/raw`, 'utf8').trim().split('\n').slice(1);
  const inodes = new Set(rows.map((row) => row.trim().split(/\s+/)[9]));
  return readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    let link = '';
    try {
      link = readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      // The descriptor has been closed in the meantime.
    }
    return inodes.has(/^socket:\[(\d+)\]$/.exec(link)?.[1]);
  }).length;
}

/** Runs every operation in both directions and checks the data. */
async function traffic(server: Peer, client: Peer, address: string): Promise<void> {
  const port = await server.call('trafficListen', { as: 't', address, seed: 3 });
  await Promise.all([
    client.call('trafficConnect', { as: 't', address, port, seed: 3 }),
    server.call('trafficAccepted', { as: 't' }),
  ]);
  await Promise.all([server.call('trafficRun', { as: 't' }), client.call('trafficRun', { as: 't' })]);
  await whole(server, client);
}

/** Both sides received packets, all with a correct ICRC. */
async function whole(...peers: readonly Peer[]): Promise<void> {
  for (const peer of peers) {
    const { hca } = await peer.counters();
    assert.ok(hca!.wire_rx_packets! > 0);
    assert.is(hca!.rx_icrc_errors, 0);
    assert.is(hca!.rx_raw_unwitnessed, 0);
    assert.is(hca!.rx_raw_unsegmented, 0);
  }
}

needing(local, 'setpriv')('without CAP_NET_RAW opening fails with the cure', () => {
  const { status, stderr } = spawnSync('setpriv', [...WITHOUT, process.execPath, ...program], {
    encoding: 'utf8',
  });
  assert.is(status, 1);
  assert.match(stderr, 'CAP_NET_RAW');
  assert.match(stderr, "'solved'");
});

needing(local, 'raw sockets')('processes on one host', async () => {
  const [server, client] = await Promise.all([Peer.start({ kernel: exact }), Peer.start({ kernel: exact })]);
  await traffic(server, client, '127.0.0.1');
  assert.equal([rawSockets(server), rawSockets(client)], [1, 1]);
});

const far = needing(suite<{ hosts: TwoHosts }>('exact ICRC, two hosts'), 'namespaces');
far.before(async (context) => {
  context.hosts = await TwoHosts.start();
});
far.after.each(() => endPeers());
far.after(({ hosts }) => hosts.end());
for (const [one, other] of [
  [exact, exact],
  [exact, { link: 'wire' }],
] as const) {
  firstIf(other !== exact, far)(
    `one has ${one.icrc}, the other ${other.icrc ?? 'solved'}`,
    async ({ hosts }) => {
      const [a, b] = hosts.hosts;
      const [server, client] = await Promise.all([
        Peer.start({ kernel: one, by: a.by }),
        Peer.start({ kernel: other, by: b.by }),
      ]);
      const listener = await server.listen('wv', a.address);
      const [active, passive] = await connectTo(listener, client, { from: b.address, accepterReceives: 2 });
      await active.send('over', 'the wire');
      await active.results(2, 0);
      const { receives } = await passive.results(0, 2);
      assert.equal(
        receives.map(({ text }) => text),
        ['over', 'the wire'],
      );
      await whole(server, client);
      assert.equal([rawSockets(server), rawSockets(client)], [1, other.icrc === 'exact' ? 1 : 0]);
    },
  );
}

runApart(import.meta.url, () => {
  local.run();
  far.run();
});
