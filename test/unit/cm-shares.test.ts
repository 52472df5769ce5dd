/** Shares of sources, compared with a simple list as a model. */
import fc from 'fast-check';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { BY_WIRE } from '../../kernel-bridge/hca/soft-hca-binding.js';
import { Shares, sourceOf } from '../../kernel-bridge/kernel/cm/shares.js';
import { ipv4 } from '../helpers/cm-network.js';

test('processes on this host are distinguished by their slots, all others by address', () => {
  assert.is.not(sourceOf(ipv4(2), 5), sourceOf(ipv4(2), 6));
  assert.is.not(sourceOf(ipv4(2), 5), sourceOf(ipv4(2), BY_WIRE));
  assert.is.not(sourceOf(ipv4(2), BY_WIRE), sourceOf(ipv4(3), BY_WIRE));
  assert.is(sourceOf(ipv4(2), 5), sourceOf(ipv4(3), 5), 'a process has several addresses');
});

const step = fc.record({
  what: fc.constantFrom('add', 'add', 'add', 'delete', 'turn', 'clear'),
  source: fc.constantFrom('a', 'b', 'c', 'd'),
  which: fc.nat(5),
});

test('counts, order, round-robin and the largest source match those of the list', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const shares = new Shares<number>();
      let list: { source: string; thing: number }[] = [];
      let turns: string[] = [];
      let next = 0;
      for (const { what, source, which } of steps) {
        const own = list.filter((one) => one.source === source);
        if (what === 'add') {
          if (own.length === 0) turns.push(source);
          list.push({ source, thing: next });
          shares.add(source, next);
          shares.add(source, next);
          next += 1;
        } else if (what === 'delete') {
          const thing = own[which % Math.max(1, own.length)]?.thing ?? -1;
          assert.is(shares.delete(source, thing), thing >= 0);
          list = list.filter((one) => one.thing !== thing);
          if (own.length === 1) turns = turns.filter((one) => one !== source);
        } else if (what === 'turn') {
          if (own.length > 0) turns = [...turns.filter((one) => one !== source), source];
          shares.hadTurn(source);
        } else if (which === 0) {
          shares.clear();
          list = [];
          turns = [];
        }
        assert.is(shares.size, list.length);
        assert.equal([...shares.sources], turns);
        const counts = ['a', 'b', 'c', 'd'].map((one) => list.filter((each) => each.source === one).length);
        const most = Math.max(...counts);
        assert.is(shares.largest === undefined ? 0 : shares.count(shares.largest), most);
        for (const [index, one] of ['a', 'b', 'c', 'd'].entries()) {
          const things = list.filter((each) => each.source === one).map(({ thing }) => thing);
          assert.is(shares.count(one), counts[index]);
          assert.equal([...shares.of(one)], things);
          assert.is(shares.youngest(one), things.at(-1));
        }
      }
    }),
    { numRuns: 500 },
  );
});

test.run();
