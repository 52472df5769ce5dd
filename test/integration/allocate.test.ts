/** Memory from `allocate()`: its lifetime, even on threads that end, and its use like any other memory. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { allocate as ndAllocate } from '../../nd/index.js';
import {
  allocate,
  openProvider,
  Status,
  StatusError,
  WcStatus,
  WvAccess,
  WvSend,
} from '../../winverbs/index.js';
import { collect } from '../helpers/collect.js';
import { runLimited } from '../helpers/limited.js';
import { connectedPair, take } from '../helpers/loopback.js';

const MIB = 2 ** 20;

/** Bytes of `allocate()` that are mapped into this process. */
function mapped(): number {
  let bytes = 0;
  for (const line of readFileSync('/proc/self/maps', 'utf8').split('\n')) {
    const range = /^([0-9a-f]+)-([0-9a-f]+) .*memfd:networkdirect /.exec(line);
    if (range !== null) bytes += Number.parseInt(range[2]!, 16) - Number.parseInt(range[1]!, 16);
  }
  return bytes;
}

function openFiles(): number {
  let count = 0;
  for (const fd of readdirSync('/proc/self/fd')) {
    try {
      if (readlinkSync(`/proc/self/fd/${fd}`).includes('memfd:networkdirect')) count += 1;
    } catch {
      // This is the descriptor of the directory listing itself.
    }
  }
  return count;
}

/** Runs garbage collections until `done`, with turns of the event loop for finalizers. */
async function collected(done: () => boolean): Promise<boolean> {
  for (let i = 0; i < 100 && !done(); i += 1) {
    collect();
    await turn();
  }
  return done();
}

test('zeroed bytes in whole pages of a file that child processes do not inherit', () => {
  const memory = allocate(3 * MIB + 5);
  assert.is(memory.length, 3 * MIB + 5);
  assert.is(memory.buffer.byteLength, 3 * MIB + 5);
  assert.ok(memory.every((byte) => byte === 0));
  memory.fill(7);
  assert.ok(openFiles() >= 1);
  const inherited = execFileSync('ls', ['-l', '/proc/self/fd'], { encoding: 'utf8' });
  assert.not.match(inherited, /memfd:networkdirect/);
  assert.ok(memory.every((byte) => byte === 7));
});

test('invalid sizes are rejected, and the error states the valid ones', () => {
  for (const bytes of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
    for (const make of [allocate, ndAllocate]) {
      assert.throws(
        () => make(bytes),
        (error: unknown) =>
          error instanceof StatusError &&
          error.status === Status.INVALID_PARAMETER &&
          /an integer from 1 to \d+/.test(error.message),
        String(bytes),
      );
    }
  }
  // @ts-expect-error: an untyped program may pass this.
  assert.throws(() => allocate('4096'), /`bytes` must be an integer .*; got '4096'/);
});

/** Node.js creates SharedArrayBuffers from native memory. */
const sharing = (([major = 0, minor = 0]) =>
  (major === 24 && minor >= 16) || major > 26 || (major === 26 && minor >= 1))(
  process.versions.node.split('.').map(Number),
);

test('memory on a SharedArrayBuffer outlives the thread that has allocated it', async () => {
  if (!sharing) {
    for (const make of [allocate, ndAllocate])
      assert.throws(
        () => make(MIB, { shared: true }),
        /24\.16 or later.*26\.1 or later; got v\d+.*Omit `shared`/,
      );
  }
  assert.throws(() => allocate(MIB, { shared: 'yes' as never }), /`shared` must be a boolean; got 'yes'/);
  assert.ok(allocate(MIB, { shared: false }).buffer instanceof ArrayBuffer);
  if (!sharing) return;
  assert.ok(await collected(() => mapped() === 0));
  const worker = new Worker(
    `const { parentPort, workerData } = require('node:worker_threads');
     import(workerData).then(({ allocate }) => {
       const memory = allocate(${3 * MIB}, { shared: true });
       memory[7] = 9;
       parentPort.once('message', () => parentPort.postMessage(Atomics.load(memory, 8)));
       parentPort.postMessage(memory);
     });`,
    { eval: true, workerData: winverbs },
  );
  let memory: Uint8Array | undefined = (await once(worker, 'message'))[0];
  assert.ok(memory!.buffer instanceof SharedArrayBuffer);
  assert.is(memory![7], 9);
  Atomics.store(memory!, 8, 10);
  worker.postMessage('look');
  assert.equal(await once(worker, 'message'), [10]);
  await worker.terminate();
  assert.is(mapped(), 3 * MIB);
  memory!.fill(1);
  memory = undefined;
  assert.ok(await collected(() => mapped() === 0));
});

const winverbs = new URL('../../winverbs/index.js', import.meta.url).href;

/** Returns the result of allocate() in a process with limits, after `before` has run there. */
function saidWith(limits: string, before: string, bytes = 4096): string {
  const source = `
    import { openSync } from 'node:fs';
    import { allocate, statusName } from ${JSON.stringify(winverbs)};
    ${before}
    let said;
    try {
      said = 'bytes ' + allocate(${bytes}).length;
    } catch (error) {
      said = (error.status === undefined ? '' : statusName(error.status) + ' ') + error.message;
    }
    process._rawDebug(said);`;
  const { status, stderr } = runLimited(limits, source);
  assert.is(status, 0, stderr);
  return stderr.trim();
}

test('the error of a failed allocation names the limit that caused it', () => {
  assert.match(
    saidWith('ulimit -n 64', 'try { for (;;) openSync("/dev/null"); } catch {}'),
    /native addon cannot be loaded .*Too many open files\)\. This process has no file descriptor left; .*ulimit -n\)\.$/,
  );
  // The first call loads the addon, which needs a descriptor as well.
  const openAll = 'allocate(1); try { for (;;) openSync("/dev/null"); } catch {}';
  assert.match(
    saidWith('ulimit -n 64', openAll),
    /^TOO_MANY_OPENED_FILES allocate: this process has no file descriptor left; .*ulimit -n\)\.$/,
  );
  assert.match(
    saidWith('ulimit -f 4', '', MIB),
    /^INSUFFICIENT_RESOURCES allocate: this process may not create files of 1048576 bytes; .*ulimit -f\)\.$/,
  );
  // Simulates a Node.js that reports no available memory, as without /proc.
  assert.is(saidWith(':', 'process.availableMemory = () => 0;'), 'bytes 4096');
});

test('memory is freed when it is no longer used', async () => {
  await collected(() => mapped() === 0);
  const before = mapped();
  const files = openFiles();
  for (let i = 0; i < 50; i += 1) allocate(MIB).fill(1);
  assert.ok(await collected(() => mapped() === before), `${mapped() - before} bytes are left`);
  assert.is(openFiles(), files);
});

test('views and registrations keep memory alive', async () => {
  const provider = openProvider();
  const { deviceGuid } = provider.translateAddress('127.0.0.1');
  const device = provider.openDevice(deviceGuid);
  const pd = device.allocateProtectionDomain();
  await collected(() => mapped() === 0);
  const base = mapped();
  let view: Uint8Array | undefined = allocate(MIB).subarray(100, 200);
  await collected(() => false);
  assert.is(mapped(), base + MIB);
  view.fill(3);
  const register = () => pd.registerMemory(allocate(2 * MIB).subarray(MIB), WvAccess.LOCAL_WRITE);
  const region = register();
  view = undefined;
  assert.ok(await collected(() => mapped() === base + 2 * MIB));
  await collected(() => false);
  assert.is(mapped(), base + 2 * MIB);
  pd.deregisterMemory(region);
  // Now only the test's region object refers to the memory.
  assert.is(region.length, MIB);
  for (const object of [pd, device, provider]) object.release();
});

test('transfers between regions cut from one allocation', async () => {
  const { a, b, release } = await connectedPair();
  const memory = allocate(4 * MIB);
  const source = a.pd.registerMemory(memory.subarray(0, MIB), WvAccess.LOCAL_WRITE);
  const target = b.pd.registerMemory(memory.subarray(2 * MIB, 3 * MIB), WvAccess.LOCAL_WRITE);
  for (let i = 0; i < MIB; i += 1) memory[i] = i * 7 + (i >> 8);
  b.qp.postReceive(1, [{ region: target, offset: 0, length: MIB }]);
  a.qp.send(2, [{ region: source, offset: 0, length: MIB }], WvSend.SIGNALED);
  for (const side of [a, b]) {
    const [completion] = await take(side.cq, 1);
    assert.is(completion!.status, WcStatus.SUCCESS);
  }
  assert.is(Buffer.compare(memory.subarray(0, MIB), memory.subarray(2 * MIB, 3 * MIB)), 0);
  assert.ok(memory.subarray(3 * MIB).every((byte) => byte === 0));
  release();
});

test('the end of a thread frees its memory, registered or not', async () => {
  await collected(() => mapped() === 0);
  const before = mapped();
  const code = `
    const { workerData, parentPort } = require('node:worker_threads');
    import(workerData).then(({ allocate, openProvider }) => {
      const provider = openProvider();
      const device = provider.openDevice(provider.translateAddress('127.0.0.1').deviceGuid);
      const pd = device.allocateProtectionDomain();
      const kept = [allocate(${MIB}), allocate(${2 * MIB})];
      pd.registerMemory(kept[1], 0);
      parentPort.postMessage('ready');
      if (process.argv[2] === 'spin') for (;;) kept[0].fill(1);
      setInterval(() => kept, 1000);
    });`;
  for (const argument of ['wait', 'spin']) {
    const worker = new Worker(code, {
      eval: true,
      workerData: winverbs,
      argv: [argument],
    });
    await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
    assert.is(mapped(), before + 3 * MIB);
    await worker.terminate();
    assert.is(mapped(), before, argument);
  }
});

test.run();
