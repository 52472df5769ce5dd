import {
  claimLocalName as claimFromWinVerbs,
  type LocalNameClaim,
  portsOfLocalName as portsFromWinVerbs,
  StatusError,
} from '../winverbs/index.js';
import { NdError } from './status.js';

export type { LocalNameClaim };

function translated<T>(body: () => T): T {
  try {
    return body();
  } catch (error) {
    throw error instanceof StatusError ? new NdError(error.status, error.message, { cause: error }) : error;
  }
}

/**
 * Claims a name among the processes and threads of this user on this host (in one network namespace), so that others find the port of its
 * owner. The system releases it with the process, and the end of a Worker releases the Worker's. Linux only. Not a part of the SPI.
 *
 * @param name - 1 to 48 letters, digits, or characters of `_.:@-`
 * @throws NdError ADDRESS_ALREADY_EXISTS: it has an owner; INVALID_PARAMETER; INSUFFICIENT_RESOURCES: no file descriptor is left (a name
 *   takes two); NOT_SUPPORTED: not Linux
 * @example
 * ```ts
 * const claim = claimLocalName('prices');
 * claim.publish(listener.getLocalAddress().port);
 * ```
 */
export function claimLocalName(name: string): LocalNameClaim {
  return translated(() => claimFromWinVerbs(name));
}

/**
 * The RDMA ports that the owner of a name has published: one, none if nobody has the name or its owner does not listen yet, and two for the moment in
 * which one owner dies and another one begins. Not a part of the SPI.
 *
 * @param name - as for {@link claimLocalName}
 * @throws NdError INVALID_PARAMETER; INSUFFICIENT_RESOURCES; NOT_SUPPORTED
 */
export function portsOfLocalName(name: string): number[] {
  return translated(() => portsFromWinVerbs(name));
}
