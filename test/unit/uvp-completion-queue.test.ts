import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { TokenTable } from '../../kernel-bridge/door/token-table.js';
import { type UvpCompletion, UvpSendRequest } from '../../kernel-bridge/door/user-verbs.js';
import { QpState, QpType } from '../../kernel-bridge/ioctl/constants.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';
import { cqRingBytes, SoftCompletionQueue } from '../../kernel-bridge/uvp/completion-queue.js';
import { SoftQueuePair } from '../../kernel-bridge/uvp/queue-pair.js';
import { qpRingLayout } from '../../kernel-bridge/uvp/rings.js';
import { FakeHca, writeCqe } from '../helpers/fake-hca.js';

function setUp() {
  const hca = new FakeHca();
  const tokens = new TokenTable<SoftQueuePair>();
  const cq = new SoftCompletionQueue(hca, tokens, 4);
  const ring = hca.rings.get(cq.ring.address)!;
  const makeQp = (context: unknown = 'qp', other = cq) => {
    const create = {
      type: QpType.RC,
      sendCq: cq,
      receiveCq: other,
      context,
      sendDepth: 4,
      sendSge: 1,
      receiveDepth: 4,
      receiveSge: 1,
      maxInlineSend: 0,
    };
    const qp = new SoftQueuePair(hca, tokens, create, qpRingLayout(create), cq, other);
    hca.rings.get(qp.address)!.words[abi.qpState] = QpState.RTS;
    for (let i = 0; i < 4; i++) {
      qp.postSend(new UvpSendRequest());
      qp.postReceive(undefined, []);
    }
    return qp;
  };
  return { hca, tokens, cq, ring, makeQp };
}

test('poll reuses objects, creates missing ones, and publishes the consumer index', () => {
  const { cq, ring, makeQp } = setUp();
  const qp = makeQp();
  const completions: UvpCompletion[] = [];
  for (let i = 0; i < 3; i++) writeCqe(ring, { token: qp.token, wqe: i, length: 10 + i });
  assert.is(cq.peek(), 3);
  assert.is(cq.poll(completions, 2), 2);
  assert.equal(
    completions.map(({ length }) => length),
    [10, 11],
  );
  assert.is(ring.words[abi.cqConsumer], 2);
  const [first] = completions;
  assert.is(cq.poll(completions, 2), 1);
  assert.is(completions[0], first);
  assert.is(first!.length, 12);
  assert.is(cq.poll(completions, 2), 0);
});

test('a nested poll from a completion’s setter returns nothing, and the outer poll returns all', () => {
  const { cq, ring, makeQp } = setUp();
  const qp = makeQp();
  for (let i = 0; i < 3; i++) writeCqe(ring, { token: qp.token, wqe: i, length: 10 + i });
  const completions: UvpCompletion[] = [];
  assert.is(cq.poll(completions, 1), 1);
  const counts: number[] = [];
  for (const field of ['context', 'length'] as const) {
    let held: unknown;
    Object.defineProperty(completions[0], field, {
      get: () => held,
      set: (value) => {
        held = value;
        counts.push(cq.poll([], 4));
      },
    });
  }
  assert.is(cq.poll(completions, 1), 1);
  assert.is(completions[0]!.length, 11);
  assert.is(ring.words[abi.cqConsumer], 2);
  assert.is(cq.poll(completions, 1), 1);
  assert.is(completions[0]!.length, 12);
  assert.is(ring.words[abi.cqConsumer], 3);
  assert.equal(counts, [0, 0, 0, 0]);
});

test('a poll into an object that cannot be written leaves the queue usable', () => {
  const { cq, ring, makeQp } = setUp();
  const qp = makeQp();
  writeCqe(ring, { token: qp.token, wqe: 0, length: 10 });
  assert.throws(() => cq.poll([Object.freeze({}) as UvpCompletion], 1), TypeError);
  const completions: UvpCompletion[] = [];
  assert.is(cq.poll(completions, 1), 1);
  assert.is(completions[0]!.length, 10);
});

test('a poll of an empty ring advances the engine once and checks again', () => {
  const { cq, ring, makeQp, hca } = setUp();
  const qp = makeQp();
  let calls = 0;
  hca.onProgress = () => {
    calls++;
    writeCqe(ring, { token: qp.token, wqe: 0 });
  };
  assert.is(cq.poll([], 1), 1);
  assert.is(calls, 1);
  hca.onProgress = () => {
    calls++;
  };
  assert.is(cq.poll([], 1), 0);
  assert.is(cq.peek(), 0);
  assert.is(calls, 3);
});

test('the ring wraps around', () => {
  const { cq, ring, makeQp } = setUp();
  const qp = makeQp();
  const completions: UvpCompletion[] = [];
  for (let i = 0; i < 11; i++) {
    writeCqe(ring, { token: qp.token, wqe: i, length: i });
    assert.is(cq.poll(completions, 4), 1);
    assert.is(completions[0]!.length, i);
    qp.postSend(new UvpSendRequest());
  }
});

test('U8: an overrun queue returns its entries, and then reports the overrun', () => {
  const { cq, ring, makeQp } = setUp();
  const qp = makeQp();
  writeCqe(ring, { token: qp.token, wqe: 0 });
  ring.words[abi.cqState] = 1;
  assert.is(cq.poll([], 4), 1);
  assert.is(cq.poll([], 4), -1);
});

test('completions are assigned to their queue pairs', () => {
  const { cq, ring, makeQp } = setUp();
  const a = makeQp('a');
  const b = makeQp('b');
  writeCqe(ring, { token: b.token, wqe: 0 });
  writeCqe(ring, { token: a.token, wqe: 0 });
  const completions: UvpCompletion[] = [];
  cq.poll(completions, 4);
  assert.equal(
    completions.map(({ qpContext }) => qpContext),
    ['b', 'a'],
  );
});

test('completions of a destroyed queue pair stay readable, and its token is not reused before they are read', () => {
  const { cq, ring, makeQp, tokens, hca } = setUp();
  const qp = makeQp('old');
  const { token } = qp;
  writeCqe(ring, { token, wqe: 0 });
  writeCqe(ring, { token, wqe: 1 });
  qp.close();
  assert.is(hca.rings.size, 1, 'its ring is released');
  assert.is.not(makeQp('new').token & 0xffff, token & 0xffff);
  const completions: UvpCompletion[] = [];
  cq.poll(completions, 1);
  assert.is(completions[0]!.qpContext, 'old');
  assert.is(tokens.find(token), qp);
  cq.poll(completions, 1);
  assert.is(completions[0]!.qpContext, 'old');
  assert.is(tokens.find(token), undefined);
  const next = makeQp('next');
  assert.is(next.token & 0xffff, token & 0xffff);
  assert.is.not(next.token, token);
});

test('a token is free when both queues were drained or destroyed', () => {
  const { hca, cq, ring, makeQp, tokens } = setUp();
  const other = new SoftCompletionQueue(hca, tokens, 4);
  const qp = makeQp('qp', other);
  writeCqe(ring, { token: qp.token, wqe: 0 });
  writeCqe(hca.rings.get(other.ring.address)!, { token: qp.token, wqe: 0, flags: abi.cqeFlagReceiveQueue });
  qp.close();
  cq.poll([], 4);
  assert.is(tokens.find(qp.token), qp);
  other.close();
  assert.is(tokens.find(qp.token), undefined);
});

test('resize keeps unread completions, no matter whether the HCA keeps its counters or restarts them', () => {
  for (const keep of [true, false]) {
    const { hca, cq, ring, makeQp, tokens } = setUp();
    const qp = makeQp();
    for (let i = 0; i < 3; i++) writeCqe(ring, { token: qp.token, wqe: i, length: i });
    cq.poll([], 1);
    qp.close();
    const native = hca.allocateRing(cqRingBytes(8));
    const next = hca.rings.get(native.address)!;
    const start = keep ? 1 : 0;
    next.words[abi.cqProducer] = next.words[abi.cqConsumer] = start;
    for (let i = 1; i < 3; i++) writeCqe(next, { token: qp.token, wqe: i, length: i });
    cq.moveTo(native, 8);
    const completions: UvpCompletion[] = [];
    assert.is(cq.poll(completions, 1), 1);
    assert.is(completions[0]!.length, 1);
    assert.is(tokens.find(qp.token), qp);
    assert.is(cq.poll(completions, 8), 1);
    assert.is(completions[0]!.length, 2);
    assert.is(tokens.find(qp.token), undefined);
  }
});

test.run();
