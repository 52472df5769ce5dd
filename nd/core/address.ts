import { shown } from '../../kernel-bridge/ioctl/shown.js';
import type { SocketAddress } from '../../winverbs/index.js';
import { Status, socketAddress } from '../../winverbs/index.js';
import type { NdAddress } from '../spi/common-types.js';
import { refuse, type StatusMap, v2Terms } from '../status.js';

/** Translates the statuses of WinVerbs for an address without a device. */
export const addressStatuses: StatusMap = {
  [Status.NOT_FOUND]: Status.INVALID_ADDRESS,
};

/** Parses an address, given as text or object. Throws INVALID_ADDRESS for an invalid one. */
export function parseAddress(address: NdAddress, what: string, name = 'address'): SocketAddress {
  if (typeof address === 'string') {
    return v2Terms.call(what, () => socketAddress(address, name));
  }
  // Untyped callers may pass undefined.
  if (typeof address !== 'object' || address === null) {
    throw refuse(
      Status.INVALID_ADDRESS,
      what,
      `\`${name}\` must be an IP address as a string, or { address, port }; got ${shown(address)}.`,
    );
  }
  const { address: text, port, family = typeof text === 'string' && text.includes(':') ? 6 : 4 } = address;
  if ((family !== 4 && family !== 6) || typeof text !== 'string') {
    throw refuse(
      Status.INVALID_ADDRESS,
      what,
      `\`${name}\` must be { address: string, port: number } with an optional family of 4 or 6; got family ${shown(address.family)} and address ${shown(text)}.`,
    );
  }
  return { family, address: text, port };
}

/** Whether an address always refers to the local host. */
export function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1';
}

/** Whether an address is the wildcard address. */
export function isWildcard({ family, address }: SocketAddress): boolean {
  return family === 4 ? address === '0.0.0.0' : /^[0:]*::?[0:]*$/.test(address.split('%')[0]!);
}
