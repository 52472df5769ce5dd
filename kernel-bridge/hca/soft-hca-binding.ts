/**
 * What the native addon of the software HCA offers, in TypeScript. Three groups: the door's request slots (user and kernel side,
 * `request-channel-binding.ts`), the HCA's command interface (kernel side only, `native-hca.ts`), and the speed path (user side only,
 * `user-hca.ts`).
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

/** The software HCA, as one soft kernel holds it. Its devices are the host's interfaces; its connections are MADs. */
export interface SoftHca extends HcaCommands, CqWaiters {
  allocateMr(pd: number, length: number): { status: number; lkey: number };
  setWill(qp: number, path: PathParameters, mad: Uint8Array): number;
  readonly kernelId: number;
  readonly slot: number;
  readonly wire: WireState;
  /** This HCA's links, as `HostLink` of the connection manager has them: by its options `link`, `capture` and `faults`. */
  readonly hostLink: number;
  /**
   * Opens the port, once, for something that needs it. Commands that need it do this themselves: claims of other addresses than loopback,
   * datagram queue pairs, and paths to other hosts. May wait up to a second for another process that does the same.
   *
   * @returns SUCCESS, even if the port cannot be had (then there is the event `wireLost`, and {@link wireProblem}); NOT_SUPPORTED:
   * the option `link` is `local`.
   */
  openWire(): number;
  /** Bits of `PeerExtensions` that this build of the engine has: all, or none (ND_WITHOUT_EXTENSIONS). */
  readonly peerExtensions: number;
  /** Why there is no wire though something needs it (the holder of UDP port 4791), or ''. Finding the holder takes some milliseconds. */
  readonly wireProblem: string;
  /**
   * The first kernel of an isolate decides on all options; faults and a capture that a later one asks for hold for the isolate's HCA from
   * then on, and what it leaves out stays. This sets both.
   */
  configure(options: HcaOptions): void;
  /**
   * Makes a P_Key table, for one port of one device; it holds 0xffff until {@link setPkeyTable} says otherwise. QPs
   * are created in it ({@link QpCreateParameters}): what they send carries the P_Key that their `pkeyIndex` selects,
   * and what they receive must fit it: the same low 15 bits, and at least one of the two a full member (high bit).
   * What does not fit is dropped and counted (IBA 1 §10.9.3, §9.6.1.1.1).
   */
  createPkeyTable(): { status: number; table: number };
  /**
   * Replaces a table, at once for all its QPs. A QP whose index is beyond the end, or whose entry has zero low 15 bits
   * (an empty one), neither sends nor receives until that changes.
   *
   * @param pkeys - 1 … `limits.maxPkeys` entries.
   * @param gids - The port's addresses, 16 bytes each: a MAD for one of them must match any entry of this table. MADs
   *   for addresses that are in no table of this kernel must match 0xffff.
   * @returns SUCCESS, INVALID_HANDLE, INVALID_PARAMETER.
   */
  setPkeyTable(table: number, pkeys: Uint16Array, gids: readonly Uint8Array[]): number;
  /**
   * Drops at the table's QPs and addresses: packets with a wrong P_Key (the port's BadPkeyCounter), and datagrams with
   * another Q_Key than the QP's (QkeyViolationCounter). Table 0: the default table.
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
   * reach before {@link openPort}. NOT_SUPPORTED: as {@link openWire}, for other addresses than loopback.
   */
  claimPort(
    service: number,
    address: Uint8Array | null,
    port: number,
  ): { status: number; claim: number; port: number };
  /**
   * Makes a claimed port reachable for other processes, because there is a listener now. INVALID_PARAMETER (no such
   * claim), ADDRESS_ALREADY_EXISTS, INSUFFICIENT_RESOURCES.
   */
  openPort(claim: number): number;
  releasePort(claim: number): void;

  /** The answer to an `observed` event; null refuses it. */
  answerObserver(number: number, text: Uint8Array | null): void;
}

/** A claim of a name: an object of the addon. */
export interface NativeNameClaim {
  readonly nativeNameClaim: unique symbol;
}

/** A process of this user, as {@link AddonBinding.observeProcesses} finds it. */
export interface NativeObserved {
  slot: number;
  /** 0: the process is in another namespace of process ids. */
  pid: number;
  /** `refused`: its option `statistics` is false; `silent`: no answer in time; `otherVersion`: it has another {@link DIALECT}. */
  answer: 'text' | 'refused' | 'silent' | 'otherVersion';
  text: Uint8Array;
}

/** An address of a network interface. */
export interface NativeInterfaceAddress {
  gid: Uint8Array;
  family: 4 | 6;
  /** Bits of the subnet, counted in the address's own family. */
  prefixLength: number;
  /** For an IPv6 link-local address: the interface's index. 0 for all others. */
  scopeId: number;
}

/** A network interface of the process's network namespace, with or without carrier and addresses. */
export interface NativeInterface {
  name: string;
  /** As in IPv6 scope ids; unique in the namespace. */
  index: number;
  /** Bytes of an IP packet. */
  mtu: number;
  /** Switched on (IFF_UP). */
  up: boolean;
  /** Has a carrier, or is of a kind without one (IFF_RUNNING). */
  running: boolean;
  /** Link-layer address; 6 bytes for Ethernet, all zero for loopback, empty for tunnels. */
  mac: Uint8Array;
  addresses: NativeInterfaceAddress[];
}

export interface AddonBinding extends UserHca {
  // door
  /**
   * Makes a channel. Overlapped IOCTLs with the code `eventCode` wait for events of the HCA: while there are any, this
   * thread's event loop, or the thread that is blocked in {@link NativeChannel.wait}, watches the HCA's descriptors
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
   * @throws Error if there is no such channel, or it is served already.
   */
  serveChannel(id: number, onRequest: () => void): ServedChannel;
  /** Ends a channel from any thread, served or not: pending and later requests end in DEVICE_REMOVED. */
  failChannel(id: number, reason: string): void;

  // kernel side
  /**
   * Opens the HCA of the isolate at the other end of the channel, without `server` that of this isolate. The first call starts it.
   *
   * @throws TypeError naming the option that is wrong; Error if the HCA cannot start, or that isolate is ending.
   */
  openHca(options: HcaOptions, onEvent: () => void, server?: NativeChannelServer): SoftHca;

  /**
   * Has `onWake` called on this thread's event loop, which it does not keep alive, soon after another addon has woken it. The result is
   * for that addon (addon/waker.h), which keeps it as long as it may call.
   */
  createWaker(onWake: () => void): object;

  // user side
  /**
   * Zeroed memory over a memfd, for buffers: page-aligned, allocated at once, freed when the ArrayBuffer was collected
   * and no pin holds it. Works before the HCA is open. Throws nothing, but returns a status: INVALID_PARAMETER,
   * NO_MEMORY, INSUFFICIENT_RESOURCES or TOO_MANY_OPENED_FILES (a limit, see `errno`), NOT_SUPPORTED (the system makes no memfd, see `errno`; or
   * with 0 this runtime has no external buffers). `buffer` is null then. `shared`: it is a SharedArrayBuffer.
   */
  allocateShared(
    bytes: number,
    shared: boolean,
  ): { status: number; errno: number; buffer: ArrayBuffer | SharedArrayBuffer | null };

  /**
   * The network interfaces, by index; reads them from the system every time. Works before the HCA is open.
   *
   * @throws Error if the system does not report them.
   */
  interfaces(): NativeInterface[];
  /**
   * Calls `onChange` on this thread's event loop, which it does not keep alive, when interfaces or their addresses have
   * changed. Returns a function that ends the watch; undefined if the system has no routing socket.
   */
  watchInterfaces(onChange: () => void): (() => void) | undefined;
  /**
   * The system's route to a destination. `source`: the source address, or `::` for the system's choice. `interfaceIndex`: the
   * interface by which packets leave, or 0 for any. `mtu`: bytes of an IP packet, 0 if the route has no MTU of its own. Works
   * before the HCA is open. Throws nothing, but returns a status: NETWORK_UNREACHABLE (no route), INVALID_PARAMETER (two
   * families), INSUFFICIENT_RESOURCES.
   */
  findRoute(
    destination: Uint8Array,
    source: Uint8Array,
    interfaceIndex: number,
  ): { status: number; source: Uint8Array; interfaceIndex: number; mtu: number };
  /** As {@link watchInterfaces}, for routes and the rules that choose among them. */
  watchRoutes(onChange: () => void): (() => void) | undefined;
  /** A text that is constant until the host restarts and differs between hosts and network namespaces. */
  hostIdentity(): string;

  /**
   * Ends the HCAs of all threads of this process, which is about to end: peers get a goodbye. Nobody may use them afterwards. Only
   * Windows needs the call; elsewhere the library hears of the end itself.
   */
  endHcas(): void;

  /**
   * Asks each HCA of this user's processes on this host for its statistics; works before the HCA is open. Waits for the answers on
   * another thread, at most so long.
   */
  observeProcesses(longestMs: number): Promise<NativeObserved[]>;

  /**
   * The process of this user with another {@link DIALECT} that listens at this RDMA port of this host: its id, 0 if it is in another
   * namespace of process ids. Undefined: there is none.
   */
  otherDialectAt(service: number, port: number, address: Uint8Array): number | undefined;

  /** Claims a name among the processes and threads of this user; an errno: it has not. */
  claimName(name: string): NativeNameClaim | number;
  /** Says at which port the owner of a name listens. Returns 0 or an errno. */
  publishPort(claim: NativeNameClaim, port: number): number;
  /** Gives a name back, as the end of its thread or process does. */
  releaseName(claim: NativeNameClaim): void;
  /** The ports, as texts, of the processes of this user that have published one for this name. Null: no descriptor for the query. */
  portsOfName(name: string): string[] | null;

  /** ICRC helpers for tests and decoders: checks a packet from its IP header on. */
  icrcOf(ipPacket: Uint8Array): number;
}
