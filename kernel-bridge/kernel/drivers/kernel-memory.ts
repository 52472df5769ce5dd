/** What the verbs of kernel clients take and make besides the HCA driver's objects. */

import type { UserVerbs, UvpHandle, UvpMemory, UvpPin } from '../../door/user-verbs.js';
import { Status, StatusError } from '../../ioctl/status.js';
import type { IbCq, IbMr, IbSrq } from '../hca-driver/ib-objects.js';

/** Registered memory of a kernel client; requests name it in their SGEs, by offset. */
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

  /** The key for SGEs of this side. */
  get lkey(): number {
    return this.region.lkey;
  }

  /** The key for the peer, as a number. */
  get rkey(): number {
    return this.region.rkey;
  }

  /** What the peer is told: the native start address, below 2^47, or 0 with ZERO_BASED. */
  get address(): number {
    return this.zeroBased ? 0 : this.pin.address;
  }
}

/** A region for fast registration: requests FAST_REGISTER and INVALIDATE name its `provider` as their `fastRegion`. */
export class IbFastRegion {
  /** The provider's own object: `fastRegion` of requests names it. Null: the provider has no fast registration. */
  readonly provider: UvpHandle;

  /** @internal */
  constructor(
    /** @internal */
    readonly region: IbMr,
    private readonly verbs: UserVerbs,
  ) {
    this.provider = verbs.fastRegion?.(region.lkey) ?? null;
  }

  /** The key of the latest FAST_REGISTER, queued or completed; local and remote. */
  get key(): number {
    return this.verbs.fastRegionKey?.(this.provider) ?? this.region.lkey;
  }
}

/** A new queue pair. Depths count requests; what is left out is 0. */
export interface IbQpAsked {
  /** QpType; default RC. */
  readonly type?: number;
  /** The completion queue of its send requests. */
  readonly sendCq: IbCq;
  /** The completion queue of its receives; it may be the same. */
  readonly receiveCq: IbCq;
  /** The queue that it takes receives from; depth and SGEs of receives mean nothing then. */
  readonly srq?: IbSrq | undefined;
  /** Outstanding send requests. */
  readonly sendDepth?: number;
  /** SGEs of a send request. */
  readonly sendSge?: number;
  /** Outstanding receives. */
  readonly receiveDepth?: number;
  /** SGEs of a receive. */
  readonly receiveSge?: number;
  /** Bytes. */
  readonly maxInlineSend?: number;
  /** 0: up to the HCA's limit. */
  readonly initiatorDepth?: number;
  /** 0: up to the HCA's limit. */
  readonly responderResources?: number;
  /** Every send request completes with a completion. */
  readonly signalAll?: boolean;
  /** It takes requests of fast registration. */
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
