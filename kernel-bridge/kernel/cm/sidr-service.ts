/**
 * The border of service id resolution (SIDR, IBA 1 §12.11): asking a peer for the datagram queue pair behind a service
 * id, and answering such questions. Part of the border in `service.ts`.
 */
import type { CmListener, CmPath, Gid } from './service.js';

/**
 * Of one exchange, asked or answered. `reqSent` waits for the peer, `reqReceived` for the owner; `answered` keeps the
 * answer for a peer that has not got it; `over` is the end.
 */
export type SidrState = 'idle' | 'reqSent' | 'reqReceived' | 'answered' | 'over';

/** A question to a peer. */
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

/** What a SIDR_REP said. QPN and Q_Key count when `status` is 0 (SidrStatus of `wire.ts`). */
export interface SidrReply {
  status: number;
  qpn: number;
  qkey: number;
  /** As many bytes as the message says. */
  info: Uint8Array;
  /** 136 bytes. */
  privateData: Uint8Array;
}

/** How a question ends: one of these, once, never from inside a call. */
export interface SidrLookupEvents {
  /** The peer has answered; also with status 3 (no QP) when no request id was left here. */
  answered?(reply: SidrReply): void;
  /** All retries are spent. */
  timedOut?(): void;
}

export interface SidrLookup {
  readonly state: SidrState;
  readonly requestId: number;
  events: SidrLookupEvents;
  /** The answer is not wanted any more. No event follows, nothing is sent. */
  abandon(): void;
}

/** What a SIDR_REQ said. */
export interface SidrRequest {
  serviceId: bigint;
  localAddress: Gid;
  localPort: number;
  peerAddress: Gid;
  peerPort: number;
  /** Back to the peer. */
  path: CmPath;
  pkey: number;
  /** The consumer's 180 bytes. */
  privateData: Uint8Array;
}

/** A request that was received, in the hands of the one who answers it. */
export interface SidrInquiry {
  readonly state: SidrState;
  events: {
    /** The request is none any more: no answer in the time that peers wait, or the peer has started anew. */
    timedOut?(): void;
  };
  /** Answers with a queue pair. Throws RangeError for more than 136 bytes. */
  accept(qpn: number, qkey: number, privateData: Uint8Array): void;
  /** Answers with status 2 (rejected), or the one given. At most 136 bytes. */
  reject(privateData: Uint8Array, status?: number): void;
  /** Gives it up: a request that waits is rejected. No event follows. */
  abandon(): void;
}

export interface SidrListener extends CmListener {
  /** The oldest waiting request, or undefined. */
  takeRequest(): { inquiry: SidrInquiry; request: SidrRequest } | undefined;
}
