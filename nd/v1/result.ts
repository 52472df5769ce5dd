/** Results of requests: the client's objects, filled in when the requests have ended. */
import { Status } from '../../winverbs/index.js';
import type { NdResult } from '../spi/v1.js';
import { refuse } from '../status.js';

/** Without a writable result the outcome of a request would be lost. */
export function checkResult(what: string, result: unknown): void {
  if (typeof result !== 'object' || result === null) {
    throw refuse(
      Status.INVALID_PARAMETER_1,
      what,
      `The result is ${String(result)}; it must be an object, which tells how the request ended.`,
    );
  }
  const { status, bytesTransferred } = result as NdResult;
  if (!tell(result as NdResult, status, bytesTransferred)) {
    throw refuse(
      Status.INVALID_PARAMETER_1,
      what,
      'The result cannot be written: it is frozen, or its status or bytesTransferred are for reading only.',
    );
  }
}

/** Writes a result; false: the client's object cannot be written. */
export function tell(result: NdResult, status: number, bytesTransferred: number): boolean {
  try {
    result.status = status;
    result.bytesTransferred = bytesTransferred;
    return true;
  } catch {
    return false;
  }
}
