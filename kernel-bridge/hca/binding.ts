/**
 * What the native addon offers, in TypeScript. Three groups: the door's request slots (user and kernel side,
 * `channel-binding.ts`), the HCA's command interface (kernel side only), and the speed path (user side only).
 *
 * Numbers: handles, keys, lengths and counters are unsigned 32-bit unless said otherwise; native addresses are
 * plain numbers (user-space addresses are below 2^47); statuses are NTSTATUS values as unsigned numbers.
 * GIDs are 16-byte Uint8Arrays; IPv4 is `::ffff:a.b.c.d`.
 */
import type { NativeChannel, NativeChannelServer, ServedChannel } from './channel-binding.js';
import type { HcaEvent } from './hca-events.js';
import type {
  ConnectAttributes,
  ConnectSteps,
  HcaLimits,
  HcaOptions,
  PathParameters,
  QpAttributeValues,
  QpCreateParameters,
  SrqAttributeValues,
  SrqCreateParameters,
} from './hca-parameters.js';

export * from './hca-events.js';
export * from './hca-parameters.js';

/**
 * The HCA's command interface, as one soft kernel holds it. Every command is short and answers a status; none
 * blocks. Destroys answer DEVICE_BUSY while the object is in use. Closing destroys what the kernel still owns.
 */
export interface NativeHca {
  readonly kernelId: number;
  readonly slot: number;
  readonly wireReady: boolean;
  /** Why there is no wire (who holds UDP port 4791), or ''. */
  readonly wireProblem: string;
  readonly limits: HcaLimits;
  configure(options: HcaOptions): void;
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
  modifyQp(qp: number, mask: number, attributes: Partial<QpAttributeValues>): number;
  /** {@link modifyQp} from RESET or INIT by INIT and RTR to RTS; ends at the first step that fails, with its status. */
  connectQp(qp: number, steps: ConnectSteps, attributes: ConnectAttributes): number;
  queryQp(qp: number): { status: number; attributes: QpAttributeValues };
  /** The `state` of {@link queryQp}, without making all the rest; -1 if there is no such queue pair. */
  queryQpState(qp: number): number;
  destroyQp(qp: number): number;
  setWill(qp: number, path: PathParameters, mad: Uint8Array): number;

  /**
   * Makes an address handle: where a UD send goes. A send WQE names it (`swAh` of abi.ts) with the destination's QPN
   * (`swRemoteQpn`, {@link MULTICAST_QPN} for a group) and Q_Key (`swRemoteQkey`; one with the high bit set stands for
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
   * first QP of this process, and leaves it with the last; destroying a QP detaches it. A QP hears what it sends
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
   * Makes a P_Key table, for one port of one device; it holds 0xffff until {@link setPkeyTable} says otherwise. QPs
   * are created in it ({@link QpCreateParameters}): what they send carries the P_Key that their `pkeyIndex` selects,
   * and what they receive must fit it: the same low 15 bits, and at least one of the two a full member (high bit).
   * What does not fit is dropped and counted (IBA 1 §10.9.3, §9.6.1.1.1).
   */
  createPkeyTable(): { status: number; table: number };
  /**
   * Replaces a table, at once for all its QPs. A QP whose index is beyond the end, or whose entry has the low 15 bits
   * zero (an empty one), neither sends nor receives until that changes.
   *
   * @param pkeys - 1 … `limits.maxPkeys` entries.
   * @param gids - The port's addresses, 16 bytes each: a MAD for one of them must fit any entry of this table. MADs
   * for addresses that no table of this kernel has must fit 0xffff.
   * @returns SUCCESS, INVALID_HANDLE, INVALID_PARAMETER.
   */
  setPkeyTable(table: number, pkeys: Uint16Array, gids: readonly Uint8Array[]): number;
  /**
   * What was dropped at the table's QPs and addresses: packets whose P_Key did not fit (the port's BadPkeyCounter),
   * and datagrams whose Q_Key was not the QP's (QkeyViolationCounter). Table 0: the default one's.
   */
  queryPkeyTable(table: number): { status: number; badPkeys: number; badQkeys: number };
  /** INVALID_HANDLE; DEVICE_BUSY while QPs are in it. */
  destroyPkeyTable(table: number): number;

  /**
   * Has every event of a CQ told as a `cq` event, from now on as long as it lives, beside requests that wait. An event that
   * nobody was told of comes at once. INVALID_HANDLE.
   */
  listenCq(cq: number): number;
  /** Asks for an event on the next completion (see Engine::armCq). INVALID_HANDLE, BUFFER_OVERFLOW (the CQ overran). */
  armCq(cq: number, solicitedOnly: boolean): number;
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

  /** First CM id of this kernel; ids are `commIdBase + 1 … commIdBase + 0x3ffff`. */
  readonly commIdBase: number;
  /**
   * Sends a MAD from QP1 to QP1. `pkey` is the P_Key that it carries, 0xffff if it is left out.
   *
   * @returns SUCCESS (also when it is lost on the way), INVALID_PARAMETER (a wrong argument; a P_Key whose low 15 bits
   * are zero), INVALID_ADDRESS, NETWORK_UNREACHABLE, HOST_UNREACHABLE.
   */
  sendMad(path: PathParameters, mad: Uint8Array, pkey?: number): number;
  /**
   * Claims an RDMA port on this host. `address` null: all addresses. `port` 0: a free one is chosen, where other
   * processes reach nobody before {@link openPort}.
   */
  claimPort(
    service: number,
    address: Uint8Array | null,
    port: number,
  ): { status: number; claim: number; port: number };
  /**
   * Lets other processes reach a claimed port, as one listens there now. INVALID_PARAMETER (no such claim),
   * ADDRESS_ALREADY_EXISTS, INSUFFICIENT_RESOURCES.
   */
  openPort(claim: number): number;
  releasePort(claim: number): void;

  /** Counters of engine and host by name, and the number of live objects by kind. */
  counters(): Record<string, number>;
  objectCounts(): Record<'pd' | 'mr' | 'mw' | 'cq' | 'qp' | 'srq' | 'ring' | 'range', number> & {
    ah?: number;
    pkeyTable?: number;
  };
  close(): void;
}

/** Zeroed memory that JavaScript and the HCA share, 64-byte aligned. Freed when both sides have let go. */
export interface NativeRing {
  buffer: ArrayBuffer;
  address: number;
}

/** An address of a network interface. */
export interface NativeInterfaceAddress {
  gid: Uint8Array;
  family: 4 | 6;
  /** Bits of the subnet, counted in the address's own family. */
  prefixLength: number;
  /** Of an IPv6 link-local address: the interface's index. 0 for all others. */
  scopeId: number;
}

/** A network interface of the network namespace that the process is in, with or without carrier and addresses. */
export interface NativeInterface {
  name: string;
  /** As in IPv6 scope ids; unique in the namespace. */
  index: number;
  /** Bytes of an IP packet. */
  mtu: number;
  /** Switched on (IFF_UP). */
  up: boolean;
  /** Has a carrier, or is of a kind that has none (IFF_RUNNING). */
  running: boolean;
  /** Link-layer address; 6 bytes for Ethernet, all zero for loopback, empty for tunnels. */
  mac: Uint8Array;
  addresses: NativeInterfaceAddress[];
}

/** Of {@link AddonBinding.wordTables}. */
export interface WordTables {
  /** Names of {@link QpCreateParameters}, {@link QpAttributeValues} and {@link PathParameters}, in the order of their words. */
  qpCreate: string[];
  qpAttributes: string[];
  path: string[];
  places: Record<'pathAt' | 'madAt' | 'madBytes', number>;
  qpMask: Record<string, number>;
  srqMask: Record<string, number>;
  rnrPatience: Record<string, number>;
  eventKind: Record<string, number>;
}

export interface AddonBinding {
  // door
  /**
   * Overlapped IOCTLs with the code `eventCode` wait for events of the HCA: while there are any, this thread's event loop, or
   * the thread that is blocked in {@link NativeChannel.wait}, watches the HCA's descriptors itself.
   */
  createChannel(
    slots: number,
    onComplete: (slot: number, outcome: number) => void,
    eventCode?: number,
  ): NativeChannel;
  /**
   * Takes the kernel side of a channel. It keeps this thread's event loop alive until it is closed; when this thread
   * ends, the channel ends.
   *
   * @throws Error if there is no such channel, or it is served already.
   */
  serveChannel(id: number, onRequest: () => void): ServedChannel;
  /** Ends a channel from any thread, served or not: everything pending, and all that follows, is DEVICE_REMOVED. */
  failChannel(id: number, reason: string): void;

  // kernel side
  /** @throws TypeError naming the option that is wrong; Error if the HCA cannot start. */
  openHca(options: HcaOptions, onEvent: () => void): NativeHca;

  // user side
  /**
   * Zeroed memory over a memfd, for buffers: page-aligned, present from the start, freed when the ArrayBuffer was collected
   * and no pin holds it. Works before the HCA is open. Throws nothing: INVALID_PARAMETER, NO_MEMORY, INSUFFICIENT_RESOURCES (a limit, which `errno` tells),
   * NOT_SUPPORTED (the system makes no memfd, for the reason `errno`; or with 0 this runtime has no external buffers); `buffer` is null then.
   */
  allocateShared(bytes: number): { status: number; errno: number; buffer: ArrayBuffer | null };
  /** @throws Error before the HCA is open (no device file was opened yet), RangeError for a size it cannot give. */
  allocateRing(bytes: number): NativeRing;
  /**
   * The HCA accepts the ring for no new object any more. The memory stays until its users in the HCA and the
   * ArrayBuffer are gone; the ArrayBuffer's end releases it, too.
   */
  releaseRing(address: number): void;
  /**
   * Pins memory: holds it, whatever becomes of its buffer, and lets registrations use its range. Throws nothing: INVALID_PARAMETER for
   * anything but a Uint8Array of at least one byte over a buffer of fixed length; INVALID_DEVICE_STATE before the
   * HCA is open; NOT_SUPPORTED where the runtime does not let native code hold the memory of a buffer, for all but what
   * {@link allocateShared} has made. `detachable`: JavaScript can detach the buffer; the caller marks it as untransferable, which native
   * code cannot.
   */
  pin(view: Uint8Array): { status: number; pin: number; address: number; detachable: boolean };
  unpin(pin: number): void;
  /** This thread's doorbell: a word for the handle of the queue pair that {@link ring} tells of. */
  readonly doorbell: Uint32Array;
  /** Tells the HCA of new work requests on the queue pair in {@link doorbell}. An argument would double the time of the call. */
  ring(): void;
  /**
   * Moves the engine one step if nobody else does, and marks this thread as polling. Asked again at once, it looks out for
   * what other processes of this host send for half a microsecond before it returns in vain.
   */
  progress(): void;
  /** Asks for an event on the next completion (see Engine::armCq). */
  armCq(cq: number, solicitedOnly: boolean): number;
  /** Asks for an event when `count` completions have come (see Engine::armCqBatch). */
  armCqBatch(cq: number, count: number): number;

  /**
   * The network interfaces, by index; asks the system every time. Works before the HCA is open.
   *
   * @throws Error if the system does not tell them.
   */
  interfaces(): NativeInterface[];
  /**
   * Calls `onChange` on this thread's event loop, which it does not keep alive, when interfaces or their addresses have
   * changed. Answers a function that ends the watch; undefined where the system gives no routing socket.
   */
  watchInterfaces(onChange: () => void): (() => void) | undefined;

  /** The table of engine/abi.h, by the names of abi.ts. */
  abi(): Record<string, number>;
  /** How native code reads words: what it calls each of them, in order, and the numbers that TypeScript has as constants. */
  wordTables(): WordTables;
  /** ICRC helpers for tests and decoders: checks a packet from its IP header on. */
  icrcOf(ipPacket: Uint8Array): number;
}
