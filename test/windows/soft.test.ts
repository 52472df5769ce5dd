// The soft kernel and its software HCA in one process: devices, memory, and ends of processes.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { allocate, readCounters, readInterfaces } from '../../kernel-bridge/index.js';
import { openProvider } from '../../winverbs/index.js';
import { HANG_MS } from '../helpers/within.js';

const program = fileURLToPath(new URL('./soft-program.js', import.meta.url));

/** Returns the program's exit code; `hang` if it does not end. */
async function endOf(way: string): Promise<number | string> {
  const child = spawn(process.execPath, [program, way], { stdio: 'ignore' });
  const timer = setTimeout(() => child.kill('SIGKILL'), HANG_MS);
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  clearTimeout(timer);
  return signal === null ? code! : 'hang';
}

for (const [way, code] of [
  ['natural', 0],
  ['release', 0],
  ['exit', 7],
  ['throw', 1],
  ['worker', 7],
  ['terminate', 8],
  ['exit-with-worker', 7],
] as const) {
  test(`a process with an HCA ends: ${way}`, async () => {
    assert.is(await endOf(way), code);
  });
}

test('the soft kernel lists the interfaces of Windows and has counters', () => {
  const provider = openProvider({ kernel: 'soft' });
  const named = readInterfaces({ kernel: 'soft' });
  assert.equal(
    named.map(({ guid }) => guid),
    provider.queryDeviceList(),
  );
  assert.ok(named.every(({ name }) => name !== ''));
  assert.is(readCounters({ kernel: 'soft' }).objects.qp, 0);
  provider.release();
});

test('exact checksums are refused with the reason', () => {
  // The first open of a thread sets the options of its HCA, so a new thread is required.
  const run = `
    const { parentPort, workerData } = require('node:worker_threads');
    import(workerData).then(({ openProvider }) => {
      try {
        openProvider({ kernel: 'soft', icrc: 'exact' });
        parentPort.postMessage('opened');
      } catch (error) {
        parentPort.postMessage(error.message);
      }
    });`;
  const workerData = new URL('../../winverbs/index.js', import.meta.url).href;
  return once(new Worker(run, { eval: true, workerData }), 'message').then(([text]) =>
    assert.match(
      text,
      /icrc is 'exact', which needs a raw socket.*this OS does not support; choose 'solved'/,
    ),
  );
});

test('memory of any kind is registered', () => {
  const provider = openProvider({ kernel: 'soft' });
  const device = provider.openDevice(provider.queryDeviceList()[0]!);
  const pd = device.allocateProtectionDomain();
  for (const bytes of [new Uint8Array(4096), new Uint8Array(new SharedArrayBuffer(4096)), allocate(4096)]) {
    const region = pd.registerMemory(bytes, 0);
    assert.ok(region.lkey !== 0);
    pd.deregisterMemory(region);
  }
  pd.release();
  device.release();
  provider.release();
});

test.run();
