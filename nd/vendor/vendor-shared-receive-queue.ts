import type { OverlappedObject } from '../../kernel-bridge/windows/nd-provider/index.js';
import { type Overlapped, Status } from '../../winverbs/index.js';
import { isCount } from '../core/argument-checks.js';
import { NdOverlappedBase } from '../core/nd-object.js';
import { RecordPool, type RequestRecord } from '../core/request-queue.js';
import { ScatterGather } from '../core/scatter-gather.js';
import type { IND2SharedReceiveQueue, Nd2Affinity, Nd2Sge } from '../spi/v2.js';
import { refuse } from '../status.js';
import { notifyAffinity } from './native-affinity.js';
import { type ReceiveSource, SgeList } from './native-queue-pair.js';
import type { VendorAdapter } from './vendor-adapter.js';

/** IND2SharedReceiveQueue over a vendor's provider. */
export class VendorSharedReceiveQueue
  extends NdOverlappedBase
  implements IND2SharedReceiveQueue, ReceiveSource
{
  protected get interfaces() {
    return ['IND2Overlapped', 'IND2SharedReceiveQueue'] as const;
  }

  readonly #pool = new RecordPool();
  /** Records of outstanding Receives, by index. */
  readonly #records: (RequestRecord | undefined)[] = [];
  readonly #sg: ScatterGather;
  readonly #list: SgeList;

  constructor(
    readonly adapter: VendorAdapter,
    readonly com: OverlappedObject<'IND2SharedReceiveQueue'>,
    private depth: number,
    maxSge: number,
  ) {
    super();
    this.#sg = new ScatterGather(adapter.regions, adapter.maxTransfer);
    this.#list = new SgeList(maxSge, 'Receive');
    adapter.addChild(this);
  }

  getNotifyAffinity(): Nd2Affinity {
    const what = 'GetNotifyAffinity';
    this.alive(what);
    return this.adapter.terms.call(what, () => notifyAffinity(this.com));
  }

  modify(depth: number, notifyThreshold: number): void {
    const what = 'Modify';
    this.alive(what);
    const most = this.adapter.info.maxSharedReceiveQueueDepth;
    const newDepth = depth === 0 ? this.depth : depth;
    if (!isCount(newDepth, 1, most) || !isCount(notifyThreshold, 0, newDepth)) {
      throw refuse(
        Status.INVALID_PARAMETER,
        what,
        `\`depth\` must be 1 to ${most}, and \`notifyThreshold\` at most \`depth\`, or 0 for no change; got ${depth} and ${notifyThreshold}.`,
      );
    }
    this.adapter.terms.call(what, () => this.com.run('Modify', depth, notifyThreshold));
    this.depth = newDepth;
  }

  notify(): Overlapped<void> {
    const what = 'Notify';
    this.alive(what);
    const { terms } = this.adapter;
    const request = terms.call(what, () => this.com.start('Notify', () => [], { repeats: true }));
    return this.issued(request.translateFailure((error) => terms.error(error, what)));
  }

  receive(context: unknown, sgl: readonly Nd2Sge[]): void {
    const what = 'Receive';
    this.alive(what);
    this.#sg.translate(sgl, what);
    const record = this.#pool.take(context, this.#sg.total);
    try {
      const n = this.#list.write(this.#sg.list);
      this.com.run('Receive', 2 * record.index + 1, this.#list.address, n);
    } catch (error) {
      this.#pool.done(record);
      throw this.adapter.terms.error(error, what);
    }
    this.#records[record.index] = record;
  }

  take(index: number): RequestRecord | undefined {
    const record = this.#records[index];
    this.#records[index] = undefined;
    return record;
  }

  cancelOverlappedRequests(): void {
    const what = 'CancelOverlappedRequests';
    this.alive(what);
    this.adapter.terms.call(what, () => this.com.cancelAll());
  }

  protected end(): void {
    this.com.release();
    this.adapter.removeChild(this);
  }

  protected override released(): void {
    try {
      this.com.cancelAll();
    } catch {
      // The requests end when the object is released.
    }
  }
}
