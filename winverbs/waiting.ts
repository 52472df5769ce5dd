/** Waits for the next completion of one or several queues, without leaving a notification request behind. */
import type { Overlapped } from '../kernel-bridge/door/overlapped.js';
import type { IWVCompletionQueue, WvCompletion } from './interfaces.js';

/** @internal Members that a queue must have, in WinVerbs and in NetworkDirect. */
export interface Notifying {
  notify(type: 'any'): Overlapped<void>;
}

/** Options of waiting for a completion. */
export interface WaitOptions {
  /** Aborts the wait: it rejects with the signal's reason, and no completion is lost. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * @internal Returns the first result that `take` finds in one of the queues. It tries all of them, then waits for the
 *   first notification, cancels the others, and tries again, so that a notification that ended meanwhile is not lost.
 */
export async function firstTaken<Q extends Notifying, R>(
  queues: readonly Q[],
  take: (queue: Q) => R | undefined,
  signal?: AbortSignal,
): Promise<{
  /** The queue that had the result. */
  queue: Q;
  /** The result taken from the queue. */
  result: R;
}> {
  for (;;) {
    signal?.throwIfAborted();
    for (const queue of queues) {
      const result = take(queue);
      if (result !== undefined) return { queue, result };
    }
    const waiting: Overlapped<void>[] = [];
    let failure: unknown;
    let ended = false;
    try {
      for (const queue of queues) waiting.push(queue.notify('any'));
      if (signal !== undefined) for (const request of waiting) request.abortOn(signal);
      await Promise.race(waiting);
    } catch (error) {
      failure = error;
      ended = true;
    }
    for (const request of waiting) request.cancel();
    await Promise.allSettled(waiting);
    signal?.throwIfAborted();
    if (ended) throw failure;
  }
}

/**
 * Returns the next completion of a queue, and waits if there is none.
 *
 * @param cq - a queue that is not polled elsewhere meanwhile
 * @throws WvError BUFFER_OVERFLOW (the queue has overrun), DEVICE_REMOVED, CANCELED (the queue's requests were
 *   cancelled)
 * @example
 * ```ts
 * qp.send('hello', sgl, WvSend.SIGNALED);
 * const { context, status } = await nextCompletion(cq, { signal: AbortSignal.timeout(5000) });
 * ```
 */
export async function nextCompletion(
  cq: IWVCompletionQueue,
  options: WaitOptions = {},
): Promise<WvCompletion> {
  return (await firstCompletion([cq], options)).completion;
}

/**
 * Returns the next completion of the first of several queues that has one. No notification request remains on the
 * others.
 *
 * @param cqs - at least one; earlier ones have precedence
 * @throws WvError as {@link nextCompletion}
 */
export async function firstCompletion(
  cqs: readonly IWVCompletionQueue[],
  { signal }: WaitOptions = {},
): Promise<{
  /** The queue that had the completion. */
  cq: IWVCompletionQueue;
  /** The completion taken from the queue. */
  completion: WvCompletion;
}> {
  const { queue: cq, result: completion } = await firstTaken(cqs, taken, signal);
  return { cq, completion };
}

function taken(cq: IWVCompletionQueue): WvCompletion | undefined {
  const completions: WvCompletion[] = [];
  return cq.poll(completions, 1) === 1 ? completions[0] : undefined;
}
