/** The next result of one or several completion queues, of either version, to await. */
import { firstTaken, type WaitOptions } from '../winverbs/index.js';
import type { INDCompletionQueue, NdResult } from './spi/v1.js';
import type { IND2CompletionQueue, Nd2Result } from './spi/v2.js';

export type { WaitOptions };

/** What both versions' completion queues have. */
type QueueOf<R> = (R extends Nd2Result ? IND2CompletionQueue : INDCompletionQueue) & {
  getResults(results: R[], max?: number): number;
};

/**
 * The next result of a completion queue; waits for it if there is none.
 *
 * @param queue - whose results nobody else takes meanwhile
 * @throws NdError BUFFER_OVERFLOW (the queue has overrun), INTERNAL_ERROR, DEVICE_REMOVED, CANCELED (its requests were cancelled)
 * @example
 * ```ts
 * queuePair.send('hello', sgl);
 * const { requestContext, status } = await nextResult(queue, { signal: AbortSignal.timeout(5000) });
 * ```
 */
export function nextResult(queue: IND2CompletionQueue, options?: WaitOptions): Promise<Nd2Result>;
export function nextResult(queue: INDCompletionQueue, options?: WaitOptions): Promise<NdResult>;
export async function nextResult<R>(queue: QueueOf<R>, options: WaitOptions = {}): Promise<R> {
  return (await firstTaken([queue], taken<R>, options.signal)).result;
}

/**
 * The next result of the first of several completion queues that has one; no notification of the others stays behind.
 *
 * @param queues - at least one; earlier ones are looked at first
 * @throws NdError as {@link nextResult}
 * @example
 * ```ts
 * const { queue, result } = await firstResult([inbound, outbound]);
 * ```
 */
export function firstResult(
  queues: readonly IND2CompletionQueue[],
  options?: WaitOptions,
): Promise<{
  /** The queue that had it. */
  queue: IND2CompletionQueue;
  /** What was taken from the queue. */
  result: Nd2Result;
}>;
export function firstResult(
  queues: readonly INDCompletionQueue[],
  options?: WaitOptions,
): Promise<{
  /** The queue that had it. */
  queue: INDCompletionQueue;
  /** What was taken from the queue. */
  result: NdResult;
}>;
export function firstResult<R>(
  queues: readonly QueueOf<R>[],
  options: WaitOptions = {},
): Promise<{ queue: QueueOf<R>; result: R }> {
  return firstTaken(queues, taken<R>, options.signal);
}

function taken<R>(queue: QueueOf<R>): R | undefined {
  const results: R[] = [];
  return queue.getResults(results, 1) === 1 ? results[0] : undefined;
}
