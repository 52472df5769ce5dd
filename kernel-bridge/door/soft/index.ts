import { loadAddon } from '../../hca/index.js';

export { type AllocatedBytes, type AllocateOptions, allocate, sharedOf } from './allocate.js';
export { claimLocalName, type LocalNameClaim, portsOfLocalName } from './local-names.js';
export { resolveKernelOptions } from './resolve-options.js';
export { openDeviceFile } from './soft-kernel.js';

/** The result of {@link observe}: a process and the text of its reply. */
export type Observed = Awaited<ReturnType<ReturnType<typeof loadAddon>['observeProcesses']>>[number];

/** Queries the statistics of the soft kernels of this user's processes. Starts no kernel in this process. */
export function observe(longestMs: number): Promise<Observed[]> {
  return loadAddon().observeProcesses(longestMs);
}
