import type { IWVMemoryWindow } from '../../winverbs/index.js';
import { QpState } from '../../winverbs/index.js';
import type { INDMemoryWindow, NdResult } from '../spi/v1.js';
import type { Adapter } from './adapter.js';
import type { Endpoint } from './endpoint.js';
import { NdObject } from './object.js';

/** INDMemoryWindow over IWVMemoryWindow: knows whether it is bound, where, and by which key. */
export class MemoryWindow extends NdObject implements INDMemoryWindow {
  readonly adapter: Adapter;
  readonly wv: IWVMemoryWindow;
  /** What comes back when the peer invalidates the window. */
  readonly invalidateResult: NdResult | undefined;
  #boundOn: Endpoint | undefined;
  #key = 0;
  /** An Invalidate is queued on {@link #boundOn}. */
  #invalidating = false;

  constructor(adapter: Adapter, wv: IWVMemoryWindow, invalidateResult: NdResult | undefined) {
    super();
    this.adapter = adapter;
    this.wv = wv;
    this.invalidateResult = invalidateResult;
    adapter.hold();
  }

  /**
   * Whether a Bind on `endpoint` may be queued: the window is unbound, will be by what is queued there before, or its
   * connection is over.
   */
  bindable(endpoint: Endpoint): boolean {
    const boundOn = this.#boundOn;
    if (boundOn === undefined) return true;
    if (this.#invalidating && boundOn === endpoint) return true;
    return boundOn.ended || boundOn.qp.state === QpState.ERROR;
  }

  bound(endpoint: Endpoint, key: number): void {
    this.adapter.windows.delete(this.#key);
    this.adapter.windows.set(key, this);
    this.#boundOn = endpoint;
    this.#key = key;
    this.#invalidating = false;
  }

  /** An Invalidate was queued on `endpoint`; answers the key that it ends. */
  invalidating(endpoint: Endpoint): number {
    if (this.#boundOn === endpoint) this.#invalidating = true;
    return this.#key;
  }

  /** The binding with this key has ended. */
  invalidated(key: number): void {
    if (this.#boundOn === undefined || key !== this.#key) return;
    this.adapter.windows.delete(key);
    this.#boundOn = undefined;
    this.#invalidating = false;
  }

  protected end(): void {
    this.adapter.windows.delete(this.#key);
    this.#boundOn = undefined;
    this.wv.release();
    this.adapter.letGo();
  }
}
