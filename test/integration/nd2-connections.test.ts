/** What connections and listeners have in ND SPI v2 alone, both sides in this process. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LOOPBACK as ADDRESS } from '../../nd/cli/sides/connected-side.js';
import { HostV2, SideV2 } from '../../nd/cli/sides/v2.js';
import {
  type IND2Connector,
  Nd2OpFlag,
  Nd2RemoteMemory,
  type Nd2Result,
  openNetworkDirect,
  openNetworkDirect2,
  Status,
  statusName,
} from '../../nd/index.js';
import { statusOf } from '../helpers/nd-fixture.js';
import { outcome } from '../helpers/outcome.js';

const test = suite<{ host: HostV2 }>('ND v2 connections in one process: what they have alone');
const { ALLOW_READ } = Nd2OpFlag;

test.before((context) => {
  context.host = new HostV2();
});
test.after(({ host }) => {
  host.release();
});

const names = (results: readonly { status: number }[]) => results.map(({ status }) => statusName(status));

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
