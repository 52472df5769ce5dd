/**
 * The commands and events of an HCA, called by the HCA driver (`kernel/hca-driver/`) on the kernel's thread only. This
 * is the part of an HCA's kernel side implemented by native code; the rest is `HcaBackend` in
 * `kernel/hca-driver/backend.ts`. The user side is {@link UserHca} in `user-hca.ts`. Each command is short and returns
 * a status; none blocks. Commands that destroy an object return DEVICE_BUSY while it is in use. Closing destroys the
 * kernel's remaining objects.
 *
 * Handles belong to an HCA: two HCAs may use the same numbers. Rings are memory of {@link UserHca.allocateRing}, in the
 * layout of `schema/ring.ts`, for every HCA.
 */
import type {
  HcaLimits,
  PathParameters,
  QpAttributeValues,
  QpCreateParameters,
  SrqAttributeValues,
  SrqCreateParameters,
} from '../schema/generated/attributes.js';
import type { HcaEvent } from '../schema/generated/events.js';
import type { ConnectAttributes, ConnectSteps } from './hca-parameters.js';
import type { NativeChannelServer } from './request-channel-binding.js';

/** Records of numbers, one after the other, in the order of `schema/statistics.ts`. */
export interface NativeStatistics {
  readonly queuePairs: Float64Array;
  /** GIDs of the queue pairs: 16 local bytes, 16 bytes of the peer. */
  readonly addresses: Uint8Array;
  readonly memory: Float64Array;
  readonly sharedReceived: number;
}

/** Native completion of requests that wait for CQ events, without the kernel's thread. */
export interface CqWaiters {
  /**
   * Lets the HCA complete a pended request on the CQ's event (type 0 errors, 1 any, 2 solicited) with SUCCESS, or with
   * BUFFER_OVERFLOW on a CQ overrun. A `notified` event follows for the bookkeeping.
   */
  addCqWaiter(cq: number, type: number, server: NativeChannelServer, slot: number, serial: number): number;
  removeCqWaiter(cq: number, slot: number, serial: number): number;
  /**
   * After {@link addCqWaiter}, similar requests of that channel go to the HCA without the kernel. This call ends that;
   * pending requests complete with `status`.
   */
  endCqEvents(cq: number, status: number): void;
}

/**
 * UDP port 4791 in a process: `never` opened because of the option `link: 'local'`, `unused` because not needed yet,
 * `open`, or `held` by another process, user or driver, to which it may have been given up.
 */
export type WireState = 'never' | 'unused' | 'open' | 'held';

/** Commands and attributes that every HCA has. */
export interface HcaCommands {
  /** The state of the UDP port. Absent: the HCA has no UDP port. */
  readonly wire?: WireState;
  /** Limits of every device of this HCA. Ring sizes are powers of two; depths are the largest that the hardware supports. */
  readonly limits: HcaLimits;
  /**
   * The next event, or undefined; `onEvent` is called once after this method has returned undefined. Without
   * `alsoStrangers`, MADs from unknown peers are kept, and the caller must call again.
   */
  takeEvent(alsoStrangers?: boolean): HcaEvent | undefined;

  allocatePd(): { status: number; pd: number };
  deallocatePd(pd: number): number;
  registerMr(
    pd: number,
    address: number,
    length: number,
    access: number,
  ): { status: number; lkey: number; rkey: number };
  /**
   * Allocates a region for FAST_REGISTER requests, which assign it memory of at most `length` bytes and change the low
   * byte of its key. Absent: not supported by the HCA.
   */
  allocateMr?(pd: number, length: number): { status: number; lkey: number };
  deregisterMr(pd: number, lkey: number): number;
  allocateMw(pd: number): { status: number; mw: number; rkey: number };
  deallocateMw(mw: number): number;
  createCq(ringAddress: number, ringBytes: number, entries: number): { status: number; cq: number };
  resizeCq(cq: number, ringAddress: number, ringBytes: number, entries: number): number;
  destroyCq(cq: number): number;
  createSrq(parameters: SrqCreateParameters): { status: number; srq: number };
  /** Modifies a shared receive queue. BUFFER_OVERFLOW: the posted WQEs do not fit into the new ring. */
  modifySrq(srq: number, mask: number, attributes: Partial<SrqAttributeValues>): number;
  querySrq(srq: number): { status: number; entries: number; limit: number; sge: number };
  destroySrq(srq: number): number;
  createQp(parameters: QpCreateParameters): { status: number; qp: number; qpn: number };
  /** Modifies a queue pair. After a change to ERROR or RESET, posted requests have been flushed or discarded when this returns. */
  modifyQp(qp: number, mask: number, attributes: Partial<QpAttributeValues>): number;
  /** {@link modifyQp} from RESET or INIT through INIT and RTR to RTS; stops at the first step that fails, with its status. */
  connectQp(qp: number, steps: ConnectSteps, attributes: ConnectAttributes): number;
  queryQp(qp: number): { status: number; attributes: QpAttributeValues };
  /** The `state` of {@link queryQp} without the rest; -1 if there is no such queue pair. */
  queryQpState(qp: number): number;
  destroyQp(qp: number): number;
  /**
   * Passes a MAD to the HCA, which sends it if this kernel dies while the queue pair is connected. Absent: not needed,
   * because the OS ends the HCA's connections (`CmConnection.dreqOnExit`).
   */
  setDreqOnExit?(qp: number, path: PathParameters, mad: Uint8Array): number;

  /**
   * Creates an address handle, the destination of UD sends. A send WQE contains the handle (`swAh` of `abi`) with the
   * destination's QPN (`swRemoteQpn`, 0xffffff for a group) and Q_Key (`swRemoteQkey`; with the high bit set, the QP's
   * own Q_Key is used). A WQE with a handle of another PD, or without one, completes with LOCAL_OP_ERROR, and one
   * longer than `pathMtu` with LOCAL_LENGTH_ERROR; the QP is then in SQ_ERROR.
   *
   * @param path - `destination` may be a multicast group: IPv4's `::ffff:224.0.0.0/100`, IPv6's `ff00::/8`.
   * @param pathMtu - Maximum size of a datagram in bytes: a power of two, 256 … 4096.
   * @returns SUCCESS, INVALID_HANDLE (PD), INVALID_PARAMETER (MTU, a path's field), INVALID_ADDRESS (families differ,
   * no address to send from or to, no interface to a group), INSUFFICIENT_RESOURCES (`limits.maxAh`).
   */
  createAh(pd: number, path: PathParameters, pathMtu: number): { status: number; ah: number };
  /** Destroys an address handle. Posted sends that have not been executed fail. INVALID_HANDLE: unknown handle. */
  destroyAh(ah: number): number;
  /**
   * Attaches a UD QP to a group on one interface. The interface joins the group (IGMP, MLD) with the first QP of this
   * HCA and leaves it with the last; destroying a QP detaches it. A QP also receives the datagrams that it sends
   * itself.
   *
   * @param group - 16 bytes: `::ffff:` and an IPv4 multicast address, or an IPv6 one.
   * @param interfaceIndex - As {@link NativeInterface.index}.
   * @returns SUCCESS, INVALID_HANDLE, INVALID_DEVICE_REQUEST (not a UD QP), INVALID_ADDRESS (not a multicast group),
   * INVALID_PARAMETER (invalid index), INVALID_DEVICE_STATE (already attached), NETWORK_UNREACHABLE (no such
   * interface), INSUFFICIENT_RESOURCES (`limits.maxGroups`, `maxGroupQps`, `maxAttached`, or the host allows no more
   * groups: `net.ipv4.igmp_max_memberships`).
   */
  attachMulticast(qp: number, group: Uint8Array, interfaceIndex: number): number;
  /** Reverses {@link attachMulticast}. INVALID_HANDLE: no such QP. INVALID_PARAMETER: it is not attached to this group. */
  detachMulticast(qp: number, group: Uint8Array, interfaceIndex: number): number;

  /**
   * Makes the HCA report every event of a CQ as a `cq` event for the rest of its life, besides completing requests. An
   * unreported earlier event follows immediately. INVALID_HANDLE.
   */
  listenCq(cq: number): number;
  /** Requests an event for the next completion (see HcaCommands::armCq). INVALID_HANDLE, BUFFER_OVERFLOW (the CQ has overrun). */
  armCq(cq: number, solicitedOnly: boolean): number;

  /** Counters of engine and host by name, and the number of live objects by kind. */
  counters(): Record<string, number>;
  objectCounts(): Record<'pd' | 'mr' | 'mw' | 'cq' | 'qp' | 'srq' | 'ring' | 'range', number> & {
    ah?: number;
    pkeyTable?: number;
  };
  /** Statistics of queue pairs and registrations, at most `most` of each; undefined after the HCA has ended. Absent: not supported. */
  statistics?(most: number): NativeStatistics | undefined;
  close(): void;
}

/** The commands of an HCA. Without {@link CqWaiters} requests wait in the driver, which completes them on `cq` events. */
export interface NativeHca extends HcaCommands, Partial<CqWaiters> {}
