/**
 * No matter what the network loses, duplicates or delays, and which bytes arrive, every lookup ends once, with its peer's reply if any, and
 * no state is left.
 */
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { CmAttribute, emitMad, MAD_SIZE } from '../../kernel-bridge/kernel/cm/mad-layouts.js';
import { SIDR_ANSWER_LIMIT } from '../../kernel-bridge/kernel/cm/sidr-manager.js';
import { ipv4, type PendingLookup, SidrPair, UDP_SERVICE } from '../helpers/cm-network.js';

const OPTIONS = { responseTimeoutCode: 14, maxRetries: 4 };
const BOUND_MS = 60_000;

const fate = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 0, max: 200 }).map((delay) => [delay]) },
  { weight: 3, arbitrary: fc.constant([] as number[]) },
  { weight: 2, arbitrary: fc.tuple(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 0, max: 300 })) },
);
const lookupPlan = fc.record({
  at: fc.nat(300),
  decides: fc.constantFrom('accept', 'reject', 'abandon', 'never'),
  after: fc.nat(500),
  givesUpAfter: fc.option(fc.nat(400), { nil: undefined }),
});

test('with loss, duplicates and delay, every lookup ends once and correctly, and no state is left', () => {
  fc.assert(
    fc.property(
      fc.array(fate, { maxLength: 40 }),
      fc.array(lookupPlan, { minLength: 1, maxLength: 5 }),
      (fates, plans) => {
        const pair = new SidrPair(OPTIONS);
        const { clock } = pair.network;
        let next = 0;
        pair.network.route = () => fates[next++] ?? [1];
        pair.onTaken = ({ inquiry, request }) => {
          const plan = plans[request.privateData[0]!]!;
          clock.schedule(plan.after, () => {
            if (plan.decides === 'accept')
              inquiry.accept(100 + request.privateData[0]!, 7, new Uint8Array(0));
            else if (plan.decides === 'reject') inquiry.reject(new Uint8Array(0));
            else if (plan.decides === 'abandon') inquiry.abandon();
          });
        };
        const lookups = plans.map(({ at, givesUpAfter }, index) => {
          const made: { pending?: PendingLookup } = {};
          clock.schedule(at, () => {
            const one = pair.lookUp({ privateData: Uint8Array.of(index) });
            made.pending = one;
            if (givesUpAfter !== undefined) clock.schedule(givesUpAfter, () => one.lookup.abandon());
          });
          return made;
        });
        clock.runToEnd(BOUND_MS);
        for (const [index, { pending: one }] of lookups.entries()) {
          const { decides, givesUpAfter } = plans[index]!;
          assert.ok(one!.events.length === 1 || (one!.events.length === 0 && givesUpAfter !== undefined));
          const [event] = one!.events;
          if (event === 'answered 0') {
            assert.is(decides, 'accept');
            assert.is(one!.reply?.qpn, 100 + index);
          } else if (event !== undefined && event !== 'timedOut') {
            assert.is(event, 'answered 2');
            assert.ok(decides === 'reject' || decides === 'abandon');
          }
        }
        for (const host of pair.network.hosts) {
          assert.not.ok(Object.keys(host.cm.counters()).some((name) => name.startsWith('impossible')));
        }
        assert.equal(pair.leftovers(), []);
      },
    ),
    { numRuns: 1000 },
  );
});

const mutation = fc.record({
  base: fc.option(fc.nat(4), { nil: undefined }),
  kind: fc.option(fc.constantFrom(CmAttribute.SIDR_REQ, CmAttribute.SIDR_REP), { nil: undefined }),
  flips: fc.array(fc.record({ at: fc.nat(MAD_SIZE - 1), bit: fc.nat(7) }), { maxLength: 6 }),
  noise: fc.uint8Array({ minLength: MAD_SIZE, maxLength: MAD_SIZE }),
  towards: fc.constantFrom('client', 'server'),
  from: fc.constantFrom('peer', 'stranger'),
});

for (const situation of ['sent', 'waiting', 'taken', 'answered'] as const) {
  test(`mutated and random SIDR messages (${situation}) neither throw nor leave state`, () => {
    fc.assert(
      fc.property(fc.array(mutation, { minLength: 1, maxLength: 12 }), (mutations) => {
        const pair = new SidrPair(OPTIONS);
        if (situation === 'sent') pair.network.lose('client', 'SIDR_REQ', 100);
        if (situation === 'waiting') pair.taking = false;
        if (situation === 'taken') pair.onTaken = undefined;
        pair.lookUp();
        pair.network.clock.advance(5);
        const seen = pair.network.sent.map(({ mad }) => mad);
        for (const { base, kind, flips, noise, towards, from } of mutations) {
          const mad = Uint8Array.from((base === undefined ? undefined : seen[base % seen.length]) ?? noise);
          mad.set([1, 7, 2, 3]);
          if (kind) mad.set([0, kind], 16);
          for (const { at, bit } of flips) mad[at] = (mad[at] ?? 0) ^ (1 << bit);
          const [to, peer] = towards === 'client' ? [pair.client, pair.server] : [pair.server, pair.client];
          to.cm.receive(from === 'peer' ? peer.gid : ipv4(66), to.gid, 0, mad);
        }
        assert.is(pair.client.ids.size + pair.server.ids.size <= 1, true);
        for (const host of pair.network.hosts) {
          assert.not.ok(Object.keys(host.cm.counters()).some((name) => name.startsWith('impossible')));
        }
        pair.client.cm.close();
        pair.server.cm.close();
        pair.network.clock.runToEnd(BOUND_MS);
        assert.equal(pair.leftovers(), []);
      }),
      { numRuns: 200 },
    );
  });
}

test('a flood of lookups keeps a limited number of replies and timers', () => {
  const pair = new SidrPair();
  const honest = pair.lookUp();
  pair.network.clock.advance(5);
  assert.equal(honest.events, ['answered 0']);
  const { message } = pair.network.last('client', 'SIDR_REQ');
  if (message.name !== 'SIDR_REQ') throw new Error(message.name);
  const { privateData } = message.body;
  pair.network.route = () => [];
  for (let requestId = 1; requestId <= SIDR_ANSWER_LIMIT + 500; requestId++) {
    const mad = emitMad('SIDR_REQ', 1n, { requestId, pkey: 0xffff, serviceId: UDP_SERVICE, privateData });
    pair.server.cm.receive(pair.client.gid, pair.server.gid, 0, mad);
  }
  assert.equal(
    [pair.server.cm.counters().sidrAnswered, pair.server.timers],
    [SIDR_ANSWER_LIMIT, SIDR_ANSWER_LIMIT],
  );
});

test.run();
