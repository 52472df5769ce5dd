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

/** What adds a test to a suite: to the first tier if `isFirst`, otherwise to the second. For tests that a list of cases makes. */
export function firstIf<T>(
  isFirst: boolean,
  suite: Test<T>,
): (name: string, run: Parameters<Test<T>>[1]) => void {
  return isFirst ? suite : (name, run) => long(suite, name, run);
}

/** Runs of a random test, or its milliseconds or seed: `few` if the first tier runs alone, otherwise `many`. */
export const perTier = (few: number, many: number): number => (firstAlone ? few : many);
