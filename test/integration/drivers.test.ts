/** Drivers loaded by programs into the kernel's thread: their services, and the isolation of their faults. */
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  hcaFileName,
  loadDriver,
  openDeviceFile,
  readCounters,
  readInterfaces,
  removeDevice,
  Status,
  setPartitions,
  unloadDriver,
} from '../../kernel-bridge/index.js';
import { QpEventType } from '../../kernel-bridge/schema/generated/numbers.js';
import { openProvider, QpState, WvEvent } from '../../winverbs/index.js';
import { RUN as LOOK_UP, type LookedUp } from '../fixtures/lookup-driver.js';
import { RUN, type Seen } from '../fixtures/self-test-driver.js';
import { DriverFolder, failure, loadBox, openBox } from '../helpers/loaded-drivers.js';

const test = suite('drivers');
const drivers = new DriverFolder();
const { path: folder } = drivers;
test.after(() => drivers.remove());

const source = (text: string, ending?: string): string => drivers.source(text, ending);
const box = (body = ''): string => drivers.box(body);
const load = loadBox;
const open = openBox;
/** Live objects, without rings, whose memory remains until the kernel's thread collects its garbage. */
const objects = () => ({ ...readCounters().objects, ring: 0 });
const CODE = 0x0022_2000;
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** Returns this process's warnings that start with the given text while `act` runs. */
async function warned(start: string, count: number, act: () => unknown): Promise<string[]> {
  const seen: string[] = [];
  // Warnings use a port that does not keep the process alive.
  const alive = setInterval(() => {}, 1000);
  const enough = new Promise<void>((resolve) => {
    const hear = (warning: Error): void => {
      if (!String(warning).startsWith(start)) return;
      seen.push(String(warning));
      if (seen.length < count) return;
      process.off('warning', hear);
      resolve();
    };
    process.on('warning', hear);
  });
  await act();
  await enough;
  clearInterval(alive);
  return seen;
}

test('an ES module and a CommonJS file serve IOCTLs, whose sizes are checked', async () => {
  const body = `driver.onIoctl(${CODE}, (irp) => {
    const input = irp.takeInput();
    irp.output.set(input);
    irp.output[0] = driver.parameters.mark;
    return irp.complete(0, input.length);
  }, 2, 3);`;
  const common = source(
    `exports.driverEntry = (driver) => { driver.createDevice('\\\\Device\\\\Box', ['\\\\DosDevices\\\\Box']); driver.routines.unload = () => {}; ${body} };`,
    'cjs',
  );
  for (const file of [box(body), common]) {
    const loaded = await load(file, { parameters: { mark: 77 } });
    assert.equal(loaded, { name: '\\Driver\\box', devices: ['\\Device\\Box'] });
    const opened = open();
    assert.equal([...opened.ioctl(CODE, Uint8Array.of(1, 2), 3)], [77, 2]);
    assert.is((await failure(() => opened.ioctl(CODE, Uint8Array.of(1), 3))).status, Status.BUFFER_TOO_SMALL);
    assert.is(
      (await failure(() => opened.ioctl(CODE, Uint8Array.of(1, 2), 2))).status,
      Status.BUFFER_TOO_SMALL,
    );
    assert.is((await failure(() => opened.ioctl(CODE + 4, null, 0))).status, Status.INVALID_DEVICE_REQUEST);
    opened.close();
    await unloadDriver(loaded.name);
  }
});

test('a module that hangs, throws or lacks its entry is rejected with the reason, and leaves nothing behind', async () => {
  const made = `const guid = kernel.hcaGuids()[0];
    const hca = kernel.referenceHca(guid);
    const layer = kernel.openAl(hca, device);
    const ca = await kernel.wait((irp) => layer.verbs.ciOpenCa(layer.al, hca, 0, {}, irp));
    kernel.dereference(hca);
    const pd = await kernel.wait((irp) => layer.verbs.ciAllocatePd(ca, irp));
    await kernel.wait((irp) => layer.verbs.ciCreateCq(ca, 8, 0, {}, irp));
    const endpoint = layer.createEndpoint();
    await kernel.wait((irp) => endpoint.bind({ family: 4, address: '127.0.0.1', port: 0 }, irp));
    await kernel.wait((irp) => endpoint.listen(1, irp));`;
  const refused: [string, RegExp][] = [
    [join(folder, 'missing.mjs'), /not loaded: .*missing\.mjs/],
    [source('for (;;);'), /evaluating the module has not returned within 300 ms/],
    [source('for (;;);', 'cjs'), /evaluating the module has not returned within 300 ms/],
    [source('await new Promise(() => {});'), /evaluating the module has not ended within 300 ms/],
    [source("throw new Error('not today');"), /not loaded: Error: not today/],
    [source('this is not a program'), /SyntaxError/],
    [source("import 'no-such-package';"), /no-such-package/],
    [source('export const driverEntry = 7;'), /exports no function 'driverEntry'/],
    [source('export {};'), /exports no function 'driverEntry'/],
    [box('for (;;);'), /driverEntry has not returned within 300 ms/],
    [box('await new Promise(() => {});'), /driverEntry has not ended within 300 ms/],
    [box("driver.createDevice('\\\\Device\\\\WinVerbs');"), /\\Device\\WinVerbs is already in use/],
    [box("driver.createDevice('nowhere');"), /is not a valid device name such as/],
    [box(`${made} throw new Error('at the end');`), /driverEntry failed, .*Error: at the end/],
    [box('kernel.referenceHca(1n);'), /No HCA|NO_SUCH_DEVICE|device/],
  ];
  const before = objects();
  for (const [file, reason] of refused) {
    const hangs = reason.source.includes('within 300 ms');
    const error = await failure(load(file, hangs ? { timeoutMs: 300 } : {}));
    assert.is(error.status, Status.DRIVER_UNABLE_TO_LOAD, error.message);
    assert.match(error.message, reason);
    assert.is((await failure(open)).status, Status.OBJECT_NAME_NOT_FOUND);
  }
  assert.equal(objects(), before);
  await load(box());
  await unloadDriver('box');
});

test('invalid arguments, names in use, and unknown drivers', async () => {
  const file = box();
  for (const [options, reason] of [
    [{ name: 'a b' }, /`name` must be 1 to 64 letters.*"a b"/],
    [{ timeoutMs: 0 }, /`timeoutMs` must be .*1 to 600000; got 0/],
  ] as const) {
    const error = await failure(() => load(file, options));
    assert.is(error.status, Status.INVALID_PARAMETER);
    assert.match(error.message, reason);
  }
  assert.match((await failure(() => loadDriver('https://example.org/x.mjs'))).message, /got https:/);
  await load(file);
  assert.is((await failure(load(file))).status, Status.OBJECT_NAME_COLLISION);
  assert.is((await failure(load(file, { name: 'other' }))).status, Status.DRIVER_UNABLE_TO_LOAD);
  assert.is((await failure(unloadDriver('other'))).status, Status.OBJECT_NAME_NOT_FOUND);
  await unloadDriver('BOX');
  assert.is((await failure(unloadDriver('box'))).status, Status.OBJECT_NAME_NOT_FOUND);
});

test('a later exception of a driver ends at most its own request', async () => {
  const body = `
    const codes = ${CODE};
    driver.onIoctl(codes, () => { throw new Error('in an IOCTL'); });
    driver.onIoctl(codes + 4, () => 0);
    driver.onIoctl(codes + 8, (irp) => { irp.complete(0); return irp.complete(0); });
    driver.onIoctl(codes + 12, async (irp) => irp.complete(0));
    driver.onIoctl(codes + 16, (irp) => {
      setTimeout(() => { throw new Error('in a timer'); }, 1);
      Promise.reject(new Error('in a promise'));
      kernel.setTimer(1, () => { throw new Error('in a timer of the kernel'); });
      kernel.queueWorkItem(() => { throw new Error('in a work item'); });
      return irp.complete(0);
    });
    driver.onIoctl(codes + 20, (irp) => irp.complete(0));
    const hca = kernel.referenceHca(kernel.hcaOfAddress('127.0.0.1'));
    const layer = kernel.openAl(hca);
    const broken = { portEvent() { throw new Error('in a call-back'); } };
    const ca = await kernel.wait((irp) => layer.verbs.ciOpenCa(layer.al, hca, 0, broken, irp));
    kernel.dereference(hca);
    driver.onIoctl(codes + 24, (irp) => {
      kernel.call((verb) => kernel.verbs.ciModifyCa(ca, 1, { systemImageGuid: 5n }, verb), () => {
        throw new Error('in a completion');
      });
      return irp.complete(0);
    });
    driver.routines.unload = async () => {
      await kernel.wait((irp) => layer.verbs.ciCloseCa(ca, irp));
      layer.close();
    };`;
  await load(box(body));
  const file = open();
  const warnings = await warned(
    'NetworkDirectWarning: A driver of the soft kernel has failed: \\Driver\\box',
    7,
    async () => {
      assert.is((await failure(() => file.ioctl(CODE, null, 0))).status, Status.INTERNAL_ERROR);
      file.ioctl(CODE + 16, null, 0);
      file.ioctl(CODE + 24, null, 0);
    },
  );
  for (const place of [
    'an IOCTL',
    'a timer',
    'a promise',
    'a timer of the kernel',
    'a work item',
    'a call-back',
    'a completion',
  ]) {
    assert.ok(
      warnings.some((one) => one.split('\n')[0]?.endsWith(`in ${place}`)),
      place,
    );
  }
  const forgotten = await failure(() => file.ioctl(CODE + 4, null, 0));
  assert.is(forgotten.status, Status.INTERNAL_ERROR, 'neither completed nor pending');
  // The IRP was completed before the rule was broken.
  for (const code of [CODE + 8, CODE + 12]) file.ioctl(code, null, 0);
  file.ioctl(CODE + 20, null, 0);
  const { io } = readCounters();
  assert.ok(io.driverFaults! >= 10);
  file.close();
  await unloadDriver('box');
  assert.ok(readInterfaces().length > 0);
});

test('unloading waits for open files, then for every reference', async () => {
  const body = `
    const hca = kernel.referenceHca(kernel.hcaOfAddress('127.0.0.1'));
    const layer = kernel.openAl(hca, device);
    let unloading = false;
    const portEvent = async (ca) => {
      if (!unloading) return;
      await kernel.wait((irp) => layer.verbs.ciCloseCa(ca, irp));
      layer.close();
    };
    await kernel.wait((irp) => layer.verbs.ciOpenCa(layer.al, hca, 0, { portEvent }, irp));
    kernel.dereference(hca);
    driver.onIoctl(${CODE}, (irp) => irp.complete(0));
    driver.routines.unload = () => {
      unloading = true;
      driver.createDevice('\\\\Device\\\\BoxEnds', ['\\\\DosDevices\\\\BoxEnds']);
    };`;
  await load(box(body));
  const file = open();
  const unloading = unloadDriver('box');
  assert.is((await failure(open)).status, Status.DEVICE_REMOVED);
  assert.is((await failure(unloadDriver('box'))).status, Status.DEVICE_BUSY);
  file.ioctl(CODE, null, 0);
  assert.not.ok(unloading.completed);
  file.close();
  // When its devices are gone, its unload routine has run. The driver itself is still loaded, because its callbacks still run.
  while ((await failure(open)).status !== Status.OBJECT_NAME_NOT_FOUND);
  assert.is((await failure(unloadDriver('box'))).status, Status.DEVICE_BUSY);
  assert.is((await failure(load(box()))).status, Status.OBJECT_NAME_COLLISION);
  assert.not.ok(unloading.completed);
  setPartitions([0xffff, 0x8001]);
  await unloading;
  setPartitions([0xffff]);
  await load(box());
  await unloadDriver('box');
});

test('a driver without callbacks misses no event, does not block events of programs, and can be unloaded', async () => {
  const before = objects();
  const body = `
    const hca = kernel.referenceHca(kernel.hcaOfAddress('127.0.0.1'));
    const layer = kernel.openAl(hca);
    const { verbs } = layer;
    const none = undefined;
    const ca = await kernel.wait((irp) => verbs.ciOpenCa(layer.al, hca, 0, none, irp));
    kernel.dereference(hca);
    const pd = await kernel.wait((irp) => verbs.ciAllocatePd(ca, irp));
    const cq = await kernel.wait((irp) => verbs.ciCreateCq(ca, 8, 0, none, irp));
    const limits = { maxWr: 4, maxSge: 1, srqLimit: 0 };
    const srq = await kernel.wait((irp) => verbs.ciCreateSrq(pd, limits, 0, none, irp));
    const shape = { sendCq: cq, receiveCq: cq, srq, sendDepth: 4, sendSge: 1 };
    const qp = await kernel.wait((irp) => verbs.ciCreateQp(pd, shape, 0, none, irp));
    driver.onIoctl(${CODE}, (irp) => kernel.verbs.ciGetCaPortEvent(ca, 1, irp));
    driver.routines.unload = async () => {
      for (const [verb, object] of [
        [verbs.ciDestroyQp, qp], [verbs.ciDestroySrq, srq], [verbs.ciDestroyCq, cq],
        [verbs.ciDeallocatePd, pd], [verbs.ciCloseCa, ca],
      ]) await kernel.wait((irp) => verb.call(verbs, object, irp));
      layer.close();
    };`;
  await load(box(body));
  const file = open();
  const provider = openProvider();
  const device = provider.openDevice(provider.translateAddress('127.0.0.1').deviceGuid);
  const { driverFaults } = readCounters().io;
  const heard = device.notify(1);
  setPartitions([0xffff, 0x8001]);
  assert.is(await heard, WvEvent.PARTITION);
  await file.ioctlOverlapped(CODE, null, 0, () => {});
  setPartitions([0xffff]);
  assert.is(readCounters().io.driverFaults, driverFaults);
  device.release();
  provider.release();
  file.close();
  await unloadDriver('box');
  assert.equal(objects(), before);
});

test('a driver without an unload routine stays loaded; unloading can be repeated if the routine fails', async () => {
  await load(source('export const driverEntry = () => {};'), { name: 'stays' });
  const stays = await failure(unloadDriver('stays'));
  assert.is(stays.status, Status.INVALID_DEVICE_REQUEST);
  assert.match(stays.message, /stays has no unload routine/);
  await load(
    box("let tries = 0; driver.routines.unload = () => { if (tries++ === 0) throw new Error('not yet'); };"),
  );
  const failed = await failure(unloadDriver('box'));
  assert.is(failed.status, Status.INTERNAL_ERROR);
  assert.match(failed.message, /unload routine failed, .*not yet/);
  await unloadDriver('box');
});

test('a wait for the unloading can be cancelled; the unloading continues', async () => {
  await load(box());
  const file = open();
  const unloading = unloadDriver('box');
  unloading.cancel();
  assert.is((await failure(unloading)).status, Status.CANCELED);
  file.close();
  while ((await failure(open)).status !== Status.OBJECT_NAME_NOT_FOUND);
});

test('a driver’s queue pairs: connections, every direct call, events by request', async () => {
  const before = objects();
  const file = new URL('../fixtures/self-test-driver.js', import.meta.url);
  await loadDriver(file, { name: 'self-test', parameters: { address: '127.0.0.1' } });
  const opened = openDeviceFile('\\\\.\\SelfTest');
  const seen = JSON.parse(text(opened.ioctl(RUN, null, 4096))) as Seen;
  assert.is(seen.received, 'sent by a driver');
  assert.is(seen.written, 'sent by a driver');
  assert.is(seen.read, 'sent by a driver');
  assert.equal(new Set(seen.statuses), new Set(['0']));
  assert.is(seen.registered, 'sent by a driver');
  assert.ok(seen.invalidated, 'the peer’s Send has ended the fast registration');
  assert.is(seen.statuses.length, 16);
  assert.equal(new Set(seen.events), new Set(['cq']), 'the context of the queue’s call-back');
  assert.equal(seen.qpEvents.at(-1), QpEventType.fatal);
  const { INVALID_HANDLE } = Status;
  assert.equal(seen.foreign, [INVALID_HANDLE, -1, -1, INVALID_HANDLE, INVALID_HANDLE]);
  assert.ok(seen.ended, 'the invalidation of the window');
  assert.equal(seen.srq, [16, 0, Status.ALERTED]);
  assert.equal(seen.peeked, [0, 2], 'one event for two completions');
  assert.equal(seen.kept, [QpState.RTS, QpState.ERROR], 'until its own side disconnects');
  opened.close();
  await unloadDriver('self-test');
  assert.equal(objects(), before);
});

test('a driver’s datagram endpoints are those of a WinVerbs file: it listens, looks services up and replies', async () => {
  const before = objects();
  const file = new URL('../fixtures/lookup-driver.js', import.meta.url);
  await loadDriver(file, { name: 'look-up', parameters: { address: '127.0.0.1' } });
  const opened = openDeviceFile('\\\\.\\LookUp');
  const seen = JSON.parse(text(opened.ioctl(LOOK_UP, null, 4096))) as LookedUp;
  assert.equal(seen, { qpn: 0x4711, qkey: 0x1234_5678, data: 'here it is', after: 'CONNECTION_REFUSED' });
  opened.close();
  await unloadDriver('look-up');
  assert.equal(objects(), before);
});

test('two drivers: a capability of a port belongs to one of them, and never to user mode', async () => {
  const body = `
    const hca = kernel.referenceHca(kernel.hcaOfAddress('127.0.0.1'));
    const layer = kernel.openAl(hca);
    const ca = await kernel.wait((irp) => layer.verbs.ciOpenCa(layer.al, hca, 0, {}, irp));
    kernel.dereference(hca);
    driver.onIoctl(${CODE}, (irp) => {
      let answer = 0;
      kernel.call((verb) => kernel.verbs.ciModifyPort(ca, 1, 1, { setCapabilities: 16 }, verb), (status) => { answer = status; });
      return irp.complete(answer);
    });
    driver.routines.unload = async () => {
      await kernel.wait((irp) => layer.verbs.ciCloseCa(ca, irp));
      layer.close();
    };`;
  await load(box(body));
  const second = source(`export const driverEntry = async (driver, kernel) => {
    driver.createDevice('\\\\Device\\\\Two', ['\\\\DosDevices\\\\Two']);
    ${body}
  };`);
  await load(second, { name: 'two' });
  const [one, two] = [open(), openDeviceFile('\\\\.\\Two')];
  one.ioctl(CODE, null, 0);
  assert.is((await failure(() => two.ioctl(CODE, null, 0))).status, Status.FILE_LOCK_CONFLICT);
  one.close();
  await unloadDriver('box');
  two.ioctl(CODE, null, 0);
  two.close();
  await unloadDriver('two');
});

test('a device is only removed once no driver or program uses it', async () => {
  const { guid } = readInterfaces().find(({ name }) => name === 'lo')!;
  const file = openDeviceFile(hcaFileName(guid));
  assert.is((await failure(() => removeDevice(guid))).status, Status.DEVICE_BUSY);
  await load(
    box(`const hca = kernel.referenceHca(kernel.hcaOfAddress('127.0.0.1'));
      driver.routines.unload = () => kernel.dereference(hca);`),
  );
  file.close();
  assert.is((await failure(() => removeDevice(guid))).status, Status.DEVICE_BUSY);
  await unloadDriver('box');
  removeDevice(guid);
  assert.not.ok(readInterfaces().some((one) => one.guid === guid));
});

test.run();
