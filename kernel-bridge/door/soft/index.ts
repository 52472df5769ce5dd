import { loadAddon } from '../../hca/index.js';

export { type AllocatedBytes, type AllocateOptions, allocate } from './allocate.js';
export { claimLocalName, type LocalNameClaim, portsOfLocalName } from './local-names.js';
export { resolveKernelOptions } from './resolve-options.js';
export { openDeviceFile } from './soft-kernel.js';

/** What {@link observe} answers: a process, and the text that it has answered with. */
export type Observed = Awaited<ReturnType<ReturnType<typeof loadAddon>['observeProcesses']>>[number];

/** Asks the soft kernels of this user's processes for their statistics. Starts no kernel of this process. */
export function observe(longestMs: number): Promise<Observed[]> {
  return loadAddon().observeProcesses(longestMs);
}
