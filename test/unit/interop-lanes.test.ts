// The order of an interop run: every case runs once, and waiting cases run at the same time as working ones.
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { InteropCase } from '../interop/case.js';
import { lanesOf } from '../interop/lanes.js';

const one = (operation: string, waits?: number): InteropCase => ({
  peer: 'peer',
  operation,
  role: 'both',
  family: 4,
  ...(waits === undefined ? {} : { waits }),
  run: async () => {},
});
const names = (cases: readonly InteropCase[]) =>
  lanesOf(cases).map((lane) => lane.map(({ one: { operation }, index }) => `${index} ${operation}`));

const test = suite('interop lanes');

test('waiting cases run beside the others, the longest first', () => {
  const cases = [one('short', 10), one('a'), one('long', 90), one('b'), one('middle', 20)];
  assert.equal(names(cases), [
    ['1 a', '3 b'],
    ['2 long', '4 middle', '0 short'],
  ]);
});

test('a second guest is not booted for a minute of waiting', () => {
  assert.equal(names([one('a'), one('w', 59), one('b')]), [['0 a', '1 w', '2 b']]);
  assert.equal(names([one('a'), one('w', 59), one('v', 1)]), [['0 a'], ['1 w', '2 v']]);
});

test('a run has one lane if all cases wait or if it has no cases', () => {
  assert.equal(names([one('v', 70), one('w', 90)]), [['0 v', '1 w']]);
  assert.equal(names([]), [[]]);
});

test.run();
