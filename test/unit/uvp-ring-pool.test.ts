/** Queue pairs whose rings share allocations: apart from each other, also in time. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { abi } from '../../kernel-bridge/hca/abi.js';
import { QpState, QpType, WvOpcode } from '../../kernel-bridge/ioctl/constants.js';
import { Status, StatusError } from '../../kernel-bridge/ioctl/status.js';
import { UvpSendRequest } from '../../kernel-bridge/user-verbs.js';
import { SoftCompletionQueue } from '../../kernel-bridge/uvp/completion-queue.js';
import { qpRingLayout, SoftQueuePair, TokenTable } from '../../kernel-bridge/uvp/queue-pair.js';
import { addressOf, type RingPlace, RingPool } from '../../kernel-bridge/uvp/ring-pool.js';
import { FakeHca } from '../helpers/fake-hca.js';

const BYTES = 200;
const STEP = 256;

const setUp = () => {
  const hca = new FakeHca();
  return { hca, pool: new RingPool(hca) };
};
const take = (pool: RingPool, count: number) => Array.from({ length: count }, () => pool.take(BYTES));
const bytesOf = ({ block, offset }: RingPlace) => new Uint8Array(block.ring.buffer, offset, BYTES);

test('a few rings have few allocations, many are 16 together, and none touches another', () => {
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
  assert.is(Math.max(...[...hca.rings.values()].map(({ bytes }) => bytes)), 15 * STEP + BYTES);
});

test('large rings are alone, and sizes do not mix', () => {
  const { hca, pool } = setUp();
  for (let i = 0; i < 4; i++) pool.take(9000);
  assert.is(hca.rings.size, 4);
  pool.take(BYTES);
  assert.equal(
    [...hca.rings.values()].map(({ bytes }) => bytes),
    [9000, 9000, 9000, 9000, BYTES],
  );
});

test('an allocation is given back with its last ring, in whatever order they end', () => {
  const { hca, pool } = setUp();
  const places = take(pool, 50);
  for (const place of [...places.slice(20), ...places.slice(0, 20).reverse()]) pool.give(place, BYTES, true);
  assert.is(hca.rings.size, 0);
  for (const place of take(pool, 50)) pool.give(place, BYTES, false);
  assert.is(hca.rings.size, 0, 'also where the HCA has not confirmed the end');
});

test('a place that is given back is the next one’s, zeroed', () => {
  const { pool } = setUp();
  const places = take(pool, 8);
  const given = places[5]!;
  bytesOf(given).fill(0xee);
  pool.give(given, BYTES, true);
  const next = take(pool, 8).find((place) => addressOf(place) === addressOf(given));
  assert.ok(next);
  assert.ok(bytesOf(next!).every((byte) => byte === 0));
});

test('a place that the HCA may still use is nobody’s', () => {
  const { pool } = setUp();
  const places = take(pool, 8);
  const given = places[5]!;
  pool.give(given, BYTES, false);
  assert.not.ok(take(pool, 32).some((place) => addressOf(place) === addressOf(given)));
});

test('a queue pair that has ended writes into nobody’s ring', () => {
  const { hca, pool } = setUp();
  const tokens = new TokenTable();
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
  const places = Array.from({ length: 4 }, make);
  const ended = places[3]!;
  ended.close(true);
  const successor = make();
  assert.is(successor.address, ended.address);
  const { address, words } = [...hca.rings.values()].find(
    (ring) => ring.address <= successor.address && successor.address < ring.address + ring.bytes,
  )!;
  const at = (successor.address - address) / 4;
  words[at + abi.qpState] = QpState.RTS;
  const before = words.slice();
  const request = new UvpSendRequest();
  request.opcode = WvOpcode.SEND;
  const refused = (error: unknown) =>
    error instanceof StatusError && error.status === Status.INVALID_DEVICE_STATE;
  assert.throws(() => ended.postSend(request), refused);
  assert.throws(() => ended.postReceive(0, []), refused);
  ended.submitBatch();
  ended.reset();
  assert.equal(words, before);
  assert.is(successor.state, QpState.RTS);
});

test.run();
