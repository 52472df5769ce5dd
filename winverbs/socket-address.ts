import { checkSocketAddress, parseSocketAddress } from '../kernel-bridge/ioctl/sockaddr.js';
import type { SocketAddress } from './interfaces.js';
import { Status, WvError } from './status.js';

/** Reads an address as people write it. */
export function socketAddress(address: string | SocketAddress): SocketAddress {
  try {
    if (typeof address === 'string') return parseSocketAddress(address);
    checkSocketAddress(address);
    return address;
  } catch (error) {
    throw new WvError(
      Status.INVALID_ADDRESS,
      `${typeof address === 'string' ? `'${address}'` : JSON.stringify(address)} is no IP address; ` +
        `'192.0.2.1', '2001:db8::1', or with a port '192.0.2.1:4000', '[2001:db8::1]:4000' would be.`,
      { cause: error },
    );
  }
}
