/** The objects of a run and what the model knows of each. */
import {
  type IWVCompletionQueue,
  type IWVConnectEndpoint,
  type IWVDevice,
  type IWVMemoryWindow,
  type IWVProtectionDomain,
  type IWVSharedReceiveQueue,
  type Overlapped,
  Status,
  WvAccess,
  type WvMemoryRegion,
  type WvUnknown,
} from '../../winverbs/index.js';
import { type Pair, type QueuePair, SharedReceives } from './verbs-model-queues.js';

export const REGION_BYTES = 4096;
export const MESSAGE_BYTES = 64;
/** Entries of every CQ, and the requests that may ever be told there without polling, so that none overruns. */
export const CQ_ENTRIES = 512;
export const MOST_OBJECTS = 12;
/** Receives of a shared queue that may be posted and not told. */
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
  // Refused: rights to write need LOCAL_WRITE; a right that there is not.
  WvAccess.REMOTE_ATOMIC,
  0x40,
] as const;

/** An object and what the model knows of it. */
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
  /** How many completions can be in it at most if nobody polls. */
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

export class CountedQp extends Counted<WvUnknown> {
  constructor(readonly qp: Qp) {
    super('queue pair', qp.real);
    // The queue pair itself tells how many users it has.
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

/** SUCCESS, or what a call on a released object ends in. */
export function handle({ users }: { users: number }): number {
  return users === 0 ? Status.INVALID_HANDLE : Status.SUCCESS;
}

export function budget(cq: Cq, more: number): boolean {
  if (cq.budget + more > CQ_ENTRIES) return false;
  cq.budget += more;
  return true;
}
