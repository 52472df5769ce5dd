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

/** Where ND has another name for a WinVerbs status, in both versions and whatever the call. */
const commonStatuses: StatusMap = {
  [Status.UNEXPECTED_IO_ERROR]: Status.INTERNAL_ERROR,
  [Status.CONNECTION_IN_USE]: Status.CONNECTION_ACTIVE,
  [Status.REQUEST_ABORTED]: Status.CONNECTION_ABORTED,
  [Status.BAD_NETWORK_PATH]: Status.BAD_NETWORK_NAME,
  [Status.NO_SUCH_DEVICE]: Status.DEVICE_REMOVED,
  // The verbs of a device that is gone, or has failed: nothing but clean-up works (ND SPI: adapter removal).
  [Status.FILE_FORCED_CLOSED]: Status.DEVICE_REMOVED,
  [Status.NOT_FOUND]: Status.INVALID_HANDLE,
  [Status.LOCAL_LENGTH]: Status.DATA_OVERRUN,
  [Status.INVALIDATION_ERROR]: Status.INVALID_DEVICE_REQUEST,
  // What the WinVerbs library of Windows calls some of them: HRESULTs of Win32 errors.
  2147942453: Status.BAD_NETWORK_NAME,
  2147942471: Status.CONNECTION_REFUSED,
  2147943568: Status.INVALID_HANDLE,
};

const v1Statuses: StatusMap = {
  ...commonStatuses,
  [Status.IO_TIMEOUT]: Status.TIMEOUT,
  [Status.SHARING_VIOLATION]: Status.ADDRESS_ALREADY_EXISTS,
};

const v2Statuses: StatusMap = {
  ...commonStatuses,
  [Status.TIMEOUT]: Status.IO_TIMEOUT,
};

/** For what ends an object: WinVerbs calls it ACCESS_DENIED where others refer to it still. */
export const inUseStatuses: StatusMap = { [Status.ACCESS_DENIED]: Status.DEVICE_BUSY };

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

/** WV_WC_STATUS → v2 result status: where v2 has another one than v1, what its applications have come to know. */
const v2Completions: readonly number[] = (() => {
  const table = [...v1Completions];
  table[WcStatus.LOCAL_OP_ERROR] = Status.INTERNAL_ERROR;
  table[WcStatus.REMOTE_ACCESS_ERROR] = Status.ACCESS_VIOLATION;
  table[WcStatus.REMOTE_OP_ERROR] = Status.DATA_ERROR;
  table[WcStatus.REMOTE_INVALID_REQUEST] = Status.DATA_ERROR;
  table[WcStatus.BAD_RESPONSE] = Status.DATA_ERROR;
  table[WcStatus.RNR_RETRY_ERROR] = Status.IO_TIMEOUT;
  table[WcStatus.TIMEOUT_RETRY_ERROR] = Status.IO_TIMEOUT;
  return table;
})();

/** In which statuses a version of the SPI tells what WinVerbs reports. */
export class Terms {
  constructor(
    readonly statuses: StatusMap,
    readonly completions: readonly number[],
  ) {}

  /** The status of a call or overlapped request; `map` refines it for the call at hand. */
  status(status: number, map?: StatusMap): number {
    return map?.[status] ?? this.statuses[status] ?? status;
  }

  /** The status of a result, for a WV_WC_STATUS. Numbers that WinVerbs does not define are INTERNAL_ERROR. */
  completion(wcStatus: number): number {
    return this.completions[wcStatus] ?? Status.INTERNAL_ERROR;
  }

  /** An error of the layer below. Errors that carry no status (a programming mistake) stay as they are. */
  error(error: StatusError, what: string, map?: StatusMap): NdError;
  error(error: unknown, what: string, map?: StatusMap): unknown;
  error(error: unknown, what: string, map?: StatusMap): unknown {
    if (error instanceof NdError || !(error instanceof StatusError)) return error;
    const status = this.status(error.status, map);
    // A status that changed its name needs its own sentence; the one from below says the details.
    const sentence = status === error.status ? error.message : `${statusText(status)} (${error.message})`;
    return new NdError(status, `${what}: ${sentence}`, { cause: error });
  }

  /** Runs a call of the layer below and reports its failure in these terms. */
  call<T>(what: string, call: () => T, map?: StatusMap): T {
    try {
      return call();
    } catch (error) {
      throw this.error(error, what, map);
    }
  }
}

export const v1Terms = new Terms(v1Statuses, v1Completions);
export const v2Terms = new Terms(v2Statuses, v2Completions);

/** An error for a call that is refused here: the method, the status, and what would be right. */
export function refuse(status: number, what: string, sentence = statusText(status)): NdError {
  return new NdError(status, `${what}: ${sentence}`);
}

export { statusName };
