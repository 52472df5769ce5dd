/** The credits of a connection: docs/internals/net.md. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Credits } from '../../nd/net/connection/credits.js';
import { CONTROL_SLOTS, Frame, Kind, REPLY_SLOTS } from '../../nd/net/connection/frames.js';

const SLOTS = 8;

function credits(kind: Kind = Kind.CHANNEL): Credits {
  const made = new Credits({
    kind,
    slots: SLOTS,
    slotBytes: 64,
    maxMessageBytes: 64,
    ringBytes: 0,
  });
  made.setPeerSlots(SLOTS);
  return made;
}

test('the last control credit is only spent by a frame that returns credits', () => {
  const own = credits();
  for (let n = 1; n < CONTROL_SLOTS; n += 1) assert.ok(own.spendControl(true), `${n}`);
  assert.not.ok(own.spendControl(true), 'nothing to return: the peer could never send one again');
  for (let n = 0; 2 * n < CONTROL_SLOTS; n += 1) own.releasedControl();
  assert.ok(own.spendControl(false));
  assert.not.ok(own.spendControl(true), 'none is left');
});

test('bytes of a stream leave the last credit for END', () => {
  const own = credits(Kind.STREAM);
  for (let n = 0; n < SLOTS; n += 1) {
    assert.ok(own.allows(Frame.DATA, own.data));
    own.spend();
  }
  assert.not.ok(own.allows(Frame.DATA, own.data));
  assert.ok(own.allows(Frame.END, own.data));
});

test('excess credits and frames without a credit are protocol violations', () => {
  const own = credits();
  own.spend();
  assert.ok(own.returned(1, 0));
  assert.not.ok(own.returned(1, 0));
  assert.not.ok(credits().returned(0, 1));
  const peer = credits();
  for (let n = 0; n < SLOTS + REPLY_SLOTS; n += 1) assert.ok(peer.received());
  assert.not.ok(peer.received());
  for (let n = 0; n < CONTROL_SLOTS; n += 1) assert.ok(peer.receivedControl());
  assert.not.ok(peer.receivedControl());
});

test.run();
