/**
 * What the addon of real HCAs offers, in TypeScript: devices of libibverbs, connections of librdmacm. It is loaded where there is a
 * device. Numbers are as in `binding.ts`; results besides a status are in `words` and `bytes`, which each call uses again.
 */
import type { HcaLimits, QpAttributeValues, SharedWords } from '../schema/generated/attributes.js';
import { loadAddonFile } from './addon-file.js';
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

/**
 * Kinds of events, `Event::Kind` of verbs/event_queue.h, with their words: device, handle, token, event, reason; those of `cm` are
 * event, status, id, listener, responder resources, initiator depth, retries, RNR retries, SRQ, QPN, Q_Key, bytes of private data.
 */
export const VerbsEvent = { none: 0, qp: 1, cq: 2, srq: 3, port: 4, gone: 5, cm: 6 } as const;

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

/** The devices and connections of one soft kernel. Commands return a status; what else they answer begins at word 0. */
export interface VerbsHost extends SharedWords {
  deviceNames(): string[];
  /** A string is the reason why it cannot be opened, a part of a sentence. */
  openDevice(name: string): VerbsDevice | string;
  /** Ends all that it has, which its owners end later by the same commands as before, and lets go of it. */
  closeDevice(device: number): void;
  queryPort(device: number, port: number): VerbsPort | undefined;
  /** The kind of the next event, {@link VerbsEvent}; the kernel is woken for one that comes after `none`. */
  takeEvent(): number;
  counters(): Record<string, number>;
  close(): void;

  /** Words: the PD. */
  allocatePd(device: number): number;
  deallocatePd(pd: number): number;
  /** Words: lkey, rkey. */
  registerMr(pd: number, address: number, length: number, access: number): number;
  deregisterMr(pd: number, lkey: number): number;
  /** Words: the window, its rkey. */
  allocateMw(pd: number): number;
  deallocateMw(mw: number): number;
  /** Words: the CQ. */
  createCq(device: number, ring: number, bytes: number, entries: number): number;
  resizeCq(cq: number, ring: number, bytes: number, entries: number): number;
  destroyCq(cq: number): number;
  listenCq(cq: number): number;
  armCq(cq: number, solicitedOnly: boolean): number;
  /** Words before: `putSrqCreate`; after: the SRQ. */
  createSrq(): number;
  /** Words before: `putSrqAttributes`, those of the mask. */
  modifySrq(srq: number, mask: number): number;
  /** Words: entries, limit, SGEs. */
  querySrq(srq: number): number;
  destroySrq(srq: number): number;
  /** Words before: `putQpCreate`, with the physical port as the P_Key table; after: QP, QPN. */
  createQp(): number;
  /** Words before: `putAttributes`, `putPath`. */
  modifyQp(qp: number, mask: number): number;
  /** The same words; `connection` is the id whose negotiated attributes count. */
  connectQp(qp: number, init: number, rtr: number, rts: number, connection: number): number;
  queryQp(qp: number): { status: number; attributes: QpAttributeValues };
  queryQpState(qp: number): number;
  destroyQp(qp: number): number;
  /** Words before: `putPath`; after: the address handle. */
  createAh(pd: number, port: number, pathMtu: number): number;
  destroyAh(ah: number): number;
  /** Bytes before: the group. */
  changeGroup(qp: number, attach: boolean): number;

  /** Words: the id of a connection, listener or claim; or with `datagrams` of a look-up. */
  cmCreate(datagrams: boolean): number;
  cmDestroy(id: number): void;
  /** Bytes before: the address; words after: the port. `shared`: other ids may be bound to the same. */
  cmBind(id: number, port: number, scopeId: number, shared: boolean): number;
  /** Bytes before: `putPath`. */
  cmResolve(id: number, localPort: number, peerPort: number, scopeId: number, timeoutMs: number): number;
  cmResolveRoute(id: number, timeoutMs: number): number;
  cmSetOptions(id: number, ackTimeoutCode: number, trafficClass: number): number;
  cmListen(id: number, backlog: number): number;
  /** Words before: QPN, responder resources, initiator depth, retries, RNR retries, SRQ; the private data in the MAD's place. */
  cmConnect(id: number, length: number): number;
  cmAccept(id: number, length: number): number;
  cmEstablish(id: number): number;
  cmReject(id: number, length: number): number;
  cmDisconnect(id: number): number;
  /** A packet has come before the RTU. */
  cmNotify(id: number): number;
  /** Closes librdmacm's files of the removed device that an id is bound to. */
  cmCloseRemoved(id: number): number;
  /** Bytes before: the group. */
  cmJoin(id: number, scopeId: number): number;
  /** Words: local port and scope, the peer's, the device (0: none that is open); bytes: both addresses, as in a path. */
  cmAddresses(id: number): boolean;
  /**
   * Words: path MTU (code), destination QPN, receive PSN, send PSN, P_Key index, ACK timeout, flow label, hop limit, traffic class.
   */
  cmAttributes(id: number): boolean;
}

export interface VerbsBinding extends UserHca {
  /** @throws Error: rdma-core or the kernel's modules are missing; the message is a part of a sentence. */
  VerbsHost: new (
    waker: object,
  ) => VerbsHost;
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
