/**
 * The kernel side of an HCA: the interface that an HCA implements for the soft kernel. A kernel has a list of HCAs, the
 * software HCA and others; the first in the list with a GUID, or an address, owns it. Everything here is called on the
 * kernel's thread.
 *
 * | part | caller |
 * |---|---|
 * | {@link HcaBackend.readPorts}, `watch` | the table of ports (`hca-ports.ts`): devices, their GUIDs, GIDs, P_Keys |
 * | {@link HcaBackend.addDevice} | the HCA driver (`hca-driver.ts`), once for each new device |
 * | {@link HcaBackend.native} | the verbs (`ci*.ts`), and the kernel, which passes on events when the HCA has woken it |
 * | {@link HcaBackend.connections} | endpoints (`kernel/filter/`), through `kernel/endpoint-routing.ts` |
 *
 * The user side is {@link UserHca} of `hca/user-hca.ts`: rings, doorbells and polls, on the program's threads.
 */
import type { HcaEvent, NativeHca } from '../../hca/soft-hca-binding.js';
import type { Input } from '../../ioctl/layout.js';
import type { PkeyTables } from '../../ioctl/pkey-tables.js';
import type { WvIoDeviceAttributes, WvIoPortAttributes } from '../../ioctl/structs.js';
import type {
  CmConnection,
  CmConnectParameters,
  CmEvents,
  ConnectionManager,
  SidrLookup,
  SidrLookupEvents,
  SidrLookupParameters,
} from '../cm/service.js';
import type { InterfaceAddress } from './network-interfaces.js';

/** Attributes returned by DEVICE_QUERY besides GUIDs and {@link NativeHca.limits}. */
export type DeviceAttributes = Pick<
  Input<typeof WvIoDeviceAttributes>,
  | 'fwVersion'
  | 'vendorId'
  | 'vendorPartId'
  | 'hwVersion'
  | 'capabilityFlags'
  | 'atomicCapability'
  | 'pageSizeCapabilityFlags'
  | 'deviceType'
  | 'localAckDelay'
>;

/** Attributes returned by DEVICE_PORT_QUERY besides those in {@link HcaPort}. */
export type LinkAttributes = Pick<
  Input<typeof WvIoPortAttributes>,
  'portCabilityFlags' | 'maxMtu' | 'maxMessageSize' | 'maxVls' | 'activeWidth' | 'activeSpeed' | 'transport'
>;

/** A device of an HCA, with the current state of its only port. */
export interface HcaPort {
  /** The node GUID, which identifies the device: constant as long as the device exists, and unique. */
  readonly guid: bigint;
  readonly portGuid: bigint;
  readonly interfaceName: string;
  readonly interfaceIndex: number;
  /** The MAC address, 6 bytes; undefined for interfaces without one. */
  readonly mac: Uint8Array | undefined;
  /** PortState */
  readonly state: number;
  /** Active MTU in bytes. */
  readonly activeMtu: number;
  /** Size of an IP packet on the link in bytes, which packets to another peer of this package may fill. Undefined: unknown. */
  readonly ipMtu?: number;
  readonly link: LinkAttributes;
  readonly gids: readonly Uint8Array[];
  readonly addresses: readonly InterfaceAddress[];
  /** The P_Key table; at least one entry. */
  readonly pkeys: readonly number[];
}

/** The HCA's own state of one of its devices, from its discovery until its last reference is released. */
export interface BackendDevice {
  /** Passed with each queue pair of the device: `QpCreateParameters.pkeyTable`. */
  readonly pkeyTable: number;
  /** Called when the port has changed. `gone`: the device is gone, and its objects are destroyed later, one by one. */
  portChanged(port: HcaPort, gone: boolean): void;
  /** Numbers of packets dropped at the port: BadPkeyCounter and QkeyViolationCounter. */
  violations(): { badPkeys: number; badQkeys: number };
  /** Called when the last reference is released. */
  end(): void;
}

/** Connections and services of an HCA: those of this package's connection manager, or those of the OS. */
export interface HcaConnections extends Pick<ConnectionManager, 'listen' | 'listenForLookups' | 'counters'> {
  /** Starts a connection from the source address of its path. `status` is the error of a REQ that cannot be sent at all. */
  connect(parameters: CmConnectParameters, events: CmEvents): { connection: CmConnection; status: number };
  /** Requests the queue pair of a peer's datagram service; `status` as in {@link connect}. */
  lookup(parameters: SidrLookupParameters, events: SidrLookupEvents): { lookup: SidrLookup; status: number };
  /** Claims an RDMA port. `gid` null claims it on all addresses; `port` 0 selects a free one, unreachable before {@link openPort}. */
  claimPort(
    service: number,
    gid: Uint8Array | null,
    port: number,
  ): { status: number; claim: number; port: number };
  /** Called when a claimed port has a listener; returns a status. */
  openPort(claim: number): number;
  releasePort(claim: number): void;
  /** Handles a MAD for QP1. Absent: the OS handles MADs. */
  receive?(event: MadEvent): void;
}

export type MadEvent = Extract<HcaEvent, { type: 'mad' }>;

/** The OS's names for an HCA. */
export interface HcaIdentity {
  /** The name of the RDMA device, such as `mlx5_0`. */
  readonly device: string;
  /** The device's driver in the OS's kernel, such as `mlx5_core`; empty if unknown. */
  readonly driver: string;
  /** The device's firmware version, as reported by the driver. */
  readonly firmware: string;
}

/** An HCA of the kernel. Its devices have common limits and attributes. */
export interface HcaBackend {
  /** The output of LIBRARY_QUERY for its devices: the user-mode provider of this HCA (`uvp/index.ts`). */
  readonly userLibrary: string;
  /** Absent: the software HCA, which is unknown to the OS. */
  readonly identity?: HcaIdentity;
  readonly attributes: DeviceAttributes;
  readonly native: NativeHca;
  readonly connections: HcaConnections;
  /** The current devices, in the order of the list. May block. */
  readPorts(): HcaPort[];
  /** Calls `changed` when the devices have changed, until the returned function is called. Undefined: changes are not reported. */
  watch(changed: () => void): (() => void) | undefined;
  /** Replaces the P_Key table of a device, as returned by {@link readPorts} from then on. Absent: the OS owns the tables. */
  setPkeys?(guid: bigint, pkeys: readonly number[]): void;
  /** Replaces the P_Key tables of all devices, including those set with {@link setPkeys}. Absent: the OS owns the tables. */
  setAllPkeys?(tables: PkeyTables): void;
  /** Called for a new device: {@link readPorts} has returned it for the first time, or again. */
  addDevice(port: HcaPort): BackendDevice;
  /** Replies to a process that requests statistics; null refuses. Absent: this HCA cannot be queried. */
  replyToObserver?(number: number, text: Uint8Array | null): void;
  /** Ends all connections and destroys the remaining objects. */
  close(): void;
}

/** Creates an HCA of a kernel; `portOf` finds the port of an address in the kernel's table. */
export type HcaMaker = (portOf: (gid: Uint8Array) => HcaPort | undefined) => HcaBackend;
