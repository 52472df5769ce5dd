/** Tests strangers that request connections and do not complete them: their share, and what remains for other peers. */
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { BY_WIRE } from '../../kernel-bridge/hca/soft-hca-binding.js';
import { LONGEST_WAIT_CODE } from '../../kernel-bridge/kernel/cm/connection.js';
import { HalfOpenLimits } from '../../kernel-bridge/kernel/cm/half-open.js';
import { ListenerLimits } from '../../kernel-bridge/kernel/cm/listener-table.js';
import { type CmBody, timeoutCodeToMs } from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import { connectParameters, ipv4, Pair, PORT, qp, SERVICE, Side } from '../helpers/cm-network.js';
import { forgedReq, gidOf } from '../helpers/forged-mads.js';
import { long } from '../helpers/tiers.js';

const { perSource, total, answerMs } = HalfOpenLimits;
const { perListener } = ListenerLimits;
const SERVER = '10.77.0.2';
/** The last byte of strangers' addresses. The client's is 3. */
const FIRST_STRANGER = 100;
const address = (stranger: number): string => `10.77.0.${FIRST_STRANGER + stranger}`;

/** A server whose queue pairs have distinct QPNs. */
function serving(...of: ConstructorParameters<typeof Pair>): Pair {
  const pair = new Pair(...of);
  let qpn = 0x100;
  pair.onTaken = ({ connection }) => connection.accept(qp(qpn++), new Uint8Array(0));
  return pair;
}

/** Sends the nth REQ of a stranger, which neither sends nor receives replies. */
function request(
  pair: Pair,
  n: number,
  {
    stranger = 0,
    slot,
    port = PORT,
    says = {},
  }: { stranger?: number; slot?: number; port?: number; says?: Partial<CmBody<'REQ'>> } = {},
): void {
  const source = address(stranger);
  const localQpn = ((slot ?? 0) << 16) | (0x100 + n);
  const fields = { localCommId: 0x7000_0000 + n, localQpn, localCaGuid: 0x77n, startingPsn: n, ...says };
  const mad = forgedReq(SERVER, port, fields, source, BigInt(n + 1));
  pair.server.cm.receive(gidOf(source), pair.server.gid, 0, mad, slot ?? BY_WIRE);
}

/** Number of a stranger's connections that the server waits for. */
const accepted = (pair: Pair): number => pair.server.cm.counters().halfOpen ?? 0;
const undelivered = (pair: Pair): string[] =>
  pair.network.sent.filter(({ to }) => to === 'no host').map(({ message }) => message.name);

// ── Waiting at the listener ──────────────────────────────────────────────────────────────────────────────────

test('a listener filled by one source has room for another source, whose request is next', () => {
  const pair = serving();
  pair.taking = false;
  for (let n = 0; n < perListener + 100; n += 1) request(pair, n);
  assert.is(pair.listener.waiting, perListener);
  assert.is(pair.server.cm.counters()['dropped.noRoom'], 100);
  const honest = pair.connect();
  pair.network.clock.advance(5);
  assert.is(pair.listener.waiting, perListener);
  assert.is(pair.server.cm.counters()['displaced.REQ'], 1);
  assert.equal(undelivered(pair), [], 'neither dropped nor displaced requests get a reply');
  assert.is(pair.take()?.request?.peerQpn, 0x100, 'the oldest one');
  assert.is(pair.take()?.request?.peerQpn, 0x17, 'then the other source has its turn');
  pair.network.clock.advance(5);
  assert.is(honest.state, 'established');
});

test('the newest request of the largest source is displaced, and may be repeated', () => {
  const pair = serving({}, 4);
  pair.taking = false;
  pair.onTaken = undefined;
  for (let n = 0; n < 4; n += 1) request(pair, n);
  request(pair, 50, { stranger: 1 });
  pair.take();
  request(pair, 3);
  assert.is(pair.listener.waiting, 4);
  const qpns: (number | undefined)[] = [];
  while (pair.listener.waiting > 0) qpns.push(pair.take()?.request?.peerQpn);
  assert.equal(qpns, [0x100 + 50, 0x101, 0x102, 0x103]);
});

test('a REQ that is not stored does not displace others: for a stale connection, and without an id', () => {
  const pair = serving({}, 4);
  pair.taking = false;
  request(pair, 50, { stranger: 1 });
  pair.take();
  for (let n = 0; n < 4; n += 1) request(pair, n);
  request(pair, 51, { stranger: 1, says: { localQpn: 0x100 + 50 } });
  pair.server.idsLeft = 0;
  request(pair, 60, { stranger: 2 });
  const counters = pair.server.cm.counters();
  assert.equal([counters['refused.10'], counters.noCommId, counters['displaced.REQ']], [1, 1, undefined]);
  assert.is(pair.listener.waiting, 4);
});

test('if all sources have the same number of requests, none is displaced', () => {
  const pair = serving({}, 3);
  pair.taking = false;
  for (let n = 0; n < 3; n += 1) request(pair, n, { stranger: n });
  request(pair, 3, { stranger: 3 });
  const counters = pair.server.cm.counters();
  assert.equal([counters['displaced.REQ'], counters['refused.3']], [undefined, 1]);
  // One request more than the others is not enough, because the new source would then have as many as the displaced one.
  assert.is(pair.listener.waiting, 3);
});

test('a request beyond the owner’s limit is refused; one beyond a limit of this side is dropped', () => {
  const own = serving({}, 2);
  own.taking = false;
  for (let n = 0; n < 3; n += 1) request(own, n);
  assert.equal(undelivered(own), ['REJ']);
  const free = serving();
  free.taking = false;
  for (let n = 0; n < perListener + 1; n += 1) request(free, n);
  assert.equal(undelivered(free), []);
});

test('the total of all listeners is limited, and the fullest one yields to others', () => {
  const pair = serving();
  pair.taking = false;
  const ports = [1, 2, 3, 4, 5].map((n) => PORT + n);
  const listeners = ports.map((port) =>
    pair.server.cm.listen({
      serviceId: (SERVICE & ~0xffffn) | BigInt(port),
      address: undefined,
      backlog: 0,
      onRequest() {},
    }),
  );
  let n = 0;
  for (const port of ports) for (let more = 0; more < perListener; more += 1) request(pair, n++, { port });
  const waiting = () => listeners.map((listener) => listener.waiting);
  assert.is(pair.server.cm.counters().waitingRequests, ListenerLimits.total);
  assert.ok(waiting()[4]! > 0, 'the listener without requests got room from the others');
  const before = waiting()[4]!;
  request(pair, n++, { port: ports[4]!, stranger: 1 });
  assert.is(pair.server.cm.counters().waitingRequests, ListenerLimits.total);
  assert.is(pair.server.cm.counters()['displaced.REQ']! > 0, true);
  assert.ok(waiting()[4]! >= before);
  for (const listener of listeners) listener.close();
  assert.is(pair.server.cm.counters().waitingRequests, 0);
});

// ── Accepted, but without a reply ───────────────────────────────────────────────────────────────────────────────

test('a source is limited to its share of accepted connections, and others can connect at once', () => {
  const pair = serving();
  for (let n = 0; n < 500; n += 1) request(pair, n);
  assert.is(accepted(pair), perSource);
  assert.is(undelivered(pair).length, perSource);
  assert.is(pair.listener.waiting, 500 - perSource);
  const honest = pair.connect();
  pair.network.clock.advance(5);
  assert.is(honest.state, 'established');
  assert.is(accepted(pair), perSource);
});

test('a peer that does not reply gets the REP once more, then loses its slot to the next request of its source', () => {
  const pair = serving();
  for (let n = 0; n < perSource + 10; n += 1) request(pair, n);
  pair.network.clock.advance(answerMs);
  assert.is(undelivered(pair).length, 2 * perSource, 'every REP again');
  assert.equal(
    pair.taken.flatMap(({ events }) => events),
    [],
  );
  pair.network.clock.advance(answerMs);
  assert.is(pair.taken.length, perSource + 10);
  assert.equal(
    pair.taken.map(({ events }) => events),
    pair.taken.map((_, index) => (index < perSource ? ['timedOut'] : [])),
  );
  assert.is(accepted(pair), 10);
  assert.is(pair.server.cm.counters()['halfOpen.displaced'], perSource);
  assert.equal(pair.end(), []);
});

test('if no request waits for its slot, a connection keeps the slot as long as the peer may reply', () => {
  const pair = serving();
  for (let n = 0; n < perSource; n += 1) request(pair, n);
  pair.network.clock.advance(4 * answerMs);
  assert.is(accepted(pair), perSource);
  assert.is(pair.server.cm.counters()['halfOpen.displaced'], undefined);
});

test('many sources together cannot exceed the total, and an honest peer connects within a second', () => {
  const pair = serving();
  const strangers = 2 * (total / perSource);
  for (let n = 0; n < strangers * 100; n += 1) request(pair, n, { stranger: n % strangers });
  assert.is(accepted(pair), total);
  const honest = pair.connect();
  pair.network.clock.advance(1000);
  assert.is(honest.state, 'established');
  assert.ok(accepted(pair) <= total);
  assert.equal(
    pair.end().filter((line) => !line.startsWith('client') && !line.startsWith('server: 1 ')),
    [],
  );
});

test('a source with few slots keeps them while others have many, no matter how long its replies take', () => {
  const pair = serving();
  const strangers = 2 * (total / perSource);
  pair.network.lose('client', 'RTU', 2);
  const slow = pair.connect();
  pair.network.clock.advance(5);
  for (let n = 0; n < strangers * 100; n += 1) request(pair, n, { stranger: n % strangers });
  pair.network.clock.advance(8 * answerMs);
  assert.equal(pair.taken[0]!.events, []);
  assert.is(pair.taken[0]!.state, 'repSent');
  // The interval of the default options. The RTU for this repetition is lost, but not the next one.
  pair.network.clock.advance(10_000);
  assert.equal([slow.state, pair.taken[0]!.state], ['established', 'established']);
});

long(
  test,
  'a flood of 16 addresses leaves an honest peer’s connections below a second, in the long run',
  () => {
    const pair = serving();
    let n = 0;
    const flood = (): void => {
      for (let more = 0; more < 48; more += 1) request(pair, n, { stranger: n++ % 16 });
      if (pair.network.clock.now < 8000) pair.network.clock.schedule(10, flood);
    };
    flood();
    for (let at = 0; at < 10; at += 1) {
      pair.network.clock.advance(100 + 37 * at);
      const honest = pair.connect({ qp: qp(0x1000 + at) });
      pair.network.clock.advance(2 * answerMs + 20);
      assert.is(honest.state, 'established', `the ${at}th, ${honest.events.join()}`);
    }
  },
);

test('a continuous flood does not stop others, no matter what its sources are', () => {
  const pair = serving();
  let n = 0;
  const flood = (): void => {
    for (let more = 0; more < 20; more += 1) {
      request(pair, n % 0xfe00, { stranger: n % 7 });
      n += 1;
    }
    if (pair.network.clock.now < 4000) pair.network.clock.schedule(5, flood);
  };
  flood();
  for (let at = 500; at < 3000; at += 500) {
    pair.network.clock.advance(500);
    const honest = pair.connect({ qp: qp(0x1000 + at) });
    const begun = pair.network.clock.now;
    while (honest.state !== 'established' && pair.network.clock.now < begun + 1000)
      pair.network.clock.advance(10);
    assert.is(honest.state, 'established', `the one at ${at} ms`);
    assert.ok(accepted(pair) <= total);
    assert.ok(pair.listener.waiting <= perListener);
  }
});

test('processes with one address have separate shares', () => {
  const pair = serving();
  for (let n = 0; n < 100; n += 1) request(pair, n, { slot: 5 });
  assert.is(accepted(pair), perSource);
  for (let n = 100; n < 110; n += 1) request(pair, n, { slot: 6 });
  for (let n = 200; n < 210; n += 1) request(pair, n);
  assert.is(accepted(pair), perSource + 20);
  // The slot identifies the source, not the address.
  for (let n = 300; n < 310; n += 1) request(pair, n, { slot: 5, stranger: 1 });
  assert.is(accepted(pair), perSource + 20);
});

test('an honest peer whose RTUs were lost gets the REP again, and replies', () => {
  const pair = serving();
  pair.network.lose('client', 'RTU', perSource);
  const sides = Array.from({ length: perSource + 8 }, (_, n) => pair.connect({ qp: qp(0x100 + n) }));
  pair.network.clock.advance(answerMs + 50);
  assert.equal(
    sides.map(({ state }) => state),
    sides.map(() => 'established'),
  );
  assert.equal(
    pair.taken.map(({ state }) => state),
    sides.map(() => 'established'),
  );
});

test('peers with slow programs send an MRA and are no longer counted', () => {
  const pair = serving();
  const sides = Array.from({ length: 3 * perSource }, (_, n) => pair.connect({ qp: qp(0x100 + n) }, false));
  pair.network.clock.advance(10 * answerMs);
  assert.equal(
    sides.map(({ events }) => events),
    sides.map(() => ['replied']),
  );
  for (const { connection } of sides) connection.ready();
  pair.network.clock.advance(10);
  assert.equal(
    pair.taken.map(({ state }) => state),
    sides.map(() => 'established'),
  );
});

test('an owner may receive any number of requests before it accepts the first', () => {
  const pair = serving();
  pair.onTaken = undefined;
  for (let n = 0; n < 5 * perSource; n += 1) request(pair, n);
  assert.is(pair.taken.length, 5 * perSource);
  for (const { connection } of pair.taken) connection.accept(qp(0x11), new Uint8Array(0));
  assert.is(accepted(pair), 5 * perSource);
});

test('1000 simultaneous connections from 20 processes on this host are all established', () => {
  const pair = serving();
  const { network, server } = pair;
  const hosts = Array.from({ length: 20 }, (_, n) => {
    const host = network.add(`process ${n}`, ipv4(10 + n), {}, (n + 1) << 24);
    host.slot = n + 1;
    return host;
  });
  const sides = hosts.flatMap((host, h) =>
    Array.from({ length: 50 }, (_, n) => {
      const side = new Side();
      side.on.replied = () => side.connection.ready();
      const more = { qp: qp(((h + 1) << 16) | (n + 2)) };
      side.connection = host.cm.connect(connectParameters(host, server, more), side.listenTo);
      return side;
    }),
  );
  network.clock.advance(1000);
  assert.equal(new Set(sides.map(({ state }) => state)), new Set(['established']));
  assert.is(pair.taken.length, 1000);
});

test('a peer cannot make the server wait for hours', () => {
  const pair = serving();
  request(pair, 0, { says: { localResponseTimeout: 31, maxCmRetries: 15 } });
  assert.is(accepted(pair), 1);
  pair.network.clock.advance(16 * timeoutCodeToMs(LONGEST_WAIT_CODE));
  assert.is(accepted(pair), 0);
  assert.equal(pair.taken[0]!.events, ['timedOut']);
  pair.taking = false;
  request(pair, 1, { says: { remoteResponseTimeout: 31, primaryAckTimeout: 31, maxCmRetries: 15 } });
  pair.network.clock.advance(3 * 17 * timeoutCodeToMs(LONGEST_WAIT_CODE));
  assert.is(pair.listener.waiting, 0);
  assert.equal(pair.end(), []);
});

test('a listener that closes while requests wait for slots leaves no state', () => {
  const pair = serving();
  for (let n = 0; n < 3 * perSource; n += 1) request(pair, n);
  pair.listener.close();
  assert.is(pair.server.cm.counters().waitingRequests, 0);
  assert.equal(pair.end(), []);
  const other = serving();
  for (let n = 0; n < 3 * perSource; n += 1) request(other, n);
  other.server.cm.close();
  assert.equal(other.end(), []);
});

const arrival = fc.record({
  stranger: fc.nat(9),
  count: fc.integer({ min: 1, max: 60 }),
  after: fc.integer({ min: 0, max: 300 }),
});

test('for any order of arrivals, the limits hold, honest peers connect, and no state is left', () => {
  fc.assert(
    fc.property(
      fc.array(arrival, { maxLength: 30 }),
      fc.integer({ min: 0, max: 29 }),
      (arrivals, honestAt) => {
        const pair = serving({ responseTimeoutCode: 14, maxRetries: 4 });
        let n = 0;
        let honest: Side | undefined;
        for (const [index, { stranger, count, after }] of arrivals.entries()) {
          for (let more = 0; more < count; more += 1) request(pair, n++, { stranger });
          if (index === honestAt) honest = pair.connect();
          pair.network.clock.advance(after);
          const counters = pair.server.cm.counters();
          assert.ok(accepted(pair) <= total);
          assert.ok(counters.waitingRequests! <= perListener);
          assert.not.ok(Object.keys(counters).some((name) => name.startsWith('impossible')));
        }
        pair.network.clock.advance(1000);
        if (honest !== undefined) {
          assert.is(honest.state, 'established');
          honest.connection.abandon();
        }
        assert.equal(pair.end(), []);
      },
    ),
    { numRuns: 40 },
  );
});

test.run();
