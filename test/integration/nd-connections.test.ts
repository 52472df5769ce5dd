// Connections of ND SPI v1, both sides in this process: refusals, ports, ends.
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LOOPBACK as ADDRESS, take, takeOne, textOf } from '../../nd/cli/sides/connected-side.js';
import { HostV1, newResult, SideV1 } from '../../nd/cli/sides/v1.js';
import { NdOpFlag, Status, statusName } from '../../nd/index.js';
import { statusOf } from '../helpers/nd-fixture.js';
import { outcome, statusesOf } from '../helpers/outcome.js';

const test = suite<{ host: HostV1 }>('ND v1 connections in one process');

test.before((context) => {
  context.host = new HostV1();
});
test.after(({ host }) => {
  host.release();
});

test('nobody listens: CONNECTION_REFUSED, and the same connector and endpoint connect later', async ({
  host,
}) => {
  const active = new SideV1(host.adapter);
  const passive = new SideV1(host.adapter);
  active.receive('kept', active.sge(0, 100));
  const listen = host.adapter.listen();
  const address = `${ADDRESS}:${listen.port}`;
  listen.release();
  assert.is(await outcome(active.connector.connect(active.endpoint, address)), Status.CONNECTION_REFUSED);
  const { port } = active.connector.getLocalAddress();
  const requested = host.listener.getConnectionRequest(passive.connector);
  const connected = active.connector.connect(active.endpoint, host.target);
  await requested;
  const accepted = passive.connector.accept(passive.endpoint);
  await connected;
  assert.is(active.connector.getLocalAddress().port, port);
  await active.connector.completeConnect();
  await accepted;
  passive.endpoint.send(newResult(), passive.sge(0, 10));
  assert.is((await takeOne(active.inbound)).context, 'kept');
  active.release();
  passive.release();
});

test('the passive side rejects, with data', async ({ host }) => {
  const active = new SideV1(host.adapter);
  const passive = new SideV1(host.adapter);
  const requested = host.listener.getConnectionRequest(passive.connector);
  const connected = active.connector.connect(active.endpoint, host.target);
  await requested;
  passive.connector.reject(new TextEncoder().encode('not today'));
  assert.is(await outcome(connected), Status.CONNECTION_REFUSED);
  assert.is(textOf(active.connector.getConnectionData().privateData), 'not today');
  active.release();
  passive.release();
});

test('the active side rejects the reply', async ({ host }) => {
  const active = new SideV1(host.adapter);
  const passive = new SideV1(host.adapter);
  passive.receive('r', passive.sge(0, 100));
  const requested = host.listener.getConnectionRequest(passive.connector);
  const connected = active.connector.connect(active.endpoint, host.target);
  await requested;
  const accepted = passive.connector.accept(passive.endpoint);
  await connected;
  active.connector.reject(new TextEncoder().encode('changed my mind'));
  assert.is(await outcome(accepted), Status.CONNECTION_REFUSED);
  assert.is(textOf(passive.connector.getConnectionData().privateData), 'changed my mind');
  assert.equal(await statusesOf(passive.inbound, 1), ['CANCELED']);
  active.release();
  passive.release();
});

test('a port is taken once on a host, and free again after its listener', async ({ host }) => {
  const { port } = host.listener;
  assert.is(
    statusOf(() => host.adapter.listen({ port })),
    Status.ADDRESS_ALREADY_EXISTS,
  );
  const listen = host.adapter.listen();
  listen.release();
  const again = host.adapter.listen({ port: listen.port });
  assert.is(again.port, listen.port);
  again.release();
});

test('many connectors share the listener’s own port', async ({ host }) => {
  const sides: SideV1[] = [];
  for (let i = 0; i < 3; i += 1) {
    const active = new SideV1(host.adapter);
    const passive = new SideV1(host.adapter);
    sides.push(active, passive);
    const other = host.adapter.listen();
    const requested = other.getConnectionRequest(passive.connector);
    const connected = active.connector.connect(active.endpoint, `${ADDRESS}:${other.port}`, {
      localPort: host.listener.port,
    });
    await requested;
    assert.is(passive.connector.getPeerAddress().port, host.listener.port);
    const accepted = passive.connector.accept(passive.endpoint);
    await connected;
    await active.connector.completeConnect();
    await accepted;
    other.release();
  }
  for (const side of sides) side.release();
});

test('a released listener cancels what waits on it', async ({ host }) => {
  const listen = host.adapter.listen();
  const connector = host.adapter.createConnector();
  const waiting = listen.getConnectionRequest(connector);
  listen.release();
  assert.is(await outcome(waiting), Status.CANCELED);
  connector.release();
});

test('a canceled connect reaches the peer', async ({ host }) => {
  const active = new SideV1(host.adapter);
  const passive = new SideV1(host.adapter);
  const requested = host.listener.getConnectionRequest(passive.connector);
  const connected = active.connector.connect(active.endpoint, host.target);
  await requested;
  active.connector.cancelOverlappedRequests();
  assert.is(connected.completed, true);
  assert.is(await outcome(connected), Status.CANCELED);
  const accepted = await outcome(passive.connector.accept(passive.endpoint));
  assert.ok(
    accepted === Status.CONNECTION_ABORTED || accepted === Status.CONNECTION_REFUSED,
    statusName(accepted),
  );
  active.release();
  passive.release();
});

for (const ender of ['active', 'passive'] as const) {
  test(`disconnect by the ${ender} side: all that is outstanding comes back CANCELED on both`, async ({
    host,
  }) => {
    const pair = await host.pair();
    const here = pair[ender];
    const there = pair[ender === 'active' ? 'passive' : 'active'];
    for (const side of [here, there])
      for (let i = 0; i < 5; i += 1) side.receive(i, side.sge(i * 1000, 1000));
    const own = here.connector.notifyDisconnect();
    const theirs = there.connector.notifyDisconnect();
    // Requests that completed before the disconnect are delivered at the peer.
    here.endpoint.send(newResult('last'), here.sge(0, 10));
    assert.is((await takeOne(here.outbound)).status, Status.SUCCESS);
    const disconnected = here.connector.disconnect();
    // Disconnecting, or disconnected already if the peer was that fast.
    const again = statusOf(() => here.connector.disconnect());
    assert.ok(
      again === Status.INVALID_DEVICE_STATE || again === Status.CONNECTION_INVALID,
      statusName(again),
    );
    assert.is(await outcome(disconnected), Status.SUCCESS);
    assert.is(await outcome(own), Status.CANCELED);
    assert.is(await outcome(theirs), Status.SUCCESS);
    assert.equal(await statusesOf(here.inbound, 5), Array(5).fill('CANCELED'));
    assert.equal(await statusesOf(there.inbound, 5), ['SUCCESS', ...Array(4).fill('CANCELED')]);
    // A post after the end comes back canceled.
    here.endpoint.send(newResult(), here.sge(0, 10));
    assert.equal(await statusesOf(here.outbound, 1), ['CANCELED']);
    assert.is(await outcome(there.connector.notifyDisconnect()), Status.SUCCESS);
    assert.is(await outcome(there.connector.disconnect()), Status.SUCCESS);
    assert.is(
      statusOf(() => there.connector.disconnect()),
      Status.CONNECTION_INVALID,
    );
    assert.is(
      statusOf(() => here.connector.disconnect()),
      Status.CONNECTION_INVALID,
    );
    here.release();
    there.release();
  });
}

test('both sides disconnect at once, and both succeed', async ({ host }) => {
  for (let round = 0; round < 5; round += 1) {
    const { active, passive } = await host.pair();
    for (const side of [active, passive]) for (let i = 0; i < 3; i += 1) side.receive(i, side.sge(0, 100));
    const both = [active.connector.disconnect(), passive.connector.disconnect()];
    for (const request of both) assert.is(await outcome(request), Status.SUCCESS);
    for (const side of [active, passive]) {
      assert.equal(await statusesOf(side.inbound, 3), Array(3).fill('CANCELED'));
      side.release();
    }
  }
});

test('disconnect with Sends outstanding: each comes back once', async ({ host }) => {
  const { active, passive } = await host.pair();
  const disconnected = active.connector.disconnect();
  // The queue pair is in ERROR, or is about to be, so these are not received.
  for (let i = 0; i < 20; i += 1)
    active.endpoint.send(newResult(i), active.sge(0, 1000), NdOpFlag.SILENT_SUCCESS);
  const results = await take(active.outbound, 20);
  assert.equal(
    results.map(({ context }) => context),
    Array.from({ length: 20 }, (_, i) => i),
  );
  assert.ok(results.slice(1).every(({ status }) => status === Status.CANCELED));
  await disconnected;
  active.release();
  passive.release();
});

test('releasing a connected connector is a disconnect for the peer', async ({ host }) => {
  const { active, passive } = await host.pair();
  passive.receive('r', passive.sge(0, 100));
  const gone = passive.connector.notifyDisconnect();
  active.connector.release();
  assert.is(await outcome(gone), Status.SUCCESS);
  assert.equal(await statusesOf(passive.inbound, 1), ['CANCELED']);
  active.release();
  passive.release();
});

test('each protocol has ports of its own', async ({ host }) => {
  const { port } = host.listener;
  const listeners = new Map(
    [123, 6, 0].map((protocol) => {
      const at = protocol === 6 ? host.listener : host.adapter.listen({ port, protocol });
      return [protocol, at] as const;
    }),
  );
  for (const [protocol, listener] of listeners) {
    const active = host.newSide();
    const passive = host.newSide();
    const asked = listener.getConnectionRequest(passive.connector);
    const address = { family: 4, address: ADDRESS, port } as const;
    const connected = active.connector.connect(active.endpoint, address, {
      protocol,
      privateData: Uint8Array.of(protocol),
    });
    await asked;
    assert.is(passive.connector.getConnectionData().privateData[0], protocol);
    assert.equal(passive.connector.getPeerAddress(), active.connector.getLocalAddress());
    passive.connector.reject();
    assert.is(await outcome(connected), Status.CONNECTION_REFUSED);
    // The same connector, in the port space of a protocol in which nobody listens.
    const nobody = active.connector.connect(active.endpoint, address, { protocol: 250 });
    assert.is(await outcome(nobody), Status.CONNECTION_REFUSED);
    passive.release();
    active.release();
  }
  assert.is(
    statusOf(() => host.adapter.listen({ port, protocol: 123 })),
    Status.ADDRESS_ALREADY_EXISTS,
  );
  for (const [protocol, listener] of listeners) if (protocol !== 6) listener.release();
});

test.run();
