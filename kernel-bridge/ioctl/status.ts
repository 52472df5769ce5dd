/**
 * NTSTATUS values: the one status domain of all layers, from the HCA to the SPI. Values are unsigned
 * 32-bit numbers. Sources: NTSTATUS ([MS-ERREF] §2.3), ND SPI status codes, WinVerbs status codes
 * (facility 0x38).
 */

/** Name → [value, meaning and advice]. Everything else in this file is derived from it. */
const table = {
  SUCCESS: [0x00000000, 'The request succeeded.'],
  ALERTED: [0x00000101, 'The wait ended early because its thread was alerted; issue the request again.'],
  TIMEOUT: [
    0x00000102,
    'The peer did not answer before the retries were spent; check that it runs and is reachable, then try again.',
  ],
  PENDING: [0x00000103, 'The request has not completed yet; await it, or ask for its result with wait.'],
  MORE_ENTRIES: [
    0x00000105,
    'There are more entries than fit the output; ask again with a longer output buffer.',
  ],
  NOTIFY_CLEANUP: [
    0x0000010b,
    'The object was closed while this notification waited; nothing more will come.',
  ],
  BUFFER_OVERFLOW: [
    0x80000005,
    'The data is longer than the buffer or limit it must fit, or a completion queue overran; give more room.',
  ],
  DEVICE_BUSY: [
    0x80000011,
    'The object is still in use, or a request of this kind is pending on it; release its users or wait first.',
  ],
  NO_MORE_ENTRIES: [
    0x8000001a,
    'The queue is full; reap completions before posting more, or make it deeper.',
  ],
  UNSUCCESSFUL: [0xc0000001, 'The operation failed and the provider gave no more specific reason.'],
  NOT_IMPLEMENTED: [0xc0000002, 'This request is defined, but no implementation of it exists.'],
  ACCESS_VIOLATION: [
    0xc0000005,
    'The memory or key does not grant this access; check its bounds, its access flags and its protection domain.',
  ],
  INVALID_HANDLE: [
    0xc0000008,
    'The handle or key names no live object of the right kind; it may be stale or closed.',
  ],
  INVALID_PARAMETER: [0xc000000d, 'A parameter has a value that the request does not take.'],
  NO_SUCH_DEVICE: [0xc000000e, 'No device has this GUID or id; query the device list for those that exist.'],
  INVALID_DEVICE_REQUEST: [
    0xc0000010,
    'This kind of object does not take this request, or the request is malformed.',
  ],
  NO_MEMORY: [0xc0000017, 'There is not enough memory for the request; release something and try again.'],
  ACCESS_DENIED: [
    0xc0000022,
    'The caller lacks the right to do this, or the object is referenced by others.',
  ],
  BUFFER_TOO_SMALL: [
    0xc0000023,
    'A buffer is shorter than the structure it must hold; pass at least its full size.',
  ],
  INVALID_PARAMETER_MIX: [0xc0000030, 'The parameters are valid one by one, but not together.'],
  OBJECT_NAME_INVALID: [0xc0000033, 'The device file name is malformed; use \\\\.\\WinVerbs or \\\\.\\ibat.'],
  OBJECT_NAME_NOT_FOUND: [0xc0000034, 'No device file has this name; use \\\\.\\WinVerbs or \\\\.\\ibat.'],
  OBJECT_NAME_COLLISION: [0xc0000035, 'An object of this name is there already; choose another name.'],
  DATA_OVERRUN: [
    0xc000003c,
    'More data or more scatter/gather entries than allowed: a receive was too short, or the list is too long.',
  ],
  DATA_ERROR: [
    0xc000003e,
    'The peer rejected the data as invalid, for example because its receive was too short.',
  ],
  INVALID_PORT_HANDLE: [0xc0000042, 'The device has no port of this number; ports count from 1.'],
  SHARING_VIOLATION: [0xc0000043, 'The address or port is in use by someone else; choose another or port 0.'],
  FILE_LOCK_CONFLICT: [0xc0000054, 'Another holder has locked the object; wait until it is unlocked.'],
  PROCEDURE_NOT_FOUND: [
    0xc000007a,
    'The driver knows no IOCTL of this code; check the code against the IOCTL table.',
  ],
  INSUFFICIENT_RESOURCES: [
    0xc000009a,
    'The device has no more of this resource, or its limits are lower than what was asked; ask for less.',
  ],
  DEVICE_NOT_READY: [0xc00000a3, 'The provider or device is not initialised; open it first.'],
  IO_TIMEOUT: [
    0xc00000b5,
    'The peer did not answer in time, although retries were made; it may be gone or may not post receives.',
  ],
  FILE_FORCED_CLOSED: [
    0xc00000b6,
    'The device file was closed by the system, with all that it owned; open it again.',
  ],
  NOT_SUPPORTED: [0xc00000bb, 'The device or this implementation does not support the request.'],
  BAD_NETWORK_PATH: [0xc00000be, 'The network path was not found; check the address and the network.'],
  TOO_MANY_COMMANDS: [
    0xc00000c1,
    'Another command is being carried out on this object; wait until it completes.',
  ],
  BAD_NETWORK_NAME: [
    0xc00000cc,
    'The destination address cannot be resolved to a path; give the address of a host.',
  ],
  INTERNAL_ERROR: [
    0xc00000e5,
    'The device or the stack failed internally; destroy the object and make a new one.',
  ],
  UNEXPECTED_IO_ERROR: [0xc00000e9, 'The device reported an error that has no status of its own.'],
  INVALID_PARAMETER_1: [0xc00000ef, 'The first parameter has a value that the request does not take.'],
  INVALID_PARAMETER_2: [0xc00000f0, 'The second parameter has a value that the request does not take.'],
  INVALID_PARAMETER_3: [0xc00000f1, 'The third parameter has a value that the request does not take.'],
  INVALID_PARAMETER_4: [0xc00000f2, 'The fourth parameter has a value that the request does not take.'],
  INVALID_PARAMETER_5: [0xc00000f3, 'The fifth parameter has a value that the request does not take.'],
  INVALID_PARAMETER_6: [0xc00000f4, 'The sixth parameter has a value that the request does not take.'],
  INVALID_PARAMETER_7: [0xc00000f5, 'The seventh parameter has a value that the request does not take.'],
  INVALID_PARAMETER_8: [0xc00000f6, 'The eighth parameter has a value that the request does not take.'],
  INVALID_PARAMETER_9: [0xc00000f7, 'The ninth parameter has a value that the request does not take.'],
  INVALID_PARAMETER_10: [0xc00000f8, 'The tenth parameter has a value that the request does not take.'],
  CONNECTION_IN_USE: [
    0xc0000108,
    'The endpoint already serves another connection or request; use a fresh one.',
  ],
  CANCELED: [0xc0000120, 'The request was cancelled, or flushed because its queue pair stopped working.'],
  FILE_DELETED: [
    0xc0000123,
    'The device behind this file is gone, with its driver; close the file and open the device again.',
  ],
  FILE_CLOSED: [0xc0000128, 'The device file is closed or closing; open it again.'],
  REMOTE_ERROR: [0xc000013d, 'The peer reported an error while it carried out the request.'],
  INVALID_ADDRESS: [
    0xc0000141,
    'The address does not belong to a device of this host or cannot be used here; use one of its addresses.',
  ],
  INVALID_DEVICE_STATE: [0xc0000184, 'The object is not in a state that allows this request.'],
  INVALID_BUFFER_SIZE: [
    0xc0000206,
    'The length is zero or longer than allowed, for example more private data than fits.',
  ],
  TOO_MANY_ADDRESSES: [
    0xc0000209,
    'No free port is left in the ephemeral range (close connections or bind a port); or, when opening, 254 processes of this user have a device open on this host.',
  ],
  ADDRESS_ALREADY_EXISTS: [0xc000020a, 'The address and port are in use; choose another port or port 0.'],
  CONNECTION_DISCONNECTED: [0xc000020c, 'The connection was disconnected; what was queued has been flushed.'],
  NOT_FOUND: [0xc0000225, 'Nothing has this id or value; the object may have been destroyed.'],
  CONNECTION_REFUSED: [
    0xc0000236,
    'The peer refused the connection: nobody listens there, its backlog is full, or its application rejected.',
  ],
  ADDRESS_ALREADY_ASSOCIATED: [0xc0000238, 'The object is bound to an address already; use a fresh one.'],
  ADDRESS_NOT_ASSOCIATED: [0xc0000239, 'The object is not bound to an address yet; bind it first.'],
  CONNECTION_INVALID: [0xc000023a, 'There is no connection, and none is being made.'],
  CONNECTION_ACTIVE: [
    0xc000023b,
    'The connector or queue pair is part of a connection already; use a fresh one.',
  ],
  NETWORK_UNREACHABLE: [
    0xc000023c,
    'No route leads to the destination; check the address and the routing table.',
  ],
  HOST_UNREACHABLE: [
    0xc000023d,
    'The destination cannot be reached from this device; check address and network.',
  ],
  REQUEST_ABORTED: [0xc0000240, 'The request was aborted before it was complete.'],
  CONNECTION_ABORTED: [0xc0000241, 'The connection was lost or given up without an orderly disconnect.'],
  DRIVER_UNABLE_TO_LOAD: [0xc000026c, 'The driver was not loaded; the message has the reason.'],
  DEVICE_REMOVED: [0xc00002b6, 'The device or its driver is gone; close what used it and open it again.'],
  LOCAL_LENGTH: [0xc0380001, 'The message does not fit the local buffers of the request; post larger ones.'],
  INVALIDATION_ERROR: [0xc0380002, 'The memory window could not be invalidated; it is not bound here.'],
  LOCAL_OP_ERROR: [
    0xc0380003,
    'The device could not process the local request; its queue pair is now in error.',
  ],
  LOCAL_PROTECTION_ERROR: [
    0xc0380004,
    'A local buffer is not covered by its key; check offset, length, access and protection domain.',
  ],
  WR_FLUSHED_ERROR: [
    0xc0380005,
    'The request was flushed because its queue pair went to the error state first.',
  ],
  BIND_WINDOW_ERROR: [
    0xc0380006,
    'The memory window could not be bound; check region, range and access flags.',
  ],
  REMOTE_ACCESS_ERROR: [
    0xc0380007,
    'The remote key does not grant this access at this address; check key, bounds and rights at the peer.',
  ],
  REMOTE_OP_ERROR: [0xc0380008, 'The peer could not process the request; its queue pair is now in error.'],
  RNR_RETRY_ERROR: [
    0xc0380009,
    'The peer had no receive posted until the retries were spent; post receives there.',
  ],
  TIMEOUT_RETRY_ERROR: [
    0xc038000a,
    'The peer did not acknowledge until the retries were spent; it may be gone.',
  ],
  REMOTE_INVALID_REQUEST_ERROR: [
    0xc038000b,
    'The peer refused the request as invalid: it does not allow the operation, or its receive was too short.',
  ],
  BAD_RESPONSE_ERROR: [0xc038000c, 'The peer answered with something that does not fit the request.'],
  LOCAL_ACCESS_ERROR: [0xc038000d, 'An incoming request violated the protection of local memory.'],
  UNKNOWN_ERROR: [0xc038000e, 'The device reported an error that this library does not know.'],
} as const;

/** Other names of the same values, as the ND SPI spells them. */
const aliases = {
  /** WinVerbs' name of DEVICE_NOT_READY. */
  NOT_INITIALIZED: table.DEVICE_NOT_READY[0],
} as const;

type StatusTable = typeof table;

/** Status values by name, without the prefixes STATUS_, ND_ and WV_ that other interfaces give them. */
export const Status = {
  ...(Object.fromEntries(Object.entries(table).map(([name, [value]]) => [name, value])) as {
    readonly [K in keyof StatusTable]: StatusTable[K][0];
  }),
  ...aliases,
};

/** The name of a status in {@link Status}. */
export type StatusName = keyof typeof Status;

const byValue = new Map<number, { name: string; text: string }>(
  Object.entries(table).map(([name, [value, text]]) => [value, { name, text }]),
);

/** The value in the usual form: `0xC0000236`. */
export function statusHex(status: number): string {
  return `0x${(status >>> 0).toString(16).toUpperCase().padStart(8, '0')}`;
}

/** The name of a status value, as in {@link Status}; `0x…` for values without one. Accepts signed numbers, too. */
export function statusName(status: number): string {
  return byValue.get(status >>> 0)?.name ?? statusHex(status);
}

/** The meaning of a status, and advice. */
export function statusText(status: number): string {
  return (
    byValue.get(status >>> 0)?.text ??
    `The request ended in status ${statusHex(status)}, which this library does not know; look it up as an NTSTATUS.`
  );
}

/**
 * A request that ended in another status than SUCCESS, whatever the severity bits of the value say. The layers above
 * derive their own error classes from it.
 */
export class StatusError extends Error {
  static {
    StatusError.prototype.name = 'StatusError';
  }

  /** The NTSTATUS value, unsigned. */
  readonly status: number;
  /** The name of the status, as in {@link Status}. */
  readonly code: string;
  /** The output of an IOCTL that failed with partial output (BUFFER_OVERFLOW, MORE_ENTRIES). */
  output: Uint8Array | undefined = undefined;

  /**
   * @param message - what went wrong, with which value, and what would be right; default: {@link statusText}.
   */
  constructor(status: number, message?: string, options?: ErrorOptions) {
    super(message ?? statusText(status), options);
    this.status = status >>> 0;
    this.code = statusName(status);
  }
}
