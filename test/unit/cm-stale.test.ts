/** The messages that end a connection: only a valid request that could come from its peer (IBA 1 §12.9.8.3). */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { BY_WIRE } from '../../kernel-bridge/hca/soft-hca-binding.js';
import { type CmBody, emitMad } from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import { connectParameters, ipv4, Pair, qp, SERVICE, Side } from '../helpers/cm-network.js';

const CLIENT_SLOT = 1;
const CLIENT_QPN = (CLIENT_SLOT << 16) | 0x17;
const FIRST_INDEX = 2;
const LAST_INDEX = 0xffff;

/** Two processes on one host, connected over the local link. Both send from the host's only address. */
function localPair() {
  const pair = new Pair();
  pair.client.slot = CLIENT_SLOT;
  pair.server.slot = 0;
  const sides = pair.established({ qp: qp(CLIENT_QPN) });
  const { message } = pair.network.last('client', 'REQ');
  if (message.name !== 'REQ') throw new Error(message.name);
  const { header, body } = message;
  /** Passes a modified REQ of the client to the server. */
  const request = (change: Partial<CmBody<'REQ'>>, sender: number, transactionId = 77n) => {
    const mad = emitMad('REQ', transactionId, { ...body, ...change });
    pair.server.cm.receive(pair.client.gid, pair.server.gid, 0, mad, sender);
  };
  return { pair, ...sides, header, body, request };
}

type Local = ReturnType<typeof localPair>;

function assertAlive({ pair, active, passive }: Local): void {
  pair.network.clock.advance(100);
  assert.equal([active.state, passive.state], ['established', 'established']);
  assert.equal([active.events, passive.events], [[], []]);
}

test('requests over UDP, with any QP of the other process, do not end connections between processes on a host', () => {
  const local = localPair();
  local.pair.taking = false;
  local.pair.network.route = () => [];
  for (let index = FIRST_INDEX; index <= LAST_INDEX; index++)
    local.request({ localCommId: index, localQpn: (CLIENT_SLOT << 16) | index }, BY_WIRE);
  assertAlive(local);
  assert.is(local.pair.server.cm.counters()['dropped.foreignQpn'], 1);
  assert.is(local.pair.server.cm.counters()['refused.10'], undefined);
});

test('a process on this host cannot use the QP of another', () => {
  const local = localPair();
  local.request({ localCommId: 5 }, CLIENT_SLOT + 1);
  assertAlive(local);
  assert.is(local.pair.server.cm.counters()['dropped.foreignQpn'], 1);
  assert.is(local.pair.taken.length, 1);
});

test('a process that reuses its own QP: REJ 10, the old connection ends', () => {
  const { pair, passive, request } = localPair();
  request({ localCommId: 5 }, CLIENT_SLOT);
  pair.network.clock.advance(20);
  assert.is(pair.network.log[0], 'server REJ10');
  assert.equal(passive.events, ['disconnected']);
});

/** Both sides have ended their connection. Their messages never arrive. */
function bothEnded(): Pair {
  const pair = new Pair();
  const { active, passive } = pair.established();
  pair.network.lose('client', 'DREQ', 20);
  pair.network.lose('server', 'DREQ', 20);
  active.connection.abandon();
  passive.connection.abandon();
  assert.equal([active.state, passive.state], ['dreqSent', 'dreqSent']);
  return pair;
}

test('a QP whose connection both sides have ended: its next request is accepted while the DREQs are late', () => {
  const pair = bothEnded();
  const next = pair.connect();
  pair.network.clock.advance(20);
  assert.equal([next.state, pair.taken.at(-1)!.state], ['established', 'established']);
  assert.is(pair.server.cm.counters()['refused.10'], undefined);
  assert.is(pair.server.cm.counters().connections, 1);
});

test('the same for a QP that accepts again', () => {
  const pair = bothEnded();
  // The server's QP is the same, the client's is another one.
  const next = pair.connect({ qp: qp(0x18) });
  pair.network.clock.advance(20);
  assert.equal([next.state, next.events], ['established', ['replied']]);
  assert.is(pair.client.cm.counters().connections, 1);
});

test('a later process with the same slot and QPN: its request is accepted', () => {
  const { pair, passive } = localPair();
  const next = pair.network.add('next', pair.client.gid, {}, 0x0300_0000);
  next.slot = CLIENT_SLOT;
  next.caGuid = pair.client.caGuid;
  pair.network.hosts.splice(pair.network.hosts.indexOf(pair.client), 1);
  const connect = () => {
    const side = new Side();
    side.on.replied = () => side.connection.ready();
    const parameters = connectParameters(next, pair.server, { qp: qp(CLIENT_QPN) });
    side.connection = next.cm.connect(parameters, side.listenTo);
    pair.network.clock.advance(20);
    return side;
  };
  assert.equal(connect().events, ['rejected 10']);
  assert.equal(passive.events, ['disconnected']);
  assert.is(connect().state, 'established');
});

test('messages over UDP do not end a connection on the local link, even with correct ids', () => {
  const local = localPair();
  const { pair, passive, body } = local;
  const ids = { localCommId: body.localCommId, remoteCommId: passive.connection.localCommId };
  const forged = [
    emitMad('DREQ', 1n, { ...ids, remoteQpn: 0x11 }),
    emitMad('REJ', 1n, { ...ids, message: 2, reason: 29 }),
    emitMad('REJ', 1n, {
      ...ids,
      remoteCommId: 0,
      message: 2,
      reason: 4,
      ariLength: 8,
      ari: guidBytes(body),
    }),
  ];
  for (const mad of forged) pair.server.cm.receive(pair.client.gid, pair.server.gid, 0, mad);
  assertAlive(local);
  assert.is(pair.server.cm.counters()['dropped.wrongSource'], 2);
});

test('replies on behalf of a process that has ended are valid', () => {
  const { pair, passive } = localPair();
  pair.network.route = () => [];
  passive.connection.disconnect();
  const ids = { localCommId: passive.connection.remoteCommId, remoteCommId: passive.connection.localCommId };
  const drep = emitMad('DREP', 1n, ids);
  pair.server.cm.receive(pair.client.gid, pair.server.gid, 0, drep, BY_WIRE);
  assert.is(passive.state, 'dreqSent');
  const own = passive.connection.localCommId >>> 24;
  pair.server.cm.receive(pair.client.gid, pair.server.gid, 0, drep, own);
  assert.is(passive.state, 'timewait');
});

function guidBytes({ localCaGuid }: CmBody<'REQ'>): Uint8Array {
  const bytes = new Uint8Array(72);
  new DataView(bytes.buffer).setBigUint64(0, localCaGuid);
  return bytes;
}

const unsound: [string, Partial<CmBody<'REQ'>>, number][] = [
  ['of a service without a listener', { serviceId: SERVICE + 1n }, 8],
  ['with another address in the path', { primaryLocalGid: ipv4(99) }, 12],
  ['of a partition that is not the port’s', { pkey: 0x8001 }, 12],
  ['without the address header', { privateData: new Uint8Array(92) }, 28],
  ['with an invalid MTU', { pathMtu: 0 }, 26],
  ['of a transport that is not offered', { transportType: 3 }, 9],
];
for (const [what, change, reason] of unsound) {
  test(`a request ${what} is refused for that reason, and does not end connections of its QP`, () => {
    const local = localPair();
    local.request({ localCommId: 5, ...change }, CLIENT_SLOT);
    assert.equal(local.pair.network.log, [`server REJ${reason}`]);
    assertAlive(local);
  });
}

test('a request with the id of a live connection but another QP is not a duplicate and ends nothing', () => {
  const local = localPair();
  const { pair, body, request } = local;
  request({ localQpn: CLIENT_QPN + 1 }, CLIENT_SLOT);
  request({ localQpn: CLIENT_QPN + 1 }, CLIENT_SLOT, local.header.transactionId);
  request({ localQpn: CLIENT_QPN + 1, startingPsn: body.startingPsn ^ 1 }, CLIENT_SLOT);
  assert.equal(pair.network.log, []);
  assertAlive(local);
  assert.is(pair.server.cm.counters()['ignored.reqKnownId'], 3);
  assert.is(pair.taken.length, 1);
});

test('such a request does not end the connection of its QP either, if that has another id', () => {
  const pair = new Pair();
  let qpn = 0x21;
  pair.onTaken = ({ connection }) => connection.accept(qp(qpn++), new Uint8Array(0));
  const first = pair.established();
  const second = pair.established({ qp: qp(0x18) });
  const { message } = pair.network.sent.findLast((p) => p.from === 'client' && p.message.name === 'REQ')!;
  if (message.name !== 'REQ') throw new Error(message.name);
  const mad = emitMad('REQ', 9n, { ...message.body, localQpn: 0x17 });
  pair.server.cm.receive(pair.client.gid, pair.server.gid, 0, mad);
  pair.network.clock.advance(20);
  assert.equal(
    [first, second].map(({ passive }) => passive.state),
    ['established', 'established'],
  );
});

test.run();
