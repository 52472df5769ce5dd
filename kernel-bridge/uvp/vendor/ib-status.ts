/** Converts `ib_api_status_t`, the results of a provider's functions, to statuses. */
import { Status, StatusError, type StatusName } from '../../ioctl/status.js';

/** Names and statuses, in numerical order from 0 (`inc/iba/ib_types.h`). The conversion is that of WinVerbs unless a more exact status exists. */
const table: readonly (readonly [name: string, status: StatusName])[] = [
  ['SUCCESS', 'SUCCESS'],
  ['INSUFFICIENT_RESOURCES', 'INSUFFICIENT_RESOURCES'],
  ['INSUFFICIENT_MEMORY', 'NO_MEMORY'],
  ['INVALID_PARAMETER', 'INVALID_PARAMETER'],
  ['INVALID_SETTING', 'INVALID_PARAMETER'],
  ['NOT_FOUND', 'INVALID_ADDRESS'],
  ['TIMEOUT', 'TIMEOUT'],
  ['CANCELED', 'CANCELED'],
  ['INTERRUPTED', 'CANCELED'],
  ['INVALID_PERMISSION', 'ACCESS_VIOLATION'],
  ['UNSUPPORTED', 'NOT_SUPPORTED'],
  ['OVERFLOW', 'BUFFER_OVERFLOW'],
  ['MAX_MCAST_QPS_REACHED', 'INSUFFICIENT_RESOURCES'],
  ['INVALID_QP_STATE', 'INVALID_DEVICE_STATE'],
  ['INVALID_APM_STATE', 'INVALID_DEVICE_STATE'],
  ['INVALID_PORT_STATE', 'INVALID_DEVICE_STATE'],
  ['INVALID_STATE', 'INVALID_DEVICE_STATE'],
  ['RESOURCE_BUSY', 'DEVICE_BUSY'],
  ['INVALID_PKEY', 'INVALID_HANDLE'],
  ['INVALID_LKEY', 'INVALID_HANDLE'],
  ['INVALID_RKEY', 'INVALID_HANDLE'],
  ['INVALID_MAX_WRS', 'INSUFFICIENT_RESOURCES'],
  ['INVALID_MAX_SGE', 'DATA_OVERRUN'],
  ['INVALID_CQ_SIZE', 'INSUFFICIENT_RESOURCES'],
  ['INVALID_SRQ_SIZE', 'INSUFFICIENT_RESOURCES'],
  ['INVALID_SERVICE_TYPE', 'NOT_SUPPORTED'],
  ['INVALID_GID', 'INVALID_ADDRESS'],
  ['INVALID_LID', 'INVALID_ADDRESS'],
  ['INVALID_GUID', 'INVALID_ADDRESS'],
  ['INVALID_GUID_MASK', 'INVALID_ADDRESS'],
  ['INVALID_CA_HANDLE', 'INVALID_HANDLE'],
  ['INVALID_AV_HANDLE', 'INVALID_HANDLE'],
  ['INVALID_CQ_HANDLE', 'INVALID_HANDLE'],
  ['INVALID_QP_HANDLE', 'INVALID_HANDLE'],
  ['INVALID_SRQ_HANDLE', 'INVALID_HANDLE'],
  ['INVALID_PD_HANDLE', 'INVALID_HANDLE'],
  ['INVALID_MR_HANDLE', 'INVALID_HANDLE'],
  ['INVALID_FMR_HANDLE', 'INVALID_HANDLE'],
  ['INVALID_MW_HANDLE', 'INVALID_HANDLE'],
  ['INVALID_MCAST_HANDLE', 'INVALID_HANDLE'],
  ['INVALID_CALLBACK', 'INVALID_PARAMETER'],
  ['INVALID_AL_HANDLE', 'INVALID_HANDLE'],
  ['INVALID_HANDLE', 'INVALID_HANDLE'],
  ['ERROR', 'UNKNOWN_ERROR'],
  ['REMOTE_ERROR', 'REMOTE_OP_ERROR'],
  ['VERBS_PROCESSING_DONE', 'SUCCESS'],
  ['INVALID_WR_TYPE', 'INVALID_PARAMETER'],
  ['QP_IN_TIMEWAIT', 'INVALID_DEVICE_STATE'],
  ['EE_IN_TIMEWAIT', 'INVALID_DEVICE_STATE'],
  ['INVALID_PORT', 'INVALID_PORT_HANDLE'],
  ['NOT_DONE', 'UNKNOWN_ERROR'],
  ['INVALID_INDEX', 'INVALID_PARAMETER'],
  ['NO_MATCH', 'INVALID_PARAMETER'],
  ['PENDING', 'UNKNOWN_ERROR'],
  ['UNKNOWN_ERROR', 'UNKNOWN_ERROR'],
];

function numberOf(name: string): number {
  return table.findIndex(([one]) => one === name);
}

export const IB_SUCCESS = 0;
/** A pre hook has completed the operation, so that no IOCTL is required. */
export const IB_VERBS_PROCESSING_DONE = numberOf('VERBS_PROCESSING_DONE');
const IB_ERROR = numberOf('ERROR');
const INSUFFICIENT_RESOURCES = numberOf('INSUFFICIENT_RESOURCES');

/** Converts a provider's result. Invalid results become UNKNOWN_ERROR, so that defects of providers are visible. */
export function statusOfIb(result: number): number {
  return Status[table[result]?.[1] ?? 'UNKNOWN_ERROR'];
}

/** Returns the result of an IOCTL for hooks. As in WinVerbs, it only shows whether the IOCTL has succeeded. */
export function resultOf(status: number): number {
  return status === Status.SUCCESS ? IB_SUCCESS : IB_ERROR;
}

function nameOfIb(result: number): string {
  const name = table[result]?.[0];
  return name === undefined ? `${result}, which is not an ib_api_status_t` : `IB_${name}`;
}

/** Creates the error for a function of the table that did not return IB_SUCCESS. */
export function ibFailure(slot: string, result: number, status = statusOfIb(result)): StatusError {
  return new StatusError(
    status,
    `${slot} of the device's provider returned ${nameOfIb(result)}. Compare the request with the limits of the device.`,
  );
}

/** Creates the error for a failed post. INSUFFICIENT_RESOURCES of a provider means that the queue is full. */
export function postFailure(slot: string, result: number): StatusError {
  return ibFailure(
    slot,
    result,
    result === INSUFFICIENT_RESOURCES ? Status.NO_MORE_ENTRIES : statusOfIb(result),
  );
}
