/** Buffers that JavaScript detaches while they are registered. The device keeps the memory, which is not reused. */
import { execFileSync } from 'node:child_process';
import { setImmediate as turn } from 'node:timers/promises';
import { markAsUntransferable } from 'node:worker_threads';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Status, WcStatus, WvAccess, type WvMemoryRegion, WvOpcode, WvSend } from '../../winverbs/index.js';
import { collect } from '../helpers/collect.js';
import { ALL_ACCESS, connectedPair, remoteOf, take } from '../helpers/loopback.js';
import { throwsWv } from '../helpers/outcome.js';
import { BYTES, memories, ways } from '../helpers/ways-to-detach.js';

const { a, b, release } = await connectedPair();
/** The methods that have detached a buffer, to show that the test is effective. */
const detaching = new Set<string>();

/** Whether streams detach buffers that are marked as untransferable. Node.js 24 and later reject that. */
const streamsDetach = (async () => {
  const view = new Uint8Array(BYTES);
  markAsUntransferable(view.buffer);
  try {
    await ways['a read of a byte stream']!({ view });
  } catch {}
  return view.length === 0;
})();

const WRITTEN = new Uint8Array(BYTES).fill(0xee);
const FILLED = new Uint8Array(2 * BYTES).fill(0x11);

/** Allocates arrays that may reuse freed memory. */
async function garbage(): Promise<Uint8Array[]> {
  collect();
  await turn();
  collect();
  return Array.from({ length: 64 }, (_, i) => new Uint8Array(FILLED.subarray(i % 2 === 0 ? BYTES : 0)));
}

/** Makes `a` write to all of `b`'s region and read it back. */
async function writeAndRead(target: WvMemoryRegion): Promise<Uint8Array> {
  const memory = new Uint8Array(WRITTEN);
  const region = a.pd.registerMemory(memory, ALL_ACCESS);
  const sgl = [{ region, offset: 0, length: BYTES }];
  a.qp.write(1, sgl, WvSend.SIGNALED, remoteOf(target), 0);
  assert.is((await take(a.cq, 1))[0]!.status, WcStatus.SUCCESS);
  memory.fill(0);
  a.qp.read(2, sgl, WvSend.SIGNALED, remoteOf(target), 0);
  const [read] = await take(a.cq, 1);
  assert.equal([read!.status, read!.opcode], [WcStatus.SUCCESS, WvOpcode.RDMA_READ]);
  a.pd.deregisterMemory(region);
  return memory;
}

function refusesRequests(region: WvMemoryRegion): void {
  const sgl = [{ region, offset: 0, length: 8 }];
  const lost = /ArrayBuffer of these \d+ registered bytes was detached/;
  throwsWv(() => region.bytes, Status.ACCESS_VIOLATION, lost);
  throwsWv(() => b.qp.postReceive(0, sgl), Status.ACCESS_VIOLATION, lost);
  throwsWv(() => b.qp.send(0, sgl, 0), Status.ACCESS_VIOLATION, lost);
  throwsWv(() => b.qp.send(0, sgl, WvSend.INLINE), Status.ACCESS_VIOLATION, lost);
  const window = b.pd.allocateMemoryWindow();
  throwsWv(() => b.qp.bindMemoryWindow(window, 0, region, 0, 8, 0, 0), Status.ACCESS_VIOLATION, lost);
  window.release();
}

for (const [kind, make] of Object.entries(memories)) {
  test(`${kind}: registered memory belongs only to the device, no matter how the buffer is detached`, async () => {
    const access = WvAccess.REMOTE_WRITE | WvAccess.REMOTE_READ | WvAccess.MW_BIND;
    const registered: { way: string; view: Uint8Array; region: WvMemoryRegion }[] = [];
    for (const [way, detach] of Object.entries(ways)) {
      const memory = make();
      const { view } = memory;
      const region = b.pd.registerMemory(view, access);
      try {
        await detach(memory);
      } catch {
        // This way to detach is rejected.
      }
      registered.push({ way, view, region });
    }
    const others = await garbage();
    for (const { way, view, region } of registered) {
      assert.is(Buffer.compare(await writeAndRead(region), WRITTEN), 0, `${way}: what was written is read`);
      const same = others.every((other) => Buffer.compare(other, FILLED.subarray(0, other.length)) === 0);
      assert.ok(same, `${way}: another array was written`);
      if (view.length === 0) {
        detaching.add(`${kind}: ${way}`);
        refusesRequests(region);
      } else {
        assert.is(Buffer.compare(region.bytes!, WRITTEN), 0, `${way}: the program sees what was written`);
      }
      b.pd.deregisterMemory(region);
      if (view.length === 0) throwsWv(() => b.pd.registerMemory(view, 0), Status.INVALID_PARAMETER);
    }
  });
}

test('byte streams detach registered buffers if Node.js allows it, and so does WebAssembly; transfers are rejected', async () => {
  for (const way of [
    'a read of a byte stream',
    'enqueue into a byte stream',
    'the body of a response',
    'a file',
  ]) {
    assert.is(detaching.has(`plain: ${way}`), await streamsDetach, way);
  }
  assert.ok(detaching.has('WebAssembly: WebAssembly growth'));
  for (const way of ['structuredClone', 'postMessage']) assert.not.ok(detaching.has(`plain: ${way}`), way);
  for (const kind of ['shared', 'shared WebAssembly']) {
    assert.not.ok(
      [...detaching].some((pair) => pair.startsWith(`${kind}:`)),
      kind,
    );
  }
});

test('a buffer detached during its registration is registered, and reported', async () => {
  const memory = memories.WebAssembly!();
  const registering = b.pd.registerMemoryOverlapped(memory.view, ALL_ACCESS);
  await ways['WebAssembly growth']!(memory);
  const region = await registering;
  assert.is(region.length, BYTES);
  refusesRequests(region);
  assert.is(Buffer.compare(await writeAndRead(region), WRITTEN), 0);
  b.pd.deregisterMemory(region);
});

test('buffers that can shrink are rejected, no matter what their properties say', () => {
  const shrinking = Reflect.construct(ArrayBuffer, [BYTES, { maxByteLength: 2 * BYTES }]) as ArrayBuffer;
  const growing = Reflect.construct(SharedArrayBuffer, [
    BYTES,
    { maxByteLength: 2 * BYTES },
  ]) as SharedArrayBuffer;
  for (const buffer of [shrinking, growing]) {
    for (const name of ['resizable', 'growable']) Object.defineProperty(buffer, name, { value: false });
    throwsWv(() => b.pd.registerMemory(buffer, 0), Status.INVALID_PARAMETER, /must not be resizable/);
    throwsWv(
      () => b.pd.registerMemory(new Uint8Array(buffer), 0),
      Status.INVALID_PARAMETER,
      /must not be resizable/,
    );
  }
  const honest = new ArrayBuffer(8);
  for (const name of ['resizable', 'growable']) Object.defineProperty(honest, name, { value: true });
  b.pd.deregisterMemory(b.pd.registerMemory(honest, 0));
});

test('if the runtime does not expose backing stores, only memory from allocate() can be registered', () => {
  const code = `
    import { allocate, openProvider, statusName } from ${JSON.stringify(new URL('../../winverbs/index.js', import.meta.url).href)};
    const provider = openProvider();
    const device = provider.openDevice(provider.translateAddress('127.0.0.1').deviceGuid);
    const pd = device.allocateProtectionDomain();
    for (const memory of [new Uint8Array(64), new SharedArrayBuffer(64), allocate(64), allocate(4096).subarray(8, 16)]) {
      try {
        console.log(pd.registerMemory(memory, 0).length);
      } catch (error) {
        console.log(statusName(error.status) + ' ' + error.message);
      }
    }
    for (const object of [pd, device, provider]) object.release();`;
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', code], {
    encoding: 'utf8',
    env: { ...process.env, NETWORKDIRECT_WITHOUT_BACKING_STORES: '1' },
  });
  const refused =
    'NOT_SUPPORTED RegisterMemory: This runtime does not allow native code to hold the memory of an ArrayBuffer; register memory from allocate().';
  assert.equal(output.trim().split('\n'), [refused, refused, '64', '8']);
});

test.after(() => release());
test.run();
