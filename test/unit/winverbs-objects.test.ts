import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { mandatoryUserVerbs, requireUserVerbs, type UserVerbs } from '../../kernel-bridge/door/user-verbs.js';
import { IoctlCode } from '../../kernel-bridge/ioctl/codes.js';
import { CqProviderIn, withProviderData } from '../../kernel-bridge/ioctl/provider-data.js';
import { gidOfAddress } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import {
  WvGuidEntries,
  WvIoDeviceOpen,
  WvIoId,
  WvIoObject,
  WvIoQpAttributes,
  WvPkeyList,
} from '../../kernel-bridge/ioctl/structs.js';
import { loadUserVerbs } from '../../kernel-bridge/uvp/index.js';
import {
  QpAttr,
  RemoteMemory,
  WVProvider,
  WvAccess,
  type WvCompletion,
  WvError,
  WvOverlapped,
} from '../../winverbs/index.js';
import { writeCqe } from '../helpers/fake-hca.js';
import { ethGuid } from '../helpers/kernel-rig.js';
import { throwsWv } from '../helpers/outcome.js';
import { failWith, openPair, RigDoor } from '../helpers/rig-door.js';

test('objects are destroyed from the bottom up, whatever the order of their releases', () => {
  const forwards = openPair();
  for (const object of [...forwards.all]) object.release();
  const backwards = openPair();
  for (const object of [...backwards.all].reverse()) object.release();
  for (const { door } of [forwards, backwards]) {
    assert.is(door.objects, 0);
    assert.is(door.rig.hca.rings.size, 0);
    assert.ok(door.files.every(({ closed }) => closed));
    const order = door.log.filter((name) => /DESTROY|DEALLOC|CLOSE|close/.test(name));
    assert.is(order.at(-1), 'close \\\\.\\WinVerbs');
    assert.ok(order.indexOf('QP_DESTROY') < order.indexOf('CQ_DESTROY'));
    assert.ok(order.indexOf('QP_DESTROY') < order.indexOf('PD_DEALLOCATE'));
    assert.ok(order.indexOf('PD_DEALLOCATE') < order.indexOf('DEVICE_CLOSE'));
    assert.is(order.filter((name) => name === 'QP_DESTROY').length, 1);
  }
});

test('references are counted; releasing too often does not affect children; use after release fails', () => {
  const { provider, device, pd, cq, qp, mw, door } = openPair();
  mw.release();
  assert.is(pd.addRef(), 2);
  assert.is(pd.release(), 1);
  assert.is(pd.release(), 0);
  assert.is(pd.release(), 0);
  assert.ok(!door.log.includes('PD_DEALLOCATE'), 'the queue pair keeps it');
  throwsWv(() => pd.allocateMemoryWindow(), Status.INVALID_HANDLE, /protection domain was released/);
  throwsWv(() => pd.addRef(), Status.INVALID_HANDLE);
  qp[Symbol.dispose]();
  assert.ok(door.log.includes('PD_DEALLOCATE'));
  throwsWv(() => qp.send(0, [], 0), Status.INVALID_HANDLE, /queue pair was released/);
  throwsWv(() => qp.postReceive(0, []), Status.INVALID_HANDLE);
  cq.release();
  throwsWv(() => cq.poll([]), Status.INVALID_HANDLE);
  throwsWv(() => cq.notify('any'), Status.INVALID_HANDLE);
  device.release();
  provider.release();
  throwsWv(() => provider.queryDeviceList(), Status.INVALID_HANDLE);
});

test('the list of devices is queried until it is complete, as long as it grows', () => {
  const guids = Array.from({ length: 1000 }, (_, index) => BigInt(index + 1));
  for (const most of [guids.length, 100]) {
    const door = new RigDoor();
    door.on('GUID_QUERY', (_input, outputLength) => {
      const listed = guids.slice(0, Math.min(most, (outputLength - 8) / 8));
      return Buffer.concat([WvIoObject.encode({ id: BigInt(guids.length) }), WvGuidEntries.encode(listed)]);
    });
    const provider = new WVProvider(door);
    assert.equal(provider.queryDeviceList(), guids.slice(0, most));
    assert.is(door.log.filter((name) => name === 'GUID_QUERY').length, 2);
  }
});

test('the five steps: pre hook, structure with provider bytes, one IOCTL, reply, post hook', () => {
  const { device, door } = openPair();
  const before = door.log.length;
  const cq = device.createCompletionQueue(5);
  assert.equal(door.log.slice(before), ['CQ_CREATE']);
  const input = door.input('CQ_CREATE');
  assert.is(input.length, WvIoId.size + CqProviderIn.size);
  assert.is(WvIoId.decode(input).data, 8);
  const { ringAddress, ringBytes, entries } = CqProviderIn.decode(input, WvIoId.size);
  assert.is(door.rig.hca.rings.get(Number(ringAddress))!.bytes, ringBytes);
  assert.is(entries, 8);
  assert.is(cq.entries, 8);
});

test('missing hooks of a UVP are skipped', () => {
  const door = new RigDoor();
  const { verbs } = door;
  const bare = Object.fromEntries(
    mandatoryUserVerbs.map((name) => [name, verbs[name].bind(verbs)]),
  ) as unknown as UserVerbs;
  door.loadUserVerbs = () => requireUserVerbs('bare', bare);
  const provided = CqProviderIn.encode({ ringAddress: 1n, ringBytes: 4096, entries: 4 });
  door.on('CQ_CREATE', (input, room, file) =>
    file.pass(IoctlCode.CQ_CREATE, withProviderData(input, provided), room).output.slice(0, WvIoId.size),
  );
  const provider = new WVProvider(door);
  const device = provider.openDevice(ethGuid);
  const pd = device.allocateProtectionDomain();
  const cq = device.createCompletionQueue(3);
  assert.is(door.input('CQ_CREATE').length, WvIoId.size);
  throwsWv(() => cq.peek(), Status.NOT_SUPPORTED, /poll/);
  for (const object of [provider, device, pd, cq]) object.release();
  assert.is(door.objects, 0);
});

test('U1, U2: blocking and overlapped forms report the same status, including TIMEOUT', async () => {
  const { pd, door, ep, qp, hca } = openPair();
  const pins = hca.pins.size;
  for (const status of [Status.INSUFFICIENT_RESOURCES, Status.TIMEOUT, Status.BUFFER_OVERFLOW]) {
    door.on('MEMORY_REGISTER', () => failWith(status));
    throwsWv(() => pd.registerMemory(new Uint8Array(8), 0), status);
    const overlapped = pd.registerMemoryOverlapped(new Uint8Array(8), 0);
    throwsWv(() => overlapped.getResult({ wait: true }), status);
    assert.instance(await overlapped.then(undefined, (error: unknown) => error), WvError);
  }
  assert.is(hca.pins.size, pins, 'failed registrations are unpinned');
  const connect = ep.connect(qp, { family: 4, address: '127.0.0.1', port: 5 }, {});
  assert.is(connect.status, Status.PENDING);
  door.request('EP_CONNECT').complete(Status.TIMEOUT);
  throwsWv(() => connect.getResult({ wait: true }), Status.TIMEOUT);
});

test('U3: while one request waits, other requests and cancellation proceed', async () => {
  const { cq } = openPair();
  const waiting = cq.notify('any');
  cq.resize(16);
  assert.not(waiting.completed);
  cq.cancelOverlappedRequests();
  assert.ok(waiting.completed);
  throwsWv(() => waiting.getResult(), Status.CANCELED);
});

test('U4: notify queues the request and arms the queue before a completion arrives', () => {
  const { cq, door } = openPair();
  const before = door.log.length;
  cq.notify('any');
  cq.notify('solicited');
  cq.notify('errors');
  const [id] = door.rig.hca.cqs;
  assert.equal(door.log.slice(before), [
    'CQ_NOTIFY',
    `arm ${id} any`,
    'CQ_NOTIFY',
    `arm ${id} solicited`,
    'CQ_NOTIFY',
  ]);
  assert.equal(
    door.inputs.slice(-3).map(({ input }) => WvIoId.decode(input).data),
    [1, 2, 0],
  );
  throwsWv(() => cq.notify('all' as 'any'), Status.INVALID_PARAMETER, /'all'/);
  door.rig.hca.armStatus = Status.INVALID_HANDLE;
  throwsWv(() => cq.notify('any'), Status.INVALID_HANDLE);
  assert.is(door.pending.filter(({ done }) => !done).length, 3, 'the unarmed request does not stay');
});

test('U5: batchNotify sends the whole structure, arms for n, and works on any device', () => {
  const { cq, door } = openPair();
  const before = door.log.length;
  cq.batchNotify(5);
  const input = door.input('CQ_NOTIFY');
  assert.is(input.length, WvIoId.size);
  const [id] = door.rig.hca.cqs;
  assert.is(WvIoId.decode(input).data, 1);
  assert.equal(door.log.slice(before), ['CQ_NOTIFY', `arm ${id} batch 5`]);
  for (const n of [0, 17, -1, 1.5, Number.NaN]) {
    throwsWv(() => cq.batchNotify(n), Status.INVALID_PARAMETER, /from 1 to the queue's 16/);
  }
  Object.defineProperty(door.verbs, 'rearmNCq', { value: undefined });
  cq.batchNotify(5);
  assert.is(door.log.at(-1), `arm ${id} any`);
  door.rig.hca.armStatus = Status.INVALID_HANDLE;
  throwsWv(() => cq.batchNotify(1), Status.INVALID_HANDLE);
  door.rig.hca.armStatus = Status.BUFFER_OVERFLOW;
  assert.not(cq.batchNotify(1).completed, 'the request reports an overrun');
  cq.cancelOverlappedRequests();
});

test('U6, U7: an incomplete or absent UVP is NOT_SUPPORTED, by name', () => {
  const door = new RigDoor();
  door.on('LIBRARY_QUERY', () => new Uint8Array(Buffer.from('fake\0')));
  for (const missing of mandatoryUserVerbs) {
    const table: Partial<UserVerbs> = new RigDoor().verbs;
    Object.defineProperty(table, missing, { value: undefined });
    door.loadUserVerbs = (library) => requireUserVerbs(library, table);
    throwsWv(
      () => new WVProvider(door).openDevice(ethGuid),
      Status.NOT_SUPPORTED,
      new RegExp(`'fake' lacks ${missing};`),
    );
  }
  door.loadUserVerbs = loadUserVerbs;
  throwsWv(() => new WVProvider(door).openDevice(ethGuid), Status.NOT_SUPPORTED, /'fake'/);
  assert.ok(!door.log.includes('DEVICE_OPEN'));
});

test('U8: polling a dead completion queue is an error, not a count', () => {
  const { cq, cqRing } = openPair();
  cqRing.words[1] = 1;
  throwsWv(() => cq.poll([], 4), Status.BUFFER_OVERFLOW, /entries/);
});

test('the maximum number of completions must be an integer', () => {
  const { qp, cq, cqRing, token, setState } = openPair();
  setState(3);
  qp.send('kept', [], 2);
  writeCqe(cqRing, { token, wqe: 0, length: 0 });
  for (const n of [Number.NaN, -1, 1.5, 2 ** 32, Number.POSITIVE_INFINITY, '4', 4n, Symbol('4')] as number[])
    throwsWv(
      () => cq.poll([], n),
      Status.INVALID_PARAMETER,
      new RegExp(`\`n\` must be .*; got ${typeof n === 'string' ? "'4'" : String(n).replace(/[()]/g, '.')}`),
    );
  assert.is(cq.poll([], 0), 0);
  const taken: WvCompletion[] = [];
  assert.is(cq.poll(taken), 1, 'an empty array gets one, as with getResults of NetworkDirect');
  assert.is(taken[0]?.context, 'kept');
});

test('U9: every object with overlapped requests has IWVOverlapped', () => {
  const { device, pd, cq, qp, ep } = openPair();
  for (const object of [device, pd, cq, qp, ep]) assert.instance(object, WvOverlapped);
});

test('U10: ports are checked, tables are complete, membership does not change the partition', () => {
  const { device, door } = openPair();
  for (const port of [0, -1, 256, 1.5, Number.NaN]) {
    throwsWv(() => device.queryPort(port), Status.INVALID_PARAMETER, /`port` must be an integer from 1/);
    throwsWv(() => device.queryPkey(port, 0), Status.INVALID_PARAMETER);
    throwsWv(() => device.findGid(port, new Uint8Array(16)), Status.INVALID_PARAMETER);
    throwsWv(() => device.notify(port), Status.INVALID_PARAMETER, /`port` must be an integer from 1/);
  }
  const keys = (count: number, first: number): void => {
    const list = Array.from({ length: count }, (_, i) => first + i);
    door.on('DEVICE_PKEY_QUERY', (_input, room) =>
      room < 2 * count ? failWith(Status.MORE_ENTRIES) : WvPkeyList.encode(list),
    );
  };
  keys(20, 0x8000);
  assert.is(device.queryPkey(1, 19), 0x8013);
  throwsWv(() => device.queryPkey(1, 20), Status.INVALID_PARAMETER_2);
  throwsWv(() => device.queryPkey(1, -1), Status.INVALID_PARAMETER_2);
  assert.is(device.findPkey(1, 0x8003), 3);
  assert.is(device.findPkey(1, 0x0003), 3);
  throwsWv(() => device.findPkey(1, 0x7000), Status.INVALID_ADDRESS);
  for (const pkey of [-1, 0x1_8003, 3.5, undefined as never]) {
    throwsWv(() => device.findPkey(1, pkey), Status.INVALID_PARAMETER, /16-bit/);
  }
  assert.is(device.findGid(1, gidOfAddress('192.0.2.2')), 1);
  throwsWv(() => device.findGid(1, new Uint8Array(16)), Status.INVALID_ADDRESS);
  for (const gid of [new Uint8Array(15), undefined as never]) {
    throwsWv(() => device.findGid(1, gid), Status.INVALID_PARAMETER, /16 bytes/);
  }
  keys(60, 0);
  assert.is(device.queryPkey(1, 59), 59);
});

test('U14: the post hook of a failed IOCTL gets the failure, but neither its own input nor its command', () => {
  const door = new RigDoor();
  const seen: unknown[] = [];
  const { verbs } = door;
  door.loadUserVerbs = () =>
    ({
      ...Object.fromEntries(mandatoryUserVerbs.map((name) => [name, verbs[name]])),
      preOpenCa: (_guid: bigint, umv: { command: number; input: Uint8Array; outputSize: number }) => {
        umv.command = 0x55;
        umv.input = Uint8Array.of(1, 2, 3, 4);
        umv.outputSize = 4;
        return {};
      },
      postOpenCa: (
        _guid: bigint,
        status: number,
        _ca: unknown,
        umv: { status: number; output: Uint8Array },
      ) => seen.push([status, umv.status, umv.output.length]),
    }) as unknown as UserVerbs;
  door.on('DEVICE_OPEN', (input) => {
    assert.is(WvIoId.decode(input).verbInfo, 0x55);
    assert.equal([...input.subarray(16)], [1, 2, 3, 4]);
    return failWith(Status.NO_SUCH_DEVICE);
  });
  throwsWv(() => new WVProvider(door).openDevice(ethGuid), Status.NO_SUCH_DEVICE);
  assert.equal(seen, [[Status.NO_SUCH_DEVICE, 0, 0]]);
  door.on('DEVICE_OPEN', (_input, _room, file) => {
    const answer = new Uint8Array(20);
    const { id } = WvIoId.decode(
      file.pass(IoctlCode.DEVICE_OPEN, WvIoDeviceOpen.encode({ guid: ethGuid }), 256).output,
    );
    WvIoId.encode({ id, verbInfo: 7 }, answer);
    return answer;
  });
  const provider = new WVProvider(door);
  provider.openDevice(ethGuid).release();
  assert.equal(seen[1], [0, 7, 4]);
});

test('a post hook that cannot use the reply reverts the creation', () => {
  const { device, door, hca } = openPair();
  const size = door.objects;
  const rings = hca.rings.size;
  door.on('CQ_CREATE', (input, room, file) => {
    return file.pass(IoctlCode.CQ_CREATE, input, room).output.slice(0, -1);
  });
  throwsWv(() => device.createCompletionQueue(8), Status.BUFFER_TOO_SMALL, /CQ_CREATE/);
  door.on('CQ_CREATE', () => new Uint8Array(3));
  throwsWv(() => device.createCompletionQueue(8), Status.BUFFER_TOO_SMALL);
  door.on('CQ_CREATE', () => failWith(Status.INSUFFICIENT_RESOURCES));
  throwsWv(() => device.createCompletionQueue(8), Status.INSUFFICIENT_RESOURCES);
  assert.is(door.objects, size);
  assert.is(hca.rings.size, rings);
});

test('U17: modify without STATE does not change the state; only complete access flags are accepted', () => {
  const { qp, door, setState } = openPair();
  setState(3);
  qp.modify({ rnrNakTimeout: 5, qpState: 0 }, QpAttr.RNR_NAK_TIMEOUT);
  const sent = WvIoQpAttributes.decode(door.input('QP_MODIFY'));
  assert.is(sent.qpState, 3);
  assert.is(sent.options, QpAttr.RNR_NAK_TIMEOUT);
  qp.modify({ qpState: 6 }, QpAttr.STATE);
  assert.is(WvIoQpAttributes.decode(door.input('QP_MODIFY')).qpState, 6);
  throwsWv(
    () => qp.modify({ accessFlags: WvAccess.NON_CACHABLE }, QpAttr.ACCESS_FLAGS),
    Status.INVALID_PARAMETER,
    /0x80000000/,
  );
  throwsWv(() => qp.modify({ qpState: 300 }, QpAttr.STATE), Status.INVALID_PARAMETER);
});

test('U19: closing a device does not depend on the UVP', () => {
  const door = new RigDoor();
  const { verbs } = door;
  door.loadUserVerbs = () =>
    Object.fromEntries(mandatoryUserVerbs.map((name) => [name, verbs[name]])) as unknown as UserVerbs;
  const provider = new WVProvider(door);
  provider.openDevice(ethGuid).release();
  assert.ok(door.log.includes('DEVICE_CLOSE'));
  assert.is(door.objects, 0);
});

test('U20: an object that is busy when it is destroyed is destroyed later', () => {
  const { provider, device, cq, door } = openPair();
  const other = device.createCompletionQueue(1);
  const { id } = WvIoId.decode(door.input('CQ_CREATE'));
  assert.ok(id > 0n);
  const left = () => door.rig.hca.cqs.size;
  door.on('CQ_DESTROY', () => failWith(Status.DEVICE_BUSY));
  other.release();
  assert.is(left(), 2);
  door.handlers.delete(IoctlCode.CQ_DESTROY);
  device.createCompletionQueue(1).release();
  assert.is(left(), 1);
  void provider;
  void cq;
});

test('memory: unsuitable buffers are rejected with the reason', () => {
  const { pd, hca, door } = openPair();
  const pins = hca.pins.size;
  throwsWv(() => pd.registerMemory(new Uint8Array(0), 0), Status.INVALID_PARAMETER, /must not be empty/);
  for (const none of [[], Object.create(ArrayBuffer.prototype), Object.create(SharedArrayBuffer.prototype)]) {
    throwsWv(
      () => pd.registerMemory(none as ArrayBuffer, 0),
      Status.INVALID_PARAMETER,
      /must be an ArrayBuffer/,
    );
  }
  const growing = Reflect.construct(ArrayBuffer, [8, { maxByteLength: 16 }]) as ArrayBuffer;
  throwsWv(() => pd.registerMemory(growing, 0), Status.INVALID_PARAMETER, /resizable/);
  throwsWv(() => pd.registerMemory(new Uint8Array(growing), 0), Status.INVALID_PARAMETER, /resizable/);
  const shared = Reflect.construct(SharedArrayBuffer, [8, { maxByteLength: 16 }]) as SharedArrayBuffer;
  throwsWv(() => pd.registerMemory(shared, 0), Status.INVALID_PARAMETER, /resizable/);
  const gone = new ArrayBuffer(8);
  structuredClone(gone, { transfer: [gone] });
  throwsWv(() => pd.registerMemory(gone, 0), Status.INVALID_PARAMETER, /detached/);
  throwsWv(() => pd.registerMemory(new Uint8Array(8), 0x40), Status.INVALID_PARAMETER, /access/);
  throwsWv(() => pd.registerMemory(new Uint8Array(8), -1), Status.INVALID_PARAMETER);
  hca.pinStatus = Status.NO_MEMORY;
  throwsWv(() => pd.registerMemory(new Uint8Array(8), 0), Status.NO_MEMORY, /8 bytes/);
  assert.is(hca.pins.size, pins);
  assert.ok(!door.log.includes('MEMORY_REGISTER'));
});

test('memory is pinned while registered, has an rkey only with remote rights, and is never transferred', () => {
  const { pd, hca, door } = openPair();
  const memory = new Uint8Array(64).subarray(8, 40);
  const local = pd.registerMemory(memory, WvAccess.LOCAL_WRITE | WvAccess.MW_BIND);
  assert.equal([local.rkey, local.length], [0, 32]);
  assert.is(local.bytes!.byteOffset, 8);
  const remote = pd.registerMemory(new SharedArrayBuffer(16), WvAccess.REMOTE_READ);
  assert.is(remote.rkey, 0x1234_0000 + remote.lkey);
  assert.is(hca.pins.size, 2);
  try {
    structuredClone(memory.buffer, { transfer: [memory.buffer] });
  } catch {
    // Node.js either rejects this or copies. The memory is kept in both cases.
  }
  assert.is(memory.length, 32);
  door.on('MEMORY_DEREGISTER', () => failWith(Status.DEVICE_BUSY));
  throwsWv(() => pd.deregisterMemory(local), Status.DEVICE_BUSY);
  assert.is(hca.pins.size, 2, 'a region that stays registered stays pinned');
  door.on('MEMORY_DEREGISTER', () => new Uint8Array(0));
  pd.deregisterMemory(local);
  throwsWv(
    () => pd.deregisterMemory(local),
    Status.INVALID_PARAMETER,
    /must be registered in this protection domain/,
  );
  assert.is(hca.pins.size, 1);
});

test("memory: a buffer's own methods do not detach registered memory", () => {
  const { pd } = openPair();
  const names = ['transfer', 'transferToFixedLength'];
  // If Node.js lacks these methods, they are replaced by functions without effect.
  const missing = names.filter((name) => !(name in ArrayBuffer.prototype));
  for (const name of missing) Reflect.set(ArrayBuffer.prototype, name, () => undefined);
  const call = (buffer: ArrayBufferLike, name: string) =>
    Reflect.apply(Reflect.get(buffer, name), buffer, []);
  try {
    const { buffer } = new Uint8Array(64);
    pd.registerMemory(new Uint8Array(buffer, 8, 8), WvAccess.LOCAL_WRITE);
    pd.registerMemory(buffer, WvAccess.LOCAL_WRITE);
    for (const name of names) assert.throws(() => call(buffer, name), /registered|detach/);
    assert.is(buffer.byteLength, 64);
    assert.equal(Object.keys(buffer), []);
    // An unregistered buffer is not affected.
    assert.not.throws(() => call(new ArrayBuffer(8), 'transfer'));
  } finally {
    for (const name of missing) Reflect.deleteProperty(ArrayBuffer.prototype, name);
  }
});

test('memory: the last release of the protection domain deregisters its memory', async () => {
  const { all, pd, hca, door } = openPair();
  pd.registerMemory(new Uint8Array(8), 0);
  const pending = pd.registerMemoryOverlapped(new Uint8Array(8), 0);
  const region = await pd.registerMemoryOverlapped(new Uint8Array(8), 0);
  await pd.deregisterMemoryOverlapped(region);
  assert.is(hca.pins.size, 2);
  for (const object of all) object.release();
  assert.is(hca.pins.size, 0);
  assert.is(door.rig.hca.mrs.size, 0);
  assert.is(door.objects, 0);
  assert.is((await pending).length, 8);
});

test('completion queues: sizes are checked, and a failed resize has no effect', () => {
  const { device, cq, door, hca } = openPair();
  for (const entries of [0, -1, 1.5, 1025, Number.NaN]) {
    throwsWv(() => device.createCompletionQueue(entries), Status.INVALID_PARAMETER, /entries/);
    throwsWv(() => cq.resize(entries), Status.INVALID_PARAMETER, /entries/);
  }
  const rings = [...hca.rings.keys()];
  door.on('CQ_RESIZE', () => failWith(Status.BUFFER_OVERFLOW));
  throwsWv(() => cq.resize(2), Status.BUFFER_OVERFLOW);
  assert.equal([...hca.rings.keys()], rings);
  door.on('CQ_RESIZE', (input) => WvIoId.encode({ data: WvIoId.decode(input).data }));
  cq.resize(33);
  assert.is(cq.entries, 64);
  assert.is(hca.rings.size, rings.length);
});

test('queue pairs: sizes beyond the device and foreign completion queues are rejected', () => {
  const { pd, cq, hca } = openPair();
  const other = openPair();
  const rings = hca.rings.size;
  const base = { sendCq: cq, receiveCq: cq, sendDepth: 1, sendSge: 1, receiveDepth: 1, receiveSge: 1 };
  for (const change of [
    { sendDepth: 257 },
    { receiveDepth: 257 },
    { sendSge: 9 },
    { receiveSge: -1 },
    { maxInlineSend: 513 },
    { sendCq: other.cq },
  ]) {
    throwsWv(() => pd.createConnectQueuePair({ ...base, ...change }), Status.INVALID_PARAMETER);
  }
  assert.is(hca.rings.size, rings);
  pd.createConnectQueuePair({ ...base, maxInlineSend: 100 });
});

test('the error for a missing argument object lists the required members', () => {
  const { pd, qp, provider, cq } = openPair();
  const sizes = { sendDepth: 1, sendSge: 1, receiveDepth: 1, receiveSge: 1 };
  const ud = pd.createDatagramQueuePair({ sendCq: cq, receiveCq: cq, ...sizes });
  const endpoint = provider.createConnectEndpoint();
  const datagrams = provider.createDatagramEndpoint();
  const peer = { family: 4, address: '192.0.2.9', port: 5 } as const;
  for (const nothing of [undefined, null, 5] as never[]) {
    const calls: [() => unknown, RegExp][] = [
      [() => pd.createConnectQueuePair(nothing), /sendCq, receiveCq/],
      [() => pd.createDatagramQueuePair(nothing), /sendCq, receiveCq/],
      [() => pd.createAddressHandle(nothing), /sourceGid and destinationGid/],
      [() => qp.modify(nothing, QpAttr.STATE), /qpState/],
      [() => ud.sendMessage(nothing), /addressHandle/],
      [() => endpoint.connect(qp, peer, nothing), /privateData/],
      [() => endpoint.accept(qp, nothing), /privateData/],
      [() => datagrams.accept(nothing), /queue pair/],
      [() => new RemoteMemory(nothing), /address and rkey/],
    ];
    if (nothing !== undefined) calls.push([() => ud.start(5, nothing), /portNumber/]);
    for (const [call, text] of calls) throwsWv(call, Status.INVALID_PARAMETER, text);
  }
});

test.run();
