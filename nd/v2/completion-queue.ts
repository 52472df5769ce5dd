import type { IWVCompletionQueue } from '../../winverbs/index.js';
import { Status, WcStatus } from '../../winverbs/index.js';
import type { AdapterObject } from '../core/adapter-object.js';
import type { CompletionBelow, QueueBelow } from '../core/below.js';
import { CompletionQueueBase } from '../core/completion-queue-base.js';
import { type RequestRecord, RequestType } from '../core/request-queue.js';
import type { IND2CompletionQueue, Nd2Affinity, Nd2Result } from '../spi/v2.js';
import { notifyAffinity } from './affinity.js';

// V8 treats imported names as constants only under a local name (uvp/queue-pair.ts).
const { receive: RECEIVE } = RequestType;
const { SUCCESS } = Status;
const { SUCCESS: WC_SUCCESS } = WcStatus;

/** IND2CompletionQueue: results are filled into the client's array. */
export class CompletionQueue<W extends QueueBelow = IWVCompletionQueue>
  extends CompletionQueueBase<Nd2Result, W>
  implements IND2CompletionQueue
{
  protected readonly sizeName = 'depth';

  protected get interfaces() {
    return ['IND2Overlapped', 'IND2CompletionQueue'] as const;
  }

  readonly shouldPoll?: () => boolean;

  constructor(adapter: AdapterObject, wv: W) {
    super(adapter, wv);
    if (wv.shouldPoll !== undefined) this.shouldPoll = () => wv.shouldPoll!();
  }

  getNotifyAffinity(): Nd2Affinity {
    this.alive('GetNotifyAffinity');
    return notifyAffinity('GetNotifyAffinity');
  }

  protected newResult(record: RequestRecord, completion: CompletionBelow): Nd2Result {
    const result = blank();
    this.#fillIn(result, record, completion);
    return result;
  }

  protected put(
    results: Nd2Result[],
    index: number,
    record: RequestRecord,
    completion: CompletionBelow,
  ): void {
    let result = results[index];
    if (result === undefined) {
      result = blank();
      results[index] = result;
    }
    try {
      this.#fillIn(result, record, completion);
    } catch {
      // A read-only object must not make the client lose this outcome and those of the rest of the batch.
      result = blank();
      results[index] = result;
      this.#fillIn(result, record, completion);
    }
  }

  #fillIn(result: Nd2Result, record: RequestRecord, completion: CompletionBelow): void {
    const { type } = record;
    result.requestType = type;
    result.requestContext = record.context;
    result.queuePairContext = completion.qpContext;
    const { status } = completion;
    if (status === WC_SUCCESS) {
      result.status = SUCCESS;
      result.bytesTransferred = type === RECEIVE ? completion.length : 0;
    } else {
      result.status = this.failureOf(type, status);
      result.bytesTransferred = 0;
    }
  }
}

function blank(): Nd2Result {
  return {
    status: 0,
    bytesTransferred: 0,
    queuePairContext: undefined,
    requestContext: undefined,
    requestType: RECEIVE,
  };
}
