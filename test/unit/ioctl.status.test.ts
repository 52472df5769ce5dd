import { inspect } from 'node:util';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { Status, StatusError, statusHex, statusName, statusText } from '../../kernel-bridge/ioctl/index.js';

/** NTSTATUS values, written independently of the library's table. */
const expected: Record<string, number> = {
  SUCCESS: 0x00000000,
  ALERTED: 0x00000101,
  TIMEOUT: 0x00000102,
  PENDING: 0x00000103,
  MORE_ENTRIES: 0x00000105,
  NOTIFY_CLEANUP: 0x0000010b,
  BUFFER_OVERFLOW: 0x80000005,
  DEVICE_BUSY: 0x80000011,
  NO_MORE_ENTRIES: 0x8000001a,
  UNSUCCESSFUL: 0xc0000001,
  NOT_IMPLEMENTED: 0xc0000002,
  ACCESS_VIOLATION: 0xc0000005,
  INVALID_HANDLE: 0xc0000008,
  INVALID_PARAMETER: 0xc000000d,
  NO_SUCH_DEVICE: 0xc000000e,
  INVALID_DEVICE_REQUEST: 0xc0000010,
  NO_MEMORY: 0xc0000017,
  ACCESS_DENIED: 0xc0000022,
  BUFFER_TOO_SMALL: 0xc0000023,
  INVALID_PARAMETER_MIX: 0xc0000030,
  OBJECT_NAME_INVALID: 0xc0000033,
  OBJECT_NAME_NOT_FOUND: 0xc0000034,
  OBJECT_NAME_COLLISION: 0xc0000035,
  DATA_OVERRUN: 0xc000003c,
  DATA_ERROR: 0xc000003e,
  INVALID_PORT_HANDLE: 0xc0000042,
  SHARING_VIOLATION: 0xc0000043,
  FILE_LOCK_CONFLICT: 0xc0000054,
  PROCEDURE_NOT_FOUND: 0xc000007a,
  INSUFFICIENT_RESOURCES: 0xc000009a,
  DEVICE_NOT_READY: 0xc00000a3,
  NOT_INITIALIZED: 0xc00000a3,
  IO_TIMEOUT: 0xc00000b5,
  FILE_FORCED_CLOSED: 0xc00000b6,
  NOT_SUPPORTED: 0xc00000bb,
  BAD_NETWORK_PATH: 0xc00000be,
  TOO_MANY_COMMANDS: 0xc00000c1,
  BAD_NETWORK_NAME: 0xc00000cc,
  INTERNAL_ERROR: 0xc00000e5,
  UNEXPECTED_IO_ERROR: 0xc00000e9,
  INVALID_PARAMETER_1: 0xc00000ef,
  INVALID_PARAMETER_2: 0xc00000f0,
  INVALID_PARAMETER_3: 0xc00000f1,
  INVALID_PARAMETER_4: 0xc00000f2,
  INVALID_PARAMETER_5: 0xc00000f3,
  INVALID_PARAMETER_6: 0xc00000f4,
  INVALID_PARAMETER_7: 0xc00000f5,
  INVALID_PARAMETER_8: 0xc00000f6,
  INVALID_PARAMETER_9: 0xc00000f7,
  INVALID_PARAMETER_10: 0xc00000f8,
  CONNECTION_IN_USE: 0xc0000108,
  TOO_MANY_OPENED_FILES: 0xc000011f,
  CANCELED: 0xc0000120,
  FILE_DELETED: 0xc0000123,
  FILE_CLOSED: 0xc0000128,
  REMOTE_ERROR: 0xc000013d,
  INVALID_ADDRESS: 0xc0000141,
  INVALID_DEVICE_STATE: 0xc0000184,
  INVALID_BUFFER_SIZE: 0xc0000206,
  TOO_MANY_ADDRESSES: 0xc0000209,
  ADDRESS_ALREADY_EXISTS: 0xc000020a,
  CONNECTION_DISCONNECTED: 0xc000020c,
  NOT_FOUND: 0xc0000225,
  CONNECTION_REFUSED: 0xc0000236,
  ADDRESS_ALREADY_ASSOCIATED: 0xc0000238,
  ADDRESS_NOT_ASSOCIATED: 0xc0000239,
  CONNECTION_INVALID: 0xc000023a,
  CONNECTION_ACTIVE: 0xc000023b,
  NETWORK_UNREACHABLE: 0xc000023c,
  HOST_UNREACHABLE: 0xc000023d,
  REQUEST_ABORTED: 0xc0000240,
  CONNECTION_ABORTED: 0xc0000241,
  DRIVER_UNABLE_TO_LOAD: 0xc000026c,
  DEVICE_REMOVED: 0xc00002b6,
  LOCAL_LENGTH: 0xc0380001,
  INVALIDATION_ERROR: 0xc0380002,
  LOCAL_OP_ERROR: 0xc0380003,
  LOCAL_PROTECTION_ERROR: 0xc0380004,
  WR_FLUSHED_ERROR: 0xc0380005,
  BIND_WINDOW_ERROR: 0xc0380006,
  REMOTE_ACCESS_ERROR: 0xc0380007,
  REMOTE_OP_ERROR: 0xc0380008,
  RNR_RETRY_ERROR: 0xc0380009,
  TIMEOUT_RETRY_ERROR: 0xc038000a,
  REMOTE_INVALID_REQUEST_ERROR: 0xc038000b,
  BAD_RESPONSE_ERROR: 0xc038000c,
  LOCAL_ACCESS_ERROR: 0xc038000d,
  UNKNOWN_ERROR: 0xc038000e,
};

test('statuses are the NTSTATUS values, unsigned', () => {
  assert.equal({ ...Status }, expected);
});

test('only the known aliases have the same value', () => {
  const names = new Map<number, string[]>();
  for (const [name, value] of Object.entries(Status)) names.set(value, [...(names.get(value) ?? []), name]);
  assert.equal(
    [...names.values()].filter((several) => several.length > 1),
    [['DEVICE_NOT_READY', 'NOT_INITIALIZED']],
  );
});

test('every status has a text, and no two are equal', () => {
  const texts = new Set<string>();
  for (const value of new Set(Object.values(expected))) {
    const text = statusText(value);
    assert.match(text, /^[A-Z].{19,}\.$/, statusName(value));
    assert.not.match(text, /is not known to this package/);
    texts.add(text);
  }
  assert.is(texts.size, new Set(Object.values(expected)).size);
});

test('names and texts accept signed values, as in C', () => {
  assert.is(statusName(0xc0000236), 'CONNECTION_REFUSED');
  assert.is(statusName(0xc0000236 | 0), 'CONNECTION_REFUSED');
  assert.is(statusText(0xc0000236 | 0), statusText(0xc0000236));
  assert.is(statusName(0xc0000120), 'CANCELED');
  assert.is(statusName(0xc00000a3), 'DEVICE_NOT_READY');
});

test('an unknown status keeps its number', () => {
  assert.is(statusName(0xc000dead), '0xC000DEAD');
  assert.is(statusHex(-1), '0xFFFFFFFF');
  assert.is(statusHex(0x102), '0x00000102');
  assert.match(statusText(0xc000dead), /0xC000DEAD/);
});

test('a StatusError has status, name and text', () => {
  const cause = new Error('why');
  const error = new StatusError(Status.DEVICE_BUSY | 0, undefined, { cause });
  assert.instance(error, Error);
  assert.is(error.name, 'StatusError');
  assert.is(error.status, 0x80000011);
  assert.is(error.code, 'DEVICE_BUSY');
  assert.is(error.message, statusText(Status.DEVICE_BUSY));
  assert.is(error.cause, cause);
  assert.is(new StatusError(Status.TIMEOUT, 'no reply from 192.0.2.1').message, 'no reply from 192.0.2.1');
  assert.match(inspect(error), /^StatusError: The object is still in use/);
  assert.match(inspect(error), /code: 'DEVICE_BUSY'/);
});

test('a derived error has its own name', () => {
  class WvError extends StatusError {
    static {
      WvError.prototype.name = 'WvError';
    }
  }
  assert.is(new WvError(Status.NOT_FOUND).name, 'WvError');
  assert.is(new StatusError(Status.NOT_FOUND).name, 'StatusError');
});

test.run();
