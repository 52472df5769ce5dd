import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { emitMad, emitMadOnce, ipCmHeader } from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import { connectParameters, ipv4, Network, Pair, PORT, qp, SERVICE, Side } from '../helpers/cm-network.js';

const NOTHING = new Uint8Array(0);
const text = (value: string) => new TextEncoder().encode(value);
const untext = (value: Uint8Array) => new TextDecoder().decode(value).replaceAll('\0', '');

/** One retransmission interval of the default options. */
const INTERVAL = 4295;

test('REQ, REP and RTU establish both sides', () => {
  const pair = new Pair();
  const active = pair.connect();
  pair.network.clock.advance(10);
  assert.equal(pair.network.log, ['client REQ', 'server REP', 'client RTU']);
  assert.equal(active.events, ['replied']);
  assert.equal(pair.taken[0]?.events, ['established']);
  assert.is(active.state, 'established');
  assert.is(pair.taken[0]?.state, 'established');
  assert.is(active.connection.remoteCommId, pair.taken[0]?.connection.localCommId);
  assert.is(pair.taken[0]?.connection.remoteCommId, active.connection.localCommId);
  assert.is(pair.client.timers + pair.server.timers, 0);
});

test('a REP, REJ or MRA with another transaction id is not a reply to the REQ', () => {
  const pair = new Pair();
  pair.network.lose('client', 'REQ', 1);
  const active = pair.connect();
  const { message } = pair.network.last('client', 'REQ');
  const { transactionId } = message.header;
  const ids = { localCommId: 0x77, remoteCommId: active.connection.localCommId };
  for (const wrong of [0n, 1n, transactionId ^ 1n, transactionId ^ (1n << 63n)]) {
    for (const mad of [
      emitMad('REP', wrong, { ...ids, localQpn: 0x33, localCaGuid: pair.server.caGuid }),
      emitMad('REJ', wrong, { ...ids, message: 0, reason: 8 }),
      emitMad('MRA', wrong, { ...ids, message: 0, serviceTimeout: 31 }),
    ]) {
      pair.client.cm.receive(pair.server.gid, pair.client.gid, 0, mad);
    }
  }
  assert.equal([active.events, active.state], [[], 'reqSent']);
  assert.is(pair.client.cm.counters()['dropped.otherRequest'], 12);
  pair.network.clock.advance(INTERVAL + 10);
  assert.equal([active.events, active.state], [['replied'], 'established']);
});

test('each side starts sending with the PSN that the other announced', () => {
  const pair = new Pair();
  pair.client.nextPsn = 0xff_bcda61;
  pair.server.nextPsn = 0xe2f838;
  const active = pair.connect();
  pair.network.clock.advance(10);
  const [passive] = pair.taken;
  assert.is(active.connection.receivePsn, 0xbcda61);
  assert.is(passive?.request?.sendPsn, 0xbcda61);
  assert.is(passive?.connection.receivePsn, 0xe2f838);
  assert.is(active.reply?.sendPsn, 0xe2f838);
});

test('depths are reported from the receiver’s point of view, and never exceed the request', () => {
  const pair = new Pair();
  pair.onTaken = (side) =>
    side.connection.accept(
      qp(0x11, { responderResources: 16, initiatorDepth: 2, rnrRetryCount: 5 }),
      NOTHING,
    );
  const active = pair.connect({ qp: qp(0x17, { responderResources: 8, initiatorDepth: 3 }) });
  pair.network.clock.advance(10);
  const request = pair.taken[0]?.request;
  assert.is(request?.responderResources, 3);
  assert.is(request?.initiatorDepth, 8);
  assert.is(active.reply?.responderResources, 2);
  assert.is(active.reply?.initiatorDepth, 3);
  assert.is(active.reply?.rnrRetryCount, 5);
});

test('a REQ has the fields that rdma_cm expects from a RoCE peer', () => {
  const pair = new Pair({ responseTimeoutCode: 19, maxRetries: 11 });
  pair.connect({ ackTimeoutCode: 18, qp: qp(0x17, { srq: true, retryCount: 5, rnrRetryCount: 6 }) });
  const { message } = pair.network.last('client', 'REQ');
  if (message.name !== 'REQ') throw new Error(message.name);
  const { body, header } = message;
  assert.is(body.serviceId, SERVICE);
  assert.is(body.localCaGuid, pair.client.caGuid);
  assert.is(Number(header.transactionId & 0xffff_ffffn), body.localCommId);
  assert.equal(
    [body.remoteResponseTimeout, body.localResponseTimeout, body.maxCmRetries, body.retryCount],
    [19, 19, 11, 5],
  );
  assert.equal([body.primaryLocalLid, body.primaryRemoteLid, body.pkey], [0xffff, 0xffff, 0xffff]);
  assert.equal([body.primaryHopLimit, body.primaryAckTimeout, body.pathMtu, body.srq], [64, 18, 3, 1]);
  assert.is(body.primaryFlowLabel, (40_000 * 31 + PORT) & 0xfffff);
  assert.equal(body.primaryLocalGid, pair.client.gid);
  assert.equal(body.primaryRemoteGid, pair.server.gid);
  assert.equal([body.alternateLocalLid, body.alternateFlowLabel, body.alternateAckTimeout], [0, 0, 0]);
  assert.ok([...body.alternateLocalGid, ...body.alternateRemoteGid].every((byte) => byte === 0));
  const header4 = ipCmHeader.decode(body.privateData);
  assert.equal([header4.ipVersion, header4.sourcePort, header4.majorVersion], [4, 40_000, 0]);
  assert.equal([...header4.sourceAddress], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 77, 0, 3]);
});

test('E21: REQ, REP and REJ carry private data', () => {
  const pair = new Pair();
  pair.onTaken = (side) => side.connection.accept(qp(0x11), text('from the server'.padEnd(196, '.')));
  const active = pair.connect({ privateData: text('x'.repeat(56)) });
  pair.network.clock.advance(10);
  assert.is(untext(pair.taken[0]?.request?.privateData ?? NOTHING), 'x'.repeat(56));
  assert.is(active.reply?.privateData.length, 196);
  assert.match(untext(active.reply?.privateData ?? NOTHING), /^from the server\.+$/);

  pair.onTaken = (side) => side.connection.reject(text('no'.padEnd(148, '!')));
  const refused = pair.connect({ qp: qp(0x18) });
  pair.network.clock.advance(10);
  assert.equal(refused.events, ['rejected 28']);
  assert.is(untext(refused.rejection?.privateData ?? NOTHING), 'no'.padEnd(148, '!'));
});

test('too much private data is rejected before anything is sent or allocated', () => {
  const pair = new Pair();
  pair.onTaken = undefined;
  assert.throws(
    () => pair.connect({ privateData: new Uint8Array(57) }),
    /private data of a REQ must be at most 56 bytes; got 57/,
  );
  assert.equal(pair.leftovers(), []);
  const active = pair.connect({}, false);
  pair.network.clock.advance(10);
  const [passive] = pair.taken;
  assert.throws(() => passive?.connection.accept(qp(0x11), new Uint8Array(197)), /196 bytes/);
  assert.throws(() => passive?.connection.reject(new Uint8Array(149)), /148 bytes/);
  assert.is(passive?.state, 'reqReceived');
  passive?.connection.accept(qp(0x11), NOTHING);
  pair.network.clock.advance(10);
  assert.throws(() => active.connection.ready(new Uint8Array(225)), /224 bytes/);
  assert.is(active.state, 'repReceived');
  assert.equal(pair.network.log, ['client REQ', 'server REP']);
});

test('IPv6 addresses connect, with an IPv6 header', () => {
  const pair = new Pair();
  const gid = (last: number) => Uint8Array.of(0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last);
  const from = pair.network.add('six', gid(6));
  const to = pair.network.add('seven', gid(7));
  const listener = to.cm.listen({ serviceId: SERVICE, address: gid(7), backlog: 0, onRequest: () => {} });
  from.cm.connect(connectParameters(from, to), {});
  pair.network.clock.advance(5);
  const found = listener.takeRequest();
  assert.equal(found?.request.peerAddress, gid(6));
  assert.equal(found?.request.localAddress, gid(7));
  assert.equal([found?.request.peerPort, found?.request.localPort], [40_000, PORT]);
});

// ── Loss and duplicates ──────────────────────────────────────────────────────────────────────────────────────

test('a lost REQ is retransmitted after the response timeout', () => {
  const pair = new Pair();
  pair.network.lose('client', 'REQ', 2);
  const active = pair.connect();
  pair.network.clock.advance(INTERVAL);
  assert.equal(pair.network.log, ['client REQ', 'client REQ']);
  pair.network.clock.advance(INTERVAL + 5);
  assert.is(active.state, 'established');
  assert.equal(pair.network.sent[0]?.mad, pair.network.sent[2]?.mad);
});

test('a lost REP is retransmitted, after a timeout and for a retransmitted REQ', () => {
  const pair = new Pair();
  pair.network.lose('server', 'REP', 1);
  const active = pair.connect();
  pair.network.clock.advance(INTERVAL + 5);
  assert.is(active.state, 'established');
  assert.is(pair.taken.length, 1);
  assert.is(pair.taken[0]?.state, 'established');
});

test('a lost RTU is retransmitted for the retransmitted REP', () => {
  const pair = new Pair();
  pair.network.lose('client', 'RTU', 1);
  pair.connect();
  pair.network.clock.advance(10);
  assert.is(pair.taken[0]?.state, 'repSent');
  pair.network.clock.advance(INTERVAL);
  assert.equal(pair.network.log, ['client REQ', 'server REP', 'client RTU', 'server REP', 'client RTU']);
  assert.equal(pair.taken[0]?.events, ['established']);
});

test('the first packet establishes the connection like the RTU, which is reported after the call', () => {
  const pair = new Pair();
  pair.network.lose('client', 'RTU', 1);
  pair.connect();
  pair.network.clock.advance(10);
  const [passive] = pair.taken;
  passive?.connection.communicationEstablished();
  assert.is(passive?.state, 'established');
  assert.equal(passive?.events, []);
  pair.network.clock.advance(0);
  assert.equal(passive?.events, ['established']);
  passive?.connection.communicationEstablished();
  pair.network.clock.advance(INTERVAL * 3);
  assert.equal(passive?.events, ['established']);
});

test('a deferred event is reported before a later one', () => {
  const pair = new Pair();
  pair.network.lose('client', 'RTU', 1);
  const active = pair.connect();
  pair.network.clock.advance(10);
  const [passive] = pair.taken;
  passive?.connection.communicationEstablished();
  active.connection.disconnect();
  const dreq = pair.network.last('client', 'DREQ');
  pair.server.cm.receive(pair.client.gid, pair.server.gid, 0, dreq.mad);
  assert.equal(passive?.events, ['established', 'disconnected']);
});

test('if the REQ gets no reply, the owner is notified and the peer gets REJ 4', () => {
  const pair = new Pair({ maxRetries: 3 });
  pair.network.lose('client', 'REQ', 100);
  const active = pair.connect();
  pair.network.clock.advance(INTERVAL * 4 - 1);
  assert.equal(active.events, []);
  pair.network.clock.advance(1);
  assert.equal(active.events, ['timedOut']);
  assert.equal(pair.network.log, [...Array(4).fill('client REQ'), 'client REJ4']);
  const { message } = pair.network.last('client', 'REJ');
  if (message.name !== 'REJ') throw new Error(message.name);
  assert.equal([message.body.message, message.body.remoteCommId, message.body.ariLength], [2, 0, 8]);
  assert.is(new DataView(message.body.ari.buffer).getBigUint64(0), pair.client.caGuid);
  assert.equal(pair.end(), []);
});

test('if the REP gets no reply, both sides end', () => {
  const pair = new Pair({ maxRetries: 2 });
  pair.network.lose('server', 'REP', 100);
  const active = pair.connect();
  pair.network.clock.runToEnd();
  assert.equal(active.events, ['timedOut']);
  assert.equal(pair.taken[0]?.events, ['timedOut']);
  assert.equal(pair.leftovers(), []);
});

test('a passive side without an RTU gives up, which also ends the active side', () => {
  const pair = new Pair({ maxRetries: 2 });
  pair.network.lose('client', 'RTU', 100);
  const active = pair.connect();
  pair.network.clock.runToEnd();
  assert.equal(pair.taken[0]?.events, ['timedOut']);
  assert.equal(active.events, ['replied', 'disconnected']);
  assert.equal(pair.leftovers(), []);
});

test('E22: a repeated REQ for a waiting request gets an MRA, which extends the wait', () => {
  const pair = new Pair();
  pair.onTaken = undefined;
  const active = pair.connect();
  pair.network.clock.advance(INTERVAL + 10);
  assert.equal(pair.network.log, ['client REQ', 'client REQ', 'server MRA0']);
  assert.is(active.state, 'mraReqReceived');
  pair.network.clock.advance(68_000);
  assert.is(pair.network.log.length, 3);
  pair.taken[0]?.connection.accept(qp(0x11), NOTHING);
  pair.network.clock.advance(5);
  assert.is(active.state, 'established');
  assert.is(pair.taken[0]?.state, 'established');
});

test('a request that the application never accepts or rejects ends', () => {
  const pair = new Pair({ maxRetries: 2, mraServiceTimeoutCode: 18 });
  pair.onTaken = undefined;
  pair.network.lose('client', 'REJ', 100);
  const active = pair.connect();
  pair.network.clock.runToEnd();
  assert.equal(active.events, ['timedOut']);
  assert.equal(pair.taken[0]?.events, ['timedOut']);
  assert.equal(pair.leftovers(), []);
});

test('while the active side decides on a reply, it sends an MRA to a passive side that repeats the reply', () => {
  const pair = new Pair();
  const active = pair.connect({}, false);
  pair.network.clock.advance(60_000);
  assert.equal(pair.network.log, ['client REQ', 'server REP', 'server REP', 'client MRA1']);
  assert.is(pair.taken[0]?.state, 'mraRepReceived');
  assert.equal(active.events, ['replied']);
  active.connection.ready();
  pair.network.clock.advance(5);
  assert.is(pair.taken[0]?.state, 'established');
});

test('duplicate messages have no effect', () => {
  const pair = new Pair();
  pair.network.route = () => [1, 2, 30];
  const active = pair.connect();
  pair.network.clock.advance(40);
  assert.equal(active.events, ['replied']);
  assert.is(pair.taken.length, 1);
  assert.equal(pair.taken[0]?.events, ['established']);
  active.connection.disconnect();
  pair.network.clock.runToEnd();
  assert.equal(active.events, ['replied', 'disconnectCompleted true']);
  assert.equal(pair.taken[0]?.events, ['established', 'disconnected']);
  assert.equal(pair.leftovers(), []);
});

test('a late REQ, after its connection has ended, does not open a new connection', () => {
  const pair = new Pair();
  const { active } = pair.established();
  active.connection.disconnect();
  pair.network.clock.advance(10);
  const req = pair.network.last('client', 'REQ');
  pair.server.cm.receive(pair.client.gid, pair.server.gid, 0, req.mad);
  assert.is(pair.taken.length, 1);
  assert.equal(pair.end(), []);
});

// ── The owner's decisions ────────────────────────────────────────────────────────────────────────────────────

test('the active side may reject the reply', () => {
  const pair = new Pair();
  const active = pair.connect({}, false);
  active.on.replied = () => active.connection.reject(text('changed my mind'));
  pair.network.clock.advance(10);
  assert.equal(pair.network.log, ['client REQ', 'server REP', 'client REJ28']);
  assert.equal(pair.taken[0]?.events, ['rejected 28']);
  assert.is(untext(pair.taken[0]?.rejection?.privateData ?? NOTHING), 'changed my mind');
  assert.equal(pair.end(), []);
});

test('a lost REJ is retransmitted for a repeated REQ without involving the application', () => {
  const pair = new Pair();
  pair.onTaken = (side) => side.connection.reject(NOTHING, 3);
  pair.network.lose('server', 'REJ', 1);
  const active = pair.connect();
  pair.network.clock.advance(5);
  // Another message is built in the reused memory.
  emitMadOnce('DREP', 9n, {});
  pair.network.clock.advance(INTERVAL + 10);
  assert.equal(active.events, ['rejected 3']);
  assert.is(pair.taken.length, 1);
  assert.equal(pair.end(), []);
});

test('the same after an MRA, which has extended the peer’s wait', () => {
  const pair = new Pair({ mraServiceTimeoutCode: 22 });
  pair.onTaken = undefined;
  pair.network.lose('server', 'REJ', 1);
  const active = pair.connect();
  pair.network.clock.advance(INTERVAL + 10);
  assert.is(active.state, 'mraReqReceived');
  pair.taken[0]!.connection.reject(NOTHING, 3);
  pair.network.clock.advance(INTERVAL + 20_000);
  assert.equal(active.events, ['rejected 3']);
  assert.is(pair.taken.length, 1);
  assert.equal(pair.end(), []);
});

test('abandoning sends the message required by the state, and reports nothing to the owner', () => {
  const cases = [
    { reached: 'reqSent', who: 'client', message: 'client REJ4' },
    { reached: 'repReceived', who: 'client', message: 'client REJ28' },
    { reached: 'reqReceived', who: 'server', message: 'server REJ28' },
    { reached: 'repSent', who: 'server', message: 'server REJ28' },
    { reached: 'established', who: 'client', message: 'client DREQ' },
    { reached: 'established', who: 'server', message: 'server DREQ' },
  ] as const;
  for (const { reached, who, message } of cases) {
    const pair = new Pair();
    if (reached === 'reqReceived') pair.onTaken = undefined;
    if (reached === 'repSent') pair.network.lose('server', 'REP', 1);
    const active = pair.connect({}, reached === 'established');
    if (reached !== 'reqSent') pair.network.clock.advance(10);
    const side = who === 'client' ? active : (pair.taken[0] as Side);
    assert.is(side.state, reached);
    const events = [...side.events];
    side.connection.abandon();
    assert.is(pair.network.log.at(-1), message, reached);
    pair.network.clock.runToEnd();
    assert.equal(side.events, events, reached);
    assert.equal(pair.leftovers(), [], reached);
    assert.is(active.state, 'idle', reached);
    for (const taken of pair.taken) assert.is(taken.state, 'idle', reached);
  }
});

test('abandoning a request before its REP arrives ends the passive side when the REJ is lost', () => {
  const pair = new Pair();
  pair.network.lose('client', 'REJ', 1);
  const active = pair.connect();
  pair.network.clock.advance(1);
  active.connection.abandon();
  pair.network.clock.advance(10);
  // The REP gets the repeated REJ.
  assert.equal(pair.network.log, ['client REQ', 'server REP', 'client REJ4', 'client REJ4']);
  assert.equal(pair.taken[0]?.events, ['rejected 4']);
});

test('a REP for a connection that no longer exists is rejected with invalid communication id', () => {
  const pair = new Pair({ timewaitMs: 0 });
  pair.network.lose('client', 'REJ', 2);
  const active = pair.connect();
  pair.network.clock.advance(1);
  active.connection.abandon();
  pair.network.clock.advance(INTERVAL * 2 + 10);
  assert.is(pair.network.log.at(-1), 'client REJ6');
  assert.equal(pair.taken[0]?.events, ['rejected 6']);
  assert.equal(pair.end(), []);
});

test('an RTU for a connection that no longer exists gets a reply, so that the active side also ends', () => {
  const pair = new Pair({ timewaitMs: 0 });
  pair.network.lose('server', 'REJ', 1);
  const active = pair.connect({}, false);
  pair.network.clock.advance(5);
  pair.taken[0]?.connection.abandon();
  pair.network.clock.advance(5);
  assert.is(active.state, 'repReceived');
  active.connection.ready();
  pair.network.clock.advance(5);
  assert.equal(active.events, ['replied', 'disconnected']);
});

test('without free ids, connections in both directions are refused because of missing resources', () => {
  const pair = new Pair();
  pair.client.idsLeft = 1;
  pair.server.idsLeft = 0;
  const first = pair.connect();
  const second = pair.connect();
  assert.equal(second.events, []);
  pair.network.clock.advance(10);
  assert.equal(first.events, ['rejected 3']);
  assert.equal(second.events, ['rejected 3']);
  assert.equal(pair.end(), []);
});

test('closing the manager abandons all connections at once and leaves no state', () => {
  const pair = new Pair();
  pair.established();
  pair.connect({ qp: qp(0x18) });
  pair.taking = false;
  pair.connect({ qp: qp(0x19) });
  pair.network.clock.advance(10);
  pair.network.log.length = 0;
  pair.server.cm.close();
  assert.equal(pair.network.log.sort(), ['server DREQ', 'server REJ28', 'server REJ28']);
  assert.equal([pair.server.timers, pair.server.ids.size], [0, 0]);
  pair.client.cm.close();
  pair.client.cm.connect(connectParameters(pair.client, pair.server), {});
  assert.equal(pair.end(), []);
});

test('two hosts with the same adapter and ids are distinguished by address', () => {
  const pair = new Pair();
  const twin = pair.network.add('twin', ipv4(4));
  twin.caGuid = pair.client.caGuid;
  const active = pair.connect();
  const other = new Side();
  other.on.replied = () => other.connection.ready();
  other.connection = twin.cm.connect(connectParameters(twin, pair.server), other.listenTo);
  assert.is(other.connection.localCommId, active.connection.localCommId);
  pair.network.clock.advance(10);
  assert.equal([active.state, other.state], ['established', 'established']);
  assert.is(pair.taken.length, 2);
});

test('a host can connect to itself', () => {
  const network = new Network();
  const host = network.add('self', ipv4(9));
  const passive = new Side();
  const listener = host.cm.listen({
    serviceId: SERVICE,
    address: host.gid,
    backlog: 1,
    onRequest: () => {
      const found = listener.takeRequest();
      if (!found) return;
      passive.connection = found.connection;
      found.connection.events = passive.listenTo;
      found.connection.accept(qp(0x11), NOTHING);
    },
  });
  const active = new Side();
  active.on.replied = () => active.connection.ready();
  active.connection = host.cm.connect(connectParameters(host, host), active.listenTo);
  network.clock.advance(10);
  assert.equal([active.state, passive.state], ['established', 'established']);
  passive.connection.disconnect();
  network.clock.runToEnd();
  assert.equal(active.events, ['replied', 'disconnected']);
  assert.equal(passive.events, ['established', 'disconnectCompleted true']);
  assert.equal([host.timers, host.ids.size], [0, 0]);
});

test.run();
