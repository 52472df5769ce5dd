import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { NdError } from '../../nd/index.js';
import { v1Terms, v2Terms } from '../../nd/status.js';
import { Status, StatusError, WcStatus } from '../../winverbs/index.js';
import { root } from '../helpers/root.js';

test('every WV_WC_STATUS has the v1 status that applications expect', () => {
  const expected = [
    0x00000000, // success
    0xc000003c, // local length: ND_LOCAL_LENGTH is DATA_OVERRUN
    0xc0000005, // local operation
    0xc0000005, // local protection
    0xc0000120, // flushed
    0xc0000005, // bind
    0xc000013d, // remote access
    0xc000013d, // remote operation
    0x00000102, // RNR retries: the v1 timeout is a success code
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

test('timeouts are TIMEOUT in v1, no matter what WinVerbs reports', () => {
  assert.is(v1Terms.status(Status.IO_TIMEOUT), 0x102);
  assert.is(v1Terms.status(Status.TIMEOUT), 0x102);
});

test('a removed or failed device is DEVICE_REMOVED in both versions, no matter what WinVerbs reports', () => {
  for (const terms of [v1Terms, v2Terms]) {
    for (const status of [Status.DEVICE_REMOVED, Status.FILE_FORCED_CLOSED, Status.NO_SUCH_DEVICE]) {
      assert.is(terms.status(status), 0xc00002b6);
    }
  }
});

test('a status that both layers share is not changed', () => {
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

test("a call's own map takes precedence over the general one", () => {
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

test('errors without a status (programming mistakes) are unchanged', () => {
  const mistake = new TypeError('no');
  assert.throws(
    () =>
      v1Terms.call('Send', () => {
        throw mistake;
      }),
    (error: unknown) => error === mistake,
  );
});

/** Cells of the rows of docs/reference/statuses.md that have a value. */
const rows = readFileSync(join(root, 'docs/reference/statuses.md'), 'utf8')
  .split('\n')
  .filter((line) => /^\| [A-Z]/.test(line))
  .map((line) =>
    line
      .slice(2, -2)
      .split('|')
      .map((cell) => cell.trim()),
  );

test('docs/reference/statuses.md lists each status once, with its value', () => {
  const listed = rows.flatMap(([names = '', value = '']) => {
    const [first = '', last] = names.split(/ … |, /);
    // The ten statuses INVALID_PARAMETER_n share one row.
    if (!names.includes('…'))
      return (last === undefined ? [first] : [first, last]).map((name) => [name, value]);
    const [from = ''] = value.split(' … ');
    return Array.from({ length: 10 }, (_, n) => [
      `INVALID_PARAMETER_${n + 1}`,
      `0x${(Number(from) + n).toString(16)}`,
    ]);
  });
  const expected = Object.entries(Status).map(([name, value]) => [
    name,
    `0x${value.toString(16).padStart(8, '0')}`,
  ]);
  assert.equal(listed.sort(), expected.sort());
});

test('docs/reference/statuses.md lists the results of requests in both versions', () => {
  const results = rows.filter((cells) => cells.length === 5 && cells[2] !== '');
  const numberOf = (name = ''): number => Status[name as keyof typeof Status];
  assert.equal(
    results.map(([, , name = '', v1, v2]) => [
      WcStatus[name as keyof typeof WcStatus],
      numberOf(v1),
      numberOf(v2),
    ]),
    Object.values(WcStatus)
      .filter((wc) => wc !== WcStatus.SUCCESS)
      .map((wc) => [wc, v1Terms.completion(wc), v2Terms.completion(wc)]),
  );
});

test.run();
