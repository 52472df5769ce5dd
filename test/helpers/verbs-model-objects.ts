/** The objects of a run and the model's data of each. */
import {
  type IWVAddressHandle,
  type IWVCompletionQueue,
  type IWVConnectEndpoint,
  type IWVDatagramQueuePair,
  type IWVDevice,
  type IWVMemoryWindow,
  type IWVProtectionDomain,
  type IWVQueuePair,
  type IWVSharedReceiveQueue,
  type Overlapped,
  QpType,
  Status,
  WcStatus,
  WvAccess,
  type WvCompletion,
  type WvMemoryRegion,
  type WvUnknown,
  WvWc,
} from '../../winverbs/index.js';
import { type Pair, QueuePair, REQUEST_ERRORS, SharedReceives } from './verbs-model-queues.js';

export const REGION_BYTES = 4096;
export const MESSAGE_BYTES = 64;
/** Entries of every CQ. This is also the maximum number of requests that may complete there without polling, so that none overruns. */
export const CQ_ENTRIES = 512;
export const MOST_OBJECTS = 12;
/** Maximum posted Receives of a shared queue that have not completed. */
export const MOST_SHARED = 24;

export const REGION_ACCESS = [
  WvAccess.LOCAL_WRITE |
    WvAccess.REMOTE_READ |
    WvAccess.REMOTE_WRITE |
    WvAccess.REMOTE_ATOMIC |
    WvAccess.MW_BIND,
  WvAccess.LOCAL_WRITE |
    WvAccess.REMOTE_READ |
    WvAccess.REMOTE_WRITE |
    WvAccess.REMOTE_ATOMIC |
    WvAccess.MW_BIND,
  WvAccess.LOCAL_WRITE | WvAccess.MW_BIND,
  WvAccess.LOCAL_WRITE,
  0,
  // Access rights that are rejected: rights to write without LOCAL_WRITE, and an unknown right.
  WvAccess.REMOTE_ATOMIC,
  0x40,
] as const;

/** An object and the model's data of it. */
export class Counted<T extends WvUnknown> {
  users = 1;
  constructor(
    readonly kind: string,
    readonly real: T,
  ) {}
}

export class Device extends Counted<IWVDevice> {}

export class Cq extends Counted<IWVCompletionQueue> {
  readonly notifies: Overlapped<void>[] = [];
  /** Maximum completions that it can contain without polling. */
  budget = 0;
  constructor(
    readonly device: Device,
    real: IWVCompletionQueue,
  ) {
    super('completion queue', real);
  }
}

export class Pd extends Counted<IWVProtectionDomain> {
  constructor(
    readonly device: Device,
    real: IWVProtectionDomain,
  ) {
    super('protection domain', real);
  }
}

export class Mw extends Counted<IWVMemoryWindow> {
  bound: 'no' | 'yes' | 'maybe' = 'no';
  region: Region | undefined;
  /** Regions to which it may be bound, while this is not determined. */
  readonly candidates = new Set<Region>();
  /** Number of posted requests that change it. */
  changes = 0;
  qp: QueuePair<Pd, Cq> | undefined;
  constructor(
    readonly pd: Pd,
    real: IWVMemoryWindow,
  ) {
    super('memory window', real);
  }
}

export class Srq extends Counted<IWVSharedReceiveQueue> {
  readonly receives = new SharedReceives();
  constructor(
    readonly pd: Pd,
    real: IWVSharedReceiveQueue,
  ) {
    super('shared receive queue', real);
  }
}

export interface Region {
  readonly pd: Pd;
  readonly real: WvMemoryRegion;
  readonly access: number;
  live: boolean;
}

export type Qp = QueuePair<Pd, Cq>;
/** A queue pair of any kind. */
export type AnyQp = QueuePair<Pd, Cq, IWVQueuePair>;

export class Ah extends Counted<IWVAddressHandle> {
  constructor(
    readonly pd: Pd,
    real: IWVAddressHandle,
    /** The group, if that is the destination. */
    readonly group: string | undefined,
  ) {
    super('address handle', real);
  }
}

/** A posted datagram. Its immediate data is its index in the {@link Mail}. */
export interface Datagram {
  readonly from: Ud;
  readonly to: Ud | string;
  readonly length: number;
  readonly got: Set<Ud>;
}

/** All datagrams of a run. */
export class Mail {
  readonly all: Datagram[] = [];
}

/** Bytes before each received datagram. */
export const GRH = 40;

/** A datagram queue pair. It receives datagrams for itself or its groups, each at most once. */
export class Ud extends QueuePair<Pd, Cq, IWVDatagramQueuePair> {
  /** Groups to which it is attached now, and all groups to which it has ever been attached. */
  readonly groups = new Set<string>();
  readonly heard = new Set<string>();
  /** Also LOCAL_LENGTH_ERROR, because a datagram may be too long. */
  protected override readonly errors = new Set([...REQUEST_ERRORS, WcStatus.LOCAL_LENGTH_ERROR]);
  private readonly qpn: number;

  constructor(
    real: IWVDatagramQueuePair,
    context: object,
    pd: Pd,
    sendCq: Cq,
    receiveCq: Cq,
    sendDepth: number,
    receiveDepth: number,
    private readonly mail: Mail,
  ) {
    super(real, context, pd, sendCq, receiveCq, sendDepth, receiveDepth, QpType.UD);
    this.qpn = real.qpn;
  }

  protected override arrived(completion: WvCompletion): string | undefined {
    const { length, flags, immediateData, sourceQpn } = completion;
    if ((flags & WvWc.IMMEDIATE) === 0) return 'A datagram arrived without its immediate data.';
    if ((flags & WvWc.GRH_VALID) === 0) return 'A datagram arrived without a GRH.';
    const datagram = this.mail.all[immediateData];
    if (datagram === undefined) return `Datagram ${immediateData} arrived but was never sent.`;
    const { from, to, got } = datagram;
    if (length !== GRH + datagram.length)
      return `A datagram of ${datagram.length} bytes arrived with ${length} bytes including its GRH.`;
    if (sourceQpn !== from.qpn) return `A datagram of ${from.qpn} arrived from ${sourceQpn}.`;
    if (typeof to === 'string' ? !this.heard.has(to) : to !== this)
      return 'A datagram arrived at the wrong queue pair.';
    if (got.has(this)) return 'A datagram arrived twice.';
    got.add(this);
    return undefined;
  }
}

export class CountedQp extends Counted<WvUnknown> {
  constructor(readonly qp: AnyQp) {
    super('queue pair', qp.real);
    // The number of its users is stored in the queue pair.
    Object.defineProperty(this, 'users', {
      get: () => qp.users,
      set: (users: number) => {
        qp.users = users;
      },
    });
    qp.users = 1;
  }
}

export class CountedEp extends Counted<IWVConnectEndpoint> {
  constructor(
    real: IWVConnectEndpoint,
    readonly pair: Pair<Qp>,
    readonly side: number,
  ) {
    super('endpoint', real);
  }
}

export function pick<T>(all: readonly T[], n: number): T | undefined {
  return all[n % Math.max(1, all.length)];
}

/** Returns SUCCESS, or the status of a call on a released object. */
export function handle({ users }: { users: number }): number {
  return users === 0 ? Status.INVALID_HANDLE : Status.SUCCESS;
}

export function budget(cq: Cq, more: number): boolean {
  if (cq.budget + more > CQ_ENTRIES) return false;
  cq.budget += more;
  return true;
}
