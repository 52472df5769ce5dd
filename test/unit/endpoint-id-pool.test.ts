/** The pool of endpoint ids: it answers EP_CREATE in programs that make many endpoints. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { IoctlCode } from '../../kernel-bridge/ioctl/codes.js';
import { WvEpIds, WvIoEpCreate, WvIoObject } from '../../kernel-bridge/ioctl/structs.js';
import { EndpointIdPool } from '../../kernel-bridge/soft/endpoint-id-pool.js';

const { EP_CREATE, EP_QUERY } = IoctlCode;
const connect = WvIoEpCreate.encode({ epType: 0x106n });
const datagram = WvIoEpCreate.encode({ epType: 0x111n });

function rig() {
  const state = { ended: false, asked: 0, next: 1n };
  const cacheEpoch = new Int32Array(new SharedArrayBuffer(4));
  const pool = new EndpointIdPool(cacheEpoch, () => state.ended);
  /** A kernel that fills the whole output. */
  const create = (input = connect): bigint => {
    const taken = pool.take(EP_CREATE, input, 8);
    if (taken !== undefined) return WvIoObject.decode(taken).id;
    state.asked++;
    const ids = Array.from({ length: pool.roomFor(EP_CREATE, input, 8) / 8 }, () => state.next++);
    const answer = pool.fill(WvEpIds.encode(ids));
    assert.is(answer.length, 8);
    return WvIoObject.decode(answer).id;
  };
  return { state, cacheEpoch, pool, create };
}

test('a program with few endpoints sends one request for each', () => {
  const { state, create } = rig();
  for (let n = 1n; n <= 16n; n++) assert.is(create(), n);
  assert.is(state.asked, 16);
});

test('a program with many requests ids in batches, and gets each id once', () => {
  const { state, create } = rig();
  const ids = new Set(Array.from({ length: 16 + 64 }, () => create()));
  assert.is(ids.size, 80);
  assert.is(state.asked, 16 + 4);
});

test('the pool serves connect endpoints only, and only requests of the usual form', () => {
  const { state, pool, create } = rig();
  for (let n = 0; n < 17; n++) create();
  assert.is(pool.take(EP_CREATE, datagram, 8), undefined);
  assert.is(pool.take(EP_CREATE, connect, 16), undefined);
  assert.is(pool.take(EP_CREATE, connect.subarray(0, 4), 8), undefined);
  assert.is(pool.take(EP_CREATE, null, 8), undefined);
  assert.is(pool.take(EP_QUERY, connect, 8), undefined);
  for (let n = 0; n < 40; n++) assert.is(pool.roomFor(EP_CREATE, datagram, 8), 8);
  const { asked } = state;
  create();
  assert.is(state.asked, asked);
});

test('a kernel that returns one id at a time is asked each time', () => {
  const { pool } = rig();
  for (let n = 0; n < 20; n++) {
    assert.is(pool.take(EP_CREATE, connect, 8), undefined);
    pool.roomFor(EP_CREATE, connect, 8);
    const one = WvIoObject.encode({ id: 7n });
    assert.is(pool.fill(one), one);
  }
});

test('the pool serves nothing after the kernel has ended; a new cache epoch alone keeps the ids valid', () => {
  const { state, cacheEpoch, pool, create } = rig();
  for (let n = 0; n < 17; n++) create();
  Atomics.add(cacheEpoch, 0, 1);
  assert.ok(pool.take(EP_CREATE, connect, 8));
  Atomics.add(cacheEpoch, 0, 1);
  state.ended = true;
  assert.is(pool.take(EP_CREATE, connect, 8), undefined);
});

test.run();
