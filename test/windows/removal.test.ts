// The driver is stopped while files are open and started again. Errors without a driver or without koffi.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { openNetworkDirect2 } from '../../nd/index.js';
import { openProvider, Status, statusName, WvSend } from '../../winverbs/index.js';
import { refusalText } from '../helpers/outcome.js';
import { openPlain } from './plain-verbs.js';
import { GUID, inTime, Standin, statusOf, TestCode, u32, until, words } from './standin.js';
import { pairOf } from './standin-provider.js';

function service(verb: 'start' | 'stop'): void {
  const { status } = spawnSync('sc.exe', [verb, 'WinVerbs'], { stdio: 'ignore' });
  assert.is(status, 0, `sc ${verb}`);
}

async function startDriver(): Promise<void> {
  service('start');
  await until(() => {
    try {
      openProvider().release();
      return true;
    } catch {
      return false;
    }
  });
}

/** Opens a provider in a thread that cannot find koffi. Returns the devices or the error. */
async function withoutKoffi(kernel?: 'auto' | 'driver' | 'soft'): Promise<string> {
  const run = `
    const Module = require('node:module');
    const { parentPort, workerData: { module, kernel } } = require('node:worker_threads');
    const resolve = Module._resolveFilename;
    Module._resolveFilename = function (request, ...more) {
      if (request === 'koffi') throw new Error('koffi is hidden');
      return resolve.call(this, request, ...more);
    };
    import(module).then(({ openProvider }) => {
      const provider = openProvider({ kernel, startTimeoutMs: 60_000 });
      parentPort.postMessage(provider.queryDeviceList().join());
      provider.release();
    }).catch((error) => parentPort.postMessage(error.code + ': ' + error.message));`;
  const module = new URL('../../winverbs/index.js', import.meta.url).href;
  const [reply] = await once(new Worker(run, { eval: true, workerData: { module, kernel } }), 'message');
  return reply as string;
}

const needsKoffi = /^NOT_SUPPORTED: .*require the package koffi.*npm install koffi/;

test('with the driver but without koffi, the error says so, and the soft kernel can be used', async () => {
  assert.match(await withoutKoffi(), needsKoffi);
  assert.match(await withoutKoffi('driver'), needsKoffi);
  assert.match(await withoutKoffi('soft'), /^\d+(,\d+)*$/);
});

test('the driver is the default if there is one', () => {
  const provider = openProvider();
  assert.equal(provider.queryDeviceList(), [GUID]);
  provider.release();
  const forced = openProvider({ kernel: 'driver' });
  const device = forced.openDevice(GUID);
  assert.is(device.guid, GUID);
  device.release();
  forced.release();
});

test('a thread keeps using the driver after it has opened the soft kernel', () => {
  const soft = openProvider({ kernel: 'soft' });
  assert.not.equal(soft.queryDeviceList(), [GUID]);
  soft.release();
  const provider = openProvider();
  assert.equal(provider.queryDeviceList(), [GUID]);
  provider.release();
});

test('pending requests end when the driver is stopped, and later calls fail with a status', async () => {
  const standin = new Standin();
  const provider = openPlain();
  const device = provider.openDevice(GUID);
  const pending = [
    ...Array.from({ length: 20 }, () => standin.file.ioctlOverlapped(TestCode.PEND, u32(0), 4, words)),
    device.notify(1),
  ];
  service('stop');
  for (const request of pending) {
    assert.is(
      await inTime(
        'a request',
        statusOf(() => request),
      ),
      Status.DEVICE_REMOVED,
    );
  }
  const later = await statusOf(() => device.query());
  assert.is.not(later, Status.SUCCESS);
  const overlapped = await inTime(
    'a request on a removed device',
    statusOf(() => device.notify(1)),
  );
  assert.is.not(overlapped, Status.SUCCESS);
  console.log(
    `Windows (Wine): after the driver was stopped: ${statusName(later)}, ${statusName(overlapped)}`,
  );
  device.release();
  provider.release();
  standin.file.close();
});

test('a connection whose driver is stopped: outstanding requests end, and objects can be released', async () => {
  await startDriver();
  const { a, b, release } = await pairOf();
  const waiting = [a.cq.notify('any'), b.ep.notifyDisconnect(), b.device.notify(1)];
  a.qp.postReceive(1, a.sge(0, 8));
  a.qp.send(2, a.sge(0, 8), WvSend.SIGNALED);
  service('stop');
  for (const request of waiting) {
    assert.is(
      await inTime(
        'a request',
        statusOf(() => request),
      ),
      Status.DEVICE_REMOVED,
    );
  }
  for (const late of [() => a.ep.disconnect(), () => a.cq.notify('any'), () => b.pd.allocateMemoryWindow()]) {
    assert.is(await inTime('a late request', statusOf(late)), Status.FILE_DELETED);
  }
  // The provider is still loaded. Its results are not checked.
  b.qp.postReceive(3, b.sge(0, 8));
  a.qp.send(4, a.sge(0, 8), WvSend.SIGNALED);
  assert.ok(a.cq.poll([], 8) >= 0);
  release();
});

test('without a driver, the error says what to install', () => {
  const opens = [() => openProvider(), () => openProvider({ kernel: 'driver' }), () => openNetworkDirect2()];
  for (const open of opens) {
    assert.match(
      refusalText(open),
      /^OBJECT_NAME_NOT_FOUND: .*no driver provides this device.*WinVerbs.*sc query winverbs/,
    );
  }
});

test('without driver and koffi, threads use the soft kernel unless they request the driver', async () => {
  const soft = await withoutKoffi('soft');
  assert.match(soft, /^\d+(,\d+)*$/);
  assert.is(await withoutKoffi(), soft);
  assert.match(await withoutKoffi('driver'), needsKoffi);
});

test('a driver that was started again is used as before', async () => {
  await startDriver();
  const provider = openPlain();
  const device = provider.openDevice(GUID);
  assert.is(device.guid, GUID);
  device.release();
  provider.release();
});

test.run();
