/** Drivers that are rejected, misuse their resources, or do not release them. */
import { spawnSync } from 'node:child_process';
import { rmSync, truncateSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  IoctlCode,
  injectDeviceFault,
  loadDriver,
  openDeviceFile,
  readCounters,
  readInterfaces,
  removeDevice,
  Status,
  unloadDriver,
} from '../../kernel-bridge/index.js';
import { DriverFolder, failure, loadBox, OPENED, openBox, seenBy } from '../helpers/loaded-drivers.js';

const test = suite('drivers-refused');
const drivers = new DriverFolder();
const box = (body = ''): string => drivers.box(body);
test.after(() => drivers.remove());

const CODE = 0x0022_2000;
const loopback = () => readInterfaces().find(({ name }) => name === 'lo')!.guid;
/** Live objects, without rings, whose memory remains until the kernel's thread collects its garbage. */
const objects = () => ({ ...readCounters().objects, ring: 0 });

test('an entry routine interrupted at DISPATCH_LEVEL leaves the kernel at PASSIVE_LEVEL', async () => {
  const file = openDeviceFile('\\\\.\\WinVerbs');
  const hangs = box('kernel.call((irp) => irp.complete(0), () => { for (;;); });');
  const error = await failure(loadBox(hangs, { timeoutMs: 200 }));
  assert.match(error.message, /driverEntry has not returned within 200 ms/);
  // This uses the same kernel, which would have ended if a file had been closed at DISPATCH_LEVEL.
  assert.ok(file.ioctl(IoctlCode.GUID_QUERY, null, 64).length > 8);
  file.close();
});

test('files that could be read endlessly are rejected without being read', async () => {
  const pipe = drivers.source('');
  const long = drivers.source('');
  truncateSync(long, 2 ** 31 - 1);
  rmSync(pipe);
  spawnSync('mkfifo', [pipe]);
  for (const [file, got] of [
    ['/dev/zero', 'another kind of file'],
    [pipe, 'another kind of file'],
    [long, '2147483647 bytes'],
  ] as const) {
    const { status, message } = await failure(loadDriver(file, { name: 'endless', timeoutMs: 100 }));
    assert.is(status, Status.DRIVER_UNABLE_TO_LOAD);
    assert.ok(
      message.endsWith(`a driver must be a regular file of at most 16777216 bytes; got ${got}`),
      message,
    );
  }
});

test('the number of loaded drivers is limited, until one is unloaded', async () => {
  const file = drivers.source(
    'export const driverEntry = (driver) => { driver.routines.unload = () => {}; };',
  );
  const names = Array.from({ length: 64 }, (_, n) => `one-of-many-${n}`);
  await Promise.all(names.map((name) => loadDriver(file, { name })));
  const { status, message } = await failure(loadDriver(file, { name: 'more' }));
  assert.is(status, Status.INSUFFICIENT_RESOURCES);
  assert.match(message, 'at most 64 drivers can be loaded; unload one before more');
  await unloadDriver(names[0]!);
  await loadDriver(file, { name: 'more' });
  await Promise.all([...names.slice(1), 'more'].map((name) => unloadDriver(name)));
});

test('an entry routine that continues after its driver was rejected gets no more resources', async () => {
  const late = drivers.source(`export const driverEntry = (driver, kernel) => {
    const guid = kernel.hcaGuids()[0];
    const acts = [
      () => driver.createDevice('\\\\Device\\\\Late', ['\\\\DosDevices\\\\Late']),
      () => kernel.openFile('\\\\\\\\.\\\\WinVerbs'),
      () => kernel.referenceHca(guid),
      () => kernel.queueWorkItem(() => {}),
      () => kernel.setTimer(1, () => {}),
    ];
    return new Promise((resolve) => {
      globalThis.goOn = () => {
        resolve();
        return acts.map((act) => { try { act(); return 'done'; } catch (error) { return error.message; } });
      };
    });
  };`);
  const { message } = await failure(loadDriver(late, { name: 'late', timeoutMs: 100 }));
  assert.match(message, /driverEntry has not ended within 100 ms/);
  const answers = await seenBy(drivers, 'seen.push(...globalThis.goOn());');
  assert.is(answers.length, 5);
  for (const answer of answers)
    assert.match(String(answer), /Driver\\late was unloaded, or its loading has failed/);
  assert.is((await failure(() => openDeviceFile('\\\\.\\Late'))).status, Status.OBJECT_NAME_NOT_FOUND);
});

test('a device is opened only once its driver is loaded', async () => {
  const slow = box('await new Promise((resolve) => setTimeout(resolve, 100));');
  const loading = loadBox(slow);
  let status: number;
  // The driver's entry may not have started yet.
  do ({ status } = await failure(openBox));
  while (status === Status.OBJECT_NAME_NOT_FOUND);
  assert.is(status, Status.DEVICE_NOT_READY);
  assert.match((await failure(openBox)).message, /its driver is still being loaded/);
  await loading;
  openBox().close();
  await unloadDriver('box');
});

test('a driver’s files and references are released when it is rejected or unloaded', async () => {
  const guid = loopback();
  const name = guid.toString(16).padStart(16, '0');
  const takes = `kernel.openFile('\\\\Device\\\\ibal\\\\${name}');
    for (let n = 0; n < 2; n++) kernel.referenceHca(${guid}n);`;
  await failure(loadBox(box(`${takes} throw new Error('not today');`)));
  await loadBox(box(takes));
  assert.is((await failure(() => removeDevice(guid))).status, Status.DEVICE_BUSY);
  await unloadDriver('box');
  removeDevice(guid);
  injectDeviceFault(guid, 'plug');
});

test('a driver cannot release a reference that it does not hold', async () => {
  const seen = await seenBy(
    drivers,
    `
    const hca = kernel.referenceHca(kernel.hcaOfAddress('127.0.0.1'));
    const file = kernel.openFile('\\\\Device\\\\ibal\\\\' + hca.extension.guid.toString(16).padStart(16, '0'));
    kernel.dereference(hca);
    try { kernel.dereference(hca); } catch (error) { seen.push(error.message); }
    seen.push(hca.references.users >= 1 ? 'kept' : 'lost');
    kernel.closeFile(file);`,
  );
  assert.match(String(seen[0]), /Driver\\box does not reference \\Device\\hca_/);
  assert.is(seen[1], 'kept');
});

test('pending registrations are cancelled when a driver is rejected, and nothing of it is left', async () => {
  const before = objects();
  const large = 1 << 24;
  const body = `${OPENED}
    kernel.call((irp) => verbs.ciRegisterMr(pd, new Uint8Array(${large}), 8, irp), () => {});
    throw new Error('not today');`;
  await failure(loadBox(box(body)));
  assert.equal(objects(), before);
  assert.is(readCounters().filter.cleanupFailures, 0);
});

test('create routines may pend, fail or violate rules; unloading still waits only for open files', async () => {
  const creates: [string, boolean][] = [
    ['irp.markPending(); kernel.setTimer(10, () => irp.complete(0)); return irp.returnStatus;', true],
    ['return 0;', false],
    ['irp.complete(0); throw new Error("after its completion");', true],
    ['return irp.complete(0xc0000022);', false],
  ];
  for (const [body, opens] of creates) {
    await loadBox(box(`driver.routines.create = (_file, irp) => { ${body} };`));
    const file = opens ? openBox() : undefined;
    if (!opens) await failure(openBox);
    const unloading = unloadDriver('box');
    if (file) {
      assert.is((await failure(openBox)).status, Status.DEVICE_REMOVED);
      assert.not.ok(unloading.completed, body);
      file.close();
    }
    await unloading;
  }
});

test('work items that queue themselves again do not delay others', async () => {
  const body = `let stopped = false;
    const again = () => { if (!stopped) kernel.queueWorkItem(again); };
    driver.onIoctl(${CODE}, (irp) => { again(); return irp.complete(0); });
    driver.routines.unload = () => { stopped = true; };`;
  await loadBox(box(body));
  const file = openBox();
  file.ioctl(CODE, null, 0);
  openDeviceFile('\\\\.\\WinVerbs').close();
  file.close();
  await unloadDriver('box');
});

test('a destroyed object does not accept requests, and does not complete any later', async () => {
  const before = objects();
  const seen = await seenBy(
    drivers,
    `${OPENED}
    const { verbs: plain } = kernel;
    const srq = await kernel.wait((irp) => verbs.ciCreateSrq(pd, { maxWr: 4, maxSge: 1, srqLimit: 0 }, 0, {}, irp));
    const memory = await kernel.wait((irp) => verbs.ciRegisterMr(pd, new Uint8Array(8), 8, irp));
    for (const verb of [
      (irp) => verbs.ciDestroyQp(qp, irp), (irp) => plain.ciGetQpEvent(qp, irp), (irp) => verbs.ciDestroyQp(qp, irp),
      (irp) => verbs.ciDestroySrq(srq, irp), (irp) => plain.ciGetSrqEvent(srq, irp), (irp) => verbs.ciDestroySrq(srq, irp),
      (irp) => verbs.ciDestroyCq(cq, irp), (irp) => plain.ciGetCqEvent(cq, 1, irp), (irp) => verbs.ciDestroyCq(cq, irp),
      (irp) => verbs.ciDeregisterMr(memory, irp), (irp) => verbs.ciDeregisterMr(memory, irp),
      (irp) => verbs.ciDeallocatePd(pd, irp), (irp) => verbs.ciDeallocatePd(pd, irp),
      (irp) => verbs.ciCloseCa(ca, irp), (irp) => verbs.ciCloseCa(ca, irp),
    ]) await status(verb);
    seen.push(verbs.ciPostRecv(qp, 0, []), verbs.ciPostSrqRecv(srq, 0, []), verbs.ciPollCq(cq, [], 1));
    seen.push(layer.close());
    try { layer.createEndpoint(); } catch (error) { seen.push(error.status); }`,
  );
  const three = ['SUCCESS', 'INVALID_HANDLE', 'INVALID_HANDLE'];
  const two = ['SUCCESS', 'INVALID_HANDLE'];
  assert.equal(seen.slice(0, 15), [...three, ...three, ...three, ...two, ...two, ...two]);
  assert.equal(seen.slice(15), ['INVALID_HANDLE', 'INVALID_HANDLE', -1, 'SUCCESS', 'INVALID_HANDLE']);
  assert.equal(objects(), before);
});

test('invalid addresses, counts and private data of a driver’s connections end their request with the reason', async () => {
  const faults = () => readCounters().io.driverFaults;
  const before = faults();
  const seen = await seenBy(
    drivers,
    `${OPENED}
    const endpoint = layer.createEndpoint();
    const at = (address, port = 0) => ({ family: 4, address, port });
    for (const [address, port] of [['nonsense', 0], ['127.0.0.1', 70000], ['127.0.0.1', -1]])
      await status((irp) => endpoint.bind(at(address, port), irp));
    await status((irp) => endpoint.bind(at('127.0.0.1'), irp));
    const connect = (address, port, param) => status((irp) => endpoint.connect(qp, at(address, port), param, irp));
    await connect('nonsense', 7, {});
    await connect('127.0.0.1', 70000, {});
    await connect('127.0.0.1', 0, {});
    await connect('127.0.0.1', 7, { privateData: new Uint8Array(57) });
    await connect('127.0.0.1', 7, { privateData: 'text' });
    await connect('127.0.0.1', 7, { retryCount: 8 });
    await connect('127.0.0.1', 7, { rnrRetryCount: 0.5 });
    await connect('127.0.0.1', 7, { initiatorDepth: -1 });
    await connect('127.0.0.1', 7, { responderResources: NaN });
    const listener = layer.createEndpoint();
    await status((irp) => listener.bind(at('127.0.0.1'), irp));
    await status((irp) => listener.listen(-1, irp));
    await status((irp) => endpoint.accept(qp, { privateData: new Uint8Array(197) }, irp));
    await status((irp) => endpoint.reject(new Uint8Array(149), irp));
    for (const ms of [-1, NaN, 2 ** 31])
      try { kernel.setTimer(ms, () => {}); } catch (error) { seen.push(error.status); }
    endpoint.close();
    listener.close();
    await kernel.wait((irp) => verbs.ciDestroyQp(qp, irp));
    await kernel.wait((irp) => verbs.ciDestroyCq(cq, irp));
    await kernel.wait((irp) => verbs.ciDeallocatePd(pd, irp));
    await kernel.wait((irp) => verbs.ciCloseCa(ca, irp));
    layer.close();`,
  );
  const [address, parameter, size] = ['INVALID_ADDRESS', 'INVALID_PARAMETER', 'INVALID_BUFFER_SIZE'];
  assert.equal(seen.slice(0, 4), [address, parameter, parameter, seen[3]]);
  assert.equal(seen.slice(4, 13), [
    ...[address, parameter, address],
    ...[size, parameter],
    ...[parameter, parameter, parameter, parameter],
  ]);
  assert.equal(seen.slice(14), [parameter, size, size, parameter, parameter, parameter]);
  assert.is(faults(), before);
});

test('invalid arguments of loadDriver are rejected before anything is opened', async () => {
  const before = readCounters().io.openFiles;
  for (const [file, options, reason] of [
    ['http://', {}, /"http:\/\/" is not a valid URL/],
    ['/nowhere.mjs', { parameters: { big: 1n } }, /`parameters` must be a JSON value: .*BigInt/],
    ['/nowhere.mjs', 7, /options of loadDriver must be an object; got 7/],
  ] as const) {
    const error = await failure(() => loadDriver(file, options as object));
    assert.is(error.status, Status.INVALID_PARAMETER);
    assert.match(error.message, reason);
  }
  const { status, message } = await failure(loadDriver('file:///nowhere/%E0%A4%zz.mjs'));
  assert.is(status, Status.DRIVER_UNABLE_TO_LOAD, message);
  assert.is(readCounters().io.openFiles, before);
});

test.run();
