import { kindOf, wrongType } from './checks.js';
import { uncaught } from './emit.js';

/** Where `connect` puts the bytes that come, and whom it tells, as in `node:net`: no memory is allocated for each chunk. */
export interface OnReadOptions {
  /** Memory that is used again for each chunk, of at least one byte; or a function that returns memory for the next one. */
  readonly buffer: Uint8Array | (() => Uint8Array);
  /**
   * Called with the number of bytes that came and the memory that has them, from its first byte on. They are the program's until it returns, or for
   * ever if `buffer` is a function. When it returns `false`, nothing more is read until `socket.resume()`.
   */
  readonly callback: (bytesWritten: number, buffer: Uint8Array) => unknown;
}

const isMemory = (value: unknown): value is Uint8Array => value instanceof Uint8Array && value.length > 0;

const shownMemory = (value: unknown): string =>
  value instanceof Uint8Array ? 'an empty one' : kindOf(value);

/** @throws TypeError `ERR_INVALID_ARG_TYPE`: not such options */
export function checkOnRead(onread: unknown): asserts onread is OnReadOptions | null | undefined {
  if (onread === undefined || onread === null) return;
  if (typeof onread !== 'object')
    throw wrongType(`onread must be an object with buffer and callback; got ${kindOf(onread)}.`);
  const { buffer, callback } = onread as Partial<OnReadOptions>;
  if (!isMemory(buffer) && typeof buffer !== 'function')
    throw wrongType(
      `onread.buffer must be a Uint8Array of at least one byte, or a function that returns one; got ${shownMemory(buffer)}.`,
    );
  if (typeof callback !== 'function')
    throw wrongType(`onread.callback must be a function; got ${kindOf(callback)}.`);
}

/** The program's memory for the next bytes. What its function throws, or returns instead of memory, is thrown. */
export function memoryOf({ buffer }: OnReadOptions): Uint8Array {
  const memory = typeof buffer === 'function' ? buffer() : buffer;
  if (isMemory(memory)) return memory;
  throw wrongType(`onread.buffer must return a Uint8Array of at least one byte; got ${shownMemory(memory)}.`);
}

/** Tells the program of bytes in its memory. Returns whether it wants more. */
export function wantsMore({ callback }: OnReadOptions, bytes: number, memory: Uint8Array): boolean {
  try {
    return callback(bytes, memory) !== false;
  } catch (error) {
    uncaught(error);
    return true;
  }
}
