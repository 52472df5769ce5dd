/**
 * The interface between connection management and its users: what the filter driver calls, and what the CM needs of its
 * platform. Connection states and messages are those of IBA 1 §12.
 */
import type { CmOptions } from '../../option-checks/option-schemas.js';

/**
 * The links of a process, in the low bits of the attribute modifier of its REQ and REP to processes of its host. `free`: as the peer
 * wants. `seen`: its packets go by the wire, or by frames, because it captures them or injects faults. `wire`, `local`: as the option
 * `link` forces; these two have nothing in common. Only a message that came past the wire is believed.
 */
export const HostLink = { free: 0, seen: 1, wire: 2, local: 3, mask: 3 } as const;

/** A 16-byte GID; IPv4 is `::ffff:a.b.c.d`. */
export type Gid = Uint8Array;

export interface CmPath {
  source: Gid;
  destination: Gid;
  flowLabel: number;
  trafficClass: number;
  hopLimit: number;
  scopeId: number;
  /** Of this side; default: that of the default partition. */
  pkey?: number;
}

/** The CM's platform: QP1, a clock, random numbers, ids. Tests supply their own. */
export interface CmPlatform {
  /** `mad` may be reused after the call. */
  sendMad(path: CmPath, mad: Uint8Array): void;
  setTimer(milliseconds: number, expired: () => void): CmTimer;
  /** An unused local communication id of this kernel; 0 when all are taken. */
  allocateCommId(): number;
  releaseCommId(id: number): void;
  /** 24 random bits. */
  randomPsn(): number;
  /** The CA GUID that messages from this source address carry. */
  caGuid(source: Gid): bigint;
  /** The largest path MTU (enum 1–5) that the link of this local address carries; default: 5 (4096 bytes). */
  maxPathMtu?(local: Gid): number;
  /** Bytes of payload of the longest packet that the link of this local address carries; default: 0, no more than the path MTU. */
  maxPacketBytes?(local: Gid): number;
  /** The HCA has nothing beyond the standard, which is agreed on with no peer; default: false. */
  readonly standardOnly?: boolean;
  /** What REQ and REP to this address say of this side's links ({@link HostLink}); default: nothing. */
  hostLink?(destination: Gid): number;
  /**
   * A REQ or REP has come from this sender (a slot, or `BY_WIRE`), whose process says this of its links. False: they have none in common
   * with this process, which refuses.
   */
  meetsLink?(sender: number, said: number): boolean;
  /** A peer has refused because of an option of this side. */
  linkRefused?(destination: Gid): void;
  /** A REQ of this host was refused: nobody listens there whom this host's names tell of. */
  nobodyListens?(serviceId: bigint, local: Gid): void;
  /** Whether the port of this local address has a P_Key that matches the peer's; default: yes. */
  acceptsPkey?(local: Gid, pkey: number): boolean;
}

export interface CmTimer {
  cancel(): void;
}

/** QP attributes that both sides exchange. Depths are the local view: what this side accepts and issues. */
export interface CmQpParameters {
  qpn: number;
  /** WV_QP_TYPE: RC (default) or UC, for which a REQ has neither depths nor retry counts. */
  type?: number;
  responderResources: number;
  initiatorDepth: number;
  retryCount: number;
  rnrRetryCount: number;
  srq: boolean;
}

/** A received REQ in the receiver's view: depths already exchanged (IBA 1 §12.6.5, §12.7.29). */
export interface CmRequest {
  serviceId: bigint;
  /** From the RDMA IP CM header, if the service id has one. */
  localAddress: Gid;
  localPort: number;
  peerAddress: Gid;
  peerPort: number;
  path: CmPath;
  peerQpn: number;
  /** WV_QP_TYPE of the peer's QP: RC (default) or UC. */
  type?: number;
  /** This side's starting PSN for sending. */
  sendPsn: number;
  responderResources: number;
  initiatorDepth: number;
  retryCount: number;
  rnrRetryCount: number;
  /** IB's code: 1 is 256 bytes … 5 is 4096. */
  pathMtu: number;
  localAckTimeout: number;
  pkey: number;
  peerUsesSrq: boolean;
  /** What both ends take beyond the standard: bits of `PeerExtensions`, and `PacketBytes`. 0: the peer is not of this package. */
  peerExtensions?: number;
  /** The consumer's 56 bytes. */
  privateData: Uint8Array;
}

/** A received REP in the receiver's (active side's) view. */
export interface CmReply {
  peerQpn: number;
  sendPsn: number;
  responderResources: number;
  initiatorDepth: number;
  rnrRetryCount: number;
  targetAckDelay: number;
  peerUsesSrq: boolean;
  /** What both ends take beyond the standard: bits of `PeerExtensions`, and `PacketBytes`. 0: the peer is not of this package. */
  peerExtensions?: number;
  /** 196 bytes. */
  privateData: Uint8Array;
}

export interface CmReject {
  reason: number;
  ari: Uint8Array;
  /** 148 bytes. */
  privateData: Uint8Array;
}

/** Events of a connection for its owner. Called from the kernel's event loop, never from inside a call. */
export interface CmEvents {
  /** Active side: the REP has arrived; answer with ready() or reject(). */
  replied?(reply: CmReply): void;
  /** Passive side: RTU, or the QP saw the first packet. */
  established?(): void;
  /** The peer rejected, or (reason 3) no communication id was left for connect(); the connection is over. */
  rejected?(reject: CmReject): void;
  /** The retries of REQ or REP are spent, or accept() came later than any peer waits; the connection is over. */
  timedOut?(): void;
  /**
   * The connection is over: a DREQ arrived (the CM has already answered with a DREP), or a REJ after the RTU, or the
   * peer uses its QP for another connection (stale; the CM sends a DREQ).
   */
  disconnected?(): void;
  /**
   * disconnect() has ended: true on DREP or a crossing DREQ, or if there was nothing left to disconnect; false when the
   * DREQ's retries are spent.
   */
  disconnectCompleted?(answered: boolean): void;
}

export type CmState =
  | 'idle'
  | 'reqSent'
  | 'repReceived'
  | 'mraReqReceived'
  | 'reqReceived'
  | 'repSent'
  | 'mraRepReceived'
  | 'established'
  | 'dreqSent'
  | 'timewait';

export interface CmConnection {
  readonly state: CmState;
  readonly localCommId: number;
  readonly remoteCommId: number;
  /** The PSN that this side announced; the peer starts sending with it (roce-wire §6.5). */
  readonly receivePsn: number;
  events: CmEvents;
  /** Active, after replied(): sends the RTU. The owner has moved its QP to RTS before. */
  ready(privateData?: Uint8Array): void;
  /**
   * Passive, after the request: sends the REP. The owner has moved its QP to RTS before. Depths are limited to the
   * request's offer. Throws RangeError for more than 196 bytes.
   */
  accept(parameters: CmQpParameters, privateData: Uint8Array): void;
  /** Passive before accept(), or active after replied(): REJ 28, or the given reason. At most 148 bytes. */
  reject(privateData: Uint8Array, reason?: number): void;
  /** Established: sends the DREQ. Ends in disconnectCompleted. */
  disconnect(): void;
  /** The QP received a packet before the RTU arrived. */
  communicationEstablished(): void;
  /**
   * Gives the connection up in any state and notifies the peer. REQ sent: REJ 4; REQ or REP received, REP sent: REJ 28;
   * established: DREQ. No event follows.
   */
  abandon(): void;
  /**
   * The DREQ that would end this connection now, for the HCA to send should this kernel die; its bytes are written again
   * afterwards. Undefined: the system disconnects what a process leaves behind.
   */
  will(): { path: CmPath; mad: Uint8Array } | undefined;
}

export interface CmConnectParameters {
  serviceId: bigint;
  path: CmPath;
  localPort: number;
  peerPort: number;
  qp: CmQpParameters;
  /** IB's code: 1 is 256 bytes … 5 is 4096. */
  pathMtu: number;
  /** Bytes of payload of the longest packet that the path carries, a multiple of 8; default: 0, those of the path MTU. */
  packetBytes?: number;
  /** ACK timeout code for the peer's QP. */
  ackTimeoutCode: number;
  privateData: Uint8Array;
}

export interface CmListener {
  /** Requests that the application has not taken yet. */
  readonly waiting: number;
  close(): void;
}

export interface CmListenParameters {
  serviceId: bigint;
  /** Undefined: all addresses. */
  address: Gid | undefined;
  /** Which of all addresses count; default: each. */
  accepts?: (address: Gid) => boolean;
  /** Whether a request with this P_Key is for this listener; default: each that its port accepts. Others are refused. */
  acceptsPkey?: (pkey: number) => boolean;
  /**
   * Maximum of waiting requests; more are refused: REJ 3 (no resources), SIDR 3 (no QP). 0: the limits of
   * `ListenerLimits`, above which requests are dropped, so that peers repeat them.
   */
  backlog: number;
  /**
   * Requests may be taken with takeRequest(): one has arrived, or those that had to wait need not any more. Until it is
   * taken a request counts towards the backlog.
   */
  onRequest(): void;
}

export interface CmListenerControl extends CmListener {
  /**
   * The oldest waiting request of the source whose turn it is. Undefined: there is none, or those that wait have to do
   * so until earlier ones are answered (`HalfOpenLimits`); then onRequest() follows.
   */
  takeRequest(): { connection: CmConnection; request: CmRequest } | undefined;
}

export interface CmCounters {
  [name: string]: number;
}

/** The connection manager. */
export interface ConnectionManager {
  readonly options: CmOptions;
  /**
   * A MAD from QP1, 256 bytes, not trusted. `sender`: the verified slot of the sending process of this host; BY_WIRE
   * (default): it arrived by the wire, and only its source is known.
   */
  receive(source: Gid, destination: Gid, scopeId: number, mad: Uint8Array, sender?: number): void;
  listen(parameters: CmListenParameters): CmListenerControl;
  connect(parameters: CmConnectParameters, events: CmEvents): CmConnection;
  /** Accepts look-ups of a datagram service id; these make no connections. */
  listenForLookups(parameters: CmListenParameters): SidrListener;
  /** Looks up a peer's queue pair behind a service id. Throws RangeError for more than 180 bytes. */
  lookup(parameters: SidrLookupParameters, events: SidrLookupEvents): SidrLookup;
  counters(): CmCounters;
  /** Abandons every connection and closes every listener. */
  close(): void;
}

// ── Service id resolution (SIDR, IBA 1 §12.11): looking up the datagram queue pair behind a service id, and answering ──

/**
 * The state of one exchange on either side. `reqSent` waits for the peer, `reqReceived` for the owner; `answered`
 * stores the answer in case the peer repeats its request; `over` is the end.
 */
export type SidrState = 'idle' | 'reqSent' | 'reqReceived' | 'answered' | 'over';

/** A look-up at a peer. */
export interface SidrLookupParameters {
  serviceId: bigint;
  path: CmPath;
  /** For the RDMA IP CM header. */
  localPort: number;
  /** The partition in which the datagrams will be sent. */
  pkey: number;
  /** At most 180 bytes. */
  privateData: Uint8Array;
}

/** A received SIDR_REP. QPN and Q_Key are valid when `status` is 0 (SidrStatus of `mad-layouts.ts`). */
export interface SidrReply {
  status: number;
  qpn: number;
  qkey: number;
  /** As many bytes as the message's length field says. */
  info: Uint8Array;
  /** 136 bytes. */
  privateData: Uint8Array;
}

/** A look-up ends with exactly one of these, never from inside a call. */
export interface SidrLookupEvents {
  /** The peer has answered. Also called with status 3 (no QP) if no request id was left here. */
  answered?(reply: SidrReply): void;
  /** All retries are spent. */
  timedOut?(): void;
}

export interface SidrLookup {
  readonly state: SidrState;
  readonly requestId: number;
  events: SidrLookupEvents;
  /** Withdraws the look-up. No event follows, nothing is sent. */
  abandon(): void;
}

/** A received SIDR_REQ. */
export interface SidrRequest {
  serviceId: bigint;
  localAddress: Gid;
  localPort: number;
  peerAddress: Gid;
  peerPort: number;
  /** The path back to the peer. */
  path: CmPath;
  pkey: number;
  /** The consumer's 180 bytes. */
  privateData: Uint8Array;
}

/** A received request, for its listener's owner to answer. */
export interface SidrInquiry {
  readonly state: SidrState;
  events: {
    /** The request is over: it was not answered as long as peers wait, or the peer has restarted. */
    timedOut?(): void;
  };
  /** Answers with a queue pair. Throws RangeError for more than 136 bytes. */
  accept(qpn: number, qkey: number, privateData: Uint8Array): void;
  /** Answers with status 2 (rejected), or the given one. At most 136 bytes. */
  reject(privateData: Uint8Array, status?: number): void;
  /** Gives it up: a waiting request is rejected. No event follows. */
  abandon(): void;
}

export interface SidrListener extends CmListener {
  /** The oldest waiting request, or undefined. */
  takeRequest(): { inquiry: SidrInquiry; request: SidrRequest } | undefined;
}
