/** Whether the poller of `networkdirect/net` polls before it sleeps. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Expectation } from '../../nd/net/expectation.js';

/** Waits that pass without polling until the next one polls. */
function passes(expectation: Expectation): number {
  let count = 0;
  while (!expectation.worthIt()) count += 1;
  return count;
}

test('it polls first, and as long as results come', () => {
  const expectation = new Expectation();
  for (let n = 0; n < 10; n += 1) {
    assert.ok(expectation.worthIt());
    expectation.met(0.01);
  }
});

test('after polling in vain it polls ever less often, and never gives it up', () => {
  const expectation = new Expectation();
  const seen = [0, 1, 2, 3, 4, 5, 6, 7, 8].map(() => {
    const count = passes(expectation);
    expectation.inVain();
    return count;
  });
  assert.equal(seen, [0, 1, 2, 4, 8, 16, 32, 64, 64]);
  assert.is(passes(expectation), 64);
  expectation.met(0.01);
  expectation.inVain();
  assert.is(passes(expectation), 1);
});

test('a result that came while another program had the processor was not brought by polling', () => {
  const expectation = new Expectation();
  expectation.met(1);
  assert.not(expectation.worthIt());
});

test.run();
