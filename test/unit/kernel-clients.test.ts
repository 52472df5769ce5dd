// Kernel clients of the verbs: references, contexts, events by request or callback, pending requests.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import type { UmvBuffer, UserVerbs, UvpHandle } from '../../kernel-bridge/door/user-verbs.js';
import { CqEventType, QpEventType, SrqEventType } from '../../kernel-bridge/hca/soft-hca-binding.js';
import { FaultsCode, IoctlCode, ioctlRow, SettingsCode } from '../../kernel-bridge/ioctl/codes.js';
import { QpType, WvAccess, WvEvent } from '../../kernel-bridge/ioctl/constants.js';
import {
  hcaFileName,
  ModifyCaFlag,
  ModifyPortFlag,
  PortCapability,
} from '../../kernel-bridge/ioctl/hca-file.js';
import {
  CaProviderOut,
  CqProviderIn,
  PROVIDER_ABI,
  QpProviderIn,
  SrqProviderIn,
} from '../../kernel-bridge/ioctl/provider-data.js';
import { gidOfAddress } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status, statusName } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import type { IbMemory } from '../../kernel-bridge/kernel/drivers/kernel-memory.js';
import { KernelVerbs } from '../../kernel-bridge/kernel/drivers/kernel-verbs.js';
import { Call } from '../../kernel-bridge/kernel/filter/call.js';
import { WvFile } from '../../kernel-bridge/kernel/filter/file-objects.js';
import { ibCloseAl, ibOpenAl } from '../../kernel-bridge/kernel/hca-driver/al.js';
import {
  ciModifyCa,
  ciModifyPkeys,
  ciModifyPort,
} from '../../kernel-bridge/kernel/hca-driver/ci-attributes.js';
import { ciCloseCa } from '../../kernel-bridge/kernel/hca-driver/ci-ca.js';
import { ciAttachMcast } from '../../kernel-bridge/kernel/hca-driver/ci-datagram.js';
import {
  ciCancelQpEvents,
  ciGetCaPortEvent,
  ciGetQpEvent,
} from '../../kernel-bridge/kernel/hca-driver/ci-events.js';
import {
  ciAllocatePd,
  ciDeallocatePd,
  ciDeregisterMr,
  ciRegisterMr,
  largeRegistration,
} from '../../kernel-bridge/kernel/hca-driver/ci-memory.js';
import {
  ciCreateCq,
  ciCreateQp,
  ciDestroyCq,
  ciDestroyQp,
} from '../../kernel-bridge/kernel/hca-driver/ci-queues.js';
import { ciCreateSrq } from '../../kernel-bridge/kernel/hca-driver/ci-srq.js';
import type {
  IbCa,
  IbCq,
  IbCqDispatch,
  IbMr,
  IbPd,
  IbQp,
  IbQpDispatch,
  IbSrq,
  IbSrqDispatch,
} from '../../kernel-bridge/kernel/hca-driver/ib-objects.js';
import {
  DeviceObject,
  DriverObject,
  type FileObject,
} from '../../kernel-bridge/kernel/io-manager/device-object.js';
import { Irp, IrpMajor } from '../../kernel-bridge/kernel/io-manager/irp.js';
import { assertPassive, isPassive } from '../../kernel-bridge/kernel/io-manager/irql.js';
import { openAl, openCaOf, openedCa, VerbCall } from '../helpers/direct-verbs.js';
import { ethGuid, KernelRig, type Submitted } from '../helpers/kernel-rig.js';

const name = ({ status }: { status: number }): string => statusName(status);
const udata = (input: Uint8Array = new Uint8Array(0)) => ({
  input,
  output: new Uint8Array(0),
  outputSize: 0,
});
const pdOf = (ca: IbCa): IbPd => new VerbCall<IbPd>((irp) => ciAllocatePd(ca, udata(), irp)).information!;
const portEvent = (ca: IbCa) => new VerbCall<number>((irp) => ciGetCaPortEvent(ca, 1, irp));

function cqOf(ca: IbCa, dispatch?: IbCqDispatch<undefined>): IbCq {
  const ring = CqProviderIn.encode({ ringAddress: 0x1000n, ringBytes: 4096, entries: 16 });
  return new VerbCall<IbCq>((irp) => ciCreateCq(ca, 16, undefined, dispatch, udata(ring), irp)).information!;
}

function qpOf(pd: IbPd, type: number, dispatch?: IbQpDispatch<string>, srq?: IbSrq): IbQp {
  const ring = QpProviderIn.encode({
    ringAddress: 0x2000n,
    ringBytes: 8192,
    sendEntries: 16,
    sendStride: 128,
    receiveEntries: srq ? 0 : 16,
    receiveStride: srq ? 0 : 64,
    token: 7,
  });
  const create = s.WvIoQpCreate.decode(new Uint8Array(s.WvIoQpCreate.size));
  const cq = cqOf(pd.ca);
  return new VerbCall<IbQp>((irp) =>
    ciCreateQp(
      pd,
      cq,
      cq,
      srq,
      { ...create, qpType: type, sendDepth: 8 },
      'mine',
      dispatch,
      udata(ring),
      irp,
    ),
  ).information!;
}

function fault(rig: KernelRig, code: number): Submitted {
  const file = rig.open('\\\\.\\NetworkDirectFaults').answer!.information;
  const asked = rig.control(code, s.WvIoGuid.encode({ guid: ethGuid }), 0, file);
  rig.close(file);
  return asked;
}

test('an open access layer references the client’s device, which references its driver, until it is closed', () => {
  const rig = new KernelRig();
  const driver = openAl(rig.kernel).client as DeviceObject['driver'];
  const device = new DeviceObject(driver, '\\Device\\client', undefined);
  const calls: string[] = [];
  const contain = (code: () => void): void => rig.kernel.io.contain(code);
  const { al } = ibOpenAl(device, contain);
  const portEvents = { portEvent: (_ca: IbCa, context: unknown) => calls.push(String(context)) };
  const ca = openCaOf(rig.kernel, ethGuid, portEvents, 'kernel', al, 'mine').information!;
  const gone: string[] = [];
  device.remove(() => gone.push('device'));
  assert.is(ibCloseAl(al!), Status.DEVICE_BUSY);
  assert.is(ibOpenAl(device, contain).status, Status.DEVICE_REMOVED);
  const modify = { setCapabilities: PortCapability.CM_SUP };
  new VerbCall<number>((irp) => ciModifyPort(ca, 1, ModifyPortFlag.SET_CAPABILITIES, modify, irp));
  assert.equal(calls, ['mine'], 'its call-backs still come');
  const beside = portEvent(ca);
  assert.is(name(beside), 'PENDING', 'an event delivered to a callback is not kept for a request');
  assert.equal(gone, []);
  assert.is(name(new VerbCall<number>((irp) => ciCloseCa(ca, irp))), 'SUCCESS');
  assert.is(name(openCaOf(rig.kernel, ethGuid, {}, 'kernel', al)), 'SUCCESS', 'the layer is still open');
  const [second] = rig.kernel.hcaDriver.find(ethGuid)!.extension.instances;
  new VerbCall<number>((irp) => ciCloseCa(second!, irp));
  assert.is(ibCloseAl(al!), Status.SUCCESS);
  assert.is(ibCloseAl(al!), Status.SUCCESS, 'once more: nothing is released twice');
  assert.equal(gone, ['device']);
  assert.is(name(openCaOf(rig.kernel, ethGuid, {}, 'kernel', al)), 'INVALID_HANDLE');
  assert.equal(rig.faults, []);
});

test('two clients: a capability belongs to one, and both are notified of each change of the port', () => {
  const rig = new KernelRig();
  const [one, two] = [openedCa(rig), openedCa(rig)];
  const modify = (ca: IbCa, flags: number) =>
    new VerbCall<number>((irp) =>
      ciModifyPort(ca, 1, flags, { setCapabilities: 2, clearCapabilities: 2, initType: 3 }, irp),
    );
  const { SET_CAPABILITIES, CLEAR_CAPABILITIES, INIT_TYPE } = ModifyPortFlag;
  assert.is(name(modify(one, SET_CAPABILITIES)), 'SUCCESS');
  assert.is(name(modify(two, SET_CAPABILITIES)), 'FILE_LOCK_CONFLICT');
  assert.is(name(modify(two, CLEAR_CAPABILITIES)), 'FILE_LOCK_CONFLICT');
  assert.is(portEvent(two).information, WvEvent.MANAGEMENT);
  assert.is(name(portEvent(two)), 'PENDING', 'a refusal is not an event');
  const [mine, others] = [portEvent(one), portEvent(two)];
  assert.equal([mine, others].map(name), ['SUCCESS', 'PENDING'], 'the first event of the first client');
  assert.is(name(modify(one, SET_CAPABILITIES)), 'SUCCESS');
  assert.is(name(others), 'PENDING', 'nothing has changed');
  assert.is(name(modify(two, INIT_TYPE)), 'SUCCESS');
  const guid = { systemImageGuid: 7n };
  new VerbCall<number>((irp) => ciModifyCa(two, ModifyCaFlag.SYSTEM_IMAGE_GUID, guid, irp));
  assert.is(name(others), 'SUCCESS');
  const last = portEvent(two);
  assert.is(name(last), 'PENDING');
  new VerbCall<number>((irp) => ciCloseCa(one, irp));
  assert.is(name(last), 'SUCCESS', 'a closed instance gives its capabilities up');
  assert.is(name(modify(two, SET_CAPABILITIES)), 'SUCCESS');
});

test('a new P_Key table raises a PARTITION event, and the port uses it', () => {
  const rig = new KernelRig();
  const ca = openedCa(rig);
  const modify = (pkeys: number[], mode: 'user' | 'kernel' = 'kernel') =>
    new VerbCall<number>((irp) => ciModifyPkeys(ca, 1, pkeys, irp), mode);
  for (const wrong of [[], [0x8000], [0x10000], [1.5], new Array<number>(17).fill(0xffff)])
    assert.is(name(modify(wrong)), 'INVALID_PARAMETER', String(wrong));
  assert.is(name(modify([0x8001], 'user')), 'ACCESS_DENIED');
  const asked = modify([0xffff, 0x8001]);
  assert.is(name(asked), 'PENDING');
  rig.kernel.io.work.run();
  assert.is(name(asked), 'SUCCESS');
  assert.is(portEvent(ca).information, WvEvent.PARTITION);
  assert.equal([...ca.hca.port.pkeys], [0xffff, 0x8001]);
  modify([0xffff, 0x8001]);
  rig.kernel.io.work.run();
  assert.is(name(portEvent(ca)), 'PENDING', 'the same table is not an event');
});

/** A driver may pass any object as its table of callbacks. */
class BrokenTable {
  get fatalEvent(): never {
    throw new Error('no such call-back');
  }
  get portEvent(): never {
    throw new Error('no such call-back');
  }
}

test('clients without callbacks, or with a broken table, do not block the events of others', () => {
  const rig = new KernelRig();
  const heard: unknown[] = [];
  const broken = openedCa(rig, new BrokenTable());
  const none = openedCa(rig);
  const last = openedCa(rig, {
    portEvent: (_ca, _context, port, event) => heard.push([port, event, isPassive()]),
    fatalEvent: () => heard.push(['fatal', isPassive()]),
  });
  assert.equal([...last.hca.instances], [broken, none, last]);
  const program = rig.ioctl('DEVICE_NOTIFY', s.WvIoId.encode({ id: rig.device(), data: 1 }), 4);
  assert.is(name(program), 'PENDING');
  const tables = new TextEncoder().encode(JSON.stringify([0xffff, 0x8001]));
  const settings = rig.open('\\\\.\\NetworkDirectSettings').answer!.information;
  assert.is(name(rig.control(SettingsCode.SET_PKEYS, tables, 0, settings)), 'SUCCESS');
  assert.equal(heard.splice(0), [[1, WvEvent.PARTITION, false]], 'at DISPATCH_LEVEL, though a scan is not');
  assert.is(name(program), 'SUCCESS');
  assert.is(portEvent(none).information, WvEvent.PARTITION);
  fault(rig, FaultsCode.FATAL);
  assert.equal(heard, [['fatal', false]]);
  assert.ok(none.fatalUnreported, 'kept for a request');
  assert.equal(rig.faults.length, 2, 'a fault for each event that the broken table has lost');
});

test('queues may be created without callbacks, with events by request', () => {
  const rig = new KernelRig();
  const ca = openedCa(rig);
  const pd = pdOf(ca);
  assert.throws(
    () =>
      cqOf(ca, {
        get compEvent(): never {
          throw new Error('no such call-back');
        },
      }),
    /no such call-back/,
  );
  assert.equal([rig.hca.cqs.size, ca.resources.users], [0, 1], 'nothing was created');
  const cq = cqOf(ca);
  const qp = qpOf(pd, QpType.RC);
  const wait = new VerbCall<number>((irp) => ciGetQpEvent(qp, irp));
  rig.hca.events.push({ type: 'qp', qp: qp.handle, token: 7, event: QpEventType.fatal, reason: 0 });
  rig.hca.events.push({ type: 'cq', cq: cq.handle, event: CqEventType.overrun });
  rig.events();
  assert.is(wait.information, QpEventType.fatal);
  assert.ok(cq.dead);
  const { sendCq } = qp;
  const ended = [
    new VerbCall<number>((irp) => ciDestroyQp(qp, irp)),
    new VerbCall<number>((irp) => ciDestroyCq(cq, irp)),
    new VerbCall<number>((irp) => ciDestroyCq(sendCq, irp)),
    new VerbCall<number>((irp) => ciDeallocatePd(pd, irp)),
    new VerbCall<number>((irp) => ciCloseCa(ca, irp)),
  ];
  assert.equal(new Set(ended.map(name)), new Set(['SUCCESS']));
  assert.equal(rig.faults, []);
});

test('events of a queue pair: by request in order, or by callback with the client’s context', () => {
  const rig = new KernelRig();
  const pd = pdOf(openedCa(rig));
  const reported: unknown[] = [];
  const asyncEvent = (_qp: IbQp, context: string, event: number, reason: number): void => {
    assert.throws(() => assertPassive('waiting'), /DISPATCH_LEVEL/);
    reported.push(context, event, reason);
  };
  const [silent, called] = [qpOf(pd, QpType.RC), qpOf(pd, QpType.RC, { asyncEvent })];
  const raise = (qp: IbQp, event: number): void => {
    rig.hca.events.push({ type: 'qp', qp: qp.handle, token: 7, event, reason: 12 });
    rig.events();
  };
  const wait = (qp: IbQp) => new VerbCall<number>((irp) => ciGetQpEvent(qp, irp));
  const { communicationEstablished, sendQueueDrained, fatal } = QpEventType;
  const first = wait(silent);
  for (const event of [communicationEstablished, sendQueueDrained, fatal]) raise(silent, event);
  assert.equal(
    [first, wait(silent), wait(silent)].map(({ information }) => information),
    [communicationEstablished, sendQueueDrained, fatal],
  );
  raise(called, fatal);
  assert.equal(reported, ['mine', fatal, 12]);
  const most = 64;
  for (let n = 0; n < most + 2; n++) raise(silent, n < 2 ? fatal : sendQueueDrained);
  for (let n = 0; n < most; n++)
    assert.is(wait(silent).information, sendQueueDrained, 'the oldest are dropped');
  const beside = wait(called);
  assert.is(name(beside), 'PENDING', 'an event delivered to a callback is not kept');
  raise(called, sendQueueDrained);
  assert.is(beside.information, sendQueueDrained);
  const [cancelled, ended] = [wait(silent), wait(called)];
  ciCancelQpEvents(silent);
  assert.is(name(cancelled), 'CANCELED');
  assert.is(name(new VerbCall<number>((irp) => ciDestroyQp(called, irp))), 'SUCCESS');
  assert.is(name(ended), 'CANCELED');
  const removed = wait(silent);
  fault(rig, FaultsCode.UNPLUG);
  assert.is(name(removed), 'DEVICE_REMOVED');
  assert.equal(rig.faults, []);
});

test('events of a shared receive queue by callback; members are optional', () => {
  const rig = new KernelRig();
  const pd = pdOf(openedCa(rig));
  const reported: string[] = [];
  const create = (dispatch?: IbSrqDispatch<string>): IbSrq => {
    const ring = SrqProviderIn.encode({ ringAddress: 0x3000n, ringBytes: 4096, entries: 16, stride: 48 });
    const size = { maxWr: 16, maxSge: 2, srqLimit: 0 };
    return new VerbCall<IbSrq>((irp) => ciCreateSrq(pd, size, 'mine', dispatch, udata(ring), irp))
      .information!;
  };
  const whole = create({
    limitEvent: (_srq, context) => reported.push(`limit ${context}`),
    lastWqeEvent: (_srq, context, qp) => reported.push(`last ${context} ${qp.qpn}`),
    asyncEvent: (_srq, context, event) => reported.push(`async ${context} ${event}`),
  });
  const none = create({});
  const tableless = create();
  const qp = qpOf(pd, QpType.RC, {}, whole);
  for (const { handle } of [whole, none, tableless]) {
    rig.hca.events.push({ type: 'srq', srq: handle, event: SrqEventType.limit });
    rig.hca.events.push({ type: 'srq', srq: handle, event: SrqEventType.fatal });
  }
  rig.hca.events.push({ type: 'qp', qp: qp.handle, token: 7, event: QpEventType.lastWqe, reason: 0 });
  rig.events();
  assert.equal(reported, ['limit mine', `async mine ${SrqEventType.fatal}`, `last mine ${qp.qpn}`]);
  assert.equal(rig.faults, []);
});

test('slow verbs pend: a large registration and a join complete later, or can be cancelled without effect', () => {
  const rig = new KernelRig();
  const { work } = rig.kernel.io;
  const pd = pdOf(openedCa(rig));
  const register = (length: bigint) =>
    new VerbCall<IbMr>((irp) => ciRegisterMr(pd, 4096n, length, WvAccess.LOCAL_WRITE, irp));
  const small = register(largeRegistration - 1n);
  assert.is(name(small), 'SUCCESS');
  new VerbCall<number>((irp) => ciDeregisterMr(small.information!, irp));
  const [kept, cancelled] = [register(largeRegistration), register(largeRegistration)];
  assert.equal([kept, cancelled].map(name), ['PENDING', 'PENDING']);
  assert.is(rig.hca.mrs.size, 0);
  assert.is(name(new VerbCall<number>((irp) => ciDeallocatePd(pd, irp))), 'DEVICE_BUSY');
  assert.ok(cancelled.irp.cancel());
  work.run();
  assert.equal([kept, cancelled].map(name), ['SUCCESS', 'CANCELED']);
  assert.is(rig.hca.mrs.size, 1);
  new VerbCall<number>((irp) => ciDeregisterMr(kept.information!, irp));

  const qp = qpOf(pd, QpType.UD);
  const gid = gidOfAddress('224.0.0.9');
  const attach = () => new VerbCall<number>((irp) => ciAttachMcast(qp, gid, 0, irp));
  const [first, second, third] = [attach(), attach(), attach()];
  first.irp.cancel();
  work.run();
  assert.equal([first, second, third].map(name), ['CANCELED', 'SUCCESS', 'ADDRESS_ALREADY_EXISTS']);
  assert.is(qp.groups.length, 1);
  const late = attach();
  new VerbCall<number>((irp) => ciDestroyQp(qp, irp));
  work.run();
  assert.is(name(late), 'INVALID_HANDLE');
  assert.is(name(new VerbCall<number>((irp) => ciDeallocatePd(pd, irp))), 'SUCCESS');
  assert.equal(rig.faults, []);
});

test('requests that read the host’s interfaces pend, can be cancelled, and end when the file is closed', () => {
  const rig = new KernelRig();
  const { io } = rig.kernel;
  const file = io.openFile('\\\\.\\WinVerbs') as FileObject;
  const ended: string[] = [];
  const ask = (code: number, input: Uint8Array, output = 1024) =>
    io.request(file, code, input, output, (status) => ended.push(statusName(status)));
  const guid = s.WvIoDeviceOpen.encode({ guid: ethGuid });
  ask(IoctlCode.DEVICE_OPEN, guid).cancel();
  assert.equal(ended, ['CANCELED']);
  ask(IoctlCode.DEVICE_OPEN, guid);
  assert.equal(ended, ['CANCELED'], 'it pends');
  io.work.run();
  assert.equal(ended, ['CANCELED', 'SUCCESS']);
  const before = rig.kernel.hcaDriver.find(ethGuid)!.references.users;
  ask(IoctlCode.DEVICE_OPEN, guid);
  ask(IoctlCode.GUID_QUERY, new Uint8Array(0));
  io.closeFile(file);
  io.work.run();
  assert.equal(ended.slice(2), ['CANCELED', 'CANCELED']);
  assert.ok(rig.kernel.hcaDriver.find(ethGuid)!.references.users < before);
  assert.is(rig.kernel.hcaDriver.find(ethGuid)!.extension.instances.size, 0);
  assert.equal(rig.faults, []);
  assert.is(io.counters.abandonedIrps, 0);
});

test('closing a file with a pending registration leaves nothing behind', () => {
  const rig = new KernelRig();
  const { io } = rig.kernel;
  const file = io.openFile(hcaFileName(ethGuid)) as FileObject;
  const id = (code: number, input: Uint8Array): bigint => {
    let made = 0n;
    io.request(file, code, input, 1024, (_status, _output, information) => {
      made = BigInt(information);
    });
    io.work.run();
    return made;
  };
  const device = id(IoctlCode.DEVICE_OPEN, s.WvIoDeviceOpen.encode({ guid: 0n }));
  const pd = id(IoctlCode.PD_ALLOCATE, s.WvIoId.encode({ id: device }));
  const input = s.WvIoMemoryRegister.encode({ id: pd, address: 4096n, bufferLength: largeRegistration });
  const ended: string[] = [];
  io.request(file, IoctlCode.MEMORY_REGISTER, input, 64, (status) => ended.push(statusName(status)));
  io.closeFile(file);
  io.work.run();
  assert.equal(ended, ['CANCELED']);
  assert.is(rig.kernel.filter.counters.cleanupFailures, 0);
  assert.is(rig.kernel.hcaDriver.find(ethGuid)!.extension.instances.size, 0);
});

test('a kernel client cannot open a file that its driver opens asynchronously; that file is closed again', () => {
  const rig = new KernelRig();
  const { io } = rig.kernel;
  const waiting: Irp[] = [];
  const closed: string[] = [];
  const driver = new DriverObject('\\Driver\\slow', {
    create: (_file, irp) => {
      waiting.push(irp);
      return irp.markPending();
    },
    deviceControl: (_file, irp) => irp.complete(Status.INVALID_DEVICE_REQUEST),
    cleanup: () => closed.push('cleanup'),
    close: () => closed.push('close'),
  });
  const device = new DeviceObject(driver, '\\Device\\slow', undefined);
  io.namespace.add(device);
  let idle = 0;
  driver.onIdle = () => idle++;
  for (const status of [Status.SUCCESS, Status.ACCESS_DENIED]) {
    assert.is(statusName(io.openFile('\\Device\\slow') as number), 'DEVICE_NOT_READY');
    assert.is(driver.openFiles, 1);
    waiting.pop()!.complete(status);
    io.work.run();
    assert.equal([driver.openFiles, device.references.users, io.openKernelFiles], [0, 0, 0]);
  }
  assert.equal(closed, ['cleanup', 'close']);
  assert.is(idle, 2);
  assert.equal(rig.faults, []);
});

test('the end of a driver’s verbs unpins its memory, and nothing more can be posted', () => {
  const rig = new KernelRig();
  const al = openAl(rig.kernel);
  const tables = rig.kernel.filter.openTables(al);
  const pinned = new Set<number>();
  let pins = 0;
  const provider = {
    pinMemory: () => {
      pinned.add(++pins);
      return { pin: pins, address: 4096, detachable: false };
    },
    unpinMemory: ({ pin }: { pin: number }) => void pinned.delete(pin),
    preOpenCa: () => ({}),
    preAllocatePd: () => ({}),
  } as Partial<UserVerbs> as UserVerbs;
  const verbs = new KernelVerbs(tables, provider, () => {});
  const device = rig.kernel.hcaDriver.find(ethGuid)!;
  const ca = new VerbCall<IbCa>((irp) => verbs.ciOpenCa(al, device, undefined, {}, irp)).information!;
  const pd = new VerbCall<IbPd>((irp) => verbs.ciAllocatePd(ca, irp)).information!;
  const register = () =>
    new VerbCall<IbMemory>((irp) => verbs.ciRegisterMr(pd, new Uint8Array(64), WvAccess.LOCAL_WRITE, irp));
  const first = register().information!;
  register();
  assert.is(pinned.size, 2);
  const deregister = () => name(new VerbCall<number>((irp) => verbs.ciDeregisterMr(first, irp)));
  assert.equal([deregister(), deregister()], ['SUCCESS', 'INVALID_HANDLE']);
  assert.is(pinned.size, 1);
  rig.kernel.filter.closeTables(tables);
  verbs.end();
  assert.is(pinned.size, 0);
  assert.is(pd.provider, undefined);
  assert.is(name(new VerbCall<number>((irp) => verbs.ciDeallocatePd(pd, irp))), 'INVALID_HANDLE');
  assert.equal(rig.faults, []);
});

test('PD_CANCEL and QP_CANCEL only end the pending registrations and joins of their object', () => {
  const rig = new KernelRig();
  const { io } = rig.kernel;
  const file = io.openFile(hcaFileName(ethGuid)) as FileObject;
  const ask = (code: number, input: Uint8Array) => {
    const ended = { status: Status.PENDING as number, output: new Uint8Array(0) };
    io.request(file, code, input, 1024, (status, output) =>
      Object.assign(ended, { status, output: output.slice() }),
    );
    return ended;
  };
  const made = (code: number, input: Uint8Array): bigint => {
    const { output } = ((asked) => {
      io.work.run();
      return asked;
    })(ask(code, input));
    return s.WvIoObject.decode(output).id;
  };
  const device = made(IoctlCode.DEVICE_OPEN, s.WvIoDeviceOpen.encode({ guid: 0n }));
  const pds = [1, 2].map(() => made(IoctlCode.PD_ALLOCATE, s.WvIoId.encode({ id: device })));
  const cq = made(IoctlCode.CQ_CREATE, rig.cqInput(device));
  const qps = pds.map((pd) => made(IoctlCode.QP_CREATE, rig.qpInput(pd, cq, { qpType: QpType.UD })));
  const region = { address: 4096n, bufferLength: largeRegistration };
  const asked = [
    ...pds.map((id) => ask(IoctlCode.MEMORY_REGISTER, s.WvIoMemoryRegister.encode({ ...region, id }))),
    ...qps.map((id) => {
      const gid = gidOfAddress('224.0.0.9');
      return ask(IoctlCode.QP_ATTACH, s.WvIoQpMulticast.encode({ id: { id }, gid: { raw: gid } }));
    }),
  ];
  assert.equal(asked.map(name), ['PENDING', 'PENDING', 'PENDING', 'PENDING']);
  assert.is(name(ask(IoctlCode.PD_CANCEL, rig.id(pds[0]!))), 'SUCCESS');
  assert.is(name(ask(IoctlCode.QP_CANCEL, rig.id(qps[1]!))), 'SUCCESS');
  io.work.run();
  assert.equal(asked.map(name), ['CANCELED', 'SUCCESS', 'SUCCESS', 'CANCELED']);
  io.closeFile(file);
  assert.equal([rig.hca.mrs.size, rig.hca.qps.size], [0, 0]);
  assert.equal(rig.faults, []);
});

test('VerbInfo passes the provider’s command to the driver, and the driver’s status back', () => {
  const rig = new KernelRig();
  const file = new WvFile(openAl(rig.kernel));
  const input = s.WvIoId.encode({ id: 1n, verbInfo: 0x8123_4567 });
  const irp = new Irp({
    major: IrpMajor.deviceControl,
    requestorMode: 'user',
    input,
    outputLength: 64,
    onComplete: () => {},
  });
  const call = new Call(file, irp, ioctlRow(IoctlCode.PD_ALLOCATE)!, irp.takeInput());
  irp.dispatch(() => {
    const udata = call.udata();
    assert.is(udata.command, 0x8123_4567);
    udata.status = 0xfedc_ba98;
    return call.made(s.WvIoId, { id: 5n }, 5, udata);
  });
  const answer = s.WvIoId.decode(irp.output);
  assert.equal([answer.id, answer.verbInfo], [5n, 0xfedc_ba98]);
  const device = rig.device();
  const pd = rig.ioctl('PD_ALLOCATE', s.WvIoId.encode({ id: device, verbInfo: 9 }));
  assert.is(s.WvIoId.decode(pd.output).verbInfo, 0, 'the software HCA has no status of its own');
});

test('the driver reads the provider’s command and returns its status, for programs and for kernel clients', () => {
  const rig = new KernelRig();
  const opened = (command: number) => {
    const input = s.WvIoDeviceOpen.encode({ guid: ethGuid });
    new DataView(input.buffer).setUint32(s.VERB_INFO, command, true);
    return rig.ioctl('DEVICE_OPEN', input);
  };
  for (const command of [0, PROVIDER_ABI]) {
    const device = opened(command);
    assert.is(name(device), 'SUCCESS');
    assert.is(s.WvIoId.decode(device.output).verbInfo, PROVIDER_ABI, 'the driver’s own');
  }
  assert.is(name(opened(PROVIDER_ABI + 1)), 'NOT_SUPPORTED');
  const al = openAl(rig.kernel);
  const reported: unknown[] = [];
  let command = PROVIDER_ABI;
  const provider = {
    preOpenCa: (_guid: bigint, umv: UmvBuffer) => {
      umv.command = command;
      umv.outputSize = 256;
      return {};
    },
    postOpenCa: (_guid: bigint, status: number, _ca: UvpHandle, umv: UmvBuffer) =>
      reported.push([statusName(status), umv.status, umv.output.length]),
  } as Partial<UserVerbs> as UserVerbs;
  const verbs = new KernelVerbs(rig.kernel.filter.openTables(al), provider, () => {});
  const device = rig.kernel.hcaDriver.find(ethGuid)!;
  const before = device.references.users;
  const open = () => new VerbCall<IbCa>((irp) => verbs.ciOpenCa(al, device, undefined, undefined, irp));
  assert.is(name(open()), 'SUCCESS');
  command++;
  assert.is(name(open()), 'NOT_SUPPORTED');
  assert.equal(reported, [
    ['SUCCESS', PROVIDER_ABI, CaProviderOut.size],
    ['NOT_SUPPORTED', 0, 0],
  ]);
  assert.is(device.references.users, before + 1);
});

test('on the file of an HCA, Information is the handle of the object created by an IOCTL', () => {
  const rig = new KernelRig();
  const { io } = rig.kernel;
  const file = io.openFile(hcaFileName(ethGuid)) as FileObject;
  const made = (code: number, input: Uint8Array, bytes: number): bigint => {
    let handle = 0n;
    io.request(file, code, input, 1024, (status, output, information) => {
      assert.is(statusName(status), 'SUCCESS');
      assert.is(BigInt(information), s.WvIoObject.decode(output).id);
      assert.is(output.length, bytes);
      handle = BigInt(information);
    });
    io.work.run();
    return handle;
  };
  const device = made(IoctlCode.DEVICE_OPEN, s.WvIoDeviceOpen.encode({ guid: 0n }), 16 + 24);
  const pd = made(IoctlCode.PD_ALLOCATE, s.WvIoId.encode({ id: device }), 16 + 8);
  const cq = made(IoctlCode.CQ_CREATE, rig.cqInput(device), 16 + 8);
  made(IoctlCode.QP_CREATE, rig.qpInput(pd, cq), s.WvIoQpCreate.size + 8);
  made(IoctlCode.SRQ_CREATE, rig.srqInput(pd), s.WvIoSrqAttributes.size + 8);
  made(IoctlCode.MW_ALLOCATE, s.WvIoId.encode({ id: pd }), s.WvIoMwKey.size + 8);
  io.closeFile(file);
});

test('query-remove only removes a device while no file is open on it, and the device can be added again', () => {
  const rig = new KernelRig();
  const device = rig.device();
  assert.is(name(fault(rig, FaultsCode.QUERY_REMOVE)), 'DEVICE_BUSY');
  assert.is(name(rig.ioctl('DEVICE_QUERY', rig.id(device))), 'SUCCESS', 'a refusal changes nothing');
  const kernelFile = rig.kernel.io.openFile(hcaFileName(ethGuid)) as FileObject;
  rig.ioctl('DEVICE_CLOSE', rig.id(device));
  assert.is(name(fault(rig, FaultsCode.QUERY_REMOVE)), 'DEVICE_BUSY', 'a file without an instance');
  rig.kernel.io.closeFile(kernelFile);
  assert.is(name(fault(rig, FaultsCode.QUERY_REMOVE)), 'SUCCESS');
  assert.is(name(fault(rig, FaultsCode.QUERY_REMOVE)), 'NO_SUCH_DEVICE');
  assert.is(rig.kernel.hcaDriver.counters.removing, 0);
  assert.is(name(fault(rig, FaultsCode.PLUG)), 'SUCCESS');
  assert.ok(rig.device() > 0n);
  assert.equal(rig.faults, []);
});

test.run();
