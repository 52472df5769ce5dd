/** What is measured. One row of the report is one {@link Measurement}. */
export type Kind = 'latency' | 'write' | 'read' | 'rate';
export type Transport = 'nd' | 'tcp';

export interface Job {
  transport: Transport;
  kind: Kind;
  /** Bytes of a message. */
  size: number;
  /** Messages, warm-up not included. */
  count: number;
}

export interface Measurement extends Job {
  /** Half round trips in µs (latency). */
  median?: number;
  p99?: number;
  /** Bytes per second (write, read). */
  bandwidth?: number;
  /** Messages per second (rate). */
  rate?: number;
}

const latencySizes = [8, 64, 512, 4096, 65_536];
const bandwidthSizes = [4096, 65_536, 1 << 20];
const rateSizes = [8, 64];

/** The jobs of a run; `scale` 1 takes about a minute, and the quick run of the tests 0.02. */
export function plan(scale: number, only: RegExp): Job[] {
  const jobs: Job[] = [];
  const add = (transport: Transport, kind: Kind, size: number, count: number) => {
    const job = { transport, kind, size, count: Math.max(20, Math.round(count * scale)) };
    if (only.test(jobName(job))) jobs.push(job);
  };
  for (const size of latencySizes) {
    for (const transport of ['nd', 'tcp'] as const)
      add(transport, 'latency', size, size > 4096 ? 10_000 : 30_000);
  }
  for (const size of bandwidthSizes) {
    const count = Math.min(200_000, (2 << 30) / size);
    add('nd', 'write', size, count);
    add('nd', 'read', size, count);
    add('tcp', 'write', size, count);
  }
  for (const size of rateSizes) {
    add('nd', 'rate', size, 500_000);
    add('tcp', 'rate', size, 500_000);
  }
  return jobs;
}

export function jobName(job: Pick<Job, 'transport' | 'kind' | 'size'>): string {
  return `${job.transport} ${job.kind} ${job.size}`;
}
