/**
 * The verbs for kernel clients: those of the HCA driver, with a provider in the kernel that owns the rings. Posting and
 * polling are therefore direct calls without IRPs, as in user mode. Source: IRP-based verbs RFC (2005).
 *
 * All verbs are callable at DISPATCH_LEVEL. Verbs with an IRP complete it, or return PENDING and complete it later; new objects are in
 * IoStatus.Information. The other verbs return a status.
 */

import type { UvpBindRequest, UvpCompletion, UvpSendRequest, UvpSge } from '../../door/user-verbs.js';
import { type QpAttributeValues, QpMask } from '../../hca/soft-hca-binding.js';
import { QpFlag, QpState, QpType } from '../../ioctl/constants.js';
import { QpStateOut } from '../../ioctl/provider-data.js';
import { Status, StatusError } from '../../ioctl/status.js';
import { callVerbFor } from '../filter/call.js';
import { WvQp } from '../filter/endpoint-qp.js';
import { ciCreateAv, ciDestroyAv } from '../hca-driver/ci-datagram.js';
import * as queues from '../hca-driver/ci-queues.js';
import * as srqs from '../hca-driver/ci-srq.js';
import { type IbAddressVector, sameGid } from '../hca-driver/hca-ports.js';
import type {
  IbAv,
  IbCa,
  IbCq,
  IbCqDispatch,
  IbMw,
  IbPd,
  IbQp,
  IbQpDispatch,
  IbSrq,
  IbSrqDispatch,
} from '../hca-driver/ib-objects.js';
import type { Irp } from '../io-manager/irp.js';
import { type IbQpAsked, statusOf } from './kernel-memory.js';
import { KernelMemoryVerbs } from './kernel-memory-verbs.js';

/** All verbs of one client: queues, queue pairs and address handles, in addition to those for memory. */
export class KernelVerbs extends KernelMemoryVerbs {
  // ── Completion queues ────────────────────────────────────────────────────────────────────────────────────

  /** Creates a completion queue; statuses as `ciCreateCq` of the HCA driver. Callbacks receive `context`; their table is optional. */
  ciCreateCq<C>(
    ca: IbCa,
    entries: number,
    context: C,
    dispatch: IbCqDispatch<C> | undefined,
    irp: Irp<IbCq>,
  ): number {
    const { provider, tables } = this;
    const size = { entries };
    const owner = ca.provider ?? null;
    return this.create(irp, {
      pre: (umv) => provider.preCreateCq?.(owner, size, umv) ?? null,
      verb: (udata, inner) => queues.ciCreateCq(ca, size.entries, context, dispatch, udata, inner),
      post: (status, handle, umv) => provider.postCreateCq?.(owner, status, size.entries, handle, umv),
      made: (cq) => void this.ids.set(cq, tables.cqs.add(cq)),
    });
  }

  /** Resizes a completion queue; statuses as `ciResizeCq` of the HCA driver. */
  ciResizeCq(cq: IbCq, entries: number, irp: Irp): number {
    const { provider } = this;
    const size = { entries };
    const handle = cq.provider ?? null;
    return this.provided<number>(irp, {
      pre: (umv) => provider.preResizeCq?.(handle, size, umv),
      verb: (udata, inner) => queues.ciResizeCq(cq, size.entries, udata, inner),
      post: (status, _information, umv) => provider.postResizeCq?.(handle, status, cq.numCqes, umv),
    });
  }

  /** Destroys a completion queue; its event requests complete with CANCELED. Completes with SUCCESS, DEVICE_BUSY. */
  ciDestroyCq(cq: IbCq, irp: Irp): number {
    const verb = (inner: Irp): number => queues.ciDestroyCq(cq, inner);
    return this.destroy(cq, irp, verb, (id, handle, status) => {
      this.tables.cqs.delete(id);
      this.provider.postDestroyCq?.(handle, status);
    });
  }

  /**
   * Polls at most `n` completions into an array, from its start; missing elements are created. Direct call.
   *
   * @returns their number; -1: the queue has overrun, or does not belong to a kernel client.
   */
  ciPollCq(cq: IbCq, completions: UvpCompletion[], n: number): number {
    return cq.provider ? this.provider.pollCq(cq.provider, completions, n) : -1;
  }

  /** Requests an event for the next completion, or the next solicited one. Direct call; returns a status. */
  ciRearmCq(cq: IbCq, solicitedOnly: boolean): number {
    return queues.ciArmCq(cq, solicitedOnly);
  }

  /**
   * The same as {@link KernelVerbs.ciRearmCq}, but for the `count`th completion from now. Returns a status, NOT_SUPPORTED if the provider
   * lacks it.
   */
  ciRearmNCq(cq: IbCq, count: number): number {
    const { provider } = cq;
    if (!provider) return Status.INVALID_HANDLE;
    return this.provider.rearmNCq?.(provider, count) ?? Status.NOT_SUPPORTED;
  }

  /**
   * The number of completions that could be polled now. Direct call.
   *
   * @returns their number; -1: the queue has overrun, does not belong to a kernel client, or its provider cannot count
   * them.
   */
  ciPeekCq(cq: IbCq): number {
    return cq.provider ? (this.provider.peekCq?.(cq.provider) ?? -1) : -1;
  }

  // ── Shared receive queues ────────────────────────────────────────────────────────────────────────────────

  /** Creates a shared receive queue; statuses as `ciCreateSrq` of the HCA driver. Callbacks receive `context`; their table is optional. */
  ciCreateSrq<C>(
    pd: IbPd,
    request: srqs.IbSrqAttributes,
    context: C,
    dispatch: IbSrqDispatch<C> | undefined,
    irp: Irp<IbSrq>,
  ): number {
    const { provider, tables } = this;
    const requested = { ...request };
    const owner = pd.provider ?? null;
    return this.create(irp, {
      pre: (umv) => provider.preCreateSrq?.(owner, requested, umv) ?? null,
      verb: (udata, inner) => srqs.ciCreateSrq(pd, requested, context, dispatch, udata, inner),
      post: (status, handle, umv) => provider.postCreateSrq?.(owner, status, handle, umv),
      made: (srq) => void this.ids.set(srq, tables.srqs.add(srq)),
    });
  }

  /**
   * Modifies the size and the limit of a shared receive queue; both are always set. Statuses as `ciModifySrq` of the HCA driver.
   */
  ciModifySrq(srq: IbSrq, request: Pick<srqs.IbSrqAttributes, 'maxWr' | 'srqLimit'>, irp: Irp): number {
    const { provider } = this;
    const requested = { ...request, maxSge: srq.maxSge };
    const handle = srq.provider ?? null;
    return this.provided<number>(irp, {
      pre: (umv) => provider.preModifySrq?.(handle, requested, umv),
      verb: (udata, inner) => srqs.ciModifySrq(srq, requested, udata, inner),
      post: (status, _information, umv) => provider.postModifySrq?.(handle, status, umv),
    });
  }

  /** Destroys a shared receive queue. Completes with SUCCESS, DEVICE_BUSY. */
  ciDestroySrq(srq: IbSrq, irp: Irp): number {
    const verb = (inner: Irp): number => srqs.ciDestroySrq(srq, inner);
    return this.destroy(srq, irp, verb, (id, handle, status) => {
      this.tables.srqs.delete(id);
      this.provider.postDestroySrq?.(handle, status);
    });
  }

  /** Posts a receive to a shared receive queue. Direct call; returns a status, INVALID_HANDLE for a user-mode client's queue. */
  ciPostSrqRecv(srq: IbSrq, context: unknown, sgl: readonly UvpSge[]): number {
    const { provider } = srq;
    if (!provider) return Status.INVALID_HANDLE;
    return statusOf(() => this.provider.postSrqReceive?.(provider, context, sgl));
  }

  // ── Queue pairs ──────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Creates a queue pair in state RESET; statuses as `ciCreateQp` of the HCA driver. Callbacks receive `context`; their
   * table is optional.
   */
  ciCreateQp<C>(
    pd: IbPd,
    requested: IbQpAsked,
    context: C,
    dispatch: IbQpDispatch<C> | undefined,
    irp: Irp<IbQp>,
  ): number {
    const { provider, tables } = this;
    const { sendCq, receiveCq, srq, type = QpType.RC } = requested;
    const owner = pd.provider ?? null;
    const create = {
      type,
      sendCq: sendCq.provider ?? null,
      receiveCq: receiveCq.provider ?? null,
      srq: srq?.provider ?? null,
      context,
      sendDepth: requested.sendDepth ?? 0,
      sendSge: requested.sendSge ?? 0,
      receiveDepth: requested.receiveDepth ?? 0,
      receiveSge: requested.receiveSge ?? 0,
      maxInlineSend: requested.maxInlineSend ?? 0,
      memoryManagement: requested.memoryManagement === true,
    };
    return this.create(irp, {
      pre: (umv) => provider.preCreateQp(owner, create, umv),
      verb: (udata, inner) => {
        const { sendDepth, sendSge, receiveDepth, receiveSge, maxInlineSend } = create;
        const request = {
          sendDepth,
          sendSge,
          receiveDepth,
          receiveSge,
          maxInlineSend,
          initiatorDepth: requested.initiatorDepth ?? 0,
          responderResources: requested.responderResources ?? 0,
          qpType: type,
          qpFlags:
            (requested.signalAll === true ? QpFlag.SIGNAL_SENDS : 0) |
            (create.memoryManagement ? QpFlag.MEMORY_MANAGEMENT : 0),
        };
        return queues.ciCreateQp(pd, sendCq, receiveCq, srq, request, context, dispatch, udata, inner);
      },
      post: (status, handle, umv) => provider.postCreateQp?.(owner, status, handle, umv),
      made: (qp) => {
        const entry = new WvQp(qp);
        qp.connectionEvent = (event, reason) => entry.endpoint?.queuePairEvent(event, reason);
        this.ids.set(qp, tables.qps.add(entry));
      },
    });
  }

  /**
   * Modifies attributes or the state of a queue pair; statuses as `ciModifyQp` of the HCA driver.
   *
   * @param mask - QpMask bits of the given attributes.
   */
  ciModifyQp(qp: IbQp, mask: number, attributes: Partial<QpAttributeValues>, irp: Irp): number {
    return callVerbFor<number>(
      irp,
      (inner) => queues.ciModifyQp(qp, mask, attributes, inner),
      (state) => {
        const reset = (mask & QpMask.state) !== 0 && state === QpState.RESET;
        if (reset && qp.provider) this.provider.ndModifyQp(qp.provider).moved(QpStateOut.encode({ state }));
        return irp.complete(Status.SUCCESS, state);
      },
    );
  }

  /** Destroys a queue pair in any state. Completes with SUCCESS, DEVICE_BUSY while an endpoint uses it, or the HCA's status. */
  ciDestroyQp(qp: IbQp, irp: Irp): number {
    if (this.entryOf(qp)?.endpoint) return irp.complete(Status.DEVICE_BUSY);
    const verb = (inner: Irp): number => queues.ciDestroyQp(qp, inner);
    return this.destroy(qp, irp, verb, (id, handle, status) => {
      this.tables.qps.delete(id);
      this.provider.postDestroyQp?.(handle, status);
    });
  }

  /**
   * The queue pair in the form that endpoints use.
   *
   * @internal
   */
  entryOf(qp: IbQp): WvQp | undefined {
    return this.tables.qps.get(this.ids.get(qp) ?? 0);
  }

  /**
   * Posts a send request: a Send, a Write, a Read, an atomic operation, a fast registration or an invalidation. Direct call.
   *
   * @returns SUCCESS, or the status of user mode's PostSend; INVALID_HANDLE for a user-mode client's queue pair.
   */
  ciPostSend(qp: IbQp, request: UvpSendRequest): number {
    const { provider } = qp;
    if (!provider) return Status.INVALID_HANDLE;
    return statusOf(() => this.provider.postSend(provider, request));
  }

  /** Posts a receive. Direct call; returns a status as {@link KernelVerbs.ciPostSend}. */
  ciPostRecv(qp: IbQp, context: unknown, sgl: readonly UvpSge[]): number {
    const { provider } = qp;
    if (!provider) return Status.INVALID_HANDLE;
    return statusOf(() => this.provider.postReceive(provider, context, sgl));
  }

  /**
   * Posts a request that binds a memory window. Direct call.
   *
   * @returns SUCCESS with the window's new key, which is valid from now on; or another status with key 0.
   */
  ciBindMw(
    mw: IbMw,
    qp: IbQp,
    request: UvpBindRequest,
  ): {
    /** The NTSTATUS of posting; the completion has that of the bind. */
    status: number;
    /** The window's new key, valid for requests posted later; 0 if nothing was posted. */
    rkey: number;
  } {
    const { bindMw } = this.provider;
    if (!mw.provider || !qp.provider) return { status: Status.INVALID_HANDLE, rkey: 0 };
    if (!bindMw) return { status: Status.NOT_SUPPORTED, rkey: 0 };
    let rkey = 0;
    const status = statusOf(() => {
      rkey = bindMw.call(this.provider, mw.provider ?? null, qp.provider ?? null, request);
    });
    return { status, rkey };
  }

  /**
   * Posts a request that invalidates a window. It is executed when all requests before it have completed. Direct call.
   *
   * @returns a status as {@link KernelVerbs.ciPostSend}, or NOT_SUPPORTED if the provider has no windows.
   */
  ciInvalidateMw(mw: IbMw, qp: IbQp, context: unknown, flags: number): number {
    const { invalidateMw } = this.provider;
    const [window, queuePair] = [mw.provider, qp.provider];
    if (!window || !queuePair) return Status.INVALID_HANDLE;
    if (!invalidateMw) return Status.NOT_SUPPORTED;
    return statusOf(() => invalidateMw.call(this.provider, window, queuePair, context, flags));
  }

  // ── Address handles ──────────────────────────────────────────────────────────────────────────────────────

  /** Creates an address handle; statuses as `ciCreateAv` of the HCA driver. Its `provider` is the `av` of datagram requests. */
  ciCreateAv(pd: IbPd, av: IbAddressVector, irp: Irp<IbAv>): number {
    const { provider, tables } = this;
    const owner = pd.provider ?? null;
    const vector = {
      sourceGid: av.sGid,
      destinationGid: av.dGid,
      flowLabel: av.flowLabel,
      trafficClass: av.trafficClass,
      hopLimit: av.hopLimit,
      portNumber: av.portNumber,
      sourceGidIndex: () => {
        const index = pd.ca.hca.port.gids.findIndex((gid) => sameGid(gid, av.sGid));
        if (index < 0)
          throw new StatusError(Status.INVALID_ADDRESS, "The source GID is not in the port's table.");
        return index;
      },
    };
    return this.create(irp, {
      pre: (umv) => provider.preCreateAv?.(owner, vector, umv) ?? null,
      verb: (udata, inner) => ciCreateAv(pd, av, udata, inner),
      post: (status, handle, umv) => provider.postCreateAv?.(owner, status, handle, umv),
      made: (made) => void this.ids.set(made, tables.ahs.add(made)),
    });
  }

  /** Destroys an address handle. Completes with SUCCESS or the HCA's status. */
  ciDestroyAv(av: IbAv, irp: Irp): number {
    const { ahs } = this.tables;
    const verb = (inner: Irp): number => ciDestroyAv(av, inner);
    return this.destroy(av, irp, verb, (id) => ahs.delete(id));
  }
}
