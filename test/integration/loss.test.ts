// Two processes over a network that loses, duplicates, reorders and damages packets: every byte arrives once and in order, or the
// connection ends with the correct error status.
import { isDeepStrictEqual } from 'node:util';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { KernelOptionsInput } from '../../winverbs/index.js';
import { endPeers, Peer } from '../helpers/peer/peer.js';
import { TRAFFIC_REQUESTS, TRAFFIC_SIZES, type TrafficReport } from '../helpers/peer/traffic.js';
import { firstIf } from '../helpers/tiers.js';

const ADDRESS = '127.0.0.1';

type Faults = NonNullable<KernelOptionsInput['faults']>;

/**
 * A lost packet is detected after 34 to 67 ms, a lost CM message after about 35 ms. This is soon, but seven retries last longer than the
 * delays of a busy machine.
 */
const hasty: KernelOptionsInput = {
  link: 'wire',
  rc: { ackTimeoutCode: 13, minRnrTimerCode: 5 },
  cm: { responseTimeoutCode: 12, maxRetries: 15 },
};

const startPeers = (server: KernelOptionsInput, client: KernelOptionsInput): Promise<[Peer, Peer]> =>
  Promise.all([server, client].map((more) => Peer.start({ kernel: { ...hasty, ...more } }))) as Promise<
    [Peer, Peer]
  >;

async function connectTraffic(server: Peer, client: Peer, seed: number): Promise<void> {
  const port = await server.call('trafficListen', { as: 'traffic', address: ADDRESS, seed });
  await Promise.all([
    client.call('trafficConnect', { as: 'traffic', address: ADDRESS, port, seed }),
    server.call('trafficAccepted', { as: 'traffic' }),
  ]);
}

const runTraffic = (server: Peer, client: Peer): Promise<[TrafficReport, TrafficReport]> =>
  Promise.all([server.call('trafficRun', { as: 'traffic' }), client.call('trafficRun', { as: 'traffic' })]);

const succeeded = (count: number): string[] => Array<string>(count).fill('SUCCESS');

/** Asserts that each requested fault has occurred. */
async function assertStruck(peer: Peer, faults: Faults): Promise<void> {
  const { hca } = await peer.counters();
  const names = {
    drop: 'fault_dropped',
    duplicate: 'fault_duplicated',
    reorder: 'fault_reordered',
    corrupt: 'fault_corrupted',
  } as const;
  for (const [fault, name] of Object.entries(names)) {
    const wanted = (faults[fault as keyof typeof names] ?? 0) > 0;
    assert.is(hca![name]! > 0, wanted, `${name} is ${hca![name]}`);
  }
}

test.after.each(() => endPeers());

const wires: readonly [string, Faults][] = [
  ['drops 1 %', { drop: 0.01 }],
  ['drops 5 %', { drop: 0.05 }],
  ['duplicates 5 %', { duplicate: 0.05 }],
  ['reorders 5 %', { reorder: 0.05 }],
  ['corrupts 5 %', { corrupt: 0.05 }],
  ['does 3 % of each', { drop: 0.03, duplicate: 0.03, reorder: 0.03, corrupt: 0.03 }],
];

for (const [what, faults] of wires) {
  firstIf(what === 'does 3 % of each', test)(
    `a wire that ${what} of the packets: Sends, Writes and Reads of all sizes arrive once, complete and in order`,
    async () => {
      const [server, client] = await startPeers(
        { faults: { seed: 1, ...faults } },
        { faults: { seed: 2, ...faults } },
      );
      for (const seed of [1, 2, 3]) {
        await connectTraffic(server, client, seed);
        const [passive, active] = await runTraffic(server, client);
        const messages = succeeded(TRAFFIC_SIZES.length);
        const wanted = {
          active: { inbound: messages, outbound: succeeded(TRAFFIC_REQUESTS) },
          passive: { inbound: messages, outbound: messages },
        };
        // Prints the counters, which show why a connection has ended.
        if (!isDeepStrictEqual({ active, passive }, wanted))
          for (const peer of [client, server]) console.error(JSON.stringify((await peer.counters()).hca));
        assert.equal({ active, passive }, wanted);
        const ended = [server, client].map((peer) => peer.call('trafficDisconnect', { as: 'traffic' }));
        assert.equal(await Promise.all(ended), ['SUCCESS', 'SUCCESS']);
      }
      for (const peer of [server, client]) await assertStruck(peer, faults);
      const { hca: sent } = await client.counters();
      const { hca: got } = await server.counters();
      if (faults.drop || faults.corrupt)
        assert.ok(sent!.retransmitted_pkts! > 0 && got!.retransmitted_pkts! > 0);
      if (faults.corrupt) assert.ok(got!.rx_icrc_errors! > 0 && sent!.rx_icrc_errors! > 0);
      if (faults.duplicate) assert.ok(got!.duplicate_request! > 0);
      if (faults.reorder) assert.ok(got!.out_of_seq_request! > 0);
    },
  );
}

/**
 * Asserts that the statuses are SUCCESS several times, then the error that broke the connection, then only CANCELED. Returns the number of
 * successes.
 */
function assertBroken(statuses: readonly string[], breaking: string): number {
  const done = statuses.findIndex((status) => status !== 'SUCCESS');
  assert.ok(done >= 0, 'something must fail in such a network');
  assert.is(statuses[done], breaking);
  assert.equal([...new Set(statuses.slice(done + 1))], done + 1 < statuses.length ? ['CANCELED'] : []);
  return done;
}

for (const seed of [1, 2]) {
  firstIf(seed === 1, test)(
    `a wire that drops 9 of 10 packets exhausts the retries (seed ${seed}): TIMEOUT, the rest CANCELED, and received data is complete`,
    async () => {
      // Neither side sends keep-alive probes, so that only requests exhaust retries. Either side may exhaust its retries first. If the
      // client does, the server is notified when the network works again, by a DREQ that the client retransmits until then.
      const [server, client] = await startPeers(
        { keepAliveMs: 0 },
        { cm: { responseTimeoutCode: 17, maxRetries: 15 }, keepAliveMs: 0 },
      );
      await connectTraffic(server, client, seed);
      await Promise.all([
        server.call('setFaults', { faults: { seed, drop: 0.9 } }),
        client.call('setFaults', { faults: { seed: seed + 10, drop: 0.9 } }),
      ]);
      const serving = server.call('trafficRun', { as: 'traffic' });
      const active = await client.call('trafficRun', { as: 'traffic' });
      await client.call('setFaults', { faults: {} });
      const passive = await serving;
      /** Whether the side has exhausted its retries. Then, and only then, its oldest request fails with TIMEOUT. */
      const spent = async (peer: Peer): Promise<boolean> => {
        const { hca } = await peer.counters();
        if (hca!.retry_exceeded_err === 0) return false;
        assert.ok(hca!.ack_timeout! >= 7, JSON.stringify(hca));
        return true;
      };
      const [clientSpent, serverSpent] = [await spent(client), await spent(server)];
      assert.ok(clientSpent || serverSpent);
      const done = assertBroken(active.outbound, clientSpent ? 'TIMEOUT' : 'CANCELED');
      if (serverSpent || passive.outbound.some((status) => status !== 'SUCCESS'))
        assertBroken(passive.outbound, serverSpent ? 'TIMEOUT' : 'CANCELED');
      // Receives do not time out. They are flushed with the rest.
      const echoed = assertBroken(active.inbound, 'CANCELED');
      const received = assertBroken(passive.inbound, 'CANCELED');
      // Every third request, starting with the second, is a Send. Successful Sends have arrived.
      assert.ok(received >= Math.floor((done + 1) / 3), `${received} of ${done}`);
      assert.ok(echoed <= received);
      assert.is(passive.outbound.length, received);
    },
  );
}

test('connection management over a wire with all faults: connections are established, transfer data and end', async () => {
  const faults = { drop: 0.15, duplicate: 0.1, reorder: 0.1, corrupt: 0.05 };
  // At least one of sixteen requests within a second arrives, and so does its response, even on a busy machine.
  const cm = { responseTimeoutCode: 14, maxRetries: 15 };
  const [server, client] = await startPeers(
    { cm, faults: { seed: 5, ...faults } },
    { cm, faults: { seed: 6, ...faults } },
  );
  for (const layer of ['nd', 'wv'] as const) {
    const listener = await server.listen(layer, ADDRESS);
    const count = 15;
    const done = await Promise.all([
      server.call('serveMany', { listener: listener.name, count }),
      client.call('connectMany', { layer, address: ADDRESS, port: listener.port, count }),
    ]);
    assert.equal(done, [count, count]);
  }
  const [{ cm: passive }, { cm: active }] = await Promise.all([server.counters(), client.counters()]);
  // Each connection was requested once and ended once, no matter how often the messages were retransmitted.
  assert.equal([active!['sent.REQ'], active!['sent.DREQ']], [30, 30]);
  assert.ok(active!['retransmitted.REQ']! > 0 && active!['retransmitted.DREQ']! > 0, JSON.stringify(active));
  assert.equal([passive!.connections, passive!.waitingRequests], [0, 0]);
  for (const peer of [server, client]) await assertStruck(peer, faults);
});

test.run();
