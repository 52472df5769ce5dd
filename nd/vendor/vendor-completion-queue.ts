import type { RequestType } from '../core/request-queue.js';
import type { Nd2Affinity } from '../spi/v2.js';
import { CompletionQueue } from '../v2/completion-queue.js';
import { notifyAffinity } from './native-affinity.js';
import type { NativeQueue } from './native-queue.js';

/** IND2CompletionQueue over a vendor's provider. */
export class VendorCompletionQueue extends CompletionQueue<NativeQueue> {
  override getNotifyAffinity(): Nd2Affinity {
    const what = 'GetNotifyAffinity';
    this.alive(what);
    return this.adapter.terms.call(what, () => notifyAffinity(this.wv.com));
  }

  /** The provider's results are already statuses of the SPI. */
  protected override failureOf(_type: RequestType, status: number): number {
    return this.adapter.terms.status(status);
  }
}
