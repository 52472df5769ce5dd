/**
 * Every IOCTL with wrong bytes through the real door into the real kernel: random and truncated buffers of any
 * length, ids of live objects in them. Each request ends in a status that has a name, no output is longer than asked
 * for, no memory is handed to the HCA, and valid requests work as before.
 */
import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type DeviceFile, openDeviceFile } from '../../kernel-bridge/index.js';
import {
  EpType,
  encodeSockaddr,
  IBAT_VERSION,
  IbatCode,
  IbatIpToPortIn,
  IbatPortRecord,
  IoctlCode,
  ibatTable,
  ioctlTable,
  type NamedIoctlRow,
  Status,
  StatusError,
  statusHex,
  statusName,
  WvGuidEntries,
  WvIoDeviceOpen,
  WvIoEpCreate,
  WvIoId,
  WvIoObject,
  WvPkeyList,
} from '../../kernel-bridge/ioctl/index.js';

const winVerbs = '\\\\.\\WinVerbs';
const ibat = '\\\\.\\ibat';

/** Requests per IOCTL. */
const numRuns = Number(process.env.ND_FUZZ_RUNS ?? 150);

/** What the HCA may touch is handed to it by these: with random addresses none may ever succeed. */
const handsMemory = new Set(['MEMORY_REGISTER', 'CQ_CREATE', 'CQ_RESIZE', 'QP_CREATE']);

/** Ids and GUIDs that exist, so that random requests get past the first check. */
interface Live {
  ids: bigint[];
  guids: bigint[];
}

function deviceGuids(file: DeviceFile): bigint[] {
  const output = file.ioctl(IoctlCode.GUID_QUERY, null, 8 + 8 * 256);
  return WvGuidEntries.decode(output.subarray(8));
}

/** Opens each kind of object that needs no memory. */
function populate(file: DeviceFile): Live {
  const guids = deviceGuids(file);
  const idOf = (output: Uint8Array) => WvIoObject.decode(output).id;
  const deviceIn = WvIoDeviceOpen.encode({ guid: guids[0]! });
  const device = idOf(file.ioctl(IoctlCode.DEVICE_OPEN, deviceIn, 256));
  const pd = idOf(file.ioctl(IoctlCode.PD_ALLOCATE, WvIoId.encode({ id: device }), 256));
  const mw = idOf(file.ioctl(IoctlCode.MW_ALLOCATE, WvIoId.encode({ id: pd }), 256));
  const epIn = WvIoEpCreate.encode({ epType: BigInt(EpType.CONNECT) });
  const endpoints = [0, 1].map(() => idOf(file.ioctl(IoctlCode.EP_CREATE, epIn, WvIoObject.size)));
  return { ids: [device, pd, mw, ...endpoints], guids };
}

/** What a program would do next: the kernel must still do it. */
function validRequestsWork(): void {
  const file = openDeviceFile(winVerbs);
  try {
    const [guid] = deviceGuids(file);
    assert.ok(guid !== undefined && guid !== 0n);
    const output = file.ioctl(IoctlCode.DEVICE_OPEN, WvIoDeviceOpen.encode({ guid }), 256);
    const query = new Uint8Array(16);
    query.set(output.subarray(0, 8));
    query[8] = 1;
    const pkeys = WvPkeyList.decode(file.ioctl(IoctlCode.DEVICE_PKEY_QUERY, query, 64));
    assert.equal(pkeys, [0xffff]);
    file.ioctl(IoctlCode.DEVICE_CLOSE, output.subarray(0, 8), 0);
  } finally {
    file.close();
  }
}

interface Attempt {
  bytes: Uint8Array;
  /** How many of the bytes are sent; null: no buffer at all. */
  inputLength: number | null;
  outputLength: number;
  /** Which 8-byte places get an id or GUID that exists, and which one. */
  planted: { place: number; choice: number }[];
}

function attempts(row: NamedIoctlRow | undefined): fc.Arbitrary<Attempt> {
  const fixed = row?.input?.size ?? 0;
  const lengths = fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: fixed, max: fixed + 80 }) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: fixed }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 5000 }) },
    { weight: 1, arbitrary: fc.constant(null) },
  );
  const need = row?.output?.size ?? 0;
  return fc.record({
    bytes: fc.oneof(
      fc.uint8Array({ minLength: fixed + 80, maxLength: fixed + 80 }),
      fc.uint8Array({ minLength: fixed + 80, maxLength: fixed + 80, max: 2 }),
      fc.constant(new Uint8Array(fixed + 80)),
    ),
    inputLength: lengths,
    outputLength: fc.oneof(
      fc.integer({ min: need, max: need + 64 }),
      fc.integer({ min: 0, max: need }),
      fc.integer({ min: 0, max: 70_000 }),
    ),
    planted: fc.array(fc.record({ place: fc.integer({ min: 0, max: 4 }), choice: fc.nat() }), {
      maxLength: 4,
    }),
  });
}

function inputOf(attempt: Attempt, live: Live, guidFirst: boolean): Uint8Array | null {
  if (attempt.inputLength === null) return null;
  const input = new Uint8Array(attempt.inputLength);
  input.set(attempt.bytes.subarray(0, input.length));
  const view = new DataView(input.buffer);
  for (const { place, choice } of attempt.planted) {
    if ((place + 1) * 8 > input.length) continue;
    const guid = guidFirst && place === 0;
    const values = guid ? live.guids : live.ids;
    view.setBigUint64(place * 8, values[choice % values.length]!, !guid);
  }
  return input;
}

/** Takes the length of a successful answer, or the status that was thrown instead. */
function statusOf(outputLength: number, answer: () => number): number {
  let length: number;
  try {
    length = answer();
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return error.status;
  }
  assert.ok(length <= outputLength, `${length} bytes of output; ${outputLength} were asked for`);
  return Status.SUCCESS;
}

/** Issues a request, cancels it if it pends, and answers its status. */
function issue(file: DeviceFile, code: number, input: Uint8Array | null, outputLength: number): number {
  const request = file.ioctlOverlapped(code, input, outputLength, (output) => output.length);
  request.cancel();
  return statusOf(outputLength, () => request.getResult({ wait: true }));
}

/** As {@link issue}, by the blocking form. */
function issueBlocking(
  file: DeviceFile,
  code: number,
  input: Uint8Array | null,
  outputLength: number,
): number {
  return statusOf(outputLength, () => file.ioctl(code, input, outputLength).length);
}

function checkStatus(row: NamedIoctlRow, attempt: Attempt, status: number): void {
  const what = `${row.name} ended in ${statusName(status)}`;
  assert.not(statusName(status) === statusHex(status), `${what}, which has no name`);
  assert.is.not(status, Status.PENDING, what);
  const short =
    (attempt.inputLength ?? 0) < (row.input?.size ?? 0) || attempt.outputLength < (row.output?.size ?? 0);
  if (short && row.defined) assert.is(status, Status.BUFFER_TOO_SMALL, `${what} for a short buffer`);
  if (handsMemory.has(row.name)) assert.is.not(status, Status.SUCCESS, `${what} for memory nobody gave it`);
  if (!row.defined) assert.is.not(status, Status.SUCCESS, what);
}

const requests = suite('door: requests');

for (const row of ioctlTable) {
  requests(`${row.name} with any bytes ends in a status`, () => {
    const file = openDeviceFile(winVerbs);
    try {
      const live = populate(file);
      fc.assert(
        fc.property(attempts(row), fc.boolean(), (attempt, overlapped) => {
          const input = inputOf(attempt, live, row.name === 'DEVICE_OPEN' || row.name === 'LIBRARY_QUERY');
          const send = overlapped || row.pends ? issue : issueBlocking;
          checkStatus(row, attempt, send(file, row.code, input, attempt.outputLength));
        }),
        { numRuns },
      );
    } finally {
      file.close();
    }
    validRequestsWork();
  });
}

for (const row of ibatTable) {
  requests(`IBAT ${row.name} with any bytes ends in a status`, () => {
    const file = openDeviceFile(ibat);
    const live = { ids: [BigInt(IBAT_VERSION), 0x0200_0000_0006n], guids: [0n] };
    try {
      fc.assert(
        fc.property(attempts(row), (attempt) => {
          const input = inputOf(attempt, live, false);
          checkStatus(row, attempt, issueBlocking(file, row.code, input, attempt.outputLength));
        }),
        { numRuns },
      );
      const loopback = IbatIpToPortIn.encode({
        version: IBAT_VERSION,
        address: encodeSockaddr({ family: 4, address: '127.0.0.1', port: 0 }),
      });
      const record = IbatPortRecord.decode(file.ioctl(IbatCode.IP_TO_PORT, loopback, IbatPortRecord.size));
      assert.is(record.portNum, 1);
      assert.is(record.pKey, 0xffff);
    } finally {
      file.close();
    }
  });
}

requests('codes that are none are refused by both devices', () => {
  const known = new Set([...ioctlTable, ...ibatTable].map((row) => row.code));
  for (const name of [winVerbs, ibat]) {
    const file = openDeviceFile(name);
    try {
      fc.assert(
        fc.property(
          fc.oneof(fc.integer({ min: 0, max: 0xffff_ffff }), fc.integer({ min: 0x3be000, max: 0x3be100 })),
          attempts(undefined),
          (code, attempt) => {
            fc.pre(!known.has(code));
            const input = inputOf(attempt, { ids: [1n], guids: [1n] }, false);
            const status = issueBlocking(file, code, input, attempt.outputLength);
            assert.is.not(status, Status.SUCCESS);
            if (name === winVerbs) assert.is(status, Status.PROCEDURE_NOT_FOUND);
          },
        ),
        { numRuns },
      );
    } finally {
      file.close();
    }
  }
  validRequestsWork();
});

requests('names that are no device are refused, and say so', () => {
  const names = fc.oneof(
    fc.string({ maxLength: 300 }),
    fc.constantFrom('', '\\\\.\\', '\\\\.\\WinVerbs\\x', 'a\0b'),
  );
  fc.assert(
    fc.property(names, (name) => {
      fc.pre(![winVerbs, ibat].some((known) => known.toLowerCase() === name.toLowerCase()));
      assert.throws(
        () => openDeviceFile(name),
        (error: unknown) => error instanceof StatusError && error.message.length > 10,
      );
    }),
    { numRuns: Math.min(numRuns, 50) },
  );
  validRequestsWork();
});

requests('files mixed at random, all at once, and closed with requests pending', async () => {
  const outcomes: PromiseLike<number>[] = [];
  const rows = fc.constantFrom(...ioctlTable);
  const mixed = rows.chain((row) => attempts(row).map((attempt) => ({ row, attempt })));
  fc.assert(
    fc.property(fc.array(mixed, { minLength: 1, maxLength: 20 }), (batch) => {
      const file = openDeviceFile(winVerbs);
      const live = populate(file);
      for (const { row, attempt } of batch) {
        const input = inputOf(attempt, live, row.name === 'DEVICE_OPEN');
        const request = file.ioctlOverlapped(
          row.code,
          input,
          attempt.outputLength,
          (output) => output.length,
        );
        outcomes.push(
          request.then(
            (length) => {
              assert.ok(length <= attempt.outputLength);
              return Status.SUCCESS;
            },
            (error: unknown) => {
              if (error instanceof StatusError) return error.status;
              throw error;
            },
          ),
        );
      }
      file.close();
      assert.ok(file.closed);
    }),
    { numRuns: Math.ceil(numRuns / 10) },
  );
  for (const status of await Promise.all(outcomes)) {
    assert.not(statusName(status) === statusHex(status), `${statusHex(status)} has no name`);
  }
  validRequestsWork();
});

requests.run();
