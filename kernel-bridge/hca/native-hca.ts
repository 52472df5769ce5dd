/**
 * The commands and events of an HCA: what the HCA driver (`kernel/hca-driver/`) calls, on the kernel's thread only. The part of
 * the seam that native code has; the rest of the kernel side is `HcaBackend` in `kernel/hca-driver/backend.ts`, the user side
 * {@link UserHca} in `user-hca.ts`. Each command is short and answers a status; none blocks. Destroys answer DEVICE_BUSY while the
 * object is in use. Closing destroys what the kernel still owns.
 *
 * Handles are the HCA's own: two HCAs may use the same numbers. Rings are memory of {@link UserHca.allocateRing}, in the layout of
 * `schema/ring.ts`, whatever executes the work requests.
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
  /** GIDs of the queue pairs: 16 bytes of this side, 16 of the peer. */
  readonly addresses: Uint8Array;
  readonly memory: Float64Array;
  readonly sharedReceived: number;
}

/** How an HCA completes requests that wait for CQ events by itself, without the kernel's thread. */
export interface CqWaiters {
  /**
   * Lets the HCA complete a pended request when the CQ's event comes (type 0 errors, 1 any, 2 solicited): SUCCESS,
   * BUFFER_OVERFLOW on a CQ overrun. A `notified` event follows for the bookkeeping.
   */
  addCqWaiter(cq: number, type: number, server: NativeChannelServer, slot: number, serial: number): number;
  removeCqWaiter(cq: number, slot: number, serial: number): number;
  /**
   * After {@link addCqWaiter}, requests of that channel like the one in the slot go to the HCA without the kernel, until
   * this takes it back; those that wait end in `status`.
   */
  endCqEvents(cq: number, status: number): void;
}

/**
 * UDP port 4791 in a process: `never` opened, by the option `link: 'local'`; `unused`, because nothing has needed it yet; `open`; `held` by
 * another process, user or driver, or given up to one.
 */
export type WireState = 'never' | 'unused' | 'open' | 'held';

/** What every HCA has. */
export interface HcaCommands {
  /** Missing: the HCA has no UDP port. */
  readonly wire?: WireState;
  /** Of each of its devices. Rings have powers of two: depths are the largest ones that the hardware takes. */
  readonly limits: HcaLimits;
  /**
   * The next event, or undefined; `onEvent` is called after it has answered undefined once. Without `alsoStrangers` the MADs of
   * strangers stay where they are, and the caller asks again.
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
   * A region for FAST_REGISTER requests, which give it memory of at most `length` bytes and its key another low byte. Missing: the
   * HCA has none.
   */
  allocateMr?(pd: number, length: number): { status: number; lkey: number };
  deregisterMr(pd: number, lkey: number): number;
  allocateMw(pd: number): { status: number; mw: number; rkey: number };
  deallocateMw(mw: number): number;
  createCq(ringAddress: number, ringBytes: number, entries: number): { status: number; cq: number };
  resizeCq(cq: number, ringAddress: number, ringBytes: number, entries: number): number;
  destroyCq(cq: number): number;
  createSrq(parameters: SrqCreateParameters): { status: number; srq: number };
  /** BUFFER_OVERFLOW: the WQEs that wait do not fit into the new ring. */
  modifySrq(srq: number, mask: number, attributes: Partial<SrqAttributeValues>): number;
  querySrq(srq: number): { status: number; entries: number; limit: number; sge: number };
  destroySrq(srq: number): number;
  createQp(parameters: QpCreateParameters): { status: number; qp: number; qpn: number };
  /** To ERROR and RESET: what was posted has been flushed, or is gone, when this returns. */
  modifyQp(qp: number, mask: number, attributes: Partial<QpAttributeValues>): number;
  /** {@link modifyQp} from RESET or INIT by INIT and RTR to RTS; ends at the first step that fails, with its status. */
  connectQp(qp: number, steps: ConnectSteps, attributes: ConnectAttributes): number;
  queryQp(qp: number): { status: number; attributes: QpAttributeValues };
  /** The `state` of {@link queryQp}, without making all the rest; -1 if there is no such queue pair. */
  queryQpState(qp: number): number;
  destroyQp(qp: number): number;
  /**
   * Leaves a MAD with the HCA that it sends should this kernel die while the queue pair is connected. Missing: the HCA's connections have
   * no will (`CmConnection.will`), since the system ends them.
   */
  setWill?(qp: number, path: PathParameters, mad: Uint8Array): number;

  /**
   * Makes an address handle: where a UD send goes. A send WQE names it (`swAh` of `abi`) with the destination's QPN
   * (`swRemoteQpn`, 0xffffff for a group) and Q_Key (`swRemoteQkey`; one with the high bit set stands for
   * the QP's own). A WQE that names a handle of another PD, or none, completes with LOCAL_OP_ERROR and one that is
   * longer than `pathMtu` with LOCAL_LENGTH_ERROR; the QP is in SQ_ERROR then.
   *
   * @param path - `destination` may be a multicast group: IPv4's `::ffff:224.0.0.0/100`, IPv6's `ff00::/8`.
   * @param pathMtu - Bytes that a datagram may have: a power of two, 256 … 4096.
   * @returns SUCCESS, INVALID_HANDLE (PD), INVALID_PARAMETER (MTU, a path's field), INVALID_ADDRESS (families differ,
   * no address to send from or to, no interface to a group), INSUFFICIENT_RESOURCES (`limits.maxAh`).
   */
  createAh(pd: number, path: PathParameters, pathMtu: number): { status: number; ah: number };
  /** Ends an address handle; sends that have been posted and not executed then fail. INVALID_HANDLE: there is none. */
  destroyAh(ah: number): number;
  /**
   * Lets a UD QP receive what is sent to a group on one interface. The interface joins the group (IGMP, MLD) with the
   * first QP of this HCA, and leaves it with the last; destroying a QP detaches it. A QP hears what it sends
   * itself, too.
   *
   * @param group - 16 bytes: `::ffff:` and an IPv4 multicast address, or an IPv6 one.
   * @param interfaceIndex - As {@link NativeInterface.index}.
   * @returns SUCCESS, INVALID_HANDLE, INVALID_DEVICE_REQUEST (not a UD QP), INVALID_ADDRESS (no multicast group),
   * INVALID_PARAMETER (no index), INVALID_DEVICE_STATE (attached already), NETWORK_UNREACHABLE (no such interface),
   * INSUFFICIENT_RESOURCES (`limits.maxGroups`, `maxGroupQps`, `maxAttached`, or the host allows no more groups:
   * `net.ipv4.igmp_max_memberships`).
   */
  attachMulticast(qp: number, group: Uint8Array, interfaceIndex: number): number;
  /** Undoes {@link attachMulticast}. INVALID_HANDLE: no such QP; INVALID_PARAMETER: it was not attached so. */
  detachMulticast(qp: number, group: Uint8Array, interfaceIndex: number): number;

  /**
   * Has every event of a CQ told as a `cq` event, from now on as long as it lives, beside requests that wait. An event that
   * nobody was told of comes at once. INVALID_HANDLE.
   */
  listenCq(cq: number): number;
  /** Asks for an event on the next completion (see HcaCommands::armCq). INVALID_HANDLE, BUFFER_OVERFLOW (the CQ overran). */
  armCq(cq: number, solicitedOnly: boolean): number;

  /** Counters of engine and host by name, and the number of live objects by kind. */
  counters(): Record<string, number>;
  objectCounts(): Record<'pd' | 'mr' | 'mw' | 'cq' | 'qp' | 'srq' | 'ring' | 'range', number> & {
    ah?: number;
    pkeyTable?: number;
  };
  /** Queue pairs and registrations for people, at most so many of each; undefined after the end. Missing: the HCA tells none. */
  statistics?(most: number): NativeStatistics | undefined;
  close(): void;
}

/** The commands of an HCA. Without {@link CqWaiters} requests wait in the driver, which completes them by `cq` events. */
export interface NativeHca extends HcaCommands, Partial<CqWaiters> {}
