/** Waits for the next result of one or several completion queues, of either version. */
import { firstTaken, type WaitOptions } from '../winverbs/index.js';
import type { INDCompletionQueue, NdResult } from './spi/v1.js';
import type { IND2CompletionQueue, Nd2Result } from './spi/v2.js';
import { v2Terms } from './status.js';

export type { WaitOptions };

/** Members that the completion queues of both versions have. */
type QueueOf<R> = (R extends Nd2Result ? IND2CompletionQueue : INDCompletionQueue) & {
  getResults(results: R[], max?: number): number;
};

/**
 * Returns the next result of a completion queue, and waits for one if the queue is empty.
 *
 * @param queue - a queue whose results no other code takes meanwhile
 * @throws NdError BUFFER_OVERFLOW (the queue has overrun), INTERNAL_ERROR, DEVICE_REMOVED, CANCELED (its requests were
 *   cancelled)
 * @example
 * ```ts
 * queuePair.send('hello', sgl);
 * const { requestContext, status } = await nextResult(queue, { signal: AbortSignal.timeout(5000) });
 * ```
 */
export function nextResult(queue: IND2CompletionQueue, options?: WaitOptions): Promise<Nd2Result>;
export function nextResult(queue: INDCompletionQueue, options?: WaitOptions): Promise<NdResult>;
export async function nextResult<R>(queue: QueueOf<R>, options: WaitOptions = {}): Promise<R> {
  return (await translated('nextResult', firstTaken([queue], taken<R>, options, 'queue'))).result;
}

/**
 * Returns the next result of the first of several completion queues that has one. No notification request remains on
 * the others.
 *
 * @param queues - at least one; earlier ones have precedence
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
  /** The queue that had the result. */
  queue: IND2CompletionQueue;
  /** The result taken from the queue. */
  result: Nd2Result;
}>;
export function firstResult(
  queues: readonly INDCompletionQueue[],
  options?: WaitOptions,
): Promise<{
  /** The queue that had the result. */
  queue: INDCompletionQueue;
  /** The result taken from the queue. */
  result: NdResult;
}>;
export function firstResult<R>(
  queues: readonly QueueOf<R>[],
  options: WaitOptions = {},
): Promise<{ queue: QueueOf<R>; result: R }> {
  return translated('firstResult', firstTaken(queues, taken<R>, options, 'queues'));
}

/** Translates errors of arguments. */
async function translated<T>(what: string, waiting: Promise<T>): Promise<T> {
  try {
    return await waiting;
  } catch (error) {
    throw v2Terms.error(error, what);
  }
}

function taken<R>(queue: QueueOf<R>): R | undefined {
  const results: R[] = [];
  return queue.getResults(results, 1) === 1 ? results[0] : undefined;
}
