/**
 * A common time span for several programs that measure at the same time, so that their shares of a link add up. They count bytes between
 * two instants of the OS's monotonic clock, which is the same for all processes of the machine.
 */
import * as z from 'zod';
import type { Sample } from './samples.js';

/** Two instants of {@link monotonicSeconds}. */
export const commonTimeSchema = z
  .strictObject({ from: z.number().positive(), until: z.number().positive() })
  .refine(({ from, until }) => from < until, '`from` must be less than `until`');
export type CommonTime = z.output<typeof commonTimeSchema>;

export function monotonicSeconds(): number {
  const [seconds, ns] = process.hrtime();
  return seconds + ns / 1e9;
}

/** Counts what arrives within a common time span. */
export class CommonCount {
  #bytes = 0;
  #before = 0;

  constructor(private readonly time: CommonTime) {}

  /** Adds bytes that have just arrived. */
  add(bytes: number): void {
    const now = monotonicSeconds();
    if (now < this.time.from) this.#before += bytes;
    else if (now < this.time.until) this.#bytes += bytes;
  }

  get over(): boolean {
    return monotonicSeconds() >= this.time.until;
  }

  /** Bytes per second. @throws Error if nothing had arrived before the time span, because its first part would then include the start-up */
  get sample(): Sample {
    if (this.#before === 0)
      throw new Error('No data arrived before the common time span began: the machine is too busy.');
    return { mean: this.#bytes / (this.time.until - this.time.from) };
  }
}
