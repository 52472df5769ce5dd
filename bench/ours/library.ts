/** How the jobs choose between what the library offers, and what came of it. */
import { readCounters } from '../../kernel-bridge/index.js';
import { allocate, type KernelOptionsInput } from '../../winverbs/index.js';
import type { Job } from './job.js';

/** None where the job wants what the library does by itself: that is what most programs open it with. */
export function libraryOptions({ link }: Job): KernelOptionsInput | undefined {
  return link === 'auto' ? undefined : { link };
}

/** Which way the messages of this process went. */
export function linkUsed(job: Job): 'shared memory' | 'UDP' {
  const { hca } = readCounters(libraryOptions(job));
  return (hca.local_link_tx_packets ?? 0) > 0 ? 'shared memory' : 'UDP';
}

/** Memory for one-sided operations. */
export function makeMemory(kind: 'any' | 'allocate', bytes: number): Uint8Array {
  return kind === 'allocate' ? allocate(bytes) : new Uint8Array(new SharedArrayBuffer(bytes));
}
