// The device files of Windows transfer the same bytes as those of the soft kernel. Each recorded request is sent to the stand-in driver,
// which replies as recorded. The bytes that the driver and the caller receive are compared.
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type DeviceFile,
  hcaFileTable,
  ibatTable,
  ioctlName,
  ioctlTable,
  openDeviceFile,
  Status,
  StatusError,
} from '../../kernel-bridge/index.js';
import { type Door, type RecordedRequest, readRequests } from './requests.js';
import { IBAT, Standin, WINVERBS } from './standin.js';

const requests = readRequests(process.env.ND_WINDOWS_REQUESTS!);
const standin = new Standin();
const NO_BYTES = new Uint8Array(0);

interface Reply {
  readonly status: number;
  readonly output: Uint8Array;
}

async function send(file: DeviceFile, request: RecordedRequest, wait: boolean): Promise<Reply> {
  const { code, input, outputLength } = request;
  try {
    if (!request.overlapped) {
      return { status: Status.SUCCESS, output: file.ioctl(code, input, outputLength) };
    }
    const overlapped = file.ioctlOverlapped(code, input, outputLength, (bytes) => bytes);
    if (wait) assert.is(standin.complete(1, request.status), 1);
    return { status: Status.SUCCESS, output: await overlapped };
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return { status: error.status, output: error.output ?? NO_BYTES };
  }
}

test('every IOCTL was recorded, most of them with success', () => {
  const recorded = new Set(requests.map(({ code }) => code));
  const all = [...ioctlTable, ...ibatTable, ...hcaFileTable];
  assert.equal(
    all.filter(({ code }) => !recorded.has(code)).map(({ name }) => name),
    [],
  );
  const succeeded = new Set(
    requests.filter(({ status }) => status === Status.SUCCESS).map(({ code }) => code),
  );
  assert.ok(succeeded.size >= 40, `${succeeded.size} IOCTLs have succeeded`);
});

test('input, output and status are the same as with the soft kernel', async () => {
  const files: Record<Door, DeviceFile> = {
    winverbs: openDeviceFile(WINVERBS),
    ibat: openDeviceFile(IBAT),
    hca: openDeviceFile('\\Device\\ibal\\0002c903000f1234'),
  };
  standin.log();
  for (const [i, request] of requests.entries()) {
    const { code, input, outputLength, status, output } = request;
    const where = `request ${i}, ${ioctlName(code)}`;
    // Half of the overlapped requests first become pending.
    const wait = request.overlapped && i % 2 === 1;
    standin.script(code, status, output, wait);
    const reply = await send(files[request.door], request, wait);
    assert.is(reply.status, status, where);
    assert.equal(reply.output, output, where);
    assert.equal(standin.log(), [{ code, outputLength, input: input ?? NO_BYTES }], where);
  }
  assert.is(standin.stats().scripted, 0);
  console.log(
    `Windows (Wine): ${requests.length} requests of ${new Set(requests.map((r) => r.code)).size} IOCTLs compared`,
  );
  for (const file of Object.values(files)) file.close();
});

test.run();
