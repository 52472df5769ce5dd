import { type CaseResult, cases, type Spi, selectCases } from '../../nd/conformance/index.js';
import { conformanceAt, type Place } from './conformance-command.js';

/** Runs all cases of a version. None may fail or be skipped. */
export async function passesAll(spi: Spi, place: Place, ...args: string[]): Promise<void> {
  const { code, lines, errors } = await conformanceAt(place, '--json', '--spi', spi, ...args);
  const results = lines.slice(0, -1).map((line) => JSON.parse(line) as CaseResult);
  const failures = results.filter(({ outcome }) => outcome !== 'passed');
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
