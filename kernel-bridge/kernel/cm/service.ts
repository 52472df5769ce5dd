/**
 * The interface between connection management and its users: the calls of the filter driver, and the platform that the
 * CM needs. Connection states and messages are those of IBA 1 §12.
 */
import type { CmOptions } from '../../option-checks/option-schemas.js';

/**
 * The links of a process, in the low bits of the attribute modifier of its REQ and REP to processes on its host. `free` means that the peer
 * chooses the link. `seen` means that the packets of the process use UDP, or frames, because it captures them or injects faults. `wire` and
 * `local` are required by the option `link` and have no link in common. The bits are trusted only in a message that used the local link.
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
  /** The P_Key of the local port. Default: that of the default partition. */
  pkey?: number;
}

/** The CM's platform: QP1, a clock, random numbers, ids. Tests supply their own. */
export interface CmPlatform {
  /** Sends a MAD; `mad` may be reused after the call. */
  sendMad(path: CmPath, mad: Uint8Array): void;
  setTimer(milliseconds: number, expired: () => void): CmTimer;
  /** An unused local communication id of this kernel; 0 if all are in use. */
  allocateCommId(): number;
  releaseCommId(id: number): void;
  /** 24 random bits. */
  randomPsn(): number;
  /** The CA GUID for messages from this source address. */
  caGuid(source: Gid): bigint;
  /** The largest path MTU (enum 1–5) on the link of this local address. Default: 5 (4096 bytes). */
  maxPathMtu?(local: Gid): number;
  /** Payload of the longest packet on the link of this local address, in bytes. Default: 0, no more than the path MTU. */
  maxPacketBytes?(local: Gid): number;
  /** Whether the HCA supports the standard only, so that no extensions are negotiated. Default: false. */
  readonly standardOnly?: boolean;
  /** The links of this side to announce in REQ and REP to this address ({@link HostLink}); default: none. */
  hostLink?(destination: Gid): number;
  /**
   * Called for a REQ or REP from this sender (a slot, or `BY_WIRE`) with the links that its process has announced.
   * Returns false if it has none in common with this process; the request is then refused.
   */
  acceptsLink?(sender: number, said: number): boolean;
  /** Called when a peer has refused because of an option of this side. */
  onLinkRefused?(destination: Gid): void;
  /** Called when a REQ from this host was refused because no process of this version listens there. */
  onNoListener?(serviceId: bigint, local: Gid): void;
  /** Whether the port of this local address has a P_Key that matches the peer's; default: true. */
  acceptsPkey?(local: Gid, pkey: number): boolean;
}

export interface CmTimer {
  cancel(): void;
}

/** QP attributes exchanged by both sides. Depths are those of the local side: what it serves and issues. */
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

/** A received REQ from the receiver's point of view, with the depths already exchanged (IBA 1 §12.6.5, §12.7.29). */
export interface CmRequest {
  serviceId: bigint;
  /** The address in the RDMA IP CM header, if the service id has one. */
  localAddress: Gid;
  localPort: number;
  peerAddress: Gid;
  peerPort: number;
  path: CmPath;
  peerQpn: number;
  /** WV_QP_TYPE of the peer's QP: RC (default) or UC. */
  type?: number;
  /** The local starting PSN for sending. */
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
  /** Extensions beyond the standard that both peers support: bits of `PeerExtensions`, and `PacketBytes`. 0: another implementation. */
  peerExtensions?: number;
  /** The consumer's 56 bytes of private data. */
  privateData: Uint8Array;
}

/** A received REP from the point of view of the active side. */
export interface CmReply {
  peerQpn: number;
  sendPsn: number;
  responderResources: number;
  initiatorDepth: number;
  rnrRetryCount: number;
  targetAckDelay: number;
  peerUsesSrq: boolean;
  /** Extensions beyond the standard that both peers support: bits of `PeerExtensions`, and `PacketBytes`. 0: another implementation. */
  peerExtensions?: number;
  /** 196 bytes of private data. */
  privateData: Uint8Array;
}

export interface CmReject {
  reason: number;
  ari: Uint8Array;
  /** 148 bytes of private data. */
  privateData: Uint8Array;
}

/** Events of a connection for its owner. They are reported from the kernel's event loop, never from within a call. */
export interface CmEvents {
  /** Active side: the REP has arrived. Respond with ready() or reject(). */
  replied?(reply: CmReply): void;
  /** Passive side: the RTU has arrived, or the QP has received the first packet. */
  established?(): void;
  /** The peer rejected the connection, or (reason 3) no communication id was available for connect(). The connection has ended. */
  rejected?(reject: CmReject): void;
  /**
   * The retries of REQ or REP are exhausted, or accept() was called after every peer has given up; the connection has
   * ended. With a status: it could not be established for that reason.
   */
  timedOut?(status?: number): void;
  /**
   * The connection has ended: a DREQ arrived (the CM has already replied with a DREP), or a REJ after the RTU, or the
   * peer uses its QP for another connection (stale; the CM sends a DREQ).
   */
  disconnected?(): void;
  /**
   * disconnect() has completed. True: on DREP or a crossing DREQ, or if there was nothing to disconnect. False: the
   * DREQ's retries are exhausted.
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
  /** The PSN announced by this side, the first that the peer sends (roce-wire §6.5). */
  readonly receivePsn: number;
  events: CmEvents;
  /** Active side, after replied(): sends the RTU. The owner must have moved its QP to RTS. */
  ready(privateData?: Uint8Array): void;
  /**
   * Passive side, after the request: sends the REP. The owner must have moved its QP to RTS. Depths are limited to the
   * request's offer. Throws RangeError for more than 196 bytes of private data.
   */
  accept(parameters: CmQpParameters, privateData: Uint8Array): void;
  /** Passive side before accept(), or active side after replied(): sends REJ 28, or the given reason. At most 148 bytes. */
  reject(privateData: Uint8Array, reason?: number): void;
  /** In an established connection: sends the DREQ. Completes with disconnectCompleted. */
  disconnect(): void;
  /** Called when the QP received a packet before the RTU. */
  communicationEstablished(): void;
  /**
   * Gives up the connection in any state and notifies the peer: with REJ 4 when the REQ is sent, with REJ 28 when the REQ
   * or REP is received or the REP is sent, and with a DREQ when it is established. No event follows.
   */
  abandon(): void;
  /**
   * The DREQ that would end this connection now, for the HCA to send if this kernel dies. Its bytes are overwritten
   * later. Undefined: the OS disconnects the connections of a process that ends.
   */
  dreqOnExit(): { path: CmPath; mad: Uint8Array } | undefined;
}

export interface CmConnectParameters {
  serviceId: bigint;
  path: CmPath;
  localPort: number;
  peerPort: number;
  qp: CmQpParameters;
  /** IB's code: 1 is 256 bytes … 5 is 4096. */
  pathMtu: number;
  /** Payload of the longest packet on the path, in bytes, a multiple of 8. Default: 0, that of the path MTU. */
  packetBytes?: number;
  /** ACK timeout code for the peer's QP. */
  ackTimeoutCode: number;
  privateData: Uint8Array;
}

export interface CmListener {
  /** Number of requests that the application has not accepted yet. */
  readonly waiting: number;
  close(): void;
}

export interface CmListenParameters {
  serviceId: bigint;
  /** The local address, or undefined for all addresses. */
  address: Gid | undefined;
  /** Filter for a listener on all addresses. Default: accepts each. */
  accepts?: (address: Gid) => boolean;
  /** Whether the listener accepts a request with this P_Key. Default: each that its port accepts. Others are refused. */
  acceptsPkey?: (pkey: number) => boolean;
  /**
   * Maximum number of waiting requests. More are refused with REJ 3 (no resources) or SIDR 3 (no QP). With 0 the limits of
   * `ListenerLimits` apply, above which requests are dropped, so that peers repeat them.
   */
  backlog: number;
  /**
   * Called when requests may be taken with takeRequest(): one has arrived, or those that had to wait may be taken now.
   * A request counts towards the backlog until it is taken.
   */
  onRequest(): void;
}

export interface CmListenerControl extends CmListener {
  /**
   * The oldest waiting request of the source whose turn it is. Undefined: no request is waiting, or the waiting ones have to wait until
   * peers reply to earlier ones (`HalfOpenLimits`); onRequest() is called after that.
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
   * Handles a MAD from QP1, 256 bytes, untrusted. `sender`: the verified slot of the sending process on this host;
   * BY_WIRE (default): it arrived over UDP, and only its source is known.
   */
  receive(source: Gid, destination: Gid, scopeId: number, mad: Uint8Array, sender?: number): void;
  listen(parameters: CmListenParameters): CmListenerControl;
  connect(parameters: CmConnectParameters, events: CmEvents): CmConnection;
  /** Accepts lookups of a datagram service id, which create no connections. */
  listenForLookups(parameters: CmListenParameters): SidrListener;
  /** Looks up a peer's queue pair for a service id. Throws RangeError for more than 180 bytes. */
  lookup(parameters: SidrLookupParameters, events: SidrLookupEvents): SidrLookup;
  counters(): CmCounters;
  /** Abandons every connection and closes every listener. */
  close(): void;
}

// ── Service id resolution (SIDR, IBA 1 §12.11): looking up the datagram queue pair of a service id, and replying ──

/**
 * The state of one exchange on either side. `reqSent` waits for the peer, `reqReceived` for the owner; `answered` keeps
 * the reply in case the peer repeats its request; `over` is final.
 */
export type SidrState = 'idle' | 'reqSent' | 'reqReceived' | 'answered' | 'over';

/** A lookup at a peer. */
export interface SidrLookupParameters {
  serviceId: bigint;
  path: CmPath;
  /** The port in the RDMA IP CM header. */
  localPort: number;
  /** The partition of the datagrams. */
  pkey: number;
  /** At most 180 bytes. */
  privateData: Uint8Array;
}

/** A received SIDR_REP. QPN and Q_Key are valid if `status` is 0 (SidrStatus of `mad-layouts.ts`). */
export interface SidrReply {
  status: number;
  qpn: number;
  qkey: number;
  /** As many bytes as specified by the message's length field. */
  info: Uint8Array;
  /** 136 bytes. */
  privateData: Uint8Array;
}

/** Events of a lookup, which ends with exactly one of them. They are never reported from within a call. */
export interface SidrLookupEvents {
  /** The peer has replied. Also called with status 3 (no QP) if no request id was available here. */
  answered?(reply: SidrReply): void;
  /** All retries are exhausted. With a status: the peer could not be asked for that reason. */
  timedOut?(status?: number): void;
}

export interface SidrLookup {
  readonly state: SidrState;
  readonly requestId: number;
  events: SidrLookupEvents;
  /** Withdraws the lookup. No event follows, and nothing is sent. */
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

/** A received request that the listener's owner has to reply to. */
export interface SidrInquiry {
  readonly state: SidrState;
  events: {
    /** The request has ended: it was not replied to before peers give up, or the peer has restarted. */
    timedOut?(): void;
  };
  /** Replies with a queue pair. Throws RangeError for more than 136 bytes. */
  accept(qpn: number, qkey: number, privateData: Uint8Array): void;
  /** Replies with status 2 (rejected), or the given one. At most 136 bytes. */
  reject(privateData: Uint8Array, status?: number): void;
  /** Gives up the request: if it is waiting, it is rejected. No event follows. */
  abandon(): void;
}

export interface SidrListener extends CmListener {
  /** The oldest waiting request, or undefined. */
  takeRequest(): { inquiry: SidrInquiry; request: SidrRequest } | undefined;
}
