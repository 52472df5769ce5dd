import { shown, shownFlags } from '../../kernel-bridge/ioctl/shown.js';
import type { RemoteMemoryRef, WvMemoryRegion } from '../../winverbs/index.js';
import { QpAttr, QpState, Status, WvAccess, WvSend } from '../../winverbs/index.js';
import { Nd2OpFlag } from '../spi/v2-types.js';
import { type NdError, refuse, type StatusMap } from '../status.js';
import type { AdapterObject } from './adapter-object.js';
import type { QueuePairBelow } from './below.js';
import type { CompletionQueueBase } from './completion-queue-base.js';
import type { ConnectorBase } from './connector-base.js';
import { MemoryWindow } from './memory-window.js';
import { NdObject } from './nd-object.js';
import { RequestQueue, type RequestRecord, RequestType } from './request-queue.js';
import { ScatterGather, type SpiSge } from './scatter-gather.js';

const { SILENT_SUCCESS, READ_FENCE, SEND_AND_SOLICIT_EVENT, ALLOW_READ, ALLOW_WRITE, INLINE } = Nd2OpFlag;

// V8 treats a module's own names as constants, but not imported ones (uvp/queue-pair.ts).
const { receive: RECEIVE, send: SEND, read: READ, write: WRITE } = RequestType;

/** ND_OP_FLAG_* → WV_SEND_*, by index. */
const sendFlags: readonly number[] = Array.from(
  { length: 0x40 },
  (_, flags) =>
    (flags & SILENT_SUCCESS ? 0 : WvSend.SIGNALED) |
    (flags & READ_FENCE ? WvSend.FENCE : 0) |
    (flags & SEND_AND_SOLICIT_EVENT ? WvSend.SOLICITED : 0) |
    (flags & INLINE ? WvSend.INLINE : 0),
);

/** A queue pair that cannot send yet has no connection. */
const postStatuses: StatusMap = { [Status.INVALID_DEVICE_STATE]: Status.CONNECTION_INVALID };

/** The components of a queue pair. */
export interface QueuePairParts<Q extends QueuePairBelow = QueuePairBelow> {
  adapter: AdapterObject;
  qp: Q;
  receiveCq: CompletionQueueBase<unknown>;
  initiatorCq: CompletionQueueBase<unknown>;
  /** Maximum outstanding Receives; 0 with a shared receive queue. */
  receiveDepth: number;
  /** Maximum other outstanding requests. */
  initiatorDepth: number;
}

/**
 * Base of INDEndpoint and IND2QueuePair, over the layer below. The classes of each version check arguments and choose
 * the errors; everything else is common.
 */
export abstract class QueuePairBase<Q extends QueuePairBelow = QueuePairBelow> extends NdObject {
  readonly adapter: AdapterObject;
  readonly qp: Q;
  /** The connector of its connection, from Connect or Accept on. */
  connector: ConnectorBase | undefined = undefined;
  /** The scatter/gather list of the current request. */
  protected readonly sg: ScatterGather;
  readonly #receives: RequestQueue;
  readonly #initiators: RequestQueue;
  readonly #completionQueues: readonly CompletionQueueBase<unknown>[];

  constructor(parts: QueuePairParts<Q>) {
    super();
    this.adapter = parts.adapter;
    this.qp = parts.qp;
    this.sg = new ScatterGather(parts.adapter.memory, parts.adapter.maxTransfer);
    this.#receives = new RequestQueue(parts.receiveDepth);
    this.#initiators = new RequestQueue(parts.initiatorDepth);
    this.#completionQueues = [parts.receiveCq, parts.initiatorCq];
    for (const queue of this.#completionQueues) queue.addInternalRef();
    parts.adapter.addChild(this);
  }

  flush(): void {
    this.alive('Flush');
    this.adapter.terms.call('Flush', () => this.qp.modify({ qpState: QpState.ERROR }, QpAttr.STATE));
  }

  /**
   * Checks that the queue pair is not released and has no unknown flags. `argument` is the position of the flags among
   * the arguments. The status itself is not passed, because it has more than 31 bits, and passing it would allocate for
   * every request.
   */
  protected check(what: string, flags: number, known: number, argument: number): void {
    if (this.ended) this.alive(what);
    if (typeof flags !== 'number' || (flags & known) !== flags) {
      const names = Object.entries(Nd2OpFlag).flatMap(([name, bit]) => ((known & bit) === 0 ? [] : [name]));
      throw refuse(
        Status.INVALID_PARAMETER_1 + argument - 1,
        what,
        `\`flags\` must be an OR of ${names.join(', ')} (0x${known.toString(16)} in total); got ${shownFlags(flags)}.`,
      );
    }
  }

  protected postSend(what: string, context: unknown, flags: number): void {
    const record = this.#initiators.take(what, context, SEND, this.sg.total);
    try {
      this.qp.send(record, this.sg.list, sendFlags[flags]!);
    } catch (error) {
      throw this.#undo(what, record, error);
    }
  }

  protected postSendAndInvalidate(what: string, context: unknown, flags: number, rkey: number): void {
    const record = this.#initiators.take(what, context, SEND, this.sg.total);
    try {
      this.qp.sendAndInvalidate(record, this.sg.list, sendFlags[flags]!, rkey);
    } catch (error) {
      throw this.#undo(what, record, error);
    }
  }

  protected postReceive(what: string, context: unknown, sgl: readonly SpiSge[]): void {
    this.alive(what);
    this.sg.translate(sgl, what);
    const record = this.#receives.take(what, context, RECEIVE, this.sg.total);
    try {
      this.qp.postReceive(record, this.sg.list);
    } catch (error) {
      this.#receives.undo(record);
      throw this.adapter.terms.error(error, what, postStatuses);
    }
  }

  protected postRead(
    what: string,
    context: unknown,
    flags: number,
    remote: RemoteMemoryRef,
    offset: number,
  ): void {
    if (this.sg.list.length > this.adapter.bounds.maxReadSge) throw this.#tooManySges(what);
    const record = this.#initiators.take(what, context, READ, this.sg.total);
    try {
      this.qp.read(record, this.sg.list, sendFlags[flags]!, remote, offset);
    } catch (error) {
      throw this.#undo(what, record, error);
    }
  }

  protected postWrite(
    what: string,
    context: unknown,
    flags: number,
    remote: RemoteMemoryRef,
    offset: number,
  ): void {
    const record = this.#initiators.take(what, context, WRITE, this.sg.total);
    try {
      this.qp.write(record, this.sg.list, sendFlags[flags]!, remote, offset);
    } catch (error) {
      throw this.#undo(what, record, error);
    }
  }

  /** Posts a Bind and returns the window's key. */
  protected postBind(
    what: string,
    context: unknown,
    region: WvMemoryRegion,
    window: MemoryWindow,
    offset: number,
    length: number,
    flags: number,
  ): number {
    window.checkBind(what, this, region, offset, length);
    const access =
      (flags & ALLOW_READ ? WvAccess.REMOTE_READ : 0) | (flags & ALLOW_WRITE ? WvAccess.REMOTE_WRITE : 0);
    const wvFlags = sendFlags[flags & (SILENT_SUCCESS | READ_FENCE)]!;
    const record = this.#initiators.take(what, context, RequestType.bind, 0);
    let key: number;
    try {
      key = this.qp.bindMemoryWindow(window.wv, record, region, offset, length, access, wvFlags);
    } catch (error) {
      throw this.#undo(what, record, error);
    }
    window.bound(this, key);
    return key;
  }

  protected postInvalidate(what: string, context: unknown, window: MemoryWindow, flags: number): void {
    const record = this.#initiators.take(what, context, RequestType.invalidate, 0);
    try {
      this.qp.invalidateMemoryWindow(window.wv, record, sendFlags[flags]!);
    } catch (error) {
      throw this.#undo(what, record, error);
    }
    // An Invalidate of a window that is not bound here fails and ends no binding.
    if (window.invalidating(this)) {
      record.window = window;
      record.windowKey = window.key;
    }
  }

  /** Checks that a window is of this adapter instance. Throws INVALID_PARAMETER_n otherwise. */
  protected windowOf(window: unknown, what: string, status: number): MemoryWindow {
    if (!(window instanceof MemoryWindow) || window.adapter !== this.adapter || window.ended) {
      throw refuse(
        status,
        what,
        `\`window\` must belong to this adapter instance and must not be released; got ${shown(window)}.`,
      );
    }
    return window;
  }

  #tooManySges(what: string): NdError {
    const { maxReadSge } = this.adapter.bounds;
    return refuse(
      Status.DATA_OVERRUN,
      what,
      `\`sgl\` of a Read must have at most ${maxReadSge} entries; got ${this.sg.list.length}.`,
    );
  }

  #undo(what: string, record: RequestRecord, error: unknown): unknown {
    this.#initiators.undo(record);
    return this.adapter.terms.error(error, what, postStatuses);
  }

  protected end(): void {
    // Releasing a connected queue pair ends its connection, so that its requests complete.
    if (this.connector?.disconnectFor(this) !== true && this.qp.state !== QpState.ERROR) {
      try {
        this.qp.modify({ qpState: QpState.ERROR }, QpAttr.STATE);
      } catch {
        // The device is gone, so its requests have ended.
      }
    }
    this.qp.release();
    this.adapter.deregisterReleased();
    for (const queue of this.#completionQueues) queue.releaseInternalRef();
    this.adapter.removeChild(this);
  }
}

/** Throws INVALID_PARAMETER_5 unless the offset is a number of bytes. */
export function checkOffset(what: string, offset: number): void {
  if (!Number.isSafeInteger(offset) || offset < 0) {
    throw refuse(
      Status.INVALID_PARAMETER_5,
      what,
      `\`offset\` must be a non-negative integer; got ${shown(offset)}.`,
    );
  }
}

/** Throws INVALID_PARAMETER_4 unless `remote` is of the version's class, which has checked its numbers. */
export function checkRemote(
  what: string,
  remote: unknown,
  type: abstract new (...args: never[]) => RemoteMemoryRef,
): void {
  if (!(remote instanceof type)) {
    throw refuse(
      Status.INVALID_PARAMETER_4,
      what,
      `\`remote\` must be an instance of ${type.name}; got ${shown(remote)}.`,
    );
  }
}
