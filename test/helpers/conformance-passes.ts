import { type CaseResult, cases, type Spi, selectCases } from '../../nd/conformance/index.js';
import { conformanceAt, type Place } from './conformance-command.js';

/** Runs all cases of a version. None may fail or be skipped. */
export function passesAll(spi: Spi, place: Place, ...args: string[]): Promise<void> {
  return passesAllBut([], spi, place, ...args);
}

/** Runs all cases of a version. None may fail, and exactly those in `skipped` must be skipped. */
export async function passesAllBut(
  skipped: readonly string[],
  spi: Spi,
  place: Place,
  ...args: string[]
): Promise<void> {
  const { code, lines, errors } = await conformanceAt(place, '--json', '--spi', spi, ...args);
  const results = lines.slice(0, -1).map((line) => JSON.parse(line) as CaseResult);
  const failures = results.filter(
    ({ outcome, name }) => outcome !== (skipped.includes(name) ? 'skipped' : 'passed'),
  );
  const expected = selectCases(cases, spi).length;
  if (failures.length > 0 || results.length !== expected || code !== 0) {
    throw new Error(
      [
        `${results.length} of ${expected} cases ran, exit code ${code}.`,
        ...failures.map((failure) => JSON.stringify(failure)),
        errors,
      ].join('\n'),
    );
  }
}
