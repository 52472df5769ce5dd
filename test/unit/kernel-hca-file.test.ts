// The file of an HCA: its verbs as IOCTLs, for user mode and kernel mode, with its own ids and references.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  FaultsCode,
  HcaFileCode,
  type HcaFileName,
  hcaFileTable,
  IoctlCode,
  ioctlTable,
} from '../../kernel-bridge/ioctl/codes.js';
import { WvEvent } from '../../kernel-bridge/ioctl/constants.js';
import {
  guidText,
  hcaFileName,
  IbCaAttr,
  IbIoCaModify,
  IbIoPortModify,
  IbPortAttr,
} from '../../kernel-bridge/ioctl/hca-file.js';
import { Status, statusName } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { FileObject } from '../../kernel-bridge/kernel/io-manager/device-object.js';
import { ethGuid, hostInterface, KernelRig, type Submitted, sound } from '../helpers/kernel-rig.js';

const name = ({ status }: { status: number }): string => statusName(status);

/** A rig with the file of eth0's HCA. */
function onHca(): KernelRig {
  const rig = new KernelRig();
  rig.close();
  rig.file = opened(rig);
  return rig;
}

function opened(rig: KernelRig, path = hcaFileName(ethGuid)): number {
  const file = rig.open(path);
  assert.is(name(file), 'SUCCESS');
  return file.answer!.information;
}

const own = (rig: KernelRig, code: HcaFileName, input: Uint8Array, outputLength = 0): Submitted =>
  rig.control(HcaFileCode[code], input, outputLength);
const portEvent = (rig: KernelRig, id: bigint, data = 1) =>
  rig.ioctl('DEVICE_NOTIFY', s.WvIoId.encode({ id, data }), 4);
const fatalEvent = (rig: KernelRig, id: bigint) => own(rig, 'CA_FATAL_EVENT', rig.id(id));
const devicesReferences = (rig: KernelRig): number => rig.kernel.hcaDriver.find(ethGuid)!.references.users;

function change(rig: KernelRig, address: string, up = true): void {
  rig.network.list[2] = hostInterface('eth0', 4, [address], { up });
  rig.kernel.ports.refresh(true);
}

function fault(rig: KernelRig, code: number): void {
  const file = rig.open('\\\\.\\NetworkDirectFaults').answer!.information;
  assert.is(name(rig.control(code, s.WvIoGuid.encode({ guid: ethGuid }), 0, file)), 'SUCCESS');
  rig.close(file);
}

test('its codes are distinct buffered control codes with read and write access', () => {
  assert.equal(HcaFileCode, {
    CA_QUERY: 0x003be400,
    CA_PORT_QUERY: 0x003be404,
    CA_MODIFY: 0x003be408,
    CA_PORT_MODIFY: 0x003be40c,
    CA_FATAL_EVENT: 0x003be410,
    CA_PORT_EVENT: 0x003be414,
  });
  assert.is(hcaFileTable.filter(({ code }) => ioctlTable.some((row) => row.code === code)).length, 0);
  assert.is(guidText(0xabn), '00000000000000ab');
});

test('every verb works there, ids belong to the file, and nothing is left when it closes', () => {
  const rig = onHca();
  const { device, pd, cq, qp } = rig.queuePair();
  assert.is(name(rig.ioctl('QP_QUERY', rig.id(qp))), 'SUCCESS');
  assert.is(name(rig.ioctl('DEVICE_CLOSE', rig.id(device))), 'DEVICE_BUSY');
  const other = opened(rig, `\\\\.\\ibal\\${guidText(ethGuid).toUpperCase()}`);
  const winVerbs = opened(rig, '\\\\.\\WinVerbs');
  for (const file of [other, winVerbs]) {
    assert.is(name(rig.ioctl('PD_ALLOCATE', s.WvIoId.encode({ id: device }), 64, file)), 'NO_SUCH_DEVICE');
    assert.is(name(rig.ioctl('QP_QUERY', rig.id(qp), 1024, file)), 'NOT_FOUND');
    assert.is(name(rig.ioctl('CQ_DESTROY', rig.id(cq), 0, file)), 'NOT_FOUND');
  }
  assert.ok(pd > 0n);
  assert.is(name(rig.close()), 'SUCCESS');
  assert.equal([rig.hca.qps.size, rig.hca.cqs.size, rig.hca.pds.size], [0, 0, 0]);
  sound(rig);
});

test('it rejects IOCTLs that are not verbs, and WinVerbs rejects those of an HCA’s file', () => {
  const rig = onHca();
  for (const row of ioctlTable) {
    if (!/^(GUID_QUERY|LIBRARY_QUERY|EP_)/.test(row.name)) continue;
    assert.is(name(rig.control(row.code, new Uint8Array(1024), 1024)), 'INVALID_DEVICE_REQUEST', row.name);
  }
  assert.is(name(rig.control(0x003be418, new Uint8Array(64), 64)), 'PROCEDURE_NOT_FOUND');
  const winVerbs = opened(rig, '\\\\.\\WinVerbs');
  for (const { code } of hcaFileTable) {
    assert.is(name(rig.control(code, new Uint8Array(64), 64, winVerbs)), 'PROCEDURE_NOT_FOUND');
  }
  assert.is(name(rig.open(`${hcaFileName(ethGuid)}\\x`)), 'NO_SUCH_DEVICE');
  sound(rig);
});

test('the file determines the HCA, and a GUID must match it', () => {
  const rig = onHca();
  const open = (guid: bigint) => rig.ioctl('DEVICE_OPEN', s.WvIoDeviceOpen.encode({ guid }));
  assert.equal([open(0n), open(ethGuid), open(1n)].map(name), ['SUCCESS', 'SUCCESS', 'NO_SUCH_DEVICE']);
  const loGuid = rig.kernel.hcaDriver.guids()[0]!;
  assert.is(name(open(loGuid)), 'NO_SUCH_DEVICE', 'another HCA that is there');
});

test('CA_QUERY and CA_PORT_QUERY: complete output, truncated output with the required size, or too small even for that', () => {
  const rig = onHca();
  const id = rig.device();
  const port = s.WvIoDevicePortQuery.encode({ id, portNumber: 1 });
  for (const [code, input, head] of [
    ['CA_QUERY', rig.id(id), IbCaAttr],
    ['CA_PORT_QUERY', port, IbPortAttr],
  ] as const) {
    assert.is(name(own(rig, code, input, 3)), 'BUFFER_TOO_SMALL');
    const probe = own(rig, code, input, 4);
    assert.is(name(probe), 'BUFFER_OVERFLOW');
    const size = new DataView(probe.output.buffer).getUint32(0, true);
    const whole = own(rig, code, input, size);
    assert.is(name(whole), 'SUCCESS');
    assert.is(head.decode(whole.output).size, size);
    assert.is(whole.output.length, size);
    const part = own(rig, code, input, size - 1);
    assert.is(name(part), 'BUFFER_OVERFLOW');
    assert.equal(part.output, whole.output.subarray(0, size - 1));
  }
  const wrong = s.WvIoDevicePortQuery.encode({ id, portNumber: 2 });
  assert.is(name(own(rig, 'CA_PORT_QUERY', wrong, 1024)), 'INVALID_PORT_HANDLE');
});

test('user mode cannot modify; kernel mode can, with the same IOCTL', () => {
  const rig = onHca();
  const device = rig.device();
  const modify = (id: bigint) => IbIoCaModify.encode({ id, flags: 1, systemImageGuid: 0x77n });
  const port = (id: bigint) => IbIoPortModify.encode({ id, portNumber: 1, flags: 1, setCapabilities: 0x10 });
  assert.is(name(own(rig, 'CA_MODIFY', modify(device))), 'ACCESS_DENIED');
  assert.is(name(own(rig, 'CA_PORT_MODIFY', port(device))), 'ACCESS_DENIED');

  const { io } = rig.kernel;
  const file = io.openFile(hcaFileName(ethGuid));
  assert.instance(file, FileObject);
  const kernel = file as FileObject;
  const request = (code: number, input: Uint8Array, outputLength = 0) => {
    const ended = { status: Status.PENDING as number, output: new Uint8Array(0) };
    io.request(kernel, code, input, outputLength, (status, output) =>
      Object.assign(ended, { status, output: output.slice() }),
    );
    io.work.run();
    return ended;
  };
  const instance = request(IoctlCode.DEVICE_OPEN, s.WvIoDeviceOpen.encode({}), 16);
  const { id } = s.WvIoId.decode(instance.output);
  assert.is(name(request(HcaFileCode.CA_MODIFY, modify(id))), 'SUCCESS');
  assert.is(name(request(HcaFileCode.CA_PORT_MODIFY, port(id))), 'SUCCESS');
  const asked = own(rig, 'CA_QUERY', rig.id(device), 4096);
  assert.is(IbCaAttr.decode(asked.output).attributes.systemImageGuid, 0x77n);
  const askedPort = own(
    rig,
    'CA_PORT_QUERY',
    s.WvIoDevicePortQuery.encode({ id: device, portNumber: 1 }),
    4096,
  );
  assert.is(IbPortAttr.decode(askedPort.output).capabilities, 0x10);

  const waiting = request(HcaFileCode.CA_FATAL_EVENT, s.WvIoObject.encode({ id }));
  assert.is(name(waiting), 'PENDING');
  // Requests of the channel cannot refer to a kernel client's file.
  assert.is(name(rig.ioctl('DEVICE_QUERY', rig.id(id), 1024, kernel.id)), 'FILE_CLOSED');
  assert.is(name(rig.close(kernel.id)), 'FILE_CLOSED');
  io.closeFile(kernel);
  assert.is(name(waiting), 'CANCELED');
  assert.throws(() => io.closeFile(kernel), /closed twice/);
  assert.throws(() => request(HcaFileCode.CA_FATAL_EVENT, s.WvIoObject.encode({ id })), /closed file/);
  // The capability was released with its instance.
  const after = own(rig, 'CA_PORT_QUERY', s.WvIoDevicePortQuery.encode({ id: device, portNumber: 1 }), 4096);
  assert.is(IbPortAttr.decode(after.output).capabilities, 0);
  sound(rig);
});

test('events: one request per event, each can be cancelled, DEVICE_CANCEL and the close cancel all', () => {
  const rig = onHca();
  const id = rig.device();
  const [first, second, third] = [portEvent(rig, id), portEvent(rig, id), portEvent(rig, id)];
  change(rig, '192.0.2.3/24');
  assert.equal([first, second, third].map(name), ['SUCCESS', 'PENDING', 'PENDING']);
  assert.is(s.WvIoEventFlags.decode(first.output).flags, WvEvent.ADDRESS);
  second.cancel();
  assert.is(name(second), 'CANCELED');
  change(rig, '192.0.2.3/24', false);
  assert.is(name(third), 'SUCCESS');
  change(rig, '192.0.2.3/24', true);
  assert.is(name(portEvent(rig, id)), 'SUCCESS', 'an event without a waiter is kept');
  assert.is(name(portEvent(rig, id, 2)), 'INVALID_PORT_HANDLE');

  const fatal = [fatalEvent(rig, id), fatalEvent(rig, id)];
  const port = portEvent(rig, id);
  assert.is(name(rig.ioctl('DEVICE_CANCEL', rig.id(id))), 'SUCCESS');
  assert.equal([...fatal, port].map(name), ['CANCELED', 'CANCELED', 'CANCELED']);
  const [one, two] = [fatalEvent(rig, id), fatalEvent(rig, id)];
  fault(rig, FaultsCode.FATAL);
  assert.equal([one, two].map(name), ['SUCCESS', 'PENDING']);
  assert.is(name(own(rig, 'CA_QUERY', rig.id(id), 1024)), 'FILE_FORCED_CLOSED');
  assert.is(name(rig.ioctl('DEVICE_CLOSE', rig.id(id))), 'SUCCESS');
  assert.is(name(two), 'CANCELED');
  sound(rig);
});

test('a file references its HCA: removal waits for it, its requests end in DEVICE_REMOVED, and new ones are rejected', () => {
  const rig = onHca();
  const id = rig.device();
  const cq = rig.cq(id);
  const waits = [
    portEvent(rig, id),
    fatalEvent(rig, id),
    rig.ioctl('CQ_NOTIFY', s.WvIoId.encode({ id: cq, data: 1 }), 0),
  ];
  assert.equal(waits.map(name), ['PENDING', 'PENDING', 'PENDING']);
  fault(rig, FaultsCode.UNPLUG);
  assert.equal(waits.map(name), ['DEVICE_REMOVED', 'DEVICE_REMOVED', 'DEVICE_REMOVED']);
  assert.equal(rig.kernel.hcaDriver.counters, { devices: 1 + 1, removing: 1 });
  assert.is(name(portEvent(rig, id)), 'DEVICE_REMOVED');
  assert.is(name(rig.ioctl('DEVICE_OPEN', s.WvIoDeviceOpen.encode({}))), 'DEVICE_REMOVED');
  assert.is(name(rig.open(hcaFileName(ethGuid))), 'NO_SUCH_DEVICE');
  fault(rig, FaultsCode.PLUG);
  // The name refers to the new HCA, but the old file still refers to the old one.
  const fresh = opened(rig);
  assert.is(name(rig.ioctl('DEVICE_OPEN', s.WvIoDeviceOpen.encode({}), 64, fresh)), 'SUCCESS');
  assert.is(name(rig.ioctl('DEVICE_OPEN', s.WvIoDeviceOpen.encode({}))), 'DEVICE_REMOVED');
  for (const request of [rig.ioctl('CQ_DESTROY', rig.id(cq), 0), rig.ioctl('DEVICE_CLOSE', rig.id(id), 0)]) {
    assert.is(name(request), 'SUCCESS');
  }
  assert.is(rig.kernel.hcaDriver.counters.removing, 1, 'the file itself holds the device');
  rig.close();
  assert.is(rig.kernel.hcaDriver.counters.removing, 0);
  sound(rig);
});

test('the filter’s instances reference the HCA’s file until they are closed, by DEVICE_CLOSE or with their own file', () => {
  const rig = new KernelRig();
  const { io } = rig.kernel;
  const device = rig.device();
  assert.equal([io.openFiles, io.openKernelFiles, devicesReferences(rig)], [1, 1, 2]);
  rig.device();
  assert.equal([io.openKernelFiles, devicesReferences(rig)], [2, 4]);
  rig.ioctl('DEVICE_CLOSE', rig.id(device));
  assert.equal([io.openKernelFiles, devicesReferences(rig)], [1, 2]);
  // An open that fails after opening the file releases it.
  fault(rig, FaultsCode.FATAL);
  assert.is(name(rig.ioctl('DEVICE_OPEN', s.WvIoDeviceOpen.encode({ guid: ethGuid }))), 'FILE_FORCED_CLOSED');
  assert.equal([io.openKernelFiles, devicesReferences(rig)], [1, 2]);
  rig.close();
  assert.equal([io.openFiles, io.openKernelFiles, devicesReferences(rig)], [0, 0, 0]);
  sound(rig);
});

test.run();
