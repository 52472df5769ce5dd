/** What an attack is, and what it answers. */
import type { Need } from '../helpers/needs.js';
import type { Build } from './process.js';

export interface Run {
  readonly build: Build;
  readonly seed: number;
  /** How many packets, IOCTLs or kills. */
  readonly count: number;
  /** Told now and then, how many there have been. */
  readonly progress: (done: number) => void;
}

export interface Outcome {
  /** How many there were. */
  readonly done: number;
  /** What must not happen and did, a sentence each. */
  readonly findings: readonly string[];
  /** Figures that show that the attack has met what it was aimed at. */
  readonly figures: Readonly<Record<string, number>>;
}

export interface Attack {
  readonly name: string;
  /** Who attacks, and what. */
  readonly what: string;
  readonly unit: 'packets' | 'MADs' | 'IOCTLs' | 'kills' | 'frames' | 'answers';
  /** Of the long run, and of the short one. */
  readonly full: number;
  readonly short: number;
  /** Whether the short run has it with one seed only, that which it prints: `npm test` has it with a fixed one. */
  readonly seldom?: boolean;
  /** What it needs of the machine. */
  readonly needs?: readonly Need[];
  run(run: Run): Promise<Outcome>;
}
