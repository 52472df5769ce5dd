// Events of completion queues for kernel clients: by callback, or by requests pending in the driver.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { CqEventType, loadAddon, QpMask } from '../../kernel-bridge/hca/index.js';
import { FaultsCode, IoctlCode } from '../../kernel-bridge/ioctl/codes.js';
import { CqNotifyType, QpState } from '../../kernel-bridge/ioctl/constants.js';
import { hcaFileName } from '../../kernel-bridge/ioctl/hca-file.js';
import { CqProviderIn, QpProviderIn } from '../../kernel-bridge/ioctl/provider-data.js';
import { Status, statusName } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { createConnectionManager } from '../../kernel-bridge/kernel/cm/connection-manager.js';
import { ciCloseCa } from '../../kernel-bridge/kernel/hca-driver/ci-ca.js';
import { ciAllocatePd, ciDeallocatePd } from '../../kernel-bridge/kernel/hca-driver/ci-memory.js';
import {
  ciArmCq,
  ciCancelCqEvents,
  ciCreateCq,
  ciCreateQp,
  ciDestroyCq,
  ciDestroyQp,
  ciGetCqEvent,
  ciModifyQp,
} from '../../kernel-bridge/kernel/hca-driver/ci-queues.js';
import type {
  IbCa,
  IbCq,
  IbCqDispatch,
  IbPd,
  IbQp,
} from '../../kernel-bridge/kernel/hca-driver/ib-objects.js';
import { SystemNetwork } from '../../kernel-bridge/kernel/hca-driver/network-interfaces.js';
import type { FileObject } from '../../kernel-bridge/kernel/io-manager/device-object.js';
import type { RequestorMode } from '../../kernel-bridge/kernel/io-manager/irp.js';
import { assertPassive } from '../../kernel-bridge/kernel/io-manager/irql.js';
import { Kernel } from '../../kernel-bridge/kernel/kernel.js';
import { softHca } from '../../kernel-bridge/kernel/soft-hca/soft-hca.js';
import { kernelOptionsSchema } from '../../kernel-bridge/option-checks/option-schemas.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';
import { openCaOf, openedCa, VerbCall } from '../helpers/direct-verbs.js';
import { ethGuid, FakeServer, KernelRig } from '../helpers/kernel-rig.js';

const addon = loadAddon();

const name = ({ status }: { status: number }): string => statusName(status);
const { NEXT_COMPLETION, SOLICITED, ERROR } = CqNotifyType;

function udata(input: Uint8Array) {
  return { input, output: new Uint8Array(0), outputSize: 0 };
}

function createCq(
  ca: IbCa,
  dispatch: IbCqDispatch,
  mode: RequestorMode = 'kernel',
  address = 0x1000n,
): VerbCall<IbCq> {
  const ringBytes = abi.cqHeaderBytes + 16 * abi.cqeBytes;
  const provider = CqProviderIn.encode({ ringAddress: address, ringBytes, entries: 16 });
  return new VerbCall<IbCq>((irp) => ciCreateCq(ca, 16, 'mine', dispatch, udata(provider), irp), mode);
}

const wait = (cq: IbCq, type: number) => new VerbCall<number>((irp) => ciGetCqEvent(cq, type, irp));

function raise(rig: KernelRig, cq: IbCq, event: number): void {
  rig.hca.events.push({ type: 'cq', cq: cq.handle, event });
  rig.events();
}

test('callbacks report completions and the overrun with the queue as argument; members are optional', () => {
  const rig = new KernelRig();
  const ca = openedCa(rig);
  const reported: unknown[] = [];
  const cq = createCq(ca, {
    compEvent: (which, context) => reported.push(which, context),
    asyncEvent: (which, context, event) => reported.push(which, context, event),
  }).information!;
  const silent = createCq(ca, {}).information!;
  const half = createCq(ca, { asyncEvent: () => reported.push('half') }).information!;
  assert.equal([...rig.hca.listened], [cq.handle], 'the HCA reports only CQs with a callback');
  assert.is(ciArmCq(cq, true), Status.SUCCESS);
  assert.equal(rig.hca.armed, [{ cq: cq.handle, solicitedOnly: true }]);
  raise(rig, cq, CqEventType.completion);
  assert.ok(reported.length === 2 && reported[0] === cq && reported[1] === 'mine');
  const beside = wait(cq, NEXT_COMPLETION);
  assert.is(name(beside), 'PENDING', 'an event delivered to a callback is not kept for a request');
  beside.irp.cancel();
  for (const one of [silent, half]) raise(rig, one, CqEventType.completion);
  for (const one of [silent, half, cq]) raise(rig, one, CqEventType.overrun);
  assert.is(reported.length, 6);
  assert.equal([reported[2], reported[4], reported[5]], ['half', 'mine', CqEventType.overrun]);
  new VerbCall<number>((irp) => ciDestroyCq(cq, irp));
  raise(rig, cq, CqEventType.completion);
  assert.is(reported.length, 6, 'an event of a queue that is gone');
  assert.equal(rig.faults, []);
});

test('a callback that throws is a fault of its client: it is counted, and later events are delivered', () => {
  const rig = new KernelRig();
  const reported: string[] = [];
  const broken = {
    compEvent: () => {
      assert.throws(() => assertPassive('waiting'), /DISPATCH_LEVEL/);
      throw new Error('broken client');
    },
  };
  const ca = openedCa(rig);
  const one = createCq(ca, broken).information!;
  const two = createCq(ca, { compEvent: () => reported.push('two') }).information!;
  rig.hca.events.push({ type: 'cq', cq: one.handle, event: CqEventType.completion });
  raise(rig, two, CqEventType.completion);
  assert.equal(reported, ['two']);
  assert.equal(rig.faults.map(String), ['DriverFault: Error: broken client']);
});

test('an event completes all pending requests of kernel clients for its kind, and one event is kept', () => {
  const rig = new KernelRig();
  const cq = createCq(openedCa(rig), {}).information!;
  const [any, solicited, error] = [wait(cq, NEXT_COMPLETION), wait(cq, SOLICITED), wait(cq, ERROR)];
  assert.equal([...rig.hca.listened], [cq.handle]);
  raise(rig, cq, CqEventType.completion);
  assert.equal([any, solicited, error].map(name), ['SUCCESS', 'SUCCESS', 'PENDING']);
  raise(rig, cq, CqEventType.completion);
  raise(rig, cq, CqEventType.completion);
  assert.is(name(wait(cq, ERROR)), 'PENDING', 'a completion is not an error');
  assert.equal([wait(cq, SOLICITED), wait(cq, NEXT_COMPLETION)].map(name), ['SUCCESS', 'PENDING']);
  assert.is(name(wait(cq, 3)), 'INVALID_PARAMETER');
  raise(rig, cq, CqEventType.overrun);
  assert.is(name(error), 'BUFFER_OVERFLOW');
  assert.equal(
    [NEXT_COMPLETION, ERROR].map((type) => name(wait(cq, type))),
    ['BUFFER_OVERFLOW', 'BUFFER_OVERFLOW'],
  );
  assert.equal(rig.faults, []);
});

test('requests can be cancelled, and end with their queue, a fatal error, or the HCA', () => {
  const rig = new KernelRig();
  const ca = openedCa(rig);
  const cq = createCq(ca, {}).information!;
  const [one, two] = [wait(cq, NEXT_COMPLETION), wait(cq, ERROR)];
  assert.ok(one.irp.cancel());
  assert.equal([one, two].map(name), ['CANCELED', 'PENDING']);
  ciCancelCqEvents(cq);
  assert.is(name(two), 'CANCELED');
  const three = wait(cq, NEXT_COMPLETION);
  const gone = createCq(ca, {}).information!;
  const four = wait(gone, SOLICITED);
  assert.is(name(new VerbCall<number>((irp) => ciDestroyCq(gone, irp))), 'SUCCESS');
  assert.is(name(four), 'CANCELED');
  const file = rig.open('\\\\.\\NetworkDirectFaults').answer!.information;
  rig.control(FaultsCode.FATAL, s.WvIoGuid.encode({ guid: ethGuid }), 0, file);
  assert.is(name(three), 'FILE_FORCED_CLOSED');
  assert.is(name(wait(cq, NEXT_COMPLETION)), 'FILE_FORCED_CLOSED');
  assert.is(ciArmCq(cq, false), Status.FILE_FORCED_CLOSED);
  assert.equal(rig.faults, []);
});

test('CQ_NOTIFY as an IOCTL of a kernel client also pends in the driver', () => {
  const rig = new KernelRig();
  const { io } = rig.kernel;
  const file = io.openFile(hcaFileName(ethGuid)) as FileObject;
  const request = (code: number, input: Uint8Array, outputLength: number) => {
    const ended = { status: Status.PENDING as number, output: new Uint8Array(0) };
    io.request(file, code, input, outputLength, (status, output) =>
      Object.assign(ended, { status, output: output.slice() }),
    );
    io.work.run();
    return ended;
  };
  const device = request(IoctlCode.DEVICE_OPEN, s.WvIoDeviceOpen.encode({}), 16);
  const made = request(IoctlCode.CQ_CREATE, rig.cqInput(s.WvIoId.decode(device.output).id), 64);
  const notify = request(
    IoctlCode.CQ_NOTIFY,
    s.WvIoId.encode({ id: s.WvIoId.decode(made.output).id, data: 1 }),
    0,
  );
  assert.is(name(notify), 'PENDING');
  rig.hca.events.push({ type: 'cq', cq: [...rig.hca.cqs][0]!, event: CqEventType.completion });
  rig.events();
  assert.is(name(notify), 'SUCCESS');
  io.closeFile(file);
  assert.equal(rig.faults, []);
});

test('an armed queue gets one event for a completion, an unarmed one none', async () => {
  let woken: () => void = () => {};
  // The HCA itself does not keep the event loop alive.
  const alive = setInterval(() => {}, 1000);
  const hca = addon.openHca(kernelOptionsSchema.parse({}), () => woken());
  const [network, options] = [new SystemNetwork(addon), kernelOptionsSchema.parse({})];
  const kernel = new Kernel({
    server: new FakeServer(),
    hcas: [softHca({ native: hca, network, options, createConnectionManager })],
    network,
    options,
  });
  let calls = 0;
  let called: () => void = () => {};
  woken = () => {
    while (kernel.serveEvents());
  };
  woken();
  const guid = kernel.ports.all().find(({ interfaceName }) => interfaceName === 'lo')!.guid;
  const ca = openCaOf(kernel, guid).information!;
  const cqRing = addon.allocateRing(abi.cqHeaderBytes + 16 * abi.cqeBytes);
  const dispatch = {
    compEvent: () => {
      calls++;
      called();
    },
  };
  const cq = createCq(ca, dispatch, 'kernel', BigInt(cqRing.address)).information!;
  const pd = new VerbCall<IbPd>((irp) => ciAllocatePd(ca, udata(new Uint8Array(0)), irp)).information!;
  const sizes = { sendEntries: 8, sendStride: 128, receiveEntries: 8, receiveStride: 64 };
  const qpRing = addon.allocateRing(abi.qpHeaderBytes + 8 * 128 + 8 * 64);
  const provider = QpProviderIn.encode({
    ringAddress: BigInt(qpRing.address),
    ringBytes: qpRing.buffer.byteLength,
    ...sizes,
    token: 1,
  });
  const create = {
    ...s.WvIoQpCreate.decode(new Uint8Array(s.WvIoQpCreate.size)),
    sendDepth: 8,
    receiveDepth: 8,
    sendSge: 1,
  };
  const qp = new VerbCall<IbQp>((irp) =>
    ciCreateQp(pd, cq, cq, undefined, { ...create, receiveSge: 1 }, undefined, {}, udata(provider), irp),
  ).information!;
  new VerbCall<number>((irp) => ciModifyQp(qp, QpMask.state, { state: QpState.ERROR }, irp));

  // A Receive that is posted to a queue pair in ERROR is flushed, which is a completion like any other.
  const header = new Uint32Array(qpRing.buffer, 0, abi.qpHeaderBytes / 4);
  const flush = (): void => {
    Atomics.add(header, abi.qpReceiveProducer, 1);
    addon.doorbell[0] = qp.handle;
    addon.ringDoorbell();
  };
  flush();
  await new Promise<void>((resolve) => setImmediate(resolve));
  assert.is(calls, 0, 'nothing was requested');
  for (let round = 1; round <= 3; round++) {
    const event = new Promise<void>((resolve) => {
      called = resolve;
    });
    assert.is(ciArmCq(cq, false), Status.SUCCESS);
    if (round > 1) flush();
    await event;
    assert.is(calls, round);
  }
  for (const ended of [
    new VerbCall<number>((irp) => ciDestroyQp(qp, irp)),
    new VerbCall<number>((irp) => ciDestroyCq(cq, irp)),
    new VerbCall<number>((irp) => ciDeallocatePd(pd, irp)),
    new VerbCall<number>((irp) => ciCloseCa(ca, irp)),
  ]) {
    assert.is(name(ended), 'SUCCESS');
  }
  kernel.close();
  for (const { address } of [cqRing, qpRing]) addon.releaseRing(address);
  clearInterval(alive);
});

test.run();
