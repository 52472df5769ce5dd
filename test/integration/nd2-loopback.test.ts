/**
 * What requests and memory have in ND SPI v2 alone, through the whole stack: both sides in this process. T and G in names
 * number the traps and gaps that nd2-coverage.test.ts lists.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readCounters } from '../../kernel-bridge/index.js';
import { textOf } from '../../nd/cli/sides/connected-side.js';
import { ALL_RIGHTS, HostV2, type SideV2 } from '../../nd/cli/sides/v2.js';
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

const test = suite<{ host: HostV2 }>('ND v2 in one process: what it has alone');
const { ALLOW_READ, INLINE, SILENT_SUCCESS, READ_FENCE } = Nd2OpFlag;
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

test('inline bytes that a region does not have are refused by the call, which copies them', async ({
  host,
}) => {
  const { active, passive } = await host.pair();
  const region = host.adapter.createMemoryRegion();
  await region.register(new Uint8Array(64), ALLOW_LOCAL_WRITE);
  const beyond = [{ memory: region, offset: 60, length: 64 }];
  assert.is(
    statusOf(() => active.queuePair.send('inline', beyond, INLINE)),
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

test.run();
