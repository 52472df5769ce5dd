/**
 * Broken providers, and whether the conformance suite detects them.
 *
 * @module conformance/mutants
 */

import Table from 'cli-table3';
import {
  type CaseResult,
  cases,
  loadSubject,
  localParty,
  makeHalf,
  runCases,
  selectCases,
} from '../index.js';
import { connectionMutants } from './connections-v1.js';
import type { Mutant } from './mutant.js';
import { queueMutants } from './queues-v1.js';
import { requestMutants } from './requests-v1.js';
import { v2Mutants } from './rules-v2.js';

export type { Mutant };

/** All broken providers. */
export const mutants: readonly Mutant[] = [
  ...requestMutants,
  ...queueMutants,
  ...connectionMutants,
  ...v2Mutants,
];

/** The result for a broken provider. */
export interface MutantResult {
  readonly mutant: string;
  readonly breaks: string;
  readonly caughtBy: readonly string[];
  /** The finding of the first of them. */
  readonly found: string;
  readonly ran: number;
  readonly ms: number;
}

/** Options for running broken providers. */
export interface MutantOptions {
  readonly address: string;
  /** Time limit of a step in milliseconds; a case may take three times as long. */
  readonly stepTimeoutMs: number;
  /** Runs every case against each, not only those that should fail. */
  readonly all?: boolean;
}

/** Runs cases against a broken provider, which both halves use; without a mutant, against the unbroken provider. */
export async function runMutant(
  mutant: Pick<Mutant, 'spi' | 'cases' | 'apply'>,
  { address, stepTimeoutMs, all }: MutantOptions,
): Promise<CaseResult[]> {
  const subject = await loadSubject(mutant.spi);
  const open = (): unknown => {
    const provider = subject.open();
    mutant.apply(provider);
    return provider;
  };
  const provider = open();
  const selected = selectCases(cases, mutant.spi, all === true ? undefined : mutant.cases);
  return await runCases(selected, {
    local: { provider, half: makeHalf(mutant.spi, provider, address, stepTimeoutMs) },
    far: localParty(makeHalf(mutant.spi, open(), address, stepTimeoutMs)),
    stepTimeoutMs,
  });
}

/** Returns the cases that fail for a broken provider. */
export async function judge(mutant: Mutant, options: MutantOptions): Promise<MutantResult> {
  const begun = performance.now();
  const results = await runMutant(mutant, options);
  const failures = results.filter(({ outcome }) => outcome === 'failed');
  const [first] = failures;
  return {
    mutant: mutant.name,
    breaks: mutant.breaks,
    caughtBy: failures.map(({ name }) => name),
    found: first === undefined ? '' : `${first.what}: expected ${first.expected}, got ${first.got}`,
    ran: results.length,
    ms: Math.round(performance.now() - begun),
  };
}

/** Returns a table of broken providers and the cases that fail for them. */
export function formatMutants(results: readonly MutantResult[]): string {
  const table = new Table({
    head: ['Mutant', 'what it breaks', 'detected by', 'of'],
    colAligns: ['left', 'left', 'left', 'right'],
    style: { head: [], border: [], compact: true },
  });
  for (const { mutant, breaks, caughtBy, ran } of results) {
    const more = caughtBy.length > 2 ? [`and ${caughtBy.length - 2} more`] : [];
    table.push([mutant, breaks, [...caughtBy.slice(0, 2), ...more].join('\n') || 'NOBODY', ran]);
  }
  const noticed = results.filter(({ caughtBy }) => caughtBy.length > 0).length;
  return `${table.toString()}\n${noticed} of ${results.length} broken providers were detected.`;
}
