// Several processes on one host: shared addresses, ports that are claimed and released, and leftovers.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { interfaceAddress, needing } from '../helpers/needs.js';
import { connectTo, endPeers, Peer, PeerError, type PeerLink } from '../helpers/peer/peer.js';
import type { Layer } from '../helpers/peer/protocol.js';
import { firstIf, long } from '../helpers/tiers.js';

const LOOPBACK = '127.0.0.1';
const LAYERS: readonly Layer[] = ['nd', 'nd2', 'wv'];

const startPeers = (count: number): Promise<Peer[]> =>
  Promise.all(Array.from({ length: count }, () => Peer.start()));

/** Name of the status with which a peer refused a command. */
async function refused(command: Promise<unknown>): Promise<string | undefined> {
  try {
    await command;
  } catch (error) {
    if (error instanceof PeerError) return error.status;
    throw error;
  }
  return 'SUCCESS';
}

/** Sends `text` with a number from one link to the other and back, and checks the received text. */
async function exchange(active: PeerLink, passive: PeerLink, text: string, rounds = 3): Promise<void> {
  for (let n = 0; n < rounds; n += 1) {
    for (const [from, to] of [
      [active, passive],
      [passive, active],
    ] as const) {
      await to.receive(1);
      await from.send(`${text} ${n}`);
      const [{ sends }, { receives }] = await Promise.all([from.results(1, 0), to.results(0, 1)]);
      assert.equal([sends[0]!.status, receives[0]!.status], ['SUCCESS', 'SUCCESS']);
      assert.is(receives[0]!.text, `${text} ${n}`);
    }
  }
}

test.after.each(() => endPeers());

for (const layer of LAYERS) {
  firstIf(layer === 'nd', test)(`${layer}: two processes share the loopback address`, async () => {
    const [server, client] = (await startPeers(2)) as [Peer, Peer];
    const listener = await server.listen(layer, LOOPBACK);
    const [active, passive] = await connectTo(listener, client, {
      request: 'from here',
      reply: 'from there',
    });
    assert.equal([passive.said, active.said], ['from here', 'from there']);
    await exchange(active, passive, 'over loopback');
    assert.is(await passive.disconnect(), 'SUCCESS');
  });

  firstIf(layer === 'nd2', needing(test, 'interface'))(
    `${layer}: two processes share an address of the host's network`,
    async () => {
      const [server, client] = (await startPeers(2)) as [Peer, Peer];
      const listener = await server.listen(layer, interfaceAddress!);
      const [active, passive] = await connectTo(listener, client, { request: 'to the same address' });
      assert.is(passive.said, 'to the same address');
      await exchange(active, passive, 'over one address');
      assert.is(await active.disconnect(), 'SUCCESS');
    },
  );
}

test('three processes, two listeners on one address, and traffic in all directions', async () => {
  const [one, two, three] = (await startPeers(3)) as [Peer, Peer, Peer];
  const [first, second] = await Promise.all([one.listen('nd', LOOPBACK), two.listen('wv', LOOPBACK)]);
  assert.is.not(first.port, second.port);
  // Each listener has a connection from each of the two other processes, and each process connects and accepts.
  const links = [
    await connectTo(first, two, { request: 'two to one' }),
    await connectTo(second, three, { request: 'three to two' }),
    await connectTo(second, one, { request: 'one to two' }),
    await connectTo(first, three, { request: 'three to one' }),
  ];
  assert.equal(
    links.map(([, passive]) => passive.said),
    ['two to one', 'three to two', 'one to two', 'three to one'],
  );
  await Promise.all(links.map(([active, passive], n) => exchange(active, passive, `pair ${n}`, 10)));
  assert.equal(await Promise.all(links.map(([active]) => active.disconnect())), Array(4).fill('SUCCESS'));
});

test('a port of another process is ADDRESS_ALREADY_EXISTS, at one address and at all addresses', async () => {
  const [one, two] = (await startPeers(2)) as [Peer, Peer];
  const specific = await one.listen('nd', LOOPBACK);
  const { port } = specific;
  assert.is(await refused(two.listen('nd', LOOPBACK, { port })), 'ADDRESS_ALREADY_EXISTS');
  assert.is(await refused(two.listen('wv', LOOPBACK, { port })), 'ADDRESS_ALREADY_EXISTS');
  assert.is(await refused(two.listen('wv', '0.0.0.0', { port })), 'ADDRESS_ALREADY_EXISTS');
  await specific.release();

  const all = await two.listen('wv', '0.0.0.0', { port });
  assert.is(await refused(one.listen('nd', LOOPBACK, { port })), 'ADDRESS_ALREADY_EXISTS');
  assert.is(await refused(one.listen('wv', '0.0.0.0', { port })), 'ADDRESS_ALREADY_EXISTS');
  // A wildcard listener is reachable at every address.
  const [active, passive] = await connectTo(all, one, { to: LOOPBACK, request: 'by any name' });
  assert.is(passive.said, 'by any name');
  await exchange(active, passive, 'to a wildcard');
  await all.release();
  await (await one.listen('nd', LOOPBACK, { port })).release();
});

test('a listener that dies releases its port at once, and the next listener gets the connections', async () => {
  const [doomed, heir, client] = (await startPeers(3)) as [Peer, Peer, Peer];
  const old = await doomed.listen('nd', LOOPBACK);
  const { port } = old;
  const [lost, atDoomed] = await connectTo(old, client);
  await exchange(lost, atDoomed, 'before');
  const ended = lost.notifyDisconnect();
  await doomed.kill();
  const next = await heir.listen('nd', LOOPBACK, { port });
  assert.is(next.port, port);
  const [active, passive] = await connectTo(next, client, { request: 'to the heir' });
  assert.is(passive.said, 'to the heir');
  await exchange(active, passive, 'after');
  assert.is(await ended, 'SUCCESS');
  assert.is(await active.disconnect(), 'SUCCESS');
});

long(
  test,
  'earlier clients can connect to a port that one process releases and another one claims',
  async () => {
    const [first, second, client] = (await startPeers(3)) as [Peer, Peer, Peer];
    const old = await first.listen('nd', LOOPBACK);
    const { port } = old;
    const [early, atFirst] = await connectTo(old, client, { request: 'to the first' });
    await old.release();
    const asked = {
      as: client.newLink(),
      layer: 'nd',
      from: LOOPBACK,
      to: LOOPBACK,
      port,
      receives: 0,
      data: '',
    } as const;
    assert.is(await refused(client.call('connect', asked)), 'CONNECTION_REFUSED');
    for (const address of [LOOPBACK, '0.0.0.0']) {
      const next = await second.listen('wv', address, { port });
      const [active, passive] = await connectTo(next, client, { to: LOOPBACK, request: `at ${address}` });
      assert.is(passive.said, `at ${address}`);
      await exchange(active, passive, 'to the second');
      await next.release();
    }
    const again = await first.listen('nd', LOOPBACK, { port });
    const [, passive] = await connectTo(again, client, { request: 'back to the first' });
    assert.is(passive.said, 'back to the first');
    await exchange(early, atFirst, 'all the while');
  },
);

for (const layer of LAYERS) {
  firstIf(layer === 'wv', test)(`${layer}: hundreds of short connections leave nothing behind`, async () => {
    const options = { kernel: { cm: { timewaitMs: 0 } } };
    const [server, client] = await Promise.all([Peer.start(options), Peer.start(options)]);
    const listener = await server.listen(layer, LOOPBACK);
    const many = async (count: number): Promise<void> => {
      const done = await Promise.all([
        server.call('serveMany', { listener: listener.name, count }),
        client.call('connectMany', { layer, address: LOOPBACK, port: listener.port, count }),
      ]);
      assert.equal(done, [count, count]);
    };
    await many(2);
    const before = await Promise.all([server.counters(), client.counters()]);
    await many(250);
    const after = await Promise.all([server.counters(), client.counters()]);
    for (const [n, { objects, io, cm, filter }] of after.entries()) {
      assert.equal(objects, before[n]!.objects);
      assert.equal(
        [io!.openFiles, io!.pendingRequests],
        [before[n]!.io!.openFiles, before[n]!.io!.pendingRequests],
      );
      assert.equal([io!.driverFaults, io!.abandonedIrps, filter!.cleanupFailures], [0, 0, 0]);
      assert.equal([cm!.connections, cm!.waitingRequests], [0, 0]);
    }
    await Promise.all([server.call('releaseAll', {}), client.call('releaseAll', {})]);
    for (const { objects, io } of await Promise.all([server.counters(), client.counters()])) {
      assert.equal(new Set(Object.values(objects!)), new Set([0]));
      // This is the file of the query itself.
      assert.is(io!.openFiles, 1);
    }
  });
}

test('a process exits by itself after closing everything, and even with everything open', async () => {
  for (const clean of [true, false]) {
    const [server, client] = (await startPeers(2)) as [Peer, Peer];
    const listener = await server.listen('nd', LOOPBACK);
    const [active, passive] = await connectTo(listener, client, {
      accepterReceives: 2,
      connecterReceives: 2,
    });
    await exchangePosted(active, passive);
    const ended = passive.notifyDisconnect();
    if (clean) {
      assert.is(await active.disconnect(), 'SUCCESS');
      await client.call('releaseAll', {});
    }
    // Now only its IPC channel keeps it alive, and `leave` closes that.
    assert.equal(await client.leave('end'), { code: 0, signal: null });
    assert.is(client.errors, '');
    assert.is(await ended, 'SUCCESS');
    assert.equal(await server.leave('end'), { code: 0, signal: null });
    assert.is(server.errors, '');
  }
});

long(test, 'a process that exits with every kind of pending wait ends cleanly', async () => {
  const [server, client] = (await startPeers(2)) as [Peer, Peer];
  for (const layer of LAYERS) {
    const listener = await server.listen(layer, LOOPBACK);
    const [active, passive] = await connectTo(listener, client, { connecterReceives: 2 });
    const ended = passive.notifyDisconnect();
    const own = await client.listen(layer, LOOPBACK);
    const waiting = [own.accept(), active.notifyDisconnect(), active.results(1, 2), active.results(0, 1)];
    for (const request of waiting) request.catch(() => {});
    if (layer === 'wv') {
      assert.equal(await client.leave('exit'), { code: 0, signal: null });
      assert.is(client.errors, '');
      assert.is(await ended, 'CONNECTION_DISCONNECTED');
    }
  }
});

/** A message in each direction, into posted Receives. */
async function exchangePosted(active: PeerLink, passive: PeerLink): Promise<void> {
  await Promise.all([active.send('ping'), passive.send('pong')]);
  const reported = await Promise.all([active.results(1, 1), passive.results(1, 1)]);
  assert.equal(
    reported.map(({ receives }) => receives[0]!.text),
    ['pong', 'ping'],
  );
}

test.run();
