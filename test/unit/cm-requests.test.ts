import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { ListenerLimits } from '../../kernel-bridge/kernel/cm/listener-table.js';
import { type CmBody, emitMad, ipCmHeader, parseMad } from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import { hasIpCmHeader } from '../../kernel-bridge/kernel/cm/messages.js';
import { connectParameters, ipv4, Pair, qp, SERVICE, Side } from '../helpers/cm-network.js';
import { captureFiles, madOf, readCapture } from '../helpers/pcap.js';

const NOTHING = new Uint8Array(0);

/** Sends a modified valid request. Returns the server's reply and the requests that it has accepted. */
function requestWith(change: (body: CmBody<'REQ'>) => void, prepare?: (pair: Pair) => void) {
  const pair = new Pair();
  prepare?.(pair);
  pair.network.lose('client', 'REQ', 1);
  pair.connect();
  const { message } = pair.network.last('client', 'REQ');
  if (message.name !== 'REQ') throw new Error(message.name);
  const { body } = message;
  change(body);
  const mad = emitMad('REQ', message.header.transactionId, body);
  pair.network.log.length = 0;
  pair.server.cm.receive(pair.client.gid, pair.server.gid, 0, mad);
  const answer = pair.network.sent.at(-1)?.message;
  return { pair, log: pair.network.log, answer: answer?.name === 'REJ' ? answer.body : undefined };
}

function withHeader(body: CmBody<'REQ'>, change: (header: ReturnType<typeof ipCmHeader.decode>) => void) {
  const header = ipCmHeader.decode(body.privateData);
  change(header);
  ipCmHeader.encode(header, body.privateData);
}

const refusals: [string, number, (body: CmBody<'REQ'>) => void][] = [
  ['no listener for the service', 8, (body) => (body.serviceId = SERVICE + 1n)],
  ['the transport is RD', 9, (body) => (body.transportType = 2)],
  ['the transport is XRC', 9, (body) => (body.transportType = 3)],
  ['an extended transport is requested', 9, (body) => (body.extendedTransport = 1)],
  ['the QP is a management QP', 5, (body) => (body.localQpn = 1)],
  ['the QP is the multicast number', 5, (body) => (body.localQpn = 0xff_ffff)],
  ['the remote GID is not the address that was reached', 12, (body) => (body.primaryRemoteGid[15] = 99)],
  ['data would go to a third party', 12, (body) => (body.primaryLocalGid[15] = 99)],
  ['the address header has another version', 28, (body) => withHeader(body, (h) => (h.majorVersion = 1))],
  ['the address header has a minor version', 28, (body) => withHeader(body, (h) => (h.minorVersion = 1))],
  ['the address header is of no IP version', 28, (body) => withHeader(body, (h) => (h.ipVersion = 5))],
  ['the address header says IPv6 of IPv4 GIDs', 28, (body) => withHeader(body, (h) => (h.ipVersion = 6))],
  ['the source address is another', 28, (body) => withHeader(body, (h) => (h.sourceAddress[15] = 9))],
  ['the source address is zero', 28, (body) => withHeader(body, (h) => h.sourceAddress.fill(0))],
  [
    'the destination address is another',
    28,
    (body) => withHeader(body, (h) => (h.destinationAddress[15] = 9)),
  ],
  ['the partition is not the port’s', 12, (body) => (body.pkey = 0x8001)],
  ['the path MTU is none', 26, (body) => (body.pathMtu = 0)],
  ['the path MTU is not defined', 26, (body) => (body.pathMtu = 6)],
];
for (const [why, reason, change] of refusals) {
  test(`a REQ gets REJ ${reason} if ${why}`, () => {
    const { pair, answer, log } = requestWith(change);
    assert.equal(log, [`server REJ${reason}`]);
    assert.equal([answer?.message, answer?.localCommId], [0, 0]);
    assert.is(pair.taken.length, 0);
    assert.is(pair.server.cm.counters()[`refused.${reason}`], 1);
    assert.equal([pair.server.timers, pair.server.ids.size], [0, 0]);
  });
}

test('the same REQ unchanged is accepted: the refusals above are due to the change', () => {
  const { pair, log } = requestWith(() => {});
  assert.equal(log, ['server REP']);
  assert.is(pair.taken.length, 1);
});

test('REJ 12 returns the valid address, REJ 26 the largest MTU', () => {
  assert.equal(
    requestWith((body) => (body.primaryRemoteGid[15] = 99)).answer?.ari.slice(0, 16),
    Uint8Array.from(ipv4(2)),
  );
  const tooLarge = requestWith(
    (body) => (body.pathMtu = 4),
    (pair) => (pair.server.maxPathMtu = 3),
  );
  assert.is(tooLarge.answer?.reason, 26);
  assert.equal([tooLarge.answer?.ariLength, tooLarge.answer?.ari[0]], [1, 3]);
});

test('a source address that no peer can have is rejected', () => {
  for (const source of [ipv4(3).fill(0, 12), ipv4(3).fill(224, 12, 13), ipv4(3).fill(255, 12)]) {
    const pair = new Pair();
    const mad = emitMad('REQ', 1n, {
      localCommId: 7,
      serviceId: SERVICE,
      localQpn: 0x17,
      pathMtu: 3,
      primaryLocalGid: source,
      primaryRemoteGid: pair.server.gid,
      privateData: ipCmHeader.encode({
        ipVersion: 4,
        sourceAddress: Uint8Array.from([...new Uint8Array(12), ...source.slice(12)]),
        destinationAddress: Uint8Array.from([...new Uint8Array(12), ...pair.server.gid.slice(12)]),
      }),
    });
    pair.server.cm.receive(source, pair.server.gid, 0, mad);
    assert.equal(pair.network.log, ['server REJ12']);
  }
});

test('captured REQs of Linux peers are accepted and decoded', () => {
  let taken = 0;
  for (const packet of captureFiles().flatMap(readCapture)) {
    const mad = madOf(packet);
    const message = mad && parseMad(mad);
    if (!mad || !message || typeof message === 'string' || message.name !== 'REQ') continue;
    const pair = new Pair();
    pair.listener.close();
    const listener = pair.server.cm.listen({
      serviceId: message.body.serviceId,
      address: undefined,
      backlog: 0,
      onRequest: () => {},
    });
    pair.server.cm.receive(packet.source, packet.destination, 0, mad);
    const request = listener.takeRequest()?.request;
    const where = `${packet.file}#${packet.number}`;
    assert.is(request?.peerQpn, message.body.localQpn, where);
    assert.is(request?.sendPsn, message.body.startingPsn, where);
    assert.equal(request?.peerAddress, packet.source, where);
    assert.is(request?.localPort, Number(message.body.serviceId & 0xffffn), where);
    taken += 1;
  }
  assert.is(taken, 14);
});

test('a captured REP of Linux completes a connection attempt with the same ids', () => {
  const packets = readCapture('rping.pcap');
  const rep = packets.map(madOf).find((mad) => mad?.[17] === 0x13);
  const message = rep && parseMad(rep);
  if (!rep || !message || typeof message === 'string' || message.name !== 'REP') throw new Error('no REP');
  const pair = new Pair();
  const host = pair.network.add('again', ipv4(77), {}, message.body.remoteCommId - 1);
  pair.network.lose('again', 'REQ', 1);
  const active = new Side();
  active.connection = host.cm.connect(connectParameters(host, pair.server), active.listenTo);
  // Our transaction differs from that of the capture.
  const { transactionId } = pair.network.last('again', 'REQ').message.header;
  new DataView(rep.buffer, rep.byteOffset).setBigUint64(8, transactionId);
  host.cm.receive(pair.server.gid, host.gid, 0, rep);
  assert.equal(active.events, ['replied']);
  assert.equal([active.reply?.peerQpn, active.reply?.sendPsn], [0x11, 0xe2f838]);
  assert.equal([active.reply?.responderResources, active.reply?.initiatorDepth], [1, 1]);
  assert.equal([active.reply?.rnrRetryCount, active.reply?.targetAckDelay], [7, 15]);
});

// ── Listeners ────────────────────────────────────────────────────────────────────────────────────────────────

test('E20: requests beyond the backlog are refused with REJ 3 until one has been received', () => {
  const pair = new Pair({}, 2);
  pair.taking = false;
  const sides = [0x20, 0x21, 0x22].map((qpn) => pair.connect({ qp: qp(qpn) }));
  pair.network.clock.advance(10);
  assert.is(pair.listener.waiting, 2);
  assert.equal(
    sides.map((side) => side.events),
    [[], [], ['rejected 3']],
  );
  pair.take();
  assert.is(pair.listener.waiting, 1);
  const later = pair.connect({ qp: qp(0x23) });
  pair.network.clock.advance(10);
  assert.equal(later.events, []);
  assert.is(pair.listener.waiting, 2);
});

test('requests are received in order of arrival', () => {
  const pair = new Pair();
  pair.taking = false;
  for (const qpn of [0x20, 0x21, 0x22]) pair.connect({ qp: qp(qpn) });
  pair.network.clock.advance(10);
  assert.equal(
    [pair.take(), pair.take(), pair.take()].map((side) => side?.request?.peerQpn),
    [0x20, 0x21, 0x22],
  );
  assert.is(pair.take(), undefined);
});

test('without an owner’s limit, the number of requests is still limited; further ones are dropped, not refused', () => {
  const pair = new Pair();
  pair.taking = false;
  for (let i = 0; i < ListenerLimits.perListener + 10; i++) pair.connect({ qp: qp(0x100 + i) });
  pair.network.clock.advance(10);
  assert.is(pair.listener.waiting, ListenerLimits.perListener);
  assert.is(pair.server.ids.size, ListenerLimits.perListener);
  assert.is(pair.server.cm.counters()['dropped.noRoom'], 10);
  assert.is(pair.server.cm.counters()['refused.3'], undefined);
});

test('a request whose peer has given up can no longer be taken', () => {
  const pair = new Pair();
  pair.taking = false;
  const active = pair.connect();
  pair.network.clock.advance(10);
  assert.is(pair.listener.waiting, 1);
  active.connection.abandon();
  pair.network.clock.advance(10);
  assert.is(pair.listener.waiting, 0);
  assert.is(pair.listener.takeRequest(), undefined);
  assert.equal(pair.end(), []);
});

test('a listener that closes refuses waiting and later requests', () => {
  const pair = new Pair();
  pair.taking = false;
  const first = pair.connect();
  pair.network.clock.advance(10);
  pair.listener.close();
  const second = pair.connect({ qp: qp(0x18) });
  pair.network.clock.advance(10);
  assert.equal([first.events, second.events], [['rejected 28'], ['rejected 8']]);
  assert.equal(pair.end(), []);
});

test('the listener on the address takes precedence over the one on all addresses', () => {
  const pair = new Pair();
  const asked: string[] = [];
  const listen = (name: string, address: Uint8Array | undefined, serviceId = SERVICE + 1n) =>
    pair.server.cm.listen({ serviceId, address, backlog: 0, onRequest: () => asked.push(name) });
  const any = listen('any', undefined);
  const mine = listen('mine', ipv4(2));
  listen('other', ipv4(50));
  listen('elsewhere', ipv4(50), SERVICE + 2n);
  const connect = (serviceId: bigint, qpn: number) => {
    const side = pair.connect({ serviceId, qp: qp(qpn) });
    pair.network.clock.advance(5);
    return side;
  };
  connect(SERVICE + 1n, 0x20);
  mine.close();
  connect(SERVICE + 1n, 0x21);
  any.close();
  const refused = connect(SERVICE + 1n, 0x22);
  assert.equal(asked, ['mine', 'any']);
  assert.equal(refused.events, ['rejected 28']);
  assert.equal(connect(SERVICE + 2n, 0x23).events, ['rejected 28']);
});

test('a service id without the address header leaves all 92 bytes of private data to the consumer', () => {
  // RDMA IP CM services share one prefix, regardless of their protocol.
  const withHeader = [0x0100_0000n, 0x0106_1234n, 0x013f_0001n, 0x01ff_ffffn];
  const without = [0x00ff_ffffn, 0x0200_0000n, 0x0002_0001n, 0x1_0106_0001n, 0x77n << 48n];
  assert.ok(withHeader.every((id) => hasIpCmHeader(id)));
  assert.not.ok(without.some((id) => hasIpCmHeader(id)));
  const pair = new Pair();
  const listener = pair.server.cm.listen({
    serviceId: 0x77n << 48n,
    address: undefined,
    backlog: 0,
    onRequest() {},
  });
  pair.connect({ serviceId: 0x77n << 48n, privateData: Uint8Array.of(1, 2, 3) });
  pair.network.clock.advance(5);
  const request = listener.takeRequest()?.request;
  assert.is(request?.privateData.length, 92);
  assert.equal(request?.privateData.slice(0, 4), Uint8Array.of(1, 2, 3, 0));
  assert.equal([request?.localPort, request?.peerPort], [0, 0]);
});

// ── Stale connections ────────────────────────────────────────────────────────────────────────────────────────

/** The client loses its state, like a killed and restarted process. */
function restart(pair: Pair, firstId: number, sameIds: boolean) {
  const reborn = pair.network.add('reborn', pair.client.gid, {}, sameIds ? firstId : firstId + 0x40);
  reborn.caGuid = pair.client.caGuid;
  // Ids may repeat after a restart, random numbers do not.
  reborn.nextPsn = 0x123456;
  pair.network.hosts.splice(pair.network.hosts.indexOf(pair.client), 1);
  return reborn;
}

for (const sameIds of [false, true]) {
  test(`a peer that restarted with ${sameIds ? 'the same ids' : 'other ids'} and the same QP: REJ 10, and the old connection ends`, () => {
    const pair = new Pair();
    const { passive } = pair.established();
    const reborn = restart(pair, 0x0100_0000, sameIds);
    const connect = () => {
      const side = new Side();
      side.on.replied = () => side.connection.ready();
      side.connection = reborn.cm.connect(connectParameters(reborn, pair.server), side.listenTo);
      pair.network.clock.advance(20);
      return side;
    };
    const first = connect();
    assert.equal(first.events, ['rejected 10']);
    assert.equal(passive.events, ['disconnected']);
    // The DREQ for the old connection, which no longer existed, still got a reply.
    assert.ok(pair.network.log.includes('server DREQ'));
    assert.is(passive.state, 'timewait');
    const second = connect();
    assert.is(second.state, 'established');
    second.connection.disconnect();
    assert.equal(pair.end(), []);
  });
}

test('a peer that restarted while its request waited: the old request ends, the next one is accepted', () => {
  const pair = new Pair();
  pair.taking = false;
  pair.connect();
  pair.network.clock.advance(5);
  const reborn = restart(pair, 0x0100_0000, false);
  const side = new Side();
  side.connection = reborn.cm.connect(connectParameters(reborn, pair.server), side.listenTo);
  pair.network.clock.advance(5);
  assert.equal(side.events, ['rejected 10']);
  assert.is(pair.listener.waiting, 0);
  reborn.cm.connect(connectParameters(reborn, pair.server), {});
  pair.network.clock.advance(5);
  assert.is(pair.listener.waiting, 1);
});

test('a REP from a QP that is still the peer of an old connection is rejected as stale', () => {
  const pair = new Pair();
  const { active } = pair.established();
  // The server restarts: its next QP has the number of the previous one.
  const reborn = pair.network.add('reborn', pair.server.gid, {}, 0x0200_0000);
  reborn.caGuid = pair.server.caGuid;
  pair.network.hosts.splice(pair.network.hosts.indexOf(pair.server), 1);
  const passive = new Side();
  const listener = reborn.cm.listen({
    serviceId: SERVICE,
    address: undefined,
    backlog: 0,
    onRequest: () => {
      const found = listener.takeRequest();
      if (!found) return;
      passive.connection = found.connection;
      found.connection.events = passive.listenTo;
      found.connection.accept(qp(0x11), NOTHING);
    },
  });
  const next = pair.connect({ qp: qp(0x18) });
  pair.network.clock.advance(20);
  assert.equal(next.events, ['rejected 10']);
  assert.equal(passive.events, ['rejected 10']);
  assert.equal(active.events, ['disconnected']);
  assert.equal(pair.end(), []);
});

test("another host's request with the same adapter and QP numbers has no effect on a connection", () => {
  const pair = new Pair();
  const { active, passive } = pair.established();
  const twin = pair.network.add('twin', ipv4(66));
  twin.caGuid = pair.client.caGuid;
  twin.cm.connect(connectParameters(twin, pair.server), {});
  pair.network.clock.advance(20);
  assert.equal([active.state, passive.state], ['established', 'established']);
});

test.run();
