import { lookup } from 'node:dns/promises';
import { type IND2Listener, ndCleanup, ndQueryAddressList, ndStartup, type SocketAddress } from '../index.js';
import { NetError, netError } from './base/errors.js';
import { LocalContext } from './connection/local-context.js';

/** The listener of one adapter, at a local address of that adapter. */
export interface Post {
  /** The context of the listening adapter. */
  readonly context: LocalContext;
  /** The listener of that adapter. */
  readonly listener: IND2Listener;
}

/** Attempts to find a port that is free at all addresses. */
const ATTEMPTS = 20;

/**
 * Returns the addresses on which a server with this host listens, with port 0. @throws NetError EADDRNOTAVAIL; an error of the name service
 */
export async function localAddresses(host: string | undefined): Promise<SocketAddress[]> {
  const every = host === undefined || host === '::';
  if (!every && host !== '0.0.0.0') {
    const { address, family } = await lookup(host, { family: host.includes(':') ? 6 : 0 });
    return [{ address, family: family === 6 ? 6 : 4, port: 0 }];
  }
  ndStartup();
  try {
    const found = ndQueryAddressList().filter(({ family }) => every || family === 4);
    if (found.length === 0) throw new NetError('EADDRNOTAVAIL', 'No adapter has a matching address.');
    return found;
  } finally {
    ndCleanup();
  }
}

/** Listens on all the addresses with one port. @throws NetError */
export function listenAt(addresses: readonly SocketAddress[], port: number, backlog: number): Post[] {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return listenOnce(addresses, port, backlog);
    } catch (error) {
      const mapped = netError(error, { syscall: 'listen', address: addresses[0]!.address, port });
      // The port chosen for the first address may be in use at another.
      const other = port === 0 && addresses.length > 1 && attempt < ATTEMPTS;
      if (!other || (mapped as NetError).code !== 'EADDRINUSE') throw mapped;
    }
  }
}

function listenOnce(addresses: readonly SocketAddress[], port: number, backlog: number): Post[] {
  const posts: Post[] = [];
  try {
    let common = port;
    for (const address of addresses) {
      const context = LocalContext.at(address.address);
      let listener: IND2Listener;
      try {
        listener = context.adapter.createListener();
      } catch (error) {
        context.releaseRef();
        throw error;
      }
      posts.push({ context, listener });
      listener.bind({ ...address, port: common });
      listener.listen(backlog);
      common = listener.getLocalAddress().port;
    }
    return posts;
  } catch (error) {
    for (const post of posts) leave(post);
    throw error;
  }
}

/** Stops a listener. */
export function leave({ context, listener }: Post): void {
  listener.release();
  context.releaseRef();
}
