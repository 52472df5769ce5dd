/** The interface of an attack, and its result. */
import type { Need } from '../helpers/needs.js';
import type { Build } from './process.js';

export interface Run {
  readonly build: Build;
  readonly seed: number;
  /** Number of packets, IOCTLs, accesses or kills. */
  readonly count: number;
  /** Called occasionally with the number so far. */
  readonly progress: (done: number) => void;
}

export interface Outcome {
  /** The number at the end. */
  readonly done: number;
  /** Violations, one sentence each. */
  readonly findings: readonly string[];
  /** Figures showing that the attack has reached its target. */
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
  /** Whether the short run uses only the seed that it prints: `npm run test:all` runs it with a fixed one. */
  readonly seldom?: boolean;
  /** Requirements for the machine. */
  readonly needs?: readonly Need[];
  run(run: Run): Promise<Outcome>;
}
