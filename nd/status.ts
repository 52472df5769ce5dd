/**
 * Statuses at the ND SPI: the error class, and the translation of what WinVerbs reports. Both layers share one domain
 * of numbers (NTSTATUS), so that only the differences are listed.
 */
import { Status, StatusError, statusName, statusText, WcStatus } from '../winverbs/index.js';

/**
 * A call or overlapped request of the ND SPI that ended in another status than SUCCESS. `status` is the NDSTATUS value,
 * unsigned.
 */
export class NdError extends StatusError {
  static {
    NdError.prototype.name = 'NdError';
  }
}

/** WinVerbs status → ND status. */
export type StatusMap = Readonly<Record<number, number>>;

/** Where v1 has another name for a WinVerbs status, whatever the call (ND SPI v1 status codes). */
const v1Statuses: StatusMap = {
  [Status.IO_TIMEOUT]: Status.TIMEOUT,
  [Status.UNEXPECTED_IO_ERROR]: Status.INTERNAL_ERROR,
  [Status.CONNECTION_IN_USE]: Status.CONNECTION_ACTIVE,
  [Status.REQUEST_ABORTED]: Status.CONNECTION_ABORTED,
  [Status.SHARING_VIOLATION]: Status.ADDRESS_ALREADY_EXISTS,
  [Status.BAD_NETWORK_PATH]: Status.BAD_NETWORK_NAME,
  [Status.ACCESS_DENIED]: Status.DEVICE_BUSY,
  [Status.NO_SUCH_DEVICE]: Status.DEVICE_REMOVED,
  [Status.NOT_FOUND]: Status.INVALID_HANDLE,
  [Status.LOCAL_LENGTH]: Status.DATA_OVERRUN,
  [Status.INVALIDATION_ERROR]: Status.INVALID_DEVICE_REQUEST,
};

/** WV_WC_STATUS → v1 result status, by index (ND SPI v1 over WinVerbs). */
const v1Completions: readonly number[] = (() => {
  const table: number[] = [];
  table[WcStatus.SUCCESS] = Status.SUCCESS;
  table[WcStatus.LOCAL_LENGTH_ERROR] = Status.DATA_OVERRUN;
  table[WcStatus.LOCAL_OP_ERROR] = Status.ACCESS_VIOLATION;
  table[WcStatus.LOCAL_PROTECTION_ERROR] = Status.ACCESS_VIOLATION;
  table[WcStatus.FLUSHED] = Status.CANCELED;
  table[WcStatus.MW_BIND_ERROR] = Status.ACCESS_VIOLATION;
  table[WcStatus.REMOTE_ACCESS_ERROR] = Status.REMOTE_ERROR;
  table[WcStatus.REMOTE_OP_ERROR] = Status.REMOTE_ERROR;
  table[WcStatus.RNR_RETRY_ERROR] = Status.TIMEOUT;
  table[WcStatus.TIMEOUT_RETRY_ERROR] = Status.TIMEOUT;
  table[WcStatus.REMOTE_INVALID_REQUEST] = Status.REMOTE_ERROR;
  table[WcStatus.BAD_RESPONSE] = Status.REMOTE_ERROR;
  table[WcStatus.LOCAL_ACCESS_ERROR] = Status.ACCESS_VIOLATION;
  table[WcStatus.ERROR] = Status.INTERNAL_ERROR;
  return table;
})();

/** The v1 status of a call or overlapped request; `map` refines it for the call at hand. */
export function v1Status(status: number, map?: StatusMap): number {
  return map?.[status] ?? v1Statuses[status] ?? status;
}

/** The v1 status of a result, for a WV_WC_STATUS. Numbers that WinVerbs does not define are INTERNAL_ERROR. */
export function v1CompletionStatus(wcStatus: number): number {
  return v1Completions[wcStatus] ?? Status.INTERNAL_ERROR;
}

/**
 * An error of the layer below in v1 terms. Errors that carry no status (a programming mistake) stay as they are.
 */
export function v1Error(error: StatusError, what: string, map?: StatusMap): NdError;
export function v1Error(error: unknown, what: string, map?: StatusMap): unknown;
export function v1Error(error: unknown, what: string, map?: StatusMap): unknown {
  if (error instanceof NdError || !(error instanceof StatusError)) return error;
  const status = v1Status(error.status, map);
  // A status that changed its name needs its own sentence; the one from below says the details.
  const sentence = status === error.status ? error.message : `${statusText(status)} (${error.message})`;
  return new NdError(status, `${what}: ${sentence}`, { cause: error });
}

/** Runs a call of the layer below and reports its failure in v1 terms. */
export function v1Call<T>(what: string, call: () => T, map?: StatusMap): T {
  try {
    return call();
  } catch (error) {
    throw v1Error(error, what, map);
  }
}

/** An error for a call that is refused here: the method, the status, and what would be right. */
export function refuse(status: number, what: string, sentence = statusText(status)): NdError {
  return new NdError(status, `${what}: ${sentence}`);
}

export { statusName };
