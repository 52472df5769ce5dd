/**
 * Tests of the second tier. They are longer, and the first tier covers their subject in part. `npm test` omits them, `npm run
 * test:all` runs both tiers (scripts/run-tests.mjs).
 */
import type { Test } from 'uvu';

const firstAlone = process.env.ND_TEST_TIER === 'first';

/** Adds a test to the second tier of its suite. */
export function long<T>(suite: Test<T>, name: string, run: Parameters<Test<T>>[1]): void {
  if (firstAlone) console.log(`LATER ${name.replaceAll('\n', ' ')}`);
  else suite(name, run);
}

/**
 * The function that adds a test to the first tier of a suite if `isFirst`, otherwise to the second. For tests generated from a list of
 * cases.
 */
export function firstIf<T>(
  isFirst: boolean,
  suite: Test<T>,
): (name: string, run: Parameters<Test<T>>[1]) => void {
  return isFirst ? suite : (name, run) => long(suite, name, run);
}

/** Parameter of a random test, such as runs or milliseconds: `few` if only the first tier runs, otherwise `many`. */
export const perTier = (few: number, many: number): number => (firstAlone ? few : many);
