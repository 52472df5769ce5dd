import {
  claimLocalName as claimFromKernel,
  type LocalNameClaim,
  portsOfLocalName as portsFromKernel,
} from '../kernel-bridge/index.js';
import { guarded } from './status.js';

export type { LocalNameClaim };

/**
 * Claims a name among the processes and threads of this user on this host (in one network namespace), so that others find the port of its
 * owner. The system releases it with the process, and the end of a Worker releases the Worker's. Linux only.
 *
 * @param name - 1 to 48 letters, digits, or characters of `_.:@-`
 * @throws WvError ADDRESS_ALREADY_EXISTS: it has an owner; INVALID_PARAMETER; INSUFFICIENT_RESOURCES: no file descriptor is left (a name
 *   takes two); NOT_SUPPORTED: not Linux
 */
export function claimLocalName(name: string): LocalNameClaim {
  return guarded('claimLocalName', () => claimFromKernel(name));
}

/**
 * The RDMA ports that the owner of a name has published: one, none if nobody has the name or its owner does not listen yet, and two for the moment in
 * which one owner dies and another one begins.
 *
 * @param name - as for {@link claimLocalName}
 * @throws WvError INVALID_PARAMETER; INSUFFICIENT_RESOURCES; NOT_SUPPORTED
 */
export function portsOfLocalName(name: string): number[] {
  return guarded('portsOfLocalName', () => portsFromKernel(name));
}
