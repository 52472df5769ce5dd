/**
 * NTSTATUS values: the one status domain of all layers, from the HCA to the SPI. Values are unsigned
 * 32-bit numbers. Sources: NTSTATUS ([MS-ERREF] §2.3), ND SPI status codes, WinVerbs status codes
 * (facility 0x38).
 */

/** Name → [value, meaning and advice]. The rest of this file is derived from it. */
const table = {
  /** STATUS_SUCCESS: returned by all layers. */
  SUCCESS: [0x00000000, 'The request succeeded.'],
  /** STATUS_ALERTED: the notification of a shared receive queue whose limit was reached. */
  ALERTED: [0x00000101, 'The wait ended early because its thread was alerted; issue the request again.'],
  /**
   * STATUS_TIMEOUT, ND_TIMEOUT: returned by Connect and Disconnect when the retries of REQ or DREQ are exhausted. Its
   * severity is that of success.
   */
  TIMEOUT: [
    0x00000102,
    'The peer did not reply before the retries were exhausted; check that it is running and reachable, then try again.',
  ],
  /** STATUS_PENDING, ND_PENDING: returned for overlapped requests. It is not a final status, and its severity is that of success. */
  PENDING: [0x00000103, 'The request has not completed yet; await it, or get its result with wait.'],
  /** STATUS_MORE_ENTRIES: returned by GID and P_Key queries. The entries that fit are in the output. */
  MORE_ENTRIES: [
    0x00000105,
    'There are more entries than fit into the output; repeat the query with a larger output buffer.',
  ],
  /** STATUS_NOTIFY_CLEANUP: the notification of a shared receive queue when a queue pair no longer consumes receives. */
  NOTIFY_CLEANUP: [
    0x0000010b,
    'The object was closed while this notification waited; no further events will follow.',
  ],
  /**
   * STATUS_BUFFER_OVERFLOW, ND_BUFFER_OVERFLOW: returned by queries with truncated output, and by a resize below the
   * number of waiting entries.
   */
  BUFFER_OVERFLOW: [
    0x80000005,
    'The data is longer than its buffer or limit, or a completion queue has overrun; use a larger one.',
  ],
  /** STATUS_DEVICE_BUSY, ND_DEVICE_BUSY: returned when closing an object in use, and for a second request where only one may be pending. */
  DEVICE_BUSY: [
    0x80000011,
    'The object is still in use, or a request of this kind is pending on it; release its users first, or wait.',
  ],
  /** STATUS_NO_MORE_ENTRIES, ND_NO_MORE_ENTRIES: returned by posting to a full queue. */
  NO_MORE_ENTRIES: [
    0x8000001a,
    'The queue is full; poll completions before posting more, or create it with more entries.',
  ],
  /** STATUS_UNSUCCESSFUL, ND_UNSUCCESSFUL: returned by Windows drivers for nearly every verb that fails. */
  UNSUCCESSFUL: [0xc0000001, 'The operation failed, and the provider gave no specific reason.'],
  /** STATUS_NOT_IMPLEMENTED: returned by Windows drivers for the IOCTLs of datagram endpoints. */
  NOT_IMPLEMENTED: [0xc0000002, 'This request is defined but not implemented.'],
  /** STATUS_ACCESS_VIOLATION, ND_ACCESS_VIOLATION: returned by posting requests and by calls that check memory. */
  ACCESS_VIOLATION: [
    0xc0000005,
    'The memory or key does not allow this access; check its bounds, its access flags and its protection domain.',
  ],
  /** STATUS_INVALID_HANDLE, ND_INVALID_HANDLE: returned by verbs with a handle, an rkey or an lkey. */
  INVALID_HANDLE: [
    0xc0000008,
    'The handle or key does not refer to an existing object of the right kind; it may be stale or closed.',
  ],
  /** STATUS_INVALID_PARAMETER, ND_INVALID_PARAMETER: returned by all layers. The message has the parameter and its limits. */
  INVALID_PARAMETER: [0xc000000d, 'A parameter has an invalid value.'],
  /** STATUS_NO_SUCH_DEVICE: returned when opening or querying devices. */
  NO_SUCH_DEVICE: [0xc000000e, 'No device has this GUID or id; query the device list.'],
  /** STATUS_INVALID_DEVICE_REQUEST, ND_INVALID_DEVICE_REQUEST: returned by IOCTLs and queue pairs for requests that they do not support. */
  INVALID_DEVICE_REQUEST: [
    0xc0000010,
    'This kind of object does not support this request, or the request is malformed.',
  ],
  /** STATUS_NO_MEMORY, ND_NO_MEMORY: returned when creating objects or registering memory. */
  NO_MEMORY: [0xc0000017, 'There is not enough memory for the request; release something and try again.'],
  /**
   * STATUS_ACCESS_DENIED: returned for privileged operations, such as setting Q_Keys from 0x80000000 on, and by Windows
   * drivers when closing an object in use.
   */
  ACCESS_DENIED: [0xc0000022, 'The caller is not permitted to do this, or the object is still in use.'],
  /** STATUS_BUFFER_TOO_SMALL, ND_BUFFER_TOO_SMALL: returned by IOCTLs with a short input or output. */
  BUFFER_TOO_SMALL: [0xc0000023, 'A buffer is smaller than its structure; pass at least its full size.'],
  /**
   * STATUS_INVALID_PARAMETER_MIX, ND_INVALID_PARAMETER_MIX: returned for example by Listen on port 0 without an out
   * parameter for the port, in the first version of the SPI.
   */
  INVALID_PARAMETER_MIX: [0xc0000030, 'The parameters are valid separately, but not in combination.'],
  /** STATUS_OBJECT_NAME_INVALID: returned when opening a device file. */
  OBJECT_NAME_INVALID: [0xc0000033, 'The device file name is malformed; use \\\\.\\WinVerbs or \\\\.\\ibat.'],
  /** STATUS_OBJECT_NAME_NOT_FOUND: returned when opening a device file that no driver has created. */
  OBJECT_NAME_NOT_FOUND: [0xc0000034, 'No device file has this name; use \\\\.\\WinVerbs or \\\\.\\ibat.'],
  /** STATUS_OBJECT_NAME_COLLISION: returned when creating a device or loading a driver. */
  OBJECT_NAME_COLLISION: [0xc0000035, 'An object with this name already exists; choose another name.'],
  /** STATUS_DATA_OVERRUN, ND_DATA_OVERRUN: returned when posting too many SGEs. Also the result of a receive that was too short. */
  DATA_OVERRUN: [
    0xc000003c,
    'More data or more scatter/gather entries than allowed: a receive was too short, or the list is too long.',
  ],
  /** STATUS_DATA_ERROR: the result of a Send rejected by the peer, in the second version of the SPI. */
  DATA_ERROR: [
    0xc000003e,
    'The peer rejected the data as invalid, for example because its receive was too short.',
  ],
  /** STATUS_INVALID_PORT_HANDLE: returned by requests with a port number. */
  INVALID_PORT_HANDLE: [0xc0000042, 'The device has no port with this number; ports are numbered from 1.'],
  /** STATUS_SHARING_VIOLATION, ND_SHARING_VIOLATION: returned by other providers when binding an address in use. */
  SHARING_VIOLATION: [0xc0000043, 'The address or port is in use; choose another, or port 0.'],
  /** STATUS_FILE_LOCK_CONFLICT: another instance holds a capability of a port (CA_PORT_MODIFY). */
  FILE_LOCK_CONFLICT: [0xc0000054, 'Another instance holds the object; wait until it is released.'],
  /** STATUS_PROCEDURE_NOT_FOUND: returned by a device file for an unknown IOCTL code. */
  PROCEDURE_NOT_FOUND: [0xc000007a, 'The driver has no IOCTL with this code; check the IOCTL table.'],
  /** STATUS_INSUFFICIENT_RESOURCES, ND_INSUFFICIENT_RESOURCES: returned when creating an object beyond a limit of the device or process. */
  INSUFFICIENT_RESOURCES: [
    0xc000009a,
    'The device has exhausted this resource, or the request exceeds its limits; request less.',
  ],
  /** STATUS_DEVICE_NOT_READY, ND_DEVICE_NOT_READY: returned by calls to a provider that is not initialised or is closed. */
  DEVICE_NOT_READY: [0xc00000a3, 'The provider or device is not initialised; open it first.'],
  /**
   * STATUS_IO_TIMEOUT, ND_IO_TIMEOUT: returned by connecting in the second version of the SPI. Also the result of
   * requests whose retries are exhausted.
   */
  IO_TIMEOUT: [
    0xc00000b5,
    'The peer did not reply in time despite retries; it may be gone, or may have posted no receives.',
  ],
  /** STATUS_FILE_FORCED_CLOSED: the result of pending requests when the device has failed or its file is being closed. */
  FILE_FORCED_CLOSED: [
    0xc00000b6,
    'The kernel has closed the device file and all of its objects; open it again.',
  ],
  /** STATUS_NOT_SUPPORTED, ND_NOT_SUPPORTED: returned for optional features that the device, the driver or the OS lacks. */
  NOT_SUPPORTED: [0xc00000bb, 'The device or this implementation does not support the request.'],
  /** STATUS_BAD_NETWORK_PATH: WinVerbs' status for an address without a path. The SPI returns BAD_NETWORK_NAME or INVALID_ADDRESS for it. */
  BAD_NETWORK_PATH: [0xc00000be, 'The network path was not found; check the address and the network.'],
  /** STATUS_TOO_MANY_COMMANDS: returned by Windows drivers for Connect or Accept while another one is in progress. */
  TOO_MANY_COMMANDS: [0xc00000c1, 'Another command is in progress on this object; wait until it completes.'],
  /** STATUS_BAD_NETWORK_NAME: returned by Connect to an address without a path, such as the wildcard. Connect may be retried. */
  BAD_NETWORK_NAME: [
    0xc00000cc,
    'The destination address cannot be resolved to a path; use the address of a host.',
  ],
  /** STATUS_INTERNAL_ERROR, ND_INTERNAL_ERROR: returned by notifications of a failed queue, and for failures inside the stack. */
  INTERNAL_ERROR: [
    0xc00000e5,
    'The device or the stack failed internally; destroy the object and create a new one.',
  ],
  /** STATUS_UNEXPECTED_IO_ERROR: returned by the notification of a shared receive queue that has failed. */
  UNEXPECTED_IO_ERROR: [0xc00000e9, 'The device reported an error without a status of its own.'],
  /** STATUS_INVALID_PARAMETER_1, ND_INVALID_PARAMETER_1: numbered from the first parameter of the method. */
  INVALID_PARAMETER_1: [0xc00000ef, 'The first parameter has an invalid value.'],
  /** STATUS_INVALID_PARAMETER_2, ND_INVALID_PARAMETER_2: also for an index outside a port's GID or P_Key table. */
  INVALID_PARAMETER_2: [0xc00000f0, 'The second parameter has an invalid value.'],
  /** STATUS_INVALID_PARAMETER_3, ND_INVALID_PARAMETER_3: often the depth of a queue, or undefined flags. */
  INVALID_PARAMETER_3: [0xc00000f1, 'The third parameter has an invalid value.'],
  /** STATUS_INVALID_PARAMETER_4, ND_INVALID_PARAMETER_4: numbered in the same way. */
  INVALID_PARAMETER_4: [0xc00000f2, 'The fourth parameter has an invalid value.'],
  /** STATUS_INVALID_PARAMETER_5, ND_INVALID_PARAMETER_5: numbered in the same way. */
  INVALID_PARAMETER_5: [0xc00000f3, 'The fifth parameter has an invalid value.'],
  /** STATUS_INVALID_PARAMETER_6, ND_INVALID_PARAMETER_6: numbered in the same way. */
  INVALID_PARAMETER_6: [0xc00000f4, 'The sixth parameter has an invalid value.'],
  /** STATUS_INVALID_PARAMETER_7, ND_INVALID_PARAMETER_7: numbered in the same way. */
  INVALID_PARAMETER_7: [0xc00000f5, 'The seventh parameter has an invalid value.'],
  /** STATUS_INVALID_PARAMETER_8, ND_INVALID_PARAMETER_8: numbered in the same way. */
  INVALID_PARAMETER_8: [0xc00000f6, 'The eighth parameter has an invalid value.'],
  /** STATUS_INVALID_PARAMETER_9, ND_INVALID_PARAMETER_9: numbered in the same way. */
  INVALID_PARAMETER_9: [0xc00000f7, 'The ninth parameter has an invalid value.'],
  /** STATUS_INVALID_PARAMETER_10, ND_INVALID_PARAMETER_10: numbered in the same way. */
  INVALID_PARAMETER_10: [0xc00000f8, 'The tenth parameter has an invalid value.'],
  /** STATUS_CONNECTION_IN_USE: returned by GetRequest with an endpoint that is not new. The SPI calls it CONNECTION_ACTIVE. */
  CONNECTION_IN_USE: [0xc0000108, 'The endpoint already has a connection or request; use a new one.'],
  /** STATUS_TOO_MANY_OPENED_FILES: returned when this process or its host has no file descriptor left. */
  TOO_MANY_OPENED_FILES: [
    0xc000011f,
    'No file descriptor is left; close some, or raise the limit of this process (RLIMIT_NOFILE, `ulimit -n`) or of the host (fs.file-max).',
  ],
  /** STATUS_CANCELLED, ND_CANCELED, WV_CANCELLED: the result of cancelled requests, and in the SPI of flushed ones. */
  CANCELED: [0xc0000120, 'The request was cancelled, or flushed because its queue pair stopped working.'],
  /** STATUS_FILE_DELETED: returned when a Windows driver is gone. The SPI calls it DEVICE_REMOVED. */
  FILE_DELETED: [
    0xc0000123,
    'The device of this file and its driver are gone; close the file and open the device again.',
  ],
  /** STATUS_FILE_CLOSED: returned by requests to a file that is closed or being closed. */
  FILE_CLOSED: [0xc0000128, 'The device file is closed or being closed; open it again.'],
  /** STATUS_REMOTE_ERROR, ND_REMOTE_ERROR: the result of requests rejected by the peer, in the first version of the SPI. */
  REMOTE_ERROR: [0xc000013d, 'The peer reported an error while executing the request.'],
  /**
   * STATUS_INVALID_ADDRESS, ND_INVALID_ADDRESS: returned by binding, connecting and resolving, and for GIDs and P_Keys
   * that a port does not have.
   */
  INVALID_ADDRESS: [
    0xc0000141,
    'The address does not belong to a device of this host or cannot be used here; use one of its addresses.',
  ],
  /** STATUS_INVALID_DEVICE_STATE, ND_INVALID_DEVICE_STATE: returned by queue pairs, endpoints and connectors. */
  INVALID_DEVICE_STATE: [0xc0000184, 'The object is not in a state that allows this request.'],
  /** STATUS_INVALID_BUFFER_SIZE, ND_INVALID_BUFFER_SIZE: returned for private data that is too long, and for registering 0 bytes. */
  INVALID_BUFFER_SIZE: [
    0xc0000206,
    'The length is zero or exceeds its limit, for example that of private data.',
  ],
  /**
   * STATUS_TOO_MANY_ADDRESSES, ND_TOO_MANY_ADDRESSES: returned by binding or connecting without a specific port, and
   * when opening a device.
   */
  TOO_MANY_ADDRESSES: [
    0xc0000209,
    'No free port is left in the ephemeral range (close connections or bind a port); or, when opening, 254 processes of this user have a device open on this host.',
  ],
  /** STATUS_ADDRESS_ALREADY_EXISTS, ND_ADDRESS_ALREADY_EXISTS: returned by binding and listening. */
  ADDRESS_ALREADY_EXISTS: [0xc000020a, 'The address and port are in use; choose another port, or port 0.'],
  /** STATUS_CONNECTION_DISCONNECTED: returned by a disconnect notification after a local disconnect. */
  CONNECTION_DISCONNECTED: [0xc000020c, 'The connection was disconnected; queued requests were flushed.'],
  /** STATUS_NOT_FOUND: returned by IOCTLs for an id without an object, and for an address that no device has. */
  NOT_FOUND: [0xc0000225, 'No object has this id or value; it may have been destroyed.'],
  /** STATUS_CONNECTION_REFUSED, ND_CONNECTION_REFUSED: returned by Connect, and by an Accept whose reply the peer rejected. */
  CONNECTION_REFUSED: [
    0xc0000236,
    'The peer refused the connection: no process listens there, its backlog is full, or its application rejected the request.',
  ],
  /** STATUS_ADDRESS_ALREADY_ASSOCIATED: returned by a second bind. */
  ADDRESS_ALREADY_ASSOCIATED: [0xc0000238, 'The object is already bound to an address; use a new one.'],
  /** STATUS_ADDRESS_NOT_ASSOCIATED: returned by connecting in the second version of the SPI, and by querying the address. */
  ADDRESS_NOT_ASSOCIATED: [0xc0000239, 'The object is not bound to an address yet; bind it first.'],
  /** STATUS_CONNECTION_INVALID, ND_CONNECTION_INVALID: returned by calls that need a connection. */
  CONNECTION_INVALID: [0xc000023a, 'There is no connection, and none is being established.'],
  /** STATUS_CONNECTION_ACTIVE, ND_CONNECTION_ACTIVE: returned by connecting and accepting. */
  CONNECTION_ACTIVE: [
    0xc000023b,
    'The connector or queue pair is already in use by a connection; use a new one.',
  ],
  /** STATUS_NETWORK_UNREACHABLE, ND_NETWORK_UNREACHABLE: returned by Connect, which may be retried. */
  NETWORK_UNREACHABLE: [
    0xc000023c,
    'There is no route to the destination; check the address and the routing table.',
  ],
  /** STATUS_HOST_UNREACHABLE, ND_HOST_UNREACHABLE: returned by Connect, which may be retried. */
  HOST_UNREACHABLE: [
    0xc000023d,
    'The destination cannot be reached from this device; check the address and the network.',
  ],
  /** STATUS_REQUEST_ABORTED: returned by Windows drivers. The SPI calls it CONNECTION_ABORTED. */
  REQUEST_ABORTED: [0xc0000240, 'The request was aborted before it completed.'],
  /**
   * STATUS_CONNECTION_ABORTED, ND_CONNECTION_ABORTED: returned by connecting when the peer gives up, and by
   * notifications of a lost connection.
   */
  CONNECTION_ABORTED: [0xc0000241, 'The connection was lost, or aborted without a disconnect.'],
  /** STATUS_DRIVER_UNABLE_TO_LOAD: returned by loading a driver into the soft kernel. */
  DRIVER_UNABLE_TO_LOAD: [0xc000026c, 'The driver was not loaded; the message contains the reason.'],
  /** STATUS_DEVICE_REMOVED, ND_DEVICE_REMOVED: the result of all pending and later requests to a removed device. */
  DEVICE_REMOVED: [0xc00002b6, 'The device or its driver is gone; close its objects and open it again.'],
  /** WV_LOCAL_LENGTH (facility 0x38): the WcStatus LOCAL_LENGTH_ERROR. In the SPI it is ND_DATA_OVERRUN. */
  LOCAL_LENGTH: [
    0xc0380001,
    'The message does not fit into the local buffers of the request; post larger ones.',
  ],
  /** WV_INVALIDATION_ERROR (facility 0x38): WinVerbs only. In the SPI it is ND_INVALID_DEVICE_REQUEST. */
  INVALIDATION_ERROR: [0xc0380002, 'The memory window could not be invalidated; it is not bound.'],
  /** WV_LOCAL_OP_ERROR (facility 0x38): the WcStatus LOCAL_OP_ERROR. */
  LOCAL_OP_ERROR: [
    0xc0380003,
    'The device could not process the local request; its queue pair is now in error.',
  ],
  /** WV_LOCAL_PROTECTION_ERROR (facility 0x38): the WcStatus LOCAL_PROTECTION_ERROR. */
  LOCAL_PROTECTION_ERROR: [
    0xc0380004,
    'A local buffer is not covered by its key; check its offset, length, access flags and protection domain.',
  ],
  /** WV_WR_FLUSHED_ERROR (facility 0x38): the WcStatus FLUSHED. */
  WR_FLUSHED_ERROR: [0xc0380005, 'The request was flushed because its queue pair entered the error state.'],
  /** WV_BIND_WINDOW_ERROR (facility 0x38): the WcStatus MW_BIND_ERROR. */
  BIND_WINDOW_ERROR: [
    0xc0380006,
    'The memory window could not be bound; check its region, range and access flags.',
  ],
  /** WV_REMOTE_ACCESS_ERROR (facility 0x38): the WcStatus REMOTE_ACCESS_ERROR. */
  REMOTE_ACCESS_ERROR: [
    0xc0380007,
    'The remote key does not allow this access at this address; check the key, bounds and access rights at the peer.',
  ],
  /** WV_REMOTE_OP_ERROR (facility 0x38): the WcStatus REMOTE_OP_ERROR. */
  REMOTE_OP_ERROR: [0xc0380008, 'The peer could not process the request; its queue pair is now in error.'],
  /** WV_RNR_RETRY_ERROR (facility 0x38): the WcStatus RNR_RETRY_ERROR. */
  RNR_RETRY_ERROR: [
    0xc0380009,
    'The peer posted no receive before the retries were exhausted; post receives there.',
  ],
  /** WV_TIMEOUT_RETRY_ERROR (facility 0x38): the WcStatus TIMEOUT_RETRY_ERROR. */
  TIMEOUT_RETRY_ERROR: [
    0xc038000a,
    'The peer did not acknowledge before the retries were exhausted; it may be gone.',
  ],
  /** WV_REMOTE_INVALID_REQUEST_ERROR (facility 0x38): the WcStatus REMOTE_INVALID_REQUEST. */
  REMOTE_INVALID_REQUEST_ERROR: [
    0xc038000b,
    'The peer rejected the request as invalid: it does not allow the operation, or its receive was too short.',
  ],
  /** WV_BAD_RESPONSE_ERROR (facility 0x38): the WcStatus BAD_RESPONSE. */
  BAD_RESPONSE_ERROR: [0xc038000c, 'The peer sent a response that does not match the request.'],
  /** WV_LOCAL_ACCESS_ERROR (facility 0x38): the WcStatus LOCAL_ACCESS_ERROR. */
  LOCAL_ACCESS_ERROR: [0xc038000d, 'An incoming request violated the protection of local memory.'],
  /** WV_UNKNOWN_ERROR (facility 0x38): the WcStatus ERROR, and all undefined values. */
  UNKNOWN_ERROR: [0xc038000e, 'The device reported an unknown error.'],
} as const;

/** Alternative names of the same values, as in the ND SPI. */
const aliases = {
  /** WinVerbs' name for DEVICE_NOT_READY. */
  NOT_INITIALIZED: table.DEVICE_NOT_READY[0],
} as const;

type StatusTable = typeof table;

/** Status values by name, without the prefixes STATUS_, ND_ and WV_ of other interfaces. */
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

/** The value in its usual form: `0xC0000236`. */
export function statusHex(status: number): string {
  return `0x${(status >>> 0).toString(16).toUpperCase().padStart(8, '0')}`;
}

/** The name of a status value, as in {@link Status}; `0x…` for values without one. Signed numbers are accepted. */
export function statusName(status: number): string {
  return byValue.get(status >>> 0)?.name ?? statusHex(status);
}

/** The meaning of a status, with advice. */
export function statusText(status: number): string {
  return (
    byValue.get(status >>> 0)?.text ??
    `The request ended in status ${statusHex(status)}, which is not known to this package; look it up as an NTSTATUS.`
  );
}

/**
 * A request that completed with a status other than SUCCESS, whatever its severity bits are. The layers above derive their own error
 * classes from it.
 */
export class StatusError extends Error {
  static {
    StatusError.prototype.name = 'StatusError';
  }

  /** The NTSTATUS value, unsigned. */
  readonly status: number;
  /** The name of the status, as in {@link Status}. */
  readonly code: string;
  /** Output of an IOCTL that failed with partial output (BUFFER_OVERFLOW, MORE_ENTRIES). */
  output: Uint8Array | undefined = undefined;

  /** @param message - the problem, the value, and the cure. Default: {@link statusText}. */
  constructor(status: number, message?: string, options?: ErrorOptions) {
    super(message ?? statusText(status), options);
    this.status = status >>> 0;
    this.code = statusName(status);
  }
}
