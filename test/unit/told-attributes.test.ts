/** Attributes that come with the end of a request: they answer the next question, unless they may have changed. */
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
import { ToldAttributes } from '../../kernel-bridge/soft/told-attributes.js';

const { EP_CONNECT, EP_GET_REQUEST, EP_QUERY, EP_ACCEPT } = IoctlCode;
const whole = new Uint8Array(WvIoEpAttributes.size + 140).fill(5);
/** An id as the kernel gives them: a generation above 20 bits of index. */
const id = (0xffff_fff0n << 20n) | 3n;
const other = id + 1n;

function rig() {
  const era = new Int32Array(new SharedArrayBuffer(4));
  const told = new ToldAttributes(era);
  const room = told.roomFor(EP_CONNECT);
  return {
    era,
    told,
    room,
    /** EP_CONNECT has been sent; the answer is its end. */
    connect: (of = id) => {
      const input = WvIoEpConnect.encode({ id: of });
      told.forget(EP_CONNECT, input);
      return told.expect(EP_CONNECT, input);
    },
    query: (of = id, outputLength = room) => told.take(EP_QUERY, WvIoObject.encode({ id: of }), outputLength),
  };
}

test('what a request told answers one question about its endpoint', () => {
  const { connect, query, room } = rig();
  const ended = connect();
  assert.is(query(), undefined);
  ended(whole);
  assert.is(query(other), undefined);
  assert.is(query(id, room - 1), undefined);
  assert.is(query(), whole);
  assert.is(query(), undefined);
});

test('a GetRequest tells of the endpoint that it names, not of the listener', () => {
  const { told, query } = rig();
  told.expect(EP_GET_REQUEST, WvIoEpGetRequest.encode({ id: other, epId: id }))(whole);
  assert.is(query(other), undefined);
  assert.is(query(), whole);
});

test('whatever else is asked of the endpoint makes it old, also before the end is seen', () => {
  for (const [name, code] of Object.entries(IoctlCode)) {
    for (const late of [false, true]) {
      const { connect, query, told } = rig();
      const ended = connect();
      if (!late) ended(whole);
      told.forget(code, WvIoEpAccept.encode({ id }));
      if (late) ended(whole);
      const kept = !name.startsWith('EP_') || code === EP_QUERY || name === 'EP_CREATE';
      assert.is(query(), kept ? whole : undefined, name);
    }
  }
  const { connect, query, told } = rig();
  connect()(whole);
  told.forget(EP_ACCEPT, WvIoEpAccept.encode({ id: other }));
  assert.is(query(), whole);
});

test('a later request for the same endpoint counts, and its failure leaves nothing', () => {
  const { connect, query } = rig();
  const [first, second] = [connect(), connect()];
  first(whole);
  assert.is(query(), undefined);
  second(whole);
  assert.is(query(), whole);
});

test('an earlier request that fails late takes nothing from a later one', () => {
  const { connect, query } = rig();
  const [first, second] = [connect(), connect()];
  first(new Uint8Array(0));
  second(whole);
  assert.is(query(), whole);
});

test('attributes without private data are whole, too', () => {
  const { connect, query } = rig();
  const bare = new Uint8Array(WvIoEpAttributes.size);
  connect()(bare);
  assert.is(query(), bare);
  connect()(bare.subarray(1));
  assert.is(query(), undefined);
});

test('a new era since the request was sent makes it old', () => {
  for (const when of ['before its end', 'after its end']) {
    const { connect, query, era } = rig();
    const ended = connect();
    if (when === 'before its end') Atomics.add(era, 0, 1);
    ended(whole);
    if (when === 'after its end') Atomics.add(era, 0, 1);
    assert.is(query(), undefined, when);
    connect()(whole);
    assert.is(query(), whole);
  }
});

test('a kernel that tells nothing is asked', () => {
  const { connect, query } = rig();
  connect()(new Uint8Array(0));
  assert.is(query(), undefined);
});

test("inputs without a whole id, or with one that no table gives, are nobody's", () => {
  const { told, room, connect, query } = rig();
  connect()(whole);
  assert.is(query(id | (1n << 56n)), undefined, 'one that is the same but for its last byte');
  assert.is(query(), whole);
  // Numbers of which a double knows no difference.
  const vast = 0x40n << 48n;
  connect(vast)(whole);
  assert.is(query(vast | 1n), undefined);
  for (const input of [null, new Uint8Array(7), new Uint8Array(8).fill(0xff), new Uint8Array(8)]) {
    told.expect(EP_CONNECT, input)(whole);
    told.forget(EP_ACCEPT, input);
    assert.is(told.take(EP_QUERY, input, room), undefined);
  }
});

test.run();
