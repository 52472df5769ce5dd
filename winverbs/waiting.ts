/** Waiting for the next completion of one or several queues, without leaving a notification behind. */
import type { Overlapped } from '../kernel-bridge/door/overlapped.js';
import type { IWVCompletionQueue, WvCompletion } from './interfaces.js';

/** @internal What a queue has to bring, of WinVerbs and of NetworkDirect alike. */
export interface Notifying {
  notify(type: 'any'): Overlapped<void>;
}

/** Options of waiting for a completion. */
export interface WaitOptions {
  /** Ends the wait: it rejects with the signal's reason, and no completion is lost. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * @internal The first that `take` finds in one of the queues. It looks at all of them, then waits for the first notification, ends the
 * others, and looks again, so that a notification that ended meanwhile is no loss.
 */
export async function firstTaken<Q extends Notifying, R>(
  queues: readonly Q[],
  take: (queue: Q) => R | undefined,
  signal?: AbortSignal,
): Promise<{
  /** The queue that had it. */
  queue: Q;
  /** What was taken from the queue. */
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
 * The next completion of a queue; waits for it if there is none.
 *
 * @param cq - whose completions nobody else polls meanwhile
 * @throws WvError BUFFER_OVERFLOW: the queue has overrun; DEVICE_REMOVED; CANCELED: the queue's requests were cancelled
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
 * The next completion of the first of several queues that has one; no notification of the others stays behind.
 *
 * @param cqs - at least one; earlier ones are looked at first
 * @throws WvError as {@link nextCompletion}
 */
export async function firstCompletion(
  cqs: readonly IWVCompletionQueue[],
  { signal }: WaitOptions = {},
): Promise<{
  /** The queue that had it. */
  cq: IWVCompletionQueue;
  /** What was taken from the queue. */
  completion: WvCompletion;
}> {
  const { queue: cq, result: completion } = await firstTaken(cqs, taken, signal);
  return { cq, completion };
}

function taken(cq: IWVCompletionQueue): WvCompletion | undefined {
  const completions: WvCompletion[] = [];
  return cq.poll(completions, 1) === 1 ? completions[0] : undefined;
}
