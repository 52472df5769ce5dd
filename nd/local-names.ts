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
 * Claims a name among the processes and threads of this user on this host (in one network namespace), so that others
 * can find the owner's port. The name is released when the process or the Worker that owns it ends. Linux only. An
 * addition to the SPI.
 *
 * @param name - 1 to 48 letters, digits, or characters of `_.:@-`
 * @throws NdError ADDRESS_ALREADY_EXISTS (the name has an owner), INVALID_PARAMETER, INSUFFICIENT_RESOURCES (no file
 *   descriptor is left, and a name uses two), NOT_SUPPORTED (not Linux)
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
 * Returns the RDMA ports that the owner of a name has published, normally one. The list is empty if the name has no owner
 * or its owner does not listen yet. There are two for a moment when a new owner replaces one that has died. An addition
 * to the SPI.
 *
 * @param name - as for {@link claimLocalName}
 * @throws NdError INVALID_PARAMETER, INSUFFICIENT_RESOURCES, NOT_SUPPORTED
 */
export function portsOfLocalName(name: string): number[] {
  return translated(() => portsFromWinVerbs(name));
}
