import type { Overlapped } from '../kernel-bridge/door/overlapped.js';
import type { UserVerbs, UvpHandle, UvpSrqAttributes } from '../kernel-bridge/door/user-verbs.js';
import { IoctlCode } from '../kernel-bridge/ioctl/codes.js';
import { shown } from '../kernel-bridge/ioctl/shown.js';
import { WvIoObject, WvIoSrqAttributes } from '../kernel-bridge/ioctl/structs.js';
import type {
  IWVSharedReceiveQueue,
  WvDeviceAttributes,
  WvSge,
  WvSrqAttributes,
  WvSrqEvent,
} from './interfaces.js';
import type { WVProtectionDomain } from './protection-domain.js';
import { refusal, Status, WvError } from './status.js';
import { WvOverlapped } from './wv-object.js';

/** The events that the statuses of SRQ_NOTIFY stand for (WinVerbs gives them the severity success). */
const EVENTS: Partial<Record<number, WvSrqEvent>> = {
  [Status.ALERTED]: 'limit',
  [Status.NOTIFY_CLEANUP]: 'lastWqe',
};

/** IWVSharedReceiveQueue: receives for the messages of several queue pairs. */
export class WVSharedReceiveQueue extends WvOverlapped implements IWVSharedReceiveQueue {
  private readonly verbs: UserVerbs;
  private readonly post: NonNullable<UserVerbs['postSrqReceive']>;

  private constructor(
    /** @internal */
    readonly pd: WVProtectionDomain,
    id: bigint,
    /** @internal */
    readonly handle: UvpHandle,
    post: NonNullable<UserVerbs['postSrqReceive']>,
  ) {
    super('shared receive queue', pd.file, IoctlCode.SRQ_CANCEL, id, ['IWVSharedReceiveQueue']);
    this.verbs = pd.verbs;
    this.post = post;
    pd.addChild(this);
  }

  /** @internal */
  static create(
    pd: WVProtectionDomain,
    maxWr: number,
    maxSge: number,
    srqLimit: number,
  ): WVSharedReceiveQueue {
    const { file, verbs } = pd;
    if (verbs.postSrqReceive === undefined) {
      throw new WvError(
        Status.NOT_SUPPORTED,
        `The device ${pd.device.name} does not support shared receive queues.`,
      );
    }
    const attributes: UvpSrqAttributes = {
      maxWr: checkedCount('maxWr', maxWr, 1, 'maxSrqWr'),
      maxSge: checkedCount('maxSge', maxSge, 0, 'maxSrqSge'),
      srqLimit: checkedLimit('srqLimit', srqLimit, maxWr),
    };
    let handle: UvpHandle = null;
    const reply = file.verb(IoctlCode.SRQ_CREATE, WvIoSrqAttributes, WvIoSrqAttributes, {
      pre: (umv) => {
        handle = verbs.preCreateSrq?.(pd.handle, attributes, umv) ?? null;
        return { id: { id: pd.id }, ...attributes };
      },
      post: (status, umv) => verbs.postCreateSrq?.(pd.handle, status, handle, umv),
      undo: (answer) => WVSharedReceiveQueue.end(pd, answer.id.id, handle),
    });
    return new WVSharedReceiveQueue(pd, reply.id.id, handle, verbs.postSrqReceive.bind(verbs));
  }

  private static end(pd: WVProtectionDomain, id: bigint, handle: UvpHandle): void {
    const { file, verbs } = pd;
    verbs.preDestroySrq?.(handle);
    file.destroy(IoctlCode.SRQ_DESTROY, id, (status) => verbs.postDestroySrq?.(handle, status));
  }

  /**
   * Returns the actual size and limit; the limit is 0 once its event has been reported (SRQ_QUERY). @category Queues
   */
  query(): WvSrqAttributes {
    this.check();
    const { file, verbs, handle } = this;
    const found: UvpSrqAttributes = { maxWr: 0, maxSge: 0, srqLimit: 0 };
    file.verb(IoctlCode.SRQ_QUERY, WvIoSrqAttributes, WvIoSrqAttributes, {
      pre: (umv) => {
        verbs.preQuerySrq?.(handle, umv);
        return { id: { id: this.id } };
      },
      post: (status, umv, reply) => {
        if (reply !== undefined) {
          const { maxWr, maxSge, srqLimit } = reply;
          Object.assign(found, { maxWr, maxSge, srqLimit });
        }
        verbs.postQuerySrq?.(handle, status, found, umv);
      },
    });
    return found;
  }

  /**
   * Changes size and limit (SRQ_MODIFY). Waiting receives are kept, and queue pairs continue to use the queue. The
   * limit is armed again; 0 requests no event.
   *
   * @throws WvError BUFFER_OVERFLOW (the waiting receives would not fit), INVALID_PARAMETER. The queue is then
   *   unchanged.
   * @category Queues
   */
  modify(maxWr: number, limit: number): void {
    this.check();
    const { file, verbs, handle } = this;
    const attributes: UvpSrqAttributes = {
      maxWr: checkedCount('maxWr', maxWr, 1, 'maxSrqWr'),
      maxSge: 0,
      srqLimit: checkedLimit('limit', limit, maxWr),
    };
    file.verb(IoctlCode.SRQ_MODIFY, WvIoSrqAttributes, WvIoSrqAttributes, {
      pre: (umv) => {
        verbs.preModifySrq?.(handle, attributes, umv);
        return { id: { id: this.id }, ...attributes };
      },
      post: (status, umv) => verbs.postModifySrq?.(handle, status, umv),
    });
  }

  /**
   * Posts a receive for the next message of any of the queue's queue pairs, without an IOCTL.
   *
   * @throws WvError NO_MORE_ENTRIES (the queue is full), DATA_OVERRUN, BUFFER_OVERFLOW, INVALID_PARAMETER
   * @category Post
   */
  postReceive(context: unknown, sgl: readonly WvSge[]): void {
    this.check();
    try {
      this.post(this.handle, context, sgl);
    } catch (error) {
      throw refusal(error, 'PostReceive', sgl);
    }
  }

  /**
   * Waits for an event of the queue (SRQ_NOTIFY). `limit` means that fewer receives are left than the limit, which is 0
   * from then on. `lastWqe` means that a queue pair in ERROR no longer consumes receives of the queue. An event
   * completes all waiting requests; if none is waiting, it completes the next one. An event may be out of date, so
   * query the queue.
   *
   * Completes with ALERTED or NOTIFY_CLEANUP, which stand for these two events, or with CANCELED, UNEXPECTED_IO_ERROR
   * (the queue and its queue pairs are broken), DEVICE_REMOVED, FILE_FORCED_CLOSED.
   * @category Queues
   */
  notify(): Overlapped<WvSrqEvent> {
    this.check();
    const input = WvIoObject.encode({ id: this.id });
    // The kernel never completes the request with SUCCESS; 'limit' is only the most likely meaning.
    const request = this.overlapped<WvSrqEvent>(IoctlCode.SRQ_NOTIFY, input, 0, () => 'limit');
    return request.recover((error) => EVENTS[error.status]);
  }

  protected override destroy(): void {
    WVSharedReceiveQueue.end(this.pd, this.id, this.handle);
    this.pd.removeChild(this);
  }
}

function checkedCount(what: string, value: number, least: number, limit: keyof WvDeviceAttributes): number {
  if (Number.isInteger(value) && value >= least && value <= 0x7fff_ffff) return value;
  throw new WvError(
    Status.INVALID_PARAMETER,
    `\`${what}\` must be an integer from ${least} to the device's \`${limit}\`; got ${shown(value)}.`,
  );
}

function checkedLimit(what: string, limit: number, maxWr: number): number {
  if (Number.isInteger(limit) && limit >= 0 && limit <= maxWr) return limit;
  throw new WvError(
    Status.INVALID_PARAMETER,
    `\`${what}\` must be an integer from 0 (no event) to \`maxWr\` (${maxWr}); got ${shown(limit)}.`,
  );
}
