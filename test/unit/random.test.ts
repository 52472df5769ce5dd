import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { randomBits } from '../../kernel-bridge/ioctl/random-bits.js';

test('numbers have the requested number of bits, and each bit varies', () => {
  for (const bits of [1, 8, 18, 24, 31, 32]) {
    let ones = 0;
    let zeros = 0;
    for (let i = 0; i < 200; i++) {
      const number = randomBits(bits);
      assert.ok(Number.isInteger(number) && number >= 0 && number < 2 ** bits, `${number} of ${bits} bits`);
      ones |= number;
      zeros |= ~number;
    }
    assert.is(ones >>> 0, 2 ** bits - 1);
    assert.is((zeros & (2 ** bits - 1)) >>> 0, 2 ** bits - 1);
  }
});

test('no number is returned twice, even over several refills', () => {
  const seen = new Set(Array.from({ length: 1000 }, () => randomBits(32)));
  assert.ok(seen.size > 990);
});

test.run();
