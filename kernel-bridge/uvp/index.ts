/**
 * User-mode verbs providers by the library name that a device returns for LIBRARY_QUERY.
 */

import type { UserVerbs } from '../door/user-verbs.js';
import { loadAddon, SOFT_USER_LIBRARY } from '../hca/index.js';
import { loadVerbsAddon, VERBS_USER_LIBRARY } from '../hca/verbs-binding.js';
import { UserVerbsRegistry } from './registry.js';
import { SoftUserVerbs } from './soft-user-verbs.js';
import { loadVendorVerbs } from './vendor/index.js';

export { SOFT_USER_LIBRARY } from '../hca/index.js';
export { type UserVerbsMaker, UserVerbsRegistry } from './registry.js';

/** The providers of this isolate. Those of the package's HCAs are built in; on Windows, others are DLLs of device vendors. */
export const userVerbsRegistry = new UserVerbsRegistry(
  process.platform === 'win32' ? loadVendorVerbs : undefined,
);
userVerbsRegistry.register(SOFT_USER_LIBRARY, () => new SoftUserVerbs(loadAddon()));
userVerbsRegistry.register(VERBS_USER_LIBRARY, () => new SoftUserVerbs(loadVerbsAddon()));

/** Returns the provider of a device. @throws StatusError NOT_SUPPORTED if it is missing, or lacks a mandatory function */
export function loadUserVerbs(library: string): UserVerbs {
  return userVerbsRegistry.load(library);
}
