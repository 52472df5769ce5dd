/**
 * ND SPI v2 through the whole stack: both sides in this process, over 127.0.0.1. T and G in names number the traps and
 * gaps that nd2-coverage.test.ts lists.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readCounters } from '../../kernel-bridge/index.js';
import { LOOPBACK as ADDRESS, textOf } from '../../nd/cli/sides/connected-side.js';
import { ALL_RIGHTS, HostV2, SideV2 } from '../../nd/cli/sides/v2.js';
import {
  type IND2MemoryWindow,
  Nd2MrFlag,
  Nd2OpFlag,
  Nd2RemoteMemory,
  Nd2RequestType,
  Status,
  statusName,
} from '../../nd/index.js';
import { statusOf } from '../helpers/nd-fixture.js';
import { outcome } from '../helpers/outcome.js';

const test = suite<{ host: HostV2 }>('ND v2 in one process');
const { ALLOW_READ, ALLOW_WRITE, INLINE, SILENT_SUCCESS, READ_FENCE } = Nd2OpFlag;
const { ALLOW_LOCAL_WRITE, ALLOW_REMOTE_READ, ALLOW_REMOTE_WRITE } = Nd2MrFlag;

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

test('T12 T13 G15 what connecting tells: data, limits, addresses, in each side’s view', async ({ host }) => {
  const active = new SideV2(host.adapter);
  const passive = new SideV2(host.adapter);
  active.connector.bind(ADDRESS);
  const local = active.connector.getLocalAddress();
  assert.ok(local.port >= 49_152, 'T9 an ephemeral port, right after Bind');
  const requested = host.listener.getConnectionRequest(passive.connector);
  const connected = active.connector.connect(active.queuePair, host.target, {
    inboundReadLimit: 3,
    outboundReadLimit: 5,
    privateData: new TextEncoder().encode('active'),
  });
  await requested;
  // Inbound here is the peer's outbound.
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
  const { active, passive } = await host.pair({ active: { context: 'A' }, passive: { context: 'P' } });
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

test('a local token names the memory of its region in every list, until it is deregistered', async ({
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

test('INLINE: free at once, more entries than the queue pair takes, up to its size and not beyond', async ({
  host,
}) => {
  const { active, passive } = await host.pair({ active: { inlineDataSize: 16 } });
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
  const { maxInitiatorRequestSge } = active.queuePair;
  const tooMany = Array.from({ length: maxInitiatorRequestSge + 1 }, (_, at) => active.sge(at, 1)[0]!);
  assert.is(
    statusOf(() => active.queuePair.send('s', tooMany)),
    Status.DATA_OVERRUN,
  );
  active.release();
  passive.release();
  const none = await host.pair({ active: { inlineDataSize: 0 } });
  none.passive.queuePair.receive('r', []);
  none.active.queuePair.send('s', [], INLINE);
  assert.equal(names(await none.passive.received()), ['SUCCESS']);
  none.active.release();
  none.passive.release();
});

test('T22 a region’s remote token travels as four bytes, and peers read and write by it', async ({
  host,
}) => {
  const { active, passive } = await host.pair();
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
    const { active, passive } = await host.pair();
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
  const { active, passive } = await host.pair();
  passive.queuePair.receive('r', passive.sge(0, 10));
  active.queuePair.read('x', active.sge(0, 2), passive.remote, passive.bytes.length - 1);
  assert.equal(names(await active.initiated()), ['ACCESS_VIOLATION']);
  assert.equal(names(await passive.received()), ['CANCELED']);
  await passive.connector.notifyDisconnect();
  active.release();
  passive.release();
});

test('a queue pair made for one entry a request takes as many as it says it grants', async ({ host }) => {
  const one = { maxInitiatorRequestSge: 1, maxReceiveRequestSge: 1 };
  const { active, passive } = await host.pair({ active: one, passive: one });
  const { maxInitiatorRequestSge: granted, maxReceiveRequestSge } = active.queuePair;
  assert.ok(granted >= 2, `its ring has room for more than one entry, and ${granted} are granted`);
  assert.is(maxReceiveRequestSge, 1);
  for (const entries of [2, granted]) {
    const sgl = Array.from({ length: entries }, (_, at) => active.sge(at * 10, 3)[0]!);
    passive.queuePair.receive('r', passive.sge(0, 100));
    active.queuePair.send('s', sgl);
    assert.equal(names(await passive.received()), ['SUCCESS']);
    assert.equal(names(await active.initiated()), ['SUCCESS']);
    const sent = sgl.flatMap((_, at) => [...active.bytes.subarray(at * 10, at * 10 + 3)]);
    assert.equal([...passive.bytes.subarray(0, entries * 3)], sent);
  }
  active.release();
  passive.release();
});

test('as the guides say: a Read with an outbound limit of 0, a connector on a port that is taken', async ({
  host,
}) => {
  const { port } = host.listener.getLocalAddress();
  const { active, passive } = await host.pair({ connect: { outboundReadLimit: 0 } });
  active.queuePair.read('r', active.sge(0, 8), passive.remote);
  assert.equal(names(await active.initiated()), ['INTERNAL_ERROR']);
  await passive.connector.notifyDisconnect();
  const connector = host.adapter.createConnector();
  connector.bind({ family: 4, address: '127.0.0.1', port });
  assert.is(connector.getLocalAddress().port, port);
  for (const object of [active, passive, connector]) object.release();
});

test('T6 a message longer than its Receive: DATA_OVERRUN there, DATA_ERROR here, and the end', async ({
  host,
}) => {
  const { active, passive } = await host.pair();
  active.queuePair.receive('mine', active.sge(0, 10));
  passive.queuePair.receive('short', passive.sge(0, 3));
  passive.queuePair.receive('next', passive.sge(0, 3));
  active.queuePair.send('long', active.sge(0, 4));
  assert.equal(names(await passive.received(2)), ['DATA_OVERRUN', 'CANCELED']);
  assert.equal(names(await active.initiated()), ['DATA_ERROR']);
  assert.equal(names(await active.received()), ['CANCELED']);
  active.release();
  passive.release();
});

test('T21 G8 a Send that nobody receives ends in IO_TIMEOUT, and the receiver sees nothing of it', async ({
  host,
}) => {
  const { active, passive } = await host.pair();
  active.queuePair.send('unheard', active.sge(0, 4));
  assert.equal(names(await active.initiated()), ['IO_TIMEOUT']);
  assert.is(passive.inbound.getResults([], 1), 0);
  active.release();
  passive.release();
});

for (const [where, offset, length] of [
  ['ends 60 bytes beyond', 60, 64],
  ['begins at the end', 64, 1],
  ['begins beyond', 65, 64],
] as const) {
  for (const op of ['send', 'receive', 'read', 'write'] as const) {
    test(`local memory that ${where} its registration: a ${op} is queued, and its result is ACCESS_VIOLATION`, async ({
      host,
    }) => {
      const { active, passive } = await host.pair();
      const region = host.adapter.createMemoryRegion();
      await region.register(new Uint8Array(64), ALLOW_LOCAL_WRITE);
      const { queuePair } = active;
      const remote = Nd2RemoteMemory.of(passive.region);
      const beyond = [{ memory: region, offset, length }];
      const notified = passive.connector.notifyDisconnect();
      if (op === 'receive') {
        queuePair.receive('beyond', beyond);
        passive.queuePair.send('message', passive.sge(0, length));
        assert.equal(names(await active.received()), ['ACCESS_VIOLATION']);
      } else {
        passive.queuePair.receive('message', passive.sge(0, 64));
        if (op === 'send') queuePair.send('beyond', beyond);
        else queuePair[op]('beyond', beyond, remote);
        queuePair.send('after', active.sge(0, 4));
        assert.equal(names(await active.initiated(2)), ['ACCESS_VIOLATION', 'CANCELED']);
        assert.equal(names(await passive.received()), ['CANCELED']);
      }
      await notified.catch(() => {});
      active.release();
      passive.release();
      region.release();
    });
  }
}

test('local memory: up to the end of a registration, no bytes beyond it, inline bytes beyond it', async ({
  host,
}) => {
  const { active, passive } = await host.pair();
  const region = host.adapter.createMemoryRegion();
  await region.register(new Uint8Array(64), ALLOW_LOCAL_WRITE);
  const { queuePair } = active;
  const remote = Nd2RemoteMemory.of(passive.region);
  queuePair.write('up to the end', [{ memory: region, offset: 60, length: 4 }], remote);
  queuePair.write('no bytes', [{ memory: region, offset: 100, length: 0 }], remote);
  assert.equal(names(await active.initiated(2)), ['SUCCESS', 'SUCCESS']);
  // The call copies inline bytes, so the call finds that they are not there.
  const beyond = [{ memory: region, offset: 60, length: 64 }];
  assert.is(
    statusOf(() => queuePair.send('inline', beyond, INLINE)),
    Status.ACCESS_VIOLATION,
  );
  active.release();
  passive.release();
  region.release();
});

test('bad local memory is ACCESS_VIOLATION: no right to write, deregistered meanwhile', async ({ host }) => {
  const unwritable = await host.pair();
  const region = host.adapter.createMemoryRegion();
  await region.register(new Uint8Array(16), 0);
  unwritable.passive.queuePair.receive('r', [{ memory: region, offset: 0, length: 16 }]);
  unwritable.active.queuePair.send('s', unwritable.active.sge(0, 16));
  assert.equal(names(await unwritable.passive.received()), ['ACCESS_VIOLATION']);
  unwritable.active.release();
  unwritable.passive.release();
  await region.deregister();
  const { active, passive } = await host.pair();
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
  const { active, passive } = await host.pair();
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

const windows: [string, number, (side: SideV2, remote: Nd2RemoteMemory) => void][] = [
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
    const { active, passive } = await host.pair();
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
  const one = await host.pair();
  const two = await host.pair();
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
  const { active, passive } = await host.pair();
  const region = host.adapter.createMemoryRegion();
  await region.register(new Uint8Array(64), ALLOW_LOCAL_WRITE);
  const window = host.adapter.createMemoryWindow();
  const bind = (side: SideV2) => side.queuePair.bind('b', region, window, 0, 64, ALLOW_READ | ALLOW_WRITE);
  bind(passive);
  await passive.initiated();
  for (let call = 0; call < 300; call++) {
    const { completed, status } = region.deregister();
    assert.equal([completed, status], [true, Status.DEVICE_BUSY], `call ${call}: there when it returns`);
  }
  const token = window.getRemoteToken();
  passive.queuePair.invalidate('i', window, SILENT_SUCCESS);
  bind(passive);
  await passive.initiated();
  assert.is.not(window.getRemoteToken(), token);
  // The old token grants no access, and its use ends the connection, and with it the new binding.
  active.queuePair.read('old', active.sge(0, 8), new Nd2RemoteMemory(region.address, token));
  assert.equal(names(await active.initiated()), ['ACCESS_VIOLATION']);
  await passive.connector.notifyDisconnect();
  const next = await host.pair();
  bind(next.passive);
  next.passive.queuePair.invalidate('i', window);
  assert.equal(names(await next.passive.initiated(2)), ['SUCCESS', 'SUCCESS']);
  assert.is(await outcome(region.deregister()), Status.SUCCESS);
  for (const side of [active, passive, next.active, next.passive]) side.release();
  window.release();
  region.release();
});

test('T19 a region that is released before its windows is deregistered when the last of them is gone', async ({
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

test('Invalidate of a window that is not bound is INVALID_DEVICE_REQUEST, and the end', async ({ host }) => {
  const { active, passive } = await host.pair();
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

test.run();
