/**
 * The HCA driver's objects, and parameters and results of verbs. As in the IRP-based verbs RFC (2005) they are public
 * structures, not opaque handles, and each may have a dispatch table for events.
 */

import type { NativeChannelServer } from '../../hca/request-channel-binding.js';
import type { HcaLimits, NativeHca, QpCreateParameters } from '../../hca/soft-hca-binding.js';
import { PortState } from '../../ioctl/constants.js';
import { Status } from '../../ioctl/status.js';
import { type DeviceObject, References } from '../io-manager/device-object.js';
import { type Irp, IrpQueue } from '../io-manager/irp.js';
import type { WorkItems } from '../io-manager/work-items.js';
import type { IbAl } from './al.js';
import type { BackendDevice, HcaBackend } from './backend.js';
import type { IbAddressVector, KnownPort, PortTable } from './hca-ports.js';

/**
 * Data between the user-mode provider and this driver (CI_UDATA). The driver checks it like any other input, and sets
 * `outputSize` to the number of bytes written to `output`.
 */
export interface CiUdata {
  /** The provider's bytes after the structure of the IOCTL; may be empty. */
  readonly input: Uint8Array;
  /** Memory for the driver's output; its length is the room that the provider has. */
  readonly output: Uint8Array;
  /** Number of bytes of `output` written by the driver. */
  outputSize: number;
  /** The provider's command and the driver's status (`ci_umv_buf_t`): VerbInfo of the IOCTL, in and out. Default 0. */
  readonly command?: number;
  /** The driver's status in VerbInfo, such as a failure that the IOCTL itself does not report. */
  status?: number;
}

/** One device of an HCA, which WinVerbs treats as an HCA: the extension of its device object. */
export class Hca {
  /** Whether the interface is gone permanently. */
  unplugged = false;
  /** Whether there was a fatal error; reset when the last instance is closed. */
  failed = false;
  /** Whether the device has failed permanently, with all devices of its HCA. */
  broken = false;
  /** Set by CiModifyCa. Undefined: the CA GUID. */
  systemImageGuid: bigint | undefined = undefined;
  /** Set by CiModifyPort. */
  initType = 0;
  /** Port capabilities and the instances that hold them. @internal */
  readonly capabilityHolders = new Map<number, IbCa>();
  /** The open instances; closing the last one ends a failure. @internal */
  readonly instances = new Set<IbCa>();
  /** Limits, constant for the life of the HCA. */
  readonly limits: HcaLimits;
  /** Executes the verbs. @internal */
  readonly native: NativeHca;
  /** @internal */
  readonly backend: HcaBackend;
  /** The backend's own state of this device. @internal */
  readonly own: BackendDevice;
  /** The last known port. @internal */
  private lastPort: KnownPort;

  /** @internal */
  constructor(
    /** @internal */
    readonly ports: PortTable,
    /** The channel whose slots are completed by completion queue events. @internal */
    readonly server: NativeChannelServer,
    port: KnownPort,
    /** Live queues of all devices of the backend by handle, for its events. @internal */
    readonly registry: HcaRegistry,
    /** For verbs that may block. @internal */
    readonly work: WorkItems,
  ) {
    this.lastPort = port;
    this.backend = port.hca;
    this.native = port.hca.native;
    this.limits = this.native.limits;
    this.own = port.hca.addDevice(port);
  }

  /** The CA GUID, an EUI-64; constant as long as the device exists. */
  get guid(): bigint {
    return this.lastPort.guid;
  }

  /** Removed or failed: verbs return FILE_FORCED_CLOSED, destroys still work. */
  get gone(): boolean {
    return this.unplugged || this.failed;
  }

  /** The port as of the last scan; after removal, that port without addresses and in state down. */
  get port(): KnownPort {
    const current = this.unplugged ? undefined : this.ports.peek(this.guid);
    if (current) this.lastPort = current;
    return this.lastPort;
  }

  /** Called when the interface is gone. @internal */
  remove(): void {
    this.lastPort = { ...this.lastPort, state: PortState.DOWN, gids: [], addresses: [] };
    this.unplugged = true;
    this.own.portChanged(this.lastPort, true);
  }

  /**
   * Releases an instance. The last release ends a fatal error: the HCA is reset. Returns whether the instance held
   * capabilities of the port.
   *
   * @internal
   */
  release(ca: IbCa): boolean {
    this.instances.delete(ca);
    const held = [...this.capabilityHolders].filter(([, holder]) => holder === ca);
    for (const [bit] of held) this.capabilityHolders.delete(bit);
    if (this.instances.size === 0) this.failed = this.broken;
    return held.length > 0;
  }
}

/** Queues by the HCA's handles. */
export interface HcaRegistry {
  readonly qps: Map<number, IbQp>;
  readonly cqs: Map<number, IbCq>;
  readonly srqs: Map<number, IbSrq>;
}

/**
 * Callbacks for events of an HCA instance (IB_CA_DISPATCH); all are optional. Callbacks of all objects receive the
 * context passed by the client, and are called at DISPATCH_LEVEL.
 */
export interface IbCaDispatch<C = unknown> {
  /** The HCA has failed: close the instance. */
  fatalEvent?(ca: IbCa, context: C): void;
  /** A port has changed. `port` from 1, `event` one WV_EVENT_* value. */
  portEvent?(ca: IbCa, context: C, port: number, event: number): void;
}

/** Callbacks for events of a queue pair; all are optional. */
export interface IbQpDispatch<C = unknown> {
  /** `event` as in QpEventType. The `reason` of a fatal event is the status of the failed completion. */
  asyncEvent?(qp: IbQp, context: C, event: number, reason: number): void;
}

/** An object whose provider runs in the kernel, for verbs that are called directly. */
export interface WithProvider {
  /** The provider's own object; undefined for objects of user-mode clients, whose provider is in their process. */
  provider: object | null | undefined;
}

/** An open instance of an HCA (IB_CA). */
export class IbCa implements WithProvider {
  provider: object | null | undefined = undefined;
  /** Objects created from this instance. */
  readonly resources = new References();
  /** Whether closing has begun: no more objects can be created from the instance. */
  closed = false;
  /** Requests for events (CiGetCaFatalEvent, CiGetCaPortEvent), and unreported events. */
  readonly fatalWaits = new IrpQueue();
  /** Requests of CiGetCaPortEvent, in order of arrival. */
  readonly portWaits = new IrpQueue();
  /** Whether a fatal error occurred while no request was pending. */
  fatalUnreported = false;
  /** WV_EVENT_* values of events that occurred while no request was pending. */
  readonly portUnreported: number[] = [];

  constructor(
    /** The access layer through which the client has opened it. */
    readonly al: IbAl,
    /** The device object, referenced until the instance is closed. */
    readonly device: DeviceObject<Hca>,
    /** The client's value for its callbacks. */
    readonly context: unknown,
    /** The client's callbacks; empty for user-mode clients. */
    readonly dispatch: IbCaDispatch,
  ) {}

  /** The device of this instance. */
  get hca(): Hca {
    return this.device.extension;
  }
}

/** A protection domain. */
export class IbPd implements WithProvider {
  provider: object | null | undefined = undefined;
  /** Regions, windows, queues and address handles of the domain: while there are any, it cannot be deallocated. */
  readonly resources = new References();

  constructor(
    /** The instance that it was created from. */
    readonly ca: IbCa,
    /** The HCA's handle. */
    readonly handle: number,
  ) {}
}

/** A memory region, identified by its keys. */
export class IbMr {
  constructor(
    /** The protection domain of the keys. */
    readonly pd: IbPd,
    /** The key for local SGEs. */
    readonly lkey: number,
    /** The key for the peer, as a number. */
    readonly rkey: number,
  ) {}
}

/** A memory window. */
export class IbMw implements WithProvider {
  provider: object | null | undefined = undefined;
  constructor(
    /** The window can be bound in this protection domain. */
    readonly pd: IbPd,
    /** The HCA's handle. */
    readonly handle: number,
    /** The key that it was created with; binding changes its low byte. */
    readonly rkey: number,
  ) {}
}

/** An address handle: the destination of datagrams. */
export class IbAv implements WithProvider {
  provider: object | null | undefined = undefined;
  constructor(
    /** The protection domain whose queue pairs may use it. */
    readonly pd: IbPd,
    /** The HCA's handle, for send requests. */
    readonly handle: number,
    /** The destination of its datagrams. @internal */
    readonly attributes: IbAddressVector,
  ) {}
}

/** A queue pair's membership in a multicast group, on the interface that has joined it. */
export interface IbMcast {
  /** The group's GID, 16 bytes. */
  readonly gid: Uint8Array;
  /** The group's LID as passed by the client; RoCE has none. */
  readonly lid: number;
  /** The index of the network interface that has joined the group. */
  readonly interfaceIndex: number;
}

/** Callbacks for events of a completion queue (IB_CQ_DISPATCH); all are optional. */
export interface IbCqDispatch<C = unknown> {
  /** The event of ciRearmCq. */
  compEvent?(cq: IbCq, context: C): void;
  /** The queue has overrun; `event` as in CqEventType. */
  asyncEvent?(cq: IbCq, context: C, event: number): void;
}

/** A completion queue (IB_CQ). */
export class IbCq implements WithProvider {
  provider: object | null | undefined = undefined;
  /** Queue pairs that use it. */
  readonly resources = new References();
  /** Event requests that the HCA may complete. */
  readonly waiters = new Set<Irp>();
  /** Event requests of kernel clients, with the type of CQ_NOTIFY. */
  readonly kernelWaits = new IrpQueue<number>();
  /** Whether the HCA reports completions to this kernel. */
  listening = false;
  /** Whether a completion event was not reported to a callback or request. */
  unreported = false;
  /** Whether the queue has overrun. */
  dead = false;

  constructor(
    /** The instance that it was created from. */
    readonly ca: IbCa,
    /** The HCA's handle. */
    readonly handle: number,
    /** The client's value for its callbacks. */
    readonly context: unknown,
    /** The client's callbacks; empty for user-mode clients. */
    readonly dispatch: IbCqDispatch,
    /** The actual number of entries. */
    public numCqes: number,
  ) {}
}

/** Callbacks for events of a shared receive queue; all are optional. */
export interface IbSrqDispatch<C = unknown> {
  /** Fewer receives are left than the limit. */
  limitEvent?(srq: IbSrq, context: C): void;
  /** A queue pair in ERROR no longer consumes receives from the queue. */
  lastWqeEvent?(srq: IbSrq, context: C, qp: IbQp): void;
  /** The queue has failed permanently; `event` as in SrqEventType. */
  asyncEvent?(srq: IbSrq, context: C, event: number): void;
}

/** A shared receive queue. */
export class IbSrq implements WithProvider {
  provider: object | null | undefined = undefined;
  /** Queue pairs that use it. */
  readonly resources = new References();
  /** Event requests, and unreported events: the limit event, and ended queue pairs. */
  readonly waits = new IrpQueue();
  /** Whether the limit was reached while no request was pending. */
  limitUnreported = false;
  /** Queue pairs that no longer consume receives from it and were not yet reported to a request. */
  readonly endedUnreported = new Set<IbQp>();
  /** Whether the queue's ring was invalid. */
  broken = false;

  constructor(
    /** The protection domain of its receives' memory. */
    readonly pd: IbPd,
    /** The HCA's handle. */
    readonly handle: number,
    /** The actual number of receives. */
    public maxWr: number,
    /** The actual number of SGEs of a receive. */
    readonly maxSge: number,
    /** The client's value for its callbacks. */
    readonly context: unknown,
    /** The client's callbacks; empty for user-mode clients. */
    readonly dispatch: IbSrqDispatch,
  ) {}
}

/** The creation parameters of a queue pair that can be queried later. */
export type IbQpCreate = Omit<
  QpCreateParameters,
  | 'pd'
  | 'sendCq'
  | 'receiveCq'
  | 'srq'
  | 'token'
  | 'ringAddress'
  | 'ringBytes'
  | 'sendEntries'
  | 'sendStride'
  | 'receiveEntries'
  | 'receiveStride'
> & {
  /** Outstanding send requests, as granted. */
  sendDepth: number;
  /** Outstanding receives, as granted; 0 with a shared receive queue. */
  receiveDepth: number;
  /** Outstanding RDMA Reads and atomics of this side; 0: the HCA's limit. */
  initiatorDepth: number;
  /** The peer's RDMA Reads and atomics served at a time; 0: the HCA's limit. */
  responderResources: number;
  /** Whether the queue pair accepts fast registration requests, which the provider checks. */
  memoryManagement: boolean;
};

const noGroups: readonly IbMcast[] = [];

/** A queue pair. */
export class IbQp implements WithProvider {
  provider: object | null | undefined = undefined;
  /** Receives its events before the client does: the endpoint to which a kernel client has connected it. */
  connectionEvent: ((event: number, reason: number) => void) | undefined = undefined;
  /** UD: the multicast groups to which it is attached. */
  groups: readonly IbMcast[] = noGroups;
  /** QpMask bits of the attributes set since RESET. */
  given = 0;
  /** The last P_Key index that was set. */
  pkeyIndex = 0;
  /** Event requests, created by the first, and unreported events; undefined if the client has a callback. */
  waits: IrpQueue | undefined = undefined;
  /** Events (QpEventType) that occurred while no request was pending. */
  unreported: number[] | undefined = undefined;

  constructor(
    /** The protection domain of its memory and windows. */
    readonly pd: IbPd,
    /** The completion queue of its send requests. */
    readonly sendCq: IbCq,
    /** The completion queue of its receives. */
    readonly receiveCq: IbCq,
    /** The shared receive queue. Undefined: it has its own queue. */
    readonly srq: IbSrq | undefined,
    /** The HCA's handle. */
    readonly handle: number,
    /** The queue pair number, 24 bits. */
    readonly qpn: number,
    /** The creation parameters of the queue pair. */
    readonly create: IbQpCreate,
    /** The client's value for its callbacks. */
    readonly context: unknown,
    /** Empty once the queue pair is destroyed. */
    public dispatch: IbQpDispatch,
  ) {}
}

/** Provider input, or undefined if it is shorter than its structure. */
export function providerInput<V>(
  udata: CiUdata,
  layout: { readonly size: number; decode(bytes: Uint8Array): V },
): V | undefined {
  return udata.input.length >= layout.size ? layout.decode(udata.input) : undefined;
}

/** A ring address that a number can represent exactly; any other becomes an invalid address. */
export function ringAddress(address: bigint): number {
  return address < 2n ** 47n ? Number(address) : 0;
}

/** Completes a verb's IRP; returns the status for the verb to return. */
export function finish<T>(irp: Irp<T>, status: number, information?: T): number {
  return status === Status.SUCCESS ? irp.complete(status, information) : irp.complete(status);
}

/** Whether provider output of `size` bytes fits. No output is valid too (a provider without that hook). */
export function outputFits(udata: CiUdata, size: number): boolean {
  return udata.output.length === 0 || udata.output.length >= size;
}

/** Returns provider output if the provider has requested it. */
export function putOutput(udata: CiUdata, bytes: Uint8Array): void {
  if (udata.output.length < bytes.length) return;
  udata.output.set(bytes);
  udata.outputSize = bytes.length;
}
