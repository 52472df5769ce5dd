/** A scenario: its parameters and its run. */
import type { World } from './world.js';

/** The range of a parameter. Failures are shrunk towards the simplest value. */
export interface Range {
  readonly simplest: number;
  readonly most: number;
  /** Share of runs with the simplest value. Default: only by chance. */
  readonly absent?: number;
  readonly whole?: boolean;
  /** Whether the first run uses the other end of the range. */
  readonly full?: boolean;
}

export type Ranges = Readonly<Record<string, Range>>;
export type Plan<R extends Ranges = Ranges> = { readonly [K in keyof R]: number };
/** Figures of a run, for its report. */
export type Report = Readonly<Record<string, number>>;

export interface Scenario {
  readonly name: string;
  readonly what: string;
  readonly ranges: Ranges;
  /** Its weight in the short run. */
  readonly share: number;
  run(world: World, plan: Plan): Report;
}

/** The range of an integer. */
export const whole = (simplest: number, most: number, absent = 0): Range => ({
  simplest,
  most,
  absent,
  whole: true,
});

/** The range of a probability, which is 0 in half of the runs. */
export const rate = (most: number, absent = 0.5): Range => ({ simplest: 0, most, absent });

/** Defines a scenario whose run() has typed parameters. */
export function scenario<R extends Ranges>(made: {
  name: string;
  what: string;
  ranges: R;
  share: number;
  run(world: World, plan: Plan<R>): Report;
}): Scenario {
  return { ...made, run: (world, plan) => made.run(world, plan as Plan<R>) };
}

/**
 * Draws the plan of a seed. Values of large ranges are distributed by magnitude. `first`: ranges marked `full` have their largest value.
 */
export function draw(ranges: Ranges, random: () => number, first: boolean): Plan {
  return Object.fromEntries(
    Object.entries(ranges).map(
      ([name, { simplest, most, absent = 0, whole: isWhole = false, full = false }]) => {
        const skips = random() < absent;
        const at = random();
        if (first && full) return [name, most];
        if (skips || simplest === most) return [name, simplest];
        const low = Math.max(simplest, most / 1000);
        const value =
          low > 0 && most / low > 10 ? low * (most / low) ** at : simplest + (most - simplest) * at;
        return [name, isWhole ? Math.round(value) : value];
      },
    ),
  );
}
