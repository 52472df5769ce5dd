/** Addresses as text. */
import type { SocketAddress } from '../../index.js';
import type { Link } from './link.js';

/** The address family as Node.js names it. */
export function familyOf({ family }: SocketAddress): 'IPv4' | 'IPv6' {
  return family === 6 ? 'IPv6' : 'IPv4';
}

/** The peer's address and port as text. */
export function peerText({ connector }: Link): string {
  try {
    const { address, port, family } = connector.getPeerAddress();
    return family === 6 ? `[${address}]:${port}` : `${address}:${port}`;
  } catch {
    return 'no peer';
  }
}
