// Providers that fail, lack functions, are in other folders or lose their device, and leaks after many cycles.
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { openDeviceFile } from '../../kernel-bridge/index.js';
import { loadVendorVerbs } from '../../kernel-bridge/uvp/vendor/index.js';
import type { UvpSlotName } from '../../kernel-bridge/uvp/vendor/uvp-slots.js';
import {
  allocate,
  openProvider,
  QpAttr,
  QpState,
  Status,
  WvAccess,
  type WvCompletion,
  WvSend,
} from '../../winverbs/index.js';
import { WVProvider } from '../../winverbs/provider.js';
import { refusalText } from '../helpers/outcome.js';
import { clean as cleanDriver, GUID, Standin, statusOf } from './standin.js';
import { pairOf, StandinProvider } from './standin-provider.js';

const standin = new Standin();
const uvp = new StandinProvider();
const quick = process.env.ND_WINDOWS_QUICK === '1';

function clean(name: string, run: () => unknown): void {
  cleanDriver(test, standin, name, async () => {
    const before = uvp.live;
    await run();
    assert.is(uvp.fault(), '');
    assert.is(uvp.live, before, 'objects of the provider');
  });
}

/** Opens WinVerbs with the provider as it is loaded now. */
function openWith(library = 'standin'): WVProvider {
  const verbs = loadVendorVerbs(library);
  return new WVProvider({ openFile: (name) => openDeviceFile(name), loadUserVerbs: () => verbs });
}

const IB_INSUFFICIENT_MEMORY = 2;
const IB_UNSUPPORTED = 10;

clean('a failed hook is reported with its status and name and leaves no objects', async () => {
  const provider = openProvider();
  const device = provider.openDevice(GUID);
  const pd = device.allocateProtectionDomain();
  const cq = device.createCompletionQueue(8);
  const srq = pd.createSharedReceiveQueue(8, 1);
  const gid = device.queryGid(1, 0);
  const shape = { sendCq: cq, receiveCq: cq, sendDepth: 4, sendSge: 1, receiveDepth: 4, receiveSge: 1 };
  const hooks: [UvpSlotName, () => unknown][] = [
    ['pre_open_ca', () => provider.openDevice(GUID)],
    ['post_open_ca', () => provider.openDevice(GUID)],
    ['pre_allocate_pd', () => device.allocateProtectionDomain()],
    ['pre_create_cq', () => device.createCompletionQueue(8)],
    ['pre_resize_cq', () => cq.resize(16)],
    ['pre_create_srq', () => pd.createSharedReceiveQueue(8, 1)],
    ['pre_modify_srq', () => srq.modify(16, 0)],
    ['pre_query_srq', () => srq.query()],
    ['wv_pre_create_qp', () => pd.createConnectQueuePair(shape)],
    ['post_create_qp', () => pd.createConnectQueuePair(shape)],
    ['pre_create_mw', () => pd.allocateMemoryWindow()],
    ['pre_create_av', () => pd.createAddressHandle({ sourceGid: gid, destinationGid: gid })],
    ['peek_cq', () => cq.peek()],
    ['post_srq_recv', () => srq.postReceive(1, [])],
  ];
  for (const [slot, run] of hooks) {
    uvp.fail(slot, IB_INSUFFICIENT_MEMORY);
    assert.match(
      refusalText(run),
      new RegExp(`^NO_MEMORY: .*${slot} .*returned IB_INSUFFICIENT_MEMORY`),
      slot,
    );
  }
  uvp.fail('rearm_cq', IB_UNSUPPORTED);
  assert.is(await statusOf(() => cq.notify('any')), Status.NOT_SUPPORTED);
  uvp.fail('rearm_n_cq', 9999);
  assert.is(await statusOf(() => cq.batchNotify(2)), Status.UNKNOWN_ERROR);
  uvp.fail('poll_cq_array', 2);
  assert.is(await statusOf(() => cq.poll([], 1)), Status.BUFFER_OVERFLOW);
  assert.is(cq.poll([], 1), 0);
  for (const object of [srq, cq, pd, device, provider]) object.release();
});

clean('a failed post does not change its queue', async () => {
  const { a, b, release } = await pairOf();
  const window = a.pd.allocateMemoryWindow();
  const posts: [UvpSlotName, () => void][] = [
    ['post_send', () => a.qp.send('refused', a.sge(0, 8), WvSend.SIGNALED)],
    ['post_recv', () => a.qp.postReceive('refused', a.sge(0, 8))],
    ['bind_mw', () => void a.qp.bindMemoryWindow(window, 'refused', a.region, 0, 8, WvAccess.REMOTE_READ, 0)],
  ];
  for (const [slot, post] of posts) {
    for (const [result, status] of [
      [1, slot === 'bind_mw' ? Status.INSUFFICIENT_RESOURCES : Status.NO_MORE_ENTRIES],
      [3, Status.INVALID_PARAMETER],
      [13, Status.INVALID_DEVICE_STATE],
      [22, Status.DATA_OVERRUN],
    ] as const) {
      uvp.fail(slot, result);
      assert.is(await statusOf(post), status, `${slot} ${result}`);
    }
  }
  b.qp.postReceive('b', b.sge(0, 8));
  a.qp.send('a', a.sge(0, 8), WvSend.SIGNALED);
  const done: WvCompletion[] = [];
  assert.is(a.cq.poll(done, 4), 1);
  assert.is(done[0]!.context, 'a');
  window.release();
  release();
});

clean('failures of hooks when an object is destroyed have no effect', async () => {
  for (const slot of [
    'pre_destroy_qp',
    'pre_destroy_cq',
    'pre_deallocate_pd',
    'pre_close_ca',
    'pre_destroy_srq',
  ] as const) {
    const { a, release } = await pairOf();
    a.pd.createSharedReceiveQueue(4, 1).release();
    uvp.fail(slot, IB_UNSUPPORTED);
    release();
    uvp.fail(slot, 0);
  }
});

clean('a provider without a mandatory function is refused with the name', () => {
  for (const slot of [
    'post_send',
    'poll_cq_array',
    'nd_modify_qp',
    'wv_pre_create_qp',
    'rearm_cq',
    'post_recv',
  ] as const) {
    uvp.lack(slot);
    assert.match(
      refusalText(() => openWith()),
      new RegExp(`^NOT_SUPPORTED: .*standin\\.dll lacks ${slot};`),
    );
    uvp.lack(slot, false);
  }
});

clean('without an optional function, what requires it is not supported and all else works', async () => {
  const lacking = [
    'peek_cq',
    'rearm_n_cq',
    'bind_mw',
    'post_srq_recv',
    'nd_get_qp_state',
    'pre_close_ca',
    'pre_destroy_qp',
  ] as const;
  for (const slot of lacking) uvp.lack(slot);
  const provider = openWith();
  for (const slot of lacking) uvp.lack(slot, false);
  const device = provider.openDevice(GUID);
  const pd = device.allocateProtectionDomain();
  const cq = device.createCompletionQueue(8);
  assert.is(await statusOf(() => cq.peek()), Status.NOT_SUPPORTED);
  assert.is(await statusOf(() => pd.createSharedReceiveQueue(8, 1)), Status.NOT_SUPPORTED);
  const notified = cq.batchNotify(4);
  cq.cancelOverlappedRequests();
  assert.is(await statusOf(() => notified), Status.CANCELED);
  const shape = { sendCq: cq, receiveCq: cq, sendDepth: 4, sendSge: 1, receiveDepth: 4, receiveSge: 1 };
  const qp = pd.createConnectQueuePair(shape);
  assert.is(qp.state, QpState.RESET);
  qp.modify({ qpState: QpState.INIT, portNumber: 1 }, QpAttr.STATE);
  assert.is(qp.state, QpState.INIT, 'as reported by the driver');
  const window = pd.allocateMemoryWindow();
  const region = pd.registerMemory(allocate(64), WvAccess.MW_BIND);
  assert.is(await statusOf(() => qp.bindMemoryWindow(window, 1, region, 0, 8, 0, 0)), Status.NOT_SUPPORTED);
  for (const object of [window, qp, cq, pd, device, provider]) object.release();
});

test('a provider is loaded from the system folder or the driver store only', () => {
  const system = 'C:\\windows\\system32';
  const store = `${system}\\DriverStore\\FileRepository`;
  const load = (name: string) => () => loadVendorVerbs(name);
  for (const name of [
    '..\\standin',
    'C:\\standin',
    'a/b',
    '',
    'x'.repeat(28),
    'standin\0',
    'a:b',
    '.hidden',
  ]) {
    assert.match(refusalText(load(name)), /^NOT_SUPPORTED: The name of the device's provider must be/);
  }
  // Neither the current folder nor PATH is searched.
  copyFileSync(`${system}\\standin.dll`, 'elsewhere.dll');
  process.env.PATH = `${process.cwd()};${process.env.PATH}`;
  assert.match(
    refusalText(load('elsewhere')),
    /^NOT_SUPPORTED: .*elsewhere\.dll is neither in .*system32 nor in .*FileRepository/i,
  );
  rmSync('elsewhere.dll');
  for (const folder of ['one', 'two']) mkdirSync(`${store}\\${folder}`, { recursive: true });
  // A loaded file cannot be removed until the process ends.
  const stored = `stored${process.pid}`;
  copyFileSync(`${system}\\standin.dll`, `${store}\\one\\${stored}.dll`);
  load(stored)();
  copyFileSync(`${system}\\standin.dll`, `${store}\\two\\${stored}.dll`);
  assert.match(
    refusalText(load(stored)),
    /^NOT_SUPPORTED: Several driver packages contain stored\d+\.dll.*one.*two/,
  );
  copyFileSync(`${system}\\kernel32.dll`, `${system}\\noverbs.dll`);
  assert.match(
    refusalText(load('noverbs')),
    /^NOT_SUPPORTED: .*noverbs\.dll (is not a user-mode verbs provider|cannot be loaded)/,
  );
  copyFileSync(process.argv[1]!, `${system}\\text.dll`);
  assert.match(refusalText(load('text')), /^NOT_SUPPORTED: .*text\.dll cannot be loaded \(error 193/);
});

clean('only memory that cannot be detached is registered', async () => {
  const provider = openProvider();
  const device = provider.openDevice(GUID);
  const pd = device.allocateProtectionDomain();
  for (const buffer of [new Uint8Array(64), Buffer.from('pooled'), new ArrayBuffer(64)]) {
    assert.match(
      refusalText(() => pd.registerMemory(buffer, 0)),
      /^NOT_SUPPORTED: .*registered memory must be that of allocate\(\).* or of a SharedArrayBuffer/,
    );
  }
  const memory = allocate(100_000);
  const region = pd.registerMemory(memory, WvAccess.LOCAL_WRITE);
  assert.is(region.address % 4096, 0);
  assert.ok(memory.every((byte) => byte === 0));
  // These calls fail or copy the memory, but do not detach it.
  const stream = new ReadableStream({
    type: 'bytes',
    pull: (controller) => controller.byobRequest?.respond(1),
  });
  await attempt(() => structuredClone(memory, { transfer: [memory.buffer] }));
  await attempt(() => (memory.buffer as { transfer?: () => void }).transfer?.());
  await attempt(() => stream.getReader({ mode: 'byob' }).read(memory));
  assert.is(memory.length, 100_000);
  pd.deregisterMemory(region);
  const shared = pd.registerMemory(new SharedArrayBuffer(64), 0);
  pd.deregisterMemory(shared);
  for (const bytes of [0, -1, 1.5, 2 ** 33]) {
    assert.match(
      refusalText(() => allocate(bytes)),
      /^INVALID_PARAMETER: allocate: `bytes` must be an integer/,
    );
  }
  for (const object of [pd, device, provider]) object.release();
});

async function attempt(run: () => unknown): Promise<void> {
  try {
    await run();
  } catch {
    // The run fails, as expected.
  }
}

clean('many cycles leak neither files nor memory', async () => {
  const cycles = quick ? 50 : 200;
  // Allocated once, so that only the library's memory is measured.
  const bytes = allocate(8192);
  const cycle = async (): Promise<void> => {
    const { a, b, release } = await pairOf({ bytes });
    b.qp.postReceive(1, b.sge(0, 8));
    a.qp.send(1, a.sge(0, 8), WvSend.SIGNALED);
    assert.is(a.cq.poll([], 1), 1);
    release();
  };
  const taken = async () => {
    // Some objects are collected in a later turn of the event loop.
    for (let i = 0; i < 5; i++) {
      await new Promise((resolve) => setImmediate(resolve));
      globalThis.gc?.();
    }
    const { opens, closes, objects } = standin.stats();
    const { arrayBuffers, heapUsed, rss } = process.memoryUsage();
    return { files: opens - closes, objects, live: uvp.live, arrayBuffers, heapUsed, rss };
  };
  for (let i = 0; i < 50; i++) await cycle();
  const before = await taken();
  for (let i = 0; i < cycles; i++) await cycle();
  const after = await taken();
  for (const what of ['files', 'objects', 'live'] as const) assert.is(after[what], before[what], what);
  const each = (what: 'arrayBuffers' | 'heapUsed' | 'rss') =>
    Math.round((after[what] - before[what]) / cycles);
  // The requests of a queue pair alone use 2 KiB.
  assert.ok(each('arrayBuffers') < 200, `${each('arrayBuffers')} bytes of buffers leaked per connection`);
  assert.ok(each('heapUsed') < 2000, `${each('heapUsed')} bytes of objects leaked per connection`);
  console.log(`Windows (Wine): ${cycles} connections, RSS grows by ${each('rss')} bytes each`);
});

test.run();
