/** IOCTLs of memory, completion queues and queue pairs. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { QpAttr, QpState, WvAccess } from '../../kernel-bridge/ioctl/constants.js';
import {
  CqProviderOut,
  MwProviderOut,
  QpProviderOut,
  QpStateOut,
} from '../../kernel-bridge/ioctl/provider-data.js';
import { gidOfAddress } from '../../kernel-bridge/ioctl/sockaddr.js';
import { Status, statusName } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { expect, KernelRig, sound } from '../helpers/kernel-rig.js';

// ── Memory ──────────────────────────────────────────────────────────────────────────────────────────────────

test('memory is registered, and deregistered by keys; invalid ranges, lengths and flags have different statuses', () => {
  const rig = new KernelRig();
  const pd = rig.pd(rig.device());
  const access = WvAccess.LOCAL_WRITE | WvAccess.REMOTE_READ;
  const register = (more: Partial<{ address: bigint; bufferLength: bigint; accessFlags: number }>) =>
    rig.ioctl(
      'MEMORY_REGISTER',
      s.WvIoMemoryRegister.encode({
        id: pd,
        address: 4096n,
        bufferLength: 100n,
        accessFlags: access,
        ...more,
      }),
      8,
    );
  const keys = s.WvIoMemoryKeys.decode(register({}).output);
  assert.is(keys.rkey, 0x1234_0000 + keys.lkey);
  expect(register({ bufferLength: 0n }), Status.INVALID_BUFFER_SIZE);
  expect(register({ bufferLength: 1n << 63n }), Status.INVALID_PARAMETER);
  expect(register({ address: 0xffff_ffff_ffff_fff0n }), Status.ACCESS_VIOLATION);
  expect(register({ address: (1n << 47n) - 50n }), Status.ACCESS_VIOLATION);
  expect(register({ accessFlags: 0x40 }), Status.INVALID_PARAMETER);
  expect(register({ accessFlags: (WvAccess.NON_CACHABLE | WvAccess.LOCAL_WRITE) >>> 0 }), Status.SUCCESS);
  const deregister = (data: number) => rig.ioctl('MEMORY_DEREGISTER', s.WvIoId.encode({ id: pd, data }), 0);
  expect(deregister(9), Status.NOT_FOUND);
  rig.hca.refuse.set('deregisterMr', Status.DEVICE_BUSY);
  expect(deregister(keys.lkey), Status.DEVICE_BUSY);
  rig.hca.refuse.clear();
  expect(deregister(keys.lkey), Status.SUCCESS);
  expect(deregister(keys.lkey), Status.NOT_FOUND);
  sound(rig);
});

test('regions for fast registration are allocated with a maximum length, and freed like others', () => {
  const rig = new KernelRig();
  const pd = rig.pd(rig.device());
  const allocate = (bufferLength: bigint) =>
    rig.ioctl('MEMORY_ALLOCATE', s.WvIoMemoryRegister.encode({ id: pd, bufferLength }), 8);
  const keys = s.WvIoMemoryKeys.decode(allocate(4096n).output);
  assert.is(keys.rkey, keys.lkey);
  expect(allocate(0n), Status.INVALID_PARAMETER);
  expect(allocate(1n << 63n), Status.INVALID_PARAMETER);
  rig.hca.refuse.set('allocateMr', Status.INSUFFICIENT_RESOURCES);
  expect(allocate(1n), Status.INSUFFICIENT_RESOURCES);
  rig.hca.refuse.clear();
  const deregister = (data: number) => rig.ioctl('MEMORY_DEREGISTER', s.WvIoId.encode({ id: pd, data }), 0);
  expect(rig.ioctl('PD_DEALLOCATE', s.WvIoObject.encode({ id: pd }), 0), Status.DEVICE_BUSY);
  expect(deregister(keys.lkey), Status.SUCCESS);
  expect(deregister(keys.lkey), Status.NOT_FOUND);
  Object.assign(rig.hca, { allocateMr: undefined });
  expect(allocate(1n), Status.NOT_SUPPORTED);
  sound(rig);
});

test('a region of another protection domain cannot be deregistered', () => {
  const rig = new KernelRig();
  const device = rig.device();
  const [mine, other] = [rig.pd(device), rig.pd(device)];
  const input = s.WvIoMemoryRegister.encode({ id: mine, address: 4096n, bufferLength: 1n, accessFlags: 8 });
  const { lkey } = s.WvIoMemoryKeys.decode(rig.ioctl('MEMORY_REGISTER', input, 8).output);
  expect(rig.ioctl('MEMORY_DEREGISTER', s.WvIoId.encode({ id: other, data: lkey }), 0), Status.NOT_FOUND);
});

test('memory windows: id, rkey in network order, and handle for the provider', () => {
  const rig = new KernelRig();
  const pd = rig.pd(rig.device());
  const { output } = rig.ioctl('MW_ALLOCATE', s.WvIoId.encode({ id: pd }));
  assert.equal(output.subarray(12, 16), Uint8Array.of(0x0a, 0x0b, 0x0c, 0x0d));
  assert.is(MwProviderOut.decode(output, s.WvIoId.size).rkey, 0x0a0b_0c0d);
  const { id } = s.WvIoId.decode(output);
  expect(rig.ioctl('PD_DEALLOCATE', rig.id(pd)), Status.DEVICE_BUSY);
  expect(rig.ioctl('MW_DEALLOCATE', rig.id(id)), Status.SUCCESS);
  expect(rig.ioctl('MW_DEALLOCATE', rig.id(id)), Status.NOT_FOUND);
  expect(rig.ioctl('PD_DEALLOCATE', rig.id(pd)), Status.SUCCESS);
});

test('K3: a failed creation of a window leaves nothing to destroy', () => {
  const rig = new KernelRig();
  const pd = rig.pd(rig.device());
  rig.hca.refuse.set('allocateMw', Status.NOT_SUPPORTED);
  expect(rig.ioctl('MW_ALLOCATE', s.WvIoId.encode({ id: pd })), Status.NOT_SUPPORTED);
  expect(rig.ioctl('PD_DEALLOCATE', rig.id(pd)), Status.SUCCESS);
  expect(rig.close(), Status.SUCCESS);
  sound(rig);
});

// ── Queues ──────────────────────────────────────────────────────────────────────────────────────────────────

test('a CQ has the entries of its ring; invalid sizes are rejected', () => {
  const rig = new KernelRig();
  const device = rig.device();
  const made = rig.ioctl('CQ_CREATE', rig.cqInput(device, 10, { entries: 16 }));
  assert.is(s.WvIoId.decode(made.output).data, 16);
  assert.ok(CqProviderOut.decode(made.output, s.WvIoId.size).handle > 0);
  const refused = (input: Uint8Array, status: number) => expect(rig.ioctl('CQ_CREATE', input), status);
  refused(rig.cqInput(device, 0), Status.INVALID_PARAMETER);
  refused(rig.cqInput(device, 2000, { entries: 2048 }), Status.INSUFFICIENT_RESOURCES);
  refused(rig.cqInput(device, 20, { entries: 16 }), Status.INVALID_PARAMETER);
  refused(rig.cqInput(device, 16, { ringAddress: 1n << 63n }), Status.INVALID_PARAMETER);
  refused(s.WvIoId.encode({ id: device, data: 16 }), Status.BUFFER_TOO_SMALL);
  sound(rig);
});

test('K4, K12: a CQ that cannot be created returns the HCA’s own status and adds no reference', () => {
  const rig = new KernelRig();
  const device = rig.device();
  rig.hca.refuse.set('createCq', Status.NO_MEMORY);
  expect(rig.ioctl('CQ_CREATE', rig.cqInput(device)), Status.NO_MEMORY);
  expect(rig.ioctl('DEVICE_CLOSE', rig.id(device)), Status.SUCCESS);
  sound(rig);
});

test('a CQ is resized to a new ring', () => {
  const rig = new KernelRig();
  const cq = rig.cq(rig.device());
  const resized = rig.ioctl('CQ_RESIZE', rig.cqInput(cq, 60, { entries: 64 }));
  assert.is(s.WvIoId.decode(resized.output).data, 64);
  rig.hca.refuse.set('resizeCq', Status.BUFFER_OVERFLOW);
  const overflow = rig.ioctl('CQ_RESIZE', rig.cqInput(cq, 2, { entries: 2 }));
  expect(overflow, Status.BUFFER_OVERFLOW);
  assert.is(overflow.output.length, 0);
});

test('the HCA completes CQ_NOTIFY natively, and the event updates the driver’s records', () => {
  const rig = new KernelRig();
  const cq = rig.cq(rig.device());
  const handle = [...rig.hca.cqs][0]!;
  const notify = (data: number) => rig.ioctl('CQ_NOTIFY', s.WvIoId.encode({ id: cq, data }), 0);
  const waits = [notify(1), notify(2), notify(0)];
  assert.equal(
    rig.hca.waiters.get(handle)!.map(({ type }) => type),
    [1, 2, 0],
  );
  assert.is(rig.kernel.io.pendingRequests, 3);
  rig.hca.fireCq(handle);
  for (const wait of waits) expect(wait, Status.SUCCESS);
  assert.is(rig.kernel.io.pendingRequests, 3);
  rig.events();
  assert.is(rig.kernel.io.pendingRequests, 0);
  expect(notify(3), Status.INVALID_PARAMETER);
  sound(rig);
});

test('CQ_NOTIFY: one is cancelled individually, CQ_CANCEL cancels the rest, a late notification has no effect', () => {
  const rig = new KernelRig();
  const cq = rig.cq(rig.device());
  const handle = [...rig.hca.cqs][0]!;
  const waits = [0, 1, 2].map(() => rig.ioctl('CQ_NOTIFY', s.WvIoId.encode({ id: cq, data: 1 }), 0));
  waits[1]!.cancel();
  assert.equal(
    waits.map(({ status }) => statusName(status)),
    ['PENDING', 'CANCELED', 'PENDING'],
  );
  assert.is(rig.hca.waiters.get(handle)!.length, 2);
  expect(rig.ioctl('CQ_CANCEL', rig.id(cq), 0), Status.SUCCESS);
  for (const wait of waits) expect(wait, Status.CANCELED);
  rig.hca.events.push({ type: 'notified', slot: waits[0]!.slot, serial: waits[0]!.serial });
  rig.events();
  sound(rig);
});

test('the HCA and a cancel race: the HCA’s result is kept', () => {
  const rig = new KernelRig();
  const cq = rig.cq(rig.device());
  const wait = rig.ioctl('CQ_NOTIFY', s.WvIoId.encode({ id: cq, data: 1 }), 0);
  rig.hca.fireCq([...rig.hca.cqs][0]!, Status.BUFFER_OVERFLOW);
  wait.cancel();
  rig.events();
  expect(wait, Status.BUFFER_OVERFLOW);
  assert.is(rig.kernel.io.pendingRequests, 0);
  sound(rig);
});

test('K13: a waiter that the HCA rejects ends in the HCA’s status', () => {
  const rig = new KernelRig();
  const cq = rig.cq(rig.device());
  rig.hca.refuse.set('addCqWaiter', Status.INSUFFICIENT_RESOURCES);
  expect(rig.ioctl('CQ_NOTIFY', s.WvIoId.encode({ id: cq, data: 1 }), 0), Status.INSUFFICIENT_RESOURCES);
  assert.is(rig.kernel.io.pendingRequests, 0);
  sound(rig);
});

test('destroying a CQ cancels its pending requests, but not while a QP uses it', () => {
  const rig = new KernelRig();
  const { cq, qp } = rig.queuePair();
  const wait = rig.ioctl('CQ_NOTIFY', s.WvIoId.encode({ id: cq, data: 1 }), 0);
  expect(rig.ioctl('CQ_DESTROY', rig.id(cq)), Status.DEVICE_BUSY);
  expect(wait, Status.PENDING);
  rig.ioctl('QP_DESTROY', rig.id(qp));
  expect(rig.ioctl('CQ_DESTROY', rig.id(cq)), Status.SUCCESS);
  expect(wait, Status.CANCELED);
  sound(rig);
});

test('a QP is created over its ring, and returns the granted sizes and the provider’s handle', () => {
  const rig = new KernelRig();
  const device = rig.device();
  const pd = rig.pd(device);
  const cq = rig.cq(device);
  const { output } = rig.ioctl('QP_CREATE', rig.qpInput(pd, cq, { maxInlineSend: 64, qpFlags: 1 }));
  const [handle, made] = [...rig.hca.qps][0]!;
  assert.equal(QpProviderOut.decode(output, s.WvIoQpCreate.size), { handle, qpn: made.qpn });
  assert.is(s.WvIoQpCreate.decode(output).sendDepth, 10);
  assert.is(made.parameters.token, 77);
  assert.is(made.parameters.signalAll, true);
  assert.is(made.parameters.maxInline, 64);
});

test('K15: QP creation rejects unsupported flags, depths, types, SRQs, and CQs of another HCA', () => {
  const rig = new KernelRig();
  const { device, pd, cq } = rig.queuePair();
  const refused = (more: object, status: number) =>
    expect(rig.ioctl('QP_CREATE', rig.qpInput(pd, cq, more)), status, JSON.stringify(Object.keys(more)));
  refused({ qpFlags: 4 }, Status.NOT_SUPPORTED);
  refused({ qpType: 2 }, Status.INVALID_PARAMETER);
  refused({ sendDepth: 257 }, Status.INSUFFICIENT_RESOURCES);
  refused({ sendDepth: 17 }, Status.INVALID_PARAMETER);
  refused({ receiveSge: 9 }, Status.INSUFFICIENT_RESOURCES);
  refused({ maxInlineSend: 513 }, Status.INSUFFICIENT_RESOURCES);
  refused({ initiatorDepth: 17 }, Status.INSUFFICIENT_RESOURCES);
  refused({ responderResources: 17 }, Status.INSUFFICIENT_RESOURCES);
  refused({ srqId: 1n }, Status.NOT_FOUND);
  refused({ sendCqId: 0n }, Status.NOT_FOUND);
  const loCq = rig.cq(rig.device(rig.kernel.hcaDriver.guids()[0]!));
  refused({ receiveCqId: loCq }, Status.INVALID_PARAMETER);
  assert.is(rig.hca.qps.size, 1);
  expect(rig.ioctl('DEVICE_CLOSE', rig.id(device)), Status.DEVICE_BUSY);
  sound(rig);
});

test('QP_MODIFY to INIT sets its attributes, the output is the state, and options take effect', () => {
  const rig = new KernelRig();
  const { qp, handle } = rig.queuePair();
  const modify = (more: object, outputLength = 4) =>
    rig.ioctl('QP_MODIFY', s.WvIoQpAttributes.encode({ id: { id: qp }, ...more }), outputLength);
  const init = modify({ qpState: QpState.INIT, options: QpAttr.STATE, accessFlags: 0xa });
  assert.is(QpStateOut.decode(init.output).state, QpState.INIT);
  assert.is(rig.hca.qps.get(handle)!.attributes.access, 0xa);
  assert.is(rig.hca.qps.get(handle)!.attributes.port, 1);
  // U17: without WV_QP_ATTR_STATE a zero QpState is not a reset.
  expect(modify({ options: QpAttr.ACCESS_FLAGS, accessFlags: 8 }), Status.SUCCESS);
  assert.is(rig.qpState(handle), QpState.INIT);
  expect(modify({ qpState: QpState.RTS, options: QpAttr.STATE }), Status.INVALID_DEVICE_STATE);
  expect(modify({ options: QpAttr.ALTERNATE_AV }), Status.NOT_SUPPORTED);
  expect(modify({ options: 0x8000_0000 }), Status.INVALID_PARAMETER);
  const sGid = gidOfAddress('192.0.2.2');
  const rtr = (addressVector: object, pathMtu = 1024) =>
    modify({ qpState: QpState.RTR, options: QpAttr.STATE, pathMtu, addressVector });
  expect(rtr({ sGid }), Status.INVALID_PARAMETER);
  expect(rtr({ networkRouteValid: 1, sGid: gidOfAddress('192.0.2.7') }), Status.INVALID_ADDRESS);
  const there = { networkRouteValid: 1, sGid, dGid: gidOfAddress('192.0.2.9') };
  // An interface MTU of 1500 bytes permits packets with a payload of 1024.
  expect(rtr(there, 2048), Status.INVALID_PARAMETER);
  assert.is(rig.qpState(handle), QpState.INIT);
  expect(rtr(there), Status.SUCCESS);
  sound(rig);
});

test('K11: QP_MODIFY works without output; an output too short for a state is rejected first', () => {
  const rig = new KernelRig();
  const { qp, handle } = rig.queuePair();
  const input = s.WvIoQpAttributes.encode({ id: { id: qp }, qpState: QpState.ERROR, options: QpAttr.STATE });
  expect(rig.ioctl('QP_MODIFY', input, 3), Status.BUFFER_TOO_SMALL);
  assert.is(rig.qpState(handle), QpState.RESET);
  expect(rig.ioctl('QP_MODIFY', input, 0), Status.SUCCESS);
  assert.is(rig.qpState(handle), QpState.ERROR);
});

test('QP_QUERY returns the creation parameters and the current attributes', () => {
  const rig = new KernelRig();
  const { qp } = rig.queuePair();
  const attributes = s.WvIoQpAttributes.decode(rig.ioctl('QP_QUERY', rig.id(qp)).output);
  assert.is(attributes.sendDepth, 10);
  assert.is(attributes.receiveSge, 2);
  assert.is(attributes.qpState, QpState.RESET);
  assert.is(attributes.qpn, [...rig.hca.qps.values()][0]!.qpn);
  for (const name of ['QP_CANCEL'] as const) expect(rig.ioctl(name, rig.id(qp)), Status.SUCCESS);
  expect(rig.ioctl('PD_CANCEL', rig.id(rig.pd(rig.device()))), Status.SUCCESS);
});

test.run();
