import { connectSides, LOOPBACK, take } from '../../nd/cli/sides/connected-side.js';
import {
  ALL_ACCESS,
  ListenerWv,
  remoteOf,
  SideWv,
  type SideWvOptions,
  toInit,
} from '../../nd/cli/sides/winverbs-side.js';
import { type IWVProvider, openProvider, type SocketAddress } from '../../winverbs/index.js';

/** The address of the tested device, on which both sides are; `test/rdma` runs tests on addresses of real devices. */
export const ADDRESS = process.env.ND_TEST_ADDRESS ?? LOOPBACK;

export { ALL_ACCESS, remoteOf, type SideWv as Side, type SideWvOptions, take, toInit };

/** The objects of one side of a connection. */
export function openSide(
  provider: IWVProvider,
  change: SideWvOptions = {},
  bytes = 8192,
  address = ADDRESS,
): SideWv {
  return new SideWv(provider, { bytes: Buffer.alloc(bytes), address, ...change });
}

/** A listener on a free port of an address. */
export function openListener(provider: IWVProvider, address = ADDRESS, backlog = 8) {
  const { endpoint: listener } = new ListenerWv(provider, { family: 4, address, port: 0 }, backlog);
  return { listener, peer: listener.query().localAddress as SocketAddress & { family: 4 } };
}

/** Connects `a` (active) to `b` with private data in both directions. Resolves with the data that each side received. */
export async function connect(provider: IWVProvider, a: SideWv, b: SideWv, address = ADDRESS) {
  const listener = new ListenerWv(provider, { family: 4, address, port: 0 });
  let [atA, atB] = [a.ep.query(), b.ep.query()];
  await connectSides(listener, a, b, {
    connect: { privateData: Buffer.from('from a') },
    accept: { privateData: Buffer.from('from b') },
    onRequest: () => {
      atB = b.ep.query();
    },
    onReply: () => {
      atA = a.ep.query();
    },
  });
  listener.release();
  return { atA, atB };
}

export async function connectedPair(changeA: SideWvOptions = {}, changeB: SideWvOptions = {}) {
  const provider = openProvider();
  const a = openSide(provider, changeA);
  const b = openSide(provider, changeB);
  const heard = await connect(provider, a, b);
  const release = () => {
    a.release();
    b.release();
    provider.release();
  };
  return { provider, a, b, release, ...heard };
}
