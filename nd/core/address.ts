import type { SocketAddress } from '../../winverbs/index.js';
import { parseSocketAddress, Status } from '../../winverbs/index.js';
import type { NdAddress } from '../spi/common-types.js';
import { refuse, type StatusMap, v2Terms } from '../status.js';

/** A text with an invalid port is an invalid address. */
const textStatuses: StatusMap = { [Status.INVALID_PARAMETER]: Status.INVALID_ADDRESS };

/** Translates the statuses of WinVerbs for an address without a device. */
export const addressStatuses: StatusMap = {
  [Status.NOT_FOUND]: Status.INVALID_ADDRESS,
};

/** Parses an address, given as text or object. Throws INVALID_ADDRESS for an invalid one. */
export function parseAddress(address: NdAddress, what: string): SocketAddress {
  if (typeof address === 'string') {
    return v2Terms.call(what, () => parseSocketAddress(address), textStatuses);
  }
  // Untyped callers may pass undefined.
  const { address: text, port, family = String(text).includes(':') ? 6 : 4 } = address ?? {};
  if ((family !== 4 && family !== 6) || typeof text !== 'string') {
    throw refuse(
      Status.INVALID_ADDRESS,
      what,
      `\`address\` must be { address: string, port: number } with an optional family of 4 or 6; got family ${String(family)} and address ${String(text)}.`,
    );
  }
  return { family, address: text, port };
}

/** Whether an address always refers to the local host. */
export function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1';
}

/** Whether it is the wildcard address. */
export function isWildcard({ family, address }: SocketAddress): boolean {
  return family === 4 ? address === '0.0.0.0' : /^[0:]*::?[0:]*$/.test(address.split('%')[0]!);
}
