import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { loadAddon } from '../../kernel-bridge/hca/index.js';
import { kernelOptionsSchema } from '../../kernel-bridge/option-checks/option-schemas.js';
import {
  gidOfAddress,
  openProvider,
  QpAttr,
  QpState,
  RemoteMemory,
  Status,
  WcStatus,
  WvAccess,
  type WvCompletion,
  WvOpcode,
  WvSend,
  WvWc,
} from '../../winverbs/index.js';
import {
  ADDRESS,
  connectedPair,
  openListener,
  openSide,
  remoteOf,
  type Side,
  take,
} from '../helpers/loopback.js';
import { outcome, throwsWv } from '../helpers/outcome.js';

const addon = loadAddon();

const { SIGNALED, INLINE, IMMEDIATE, FENCE, SOLICITED } = WvSend;

const sgl = (side: Side, offset: number, length: number) => [{ region: side.region, offset, length }];
const brief = (completions: WvCompletion[]) =>
  completions.map(({ context, status, opcode }) => [context, status, opcode]);

test('devices, ports and addresses of this host', () => {
  const provider = openProvider();
  const { deviceGuid, pkey, portNumber } = provider.translateAddress(ADDRESS);
  assert.ok(provider.queryDeviceList().includes(deviceGuid));
  assert.equal([pkey, portNumber], [0xffff, 1]);
  throwsWv(() => provider.translateAddress('192.0.2.99'), Status.NOT_FOUND);
  throwsWv(() => provider.translateAddress('nowhere'), Status.INVALID_ADDRESS);
  throwsWv(() => provider.openDevice(0xdeadn), Status.NO_SUCH_DEVICE);
  const attributes = provider.queryDevice(deviceGuid);
  assert.is(attributes.nodeGuid, deviceGuid);
  assert.ok(attributes.maxQpWr >= 1024 && attributes.maxInlineSend >= 128);
  const device = provider.openDevice(deviceGuid);
  assert.is(device.queryPort(1).state, 4);
  const gid = Buffer.from(gidOfAddress(ADDRESS));
  const index = device.findGid(1, gid);
  assert.equal(Buffer.from(device.queryGid(1, index)), gid);
  assert.is(device.queryPkey(1, device.findPkey(1, 0x7fff)), 0xffff);
  throwsWv(() => device.queryPort(2), Status.INVALID_PORT_HANDLE);
  device.release();
  provider.release();
});

test('connecting exchanges addresses, private data and depths', async () => {
  const { a, b, atA, atB, release } = await connectedPair({ initiatorDepth: 3, responderResources: 5 });
  assert.is(Buffer.from(atB.privateData).toString('latin1', 0, 6), 'from a');
  assert.is(Buffer.from(atA.privateData).toString('latin1', 0, 6), 'from b');
  assert.is(atB.peerAddress?.address, ADDRESS);
  assert.is(atA.peerAddress?.address, ADDRESS);
  assert.equal([atB.responderResources, atB.initiatorDepth], [3, 5]);
  for (const { qp } of [a, b]) {
    assert.is(qp.state, QpState.RTS);
    assert.is(qp.query().qpState, QpState.RTS);
  }
  assert.is(a.qp.query().destinationQpn, b.qp.qpn);
  assert.is(b.qp.query().destinationQpn, a.qp.qpn);
  release();
});

test('Send and Receive: gathered, scattered, immediate, inline, empty, with contexts of any kind', async () => {
  const { a, b, release } = await connectedPair();
  const context = { any: 'value' };
  b.qp.postReceive(context, [...sgl(b, 0, 3), ...sgl(b, 100, 50)]);
  b.qp.postReceive(undefined, sgl(b, 200, 10));
  b.qp.postReceive('empty', []);
  a.memory.write('hello, world');
  a.qp.send('gather', [...sgl(a, 0, 5), ...sgl(a, 5, 7)], SIGNALED | IMMEDIATE, 0xfeed_beef);
  a.memory.write('inline', 64);
  a.qp.send('inline', sgl(a, 64, 6), SIGNALED | INLINE);
  a.memory.fill(0, 64, 70);
  a.qp.send('nothing', [], SIGNALED);
  const [first, second, third] = await take(b.cq, 3);
  assert.is(first!.context, context);
  assert.equal(
    [first!.status, first!.opcode, first!.length, first!.flags & WvWc.IMMEDIATE, first!.immediateData],
    [0, WvOpcode.RECEIVE, 12, WvWc.IMMEDIATE, 0xfeed_beef],
  );
  assert.is(b.memory.toString('latin1', 0, 3) + b.memory.toString('latin1', 100, 109), 'hello, world');
  assert.equal([second!.context, second!.length], [undefined, 6]);
  assert.is(b.memory.toString('latin1', 200, 206), 'inline');
  assert.equal([third!.context, third!.length], ['empty', 0]);
  assert.equal(brief(await take(a.cq, 3)), [
    ['gather', 0, WvOpcode.SEND],
    ['inline', 0, WvOpcode.SEND],
    ['nothing', 0, WvOpcode.SEND],
  ]);
  release();
});

test('Write, Read, compare-exchange and fetch-add access the given memory', async () => {
  const { a, b, release } = await connectedPair();
  a.memory.write('written');
  a.qp.write('write', sgl(a, 0, 7), SIGNALED, b.remote, 1000);
  a.qp.read('read', sgl(a, 500, 7), SIGNALED | FENCE, b.remote, 1000);
  assert.equal(brief(await take(a.cq, 2)), [
    ['write', 0, WvOpcode.RDMA_WRITE],
    ['read', 0, WvOpcode.RDMA_READ],
  ]);
  assert.is(b.memory.toString('latin1', 1000, 1007), 'written');
  assert.is(a.memory.toString('latin1', 500, 507), 'written');
  b.memory.writeBigUInt64LE(0xffff_ffff_0000_0001n, 2048);
  const [result] = sgl(a, 8, 8);
  a.qp.fetchAdd('add', result!, SIGNALED, 0xffff_ffffn, b.remote, 2048);
  assert.equal(brief(await take(a.cq, 1)), [['add', 0, WvOpcode.FETCH_ADD]]);
  assert.is(a.memory.readBigUInt64LE(8), 0xffff_ffff_0000_0001n);
  assert.is(b.memory.readBigUInt64LE(2048), BigInt.asUintN(64, 0xffff_ffff_0000_0001n + 0xffff_ffffn));
  const now = b.memory.readBigUInt64LE(2048);
  a.qp.compareExchange('miss', result!, SIGNALED, 5n, 6n, b.remote, 2048);
  a.qp.compareExchange('hit', result!, SIGNALED, now, 0x1234_5678_9abc_def0n, b.remote, 2048);
  await take(a.cq, 2);
  assert.is(a.memory.readBigUInt64LE(8), now);
  assert.is(b.memory.readBigUInt64LE(2048), 0x1234_5678_9abc_def0n);
  b.qp.postReceive('reported', []);
  a.qp.write('tell', sgl(a, 0, 4), SIGNALED | IMMEDIATE, b.remote, 0, 77);
  const [reported] = await take(b.cq, 1);
  assert.equal(
    [reported!.opcode, reported!.immediateData, reported!.length],
    [WvOpcode.RECEIVE_RDMA_WRITE, 77, 4],
  );
  release();
});

test('messages of many packets arrive completely', async () => {
  const { a, b, release } = await connectedPair();
  const big = Buffer.alloc(300_001);
  for (let i = 0; i < big.length; i++) big[i] = (i * 7 + (i >> 8)) & 0xff;
  const target = Buffer.alloc(big.length);
  const source = a.pd.registerMemory(big, 0);
  const sink = b.pd.registerMemory(target, WvAccess.LOCAL_WRITE);
  b.qp.postReceive('big', [{ region: sink, offset: 0, length: big.length }]);
  a.qp.send('big', [{ region: source, offset: 0, length: big.length }], SIGNALED);
  const [received] = await take(b.cq, 1);
  assert.equal([received!.status, received!.length], [0, big.length]);
  assert.is(Buffer.compare(big, target), 0);
  release();
});

test('memory windows: the key is valid once posted, its rights and bounds apply, and it can be invalidated', async () => {
  const { a, b, release } = await connectedPair();
  const plain = Buffer.alloc(256);
  const region = b.pd.registerMemory(plain, WvAccess.LOCAL_WRITE | WvAccess.MW_BIND);
  assert.is(region.rkey, 0);
  const mw = b.pd.allocateMemoryWindow();
  const key = b.qp.bindMemoryWindow(mw, 'bind', region, 16, 64, WvAccess.REMOTE_WRITE, SIGNALED);
  assert.is(mw.rkey, key);
  assert.equal(brief(await take(b.cq, 1)), [['bind', 0, WvOpcode.BIND_WINDOW]]);
  throwsWv(() => b.pd.deregisterMemory(region), Status.DEVICE_BUSY);
  const window = new RemoteMemory({ address: BigInt(region.address + 16), rkey: key });
  a.memory.write('through');
  a.qp.write('through', sgl(a, 0, 7), SIGNALED, window, 57);
  assert.equal(brief(await take(a.cq, 1)), [['through', 0, WvOpcode.RDMA_WRITE]]);
  assert.is(plain.toString('latin1', 73, 80), 'through');
  // The peer's Send invalidates the key.
  b.qp.postReceive('taken', []);
  a.qp.sendAndInvalidate('take', [], SIGNALED, key);
  await take(a.cq, 1);
  const [taken] = await take(b.cq, 1);
  assert.equal([taken!.flags & WvWc.INVALIDATED, taken!.immediateData], [WvWc.INVALIDATED, key]);
  const next = b.qp.bindMemoryWindow(mw, 'again', region, 0, 256, WvAccess.REMOTE_READ, 0);
  assert.is.not(next, key);
  b.qp.invalidateMemoryWindow(mw, 'invalidate', SIGNALED);
  assert.equal(brief(await take(b.cq, 1)), [['invalidate', 0, WvOpcode.INVALIDATE]]);
  b.pd.deregisterMemory(region);
  a.qp.read(
    'gone',
    sgl(a, 0, 8),
    SIGNALED,
    new RemoteMemory({ address: BigInt(region.address), rkey: next }),
    0,
  );
  assert.equal(brief(await take(a.cq, 1)), [['gone', WcStatus.REMOTE_ACCESS_ERROR, WvOpcode.RDMA_READ]]);
  mw.release();
  release();
});

test('an SGE must not exceed its region', async () => {
  const { a, b, release } = await connectedPair();
  const region = a.pd.registerMemory(new Uint8Array(64), WvAccess.LOCAL_WRITE);
  const number = new RemoteMemory({ address: region.address, rkey: 1 });
  assert.is(number.address, BigInt(region.address));
  a.qp.write('all of it', [{ region, offset: 0, length: 64 }], SIGNALED, b.remote, 0);
  assert.equal(brief(await take(a.cq, 1)), [['all of it', WcStatus.SUCCESS, WvOpcode.RDMA_WRITE]]);
  // The call copies inline bytes, so it detects invalid ones itself.
  const beyond = [{ region, offset: 60, length: 64 }];
  throwsWv(
    () => a.qp.send('s', beyond, SIGNALED | WvSend.INLINE),
    Status.ACCESS_VIOLATION,
    /offset 60, length 64.* 64 bytes/,
  );
  release();
});

for (const [what, post, status] of [
  [
    'a write beyond the region',
    (a: Side, b: Side) => a.qp.write('bad', sgl(a, 0, 16), SIGNALED, b.remote, 8192 - 8),
    WcStatus.REMOTE_ACCESS_ERROR,
  ],
  [
    'a wrong rkey',
    (a: Side, b: Side) =>
      a.qp.read(
        'bad',
        sgl(a, 0, 16),
        SIGNALED,
        new RemoteMemory({ address: b.remote.address, rkey: (b.remote.rkey ^ 1) >>> 0 }),
        0,
      ),
    WcStatus.REMOTE_ACCESS_ERROR,
  ],
  ...(
    [
      ['a send', (a: Side) => a.qp.send('bad', sgl(a, 8190, 16), SIGNALED)],
      ['a write', (a: Side, b: Side) => a.qp.write('bad', sgl(a, 8190, 16), SIGNALED, b.remote, 0)],
      ['a read', (a: Side, b: Side) => a.qp.read('bad', sgl(a, 8190, 16), SIGNALED, b.remote, 0)],
      [
        'a request of a list',
        (a: Side) => a.qp.postSend([{ context: 'bad', sgl: sgl(a, 8190, 16), flags: SIGNALED }]),
      ],
    ] as const
  ).map(
    ([op, post]) =>
      [`${op} of local memory beyond the region`, post, WcStatus.LOCAL_PROTECTION_ERROR] as const,
  ),
] as const) {
  test(`errors: ${what} is reported by a completion, and everything after it is flushed in order`, async () => {
    const { a, b, release } = await connectedPair();
    const notified = [a.ep.notifyDisconnect(), b.ep.notifyDisconnect()];
    b.qp.postReceive('r0', sgl(b, 0, 10));
    a.qp.postReceive('own', sgl(a, 0, 10));
    a.qp.startBatch();
    post(a, b);
    a.qp.send('silent', [], 0);
    a.qp.send('after', [], SIGNALED);
    a.qp.submitBatch();
    const completions = await take(a.cq, 4);
    const sends = completions.filter(({ opcode }) => opcode < WvOpcode.RECEIVE);
    assert.equal(
      sends.map(({ context, status }) => [context, status]),
      [
        ['bad', status],
        ['silent', WcStatus.FLUSHED],
        ['after', WcStatus.FLUSHED],
      ],
    );
    const own = completions.find(({ opcode }) => opcode >= WvOpcode.RECEIVE);
    assert.equal([own!.context, own!.status], ['own', WcStatus.FLUSHED]);
    assert.is(a.qp.state, QpState.ERROR);
    a.qp.send('late', [], SIGNALED);
    a.qp.postReceive('late receive', []);
    assert.equal(
      (await take(a.cq, 2)).map(({ status }) => status),
      [WcStatus.FLUSHED, WcStatus.FLUSHED],
    );
    const [flushed] = await take(b.cq, 1);
    assert.equal([flushed!.context, flushed!.status], ['r0', WcStatus.FLUSHED]);
    for (const request of notified) assert.is.not(await outcome(request), Status.SUCCESS);
    release();
  });
}

test('disconnect: flushed on both sides, and all waiters are notified', async () => {
  const { a, b, release } = await connectedPair();
  const notified = [a.ep.notifyDisconnect(), b.ep.notifyDisconnect()];
  for (let i = 0; i < 3; i++) {
    a.qp.postReceive(`a${i}`, sgl(a, 0, 8));
    b.qp.postReceive(`b${i}`, sgl(b, 0, 8));
  }
  const disconnect = a.ep.disconnect();
  const flushed = (name: string) => [0, 1, 2].map((i) => [`${name}${i}`, WcStatus.FLUSHED, WvOpcode.RECEIVE]);
  assert.equal(brief(await take(a.cq, 3)), flushed('a'));
  assert.is(await outcome(disconnect), Status.SUCCESS);
  assert.equal(brief(await take(b.cq, 3)), flushed('b'));
  for (const request of notified) assert.is(await outcome(request), Status.CONNECTION_DISCONNECTED);
  assert.is(await outcome(b.ep.disconnect()), Status.SUCCESS);
  release();
});

test('both sides disconnect at once, and both succeed', async () => {
  const { a, b, release } = await connectedPair();
  const both = [a.ep.disconnect(), b.ep.disconnect()];
  assert.equal(await Promise.all(both.map(outcome)), [Status.SUCCESS, Status.SUCCESS]);
  release();
});

test('the error of a rejected connect has the reason, and the queue pair can connect again', async () => {
  const provider = openProvider();
  const a = openSide(provider);
  const { listener, peer } = openListener(provider);
  const passive = provider.createConnectEndpoint();
  const request = listener.getRequest(passive);
  a.qp.postReceive('kept', sgl(a, 0, 8));
  a.ep.bindAddress({ family: 4, address: ADDRESS, port: 0 });
  a.ep.resolveRoute(peer);
  const connecting = a.ep.connect(a.qp, peer, {});
  await request;
  passive.reject(Buffer.from('no'));
  assert.is(await outcome(connecting), Status.CONNECTION_REFUSED);
  assert.is(Buffer.from(a.ep.query().privateData).toString('latin1', 0, 2), 'no');
  throwsWv(() => a.ep.accept(null, {}), Status.INVALID_PARAMETER);
  assert.is(a.cq.peek(), 0);
  assert.is(a.qp.state, QpState.INIT);
  // The listener no longer exists.
  listener.release();
  const again = provider.createConnectEndpoint();
  again.bindAddress({ family: 4, address: ADDRESS, port: 0 });
  again.resolveRoute(peer);
  assert.is(await outcome(again.connect(a.qp, peer, {})), Status.CONNECTION_REFUSED);
  for (const object of [again, passive]) object.release();
  a.release();
  provider.release();
});

test('endpoints: invalid states and ports in use are rejected, and waits can be cancelled', async () => {
  const provider = openProvider();
  const a = openSide(provider);
  const { listener, peer } = openListener(provider);
  throwsWv(() => listener.bindAddress(peer), Status.INVALID_DEVICE_STATE);
  const second = provider.createConnectEndpoint();
  second.bindAddress(peer);
  throwsWv(() => second.listen(1), Status.ADDRESS_ALREADY_EXISTS);
  const waiting = listener.getRequest(a.ep);
  listener.cancelOverlappedRequests();
  assert.ok(waiting.completed);
  throwsWv(() => waiting.getResult(), Status.CANCELED);
  assert.is(await outcome(a.ep.connect(a.qp, peer, {})), Status.INVALID_DEVICE_STATE);
  throwsWv(() => a.ep.disconnect(), Status.INVALID_DEVICE_STATE);
  const last = listener.getRequest(a.ep);
  listener.release();
  assert.is(await outcome(last), Status.CANCELED);
  second.release();
  a.release();
  provider.release();
});

test('notification: any, solicited, errors, blocking; no event is reported twice or missed', async () => {
  const { a, b, release } = await connectedPair();
  for (let i = 0; i < 8; i++) b.qp.postReceive(i, sgl(b, 0, 8));
  const errors = b.cq.notify('errors');
  const solicited = b.cq.notify('solicited');
  a.qp.send('plain', [], SIGNALED);
  await take(a.cq, 1);
  assert.not(solicited.completed);
  a.qp.send('asking', [], SIGNALED | SOLICITED);
  solicited.getResult({ wait: true });
  assert.equal(
    (await take(b.cq, 2)).map(({ context }) => context),
    [0, 1],
  );
  // Completions before the request count. Those already reported do not count again.
  a.qp.send('before', [], SIGNALED);
  await take(a.cq, 2);
  await b.cq.notify('any');
  const next = b.cq.notify('any');
  assert.not(next.completed);
  a.qp.send('after', [], SIGNALED);
  next.getResult({ wait: true });
  assert.equal(
    (await take(b.cq, 2)).map(({ context }) => context),
    [2, 3],
  );
  const cancelled = b.cq.notify('any');
  b.cq.cancelOverlappedRequests();
  for (const request of [cancelled, errors]) throwsWv(() => request.getResult(), Status.CANCELED);
  release();
});

test('an overrun of a completion queue is reported to its waiters and pollers', async () => {
  const provider = openProvider();
  const { deviceGuid } = provider.translateAddress(ADDRESS);
  const b = openSide(provider);
  const device = provider.openDevice(deviceGuid);
  const small = device.createCompletionQueue(2);
  const pd = device.allocateProtectionDomain();
  const qp = pd.createConnectQueuePair({
    sendCq: small,
    receiveCq: small,
    sendDepth: 4,
    sendSge: 0,
    receiveDepth: 8,
    receiveSge: 0,
  });
  qp.modify({ qpState: QpState.INIT, portNumber: 1 }, QpAttr.STATE);
  for (let i = 0; i < 3; i++) qp.postReceive(i, []);
  const error = small.notify('errors');
  qp.modify({ qpState: QpState.ERROR }, QpAttr.STATE);
  assert.is(await outcome(error), Status.BUFFER_OVERFLOW);
  const completions: WvCompletion[] = [];
  assert.is(small.poll(completions, 8), 2);
  throwsWv(() => small.poll(completions, 8), Status.BUFFER_OVERFLOW);
  for (const object of [qp, pd, small, device]) object.release();
  b.release();
  provider.release();
});

test('a resize keeps the queued completions, and is rejected if any would be lost', async () => {
  const { a, b, release } = await connectedPair();
  for (let i = 0; i < 5; i++) b.qp.postReceive(i, []);
  for (let i = 0; i < 5; i++) a.qp.send(i, [], SIGNALED);
  await take(a.cq, 5);
  assert.is(b.cq.peek(), 5);
  throwsWv(() => b.cq.resize(4), Status.BUFFER_OVERFLOW);
  b.cq.resize(200);
  assert.is(b.cq.entries, 256);
  assert.is(b.cq.peek(), 5);
  assert.equal(
    (await take(b.cq, 2)).map(({ context }) => context),
    [0, 1],
  );
  b.cq.resize(4);
  assert.equal(
    (await take(b.cq, 3)).map(({ context }) => context),
    [2, 3, 4],
  );
  b.qp.postReceive('more', []);
  a.qp.send('more', [], SIGNALED);
  assert.equal(
    (await take(b.cq, 1)).map(({ context }) => context),
    ['more'],
  );
  release();
});

test('completions of a released queue pair can still be polled', async () => {
  const { a, b, release } = await connectedPair({ context: 'a qp' });
  b.qp.postReceive('r', []);
  a.qp.send('s', [], SIGNALED);
  await take(b.cq, 1);
  // Waits for the acknowledgement, because releasing earlier would rightly flush the Send.
  await a.cq.notify('any');
  a.ep.release();
  a.qp.release();
  const [sent] = await take(a.cq, 1);
  assert.equal([sent!.context, sent!.qpContext, sent!.status], ['s', 'a qp', 0]);
  release();
});

test('releasing a queue pair does not lose received messages, and flushes only its own requests', async () => {
  const { a, b, release } = await connectedPair({}, { context: 'b qp' });
  for (let n = 0; n < 5; n++) b.qp.postReceive(n, sgl(b, n * 8, 8));
  a.memory.write('message0message1message2');
  for (let n = 0; n < 3; n++) a.qp.send(n, sgl(a, n * 8, 8), SIGNALED);
  await take(a.cq, 3);
  b.ep.release();
  b.qp.release();
  // This is also true of a queue pair that reuses its slot.
  const next = b.pd.createConnectQueuePair({
    ...{ sendCq: b.cq, receiveCq: b.cq, context: 'another' },
    ...{ sendDepth: 1, sendSge: 1, receiveDepth: 1, receiveSge: 1 },
  });
  const reported: WvCompletion[] = [];
  const count = b.cq.poll(reported, 16);
  const messages = reported.slice(0, 3);
  assert.equal(
    messages.map(({ context, qpContext, status, length }) => [context, qpContext, status, length]),
    [0, 1, 2].map((n) => [n, 'b qp', WcStatus.SUCCESS, 8]),
  );
  // Releasing the endpoint ends the connection, which flushes the rest.
  for (const { qpContext, status } of reported.slice(3, count)) {
    assert.equal([qpContext, status], ['b qp', WcStatus.FLUSHED]);
  }
  assert.is(b.memory.toString('latin1', 0, 24), 'message0message1message2');
  next.release();
  release();
});

test('a program that never returns to its event loop connects, sends and disconnects', () => {
  const provider = openProvider();
  const [a, b] = [openSide(provider), openSide(provider)];
  const { listener, peer } = openListener(provider);
  const request = listener.getRequest(b.ep);
  a.ep.bindAddress({ family: 4, address: ADDRESS, port: 0 });
  a.ep.resolveRoute(peer);
  const connecting = a.ep.connect(a.qp, peer, {});
  request.getResult({ wait: true });
  const accepting = b.ep.accept(b.qp, {});
  connecting.getResult({ wait: true });
  a.ep.accept(null, {}).getResult({ wait: true });
  accepting.getResult({ wait: true });
  const reported = b.ep.notifyDisconnect();
  b.qp.postReceive('r', sgl(b, 0, 8));
  a.qp.send('s', sgl(a, 0, 8), SIGNALED);
  const completions: WvCompletion[] = [];
  b.cq.notify('any').getResult({ wait: true });
  assert.is(b.cq.poll(completions, 4), 1);
  assert.equal([completions[0]!.context, completions[0]!.status], ['r', 0]);
  b.qp.postReceive('flushed', []);
  a.ep.disconnect().getResult({ wait: true });
  throwsWv(() => reported.getResult({ wait: true }), Status.CONNECTION_DISCONNECTED);
  assert.is(b.cq.poll(completions, 4), 1);
  assert.equal([completions[0]!.context, completions[0]!.status], ['flushed', WcStatus.FLUSHED]);
  listener.release();
  a.release();
  b.release();
  provider.release();
});

test('nothing is left in the HCA after everything was released', async () => {
  const { a, b, release } = await connectedPair();
  const mw = a.pd.allocateMemoryWindow();
  const pending = [a.cq.notify('any'), b.ep.notifyDisconnect()];
  b.qp.postReceive('r', []);
  a.pd.registerMemory(new Uint8Array(10), 0);
  mw.release();
  release();
  for (const request of pending) assert.is.not(await outcome(request), Status.SUCCESS);
  const hca = addon.openHca(kernelOptionsSchema.parse({}), () => {});
  const { pd, mr, mw: windows, cq, qp, range } = hca.objectCounts();
  assert.equal({ pd, mr, windows, cq, qp, range }, { pd: 0, mr: 0, windows: 0, cq: 0, qp: 0, range: 0 });
  hca.close();
});

test('a queue pair can be reset and used again', async () => {
  const { a, b, provider, release } = await connectedPair();
  void b;
  a.qp.postReceive('lost', []);
  a.qp.modify({ qpState: QpState.RESET }, QpAttr.STATE);
  throwsWv(() => a.qp.postReceive(0, []), Status.INVALID_DEVICE_STATE);
  a.qp.modify({ qpState: QpState.INIT, portNumber: 1 }, QpAttr.STATE);
  for (let i = 0; i < 16; i++) a.qp.postReceive(i, []);
  throwsWv(() => a.qp.postReceive(16, []), Status.NO_MORE_ENTRIES);
  a.qp.modify({ qpState: QpState.ERROR }, QpAttr.STATE);
  assert.equal(
    (await take(a.cq, 16)).map(({ context }) => context),
    Array.from({ length: 16 }, (_, i) => i),
  );
  release();
  void provider;
});

test('ten thousand round trips: unsignaled Sends free their slots, and contexts stay in order', async () => {
  const { a, b, release } = await connectedPair();
  const completions: WvCompletion[] = [];
  b.qp.postReceive(0, sgl(b, 0, 8));
  for (let i = 0; i < 10_000; i++) {
    a.memory.writeUInt32LE(i, 0);
    a.qp.send(i, sgl(a, 0, 8), i % 4 === 3 ? SIGNALED | INLINE : INLINE);
    while (b.cq.poll(completions, 1) === 0);
    assert.is(completions[0]!.context, i);
    assert.is(b.memory.readUInt32LE(0), i);
    b.qp.postReceive(i + 1, sgl(b, 0, 8));
    while (i % 4 === 3 && a.cq.poll(completions, 1) === 0);
  }
  release();
});

test('remoteOf describes registered memory', async () => {
  const provider = openProvider();
  const side = openSide(provider);
  assert.is(remoteOf(side.region).address, BigInt(side.region.address));
  side.release();
  provider.release();
});

test('a program that creates many endpoints owns each of them, used or not', () => {
  const provider = openProvider();
  const endpoints = Array.from({ length: 70 }, () => provider.createConnectEndpoint());
  const used = endpoints.filter((_, n) => n % 3 !== 0);
  const ports = used.map((endpoint) => {
    endpoint.bindAddress({ family: 4, address: ADDRESS, port: 0 });
    return endpoint.query().localAddress.port;
  });
  assert.is(new Set(ports).size, used.length);
  throwsWv(() => endpoints[69]!.listen(1), Status.INVALID_DEVICE_STATE);
  for (const endpoint of endpoints) endpoint.release();
  const datagram = provider.createDatagramEndpoint();
  const next = provider.createConnectEndpoint();
  next.bindAddress({ family: 4, address: ADDRESS, port: 0 });
  next.listen(1);
  next.release();
  datagram.release();
  provider.release();
});

test.run();
