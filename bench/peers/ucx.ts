/** UCX's benchmark, ucx_perftest, over shared memory. */
import { freePort, isInstalled, type Placement, Program, placed } from '../processes.js';
import type { Sample } from '../samples.js';

export interface UcxJob {
  readonly test: 'tag_lat' | 'ucp_put_lat' | 'ucp_put_bw' | 'ucp_get' | 'ucp_fadd' | 'tag_bw';
  readonly metric: 'latency' | 'bandwidth' | 'rate';
  readonly size: number;
  readonly count: number;
}

/** Restricts UCX to shared memory. */
const env = { UCX_TLS: 'posix,sysv,cma,self', UCX_WARN_UNUSED_ENV_VARS: 'n' };
/** A megabyte of ucx_perftest is 2^20 bytes. */
const MEGABYTE = 1 << 20;

export function missingUcx(): string | undefined {
  return isInstalled('ucx_perftest') ? undefined : 'ucx_perftest is not installed (Debian: ucx-utils)';
}

export async function measureUcx(job: UcxJob, placement: Placement): Promise<Sample> {
  const port = await freePort();
  const server = new Program('ucx_perftest', ['-p', `${port}`], placed(placement, 'server'), env);
  try {
    await server.listening(port);
    const warmup = Math.max(10, Math.round(job.count / 10));
    const args = ['127.0.0.1', '-p', `${port}`, '-t', job.test, '-s', `${job.size}`];
    const counts = ['-n', `${job.count}`, '-w', `${warmup}`, '-f', '-v'];
    const client = new Program('ucx_perftest', [...args, ...counts], placed(placement, 'client'), env);
    return parse(await client.rest(), job);
  } finally {
    server.end();
  }
}

/** Parses the last line: iterations, latency (median, average, overall), bandwidth (average, overall), message rate (both). */
export function parse(text: string, { metric }: Pick<UcxJob, 'metric'>): Sample {
  const columns = text.trim().split('\n').at(-1)!.split(',').map(Number);
  const [, median, , latency, , bandwidth, , rate] = columns as number[] & { length: 8 };
  if (columns.length !== 8 || !columns.every((value) => value >= 0)) {
    throw new Error(`ucx_perftest printed: ${text}`);
  }
  if (metric === 'latency') return { mean: latency!, median: median! };
  return { mean: metric === 'rate' ? rate! : bandwidth! * MEGABYTE };
}
