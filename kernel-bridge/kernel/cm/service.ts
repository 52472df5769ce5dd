/**
 * The border between connection management and its users: what the filter driver asks of the CM, and what the
 * CM needs of the world. Connection states and messages are those of IBA 1 §12.
 */
import type { CmOptions } from '../../options.js';
import type { SidrListener, SidrLookup, SidrLookupEvents, SidrLookupParameters } from './sidr-service.js';

export type * from './sidr-service.js';

/** A 16-byte GID; IPv4 is `::ffff:a.b.c.d`. */
export type Gid = Uint8Array;

export interface CmPath {
  source: Gid;
  destination: Gid;
  flowLabel: number;
  trafficClass: number;
  hopLimit: number;
  scopeId: number;
  /** Of this side; left out: that of the default partition. */
  pkey?: number;
}

/** What the CM stands on: QP1, a clock, randomness, ids. Tests give it their own. */
export interface CmPlatform {
  /** The bytes are written again when it has returned. */
  sendMad(path: CmPath, mad: Uint8Array): void;
  setTimer(milliseconds: number, expired: () => void): CmTimer;
  /** An unused local communication id of this kernel; 0 when all are taken. */
  allocateCommId(): number;
  releaseCommId(id: number): void;
  /** 24 random bits. */
  randomPsn(): number;
  /** The CA GUID that messages from this source address carry. */
  caGuid(source: Gid): bigint;
  /** The largest path MTU (enum 1–5) that the link of this local address carries; left out: 5 (4096 bytes). */
  maxPathMtu?(local: Gid): number;
  /** Whether the port of this local address has a P_Key that fits the peer's; left out: it has. */
  acceptsPkey?(local: Gid, pkey: number): boolean;
}

export interface CmTimer {
  cancel(): void;
}

/** What both sides tell each other about their QP. Depths are the local view: what this side accepts and issues. */
export interface CmQpParameters {
  qpn: number;
  /** WV_QP_TYPE: RC (left out) or UC, of which a REQ says no depths and no counts. */
  type?: number;
  responderResources: number;
  initiatorDepth: number;
  retryCount: number;
  rnrRetryCount: number;
  srq: boolean;
}

/** What a received REQ said, in the receiver's view: depths already exchanged (IBA 1 §12.6.5, §12.7.29). */
export interface CmRequest {
  serviceId: bigint;
  /** From the RDMA IP CM header where the service id has one. */
  localAddress: Gid;
  localPort: number;
  peerAddress: Gid;
  peerPort: number;
  path: CmPath;
  peerQpn: number;
  /** WV_QP_TYPE of the peer's QP: RC (left out) or UC. */
  type?: number;
  /** The PSN with which this side starts sending. */
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
  /** The consumer's 56 bytes. */
  privateData: Uint8Array;
}

/** What a received REP said, in the receiver's (active side's) view. */
export interface CmReply {
  peerQpn: number;
  sendPsn: number;
  responderResources: number;
  initiatorDepth: number;
  rnrRetryCount: number;
  targetAckDelay: number;
  peerUsesSrq: boolean;
  /** 196 bytes. */
  privateData: Uint8Array;
}

export interface CmReject {
  reason: number;
  ari: Uint8Array;
  /** 148 bytes. */
  privateData: Uint8Array;
}

/** How a connection tells its owner what happened. Called from the kernel's event loop, never from inside a call. */
export interface CmEvents {
  /** Active side: the REP has come; answer with ready() or reject(). */
  replied?(reply: CmReply): void;
  /** Passive side: RTU, or the QP saw the first packet. */
  established?(): void;
  /** The peer rejected, or (reason 3) there was no communication id left for connect(); the connection is over. */
  rejected?(reject: CmReject): void;
  /** REQ or REP retries are spent, or accept() came in no time a peer waits; the connection is over. */
  timedOut?(): void;
  /**
   * The connection is over: a DREQ came (already answered with a DREP by the CM), a REJ came after the RTU, or the
   * peer uses its QP for another connection (stale; a DREQ is on its way).
   */
  disconnected?(): void;
  /**
   * disconnect() has ended: true on DREP or a crossing DREQ, or when there was nothing left to disconnect; false
   * when the DREQ's retries were spent.
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
  /** The PSN this side announced: with it the peer starts sending (roce-wire §6.5). */
  readonly receivePsn: number;
  events: CmEvents;
  /** Active, after replied(): sends the RTU. The owner has moved its QP to RTS before. */
  ready(privateData?: Uint8Array): void;
  /**
   * Passive, after the request: sends the REP. The owner has moved its QP to RTS before. Depths above what the
   * request offered are announced as that. Throws RangeError for more than 196 bytes.
   */
  accept(parameters: CmQpParameters, privateData: Uint8Array): void;
  /** Passive before accept(), or active after replied(): REJ 28, or the reason given. At most 148 bytes. */
  reject(privateData: Uint8Array, reason?: number): void;
  /** Established: sends the DREQ. Ends in disconnectCompleted. */
  disconnect(): void;
  /** The QP saw a packet before the RTU came. */
  communicationEstablished(): void;
  /**
   * Gives the connection up in whatever state it is, telling the peer what the state asks for: REQ sent: REJ 4;
   * REQ or REP received, REP sent: REJ 28; established: DREQ. No event follows.
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
  /** ACK timeout code for the peer's QP. */
  ackTimeoutCode: number;
  privateData: Uint8Array;
}

export interface CmListener {
  /** Requests the application has not looked at yet. */
  readonly waiting: number;
  close(): void;
}

export interface CmListenParameters {
  serviceId: bigint;
  /** Undefined: all addresses. */
  address: Gid | undefined;
  /** Of all addresses, those that count; left out: each. */
  accepts?: (address: Gid) => boolean;
  /** Requests kept while nobody takes them; 0: as many as `ListenerLimits` allow. More are refused: REJ 3 (no resources), SIDR 3 (no QP). */
  backlog: number;
  /** A request has come. Take it with takeRequest(); until then it counts towards the backlog. */
  onRequest(): void;
}

export interface CmListenerControl extends CmListener {
  /** The oldest waiting request, or undefined. */
  takeRequest(): { connection: CmConnection; request: CmRequest } | undefined;
}

export interface CmCounters {
  [name: string]: number;
}

/** The connection manager. */
export interface ConnectionManager {
  readonly options: CmOptions;
  /**
   * A MAD from QP1, 256 bytes, not to be trusted. `sender`: the slot of the process of this host that has sent it, which is
   * known to be true; left out, or BY_WIRE: it came by the wire, and its source is all that is known.
   */
  receive(source: Gid, destination: Gid, scopeId: number, mad: Uint8Array, sender?: number): void;
  listen(parameters: CmListenParameters): CmListenerControl;
  connect(parameters: CmConnectParameters, events: CmEvents): CmConnection;
  /** Takes questions for a service id of datagrams: no connections come of them. */
  listenForLookups(parameters: CmListenParameters): SidrListener;
  /** Asks a peer which queue pair is behind a service id. Throws RangeError for more than 180 bytes. */
  lookup(parameters: SidrLookupParameters, events: SidrLookupEvents): SidrLookup;
  counters(): CmCounters;
  /** Abandons every connection and closes every listener. */
  close(): void;
}
