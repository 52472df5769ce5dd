/** How the jobs choose between what the library offers. */
import { allocate, type KernelOptionsInput } from '../../winverbs/index.js';
import type { Job } from './job.js';

export function libraryOptions(_job: Job): KernelOptionsInput {
  return {};
}

/** Memory for one-sided operations. */
export function makeMemory(kind: 'any' | 'allocate', bytes: number): Uint8Array {
  return kind === 'allocate' ? allocate(bytes) : new Uint8Array(new SharedArrayBuffer(bytes));
}
