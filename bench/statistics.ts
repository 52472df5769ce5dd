/** What the measurements of one contestant in one round come to, in base units: µs, bytes/s, 1/s, %, bytes. */
export interface Sample {
  /** Of the whole time. */
  readonly mean: number;
  /** Of the parts of that time, where they are known. It stays away from what else the machine was doing. */
  readonly median?: number;
  /** Which way this library's messages went. */
  readonly link?: 'shared memory' | 'UDP';
}

/** Samples of several rounds as one figure: the middle one, and how far the others lie apart. */
export interface Figure {
  readonly value: number;
  readonly least: number;
  readonly most: number;
}

/** The q-quantile (0..1) of numbers, by nearest rank; NaN of none. */
export function quantile(numbers: Iterable<number>, q: number): number {
  const sorted = Float64Array.from(numbers).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}

export function figureOf(numbers: readonly number[]): Figure {
  const sorted = Float64Array.from(numbers).sort();
  const half = sorted.length >> 1;
  const upper = sorted[half] ?? Number.NaN;
  return {
    value: sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? Number.NaN) + upper) / 2,
    least: sorted[0] ?? Number.NaN,
    most: sorted.at(-1) ?? Number.NaN,
  };
}

/** Times of parts of a measurement. Its room is made beforehand, so that adding allocates nothing. */
export class Parts {
  readonly #values = new Float64Array(1 << 16);
  #count = 0;

  add(value: number): void {
    this.#values[this.#count % this.#values.length] = value;
    this.#count += 1;
  }

  get count(): number {
    return this.#count;
  }

  /** Median and mean of the values. */
  get sample(): Sample {
    const values = this.#values.subarray(0, Math.min(this.#count, this.#values.length));
    if (values.length === 0) throw new Error('Nothing was measured.');
    return {
      median: quantile(values, 0.5),
      mean: values.reduce((sum, value) => sum + value, 0) / values.length,
    };
  }
}

/** Warm-up of every measurement, however short: what V8 has not compiled by then is hardly run. */
const WARMUP_SECONDS = 0.5;

/** Does `work` again and again, for a warm-up, then for `seconds` and at least once: the times it took, in µs. */
export function timed(seconds: number, work: () => void): Sample {
  const parts = new Parts();
  const warm = performance.now() + WARMUP_SECONDS * 1000;
  const end = warm + seconds * 1000;
  for (let now = performance.now(); now < end || parts.count === 0; ) {
    const start = now;
    work();
    now = performance.now();
    if (start >= warm) parts.add((now - start) * 1000);
  }
  return parts.sample;
}

/** {@link timed} of work that lets the event loop wait. */
export async function timedAsync(seconds: number, work: () => Promise<void>): Promise<Sample> {
  const parts = new Parts();
  const warm = performance.now() + WARMUP_SECONDS * 1000;
  const end = warm + seconds * 1000;
  for (let now = performance.now(); now < end || parts.count === 0; ) {
    const start = now;
    await work();
    now = performance.now();
    if (start >= warm) parts.add((now - start) * 1000);
  }
  return parts.sample;
}

/** Turns the time of `amount` of something into that of one. */
export function each({ mean, median }: Sample, amount: number): Sample {
  return { mean: mean / amount, ...(median === undefined ? {} : { median: median / amount }) };
}

/** Times in µs, less something that is in each. */
export function without({ mean, median }: Sample, us: number): Sample {
  return { mean: mean - us, ...(median === undefined ? {} : { median: median - us }) };
}

/** Turns times in µs that `amount` of something took into amounts per second. */
export function perSecond({ mean, median }: Sample, amount: number): Sample {
  const rate = (time: number) => (amount * 1e6) / time;
  return { mean: rate(mean), ...(median === undefined ? {} : { median: rate(median) }) };
}

/** Bytes as people write them: 8, 4 KiB, 1 MiB. */
export function bytesText(bytes: number): string {
  if (bytes >= 1 << 20 && bytes % (1 << 20) === 0) return `${bytes >> 20} MiB`;
  if (bytes >= 1 << 10 && bytes % (1 << 10) === 0) return `${bytes >> 10} KiB`;
  return `${bytes}`;
}
