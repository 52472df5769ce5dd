// Two peers of this package recognize each other by vendor ids in REQ and REP, which other implementations ignore or echo.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  ALL_PEER_EXTENSIONS,
  PacketBytes,
  PeerExtensions,
} from '../../kernel-bridge/hca/soft-hca-binding.js';
import { type CmBody, OwnVendorId, TransportType } from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import { readReq, replyOf } from '../../kernel-bridge/kernel/cm/messages.js';
import { Pair, qp } from '../helpers/cm-network.js';

const PATH_MTU = 5;
const JUMBO = 8936;
/** All extensions except longer packets. */
const ALL = ALL_PEER_EXTENSIONS & ~PeerExtensions.longPackets;
const word = (bytes: number, bits = ALL_PEER_EXTENSIONS) =>
  ((bits & 0xffff) | (bytes << PacketBytes.shift)) >>> 0;
const JUMBO_WORD = word(JUMBO);
/** The offer in a REQ. */
const offer = { qp: qp(0x17), pathMtu: PATH_MTU, packetBytes: JUMBO };

function exchanged() {
  const pair = new Pair();
  const active = pair.connect();
  pair.network.clock.advance(10);
  const req = pair.network.last('client', 'REQ').message.body as CmBody<'REQ'>;
  const rep = pair.network.last('server', 'REP').message.body as CmBody<'REP'>;
  return { pair, active, req, rep };
}

const vendorOf = (rep: CmBody<'REP'>) =>
  (rep.vendorIdHigh << 16) | (rep.vendorIdMiddle << 8) | rep.vendorIdLow;
const withVendor = (rep: CmBody<'REP'>, id: number): CmBody<'REP'> => ({
  ...rep,
  vendorIdHigh: id >> 16,
  vendorIdMiddle: (id >> 8) & 0xff,
  vendorIdLow: id & 0xff,
});

function extensionsOf(
  req: CmBody<'REQ'>,
  source: Uint8Array,
  destination: Uint8Array,
  modifier: number,
  own = 0,
) {
  const request = readReq(
    req,
    { source, destination, scopeId: 0 },
    { maxPathMtu: PATH_MTU, maxPacketBytes: own },
    modifier,
  );
  return 'peerExtensions' in request ? request.peerExtensions : undefined;
}

test('two peers of this package recognize each other', () => {
  const { pair, active, req, rep } = exchanged();
  assert.is(req.vendorId, OwnVendorId.request);
  assert.is(vendorOf(rep), OwnVendorId.reply);
  assert.is(pair.taken[0]?.request?.peerExtensions, ALL);
  assert.is(active.reply?.peerExtensions, ALL);
});

test('the ids belong to no vendor: they are locally administered and not multicast', () => {
  for (const id of Object.values(OwnVendorId)) assert.is((id >> 16) & 3, 2);
  assert.is.not(OwnVendorId.request, OwnVendorId.reply);
});

test('a peer without the vendor id is another implementation, and gets a standard REP', () => {
  const { pair, req } = exchanged();
  for (const vendorId of [0, 0x0002c9, OwnVendorId.reply]) {
    const { client, server } = pair;
    assert.is(extensionsOf({ ...req, vendorId }, client.gid, server.gid, JUMBO_WORD, JUMBO), 0);
  }
});

test('a REP that echoes the REQ’s id, as Linux does, comes from another implementation', () => {
  const { rep } = exchanged();
  for (const id of [0, OwnVendorId.request, 0x0002c9])
    assert.is(replyOf(withVendor(rep, id), offer, JUMBO_WORD).peerExtensions, 0);
  const own = replyOf(withVendor(rep, OwnVendorId.reply), offer, JUMBO_WORD);
  assert.is(own.peerExtensions, JUMBO_WORD);
});

/** The vendor ids of an instance from before the dialects had one number, and of the next dialect. */
const otherDialects = [
  { request: 0x4e_44_51, reply: 0x4e_44_52, modifier: 0x1f },
  { request: OwnVendorId.request + 1, reply: OwnVendorId.reply + 1, modifier: JUMBO_WORD },
];

test('peers with different dialects only use the standard, no matter which one connects', () => {
  const { pair, req, rep } = exchanged();
  for (const { request, reply, modifier } of otherDialects) {
    const { client, server } = pair;
    assert.is(extensionsOf({ ...req, vendorId: request }, client.gid, server.gid, modifier, JUMBO), 0);
    assert.is(replyOf(withVendor(rep, reply), offer, modifier).peerExtensions, 0);
  }
});

test('with an HCA that only supports the standard, no extensions are negotiated, no matter which side connects', () => {
  for (const name of ['client', 'server'] as const) {
    const pair = new Pair();
    pair[name].standardOnly = true;
    pair.server.maxPacketBytes = JUMBO;
    const side = pair.connect({ pathMtu: PATH_MTU, packetBytes: JUMBO });
    pair.network.clock.advance(20);
    assert.is(side.state, 'established');
    assert.is(side.reply?.peerExtensions, 0);
    assert.is(pair.taken[0]?.request?.peerExtensions, 0);
  }
});

test('one dialect needs no extension bits: the attribute modifier has the packet length', () => {
  const { pair, req, rep } = exchanged();
  for (const name of ['REQ', 'REP'] as const) {
    const { header } = pair.network.last(name === 'REQ' ? 'client' : 'server', name).message;
    assert.is(header.attributeModifier, 0);
  }
  for (const bits of [0, PeerExtensions.recovery, 0xffff]) {
    assert.is(extensionsOf(req, pair.client.gid, pair.server.gid, bits), ALL);
    assert.is(replyOf(rep, { ...offer, packetBytes: 0 }, bits).peerExtensions, ALL);
  }
});

// ── Packets of an agreed length

/**
 * Returns both sides' extension words after two hosts with these packet sizes have connected. `change` alters the REQ's modifier in
 * transit.
 */
function agreed(
  active: number,
  passive: number,
  more: object = {},
  change?: { at: 'REQ' | 'REP'; modifier: number },
) {
  const pair = new Pair();
  pair.server.maxPacketBytes = passive;
  if (change !== undefined) {
    pair.network.route = ({ message, mad }) => {
      if (message.name === change.at) new DataView(mad.buffer).setUint32(MODIFIER_AT, change.modifier);
      return [1];
    };
  }
  const side = pair.connect({ pathMtu: PATH_MTU, packetBytes: active, ...more });
  pair.network.clock.advance(20);
  assert.is(side.state, 'established');
  return [side.reply?.peerExtensions, pair.taken[0]?.request?.peerExtensions];
}
const MODIFIER_AT = 20;

test('packets are as long as both links permit, if that exceeds the path MTU', () => {
  const cases: [number, number, number][] = [
    [JUMBO, JUMBO, JUMBO],
    [JUMBO, 16_384, JUMBO],
    [16_384, JUMBO, JUMBO],
    [8912, JUMBO, 8912],
    [0, JUMBO, 0],
    [JUMBO, 0, 0],
    [JUMBO, 4096, 0],
    [4096, JUMBO, 0],
  ];
  for (const [active, passive, bytes] of cases) {
    const both = bytes === 0 ? ALL : word(bytes);
    assert.equal(agreed(active, passive), [both, both], `${active} and ${passive}`);
  }
  const ethernet = word(1432);
  assert.equal(agreed(1432, 1432, { pathMtu: 3 }), [ethernet, ethernet]);
});

test('an unreliable connection has packets of the path MTU', () => {
  const pair = new Pair();
  pair.server.maxPacketBytes = JUMBO;
  pair.connect({ pathMtu: PATH_MTU, packetBytes: JUMBO, qp: qp(0x17, { type: TransportType.UC }) });
  pair.network.clock.advance(20);
  assert.is(pair.taken[0]?.request?.peerExtensions, 0);
  assert.is(pair.network.last('client', 'REQ').message.header.attributeModifier, 0);
});

test('if either peer does not announce a length, packets have the length of the path MTU', () => {
  assert.equal(agreed(JUMBO, JUMBO, {}, { at: 'REQ', modifier: 0 }), [ALL, ALL]);
  assert.is(agreed(JUMBO, JUMBO, {}, { at: 'REP', modifier: 0 })[0], ALL);
});

test('an invalid length is ignored, and an excessive one is reduced', () => {
  const lengths = [0, 1, 3, 4, 8, 255, 256, 4096, 4100, 8937, 8940, 0xfffe, 0xffff];
  for (const bytes of lengths) {
    assert.equal(agreed(JUMBO, JUMBO, {}, { at: 'REQ', modifier: word(bytes) }), [ALL, ALL], `REQ ${bytes}`);
    assert.is(agreed(JUMBO, JUMBO, {}, { at: 'REP', modifier: word(bytes) })[0], ALL, `REP ${bytes}`);
  }
  // The packets are longer than this side supports or has offered.
  assert.equal(agreed(JUMBO, 8912, {}, { at: 'REQ', modifier: word(0xfff8) }), [word(8912), word(8912)]);
  for (const bytes of [0xfff8, JUMBO + 8])
    assert.is(agreed(JUMBO, JUMBO, {}, { at: 'REP', modifier: word(bytes) })[0], ALL);
});

test.run();
