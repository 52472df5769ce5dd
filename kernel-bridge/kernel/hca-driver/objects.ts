/**
 * The HCA driver's objects, parameters and results of verbs. As in the IRP-based verbs RFC (2005) they are public
 * structures, not opaque handles, and each may have a dispatch table for events.
 */
import type { HcaLimits, NativeHca, QpCreateParameters } from '../../hca/binding.js';
import type { NativeChannelServer } from '../../hca/channel-binding.js';
import { PortState } from '../../ioctl/constants.js';
import { Status } from '../../ioctl/status.js';
import { type DeviceObject, References } from '../io-manager/device.js';
import { type Irp, IrpQueue, type RequestorMode } from '../io-manager/irp.js';
import type { IbAddressVector } from './address-vector.js';
import type { BackendDevice, HcaBackend } from './backend.js';
import type { KnownPort, PortTable } from './ports.js';

/**
 * Data between the user-mode provider and this driver (CI_UDATA). The driver checks it like any other input, and sets
 * `outputSize` to the number of bytes that it has written to `output`.
 */
export interface CiUdata {
  readonly input: Uint8Array;
  readonly output: Uint8Array;
  outputSize: number;
}

/** One device of an HCA, which WinVerbs takes for an HCA: the extension of its device object. */
export class Hca {
  /** The interface is gone, for good. */
  unplugged = false;
  /** There was a fatal error; reset when the last instance is closed. */
  failed = false;
  /** Of CiModifyCa; undefined: the CA GUID. */
  systemImageGuid: bigint | undefined = undefined;
  /** Of CiModifyPort. */
  initType = 0;
  /** Port capabilities and the instances that hold them. */
  readonly capabilityHolders = new Map<number, IbCa>();
  readonly instances = new Set<IbCa>();
  /** Constant for the life of the HCA. */
  readonly limits: HcaLimits;
  readonly native: NativeHca;
  readonly backend: HcaBackend;
  /** What the backend keeps of this device. */
  readonly own: BackendDevice;
  /** The last that was known of the port. */
  private lastPort: KnownPort;

  constructor(
    readonly ports: PortTable,
    /** The channel whose slots are completed by completion queue events. */
    readonly server: NativeChannelServer,
    port: KnownPort,
    /** Live queues of all devices of the backend by handle, for its events. */
    readonly registry: HcaRegistry,
  ) {
    this.lastPort = port;
    this.backend = port.hca;
    this.native = port.hca.native;
    this.limits = this.native.limits;
    this.own = port.hca.addDevice(port);
  }

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

  /** The interface is gone. */
  remove(): void {
    this.lastPort = { ...this.lastPort, state: PortState.DOWN, gids: [], addresses: [] };
    this.unplugged = true;
    this.own.portChanged(this.lastPort, true);
  }

  /** Releases an instance. The last one ends a fatal error: the HCA is reset. */
  release(ca: IbCa): void {
    this.instances.delete(ca);
    for (const [bit, holder] of [...this.capabilityHolders]) {
      if (holder === ca) this.capabilityHolders.delete(bit);
    }
    if (this.instances.size === 0) this.failed = false;
  }
}

/** Queues by the HCA's handles. */
export interface HcaRegistry {
  readonly qps: Map<number, IbQp>;
  readonly cqs: Map<number, IbCq>;
  readonly srqs: Map<number, IbSrq>;
}

/** Call-backs for events of an HCA instance (IB_CA_DISPATCH); members may be missing. */
export interface IbCaDispatch {
  /** The HCA has failed: close the instance. */
  fatalEvent?(ca: IbCa): void;
  /** `flags` WV_EVENT_*. */
  portEvent?(ca: IbCa, port: number, flags: number): void;
}

/** Call-backs for events of a queue pair; `event` as in QpEventType. */
export interface IbQpDispatch {
  asyncEvent?(qp: IbQp, event: number, reason: number): void;
}

/** An open instance of an HCA (IB_CA). */
export class IbCa {
  /** Objects made from this instance. */
  readonly resources = new References();
  closed = false;
  /** Requests for events (CiGetCaFatalEvent, CiGetCaPortEvent), and unreported events. */
  readonly fatalWaits = new IrpQueue();
  readonly portWaits = new IrpQueue();
  fatalUntold = false;
  portUntold = 0;

  constructor(
    readonly device: DeviceObject<Hca>,
    readonly dispatch: IbCaDispatch,
  ) {}

  get hca(): Hca {
    return this.device.extension;
  }
}

/** A protection domain. */
export class IbPd {
  readonly resources = new References();

  constructor(
    readonly ca: IbCa,
    readonly handle: number,
  ) {}
}

/** A memory region, named by its keys. */
export class IbMr {
  constructor(
    readonly pd: IbPd,
    readonly lkey: number,
    readonly rkey: number,
  ) {}
}

/** A memory window. */
export class IbMw {
  constructor(
    readonly pd: IbPd,
    readonly handle: number,
    readonly rkey: number,
  ) {}
}

/** An address handle: the destination of datagrams. */
export class IbAv {
  constructor(
    readonly pd: IbPd,
    readonly handle: number,
    readonly attributes: IbAddressVector,
  ) {}
}

/** A queue pair's membership in a multicast group, by the interface that has joined it. */
export interface IbMcast {
  readonly gid: Uint8Array;
  readonly lid: number;
  readonly interfaceIndex: number;
}

/** Call-backs for events of a completion queue (IB_CQ_DISPATCH); members may be missing. */
export interface IbCqDispatch {
  /** The event of ciArmCq. */
  compEvent?(cq: IbCq): void;
  /** `event` as in CqEventType: the queue has overrun. */
  asyncEvent?(cq: IbCq, event: number): void;
}

/** A completion queue (IB_CQ). */
export class IbCq {
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
    readonly ca: IbCa,
    readonly handle: number,
    /** Its owner may replace it, but not add the first compEvent later. */
    public dispatch: IbCqDispatch,
    /** The actual number of entries. */
    public numCqes: number,
  ) {}
}

/** A shared receive queue. */
export class IbSrq {
  /** Queue pairs that use it. */
  readonly resources = new References();
  /** Event requests, and unreported events: the limit event, and ended queue pairs. */
  readonly waits = new IrpQueue();
  limitUntold = false;
  readonly endedUntold = new Set<IbQp>();
  /** Its ring was invalid. */
  broken = false;

  constructor(
    readonly pd: IbPd,
    readonly handle: number,
    /** The actual number of receives. */
    public maxWr: number,
    readonly maxSge: number,
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
  sendDepth: number;
  receiveDepth: number;
  /** 0: up to the HCA's limit. */
  initiatorDepth: number;
  /** 0: up to the HCA's limit. */
  responderResources: number;
};

const noGroups: readonly IbMcast[] = [];

/** A queue pair. */
export class IbQp {
  /** UD: the multicast groups that it is attached to. */
  groups: readonly IbMcast[] = noGroups;
  /** QpMask bits of the attributes set since RESET. */
  given = 0;
  /** The last one that was set. */
  pkeyIndex = 0;

  constructor(
    readonly pd: IbPd,
    readonly sendCq: IbCq,
    readonly receiveCq: IbCq,
    readonly srq: IbSrq | undefined,
    readonly handle: number,
    readonly qpn: number,
    readonly create: IbQpCreate,
    /** Its owner may replace it. */
    public dispatch: IbQpDispatch,
  ) {}
}

/** Whether a request may pass this dispatch table: only kernel mode has call-backs. */
export function mayDispatch(irp: { readonly requestorMode: RequestorMode }, dispatch: object): boolean {
  return irp.requestorMode === 'kernel' || Object.values(dispatch).every((member) => member === undefined);
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
