/** Parameters of the HCA's commands: options, limits, attributes of objects and the masks that name them. */
import type { SoftHca } from './binding.js';

/** Where packets go, and how. GIDs are 16 bytes. */
export interface PathParameters {
  source: Uint8Array;
  destination: Uint8Array;
  flowLabel: number;
  trafficClass: number;
  hopLimit: number;
  /**
   * Index of the interface, for IPv6 link-local destinations and for multicast groups; 0 for all others. An address
   * handle for a group derives it from its source if it is 0.
   */
  scopeId: number;
}

/**
 * `EngineOptions` and `HostOptions` of engine/. The first kernel of an isolate decides on all of them; faults and capture
 * that a later one asks for hold for the isolate's HCA from then on, and what it leaves out stays.
 * {@link SoftHca.configure} sets both.
 */
export interface HcaOptions {
  keepAliveMs: number;
  /** {@link RnrPatience} */
  rnrPatienceMs: number;
  ecn: boolean;
  window: number;
  longWindowBytes: number;
  /** The link for connections to processes of this host: `auto`, the local link where possible; `wire`. */
  link: 'auto' | 'wire';
  /**
   * How the ICRC of IPv4 packets is checked: `solved`, by solving for the ID; `exact`, by a raw socket (CAP_NET_RAW).
   */
  icrc: 'solved' | 'exact';
  /** Peers of this user access memory of `allocate()` themselves. */
  direct: boolean;
  /** Allows every process of this user to read this one's memory. */
  allowPtrace: boolean;
  capturePath: string;
  receiveBufferBytes: number;
  faults: {
    seed: number;
    drop: number;
    duplicate: number;
    reorder: number;
    corrupt: number;
    dropMads: Record<number, number>;
  };
}

export interface QpCreateParameters {
  pd: number;
  sendCq: number;
  receiveCq: number;
  srq: number;
  /** The P_Key table of the QP's `pkeyIndex`; 0: a table with 0xffff only. */
  pkeyTable: number;
  /** 0 RC, 1 UC, 3 UD (WV_QP_TYPE). */
  type: number;
  signalAll: boolean;
  ringAddress: number;
  ringBytes: number;
  sendEntries: number;
  sendStride: number;
  sendSge: number;
  maxInline: number;
  receiveEntries: number;
  receiveStride: number;
  receiveSge: number;
  token: number;
}

export interface SrqCreateParameters {
  pd: number;
  ringAddress: number;
  ringBytes: number;
  /** A power of two. */
  entries: number;
  /** Bytes of a WQE. */
  stride: number;
  sge: number;
}

/** Bits of {@link SrqAttributeValues} that a modify carries; `srqmask` of engine/objects/attributes.h. */
export const SrqMask = { entries: 1, limit: 2 } as const;

export interface SrqAttributeValues {
  /** Requires the new ring; nothing may be posted meanwhile. */
  entries: number;
  ringAddress: number;
  ringBytes: number;
  /** The limit event is reported once, when fewer WQEs are left; 0 requests none. */
  limit: number;
}

/** Bits of {@link QpAttributeValues} that a modify carries; `qpmask` of engine/objects/attributes.h. */
export const QpMask = {
  state: 1,
  access: 2,
  pkeyIndex: 4,
  port: 8,
  qkey: 0x10,
  path: 0x20,
  pathMtu: 0x40,
  destinationQpn: 0x80,
  receivePsn: 0x100,
  responderResources: 0x200,
  minRnrTimer: 0x400,
  ackTimeout: 0x800,
  retryCount: 0x1000,
  rnrRetry: 0x2000,
  sendPsn: 0x4000,
  initiatorDepth: 0x8000,
  currentState: 0x10000,
  drainNotify: 0x20000,
  patience: 0x40000,
  extensions: 0x80000,
} as const;

/** For whom RNR is a matter of time: bits of {@link QpAttributeValues.patience}; `rnrpatience` of engine/objects/attributes.h. */
export const RnrPatience = { responder: 1, requester: 2 } as const;

/** What a peer takes beyond the standard: bits of {@link QpAttributeValues.extensions}; `extensions` of engine/objects/attributes.h. */
export const PeerExtensions = { longWindow: 1, recovery: 2, fragments: 4 } as const;
/** What every process of this package takes. */
export const ALL_PEER_EXTENSIONS = Object.values(PeerExtensions).reduce((all, one) => all | one, 0);

/** Attributes of a queue pair (IBA 1 §11.2.5.2); MTUs in bytes, timeouts as codes. */
export interface QpAttributeValues {
  state: number;
  currentState: number;
  type: number;
  qpn: number;
  access: number;
  pkeyIndex: number;
  port: number;
  /**
   * UD. One with the high bit set is controlled: QP1 has one, and only the kernel may give it to a QP (IBA 1 §10.2.5).
   */
  qkey: number;
  path: PathParameters;
  pathMtu: number;
  destinationQpn: number;
  receivePsn: number;
  sendPsn: number;
  responderResources: number;
  initiatorDepth: number;
  minRnrTimer: number;
  ackTimeout: number;
  retryCount: number;
  rnrRetry: number;
  /** RnrPatience bits; without a bit the respective number above applies as it is. */
  patience: number;
  /** PeerExtensions bits. */
  extensions: number;
}

/** The attributes of a connected queue pair. */
export type ConnectAttributes = Omit<QpAttributeValues, 'state' | 'currentState' | 'type' | 'qpn' | 'qkey'>;

/** QpMask bits of each step of connecting; the state itself may be omitted. */
export interface ConnectSteps {
  readonly init: number;
  readonly rtr: number;
  readonly rts: number;
}

export interface HcaLimits {
  maxQp: number;
  maxCq: number;
  maxPd: number;
  maxMr: number;
  maxMw: number;
  maxSrq: number;
  maxSrqWr: number;
  maxSrqSge: number;
  maxQpWr: number;
  maxSge: number;
  maxCqEntries: number;
  maxInline: number;
  maxReadDepth: number;
  maxMrSize: number;
  /** Address handles. */
  maxAh: number;
  /** Multicast groups, counted for each interface. */
  maxGroups: number;
  /** QPs that are attached to one group. */
  maxGroupQps: number;
  /** Attachments of all groups and QPs. */
  maxAttached: number;
  /** Entries of a P_Key table. */
  maxPkeys: number;
}
