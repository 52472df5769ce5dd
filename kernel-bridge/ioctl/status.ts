/**
 * NTSTATUS values: the one status domain of all layers, from the HCA to the SPI. Values are unsigned
 * 32-bit numbers. Sources: NTSTATUS ([MS-ERREF] §2.3), ND SPI status codes, WinVerbs status codes
 * (facility 0x38).
 */

/** Name → [value, meaning and advice]. Everything else in this file is derived from it. */
const table = {
  /** STATUS_SUCCESS: all layers answer it. */
  SUCCESS: [0x00000000, 'The request succeeded.'],
  /** STATUS_ALERTED: the notification of a shared receive queue whose limit is reached ends in it. */
  ALERTED: [0x00000101, 'The wait ended early because its thread was alerted; issue the request again.'],
  /**
   * STATUS_TIMEOUT, ND_TIMEOUT: answered by connecting and disconnecting, when the retries of REQ or DREQ are spent.
   * The severity is that of success.
   */
  TIMEOUT: [
    0x00000102,
    'The peer did not answer before the retries were spent; check that it runs and is reachable, then try again.',
  ],
  /** STATUS_PENDING, ND_PENDING: answered by requests that are overlapped; not an end. The severity is that of success. */
  PENDING: [0x00000103, 'The request has not completed yet; await it, or ask for its result with wait.'],
  /** STATUS_MORE_ENTRIES: answered by GID and P_Key queries; the entries that fit are in the output. */
  MORE_ENTRIES: [
    0x00000105,
    'There are more entries than fit the output; ask again with a longer output buffer.',
  ],
  /** STATUS_NOTIFY_CLEANUP: the notification of a shared receive queue ends in it when a queue pair takes no more from the queue. */
  NOTIFY_CLEANUP: [
    0x0000010b,
    'The object was closed while this notification waited; nothing more will come.',
  ],
  /** STATUS_BUFFER_OVERFLOW, ND_BUFFER_OVERFLOW: answered by queries whose output is cut off, and by resizing below what waits. */
  BUFFER_OVERFLOW: [
    0x80000005,
    'The data is longer than the buffer or limit it must fit, or a completion queue overran; give more room.',
  ],
  /** STATUS_DEVICE_BUSY, ND_DEVICE_BUSY: answered by closing what others use, and by a second request where one may wait. */
  DEVICE_BUSY: [
    0x80000011,
    'The object is still in use, or a request of this kind is pending on it; release its users or wait first.',
  ],
  /** STATUS_NO_MORE_ENTRIES, ND_NO_MORE_ENTRIES: answered by posting to a full queue. */
  NO_MORE_ENTRIES: [
    0x8000001a,
    'The queue is full; reap completions before posting more, or make it deeper.',
  ],
  /** STATUS_UNSUCCESSFUL, ND_UNSUCCESSFUL: drivers of Windows answer it for nearly every verb that fails. */
  UNSUCCESSFUL: [0xc0000001, 'The operation failed and the provider gave no more specific reason.'],
  /** STATUS_NOT_IMPLEMENTED: drivers of Windows answer it to the IOCTLs of datagram endpoints. */
  NOT_IMPLEMENTED: [0xc0000002, 'This request is defined, but no implementation of it exists.'],
  /** STATUS_ACCESS_VIOLATION, ND_ACCESS_VIOLATION: answered by posting requests, and by the calls that check memory. */
  ACCESS_VIOLATION: [
    0xc0000005,
    'The memory or key does not grant this access; check its bounds, its access flags and its protection domain.',
  ],
  /** STATUS_INVALID_HANDLE, ND_INVALID_HANDLE: answered by verbs that are given a handle, an rkey or an lkey. */
  INVALID_HANDLE: [
    0xc0000008,
    'The handle or key names no live object of the right kind; it may be stale or closed.',
  ],
  /** STATUS_INVALID_PARAMETER, ND_INVALID_PARAMETER: answered by all layers; the message names the parameter and its limits. */
  INVALID_PARAMETER: [0xc000000d, 'A parameter has a value that the request does not take.'],
  /** STATUS_NO_SUCH_DEVICE: answered by opening and querying devices. */
  NO_SUCH_DEVICE: [0xc000000e, 'No device has this GUID or id; query the device list for those that exist.'],
  /** STATUS_INVALID_DEVICE_REQUEST, ND_INVALID_DEVICE_REQUEST: answered by IOCTLs and by queue pairs, for what they do not take. */
  INVALID_DEVICE_REQUEST: [
    0xc0000010,
    'This kind of object does not take this request, or the request is malformed.',
  ],
  /** STATUS_NO_MEMORY, ND_NO_MEMORY: answered by all that makes objects or registers memory. */
  NO_MEMORY: [0xc0000017, 'There is not enough memory for the request; release something and try again.'],
  /**
   * STATUS_ACCESS_DENIED: for rights that the system keeps, such as Q_Keys from 0x80000000 on; drivers of Windows
   * refuse by it to close what others use.
   */
  ACCESS_DENIED: [
    0xc0000022,
    'The caller lacks the right to do this, or the object is referenced by others.',
  ],
  /** STATUS_BUFFER_TOO_SMALL, ND_BUFFER_TOO_SMALL: answered by IOCTLs with a short input or output. */
  BUFFER_TOO_SMALL: [
    0xc0000023,
    'A buffer is shorter than the structure it must hold; pass at least its full size.',
  ],
  /**
   * STATUS_INVALID_PARAMETER_MIX, ND_INVALID_PARAMETER_MIX: such as a Listen on port 0 whose port nobody asks for, in
   * the first version of the SPI.
   */
  INVALID_PARAMETER_MIX: [0xc0000030, 'The parameters are valid one by one, but not together.'],
  /** STATUS_OBJECT_NAME_INVALID: answered by opening a device file. */
  OBJECT_NAME_INVALID: [0xc0000033, 'The device file name is malformed; use \\\\.\\WinVerbs or \\\\.\\ibat.'],
  /** STATUS_OBJECT_NAME_NOT_FOUND: answered by opening a device file that no driver has made. */
  OBJECT_NAME_NOT_FOUND: [0xc0000034, 'No device file has this name; use \\\\.\\WinVerbs or \\\\.\\ibat.'],
  /** STATUS_OBJECT_NAME_COLLISION: answered by making a device or loading a driver. */
  OBJECT_NAME_COLLISION: [0xc0000035, 'An object of this name is there already; choose another name.'],
  /** STATUS_DATA_OVERRUN, ND_DATA_OVERRUN: of posting too many SGEs, and the result of a receive that was too short. */
  DATA_OVERRUN: [
    0xc000003c,
    'More data or more scatter/gather entries than allowed: a receive was too short, or the list is too long.',
  ],
  /** STATUS_DATA_ERROR: the result of a Send that the peer has refused, in the second version of the SPI. */
  DATA_ERROR: [
    0xc000003e,
    'The peer rejected the data as invalid, for example because its receive was too short.',
  ],
  /** STATUS_INVALID_PORT_HANDLE: answered by what is given a port number. */
  INVALID_PORT_HANDLE: [0xc0000042, 'The device has no port of this number; ports count from 1.'],
  /** STATUS_SHARING_VIOLATION, ND_SHARING_VIOLATION: other providers refuse by it to bind an address that is taken. */
  SHARING_VIOLATION: [0xc0000043, 'The address or port is in use by someone else; choose another or port 0.'],
  /** STATUS_FILE_LOCK_CONFLICT: a capability of a port is held by another instance (CA_PORT_MODIFY). */
  FILE_LOCK_CONFLICT: [0xc0000054, 'Another holder has locked the object; wait until it is unlocked.'],
  /** STATUS_PROCEDURE_NOT_FOUND: of a device file that is given an IOCTL code it does not have. */
  PROCEDURE_NOT_FOUND: [
    0xc000007a,
    'The driver knows no IOCTL of this code; check the code against the IOCTL table.',
  ],
  /** STATUS_INSUFFICIENT_RESOURCES, ND_INSUFFICIENT_RESOURCES: of making an object, when a limit of device or process is reached. */
  INSUFFICIENT_RESOURCES: [
    0xc000009a,
    'The device has no more of this resource, or its limits are lower than what was asked; ask for less.',
  ],
  /** STATUS_DEVICE_NOT_READY, ND_DEVICE_NOT_READY: of calls to a provider that is not initialised or is closed. */
  DEVICE_NOT_READY: [0xc00000a3, 'The provider or device is not initialised; open it first.'],
  /**
   * STATUS_IO_TIMEOUT, ND_IO_TIMEOUT: of connecting in the second version of the SPI, and the result of requests whose
   * retries are spent.
   */
  IO_TIMEOUT: [
    0xc00000b5,
    'The peer did not answer in time, although retries were made; it may be gone or may not post receives.',
  ],
  /** STATUS_FILE_FORCED_CLOSED: of all that is waiting when the device has failed or its file is being closed. */
  FILE_FORCED_CLOSED: [
    0xc00000b6,
    'The device file was closed by the system, with all that it owned; open it again.',
  ],
  /** STATUS_NOT_SUPPORTED, ND_NOT_SUPPORTED: of optional features that device, driver or system lacks. */
  NOT_SUPPORTED: [0xc00000bb, 'The device or this implementation does not support the request.'],
  /**
   * STATUS_BAD_NETWORK_PATH: WinVerbs' status for an address without a path; the SPI answers BAD_NETWORK_NAME or
   * INVALID_ADDRESS for it.
   */
  BAD_NETWORK_PATH: [0xc00000be, 'The network path was not found; check the address and the network.'],
  /** STATUS_TOO_MANY_COMMANDS: drivers of Windows answer it to a Connect or Accept while another is being carried out. */
  TOO_MANY_COMMANDS: [
    0xc00000c1,
    'Another command is being carried out on this object; wait until it completes.',
  ],
  /** STATUS_BAD_NETWORK_NAME: of a Connect to an address without a path, such as the wildcard; it may be tried again. */
  BAD_NETWORK_NAME: [
    0xc00000cc,
    'The destination address cannot be resolved to a path; give the address of a host.',
  ],
  /** STATUS_INTERNAL_ERROR, ND_INTERNAL_ERROR: of the notifications of a broken queue, and of what fails inside the stack. */
  INTERNAL_ERROR: [
    0xc00000e5,
    'The device or the stack failed internally; destroy the object and make a new one.',
  ],
  /** STATUS_UNEXPECTED_IO_ERROR: of the notification of a shared receive queue that is broken. */
  UNEXPECTED_IO_ERROR: [0xc00000e9, 'The device reported an error that has no status of its own.'],
  /** STATUS_INVALID_PARAMETER_1, ND_INVALID_PARAMETER_1: parameters count from the first of the method. */
  INVALID_PARAMETER_1: [0xc00000ef, 'The first parameter has a value that the request does not take.'],
  /** STATUS_INVALID_PARAMETER_2, ND_INVALID_PARAMETER_2: also for an index outside a port's GID or P_Key table. */
  INVALID_PARAMETER_2: [0xc00000f0, 'The second parameter has a value that the request does not take.'],
  /** STATUS_INVALID_PARAMETER_3, ND_INVALID_PARAMETER_3: often the depth of a queue, or flags that do not exist. */
  INVALID_PARAMETER_3: [0xc00000f1, 'The third parameter has a value that the request does not take.'],
  /** STATUS_INVALID_PARAMETER_4, ND_INVALID_PARAMETER_4: as the first. */
  INVALID_PARAMETER_4: [0xc00000f2, 'The fourth parameter has a value that the request does not take.'],
  /** STATUS_INVALID_PARAMETER_5, ND_INVALID_PARAMETER_5: as the first. */
  INVALID_PARAMETER_5: [0xc00000f3, 'The fifth parameter has a value that the request does not take.'],
  /** STATUS_INVALID_PARAMETER_6, ND_INVALID_PARAMETER_6: as the first. */
  INVALID_PARAMETER_6: [0xc00000f4, 'The sixth parameter has a value that the request does not take.'],
  /** STATUS_INVALID_PARAMETER_7, ND_INVALID_PARAMETER_7: as the first. */
  INVALID_PARAMETER_7: [0xc00000f5, 'The seventh parameter has a value that the request does not take.'],
  /** STATUS_INVALID_PARAMETER_8, ND_INVALID_PARAMETER_8: as the first. */
  INVALID_PARAMETER_8: [0xc00000f6, 'The eighth parameter has a value that the request does not take.'],
  /** STATUS_INVALID_PARAMETER_9, ND_INVALID_PARAMETER_9: as the first. */
  INVALID_PARAMETER_9: [0xc00000f7, 'The ninth parameter has a value that the request does not take.'],
  /** STATUS_INVALID_PARAMETER_10, ND_INVALID_PARAMETER_10: as the first. */
  INVALID_PARAMETER_10: [0xc00000f8, 'The tenth parameter has a value that the request does not take.'],
  /** STATUS_CONNECTION_IN_USE: of GetRequest with an endpoint that is not fresh; the SPI calls it CONNECTION_ACTIVE. */
  CONNECTION_IN_USE: [
    0xc0000108,
    'The endpoint already serves another connection or request; use a fresh one.',
  ],
  /** STATUS_TOO_MANY_OPENED_FILES: of what takes a file descriptor, when this process or its host has none left. */
  TOO_MANY_OPENED_FILES: [
    0xc000011f,
    'No file descriptor is left; close some, or raise the limit of this process (RLIMIT_NOFILE, `ulimit -n`) or of the host (fs.file-max).',
  ],
  /** STATUS_CANCELLED, ND_CANCELED, WV_CANCELLED: of cancelled requests, and the SPI's result of flushed ones. */
  CANCELED: [0xc0000120, 'The request was cancelled, or flushed because its queue pair stopped working.'],
  /** STATUS_FILE_DELETED: of a Windows driver that is gone; the SPI calls it DEVICE_REMOVED. */
  FILE_DELETED: [
    0xc0000123,
    'The device behind this file is gone, with its driver; close the file and open the device again.',
  ],
  /** STATUS_FILE_CLOSED: of requests to a file that is closed or being closed. */
  FILE_CLOSED: [0xc0000128, 'The device file is closed or closing; open it again.'],
  /** STATUS_REMOTE_ERROR, ND_REMOTE_ERROR: the result of requests that the peer has refused, in the first version of the SPI. */
  REMOTE_ERROR: [0xc000013d, 'The peer reported an error while it carried out the request.'],
  /**
   * STATUS_INVALID_ADDRESS, ND_INVALID_ADDRESS: of binding, connecting and resolving, and for GIDs and P_Keys that a
   * port does not have.
   */
  INVALID_ADDRESS: [
    0xc0000141,
    'The address does not belong to a device of this host or cannot be used here; use one of its addresses.',
  ],
  /** STATUS_INVALID_DEVICE_STATE, ND_INVALID_DEVICE_STATE: of queue pairs, endpoints and connectors. */
  INVALID_DEVICE_STATE: [0xc0000184, 'The object is not in a state that allows this request.'],
  /** STATUS_INVALID_BUFFER_SIZE, ND_INVALID_BUFFER_SIZE: of private data that is too long, and of registering no bytes. */
  INVALID_BUFFER_SIZE: [
    0xc0000206,
    'The length is zero or longer than allowed, for example more private data than fits.',
  ],
  /** STATUS_TOO_MANY_ADDRESSES, ND_TOO_MANY_ADDRESSES: of binding or connecting without a port of its own, and of opening. */
  TOO_MANY_ADDRESSES: [
    0xc0000209,
    'No free port is left in the ephemeral range (close connections or bind a port); or, when opening, 254 processes of this user have a device open on this host.',
  ],
  /** STATUS_ADDRESS_ALREADY_EXISTS, ND_ADDRESS_ALREADY_EXISTS: of binding and listening. */
  ADDRESS_ALREADY_EXISTS: [0xc000020a, 'The address and port are in use; choose another port or port 0.'],
  /** STATUS_CONNECTION_DISCONNECTED: of a notification of disconnection after this side has disconnected. */
  CONNECTION_DISCONNECTED: [0xc000020c, 'The connection was disconnected; what was queued has been flushed.'],
  /** STATUS_NOT_FOUND: of IOCTLs with an id of no live object, and for an address that no device has. */
  NOT_FOUND: [0xc0000225, 'Nothing has this id or value; the object may have been destroyed.'],
  /** STATUS_CONNECTION_REFUSED, ND_CONNECTION_REFUSED: of Connect, and of an Accept whose peer rejected the reply. */
  CONNECTION_REFUSED: [
    0xc0000236,
    'The peer refused the connection: nobody listens there, its backlog is full, or its application rejected.',
  ],
  /** STATUS_ADDRESS_ALREADY_ASSOCIATED: of binding for the second time. */
  ADDRESS_ALREADY_ASSOCIATED: [0xc0000238, 'The object is bound to an address already; use a fresh one.'],
  /** STATUS_ADDRESS_NOT_ASSOCIATED: of connecting in the second version of the SPI, and of asking for an address. */
  ADDRESS_NOT_ASSOCIATED: [0xc0000239, 'The object is not bound to an address yet; bind it first.'],
  /** STATUS_CONNECTION_INVALID, ND_CONNECTION_INVALID: of calls that need a connection. */
  CONNECTION_INVALID: [0xc000023a, 'There is no connection, and none is being made.'],
  /** STATUS_CONNECTION_ACTIVE, ND_CONNECTION_ACTIVE: of connecting and accepting. */
  CONNECTION_ACTIVE: [
    0xc000023b,
    'The connector or queue pair is part of a connection already; use a fresh one.',
  ],
  /** STATUS_NETWORK_UNREACHABLE, ND_NETWORK_UNREACHABLE: of Connect, which may be tried again. */
  NETWORK_UNREACHABLE: [
    0xc000023c,
    'No route leads to the destination; check the address and the routing table.',
  ],
  /** STATUS_HOST_UNREACHABLE, ND_HOST_UNREACHABLE: of Connect, which may be tried again. */
  HOST_UNREACHABLE: [
    0xc000023d,
    'The destination cannot be reached from this device; check address and network.',
  ],
  /** STATUS_REQUEST_ABORTED: of Windows drivers; the SPI calls it CONNECTION_ABORTED. */
  REQUEST_ABORTED: [0xc0000240, 'The request was aborted before it was complete.'],
  /**
   * STATUS_CONNECTION_ABORTED, ND_CONNECTION_ABORTED: of connecting whose peer gives up, and of notifications of a
   * connection that is lost.
   */
  CONNECTION_ABORTED: [0xc0000241, 'The connection was lost or given up without an orderly disconnect.'],
  /** STATUS_DRIVER_UNABLE_TO_LOAD: of loading a driver into the soft kernel. */
  DRIVER_UNABLE_TO_LOAD: [0xc000026c, 'The driver was not loaded; the message has the reason.'],
  /** STATUS_DEVICE_REMOVED, ND_DEVICE_REMOVED: of all waiting and later requests to a device that is gone. */
  DEVICE_REMOVED: [0xc00002b6, 'The device or its driver is gone; close what used it and open it again.'],
  /** WV_LOCAL_LENGTH (facility 0x38): the WcStatus LOCAL_LENGTH_ERROR; ND_DATA_OVERRUN in the SPI. */
  LOCAL_LENGTH: [0xc0380001, 'The message does not fit the local buffers of the request; post larger ones.'],
  /** WV_INVALIDATION_ERROR (facility 0x38): of WinVerbs only; ND_INVALID_DEVICE_REQUEST in the SPI. */
  INVALIDATION_ERROR: [0xc0380002, 'The memory window could not be invalidated; it is not bound here.'],
  /** WV_LOCAL_OP_ERROR (facility 0x38): the WcStatus LOCAL_OP_ERROR. */
  LOCAL_OP_ERROR: [
    0xc0380003,
    'The device could not process the local request; its queue pair is now in error.',
  ],
  /** WV_LOCAL_PROTECTION_ERROR (facility 0x38): the WcStatus LOCAL_PROTECTION_ERROR. */
  LOCAL_PROTECTION_ERROR: [
    0xc0380004,
    'A local buffer is not covered by its key; check offset, length, access and protection domain.',
  ],
  /** WV_WR_FLUSHED_ERROR (facility 0x38): the WcStatus FLUSHED. */
  WR_FLUSHED_ERROR: [
    0xc0380005,
    'The request was flushed because its queue pair went to the error state first.',
  ],
  /** WV_BIND_WINDOW_ERROR (facility 0x38): the WcStatus MW_BIND_ERROR. */
  BIND_WINDOW_ERROR: [
    0xc0380006,
    'The memory window could not be bound; check region, range and access flags.',
  ],
  /** WV_REMOTE_ACCESS_ERROR (facility 0x38): the WcStatus REMOTE_ACCESS_ERROR. */
  REMOTE_ACCESS_ERROR: [
    0xc0380007,
    'The remote key does not grant this access at this address; check key, bounds and rights at the peer.',
  ],
  /** WV_REMOTE_OP_ERROR (facility 0x38): the WcStatus REMOTE_OP_ERROR. */
  REMOTE_OP_ERROR: [0xc0380008, 'The peer could not process the request; its queue pair is now in error.'],
  /** WV_RNR_RETRY_ERROR (facility 0x38): the WcStatus RNR_RETRY_ERROR. */
  RNR_RETRY_ERROR: [
    0xc0380009,
    'The peer had no receive posted until the retries were spent; post receives there.',
  ],
  /** WV_TIMEOUT_RETRY_ERROR (facility 0x38): the WcStatus TIMEOUT_RETRY_ERROR. */
  TIMEOUT_RETRY_ERROR: [
    0xc038000a,
    'The peer did not acknowledge until the retries were spent; it may be gone.',
  ],
  /** WV_REMOTE_INVALID_REQUEST_ERROR (facility 0x38): the WcStatus REMOTE_INVALID_REQUEST. */
  REMOTE_INVALID_REQUEST_ERROR: [
    0xc038000b,
    'The peer refused the request as invalid: it does not allow the operation, or its receive was too short.',
  ],
  /** WV_BAD_RESPONSE_ERROR (facility 0x38): the WcStatus BAD_RESPONSE. */
  BAD_RESPONSE_ERROR: [0xc038000c, 'The peer answered with something that does not fit the request.'],
  /** WV_LOCAL_ACCESS_ERROR (facility 0x38): the WcStatus LOCAL_ACCESS_ERROR. */
  LOCAL_ACCESS_ERROR: [0xc038000d, 'An incoming request violated the protection of local memory.'],
  /** WV_UNKNOWN_ERROR (facility 0x38): the WcStatus ERROR, and every value that is not defined. */
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
