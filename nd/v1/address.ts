import type { SocketAddress } from '../../winverbs/index.js';
import { socketAddress } from '../../winverbs/index.js';
import { v1Call } from '../status.js';

/** An address as text or object, as a socket address; INVALID_ADDRESS for what is none. */
export function parseAddress(address: string | SocketAddress, what: string): SocketAddress {
  return v1Call(what, () => socketAddress(address));
}

/** Whether an address only leads to the host it is used on. */
export function isLoopback(address: string): boolean {
  return address.startsWith('127.') || address === '::1';
}
