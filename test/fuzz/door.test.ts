/**
 * Every IOCTL with invalid bytes, through the real channel to the real kernel. Inputs are valid requests with changed bytes, and random or
 * truncated buffers of any length that contain ids of live objects. Each request completes with a known status, no output is longer than
 * requested, the HCA never gets memory that is not pinned, and valid requests still work.
 */
import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { loadAddon } from '../../kernel-bridge/hca/index.js';
import { type DeviceFile, openDeviceFile } from '../../kernel-bridge/index.js';
import {
  type HcaFileName,
  hcaFileName,
  hcaFileTable,
  IoctlCode,
  ibatTable,
  ioctlTable,
  type NamedIoctlRow,
  Status,
  StatusError,
  statusHex,
  statusName,
  WvGuidEntries,
  WvIoMemoryRegister,
  WvIoObject,
  WvPkeyList,
} from '../../kernel-bridge/ioctl/index.js';
import {
  datagramExamples,
  datagramForms,
  examples,
  hcaFileExamples,
  type Live,
  makeLiveObjects,
} from '../helpers/live-objects.js';

const addon = loadAddon();

const winVerbs = '\\\\.\\WinVerbs';
const ibatName = '\\\\.\\ibat';

/** Requests per IOCTL. */
const numRuns = Number(process.env.ND_FUZZ_RUNS ?? 150);

/** These IOCTLs pass memory to the HCA, which no random request may do. */
const handsMemory = new Set(['MEMORY_REGISTER', 'CQ_CREATE', 'CQ_RESIZE', 'SRQ_CREATE', 'QP_CREATE']);

interface World {
  file: DeviceFile;
  ibat: DeviceFile;
  live: Live;
}

/** Runs with live objects on separate files. Closing the files must release everything. */
function inWorld(run: (world: World) => void): void {
  const file = openDeviceFile(winVerbs);
  const ibat = openDeviceFile(ibatName);
  try {
    const live = makeLiveObjects(file, ibat, addon);
    try {
      run({ file, ibat, live });
    } finally {
      file.close();
      live.release();
    }
  } finally {
    file.close();
    ibat.close();
  }
}

/** Typical further requests of a program, which the kernel must still serve. */
function validRequestsWork(): void {
  inWorld(({ file, live }) => {
    const guids = WvGuidEntries.decode(file.ioctl(IoctlCode.GUID_QUERY, null, 2048).subarray(8));
    assert.ok(guids.includes(live.guid));
    const query = examples(live).DEVICE_PKEY_QUERY();
    assert.equal(WvPkeyList.decode(file.ioctl(IoctlCode.DEVICE_PKEY_QUERY, query, 64)), [0xffff]);
    file.ioctl(IoctlCode.AH_DESTROY, WvIoObject.encode({ id: live.ah }), 0);
    for (const id of [live.qp, live.udQp]) file.ioctl(IoctlCode.QP_DESTROY, WvIoObject.encode({ id }), 0);
    file.ioctl(IoctlCode.QP_DESTROY, WvIoObject.encode({ id: live.srqQp }), 0);
    file.ioctl(IoctlCode.SRQ_DESTROY, WvIoObject.encode({ id: live.srq }), 0);
    file.ioctl(IoctlCode.CQ_DESTROY, WvIoObject.encode({ id: live.cq }), 0);
  });
}

interface Attempt {
  /** Whether the bytes overwrite a valid request, only at `changed` offsets. */
  valid: boolean;
  bytes: Uint8Array;
  changed: number[];
  /** Length of the input, null for no buffer at all, or undefined for that of a valid request. */
  inputLength: number | null | undefined;
  outputLength: number;
  /** Indexes of the 8-byte words that get an existing id, and the number of that id. */
  planted: { place: number; choice: number }[];
}

function attempts(row: NamedIoctlRow | undefined): fc.Arbitrary<Attempt> {
  const fixed = row?.input?.size ?? 0;
  const size = fixed + 80;
  const need = row?.output?.size ?? 0;
  return fc.record({
    valid: fc.boolean(),
    bytes: fc.oneof(
      fc.uint8Array({ minLength: size, maxLength: size }),
      fc.uint8Array({ minLength: size, maxLength: size, max: 2 }),
      fc.constant(new Uint8Array(size)),
    ),
    changed: fc.array(fc.nat({ max: size - 1 }), { maxLength: 3 }),
    inputLength: fc.oneof(
      { weight: 5, arbitrary: fc.constant(undefined) },
      { weight: 2, arbitrary: fc.integer({ min: fixed, max: size }) },
      { weight: 2, arbitrary: fc.integer({ min: 0, max: fixed }) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 5000 }) },
      { weight: 1, arbitrary: fc.constant(null) },
    ),
    outputLength: fc.oneof(
      { weight: 3, arbitrary: fc.integer({ min: need, max: need + 64 }) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: need }) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 70_000 }) },
    ),
    planted: fc.array(fc.record({ place: fc.nat({ max: 4 }), choice: fc.nat() }), { maxLength: 3 }),
  });
}

/** The bytes that an attempt sends. */
function inputOf(attempt: Attempt, live: Live, example: Uint8Array | null): Uint8Array | null {
  const { inputLength, valid, bytes } = attempt;
  if (inputLength === null) return null;
  const input = new Uint8Array(inputLength ?? example?.length ?? bytes.length);
  input.set(bytes.subarray(0, input.length));
  if (valid) {
    if (example) input.set(example.subarray(0, input.length));
    for (const at of attempt.changed) if (at < input.length) input[at] = bytes[at]!;
    return input;
  }
  const view = new DataView(input.buffer);
  for (const { place, choice } of attempt.planted) {
    if ((place + 1) * 8 > input.length) continue;
    view.setBigUint64(place * 8, live.ids[choice % live.ids.length]!, true);
  }
  return input;
}

/** Checks the length of a successful result; returns the status. */
function statusOf(outputLength: number, answer: () => number): number {
  let length: number;
  try {
    length = answer();
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return error.status;
  }
  assert.ok(length <= outputLength, `${length} bytes of output; ${outputLength} were requested`);
  return Status.SUCCESS;
}

/** Issues a request, cancels it if it pends, and returns its status. */
function issue(file: DeviceFile, code: number, input: Uint8Array | null, outputLength: number): number {
  const request = file.ioctlOverlapped(code, input, outputLength, (output) => output.length);
  request.cancel();
  return statusOf(outputLength, () => request.getResult({ wait: true }));
}

/** Like {@link issue}, with a blocking request. */
function issueBlocking(
  file: DeviceFile,
  code: number,
  input: Uint8Array | null,
  outputLength: number,
): number {
  return statusOf(outputLength, () => file.ioctl(code, input, outputLength).length);
}

function hasName(status: number): boolean {
  return statusName(status) !== statusHex(status);
}

function checkStatus(row: NamedIoctlRow, attempt: Attempt, input: Uint8Array | null, status: number): void {
  const what = `${row.name} ended in ${statusName(status)}`;
  assert.ok(hasName(status), `${what}, which has no name`);
  assert.is.not(status, Status.PENDING, what);
  const inputShort = (input?.length ?? 0) < (row.input?.size ?? 0);
  const outputShort = attempt.outputLength < (row.output?.size ?? 0);
  if (inputShort || outputShort) assert.is(status, Status.BUFFER_TOO_SMALL, `${what} for a short buffer`);
  // An SRQ_MODIFY without provider data changes only the limit.
  const handsRing = row.name === 'SRQ_MODIFY' && (input?.length ?? 0) > row.input!.size;
  if (!attempt.valid && (handsRing || handsMemory.has(row.name))) {
    assert.is.not(status, Status.SUCCESS, `${what} for memory that it was not given`);
  }
}

function checkRegistered(live: Live, input: Uint8Array): void {
  const { address, bufferLength } = WvIoMemoryRegister.decode(input);
  const end = live.pinned.address + BigInt(live.pinned.length);
  const inside = address >= live.pinned.address && address + bufferLength <= end && bufferLength > 0n;
  assert.ok(inside, `${bufferLength} bytes at ${address} were registered; they are not pinned`);
}

const requests = suite('door: requests');

for (const row of [...ioctlTable, ...ibatTable]) {
  requests(`${row.name} with any bytes ends in a status`, () => {
    inWorld(({ file, ibat, live }) => {
      const target = ibatTable.includes(row) ? ibat : file;
      const example = examples(live)[row.name as keyof ReturnType<typeof examples>];
      fc.assert(
        fc.property(attempts(row), fc.boolean(), (attempt, overlapped) => {
          const input = inputOf(attempt, live, attempt.valid ? example() : null);
          const send = overlapped || row.pends ? issue : issueBlocking;
          const status = send(target, row.code, input, attempt.outputLength);
          checkStatus(row, attempt, input, status);
          if (row.name === 'MEMORY_REGISTER' && status === Status.SUCCESS) checkRegistered(live, input!);
        }),
        { numRuns },
      );
    });
    validRequestsWork();
  });
}

for (const name of datagramForms) {
  const common = ioctlTable.find((one) => one.name === name)!;
  const row: NamedIoctlRow = { ...common, ...common.datagram };
  requests(`${name} of a datagram endpoint with any bytes ends in a status`, () => {
    inWorld(({ file, live }) => {
      const example = datagramExamples(live)[name];
      fc.assert(
        fc.property(attempts(row), fc.boolean(), (attempt, overlapped) => {
          const input = inputOf({ ...attempt, valid: true }, live, example());
          const send = overlapped || row.pends ? issue : issueBlocking;
          const status = send(file, row.code, input, attempt.outputLength);
          assert.ok(hasName(status), `${name} ended in ${statusHex(status)}, which has no name`);
        }),
        { numRuns },
      );
    });
    validRequestsWork();
  });
}

for (const row of hcaFileTable) {
  requests(`${row.name} with any bytes ends in a status`, () => {
    inWorld(({ live }) => {
      const file = openDeviceFile(hcaFileName(live.guid));
      const { id } = WvIoObject.decode(file.ioctl(IoctlCode.DEVICE_OPEN, examples(live).DEVICE_OPEN(), 16));
      const example = hcaFileExamples(id)[row.name as HcaFileName];
      const ids = { ...live, ids: [...live.ids, id] };
      fc.assert(
        fc.property(attempts(row), fc.boolean(), (attempt, overlapped) => {
          const input = inputOf(attempt, ids, attempt.valid ? example() : null);
          const send = overlapped || row.pends ? issue : issueBlocking;
          checkStatus(row, attempt, input, send(file, row.code, input, attempt.outputLength));
        }),
        { numRuns },
      );
      file.close();
    });
    validRequestsWork();
  });
}

requests('the verbs of WinVerbs, random bytes and all, on an HCA’s own file end in a status', () => {
  const verbs = fc
    .constantFrom(...ioctlTable)
    .chain((row) => attempts(row).map((attempt) => ({ row, attempt })));
  inWorld(({ live }) => {
    const file = openDeviceFile(hcaFileName(live.guid));
    const valid = examples(live);
    fc.assert(
      fc.property(verbs, ({ row, attempt }) => {
        const input = inputOf(attempt, live, attempt.valid ? valid[row.name as keyof typeof valid]() : null);
        const status = issue(file, row.code, input, attempt.outputLength);
        assert.ok(hasName(status), `${row.name} ended in ${statusHex(status)}, which has no name`);
        if (row.name.startsWith('EP_')) assert.is(status, Status.INVALID_DEVICE_REQUEST);
      }),
      { numRuns: numRuns * 5 },
    );
    file.close();
  });
  validRequestsWork();
});

requests('codes that are none are refused by both devices', () => {
  const known = new Set([...ioctlTable, ...ibatTable].map((row) => row.code));
  const codes = fc.oneof(
    fc.integer({ min: 0, max: 0xffff_ffff }),
    fc.integer({ min: 0x3be000, max: 0x3be100 }),
  );
  inWorld(({ file, ibat, live }) => {
    for (const target of [file, ibat]) {
      fc.assert(
        fc.property(codes, attempts(undefined), (code, attempt) => {
          fc.pre(!known.has(code));
          const status = issueBlocking(target, code, inputOf(attempt, live, null), attempt.outputLength);
          assert.is.not(status, Status.SUCCESS);
          if (target === file) assert.is(status, Status.PROCEDURE_NOT_FOUND);
        }),
        { numRuns },
      );
    }
  });
  validRequestsWork();
});

requests('names that are not devices are refused with that reason', () => {
  const names = fc.oneof(
    fc.string({ maxLength: 300 }),
    fc.constantFrom('', '\\\\.\\', '\\\\.\\WinVerbs\\x', 'a\0b'),
  );
  fc.assert(
    fc.property(names, (name) => {
      fc.pre(![winVerbs, ibatName].some((known) => known.toLowerCase() === name.toLowerCase()));
      assert.throws(
        () => openDeviceFile(name),
        (error: unknown) => error instanceof StatusError && error.message.length > 10,
      );
    }),
    { numRuns: Math.min(numRuns, 50) },
  );
  validRequestsWork();
});

requests('requests mixed at random, all at once, and the file closed with some of them pending', async () => {
  const outcomes: PromiseLike<number>[] = [];
  const mixed = fc
    .constantFrom(...ioctlTable)
    .chain((row) => attempts(row).map((attempt) => ({ row, attempt })));
  fc.assert(
    fc.property(fc.array(mixed, { minLength: 1, maxLength: 30 }), (batch) => {
      inWorld(({ file, live }) => {
        const valid = examples(live);
        for (const { row, attempt } of batch) {
          const example = attempt.valid ? valid[row.name as keyof typeof valid]() : null;
          const input = inputOf(attempt, live, example);
          const { outputLength } = attempt;
          const request = file.ioctlOverlapped(row.code, input, outputLength, (output) => output.length);
          outcomes.push(
            request.then(
              (length) => {
                assert.ok(length <= outputLength);
                return Status.SUCCESS as number;
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
      });
    }),
    { numRuns: Math.ceil(numRuns / 5) },
  );
  for (const status of await Promise.all(outcomes)) {
    assert.ok(hasName(status), `${statusHex(status)} has no name`);
    assert.is.not(status, Status.PENDING);
  }
  validRequestsWork();
});

requests.run();
