import { isAnyArrayBuffer } from 'node:util/types';
import type { IWVProtectionDomain, WvMemoryRegion } from '../../winverbs/index.js';
import { Status } from '../../winverbs/index.js';
import { inUseStatuses, NdError, refuse, type Terms } from '../status.js';

/** INVALID_PARAMETER or INVALID_BUFFER_SIZE unless it is a non-empty buffer of at most `maxLength` bytes. */
export function checkRegistrable(buffer: unknown, maxLength: number, what: string): void {
  const length = byteLengthOf(buffer, what);
  if (length === 0) {
    throw refuse(Status.INVALID_BUFFER_SIZE, what, 'There are no bytes to register: the buffer is empty.');
  }
  if (length > maxLength) {
    throw refuse(
      Status.INVALID_PARAMETER,
      what,
      `${length} bytes are more than the adapter registers at once (${maxLength}).`,
    );
  }
}

function byteLengthOf(buffer: unknown, what: string): number {
  if (ArrayBuffer.isView(buffer)) return buffer.byteLength;
  if (isAnyArrayBuffer(buffer)) return buffer.byteLength;
  throw refuse(
    Status.INVALID_PARAMETER,
    what,
    'Only an ArrayBuffer, a SharedArrayBuffer or a view of one can be registered.',
  );
}

/**
 * Deregisters before it returns, and returns the error if that failed. C callers expect DEVICE_BUSY as the return value
 * of the call itself. The kernel answers within microseconds.
 */
export function deregisterNow(
  pd: IWVProtectionDomain,
  region: WvMemoryRegion,
  terms: Terms,
  what: string,
): NdError | undefined {
  try {
    terms.call(what, () => pd.deregisterMemory(region), inUseStatuses);
    return undefined;
  } catch (error) {
    if (error instanceof NdError) return error;
    throw error;
  }
}
