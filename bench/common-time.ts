/**
 * A time that several programs measure in, so that what each gets of a line they share adds up: bytes count between two instants of the
 * system's monotonic clock, which all processes of the machine read alike.
 */
import * as z from 'zod';
import type { Sample } from './samples.js';

/** Two instants of {@link monotonicSeconds}. */
export const commonTimeSchema = z
  .strictObject({ from: z.number().positive(), until: z.number().positive() })
  .refine(({ from, until }) => from < until, 'from has to be before until');
export type CommonTime = z.output<typeof commonTimeSchema>;

export function monotonicSeconds(): number {
  const [seconds, ns] = process.hrtime();
  return seconds + ns / 1e9;
}

/** Counts what comes within a common time. */
export class CommonCount {
  #bytes = 0;
  #before = 0;

  constructor(private readonly time: CommonTime) {}

  /** Bytes that have just arrived. */
  add(bytes: number): void {
    const now = monotonicSeconds();
    if (now < this.time.from) this.#before += bytes;
    else if (now < this.time.until) this.#bytes += bytes;
  }

  get over(): boolean {
    return monotonicSeconds() >= this.time.until;
  }

  /** Bytes per second. @throws Error if nothing had come before the common time: then its first part would be a start. */
  get sample(): Sample {
    if (this.#before === 0)
      throw new Error('Nothing was under way when the common time began: the machine is too busy for it.');
    return { mean: this.#bytes / (this.time.until - this.time.from) };
  }
}
