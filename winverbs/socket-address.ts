import { shown } from '../kernel-bridge/ioctl/shown.js';
import { checkSocketAddress, parseSocketAddress } from '../kernel-bridge/ioctl/sockaddr.js';
import type { SocketAddress } from './interfaces.js';
import { Status, StatusError, WvError } from './status.js';

/** @internal Parses an address in its usual text form. @throws WvError INVALID_ADDRESS */
export function socketAddress(address: string | SocketAddress, name = 'address'): SocketAddress {
  try {
    if (typeof address === 'string') return parseSocketAddress(address);
    checkSocketAddress(address);
    return address;
  } catch (error) {
    // An invalid port is reported as such.
    const text = typeof address === 'string' ? address : address?.address;
    const isPort =
      typeof text === 'string' && error instanceof StatusError && error.status === Status.INVALID_PARAMETER;
    // A scope that this host does not have is also reported as such.
    const isScope = typeof text === 'string' && text.includes('%') && error instanceof StatusError;
    throw new WvError(
      Status.INVALID_ADDRESS,
      isPort
        ? `T${error.message.slice(1)}`
        : isScope
          ? error.message
          : `\`${name}\` must be an IP address, such as '192.0.2.1' or '2001:db8::1', or with a port ` +
            `'192.0.2.1:4000' or '[2001:db8::1]:4000'; got ${addressText(address)}.`,
      { cause: error },
    );
  }
}

function addressText(address: unknown): string {
  if (typeof address !== 'object' || address === null) return shown(address);
  const { family, address: text, port } = address as Partial<SocketAddress>;
  return `{ family: ${shown(family)}, address: ${shown(text)}, port: ${shown(port)} }`;
}
