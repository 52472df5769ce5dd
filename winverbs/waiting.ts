/** Waits for the next completion of one or several queues, without leaving a notification request behind. */
import type { Overlapped } from '../kernel-bridge/door/overlapped.js';
import { shown } from '../kernel-bridge/ioctl/shown.js';
import type { IWVCompletionQueue, WvCompletion } from './interfaces.js';
import { Status, WvError } from './status.js';

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
  options: WaitOptions,
  name: string,
): Promise<{
  /** The queue that had the result. */
  queue: Q;
  /** The result taken from the queue. */
  result: R;
}> {
  const { signal } = checkedWait(queues, options, name);
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
 * Returns the next completion of a queue, and waits for one if the queue is empty.
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
  return (await firstTaken([cq], taken, options, 'cq')).result;
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
  options: WaitOptions = {},
): Promise<{
  /** The queue that had the completion. */
  cq: IWVCompletionQueue;
  /** The completion taken from the queue. */
  completion: WvCompletion;
}> {
  const { queue: cq, result: completion } = await firstTaken(cqs, taken, options, 'cqs');
  return { cq, completion };
}

function invalid(sentence: string): never {
  throw new WvError(Status.INVALID_PARAMETER, `${sentence}.`);
}

/** Checks the arguments of a wait. `name` is that of the queues, or of the only one. */
function checkedWait(queues: unknown, options: WaitOptions, name: string): WaitOptions {
  if (!Array.isArray(queues) || queues.length === 0)
    invalid(
      `\`${name}\` must be an array of at least one completion queue; got ${Array.isArray(queues) ? 'an empty one' : shown(queues)}`,
    );
  for (const queue of queues)
    if (typeof queue?.notify !== 'function')
      invalid(
        `\`${name}\` must ${name.endsWith('s') ? 'contain only completion queues' : 'be a completion queue'}; got ${shown(queue)}`,
      );
  for (const name of Object.keys(options ?? {}))
    if (name !== 'signal') invalid(`\`options\` must contain only signal; got ${shown(name)}`);
  return checkedSignal(options);
}

/** Returns options of a wait. @throws WvError INVALID_PARAMETER @internal */
export function checkedSignal<O extends WaitOptions>(options: O): O {
  if (typeof options !== 'object' || options === null)
    invalid(`\`options\` must be an object with signal; got ${shown(options)}`);
  const { signal } = options;
  if (signal !== undefined && !(typeof signal === 'object' && signal !== null && 'aborted' in signal))
    invalid(`\`signal\` must be an AbortSignal; got ${shown(signal)}`);
  return options;
}

function taken(cq: IWVCompletionQueue): WvCompletion | undefined {
  const completions: WvCompletion[] = [];
  return cq.poll(completions, 1) === 1 ? completions[0] : undefined;
}
