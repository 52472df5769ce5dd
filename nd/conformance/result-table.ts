/** Reports in text form; JSON reports need none of this. */
import Table from 'cli-table3';
import type { CaseResult } from './runner.js';

const style = { head: [], border: [], compact: true };

/** Numbers of cases by result. */
export interface Totals {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export function totalsOf(results: readonly CaseResult[]): Totals {
  const count = (outcome: CaseResult['outcome']): number =>
    results.filter((result) => result.outcome === outcome).length;
  return { passed: count('passed'), failed: count('failed'), skipped: count('skipped') };
}

/** Returns a table of the groups of cases, and each failure with its clause, the expected and the actual result. */
export function formatResults(results: readonly CaseResult[], seconds: number): string {
  const groups = new Map<string, CaseResult[]>();
  for (const result of results) {
    const group = result.name.split('.')[0]!;
    groups.set(group, [...(groups.get(group) ?? []), result]);
  }
  const table = new Table({
    head: ['Cases', 'passed', 'failed', 'skipped', 'seconds'],
    colAligns: ['left', 'right', 'right', 'right', 'right'],
    style,
  });
  for (const [group, all] of groups) {
    const { passed, failed, skipped } = totalsOf(all);
    const ms = all.reduce((sum, result) => sum + result.ms, 0);
    table.push([group, passed, failed, skipped, (ms / 1000).toFixed(1)]);
  }
  const { passed, failed, skipped } = totalsOf(results);
  table.push(['all', passed, failed, skipped, seconds.toFixed(1)]);
  const parts = [table.toString()];
  for (const { name, clause, outcome, what, expected, got } of results) {
    if (outcome === 'failed') {
      parts.push(`FAILED   ${name}  (${clause})\n  ${what}\n  expected ${expected}\n  got      ${got}`);
    } else if (outcome === 'skipped') {
      parts.push(`skipped  ${name}: ${what}`);
    }
  }
  return parts.join('\n');
}
