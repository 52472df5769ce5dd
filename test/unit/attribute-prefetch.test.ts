/** Attributes that ride on a completed request: they serve the next EP_QUERY, unless they may have changed. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { IoctlCode } from '../../kernel-bridge/ioctl/codes.js';
import {
  WvIoEpAccept,
  WvIoEpAttributes,
  WvIoEpConnect,
  WvIoEpGetRequest,
  WvIoObject,
} from '../../kernel-bridge/ioctl/structs.js';
import { AttributePrefetch } from '../../kernel-bridge/soft/attribute-prefetch.js';

const { EP_CONNECT, EP_GET_REQUEST, EP_QUERY, EP_ACCEPT } = IoctlCode;
const complete = new Uint8Array(WvIoEpAttributes.size + 140).fill(5);
/** An id as the kernel gives them: a generation above 20 bits of index. */
const id = (0xffff_fff0n << 20n) | 3n;
const other = id + 1n;

function rig() {
  const cacheEpoch = new Int32Array(new SharedArrayBuffer(4));
  const prefetch = new AttributePrefetch(cacheEpoch);
  const room = prefetch.roomFor(EP_CONNECT);
  return {
    cacheEpoch,
    prefetch,
    room,
    /** Sends an EP_CONNECT; returns the function that completes it. */
    connect: (of = id) => {
      const input = WvIoEpConnect.encode({ id: of });
      prefetch.discard(EP_CONNECT, input);
      return prefetch.expect(EP_CONNECT, input);
    },
    query: (of = id, outputLength = room) =>
      prefetch.take(EP_QUERY, WvIoObject.encode({ id: of }), outputLength),
  };
}

test('attributes from a request serve one EP_QUERY of its endpoint', () => {
  const { connect, query, room } = rig();
  const ended = connect();
  assert.is(query(), undefined);
  ended(complete);
  assert.is(query(other), undefined);
  assert.is(query(id, room - 1), undefined);
  assert.is(query(), complete);
  assert.is(query(), undefined);
});

test('EP_GET_REQUEST brings the attributes of the endpoint that it names, not of the listener', () => {
  const { prefetch, query } = rig();
  prefetch.expect(EP_GET_REQUEST, WvIoEpGetRequest.encode({ id: other, epId: id }))(complete);
  assert.is(query(other), undefined);
  assert.is(query(), complete);
});

test('any other request for the endpoint discards them, also before the completion is seen', () => {
  for (const [name, code] of Object.entries(IoctlCode)) {
    for (const late of [false, true]) {
      const { connect, query, prefetch } = rig();
      const ended = connect();
      if (!late) ended(complete);
      prefetch.discard(code, WvIoEpAccept.encode({ id }));
      if (late) ended(complete);
      const kept = !name.startsWith('EP_') || code === EP_QUERY || name === 'EP_CREATE';
      assert.is(query(), kept ? complete : undefined, name);
    }
  }
  const { connect, query, prefetch } = rig();
  connect()(complete);
  prefetch.discard(EP_ACCEPT, WvIoEpAccept.encode({ id: other }));
  assert.is(query(), complete);
});

test('a later request for the same endpoint counts, and its failure leaves nothing', () => {
  const { connect, query } = rig();
  const [first, second] = [connect(), connect()];
  first(complete);
  assert.is(query(), undefined);
  second(complete);
  assert.is(query(), complete);
});

test('an earlier request that fails late takes nothing from a later one', () => {
  const { connect, query } = rig();
  const [first, second] = [connect(), connect()];
  first(new Uint8Array(0));
  second(complete);
  assert.is(query(), complete);
});

test('attributes without private data are complete, too', () => {
  const { connect, query } = rig();
  const bare = new Uint8Array(WvIoEpAttributes.size);
  connect()(bare);
  assert.is(query(), bare);
  connect()(bare.subarray(1));
  assert.is(query(), undefined);
});

test('a new cache epoch since the request was sent discards them', () => {
  for (const when of ['before its end', 'after its end']) {
    const { connect, query, cacheEpoch } = rig();
    const ended = connect();
    if (when === 'before its end') Atomics.add(cacheEpoch, 0, 1);
    ended(complete);
    if (when === 'after its end') Atomics.add(cacheEpoch, 0, 1);
    assert.is(query(), undefined, when);
    connect()(complete);
    assert.is(query(), complete);
  }
});

test('without prefetched attributes the kernel is asked', () => {
  const { connect, query } = rig();
  connect()(new Uint8Array(0));
  assert.is(query(), undefined);
});

test('inputs without a complete id, or with an id that no table gives, name no endpoint', () => {
  const { prefetch, room, connect, query } = rig();
  connect()(complete);
  assert.is(query(id | (1n << 56n)), undefined, 'one that is the same but for its last byte');
  assert.is(query(), complete);
  // A double cannot distinguish these numbers.
  const vast = 0x40n << 48n;
  connect(vast)(complete);
  assert.is(query(vast | 1n), undefined);
  for (const input of [null, new Uint8Array(7), new Uint8Array(8).fill(0xff), new Uint8Array(8)]) {
    prefetch.expect(EP_CONNECT, input)(complete);
    prefetch.discard(EP_ACCEPT, input);
    assert.is(prefetch.take(EP_QUERY, input, room), undefined);
  }
});

test.run();
