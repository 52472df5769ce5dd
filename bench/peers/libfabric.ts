/** libfabric's ping-pong, fi_pingpong. It only reports means, and its bandwidth is that of a ping-pong. */
import { freePort, isInstalled, type Placement, Program, placed } from '../processes.js';
import type { Sample } from '../samples.js';

export interface LibfabricJob {
  readonly provider: 'shm' | 'tcp' | 'udp';
  readonly metric: 'latency' | 'bandwidth';
  readonly size: number;
  readonly count: number;
}

const ENDPOINTS = { shm: 'rdm', tcp: 'msg', udp: 'dgram' } as const;

export function missingLibfabric(): string | undefined {
  return isInstalled('fi_pingpong') ? undefined : 'fi_pingpong is not installed (Debian: libfabric-bin)';
}

export async function measureLibfabric(job: LibfabricJob, placement: Placement): Promise<Sample> {
  const port = await freePort();
  const args = ['-p', job.provider, '-e', ENDPOINTS[job.provider], '-I', `${job.count}`, '-S', `${job.size}`];
  const server = new Program('fi_pingpong', [...args, '-B', `${port}`], placed(placement, 'server'));
  try {
    await server.listening(port);
    const client = new Program(
      'fi_pingpong',
      [...args, '-P', `${port}`, '127.0.0.1'],
      placed(placement, 'client'),
    );
    return parse(await client.rest(), job);
  } finally {
    server.end();
  }
}

/** Parses the last line: bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec. */
export function parse(text: string, { metric }: Pick<LibfabricJob, 'metric'>): Sample {
  const columns = text.trim().split('\n').at(-1)!.trim().split(/\s+/);
  const mean = metric === 'latency' ? Number(columns[6]) : Number(columns[5]) * 1e6;
  if (columns.length !== 8 || !(mean > 0)) throw new Error(`fi_pingpong printed: ${text}`);
  return { mean };
}
