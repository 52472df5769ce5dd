// WinVerbs on Windows through all layers: IOCTLs to the stand-in driver, and requests through a DLL to a stand-in provider. Both check
// their arguments, and data is transferred between two queue pairs of this process.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  allocate,
  openProvider,
  QpAttr,
  QpState,
  type RemoteMemory,
  Status,
  WcStatus,
  WvAccess,
  type WvCompletion,
  WvOpcode,
  WvSend,
  WvWc,
} from '../../winverbs/index.js';
import { remoteOf, take } from '../helpers/loopback.js';
import { clean as cleanDriver, GUID, Standin, statusOf } from './standin.js';
import { disconnectPair, pairOf, StandinProvider } from './standin-provider.js';

const standin = new Standin();
const uvp = new StandinProvider();

/** As for the driver. In addition, the provider must not have found a fault, and no objects of it may be left. */
function clean(name: string, run: () => unknown): void {
  cleanDriver(test, standin, name, async () => {
    const before = uvp.live;
    await run();
    assert.is(uvp.fault(), '');
    assert.is(uvp.live, before, 'objects of the provider');
  });
}

clean('a connection, its private data, and a message in each direction', async () => {
  const { a, b, atA, atB, release } = await pairOf();
  assert.is(Buffer.from(atB.privateData).toString().replace(/\0+$/, ''), 'from a');
  assert.is(Buffer.from(atA.privateData).toString().replace(/\0+$/, ''), 'from b');
  assert.is(a.qp.state, QpState.RTS);
  a.memory.write('hello', 0);
  b.qp.postReceive('b got it', b.sge(100, 50));
  a.qp.send('a sent it', a.sge(0, 5), WvSend.SIGNALED | WvSend.IMMEDIATE, 0x01020304);
  const [sent] = await take(a.cq, 1);
  const [got] = await take(b.cq, 1);
  assert.is(sent!.context, 'a sent it');
  assert.is(sent!.opcode, WvOpcode.SEND);
  assert.is(sent!.length, 5);
  assert.is(got!.context, 'b got it');
  assert.is(got!.opcode, WvOpcode.RECEIVE);
  assert.is(got!.length, 5);
  assert.is(got!.flags, WvWc.IMMEDIATE);
  assert.is(got!.immediateData, 0x01020304);
  assert.is(got!.sourceQpn, a.qp.qpn);
  assert.is(got!.pkeyIndex, 1);
  assert.is(got!.sLid, 0x0203);
  assert.is(got!.sl, 4);
  assert.is(got!.dLidPathBits, 5);
  assert.is(b.memory.toString('latin1', 100, 105), 'hello');
  await disconnectPair(a, b);
  assert.is(a.qp.state, QpState.ERROR);
  assert.is(b.qp.state, QpState.ERROR);
  release();
});

clean('RDMA Write, Write with immediate data, Read, and both atomics', async () => {
  const { a, b, release } = await pairOf();
  b.memory.writeBigUInt64LE(40n, 512);
  a.memory.write('written by a', 0);
  a.qp.write('write', a.sge(0, 12), WvSend.SIGNALED, b.remote, 64);
  a.qp.read('read', a.sge(1024, 12), WvSend.SIGNALED, b.remote, 64);
  a.qp.fetchAdd('add', a.sge(2048, 8)[0], WvSend.SIGNALED, 2n, b.remote, 512);
  a.qp.compareExchange('swap', a.sge(2056, 8)[0], WvSend.SIGNALED, 42n, 2n ** 63n + 7n, b.remote, 512);
  b.qp.postReceive('announced', []);
  a.qp.write('last', a.sge(0, 4), WvSend.SIGNALED | WvSend.IMMEDIATE, b.remote, 128, 77);
  const done = await take(a.cq, 5);
  assert.equal(
    done.map(({ context, opcode, status, length }) => [context, opcode, status, length]),
    [
      ['write', WvOpcode.RDMA_WRITE, 0, 12],
      ['read', WvOpcode.RDMA_READ, 0, 12],
      ['add', WvOpcode.FETCH_ADD, 0, 8],
      ['swap', WvOpcode.COMPARE_EXCHANGE, 0, 8],
      ['last', WvOpcode.RDMA_WRITE, 0, 4],
    ],
  );
  assert.is(b.memory.toString('latin1', 64, 76), 'written by a');
  assert.is(a.memory.toString('latin1', 1024, 1036), 'written by a');
  assert.is(a.memory.readBigUInt64LE(2048), 40n);
  assert.is(a.memory.readBigUInt64LE(2056), 42n);
  assert.is(b.memory.readBigUInt64LE(512), 2n ** 63n + 7n);
  const [announced] = await take(b.cq, 1);
  assert.equal(
    [announced!.context, announced!.opcode, announced!.immediateData],
    ['announced', WvOpcode.RECEIVE_RDMA_WRITE, 77],
  );
  release();
});

clean('scatter/gather lists, inline requests, and silent requests that a later one completes', async () => {
  const { a, b, release } = await pairOf();
  for (let i = 0; i < 256; i++) a.memory[i] = i;
  const pieces = [0, 100, 7].map((offset, i) => ({ region: a.region, offset, length: 10 + i }));
  b.qp.postReceive('whole', [
    { region: b.region, offset: 0, length: 5 },
    { region: b.region, offset: 300, length: 100 },
  ]);
  a.qp.send('list', pieces, WvSend.SIGNALED);
  const expected = Buffer.concat(
    pieces.map(({ offset, length }) => a.memory.subarray(offset, offset + length)),
  );
  assert.is((await take(a.cq, 1))[0]!.length, 33);
  assert.is((await take(b.cq, 1))[0]!.length, 33);
  assert.equal(Buffer.concat([b.memory.subarray(0, 5), b.memory.subarray(300, 328)]), expected);
  for (let i = 0; i < 40; i++) {
    b.qp.postReceive(i, b.sge(1000, 128));
    a.memory[0] = i;
    a.qp.send(i, a.sge(0, 100), WvSend.INLINE | (i % 8 === 7 ? WvSend.SIGNALED : 0));
    a.memory[0] = 255;
    assert.is((await take(b.cq, 1))[0]!.context, i);
    assert.is(b.memory[1000], i, 'inline bytes are copied when posting');
    if (i % 8 === 7) assert.is((await take(a.cq, 1))[0]!.context, i);
  }
  release();
});

clean('a Send without a posted Receive waits for one', async () => {
  const { a, b, release } = await pairOf();
  a.memory.write('late', 0);
  a.qp.send(1, a.sge(0, 4), WvSend.SIGNALED);
  assert.is(a.cq.poll([], 4), 0);
  b.qp.postReceive(2, b.sge(0, 4));
  assert.is((await take(a.cq, 1))[0]!.status, WcStatus.SUCCESS);
  assert.is(b.memory.toString('latin1', 0, 4), 'late');
  release();
});

clean('disconnecting flushes outstanding requests of both sides', async () => {
  const { a, b, release } = await pairOf();
  for (let i = 0; i < 8; i++) {
    a.qp.postReceive(`a${i}`, a.sge(0, 64));
    a.qp.send(`s${i}`, a.sge(0, 64), i % 2 ? WvSend.SIGNALED : 0);
  }
  for (const i of [0, 1]) b.qp.postReceive(`b${i}`, b.sge(0, 64));
  await take(b.cq, 2);
  await disconnectPair(a, b);
  const flushed: WvCompletion[] = [];
  const count = a.cq.poll(flushed, 64);
  const contexts = flushed.slice(0, count).map(({ context, status }) => [context, status]);
  // The second of the two Sends that b received was signaled.
  assert.equal(contexts[0], ['s1', WcStatus.SUCCESS]);
  assert.equal(
    contexts
      .slice(1)
      .map(([context]) => context)
      .sort(),
    ['a0', 'a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 's2', 's3', 's4', 's5', 's6', 's7'],
  );
  assert.ok(contexts.slice(1).every(([, status]) => status === WcStatus.FLUSHED));
  a.qp.send('too late', a.sge(0, 1), 0);
  assert.is((await take(a.cq, 1))[0]!.status, WcStatus.FLUSHED);
  release();
});

clean('accesses without rights end the connection with a status on both sides', async () => {
  const tries: [(sides: Awaited<ReturnType<typeof pairOf>>) => void, number][] = [
    [({ a, b }) => a.qp.write(1, a.sge(0, 8), WvSend.SIGNALED, b.remote, 8190), WcStatus.REMOTE_ACCESS_ERROR],
    [
      ({ a, b }) => {
        const remote = remoteOf({ ...b.region, rkey: b.region.rkey + 12345 });
        a.qp.read(1, a.sge(0, 8), WvSend.SIGNALED, remote, 0);
      },
      WcStatus.REMOTE_ACCESS_ERROR,
    ],
    [
      ({ a, b }) => {
        b.qp.postReceive(1, b.sge(0, 4));
        a.qp.send(1, a.sge(0, 8), WvSend.SIGNALED);
      },
      WcStatus.REMOTE_INVALID_REQUEST,
    ],
    [
      ({ a }) => {
        const region = { ...a.region, lkey: a.region.lkey + 54321 };
        a.qp.send(1, [{ region, offset: 0, length: 8 }], WvSend.SIGNALED);
      },
      WcStatus.LOCAL_PROTECTION_ERROR,
    ],
  ];
  for (const [attempt, status] of tries) {
    const sides = await pairOf();
    attempt(sides);
    const [done] = await take(sides.a.cq, 1);
    assert.is(done!.status, status);
    assert.is(done!.vendorCode, 0x700 + status);
    assert.is(sides.a.qp.state, QpState.ERROR);
    sides.release();
  }
});

clean('a shared receive queue serves two queue pairs in any order', async () => {
  const provider = openProvider();
  const device = provider.openDevice(GUID);
  const pd = device.allocateProtectionDomain();
  const srq = pd.createSharedReceiveQueue(32, 2, 4);
  assert.equal(srq.query(), { maxWr: 32, maxSge: 2, srqLimit: 4 });
  srq.modify(64, 8);
  assert.equal(srq.query(), { maxWr: 64, maxSge: 2, srqLimit: 8 });
  const cq = device.createCompletionQueue(64);
  const memory = allocate(4096);
  const region = pd.registerMemory(memory, WvAccess.LOCAL_WRITE);
  const shape = { sendCq: cq, receiveCq: cq, sendDepth: 8, sendSge: 1, receiveDepth: 8, receiveSge: 1 };
  const qps = [0, 1, 2, 3].map((i) =>
    pd.createConnectQueuePair(i < 2 ? { ...shape, srq, context: `q${i}` } : { ...shape, context: `q${i}` }),
  );
  // Two pairs, connected without connection management: 2 to 0, 3 to 1.
  for (const [i, qp] of qps.entries()) {
    qp.modify({ qpState: QpState.INIT, portNumber: 1, pkeyIndex: 0, accessFlags: 0 }, QpAttr.STATE);
    qp.modify({ qpState: QpState.RTR, destinationQpn: qps[i ^ 2]!.qpn, portNumber: 1 }, QpAttr.STATE);
    qp.modify({ qpState: QpState.RTS }, QpAttr.STATE);
  }
  assert.throws(
    () => qps[0]!.postReceive(1, []),
    (error: unknown) => (error as { status: number }).status === Status.INVALID_DEVICE_REQUEST,
  );
  for (let i = 0; i < 6; i++) srq.postReceive(`shared ${i}`, [{ region, offset: 100 * i, length: 100 }]);
  for (let i = 0; i < 6; i++) {
    memory[2000] = i;
    qps[2 + (i % 2)]!.send(`sent ${i}`, [{ region, offset: 2000, length: 1 }], 0);
  }
  const taken = await take(cq, 6);
  assert.equal(
    taken.map(({ context, qpContext }) => [context, qpContext]),
    [0, 1, 2, 3, 4, 5].map((i) => [`shared ${i}`, `q${i % 2}`]),
  );
  assert.equal(
    [0, 1, 2, 3, 4, 5].map((i) => memory[100 * i]),
    [0, 1, 2, 3, 4, 5],
  );
  for (let i = 0; i < 64; i++) srq.postReceive(i, []);
  assert.is(await statusOf(() => srq.postReceive(64, [])), Status.NO_MORE_ENTRIES);
  for (const object of [...qps, srq, cq, pd, device, provider]) object.release();
});

clean('memory windows: bound, used, rebound, unbound', async () => {
  const { a, b, release } = await pairOf();
  const window = b.pd.allocateMemoryWindow();
  const first = b.qp.bindMemoryWindow(
    window,
    'bind',
    b.region,
    1000,
    100,
    WvAccess.REMOTE_WRITE,
    WvSend.SIGNALED,
  );
  assert.is(first, window.rkey);
  const [bound] = await take(b.cq, 1);
  assert.equal([bound!.context, bound!.opcode, bound!.status], ['bind', WvOpcode.BIND_WINDOW, 0]);
  const through = (rkey: number): RemoteMemory => remoteOf({ ...b.region, rkey });
  a.memory.write('window', 0);
  a.qp.write(1, a.sge(0, 6), WvSend.SIGNALED, through(first), 1000);
  assert.is((await take(a.cq, 1))[0]!.status, WcStatus.SUCCESS);
  assert.is(b.memory.toString('latin1', 1000, 1006), 'window');
  const second = b.qp.bindMemoryWindow(window, 2, b.region, 2000, 100, WvAccess.REMOTE_WRITE, 0);
  assert.is.not(second, first);
  b.qp.invalidateMemoryWindow(window, 'unbind', WvSend.SIGNALED);
  const [unbound] = await take(b.cq, 1);
  assert.equal([unbound!.context, unbound!.opcode], ['unbind', WvOpcode.INVALIDATE]);
  a.qp.write(3, a.sge(0, 6), WvSend.SIGNALED, through(second), 2000);
  assert.is((await take(a.cq, 1))[0]!.status, WcStatus.REMOTE_ACCESS_ERROR);
  window.release();
  release();
});

clean('datagrams with address handles that are created with and without an IOCTL', async () => {
  const provider = openProvider();
  const device = provider.openDevice(GUID);
  const pd = device.allocateProtectionDomain();
  const cq = device.createCompletionQueue(16);
  const memory = allocate(4096);
  const region = pd.registerMemory(memory, WvAccess.LOCAL_WRITE);
  const shape = { sendCq: cq, receiveCq: cq, sendDepth: 4, sendSge: 1, receiveDepth: 4, receiveSge: 1 };
  const [from, to] = [pd.createDatagramQueuePair(shape), pd.createDatagramQueuePair(shape)];
  from.start(0x11111111);
  to.start(0x22222222);
  const sourceGid = device.queryGid(1, 1);
  const vector = { sourceGid, destinationGid: sourceGid, portNumber: 1, flowLabel: 0x12345 };
  for (const [i, hopLimit] of [64, 77].entries()) {
    const ah = pd.createAddressHandle({ ...vector, hopLimit });
    to.postReceive(`got ${i}`, [{ region, offset: 0, length: 200 }]);
    memory.set(Buffer.from('datagram'), 1000);
    from.sendMessage({
      context: 'lost',
      addressHandle: ah,
      sgl: [{ region, offset: 1000, length: 8 }],
      flags: WvSend.SIGNALED,
      destinationQpn: to.qpn,
      destinationQkey: 0x33333333,
    });
    from.send(`sent ${i}`, ah, { region, offset: 1000, length: 8 }, WvSend.SIGNALED, to.qpn, 0x22222222);
    const done = await take(cq, 3);
    const got = done.find(({ opcode }) => opcode === WvOpcode.RECEIVE)!;
    assert.equal(
      [got.context, got.length, got.flags, got.sourceQpn],
      [`got ${i}`, 48, WvWc.GRH_VALID, from.qpn],
    );
    assert.is(Buffer.from(memory.subarray(40, 48)).toString(), 'datagram');
    ah.release();
  }
  for (const object of [from, to, cq, pd, device, provider]) object.release();
});

clean('notifications: any, solicited, after several completions, and of earlier completions', async () => {
  const { a, b, release } = await pairOf();
  const any = b.cq.notify('any');
  b.qp.postReceive(1, b.sge(0, 8));
  a.qp.send(1, a.sge(0, 8), 0);
  await any;
  // The completion has not been polled, so it is notified again.
  await b.cq.notify('any');
  assert.is(b.cq.peek(), 1);
  await take(b.cq, 1);
  const solicited = b.cq.notify('solicited');
  for (const flags of [0, WvSend.SOLICITED]) {
    assert.is(solicited.completed, false);
    b.qp.postReceive(2, b.sge(0, 8));
    a.qp.send(2, a.sge(0, 8), flags);
  }
  await solicited;
  await take(b.cq, 2);
  const three = b.cq.batchNotify(3);
  for (let i = 0; i < 3; i++) {
    assert.is(three.completed, false);
    b.qp.postReceive(i, b.sge(0, 8));
    a.qp.send(i, a.sge(0, 8), 0);
  }
  await three;
  assert.is(b.cq.peek(), 3);
  assert.is(three.completed, true);
  release();
});

clean('full queues, resizing, overrun and reset', async () => {
  const { a, b, release } = await pairOf();
  for (let i = 0; i < 16; i++) a.qp.send(i, a.sge(0, 8), WvSend.SIGNALED);
  assert.is(await statusOf(() => a.qp.send(16, a.sge(0, 8), 0)), Status.NO_MORE_ENTRIES);
  assert.is(
    await statusOf(() =>
      a.qp.send(16, [...a.sge(0, 8), ...a.sge(0, 8), ...a.sge(0, 8), ...a.sge(0, 8), ...a.sge(0, 8)], 0),
    ),
    Status.NO_MORE_ENTRIES,
  );
  for (let i = 0; i < 16; i++) b.qp.postReceive(i, b.sge(0, 8));
  assert.is(await statusOf(() => b.qp.postReceive(16, b.sge(0, 8))), Status.NO_MORE_ENTRIES);
  assert.is(a.cq.peek(), 16);
  assert.is(a.cq.entries, 65, 'the provider has enlarged it');
  a.cq.resize(200);
  assert.is(a.cq.entries, 200);
  const done = await take(a.cq, 16);
  assert.equal(
    done.map(({ context }) => context),
    [...done.keys()],
  );
  assert.is(
    await statusOf(() =>
      a.qp.send(
        1,
        Array.from({ length: 5 }, () => a.sge(0, 8)[0]),
        0,
      ),
    ),
    Status.DATA_OVERRUN,
  );
  assert.is(await statusOf(() => a.qp.send(1, a.sge(0, 300), WvSend.INLINE)), Status.BUFFER_OVERFLOW);
  const beyond = a.sge(a.memory.length - 4, 8);
  assert.is(await statusOf(() => a.qp.send(1, beyond, WvSend.INLINE)), Status.ACCESS_VIOLATION);
  assert.is(await statusOf(() => a.qp.sendAndInvalidate(1, a.sge(0, 8), 0, 1)), Status.NOT_SUPPORTED);
  a.qp.send('before the reset', a.sge(0, 8), 0);
  for (let i = 0; i < 16; i++) a.qp.postReceive(i, a.sge(0, 8));
  a.qp.modify({ qpState: QpState.RESET }, QpAttr.STATE);
  assert.is(a.qp.state, QpState.RESET);
  assert.is(await statusOf(() => a.qp.send(1, a.sge(0, 8), 0)), Status.INVALID_DEVICE_STATE);
  assert.is(await statusOf(() => a.qp.postReceive(1, a.sge(0, 8))), Status.INVALID_DEVICE_STATE);
  a.qp.modify({ qpState: QpState.INIT, portNumber: 1 }, QpAttr.STATE);
  for (let i = 0; i < 16; i++) a.qp.postReceive(i, a.sge(0, 8));
  release();
});

clean('posting and polling allocate nothing', async () => {
  const { a, b, release } = await pairOf();
  const [list, receiveList, done] = [a.sge(0, 0), b.sge(0, 0), [] as WvCompletion[]];
  const run = (count: number): void => {
    for (let i = 0; i < count; i++) {
      b.qp.postReceive(b, receiveList);
      a.qp.send(a, list, WvSend.SIGNALED);
      if (a.cq.poll(done, 1) + b.cq.poll(done, 1) !== 2)
        throw new Error('Both requests must have completed.');
    }
  };
  const rounds = 2000;
  // Repeats the round until V8 has compiled it.
  run(5 * rounds);
  let least = Number.POSITIVE_INFINITY;
  // Code that V8 compiles meanwhile is also in its heap.
  for (let i = 0; i < 8; i++) {
    globalThis.gc?.();
    const before = process.memoryUsage().heapUsed;
    run(rounds);
    least = Math.min(least, process.memoryUsage().heapUsed - before);
  }
  // A round has four calls. One object in each of them would use at least 64 bytes.
  assert.ok(least / rounds < 32, `${Math.round(least / rounds)} bytes a round`);
  release();
});

clean('releasing in any order with outstanding requests', async () => {
  const { a, b, release } = await pairOf();
  for (let i = 0; i < 4; i++) {
    a.qp.postReceive(i, a.sge(0, 8));
    b.qp.postReceive(i, b.sge(0, 8));
    a.qp.send(i, a.sge(0, 8), WvSend.SIGNALED);
  }
  const waiting = [a.cq.notify('errors'), b.ep.notifyDisconnect(), a.ep.disconnect()];
  a.device.release();
  a.pd.release();
  a.cq.release();
  a.ep.release();
  a.qp.release();
  release();
  for (const request of waiting) await statusOf(() => request);
});

test.run();
