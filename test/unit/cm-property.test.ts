/**
 * No matter what the network loses, duplicates or reorders, and what the owners do at any time, both sides end in matching states within
 * bounded virtual time, and nothing is left. Received bytes never cause an exception or a leak.
 */
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { CmAttribute, type CmMessageName, MAD_SIZE } from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import type { CmEvents } from '../../kernel-bridge/kernel/cm/service.js';
import { ipv4, Pair, qp, SERVICE, type Side } from '../helpers/cm-network.js';
import { perTier } from '../helpers/tiers.js';

const NOTHING = new Uint8Array(0);

/** Short times, so that all retries fit into a few virtual seconds. The delays below are shorter than timewait. */
const OPTIONS = { responseTimeoutCode: 14, maxRetries: 4, timewaitMs: 500, mraServiceTimeoutCode: 16 };
/** Longer than any wait that the options allow: retries of REQ, REP and DREQ in a row, each extended by an MRA. */
const BOUND_MS = 60_000;

/** The fate of the nth message: its delays. None: lost; two: duplicated. */
const fate = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 0, max: 40 }).map((delay) => [delay]) },
  { weight: 3, arbitrary: fc.constant([] as number[]) },
  { weight: 2, arbitrary: fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 90 })) },
);

/** An owner's call and its time. Calls that do not match the state must have no effect. */
const act = fc.record({
  at: fc.integer({ min: 0, max: 1500 }),
  who: fc.constantFrom('active', 'passive'),
  what: fc.constantFrom('ready', 'accept', 'reject', 'disconnect', 'packetSeen', 'abandon', 'connect'),
});

const story = fc.record({
  fates: fc.array(fate, { maxLength: 40 }),
  confirm: fc.boolean(),
  accept: fc.boolean(),
  acts: fc.array(act, { maxLength: 6 }),
});

function perform(side: Side | undefined, what: string): void {
  const connection = side?.connection;
  if (!connection) return;
  if (what === 'ready') connection.ready();
  else if (what === 'accept') connection.accept(qp(0x11), NOTHING);
  else if (what === 'reject') connection.reject(NOTHING);
  else if (what === 'disconnect') connection.disconnect();
  else if (what === 'packetSeen') connection.communicationEstablished();
  else if (what === 'abandon') connection.abandon();
}

/** Final events: a connection has at most one. */
const finals = /^(rejected|timedOut|disconnected)/;

test('after loss, duplicates and reordering, both sides are in matching states, and nothing is left', () => {
  fc.assert(
    fc.property(story, ({ fates, confirm, accept, acts }) => {
      const pair = new Pair(OPTIONS);
      let next = 0;
      // After the generated fates, every message arrives. Retries succeed in the end, or have been exhausted before.
      let lostRejects = 0;
      /** Number of consecutive lost copies of each connection's DREQ. */
      const lostDreqs = new Map<number, number>();
      pair.network.route = ({ message }) => {
        const delays = fates[next++] ?? [1];
        const lost = delays.length === 0;
        if (lost && message.name === 'REJ') lostRejects += 1;
        if (message.name === 'DREQ') {
          const id = message.body.localCommId;
          lostDreqs.set(id, lost ? (lostDreqs.get(id) ?? 0) + 1 : Number.NEGATIVE_INFINITY);
        }
        return delays;
      };
      pair.onTaken = (side) => {
        if (accept) side.connection.accept(qp(0x11), NOTHING);
      };
      const actives = [pair.connect({}, confirm)];
      for (const { at, who, what } of acts) {
        pair.network.clock.schedule(at, () => {
          if (what === 'connect') {
            if (actives.at(-1)?.state === 'idle') actives.push(pair.connect({}, confirm));
            return;
          }
          const side = who === 'active' ? actives.at(-1) : pair.taken.at(-1);
          if (what !== 'packetSeen' || who === 'active' || wasReplied(side, actives)) perform(side, what);
        });
      }
      // An undecided owner must decide in the end, as when a handle is closed.
      pair.network.clock.schedule(20_000, () => {
        for (const side of [...actives, ...pair.taken]) {
          if (side.state === 'repReceived' || side.state === 'reqReceived') side.connection.abandon();
        }
      });
      pair.network.clock.runToEnd(BOUND_MS);

      const sides = [...actives, ...pair.taken];
      for (const side of sides) {
        assert.ok(side.state === 'idle' || side.state === 'established', side.state);
        assert.ok(side.events.filter((event) => finals.test(event)).length <= 1, side.events.join());
        const answers = side.events.filter((event) => event.startsWith('disconnectCompleted')).length;
        assert.ok(answers <= acts.filter(({ what }) => what === 'disconnect').length, side.events.join());
        assert.ok(side.events.filter((event) => event === 'established' || event === 'replied').length <= 1);
      }
      for (const host of pair.network.hosts) {
        assert.is(host.timers, 0);
        const mine = (host === pair.client ? actives : pair.taken).filter(
          (side) => side.state === 'established',
        );
        assert.is(host.ids.size, mine.length);
        assert.not.ok(Object.keys(host.cm.counters()).some((name) => name.startsWith('impossible')));
      }
      // A side can be left alone only if its peer's last message was lost: a REJ, which is not repeated without a
      // request, or all copies of a DREQ. Its HCA detects the dead QP. Then the owner gives up, which ends everything.
      const unheard = [...lostDreqs.values()].filter((lost) => lost === OPTIONS.maxRetries + 1).length;
      const alone = sides.filter((side) => side.state === 'established' && !partnerOf(side, sides));
      assert.ok(alone.length <= lostRejects + unheard, 'alone without a reason');
      for (const side of sides) if (side.state === 'established') side.connection.abandon();
      pair.network.clock.runToEnd(BOUND_MS);
      assert.equal(pair.leftovers(), []);
    }),
    { numRuns: perTier(400, 1500) },
  );
});

/** Whether the REP has reached the active side: only then can the passive side have seen a packet of its queue pair. */
function wasReplied(passive: Side | undefined, actives: Side[]): boolean {
  return actives.some(
    (side) => side.reply !== undefined && side.connection.localCommId === passive?.connection.remoteCommId,
  );
}

function partnerOf(side: Side, sides: Side[]): Side | undefined {
  return sides.find(
    (other) =>
      other !== side &&
      other.state === 'established' &&
      other.connection.localCommId === side.connection.remoteCommId &&
      other.connection.remoteCommId === side.connection.localCommId,
  );
}

test('if a network loses fewer messages than there are retries, connecting always succeeds', () => {
  const names: CmMessageName[] = ['REQ', 'REP', 'RTU'];
  fc.assert(
    fc.property(
      fc.record({ REQ: fc.nat(2), REP: fc.nat(1), RTU: fc.nat(1) }),
      fc.nat(2),
      fc.nat(2),
      (losses, lostDreqs, lostDreps) => {
        const pair = new Pair(OPTIONS);
        for (const name of names) {
          pair.network.lose(name === 'REP' ? 'server' : 'client', name, losses[name as keyof typeof losses]);
        }
        pair.network.lose('client', 'DREQ', lostDreqs);
        pair.network.lose('server', 'DREP', lostDreps);
        const active = pair.connect();
        pair.network.clock.advance(5000);
        assert.equal(
          [active.state, pair.taken.length, pair.taken[0]?.state],
          ['established', 1, 'established'],
        );
        active.connection.disconnect();
        pair.network.clock.runToEnd(BOUND_MS);
        assert.equal(active.events, ['replied', 'disconnectCompleted true']);
        assert.equal(pair.taken[0]?.events, ['established', 'disconnected']);
        assert.equal(pair.leftovers(), []);
      },
    ),
    { numRuns: 200 },
  );
});

// ── Untrusted bytes ──────────────────────────────────────────────────────────────────────────────────

/** Brings a pair into a state. Returns the MADs that were sent until then. */
const situations: Record<string, (pair: Pair) => void> = {
  idle: () => {},
  reqSent: (pair) => {
    pair.network.lose('client', 'REQ', 100);
    pair.connect();
  },
  reqReceived: (pair) => {
    pair.onTaken = undefined;
    pair.connect();
    pair.network.clock.advance(5);
  },
  waiting: (pair) => {
    pair.taking = false;
    pair.connect();
    pair.network.clock.advance(5);
  },
  repSent: (pair) => {
    pair.network.lose('server', 'REP', 100);
    pair.connect();
    pair.network.clock.advance(5);
  },
  repReceived: (pair) => {
    pair.connect({}, false);
    pair.network.clock.advance(5);
  },
  established: (pair) => {
    pair.connect();
    pair.network.clock.advance(10);
  },
  dreqSent: (pair) => {
    const { active } = pair.established();
    pair.network.lose('client', 'DREQ', 100);
    active.connection.disconnect();
  },
  timewait: (pair) => {
    const { active } = pair.established();
    active.connection.disconnect();
    pair.network.clock.advance(10);
  },
};

const kinds = Object.keys(CmAttribute) as CmMessageName[];
const mutation = fc.record({
  /** Index of the base message among those seen so far; none: random bytes. */
  base: fc.option(fc.nat(10), { nil: undefined }),
  kind: fc.option(fc.constantFrom(...kinds), { nil: undefined }),
  flips: fc.array(fc.record({ at: fc.nat(MAD_SIZE - 1), bit: fc.nat(7) }), { maxLength: 6 }),
  noise: fc.uint8Array({ minLength: MAD_SIZE, maxLength: MAD_SIZE }),
  towards: fc.constantFrom('client', 'server'),
  from: fc.constantFrom('peer', 'stranger'),
  length: fc.constantFrom(MAD_SIZE, MAD_SIZE, MAD_SIZE, MAD_SIZE, 0, 23, 255, 257),
});

for (const [name, reach] of Object.entries(situations)) {
  test(`mutated and random MADs in ${name} neither throw nor leave state`, () => {
    fc.assert(
      fc.property(fc.array(mutation, { minLength: 1, maxLength: 12 }), (mutations) => {
        const pair = new Pair({ ...OPTIONS, responseTimeoutCode: 12 });
        reach(pair);
        const seen = pair.network.sent.map(({ mad }) => mad);
        for (const { base, kind, flips, noise, towards, from, length } of mutations) {
          const mad = Uint8Array.from((base === undefined ? undefined : seen[base % seen.length]) ?? noise);
          mad.set([1, 7, 2, 3]);
          if (kind) mad.set([0, CmAttribute[kind]], 16);
          for (const { at, bit } of flips) mad[at] = (mad[at] ?? 0) ^ (1 << bit);
          const [to, peer] = towards === 'client' ? [pair.client, pair.server] : [pair.server, pair.client];
          const bytes = length <= MAD_SIZE ? mad.subarray(0, length) : new Uint8Array(length);
          to.cm.receive(from === 'peer' ? peer.gid : ipv4(66), to.gid, 0, bytes);
        }
        // At most one id for each message that may have been a request.
        assert.ok(
          pair.server.ids.size <= mutations.length + 1 && pair.client.ids.size <= mutations.length + 1,
        );
        for (const host of pair.network.hosts) {
          const wrong = Object.keys(host.cm.counters()).filter((counter) => counter.startsWith('impossible'));
          assert.equal(wrong, []);
        }
        pair.client.cm.close();
        pair.server.cm.close();
        pair.network.clock.runToEnd(BOUND_MS);
        assert.equal(pair.leftovers(), []);
      }),
      { numRuns: 150 },
    );
  });
}

test('the number of counters is limited for any input', () => {
  const pair = new Pair();
  for (let seed = 0; seed < 20_000; seed++) {
    const mad = new Uint8Array(MAD_SIZE);
    mad.set([1, 7, 2, 3]);
    mad[17] = 0x10 + (seed % 11);
    for (let at = 24; at < 36; at++) mad[at] = (seed * 31 * at) & 0xff;
    pair.server.cm.receive(pair.client.gid, pair.server.gid, 0, mad);
  }
  assert.ok(Object.keys(pair.server.cm.counters()).length < 60);
  assert.equal([pair.server.timers, pair.server.ids.size], [0, 0]);
});

/** All events of the interface. New ones must be added to the tests above. */
const reported: Record<keyof CmEvents, true> = {
  replied: true,
  established: true,
  rejected: true,
  timedOut: true,
  disconnected: true,
  disconnectCompleted: true,
};

test('owners may omit event callbacks', () => {
  assert.is(Object.keys(reported).length, 6);
  const pair = new Pair(OPTIONS);
  pair.onTaken = undefined;
  const active = pair.connect();
  active.connection.events = {};
  pair.network.clock.advance(5);
  assert.is(pair.taken[0]?.request?.serviceId, SERVICE);
  if (pair.taken[0]) pair.taken[0].connection.events = {};
  pair.taken[0]?.connection.accept(qp(0x11), NOTHING);
  pair.network.clock.advance(5);
  active.connection.ready();
  pair.taken[0]?.connection.disconnect();
  pair.network.clock.runToEnd(BOUND_MS);
  active.connection.abandon();
  assert.equal(pair.end(), []);
});

test.run();
