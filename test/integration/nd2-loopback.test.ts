/**
 * The parts of ND SPI v2 that v1 lacks and that the conformance suite does not require of every provider, through the whole stack. Both
 * sides are in this process. T and G in names number the traps and gaps that nd2-coverage.test.ts lists.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readCounters } from '../../kernel-bridge/index.js';
import { LOOPBACK as ADDRESS } from '../../nd/cli/sides/connected-side.js';
import { ALL_RIGHTS, HostV2, SideV2 } from '../../nd/cli/sides/v2-side.js';
import {
  type IND2MemoryWindow,
  Nd2MrFlag,
  Nd2OpFlag,
  Nd2RemoteMemory,
  type Overlapped,
  openNetworkDirect,
  openNetworkDirect2,
  Status,
  statusName,
} from '../../nd/index.js';
import { endsIn, statusOf } from '../helpers/nd-fixture.js';
import { outcome } from '../helpers/outcome.js';

const test = suite<{ host: HostV2 }>('ND v2 in one process: what it has alone');
const { ALLOW_READ, INLINE } = Nd2OpFlag;
const { ALLOW_LOCAL_WRITE, ALLOW_REMOTE_READ } = Nd2MrFlag;

test.before((context) => {
  context.host = new HostV2();
});
test.after(({ host }) => {
  host.release();
});

const names = (results: readonly { status: number }[]) => results.map(({ status }) => statusName(status));

test('a local token identifies the memory of its region in every list, until it is deregistered', async ({
  host,
}) => {
  const { active, passive } = await host.pair();
  const { adapter } = host;
  const [source, target] = [adapter.createMemoryRegion(), adapter.createMemoryRegion()];
  const [from, into] = [Buffer.alloc(64, 'token'), Buffer.alloc(64)];
  await source.register(from, ALLOW_LOCAL_WRITE | ALLOW_REMOTE_READ);
  await target.register(into, ALLOW_LOCAL_WRITE);
  const [out, inTo] = [source.getLocalToken(), target.getLocalToken()];
  passive.queuePair.receive('r', [{ memory: inTo, offset: 8, length: 20 }]);
  active.queuePair.send('s', [
    { memory: out, offset: 0, length: 4 },
    { memory: source, offset: 4, length: 16 },
  ]);
  assert.is((await passive.received())[0]!.bytesTransferred, 20);
  assert.ok(into.subarray(8, 28).equals(from.subarray(0, 20)));
  const remote = new Nd2RemoteMemory(source.address, source.getRemoteToken());
  active.queuePair.read('d', [{ memory: inTo, offset: 40, length: 8 }], remote, 16);
  assert.equal(names(await active.initiated(2)), ['SUCCESS', 'SUCCESS']);
  assert.ok(into.subarray(40, 48).equals(from.subarray(16, 24)));

  const refused = (memory: number): string =>
    statusName(statusOf(() => active.queuePair.send('s', [{ memory, offset: 0, length: 1 }])));
  await source.deregister();
  await source.register(from, 0);
  target.release();
  for (const token of [out, inTo, 0, -1, 1.5, Number.NaN]) {
    assert.is(refused(token), 'INVALID_HANDLE', String(token));
  }
  active.queuePair.send('s', [{ memory: source.getLocalToken(), offset: 0, length: 0 }]);
  source.release();
  active.release();
  passive.release();
});

test('inline bytes beyond a region are rejected by the call, which copies them', async ({ host }) => {
  const { active, passive } = await host.pair();
  const region = host.adapter.createMemoryRegion();
  await region.register(new Uint8Array(64), ALLOW_LOCAL_WRITE);
  const beyond = [{ memory: region, offset: 60, length: 64 }];
  endsIn(() => active.queuePair.send('inline', beyond, INLINE), Status.ACCESS_VIOLATION);
  active.release();
  passive.release();
  region.release();
});

test('T19 a region that is released before its windows is deregistered when the last window is released', async ({
  host,
}) => {
  const registered = (): number => readCounters().objects.mr;
  const before = registered();
  const ways: Record<string, (side: SideV2, window: IND2MemoryWindow) => unknown> = {
    released: (_, window) => window.release(),
    invalidated: async (side, window) => {
      side.queuePair.invalidate('i', window);
      assert.equal(names(await side.initiated()), ['SUCCESS']);
    },
    flushed: ({ connector, queuePair }) => {
      connector.release();
      queuePair.release();
    },
  };
  for (const [how, end] of Object.entries(ways)) {
    const { active, passive } = await host.pair();
    const own = registered();
    const region = host.adapter.createMemoryRegion();
    await region.register(new Uint8Array(4096), ALL_RIGHTS);
    const windows = [host.adapter.createMemoryWindow(), host.adapter.createMemoryWindow()] as const;
    for (const window of windows) active.queuePair.bind('b', region, window, 0, 4096, ALLOW_READ);
    assert.equal(names(await active.initiated(2)), ['SUCCESS', 'SUCCESS']);
    region.release();
    windows[0].release();
    assert.is(registered(), own + 1, 'a window opens it still');
    await end(active, windows[1]);
    assert.is(registered(), own, how);
    windows[1].release();
    active.release();
    passive.release();
  }
  assert.is(registered(), before);
});

test('the hint to poll ends with each wait without a result', ({ host }) => {
  using queue = host.adapter.createCompletionQueue(4);
  assert.type(queue.shouldPoll, 'function');
  let waits = 0;
  for (; waits < 10; waits += 1) while (queue.shouldPoll!()) assert.is(queue.getResults([]), 0);
  assert.is(waits, 10);
});

test('T8 cancelling a completion queue: all Notify requests have ended on return, in order, and it can be armed again', async ({
  host,
}) => {
  const { active, passive } = await host.pair();
  const order: number[] = [];
  const requests = (['any', 'solicited', 'errors', 'any'] as const).map((type, i) => {
    const request = passive.inbound.notify(type);
    request.catch(() => order.push(i));
    return request;
  });
  const elsewhere = passive.outbound.notify('any');
  passive.inbound.cancelOverlappedRequests();
  for (const request of requests) {
    assert.is(request.completed, true);
    assert.is(request.status, Status.CANCELED);
  }
  assert.is(elsewhere.completed, false, 'requests of other objects go on');
  await outcome(requests[3]!);
  assert.equal(order, [0, 1, 2, 3]);
  const again = passive.inbound.notify('any');
  passive.queuePair.receive('r', []);
  active.queuePair.send('s', []);
  await again;
  passive.inbound.cancelOverlappedRequests();
  passive.outbound.cancelOverlappedRequests();
  active.release();
  passive.release();
});

test('T7 an immediate result is also delivered exactly once, after the call', async ({ host }) => {
  const { active, passive } = await host.pair();
  passive.queuePair.receive('r', []);
  active.queuePair.send('s', []);
  await active.initiated();
  // Its result is already available, and so is that of the failed Connect.
  const connector = host.adapter.createConnector();
  connector.bind(ADDRESS);
  const lonely = new SideV2(host.adapter);
  const requests: Overlapped<void>[] = [
    passive.inbound.notify('any'),
    connector.connect(lonely.queuePair, '0.0.0.0:1'),
  ];
  const calls: string[] = [];
  for (const [i, request] of requests.entries()) {
    request.then(
      () => calls.push(`${i} done`),
      () => calls.push(`${i} failed`),
    );
  }
  assert.equal(calls, [], 'not during the calls');
  for (const request of requests) await outcome(request);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(calls.sort(), ['0 done', '1 failed']);
  assert.is(requests[1]!.status, Status.BAD_NETWORK_NAME);
  for (const side of [active, passive, lonely]) side.release();
  connector.release();
});

test('keepQueuePairsOnDisconnect is a boolean', ({ host }) => {
  for (const wrong of [null, 0, 'yes', {}]) {
    const options = { keepQueuePairsOnDisconnect: wrong as never };
    endsIn(() => host.provider.openAdapter(ADDRESS, options), Status.INVALID_PARAMETER);
  }
});

test('T24 ports are numbers in host order, in both versions, and v1 and v2 interoperate', async ({
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
  // Uses a window in v1 and a Read in v2.
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

test('the peer at a loopback address is reported with the scope to which it is bound', async () => {
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
