/** Shrinks a failing run: first its parameters, then its faults. Only the necessary faults are kept. */
import type { Plan, Ranges } from './scenario.js';

const FAULT_VALUES = 3;
/** Smallest step, relative to the range. */
const CLOSE = 1e-4;

/** A failing run. `faults`: those that occur. Default: those of the seed. */
export interface Failing {
  readonly plan: Plan;
  readonly faults: Float64Array | undefined;
  readonly message: string;
}

/** Executes a run. Returns the failure and the faults that occurred until then, or undefined if it passes. */
export type Attempt = (
  plan: Plan,
  faults: Float64Array | undefined,
) => { message: string; faults: Float64Array } | undefined;

/** The smallest failing run found before `expired()`. */
export function shrink(ranges: Ranges, first: Failing, attempt: Attempt, expired: () => boolean): Failing {
  return shrinkFaults(shrinkPlan(ranges, first, attempt, expired), attempt, expired);
}

/** Moves each parameter to its simplest value or else halfway to it, as long as the run still fails. */
function shrinkPlan(ranges: Ranges, first: Failing, attempt: Attempt, expired: () => boolean): Failing {
  let best = first;
  for (let smaller = true; smaller && !expired(); ) {
    smaller = false;
    for (const [name, { simplest, most, whole = false }] of Object.entries(ranges)) {
      const now = best.plan[name] ?? simplest;
      const half = simplest + (now - simplest) / 2;
      for (const value of [simplest, whole ? Math.floor(half) : half]) {
        const close = whole ? value === now : Math.abs(now - value) <= Math.abs(most - simplest) * CLOSE;
        if (close || expired()) continue;
        const plan = { ...best.plan, [name]: value };
        const failed = attempt(plan, undefined);
        if (!failed) continue;
        best = { plan, faults: undefined, message: failed.message };
        smaller = true;
        break;
      }
    }
  }
  return best;
}

/** Removes half of the faults, then quarters, and so on. */
function shrinkFaults(first: Failing, attempt: Attempt, expired: () => boolean): Failing {
  const seen = attempt(first.plan, undefined);
  const written = seen && attempt(first.plan, seen.faults);
  if (!seen || !written) return first;
  let best: Failing = { ...first, faults: seen.faults, message: written.message };
  let left = Array.from(
    { length: seen.faults.length / FAULT_VALUES },
    (_, i) => [...seen.faults.slice(i * FAULT_VALUES, (i + 1) * FAULT_VALUES)] as const,
  );
  for (let size = Math.ceil(left.length / 2); size >= 1 && !expired(); ) {
    let removed = false;
    for (let at = 0; at < left.length && !expired(); ) {
      const rest = [...left.slice(0, at), ...left.slice(at + size)];
      const faults = Float64Array.from(rest.flat());
      const failed = attempt(best.plan, faults);
      if (failed) {
        best = { plan: best.plan, faults, message: failed.message };
        left = rest;
        removed = true;
      } else at += size;
    }
    if (size === 1 && !removed) break;
    size = size === 1 ? 1 : Math.ceil(size / 2);
  }
  return best;
}
