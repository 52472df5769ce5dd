/** The kernel's services for a driver: timers, levels, connections, loading and unloading. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readCounters, Status, unloadDriver } from '../../kernel-bridge/index.js';
import { DriverFolder, failure, loadBox, OPENED, openBox, seenBy } from '../helpers/loaded-drivers.js';

const test = suite('drivers-services');
const drivers = new DriverFolder();
test.after(() => drivers.remove());

const CODE = 0x0022_2000;
const CLOSED = `
  await kernel.wait((irp) => verbs.ciDestroyQp(qp, irp));
  await kernel.wait((irp) => verbs.ciDestroyCq(cq, irp));
  await kernel.wait((irp) => verbs.ciDeallocatePd(pd, irp));
  await kernel.wait((irp) => verbs.ciCloseCa(ca, irp));
  layer.close();`;

test('a name is in use while its driver is being loaded', async () => {
  const slow = drivers.box('await new Promise((resolve) => setTimeout(resolve, 50));');
  const [first, second] = [loadBox(slow), loadBox(drivers.source('export const driverEntry = () => {};'))];
  assert.is((await failure(second)).status, Status.OBJECT_NAME_COLLISION);
  await first;
  await unloadDriver('box');
});

test('the unload routine runs only once the last file is closed', async () => {
  const body = `let ended = false;
    driver.onIoctl(${CODE}, (irp) => { irp.output[0] = ended ? 1 : 0; return irp.complete(0, 1); }, 0, 1);
    driver.routines.unload = () => { ended = true; };`;
  await loadBox(drivers.box(body));
  const file = openBox();
  const unloading = unloadDriver('box');
  // In the meantime, promises of the kernel's thread settle.
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal([...file.ioctl(CODE, null, 1)], [0]);
  file.close();
  await unloading;
});

test('work items and timers keep their driver loaded until they have run or are cancelled', async () => {
  const seen = await seenBy(
    drivers,
    `const before = driver.references.users;
    const held = () => seen.push('held: ' + (driver.references.users - before));
    await new Promise((resolve) => { kernel.queueWorkItem(resolve); held(); });
    held();
    await new Promise((resolve) => { kernel.setTimer(1, resolve); held(); });
    held();
    const timer = kernel.setTimer(1e6, () => {});
    held();
    timer.cancel();
    timer.cancel();
    held();`,
  );
  assert.equal(seen, ['held: 1', 'held: 0', 'held: 1', 'held: 0', 'held: 1', 'held: 0']);
});

test('timers run at DISPATCH_LEVEL, work items at PASSIVE_LEVEL; a timer ends once, no matter how often it is cancelled', async () => {
  const faults = readCounters().io.driverFaults;
  const seen = await seenBy(
    drivers,
    `const opens = () => {
      try { kernel.closeFile(kernel.openFile('\\\\.\\WinVerbs')); return 'opened'; } catch (error) { return error.message; }
    };
    const timer = await new Promise((resolve) => { const own = kernel.setTimer(1, () => { seen.push(opens()); resolve(own); }); });
    timer.cancel();
    timer.cancel();
    const cancelled = kernel.setTimer(1, () => seen.push('expired'));
    cancelled.cancel();
    cancelled.cancel();
    await new Promise((resolve) => kernel.queueWorkItem(() => { seen.push(opens()); resolve(); }));
    await new Promise((resolve) => setTimeout(resolve, 20));`.replaceAll('\\', '\\\\'),
  );
  assert.is(seen.length, 2, String(seen));
  assert.match(String(seen[0]), /may block, which is not allowed at DISPATCH_LEVEL/);
  assert.is(seen[1], 'opened');
  assert.is(readCounters().io.driverFaults, faults);
});

test('the host is scanned at PASSIVE_LEVEL only', async () => {
  const seen = await seenBy(
    drivers,
    `const attempts = [() => kernel.hcaGuids(), () => kernel.hcaOfAddress('127.0.0.1')];
    const looked = (look) => { try { look(); return 'seen'; } catch (error) { return error.message; } };
    await new Promise((resolve) => kernel.setTimer(0, () => { seen.push(...attempts.map(looked)); resolve(); }));
    await new Promise((resolve) => kernel.queueWorkItem(() => { seen.push(...attempts.map(looked)); resolve(); }));`,
  );
  assert.equal(seen, [
    'listing the HCAs may block, which is not allowed at DISPATCH_LEVEL',
    'looking up an address may block, which is not allowed at DISPATCH_LEVEL',
    'seen',
    'seen',
  ]);
});

test('the buffer of registered memory cannot be transferred', async () => {
  const seen = await seenBy(
    drivers,
    `${OPENED}
    const bytes = new Uint8Array(64);
    const memory = await kernel.wait((irp) => verbs.ciRegisterMr(pd, bytes, 8, irp));
    // This call throws or copies, depending on the version of Node.js.
    try { structuredClone(bytes.buffer, { transfer: [bytes.buffer] }); } catch {}
    seen.push(\`\${bytes.length} bytes\`);
    await kernel.wait((irp) => verbs.ciDeregisterMr(memory, irp));
    ${CLOSED}`,
  );
  assert.equal(seen, ['64 bytes']);
});

test('a reset queue pair accepts as many Receives as before', async () => {
  const seen = await seenBy(
    drivers,
    `${OPENED}
    const init = { state: 1, access: 0, pkeyIndex: 0, port: 1 };
    const fill = () => { let count = 0; while (verbs.ciPostRecv(qp, 'mine', []) === 0) count++; return String(count); };
    for (let round = 0; round < 2; round++) {
      await kernel.wait((irp) => verbs.ciModifyQp(qp, 15, init, irp));
      seen.push(fill());
      await kernel.wait((irp) => verbs.ciModifyQp(qp, 1, { state: 0 }, irp));
    }
    ${CLOSED}`,
  );
  assert.is(seen.length, 2);
  assert.ok(Number(seen[0]) >= 4);
  assert.is(seen[1], seen[0]);
});

test('a Connect can be cancelled, and a queue pair is not destroyed while an endpoint uses it', async () => {
  const seen = await seenBy(
    drivers,
    `${OPENED}
    const [listener, endpoint] = [layer.createEndpoint(), layer.createEndpoint()];
    const at = (port) => ({ family: 4, address: '127.0.0.1', port });
    const port = await kernel.wait((irp) => listener.bind(at(0), irp));
    await kernel.wait((irp) => listener.listen(4, irp));
    await kernel.wait((irp) => endpoint.bind(at(0), irp));
    const ended = new Promise((resolve) => {
      const connecting = kernel.call((irp) => endpoint.connect(qp, at(port), {}, irp), resolve);
      setTimeout(() => connecting.cancel(), 30);
    });
    await new Promise((resolve) => setTimeout(resolve, 10));
    await status((irp) => verbs.ciDestroyQp(qp, irp));
    seen.push(await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 1000, 'never'))]));
    endpoint.close();
    listener.close();
    ${CLOSED}`,
  );
  assert.equal(seen, ['DEVICE_BUSY', 'CANCELED']);
});

test('a failed queue pair ends the connection of both drivers', async () => {
  const seen = await seenBy(
    drivers,
    `${OPENED}
    const other = await kernel.wait((irp) => verbs.ciCreateQp(pd, shape, 0, {}, irp));
    const [listener, passive, active] = [1, 2, 3].map(() => layer.createEndpoint());
    const at = (port) => ({ family: 4, address: '127.0.0.1', port });
    const port = await kernel.wait((irp) => listener.bind(at(0), irp));
    await kernel.wait((irp) => listener.listen(4, irp));
    await kernel.wait((irp) => active.bind(at(0), irp));
    const requested = kernel.wait((irp) => listener.getRequest(passive, irp));
    const replied = kernel.wait((irp) => active.connect(qp, at(port), {}, irp));
    await requested;
    const accepted = kernel.wait((irp) => passive.accept(other, {}, irp));
    await replied;
    await kernel.wait((irp) => active.completeConnect(irp));
    await accepted;
    const ends = [active, passive].map((one) => new Promise((resolve) => {
      kernel.call((irp) => one.notifyDisconnect(irp), resolve);
      setTimeout(resolve, 2000, 'never');
    }));
    const memory = await kernel.wait((irp) => verbs.ciRegisterMr(pd, new Uint8Array(8), 8, irp));
    seen.push(verbs.ciPostSend(qp, {
      context: 0, opcode: 1, flags: 4, sgl: [{ region: memory, offset: 0, length: 8 }], immediate: 0, invalidate: false,
      remoteLow: 4096, remoteHigh: 0, remoteOffset: 0, rkey: 1,
    }));
    seen.push(...await Promise.all(ends));
    for (const endpoint of [listener, passive, active]) endpoint.close();
    await kernel.wait((irp) => verbs.ciDeregisterMr(memory, irp));
    await kernel.wait((irp) => verbs.ciDestroyQp(other, irp));
    ${CLOSED}`,
  );
  assert.equal(seen, ['SUCCESS', 'CONNECTION_ABORTED', 'CONNECTION_ABORTED']);
});

test.run();
