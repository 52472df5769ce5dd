/**
 * The HCA driver's objects: what verbs take and make. In the form of the IRP-based verbs RFC (2005) they are public
 * structures, not opaque handles, and each may carry a dispatch table for events.
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
 * `outputSize` to the bytes it has written to `output`.
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
  /** There was a fatal error; over when the last instance is closed. */
  failed = false;
  /** Of CiModifyCa; undefined: the CA GUID. */
  systemImageGuid: bigint | undefined = undefined;
  /** Of CiModifyPort. */
  initType = 0;
  /** Port capabilities and who holds them. */
  readonly capabilityHolders = new Map<number, IbCa>();
  readonly instances = new Set<IbCa>();
  /** Fixed for the life of the HCA. */
  readonly limits: HcaLimits;
  readonly native: NativeHca;
  readonly backend: HcaBackend;
  /** What the backend keeps of this device. */
  readonly own: BackendDevice;
  /** The last that was known of the port. */
  private lastPort: KnownPort;

  constructor(
    readonly ports: PortTable,
    /** Whose requests' slots completion queue events complete. */
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

  /** No longer functional: verbs answer FILE_FORCED_CLOSED, destroys still work. */
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

  /** Lets an instance go. With the last one a fatal error is over: the HCA starts afresh. */
  release(ca: IbCa): void {
    this.instances.delete(ca);
    for (const [bit, holder] of [...this.capabilityHolders]) {
      if (holder === ca) this.capabilityHolders.delete(bit);
    }
    if (this.instances.size === 0) this.failed = false;
  }
}

/** Live queues by the HCA's handles. */
export interface HcaRegistry {
  readonly qps: Map<number, IbQp>;
  readonly cqs: Map<number, IbCq>;
  readonly srqs: Map<number, IbSrq>;
}

/** Called for events of an HCA instance (IB_CA_DISPATCH); members may be missing. */
export interface IbCaDispatch {
  /** The HCA has failed: close the instance. */
  fatalEvent?(ca: IbCa): void;
  /** `flags` WV_EVENT_*. */
  portEvent?(ca: IbCa, port: number, flags: number): void;
}

/** Called for a queue pair's events; `event` as in QpEventType. */
export interface IbQpDispatch {
  asyncEvent?(qp: IbQp, event: number, reason: number): void;
}

/** An open instance of an HCA (IB_CA). */
export class IbCa {
  /** Objects made from this instance that still live. */
  readonly resources = new References();
  closed = false;
  /** Requests for events (CiGetCaFatalEvent, CiGetCaPortEvent), and what none of them was told yet. */
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

/** A memory region. Its keys name it. */
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

/** An address handle: where datagrams go. */
export class IbAv {
  constructor(
    readonly pd: IbPd,
    readonly handle: number,
    readonly attributes: IbAddressVector,
  ) {}
}

/** A multicast group that a queue pair is attached to, by the interface that has joined it. */
export interface IbMcast {
  readonly gid: Uint8Array;
  readonly lid: number;
  readonly interfaceIndex: number;
}

/** Called for a completion queue's events (IB_CQ_DISPATCH); members may be missing. */
export interface IbCqDispatch {
  /** What ciArmCq asked for has come. */
  compEvent?(cq: IbCq): void;
  /** `event` as in CqEventType: the queue overran. */
  asyncEvent?(cq: IbCq, event: number): void;
}

/** A completion queue (IB_CQ). */
export class IbCq {
  /** Queue pairs that complete here. */
  readonly resources = new References();
  /** Event requests that the HCA may complete. */
  readonly waiters = new Set<Irp>();
  /** Event requests of kernel clients: CQ_NOTIFY's type of each. */
  readonly kernelWaits = new IrpQueue<number>();
  /** The HCA tells this kernel of completions. */
  listening = false;
  /** A completion event came that no call-back and no request was told of. */
  untold = false;
  /** It overran. */
  dead = false;

  constructor(
    readonly ca: IbCa,
    readonly handle: number,
    /** Its owner may exchange it, but not bring the first compEvent later. */
    public dispatch: IbCqDispatch,
    /** The actual number of entries. */
    public numCqes: number,
  ) {}
}

/** A shared receive queue. */
export class IbSrq {
  /** Queue pairs that receive from it. */
  readonly resources = new References();
  /** Event requests, and what none of them was told yet: the limit event, and queue pairs that have ended. */
  readonly waits = new IrpQueue();
  limitUntold = false;
  readonly endedUntold = new Set<IbQp>();
  /** The HCA could make nothing of its ring. */
  broken = false;

  constructor(
    readonly pd: IbPd,
    readonly handle: number,
    /** The actual number of receives. */
    public maxWr: number,
    readonly maxSge: number,
  ) {}
}

/** What a queue pair was made with, as far as it can be asked later. */
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
  /** QpMask bits of the attributes that were given since RESET. */
  given = 0;
  /** The latest that was given. */
  pkeyIndex = 0;

  constructor(
    readonly pd: IbPd,
    readonly sendCq: IbCq,
    readonly receiveCq: IbCq,
    readonly srq: IbSrq | undefined,
    readonly handle: number,
    readonly qpn: number,
    readonly create: IbQpCreate,
    /** Its owner may exchange it. */
    public dispatch: IbQpDispatch,
  ) {}
}

/** Whether a request may bring this dispatch table: call-backs are for kernel mode. */
export function mayDispatch(irp: { readonly requestorMode: RequestorMode }, dispatch: object): boolean {
  return irp.requestorMode === 'kernel' || Object.values(dispatch).every((member) => member === undefined);
}

/** Provider input, or undefined when it is shorter than its structure. */
export function providerInput<V>(
  udata: CiUdata,
  layout: { readonly size: number; decode(bytes: Uint8Array): V },
): V | undefined {
  return udata.input.length >= layout.size ? layout.decode(udata.input) : undefined;
}

/** A ring address that a number can hold exactly; anything else is no ring. */
export function ringAddress(address: bigint): number {
  return address < 2n ** 47n ? Number(address) : 0;
}

/** Completes a verb's IRP; answers the status for the verb to return. */
export function finish<T>(irp: Irp<T>, status: number, information?: T): number {
  return status === Status.SUCCESS ? irp.complete(status, information) : irp.complete(status);
}

/** Whether provider output of `size` bytes has room: none at all is allowed (a provider without that hook). */
export function outputFits(udata: CiUdata, size: number): boolean {
  return udata.output.length === 0 || udata.output.length >= size;
}

/** Gives provider output back, if the provider asked for any. */
export function putOutput(udata: CiUdata, bytes: Uint8Array): void {
  if (udata.output.length < bytes.length) return;
  udata.output.set(bytes);
  udata.outputSize = bytes.length;
}
