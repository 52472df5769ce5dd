/** Permitted results of calls, detection of hangs, and checks for leftovers. */
import { readCounters } from '../../kernel-bridge/index.js';
import { statusName } from '../../winverbs/index.js';
import { outcome as outcomeOf } from './outcome.js';
import { HANG_MS, within as outcomeWithin } from './within.js';

/** The stack violated the model. */
export class ModelError extends Error {}

export function names(statuses: Iterable<number>): string {
  return [...statuses].map((status) => statusName(status)).join(' or ');
}

export function within<T>(what: string, promise: PromiseLike<T>): Promise<T> {
  return outcomeWithin(promise, HANG_MS, () => new ModelError(`${what} did not complete.`));
}

export async function outcome(what: string, request: PromiseLike<unknown>): Promise<number> {
  return outcomeOf(within(what, request));
}

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Calls a function that may throw an error instead of rejecting with it. */
export async function attempt(call: () => PromiseLike<unknown>): Promise<void> {
  await call();
}

/** Live objects of the HCA and of connection management. */
export function leftovers(): Record<string, number> {
  const { objects, cm } = readCounters();
  const { pd, mr, mw, cq, srq, qp, ah } = objects;
  return { pd, mr, mw, cq, srq, qp, ah, connections: cm.connections ?? 0 };
}

/** Waits until nothing is left. Connections only end after the peer's confirmation. */
export async function nothingLeft(): Promise<void> {
  const began = performance.now();
  for (;;) {
    const left = leftovers();
    if (Object.values(left).every((count) => count === 0)) return;
    if (performance.now() - began > HANG_MS) throw new ModelError(`Left over: ${JSON.stringify(left)}.`);
    await turn();
  }
}
