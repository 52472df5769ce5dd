/** v2's adapter, memory, queues and requests on WinVerbs in memory. For T and G see nd2-coverage.test.ts. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { largeRequestThreshold } from '../../nd/core/large-request.js';
import {
  Nd2MrFlag,
  Nd2OpFlag,
  Nd2RemoteMemory,
  Nd2RequestType,
  type Nd2Result,
  NdOpFlag,
  Status,
} from '../../nd/index.js';
import { v1Terms, v2Terms } from '../../nd/status.js';
import type { Adapter } from '../../nd/v2/adapter.js';
import { accessOf } from '../../nd/v2/memory-region.js';
import { Provider } from '../../nd/v2/provider.js';
import { WcStatus, WvAccess, WvCapability, WvSend } from '../../winverbs/index.js';
import { endsIn, fakeProvider, openFake, statusOf } from '../helpers/nd-fixture.js';
import { openFake2, queuePairOf, registered2 } from '../helpers/nd2-fixture.js';
import { outcome } from '../helpers/outcome.js';

const { ALLOW_LOCAL_WRITE, ALLOW_REMOTE_READ, ALLOW_REMOTE_WRITE, RDMA_READ_SINK, DO_NOT_SECURE_VM } =
  Nd2MrFlag;

test('limits are those of the device, as programs expect them', () => {
  const info = openFake2().adapter.query();
  assert.is(info.adapterId, 7n);
  assert.ok(info.inlineRequestThreshold <= info.maxInlineDataSize);
  assert.equal([info.maxReadSge, info.maxInitiatorSge], [3, 4], 'those of the device');
  assert.is(info.maxTransferLength, 2 ** 31);
  assert.is(info.maxRegistrationSize, 2 ** 20);
  assert.equal([info.maxInboundReadLimit, info.maxOutboundReadLimit], [16, 8]);
  assert.is(info.adapterFlags, 0x100, 'a device that reports neither in-order DMA nor loopback');
  const { adapter, wv } = openFake2();
  const device = wv.devices[0]!;
  const attributes = device.query();
  const { FIXED_CQ, IN_ORDER_DMA, LOOPBACK } = WvCapability;
  for (const [capabilityFlags, flags] of [
    [FIXED_CQ, 0],
    [FIXED_CQ | IN_ORDER_DMA, 0x1],
    [LOOPBACK, 0x100 | 0x10000],
    [IN_ORDER_DMA | LOOPBACK, 0x1 | 0x100 | 0x10000],
  ] as const) {
    device.query = () => ({ ...attributes, capabilityFlags });
    assert.is(adapter.query().adapterFlags, flags);
  }
});

test('maxTransferLength is the maximum message length of the port', () => {
  const G = 2 ** 30;
  for (const [maxMessageSize, most] of [
    [G, G],
    [2 ** 31, 2 ** 31],
    [2 ** 32 - 1, 2 ** 31],
    // The first value stands for a driver that does not report a length.
    [0, 2 ** 31],
  ] as const) {
    const { nd, wv } = fakeProvider(Provider);
    wv.maxMessageSize = maxMessageSize;
    const adapter = nd.openAdapter(nd.resolveAddress('10.0.0.1')) as Adapter;
    assert.is(adapter.query().maxTransferLength, most);
    const pd = wv.devices[0]!.pds[0]!;
    const { queuePair, qp } = queuePairOf(adapter, pd);
    const region = registered2(adapter, pd, ALLOW_LOCAL_WRITE);
    const half = { memory: region, offset: 0, length: most / 2 };
    endsIn(() => queuePair.send(1, [half, half, { ...half, length: 1 }], 0), Status.BUFFER_OVERFLOW);
    queuePair.send(2, [half, half], 0);
    assert.is(qp.posted.length, 1, 'a request at the limit');
  }
});

test('a Read with more entries than maxReadSge is DATA_OVERRUN; other requests have maxInitiatorSge', () => {
  const { adapter, pd } = openFake2();
  const { queuePair, qp } = queuePairOf(adapter, pd);
  const region = registered2(adapter, pd, ALLOW_LOCAL_WRITE);
  const sgl = (entries: number) =>
    Array.from({ length: entries }, () => ({ memory: region, offset: 0, length: 4 }));
  const remote = new Nd2RemoteMemory(0x20000n, 7);
  const { maxReadSge, maxInitiatorSge } = adapter.query();
  assert.is(maxInitiatorSge, maxReadSge + 1);
  queuePair.read(1, sgl(maxReadSge), remote, 0, 0);
  endsIn(() => queuePair.read(2, sgl(maxReadSge + 1), remote, 0, 0), Status.DATA_OVERRUN);
  queuePair.write(3, sgl(maxInitiatorSge), remote, 0, 0);
  queuePair.send(4, sgl(maxInitiatorSge), 0);
  assert.is(qp.posted.length, 3);
  // The rejected Read has not used an entry of the queue.
  queuePair.send(5, sgl(1), 0);
  endsIn(() => queuePair.send(6, sgl(1), 0), Status.NO_MORE_ENTRIES);
});

test('registering memory of largeRequestThreshold bytes is not slower than copying it', () => {
  let time = 0;
  const measured = (register: (bytes: number) => number, most = Infinity): number => {
    const costs = {
      register: (bytes: number) => {
        time += register(bytes);
      },
      copy: (bytes: number) => {
        time += bytes / 1024;
      },
    };
    return largeRequestThreshold(most, costs, () => time);
  };
  assert.is(
    measured(() => 100),
    2 ** 17,
  );
  assert.is(
    measured((bytes) => 20 + bytes / 4096),
    2 ** 15,
  );
  assert.is(
    measured(() => 0),
    4096,
    'the smallest size tried',
  );
  assert.is(
    measured((bytes) => bytes),
    2 ** 20,
    'copying is always faster',
  );
  let run = 0;
  const interrupted = (): number => {
    run += 1;
    return run % 3 === 0 ? 100 : 1e6;
  };
  assert.is(measured(interrupted), 2 ** 17, 'interrupted runs do not count');
  const largest: number[] = [];
  const noted = (bytes: number): number => {
    largest.push(bytes);
    return 1e6;
  };
  measured(noted, 2 ** 16);
  assert.is(Math.max(...largest), 2 ** 15, 'larger sizes than can be registered are not tried');
});

test('largeRequestThreshold is measured once, and leaves nothing registered', () => {
  const { adapter, pd, wv } = openFake2();
  const info = adapter.query();
  assert.equal(pd.registered, [], 'it has not been queried');
  const threshold = info.largeRequestThreshold;
  assert.ok(threshold >= 4096 && threshold <= 2 ** 20);
  const { length } = pd.registered;
  assert.ok(length > 0);
  assert.equal(pd.deregistered, pd.registered);
  assert.is(adapter.query().largeRequestThreshold, threshold);
  assert.is(pd.registered.length, length);
  const second = openFake2();
  second.wv.failures.set('registerMemory', Status.INSUFFICIENT_RESOURCES);
  assert.is(second.adapter.query().largeRequestThreshold, 2 ** 20, 'memory cannot be registered now');
  assert.is(wv.failures.size, 0);
});

test('the provider resolves addresses to ids and adapters, and rejects others', () => {
  const { nd, wv, adapter } = openFake2();
  assert.equal(
    nd.queryAddressList().map(({ address }) => address),
    ['10.0.0.1', 'fd00::1'],
  );
  assert.equal(adapter.queryAddressList(), nd.queryAddressList());
  assert.is(nd.resolveAddress('10.0.0.1:4000'), 7n, 'the port does not matter');
  assert.is(nd.resolveAddress('fd00::1'), 7n);
  for (const address of ['192.168.7.7', '0.0.0.0', 'nonsense', '']) {
    endsIn(() => nd.resolveAddress(address), Status.INVALID_ADDRESS, address);
  }
  for (const [id, status] of [
    [-1n, Status.INVALID_PARAMETER],
    [1n << 64n, Status.INVALID_PARAMETER],
    [7, Status.INVALID_ADDRESS],
    [undefined, Status.INVALID_ADDRESS],
    ['192.168.7.7', Status.INVALID_ADDRESS],
  ] as const) {
    endsIn(() => nd.openAdapter(id as bigint), status);
  }
  const byAddress = nd.openAdapter('10.0.0.1');
  assert.is(byAddress.query().adapterId, nd.resolveAddress('10.0.0.1'));
  byAddress.release();
  const before = wv.references;
  wv.failures.set('openDevice', Status.NO_SUCH_DEVICE);
  endsIn(() => nd.openAdapter(8n), Status.INVALID_PARAMETER);
  assert.is(wv.references, before, 'nothing stays open');
});

test('T2 rights: REMOTE_WRITE contains LOCAL_WRITE and is recognized by its own bit', () => {
  const { MW_BIND, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE } = WvAccess;
  for (const [flags, access] of [
    [0, 0],
    [ALLOW_LOCAL_WRITE, LOCAL_WRITE],
    [RDMA_READ_SINK, LOCAL_WRITE],
    [ALLOW_REMOTE_READ, REMOTE_READ],
    [ALLOW_REMOTE_WRITE, REMOTE_WRITE],
    [0x4, REMOTE_WRITE],
    [ALLOW_LOCAL_WRITE | ALLOW_REMOTE_READ, LOCAL_WRITE | REMOTE_READ],
    [DO_NOT_SECURE_VM, 0],
  ] as const) {
    assert.is(accessOf(flags, true), access | MW_BIND, `flags ${flags}`);
  }
  const { ALLOW_REMOTE_ATOMIC } = Nd2MrFlag;
  assert.is(accessOf(ALLOW_REMOTE_ATOMIC, true), WvAccess.REMOTE_ATOMIC | MW_BIND);
  assert.is(accessOf(ALLOW_REMOTE_ATOMIC, false), MW_BIND, 'an adapter without atomic operations');
  assert.is(accessOf(Nd2MrFlag.ALLOW_REMOTE_VIEW, true), WvAccess.REMOTE_VIEW | MW_BIND);
  const { adapter, pd } = openFake2();
  registered2(adapter, pd, ALLOW_LOCAL_WRITE);
  assert.is(pd.accessOfLast, LOCAL_WRITE | MW_BIND, 'local write alone gives peers no rights');
});

test('a region registers one buffer at a time: its states and tokens', async () => {
  const { adapter, pd } = openFake2();
  const region = adapter.createMemoryRegion();
  const bytes = new Uint8Array(100);
  for (const call of [
    () => region.deregister(),
    () => region.getLocalToken(),
    () => region.getRemoteToken(),
    () => region.address,
  ]) {
    endsIn(call, Status.INVALID_DEVICE_STATE);
  }
  assert.is(region.length, 0);
  endsIn(() => region.register(new Uint8Array(0), 0), Status.INVALID_BUFFER_SIZE);
  endsIn(() => region.register(null as never, 0), Status.INVALID_PARAMETER);
  endsIn(() => region.register(new Uint8Array(2 ** 20 + 1), 0), Status.INVALID_PARAMETER);
  endsIn(() => region.register(bytes, 0x10), Status.INVALID_PARAMETER);
  const registering = region.register(bytes, 0);
  endsIn(() => region.register(bytes, 0), Status.INVALID_DEVICE_STATE);
  endsIn(() => region.getLocalToken(), Status.INVALID_DEVICE_STATE, 'not before it has completed');
  pd.request('register').succeed({ lkey: 5, rkey: 6, address: 0x1000, length: 100, bytes });
  // The result may be queried with another region.
  adapter.createMemoryRegion().getOverlappedResult(registering);
  assert.equal([region.getLocalToken(), region.getRemoteToken()], [5, 6]);
  assert.equal([region.address, region.length], [0x1000n, 100]);
  pd.provider.failures.set('deregisterMemory', Status.ACCESS_DENIED);
  const busy = region.deregister();
  assert.is(busy.completed, true, 'C programs read the return value of the call');
  assert.is(
    await outcome(busy),
    Status.DEVICE_BUSY,
    'a window is bound: WinVerbs reports that the memory is referenced',
  );
  assert.is(region.getLocalToken(), 5, 'a failure leaves it registered');
  assert.is(await outcome(region.deregister()), Status.SUCCESS);
  const failed = region.register(bytes, 0);
  pd.request('register').fail(Status.INSUFFICIENT_RESOURCES);
  assert.is(await outcome(failed), Status.INSUFFICIENT_RESOURCES);
  registered2(adapter, pd, 0);
});

test('G16 cancelling a region ends only its own Register', async () => {
  const { adapter, pd } = openFake2();
  const mine = adapter.createMemoryRegion();
  const other = adapter.createMemoryRegion();
  const otherRequest = other.register(new Uint8Array(8), 0);
  const otherFake = pd.request('register');
  const request = mine.register(new Uint8Array(8), 0);
  mine.cancelOverlappedRequests();
  assert.is(request.completed, true, 'complete when the call returns');
  assert.is(await outcome(request), Status.CANCELED);
  assert.is(otherRequest.completed, false);
  otherFake.succeed({ lkey: 1, rkey: 2, address: 0, length: 8, bytes: new Uint8Array(8) });
  assert.is(await outcome(otherRequest), Status.SUCCESS);
  mine.cancelOverlappedRequests();
});

test('a region released while a stopped peer may still write to it is deregistered later', () => {
  const { adapter, pd } = openFake2();
  const region = registered2(adapter, pd, 0);
  const other = registered2(adapter, pd, 0);
  pd.provider.failures.set('deregisterMemory', Status.NO_MEMORY);
  region.release();
  assert.is(pd.deregistered.length, 0);
  other.release();
  assert.is(pd.deregistered.length, 2);
});

test('T19 a region released while registered or registering leaves nothing registered', () => {
  const { adapter, pd } = openFake2();
  const region = registered2(adapter, pd, 0);
  region.release();
  assert.is(pd.deregistered.length, 1);
  const pending = adapter.createMemoryRegion();
  pending.register(new Uint8Array(8), 0);
  pending.release();
  assert.is(pd.request('register').canceled, true);
});

test('G7 unknown flags are rejected, flags of other requests are not', () => {
  const { adapter, pd } = openFake2();
  const region = registered2(adapter, pd, ALLOW_LOCAL_WRITE);
  const window = adapter.createMemoryWindow();
  const { queuePair, qp } = queuePairOf(adapter, pd, { depth: 16 });
  const remote = new Nd2RemoteMemory(0n, 0);
  for (const [call, status] of [
    [(flags: number) => queuePair.send(0, [], flags), Status.INVALID_PARAMETER_4],
    [(flags: number) => queuePair.bind(0, region, window, 0, 1, flags), Status.INVALID_PARAMETER_6],
    [(flags: number) => queuePair.invalidate(0, window, flags), Status.INVALID_PARAMETER_3],
    [(flags: number) => queuePair.read(0, [], remote, 0, flags), Status.INVALID_PARAMETER_6],
    [(flags: number) => queuePair.write(0, [], remote, 0, flags), Status.INVALID_PARAMETER_6],
  ] as const) {
    const before = qp.posted.length;
    endsIn(() => call(0x40), status);
    endsIn(() => call(-1), status);
    assert.is(qp.posted.length, before, 'nothing was queued');
    call(0x3f);
    assert.is(qp.posted.length, before + 1);
  }
});

test('flags are translated to those of WinVerbs', () => {
  const { adapter, pd } = openFake2();
  const { queuePair, qp } = queuePairOf(adapter, pd);
  const flags = Nd2OpFlag.SILENT_SUCCESS | Nd2OpFlag.READ_FENCE | Nd2OpFlag.SEND_AND_SOLICIT_EVENT;
  queuePair.send('a', [], flags | Nd2OpFlag.INLINE);
  assert.is(qp.posted.at(-1)!.flags, WvSend.FENCE | WvSend.SOLICITED | WvSend.INLINE);
  queuePair.send('b', []);
  assert.is(qp.posted.at(-1)!.flags, WvSend.SIGNALED);
});

test('INLINE accepts unregistered bytes; without it, memory must be registered with this adapter', () => {
  const { adapter, pd } = openFake2();
  const { queuePair, qp } = queuePairOf(adapter, pd);
  const plain = [{ memory: new Uint8Array(8), offset: 0, length: 8 }];
  queuePair.send('inline', plain, Nd2OpFlag.INLINE);
  endsIn(() => queuePair.send('x', plain), Status.INVALID_HANDLE);
  endsIn(() => queuePair.receive('x', plain), Status.INVALID_HANDLE);
  endsIn(() => queuePair.read('x', plain, new Nd2RemoteMemory(0n, 0), 0, 0x20), Status.INVALID_HANDLE);
  const foreign = openFake2();
  const region = registered2(foreign.adapter, foreign.pd, 1);
  const use = (memory: never) => statusOf(() => queuePair.receive('x', [{ memory, offset: 0, length: 1 }]));
  assert.is(use(region as never), Status.INVALID_HANDLE);
  assert.is(use(adapter.createMemoryRegion() as never), Status.INVALID_HANDLE);
  const own = registered2(adapter, pd, 1);
  assert.is(use(own as never), Status.SUCCESS);
  own.release();
  assert.is(use(own as never), Status.INVALID_HANDLE);
  assert.is(qp.posted.length, 2);
});

test('requests may use a region from its registration until its successful deregistration', () => {
  const { adapter, pd } = openFake2();
  const { queuePair } = queuePairOf(adapter, pd, { depth: 8 });
  const region = adapter.createMemoryRegion();
  const use = () => statusOf(() => queuePair.receive('x', [{ memory: region, offset: 0, length: 1 }]));
  const bytes = new Uint8Array(8);
  const made = { lkey: 5, rkey: 6, address: 0x1000, length: 8, bytes };
  for (let round = 0; round < 2; round += 1) {
    region.register(bytes, 0);
    assert.is(use(), Status.INVALID_HANDLE);
    pd.request('register').succeed(made);
    assert.is(use(), Status.SUCCESS, 'without the event loop');
    pd.provider.failures.set('deregisterMemory', Status.ACCESS_DENIED);
    region.deregister();
    assert.is(use(), Status.SUCCESS);
    region.deregister();
    assert.is(use(), Status.INVALID_HANDLE);
  }
  region.register(bytes, 0);
  pd.request('register').succeed(made);
  region.release();
  assert.is(use(), Status.INVALID_HANDLE, 'released before its registration was observed');
});

test('T23 results have type, both contexts and bytes for every status, even if all contexts are equal', () => {
  const { adapter, pd } = openFake2();
  const context = { endpoint: 1 };
  const { queuePair, qp, receives, initiators } = queuePairOf(adapter, pd, { depth: 8, context });
  assert.is(qp.create.context, context);
  const region = registered2(adapter, pd, 1);
  const sgl = [{ memory: region, offset: 0, length: 16 }];
  const remote = new Nd2RemoteMemory(1n, 2);
  for (const status of [WcStatus.SUCCESS, WcStatus.FLUSHED]) {
    const window = adapter.createMemoryWindow();
    const from = qp.posted.length;
    queuePair.receive('same', sgl);
    queuePair.send('same', sgl);
    queuePair.bind('same', region, window, 0, 1, 0);
    queuePair.invalidate('same', window);
    queuePair.read('same', sgl, remote);
    queuePair.write('same', sgl, remote);
    for (const posted of qp.posted.slice(from)) {
      qp.complete(posted, { status, length: 12, qpContext: context, opcode: 99 });
    }
    const results: Nd2Result[] = [];
    let count = receives.getResults(results, 10);
    const all = results.slice(0, count).map((result) => ({ ...result }));
    count = initiators.getResults(results, 10);
    all.push(...results.slice(0, count).map((result) => ({ ...result })));
    const types = all.map(({ requestType }) => requestType);
    const { RECEIVE, SEND, BIND, INVALIDATE, READ, WRITE } = Nd2RequestType;
    assert.equal(types, [RECEIVE, SEND, BIND, INVALIDATE, READ, WRITE]);
    const expected = status === WcStatus.SUCCESS ? Status.SUCCESS : Status.CANCELED;
    for (const result of all) {
      assert.is(result.status, expected);
      assert.is(result.requestContext, 'same');
      assert.is(result.queuePairContext, context);
      assert.is(
        result.bytesTransferred,
        result.requestType === RECEIVE && status === WcStatus.SUCCESS ? 12 : 0,
      );
    }
  }
});

test('getResults fills existing objects', () => {
  const { adapter, pd } = openFake2();
  const { queuePair, qp, receives } = queuePairOf(adapter, pd);
  queuePair.receive('one', []);
  qp.complete(qp.posted[0]!);
  const results: Nd2Result[] = [];
  assert.is(receives.getResults(results), 1);
  const [object] = results;
  queuePair.receive('two', []);
  qp.complete(qp.posted[1]!);
  assert.is(receives.getResults(results), 1);
  assert.is(results[0], object);
  assert.is(object!.requestContext, 'two');
  assert.is(receives.getResults(results), 0);
});

test('T17 silent requests free their entries with a later result, and only have a result if they fail', () => {
  const { adapter, pd } = openFake2();
  const { queuePair, qp, initiators } = queuePairOf(adapter, pd, { depth: 2 });
  queuePair.send('silent', [], Nd2OpFlag.SILENT_SUCCESS);
  queuePair.send('loud', []);
  endsIn(() => queuePair.send('full', []), Status.NO_MORE_ENTRIES);
  qp.complete(qp.posted[1]!);
  const results: Nd2Result[] = [];
  assert.is(initiators.getResults(results, 5), 1);
  assert.is(results[0]!.requestContext, 'loud');
  // Exactly two entries are free.
  queuePair.send('silent 2', [], Nd2OpFlag.SILENT_SUCCESS);
  queuePair.send('loud 2', []);
  endsIn(() => queuePair.send('full', []), Status.NO_MORE_ENTRIES);
  for (const posted of qp.posted.slice(2)) qp.complete(posted, { status: WcStatus.FLUSHED });
  assert.is(initiators.getResults(results, 5), 2);
  for (const [i, context] of ['silent 2', 'loud 2'].entries()) {
    assert.equal([results[i]!.requestContext, results[i]!.status], [context, Status.CANCELED]);
  }
  queuePair.send('again', []);
  queuePair.send('and again', []);
});

test('T6 every WV_WC_STATUS has the v2 status that applications expect', () => {
  const expected = [
    0x00000000, // success
    0xc000003c, // local length: DATA_OVERRUN
    0xc00000e5, // local operation: INTERNAL_ERROR
    0xc0000005, // local protection
    0xc0000120, // flushed
    0xc0000005, // bind
    0xc0000005, // remote access: ACCESS_VIOLATION, never REMOTE_ERROR
    0xc000003e, // remote operation: DATA_ERROR
    0xc00000b5, // RNR retries: IO_TIMEOUT, a failure
    0xc00000b5, // transport retries
    0xc000003e, // remote invalid request
    0xc000003e, // bad response
    0xc0000005, // local access
    0xc00000e5, // other
  ];
  assert.equal(
    expected.map((_, wc) => v2Terms.completion(wc)),
    expected,
  );
  assert.is(v2Terms.completion(99), 0xc00000e5);
});

test('G1 statuses with other names in WinVerbs have their ND names, in both versions', () => {
  for (const terms of [v1Terms, v2Terms]) {
    assert.is(terms.status(0x80070047), Status.CONNECTION_REFUSED);
    assert.is(terms.status(0x80070035), Status.BAD_NETWORK_NAME);
    assert.is(terms.status(0x80070490), Status.INVALID_HANDLE);
    assert.is(terms.status(Status.LOCAL_LENGTH), Status.DATA_OVERRUN);
    assert.is(terms.status(Status.INVALIDATION_ERROR), Status.INVALID_DEVICE_REQUEST);
    assert.is(terms.status(Status.CONNECTION_IN_USE), Status.CONNECTION_ACTIVE);
    assert.is(terms.status(Status.REQUEST_ABORTED), Status.CONNECTION_ABORTED);
  }
  assert.is(v2Terms.status(Status.TIMEOUT), Status.IO_TIMEOUT);
  assert.is(v1Terms.status(Status.IO_TIMEOUT), Status.TIMEOUT);
  assert.is(v2Terms.status(Status.SHARING_VIOLATION), Status.SHARING_VIOLATION);
  assert.is(v1Terms.status(Status.SHARING_VIOLATION), Status.ADDRESS_ALREADY_EXISTS);
});

test('T4 a memory window implements both versions', () => {
  const v1 = openFake();
  const v2 = openFake2();
  const a = v1.adapter.createMemoryWindow();
  const b = v2.adapter.createMemoryWindow();
  assert.is(Object.getPrototypeOf(a), Object.getPrototypeOf(b));
  endsIn(() => b.getRemoteToken(), Status.INVALID_DEVICE_STATE);
});

test('G9 T16 Bind returns a token at once, a new one each time; ranges, rights and states are checked', () => {
  const { adapter, pd } = openFake2();
  const { queuePair, qp } = queuePairOf(adapter, pd, { depth: 16 });
  const region = registered2(adapter, pd, ALLOW_REMOTE_READ);
  const writable = registered2(adapter, pd, ALLOW_LOCAL_WRITE);
  const window = adapter.createMemoryWindow();
  const { ALLOW_READ, ALLOW_WRITE } = NdOpFlag;
  const bind = (offset: number, length: number, flags = 0, memory = region) =>
    statusOf(() => queuePair.bind('b', memory, window, offset, length, flags));
  for (const [offset, length] of [
    [0, 4097],
    [4096, 1],
    [-1, 2],
    [0, 0],
    [0.5, 1],
  ] as const) {
    assert.is(bind(offset, length), Status.INVALID_PARAMETER);
  }
  assert.is(bind(0, 1, ALLOW_WRITE), Status.ACCESS_VIOLATION, 'the region is not writable');
  assert.is(bind(0, 1, 0, adapter.createMemoryRegion()), Status.INVALID_PARAMETER_2);
  endsIn(() => queuePair.bind('b', region, {} as never, 0, 1), Status.INVALID_PARAMETER_3);
  endsIn(() => queuePair.invalidate('b', {} as never), Status.INVALID_PARAMETER_2);
  assert.is(bind(0, 4096, ALLOW_READ | ALLOW_WRITE, writable), Status.SUCCESS);
  assert.equal(qp.posted.at(-1)!.detail.access, WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE);
  const first = window.getRemoteToken();
  assert.is(bind(0, 1, ALLOW_READ), Status.INVALID_DEVICE_STATE, 'bound');
  queuePair.invalidate('i', window);
  assert.is(bind(0, 1), Status.SUCCESS, 'neither right: it grants nothing, and is allowed');
  assert.is.not(window.getRemoteToken(), first);
});

test('T22 remote memory is an address and a token, as returned by the owner', () => {
  const remote = new Nd2RemoteMemory(0x1234_5678_9abc_def0n, 0x89abcdef);
  assert.equal([remote.addressHigh, remote.addressLow, remote.rkey], [0x12345678, 0x9abcdef0, 0x89abcdef]);
  assert.throws(() => new Nd2RemoteMemory(1n << 64n, 0), RangeError);
  assert.throws(() => new Nd2RemoteMemory(0n, -1), RangeError);
  for (const address of [-1, 0.5, 2 ** 53, '5', undefined])
    assert.throws(() => new Nd2RemoteMemory(address as never, 0), RangeError);
  assert.is(new Nd2RemoteMemory(4096, 1).address, 4096n);
  const wire = new Uint8Array(14);
  const bytes = remote.encode(wire, 2);
  assert.is(Buffer.from(bytes).toString('hex'), '123456789abcdef089abcdef');
  assert.equal(Nd2RemoteMemory.decode(wire, 2), remote);
  assert.equal(Nd2RemoteMemory.of({ address: remote.address, getRemoteToken: () => remote.token }), remote);
  for (const offset of [-1, 3, 0.5]) {
    assert.throws(() => Nd2RemoteMemory.decode(wire, offset), RangeError);
    assert.throws(() => remote.encode(wire, offset), RangeError);
  }
});

test.run();
