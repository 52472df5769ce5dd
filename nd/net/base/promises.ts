/** Promises that a signal can reject, and iterators over promises. */
import { aborted } from './errors.js';

/** Creates a promise that a signal rejects if `cancel` returns true. */
export function abortable<T>(
  start: (resolve: (value: T) => void, reject: (error: unknown) => void) => void,
  signal: AbortSignal | undefined,
  cancel: () => boolean,
): Promise<T> {
  if (signal === undefined) return new Promise(start);
  return new Promise<T>((resolve, reject) => {
    const onAbort = (): void => {
      if (cancel()) reject(aborted(signal));
    };
    signal.addEventListener('abort', onAbort, { once: true });
    const over = (): void => signal.removeEventListener('abort', onAbort);
    start(
      (value) => {
        over();
        resolve(value);
      },
      (error) => {
        over();
        reject(error);
      },
    );
  });
}

/** Creates an iterator over the results of `next`, up to the first undefined. */
export function iterate(next: () => Promise<Buffer | undefined>): AsyncIterableIterator<Buffer> {
  const iterator: AsyncIterableIterator<Buffer> = {
    next: async () => {
      const value = await next();
      return value === undefined ? { done: true, value } : { done: false, value };
    },
    return: async () => ({ done: true, value: undefined }),
    [Symbol.asyncIterator]: () => iterator,
  };
  return iterator;
}
