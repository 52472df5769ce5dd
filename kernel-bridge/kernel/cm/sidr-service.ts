/**
 * The interface of service id resolution (SIDR, IBA 1 §12.11): looking up the datagram queue pair behind a peer's
 * service id, and answering such requests. It belongs to the interface in `service.ts`.
 */
import type { CmListener, CmPath, Gid } from './service.js';

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

/** A received SIDR_REP. QPN and Q_Key are valid when `status` is 0 (SidrStatus of `wire.ts`). */
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
