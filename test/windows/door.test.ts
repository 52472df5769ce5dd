// Device files of Windows with the stand-in driver: statuses, bytes, completion, cancelling, closing.
import { createRequire } from 'node:module';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { openDeviceFile, Status, type StatusError, statusName } from '../../kernel-bridge/index.js';
import { windowsDoor } from '../../kernel-bridge/windows/windows-door.js';
import { IBAT, Standin, statusOf, TestCode, u32, until, WINVERBS, words } from './standin.js';

const { ECHO, PEND, FAIL } = TestCode;
const quick = process.env.ND_WINDOWS_QUICK === '1';
const standin = new Standin();
const { file } = standin;
const same = (bytes: Uint8Array): Uint8Array => bytes;

/** Returns the number of handles of this process. */
const handles = (() => {
  const koffi = createRequire(import.meta.url)('koffi');
  const count = koffi
    .load('kernel32.dll')
    .func('__stdcall', 'GetProcessHandleCount', 'int', ['intptr_t', 'uint32_t *']);
  return (): number => {
    const out = new Uint32Array(1);
    assert.ok(count(-1, out) !== 0);
    return out[0]!;
  };
})();

test('a reply at once is returned unchanged: error, warning, information, success', async () => {
  const statuses = [
    Status.INSUFFICIENT_RESOURCES,
    Status.NOT_FOUND,
    Status.BUFFER_OVERFLOW,
    Status.TIMEOUT,
    Status.MORE_ENTRIES,
    Status.SUCCESS,
  ];
  for (const status of statuses) {
    const input = u32(status, 4, 7);
    assert.is(await statusOf(() => file.ioctl(FAIL, input, 12)), status, statusName(status));
    assert.is(await statusOf(() => file.ioctlOverlapped(FAIL, input, 12, same)), status, statusName(status));
  }
});

test('a warning has output, an error has none', () => {
  const failure = (status: number): StatusError => {
    try {
      file.ioctl(FAIL, u32(status, 8), 12);
    } catch (error) {
      return error as StatusError;
    }
    throw new Error('it should have failed');
  };
  assert.equal(words(failure(Status.BUFFER_OVERFLOW).output!), [Status.BUFFER_OVERFLOW, 8]);
  assert.is(failure(Status.NOT_FOUND).output, undefined);
});

test('inputs and outputs of all lengths', async () => {
  for (const length of [0, 1, 15, 16, 17, 495, 496, 497, 4096, 65_536, 1 << 20]) {
    const input = Uint8Array.from({ length }, (_, i) => (i * 7) & 0xff);
    assert.equal(file.ioctl(ECHO, length === 0 ? null : input, length), input, `${length} bytes`);
    assert.equal(await file.ioctlOverlapped(ECHO, input, length, same), input, `${length} bytes, overlapped`);
    assert.equal(file.ioctl(ECHO, input, length >> 1), input.subarray(0, length >> 1));
  }
});

test('a pending request completes in the event loop, in a blocking wait, and with the status of the driver', async () => {
  const awaited = file.ioctlOverlapped(PEND, u32(0, 1), 8, words);
  assert.is(awaited.completed, false);
  assert.is(awaited.status, Status.PENDING);
  standin.complete(1);
  assert.equal(await awaited, [0, 1]);

  const waited = file.ioctlOverlapped(PEND, u32(250, 2), 8, words);
  assert.equal(waited.getResult({ wait: true }), [250, 2]);

  const failed = file.ioctlOverlapped(PEND, u32(0), 4, words);
  standin.complete(1, Status.CONNECTION_REFUSED);
  assert.ok(failed.completed, 'completed is true without a call');
  assert.is(await statusOf(() => failed), Status.CONNECTION_REFUSED);

  const timedOut = file.ioctlOverlapped(PEND, u32(0), 4, words);
  standin.complete(1, Status.TIMEOUT);
  assert.is(await statusOf(() => timedOut), Status.TIMEOUT);
});

test('a blocking request returns when it has completed', () => {
  assert.equal(words(file.ioctl(PEND, u32(150, 9), 8)), [150, 9]);
});

test('the input is copied, and garbage collection does not move the buffers', async () => {
  const input = u32(0, 77);
  const pending = file.ioctlOverlapped(PEND, input, 8, words);
  input.fill(0xff);
  for (let i = 0; i < 50; i++) {
    new Array(100_000).fill({});
    globalThis.gc?.();
  }
  standin.complete(1);
  assert.equal(await pending, [0, 77]);
});

test('cancelling completes one request, or those of a file, and no others', async () => {
  const before = standin.stats();
  const [first, second, third] = [1, 2, 3].map((n) => file.ioctlOverlapped(PEND, u32(0, n), 8, words));
  second!.cancel();
  assert.is(await statusOf(() => second), Status.CANCELED);
  second!.cancel();
  assert.is(first!.completed, false);
  assert.is(standin.stats().waiting, before.waiting + 2);

  const other = openDeviceFile(WINVERBS);
  const its = other.ioctlOverlapped(PEND, u32(0, 4), 8, words);
  other.close();
  assert.is(await statusOf(() => its), Status.CANCELED);
  assert.is(first!.completed, false);
  standin.complete(2);
  assert.equal(
    [await first, await third],
    [
      [0, 1],
      [0, 3],
    ],
  );
  assert.is(standin.stats().cancelled, before.cancelled + 2);
});

test('an AbortSignal cancels a request', async () => {
  const controller = new AbortController();
  const pending = file.ioctlOverlapped(PEND, u32(0), 4, words).abortOn(controller.signal);
  controller.abort();
  assert.is(await statusOf(() => pending), Status.CANCELED);
});

test('a request that the driver does not cancel outlives its file, and so does its memory', async () => {
  standin.stubborn(true);
  const other = openDeviceFile(WINVERBS);
  const pending = other.ioctlOverlapped(PEND, u32(0, 5), 8, words);
  pending.cancel();
  other.close();
  assert.ok(other.closed);
  standin.stubborn(false);
  // Wine's server cancels it when the file is closed; Windows leaves that to the driver.
  standin.complete(1);
  const status = await statusOf(() => pending);
  assert.ok(status === Status.SUCCESS || status === Status.CANCELED, statusName(status));
  assert.equal(words(file.ioctl(ECHO, u32(1, 2), 8)), [1, 2]);
});

test('a closed file does not accept requests', async () => {
  const other = openDeviceFile(IBAT);
  other.close();
  other.close();
  assert.is(await statusOf(() => other.ioctl(ECHO, null, 0)), Status.INVALID_HANDLE);
  assert.is(await statusOf(() => other.ioctlOverlapped(ECHO, null, 0, same)), Status.INVALID_HANDLE);
});

test('invalid requests end in INVALID_PARAMETER', async () => {
  const wrong: [number, unknown, number][] = [
    [-1, null, 0],
    [2 ** 32, null, 0],
    [ECHO, null, -1],
    [ECHO, [1], 0],
  ];
  for (const [code, input, length] of wrong) {
    assert.is(await statusOf(() => file.ioctl(code, input as null, length)), Status.INVALID_PARAMETER);
    assert.is(
      await statusOf(() => file.ioctlOverlapped(code, input as null, length, same)),
      Status.INVALID_PARAMETER,
    );
  }
});

test('an output that cannot be allocated ends in INSUFFICIENT_RESOURCES', async () => {
  assert.is(await statusOf(() => file.ioctl(ECHO, null, 0xffff_ffff)), Status.INSUFFICIENT_RESOURCES);
  const overlapped = file.ioctlOverlapped(ECHO, null, 0xffff_ffff, same);
  assert.is(await statusOf(() => overlapped), Status.INSUFFICIENT_RESOURCES);
});

test('opening a device that does not exist, or with a malformed name, reports that', () => {
  const message = (name: string): string => {
    try {
      openDeviceFile(name);
    } catch (error) {
      return `${statusName((error as StatusError).status)} ${(error as Error).message}`;
    }
    throw new Error('it should have failed');
  };
  assert.match(message('\\\\.\\NoSuchDevice'), /OBJECT_NAME_NOT_FOUND .*no driver provides this device/);
  assert.match(message('\\Device\\ibal\\0123456789abcdef'), /OBJECT_NAME_NOT_FOUND/);
  assert.match(message('WinVerbs'), /OBJECT_NAME_INVALID/);
});

test("an HCA's own device opens by its native name", () => {
  const hca = openDeviceFile('\\Device\\ibal\\0002c903000f1234');
  assert.equal(words(hca.ioctl(ECHO, u32(3), 4)), [3]);
  hca.close();
});

test('requests are delivered in the order of their completion, whenever they are awaited', async () => {
  const order: number[] = [];
  const pending = Array.from({ length: 20 }, (_, i) =>
    file.ioctlOverlapped(PEND, u32(0), 4, () => order.push(i)),
  );
  const early = pending[5]!.then(() => order.push(105));
  standin.complete(20);
  await Promise.all([pending[12], pending[3], early]);
  await until(() => order.length === 21);
  assert.equal(
    order.filter((n) => n < 100),
    [...pending.keys()],
  );
});

test('1,000 pending requests all complete', async () => {
  const count = 1000;
  const before = standin.stats().waiting;
  const pending = Array.from({ length: count }, (_, i) => file.ioctlOverlapped(PEND, u32(0, i), 8, words));
  assert.is(standin.stats().waiting, before + count);
  for (const request of pending.slice(0, 10)) request.cancel();
  assert.is(standin.complete(count), count - 10);
  const ends = await Promise.allSettled(pending);
  assert.is(ends.filter(({ status }) => status === 'rejected').length, 10);
  ends.forEach((end, i) => {
    if (end.status === 'fulfilled') assert.equal(end.value, [0, i]);
  });
  assert.is(windowsDoor().port.due, 0);
});

test('cycles of opening, requests and closing leave no handle open', async () => {
  const cycles = quick ? 1000 : 10_000;
  const cycle = async (): Promise<void> => {
    const other = openDeviceFile(WINVERBS);
    other.ioctl(ECHO, u32(1), 4);
    const pending = other.ioctlOverlapped(PEND, u32(0), 4, words);
    other.close();
    assert.is(await statusOf(() => pending), Status.CANCELED);
  };
  for (let i = 0; i < 20; i++) await cycle();
  const before = handles();
  const { opens, closes } = standin.stats();
  for (let i = 0; i < cycles; i++) await cycle();
  assert.ok(handles() <= before + 5, `${handles()} handles after ${cycles} cycles, ${before} before`);
  const after = standin.stats();
  assert.is(after.opens - opens, cycles);
  assert.is(after.closes - closes, cycles);
});

test('the latency from completion to promise', async () => {
  const times: number[] = [];
  for (let i = 0; i < 300; i++) {
    const begun = performance.now();
    const pending = file.ioctlOverlapped(PEND, u32(0), 4, words);
    standin.complete(1);
    await pending;
    times.push(performance.now() - begun);
  }
  times.sort((a, b) => a - b);
  const [p10, p50, p90] = [0.1, 0.5, 0.9].map((p) =>
    (times[Math.floor(times.length * p)]! * 1000).toFixed(0),
  );
  console.log(`Windows (Wine): pend, complete, promise: p10 ${p10}, p50 ${p50}, p90 ${p90} microseconds`);
  assert.ok(times[150]! < 100);
});

test.run();
