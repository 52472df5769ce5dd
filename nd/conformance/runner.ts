import { setImmediate } from 'node:timers/promises';
import { CaseContext, type LocalHalf, NotApplicable, Violation } from './case-context.js';
import type { Party, Spi } from './half.js';
import { localParty } from './party.js';
import { Strays } from './strays.js';

/** A rule of the SPI, and the test whether a provider follows it. */
export interface Case {
  /** Group and rule, as in `disconnect.flushes-receives`. */
  readonly name: string;
  /** The clause of the rule. */
  readonly clause: string;
  /** Versions of the SPI that have the rule. */
  readonly spi: readonly Spi[];
  readonly body: (t: CaseContext) => Promise<void>;
}

/** The result of a case. */
export interface CaseResult {
  readonly name: string;
  readonly clause: string;
  readonly spi: Spi;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  readonly ms: number;
  /** The property checked, for a failure; the reason, for a skipped case. */
  readonly what?: string;
  readonly expected?: string;
  readonly got?: string;
}

/** Maximum number of steps of a case that wait for something that never happens. */
const CASE_STEPS = 3;

/** Options for running cases. */
export interface RunOptions {
  /** The half in this process. */
  readonly local: LocalHalf;
  /** The other half, here or elsewhere. */
  readonly far: Party;
  /** Time limit of a step in milliseconds; that of a case is {@link CASE_STEPS} times as long. */
  readonly stepTimeoutMs: number;
  /** Stop at the first failure. */
  readonly bail?: boolean;
  readonly onStart?: (one: Case, index: number) => void;
  readonly onResult?: (result: CaseResult) => void;
}

/**
 * Returns cases whose names match a pattern. `*` matches any text, and a pattern without it matches any part of a name.
 */
export function selectCases(cases: readonly Case[], spi: Spi, only?: string): Case[] {
  const matches = only === undefined ? () => true : matcher(only);
  return cases.filter((one) => one.spi.includes(spi) && matches(one.name));
}

function matcher(pattern: string): (name: string) => boolean {
  if (!pattern.includes('*')) return (name) => name.includes(pattern);
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  const expression = new RegExp(`^${parts.join('.*')}$`);
  return (name) => expression.test(name);
}

/** Runs cases one after another, each with its own adapter instances. */
export async function runCases(cases: readonly Case[], options: RunOptions): Promise<CaseResult[]> {
  const results: CaseResult[] = [];
  using strays = new Strays();
  for (const [index, one] of cases.entries()) {
    options.onStart?.(one, index);
    const result = await runCase(one, options, strays);
    results.push(result);
    options.onResult?.(result);
    if (options.bail === true && result.outcome === 'failed') break;
  }
  return results;
}

async function runCase(one: Case, options: RunOptions, strays: Strays): Promise<CaseResult> {
  const { local, far, stepTimeoutMs } = options;
  const limitMs = CASE_STEPS * stepTimeoutMs;
  const near = localParty(local.half);
  const begun = performance.now();
  const { name, clause } = one;
  let spi = one.spi[0]!;
  const report = (rest: Pick<CaseResult, 'outcome' | 'what' | 'expected' | 'got'>): CaseResult => ({
    name,
    clause,
    spi,
    ms: Math.round(performance.now() - begun),
    ...rest,
  });
  let context: CaseContext | undefined;
  let result: CaseResult;
  try {
    await Promise.all([near.begin(), far.begin()]);
    const [nearInfo, farInfo] = await Promise.all([near.info(), far.info()]);
    spi = nearInfo.spi;
    context = new CaseContext(near, far, nearInfo, farInfo, local);
    await limited(strays.during(one.body(context)), limitMs);
    result = report({ outcome: 'passed' });
  } catch (error) {
    result = report(failure(error, context, limitMs));
  }
  try {
    // Node.js reports a rejection when all pending work is done.
    const ended = Promise.all([near.end(), far.end()]).then(() => setImmediate());
    await limited(strays.during(ended), limitMs);
  } catch (error) {
    if (result.outcome !== 'failed') {
      result = report({ ...failure(error, undefined, limitMs), what: 'Releasing everything' });
    }
  }
  return result;
}

class TimeUp extends Error {}

async function limited<T>(work: Promise<T>, limitMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimeUp()), limitMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function failure(
  error: unknown,
  context: CaseContext | undefined,
  limitMs: number,
): Pick<CaseResult, 'outcome' | 'what' | 'expected' | 'got'> {
  if (error instanceof NotApplicable) return { outcome: 'skipped', what: error.message };
  if (error instanceof Violation) {
    const { what, expected, got } = error;
    return { outcome: 'failed', what, expected, got };
  }
  const what = context?.lastStep ?? 'Opening an adapter';
  if (error instanceof TimeUp) {
    return { outcome: 'failed', what, expected: `an end within ${limitMs / 1000} s`, got: 'none' };
  }
  const got = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return { outcome: 'failed', what, expected: 'no error', got };
}
