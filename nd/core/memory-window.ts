import { shown } from '../../kernel-bridge/ioctl/shown.js';
import type { WvMemoryRegion } from '../../winverbs/index.js';
import { QpState, Status } from '../../winverbs/index.js';
import type { NdResult } from '../spi/v1.js';
import type { IND2MemoryWindow } from '../spi/v2.js';
import { refuse } from '../status.js';
import type { AdapterObject } from './adapter-object.js';
import type { ObjectBelow } from './below.js';
import { NdObject } from './nd-object.js';
import type { QueuePairBase } from './queue-pair-base.js';

/**
 * INDMemoryWindow and IND2MemoryWindow, which share an IID, over a window of the layer below. It tracks whether and
 * where it is bound, and its key.
 */
export class MemoryWindow extends NdObject implements IND2MemoryWindow {
  protected get interfaces() {
    return ['INDMemoryWindow', 'IND2MemoryWindow'] as const;
  }

  readonly adapter: AdapterObject;
  readonly wv: ObjectBelow;
  /** v1: the result of an invalidation by the peer. */
  readonly invalidateResult: NdResult | undefined;
  #boundOn: QueuePairBase | undefined;
  #key = 0;
  #everBound = false;
  /** Whether an Invalidate is queued on {@link #boundOn}. */
  #invalidating = false;

  constructor(adapter: AdapterObject, wv: ObjectBelow, invalidateResult?: NdResult) {
    super();
    this.adapter = adapter;
    this.wv = wv;
    this.invalidateResult = invalidateResult;
    adapter.addChild(this);
  }

  getRemoteToken(): number {
    const what = 'GetRemoteToken';
    this.alive(what);
    if (!this.#everBound) {
      throw refuse(Status.INVALID_DEVICE_STATE, what, 'The window must be bound before it has a token.');
    }
    return this.#key;
  }

  /**
   * Checks a Bind on `queuePair`. Throws INVALID_PARAMETER unless the range is not empty and lies within the memory,
   * INVALID_DEVICE_STATE while the window is bound.
   */
  checkBind(
    what: string,
    queuePair: QueuePairBase,
    memory: WvMemoryRegion,
    offset: number,
    length: number,
  ): void {
    if (!isWithin(offset, length, memory.length)) {
      throw refuse(
        Status.INVALID_PARAMETER,
        what,
        `\`offset\` and \`length\` must be a non-empty range within the memory's ${memory.length} bytes; got ${shown(offset)} and ${shown(length)}.`,
      );
    }
    if (!this.#isUnbound(queuePair)) {
      throw refuse(Status.INVALID_DEVICE_STATE, what, 'The window must not be bound. Invalidate it first.');
    }
  }

  /**
   * Whether the window is unbound, will be unbound by an earlier request in the queue of `queuePair`, or its connection
   * has ended.
   */
  #isUnbound(queuePair: QueuePairBase): boolean {
    const boundOn = this.#boundOn;
    if (boundOn === undefined) return true;
    if (this.#invalidating && boundOn === queuePair) return true;
    return boundOn.ended || boundOn.qp.state === QpState.ERROR;
  }

  bound(queuePair: QueuePairBase, key: number): void {
    this.adapter.windows.delete(this.#key);
    this.adapter.windows.set(key, this);
    this.#boundOn = queuePair;
    this.#key = key;
    this.#everBound = true;
    this.#invalidating = false;
  }

  /** The key of the last Bind. */
  get key(): number {
    return this.#key;
  }

  /** Notes that an Invalidate was queued on `queuePair`; returns whether it is for this window's binding. */
  invalidating(queuePair: QueuePairBase): boolean {
    if (this.#boundOn !== queuePair) return false;
    this.#invalidating = true;
    return true;
  }

  /** Notes that the binding with this key has ended. */
  invalidated(key: number): void {
    if (this.#boundOn === undefined || key !== this.#key) return;
    this.adapter.windows.delete(key);
    this.#boundOn = undefined;
    this.#invalidating = false;
    this.adapter.deregisterReleased();
  }

  protected end(): void {
    this.adapter.windows.delete(this.#key);
    this.#boundOn = undefined;
    this.wv.release();
    this.adapter.deregisterReleased();
    this.adapter.removeChild(this);
  }
}

/** Whether a range is not empty and lies within `size` bytes. */
function isWithin(offset: number, length: number, size: number): boolean {
  return (
    Number.isSafeInteger(offset) &&
    Number.isSafeInteger(length) &&
    offset >= 0 &&
    length > 0 &&
    offset + length <= size
  );
}
