import { lookup } from 'node:dns/promises';
import { ndCleanup, ndResolveAddress, ndStartup, type SocketAddress } from '../../index.js';
import { portOf } from '../base/checks.js';
import { aborted, NetError, netError, otherVersion, refusalBy, textOf } from '../base/errors.js';
import { decodeHello, encodeHello, otherVersionIn } from './frames.js';
import { Link, type LinkOptions, type LinkUser } from './link.js';
import { LocalContext } from './local-context.js';
import { checkNameAlone, checkStillNamed, NAMED_HOST, portsOfName } from './names.js';

/** Members of a socket or channel that connecting needs. */
export interface Opening {
  readonly options: LinkOptions;
  readonly user: LinkUser;
}

/** The location of a server: an address or host name with a port, or a name. */
export interface Destination {
  readonly port?: number | undefined;
  readonly host?: string | undefined;
  readonly name?: string | undefined;
}

/** @throws TypeError, RangeError if neither or both of name and port are given */
export function checkDestination(call: string, destination: Destination): void {
  checkNameAlone(call, destination);
  if (destination.name === undefined) portOf(destination.port, 1);
}

/** The addresses to try, in order. */
async function addressesOf({ port, host = 'localhost', name }: Destination): Promise<SocketAddress[]> {
  if (name !== undefined) {
    return portsOfName(name).map((named) => ({ address: NAMED_HOST, family: 4, port: named }));
  }
  const number = portOf(port, 1);
  const found = await lookup(host, { all: true });
  return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4, port: number }));
}

/** Opens a link to a server. `attach` receives it before any frame is delivered. @throws NetError, AbortError */
export async function openLink(
  destination: Destination,
  needs: Opening,
  attach: (link: Link) => void,
  signal?: AbortSignal,
): Promise<Link> {
  const refusal = refusalBy(signal);
  if (refusal !== undefined) throw refusal;
  const { name, host } = destination;
  let failure: unknown;
  for (const address of await addressesOf(destination)) {
    try {
      return await openTo(address, name, needs, attach, signal);
    } catch (error) {
      if (signal?.aborted) throw aborted(signal);
      // The first failure is reported, unless its reason is that this host has no address of the family.
      if (failure === undefined || (failure as { code?: unknown }).code === 'EADDRNOTAVAIL') failure = error;
    }
  }
  if (failure === undefined) throw new NetError('ENOTFOUND', `${host} does not resolve to an address.`);
  throw failure;
}

async function openTo(
  peer: SocketAddress,
  name: string | undefined,
  { options, user }: Opening,
  attach: (link: Link) => void,
  signal: AbortSignal | undefined,
): Promise<Link> {
  const call = { syscall: 'connect', address: peer.address, port: peer.port } as const;
  const what = textOf(call);
  let context: LocalContext | undefined;
  let link: Link | undefined;
  try {
    const local = localFor(peer);
    context = LocalContext.at(local.address);
    const connector = context.adapter.createConnector();
    try {
      connector.bind(local);
      link = await Link.make(context, connector, options, user);
    } catch (error) {
      connector.release();
      throw error;
    }
    const connecting = connector.connect(link.queuePair, peer, { privateData: encodeHello(options) });
    if (signal !== undefined) connecting.abortOn(signal);
    await connecting.catch((error) => {
      // A server that does not support this kind of connection rejects with its hello.
      const privateData = rejectedWith(link!);
      const version = otherVersionIn(privateData);
      if (version !== undefined) throw otherVersion(what, 'the server', version);
      if (decodeHello(privateData) !== undefined)
        throw new NetError('EPROTO', `${what}: the server does not serve this kind of connection.`);
      throw error;
    });
    const privateData = connector.getPrivateData();
    const hello = decodeHello(privateData);
    const version = otherVersionIn(privateData);
    if (version !== undefined) {
      connector.reject();
      throw otherVersion(what, 'the server', version);
    }
    if (hello === undefined || hello.kind !== options.kind) {
      connector.reject();
      throw new NetError('EPROTO', `${what}: the server does not use this protocol.`);
    }
    // The owner of the name may have died in the meantime, and another program may listen on its port.
    if (name !== undefined) checkStillNamed(name, peer.port);
    link.applyHello(hello);
    attach(link);
    const completing = connector.completeConnect();
    if (signal !== undefined) completing.abortOn(signal);
    await completing;
    link.establish();
    return link;
  } catch (error) {
    link?.free();
    throw netError(error, call);
  } finally {
    context?.releaseRef();
  }
}

/** The private data of a Reject, which may be empty. */
function rejectedWith({ connector }: Link): Uint8Array {
  try {
    return connector.getPrivateData();
  } catch {
    return new Uint8Array(0);
  }
}

function localFor(peer: SocketAddress): SocketAddress {
  ndStartup();
  try {
    return ndResolveAddress({ ...peer, port: 0 });
  } finally {
    ndCleanup();
  }
}
