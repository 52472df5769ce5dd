/**
 * The HCA driver's objects, parameters and results of verbs. As in the IRP-based verbs RFC (2005) they are public
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
 * `outputSize` to the number of bytes that it has written to `output`.
 */
export interface CiUdata {
  /** The provider's bytes behind the structure of the IOCTL; empty if there are none. */
  readonly input: Uint8Array;
  /** Memory for the driver's answer; its length is what the provider has room for. */
  readonly output: Uint8Array;
  /** Bytes of `output` that the driver has written. */
  outputSize: number;
  /** The provider's command and the driver's status (`ci_umv_buf_t`): VerbInfo of the IOCTL, in and out. Default 0. */
  readonly command?: number;
  /** The driver's answer in VerbInfo, such as a failure that the IOCTL itself does not tell. */
  status?: number;
}

/** One device of an HCA, which WinVerbs takes for an HCA: the extension of its device object. */
export class Hca {
  /** The interface is gone, for good. */
  unplugged = false;
  /** There was a fatal error; reset when the last instance is closed. */
  failed = false;
  /** It has failed for good, with all devices of its HCA. */
  broken = false;
  /** Of CiModifyCa; undefined: the CA GUID. */
  systemImageGuid: bigint | undefined = undefined;
  /** Of CiModifyPort. */
  initType = 0;
  /** Port capabilities and the instances that hold them. @internal */
  readonly capabilityHolders = new Map<number, IbCa>();
  /** The open instances; the last one that is closed ends a failure. @internal */
  readonly instances = new Set<IbCa>();
  /** Constant for the life of the HCA. */
  readonly limits: HcaLimits;
  /** What carries the verbs out. @internal */
  readonly native: NativeHca;
  /** @internal */
  readonly backend: HcaBackend;
  /** What the backend keeps of this device. @internal */
  readonly own: BackendDevice;
  /** The last that was known of the port. @internal */
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
    /** For verbs that may wait. @internal */
    readonly work: WorkItems,
  ) {
    this.lastPort = port;
    this.backend = port.hca;
    this.native = port.hca.native;
    this.limits = this.native.limits;
    this.own = port.hca.addDevice(port);
  }

  /** The CA GUID, an EUI-64; it stays as long as the device is there. */
  get guid(): bigint {
    return this.lastPort.guid;
  }

  /** Removed or failed: verbs return FILE_FORCED_CLOSED, destroys still work. */
  get gone(): boolean {
    return this.unplugged || this.failed;
  }

  /** The port as it was at the last look; after removal as it was then, down and without addresses. */
  get port(): KnownPort {
    const current = this.unplugged ? undefined : this.ports.peek(this.guid);
    if (current) this.lastPort = current;
    return this.lastPort;
  }

  /** The interface is gone. @internal */
  remove(): void {
    this.lastPort = { ...this.lastPort, state: PortState.DOWN, gids: [], addresses: [] };
    this.unplugged = true;
    this.own.portChanged(this.lastPort, true);
  }

  /**
   * Releases an instance. The last one ends a fatal error: the HCA is reset. Returns whether the instance held
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
 * Call-backs for events of an HCA instance (IB_CA_DISPATCH); members may be missing. Call-backs of all objects get the
 * context that the client has passed with them, and are called at DISPATCH_LEVEL.
 */
export interface IbCaDispatch<C = unknown> {
  /** The HCA has failed: close the instance. */
  fatalEvent?(ca: IbCa, context: C): void;
  /** A port has changed. `port` from 1, `event` one WV_EVENT_* value. */
  portEvent?(ca: IbCa, context: C, port: number, event: number): void;
}

/** Call-backs for events of a queue pair; members may be missing. */
export interface IbQpDispatch<C = unknown> {
  /** `event` as in QpEventType; `reason` of a fatal one: the status of the completion that failed. */
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
  /** Objects made from this instance. */
  readonly resources = new References();
  /** Closing has begun: no more objects are made from the instance. */
  closed = false;
  /** Requests for events (CiGetCaFatalEvent, CiGetCaPortEvent), and unreported events. */
  readonly fatalWaits = new IrpQueue();
  /** Requests of CiGetCaPortEvent, in the order of their coming. */
  readonly portWaits = new IrpQueue();
  /** A fatal error has happened that no request was waiting for. */
  fatalUntold = false;
  /** WV_EVENT_* values of events that no request was waiting for. */
  readonly portUntold: number[] = [];

  constructor(
    /** The access layer by which the client has opened it. */
    readonly al: IbAl,
    /** The device object, referenced until the instance is closed. */
    readonly device: DeviceObject<Hca>,
    /** The client's own value for its call-backs. */
    readonly context: unknown,
    /** The client's call-backs; empty for clients in user mode. */
    readonly dispatch: IbCaDispatch,
  ) {}

  /** The device that this is an instance of. */
  get hca(): Hca {
    return this.device.extension;
  }
}

/** A protection domain. */
export class IbPd implements WithProvider {
  provider: object | null | undefined = undefined;
  /** Regions, windows, queues and address handles of the domain: while there are any it is not deallocated. */
  readonly resources = new References();

  constructor(
    /** The instance that it was made from. */
    readonly ca: IbCa,
    /** The HCA's own number of it. */
    readonly handle: number,
  ) {}
}

/** A memory region, named by its keys. */
export class IbMr {
  constructor(
    /** The protection domain that the keys are valid in. */
    readonly pd: IbPd,
    /** The key for SGEs of this side. */
    readonly lkey: number,
    /** The key for the peer, as a number. */
    readonly rkey: number,
  ) {}
}

/** A memory window. */
export class IbMw implements WithProvider {
  provider: object | null | undefined = undefined;
  constructor(
    /** The protection domain that the window may be bound in. */
    readonly pd: IbPd,
    /** The HCA's own number of it. */
    readonly handle: number,
    /** The key that it was made with; binding changes its low byte. */
    readonly rkey: number,
  ) {}
}

/** An address handle: the destination of datagrams. */
export class IbAv implements WithProvider {
  provider: object | null | undefined = undefined;
  constructor(
    /** The protection domain whose queue pairs may use it. */
    readonly pd: IbPd,
    /** The HCA's own number of it, which send requests name. */
    readonly handle: number,
    /** Where datagrams with it go. @internal */
    readonly attributes: IbAddressVector,
  ) {}
}

/** A queue pair's membership in a multicast group, by the interface that has joined it. */
export interface IbMcast {
  /** The group's GID, 16 bytes. */
  readonly gid: Uint8Array;
  /** The group's LID as the client gave it; RoCE has none. */
  readonly lid: number;
  /** The index of the network interface that has joined the group. */
  readonly interfaceIndex: number;
}

/** Call-backs for events of a completion queue (IB_CQ_DISPATCH); members may be missing. */
export interface IbCqDispatch<C = unknown> {
  /** The event of ciRearmCq. */
  compEvent?(cq: IbCq, context: C): void;
  /** `event` as in CqEventType: the queue has overrun. */
  asyncEvent?(cq: IbCq, context: C, event: number): void;
}

/** A completion queue (IB_CQ). */
export class IbCq implements WithProvider {
  provider: object | null | undefined = undefined;
  /** Queue pairs that use it. */
  readonly resources = new References();
  /** Event requests that the HCA may complete. */
  readonly waiters = new Set<Irp>();
  /** Event requests of kernel clients: CQ_NOTIFY's type of each. */
  readonly kernelWaits = new IrpQueue<number>();
  /** The HCA reports completions to this kernel. */
  listening = false;
  /** A completion event that was not reported to a call-back or request. */
  untold = false;
  /** It has overrun. */
  dead = false;

  constructor(
    /** The instance that it was made from. */
    readonly ca: IbCa,
    /** The HCA's own number of it. */
    readonly handle: number,
    /** The client's own value for its call-backs. */
    readonly context: unknown,
    /** The client's call-backs; empty for clients in user mode. */
    readonly dispatch: IbCqDispatch,
    /** The actual number of entries. */
    public numCqes: number,
  ) {}
}

/** Call-backs for events of a shared receive queue; members may be missing. */
export interface IbSrqDispatch<C = unknown> {
  /** Fewer receives are left than the limit. */
  limitEvent?(srq: IbSrq, context: C): void;
  /** A queue pair in ERROR takes nothing more from the queue. */
  lastWqeEvent?(srq: IbSrq, context: C, qp: IbQp): void;
  /** `event` as in SrqEventType: the queue has failed for good. */
  asyncEvent?(srq: IbSrq, context: C, event: number): void;
}

/** A shared receive queue. */
export class IbSrq implements WithProvider {
  provider: object | null | undefined = undefined;
  /** Queue pairs that use it. */
  readonly resources = new References();
  /** Event requests, and unreported events: the limit event, and ended queue pairs. */
  readonly waits = new IrpQueue();
  /** The limit was reached while no request was waiting. */
  limitUntold = false;
  /** Queue pairs that take nothing more from it, of which no request has been told. */
  readonly endedUntold = new Set<IbQp>();
  /** Its ring was invalid. */
  broken = false;

  constructor(
    /** The protection domain of its receives' memory. */
    readonly pd: IbPd,
    /** The HCA's own number of it. */
    readonly handle: number,
    /** The actual number of receives. */
    public maxWr: number,
    /** The actual number of SGEs of a receive. */
    readonly maxSge: number,
    /** The client's own value for its call-backs. */
    readonly context: unknown,
    /** The client's call-backs; empty for clients in user mode. */
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
  /** 0: up to the HCA's limit. */
  initiatorDepth: number;
  /** 0: up to the HCA's limit. */
  responderResources: number;
  /** It takes requests of fast registration, which the provider checks. */
  memoryManagement: boolean;
};

const noGroups: readonly IbMcast[] = [];

/** A queue pair. */
export class IbQp implements WithProvider {
  provider: object | null | undefined = undefined;
  /** Hears of its events before the client does: the endpoint that a kernel client has connected it with. */
  connectionEvent: ((event: number, reason: number) => void) | undefined = undefined;
  /** UD: the multicast groups that it is attached to. */
  groups: readonly IbMcast[] = noGroups;
  /** QpMask bits of the attributes set since RESET. */
  given = 0;
  /** The last one that was set. */
  pkeyIndex = 0;
  /** Event requests, made for the first, and unreported events; undefined if the client has a call-back. */
  waits: IrpQueue | undefined = undefined;
  /** Numbers of events (QpEventType) that no request was waiting for. */
  untold: number[] | undefined = undefined;

  constructor(
    /** The protection domain that its memory and windows are of. */
    readonly pd: IbPd,
    /** The completion queue of its send requests. */
    readonly sendCq: IbCq,
    /** The completion queue of its receives. */
    readonly receiveCq: IbCq,
    /** The queue that it takes receives from; undefined: it has its own. */
    readonly srq: IbSrq | undefined,
    /** The HCA's own number of it. */
    readonly handle: number,
    /** Its number on the wire, 24 bits. */
    readonly qpn: number,
    /** What it was created with. */
    readonly create: IbQpCreate,
    /** The client's own value for its call-backs. */
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

/** A ring address that a number can represent exactly; any other one becomes an invalid address. */
export function ringAddress(address: bigint): number {
  return address < 2n ** 47n ? Number(address) : 0;
}

/** Completes a verb's IRP; returns the status for the verb to return. */
export function finish<T>(irp: Irp<T>, status: number, information?: T): number {
  return status === Status.SUCCESS ? irp.complete(status, information) : irp.complete(status);
}

/** Whether provider output of `size` bytes fits. No output at all is allowed (a provider without that hook). */
export function outputFits(udata: CiUdata, size: number): boolean {
  return udata.output.length === 0 || udata.output.length >= size;
}

/** Returns provider output, if the provider requested it. */
export function putOutput(udata: CiUdata, bytes: Uint8Array): void {
  if (udata.output.length < bytes.length) return;
  udata.output.set(bytes);
  udata.outputSize = bytes.length;
}
