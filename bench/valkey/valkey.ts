/** Measurements of Valkey's protocol between two network namespaces. */
import { withLink } from '../distance/delayed-link.js';
import { measurePair } from '../pair.js';
import type { Placement } from '../processes.js';
import type { Sample } from '../samples.js';
import type { ValkeyJob } from './job.js';

/** A job as specified in rows, which do not know the link's addresses. */
export type ValkeyRowJob = Omit<ValkeyJob, 'host'>;

export function measureValkey(job: ValkeyRowJob, placement: Placement): Promise<Sample> {
  return withLink('cable', ({ spaces, addresses }) =>
    measurePair('./valkey/program.js', { ...job, host: addresses[1] }, { ...placement, spaces }),
  );
}
