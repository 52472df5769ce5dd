/** The rest of the WinVerbs interface: QueryInterface, GetFileHandle, lists of requests, overlapped Modify, whole attributes. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { IoctlCode } from '../../kernel-bridge/ioctl/codes.js';
import { WvAccess, WvCapability, WvWc } from '../../kernel-bridge/ioctl/constants.js';
import { WvIoGuidList, WvIoObject, WvIoQpAttributes } from '../../kernel-bridge/ioctl/structs.js';
import {
  openProvider,
  QpAttr,
  QpState,
  Status,
  type StatusError,
  WcStatus,
  WvError,
  type WvInterfaces,
  WvOpcode,
  WvSend,
} from '../../winverbs/index.js';
import type { WVProtectionDomain } from '../../winverbs/protection-domain.js';
import { connectedPair, openSide, remoteOf, type Side, take } from '../helpers/loopback.js';
import { outcome, throwsWv } from '../helpers/outcome.js';

const sgl = (side: Side, offset: number, length: number) => [{ region: side.region, offset, length }];
const { SIGNALED, IMMEDIATE } = WvSend;

test('every object returns only its own interfaces, with a reference', () => {
  const provider = openProvider();
  const side = openSide(provider);
  const { device, pd, cq, qp, ep } = side;
  const srq = pd.createSharedReceiveQueue(4, 1);
  const mw = pd.allocateMemoryWindow();
  const ud = pd.createDatagramQueuePair({
    sendCq: cq,
    receiveCq: cq,
    sendDepth: 1,
    sendSge: 1,
    receiveDepth: 1,
    receiveSge: 1,
  });
  const datagram = provider.createDatagramEndpoint();
  const own: [
    { queryInterface: typeof qp.queryInterface; addRef(): number; release(): number },
    (keyof WvInterfaces)[],
  ][] = [
    [provider, ['IUnknown', 'IWVProvider']],
    [device, ['IUnknown', 'IWVOverlapped', 'IWVDevice']],
    [pd, ['IUnknown', 'IWVOverlapped', 'IWVProtectionDomain']],
    [cq, ['IUnknown', 'IWVOverlapped', 'IWVCompletionQueue']],
    [srq, ['IUnknown', 'IWVOverlapped', 'IWVSharedReceiveQueue']],
    [mw, ['IUnknown', 'IWVMemoryWindow']],
    [qp, ['IUnknown', 'IWVOverlapped', 'IWVQueuePair', 'IWVConnectQueuePair']],
    [ud, ['IUnknown', 'IWVOverlapped', 'IWVQueuePair', 'IWVDatagramQueuePair']],
    [ep, ['IUnknown', 'IWVOverlapped', 'IWVEndpoint', 'IWVConnectEndpoint']],
    [datagram, ['IUnknown', 'IWVOverlapped', 'IWVEndpoint', 'IWVDatagramEndpoint']],
  ];
  const all = [...new Set(own.flatMap(([, names]) => names))];
  for (const [object, names] of own) {
    const before = object.addRef();
    for (const name of all) {
      if (names.includes(name)) {
        const answered: unknown = object.queryInterface(name);
        assert.ok(answered === object, name);
        assert.is(object.release(), before, 'the reference that it came with');
      } else throwsWv(() => object.queryInterface(name), Status.NOT_SUPPORTED);
    }
    object.release();
  }
  throwsWv(() => provider.queryInterface('IWVNothing' as 'IUnknown'), Status.NOT_SUPPORTED);
  provider.release();
});

test('the provider’s file accepts IOCTLs, with the ids of the provider’s objects', () => {
  const provider = openProvider();
  const side = openSide(provider);
  const file = provider.getFileHandle();
  const list = file.ioctl(IoctlCode.GUID_QUERY, null, WvIoGuidList.size + 1024);
  assert.is(WvIoObject.decode(list).id, BigInt(provider.queryDeviceList().length));
  const { id } = side.qp as unknown as { id: bigint };
  const output = file.ioctl(IoctlCode.QP_QUERY, WvIoObject.encode({ id }), WvIoQpAttributes.size);
  assert.is(WvIoQpAttributes.decode(output).qpn, side.qp.qpn);
  side.release();
  provider.release();
  throwsWv(() => provider.getFileHandle(), Status.INVALID_HANDLE);
});

test('a list of requests is posted in order, up to the first one that cannot be queued', async () => {
  const { a, b, release } = await connectedPair();
  const remote = remoteOf(b.region);
  a.memory.write('one, two, three!');
  for (let n = 0; n < 4; n++) b.qp.postReceive(`receive ${n}`, sgl(b, 4096 + 16 * n, 16));
  a.qp.postSend([
    { context: 'write', opcode: WvOpcode.RDMA_WRITE, sgl: sgl(a, 0, 16), remote, remoteOffset: 64 },
    { context: 'send', sgl: sgl(a, 0, 3), flags: IMMEDIATE, immediate: 77 },
    {
      context: 'read',
      opcode: WvOpcode.RDMA_READ,
      sgl: sgl(a, 1024, 16),
      remote,
      remoteOffset: 64,
      flags: SIGNALED,
    },
    {
      context: 'add',
      opcode: WvOpcode.FETCH_ADD,
      sgl: sgl(a, 2048, 8),
      remote,
      remoteOffset: 256,
      compareOrAdd: 5n,
      flags: SIGNALED,
    },
    {
      context: 'swap',
      opcode: WvOpcode.COMPARE_EXCHANGE,
      sgl: sgl(a, 2056, 8),
      remote,
      remoteOffset: 256,
      compareOrAdd: 5n,
      exchange: 9n,
      flags: SIGNALED,
    },
  ]);
  const done = await take(a.cq, 3);
  assert.equal(
    done.map(({ context, status }) => [context, status]),
    [
      ['read', 0],
      ['add', 0],
      ['swap', 0],
    ],
  );
  assert.is(a.memory.toString('latin1', 1024, 1040), 'one, two, three!');
  assert.equal([a.memory.readBigUInt64LE(2056), b.memory.readBigUInt64LE(256)], [5n, 9n]);
  const [received] = await take(b.cq, 1);
  assert.equal([received?.context, received?.immediateData], ['receive 0', 77]);

  a.qp.postSend([]);
  const list = [1, 2, 3].map((n) => ({ context: n, sgl: sgl(a, 0, n), flags: SIGNALED }));
  list[1]!.sgl = sgl(a, 0, -1);
  let error: unknown;
  try {
    a.qp.postSend(list);
  } catch (thrown) {
    error = thrown;
  }
  assert.instance(error, WvError);
  const refused = error as WvError;
  assert.is(refused.failedRequest, 1);
  assert.match(refused.message, /^Request 2 of 3: /);
  assert.equal(
    (await take(a.cq, 1)).map(({ context }) => context),
    [1],
  );
  assert.equal(
    (await take(b.cq, 1)).map(({ length }) => length),
    [1],
  );

  // Within a batch that the program has started, the program itself submits it.
  a.qp.startBatch();
  a.qp.postSend([{ context: 'in a batch', sgl: sgl(a, 0, 2), flags: SIGNALED }]);
  assert.is(a.cq.peek(), 0);
  a.qp.submitBatch();
  assert.equal(
    (await take(a.cq, 1)).map(({ context }) => context),
    ['in a batch'],
  );
  throwsWv(
    () => a.qp.postSend([{ opcode: WvOpcode.RDMA_READ, sgl: sgl(a, 0, 1) }]),
    Status.INVALID_PARAMETER,
  );
  throwsWv(() => a.qp.postSend('all' as unknown as []), Status.INVALID_PARAMETER);
  release();
});

test('a provider gets the signaling mode of a queue pair and its read depths', () => {
  const provider = openProvider();
  const { pd, cq } = openSide(provider);
  const { verbs } = pd as WVProtectionDomain;
  const seen: unknown[] = [];
  const original = verbs.preCreateQp;
  verbs.preCreateQp = function (owner, create, umv) {
    seen.push([create.signalSends, create.initiatorDepth, create.responderResources]);
    return original.call(this, owner, create, umv);
  };
  const shape = { sendCq: cq, receiveCq: cq, sendDepth: 1, sendSge: 1, receiveDepth: 1, receiveSge: 1 };
  try {
    pd.createConnectQueuePair({ ...shape, signalSends: true, initiatorDepth: 3, responderResources: 5 });
    pd.createConnectQueuePair({ ...shape, initiatorDepth: 1, responderResources: 0 });
  } finally {
    verbs.preCreateQp = original;
  }
  assert.equal(seen, [
    [true, 3, 5],
    [false, 1, 0],
  ]);
  provider.release();
});

test('a Send in a list invalidates the peer’s key', async () => {
  const { a, b, release } = await connectedPair();
  const mw = b.pd.allocateMemoryWindow();
  const rkey = b.qp.bindMemoryWindow(mw, 'bind', b.region, 0, 16, WvAccess.REMOTE_WRITE, SIGNALED);
  await take(b.cq, 1);
  b.qp.postReceive('receive', sgl(b, 4096, 16));
  a.qp.postSend([{ context: 'invalidates', invalidateRkey: rkey, flags: SIGNALED }]);
  await take(a.cq, 1);
  const [received] = await take(b.cq, 1);
  assert.is(received!.flags & WvWc.INVALIDATED, WvWc.INVALIDATED);
  assert.is(received!.immediateData, rkey);
  mw.release();
  release();
});

test('an invalid request, or one with values of another type, is rejected, and no part of it is posted', async () => {
  const { a, b, release } = await connectedPair();
  const remote = remoteOf(b.region);
  b.qp.postReceive('receive', sgl(b, 4096, 16));
  const wrong: readonly [unknown, RegExp][] = [
    [undefined, /`request` must be an object .*; got undefined/],
    [null, /got null/],
    [[], /got an array/],
    [7, /got 7/],
    [{ opcode: 0.5, sgl: sgl(a, 0, 1), remote }, /`opcode` must be .* from 0 to 4; got 0\.5/],
    [{ opcode: '1', remote }, /`opcode` must be an integer .*; got '1'/],
    [{ opcode: 5, remote }, /`opcode` must be .*; got 5/],
    [{ flags: 'x' }, /`flags` must be .*; got 'x'/],
    [{ flags: IMMEDIATE, immediate: 'y' }, /`immediate` must be .*; got 'y'/],
    [{ flags: IMMEDIATE, immediate: 2 ** 32 }, /`immediate` must be a 32-bit number; got 4294967296/],
    [{ flags: IMMEDIATE, immediate: -(2 ** 31) - 1 }, /`immediate` must be .*; got -2147483649/],
    [{ invalidateRkey: 1.5 }, /`invalidateRkey` must be .*; got 1\.5/],
  ];
  for (const [one, reason] of wrong) {
    const error = (() => {
      try {
        a.qp.postSend([one as object]);
      } catch (thrown) {
        return thrown as WvError;
      }
      throw new Error(`posted: ${String(reason)}`);
    })();
    assert.is(error.status, Status.INVALID_PARAMETER);
    assert.match(error.message, reason);
    assert.is(error.failedRequest, 0);
  }
  a.qp.postSend([{ context: 'last', flags: SIGNALED | IMMEDIATE, immediate: -1, sgl: sgl(a, 0, 3) }]);
  await take(a.cq, 1);
  const [received] = await take(b.cq, 1);
  assert.equal([received?.length, received?.immediateData], [3, 0xffff_ffff], 'the first that arrives');
  release();
});

test('Modify may be overlapped, and its statuses are those of the blocking form', async () => {
  const provider = openProvider();
  const { qp } = openSide(provider);
  assert.is(qp.state, QpState.INIT);
  await qp.modifyOverlapped({ qpState: QpState.ERROR }, QpAttr.STATE);
  assert.is(qp.state, QpState.ERROR);
  assert.is(
    await outcome(qp.modifyOverlapped({ qpState: QpState.RTS }, QpAttr.STATE)),
    Status.INVALID_DEVICE_STATE,
  );
  throwsWv(() => qp.modify({ qpState: QpState.RTS }, QpAttr.STATE), Status.INVALID_DEVICE_STATE);
  await qp.modifyOverlapped({ qpState: QpState.RESET }, QpAttr.STATE);
  assert.is(qp.state, QpState.RESET);
  throwsWv(() => qp.modifyOverlapped({ accessFlags: 0x8000 }, QpAttr.ACCESS_FLAGS), Status.INVALID_PARAMETER);
  provider.release();
});

test('attributes of devices, ports and queue pairs are complete, and batch notifications are reported as supported', () => {
  const provider = openProvider();
  const { device, qp } = openSide(provider);
  const attributes = device.query();
  assert.ok(attributes.maxMulticast > 0 && attributes.maxQpAttach > 0 && attributes.maxMulticastQp > 0);
  assert.equal([attributes.maxFmr, attributes.maxMapPerFmr], [0, 0]);
  assert.is(attributes.capabilityFlags & WvCapability.BATCH_NOTIFY_CQ, WvCapability.BATCH_NOTIFY_CQ);
  const port = device.queryPort(1);
  assert.equal([port.lid, port.smLid, port.lmc, port.smSl, port.subnetTimeout], [0, 0, 0, 0, 0]);
  // Other HCAs have their own width and speed.
  if (process.env.ND_TEST_ADDRESS === undefined)
    assert.equal([port.maxVls, port.activeWidth, port.activeSpeed], [1, 2, 4]);
  assert.equal([port.initTypeReply, port.extActiveSpeed, port.linkEncoding], [0, 0, 0]);
  const { qpFlags, apmState, alternatePathMtu, destinationLid, serviceLevel, ...rest } = qp.query();
  assert.equal([qpFlags, apmState, alternatePathMtu, destinationLid, serviceLevel], [0, 0, 0, 0, 0]);
  assert.equal(
    [rest.sourcePathBits, rest.staticRate, rest.alternatePkeyIndex, rest.alternateLocalAckTimeout],
    [0, 0, 0, 0],
  );
  provider.release();
});

test('a queue pair reports the objects that it belongs to, without a reference', () => {
  const provider = openProvider();
  const { pd, cq, device, qp } = openSide(provider);
  assert.equal([qp.query().pd === pd, qp.query().srq], [true, undefined]);
  const [sendCq, receiveCq] = [device.createCompletionQueue(4), device.createCompletionQueue(4)];
  const srq = pd.createSharedReceiveQueue(4, 1);
  const sizes = { sendDepth: 1, sendSge: 1, receiveDepth: 1, receiveSge: 1 };
  const connected = pd.createConnectQueuePair({ sendCq, receiveCq, srq, ...sizes });
  const datagrams = pd.createDatagramQueuePair({ sendCq: receiveCq, receiveCq: cq, ...sizes });
  for (const [one, its] of [
    [connected, [pd, sendCq, receiveCq, srq]],
    [datagrams, [pd, receiveCq, cq, undefined]],
  ] as const) {
    const { pd: itsPd, sendCq: send, receiveCq: receive, srq: shared } = one.query();
    assert.ok([itsPd, send, receive, shared].every((object, at) => object === its[at]));
  }
  assert.is(sendCq.addRef(), 2, 'none was added');
  provider.release();
});

test('GetOverlappedResult: the result of a request, of any object', () => {
  const provider = openProvider();
  const { pd, cq, device, qp } = openSide(provider);
  const registering = pd.registerMemoryOverlapped(new Uint8Array(64), 0);
  const region = cq.getOverlappedResult(registering, { wait: true });
  assert.is(pd.getOverlappedResult(registering), region);
  const waiting = device.notify(1);
  assert.throws(
    () => device.getOverlappedResult(waiting),
    (error: StatusError) => error.status === Status.PENDING,
  );
  device.cancelOverlappedRequests();
  throwsWv(() => device.getOverlappedResult(waiting, { wait: true }), Status.CANCELED);
  for (const wrong of [undefined, null, {}, Promise.resolve()])
    throwsWv(
      () => qp.getOverlappedResult(wrong as never),
      Status.INVALID_PARAMETER,
      /`request` must be an Overlapped/,
    );
  qp.release();
  throwsWv(() => qp.getOverlappedResult(registering), Status.INVALID_HANDLE);
  provider.release();
});

for (const keep of [false, true]) {
  test(`a disconnect by the peer ${keep ? 'leaves the queue pair to its owner, as configured' : 'flushes the queue pair at once'}`, async () => {
    const { a, b, release } = await connectedPair();
    if (keep) b.ep.keepQueuePairOnDisconnect(true);
    b.qp.postReceive('waits', sgl(b, 0, 16));
    const ended = b.ep.notifyDisconnect();
    await a.ep.disconnect();
    assert.is(await outcome(ended), Status.CONNECTION_DISCONNECTED);
    assert.is(b.qp.state, keep ? QpState.RTS : QpState.ERROR);
    assert.is(b.cq.peek(), keep ? 0 : 1);
    await b.ep.disconnect();
    assert.is(b.qp.state, QpState.ERROR);
    const [flushed] = await take(b.cq, 1);
    assert.equal([flushed?.context, flushed?.status], ['waits', WcStatus.FLUSHED]);
    release();
  });
}

test('the default of that option is restored', async () => {
  const { a, b, release } = await connectedPair();
  b.ep.keepQueuePairOnDisconnect(true);
  b.ep.keepQueuePairOnDisconnect(false);
  const ended = b.ep.notifyDisconnect();
  await a.ep.disconnect();
  await outcome(ended);
  assert.is(b.qp.state, QpState.ERROR);
  release();
});

test('endpoints require a connection-oriented protocol', () => {
  const provider = openProvider();
  throwsWv(() => provider.createConnectEndpoint(17), Status.NOT_SUPPORTED);
  for (const wrong of [-1, 256, 1.5, Number.NaN, '6' as unknown as number])
    throwsWv(() => provider.createConnectEndpoint(wrong), Status.INVALID_PARAMETER);
  for (const protocol of [0, 6, 255]) provider.createConnectEndpoint(protocol).release();
  provider.release();
});

test.run();
