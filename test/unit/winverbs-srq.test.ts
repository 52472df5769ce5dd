// IWVSharedReceiveQueue over a fake kernel: its requests through the door, and their results.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { IoctlCode } from '../../kernel-bridge/ioctl/codes.js';
import { SrqProviderIn } from '../../kernel-bridge/ioctl/provider-data.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import { WvIoQpCreate, WvIoSrqAttributes } from '../../kernel-bridge/ioctl/structs.js';
import type { IWVSharedReceiveQueue, WvError } from '../../winverbs/index.js';
import { throwsWv } from '../helpers/outcome.js';
import { failWith, openPair } from '../helpers/rig-door.js';

test('creation sends the requested size and the ring; a queue pair passes the queue, but no receive depths', () => {
  const { pd, cq, door } = openPair();
  const srq = pd.createSharedReceiveQueue(5, 2, 3);
  const input = door.input('SRQ_CREATE');
  const { maxWr, maxSge, srqLimit } = WvIoSrqAttributes.decode(input);
  assert.equal([maxWr, maxSge, srqLimit], [8, 2, 3]);
  const ring = SrqProviderIn.decode(input, WvIoSrqAttributes.size);
  assert.equal([ring.entries, ring.stride, ring.ringBytes], [8, 48, 128 + 8 * 48]);
  const sizes = { sendDepth: 1, sendSge: 1, receiveDepth: 1 << 30, receiveSge: 1 << 30 };
  const qp = pd.createConnectQueuePair({ sendCq: cq, receiveCq: cq, srq, ...sizes });
  const { srqId, receiveDepth, receiveSge } = WvIoQpCreate.decode(door.input('QP_CREATE'));
  assert.ok(srqId !== 0n);
  assert.equal([receiveDepth, receiveSge], [0, 0]);
  srq.release();
  assert.not(door.log.includes('SRQ_DESTROY'), 'the queue pair keeps it');
  qp.release();
  assert.ok(door.log.indexOf('QP_DESTROY') < door.log.indexOf('SRQ_DESTROY'));
});

test('U15: modify sends size and limit, and the provider gets both', () => {
  const { pd, door } = openPair();
  const srq = pd.createSharedReceiveQueue(4, 1);
  const rings = door.rig.hca.rings.size;
  const seen: unknown[] = [];
  const { verbs } = door;
  const preModifySrq = verbs.preModifySrq.bind(verbs);
  verbs.preModifySrq = (handle, attributes, umv) => {
    seen.push({ ...attributes });
    preModifySrq(handle, attributes, umv);
  };
  srq.modify(20, 7);
  assert.equal(seen, [{ maxWr: 20, maxSge: 0, srqLimit: 7 }]);
  const input = door.input('SRQ_MODIFY');
  const { maxWr, srqLimit } = WvIoSrqAttributes.decode(input);
  assert.equal([maxWr, srqLimit], [32, 7]);
  assert.is(SrqProviderIn.decode(input, WvIoSrqAttributes.size).entries, 32);
  // The size is the same, so only the limit is sent, without a ring.
  srq.modify(32, 1);
  assert.is(door.input('SRQ_MODIFY').length, WvIoSrqAttributes.size);
  assert.is(door.rig.hca.rings.size, rings);
  door.on('SRQ_MODIFY', () => failWith(Status.BUFFER_OVERFLOW));
  throwsWv(() => srq.modify(4, 0), Status.BUFFER_OVERFLOW);
  assert.is(door.rig.hca.rings.size, rings);
  for (let i = 0; i < 32; i++) srq.postReceive(i, []);
  throwsWv(() => srq.postReceive(32, []), Status.NO_MORE_ENTRIES);
});

test('U16: a failed query is reported, for shared receive queues and queue pairs', () => {
  const { pd, qp, door } = openPair();
  const srq = pd.createSharedReceiveQueue(8, 2, 3);
  assert.equal(srq.query(), { maxWr: 8, maxSge: 2, srqLimit: 3 });
  for (const [name, query] of [
    ['SRQ_QUERY', () => srq.query()],
    ['QP_QUERY', () => qp.query()],
  ] as const) {
    door.handlers.set(IoctlCode[name], () => failWith(Status.DEVICE_REMOVED));
    throwsWv(query, Status.DEVICE_REMOVED);
  }
});

test('notify ends in the event of its status; other statuses are failures', async () => {
  const { pd, door } = openPair();
  const srq = pd.createSharedReceiveQueue(4, 1);
  const endsIn = async (status: number) => {
    const request = srq.notify();
    door.request('SRQ_NOTIFY').complete(status);
    try {
      return await request;
    } catch (error) {
      return (error as WvError).status;
    }
  };
  assert.is(await endsIn(Status.ALERTED), 'limit');
  assert.is(await endsIn(Status.NOTIFY_CLEANUP), 'lastWqe');
  for (const status of [Status.UNEXPECTED_IO_ERROR, Status.CANCELED, Status.DEVICE_REMOVED]) {
    assert.is(await endsIn(status), status);
  }
  const waiting = srq.notify();
  assert.is(waiting.status, Status.PENDING);
  waiting.cancel();
  assert.is(waiting.status, Status.CANCELED);
  const last = srq.notify();
  srq.release();
  assert.is(last.status, Status.CANCELED);
});

test('a provider without shared receive queues is NOT_SUPPORTED; a foreign queue is rejected', () => {
  const { pd, cq, door } = openPair();
  const sizes = { sendDepth: 1, sendSge: 1, receiveDepth: 1, receiveSge: 1 };
  const foreign = openPair().pd.createSharedReceiveQueue(1, 1);
  for (const srq of [foreign, {} as IWVSharedReceiveQueue]) {
    throwsWv(
      () => pd.createConnectQueuePair({ sendCq: cq, receiveCq: cq, srq, ...sizes }),
      Status.INVALID_PARAMETER,
    );
  }
  Object.defineProperty(door.verbs, 'postSrqReceive', { value: undefined });
  throwsWv(() => pd.createSharedReceiveQueue(1, 1), Status.NOT_SUPPORTED);
});

test.run();
