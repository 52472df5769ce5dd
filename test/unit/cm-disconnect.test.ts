import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { TIMEWAIT_LIMIT } from '../../kernel-bridge/kernel/cm/connection-table.js';
import { type CmBody, emitMad, parseMad } from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import { ipv4, Pair, qp, type Side } from '../helpers/cm-network.js';

const INTERVAL = 4295;
/** Time after which a DREQ is repeated early: half of the path's ACK timeout, code 17. */
const EARLY = 268;

function dreqOf(side: Side): CmBody<'DREQ'> {
  const message = parseMad(side.connection.dreqOnExit()!.mad);
  if (typeof message === 'string' || message.name !== 'DREQ') throw new Error('no DREQ');
  return message.body;
}

test('E15: DREQ and DREP end both sides; the DREP needs no application', () => {
  for (const who of ['active', 'passive'] as const) {
    const pair = new Pair();
    const sides = pair.established();
    const other = who === 'active' ? sides.passive : sides.active;
    sides[who].connection.disconnect();
    pair.network.clock.advance(10);
    const names = who === 'active' ? ['client DREQ', 'server DREP'] : ['server DREQ', 'client DREP'];
    assert.equal(pair.network.log, names);
    assert.equal(sides[who].events, ['disconnectCompleted true']);
    assert.equal(other.events, ['disconnected']);
    assert.equal([sides[who].state, other.state], ['timewait', 'timewait']);
    assert.equal(pair.end(), []);
  }
});

test('a DREQ uses a new transaction id, and the DREP repeats it', () => {
  const pair = new Pair();
  const { passive } = pair.established();
  passive.connection.disconnect();
  pair.network.clock.advance(10);
  const dreq = pair.network.last('server', 'DREQ').message;
  const drep = pair.network.last('client', 'DREP').message;
  assert.is(dreq.header.transactionId & 0xffff_ffffn, BigInt(passive.connection.localCommId));
  assert.is(drep.header.transactionId, dreq.header.transactionId);
});

test('E15: both sides disconnect at once, and both succeed', () => {
  const pair = new Pair();
  const { active, passive } = pair.established();
  active.connection.disconnect();
  passive.connection.disconnect();
  pair.network.clock.advance(10);
  assert.equal(active.events, ['disconnectCompleted true']);
  assert.equal(passive.events, ['disconnectCompleted true']);
  assert.equal(pair.end(), []);
});

test('crossing DREQs succeed even if one is lost', () => {
  const pair = new Pair();
  const { active, passive } = pair.established();
  pair.network.lose('client', 'DREQ', 1);
  active.connection.disconnect();
  passive.connection.disconnect();
  pair.network.clock.advance(10);
  assert.equal(active.events, ['disconnectCompleted true']);
  assert.equal(passive.events, ['disconnectCompleted true']);
});

test('a lost DREP is retransmitted for the retransmitted DREQ, in timewait and after it', () => {
  for (const timewaitMs of [60_000, 0]) {
    const pair = new Pair({ timewaitMs });
    const { active, passive } = pair.established();
    pair.network.lose('server', 'DREP', 2);
    active.connection.disconnect();
    pair.network.clock.advance(INTERVAL * 2 + 10);
    assert.equal(active.events, ['disconnectCompleted true']);
    assert.equal(passive.events, ['disconnected']);
    assert.equal(pair.end(), []);
  }
});

test('a DREQ without a reply ends in false when its retries are exhausted', () => {
  const pair = new Pair({ maxRetries: 3 });
  const { active } = pair.established();
  pair.network.lose('client', 'DREQ', 100);
  active.connection.disconnect();
  pair.network.clock.advance(INTERVAL * 4 - 1);
  assert.equal(active.events, []);
  pair.network.clock.advance(1);
  assert.equal(active.events, ['disconnectCompleted false']);
  // Three retries, and the early repetition within the peer's timewait, which does not extend the total time.
  assert.equal(pair.network.log, Array(5).fill('client DREQ'));
});

test('the DREQ is repeated for a lost DREP while the peer is in timewait, which is shorter than the retry interval', () => {
  for (const who of ['active', 'passive'] as const) {
    const pair = new Pair();
    const sides = pair.established();
    const [own, other] = who === 'active' ? (['client', 'server'] as const) : (['server', 'client'] as const);
    pair.network.lose(other, 'DREP');
    sides[who].connection.disconnect();
    pair.network.clock.advance(EARLY - 10);
    assert.equal(pair.network.log, [`${own} DREQ`, `${other} DREP`]);
    pair.network.clock.advance(40);
    assert.equal(sides[who].events, ['disconnectCompleted true'], who);
    assert.equal(pair.end(), []);
  }
});

test('a DREQ is not repeated early if that would not precede its first retry', () => {
  const pair = new Pair({ maxRetries: 0 });
  const { active } = pair.established({ ackTimeoutCode: 21 });
  pair.network.lose('client', 'DREQ', 100);
  active.connection.disconnect();
  pair.network.clock.advance(INTERVAL + 1);
  assert.equal(active.events, ['disconnectCompleted false']);
  assert.equal(pair.network.log, ['client DREQ']);
});

test('disconnecting before the connection is established, or after its end, completes after the call', () => {
  for (const reached of ['reqSent', 'repReceived', 'timewait', 'idle']) {
    const pair = new Pair();
    const active = pair.connect({}, false);
    if (reached !== 'reqSent') pair.network.clock.advance(10);
    if (reached === 'timewait' || reached === 'idle') {
      active.connection.ready();
      pair.network.clock.advance(10);
      pair.taken[0]?.connection.disconnect();
      pair.network.clock.advance(10);
    }
    if (reached === 'idle') pair.network.clock.advance(1000);
    assert.is(active.state, reached);
    active.events.length = 0;
    active.connection.disconnect();
    assert.equal(active.events, []);
    pair.network.clock.advance(0);
    assert.equal(active.events, ['disconnectCompleted true'], reached);
    assert.equal(pair.end(), [], reached);
  }
});

test('disconnecting twice sends one DREQ and reports one event', () => {
  const pair = new Pair();
  const { active } = pair.established();
  active.connection.disconnect();
  active.connection.disconnect();
  pair.network.clock.runToEnd();
  assert.equal(active.events, ['disconnectCompleted true']);
  assert.equal(pair.network.log, ['client DREQ', 'server DREP']);
});

test('a DREQ for another QP is ignored', () => {
  const pair = new Pair();
  const { active, passive } = pair.established();
  const wrong = emitMad('DREQ', 1n, { ...dreqOf(active), remoteQpn: 0x12 });
  pair.server.cm.receive(pair.client.gid, pair.server.gid, 0, wrong);
  assert.equal(pair.network.log, []);
  assert.equal([passive.state, passive.events.length], ['established', 0]);
  assert.is(pair.server.cm.counters()['ignored.dreqWrongQpn'], 1);
});

test('a DREQ with unknown ids gets a DREP with the ids swapped', () => {
  const pair = new Pair();
  const mad = emitMad('DREQ', 77n, { localCommId: 5, remoteCommId: 6, remoteQpn: 0x11 });
  pair.server.cm.receive(pair.client.gid, pair.server.gid, 0, mad);
  const { message } = pair.network.last('server', 'DREP');
  if (message.name !== 'DREP') throw new Error(message.name);
  assert.equal([message.body.localCommId, message.body.remoteCommId], [6, 5]);
  assert.is(message.header.transactionId, 77n);
});

test('messages of a third host do not change the state of a connection', () => {
  const pair = new Pair();
  const { active, passive } = pair.established();
  const ids = {
    localCommId: active.connection.localCommId,
    remoteCommId: passive.connection.localCommId,
  };
  const mads = [
    emitMad('DREQ', 1n, { ...ids, remoteQpn: 0x11 }),
    emitMad('REJ', 1n, { ...ids, message: 2, reason: 28 }),
    emitMad('RTU', 1n, ids),
    emitMad('DREP', 1n, ids),
    emitMad('REP', 1n, { ...ids, localQpn: 0x17 }),
    emitMad('MRA', 1n, { ...ids, message: 1, serviceTimeout: 20 }),
  ];
  for (const mad of mads) pair.server.cm.receive(ipv4(66), pair.server.gid, 0, mad);
  assert.equal(pair.network.log, []);
  assert.equal([passive.state, passive.events.length], ['established', 0]);
  assert.is(pair.server.cm.counters()['dropped.wrongSource'], mads.length);
});

test('a retransmitted DREQ equals the first one, no matter what was sent in between', () => {
  const pair = new Pair();
  const { active, passive } = pair.established();
  pair.network.lose('client', 'DREQ', 1);
  active.connection.disconnect();
  // Another message is built in the reused memory.
  const dreq = passive.connection.dreqOnExit()!.mad.slice();
  pair.network.clock.advance(INTERVAL);
  const [first, second, ...more] = pair.network.sent.filter(({ message }) => message.name === 'DREQ');
  assert.equal(second!.mad, first!.mad);
  assert.not.equal(dreq, first!.mad);
  assert.equal(more, []);
  assert.equal(active.events, ['disconnectCompleted true']);
});

test('dreqOnExit() is the DREQ that ends the connection', () => {
  const pair = new Pair();
  const { active, passive } = pair.established();
  const dreq = active.connection.dreqOnExit()!;
  assert.equal(dreqOf(active), {
    ...dreqOf(active),
    localCommId: active.connection.localCommId,
    remoteCommId: passive.connection.localCommId,
    remoteQpn: 0x11,
  });
  assert.equal([dreq.path.source, dreq.path.destination], [pair.client.gid, pair.server.gid]);
  // The HCA of a killed kernel sends this DREQ.
  pair.server.cm.receive(dreq.path.source, dreq.path.destination, 0, dreq.mad);
  assert.equal(passive.events, ['disconnected']);
});

test('a REJ ends an established connection like a disconnect', () => {
  const pair = new Pair();
  const { active, passive } = pair.established();
  const ids = { localCommId: passive.connection.localCommId, remoteCommId: active.connection.localCommId };
  pair.client.cm.receive(
    pair.server.gid,
    pair.client.gid,
    0,
    emitMad('REJ', 1n, { ...ids, message: 2, reason: 10 }),
  );
  assert.equal(active.events, ['disconnected']);
});

test('a REJ with one wrong id is ignored', () => {
  const pair = new Pair();
  const { active } = pair.established();
  const ids = { localCommId: 0, remoteCommId: active.connection.localCommId };
  const mad = emitMad('REJ', 1n, { ...ids, message: 0, reason: 10 });
  pair.client.cm.receive(pair.server.gid, pair.client.gid, 0, mad);
  assert.is(active.state, 'established');
});

test('timewait reserves ids for its duration, but only for a limited number of connections', () => {
  const pair = new Pair({ timewaitMs: 500 });
  const { active } = pair.established();
  active.connection.disconnect();
  pair.network.clock.advance(400);
  assert.equal([pair.client.ids.size, pair.server.ids.size], [1, 1]);
  pair.network.clock.advance(200);
  assert.equal([pair.client.ids.size, pair.server.ids.size], [0, 0]);

  for (let i = 0; i < TIMEWAIT_LIMIT + 5; i++) pair.connect({ qp: qp(0x20) }).connection.abandon();
  assert.is(pair.client.ids.size, TIMEWAIT_LIMIT);
  assert.is(pair.client.cm.counters().timewait, TIMEWAIT_LIMIT);
});

test('the same QP may reconnect at once', () => {
  const pair = new Pair();
  for (let round = 0; round < 5; round++) {
    const { active } = pair.established();
    active.connection.disconnect();
    pair.network.clock.advance(5);
  }
  assert.equal(pair.end(), []);
});

test('an owner may call the connection from within any event', () => {
  const pair = new Pair();
  pair.onTaken = (side) => {
    side.on.established = () => side.connection.disconnect();
    side.connection.accept(qp(0x11), new Uint8Array(0));
  };
  const active = pair.connect();
  active.on.disconnected = () => active.connection.abandon();
  pair.network.clock.runToEnd();
  assert.equal(active.events, ['replied', 'disconnected']);
  assert.equal(pair.taken[0]?.events, ['established', 'disconnectCompleted true']);
  assert.equal(pair.leftovers(), []);
});

test.run();
