import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { NdError } from '../../nd/index.js';
import { v1Terms, v2Terms } from '../../nd/status.js';
import { Status, StatusError } from '../../winverbs/index.js';

test('every WV_WC_STATUS has the v1 status that applications know', () => {
  const expected = [
    0x00000000, // success
    0xc000003c, // local length: ND_LOCAL_LENGTH is DATA_OVERRUN
    0xc0000005, // local operation
    0xc0000005, // local protection
    0xc0000120, // flushed
    0xc0000005, // bind
    0xc000013d, // remote access
    0xc000013d, // remote operation
    0x00000102, // RNR retries: the v1 time-out is a success code
    0x00000102, // transport retries
    0xc000013d, // remote invalid request
    0xc000013d, // bad response
    0xc0000005, // local access
    0xc00000e5, // other
  ];
  assert.equal(
    expected.map((_, wc) => v1Terms.completion(wc)),
    expected,
  );
  for (const unknown of [14, 17, 255, -1]) assert.is(v1Terms.completion(unknown), 0xc00000e5);
});

test('time-outs are TIMEOUT in v1, whatever they are called below', () => {
  assert.is(v1Terms.status(Status.IO_TIMEOUT), 0x102);
  assert.is(v1Terms.status(Status.TIMEOUT), 0x102);
});

test('a device that is gone or has failed is DEVICE_REMOVED in both versions, whatever it is called below', () => {
  for (const terms of [v1Terms, v2Terms]) {
    for (const status of [Status.DEVICE_REMOVED, Status.FILE_FORCED_CLOSED, Status.NO_SUCH_DEVICE]) {
      assert.is(terms.status(status), 0xc00002b6);
    }
  }
});

test('a status that both layers share passes unchanged', () => {
  for (const status of [
    Status.CONNECTION_REFUSED,
    Status.CANCELED,
    Status.DEVICE_BUSY,
    Status.ACCESS_DENIED,
    Status.NO_MORE_ENTRIES,
  ]) {
    assert.is(v1Terms.status(status), status);
  }
});

test("a call's own map goes before the general one", () => {
  const map = { [Status.IO_TIMEOUT]: Status.CONNECTION_ABORTED };
  assert.is(v1Terms.status(Status.IO_TIMEOUT, map), Status.CONNECTION_ABORTED);
});

test('errors become NdErrors that name the call and keep the reason', () => {
  const below = new StatusError(Status.UNEXPECTED_IO_ERROR, 'The wire caught fire.');
  const error = v1Terms.error(below, 'Notify');
  assert.instance(error, NdError);
  assert.is(error.name, 'NdError');
  assert.is(error.status, Status.INTERNAL_ERROR);
  assert.match(error.message, 'Notify: ');
  assert.match(error.message, 'The wire caught fire.');
  assert.is(error.cause, below);
});

test('errors without a status, which are mistakes in a program, stay as they are', () => {
  const mistake = new TypeError('no');
  assert.throws(
    () =>
      v1Terms.call('Send', () => {
        throw mistake;
      }),
    (error: unknown) => error === mistake,
  );
});

test.run();
