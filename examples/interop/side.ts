/**
 * What the programs of this folder share. Each is one side of a well-known RDMA tool, written on the public WinVerbs
 * interface, so that the other side can be that tool on a Linux host.
 */
import { createSocket } from 'node:dgram';
import { isIP } from 'node:net';
import {
  type IWVCompletionQueue,
  type IWVConnectEndpoint,
  type IWVConnectQueuePair,
  type IWVDatagramEndpoint,
  type IWVDevice,
  type IWVProtectionDomain,
  type IWVProvider,
  openProvider,
  QpAttr,
  QpState,
  type SocketAddress,
  WcStatus,
  type WvCompletion,
  type WvConnectParam,
  type WvMemoryRegion,
  type WvQpAttributes,
  WvSend,
  type WvSge,
} from '../../winverbs/index.js';

/** What a tool's own QPs allow of the peer: remote reads, writes and atomics. */
const PEER_ACCESS = 0xf;

/** A completion that is kept: the array that poll() fills is used again. */
export type Completion = Pick<
  WvCompletion,
  'context' | 'qpContext' | 'opcode' | 'status' | 'length' | 'flags' | 'immediateData' | 'sourceQpn'
>;

/** An opened device with a protection domain. */
export class Side implements Disposable {
  readonly pd: IWVProtectionDomain;

  private constructor(
    readonly provider: IWVProvider,
    readonly device: IWVDevice,
  ) {
    this.pd = device.allocateProtectionDomain();
  }

  /** The device that has an IP address of this host. */
  static at(address: string): Side {
    const provider = openProvider();
    return new Side(provider, provider.openDevice(provider.translateAddress(address).deviceGuid));
  }

  /** The device that a request came in on. */
  static of(provider: IWVProvider, endpoint: IWVConnectEndpoint | IWVDatagramEndpoint): Side {
    provider.addRef();
    return new Side(provider, provider.openDevice(endpoint.query().device.deviceGuid));
  }

  queue(entries: number): Queue {
    return new Queue(this.device.createCompletionQueue(entries));
  }

  /** Memory of its own with `bytes` zeros. */
  memory(bytes: number, access: number): Memory {
    const data = new Uint8Array(bytes);
    return new Memory(data, this.pd.registerMemory(data, access));
  }

  [Symbol.dispose](): void {
    this.pd.release();
    this.device.release();
    this.provider.release();
  }
}

/** Registered bytes. */
export class Memory {
  constructor(
    readonly bytes: Uint8Array,
    readonly region: WvMemoryRegion,
  ) {}

  /** A list of one piece, as requests take it. */
  piece(offset = 0, length = this.bytes.length - offset): readonly [WvSge] {
    return [{ region: this.region, offset, length }];
  }
}

/** A completion queue to wait on, one completion at a time. */
export class Queue {
  private readonly batch: WvCompletion[] = [];
  private readonly waiting: Completion[] = [];

  constructor(readonly cq: IWVCompletionQueue) {}

  /** The next completion, whatever its status. The thread does other things, or sleeps, until there is one. */
  async any(): Promise<Completion> {
    for (;;) {
      const first = this.waiting.shift();
      if (first !== undefined) return first;
      const count = this.cq.poll(this.batch, 16);
      for (const completion of this.batch.slice(0, count)) this.waiting.push({ ...completion });
      if (count === 0) await this.cq.notify('any');
    }
  }

  /** The next completion. @throws Error if its request failed */
  async next(): Promise<Completion> {
    const completion = await this.any();
    if (completion.status === WcStatus.SUCCESS) return completion;
    throw new Error(`The request '${String(completion.context)}' failed: ${wcName(completion.status)}.`);
  }

  /** The next `count` completions, all successful. */
  async take(count: number): Promise<Completion[]> {
    const taken: Completion[] = [];
    while (taken.length < count) taken.push(await this.next());
    return taken;
  }
}

/** The name of a completion's status, as WV_WC_STATUS has it. */
export function wcName(status: number): string {
  return Object.entries(WcStatus).find(([, value]) => value === status)?.[0] ?? `status ${status}`;
}

/** Makes a fresh queue pair ready to take receives, and open to the peer's one-sided requests. */
export function initialise(qp: IWVConnectQueuePair, accessFlags = PEER_ACCESS): void {
  qp.modify(
    { qpState: QpState.INIT, portNumber: 1, pkeyIndex: 0, accessFlags },
    QpAttr.STATE | QpAttr.ACCESS_FLAGS | QpAttr.PORT_NUMBER | QpAttr.PKEY_INDEX,
  );
}

/** The address that this host uses towards a peer; the system's routing table knows. */
export async function addressTowards(peer: SocketAddress): Promise<string> {
  const socket = createSocket(peer.family === 6 ? 'udp6' : 'udp4');
  try {
    // Nothing is sent: connecting only looks up the route.
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.connect(peer.port, peer.address, resolve);
    });
    return socket.address().address;
  } finally {
    socket.close();
  }
}

/** An IP address of a command line with a port. */
export function socketAddress(address: string, port: number): SocketAddress {
  return { family: isIP(address.replace(/%.*$/, '')) === 6 ? 6 : 4, address, port };
}

/** A connection of the active side: asks, looks at the reply, and accepts it. */
export async function connect(
  side: Side,
  qp: IWVConnectQueuePair,
  local: string,
  peer: SocketAddress,
  param: WvConnectParam,
): Promise<IWVConnectEndpoint> {
  const endpoint = side.provider.createConnectEndpoint();
  try {
    endpoint.bindAddress({ family: peer.family, address: local, port: 0 });
    endpoint.resolveRoute(peer);
    await endpoint.connect(qp, peer, param);
    await endpoint.accept(null, {});
    return endpoint;
  } catch (error) {
    endpoint.release();
    throw error;
  }
}

/** A listener of the passive side. */
export class Listener implements Disposable {
  private readonly listener: IWVConnectEndpoint;

  constructor(
    readonly provider: IWVProvider,
    address: SocketAddress,
    backlog = 16,
  ) {
    this.listener = provider.createConnectEndpoint();
    this.listener.bindAddress(address);
    this.listener.listen(backlog);
  }

  /** Where it listens: its port is a free one if 0 was asked for. */
  get address(): SocketAddress {
    return this.listener.query().localAddress;
  }

  /** The next request; accept or reject it. */
  async next(): Promise<IWVConnectEndpoint> {
    const endpoint = this.provider.createConnectEndpoint();
    await this.listener.getRequest(endpoint);
    return endpoint;
  }

  [Symbol.dispose](): void {
    this.listener.release();
  }
}

/** Waits until the peer has ended the connection. */
export async function disconnected(endpoint: IWVConnectEndpoint): Promise<void> {
  await endpoint.notifyDisconnect().catch(() => {});
}

/** Flags of a request that is told when it is done. */
export const SIGNALED = WvSend.SIGNALED;

/** What the two sides of a connection without connection management tell each other. */
export interface Destination {
  readonly qpn: number;
  /** First PSN of this side's requests. */
  readonly psn: number;
  /** 16 bytes. */
  readonly gid: Uint8Array;
}

/** What packets say to routers: IPv4's TOS and TTL, IPv6's traffic class, flow label and hop limit. */
export type Route = Partial<Pick<WvQpAttributes, 'trafficClass' | 'flowLabel' | 'hopLimit'>>;

/** Connects an initialised queue pair by hand: RTR with what the peer told, RTS with what it was told. */
export function connectByHand(
  qp: IWVConnectQueuePair,
  own: Destination,
  peer: Destination,
  path: {
    readonly mtu: number;
    readonly depth: number;
    readonly rnrRetryCount?: number;
    /** Code of the ACK timer; 0: what is not answered is not sent again. */
    readonly ackTimeout?: number;
    readonly route?: Route;
  },
): void {
  qp.modify(
    {
      qpState: QpState.RTR,
      sourceGid: own.gid,
      destinationGid: peer.gid,
      ...path.route,
      pathMtu: path.mtu,
      destinationQpn: peer.qpn,
      receivePsn: peer.psn,
      responderResources: path.depth,
      rnrNakTimeout: RNR_TIMER_640_US,
    },
    QpAttr.STATE,
  );
  qp.modify(
    {
      qpState: QpState.RTS,
      sendPsn: own.psn,
      initiatorDepth: path.depth,
      localAckTimeout: path.ackTimeout ?? ACK_TIMEOUT_537_MS,
      retryCount: 7,
      rnrRetryCount: path.rnrRetryCount ?? 6,
    },
    QpAttr.STATE,
  );
}

/** Codes of IBA 1 §9.7.5.2.8 and §9.9.2.1.1. */
const RNR_TIMER_640_US = 12;
const ACK_TIMEOUT_537_MS = 17;
