/** The result of one contestant in one round, in base units: µs, bytes/s, 1/s, %, bytes. */
export interface Sample {
  /** Mean over the whole measurement. */
  readonly mean: number;
  /** Median of its parts, if they were timed. It is less sensitive to other load on the machine. */
  readonly median?: number;
  /** The link that carried this library's messages. */
  readonly link?: 'shared memory' | 'UDP';
}

/** Samples of several rounds as one figure: median, minimum and maximum. */
export interface Figure {
  readonly value: number;
  readonly least: number;
  readonly most: number;
}

/** The q-quantile (0..1) of numbers, by nearest rank; NaN if there are none. */
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

/** Times of the parts of a measurement. Memory is allocated in advance, so that `add` allocates nothing. */
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

  /** Median and mean. */
  get sample(): Sample {
    const values = this.#values.subarray(0, Math.min(this.#count, this.#values.length));
    if (values.length === 0) throw new Error('Nothing was measured.');
    return {
      median: quantile(values, 0.5),
      mean: values.reduce((sum, value) => sum + value, 0) / values.length,
    };
  }
}

/** Warm-up of every measurement, in seconds. V8 compiles all frequently executed code during this time. */
const WARMUP_SECONDS = 0.5;

/** Repeats `work` for a warm-up, then for `seconds` and at least once. The sample is the time of one `work`, in µs. */
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

/** Keeps the CPU busy for `us` µs. */
export function spin(us: number): void {
  if (us === 0) return;
  for (const end = performance.now() + us / 1000; performance.now() < end; );
}

/** Like {@link timed}, for asynchronous work. */
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

/** Divides the time of `amount` operations to get that of one. */
export function each({ mean, median }: Sample, amount: number): Sample {
  return { mean: mean / amount, ...(median === undefined ? {} : { median: median / amount }) };
}

/** Subtracts a constant from each time, in µs. */
export function without({ mean, median }: Sample, us: number): Sample {
  return { mean: mean - us, ...(median === undefined ? {} : { median: median - us }) };
}

/** Converts the time of `amount` operations, in µs, to operations per second. */
export function perSecond({ mean, median }: Sample, amount: number): Sample {
  const rate = (time: number) => (amount * 1e6) / time;
  return { mean: rate(mean), ...(median === undefined ? {} : { median: rate(median) }) };
}

/** Converts the time of `count` requests to the time of one. */
export function perRequest({ mean, median }: Sample, count: number): Sample {
  return { mean: mean / count, ...(median === undefined ? {} : { median: median / count }) };
}

/** A size as text: 8, 4 KiB, 1 MiB. */
export function bytesText(bytes: number): string {
  if (bytes >= 1 << 20 && bytes % (1 << 20) === 0) return `${bytes >> 20} MiB`;
  if (bytes >= 1 << 10 && bytes % (1 << 10) === 0) return `${bytes >> 10} KiB`;
  return `${bytes}`;
}
