/** UCX' own measurements, ucx_perftest, over shared memory. */
import { freePort, isInstalled, type Placement, Program, placed } from '../processes.js';
import type { Sample } from '../statistics.js';

export interface UcxJob {
  readonly test: 'tag_lat' | 'ucp_put_lat' | 'ucp_put_bw' | 'ucp_get' | 'tag_bw';
  readonly tells: 'latency' | 'bandwidth' | 'rate';
  readonly size: number;
  readonly count: number;
}

/** Nothing but memory of this host. */
const env = { UCX_TLS: 'posix,sysv,cma,self', UCX_WARN_UNUSED_ENV_VARS: 'n' };
/** Its megabytes are 2^20 bytes. */
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

/** iterations, median latency, average, overall latency, average, overall bandwidth, average, overall message rate */
export function parse(text: string, { tells }: Pick<UcxJob, 'tells'>): Sample {
  const columns = text.trim().split('\n').at(-1)!.split(',').map(Number);
  const [, median, , latency, , bandwidth, , rate] = columns as number[] & { length: 8 };
  if (columns.length !== 8 || !columns.every((value) => value >= 0)) {
    throw new Error(`ucx_perftest told: ${text}`);
  }
  if (tells === 'latency') return { mean: latency!, median: median! };
  return { mean: tells === 'rate' ? rate! : bandwidth! * MEGABYTE };
}
