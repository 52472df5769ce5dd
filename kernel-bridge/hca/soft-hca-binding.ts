/**
 * The interface of the software HCA's native addon, in three groups: request slots (user and kernel side,
 * `request-channel-binding.ts`), the HCA's commands (kernel side only, `native-hca.ts`), and the data path (user side
 * only, `user-hca.ts`).
 *
 * Numbers: handles, keys, lengths and counters are unsigned 32-bit unless stated otherwise. Native addresses are plain
 * numbers (user-space addresses are below 2^47). Statuses are NTSTATUS values as unsigned numbers. GIDs are 16-byte
 * Uint8Arrays; IPv4 is `::ffff:a.b.c.d`.
 */
import type { PathParameters } from '../schema/generated/attributes.js';
import type { DIALECT } from '../schema/generated/numbers.js';
import type { HcaOptions } from '../schema/generated/options.js';
import type { CqWaiters, HcaCommands, WireState } from './native-hca.js';
import type { NativeChannel, NativeChannelServer, ServedChannel } from './request-channel-binding.js';
import type { UserHca } from './user-hca.js';

export * from '../schema/generated/attributes.js';
export type { HcaEvent } from '../schema/generated/events.js';
export * from '../schema/generated/numbers.js';
export type { HcaOptions } from '../schema/generated/options.js';
export * from './hca-parameters.js';
export type * from './native-hca.js';
export * from './user-hca.js';

/** The software HCA of a soft kernel. Its devices are the host's interfaces; its connections use MADs. */
export interface SoftHca extends HcaCommands, CqWaiters {
  allocateMr(pd: number, length: number): { status: number; lkey: number };
  setDreqOnExit(qp: number, path: PathParameters, mad: Uint8Array): number;
  readonly kernelId: number;
  readonly slot: number;
  readonly wire: WireState;
  /** The links of this HCA, as defined by the connection manager's `HostLink`; set by its options `link`, `capture` and `faults`. */
  readonly hostLink: number;
  /**
   * Opens the UDP port once it is needed. Commands that need it do this themselves: claims of addresses other than
   * loopback, datagram queue pairs, and paths to other hosts. The call may wait up to a second for another process that
   * is doing the same.
   *
   * @returns SUCCESS, even if the port is not available (the event `wireLost` then follows, and {@link wireProblem} has
   * the reason); NOT_SUPPORTED: the option `link` is `local`.
   */
  openWire(): number;
  /** Bits of `PeerExtensions` in this build of the engine: all, or none (ND_WITHOUT_EXTENSIONS). */
  readonly peerExtensions: number;
  /**
   * The reason (such as its holder) why the UDP port is not open although it is needed, or ''. Finding the holder takes
   * some milliseconds.
   */
  readonly wireProblem: string;
  /**
   * The first kernel of an isolate decides on all options. Faults and a capture requested by a later kernel apply to
   * the isolate's HCA from then on; omitted ones are unchanged. This call sets both.
   */
  configure(options: HcaOptions): void;
  /**
   * Creates a P_Key table for one port of one device; it contains 0xffff until {@link setPkeyTable}. QPs are created
   * with a table ({@link QpCreateParameters}): packets that they send have the P_Key selected by their `pkeyIndex`, and
   * packets that they receive must match it: the same low 15 bits, and at least one of the two a full member (high
   * bit). Others are dropped and counted (IBA 1 §10.9.3, §9.6.1.1.1).
   */
  createPkeyTable(): { status: number; table: number };
  /**
   * Replaces a table, with immediate effect on all of its QPs. A QP whose index is beyond the end, or whose entry is
   * empty (low 15 bits zero), neither sends nor receives until that changes.
   *
   * @param pkeys - 1 … `limits.maxPkeys` entries.
   * @param gids - The port's addresses, 16 bytes each: a MAD for one of them must match any entry of this table. MADs
   * for addresses that are in no table of this kernel must match 0xffff.
   * @returns SUCCESS, INVALID_HANDLE, INVALID_PARAMETER.
   */
  setPkeyTable(table: number, pkeys: Uint16Array, gids: readonly Uint8Array[]): number;
  /**
   * Numbers of packets dropped at the table's QPs and addresses: packets with a wrong P_Key (the port's
   * BadPkeyCounter), and datagrams whose Q_Key is not that of the QP (QkeyViolationCounter). Table 0: the default
   * table.
   */
  queryPkeyTable(table: number): { status: number; badPkeys: number; badQkeys: number };
  /** INVALID_HANDLE; DEVICE_BUSY while QPs use it. */
  destroyPkeyTable(table: number): number;

  /** First CM id of this kernel; ids are `commIdBase + 1 … commIdBase + 0x3ffff`. */
  readonly commIdBase: number;
  /**
   * Sends a MAD from QP1 to QP1. `pkey` is its P_Key, by default 0xffff.
   *
   * @returns SUCCESS (also if it is lost on the way), INVALID_PARAMETER (a wrong argument; a P_Key whose low 15 bits
   *   are zero), INVALID_ADDRESS, NETWORK_UNREACHABLE, HOST_UNREACHABLE, NOT_SUPPORTED (as {@link openWire}).
   */
  sendMad(path: PathParameters, mad: Uint8Array, pkey?: number): number;
  /**
   * Claims an RDMA port on this host. `address` null: all addresses. `port` 0: a free one, which other processes cannot
   * reach before {@link openPort}. NOT_SUPPORTED: as {@link openWire}, for addresses other than loopback.
   */
  claimPort(
    service: number,
    address: Uint8Array | null,
    port: number,
  ): { status: number; claim: number; port: number };
  /**
   * Makes a claimed port reachable for other processes, once there is a listener. INVALID_PARAMETER (no such claim),
   * ADDRESS_ALREADY_EXISTS, INSUFFICIENT_RESOURCES.
   */
  openPort(claim: number): number;
  releasePort(claim: number): void;

  /** Replies to an `observed` event; null refuses it. */
  replyToObserver(number: number, text: Uint8Array | null): void;
}

/** A claimed name: an object of the addon. */
export interface NativeNameClaim {
  readonly nativeNameClaim: unique symbol;
}

/** A process of this user, found by {@link AddonBinding.observeProcesses}. */
export interface NativeObserved {
  slot: number;
  /** The process id; 0 if the process is in another PID namespace. */
  pid: number;
  /**
   * `refused`: the process has the option `statistics: false`. `silent`: there was no reply in time. `otherVersion`:
   * the process has another {@link DIALECT}.
   */
  answer: 'text' | 'refused' | 'silent' | 'otherVersion';
  text: Uint8Array;
}

/** An address of a network interface. */
export interface NativeInterfaceAddress {
  gid: Uint8Array;
  family: 4 | 6;
  /** Length of the subnet prefix in bits, in the address's own family. */
  prefixLength: number;
  /** The interface's index for an IPv6 link-local address; 0 for all others. */
  scopeId: number;
}

/** A network interface of the process's network namespace, with or without carrier and addresses. */
export interface NativeInterface {
  name: string;
  /** Interface index as in IPv6 scope ids; unique in the namespace. */
  index: number;
  /** Maximum size of an IP packet in bytes. */
  mtu: number;
  /** Whether the interface is enabled (IFF_UP). */
  up: boolean;
  /** Whether the interface has a carrier, or is of a kind without one (IFF_RUNNING). */
  running: boolean;
  /** Link-layer address; 6 bytes for Ethernet, all zero for loopback, empty for tunnels. */
  mac: Uint8Array;
  addresses: NativeInterfaceAddress[];
}

export interface AddonBinding extends UserHca {
  // request channel
  /**
   * Creates a channel. Overlapped IOCTLs with the code `eventCode` wait for events of the HCA: while there are any,
   * this thread's event loop, or the thread blocked in {@link NativeChannel.wait}, watches the HCA's descriptors
   * itself.
   */
  createChannel(
    slots: number,
    onComplete: (slot: number, outcome: number) => void,
    eventCode?: number,
  ): NativeChannel;
  /**
   * Becomes the kernel side of a channel. It keeps this thread's event loop alive until it is closed; the end of this
   * thread ends the channel.
   *
   * @throws Error if there is no such channel, or it is already being served.
   */
  serveChannel(id: number, onRequest: () => void): ServedChannel;
  /** Ends a channel from any thread, served or not: pending and later requests complete with DEVICE_REMOVED. */
  failChannel(id: number, reason: string): void;

  // kernel side
  /**
   * Opens the HCA of the isolate at the other end of the channel; without `server`, that of this isolate. The first
   * call starts it.
   *
   * @throws TypeError with the name of an invalid option; Error if the HCA cannot start, or that isolate is ending.
   */
  openHca(options: HcaOptions, onEvent: () => void, server?: NativeChannelServer): SoftHca;

  /**
   * Makes `onWake` run on this thread's event loop, without keeping it alive, soon after another addon has woken it.
   * The result is for that addon (addon/waker.h), which keeps it as long as it may call.
   */
  createWaker(onWake: () => void): object;

  // user side
  /**
   * Allocates zeroed memory on a memfd, for buffers. It is page-aligned, all of its pages are allocated during the
   * call, and it is freed when the ArrayBuffer has been collected and no pin holds it. Works before the HCA is open.
   * Never throws, but returns a status: INVALID_PARAMETER, NO_MEMORY, INSUFFICIENT_RESOURCES or TOO_MANY_OPENED_FILES
   * (a limit, see `errno`), NOT_SUPPORTED (the OS cannot create a memfd, see `errno`; if that is 0, this runtime has no
   * external buffers). On failure `buffer` is null. `shared`: allocates a SharedArrayBuffer.
   */
  allocateShared(
    bytes: number,
    shared: boolean,
  ): { status: number; errno: number; buffer: ArrayBuffer | SharedArrayBuffer | null };

  /**
   * The network interfaces, by index, read from the OS each time. Works before the HCA is open.
   *
   * @throws Error if the OS does not report them.
   */
  interfaces(): NativeInterface[];
  /**
   * Calls `onChange` on this thread's event loop, without keeping it alive, when interfaces or their addresses have
   * changed. Returns a function that ends the watch; undefined if the OS has no routing socket.
   */
  watchInterfaces(onChange: () => void): (() => void) | undefined;
  /**
   * The OS's route to a destination. `source`: the source address, or `::` for the OS's choice. `interfaceIndex`: the
   * outgoing interface, or 0 for any. `mtu`: maximum size of an IP packet in bytes, 0 if the route has no MTU of its
   * own. Works before the HCA is open. Never throws, but returns a status: NETWORK_UNREACHABLE (no route),
   * INVALID_PARAMETER (two families), INSUFFICIENT_RESOURCES.
   */
  findRoute(
    destination: Uint8Array,
    source: Uint8Array,
    interfaceIndex: number,
  ): { status: number; source: Uint8Array; interfaceIndex: number; mtu: number };
  /** The same as {@link watchInterfaces}, for routes and routing rules. */
  watchRoutes(onChange: () => void): (() => void) | undefined;
  /** A text that is constant until the host restarts and differs between hosts and network namespaces. */
  hostIdentity(): string;

  /**
   * Ends the HCAs of all threads of this process, which is about to end; peers are notified. The HCAs must not be used
   * afterwards. Only Windows needs the call; elsewhere the OS notifies the library of the end.
   */
  endHcas(): void;

  /**
   * Queries the statistics of all HCAs of this user's processes on this host; works before the HCA is open. Waits for
   * the replies on another thread, at most `longestMs`.
   */
  observeProcesses(longestMs: number): Promise<NativeObserved[]>;

  /**
   * The process of this user with another {@link DIALECT} that listens at this RDMA port of this host: its process id,
   * or 0 if it is in another PID namespace. Undefined: no process listens.
   */
  otherDialectAt(service: number, port: number, address: Uint8Array): number | undefined;

  /** Claims a name among the processes and threads of this user; returns an errno value on failure. */
  claimName(name: string): NativeNameClaim | number;
  /** Publishes the port where the owner of a name listens. Returns 0 or an errno value. */
  publishPort(claim: NativeNameClaim, port: number): number;
  /** Releases a name, as the end of its thread or process does. */
  releaseName(claim: NativeNameClaim): void;
  /** The ports, as text, published for this name by processes of this user. Null: no descriptor for the query. */
  portsOfName(name: string): string[] | null;

  /** ICRC of a packet, from its IP header on; for tests and decoders. */
  icrcOf(ipPacket: Uint8Array): number;
}
