/** The host of loaded drivers, with the provider in the kernel. Only the first driver loads this room. */
import { markAsUntransferable } from 'node:worker_threads';
import { loadUserVerbs } from '../../uvp/index.js';
import type { KernelPlatform } from './kernel-services.js';

export { DriverHost } from './driver-host.js';

/** The platform of drivers, with our providers. */
export function kernelPlatform(parts: Omit<KernelPlatform, 'userVerbs' | 'refuseTransfers'>): KernelPlatform {
  return { ...parts, userVerbs: loadUserVerbs, refuseTransfers: markAsUntransferable };
}
