// The link between two processes on one host, as shown by their counters: shared memory, unless one of them requires UDP.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { readCounters } from '../../kernel-bridge/index.js';
import type { KernelOptionsInput } from '../../winverbs/index.js';
import { needing } from '../helpers/needs.js';
import { endPeers, Peer } from '../helpers/peer/peer.js';
import { TRAFFIC_REQUESTS, TRAFFIC_SIZES, TrafficSide } from '../helpers/peer/traffic.js';
import { firstIf, long } from '../helpers/tiers.js';

const ADDRESS = '127.0.0.1';

/** The counters of both processes' HCAs for Sends, Writes and Reads of all sizes in both directions. */
async function countersOfTraffic(
  serverOptions: KernelOptionsInput,
  clientOptions: KernelOptionsInput,
): Promise<Readonly<Record<string, number>>[]> {
  const peers = await Promise.all([
    Peer.start({ kernel: serverOptions }),
    Peer.start({ kernel: clientOptions }),
  ]);
  const [server, client] = peers;
  const port = await server.call('trafficListen', { as: 'traffic', address: ADDRESS, seed: 1 });
  await Promise.all([
    client.call('trafficConnect', { as: 'traffic', address: ADDRESS, port, seed: 1 }),
    server.call('trafficAccepted', { as: 'traffic' }),
  ]);
  const [passive, active] = await Promise.all([
    server.call('trafficRun', { as: 'traffic' }),
    client.call('trafficRun', { as: 'traffic' }),
  ]);
  const succeeded = (count: number): string[] => Array<string>(count).fill('SUCCESS');
  const messages = succeeded(TRAFFIC_SIZES.length);
  assert.equal(active, { inbound: messages, outbound: succeeded(TRAFFIC_REQUESTS) });
  assert.equal(passive, { inbound: messages, outbound: messages });
  return Promise.all(peers.map(async (peer) => (await peer.counters()).hca!));
}

test.after.each(() => endPeers());

test('by default: everything goes through the ring in shared memory, and nothing over UDP', async () => {
  // Prevents retransmissions on a slow machine.
  const patient: KernelOptionsInput = { rc: { ackTimeoutCode: 21 } };
  const counters = await countersOfTraffic(patient, patient);
  for (const hca of counters) {
    assert.is(hca.local_link_pairs_up, 1);
    assert.ok(hca.local_link_tx_packets! > 0 && hca.local_link_rx_packets! > 0);
    assert.is(hca.local_link_broken, 0);
    assert.is(hca.retransmitted_pkts, 0);
    assert.is(hca.local_link_single_copy_bytes, 0);
  }
});

/** The two sides of a connection: two processes, or two Workers of one process. */
async function twoEnds(
  where: 'processes' | 'Workers',
  kernel: KernelOptionsInput,
): Promise<[Peer, string?][]> {
  const first = await Peer.start({ kernel });
  if (where === 'processes') return [[first], [await Peer.start({ kernel })]];
  for (const worker of ['one', 'other']) await first.call('startWorker', { worker });
  return [
    [first, 'one'],
    [first, 'other'],
  ];
}

// A zero-byte request needs no key, and always uses the link.
const sizes = TRAFFIC_SIZES.filter((size) => size > 0);

for (const direct of [true, false]) {
  for (const where of ['processes', 'Workers'] as const) {
    firstIf(direct === (where === 'processes'), needing(test, direct ? 'direct access' : ADDRESS))(
      `two ${where} with memory from allocate(), direct: ${direct}: everything arrives on the path that the option selects`,
      async () => {
        const ends = await twoEnds(where, { direct, rc: { ackTimeoutCode: 21 } });
        const [[server, serving], [client, requesting]] = ends as [[Peer, string?], [Peer, string?]];
        const options = { as: 'traffic', address: ADDRESS, seed: 3, allocated: true, sizes };
        const port = await server.call('trafficListen', options, serving);
        await Promise.all([
          client.call('trafficConnect', { ...options, port }, requesting),
          server.call('trafficAccepted', { as: 'traffic' }, serving),
        ]);
        await Promise.all([
          server.call('trafficRun', { as: 'traffic' }, serving),
          client.call('trafficRun', { as: 'traffic' }, requesting),
        ]);
        const counters = async (): Promise<Readonly<Record<string, number>>> =>
          (await client.call('counters', {}, requesting)).hca!;
        const stream = async (rounds: number): Promise<Record<string, number>> => {
          const before = await counters();
          await client.call('trafficStream', { as: 'traffic', rounds }, requesting);
          const after = await counters();
          return Object.fromEntries(Object.keys(after).map((name) => [name, after[name]! - before[name]!]));
        };
        if (!direct) {
          const { direct_write, direct_read, local_link_tx_packets } = await stream(3);
          assert.equal([direct_write, direct_read], [0, 0]);
          assert.ok(local_link_tx_packets! >= 3 * 2 * sizes.length);
          return;
        }
        // The first requests cause the mapping.
        const end = performance.now() + 30_000;
        while ((await stream(1)).direct_write! < sizes.length) assert.ok(performance.now() < end);
        const { direct_write, direct_read } = await stream(3);
        assert.equal([direct_write, direct_read], [3 * sizes.length, 3 * sizes.length]);
      },
    );
  }
}

test('memory from allocate() is mapped by the other process on first use, which then copies it directly', async () => {
  // With direct access, the active side would not request copies from the owner.
  const passive = await Peer.start({ kernel: { direct: false } });
  const options = { seed: 2, allocated: true };
  const port = await passive.call('trafficListen', { as: 'traffic', address: ADDRESS, ...options });
  const [active] = await Promise.all([
    TrafficSide.connect(ADDRESS, port, options),
    passive.call('trafficAccepted', { as: 'traffic' }),
  ]);
  await Promise.all([active.run(), passive.call('trafficRun', { as: 'traffic' })]);
  const here = (): Readonly<Record<string, number>> => readCounters().hca!;
  const there = async (): Promise<Readonly<Record<string, number>>> => (await passive.counters()).hca!;
  const size = 65_536;
  // Each process has now offered its memory to the other. Requests after the response use the mapping.
  const mappedReads = (): number => here().local_link_mapped_copy_bytes!;
  const end = performance.now() + 30_000;
  for (const before = mappedReads(); mappedReads() === before && performance.now() < end; )
    await active.again('read', size);
  const mappedWrites = async (): Promise<number> => (await there()).local_link_mapped_copy_bytes!;
  for (const before = await mappedWrites(); (await mappedWrites()) === before && performance.now() < end; )
    await active.again('write', size);
  const [reads, writes] = [mappedReads(), await mappedWrites()];
  await active.again('read', size);
  await active.again('write', size);
  assert.is(mappedReads(), reads + size);
  assert.is(await mappedWrites(), writes + size);
  // The passive side has one memory. The active side sends from a second one, and its first one is only written to.
  assert.is(here().local_link_memory_mapped, 1);
  assert.is((await there()).local_link_memory_mapped, 1);
  assert.is(here().local_link_memory_refused, 0);
  active.release();
});

for (const [who, server, client] of [
  ['the passive side', { link: 'wire' }, {}],
  ['the active side', {}, { link: 'wire' }],
  ['both', { link: 'wire' }, { link: 'wire' }],
] as const) {
  firstIf(who === 'the active side', test)(
    `the option link: wire of ${who} sends the connection over the network`,
    async () => {
      const counters = await countersOfTraffic(server, client);
      for (const hca of counters) {
        assert.is(hca.local_link_pairs_up, 0);
        assert.is(hca.local_link_tx_packets, 0);
        assert.ok(hca.wire_tx_packets! > TRAFFIC_REQUESTS, `${hca.wire_tx_packets} on the wire`);
      }
      if (who !== 'both') assert.ok(counters.every((hca) => hca.local_link_refused_option === 1));
    },
  );
}

long(test, 'a process with injected faults uses the wire, where they affect packets', async () => {
  const counters = await countersOfTraffic(
    { rc: { ackTimeoutCode: 13 } },
    { faults: { drop: 0.02 }, rc: { ackTimeoutCode: 13 } },
  );
  for (const hca of counters) {
    assert.is(hca.local_link_pairs_up, 0);
    assert.is(hca.local_link_refused_option, 1);
  }
  const [, client] = counters;
  assert.ok(client!.fault_dropped! > 0 && client!.retransmitted_pkts! > 0);
});

test.run();
