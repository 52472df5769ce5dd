/**
 * Both SPI versions behind a common interface, for tests of their common behavior. Extends the sides of nd/cli/sides by windows, read
 * limits and the statuses that differ between the versions.
 */
import {
  type Done,
  LOOPBACK,
  type Memory,
  socketAddress,
  type Which,
} from '../../nd/cli/sides/connected-side.js';
import { HostV1, newResult, SideV1 } from '../../nd/cli/sides/v1-side.js';
import { HostV2, type SideV2 } from '../../nd/cli/sides/v2-side.js';
import {
  type IND2MemoryRegion,
  type IND2MemoryWindow,
  type INDMemoryWindow,
  Nd2RemoteMemory,
  type NdMemoryHandle,
  NdMwDescriptor,
  type Overlapped,
  type SocketAddress,
} from '../../nd/index.js';

export type AnyHost = HostV1 | HostV2;
type AnySide = SideV1 | SideV2;
type Window = INDMemoryWindow | IND2MemoryWindow;

/** A side's limits of inbound and outbound Reads. */
type Limits = readonly [inbound: number, outbound: number];

interface Version {
  readonly spi: string;
  /** Status of a Send without a Receive. */
  readonly says: { readonly unreceived: string; readonly noReads: string };
  open(): AnyHost;
}

export const versions: readonly Version[] = [
  { spi: 'v1', says: { unreceived: 'TIMEOUT', noReads: 'ACCESS_VIOLATION' }, open: () => new HostV1() },
  { spi: 'v2', says: { unreceived: 'IO_TIMEOUT', noReads: 'INTERNAL_ERROR' }, open: () => new HostV2() },
];

/** The read limits of sides. In v1 they belong to the endpoint, in v2 to Connect. */
const limitsOf = new WeakMap<AnySide, { inboundReadLimit: number; outboundReadLimit: number }>();

/** A side without inline data, if that is configurable. */
export function newSide(host: AnyHost, limits?: Limits): AnySide {
  const reads = limits && { inboundReadLimit: limits[0], outboundReadLimit: limits[1] };
  const side = host instanceof HostV1 ? host.newSide({ ...reads }) : host.newSide({ inlineDataSize: 0 });
  if (reads) limitsOf.set(side, reads);
  return side;
}

const placed = new WeakSet<AnySide>();

/** Connects from `own`, unless the side already has an address. */
export function connect(side: AnySide, peer: string | SocketAddress, own?: SocketAddress): Overlapped<void> {
  if (side instanceof SideV1)
    return side.connector.connect(side.endpoint, peer, { localPort: own?.port ?? 0 });
  if (!placed.has(side)) {
    side.connector.bind(own ?? socketAddress(LOOPBACK));
    placed.add(side);
  }
  return side.connector.connect(side.queuePair, peer, { ...limitsOf.get(side) });
}

/** Two unconnected sides. */
export interface Two {
  active: AnySide;
  passive: AnySide;
}

export function twoSides(host: AnyHost, limits?: Limits): Two {
  return { active: newSide(host, limits), passive: newSide(host) };
}

/** Two connected sides; `limits` are those of the active one. */
export async function pair(host: AnyHost, limits?: Limits): Promise<Two> {
  const two = twoSides(host, limits);
  const requested = host.listening.request(two.passive);
  const connected = connect(two.active, host.listening.address);
  await requested;
  const accepted = two.passive.accept();
  await connected;
  await two.active.completeConnect();
  await accepted;
  return two;
}

type Run = (two: Two & { host: AnyHost }) => Promise<void>;

async function released(run: Run, host: AnyHost, two: Two): Promise<void> {
  try {
    await run({ ...two, host });
  } finally {
    two.active.release();
    two.passive.release();
  }
}

/** A test with two sides, which are released afterwards. */
export function unconnected(run: Run): (context: { host: AnyHost }) => Promise<void> {
  return ({ host }) => released(run, host, twoSides(host));
}

/** A test with two connected sides. */
export function connected(run: Run, limits?: Limits): (context: { host: AnyHost }) => Promise<void> {
  return async ({ host }) => released(run, host, await pair(host, limits));
}

/** Returns the next `count` results of a queue. */
export async function results(side: AnySide, which: Which, count = 1): Promise<Done[]> {
  const taken: Done[] = [];
  while (taken.length < count) {
    if (side.take(which)) taken.push({ ...side.done });
    else await side.notify(which).abortOn(AbortSignal.timeout(30_000));
  }
  return taken;
}

/** Returns the statuses of the next `count` results. */
export async function statuses(side: AnySide, which: Which, count = 1): Promise<string[]> {
  return (await results(side, which, count)).map(({ status }) => side.statusName(status));
}

export function window(side: AnySide): Window {
  return side.adapter.createMemoryWindow();
}

/** Binds a window to the first bytes of the side's memory or of other memory. Returns the descriptor that a peer uses to access it. */
export function bind(
  side: AnySide,
  to: Window,
  flags: number,
  { length, memory }: { readonly length: number; readonly memory?: Memory },
): NdMwDescriptor | Nd2RemoteMemory {
  if (side instanceof SideV1) {
    const handle = handleOf(memory) ?? side.memory;
    const bound = side.endpoint.bind(newResult('bind'), handle, to as INDMemoryWindow, 0, length, flags);
    // Returns the descriptor as it is encoded in messages.
    return NdMwDescriptor.decode(bound.encode());
  }
  const region = regionOf(memory) ?? side.region;
  const own = to as IND2MemoryWindow;
  side.queuePair.bind('bind', region, own, 0, length, flags);
  return new Nd2RemoteMemory(region.address, own.getRemoteToken());
}

export function invalidate(side: AnySide, bound: Window): void {
  if (side instanceof SideV1) side.endpoint.invalidate(newResult('invalidate'), bound as INDMemoryWindow);
  else side.queuePair.invalidate('invalidate', bound as IND2MemoryWindow);
}

/** The queue pair, which v1 calls an endpoint. */
export function queuePairOf(side: AnySide): { flush(): void; release(): number } {
  return side instanceof SideV1 ? side.endpoint : side.queuePair;
}

export function deregister(side: AnySide, memory: Memory): Overlapped<void> {
  return side instanceof SideV1
    ? side.adapter.deregisterMemory(handleOf(memory)!)
    : regionOf(memory)!.deregister();
}

function handleOf(memory: Memory | undefined): NdMemoryHandle | undefined {
  return (memory as { handle?: NdMemoryHandle } | undefined)?.handle;
}

function regionOf(memory: Memory | undefined): IND2MemoryRegion | undefined {
  return (memory as { region?: IND2MemoryRegion } | undefined)?.region;
}
