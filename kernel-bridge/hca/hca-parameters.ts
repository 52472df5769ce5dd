/** Parameters of the HCA's commands: options, limits, attributes of objects and the masks that name them. */
import { PeerExtensions, type RnrPatience } from '../schema/generated/numbers.js';
import type { SoftHca } from './binding.js';

/** Where packets go, and how. GIDs are 16 bytes. */
export interface PathParameters {
  /** The GID of this side, one of the port's table. */
  source: Uint8Array;
  /** The GID of the peer or the group. */
  destination: Uint8Array;
  /** The flow label of IPv6 headers, 20 bits; 0 leaves it to the operating system. */
  flowLabel: number;
  /** IPv4's TOS or IPv6's traffic class, 8 bits. */
  trafficClass: number;
  /** IPv4's TTL or IPv6's hop limit, 8 bits; 0: 64. */
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
  /** {@link QpAttributeValues.state} */
  state: 1,
  /** {@link QpAttributeValues.access} */
  access: 2,
  /** {@link QpAttributeValues.pkeyIndex} */
  pkeyIndex: 4,
  /** {@link QpAttributeValues.port} */
  port: 8,
  /** {@link QpAttributeValues.qkey} */
  qkey: 0x10,
  /** {@link QpAttributeValues.path} */
  path: 0x20,
  /** {@link QpAttributeValues.pathMtu} */
  pathMtu: 0x40,
  /** {@link QpAttributeValues.destinationQpn} */
  destinationQpn: 0x80,
  /** {@link QpAttributeValues.receivePsn} */
  receivePsn: 0x100,
  /** {@link QpAttributeValues.responderResources} */
  responderResources: 0x200,
  /** {@link QpAttributeValues.minRnrTimer} */
  minRnrTimer: 0x400,
  /** {@link QpAttributeValues.ackTimeout} */
  ackTimeout: 0x800,
  /** {@link QpAttributeValues.retryCount} */
  retryCount: 0x1000,
  /** {@link QpAttributeValues.rnrRetry} */
  rnrRetry: 0x2000,
  /** {@link QpAttributeValues.sendPsn} */
  sendPsn: 0x4000,
  /** {@link QpAttributeValues.initiatorDepth} */
  initiatorDepth: 0x8000,
  /** {@link QpAttributeValues.currentState} */
  currentState: 0x10000,
  /** With the state SQD: the event `sendQueueDrained` is asked for. */
  drainNotify: 0x20000,
  /** {@link QpAttributeValues.patience} */
  patience: 0x40000,
  /** {@link QpAttributeValues.extensions} */
  extensions: 0x80000,
} as const;

/** All {@link PeerExtensions} that this version accepts. */
export const ALL_PEER_EXTENSIONS = Object.values(PeerExtensions).reduce((all, one) => all | one, 0);

/** Attributes of a queue pair (IBA 1 §11.2.5.2); MTUs in bytes, timeouts as codes. */
export interface QpAttributeValues {
  /** WV_QP_STATE that is reached or to be reached. */
  state: number;
  /** WV_QP_STATE that the caller assumes; the modify fails in another. */
  currentState: number;
  /** WV_QP_TYPE, as created. */
  type: number;
  /** The queue pair's number on the wire, 24 bits. */
  qpn: number;
  /** WV_ACCESS_* values below 0x100: what the peer may do. */
  access: number;
  /** The place of the P_Key in the port's table. */
  pkeyIndex: number;
  /** The port of this side; each device has port 1. */
  port: number;
  /**
   * UD. One with the high bit set is controlled: QP1 has one, and only the kernel may give it to a QP (IBA 1 §10.2.5).
   */
  qkey: number;
  /** Where packets go; of connected queue pairs. */
  path: PathParameters;
  /** Bytes of payload of a full packet: 256, 512, 1024, 2048 or 4096. */
  pathMtu: number;
  /** The peer's queue pair number, 24 bits. */
  destinationQpn: number;
  /** The number of the first packet that is expected, 24 bits. */
  receivePsn: number;
  /** The number of the first packet that is sent, 24 bits. */
  sendPsn: number;
  /** RDMA reads and atomics of the peer that are served at a time. */
  responderResources: number;
  /** RDMA reads and atomics of this side that may be outstanding. */
  initiatorDepth: number;
  /** How long the peer is told to wait for a receive: a code of 5 bits (IBA 1 §9.7.5.2.8). */
  minRnrTimer: number;
  /** How long to wait for an acknowledgement, 5 bits: 4.096 µs × 2^code; 0 is infinite. */
  ackTimeout: number;
  /** Repetitions without an acknowledgement, 0 to 7. */
  retryCount: number;
  /** Repetitions when the peer has no receive, 0 to 6; 7: without end. */
  rnrRetry: number;
  /** RnrPatience bits; without a bit the respective number above applies as it is. */
  patience: number;
  /** PeerExtensions bits; in the upper half the bytes of payload of a full packet, or 0: those of the path MTU. */
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
  /** SGEs of an RDMA read. */
  maxReadSge: number;
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
