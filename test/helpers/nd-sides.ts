/**
 * Both versions of the SPI as one, for tests of what they have in common: those of nd/cli/sides, with windows, read limits
 * and requests that programs do not make, and the statuses that the versions name differently.
 */
import {
  type Done,
  type Joining,
  LOOPBACK,
  type Memory,
  type Remote,
  socketAddress,
  type Which,
} from '../../nd/cli/sides/connected-side.js';
import { HostV1, newResult, SideV1 } from '../../nd/cli/sides/v1.js';
import { HostV2, type SideV2 } from '../../nd/cli/sides/v2.js';
import {
  type IND2MemoryRegion,
  type IND2MemoryWindow,
  type INDMemoryWindow,
  Nd2RemoteMemory,
  Nd2RequestType,
  type NdMemoryHandle,
  NdMwDescriptor,
  type Overlapped,
  type SocketAddress,
  Status,
} from '../../nd/index.js';

export type AnyHost = HostV1 | HostV2;
export type AnySide = SideV1 | SideV2;
type Window = INDMemoryWindow | IND2MemoryWindow;

/** Sizes of a side; `limits` are its own inbound and outbound Reads. */
interface Sizes {
  readonly receives?: number;
  readonly requests?: number;
  readonly limits?: readonly [inbound: number, outbound: number];
}

interface Binding {
  readonly offset?: number;
  readonly length: number;
  readonly memory?: Memory;
  readonly context?: string;
}

/** Statuses that the versions name differently. */
interface Says {
  /** A Read or Write that the peer's memory does not allow. */
  readonly remoteAccess: string;
  /** A Send whose Receive was too short. */
  readonly remoteInvalid: string;
  /** A Send without a Receive. */
  readonly unreceived: string;
  /** A Read where the outbound limit is 0. */
  readonly noReads: string;
  /** NotifyDisconnect when this side disconnects. */
  readonly ownDisconnect: number;
}

interface Version {
  readonly spi: string;
  readonly says: Says;
  open(): AnyHost;
}

export const versions: readonly Version[] = [
  {
    spi: 'v1',
    says: {
      remoteAccess: 'REMOTE_ERROR',
      remoteInvalid: 'REMOTE_ERROR',
      unreceived: 'TIMEOUT',
      noReads: 'ACCESS_VIOLATION',
      ownDisconnect: Status.CANCELED,
    },
    open: () => new HostV1(),
  },
  {
    spi: 'v2',
    says: {
      remoteAccess: 'ACCESS_VIOLATION',
      remoteInvalid: 'DATA_ERROR',
      unreceived: 'IO_TIMEOUT',
      noReads: 'INTERNAL_ERROR',
      ownDisconnect: Status.CONNECTION_DISCONNECTED,
    },
    open: () => new HostV2(),
  },
];

/** The read limits of sides, which v1 has from the endpoint, and v2 from Connect and Accept. */
const limitsOf = new WeakMap<AnySide, { inboundReadLimit: number; outboundReadLimit: number }>();

/** A side without inline data, where that is a choice. */
export function newSide(host: AnyHost, { receives = 32, requests = 32, limits }: Sizes = {}): AnySide {
  const reads = limits && { inboundReadLimit: limits[0], outboundReadLimit: limits[1] };
  const side =
    host instanceof HostV1
      ? host.newSide({ inboundEntries: receives, outboundEntries: requests, ...reads })
      : host.newSide({ receiveQueueDepth: receives, initiatorQueueDepth: requests, inlineDataSize: 0 });
  if (reads) limitsOf.set(side, reads);
  return side;
}

const placed = new WeakSet<AnySide>();

/** Connects from `own`, or, once the side has an address, from that. */
export function connect(
  side: AnySide,
  peer: string | SocketAddress,
  privateData?: Uint8Array,
  own?: SocketAddress,
): Overlapped<void> {
  const data = privateData === undefined ? {} : { privateData };
  if (side instanceof SideV1)
    return side.connector.connect(side.endpoint, peer, { ...data, localPort: own?.port ?? 0 });
  if (!placed.has(side)) {
    side.connector.bind(own ?? socketAddress(LOOPBACK));
    placed.add(side);
  }
  return side.connector.connect(side.queuePair, peer, { ...data, ...limitsOf.get(side) });
}

export function accept(side: AnySide, privateData?: Uint8Array): Overlapped<void> {
  const data = privateData === undefined ? {} : { privateData };
  return side instanceof SideV1 ? side.accept(data) : side.accept({ ...data, ...limitsOf.get(side) });
}

/** What a side has heard of its peer's Reads, in its own view. */
export function readLimits({ connector }: AnySide): [inbound: number, outbound: number] {
  if ('getReadLimits' in connector) {
    const { inbound, outbound } = connector.getReadLimits();
    return [inbound, outbound];
  }
  const { inboundReadLimit, outboundReadLimit } = connector.getConnectionData();
  return [inboundReadLimit, outboundReadLimit];
}

/** Two sides that are to connect. */
export interface Two {
  active: AnySide;
  passive: AnySide;
}

/** Connects two sides, or some of their steps. */
export async function join(
  host: AnyHost,
  { active, passive }: Two,
  { connect: request, accept: reply, onRequest, onReply }: Joining<Uint8Array, Uint8Array> = {},
): Promise<void> {
  const requested = host.listening.request(passive);
  const connected = connect(active, host.listening.address, request);
  await requested;
  onRequest?.();
  const accepted = accept(passive, reply);
  await connected;
  onReply?.();
  await active.completeConnect();
  await accepted;
}

export function twoSides(host: AnyHost, sizes: { active?: Sizes; passive?: Sizes } = {}): Two {
  return { active: newSide(host, sizes.active), passive: newSide(host, sizes.passive) };
}

export async function pair(host: AnyHost, sizes?: { active?: Sizes; passive?: Sizes }): Promise<Two> {
  const two = twoSides(host, sizes);
  await join(host, two);
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

/** A test on two sides, released after it. */
export function unconnected(run: Run): (context: { host: AnyHost }) => Promise<void> {
  return ({ host }) => released(run, host, twoSides(host));
}

/** A test on two connected sides. */
export function connected(
  run: Run,
  sizes?: { active?: Sizes; passive?: Sizes },
): (context: { host: AnyHost }) => Promise<void> {
  return async ({ host }) => released(run, host, await pair(host, sizes));
}

/** The next `count` results of a queue. */
export async function results(side: AnySide, which: Which, count = 1): Promise<Done[]> {
  const taken: Done[] = [];
  while (taken.length < count) {
    if (side.take(which)) taken.push({ ...side.done });
    else await side.notify(which).abortOn(AbortSignal.timeout(30_000));
  }
  return taken;
}

/** Their statuses. */
export async function statuses(side: AnySide, which: Which, count = 1): Promise<string[]> {
  return (await results(side, which, count)).map(({ status }) => side.statusName(status));
}

/** A request with flags. */
export function post(
  side: AnySide,
  op: 'send' | 'write' | 'read',
  context: string | number,
  list: ReturnType<AnySide['sge']>,
  { remote, offset = 0, flags = 0 }: { remote?: Remote; offset?: number; flags?: number },
): void {
  if (side instanceof SideV1) {
    const result = newResult(context);
    if (op === 'send') side.endpoint.send(result, list as never, flags);
    else side.endpoint[op](result, list as never, remote as never, offset, flags);
  } else if (op === 'send') side.queuePair.send(context, list as never, flags);
  else side.queuePair[op](context, list as never, remote as never, offset, flags);
}

/** A result with its type, as SideV1 makes them. */
function typedResult(kind: Nd2RequestType, context: string) {
  return Object.assign(newResult(context), { kind });
}

export function window(side: AnySide): Window {
  return side.adapter.createMemoryWindow();
}

/** Binds a window to memory of the side's own, or other memory; returns what a peer accesses it by. */
export function bind(
  side: AnySide,
  to: Window,
  flags: number,
  { offset = 0, length, memory, context = 'bind' }: Binding,
): NdMwDescriptor | Nd2RemoteMemory {
  if (side instanceof SideV1) {
    const handle = handleOf(memory) ?? side.memory;
    const result = typedResult(Nd2RequestType.BIND, context);
    const bound = side.endpoint.bind(result, handle, to as INDMemoryWindow, offset, length, flags);
    // In the form that messages carry.
    return NdMwDescriptor.decode(bound.encode());
  }
  const region = regionOf(memory) ?? side.region;
  const own = to as IND2MemoryWindow;
  side.queuePair.bind(context, region, own, offset, length, flags);
  return new Nd2RemoteMemory(region.address + BigInt(offset), own.getRemoteToken());
}

/** A peer's memory at another address, or with another token. */
export function altered(remote: NdMwDescriptor | Nd2RemoteMemory, by: bigint, token = remote.token): Remote {
  return remote instanceof NdMwDescriptor
    ? new NdMwDescriptor(remote.base + by, remote.length, token)
    : new Nd2RemoteMemory(remote.address + by, token);
}

export function invalidate(side: AnySide, bound: Window, context = 'invalidate'): void {
  const result = typedResult(Nd2RequestType.INVALIDATE, context);
  if (side instanceof SideV1) side.endpoint.invalidate(result, bound as INDMemoryWindow);
  else side.queuePair.invalidate(context, bound as IND2MemoryWindow);
}

/** The queue pair, which v1 calls an endpoint. */
export function queuePairOf(side: AnySide): { flush(): void; release(): number } {
  return side instanceof SideV1 ? side.endpoint : side.queuePair;
}

/** Deregisters memory of the side's own, or other memory. */
export function deregister(side: AnySide, memory?: Memory): Overlapped<void> {
  return side instanceof SideV1
    ? side.adapter.deregisterMemory(handleOf(memory) ?? side.memory)
    : (regionOf(memory) ?? side.region).deregister();
}

function handleOf(memory: Memory | undefined): NdMemoryHandle | undefined {
  return (memory as { handle?: NdMemoryHandle } | undefined)?.handle;
}

function regionOf(memory: Memory | undefined): IND2MemoryRegion | undefined {
  return (memory as { region?: IND2MemoryRegion } | undefined)?.region;
}
