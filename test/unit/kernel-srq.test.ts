// IOCTLs of shared receive queues: their outputs, and the delivery of the HCA's events.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { QpEventType, SrqEventType } from '../../kernel-bridge/hca/soft-hca-binding.js';
import { FaultsCode } from '../../kernel-bridge/ioctl/codes.js';
import { SrqProviderOut } from '../../kernel-bridge/ioctl/provider-data.js';
import { Status, statusName } from '../../kernel-bridge/ioctl/status.js';
import * as s from '../../kernel-bridge/ioctl/structs.js';
import { ethGuid, expect, KernelRig, type Submitted, sound } from '../helpers/kernel-rig.js';

/** A shared receive queue with all objects that it needs, and a queue pair on it. */
function world() {
  const rig = new KernelRig();
  const device = rig.device();
  const pd = rig.pd(device);
  const cq = rig.cq(device);
  const srq = rig.srq(pd);
  const handle = [...rig.hca.srqs.keys()].at(-1)!;
  const withSrq = (id = srq) => rig.qp(pd, cq, { srqId: id, receiveDepth: 10, receiveSge: 2 });
  const notify = (id = srq) => rig.ioctl('SRQ_NOTIFY', rig.id(id), 0);
  const raise = (event: number, of = handle) => {
    rig.hca.events.push({ type: 'srq', srq: of, event });
    rig.events();
  };
  return { rig, device, pd, cq, srq, handle, withSrq, notify, raise };
}

const names = (waits: Submitted[]): string[] => waits.map(({ status }) => statusName(status));

test('SRQ_CREATE grants at least the requested size, arms the limit, and returns the handle to the provider', () => {
  const { rig, pd } = world();
  const made = rig.ioctl('SRQ_CREATE', rig.srqInput(pd, { maxWr: 12, maxSge: 3, srqLimit: 4 }));
  expect(made, Status.SUCCESS);
  const answer = s.WvIoSrqAttributes.decode(made.output);
  assert.equal([answer.maxWr, answer.maxSge, answer.srqLimit], [16, 3, 4]);
  const [handle, parameters] = [...rig.hca.srqs].at(-1)!;
  assert.is(SrqProviderOut.decode(made.output, s.WvIoSrqAttributes.size).handle, handle);
  assert.equal([parameters.sge, parameters.stride, parameters.limit], [3, 48, 4]);
  sound(rig);
});

test('SRQ_CREATE rejects invalid parameters, and leaves nothing behind', () => {
  const { rig, pd } = world();
  const refused = (status: number, attributes: object, ring: object = {}) =>
    expect(
      rig.ioctl('SRQ_CREATE', rig.srqInput(pd, attributes, ring)),
      status,
      Object.keys(attributes).join(),
    );
  refused(Status.INVALID_PARAMETER, { maxWr: 0 });
  refused(Status.INVALID_PARAMETER, { maxWr: 17 });
  refused(Status.INVALID_PARAMETER, { srqLimit: 17 });
  refused(Status.INSUFFICIENT_RESOURCES, { maxWr: 257 });
  refused(Status.INSUFFICIENT_RESOURCES, { maxSge: 9 });
  refused(Status.INVALID_PARAMETER, {}, { ringAddress: 0n });
  refused(Status.INVALID_PARAMETER, {}, { ringAddress: 1n << 60n });
  refused(Status.NOT_FOUND, { id: { id: 0n } });
  expect(
    rig.ioctl('SRQ_CREATE', s.WvIoSrqAttributes.encode({ id: { id: pd }, maxWr: 1 })),
    Status.BUFFER_TOO_SMALL,
  );
  expect(rig.ioctl('SRQ_CREATE', rig.srqInput(pd), s.WvIoSrqAttributes.size + 4), Status.BUFFER_TOO_SMALL);
  rig.hca.refuse.set('modifySrq', Status.INVALID_PARAMETER);
  refused(Status.INVALID_PARAMETER, { srqLimit: 3 });
  assert.is(rig.hca.srqs.size, 1);
  assert.is(rig.registry.srqs.size, 1);
  sound(rig);
});

test('SRQ_QUERY returns size and limit', () => {
  const { rig, srq, handle } = world();
  rig.hca.srqs.get(handle)!.limit = 5;
  const output = rig.ioctl('SRQ_QUERY', s.WvIoSrqAttributes.encode({ id: { id: srq } })).output;
  const { maxWr, maxSge, srqLimit } = s.WvIoSrqAttributes.decode(output);
  assert.equal([maxWr, maxSge, srqLimit], [16, 2, 5]);
  expect(rig.ioctl('SRQ_QUERY', s.WvIoSrqAttributes.encode({ id: { id: 7n } })), Status.NOT_FOUND);
});

test('SRQ_MODIFY with a ring moves the queue there; without one it only changes the limit', () => {
  const { rig, srq, handle } = world();
  const modify = (more: object, ring?: object) =>
    rig.ioctl(
      'SRQ_MODIFY',
      ring === undefined
        ? s.WvIoSrqAttributes.encode({ id: { id: srq }, ...more })
        : rig.srqInput(srq, more, ring),
    );
  expect(modify({ maxWr: 16, srqLimit: 9 }), Status.SUCCESS);
  assert.equal([rig.hca.srqs.get(handle)!.limit, rig.hca.srqs.get(handle)!.entries], [9, 16]);
  const grown = modify({ maxWr: 20, srqLimit: 30 }, { entries: 32 });
  const { maxWr, srqLimit } = s.WvIoSrqAttributes.decode(grown.output);
  assert.equal([maxWr, srqLimit], [32, 30]);
  assert.is(rig.hca.srqs.get(handle)!.entries, 32);
  expect(modify({ maxWr: 33 }), Status.INVALID_PARAMETER);
  expect(modify({ maxWr: 0 }), Status.INVALID_PARAMETER);
  expect(modify({ maxWr: 257 }, { entries: 512 }), Status.INSUFFICIENT_RESOURCES);
  expect(modify({ maxWr: 4, srqLimit: 9 }, { entries: 8 }), Status.INVALID_PARAMETER);
  rig.hca.refuse.set('modifySrq', Status.BUFFER_OVERFLOW);
  const overflow = modify({ maxWr: 8 }, { entries: 8 });
  expect(overflow, Status.BUFFER_OVERFLOW);
  assert.is(overflow.output.length, 0);
  const { output } = rig.ioctl('SRQ_QUERY', s.WvIoSrqAttributes.encode({ id: { id: srq } }));
  assert.is(s.WvIoSrqAttributes.decode(output).maxWr, 32);
  sound(rig);
});

test('a QP on a shared queue has no receive queue of its own, and references the shared one', () => {
  const { rig, pd, cq, srq, handle, withSrq } = world();
  const qp = withSrq();
  const [, { parameters }] = [...rig.hca.qps].at(-1)!;
  assert.equal([parameters.srq, parameters.receiveSge], [handle, 0]);
  const attributes = s.WvIoQpAttributes.decode(rig.ioctl('QP_QUERY', rig.id(qp)).output);
  assert.equal([attributes.receiveDepth, attributes.receiveSge, attributes.sendDepth], [0, 0, 10]);
  expect(rig.ioctl('SRQ_DESTROY', rig.id(srq)), Status.DEVICE_BUSY);
  expect(rig.ioctl('PD_DEALLOCATE', rig.id(pd)), Status.DEVICE_BUSY);
  expect(rig.ioctl('QP_DESTROY', rig.id(qp)), Status.SUCCESS);
  expect(rig.ioctl('SRQ_DESTROY', rig.id(srq)), Status.SUCCESS);
  expect(rig.ioctl('SRQ_DESTROY', rig.id(srq)), Status.NOT_FOUND);
  expect(rig.ioctl('CQ_DESTROY', rig.id(cq)), Status.SUCCESS);
  expect(rig.ioctl('PD_DEALLOCATE', rig.id(pd)), Status.SUCCESS);
  sound(rig);
});

test('a shared queue of another HCA is rejected', () => {
  const { rig, pd, cq } = world();
  const other = rig.srq(rig.pd(rig.device(rig.kernel.hcaDriver.guids()[0]!)));
  expect(rig.ioctl('QP_CREATE', rig.qpInput(pd, cq, { srqId: other })), Status.INVALID_PARAMETER);
  sound(rig);
});

test('K13: the limit event completes all pending requests; without any, one event is kept', () => {
  const { rig, notify, raise } = world();
  const waits = [notify(), notify()];
  assert.equal(names(waits), ['PENDING', 'PENDING']);
  raise(SrqEventType.limit);
  assert.equal(names(waits), ['ALERTED', 'ALERTED']);
  raise(SrqEventType.limit);
  raise(SrqEventType.limit);
  expect(notify(), Status.ALERTED);
  const waiting = notify();
  expect(waiting, Status.PENDING);
  waiting.cancel();
  expect(waiting, Status.CANCELED);
  assert.is(rig.kernel.io.pendingRequests, 0);
  sound(rig);
});

test('setting the limit again discards the event of the old one', () => {
  const { rig, srq, notify, raise } = world();
  raise(SrqEventType.limit);
  expect(rig.ioctl('SRQ_MODIFY', s.WvIoSrqAttributes.encode({ id: { id: srq }, maxWr: 16 })), Status.SUCCESS);
  const waiting = notify();
  expect(waiting, Status.PENDING);
  expect(rig.ioctl('SRQ_CANCEL', rig.id(srq), 0), Status.SUCCESS);
  expect(waiting, Status.CANCELED);
  sound(rig);
});

test('the end of a QP on the queue is reported after the limit, and not once the QP is destroyed', () => {
  const { rig, withSrq, notify, raise } = world();
  const qp = withSrq();
  const handle = [...rig.hca.qps.keys()].at(-1)!;
  const last = () => {
    rig.hca.events.push({ type: 'qp', qp: handle, token: 77, event: QpEventType.lastWqe, reason: 0 });
    rig.events();
  };
  const waiting = notify();
  last();
  expect(waiting, Status.NOTIFY_CLEANUP);
  last();
  raise(SrqEventType.limit);
  expect(notify(), Status.ALERTED);
  expect(notify(), Status.NOTIFY_CLEANUP);
  last();
  expect(rig.ioctl('QP_DESTROY', rig.id(qp)), Status.SUCCESS);
  last();
  const later = notify();
  expect(later, Status.PENDING);
  later.cancel();
  sound(rig);
});

test('the failure of a queue is permanently reported to all requests', () => {
  const { rig, notify, raise } = world();
  const waiting = notify();
  raise(SrqEventType.fatal);
  expect(waiting, Status.UNEXPECTED_IO_ERROR);
  expect(notify(), Status.UNEXPECTED_IO_ERROR);
  expect(notify(), Status.UNEXPECTED_IO_ERROR);
  sound(rig);
});

test('destroying a queue and closing the file cancel pending requests; events of destroyed queues are ignored', () => {
  const { rig, pd, srq, handle, notify, raise } = world();
  const second = rig.srq(pd);
  const waits = [notify(), notify(second)];
  expect(rig.ioctl('SRQ_DESTROY', rig.id(srq)), Status.SUCCESS);
  assert.equal(names(waits), ['CANCELED', 'PENDING']);
  raise(SrqEventType.limit, handle);
  rig.close();
  assert.equal(names(waits), ['CANCELED', 'CANCELED']);
  assert.is(rig.hca.srqs.size, 0);
  assert.is(rig.registry.srqs.size, 0);
  sound(rig);
});

for (const [way, code, status] of [
  ['an unplugged', FaultsCode.UNPLUG, 'DEVICE_REMOVED'],
  ['a failed', FaultsCode.FATAL, 'FILE_FORCED_CLOSED'],
] as const) {
  test(`${way} device ends pending requests; queues can be destroyed, but not created or modified`, () => {
    const { rig, pd, srq, notify } = world();
    const waiting = notify();
    const file = rig.open('\\\\.\\NetworkDirectFaults').answer!.information;
    rig.control(code, s.WvIoGuid.encode({ guid: ethGuid }), 0, file);
    assert.equal(names([waiting, notify()]), [status, status]);
    expect(rig.ioctl('SRQ_CREATE', rig.srqInput(pd)), Status.FILE_FORCED_CLOSED);
    expect(rig.ioctl('SRQ_MODIFY', rig.srqInput(srq)), Status.FILE_FORCED_CLOSED);
    expect(rig.ioctl('SRQ_DESTROY', rig.id(srq)), Status.SUCCESS);
    sound(rig);
  });
}

test('ids: every request on a nonexistent queue ends in NOT_FOUND', () => {
  const { rig } = world();
  for (const name of ['SRQ_DESTROY', 'SRQ_NOTIFY', 'SRQ_CANCEL'] as const) {
    expect(rig.ioctl(name, rig.id(99n)), Status.NOT_FOUND, name);
  }
  expect(rig.ioctl('SRQ_MODIFY', rig.srqInput(99n)), Status.NOT_FOUND);
});

test.run();
