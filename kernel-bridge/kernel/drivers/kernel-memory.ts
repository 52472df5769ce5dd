/** Parameters and results of the verbs for kernel clients, besides the HCA driver's objects. */

import type { UserVerbs, UvpHandle, UvpMemory, UvpPin } from '../../door/user-verbs.js';
import { Status, StatusError } from '../../ioctl/status.js';
import type { IbCq, IbMr, IbSrq } from '../hca-driver/ib-objects.js';

/** Registered memory of a kernel client; the SGEs of requests refer to it by offset. */
export class IbMemory implements UvpMemory {
  /** @internal */
  constructor(
    /** @internal */
    readonly region: IbMr,
    /** @internal */
    readonly pin: UvpPin,
    /** The registered bytes, pinned until the region is deregistered. */
    readonly bytes: Uint8Array,
    private readonly zeroBased = false,
  ) {}

  /** The key for local SGEs. */
  get lkey(): number {
    return this.region.lkey;
  }

  /** The key for the peer, as a number. */
  get rkey(): number {
    return this.region.rkey;
  }

  /** The address to send to the peer: the native start address, below 2^47, or 0 with ZERO_BASED. */
  get address(): number {
    return this.zeroBased ? 0 : this.pin.address;
  }
}

/** A region for fast registration: its `provider` is the `fastRegion` of FAST_REGISTER and INVALIDATE requests. */
export class IbFastRegion {
  /** The provider's own object, the `fastRegion` of requests. Null: the provider has no fast registration. */
  readonly provider: UvpHandle;

  /** @internal */
  constructor(
    /** @internal */
    readonly region: IbMr,
    private readonly verbs: UserVerbs,
  ) {
    this.provider = verbs.fastRegion?.(region.lkey) ?? null;
  }

  /** The key of the latest FAST_REGISTER, queued or completed; valid locally and remotely. */
  get key(): number {
    return this.verbs.fastRegionKey?.(this.provider) ?? this.region.lkey;
  }
}

/** Parameters of a new queue pair. Depths are numbers of requests; omitted values are 0. */
export interface IbQpAsked {
  /** The {@link QpType}; default RC. */
  readonly type?: number;
  /** The completion queue of send requests. */
  readonly sendCq: IbCq;
  /** The completion queue of receives; may be the same. */
  readonly receiveCq: IbCq;
  /** The shared receive queue. Depth and SGEs of receives are then ignored. */
  readonly srq?: IbSrq | undefined;
  /** Maximum number of outstanding send requests. */
  readonly sendDepth?: number;
  /** SGEs of a send request. */
  readonly sendSge?: number;
  /** Maximum number of outstanding receives. */
  readonly receiveDepth?: number;
  /** SGEs of a receive. */
  readonly receiveSge?: number;
  /** Maximum size of an INLINE request, in bytes. */
  readonly maxInlineSend?: number;
  /** Outstanding RDMA Reads and atomics of this side; 0: the HCA's limit. */
  readonly initiatorDepth?: number;
  /** The peer's RDMA Reads and atomics served at a time; 0: the HCA's limit. */
  readonly responderResources?: number;
  /** Whether every send request generates a completion. */
  readonly signalAll?: boolean;
  /** Whether the queue pair accepts fast registration requests. */
  readonly memoryManagement?: boolean;
}

/** The status of a direct call. */
export function statusOf(call: () => void): number {
  try {
    call();
    return Status.SUCCESS;
  } catch (error) {
    if (error instanceof StatusError) return error.status;
    throw error;
  }
}
