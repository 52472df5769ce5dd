import {
  claimLocalName as claimFromKernel,
  type LocalNameClaim,
  portsOfLocalName as portsFromKernel,
} from '../kernel-bridge/index.js';
import { guarded } from './status.js';

export type { LocalNameClaim };

/**
 * Claims a name among the processes and threads of this user on this host (in one network namespace), so that others
 * can find the owner's port. The name is released when the process or the Worker that owns it ends. Linux only.
 *
 * @param name - 1 to 48 letters, digits, or characters of `_.:@-`
 * @throws WvError ADDRESS_ALREADY_EXISTS (the name has an owner), INVALID_PARAMETER, INSUFFICIENT_RESOURCES (no file
 *   descriptor is left, and a name uses two), NOT_SUPPORTED (not Linux)
 */
export function claimLocalName(name: string): LocalNameClaim {
  return guarded('claimLocalName', () => claimFromKernel(name));
}

/**
 * Returns the RDMA ports that the owner of a name has published, normally one. The list is empty if the name has no owner
 * or its owner does not listen yet. There are two for a moment when a new owner replaces one that has died.
 *
 * @param name - as for {@link claimLocalName}
 * @throws WvError INVALID_PARAMETER, INSUFFICIENT_RESOURCES, NOT_SUPPORTED
 */
export function portsOfLocalName(name: string): number[] {
  return guarded('portsOfLocalName', () => portsFromKernel(name));
}
