/** IOCTLs of the filter: names, sizes, ids, devices, and the objects of a file. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ChannelMajor } from '../../kernel-bridge/hca/request-channel-binding.js';
import { CountersCode, IoctlCode, type IoctlName, ioctlTable } from '../../kernel-bridge/ioctl/codes.js';
import { WvEvent } from '../../kernel-bridge/ioctl/constants.js';
import { guidText } from '../../kernel-bridge/ioctl/hca-file.js';
import { CaProviderOut } from '../../kernel-bridge/ioctl/provider-data.js';
import { gidOfAddress } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status, statusName } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { idOf, ObjectTable } from '../../kernel-bridge/kernel/filter/file-objects.js';
import { MOST_FILES } from '../../kernel-bridge/kernel/io-manager/io-manager.js';
import { ethGuid, expect, hostInterface, KernelRig, sound } from '../helpers/kernel-rig.js';

const nothing = new Uint8Array(0);

// ── Files and names ─────────────────────────────────────────────────────────────────────────────────────────

test('device files open by name, ignoring case; other names are refused with the reason', () => {
  const rig = new KernelRig();
  for (const name of ['\\\\.\\winverbs', '\\DosDevices\\WinVerbs', '\\Device\\WinVerbs', '\\\\.\\IBAT']) {
    expect(rig.open(name), Status.SUCCESS, name);
  }
  const missing = rig.open('\\\\.\\NoSuch');
  expect(missing, Status.OBJECT_NAME_NOT_FOUND);
  assert.match(new TextDecoder().decode(missing.output), /"\\\\\.\\NoSuch".*WinVerbs/);
  expect(rig.open('WinVerbs'), Status.OBJECT_NAME_INVALID);
  expect(rig.open('\\\\.\\WinVerbs\\x'), Status.OBJECT_NAME_NOT_FOUND);
  sound(rig);
});

test('the number of open files is limited, until one is closed', () => {
  const rig = new KernelRig();
  assert.is(rig.kernel.io.mostFiles, MOST_FILES);
  rig.kernel.io.mostFiles = rig.kernel.io.openFiles + 3;
  const opened = Array.from({ length: 3 }, () => rig.open('\\\\.\\ibat'));
  for (const one of opened) expect(one, Status.SUCCESS);
  const refused = rig.open('\\\\.\\ibat');
  expect(refused, Status.INSUFFICIENT_RESOURCES);
  assert.match(new TextDecoder().decode(refused.output), 'too many files are open; close some');
  rig.close(opened[0]!.answer!.information);
  expect(rig.open('\\\\.\\ibat'), Status.SUCCESS);
  sound(rig);
});

test('\\Device\\ibal\\<GUID> is reparsed to the HCA, and only to one that exists', () => {
  const rig = new KernelRig();
  const file = rig.open(`\\Device\\ibal\\${guidText(ethGuid)}`);
  expect(file, Status.SUCCESS);
  expect(rig.ioctl('GUID_QUERY', nothing, 64, file.answer!.information), Status.INVALID_DEVICE_REQUEST);
  expect(rig.open(`\\Device\\ibal\\${guidText(1n)}`), Status.NO_SUCH_DEVICE);
  expect(rig.open('\\Device\\ibal\\zz'), Status.NO_SUCH_DEVICE);
  expect(rig.open('\\Device\\ibal'), Status.NO_SUCH_DEVICE);
  sound(rig);
});

test('requests to closed files end in FILE_CLOSED, and to files that never existed in INVALID_HANDLE', () => {
  const rig = new KernelRig();
  expect(rig.close(), Status.SUCCESS);
  expect(rig.ioctl('GUID_QUERY', nothing, 64), Status.FILE_CLOSED);
  expect(rig.close(), Status.FILE_CLOSED);
  expect(rig.ioctl('GUID_QUERY', nothing, 64, 4711), Status.INVALID_HANDLE);
  expect(rig.submit({ major: 77 }), Status.INVALID_DEVICE_REQUEST);
  sound(rig);
});

// ── Guarantees of the table ────────────────────────────────────────────────────────────────────────────────────

test('every IOCTL rejects an input or output that is one byte short, and accepts the full size', () => {
  const rig = new KernelRig();
  for (const { name, input, output } of ioctlTable) {
    const size = input?.size ?? 0;
    if (size > 0)
      expect(rig.ioctl(name as IoctlName, new Uint8Array(size - 1)), Status.BUFFER_TOO_SMALL, name);
    if (output) {
      expect(
        rig.ioctl(name as IoctlName, new Uint8Array(size), output.size - 1),
        Status.BUFFER_TOO_SMALL,
        name,
      );
    }
    const whole = rig.ioctl(name as IoctlName, new Uint8Array(size), output?.size ?? 0);
    assert.is.not(whole.status, Status.PENDING, name);
    assert.is.not(whole.status, Status.INTERNAL_ERROR, name);
  }
  sound(rig);
});

test('unknown codes end in PROCEDURE_NOT_FOUND, even those of ibat', () => {
  const rig = new KernelRig();
  for (const code of [0, 0x003b_e000, 0x003b_e0d8, 0x003b_e005, 0xffff_ffff, 0x0022_2010]) {
    expect(rig.control(code, new Uint8Array(256), 256), Status.PROCEDURE_NOT_FOUND);
  }
  sound(rig);
});

test('every request with an unknown id ends in NOT_FOUND, or in NO_SUCH_DEVICE for devices', () => {
  const rig = new KernelRig();
  const device = new Set([
    'DEVICE_OPEN',
    'DEVICE_CLOSE',
    'DEVICE_QUERY',
    'DEVICE_PORT_QUERY',
    'DEVICE_GID_QUERY',
    'DEVICE_PKEY_QUERY',
    'PD_ALLOCATE',
    'CQ_CREATE',
    'LIBRARY_QUERY',
  ]);
  for (const id of [0n, 1n, 0xffff_ffff_ffff_ffffn, 1n << 60n]) {
    for (const { name, input } of ioctlTable) {
      if (!input || name === 'EP_CREATE' || /^(SRQ|AH)_|ATTACH|DETACH/.test(name)) continue;
      const bytes = new Uint8Array(input.size + 64);
      new DataView(bytes.buffer).setBigUint64(0, id, true);
      const status = rig.ioctl(name as IoctlName, bytes).status;
      assert.is(statusName(status), device.has(name) ? 'NO_SUCH_DEVICE' : 'NOT_FOUND', `${name} ${id}`);
    }
  }
  sound(rig);
});

test('with any bytes, each IOCTL ends in a status and violates no rule', () => {
  const rig = new KernelRig();
  rig.queuePair();
  rig.listener();
  let seed = 12345;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return (seed >>> 8) % below;
  };
  const pending = new Set<string>();
  for (let round = 0; round < 4000; round++) {
    const { name, input } = ioctlTable[random(ioctlTable.length)]!;
    const bytes = Uint8Array.from({ length: (input?.size ?? 0) + random(48) }, () =>
      random(4) === 0 ? random(256) : 0,
    );
    // Half of the inputs begin with an id, often that of a live object.
    if (bytes.length >= 8 && random(2) === 0)
      new DataView(bytes.buffer).setBigUint64(0, BigInt(2 ** 20 + random(2)), true);
    const request = rig.ioctl(name as IoctlName, bytes, random(300));
    assert.ok(request.output.length <= 300);
    if (request.status === Status.PENDING) pending.add(name);
  }
  for (const name of pending) assert.ok(ioctlTable.find((row) => row.name === name)!.pends, name);
  expect(rig.close(), Status.SUCCESS);
  assert.is(rig.kernel.io.pendingRequests, 0);
  sound(rig);
});

// ── Devices ─────────────────────────────────────────────────────────────────────────────────────────────────

test('GUID_QUERY counts all devices and lists as many as fit', () => {
  const rig = new KernelRig();
  const whole = rig.ioctl('GUID_QUERY', nothing, 8 + 24).output;
  assert.is(s.WvIoGuidList.decode(whole).count, 3n);
  assert.is(s.WvGuidEntries.decode(whole.subarray(8))[2], ethGuid);
  const one = rig.ioctl('GUID_QUERY', nothing, 16).output;
  assert.is(one.length, 16);
  assert.is(s.WvIoGuidList.decode(one).count, 3n);
});

test('a host may have thousands of interfaces, and an interface thousands of addresses', () => {
  const rig = new KernelRig();
  const addresses = Array.from({ length: 5000 }, (_, i) => `127.1.${i >> 8}.${i & 255}/32`);
  rig.network.list[0] = hostInterface('lo', 1, addresses);
  for (let index = 5; index < 9000; index++) {
    rig.network.list.push(hostInterface(`veth${index}`, index, [], { mac: undefined }));
  }
  rig.kernel.ports.refresh(true);
  const [lo] = rig.kernel.ports.all();
  const guids = rig.ioctl('GUID_QUERY', nothing, 8 + 9000 * 8).output;
  assert.is(s.WvGuidEntries.decode(guids.subarray(8)).length, 8998);
  const device = rig.device(lo!.guid);
  const query = s.WvIoDevicePortQuery.encode({ id: device, portNumber: 1 });
  const gids = rig.ioctl('DEVICE_GID_QUERY', query, 5000 * 16);
  expect(gids, Status.SUCCESS);
  assert.is(s.WvGidList.decode(gids.output).length, 5000);
  const counters = rig.open('\\\\.\\NetworkDirectCounters').answer!.information;
  const names = rig.control(CountersCode.INTERFACES, nothing, 1 << 20, counters);
  expect(names, Status.SUCCESS);
  assert.is(JSON.parse(new TextDecoder().decode(names.output)).length, 8998);
});

test('K12: LIBRARY_QUERY returns the provider’s name with its NUL, or reports that the buffer is too short', () => {
  const rig = new KernelRig();
  const guid = s.WvIoGuid.encode({ guid: ethGuid });
  const { output } = rig.ioctl('LIBRARY_QUERY', guid, 32);
  assert.is(new TextDecoder().decode(output), 'networkdirect_uvp\0');
  expect(rig.ioctl('LIBRARY_QUERY', guid, output.length - 1), Status.BUFFER_TOO_SMALL);
  expect(rig.ioctl('LIBRARY_QUERY', s.WvIoGuid.encode({ guid: 5n }), 32), Status.NO_SUCH_DEVICE);
});

test('a device opens by GUID with the provider’s limits, and its attributes are the HCA’s', () => {
  const rig = new KernelRig();
  const opened = rig.ioctl(
    'DEVICE_OPEN',
    s.WvIoDeviceOpen.encode({ guid: ethGuid }),
    s.WvIoId.size + CaProviderOut.size,
  );
  const limits = CaProviderOut.decode(opened.output, s.WvIoId.size);
  assert.equal(limits, {
    maxSge: 8,
    maxInline: 512,
    maxQpWr: 256,
    maxCqEntries: 1024,
    maxSrqWr: 256,
    maxSrqSge: 8,
  });
  const { id } = s.WvIoId.decode(opened.output);
  const attributes = s.WvIoDeviceAttributes.decode(rig.ioctl('DEVICE_QUERY', rig.id(id)).output);
  assert.is(attributes.nodeGuid, ethGuid);
  assert.is(attributes.maxQpInitiatorDepth, 16);
  const { maxAh, maxMulticast, maxQpAttach, maxMulticastQp } = attributes;
  assert.equal([maxAh, maxMulticast, maxQpAttach, maxMulticastQp], [100, 50, 20, 200]);
  assert.is(attributes.physPortCount, 1);
  assert.is(attributes.maxInlineSend, 512, 'K9: MaxInlineSend is filled');
  sound(rig);
});

test('a provider output that is too short is rejected before anything is created', () => {
  const rig = new KernelRig();
  const { pd, cq, device } = rig.queuePair();
  const short = [
    ['DEVICE_OPEN', s.WvIoDeviceOpen.encode({ guid: ethGuid }), s.WvIoId.size + 1],
    ['PD_ALLOCATE', s.WvIoId.encode({ id: device }), s.WvIoId.size + 1],
    ['MW_ALLOCATE', s.WvIoId.encode({ id: pd }), s.WvIoId.size + 1],
    ['CQ_CREATE', rig.cqInput(device), s.WvIoId.size + 1],
    ['QP_CREATE', rig.qpInput(pd, cq), s.WvIoQpCreate.size + 1],
  ] as const;
  const before = rig.hca.objectCounts();
  for (const [name, input, size] of short)
    expect(rig.ioctl(name, input, size), Status.BUFFER_TOO_SMALL, name);
  assert.equal(rig.hca.objectCounts(), before);
  sound(rig);
});

test('port attributes, GID and P_Key tables; MORE_ENTRIES when truncated; no second port', () => {
  const rig = new KernelRig();
  const id = rig.device();
  const port = (portNumber: number) => s.WvIoDevicePortQuery.encode({ id, portNumber });
  const attributes = s.WvIoPortAttributes.decode(rig.ioctl('DEVICE_PORT_QUERY', port(1)).output);
  assert.is(attributes.activeMtu, 1024);
  assert.is(attributes.maxMtu, 4096);
  assert.is(attributes.gidTableLength, 3);
  assert.is(attributes.state, 4);
  const gids = s.WvGidList.decode(rig.ioctl('DEVICE_GID_QUERY', port(1)).output);
  assert.equal(gids[1], gidOfAddress('192.0.2.2'));
  const truncated = rig.ioctl('DEVICE_GID_QUERY', port(1), 40);
  expect(truncated, Status.MORE_ENTRIES);
  assert.is(truncated.output.length, 32);
  assert.equal(s.WvPkeyList.decode(rig.ioctl('DEVICE_PKEY_QUERY', port(1)).output), [0xffff]);
  for (const name of ['DEVICE_PORT_QUERY', 'DEVICE_GID_QUERY', 'DEVICE_PKEY_QUERY'] as const) {
    for (const number of [0, 2, 255]) expect(rig.ioctl(name, port(number)), Status.INVALID_PORT_HANDLE, name);
  }
});

test('K5, K6: a removed interface returns FILE_FORCED_CLOSED, its objects can still be freed, and others work', () => {
  const rig = new KernelRig();
  const { device, pd, cq, qp } = rig.queuePair();
  const lo = rig.kernel.hcaDriver.guids()[0]!;
  const wait = rig.ioctl('DEVICE_NOTIFY', s.WvIoId.encode({ id: device, data: 1 }), 4);
  const eth = rig.network.list.pop()!;
  rig.kernel.ports.refresh(true);
  expect(wait, Status.DEVICE_REMOVED);
  expect(rig.ioctl('DEVICE_QUERY', rig.id(device)), Status.FILE_FORCED_CLOSED);
  expect(rig.ioctl('PD_ALLOCATE', s.WvIoId.encode({ id: device })), Status.FILE_FORCED_CLOSED);
  expect(rig.ioctl('DEVICE_OPEN', s.WvIoDeviceOpen.encode({ guid: ethGuid })), Status.NO_SUCH_DEVICE);
  assert.ok(rig.device(lo));
  // The device is added again, as a new device with the same GUID, while the old instance is still open.
  rig.network.list.push(eth);
  rig.kernel.ports.refresh(true);
  assert.ok(rig.device());
  for (const [name, id] of [
    ['QP_DESTROY', qp],
    ['CQ_DESTROY', cq],
    ['PD_DEALLOCATE', pd],
    ['DEVICE_CLOSE', device],
  ] as const) {
    expect(rig.ioctl(name, rig.id(id)), Status.SUCCESS, name);
  }
  sound(rig);
});

test('DEVICE_NOTIFY pends, completes once per event, accumulates in between, and can be cancelled', () => {
  const rig = new KernelRig();
  const id = rig.device();
  const notify = (data = 1) => rig.ioctl('DEVICE_NOTIFY', s.WvIoId.encode({ id, data }), 4);
  expect(notify(2), Status.INVALID_PORT_HANDLE);
  const [first, second] = [notify(), notify()];
  expect(first, Status.PENDING);
  rig.network.list[2] = hostInterface('eth0', 4, ['192.0.2.3/24']);
  rig.kernel.ports.refresh(true);
  assert.is(s.WvIoEventFlags.decode(first.output).flags, WvEvent.ADDRESS);
  expect(second, Status.PENDING);
  expect(rig.ioctl('DEVICE_CANCEL', rig.id(id)), Status.SUCCESS);
  expect(second, Status.CANCELED);
  rig.network.list[2] = hostInterface('eth0', 4, ['192.0.2.3/24'], { up: false });
  rig.kernel.ports.refresh(true);
  rig.network.list[2] = hostInterface('eth0', 4, ['192.0.2.4/24'], { up: false });
  rig.kernel.ports.refresh(true);
  assert.is(s.WvIoEventFlags.decode(notify().output).flags, WvEvent.STATE | WvEvent.ADDRESS);
  const third = notify();
  third.cancel();
  expect(third, Status.CANCELED);
  sound(rig);
});

// ── Ids, references, cleanup ────────────────────────────────────────────────────────────────────────────────

test('K8: a stale id never refers to another object', () => {
  const rig = new KernelRig();
  const device = rig.device();
  const first = rig.pd(device);
  rig.ioctl('PD_DEALLOCATE', rig.id(first));
  const second = rig.pd(device);
  assert.is.not(first, second);
  expect(rig.ioctl('PD_DEALLOCATE', rig.id(first)), Status.NOT_FOUND);
  expect(rig.ioctl('PD_DEALLOCATE', rig.id(second)), Status.SUCCESS);
});

test('an object table: generations, reuse of indexes, limit, invalid ids', () => {
  const table = new ObjectTable<string>(2);
  const a = table.add('a');
  table.add('b');
  assert.ok(table.full);
  assert.is(table.delete(a), 'a');
  const c = table.add('c');
  assert.is(c % 2 ** 20, a % 2 ** 20, 'the place is used again');
  assert.is(table.get(a), undefined);
  assert.is(table.delete(a), undefined);
  assert.equal(
    table.entries().map(([, value]) => value),
    ['c', 'b'],
  );
  for (const id of [0n, -1n, 1n << 63n, 0xffff_ffff_ffff_ffffn]) assert.is(table.get(idOf(id)), undefined);
});

test('ids of one file are invalid in another', () => {
  const rig = new KernelRig();
  const device = rig.device();
  const other = rig.open('\\\\.\\WinVerbs').answer!.information;
  expect(rig.ioctl('DEVICE_QUERY', rig.id(device), 1024, other), Status.NO_SUCH_DEVICE);
});

test('objects in use are not destroyed, and destruction does not cascade', () => {
  const rig = new KernelRig();
  const { device, pd, cq, qp } = rig.queuePair();
  const order = [
    ['QP_DESTROY', qp],
    ['CQ_DESTROY', cq],
    ['PD_DEALLOCATE', pd],
    ['DEVICE_CLOSE', device],
  ] as const;
  for (const [name, id] of order.slice(1)) expect(rig.ioctl(name, rig.id(id)), Status.DEVICE_BUSY, name);
  assert.equal(rig.hca.objectCounts(), { pd: 1, mr: 0, mw: 0, cq: 1, qp: 1, srq: 0, ring: 0, range: 0 });
  for (const [name, id] of order) expect(rig.ioctl(name, rig.id(id)), Status.SUCCESS, name);
  assert.equal(rig.hca.objectCounts(), { pd: 0, mr: 0, mw: 0, cq: 0, qp: 0, srq: 0, ring: 0, range: 0 });
  sound(rig);
});

test('closing a file destroys all of its objects in order, and completes all pending requests', () => {
  const rig = new KernelRig();
  const { device, pd, cq, qp } = rig.queuePair();
  rig.ioctl('MW_ALLOCATE', s.WvIoId.encode({ id: pd }));
  rig.ioctl(
    'MEMORY_REGISTER',
    s.WvIoMemoryRegister.encode({ id: pd, address: 4096n, bufferLength: 9n, accessFlags: 8 }),
    8,
  );
  const waits = [
    rig.ioctl('CQ_NOTIFY', s.WvIoId.encode({ id: cq, data: 1 }), 0),
    rig.ioctl('DEVICE_NOTIFY', s.WvIoId.encode({ id: device, data: 1 }), 4),
  ];
  const listener = rig.listener();
  const queued = rig.endpoint();
  waits.push(rig.getRequest(listener.id, queued));
  const active = rig.endpoint();
  rig.bind(active);
  rig.route(active);
  waits.push(rig.connect(active, qp), rig.notify(active));
  for (const wait of waits) expect(wait, Status.PENDING);
  expect(rig.close(), Status.SUCCESS);
  for (const wait of waits) expect(wait, Status.CANCELED);
  assert.equal(rig.hca.objectCounts(), { pd: 0, mr: 0, mw: 0, cq: 0, qp: 0, srq: 0, ring: 0, range: 0 });
  assert.is(rig.hca.claims.size, 0);
  assert.ok(listener.control.closed);
  assert.equal(rig.cm.connections[0]!.calls, ['abandon']);
  assert.is(rig.kernel.io.pendingRequests, 0);
  sound(rig);
});

test('the end of the channel closes every file and is reported once', () => {
  const rig = new KernelRig();
  rig.queuePair();
  rig.file = rig.open('\\\\.\\WinVerbs').answer!.information;
  rig.queuePair();
  let ends = 0;
  rig.kernel.io.onChannelClosed = () => {
    ends++;
    rig.kernel.close();
  };
  rig.request({ major: ChannelMajor.close, fileId: 0, slot: -1 });
  assert.is(ends, 1);
  assert.is(rig.kernel.io.openFiles, 0);
  assert.equal(rig.hca.objectCounts(), { pd: 0, mr: 0, mw: 0, cq: 0, qp: 0, srq: 0, ring: 0, range: 0 });
  assert.ok(rig.cm.closed && rig.hca.closed);
  sound(rig);
});

test('cancelling a completed or unknown request has no effect', () => {
  const rig = new KernelRig();
  const done = rig.ioctl('GUID_QUERY', nothing, 64);
  done.cancel();
  rig.request({ major: ChannelMajor.cancel, slot: 99, serial: 1 });
  expect(done, Status.SUCCESS);
  sound(rig);
});

test('exceptions of a driver are counted, and its caller gets INTERNAL_ERROR', () => {
  const rig = new KernelRig();
  const device = rig.device();
  rig.hca.allocatePd = () => {
    throw new Error('broken');
  };
  expect(rig.ioctl('PD_ALLOCATE', s.WvIoId.encode({ id: device })), Status.INTERNAL_ERROR);
  assert.is(rig.faults.length, 1);
  assert.is(IoctlCode.PD_ALLOCATE, 0x003b_e02c);
});

test.run();
