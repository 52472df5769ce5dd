/** Promises that a signal rejects, and iterators over promises. */
import { aborted } from './errors.js';

/** A promise that a signal rejects if `cancel` answers true. */
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

/** An iterator of what `next` brings until it brings undefined. */
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
