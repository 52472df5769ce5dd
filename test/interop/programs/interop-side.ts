/**
 * Common parts of the programs of this folder. Each is one side of a well-known RDMA tool, written with the public WinVerbs interface. The
 * other side can be the real tool on a Linux host.
 */
import { createSocket } from 'node:dgram';
import { connectEndpoint, type HostWv, toInit } from '../../../nd/cli/sides/winverbs-side.js';
import {
  type IWVConnectEndpoint,
  type IWVConnectQueuePair,
  QpAttr,
  QpState,
  type SocketAddress,
  type WvConnectParam,
  type WvQpAttributes,
  WvSend,
} from '../../../winverbs/index.js';

export { socketAddress } from '../../../nd/cli/sides/connected-side.js';
export {
  type Completion,
  HostWv as Side,
  ListenerWv as Listener,
  MemoryWv as Memory,
  Queue,
  wcName,
} from '../../../nd/cli/sides/winverbs-side.js';

/** Access that a tool's QPs grant the peer: remote reads, writes and atomics. */
const PEER_ACCESS = 0xf;

/** Moves a new queue pair to INIT, so that it accepts receives, and permits the peer's one-sided requests. */
export function initialise(qp: IWVConnectQueuePair, accessFlags = PEER_ACCESS): void {
  toInit(qp, accessFlags);
}

/** This host's address towards a peer, from the routing table of the OS. */
export async function addressTowards(peer: SocketAddress): Promise<string> {
  const socket = createSocket(peer.family === 6 ? 'udp6' : 'udp4');
  try {
    // Nothing is sent, because connecting only looks up the route.
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.connect(peer.port, peer.address, resolve);
    });
    return socket.address().address;
  } finally {
    socket.close();
  }
}

/** Connects as the active side: sends a request, examines the reply, and accepts it. */
export async function connect(
  side: HostWv,
  qp: IWVConnectQueuePair,
  local: string,
  peer: SocketAddress,
  param: WvConnectParam,
): Promise<IWVConnectEndpoint> {
  const endpoint = side.provider.createConnectEndpoint();
  try {
    await connectEndpoint(endpoint, qp, peer, param, local);
    return endpoint;
  } catch (error) {
    endpoint.release();
    throw error;
  }
}

/** Waits until the peer has ended the connection. */
export async function disconnected(endpoint: IWVConnectEndpoint): Promise<void> {
  await endpoint.notifyDisconnect().catch(() => {});
}

/** Flags of a request that has a completion. */
export const SIGNALED = WvSend.SIGNALED;

/** Data that both sides exchange for a connection without RDMA CM. */
export interface Destination {
  readonly qpn: number;
  /** The first PSN of this side's requests. */
  readonly psn: number;
  /** The GID, 16 bytes. */
  readonly gid: Uint8Array;
}

/** Routing fields of packets: IPv4's TOS and TTL, IPv6's traffic class, flow label and hop limit. */
export type Route = Partial<Pick<WvQpAttributes, 'trafficClass' | 'flowLabel' | 'hopLimit'>>;

/** Connects an initialized queue pair without RDMA CM: RTR with the peer's destination, RTS with this side's. */
export function connectByHand(
  qp: IWVConnectQueuePair,
  own: Destination,
  peer: Destination,
  path: {
    readonly mtu: number;
    readonly depth: number;
    readonly rnrRetryCount?: number;
    /** Code of the ACK timer; 0: no retransmission. */
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
