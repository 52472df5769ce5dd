import type { Overlapped } from '../kernel-bridge/door/overlapped.js';
import type { UserVerbs, UvpHandle } from '../kernel-bridge/door/user-verbs.js';
import { IoctlCode } from '../kernel-bridge/ioctl/codes.js';
import { CqNotifyType } from '../kernel-bridge/ioctl/constants.js';
import { kindOf, shown } from '../kernel-bridge/ioctl/shown.js';
import { WvIoId } from '../kernel-bridge/ioctl/structs.js';
import type { WVDevice } from './device.js';
import type { IWVCompletionQueue, WvCompletion, WvCqNotifyType } from './interfaces.js';
import { guarded, Status, WvError } from './status.js';
import { WvOverlapped } from './wv-object.js';

const NOTIFY_TYPES = {
  any: CqNotifyType.NEXT_COMPLETION,
  solicited: CqNotifyType.SOLICITED,
  errors: CqNotifyType.ERROR,
} as const;

/** IWVCompletionQueue: reports completed requests. */
export class WVCompletionQueue extends WvOverlapped implements IWVCompletionQueue {
  private readonly verbs: UserVerbs;
  /** @internal See {@link UserVerbs.shouldPoll}. */
  readonly shouldPoll?: () => boolean;

  private constructor(
    /** @internal */
    readonly device: WVDevice,
    id: bigint,
    private count: number,
    /** @internal */
    readonly handle: UvpHandle,
  ) {
    super('completion queue', device.file, IoctlCode.CQ_CANCEL, id, ['IWVCompletionQueue']);
    const { verbs } = device;
    this.verbs = verbs;
    if (verbs.shouldPoll !== undefined) this.shouldPoll = () => verbs.shouldPoll!(handle);
    device.addChild(this);
  }

  /** @internal */
  static create(device: WVDevice, entries: number): WVCompletionQueue {
    const { file, verbs } = device;
    const size = { entries: checkedEntries(entries) };
    let handle: UvpHandle = null;
    const reply = file.verb(IoctlCode.CQ_CREATE, WvIoId, WvIoId, {
      pre: (umv) => {
        handle = verbs.preCreateCq?.(device.ca, size, umv) ?? null;
        return { id: device.id, data: size.entries };
      },
      post: (status, umv, answer) =>
        verbs.postCreateCq?.(device.ca, status, answer?.data ?? size.entries, handle, umv),
      undo: (answer) => WVCompletionQueue.end(device, answer.id, handle),
    });
    return new WVCompletionQueue(device, reply.id, reply.data, handle);
  }

  private static end(device: WVDevice, id: bigint, handle: UvpHandle): void {
    const { file, verbs } = device;
    verbs.preDestroyCq?.(handle);
    file.destroy(IoctlCode.CQ_DESTROY, id, (status) => verbs.postDestroyCq?.(handle, status));
  }

  /** Number of entries; at least as many as were requested. @category Queues */
  get entries(): number {
    return this.count;
  }

  /**
   * Changes the number of entries (CQ_RESIZE). Waiting completions are kept.
   *
   * @throws WvError BUFFER_OVERFLOW (the waiting completions would not fit), INVALID_PARAMETER. The queue is then
   *   unchanged.
   * @category Queues
   */
  resize(entries: number): void {
    this.check();
    const { file, verbs, handle } = this;
    const size = { entries: checkedEntries(entries) };
    const reply = file.verb(IoctlCode.CQ_RESIZE, WvIoId, WvIoId, {
      pre: (umv) => {
        verbs.preResizeCq?.(handle, size, umv);
        return { id: this.id, data: size.entries };
      },
      post: (status, umv, answer) => verbs.postResizeCq?.(handle, status, answer?.data ?? size.entries, umv),
    });
    this.count = reply.data;
  }

  /**
   * Returns the number of waiting completions, without an IOCTL. @throws WvError NOT_SUPPORTED (this device cannot
   * count them)
   * @category Complete
   */
  peek(): number {
    this.check();
    if (this.verbs.peekCq === undefined) {
      throw new WvError(
        Status.NOT_SUPPORTED,
        `The device ${this.device.name} cannot count waiting completions; use poll().`,
      );
    }
    return this.verbs.peekCq(this.handle);
  }

  /**
   * Moves at most `n` completions, in order, into the array from its start, and returns their number. Without `n` it
   * moves as many as the array has elements, at least one. It needs no IOCTL. Objects in the array are reused, so pass
   * the same array every time.
   *
   * @throws WvError BUFFER_OVERFLOW (the queue has overrun, all its completions were taken, and there will be no more),
   *   INVALID_PARAMETER (`completions` is not an array, or `n` is not a non-negative integer)
   * @category Complete
   */
  poll(completions: WvCompletion[], n?: number): number {
    this.check();
    if (!Array.isArray(completions)) throw noArray(completions);
    const most = n ?? Math.max(completions.length, 1);
    if (!(Number.isInteger(most) && most >= 0 && most <= 0xffff_ffff)) throw noCount(most);
    const count = this.verbs.pollCq(this.handle, completions, most);
    if (count < 0) {
      throw new WvError(
        Status.BUFFER_OVERFLOW,
        `The completion queue has overrun its ${this.count} entries; it and its queue pairs can no longer be used. ` +
          'Create it with an entry for every request that can be outstanding on it.',
      );
    }
    return count;
  }

  /**
   * Waits for a completion (CQ_NOTIFY): for `any`, for the next `solicited` or failed one, or for `errors` of the queue
   * itself. All completions since the last event cause a single event, so poll until the queue is empty after each
   * event. To block, call `notify(type).getResult({ wait: true })`.
   *
   * Completes with SUCCESS, CANCELED, BUFFER_OVERFLOW (the queue has overrun).
   * @category Complete
   */
  notify(type: WvCqNotifyType): Overlapped<void> {
    this.check();
    const data = Object.hasOwn(NOTIFY_TYPES, type) ? NOTIFY_TYPES[type] : undefined;
    if (data === undefined) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`type\` must be 'any', 'solicited' or 'errors'; got ${shown(type)}.`,
      );
    }
    const rearm = type === 'errors' ? undefined : () => this.verbs.rearmCq(this.handle, type === 'solicited');
    return this.wait('Notify', data, rearm);
  }

  /**
   * Waits until there are `n` completions (CQ_NOTIFY), including waiting ones that no event has announced. The event of
   * a {@link notify} also ends this wait, and so does the first completion on a device that cannot count. Therefore
   * poll until the queue is empty, and call this method again.
   *
   * Completes with the same statuses as {@link notify}.
   *
   * @param n - from 1 to {@link entries}
   * @category Complete
   */
  batchNotify(n: number): Overlapped<void> {
    this.check();
    if (!(Number.isInteger(n) && n >= 1 && n <= this.count)) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`n\` must be an integer from 1 to the queue's ${this.count} entries; got ${shown(n)}.`,
      );
    }
    const { verbs, handle } = this;
    return this.wait(
      'BatchNotify',
      CqNotifyType.NEXT_COMPLETION,
      () => verbs.rearmNCq?.(handle, n) ?? verbs.rearmCq(handle, false),
    );
  }

  /** Queues the request and then arms the queue, so that an event in between finds the request waiting. */
  private wait(what: string, data: number, rearm: (() => number) | undefined): Overlapped<void> {
    const input = WvIoId.encodeOnce({ id: this.id, data });
    const request = this.overlapped(IoctlCode.CQ_NOTIFY, input, 0, () => undefined);
    if (rearm === undefined) return request;
    let status: number;
    try {
      status = guarded(what, rearm);
    } catch (error) {
      request.cancel();
      throw error;
    }
    // The request itself reports an overrun, as do requests that were waiting when the queue overran.
    if (status === Status.SUCCESS || status === Status.BUFFER_OVERFLOW) return request;
    request.cancel();
    throw new WvError(status, undefined, { cause: 'rearm' });
  }

  protected override destroy(): void {
    WVCompletionQueue.end(this.device, this.id, this.handle);
    this.device.removeChild(this);
  }
}

function checkedEntries(entries: number): number {
  if (Number.isInteger(entries) && entries > 0 && entries <= 0x7fff_ffff) return entries;
  throw new WvError(
    Status.INVALID_PARAMETER,
    `\`entries\` must be an integer from 1 to the device's \`maxCqEntries\`; got ${shown(entries)}.`,
  );
}

function noArray(value: unknown): WvError {
  return new WvError(
    Status.INVALID_PARAMETER,
    `\`completions\` must be an array; got ${kindOf(value)}. Pass the maximum number of completions as \`n\`.`,
  );
}

function noCount(value: unknown): WvError {
  return new WvError(
    Status.INVALID_PARAMETER,
    `\`n\` must be an integer from 0 to 4294967295; got ${shown(value)}.`,
  );
}
