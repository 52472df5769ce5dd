/**
 * Statuses of the ND SPI: the error class, and the translation of WinVerbs statuses. Both layers share one domain of
 * numbers (NTSTATUS), so only the differences are listed.
 */
import { Status, StatusError, statusName, statusText, WcStatus } from '../winverbs/index.js';

/**
 * The error of a call or overlapped request of the ND SPI that completed with a status other than SUCCESS. `status` is
 * the NDSTATUS value, unsigned.
 */
export class NdError extends StatusError {
  static {
    NdError.prototype.name = 'NdError';
  }
}

/** WinVerbs status → ND status. */
export type StatusMap = Readonly<Record<number, number>>;

/** WinVerbs statuses with another name in ND, in both versions and for all calls. */
const commonStatuses: StatusMap = {
  [Status.UNEXPECTED_IO_ERROR]: Status.INTERNAL_ERROR,
  [Status.CONNECTION_IN_USE]: Status.CONNECTION_ACTIVE,
  [Status.REQUEST_ABORTED]: Status.CONNECTION_ABORTED,
  [Status.BAD_NETWORK_PATH]: Status.BAD_NETWORK_NAME,
  [Status.NO_SUCH_DEVICE]: Status.DEVICE_REMOVED,
  // The device is gone or has failed, so only releasing objects works (ND SPI: adapter removal).
  [Status.FILE_FORCED_CLOSED]: Status.DEVICE_REMOVED,
  [Status.FILE_DELETED]: Status.DEVICE_REMOVED,
  [Status.NOT_FOUND]: Status.INVALID_HANDLE,
  [Status.LOCAL_LENGTH]: Status.DATA_OVERRUN,
  [Status.INVALIDATION_ERROR]: Status.INVALID_DEVICE_REQUEST,
  // HRESULTs of Win32 errors that the Windows WinVerbs library returns.
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

/** For releasing an object: WinVerbs returns ACCESS_DENIED while other objects refer to it. */
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

/** WV_WC_STATUS → v2 result status. Where it differs from that of v1, it is the status that v2 applications expect. */
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

/** The status translations of a version of the SPI. */
export class Terms {
  constructor(
    readonly statuses: StatusMap,
    readonly completions: readonly number[],
  ) {}

  /** Returns the ND status of a call or overlapped request; `map` refines it for this call. */
  status(status: number, map?: StatusMap): number {
    return map?.[status] ?? this.statuses[status] ?? status;
  }

  /** Returns the ND status of a result, for a WV_WC_STATUS. Undefined numbers become INTERNAL_ERROR. */
  completion(wcStatus: number): number {
    return this.completions[wcStatus] ?? Status.INTERNAL_ERROR;
  }

  /**
   * Converts an error of WinVerbs to an ND error. Errors without a status (programming mistakes) are returned
   * unchanged.
   */
  error(error: StatusError, what: string, map?: StatusMap): NdError;
  error(error: unknown, what: string, map?: StatusMap): unknown;
  error(error: unknown, what: string, map?: StatusMap): unknown {
    if (error instanceof NdError || !(error instanceof StatusError)) return error;
    const status = this.status(error.status, map);
    // A translated status needs its own text; the details are in the original message.
    const sentence = status === error.status ? error.message : `${statusText(status)} (${error.message})`;
    return new NdError(status, `${what}: ${sentence}`, { cause: error });
  }

  /** Runs a call of WinVerbs and translates its failure. */
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

/** Creates the error of a refused call from the method, the status, and a sentence with the cure. */
export function refuse(status: number, what: string, sentence = statusText(status)): NdError {
  return new NdError(status, `${what}: ${sentence}`);
}

export { statusName };
