/** ND SPI v2: connections established, refused, abandoned and ended, and listeners. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LOOPBACK as ADDRESS, textOf } from '../../nd/cli/sides/connected-side.js';
import { HostV2, SideV2 } from '../../nd/cli/sides/v2.js';
import {
  type IND2Connector,
  Nd2MrFlag,
  Nd2OpFlag,
  Nd2RemoteMemory,
  type Nd2Result,
  type NdError,
  type Overlapped,
  openNetworkDirect,
  openNetworkDirect2,
  Status,
  statusName,
} from '../../nd/index.js';
import { statusOf } from '../helpers/nd-fixture.js';
import { outcome } from '../helpers/outcome.js';
import { HANG_MS } from '../helpers/within.js';

const test = suite<{ host: HostV2 }>('ND v2 in one process: connections');
const { ALLOW_READ, INLINE } = Nd2OpFlag;
const { ALLOW_LOCAL_WRITE } = Nd2MrFlag;

test.before((context) => {
  context.host = new HostV2();
});
test.after(({ host }) => {
  host.release();
});

const text = (value: string) => {
  const memory = new TextEncoder().encode(value);
  return [{ memory, offset: 0, length: memory.length }];
};

const names = (results: readonly { status: number }[]) => results.map(({ status }) => statusName(status));

test('T10 many connectors on the listener’s own address and port, at once', async ({ host }) => {
  const sides = await Promise.all(Array.from({ length: 16 }, () => new SideV2(host.adapter)));
  const own = host.listener.getLocalAddress();
  const [active, passive] = [sides.slice(0, 8), sides.slice(8)];
  const served = Promise.all(
    passive.map(async ({ connector, queuePair }) => {
      await host.listener.getConnectionRequest(connector);
      await connector.accept(queuePair);
    }),
  );
  await Promise.all(
    active.map(async ({ connector, queuePair }) => {
      connector.bind(own);
      assert.equal(connector.getLocalAddress(), own);
      await connector.connect(queuePair, host.target);
      await connector.completeConnect();
    }),
  );
  await served;
  for (const [i, side] of passive.entries()) side.queuePair.receive(i, side.sge(0, 10));
  for (const side of active) side.queuePair.send('s', side.sge(0, 10));
  for (const side of passive) assert.equal(names(await side.received()), ['SUCCESS']);
  for (const side of sides) side.release();
});

test('T11 G2 after a refusal: its data, the same connector, port and queue pair, and the Receives posted before', async ({
  host,
}) => {
  const active = new SideV2(host.adapter);
  const passive = new SideV2(host.adapter);
  active.queuePair.receive('posted before', active.sge(0, 10));
  active.connector.bind(ADDRESS);
  const { port } = active.connector.getLocalAddress();
  const nobody = host.adapter.createListener();
  nobody.bind(ADDRESS);
  const dead = nobody.getLocalAddress();
  nobody.release();
  assert.is(await outcome(active.connector.connect(active.queuePair, dead)), Status.CONNECTION_REFUSED);
  assert.ok(textOf(active.connector.getPrivateData()) === '', 'nobody said anything');

  const rejector = host.adapter.createConnector();
  const requested = host.listener.getConnectionRequest(rejector);
  const refused = active.connector.connect(active.queuePair, host.target);
  await requested;
  rejector.reject(new Uint8Array(56).fill(0x42));
  assert.is(await outcome(refused), Status.CONNECTION_REFUSED);
  assert.equal(active.connector.getPrivateData().subarray(0, 56), new Uint8Array(56).fill(0x42));
  assert.is(active.connector.getLocalAddress().port, port, 'G4 the port stays');

  const again = host.listener.getConnectionRequest(passive.connector);
  const connected = active.connector.connect(active.queuePair, host.target);
  await again;
  const accepted = passive.connector.accept(passive.queuePair);
  await connected;
  await active.connector.completeConnect();
  await accepted;
  passive.queuePair.send('s', passive.sge(0, 10));
  const [result] = await active.received();
  assert.equal([result!.requestContext, result!.status], ['posted before', 0]);
  for (const side of [active, passive]) side.release();
  rejector.release();
});

test('T11 the active side turns the reply down: Accept is CONNECTION_REFUSED, its queue pair flushed, both ended', async ({
  host,
}) => {
  const active = new SideV2(host.adapter);
  const passive = new SideV2(host.adapter);
  passive.queuePair.receive('r', passive.sge(0, 10));
  active.connector.bind(ADDRESS);
  const requested = host.listener.getConnectionRequest(passive.connector);
  const connected = active.connector.connect(active.queuePair, host.target);
  await requested;
  const accepted = passive.connector.accept(passive.queuePair);
  await connected;
  active.connector.reject(new TextEncoder().encode('no, thanks'));
  assert.is(await outcome(accepted), Status.CONNECTION_REFUSED);
  assert.is(textOf(passive.connector.getPrivateData()), 'no, thanks');
  assert.equal(names(await passive.received()), ['CANCELED']);
  assert.is(
    statusOf(() => passive.connector.accept(passive.queuePair)),
    Status.CONNECTION_ABORTED,
  );
  assert.is(
    statusOf(() => active.connector.completeConnect()),
    Status.CONNECTION_ABORTED,
  );
  for (const side of [active, passive]) side.release();
});

test('a requester that gives up: Accept, Reject and GetPrivateData of the other side say so', async ({
  host,
}) => {
  for (const method of ['accept', 'reject'] as const) {
    const active = new SideV2(host.adapter);
    const passive = new SideV2(host.adapter);
    active.connector.bind(ADDRESS);
    const requested = host.listener.getConnectionRequest(passive.connector);
    const connected = active.connector.connect(active.queuePair, host.target);
    await requested;
    active.connector.cancelOverlappedRequests();
    assert.is(connected.status, Status.CANCELED);
    assert.is(
      statusOf(() => active.connector.connect(active.queuePair, host.target)),
      Status.INVALID_DEVICE_STATE,
    );
    let status = 0;
    for (const patience = AbortSignal.timeout(HANG_MS); !patience.aborted; ) {
      // The peer's message is under way.
      status = statusOf(() => passive.connector.getPrivateData());
      if (status !== 0) break;
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.is(status, Status.CONNECTION_ABORTED);
    const call = async () => {
      if (method === 'reject') passive.connector.reject();
      else await passive.connector.accept(passive.queuePair);
    };
    const over = method === 'accept' ? Status.CONNECTION_ABORTED : Status.CONNECTION_INVALID;
    assert.is(await outcome(call()), over);
    for (const side of [active, passive]) side.release();
  }
});

for (const keep of [undefined, false, true]) {
  for (const keeper of ['active', 'passive'] as const) {
    test(`a disconnect by the peer: keepQueuePairsOnDisconnect ${String(keep)}, on the ${keeper} side`, async ({
      host,
    }) => {
      const own = host.provider.openAdapter(ADDRESS, { keepQueuePairsOnDisconnect: keep });
      const [active, passive] =
        keeper === 'active'
          ? [new SideV2(own), new SideV2(host.adapter)]
          : [new SideV2(host.adapter), new SideV2(own)];
      const listener = passive.adapter.createListener();
      listener.bind(`${ADDRESS}:0`);
      listener.listen();
      const requested = listener.getConnectionRequest(passive.connector);
      const connected = active.connect(listener.getLocalAddress());
      await requested;
      const accepted = passive.accept();
      await connected;
      await active.completeConnect();
      await accepted;
      const [here, there] = keeper === 'active' ? [active, passive] : [passive, active];
      here.queuePair.receive('waits', here.sge(0, 16));
      const ended = here.notifyDisconnect();
      await there.disconnect();
      await ended;
      const results: Nd2Result[] = [];
      assert.is(here.inbound.getResults(results, 4), keep === true ? 0 : 1);
      await here.disconnect();
      if (keep === true) assert.is(here.inbound.getResults(results, 4), 1, 'its own disconnect flushes');
      assert.equal([results[0]!.requestContext, results[0]!.status], ['waits', Status.CANCELED]);
      for (const side of [active, passive]) side.release();
      listener.release();
      own.release();
    });
  }
}

test('that choice is a boolean', ({ host }) => {
  for (const wrong of [null, 0, 'yes', {}]) {
    const options = { keepQueuePairsOnDisconnect: wrong as never };
    assert.is(
      statusOf(() => host.provider.openAdapter(ADDRESS, options)),
      Status.INVALID_PARAMETER,
    );
  }
});

for (const ender of ['active', 'passive'] as const) {
  test(`T5 G6 G12 G13 disconnect by the ${ender} side: told, delivered, flushed, without a call of the other`, async ({
    host,
  }) => {
    const sides = await host.pair();
    const mine = sides[ender];
    const other = sides[ender === 'active' ? 'passive' : 'active'];
    const events: string[] = [];
    for (let i = 0; i < 4; i += 1) other.queuePair.receive(i, other.sge(0, 10));
    mine.queuePair.receive('mine', mine.sge(0, 10));
    mine.queuePair.send('last words', mine.sge(0, 10));
    assert.equal(names(await mine.initiated()), ['SUCCESS']);
    const [own, told] = [mine.connector.notifyDisconnect(), other.connector.notifyDisconnect()];
    told.then(() => events.push('told'));
    await mine.connector.disconnect();
    assert.is(await outcome(own), Status.CONNECTION_DISCONNECTED);
    await told;
    assert.equal(names(await mine.received()), ['CANCELED']);
    const all = await other.received(4);
    assert.equal(names(all), ['SUCCESS', 'CANCELED', 'CANCELED', 'CANCELED']);
    assert.equal(
      all.map(({ requestContext }) => requestContext),
      [0, 1, 2, 3],
    );
    assert.equal(events, ['told']);
    await other.connector.notifyDisconnect();
    assert.is(await outcome(other.connector.disconnect()), Status.SUCCESS);
    for (const side of [mine, other]) {
      assert.is(
        statusOf(() => side.connector.disconnect()),
        Status.CONNECTION_INVALID,
      );
      assert.is(
        statusOf(() => side.connector.notifyDisconnect()),
        Status.CONNECTION_DISCONNECTED,
      );
      side.release();
    }
  });
}

test('T15 both sides disconnect at once, and both succeed', async ({ host }) => {
  const { active, passive } = await host.pair();
  const both = [active.connector.disconnect(), passive.connector.disconnect()];
  for (const one of both) assert.is(await outcome(one), Status.SUCCESS);
  active.release();
  passive.release();
});

test('T20 a connector serves one connection in one role', async ({ host }) => {
  const { active, passive } = await host.pair();
  await active.connector.disconnect();
  const connect = (connector: IND2Connector, side: SideV2) => () =>
    connector.connect(side.queuePair, host.target);
  const fresh = new SideV2(host.adapter);
  assert.is(statusOf(connect(active.connector, fresh)), Status.INVALID_DEVICE_STATE);
  assert.is(
    statusOf(() => host.listener.getConnectionRequest(active.connector)),
    Status.CONNECTION_ACTIVE,
  );
  assert.is(statusOf(connect(passive.connector, fresh)), Status.CONNECTION_ACTIVE);
  fresh.connector.bind(ADDRESS);
  assert.is(
    statusOf(() => host.listener.getConnectionRequest(fresh.connector)),
    Status.CONNECTION_ACTIVE,
  );
  assert.is(statusOf(connect(fresh.connector, passive)), Status.CONNECTION_ACTIVE, 'a queue pair in use');
  for (const side of [active, passive, fresh]) side.release();
});

test('T19 everything released in the wrong order, with requests outstanding, harms nobody', async () => {
  const host = new HostV2();
  const { active, passive } = await host.pair();
  const waiting: Overlapped<unknown>[] = [
    active.inbound.notify('any'),
    active.connector.notifyDisconnect(),
    host.listener.getConnectionRequest(host.adapter.createConnector()),
  ];
  for (let i = 0; i < 5; i += 1) active.queuePair.receive(i, active.sge(0, 10));
  host.provider.release();
  host.adapter.release();
  active.region.release();
  active.inbound.release();
  host.listener.release();
  const told = passive.connector.notifyDisconnect();
  active.queuePair.release();
  assert.is(await outcome(told), Status.SUCCESS, 'the queue pair’s release is a disconnect');
  active.connector.release();
  active.outbound.release();
  for (const request of waiting) assert.is.not(await outcome(request), Status.SUCCESS);
  assert.is(active.connector.release(), 0, 'releasing too often takes nothing');
  assert.is(
    statusOf(() => active.queuePair.flush()),
    Status.INVALID_HANDLE,
  );
  passive.release();
});

test('T24 ports are numbers in host order, in both versions, and v1 and v2 talk with each other', async ({
  host,
}) => {
  const v1 = openNetworkDirect();
  const adapter = v1.openAdapter(ADDRESS);
  const listen = adapter.listen();
  const side = new SideV2(host.adapter);
  const queue = adapter.createCompletionQueue(8);
  const connector = adapter.createConnector();
  const endpoint = connector.createEndpoint({
    inboundCompletionQueue: queue,
    outboundCompletionQueue: queue,
    inboundEntries: 4,
    outboundEntries: 4,
  });
  side.connector.bind({ family: 4, address: ADDRESS, port: 50_505 });
  const requested = listen.getConnectionRequest(connector);
  const connected = side.connector.connect(side.queuePair, `${ADDRESS}:${listen.port}`);
  await requested;
  assert.is(connector.getPeerAddress().port, 50_505);
  assert.is(side.connector.getPeerAddress().port, listen.port);
  const accepted = connector.accept(endpoint);
  await connected;
  await side.connector.completeConnect();
  await accepted;
  // A window of v1 and a Read of v2.
  const bytes = new Uint8Array(64).fill(5);
  const memory = await adapter.registerMemory(bytes);
  const result = { status: 0, bytesTransferred: 0 };
  const descriptor = endpoint.bind(result, memory, adapter.createMemoryWindow(), 0, 64, ALLOW_READ);
  await queue.notify('any');
  side.queuePair.read('r', side.sge(0, 64), new Nd2RemoteMemory(descriptor.base, descriptor.token));
  assert.equal(names(await side.initiated()), ['SUCCESS']);
  assert.ok(side.bytes.subarray(0, 64).every((byte) => byte === 5));
  await side.connector.disconnect();
  side.release();
  for (const object of [connector, endpoint, queue, listen, adapter, v1]) object.release();
});

test('a whole connection with blocking calls only: no turn of the event loop', ({ host }) => {
  const wait = { wait: true };
  const make = () => {
    const queue = host.adapter.createCompletionQueue(16);
    const queuePair = host.adapter.createQueuePair({
      receiveCompletionQueue: queue,
      initiatorCompletionQueue: queue,
      receiveQueueDepth: 4,
      initiatorQueueDepth: 4,
      inlineDataSize: 16,
    });
    return { queue, queuePair, connector: host.adapter.createConnector() };
  };
  const [a, b] = [make(), make()];
  const region = host.adapter.createMemoryRegion();
  const bytes = new Uint8Array(16);
  region.getOverlappedResult(region.register(bytes, ALLOW_LOCAL_WRITE), wait);
  b.queuePair.receive('r', [{ memory: region, offset: 0, length: 16 }]);
  const requested = host.listener.getConnectionRequest(b.connector);
  a.connector.bind(ADDRESS);
  const connected = a.connector.connect(a.queuePair, host.target);
  requested.getResult(wait);
  const accepted = b.connector.accept(b.queuePair);
  connected.getResult(wait);
  a.connector.getOverlappedResult(a.connector.completeConnect(), wait);
  // Another object may be queried.
  region.getOverlappedResult(accepted, wait);
  a.queuePair.send('s', text('hello'), INLINE);
  b.queue.notify('any').getResult(wait);
  assert.is(textOf(bytes), 'hello');
  a.connector.disconnect().getResult(wait);
  region.deregister().getResult(wait);
  for (const object of [...Object.values(a), ...Object.values(b), region]) object.release();
});

test('a listener on the wildcard address takes what comes to its adapter', async ({ host }) => {
  const listener = host.adapter.createListener();
  listener.bind('0.0.0.0');
  listener.listen();
  const { port } = listener.getLocalAddress();
  const active = new SideV2(host.adapter);
  const passive = new SideV2(host.adapter);
  const requested = listener.getConnectionRequest(passive.connector);
  active.connector.bind(ADDRESS);
  const connected = active.connector.connect(active.queuePair, `${ADDRESS}:${port}`);
  await requested;
  assert.equal(passive.connector.getLocalAddress(), { family: 4, address: ADDRESS, port });
  const accepted = passive.connector.accept(passive.queuePair);
  await connected;
  await active.connector.completeConnect();
  await accepted;
  for (const side of [active, passive]) side.release();
  listener.release();
});

test('a port is taken once, across adapter instances too, and free again after its listener', ({ host }) => {
  const { port } = host.listener.getLocalAddress();
  const adapter = host.provider.openAdapter(host.provider.resolveAddress(ADDRESS));
  const second = adapter.createListener();
  const taken = statusOf(() => {
    second.bind({ family: 4, address: ADDRESS, port });
    second.listen();
  });
  assert.ok(
    [Status.ADDRESS_ALREADY_EXISTS, Status.SHARING_VIOLATION].includes(taken as never),
    statusName(taken),
  );
  second.release();
  adapter.release();
});

test('a peer without a port is refused at once, and nothing has happened', async ({ host }) => {
  const side = new SideV2(host.adapter);
  side.connector.bind(ADDRESS);
  const local = host.listener.getLocalAddress();
  for (const peer of [ADDRESS, { ...local, port: 0 }, { ...local, port: 65_536 }]) {
    assert.throws(
      () => side.connector.connect(side.queuePair, peer),
      ({ status, message }: NdError) =>
        status === Status.INVALID_ADDRESS && message.includes('from 1 to 65535'),
    );
  }
  const passive = host.adapter.createConnector();
  const requested = host.listener.getConnectionRequest(passive);
  const connect = side.connector.connect(side.queuePair, host.target);
  await requested;
  passive.release();
  assert.is(await outcome(connect), Status.CONNECTION_REFUSED);
  side.release();
});

test('the peer that a loopback address leads to is told with its scope, as it is bound', async () => {
  const provider = openNetworkDirect2();
  const own = provider.queryAddressList().find(({ address }) => address.startsWith('fe80:'));
  if (own !== undefined) {
    const adapter = provider.openAdapter(provider.resolveAddress(own));
    const side = new SideV2(adapter);
    const listener = adapter.createListener();
    listener.bind(own);
    listener.listen();
    const local = listener.getLocalAddress();
    const passive = adapter.createConnector();
    const requested = listener.getConnectionRequest(passive);
    side.connector.bind(own);
    const connect = side.connector.connect(side.queuePair, { ...local, address: '0:0:0:0:0:0:0:1' });
    await requested;
    assert.match(local.address, /%\d+$/);
    assert.equal(side.connector.getPeerAddress(), local);
    passive.reject();
    assert.is(await outcome(connect), Status.CONNECTION_REFUSED);
    for (const object of [passive, listener, side, adapter]) object.release();
  }
  provider.release();
});

test.run();
