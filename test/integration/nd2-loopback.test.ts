/**
 * ND SPI v2 through the whole stack: both sides in this process, over 127.0.0.1. T and G in names number the traps and
 * gaps that nd2-coverage.test.ts lists.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type IND2Connector,
  Nd2MrFlag,
  Nd2OpFlag,
  Nd2RemoteMemory,
  Nd2RequestType,
  type Overlapped,
  openNetworkDirect,
  Status,
  statusName,
} from '../../nd/index.js';
import { statusOf } from '../helpers/nd-fixture.js';
import { ADDRESS, outcome, textOf } from '../helpers/nd-pair.js';
import { Host2, pair2, Side, take } from '../helpers/nd2-pair.js';

const test = suite<{ host: Host2 }>('ND v2 in one process');
const { ALLOW_READ, ALLOW_WRITE, INLINE, SILENT_SUCCESS, READ_FENCE } = Nd2OpFlag;
const { ALLOW_LOCAL_WRITE, ALLOW_REMOTE_READ, ALLOW_REMOTE_WRITE } = Nd2MrFlag;

test.before((context) => {
  context.host = new Host2();
});
test.after(({ host }) => {
  host.release();
});

const text = (value: string) => {
  const memory = new TextEncoder().encode(value);
  return [{ memory, offset: 0, length: memory.length }];
};

const names = (results: readonly { status: number }[]) => results.map(({ status }) => statusName(status));

test('T12 T13 G15 what connecting tells: data, limits, addresses, in each side’s view', async ({ host }) => {
  const active = await Side.create(host.adapter);
  const passive = await Side.create(host.adapter);
  active.connector.bind(ADDRESS);
  const local = active.connector.getLocalAddress();
  assert.ok(local.port >= 49_152, 'T9 an ephemeral port, right after Bind');
  const requested = host.listener.getConnectionRequest(passive.connector);
  const connected = active.connector.connect(active.queuePair, host.address, {
    inboundReadLimit: 3,
    outboundReadLimit: 5,
    privateData: new TextEncoder().encode('active'),
  });
  await requested;
  // Inbound here is what the peer called outbound.
  assert.equal(passive.connector.getReadLimits(), { inbound: 5, outbound: 3 });
  const data = passive.connector.getPrivateData();
  assert.is(textOf(data), 'active');
  assert.ok(
    data.subarray(6).every((byte) => byte === 0),
    'padded with zeros, if at all',
  );
  assert.is(passive.connector.getLocalAddress().port, host.listener.getLocalAddress().port);
  assert.equal(passive.connector.getPeerAddress(), local);
  const accepted = passive.connector.accept(passive.queuePair, {
    inboundReadLimit: 4,
    outboundReadLimit: 16,
    privateData: new TextEncoder().encode('passive'),
  });
  await connected;
  assert.equal(active.connector.getReadLimits(), { inbound: 3, outbound: 4 });
  assert.is(textOf(active.connector.getPrivateData()), 'passive');
  await active.connector.completeConnect();
  await accepted;
  assert.is(textOf(passive.connector.getPrivateData()), 'active', 'still there after Accept');
  active.release();
  passive.release();
});

test('messages in order, with types, contexts and lengths; 0 bytes and two entries too', async ({ host }) => {
  const { active, passive } = await pair2(host, { active: { context: 'A' }, passive: { context: 'P' } });
  const lengths = [0, 1, 100, 5000];
  for (const i of lengths.keys()) passive.queuePair.receive(i, passive.sge(i * 8192, 8192));
  active.bytes.fill(7);
  for (const [i, length] of lengths.entries()) {
    const half = length >> 1;
    active.queuePair.send(i, [...active.sge(0, half), ...active.sge(half, length - half)]);
  }
  assert.equal(
    await passive.received(4),
    lengths.map((length, i) => ({
      status: 0,
      bytesTransferred: length,
      queuePairContext: 'P',
      requestContext: i,
      requestType: Nd2RequestType.RECEIVE,
    })),
  );
  for (const { requestType } of await active.initiated(4)) assert.is(requestType, Nd2RequestType.SEND);
  assert.ok(passive.bytes.subarray(3 * 8192, 3 * 8192 + 5000).every((byte) => byte === 7));
  active.release();
  passive.release();
});

test('INLINE: free at once, more entries than the queue pair takes, up to its size and not beyond', async ({
  host,
}) => {
  const { active, passive } = await pair2(host, { active: { inlineDataSize: 16 } });
  passive.queuePair.receive('r', passive.sge(0, 100));
  const memory = new TextEncoder().encode('0123456789abcdef!');
  active.queuePair.send(
    's',
    Array.from({ length: 16 }, (_, offset) => ({ memory, offset, length: 1 })),
    INLINE,
  );
  memory.fill(0);
  await passive.received();
  assert.is(textOf(passive.bytes.subarray(0, 16)), '0123456789abcdef');
  const beyond = [{ memory, offset: 0, length: 17 }];
  assert.is(
    statusOf(() => active.queuePair.send('s', beyond, INLINE)),
    Status.BUFFER_OVERFLOW,
  );
  const three = [...active.sge(0, 1), ...active.sge(1, 1), ...active.sge(2, 1)];
  assert.is(
    statusOf(() => active.queuePair.send('s', three)),
    Status.DATA_OVERRUN,
  );
  active.release();
  passive.release();
  const none = await pair2(host, { active: { inlineDataSize: 0 } });
  none.passive.queuePair.receive('r', []);
  none.active.queuePair.send('s', [], INLINE);
  assert.equal(names(await none.passive.received()), ['SUCCESS']);
  none.active.release();
  none.passive.release();
});

test('T22 a region’s remote token travels as four bytes, and peers read and write by it', async ({
  host,
}) => {
  const { active, passive } = await pair2(host);
  const message = Buffer.alloc(12);
  message.writeBigUInt64BE(passive.region.address, 0);
  message.writeUInt32BE(passive.region.getRemoteToken(), 8);
  const remote = new Nd2RemoteMemory(message.readBigUInt64BE(0), message.readUInt32BE(8));
  active.queuePair.write('w', text('written'), remote, 100, INLINE | SILENT_SUCCESS);
  active.queuePair.read('r', active.sge(500, 7), remote, 100, READ_FENCE);
  const [result] = await active.initiated();
  assert.equal([result!.requestType, result!.status], [Nd2RequestType.READ, 0]);
  assert.is(textOf(active.bytes.subarray(500, 507)), 'written');
  // 0 bytes need no memory at all.
  active.queuePair.read('nothing', [], new Nd2RemoteMemory(0n, 0));
  active.queuePair.write('nothing', [], new Nd2RemoteMemory(0n, 0));
  assert.equal(names(await active.initiated(2)), ['SUCCESS', 'SUCCESS']);
  active.release();
  passive.release();
});

const rights: [string, number, 'read' | 'write', string][] = [
  ['nothing', 0, 'read', 'ACCESS_VIOLATION'],
  ['nothing', 0, 'write', 'ACCESS_VIOLATION'],
  ['ALLOW_LOCAL_WRITE', ALLOW_LOCAL_WRITE, 'read', 'ACCESS_VIOLATION'],
  ['ALLOW_LOCAL_WRITE', ALLOW_LOCAL_WRITE, 'write', 'ACCESS_VIOLATION'],
  ['ALLOW_REMOTE_READ', ALLOW_REMOTE_READ, 'read', 'SUCCESS'],
  ['ALLOW_REMOTE_READ', ALLOW_REMOTE_READ, 'write', 'ACCESS_VIOLATION'],
  ['ALLOW_REMOTE_WRITE', ALLOW_REMOTE_WRITE, 'read', 'ACCESS_VIOLATION'],
  ['ALLOW_REMOTE_WRITE', ALLOW_REMOTE_WRITE, 'write', 'SUCCESS'],
];
for (const [name, flags, operation, expected] of rights) {
  test(`T2 T6 a peer’s ${operation} of a region with ${name}: ${expected}`, async ({ host }) => {
    const { active, passive } = await pair2(host);
    const region = host.adapter.createMemoryRegion();
    await region.register(new Uint8Array(64), flags);
    const remote = new Nd2RemoteMemory(region.address, region.getRemoteToken());
    active.queuePair[operation]('x', active.sge(0, 64), remote);
    const [result] = await active.initiated();
    assert.is(statusName(result!.status), expected);
    if (expected !== 'SUCCESS') await passive.connector.notifyDisconnect();
    active.release();
    passive.release();
    region.release();
  });
}

test('T6 beyond a region by one byte is ACCESS_VIOLATION, and ends the connection on both sides', async ({
  host,
}) => {
  const { active, passive } = await pair2(host);
  passive.queuePair.receive('r', passive.sge(0, 10));
  active.queuePair.read('x', active.sge(0, 2), passive.remote, passive.bytes.length - 1);
  assert.equal(names(await active.initiated()), ['ACCESS_VIOLATION']);
  assert.equal(names(await passive.received()), ['CANCELLED']);
  await passive.connector.notifyDisconnect();
  active.release();
  passive.release();
});

test('T6 a message longer than its Receive: DATA_OVERRUN there, DATA_ERROR here, and the end', async ({
  host,
}) => {
  const { active, passive } = await pair2(host);
  active.queuePair.receive('mine', active.sge(0, 10));
  passive.queuePair.receive('short', passive.sge(0, 3));
  passive.queuePair.receive('next', passive.sge(0, 3));
  active.queuePair.send('long', active.sge(0, 4));
  assert.equal(names(await passive.received(2)), ['DATA_OVERRUN', 'CANCELLED']);
  assert.equal(names(await active.initiated()), ['DATA_ERROR']);
  assert.equal(names(await active.received()), ['CANCELLED']);
  active.release();
  passive.release();
});

test('T21 G8 a Send that nobody receives ends in IO_TIMEOUT, and the receiver sees nothing of it', async ({
  host,
}) => {
  const { active, passive } = await pair2(host);
  active.queuePair.send('unheard', active.sge(0, 4));
  assert.equal(names(await active.initiated()), ['IO_TIMEOUT']);
  assert.is(passive.receives.getResults([], 1), 0);
  active.release();
  passive.release();
});

test('bad local memory is ACCESS_VIOLATION: no right to write, beyond the end, deregistered meanwhile', async ({
  host,
}) => {
  for (const flags of [0, ALLOW_LOCAL_WRITE]) {
    const { active, passive } = await pair2(host);
    const region = host.adapter.createMemoryRegion();
    await region.register(new Uint8Array(16), flags);
    passive.queuePair.receive('r', [{ memory: region, offset: 0, length: flags === 0 ? 16 : 17 }]);
    active.queuePair.send('s', active.sge(0, flags === 0 ? 16 : 17));
    assert.equal(names(await passive.received()), ['ACCESS_VIOLATION']);
    active.release();
    passive.release();
    region.release();
  }
  const { active, passive } = await pair2(host);
  const region = host.adapter.createMemoryRegion();
  await region.register(new Uint8Array(16), ALLOW_LOCAL_WRITE);
  passive.queuePair.receive('r', [{ memory: region, offset: 0, length: 16 }]);
  await region.deregister();
  active.queuePair.send('s', active.sge(0, 16));
  assert.equal(names(await passive.received()), ['ACCESS_VIOLATION']);
  await region.register(new Uint8Array(16), ALLOW_LOCAL_WRITE);
  active.release();
  passive.release();
  region.release();
});

test('T16 G9 a window’s token goes with the next Send, before the Bind has completed', async ({ host }) => {
  const { active, passive } = await pair2(host);
  active.queuePair.receive('token', active.sge(0, 4));
  const window = passive.adapter.createMemoryWindow();
  passive.queuePair.bind('bind', passive.region, window, 1000, 100, ALLOW_READ | SILENT_SUCCESS);
  const message = Buffer.alloc(4);
  message.writeUInt32BE(window.getRemoteToken());
  passive.queuePair.send('send', [{ memory: message, offset: 0, length: 4 }], INLINE);
  await active.received();
  const token = new DataView(active.bytes.buffer).getUint32(0);
  passive.bytes.fill(9, 1000, 1100);
  active.queuePair.read(
    'read',
    active.sge(100, 100),
    new Nd2RemoteMemory(passive.region.address + 1000n, token),
  );
  assert.equal(names(await active.initiated()), ['SUCCESS']);
  assert.ok(active.bytes.subarray(100, 200).every((byte) => byte === 9));
  active.release();
  passive.release();
});

const windows: [string, number, (side: Side, remote: Nd2RemoteMemory) => void][] = [
  [
    'a Write where only reading is allowed',
    ALLOW_READ,
    (side, remote) => side.queuePair.write('x', side.sge(0, 8), remote),
  ],
  [
    'a Read where only writing is allowed',
    ALLOW_WRITE,
    (side, remote) => side.queuePair.read('x', side.sge(0, 8), remote),
  ],
  ['a Read where nothing is allowed', 0, (side, remote) => side.queuePair.read('x', side.sge(0, 8), remote)],
  [
    'a Read one byte beyond',
    ALLOW_READ,
    (side, remote) => side.queuePair.read('x', side.sge(0, 8), remote, 57),
  ],
  [
    'a Read one byte before',
    ALLOW_READ,
    (side, remote) =>
      side.queuePair.read('x', side.sge(0, 8), new Nd2RemoteMemory(remote.address - 1n, remote.token)),
  ],
];
for (const [what, flags, act] of windows) {
  test(`G9 windows: ${what} is ACCESS_VIOLATION, whatever the region allows`, async ({ host }) => {
    const { active, passive } = await pair2(host);
    const window = passive.adapter.createMemoryWindow();
    passive.queuePair.bind('b', passive.region, window, 64, 64, flags);
    await passive.initiated();
    act(active, new Nd2RemoteMemory(passive.region.address + 64n, window.getRemoteToken()));
    assert.equal(names(await active.initiated()), ['ACCESS_VIOLATION']);
    active.release();
    passive.release();
    window.release();
  });
}

test('G9 a window is for the peer of the queue pair it was bound on, and for no other', async ({ host }) => {
  const one = await pair2(host);
  const two = await pair2(host);
  const window = host.adapter.createMemoryWindow();
  one.passive.queuePair.bind('b', one.passive.region, window, 0, 64, ALLOW_READ);
  await one.passive.initiated();
  const remote = new Nd2RemoteMemory(one.passive.region.address, window.getRemoteToken());
  one.active.queuePair.read('mine', one.active.sge(0, 8), remote);
  assert.equal(names(await one.active.initiated()), ['SUCCESS']);
  two.active.queuePair.read('not mine', two.active.sge(0, 8), remote);
  assert.equal(names(await two.active.initiated()), ['ACCESS_VIOLATION']);
  for (const side of [one.active, one.passive, two.active, two.passive]) side.release();
  window.release();
});

test('G9 windows keep their region registered until invalidated, or until their connection is over', async ({
  host,
}) => {
  const { active, passive } = await pair2(host);
  const region = host.adapter.createMemoryRegion();
  await region.register(new Uint8Array(64), ALLOW_LOCAL_WRITE);
  const window = host.adapter.createMemoryWindow();
  const bind = (side: Side) => side.queuePair.bind('b', region, window, 0, 64, ALLOW_READ | ALLOW_WRITE);
  bind(passive);
  await passive.initiated();
  assert.is(await outcome(region.deregister()), Status.DEVICE_BUSY);
  const token = window.getRemoteToken();
  passive.queuePair.invalidate('i', window, SILENT_SUCCESS);
  bind(passive);
  await passive.initiated();
  assert.is.not(window.getRemoteToken(), token);
  // The old token opens nothing, and its use ends the connection, and with it the new binding.
  active.queuePair.read('old', active.sge(0, 8), new Nd2RemoteMemory(region.address, token));
  assert.equal(names(await active.initiated()), ['ACCESS_VIOLATION']);
  await passive.connector.notifyDisconnect();
  const next = await pair2(host);
  bind(next.passive);
  next.passive.queuePair.invalidate('i', window);
  assert.equal(names(await next.passive.initiated(2)), ['SUCCESS', 'SUCCESS']);
  assert.is(await outcome(region.deregister()), Status.SUCCESS);
  for (const side of [active, passive, next.active, next.passive]) side.release();
  window.release();
  region.release();
});

test('Invalidate of a window that is not bound is INVALID_DEVICE_REQUEST, and the end', async ({ host }) => {
  const { active, passive } = await pair2(host);
  passive.queuePair.invalidate('i', host.adapter.createMemoryWindow());
  const [result] = await passive.initiated();
  assert.equal(
    [statusName(result!.status), result!.requestType],
    ['INVALID_DEVICE_REQUEST', Nd2RequestType.INVALIDATE],
  );
  await active.connector.notifyDisconnect();
  active.release();
  passive.release();
});

test('T14 Flush of a queue pair that never was connected', async ({ host }) => {
  const side = await Side.create(host.adapter, { context: 'QP' });
  for (let i = 0; i < 3; i += 1) side.queuePair.receive(i, side.sge(0, 10));
  for (const call of [
    () => side.queuePair.send('s', []),
    () => side.queuePair.read('r', [], new Nd2RemoteMemory(0n, 0)),
    () => side.queuePair.bind('b', side.region, host.adapter.createMemoryWindow(), 0, 1),
  ]) {
    assert.is(statusOf(call), Status.CONNECTION_INVALID);
  }
  side.queuePair.flush();
  side.queuePair.flush();
  side.queuePair.receive('late', side.sge(0, 10));
  side.queuePair.send('late', []);
  const flushed = await side.received(4);
  assert.equal(
    flushed.map(({ status, requestContext, queuePairContext }) => [status, requestContext, queuePairContext]),
    [0, 1, 2, 'late'].map((context) => [Status.CANCELED, context, 'QP']),
  );
  assert.equal(names(await side.initiated()), ['CANCELLED']);
  side.release();
});

test('T17 flushed requests come back, the silent ones too, in the order of each queue', async ({ host }) => {
  const { active, passive } = await pair2(host);
  for (let i = 0; i < 4; i += 1) active.queuePair.receive(i, active.sge(0, 10));
  // Nobody receives: all of them are outstanding when the flush comes.
  for (let i = 0; i < 4; i += 1)
    active.queuePair.send(i, active.sge(0, 10), i % 2 === 0 ? SILENT_SUCCESS : 0);
  active.queuePair.flush();
  for (const results of [await active.received(4), await active.initiated(4)]) {
    assert.equal(
      results.map(({ status, requestContext }) => [status, requestContext]),
      [0, 1, 2, 3].map((i) => [Status.CANCELED, i]),
    );
  }
  active.release();
  passive.release();
});

test('as many requests as the queues are deep, and no more', async ({ host }) => {
  const { active, passive } = await pair2(host, {
    active: { receiveQueueDepth: 3, initiatorQueueDepth: 2 },
  });
  for (let i = 0; i < 3; i += 1) active.queuePair.receive(i, []);
  assert.is(
    statusOf(() => active.queuePair.receive(3, [])),
    Status.NO_MORE_ENTRIES,
  );
  passive.queuePair.receive('r', []);
  passive.queuePair.receive('r', []);
  active.queuePair.send('s', []);
  active.queuePair.send('s', []);
  assert.is(
    statusOf(() => active.queuePair.send('s', [])),
    Status.NO_MORE_ENTRIES,
  );
  assert.equal(names(await active.initiated(2)), ['SUCCESS', 'SUCCESS']);
  passive.queuePair.receive('r', []);
  active.queuePair.send('s', []);
  assert.equal(names(await active.initiated()), ['SUCCESS']);
  active.release();
  passive.release();
});

test('T18 a completion queue may be smaller than the queues bound to it', async ({ host }) => {
  const small = host.adapter.createCompletionQueue(4);
  const { active, passive } = await pair2(host, {
    active: { initiatorCompletionQueue: small, initiatorQueueDepth: 32 },
  });
  for (let i = 0; i < 20; i += 1) {
    passive.queuePair.receive(i, []);
    active.queuePair.send(i, []);
    assert.equal(names(await take(small, 1)), ['SUCCESS']);
  }
  active.release();
  passive.release();
  small.release();
});

test('a completion queue that overran is dead, and its Notify says so', async ({ host }) => {
  const small = host.adapter.createCompletionQueue(1);
  const entries = small.entries;
  const { active, passive } = await pair2(host, { active: { initiatorCompletionQueue: small } });
  const error = small.notify('errors');
  for (let i = 0; i <= entries; i += 1) passive.queuePair.receive(i, []);
  for (let i = 0; i <= entries; i += 1) active.queuePair.send(i, []);
  assert.is(await outcome(error), Status.BUFFER_OVERFLOW);
  active.release();
  passive.release();
  small.release();
});

test('T8 cancelling a completion queue: all Notify are done on return, in order, and it can be armed again', async ({
  host,
}) => {
  const { active, passive } = await pair2(host);
  const order: number[] = [];
  const requests = (['any', 'solicited', 'errors', 'any'] as const).map((type, i) => {
    const request = passive.receives.notify(type);
    request.catch(() => order.push(i));
    return request;
  });
  const elsewhere = passive.initiators.notify('any');
  passive.receives.cancelOverlappedRequests();
  for (const request of requests) {
    assert.is(request.completed, true);
    assert.is(request.status, Status.CANCELED);
  }
  assert.is(elsewhere.completed, false, 'requests of other objects go on');
  await outcome(requests[3]!);
  assert.equal(order, [0, 1, 2, 3]);
  const again = passive.receives.notify('any');
  passive.queuePair.receive('r', []);
  active.queuePair.send('s', []);
  await again;
  passive.receives.cancelOverlappedRequests();
  passive.initiators.cancelOverlappedRequests();
  active.release();
  passive.release();
});

test('T7 what is known at once is delivered all the same: exactly once, after the call', async ({ host }) => {
  const { active, passive } = await pair2(host);
  passive.queuePair.receive('r', []);
  active.queuePair.send('s', []);
  await active.initiated();
  // The completion is there already, and so is that of the failing Connect.
  const connector = host.adapter.createConnector();
  connector.bind(ADDRESS);
  const lonely = await Side.create(host.adapter);
  const requests: Overlapped<void>[] = [
    passive.receives.notify('any'),
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

test('T10 many connectors on the listener’s own address and port, at once', async ({ host }) => {
  const sides = await Promise.all(Array.from({ length: 16 }, () => Side.create(host.adapter)));
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
      await connector.connect(queuePair, host.address);
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
  const active = await Side.create(host.adapter);
  const passive = await Side.create(host.adapter);
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
  const refused = active.connector.connect(active.queuePair, host.address);
  await requested;
  rejector.reject(new Uint8Array(56).fill(0x42));
  assert.is(await outcome(refused), Status.CONNECTION_REFUSED);
  assert.equal(active.connector.getPrivateData().subarray(0, 56), new Uint8Array(56).fill(0x42));
  assert.is(active.connector.getLocalAddress().port, port, 'G4 the port stays');

  const again = host.listener.getConnectionRequest(passive.connector);
  const connected = active.connector.connect(active.queuePair, host.address);
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
  const active = await Side.create(host.adapter);
  const passive = await Side.create(host.adapter);
  passive.queuePair.receive('r', passive.sge(0, 10));
  active.connector.bind(ADDRESS);
  const requested = host.listener.getConnectionRequest(passive.connector);
  const connected = active.connector.connect(active.queuePair, host.address);
  await requested;
  const accepted = passive.connector.accept(passive.queuePair);
  await connected;
  active.connector.reject(new TextEncoder().encode('no, thanks'));
  assert.is(await outcome(accepted), Status.CONNECTION_REFUSED);
  assert.is(textOf(passive.connector.getPrivateData()), 'no, thanks');
  assert.equal(names(await passive.received()), ['CANCELLED']);
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
    const active = await Side.create(host.adapter);
    const passive = await Side.create(host.adapter);
    active.connector.bind(ADDRESS);
    const requested = host.listener.getConnectionRequest(passive.connector);
    const connected = active.connector.connect(active.queuePair, host.address);
    await requested;
    active.connector.cancelOverlappedRequests();
    assert.is(connected.status, Status.CANCELED);
    assert.is(
      statusOf(() => active.connector.connect(active.queuePair, host.address)),
      Status.INVALID_DEVICE_STATE,
    );
    let status = 0;
    for (const patience = AbortSignal.timeout(10_000); !patience.aborted; ) {
      // The peer's word is on its way.
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

for (const ender of ['active', 'passive'] as const) {
  test(`T5 G6 G12 G13 disconnect by the ${ender} side: told, delivered, flushed, without a call of the other`, async ({
    host,
  }) => {
    const sides = await pair2(host);
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
    assert.equal(names(await mine.received()), ['CANCELLED']);
    const all = await other.received(4);
    assert.equal(names(all), ['SUCCESS', 'CANCELLED', 'CANCELLED', 'CANCELLED']);
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
  const { active, passive } = await pair2(host);
  const both = [active.connector.disconnect(), passive.connector.disconnect()];
  for (const one of both) assert.is(await outcome(one), Status.SUCCESS);
  active.release();
  passive.release();
});

test('T20 a connector serves one connection in one role', async ({ host }) => {
  const { active, passive } = await pair2(host);
  await active.connector.disconnect();
  const connect = (connector: IND2Connector, side: Side) => () =>
    connector.connect(side.queuePair, host.address);
  const fresh = await Side.create(host.adapter);
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
  const host = new Host2();
  const { active, passive } = await pair2(host);
  const waiting: Overlapped<unknown>[] = [
    active.receives.notify('any'),
    active.connector.notifyDisconnect(),
    host.listener.getConnectionRequest(host.adapter.createConnector()),
  ];
  for (let i = 0; i < 5; i += 1) active.queuePair.receive(i, active.sge(0, 10));
  host.provider.release();
  host.adapter.release();
  active.region.release();
  active.receives.release();
  host.listener.release();
  const told = passive.connector.notifyDisconnect();
  active.queuePair.release();
  assert.is(await outcome(told), Status.SUCCESS, 'the queue pair’s release is a disconnect');
  active.connector.release();
  active.initiators.release();
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
  const side = await Side.create(host.adapter);
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
  const connected = a.connector.connect(a.queuePair, host.address);
  requested.getResult(wait);
  const accepted = b.connector.accept(b.queuePair);
  connected.getResult(wait);
  a.connector.getOverlappedResult(a.connector.completeConnect(), wait);
  // Another object may be asked.
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
  const active = await Side.create(host.adapter);
  const passive = await Side.create(host.adapter);
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

test.run();
