/** The library's options and memory for a job, and the link that was used. */
import { readCounters } from 'networkdirect/kernel-bridge';
import { allocate, type KernelOptionsInput } from 'networkdirect/winverbs';
import type { Job } from './job.js';

/** Undefined for the default link, because most programs open the library without options. */
export function libraryOptions(job: Job): KernelOptionsInput | undefined {
  return !('link' in job) || job.link === 'auto' ? undefined : { link: job.link };
}

/** The link that carried the messages of this process. */
export function linkUsed(job: Job): 'shared memory' | 'UDP' {
  const { hca } = readCounters(libraryOptions(job));
  const { direct_write = 0, direct_read = 0, direct_atomic = 0, local_link_tx_packets = 0 } = hca;
  return direct_write + direct_read + direct_atomic + local_link_tx_packets > 0 ? 'shared memory' : 'UDP';
}

/** Allocates memory for one-sided operations. */
export function makeMemory(kind: 'any' | 'allocate', bytes: number): Uint8Array {
  return kind === 'allocate' ? allocate(bytes) : new Uint8Array(new SharedArrayBuffer(bytes));
}
