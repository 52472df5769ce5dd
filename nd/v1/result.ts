/** Results of requests: the client's objects, filled in when the requests have completed. */
import { shown } from '../../kernel-bridge/ioctl/shown.js';
import { Status } from '../../winverbs/index.js';
import type { NdResult } from '../spi/v1.js';
import { refuse } from '../status.js';

/** Throws unless the result is writable; otherwise the outcome of the request would be lost. */
export function checkResult(what: string, result: unknown): void {
  if (typeof result !== 'object' || result === null) {
    throw refuse(
      Status.INVALID_PARAMETER_1,
      what,
      `\`result\` must be an object for the outcome of the request; got ${shown(result)}.`,
    );
  }
  const { status, bytesTransferred } = result as NdResult;
  if (!fillIn(result as NdResult, status, bytesTransferred)) {
    throw refuse(
      Status.INVALID_PARAMETER_1,
      what,
      '`result` must be writable; got one that is frozen, or whose status or bytesTransferred is read-only.',
    );
  }
}

/** Fills in a result; returns false if the client's object is read-only. */
export function fillIn(result: NdResult, status: number, bytesTransferred: number): boolean {
  try {
    result.status = status;
    result.bytesTransferred = bytesTransferred;
    return true;
  } catch {
    return false;
  }
}
