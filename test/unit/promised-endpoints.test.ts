/** Ids of endpoints that the kernel has promised: they answer EP_CREATE for who makes many. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { IoctlCode } from '../../kernel-bridge/ioctl/codes.js';
import { WvEpIds, WvIoEpCreate, WvIoObject } from '../../kernel-bridge/ioctl/structs.js';
import { PromisedEndpoints } from '../../kernel-bridge/soft/promised-endpoints.js';

const { EP_CREATE, EP_QUERY } = IoctlCode;
const connect = WvIoEpCreate.encode({ epType: 0x106n });
const datagram = WvIoEpCreate.encode({ epType: 0x111n });

function rig() {
  const state = { ended: false, asked: 0, next: 1n };
  const era = new Int32Array(new SharedArrayBuffer(4));
  const promised = new PromisedEndpoints(era, () => state.ended);
  /** A kernel that fills all room. */
  const create = (input = connect): bigint => {
    const taken = promised.take(EP_CREATE, input, 8);
    if (taken !== undefined) return WvIoObject.decode(taken).id;
    state.asked++;
    const ids = Array.from({ length: promised.roomFor(EP_CREATE, input, 8) / 8 }, () => state.next++);
    const answer = promised.keep(WvEpIds.encode(ids));
    assert.is(answer.length, 8);
    return WvIoObject.decode(answer).id;
  };
  return { state, era, promised, create };
}

test('a program with few endpoints asks for each', () => {
  const { state, create } = rig();
  for (let n = 1n; n <= 16n; n++) assert.is(create(), n);
  assert.is(state.asked, 16);
});

test('one with many asks for several at a time, and gets each id once', () => {
  const { state, create } = rig();
  const ids = new Set(Array.from({ length: 16 + 64 }, () => create()));
  assert.is(ids.size, 80);
  assert.is(state.asked, 16 + 4);
});

test('only connect endpoints are promised, and only for the plain question', () => {
  const { state, promised, create } = rig();
  for (let n = 0; n < 17; n++) create();
  assert.is(promised.take(EP_CREATE, datagram, 8), undefined);
  assert.is(promised.take(EP_CREATE, connect, 16), undefined);
  assert.is(promised.take(EP_CREATE, connect.subarray(0, 4), 8), undefined);
  assert.is(promised.take(EP_CREATE, null, 8), undefined);
  assert.is(promised.take(EP_QUERY, connect, 8), undefined);
  for (let n = 0; n < 40; n++) assert.is(promised.roomFor(EP_CREATE, datagram, 8), 8);
  const { asked } = state;
  create();
  assert.is(state.asked, asked);
});

test('a kernel that tells no more than one id is asked each time', () => {
  const { promised } = rig();
  for (let n = 0; n < 20; n++) {
    assert.is(promised.take(EP_CREATE, connect, 8), undefined);
    promised.roomFor(EP_CREATE, connect, 8);
    const one = WvIoObject.encode({ id: 7n });
    assert.is(promised.keep(one), one);
  }
});

test('after the kernel has ended nothing is promised any more; another era takes nothing back', () => {
  const { state, era, promised, create } = rig();
  for (let n = 0; n < 17; n++) create();
  Atomics.add(era, 0, 1);
  assert.ok(promised.take(EP_CREATE, connect, 8));
  Atomics.add(era, 0, 1);
  state.ended = true;
  assert.is(promised.take(EP_CREATE, connect, 8), undefined);
});

test.run();
