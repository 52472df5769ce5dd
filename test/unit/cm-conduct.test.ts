/** Every combination of state and event that has an action: the sent messages, the owner's events, the next state. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type CmEvent,
  cmEvents,
  cmStates,
  transitions,
} from '../../kernel-bridge/kernel/cm/connection-states.js';
import { emitMad } from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import type { CmState } from '../../kernel-bridge/kernel/cm/service.js';
import { connectParameters, type Host, Pair, qp, SERVICE, type Side } from '../helpers/cm-network.js';

const NOTHING = new Uint8Array(0);
const OPTIONS = { responseTimeoutCode: 18, maxRetries: 1, mraServiceTimeoutCode: 18, timewaitMs: 500 };
/** One retransmission interval of these options, and one with an MRA of service timeout 18. */
const INTERVAL = 1074;

interface Scene {
  pair: Pair;
  side: Side;
  host: Host;
  peer: Host;
  /** The peer's communication id and QPN, if known. */
  peerId: number;
}

function sceneOf(pair: Pair, side: Side): Scene {
  const active = side.request === undefined;
  const other = active ? pair.taken[0] : undefined;
  const peerId = active ? (other?.connection.localCommId ?? 0x777) : side.connection.remoteCommId;
  const [host, peer] = active ? [pair.client, pair.server] : [pair.server, pair.client];
  return { pair, side, host, peer, peerId };
}

/** Moves one side to a state. From then on, the network loses all messages. */
const reach: Record<Exclude<CmState, 'idle'>, () => Scene> = {
  reqSent: () => {
    const pair = new Pair(OPTIONS);
    pair.network.route = () => [];
    return sceneOf(pair, pair.connect({}, false));
  },
  mraReqReceived: () => {
    const scene = reach.reqSent();
    fire.mraReq?.(scene);
    return scene;
  },
  repReceived: () => {
    const pair = new Pair(OPTIONS);
    const side = pair.connect({}, false);
    pair.network.clock.advance(5);
    return sceneOf(pair, side);
  },
  reqReceived: () => {
    const pair = new Pair(OPTIONS);
    pair.onTaken = undefined;
    pair.connect();
    pair.network.clock.advance(5);
    return sceneOf(pair, pair.taken[0]!);
  },
  repSent: () => {
    const pair = new Pair(OPTIONS);
    pair.network.lose('server', 'REP', 100);
    pair.connect();
    pair.network.clock.advance(5);
    return sceneOf(pair, pair.taken[0]!);
  },
  mraRepReceived: () => {
    const scene = reach.repSent();
    fire.mraRep?.(scene);
    return scene;
  },
  established: () => {
    const pair = new Pair(OPTIONS);
    // The ACK timeout exceeds the response timeout, so that a DREQ is not repeated before its first retry.
    return sceneOf(pair, pair.established({ ackTimeoutCode: 20 }).active);
  },
  dreqSent: () => {
    const scene = reach.established();
    scene.pair.network.route = () => [];
    scene.side.connection.disconnect();
    return scene;
  },
  timewait: () => {
    const scene = reach.repReceived();
    scene.pair.network.route = () => [];
    scene.side.connection.reject(NOTHING);
    return scene;
  },
};

function deliver({ host, peer }: Scene, mad: Uint8Array): void {
  host.cm.receive(peer.gid, host.gid, 0, mad);
}

const idsOf = ({ side, peerId }: Scene) => ({
  localCommId: peerId,
  remoteCommId: side.connection.localCommId,
});
/** The transaction id of the connection's REQ. */
function exchangeOf({ pair, side, peerId }: Scene): bigint {
  const id = side.request === undefined ? side.connection.localCommId : peerId;
  for (const { message } of pair.network.sent) {
    if (message.name === 'REQ' && message.body.localCommId === id) return message.header.transactionId;
  }
  throw new Error('No REQ was sent.');
}
const wait = (milliseconds: number) => (scene: Scene) => scene.pair.network.clock.advance(milliseconds);

/** Causes an event. */
const fire: Partial<Record<CmEvent, (scene: Scene) => void>> = {
  accept: ({ side }) => side.connection.accept(qp(0x11), NOTHING),
  ready: ({ side }) => side.connection.ready(),
  reject: ({ side }) => side.connection.reject(NOTHING),
  disconnect: ({ side }) => side.connection.disconnect(),
  packetSeen: ({ side }) => side.connection.communicationEstablished(),
  abandon: ({ side }) => side.connection.abandon(),
  req: (scene) => deliver(scene, scene.pair.network.last(scene.peer.name, 'REQ').mad),
  mraReq: (scene) =>
    deliver(scene, emitMad('MRA', exchangeOf(scene), { ...idsOf(scene), message: 0, serviceTimeout: 18 })),
  mraRep: (scene) =>
    deliver(scene, emitMad('MRA', exchangeOf(scene), { ...idsOf(scene), message: 1, serviceTimeout: 18 })),
  rej: (scene) =>
    deliver(scene, emitMad('REJ', exchangeOf(scene), { ...idsOf(scene), message: 2, reason: 29 })),
  rep: (scene) =>
    deliver(
      scene,
      emitMad('REP', exchangeOf(scene), { ...idsOf(scene), localQpn: 0x11, localCaGuid: scene.peer.caGuid }),
    ),
  rtu: (scene) => deliver(scene, emitMad('RTU', exchangeOf(scene), idsOf(scene))),
  dreq: (scene) =>
    deliver(
      scene,
      emitMad('DREQ', exchangeOf(scene), { ...idsOf(scene), remoteQpn: scene.side.request ? 0x11 : 0x17 }),
    ),
  drep: (scene) => deliver(scene, emitMad('DREP', exchangeOf(scene), idsOf(scene))),
  // Simulates another request from the peer's QP, with another id.
  stale: (scene) => {
    const { host, peer, pair, side } = scene;
    const qpn = side.request ? 0x17 : 0x11;
    const { send } = pair.network;
    let mad: Uint8Array | undefined;
    pair.network.send = (_from, _path, made) => (mad = made);
    const own = peer.cm.connect(connectParameters(peer, host, { qp: qp(qpn) }), {});
    pair.network.send = () => {};
    own.abandon();
    pair.network.send = send;
    // Only a valid request can make a connection stale.
    const listener = host.cm.listen({
      serviceId: SERVICE,
      address: undefined,
      backlog: 0,
      onRequest: () => {},
    });
    if (mad) deliver(scene, mad);
    listener.close();
  },
};

/** `state × event`: the host's messages, the owner's events, the next state. */
const conduct: [CmState, CmEvent, string[], string[], CmState][] = [
  ['reqSent', 'reject', ['REJ4'], [], 'timewait'],
  ['reqSent', 'disconnect', ['REJ4'], ['disconnectCompleted true'], 'timewait'],
  ['reqSent', 'abandon', ['REJ4'], [], 'timewait'],
  ['reqSent', 'mraReq', [], [], 'mraReqReceived'],
  ['reqSent', 'rej', [], ['rejected 29'], 'timewait'],
  ['reqSent', 'rep', [], ['replied'], 'repReceived'],
  ['mraReqReceived', 'reject', ['REJ4'], [], 'timewait'],
  ['mraReqReceived', 'disconnect', ['REJ4'], ['disconnectCompleted true'], 'timewait'],
  ['mraReqReceived', 'abandon', ['REJ4'], [], 'timewait'],
  ['mraReqReceived', 'rej', [], ['rejected 29'], 'timewait'],
  ['mraReqReceived', 'rep', [], ['replied'], 'repReceived'],
  ['repReceived', 'ready', ['RTU'], [], 'established'],
  ['repReceived', 'reject', ['REJ28'], [], 'timewait'],
  ['repReceived', 'disconnect', ['REJ28'], ['disconnectCompleted true'], 'timewait'],
  ['repReceived', 'abandon', ['REJ28'], [], 'timewait'],
  ['repReceived', 'rep', ['MRA1'], [], 'repReceived'],
  ['repReceived', 'rej', [], ['rejected 29'], 'timewait'],
  ['repReceived', 'dreq', ['DREP'], ['disconnected'], 'timewait'],
  ['repReceived', 'stale', ['REJ10', 'REJ28'], ['rejected 10'], 'timewait'],
  ['reqReceived', 'accept', ['REP'], [], 'repSent'],
  ['reqReceived', 'reject', ['REJ28'], [], 'timewait'],
  ['reqReceived', 'disconnect', ['REJ28'], ['disconnectCompleted true'], 'timewait'],
  ['reqReceived', 'abandon', ['REJ28'], [], 'timewait'],
  ['reqReceived', 'req', ['MRA0'], [], 'reqReceived'],
  ['reqReceived', 'rej', [], ['rejected 29'], 'timewait'],
  ['reqReceived', 'stale', ['REJ10'], ['rejected 10'], 'timewait'],
  ['repSent', 'reject', ['REJ28'], [], 'timewait'],
  ['repSent', 'disconnect', ['REJ28'], ['disconnectCompleted true'], 'timewait'],
  ['repSent', 'packetSeen', [], ['established'], 'established'],
  ['repSent', 'abandon', ['REJ28'], [], 'timewait'],
  ['repSent', 'req', ['REP'], [], 'repSent'],
  ['repSent', 'mraRep', [], [], 'mraRepReceived'],
  ['repSent', 'rej', [], ['rejected 29'], 'timewait'],
  ['repSent', 'rtu', [], ['established'], 'established'],
  ['repSent', 'dreq', ['DREP'], ['disconnected'], 'timewait'],
  ['repSent', 'stale', ['REJ10'], ['rejected 10'], 'timewait'],
  ['mraRepReceived', 'reject', ['REJ28'], [], 'timewait'],
  ['mraRepReceived', 'disconnect', ['REJ28'], ['disconnectCompleted true'], 'timewait'],
  ['mraRepReceived', 'packetSeen', [], ['established'], 'established'],
  ['mraRepReceived', 'abandon', ['REJ28'], [], 'timewait'],
  ['mraRepReceived', 'req', ['REP'], [], 'mraRepReceived'],
  ['mraRepReceived', 'rej', [], ['rejected 29'], 'timewait'],
  ['mraRepReceived', 'rtu', [], ['established'], 'established'],
  ['mraRepReceived', 'dreq', ['DREP'], ['disconnected'], 'timewait'],
  ['mraRepReceived', 'stale', ['REJ10'], ['rejected 10'], 'timewait'],
  ['established', 'disconnect', ['DREQ'], [], 'dreqSent'],
  ['established', 'packetSeen', [], [], 'established'],
  ['established', 'abandon', ['DREQ'], [], 'dreqSent'],
  ['established', 'rep', ['RTU'], [], 'established'],
  ['established', 'rej', [], ['disconnected'], 'timewait'],
  ['established', 'dreq', ['DREP'], ['disconnected'], 'timewait'],
  ['established', 'stale', ['REJ10', 'DREQ'], ['disconnected'], 'dreqSent'],
  ['dreqSent', 'packetSeen', [], [], 'dreqSent'],
  ['dreqSent', 'abandon', [], [], 'dreqSent'],
  ['dreqSent', 'rej', [], ['disconnectCompleted true'], 'timewait'],
  ['dreqSent', 'dreq', ['DREP'], ['disconnectCompleted true'], 'timewait'],
  ['dreqSent', 'drep', [], ['disconnectCompleted true'], 'timewait'],
  // The new request waits until its listener closes.
  ['dreqSent', 'stale', ['REJ28'], ['disconnectCompleted true'], 'timewait'],
  ['timewait', 'disconnect', [], ['disconnectCompleted true'], 'timewait'],
  ['timewait', 'packetSeen', [], [], 'timewait'],
  ['timewait', 'abandon', [], [], 'timewait'],
  ['timewait', 'rep', ['REJ28'], [], 'timewait'],
  ['timewait', 'rtu', ['REJ28'], [], 'timewait'],
  ['timewait', 'dreq', ['DREP'], [], 'timewait'],
];

function assertOver({ pair, host, side }: Scene): void {
  pair.network.clock.runToEnd();
  assert.is(side.state, 'idle');
  assert.equal([host.timers, host.ids.size, host.cm.counters().connections], [0, 0, 0]);
}

for (const [state, event, sent, reported, next] of conduct) {
  test(`${state} × ${event}: sends ${sent.join(', ') || 'nothing'}, then ${next}`, () => {
    const scene = reach[state as keyof typeof reach]();
    const { pair, side, host } = scene;
    assert.is(side.state, state);
    pair.network.route = () => [];
    pair.network.log.length = 0;
    side.events.length = 0;
    fire[event]?.(scene);
    pair.network.clock.advance(0);
    const own = pair.network.log
      .filter((line) => line.startsWith(host.name))
      .map((line) => line.split(' ')[1]);
    assert.equal(own, sent);
    assert.equal(side.events, reported);
    assert.is(side.state, next);
    // If the owner abandons the connection at any time, it gets no more events, and nothing is left on its side.
    side.events.length = 0;
    side.connection.abandon();
    assertOver(scene);
    assert.equal(side.events, []);
  });
}

test('the list above has every cell that calls and messages can reach', () => {
  const named = new Set(conduct.map(([state, event]) => `${state} × ${event}`));
  // connect() and the arrival of a request create the connection; other tests cover the rest.
  const elsewhere = new Set([
    'timewait × req',
    'reqSent × staleReply',
    'mraReqReceived × staleReply',
    'reqReceived × displaced',
  ]);
  for (const state of cmStates) {
    for (const event of cmEvents) {
      const timer = event === 'timeout' || event === 'exhausted' || event === 'expired';
      if (state === 'idle' || timer || transitions[state][event].kind !== 'go') continue;
      const cell = `${state} × ${event}`;
      assert.ok(named.has(cell) || elsewhere.has(cell), cell);
    }
  }
});

// ── Timers, in every state that has one ──────────────────────────────────────────────────────────────────────

const timed: [CmState, number, string[], string[]][] = [
  ['reqSent', INTERVAL, ['REQ', 'REJ4'], ['timedOut']],
  ['mraReqReceived', INTERVAL * 2, ['REQ', 'REJ4'], ['timedOut']],
  ['repSent', INTERVAL, ['REP', 'REJ4'], ['timedOut']],
  ['mraRepReceived', INTERVAL * 2, ['REP', 'REJ4'], ['timedOut']],
  ['dreqSent', INTERVAL, ['DREQ'], ['disconnectCompleted false']],
];

for (const [state, interval, sent, reported] of timed) {
  test(`${state}: retransmits after ${interval} ms, and gives up after the same time again`, () => {
    const scene = reach[state as keyof typeof reach]();
    const { pair, side, host } = scene;
    const log = () =>
      pair.network.log.filter((line) => line.startsWith(host.name)).map((line) => line.split(' ')[1]);
    pair.network.route = () => [];
    pair.network.log.length = 0;
    side.events.length = 0;
    wait(interval - 10)(scene);
    assert.equal(log(), []);
    wait(10)(scene);
    assert.equal(log(), sent.slice(0, 1));
    wait(interval - 10)(scene);
    assert.equal([log(), side.events], [sent.slice(0, 1), []]);
    wait(10)(scene);
    assert.equal([log(), side.events, side.state], [sent, reported, 'timewait']);
    assertOver(scene);
  });
}

test('reqReceived: the owner may decide as long as the peer retransmits its REQ, and then the request ends', () => {
  const scene = reach.reqReceived();
  const { pair, side, host } = scene;
  pair.network.route = () => [];
  // Three attempts of the peer, each as long as its response and ACK timeouts plus our MRA.
  const retryPeriod = 3 * (INTERVAL + 537 + INTERVAL);
  for (let round = 0; round < 3; round++) {
    wait(retryPeriod - 10)(scene);
    assert.equal([side.state, side.events], ['reqReceived', []]);
    fire.req?.(scene);
  }
  pair.network.log.length = 0;
  wait(retryPeriod)(scene);
  assert.equal(side.events, ['timedOut']);
  assert.equal(
    pair.network.log.filter((line) => line.startsWith(host.name)),
    ['server REJ4'],
  );
  assertOver(scene);
});

test('reqReceived: a peer that falls silent after its first REQ leaves nothing behind', () => {
  const scene = reach.reqReceived();
  scene.pair.network.route = () => [];
  scene.pair.network.clock.runToEnd();
  assert.equal(scene.side.events, ['timedOut']);
  assertOver(scene);
});

for (const state of ['reqSent', 'mraReqReceived'] as const) {
  test(`${state}: a reply from a QP that is already the peer of another connection ends both connections`, () => {
    const scene = reach[state]();
    const { pair, client } = { pair: scene.pair, client: scene.host };
    pair.network.route = () => [1];
    const other = pair.connect({ qp: qp(0x99) });
    pair.network.clock.advance(5);
    assert.is(other.state, 'established');
    pair.network.route = () => [];
    pair.network.log.length = 0;
    fire.rep?.(scene);
    assert.equal(pair.network.log, ['client REJ10', 'client DREQ']);
    assert.equal(scene.side.events, ['rejected 10']);
    assert.equal(other.events, ['replied', 'disconnected']);
    pair.network.clock.runToEnd();
    assert.equal([client.timers, client.ids.size], [0, 0]);
  });
}

test('timewait: a retransmitted REQ gets the REJ again', () => {
  const scene = reach.reqReceived();
  scene.side.connection.reject(NOTHING, 3);
  scene.pair.network.route = () => [];
  scene.pair.network.log.length = 0;
  fire.req?.(scene);
  assert.equal(scene.pair.network.log, ['server REJ3']);
  assert.is(scene.pair.taken.length, 1);
});

test('an owner that abandons a connection gets no pending events', () => {
  for (const call of ['packetSeen', 'disconnect'] as const) {
    const scene = call === 'packetSeen' ? reach.repSent() : reach.timewait();
    fire[call]?.(scene);
    scene.side.events.length = 0;
    scene.side.connection.abandon();
    assertOver(scene);
    assert.equal(scene.side.events, []);
  }
});

test('an owner notified of a stale connection gets no event for the DREQ sent for it', () => {
  const scene = reach.established();
  fire.stale?.(scene);
  scene.pair.network.route = () => [];
  assertOver(scene);
  assert.equal(scene.side.events, ['disconnected']);
});

test.run();
