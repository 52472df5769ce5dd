import { kindOf, shown } from '../../../kernel-bridge/ioctl/shown.js';
import { wrongType } from '../base/checks.js';
import { uncaught } from '../base/emit.js';

/** Reads into a buffer of the program instead of allocating a chunk for each `'data'` event, as `onread` of `node:net` does. */
export interface OnReadOptions {
  /** A buffer of at least one byte, which is reused for each read, or a function that returns a buffer for the next read. */
  readonly buffer: Uint8Array | (() => Uint8Array);
  /**
   * Called with the number of bytes read and the buffer, which contains them from offset 0. A reused buffer is overwritten after the
   * callback returns. If the callback returns `false`, the socket is paused until `socket.resume()`.
   */
  readonly callback: (bytesWritten: number, buffer: Uint8Array) => unknown;
}

const isMemory = (value: unknown): value is Uint8Array => value instanceof Uint8Array && value.length > 0;

const shownMemory = (value: unknown): string =>
  value instanceof Uint8Array ? 'an empty one' : kindOf(value);

/** @throws TypeError `ERR_INVALID_ARG_TYPE` (an option has the wrong type, or the buffer is empty) */
export function checkOnRead(onread: unknown): asserts onread is OnReadOptions | null | undefined {
  if (onread === undefined || onread === null) return;
  if (typeof onread !== 'object')
    throw wrongType(`\`onread\` must be an object with buffer and callback; got ${shown(onread)}.`);
  const { buffer, callback } = onread as Partial<OnReadOptions>;
  if (!isMemory(buffer) && typeof buffer !== 'function')
    throw wrongType(
      `\`onread.buffer\` must be a Uint8Array of at least one byte, or a function that returns one; got ${shownMemory(buffer)}.`,
    );
  if (typeof callback !== 'function')
    throw wrongType(`\`onread.callback\` must be a function; got ${shown(callback)}.`);
}

/** The buffer for the next read. Rethrows errors of the program's function, and throws a TypeError if it returns no buffer. */
export function memoryOf({ buffer }: OnReadOptions): Uint8Array {
  const memory = typeof buffer === 'function' ? buffer() : buffer;
  if (isMemory(memory)) return memory;
  throw wrongType(
    `\`onread.buffer\` must return a Uint8Array of at least one byte; got ${shownMemory(memory)}.`,
  );
}

/** Calls the callback. Returns false if it pauses the socket. An exception becomes uncaught and does not pause it. */
export function wantsMore({ callback }: OnReadOptions, bytes: number, memory: Uint8Array): boolean {
  try {
    return callback(bytes, memory) !== false;
  } catch (error) {
    uncaught(error);
    return true;
  }
}
