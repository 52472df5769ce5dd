import { checkSocketAddress, parseSocketAddress } from '../kernel-bridge/ioctl/sockaddr.js';
import type { SocketAddress } from './interfaces.js';
import { Status, StatusError, WvError } from './status.js';

/** Parses an address in its usual text form. */
export function socketAddress(address: string | SocketAddress): SocketAddress {
  try {
    if (typeof address === 'string') return parseSocketAddress(address);
    checkSocketAddress(address);
    return address;
  } catch (error) {
    // An invalid port is reported as such.
    const text = typeof address === 'string' ? address : address?.address;
    const isPort =
      typeof text === 'string' && error instanceof StatusError && error.status === Status.INVALID_PARAMETER;
    // So is a scope that this host does not have.
    const isScope = typeof text === 'string' && text.includes('%') && error instanceof StatusError;
    throw new WvError(
      Status.INVALID_ADDRESS,
      isPort
        ? `The ${error.message}.`
        : isScope
          ? `${error.message}.`
          : "`address` must be an IP address, such as '192.0.2.1' or '2001:db8::1', or with a port " +
            `'192.0.2.1:4000' or '[2001:db8::1]:4000'; got ${shown(address)}.`,
      { cause: error },
    );
  }
}

function shown(address: unknown): string {
  if (typeof address === 'string') return `'${address}'`;
  if (typeof address !== 'object' || address === null) return String(address);
  const { family, address: text, port } = address as Partial<SocketAddress>;
  return `{ family: ${String(family)}, address: ${String(text)}, port: ${String(port)} }`;
}
