/** The interface of an attack, and its result. */
import type { Need } from '../helpers/needs.js';
import type { Build } from './process.js';

export interface Run {
  readonly build: Build;
  readonly seed: number;
  /** Number of units to run: packets, IOCTLs, accesses or kills. */
  readonly count: number;
  /** Called occasionally with the number of units so far. */
  readonly progress: (done: number) => void;
}

export interface Outcome {
  /** Number of units that were run. */
  readonly done: number;
  /** Violations, one sentence each. */
  readonly findings: readonly string[];
  /** Figures that show that the attack has reached its target. */
  readonly figures: Readonly<Record<string, number>>;
}

export interface Attack {
  readonly name: string;
  /** The attacker and its target. */
  readonly what: string;
  readonly unit: 'packets' | 'MADs' | 'IOCTLs' | 'kills' | 'frames' | 'answers' | 'accesses' | 'stops';
  /** Counts of the long run, and of the short one. */
  readonly full: number;
  readonly short: number;
  /**
   * Whether the short run omits the fixed seed and only uses the one that it prints. `npm run test:all` runs this attack with the fixed
   * seed.
   */
  readonly seldom?: boolean;
  /** Requirements that the machine must meet. */
  readonly needs?: readonly Need[];
  run(run: Run): Promise<Outcome>;
}
