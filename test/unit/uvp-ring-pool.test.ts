/** Queue pairs whose rings share allocations never affect each other or later ones. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { TokenTable } from '../../kernel-bridge/door/token-table.js';
import { UvpBindRequest, UvpSendRequest } from '../../kernel-bridge/door/user-verbs.js';
import { QpState, QpType, WvOpcode } from '../../kernel-bridge/ioctl/constants.js';
import { Status, StatusError } from '../../kernel-bridge/ioctl/status.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';
import { SoftCompletionQueue } from '../../kernel-bridge/uvp/completion-queue.js';
import { SoftMemoryWindow } from '../../kernel-bridge/uvp/memory-keys.js';
import { SoftQueuePair } from '../../kernel-bridge/uvp/queue-pair.js';
import { addressOf, qpRingLayout, type RingPlace, RingPool } from '../../kernel-bridge/uvp/rings.js';
import { FakeHca } from '../helpers/fake-hca.js';

const BYTES = 200;
const STEP = 256;

const setUp = () => {
  const hca = new FakeHca();
  return { hca, pool: new RingPool(hca) };
};
const take = (pool: RingPool, count: number) => Array.from({ length: count }, () => pool.take(BYTES));
/** The actual sizes. */
const sizesOf = (pool: RingPool) =>
  (pool as unknown as { sizes: Map<number, { blocks: RingPlace['block'][] }> }).sizes;
const bytesOf = ({ block, offset }: RingPlace) => new Uint8Array(block.ring.buffer, offset, BYTES);

test('a few rings have separate allocations, many share them in groups of 16, and none overlap', () => {
  const { hca, pool } = setUp();
  pool.take(BYTES);
  assert.equal(
    [...hca.rings.values()].map(({ bytes }) => bytes),
    [BYTES],
    'the first is alone',
  );
  const addresses = take(pool, 99)
    .map(addressOf)
    .sort((a, b) => a - b);
  for (const [i, address] of addresses.entries()) {
    assert.is(address % 64, 0);
    if (i > 0) assert.ok(address - addresses[i - 1]! >= STEP);
  }
  assert.ok(hca.rings.size < 12, `${hca.rings.size} allocations`);
  assert.is(Math.max(...[...hca.rings.values()].map(({ bytes }) => bytes)), 16 * STEP);
});

test('rings that differ by less than the alignment share allocations, the longer one at any offset', () => {
  const { hca, pool } = setUp();
  for (let n = 0; n < 64; n++) {
    const bytes = n % 3 === 0 ? STEP : BYTES;
    const { block, offset } = pool.take(bytes);
    assert.ok(offset + bytes <= hca.rings.get(block.ring.address)!.bytes, `ring ${n}`);
  }
  assert.ok(hca.rings.size < 12);
});

test('large rings have their own allocations, and different sizes do not share any', () => {
  const { hca, pool } = setUp();
  for (let i = 0; i < 4; i++) pool.take(9000);
  assert.is(hca.rings.size, 4);
  pool.take(BYTES);
  assert.equal(
    [...hca.rings.values()].map(({ bytes }) => bytes),
    [9000, 9000, 9000, 9000, BYTES],
  );
});

test('an allocation is released with its last ring, in any order', () => {
  const { hca, pool } = setUp();
  const places = take(pool, 50);
  for (const place of [...places.slice(20), ...places.slice(0, 20).reverse()]) pool.give(place, BYTES, true);
  assert.is(hca.rings.size, 0);
  for (const place of take(pool, 50)) pool.give(place, BYTES, false);
  assert.is(hca.rings.size, 0, 'also where the HCA has not confirmed the end');
});

test('a released slot is zeroed and reused', () => {
  const { pool } = setUp();
  const places = take(pool, 8);
  const given = places[5]!;
  bytesOf(given).fill(0xee);
  pool.give(given, BYTES, true);
  const next = take(pool, 8).find((place) => addressOf(place) === addressOf(given));
  assert.ok(next);
  assert.ok(bytesOf(next!).every((byte) => byte === 0));
});

test('a slot that the HCA may still use is not reused', () => {
  const { pool } = setUp();
  const places = take(pool, 8);
  const given = places[5]!;
  pool.give(given, BYTES, false);
  assert.not.ok(take(pool, 32).some((place) => addressOf(place) === addressOf(given)));
});

test('blocks with a free slot keep their index in the list, in any order of allocations and releases', () => {
  const { hca, pool } = setUp();
  const inUse = new Map<number, RingPlace>();
  const takeOne = () => {
    const place = pool.take(BYTES);
    assert.not.ok(inUse.has(addressOf(place)), 'a place is one ring’s');
    inUse.set(addressOf(place), place);
  };
  for (let i = 0; i < 300; i++) takeOne();
  // A separate generator, so that the order is the same in every run.
  let seed = 1;
  const random = (below: number) => {
    seed = (seed * 48271) % 0x7fff_ffff;
    return seed % below;
  };
  const consistent = () => {
    for (const [index, block] of sizesOf(pool).get(STEP)!.blocks.entries()) {
      assert.is(block.index, index);
      assert.ok(block.free.length > 0);
    }
    for (const { block } of inUse.values()) assert.is(block.index >= 0, block.free.length > 0);
  };
  // Allocations come in waves. In between nearly all end, so that blocks are released between others and created again.
  for (let i = 0; i < 4000; i++) {
    const most = Math.floor(i / 500) % 2 === 0 ? 1 : 3;
    if (random(4) >= most) takeOne();
    else if (inUse.size > 0) {
      const address = [...inUse.keys()][random(inUse.size)]!;
      pool.give(inUse.get(address)!, BYTES, random(10) > 0);
      inUse.delete(address);
    }
    if (i % 50 === 0) consistent();
  }
  for (const place of inUse.values()) pool.give(place, BYTES, true);
  assert.is(hca.rings.size, 0);
  assert.is(sizesOf(pool).size, 0);
});

test('a failed allocation leaves nothing behind', () => {
  const { hca, pool } = setUp();
  const { allocateRing } = hca;
  hca.allocateRing = () => {
    throw new Error('no memory');
  };
  for (let i = 1; i <= 10; i++) assert.throws(() => pool.take(i * 64), 'no memory');
  assert.is(sizesOf(pool).size, 0);
  hca.allocateRing = allocateRing;
  take(pool, 3);
  assert.is(hca.rings.size, 3, 'one, one and two places');
});

/** Queue pairs of one pool. */
function setUpQueuePairs() {
  const { hca, pool } = setUp();
  const tokens = new TokenTable<SoftQueuePair>();
  const cq = new SoftCompletionQueue(hca, tokens, 64);
  const create = {
    type: QpType.RC,
    sendCq: cq,
    receiveCq: cq,
    context: undefined,
    sendDepth: 2,
    sendSge: 1,
    receiveDepth: 2,
    receiveSge: 1,
    maxInlineSend: 32,
  };
  const make = () => new SoftQueuePair(hca, tokens, create, qpRingLayout(create), cq, cq, null, pool);
  /** The words of the ring's allocation, and the index of the ring's first one. */
  const wordsOf = (qp: SoftQueuePair) => {
    const { address, words } = [...hca.rings.values()].find(
      (ring) => ring.address <= qp.address && qp.address < ring.address + ring.bytes,
    )!;
    return { words, at: (qp.address - address) / 4 };
  };
  return { hca, tokens, make, wordsOf };
}

const refused = (error: unknown) =>
  error instanceof StatusError && error.status === Status.INVALID_DEVICE_STATE;

test('posts to a destroyed queue pair do not reach other rings', () => {
  const { make, wordsOf } = setUpQueuePairs();
  const places = Array.from({ length: 4 }, make);
  const ended = places[3]!;
  ended.close(true);
  const successor = make();
  assert.is(successor.address, ended.address);
  const { words, at } = wordsOf(successor);
  words[at + abi.qpState] = QpState.RTS;
  const before = words.slice();
  const request = new UvpSendRequest();
  request.opcode = WvOpcode.SEND;
  assert.throws(() => ended.postSend(request), refused);
  assert.throws(() => ended.postReceive(0, []), refused);
  ended.submitBatch();
  ended.reset();
  assert.equal(words, before);
  assert.is(successor.state, QpState.RTS);
});

test('a queue pair is released once, so its slot is never assigned to two others', () => {
  const { hca, make } = setUpQueuePairs();
  const others = hca.rings.size;
  const queuePairs = Array.from({ length: 8 }, make);
  const [ended] = queuePairs.splice(5, 1);
  ended!.close(true);
  ended!.close(true);
  queuePairs.push(make(), make(), make());
  assert.is(new Set(queuePairs.map(({ address }) => address)).size, 10);
  for (const qp of queuePairs) qp.close(true);
  assert.is(hca.rings.size, others);
});

test('a batch interrupted by the queue pair’s destruction does not ring a doorbell', () => {
  const { hca, make, wordsOf } = setUpQueuePairs();
  const qp = make();
  const { words, at } = wordsOf(qp);
  words[at + abi.qpState] = QpState.RTS;
  qp.startBatch();
  qp.postSend(Object.assign(new UvpSendRequest(), { opcode: WvOpcode.SEND }));
  qp.close(true);
  qp.submitBatch();
  assert.equal(hca.log, []);
});

test('a bind reads its request before it checks the queue pair, which a getter may destroy', () => {
  const { make, wordsOf } = setUpQueuePairs();
  const ended = Array.from({ length: 4 }, make)[3]!;
  const { words, at } = wordsOf(ended);
  words[at + abi.qpState] = QpState.RTS;
  const region = {
    lkey: 0x77,
    get address() {
      ended.close(true);
      return 0x1000;
    },
  };
  const request = Object.assign(new UvpBindRequest(), { region, length: 8 });
  assert.throws(() => ended.bind(new SoftMemoryWindow(), request), refused);
  assert.ok(words.subarray(at).every((word) => word === 0));
});

test('a queue pair without memory gets no token, and one without a token gets no memory', () => {
  const { hca, tokens, make } = setUpQueuePairs();
  const { free, slots } = tokens as unknown as { free: number[]; slots: unknown[] };
  const { allocateRing } = hca;
  hca.allocateRing = () => {
    throw new Error('no memory');
  };
  assert.throws(make, 'no memory');
  assert.equal([slots.length, free.length], [0, 0]);
  hca.allocateRing = allocateRing;
  const before = hca.rings.size;
  slots.length = 0x10000;
  assert.throws(make, /65536/);
  assert.is(hca.rings.size, before);
});

test.run();
