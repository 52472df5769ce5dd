/**
 * Tests of the second tier: longer ones, about what tests of the first tier cover in part. `npm test` leaves them out, `npm run test:all`
 * runs both tiers (scripts/run-tests.mjs).
 */
import type { Test } from 'uvu';

const firstAlone = process.env.ND_TEST_TIER === 'first';

/** Adds a test to the second tier of its suite. */
export function long<T>(suite: Test<T>, name: string, run: Parameters<Test<T>>[1]): void {
  if (firstAlone) console.log(`LATER ${name.replaceAll('\n', ' ')}`);
  else suite(name, run);
}
