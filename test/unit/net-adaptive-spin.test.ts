/** Whether the poller of `networkdirect/net` polls before it sleeps. */
import { readFileSync } from 'node:fs';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { AdaptiveSpin } from '../../nd/net/adaptive-spin.js';

/** Waits that pass without polling until the next one polls. */
function passes(spin: AdaptiveSpin): number {
  let count = 0;
  while (!spin.pays()) count += 1;
  return count;
}

test('it polls first, and as long as results come', () => {
  const spin = new AdaptiveSpin();
  for (let n = 0; n < 10; n += 1) {
    assert.ok(spin.pays());
    spin.found(0.01);
  }
});

test('after polling in vain it polls ever less often, and never gives it up', () => {
  const spin = new AdaptiveSpin();
  const seen = [0, 1, 2, 3, 4, 5, 6, 7, 8].map(() => {
    const count = passes(spin);
    spin.failed();
    return count;
  });
  assert.equal(seen, [0, 1, 2, 4, 8, 16, 32, 64, 64]);
  assert.is(passes(spin), 64);
  spin.found(0.01);
  spin.failed();
  assert.is(passes(spin), 1);
});

test('a result that came while another program had the processor was not brought by polling', () => {
  const spin = new AdaptiveSpin();
  spin.found(1);
  assert.not(spin.pays());
});

test('its numbers are those of the engine', () => {
  const constants = readFileSync(
    new URL('../../../kernel-bridge/hca/engine/progress/constants.h', import.meta.url),
    'utf8',
  );
  const number = (name: string): number =>
    Number(new RegExp(`\\b${name} = ([\\d']+);`).exec(constants)?.[1]?.replaceAll("'", ''));
  const most = number('kMostSkips');
  const ms = number('kPreemptionNs') / 1e6;
  assert.ok(most > 0 && ms > 0);
  const spin = new AdaptiveSpin();
  for (let n = 0; n < most; n += 1) spin.failed();
  assert.is(passes(spin), most);
  spin.found(ms);
  assert.ok(spin.pays());
  spin.found(ms * 1.01);
  assert.not.ok(spin.pays());
});

test.run();
