/**
 * The interface of the addon for real HCAs: devices of libibverbs, connections of librdmacm. It is loaded if there is a
 * device. Numbers are as in `soft-hca-binding.ts`, commands as in `command-words.ts`.
 */
import type { HcaLimits, SharedWords } from '../schema/generated/attributes.js';
import { loadAddonFile } from './addon-file.js';
import type { RawCommand, RawCommands } from './command-words.js';
import type { UserHca } from './user-hca.js';

/** The output of LIBRARY_QUERY for devices of libibverbs. */
export const VERBS_USER_LIBRARY = 'networkdirect_verbs';

/** An opened device. */
export interface VerbsDevice {
  /** Identifies it in commands; different each time it is opened. */
  readonly number: number;
  readonly iwarp: boolean;
  /** The firmware version, as reported by the driver. */
  readonly firmware: string;
  readonly nodeGuid: bigint;
  readonly vendorId: number;
  readonly vendorPartId: number;
  readonly hardwareVersion: number;
  /** IBV_DEVICE_* flags. */
  readonly capabilities: number;
  /** Scope of atomics: 0 none, 1 the device, 2 the whole node. */
  readonly atomics: number;
  readonly ports: number;
  readonly ackDelay: number;
  /** Whether its completion queues can be resized. */
  readonly resizesCqs: boolean;
  readonly limits: HcaLimits;
}

/** An entry of a port's GID table. */
export interface VerbsGid {
  readonly gid: Uint8Array;
  /** The GID type: 0 InfiniBand, 1 RoCE v1, 2 RoCE v2. */
  readonly type: number;
  readonly index: number;
  /** Index of its network interface; 0: none. */
  readonly interfaceIndex: number;
}

/** The current state of a port; states and MTUs are IB's codes. */
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
  /** The link layer: 1 InfiniBand, 2 Ethernet. */
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
 * Calls of librdmacm, for ids of connections, listeners, claims and lookups. An address is passed as a port and a scope
 * in the arguments, and its GID in the bytes.
 */
type CmCommand =
  /** Arguments: datagrams, for a lookup. Words: the id. */
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
   * Arguments: id, length of the private data, which is passed in the place of a MAD. Words before: QPN, responder
   * resources, initiator depth, retries, RNR retries, SRQ.
   */
  | 'cmConnect'
  | 'cmAccept'
  /** Arguments: id, length of the private data. */
  | 'cmReject'
  | 'cmEstablish'
  | 'cmDisconnect'
  /** Reports a packet that arrived before the RTU. */
  | 'cmNotify'
  /** Closes librdmacm's files of the removed device that an id is bound to. */
  | 'cmCloseRemoved'
  /** Arguments: id, the group as an address. */
  | 'cmJoin'
  /** Words: both addresses, the device (0: none is open). */
  | 'cmAddresses'
  /**
   * Words: path MTU (code), destination QPN, receive PSN, send PSN, P_Key index, ACK timeout, flow label, hop limit, traffic class.
   */
  | 'cmAttributes';

/** The devices and connections of one soft kernel. */
export interface VerbsHca extends SharedWords {
  /**
   * The commands of every HCA, with the number of a device as owner and the number of the physical port as `pkeyTable`;
   * and those of librdmacm.
   */
  readonly commands: RawCommands & Readonly<Record<CmCommand, RawCommand>>;
  deviceNames(): string[];
  /** Opens a device. A string is the reason for a failure, as part of a sentence. */
  openDevice(name: string): VerbsDevice | string;
  /** Destroys all objects of a device, which their owners destroy later with the same commands as before, and closes it. */
  closeDevice(device: number): void;
  queryPort(device: number, port: number): VerbsPort | undefined;
  /**
   * The kind of the next event for `eventOf`, with its device in the word `ownerAt`; the kernel is woken for an event
   * that follows none (0).
   */
  takeEvent(): number;
  counters(): Record<string, number>;
  close(): void;
}

export interface VerbsBinding extends UserHca {
  /** @throws Error if rdma-core or the kernel's modules are missing; the message is part of a sentence. */
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
