/** A program that prints the rate of each of its rounds, such as `round 7: 12.3 MB/s`. */
import type { Program } from './process.js';

/** Number of rounds over which a rate is measured. */
const ROUNDS = 7;
const ROUND_SECONDS = 10;
/** Maximum number of rounds until a rate has recovered. */
const MOST_ROUNDS = 100;

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

export class Rounds {
  constructor(readonly program: Program) {}

  private get rates(): number[] {
    return this.program.lines.flatMap((line) => {
      const [, rate] = /^round .* ([0-9.]+) MB\/s/.exec(line) ?? [];
      return rate === undefined ? [] : [Number(rate)];
    });
  }

  private async next(count: number): Promise<number[]> {
    const begin = this.rates.length;
    const enough = () => this.rates.length >= begin + count;
    await this.program.until(enough, `${count} more rounds`, count * ROUND_SECONDS);
    return this.rates.slice(begin);
  }

  /** Returns the median rate of the next rounds in MB/s, after some that do not count. */
  async rate(warmUp = 1): Promise<number> {
    await this.next(warmUp);
    return median(await this.next(ROUNDS));
  }

  /** Waits until the rate is at least this. @throws Error if it is not reached */
  async reach(least: number): Promise<number> {
    for (let passed = 0; ; passed += ROUNDS) {
      const rate = median(await this.next(ROUNDS));
      if (rate >= least) return rate;
      if (passed >= MOST_ROUNDS)
        throw new Error(`After ${passed} rounds the stream has ${rate} MB/s instead of ${least.toFixed(1)}.`);
    }
  }
}
