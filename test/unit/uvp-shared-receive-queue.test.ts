import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { TokenTable } from '../../kernel-bridge/door/token-table.js';
import { type UvpCompletion, UvpSendRequest } from '../../kernel-bridge/door/user-verbs.js';
import { QpState, QpType, WvOpcode } from '../../kernel-bridge/ioctl/constants.js';
import { Status } from '../../kernel-bridge/ioctl/status.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';
import { SoftCompletionQueue } from '../../kernel-bridge/uvp/completion-queue.js';
import { SoftQueuePair } from '../../kernel-bridge/uvp/queue-pair.js';
import { qpRingLayout } from '../../kernel-bridge/uvp/rings.js';
import { SoftSharedReceiveQueue, srqRingBytes } from '../../kernel-bridge/uvp/shared-receive-queue.js';
import { FakeHca, writeCqe } from '../helpers/fake-hca.js';
import { throwsStatus } from '../helpers/outcome.js';

const region = { lkey: 0xabcd_ef01, address: 0x7fee_dead_b000 };
const SHARED = abi.cqeFlagReceiveQueue | abi.cqeFlagSharedReceive;

function setUp(entries = 4) {
  const hca = new FakeHca();
  const tokens = new TokenTable<SoftQueuePair>();
  const cq = new SoftCompletionQueue(hca, tokens, 64);
  const srq = new SoftSharedReceiveQueue(hca, entries, 2, 1024);
  const makeQp = (context: unknown, type: number = QpType.RC) => {
    const create = {
      type,
      sendCq: cq,
      receiveCq: cq,
      srq,
      context,
      sendDepth: 2,
      sendSge: 1,
      receiveDepth: 9,
      receiveSge: 9,
      maxInlineSend: 0,
    };
    const qp = new SoftQueuePair(hca, tokens, create, qpRingLayout(create), cq, cq, srq);
    hca.rings.get(qp.address)!.words[abi.qpState] = QpState.RTS;
    return qp;
  };
  const words = () => hca.rings.get(srq.ring.address)!.words;
  /** Simulates an HCA that consumes `count` Receives. */
  const taken = (count: number) => {
    words()[abi.srqConsumer] = (words()[abi.srqConsumer]! + count) >>> 0;
  };
  const cqRing = hca.rings.get(cq.ring.address)!;
  const complete = (qp: SoftQueuePair, wqe: number) =>
    writeCqe(cqRing, { token: qp.token, wqe, flags: SHARED, opcode: WvOpcode.RECEIVE });
  const poll = () => {
    const completions: UvpCompletion[] = [];
    return completions
      .slice(0, cq.poll(completions, 64))
      .map(({ context, qpContext }) => [context, qpContext]);
  };
  return { hca, tokens, cq, srq, makeQp, words, taken, complete, poll };
}

test('a Receive is written to the ring as the HCA reads it', () => {
  const { srq, words, hca } = setUp();
  assert.is(hca.rings.get(srq.ring.address)!.bytes, srqRingBytes(4, 2));
  srq.postReceive('a', [{ region, offset: 16, length: 100 }]);
  srq.postReceive('b', [
    { region, offset: 0, length: 1 },
    { region, offset: 8, length: 2 },
  ]);
  const at = (abi.srqHeaderBytes + 48) / 4;
  assert.is(words()[abi.srqProducer], 2);
  assert.is(words()[abi.srqHeaderBytes / 4 + abi.rwSgeCount], 1);
  assert.equal(
    [...words().subarray(at, at + 12)],
    [...[2, 0, 0, 0], ...[0xdead_b000, 0x7fee, 1, 0xabcd_ef01], ...[0xdead_b008, 0x7fee, 2, 0xabcd_ef01]],
  );
  throwsStatus(
    () =>
      srq.postReceive(
        'c',
        [1, 2, 3].map((offset) => ({ region, offset, length: 1 })),
      ),
    Status.DATA_OVERRUN,
  );
  throwsStatus(() => srq.postReceive('c', [{ region, offset: -1, length: 1 }]), Status.INVALID_PARAMETER);
  assert.is(words()[abi.srqProducer], 2);
});

test('while a message waits for a Receive, the doorbell is rung for the queue pair that the HCA has set', () => {
  const { srq, hca, words } = setUp();
  srq.postReceive(0, []);
  assert.equal(hca.log, []);
  words()[abi.srqReceiveBell] = 77;
  srq.postReceive(1, []);
  assert.equal(hca.log, ['doorbell 77']);
});

test('an entry is free when the HCA has consumed the Receive, completed or not', () => {
  const { srq, taken } = setUp(2);
  srq.postReceive(0, []);
  srq.postReceive(1, []);
  throwsStatus(() => srq.postReceive(2, []), Status.NO_MORE_ENTRIES);
  taken(1);
  srq.postReceive(2, []);
  throwsStatus(() => srq.postReceive(3, []), Status.NO_MORE_ENTRIES);
});

test('completions in any order, of any queue pair, have the contexts of the Receive and the queue pair', () => {
  const { srq, makeQp, taken, complete, poll } = setUp();
  const [a, b] = [makeQp('a'), makeQp('b')];
  for (let i = 0; i < 4; i++) srq.postReceive(`r${i}`, []);
  taken(4);
  for (const [qp, wqe] of [
    [b, 2],
    [a, 0],
    [a, 3],
    [b, 1],
  ] as const)
    complete(qp, wqe);
  assert.equal(poll(), [
    ['r2', 'b'],
    ['r0', 'a'],
    ['r3', 'a'],
    ['r1', 'b'],
  ]);
});

test('a Receive held by a stalled message keeps its context while the queue continues, even past a counter wrap', () => {
  const { srq, makeQp, words, taken, complete, poll } = setUp(2);
  const qp = makeQp('qp');
  srq.postReceive('held', []);
  taken(1);
  for (let i = 1; i < 200; i++) {
    srq.postReceive(i, []);
    taken(1);
    complete(qp, i);
    assert.equal(poll(), [[i, 'qp']]);
  }
  complete(qp, 0);
  assert.equal(poll(), [['held', 'qp']]);
  assert.is(words()[abi.srqProducer], 200);
});

test('a new ring: posted and unpolled Receives keep their contexts, and the old ring is released', () => {
  const { hca, srq, makeQp, taken, complete, poll } = setUp(2);
  const qp = makeQp('qp');
  srq.postReceive(0, []);
  srq.postReceive(1, []);
  taken(1);
  const ring = hca.allocateRing(srqRingBytes(8, 2));
  const now = new Uint32Array(ring.buffer);
  now[abi.srqConsumer] = 1;
  now[abi.srqProducer] = 2;
  srq.next = { ring, entries: 8 };
  const old = srq.moved()!;
  assert.is.not(old.address, ring.address);
  assert.is(srq.ring.address, ring.address);
  for (let i = 2; i < 9; i++) srq.postReceive(i, []);
  throwsStatus(() => srq.postReceive(9, []), Status.NO_MORE_ENTRIES);
  taken(8);
  for (let i = 0; i < 9; i++) complete(qp, i);
  assert.equal(
    poll().map(([context]) => context),
    [0, 1, 2, 3, 4, 5, 6, 7, 8],
  );
});

test('a queue pair on it has no receive queue in its ring, and rejects Receives', () => {
  const { hca, makeQp } = setUp();
  const qp = makeQp('qp');
  // The ring has room for two requests of one SGE.
  assert.is(hca.rings.get(qp.address)!.bytes, abi.qpHeaderBytes + 2 * 128);
  throwsStatus(() => qp.postReceive(0, []), Status.INVALID_DEVICE_REQUEST);
});

test('unread completions of a destroyed completion queue leave nothing behind', () => {
  const { srq, makeQp, taken, complete, cq } = setUp(2);
  const qp = makeQp('qp');
  srq.postReceive('unread', []);
  taken(1);
  complete(qp, 0);
  qp.close();
  cq.close();
  assert.is(srq.take(0), undefined);
});

test('UC: only Sends and Writes', () => {
  const { makeQp } = setUp();
  const qp = makeQp('qp', QpType.UC);
  const post = (opcode: number) => qp.postSend(Object.assign(new UvpSendRequest(), { opcode }));
  for (const opcode of [WvOpcode.RDMA_READ, WvOpcode.COMPARE_EXCHANGE, WvOpcode.FETCH_ADD]) {
    throwsStatus(() => post(opcode), Status.INVALID_PARAMETER);
  }
  post(WvOpcode.SEND);
  post(WvOpcode.RDMA_WRITE);
  throwsStatus(() => post(WvOpcode.SEND), Status.NO_MORE_ENTRIES);
});

test.run();
