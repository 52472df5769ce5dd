// How two ends of this package know each other: by vendor ids in REQ and REP, which others ignore or echo.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ALL_PEER_EXTENSIONS, PeerExtensions } from '../../kernel-bridge/hca/binding.js';
import { readReq, replyOf } from '../../kernel-bridge/kernel/cm/messages.js';
import { type CmBody, OwnVendorId } from '../../kernel-bridge/kernel/cm/wire.js';
import { Pair, qp } from '../helpers/cm-network.js';

const PATH_MTU = 5;

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

function extensionsOf(req: CmBody<'REQ'>, source: Uint8Array, destination: Uint8Array, modifier: number) {
  const request = readReq(req, { source, destination, scopeId: 0 }, PATH_MTU, modifier);
  return 'peerExtensions' in request ? request.peerExtensions : undefined;
}

test('two ends of this package know each other', () => {
  const { pair, active, req, rep } = exchanged();
  assert.is(req.vendorId, OwnVendorId.request);
  assert.is(vendorOf(rep), OwnVendorId.reply);
  assert.is(pair.taken[0]?.request?.peerExtensions, ALL_PEER_EXTENSIONS);
  assert.is(active.reply?.peerExtensions, ALL_PEER_EXTENSIONS);
});

test('the ids belong to no vendor: they are locally administered, and of no group', () => {
  for (const id of Object.values(OwnVendorId)) assert.is((id >> 16) & 3, 2);
  assert.is.not(OwnVendorId.request, OwnVendorId.reply);
});

test('a peer that does not say so is not ours, and gets a REP of the standard', () => {
  const { pair, req } = exchanged();
  for (const vendorId of [0, 0x0002c9, OwnVendorId.reply]) {
    const { client, server } = pair;
    assert.is(extensionsOf({ ...req, vendorId }, client.gid, server.gid, ALL_PEER_EXTENSIONS), 0);
  }
});

test('a REP that repeats the REQ’s id, as Linux does, is not ours', () => {
  const { rep } = exchanged();
  for (const id of [0, OwnVendorId.request, 0x0002c9])
    assert.is(replyOf(withVendor(rep, id), qp(0x17), ALL_PEER_EXTENSIONS).peerExtensions, 0);
  const own = replyOf(withVendor(rep, OwnVendorId.reply), qp(0x17), ALL_PEER_EXTENSIONS);
  assert.is(own.peerExtensions, ALL_PEER_EXTENSIONS);
});

test('both ends take what both know: the first version says nothing, later ones may say more', () => {
  const first = PeerExtensions.longWindow | PeerExtensions.recovery | PeerExtensions.fragments;
  const { pair, req, rep } = exchanged();
  for (const name of ['REQ', 'REP'] as const) {
    const { header } = pair.network.last(name === 'REQ' ? 'client' : 'server', name).message;
    assert.is(header.attributeModifier, ALL_PEER_EXTENSIONS);
  }
  const cases = [
    [0, first],
    [PeerExtensions.recovery, PeerExtensions.recovery],
    [0xffff_ffff, ALL_PEER_EXTENSIONS],
  ] as const;
  for (const [modifier, expected] of cases) {
    assert.is(extensionsOf(req, pair.client.gid, pair.server.gid, modifier), expected);
    assert.is(replyOf(rep, qp(0x17), modifier).peerExtensions, expected);
  }
});

test.run();
