// SPI v2 over a vendor's provider in every mode: how requests complete, and which features are missing.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { allocate, Nd2OpFlag, Nd2RequestType, Status, statusName } from '../../../nd/index.js';
import { statusOf } from '../standin.js';
import { clean, Nd2Standin, type Setting } from './nd2-standin.js';
import { disconnect, openHost, openPair, openShared, openSide, SIDE_BYTES } from './vendor-host.js';

const standin = new Nd2Standin();

const ways: Readonly<Record<string, Partial<Record<Setting, number>>>> = {
  'pending requests': {},
  'requests that complete at once': { completion: 1 },
  'requests that complete later': { delay: 10 },
  'requests in two phases': { completion: 2 },
  'requests in two phases, later': { completion: 2, delay: 10 },
  'private data in fields of fixed length': { padding: 1 },
  'queues that are not resized': { resize: 0 },
};

for (const [way, settings] of Object.entries(ways)) {
  clean(test, standin, `${way}: connect, Send, Read, Write, disconnect`, async () => {
    standin.set(settings);
    const host = openHost();
    const [a, b] = [openSide(host, { context: 'a' }), openSide(host, { context: 'b' })];
    let request = '';
    await host.join(a, b, {
      connect: { privateData: Buffer.from('hello') },
      accept: { privateData: Buffer.from('welcome') },
      onRequest: () => {
        request = Buffer.from(b.privateData).toString('latin1', 0, 5);
      },
    });
    assert.is(request, 'hello');
    assert.is(Buffer.from(a.privateData).toString('latin1', 0, 7), 'welcome');
    for (let i = 0; i < 10; i++) {
      const [from, to] = i % 2 ? [a, b] : [b, a];
      from.bytes.fill(i + 1, 0, 100);
      const notified = to.inbound.notify('any');
      to.queuePair.receive(`r${i}`, to.sge(1000, 100));
      from.queuePair.send(`s${i}`, from.sge(0, 10 * i));
      await notified;
      const [received] = await to.received();
      assert.equal(
        [received?.requestContext, received?.status, received?.bytesTransferred, received?.queuePairContext],
        [`r${i}`, Status.SUCCESS, 10 * i, to === a ? 'a' : 'b'],
      );
      assert.is(
        to.bytes.subarray(1000, 1000 + 10 * i).every((byte) => byte === i + 1),
        true,
      );
      assert.is((await from.initiated())[0]?.requestContext, `s${i}`);
    }
    a.bytes.fill(7, 0, 64);
    a.queuePair.write('w', a.sge(0, 64), b.remote, 4000);
    a.queuePair.read('d', a.sge(2000, 64), b.remote, 4000, Nd2OpFlag.READ_FENCE);
    const done = await a.initiated(2);
    assert.equal(
      done.map(({ requestContext, status, requestType }) => [requestContext, status, requestType]),
      [
        ['w', Status.SUCCESS, Nd2RequestType.WRITE],
        ['d', Status.SUCCESS, Nd2RequestType.READ],
      ],
    );
    assert.is(
      a.bytes.subarray(2000, 2064).every((byte) => byte === 7),
      true,
    );
    b.queuePair.receive('left', b.sge(0, 10));
    await disconnect(a, b);
    assert.equal(
      (await b.received()).map(({ requestContext, status }) => [requestContext, status]),
      [['left', Status.CANCELED]],
    );
    for (const side of [a, b]) side.release();
    host.release();
  });

  clean(test, standin, `${way}: rejected connections and cancelled requests`, async () => {
    standin.set(settings);
    const host = openHost();
    const [a, b] = [openSide(host), openSide(host)];
    const unused = { ...host.listening.address, port: 1 };
    assert.is(await statusOf(() => a.connect(unused)), Status.CONNECTION_REFUSED);
    const requested = host.listening.request(b);
    const connecting = a.connector.connect(a.queuePair, host.listening.address);
    await requested;
    b.connector.reject(Buffer.from('no'));
    assert.is(await statusOf(() => connecting), Status.CONNECTION_REFUSED);
    assert.is(Buffer.from(a.privateData).toString('latin1', 0, 2), 'no');
    const notified = a.inbound.notify('any');
    a.inbound.cancelOverlappedRequests();
    assert.is(await statusOf(() => notified), Status.CANCELED);
    const idle = openSide(host);
    const waiting = host.listening.request(idle);
    host.listening.listener.cancelOverlappedRequests();
    assert.is(await statusOf(() => waiting), Status.CANCELED);
    for (const side of [a, b, idle]) side.release();
    host.release();
  });
}

clean(test, standin, 'resizing is NOT_SUPPORTED without CQ_RESIZE, and the error names the DLL', async () => {
  standin.set({ resize: 0 });
  const host = openHost();
  const queue = host.adapter.createCompletionQueue(16);
  assert.is(await statusOf(() => queue.resize(32)), Status.NOT_SUPPORTED);
  assert.throws(() => queue.resize(32), /standin-nd2\.dll/);
  queue.release();
  host.release();
});

clean(
  test,
  standin,
  'a provider like that for USB4: missing features are NOT_SUPPORTED, messages and Writes work',
  async () => {
    standin.set({ usb4: 1 });
    const reads = standin.calls('IND2QueuePair::Read');
    const host = openHost();
    const { adapter } = host;
    const info = adapter.query();
    assert.equal(
      [info.maxInitiatorSge, info.maxInlineDataSize, info.maxWindowSize, info.maxSharedReceiveQueueDepth],
      [1, 0, 0, 0],
    );
    const lacks = {
      windows: () => adapter.createMemoryWindow(),
      'shared receive queues': () => adapter.createSharedReceiveQueue({ depth: 4 }),
    };
    for (const [what, call] of Object.entries(lacks)) {
      assert.is(await statusOf(call), Status.NOT_SUPPORTED, what);
      assert.throws(call, new RegExp(`standin-nd2\\.dll.*${what}`), what);
    }
    const one = { maxReceiveRequestSge: 1, maxInitiatorRequestSge: 1 };
    const { a, b } = await openPair(host, one);
    const read = () => a.queuePair.read('d', a.sge(0, 8), b.remote);
    assert.is(await statusOf(read), Status.NOT_SUPPORTED);
    assert.throws(read, /standin-nd2\.dll.*Read/);
    b.queuePair.receive('r', b.sge(0, 100));
    a.queuePair.send('s', a.sge(0, 50));
    assert.is((await b.received())[0]?.bytesTransferred, 50);
    a.queuePair.write('w', a.sge(0, 50), b.remote, 100);
    assert.equal(
      (await a.initiated(2)).map(({ status }) => statusName(status)),
      ['SUCCESS', 'SUCCESS'],
    );
    await disconnect(a, b);
    for (const side of [a, b]) side.release();
    host.release();
    assert.is(standin.calls('IND2QueuePair::Read'), reads);
  },
);

clean(test, standin, 'a shared receive queue and its notification', async () => {
  const host = openHost();
  const { shared, a, b, queue, queuePair } = await openShared(host, { maxRequestSge: 2, notifyThreshold: 2 });
  const low = shared.notify();
  for (let i = 0; i < 2; i++) a.queuePair.send(i, a.sge(0, 10 + i));
  await low;
  const results: Parameters<typeof queue.getResults>[0] = [];
  assert.is(queue.getResults(results, 8), 2);
  assert.equal(
    results.map(({ requestContext, bytesTransferred, queuePairContext }) => [
      requestContext,
      bytesTransferred,
      queuePairContext,
    ]),
    [
      [0, 10, 'srq'],
      [1, 11, 'srq'],
    ],
  );
  await disconnect(a, b);
  for (const object of [a, b, queuePair, queue, shared, host]) object.release();
});

clean(test, standin, 'a memory window: its rights, and access after Invalidate', async () => {
  const host = openHost();
  const { a, b } = await openPair(host);
  const window = host.adapter.createMemoryWindow();
  b.queuePair.bind('b', b.region, window, 0, 100, Nd2OpFlag.ALLOW_READ);
  assert.is((await b.initiated())[0]?.status, Status.SUCCESS);
  const remote = a.remoteAt(b.region.address, 100, window.getRemoteToken()) as typeof b.remote;
  b.bytes.fill(9, 0, 100);
  a.queuePair.read('d', a.sge(0, 100), remote);
  assert.is((await a.initiated())[0]?.status, Status.SUCCESS);
  assert.is(a.bytes[99], 9);
  b.queuePair.invalidate('i', window);
  assert.is((await b.initiated())[0]?.status, Status.SUCCESS);
  a.queuePair.read('d', a.sge(0, 100), remote);
  assert.is((await a.initiated())[0]?.status, Status.ACCESS_VIOLATION);
  for (const object of [window, a, b, host]) object.release();
});

clean(test, standin, 'device removal: requests end, calls fail, and objects can be released', async () => {
  const host = openHost();
  const { a, b } = await openPair(host);
  a.queuePair.receive('r', a.sge(0, 10));
  const notified = a.outbound.notify('any');
  const gone = b.notifyDisconnect();
  const idle = openSide(host);
  const requested = host.listening.request(idle);
  standin.set({ removed: 1 });
  for (const request of [notified, gone, requested])
    assert.is(await statusOf(() => request), Status.DEVICE_REMOVED);
  assert.is(await statusOf(() => host.adapter.query()), Status.DEVICE_REMOVED);
  assert.is(await statusOf(() => host.adapter.createCompletionQueue(4)), Status.DEVICE_REMOVED);
  assert.is(await statusOf(() => a.inbound.notify('any')), Status.DEVICE_REMOVED);
  assert.is(await statusOf(() => host.register(allocate(SIDE_BYTES))), Status.DEVICE_REMOVED);
  assert.equal(
    (await a.received()).map(({ requestContext, status }) => [requestContext, status]),
    [['r', Status.CANCELED]],
  );
  for (const side of [a, b, idle]) side.release();
  host.release();
});

test.run();
