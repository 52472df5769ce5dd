/**
 * What the addon of real HCAs offers, in TypeScript: devices of libibverbs, connections of librdmacm. It is loaded where there is a
 * device. Numbers are as in `soft-hca-binding.ts`, commands as in `command-words.ts`.
 */
import type { HcaLimits, SharedWords } from '../schema/generated/attributes.js';
import { loadAddonFile } from './addon-file.js';
import type { RawCommand, RawCommands } from './command-words.js';
import type { UserHca } from './user-hca.js';

/** LIBRARY_QUERY's answer for devices of libibverbs. */
export const VERBS_USER_LIBRARY = 'networkdirect_verbs';

/** An open device. */
export interface VerbsDevice {
  /** By which commands name it; one that is opened again has another. */
  readonly number: number;
  readonly iwarp: boolean;
  /** As the driver writes it. */
  readonly firmware: string;
  readonly nodeGuid: bigint;
  readonly vendorId: number;
  readonly vendorPartId: number;
  readonly hardwareVersion: number;
  /** IBV_DEVICE_* flags. */
  readonly capabilities: number;
  /** 0 none, 1 among the device's own, 2 in the whole node. */
  readonly atomics: number;
  readonly ports: number;
  readonly ackDelay: number;
  /** Whether its completion queues can grow. */
  readonly resizesCqs: boolean;
  readonly limits: HcaLimits;
}

/** An entry of a port's GID table. */
export interface VerbsGid {
  readonly gid: Uint8Array;
  /** 0 InfiniBand, 1 RoCE v1, 2 RoCE v2. */
  readonly type: number;
  readonly index: number;
  /** Of the network interface; 0: it has none. */
  readonly interfaceIndex: number;
}

/** A port now; states and MTUs are IB's codes. */
export interface VerbsPort {
  readonly state: number;
  readonly maxMtu: number;
  readonly activeMtu: number;
  readonly capabilities: number;
  readonly maxMessageSize: number;
  readonly badPkeys: number;
  readonly badQkeys: number;
  readonly maxVls: number;
  readonly activeWidth: number;
  readonly activeSpeed: number;
  /** 1 InfiniBand, 2 Ethernet. */
  readonly linkLayer: number;
  readonly gids: readonly VerbsGid[];
  readonly pkeys: readonly number[];
}

/** rdma_cm_event_type. */
export const CmEventType = {
  addressResolved: 0,
  addressError: 1,
  routeResolved: 2,
  routeError: 3,
  connectRequest: 4,
  connectResponse: 5,
  connectError: 6,
  unreachable: 7,
  rejected: 8,
  established: 9,
  disconnected: 10,
  deviceRemoval: 11,
  multicastJoin: 12,
  multicastError: 13,
  addressChange: 14,
  timewaitExit: 15,
} as const;

/**
 * Calls of librdmacm, about ids of connections, listeners, claims and look-ups. An address is a port and a scope as arguments, and its GID
 * in the bytes.
 */
type CmCommand =
  /** Arguments: datagrams, for a look-up. Words: the id. */
  | 'cmCreate'
  | 'cmDestroy'
  /** Arguments: id, address, whether other ids may be bound to the same. Words: the port. */
  | 'cmBind'
  /** Arguments: id, both addresses, milliseconds. */
  | 'cmResolve'
  /** Arguments: id, milliseconds. */
  | 'cmResolveRoute'
  /** Arguments: id, code of the ACK timeout, traffic class. */
  | 'cmSetOptions'
  /** Arguments: id, backlog. */
  | 'cmListen'
  /**
   * Arguments: id, bytes of private data, which is in the place of a MAD. Words before: QPN, responder resources, initiator depth, retries,
   * RNR retries, SRQ.
   */
  | 'cmConnect'
  | 'cmAccept'
  /** Arguments: id, bytes of private data. */
  | 'cmReject'
  | 'cmEstablish'
  | 'cmDisconnect'
  /** A packet has come before the RTU. */
  | 'cmNotify'
  /** Closes librdmacm's files of the removed device that an id is bound to. */
  | 'cmCloseRemoved'
  /** Arguments: id, the group as an address. */
  | 'cmJoin'
  /** Words: both addresses, the device (0: none that is open). */
  | 'cmAddresses'
  /**
   * Words: path MTU (code), destination QPN, receive PSN, send PSN, P_Key index, ACK timeout, flow label, hop limit, traffic class.
   */
  | 'cmAttributes';

/** The devices and connections of one soft kernel. */
export interface VerbsHca extends SharedWords {
  /**
   * Those of every HCA, where an owner is the number of a device and `pkeyTable` the number of the physical port; and those of
   * librdmacm.
   */
  readonly commands: RawCommands & Readonly<Record<CmCommand, RawCommand>>;
  deviceNames(): string[];
  /** A string is the reason why it cannot be opened, a part of a sentence. */
  openDevice(name: string): VerbsDevice | string;
  /** Ends all that it has, which its owners end later by the same commands as before, and lets go of it. */
  closeDevice(device: number): void;
  queryPort(device: number, port: number): VerbsPort | undefined;
  /**
   * The kind of the next event for `eventOf`, its device in the word `ownerAt`; the kernel is woken for one that comes after none (0).
   */
  takeEvent(): number;
  counters(): Record<string, number>;
  close(): void;
}

export interface VerbsBinding extends UserHca {
  /** @throws Error: rdma-core or the kernel's modules are missing; the message is a part of a sentence. */
  VerbsHca: new (
    waker: object,
  ) => VerbsHca;
}

let addon: VerbsBinding | undefined;

/**
 * Loads the addon on the first call.
 *
 * @throws Error with the reason why it cannot be loaded.
 */
export function loadVerbsAddon(): VerbsBinding {
  addon ??= loadAddonFile('verbs') as VerbsBinding;
  return addon;
}
