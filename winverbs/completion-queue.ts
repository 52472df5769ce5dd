import { IoctlCode } from '../kernel-bridge/ioctl/codes.js';
import { CqNotifyType } from '../kernel-bridge/ioctl/constants.js';
import { WvIoId } from '../kernel-bridge/ioctl/structs.js';
import type { Overlapped } from '../kernel-bridge/overlapped.js';
import type { UserVerbs, UvpHandle } from '../kernel-bridge/user-verbs.js';
import type { WVDevice } from './device.js';
import type { IWVCompletionQueue, WvCompletion } from './interfaces.js';
import { WvOverlapped } from './object.js';
import { guarded, Status, WvError } from './status.js';

const NOTIFY_TYPES = {
  any: CqNotifyType.NEXT_COMPLETION,
  solicited: CqNotifyType.SOLICITED,
  error: CqNotifyType.ERROR,
} as const;

/** IWVCompletionQueue: where finished requests are told. */
export class WVCompletionQueue extends WvOverlapped implements IWVCompletionQueue {
  private readonly verbs: UserVerbs;

  private constructor(
    /** @internal */
    readonly device: WVDevice,
    id: bigint,
    private count: number,
    /** @internal */
    readonly handle: UvpHandle,
  ) {
    super('completion queue', device.file, IoctlCode.CQ_CANCEL, id);
    this.verbs = device.verbs;
    device.hold();
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

  /** Entries it holds; at least as many as were asked for. */
  get entries(): number {
    return this.count;
  }

  /**
   * Changes the number of entries (CQ_RESIZE). Completions that wait stay.
   *
   * @throws WvError BUFFER_OVERFLOW: more completions wait than would fit; INVALID_PARAMETER. The queue stays as it was.
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

  /** Completions that wait now; no IOCTL. @throws WvError NOT_SUPPORTED: this device cannot tell. */
  peek(): number {
    this.check();
    if (this.verbs.peekCq === undefined) {
      throw new WvError(Status.NOT_SUPPORTED, 'This device cannot tell without polling; use poll().');
    }
    return this.verbs.peekCq(this.handle);
  }

  /**
   * Takes at most `n` completions, in order, into the array from its start; no IOCTL. Objects that are in the array
   * are filled again, so hand in the same array every time. Answers how many there were.
   *
   * @throws WvError BUFFER_OVERFLOW: the queue has overrun, and nothing more will come; what was in it has been told;
   * INVALID_PARAMETER: `completions` is no array, or `n` no whole number from 0 on.
   */
  poll(completions: WvCompletion[], n?: number): number {
    this.check();
    if (!Array.isArray(completions)) throw noArray(completions);
    const most = n ?? completions.length;
    if (!(Number.isInteger(most) && most >= 0 && most <= 0xffff_ffff)) throw noCount(most);
    const count = this.verbs.pollCq(this.handle, completions, most);
    if (count < 0) {
      throw new WvError(
        Status.BUFFER_OVERFLOW,
        `More completions came than the queue's ${this.count} entries hold: it and its queue pairs are lost. ` +
          'A queue needs an entry for every request that can be outstanding on it.',
      );
    }
    return count;
  }

  /**
   * Waits for a completion (CQ_NOTIFY): `any`, or the next whose sender asked for it or that failed (`solicited`), or
   * an error of the queue itself. One event for completions that came since the last; poll until empty after each.
   * Blocking: `notify(type).getResult({ wait: true })`.
   *
   * Ends in SUCCESS; CANCELLED; BUFFER_OVERFLOW: the queue has overrun.
   */
  notify(type: 'any' | 'solicited' | 'error'): Overlapped<void> {
    this.check();
    const data = NOTIFY_TYPES[type];
    if (data === undefined) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `The notify type is '${String(type)}'; it takes 'any', 'solicited' or 'error'.`,
      );
    }
    const rearm = type === 'error' ? undefined : () => this.verbs.rearmCq(this.handle, type === 'solicited');
    return this.wait('Notify', data, rearm);
  }

  /**
   * Waits until `n` completions have come (CQ_NOTIFY), those included that wait and that no event has announced. An
   * event that {@link notify} asked for ends this wait, too, and a device that cannot count tells of the first: poll
   * until empty after it, and ask again.
   *
   * Ends as {@link notify} does.
   *
   * @param n - from 1 to {@link entries}
   */
  batchNotify(n: number): Overlapped<void> {
    this.check();
    if (!(Number.isInteger(n) && n >= 1 && n <= this.count)) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `The number of completions to wait for is ${n}; this queue takes a whole number from 1 to its ${this.count} entries.`,
      );
    }
    const { verbs, handle } = this;
    return this.wait(
      'BatchNotify',
      CqNotifyType.NEXT_COMPLETION,
      () => verbs.rearmNCq?.(handle, n) ?? verbs.rearmCq(handle, false),
    );
  }

  /** Queues the request and arms then: an event in between finds its waiter. */
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
    // A queue that has overrun is told by the request itself, as to those that waited when it happened.
    if (status === Status.SUCCESS || status === Status.BUFFER_OVERFLOW) return request;
    request.cancel();
    throw new WvError(status, undefined, { cause: 'rearm' });
  }

  protected override destroy(): void {
    WVCompletionQueue.end(this.device, this.id, this.handle);
    this.device.letGo();
  }
}

function checkedEntries(entries: number): number {
  if (Number.isInteger(entries) && entries > 0 && entries <= 0x7fff_ffff) return entries;
  throw new WvError(
    Status.INVALID_PARAMETER,
    `The number of completion queue entries is ${entries}; it takes a whole number from 1 up to the device's limit.`,
  );
}

function noArray(value: unknown): WvError {
  return new WvError(
    Status.INVALID_PARAMETER,
    `The first argument is ${value === null ? 'null' : `of type ${typeof value}`}; completions go into an array, and how many at most is the second.`,
  );
}

function noCount(value: unknown): WvError {
  return new WvError(
    Status.INVALID_PARAMETER,
    `At most ${String(value)} completions are asked for; it takes a whole number from 0 to 4294967295.`,
  );
}
