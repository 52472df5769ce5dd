import { isAnyArrayBuffer } from 'node:util/types';
import { kindOf } from '../../kernel-bridge/ioctl/shown.js';
import { Status } from '../../winverbs/index.js';
import { inUseStatuses, NdError, refuse, type Terms } from '../status.js';

/**
 * Throws INVALID_PARAMETER or INVALID_BUFFER_SIZE unless `buffer` is a non-empty buffer of at most `maxLength` bytes.
 */
export function checkRegistrable(buffer: unknown, maxLength: number, what: string): void {
  const length = byteLengthOf(buffer, what);
  if (length === 0) {
    throw refuse(Status.INVALID_BUFFER_SIZE, what, '`buffer` must not be empty.');
  }
  if (length > maxLength) {
    throw refuse(
      Status.INVALID_PARAMETER,
      what,
      `\`buffer\` must be at most the adapter's ${maxLength} bytes; got ${length}.`,
    );
  }
}

function byteLengthOf(buffer: unknown, what: string): number {
  if (ArrayBuffer.isView(buffer)) return buffer.byteLength;
  if (isAnyArrayBuffer(buffer)) return buffer.byteLength;
  throw refuse(
    Status.INVALID_PARAMETER,
    what,
    `\`buffer\` must be an ArrayBuffer, a SharedArrayBuffer or a view of one; got ${kindOf(buffer)}.`,
  );
}

/**
 * Deregisters before it returns, and returns the error if the deregistration failed, because C callers expect
 * DEVICE_BUSY as the return value of the call itself. The kernel replies within microseconds.
 */
export function deregisterNow(deregister: () => void, terms: Terms, what: string): NdError | undefined {
  try {
    terms.call(what, deregister, inUseStatuses);
    return undefined;
  } catch (error) {
    if (error instanceof NdError) return error;
    throw error;
  }
}
