/**
 * The kernel side of the seam: what an HCA brings to the soft kernel. A kernel has a list of HCAs, the software HCA or others beside
 * it; the first of the list that has a GUID, or an address, owns it. Everything here is called on the kernel's thread.
 *
 * | part | who calls it |
 * |---|---|
 * | {@link HcaBackend.readPorts}, `watch` | the table of ports (`hca-ports.ts`): devices, their GUIDs, GIDs, P_Keys |
 * | {@link HcaBackend.addDevice} | the HCA driver (`hca-driver.ts`), once for each device that has come |
 * | {@link HcaBackend.native} | the verbs (`ci*.ts`), and the kernel, which passes its events on when the HCA has woken it |
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

/** What DEVICE_QUERY answers beside GUIDs and {@link NativeHca.limits}. */
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

/** What DEVICE_PORT_QUERY answers beside what else {@link HcaPort} has. */
export type LinkAttributes = Pick<
  Input<typeof WvIoPortAttributes>,
  'portCabilityFlags' | 'maxMtu' | 'maxMessageSize' | 'maxVls' | 'activeWidth' | 'activeSpeed' | 'transport'
>;

/** A device of an HCA, and what its only port is now. */
export interface HcaPort {
  /** The node GUID, by which the device is opened: the same as long as the device is there, and no other device's. */
  readonly guid: bigint;
  readonly portGuid: bigint;
  readonly interfaceName: string;
  readonly interfaceIndex: number;
  /** 6 bytes; undefined for interfaces without a MAC. */
  readonly mac: Uint8Array | undefined;
  /** PortState */
  readonly state: number;
  /** Bytes. */
  readonly activeMtu: number;
  /** Bytes of an IP packet on the link, where packets to another end of this package may fill it; undefined: not there. */
  readonly ipMtu?: number;
  readonly link: LinkAttributes;
  readonly gids: readonly Uint8Array[];
  readonly addresses: readonly InterfaceAddress[];
  /** The P_Key table; at least one entry. */
  readonly pkeys: readonly number[];
}

/** What an HCA keeps of one of its devices, from the look that finds it until its last reference is gone. */
export interface BackendDevice {
  /** Told with each queue pair of the device: `QpCreateParameters.pkeyTable`. */
  readonly pkeyTable: number;
  /** The port has changed. `gone`: the device is gone, and its objects are destroyed later, one by one. */
  portChanged(port: HcaPort, gone: boolean): void;
  /** What was dropped at the port: BadPkeyCounter and QkeyViolationCounter. */
  violations(): { badPkeys: number; badQkeys: number };
  /** The last reference is gone. */
  end(): void;
}

/** Connections and services of an HCA: MADs of our own connection manager, or those of the system. */
export interface HcaConnections extends Pick<ConnectionManager, 'listen' | 'listenForLookups' | 'counters'> {
  /** Starts a connection from the address where its path begins. `status` tells at once of a REQ that cannot be sent at all. */
  connect(parameters: CmConnectParameters, events: CmEvents): { connection: CmConnection; status: number };
  /** Asks a peer for the queue pair of a datagram service; `status` as in {@link connect}. */
  lookup(parameters: SidrLookupParameters, events: SidrLookupEvents): { lookup: SidrLookup; status: number };
  /** Claims an RDMA port; `gid` null: on all addresses, `port` 0: a free one, which nobody reaches before {@link openPort}. */
  claimPort(
    service: number,
    gid: Uint8Array | null,
    port: number,
  ): { status: number; claim: number; port: number };
  /** Somebody listens at a claimed port from now on; answers a status. */
  openPort(claim: number): number;
  releasePort(claim: number): void;
  /** A MAD has come to QP1. Left out: MADs are the system's matter. */
  receive?(event: MadEvent): void;
}

export type MadEvent = Extract<HcaEvent, { type: 'mad' }>;

/** What the system calls an HCA. */
export interface HcaIdentity {
  /** Its RDMA device: `mlx5_0`. */
  readonly device: string;
  /** Its driver in the system's kernel: `mlx5_core`; empty if the system does not tell. */
  readonly driver: string;
  /** Its firmware's version as the driver writes it. */
  readonly firmware: string;
}

/** An HCA behind the seam. Its devices are alike: they have limits and attributes in common. */
export interface HcaBackend {
  /** LIBRARY_QUERY's answer for its devices: which user-mode provider reaches this HCA (`uvp/index.ts`). */
  readonly userLibrary: string;
  /** Left out: the software HCA, which the system does not know. */
  readonly identity?: HcaIdentity;
  readonly attributes: DeviceAttributes;
  readonly native: NativeHca;
  readonly connections: HcaConnections;
  /** The devices that are there now, in the order in which they are listed. May wait for the system. */
  readPorts(): HcaPort[];
  /** Has `changed` called when they are not the same any more, until the function that it answers is called. Undefined: nothing tells. */
  watch(changed: () => void): (() => void) | undefined;
  /** Replaces the P_Key table of a device; {@link readPorts} answers it from then on. Left out: the system has the tables. */
  setPkeys?(guid: bigint, pkeys: readonly number[]): void;
  /** Replaces the P_Key tables of all devices, those of {@link setPkeys} too. Left out: as there. */
  setAllPkeys?(tables: PkeyTables): void;
  /** A device has come: {@link readPorts} names it for the first time, or again. */
  addDevice(port: HcaPort): BackendDevice;
  /** Answers a process that asks for statistics; null refuses. Left out: nobody can ask this HCA. */
  answerObserver?(number: number, text: Uint8Array | null): void;
  /** Ends all connections, and destroys what is left. */
  close(): void;
}

/** Makes an HCA of a kernel; `portOf` finds the port of an address in the kernel's table. */
export type HcaMaker = (portOf: (gid: Uint8Array) => HcaPort | undefined) => HcaBackend;
