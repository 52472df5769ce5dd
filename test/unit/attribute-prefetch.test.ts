/** Attributes returned with a completed request serve the next EP_QUERY, unless they may have changed. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { AttributePrefetch } from '../../kernel-bridge/door/soft/caches.js';
import { cacheUses } from '../../kernel-bridge/door/soft/soft-device-file.js';
import { HcaFileCode, IbatCode, IoctlCode } from '../../kernel-bridge/ioctl/codes.js';
import {
  epAttributesRoom as room,
  WvIoEpAccept,
  WvIoEpAttributes,
  WvIoEpConnect,
  WvIoEpGetRequest,
  WvIoObject,
} from '../../kernel-bridge/ioctl/structs.js';

const { EP_CONNECT, EP_GET_REQUEST } = IoctlCode;
const complete = new Uint8Array(WvIoEpAttributes.size + 140).fill(5);
/** An id as issued by the kernel: a generation above 20 bits of index. */
const id = (0xffff_fff0n << 20n) | 3n;
const other = id + 1n;

function rig() {
  const cacheEpoch = new Int32Array(new SharedArrayBuffer(4));
  const prefetch = new AttributePrefetch(cacheEpoch);
  return {
    cacheEpoch,
    prefetch,
    /** Sends an EP_CONNECT. Returns the function that completes it. */
    connect: (of = id) => {
      const input = WvIoEpConnect.encode({ id: of });
      prefetch.discard(input);
      return prefetch.expect(EP_CONNECT, input);
    },
    query: (of = id, outputLength = room) => prefetch.take(WvIoObject.encode({ id: of }), outputLength),
  };
}

test('attributes from a request serve the EP_QUERYs of its endpoint, each with its own bytes', () => {
  const { connect, query } = rig();
  const ended = connect();
  assert.is(query(), undefined);
  ended(complete);
  assert.is(query(other), undefined);
  assert.is(query(id, room - 1), undefined);
  query()!.fill(0);
  assert.equal(query(), new Uint8Array(complete.length).fill(5));
});

test('EP_GET_REQUEST returns the attributes of its new endpoint, not of the listener', () => {
  const { prefetch, query } = rig();
  prefetch.expect(EP_GET_REQUEST, WvIoEpGetRequest.encode({ id: other, epId: id }))(complete);
  assert.is(query(other), undefined);
  assert.equal(query(), complete);
});

test('another request for the endpoint discards them, even before the completion is delivered', () => {
  for (const late of [false, true]) {
    const { connect, query, prefetch } = rig();
    const ended = connect();
    if (!late) ended(complete);
    prefetch.discard(WvIoEpAccept.encode({ id }));
    if (late) ended(complete);
    assert.is(query(), undefined);
  }
  const { connect, query, prefetch } = rig();
  connect()(complete);
  prefetch.discard(WvIoEpAccept.encode({ id: other }));
  assert.equal(query(), complete);
});

test('every request for an endpoint except EP_QUERY and EP_DISCONNECT_NOTIFY discards them; requests for other objects do not use the cache', () => {
  for (const [name, code] of Object.entries(IoctlCode)) {
    const ofEndpoint = name.startsWith('EP_') && name !== 'EP_CREATE' && name !== 'EP_DISCONNECT_NOTIFY';
    const brings = code === EP_CONNECT || code === EP_GET_REQUEST;
    const use = name === 'EP_QUERY' ? 'query' : brings ? 'carrier' : 'endpoint';
    assert.is(
      cacheUses.get(code),
      ofEndpoint ? use : name === 'DEVICE_PKEY_QUERY' ? 'answer' : undefined,
      name,
    );
  }
  for (const code of Object.values(IbatCode)) assert.is(cacheUses.get(code), 'answer');
  for (const code of Object.values(HcaFileCode)) assert.is(cacheUses.get(code), undefined);
});

test('only the latest request for an endpoint counts, and its failure leaves no attributes', () => {
  const { connect, query } = rig();
  const [first, second] = [connect(), connect()];
  first(complete);
  assert.is(query(), undefined);
  second(complete);
  assert.equal(query(), complete);
});

test('the late failure of an earlier request does not affect a later one', () => {
  const { connect, query } = rig();
  const [first, second] = [connect(), connect()];
  first(new Uint8Array(0));
  second(complete);
  assert.equal(query(), complete);
});

test('attributes without private data are complete', () => {
  const { connect, query } = rig();
  const bare = new Uint8Array(WvIoEpAttributes.size);
  connect()(bare);
  assert.equal(query(), bare);
  connect()(bare.subarray(1));
  assert.is(query(), undefined);
});

test('a change of the cache epoch after the request was sent discards them', () => {
  for (const when of ['before its end', 'after its end']) {
    const { connect, query, cacheEpoch } = rig();
    const ended = connect();
    if (when === 'before its end') Atomics.add(cacheEpoch, 0, 1);
    ended(complete);
    if (when === 'after its end') Atomics.add(cacheEpoch, 0, 1);
    assert.is(query(), undefined, when);
    connect()(complete);
    assert.equal(query(), complete);
  }
});

test('without prefetched attributes the query goes to the kernel', () => {
  const { connect, query } = rig();
  connect()(new Uint8Array(0));
  assert.is(query(), undefined);
});

test('inputs without a complete id, or with an id that no table issues, refer to no endpoint', () => {
  const { prefetch, connect, query } = rig();
  connect()(complete);
  assert.is(query(id | (1n << 56n)), undefined, 'an id that differs only in its last byte');
  assert.equal(query(), complete);
  // A double cannot distinguish these numbers.
  const vast = 0x40n << 48n;
  connect(vast)(complete);
  assert.is(query(vast | 1n), undefined);
  for (const input of [null, new Uint8Array(7), new Uint8Array(8).fill(0xff), new Uint8Array(8)]) {
    prefetch.expect(EP_CONNECT, input)(complete);
    prefetch.discard(input);
    assert.is(prefetch.take(input, room), undefined);
  }
});

test.run();
