// Workers of one process. Each has its own HCA, they connect to each other like processes, and nothing is left of those that end.
import { spawnSync } from 'node:child_process';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { connectTo, endPeers, Peer } from '../helpers/peer/peer.js';
import { TRAFFIC_REQUESTS, TRAFFIC_SIZES } from '../helpers/peer/traffic.js';
import { firstIf, long } from '../helpers/tiers.js';

const ADDRESS = '127.0.0.1';
const winverbs = new URL('../../winverbs/index.js', import.meta.url).href;
const succeeded = (count: number): string[] => Array<string>(count).fill('SUCCESS');

test.after.each(() => endPeers());

async function startWorkers(peer: Peer, count: number): Promise<string[]> {
  const names = Array.from({ length: count }, (_, n) => `worker ${n}`);
  for (const worker of names) await peer.call('startWorker', { worker });
  return names;
}

/** Runs Sends, Writes and Reads of all sizes from one Worker to another or to itself. */
async function traffic(peer: Peer, active: string, passive: string, seed: number): Promise<void> {
  const [as, at] = [`from ${active} to ${passive}`, `to ${passive} from ${active}`];
  const port = await peer.call('trafficListen', { as: at, address: ADDRESS, seed }, passive);
  await Promise.all([
    peer.call('trafficConnect', { as, address: ADDRESS, port, seed }, active),
    peer.call('trafficAccepted', { as: at }, passive),
  ]);
  const reports = await Promise.all([
    peer.call('trafficRun', { as: at }, passive),
    peer.call('trafficRun', { as }, active),
  ]);
  const messages = succeeded(TRAFFIC_SIZES.length);
  assert.equal(reports, [
    { inbound: messages, outbound: messages },
    { inbound: messages, outbound: succeeded(TRAFFIC_REQUESTS) },
  ]);
  assert.is(await peer.call('trafficDisconnect', { as }, active), 'SUCCESS');
}

for (const link of ['auto', 'wire'] as const) {
  for (const count of [2, 8]) {
    firstIf(count === 2 && link === 'wire', test)(
      `${count} Workers, link ${link}: each with itself and with the next, all at once`,
      async () => {
        const peer = await Peer.start({ kernel: { link, rc: { ackTimeoutCode: 21 } } });
        const workers = await startWorkers(peer, count);
        const next = (n: number): string => workers[(n + 1) % count]!;
        await Promise.all(
          workers.flatMap((worker, n) => [
            traffic(peer, worker, worker, n),
            traffic(peer, worker, next(n), n + 100),
          ]),
        );
        assert.is((await peer.call('traces', {})).engineThreads, count);
        for (const worker of workers) {
          const { hca } = await peer.call('counters', {}, worker);
          assert.is(hca!.local_link_tx_packets! > 0, link === 'auto');
          assert.is(hca!.local_link_broken, 0);
        }
        for (const worker of workers) assert.is(await peer.call('terminateWorker', { worker }), 1);
        assert.is((await peer.call('traces', {})).engineThreads, 0);
        assert.equal(await peer.leave('end'), { code: 0, signal: null });
        assert.is(peer.errors, '');
      },
    );
  }
}

for (const link of ['auto', 'wire'] as const) {
  firstIf(link === 'auto', test)(
    `link ${link}: a Worker is terminated in the middle of its traffic; its peer is notified and continues with others`,
    async () => {
      const peer = await Peer.start({ kernel: { link } });
      const [ending, staying, other] = await startWorkers(peer, 3);
      const listener = await peer.listen('nd', ADDRESS, { worker: staying! });
      const [, toEnding] = await connectTo(listener, peer, { worker: ending!, accepterReceives: 3 });
      const [toStaying, toOther] = await connectTo(listener, peer, { worker: other!, accepterReceives: 20 });
      const ended = toEnding.notifyDisconnect();

      const port = await peer.call('trafficListen', { as: 'at', address: ADDRESS, seed: 1 }, staying);
      await peer.call('trafficConnect', { as: 'as', address: ADDRESS, port, seed: 1 }, ending);
      const halves = [
        peer.call('trafficRun', { as: 'at' }, staying),
        peer.call('trafficRun', { as: 'as' }, ending),
      ];
      const terminated = peer.call('terminateWorker', { worker: ending! });
      for (let n = 0; n < 10; n += 1) {
        await toStaying.send(`message ${n}`);
        const [{ sends }, { receives }] = await Promise.all([toStaying.results(1, 0), toOther.results(0, 1)]);
        assert.equal([sends[0]!.status, receives[0]!.text], ['SUCCESS', `message ${n}`]);
      }
      assert.is(await terminated, 1);
      assert.is(await ended, 'SUCCESS');
      const { receives } = await toEnding.results(0, 3);
      assert.equal(
        receives.map(({ status }) => status),
        Array(3).fill('CANCELED'),
      );
      // Outstanding requests may have ended in any way.
      await halves[0]!.catch(() => {});
      assert.is((await peer.call('traces', {})).engineThreads, 2);
      assert.is(await toStaying.disconnect(), 'SUCCESS');
    },
  );
}

long(test, 'nothing is left of Workers, whatever their state at the end', async () => {
  const [server, peer] = await Promise.all([Peer.start(), Peer.start()]);
  const listener = await server.listen('nd', ADDRESS);
  /** The server never accepts. */
  const mute = await server.listen('nd', ADDRESS);
  const connection = { layer: 'nd', from: ADDRESS, to: ADDRESS } as const;
  const states: ((worker: string) => Promise<unknown>)[] = [
    async () => {},
    // The kernel may be starting.
    async (worker) => void peer.call('listen', { as: worker, layer: 'nd', address: ADDRESS }, worker),
    (worker) => peer.listen('nd', ADDRESS, { worker }),
    async (worker) => void peer.call('connect', { as: worker, port: mute.port, ...connection }, worker),
    async (worker) =>
      void peer.call('blockingSession', { address: ADDRESS, port: mute.port, texts: [] }, worker),
    async (worker) => {
      const [active] = await connectTo(listener, peer, { worker, accepterReceives: 2 });
      await active.receive(3);
      await active.send('one', 'two', 'three');
    },
    async (worker) => {
      const port = await peer.call('trafficListen', { as: 'at', address: ADDRESS, seed: 1 }, worker);
      await peer.call('trafficConnect', { as: 'as', address: ADDRESS, port, seed: 1 }, worker);
      void peer.call('trafficRun', { as: 'at' }, worker);
      void peer.call('trafficRun', { as: 'as' }, worker);
    },
  ];
  const round = (n: number) =>
    Promise.all(
      states.map(async (reach, state) => {
        const worker = `worker ${n} ${state}`;
        await peer.call('startWorker', { worker });
        await reach(worker);
        assert.is(await peer.call('terminateWorker', { worker }), 1);
      }),
    );
  for (let n = 0; n < 4; n += 1) await round(n);
  const before = await peer.call('traces', {});
  assert.is(before.engineThreads, 0);
  for (let n = 4; n < 16; n += 1) await round(n);
  const after = await peer.call('traces', {});
  assert.is(after.engineThreads, 0);
  assert.ok(after.descriptors <= before.descriptors, `${before.descriptors} → ${after.descriptors}`);
  // An HCA uses more than 1 MiB, and 84 of them were created and destroyed.
  const grown = after.resident - before.resident;
  assert.ok(grown < 64 << 20, `${grown} bytes`);
  assert.equal(await peer.leave('end'), { code: 0, signal: null });
});

long(test, 'terminating a Worker while it opens a device affects nothing else', () => {
  const worker = `
    const { parentPort } = require('node:worker_threads');
    import(${JSON.stringify(winverbs)}).then(({ openProvider }) => { parentPort.postMessage('opens'); openProvider(); });`;
  const program = `
    import { once } from 'node:events';
    import { Worker } from 'node:worker_threads';
    for (let ms = 0; ms < 90; ms += 3) {
      const worker = new Worker(${JSON.stringify(worker)}, { eval: true, execArgv: [] });
      await once(worker, 'message');
      await new Promise((resolve) => setTimeout(resolve, ms));
      await worker.terminate();
    }`;
  const { status, signal, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    timeout: 100_000,
  });
  assert.equal([status, signal], [0, null], stderr);
});

test.run();
