/** The driver host and the provider of verbs in the kernel. Loaded with the first driver only. */
import { markAsUntransferable } from 'node:worker_threads';
import { loadUserVerbs } from '../../uvp/index.js';
import type { KernelPlatform } from './kernel-services.js';

export { DriverHost } from './driver-host.js';

/** The platform of drivers, with this package's providers. */
export function kernelPlatform(parts: Omit<KernelPlatform, 'userVerbs' | 'refuseTransfers'>): KernelPlatform {
  return { ...parts, userVerbs: loadUserVerbs, refuseTransfers: markAsUntransferable };
}
