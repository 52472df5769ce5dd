/** The suite detects errors: at least one case fails for every broken provider, and the same cases pass for the unbroken one. */
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { spiVersions } from '../../nd/conformance/index.js';
import { judge, type MutantResult, mutants, runMutant } from '../../nd/conformance/mutants/index.js';
import { conformance } from '../helpers/conformance-command.js';
import { long } from '../helpers/tiers.js';

/** Correct events are immediate, so this time limit applies only to broken providers. */
const STEP_TIMEOUT_MS = 1500;

test('there are enough broken providers, and no two break the same rule', () => {
  assert.ok(mutants.length >= 40);
  for (const key of ['name', 'breaks'] as const) {
    assert.is(new Set(mutants.map((mutant) => mutant[key])).size, mutants.length);
  }
});

test('every sixth broken provider is detected', async () => {
  for (const mutant of mutants.filter((_, n) => n % 6 === 0)) {
    const { caughtBy } = await judge(mutant, { address: '127.0.0.1', stepTimeoutMs: STEP_TIMEOUT_MS });
    assert.ok(caughtBy.length > 0, mutant.name);
  }
});

long(test, 'an unbroken provider passes the cases that should detect the broken ones', async () => {
  for (const spi of spiVersions) {
    const patterns = new Set(mutants.filter((mutant) => mutant.spi === spi).map((mutant) => mutant.cases));
    for (const cases of patterns) {
      const results = await runMutant(
        { spi, cases, apply: () => {} },
        { address: '127.0.0.1', stepTimeoutMs: STEP_TIMEOUT_MS },
      );
      assert.ok(results.length > 0, `${cases} selects cases`);
      assert.equal(
        results.filter(({ outcome }) => outcome !== 'passed'),
        [],
      );
    }
  }
});

long(test, 'every broken provider is detected', async () => {
  const { code, lines, errors } = await conformance(
    '--mutants',
    '--json',
    '--step-timeout',
    `${STEP_TIMEOUT_MS / 1000}`,
  );
  const results = lines.map((line) => JSON.parse(line) as MutantResult);
  assert.equal(
    results.map(({ mutant }) => mutant),
    mutants.map(({ name }) => name),
    errors,
  );
  assert.equal(
    results.filter(({ caughtBy }) => caughtBy.length === 0),
    [],
  );
  assert.is(code, 0, errors);
});

test.run();
