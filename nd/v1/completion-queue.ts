import type { IWVCompletionQueue, WvCompletion } from '../../winverbs/index.js';
import { Status, WcStatus } from '../../winverbs/index.js';
import { CompletionQueueBase } from '../core/completion-queue-base.js';
import type { MemoryWindow } from '../core/memory-window.js';
import { type RequestRecord, RequestType } from '../core/request-queue.js';
import type { INDCompletionQueue, NdResult } from '../spi/v1.js';
import { fillIn } from './result.js';

// V8 treats imported names as constants only under a local name (uvp/queue-pair.ts).
const { receive: RECEIVE } = RequestType;
const { SUCCESS } = Status;
const { SUCCESS: WC_SUCCESS } = WcStatus;

/** INDCompletionQueue: results are the clients' own objects, passed with the requests. */
export class CompletionQueue
  extends CompletionQueueBase<NdResult, IWVCompletionQueue>
  implements INDCompletionQueue
{
  protected readonly sizeName = 'entries';

  protected get interfaces() {
    return ['INDOverlapped', 'INDCompletionQueue'] as const;
  }

  protected newResult(record: RequestRecord, completion: WvCompletion): NdResult {
    const result: NdResult[] = [];
    this.put(result, 0, record, completion);
    return result[0]!;
  }

  protected put(results: NdResult[], index: number, record: RequestRecord, completion: WvCompletion): void {
    const result = record.context as NdResult;
    // A result that was frozen after its request must not prevent the other results of the batch.
    const { status } = completion;
    if (status === WC_SUCCESS) {
      fillIn(result, SUCCESS, record.type === RECEIVE ? completion.length : record.length);
    } else {
      fillIn(result, this.failureOf(record.type, status), 0);
    }
    results[index] = result;
  }

  protected override resultOf(window: MemoryWindow): NdResult | undefined {
    const result = window.invalidateResult;
    if (result !== undefined) fillIn(result, SUCCESS, 0);
    return result;
  }
}
