import type { SocketAddress } from '../../winverbs/index.js';
import { parseSocketAddress, Status } from '../../winverbs/index.js';
import { refuse, type StatusMap, v2Terms } from '../status.js';

/** A text with a port that is none is as little an address as any other nonsense. */
const textStatuses: StatusMap = { [Status.INVALID_PARAMETER]: Status.INVALID_ADDRESS };

/** What an address that belongs to no device is called below. */
export const addressStatuses: StatusMap = {
  [Status.NOT_FOUND]: Status.INVALID_ADDRESS,
};

/** An address as text or object, as a socket address; INVALID_ADDRESS for what is none. */
export function parseAddress(address: string | SocketAddress, what: string): SocketAddress {
  if (typeof address === 'string') {
    return v2Terms.call(what, () => parseSocketAddress(address), textStatuses);
  }
  // Callers without types may hand in nothing at all.
  const { family, address: text, port } = address ?? {};
  if ((family !== 4 && family !== 6) || typeof text !== 'string') {
    throw refuse(
      Status.INVALID_ADDRESS,
      what,
      `A socket address has a family (4 or 6), an address text and a port; this one has ${String(family)} and ${String(text)}.`,
    );
  }
  return { family, address: text, port };
}

/** Whether an address only leads to the host it is used on. */
export function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1';
}

/** Whether it is the address that stands for all. */
export function isWildcard({ family, address }: SocketAddress): boolean {
  return family === 4 ? address === '0.0.0.0' : /^[0:]*::?[0:]*$/.test(address.split('%')[0]!);
}
