import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveKernelOptions } from '../../kernel-bridge/door/soft/resolve-options.js';
import { SoftKernel } from '../../kernel-bridge/door/soft/soft-kernel.js';
import { ChannelMajor } from '../../kernel-bridge/hca/index.js';
import { Status, StatusError } from '../../kernel-bridge/ioctl/status.js';
import type { KernelOptionsInput } from '../../kernel-bridge/option-checks/option-schemas.js';
import { EchoCode } from '../fixtures/echo-codes.js';
import { outcome, refusal, thrownStatus, throwsStatus } from '../helpers/outcome.js';
import { long } from '../helpers/tiers.js';
import { HANG_MS } from '../helpers/within.js';

const entry = new URL('../fixtures/echo-kernel.js', import.meta.url);
const device = '\\\\.\\Echo';
const same = (bytes: Uint8Array): Uint8Array => bytes;

const kernels: SoftKernel[] = [];
function start(options: KernelOptionsInput = {}, slots?: number): SoftKernel {
  const kernel = new SoftKernel(
    resolveKernelOptions(options),
    slots === undefined ? { entry } : { entry, slots },
  );
  kernels.push(kernel);
  return kernel;
}

const u32 = (...values: number[]): Uint8Array => new Uint8Array(new Uint32Array(values).buffer);
function words(bytes: Uint8Array): number[] {
  return [...new Uint32Array(bytes.slice().buffer)];
}

const door = suite('door 1 on the soft kernel');
door.after.each(async () => {
  for (const kernel of kernels.splice(0)) await kernel.terminate();
});

door('an invalid request ends in a status, blocking and overlapped', async () => {
  const file = start().open(device);
  const requests: [number, unknown, number, RegExp][] = [
    [-1, null, 0, /`code` must be .*; got -1/],
    [2 ** 32, null, 0, /`code` must be .*; got 4294967296/],
    ['x' as unknown as number, null, 0, /`code` must be .*; got 'x'/],
    [EchoCode.echo, null, -1, /`outputLength` must be .*; got -1/],
    [EchoCode.echo, null, 1.5, /`outputLength` must be .*; got 1.5/],
    [EchoCode.echo, [1, 2], 0, /`input` must be a Uint8Array or null; got an array/],
    [EchoCode.echo, undefined, 0, /`input` must be .*; got undefined/],
  ];
  for (const [code, input, length, told] of requests) {
    const refuses = (error: unknown) =>
      error instanceof StatusError && error.status === Status.INVALID_PARAMETER && told.test(error.message);
    assert.throws(() => file.ioctl(code, input as null, length), refuses);
    assert.throws(() => file.ioctlOverlapped(code, input as null, length, same).getResult(), refuses);
  }
  assert.equal(words(file.ioctl(EchoCode.echo, u32(7), 4)), [7]);
});

door('a thread that never returns to its event loop can open, send requests and close', () => {
  const kernel = start();
  const file = kernel.open(device);
  for (let i = 0; i < 100; i++) assert.equal(file.ioctl(EchoCode.echo, u32(i, i * 2), 8), u32(i, i * 2));
  file.close();
  assert.ok(file.closed);
  file.close();
  assert.is(kernel.openFiles, 0);
});

door('bytes are copied: later changes to the input do not reach the kernel', () => {
  const file = start().open(device);
  const input = u32(1);
  const pending = file.ioctlOverlapped(EchoCode.pend, input, 4, same);
  input.fill(9);
  file.ioctl(EchoCode.releaseAll, null, 4);
  assert.equal(pending.getResult({ wait: true }), u32(1));
});

door(
  'requests that complete in order are delivered in order, whenever they are awaited, in every layer',
  async () => {
    const file = start().open(device);
    const release = () => file.ioctl(EchoCode.releaseAll, null, 4);
    const order: string[] = [];
    const note = (name: string) => () => order.push(name);
    const pend = (name: string) =>
      file.ioctlOverlapped(EchoCode.pend, u32(order.length), 4, same).map(note(name));
    const requests = ['awaited before it completed', 'awaited afterwards', 'awaited last', 'never'].map(pend);
    const [first, second, third] = requests;
    const all = [first!.then(note('1'))];
    release();
    // All of them have completed, but the event loop has not delivered any.
    assert.ok(requests.every(({ completed }) => completed));
    assert.equal(order, []);
    all.push(third!.then(note('3')), second!.then(note('2')));
    await Promise.all(all);
    assert.equal(order, ['awaited before it completed', 'awaited afterwards', 'awaited last', '1', '2', '3']);
  },
);

door('the output is never longer than requested or written', () => {
  const file = start().open(device);
  assert.is(file.ioctl(EchoCode.flood, null, 10).length, 10);
  const all = file.ioctl(EchoCode.flood, null, 4096);
  assert.is(all.length, 64, 'the kernel wrote 64 bytes, whatever it said');
  assert.ok(all.every((byte) => byte === 0xaa));
  assert.is(file.ioctl(EchoCode.flood, null, 0).length, 0);
  assert.equal(file.ioctl(EchoCode.echo, u32(5), 0xffffffff), u32(5), 'a huge output length costs nothing');
});

door('an input that cannot be copied is refused instead of crashing', () => {
  const file = start().open(device);
  const huge = new Uint8Array(16 * 1024 * 1024 + 1);
  throwsStatus(() => file.ioctl(EchoCode.echo, huge, 4), Status.INSUFFICIENT_RESOURCES);
  assert.is(file.ioctl(EchoCode.echo, huge.subarray(1), 8).length, 8);
});

door('a failing request reports its status the same way, blocking and overlapped', async () => {
  const file = start().open(device);
  for (const status of [Status.TIMEOUT, Status.BUFFER_OVERFLOW, Status.CONNECTION_REFUSED, 0xc0380009]) {
    assert.is(
      thrownStatus(() => file.ioctl(EchoCode.fail, u32(status), 0)),
      status,
    );
    const overlapped = file.ioctlOverlapped(EchoCode.fail, u32(status), 0, same);
    assert.is(await outcome(overlapped), status);
    assert.is(overlapped.status, status);
  }
});

door('an output without memory ends in a status instead of waiting', async () => {
  const kernel = start();
  const file = kernel.open(device);
  const long = new Uint8Array(1 << 20).fill(7);
  Object.defineProperty(kernel.channel, 'output', {
    configurable: true,
    value: () => {
      throw new RangeError('Array buffer allocation failed');
    },
  });
  for (let i = 0; i < 3; i++) {
    const overlapped = file.ioctlOverlapped(EchoCode.echo, long, long.length, same);
    assert.is(await outcome(overlapped), Status.INSUFFICIENT_RESOURCES);
    throwsStatus(() => file.ioctl(EchoCode.echo, long, long.length), Status.INSUFFICIENT_RESOURCES);
  }
  Reflect.deleteProperty(kernel.channel, 'output');
  assert.equal(file.ioctl(EchoCode.echo, long, long.length), long);
  assert.equal(await file.ioctlOverlapped(EchoCode.echo, long, long.length, same), long);
});

door('a refused open has the kernel’s message', () => {
  const kernel = start();
  throwsStatus(() => kernel.open('nonsense'), Status.NO_SUCH_DEVICE, /the device nonsense does not exist/);
});

door('an overlapped request is delivered by the event loop', async () => {
  const file = start().open(device);
  assert.is(await file.ioctlOverlapped(EchoCode.echo, u32(7), 4, (out) => words(out)[0]), 7);
  const many = Array.from({ length: 500 }, (_, i) =>
    file.ioctlOverlapped(EchoCode.echo, u32(i), 4, (out) => words(out)[0]),
  );
  assert.equal(
    await Promise.all(many),
    many.map((_, i) => i),
  );
});

door('completed can be polled without a call and without the event loop', () => {
  const file = start().open(device);
  const overlapped = file.ioctlOverlapped(EchoCode.echo, u32(3), 4, same);
  while (!overlapped.completed);
  assert.equal(overlapped.getResult(), u32(3));
});

door('cancel ends a pending request in CANCELED; cancelling again or later has no effect', async () => {
  const file = start().open(device);
  const overlapped = file.ioctlOverlapped(EchoCode.pend, null, 0, same);
  throwsStatus(() => overlapped.getResult(), Status.PENDING);
  for (let i = 0; i < 1000; i++) overlapped.cancel();
  assert.is(await outcome(overlapped), Status.CANCELED);
  overlapped.cancel();
  assert.equal(words(file.ioctl(EchoCode.counts, null, 64)).slice(0, 1), [0]);
});

door('an AbortSignal cancels', async () => {
  const file = start().open(device);
  const abort = new AbortController();
  const overlapped = file.ioctlOverlapped(EchoCode.pend, null, 0, same).abortOn(abort.signal);
  abort.abort();
  assert.is(await outcome(overlapped), Status.CANCELED);
  const late = file.ioctlOverlapped(EchoCode.pend, null, 0, same).abortOn(abort.signal);
  assert.is(await outcome(late), Status.CANCELED);
});

door('closing a file ends its pending requests in CANCELED, and only its own', async () => {
  const kernel = start();
  const file = kernel.open(device);
  const other = kernel.open(device);
  const mine = file.ioctlOverlapped(EchoCode.pend, null, 0, same);
  const others = other.ioctlOverlapped(EchoCode.pend, u32(1), 4, same);
  file.close();
  throwsStatus(() => mine.getResult({ wait: true }), Status.CANCELED);
  assert.is(others.completed, false);
  throwsStatus(() => file.ioctl(EchoCode.echo, null, 0), Status.INVALID_HANDLE);
  assert.is(await outcome(file.ioctlOverlapped(EchoCode.echo, null, 0, same)), Status.INVALID_HANDLE);
  other.ioctl(EchoCode.releaseAll, null, 4);
  assert.equal(await others, u32(1));
});

door('a blocking wait and the later delivery of the same request do not disturb each other', async () => {
  const kernel = start();
  const file = kernel.open(device);
  const results: number[] = [];
  for (let i = 0; i < 200; i++) {
    const overlapped = file.ioctlOverlapped(EchoCode.echo, u32(i), 4, (out) => words(out)[0] ?? -1);
    results.push(overlapped.getResult({ wait: true }));
  }
  assert.equal(
    results,
    Array.from({ length: 200 }, (_, i) => i),
  );
  assert.is(kernel.outstanding, 0);
  assert.equal(await file.ioctlOverlapped(EchoCode.echo, u32(1), 4, same), u32(1));
});

door('10 000 requests, dropped unobserved by a thread that never yields, leak no slot', async () => {
  const kernel = start({}, 128);
  const file = kernel.open(device);
  let refused = 0;
  for (let i = 0; i < 10_000; i++) {
    const overlapped = file.ioctlOverlapped(EchoCode.echo, u32(i), 4, same);
    if (overlapped.completed && overlapped.status === Status.INSUFFICIENT_RESOURCES) {
      refused++;
      file.ioctl(EchoCode.echo, null, 0); // until the kernel has caught up
    }
  }
  assert.ok(refused < 10_000 / 8, `${refused} requests found no slot`);
  file.ioctl(EchoCode.echo, null, 0); // requests are completed in order: all have completed
  // Deliveries need turns of the event loop. A leaked slot would stay outstanding forever.
  for (const timeout = AbortSignal.timeout(HANG_MS); kernel.outstanding > 0 && !timeout.aborted; ) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.is(kernel.outstanding, 0);
  assert.ok(
    [...kernel.channel.states].every((state) => state === 0),
    'every slot is free',
  );
});

door('a table full of pending requests still lets a program cancel and close', async () => {
  const kernel = start({}, 64);
  const file = kernel.open(device);
  const pending = Array.from({ length: 80 }, () => file.ioctlOverlapped(EchoCode.pend, null, 0, same));
  const refused = pending.filter((p) => p.completed);
  assert.is(refused.length, 80 - 56);
  for (const p of refused) assert.is(p.status, Status.INSUFFICIENT_RESOURCES);
  assert.equal(file.ioctl(EchoCode.echo, u32(1), 4), u32(1));
  file.close();
  for (const p of pending)
    assert.ok([Status.CANCELED, Status.INSUFFICIENT_RESOURCES].includes((await outcome(p)) as never));
});

door(
  'a kernel that ends completes everything pending with DEVICE_REMOVED, and later requests too',
  async () => {
    const kernel = start();
    const file = kernel.open(device);
    const pending = Array.from({ length: 20 }, () => file.ioctlOverlapped(EchoCode.pend, null, 0, same));
    await kernel.terminate();
    for (const p of pending) assert.is(await outcome(p), Status.DEVICE_REMOVED);
    throwsStatus(() => file.ioctl(EchoCode.echo, null, 0), Status.DEVICE_REMOVED);
    throwsStatus(() => kernel.open(device), Status.DEVICE_REMOVED);
    file.close();
  },
);

door('a kernel that crashes wakes a blocked thread with the reason', () => {
  const kernel = start();
  const file = kernel.open(device);
  const why = /the test requested a crash/;
  throwsStatus(() => file.ioctl(EchoCode.crash, null, 0), Status.DEVICE_REMOVED, why);
  assert.match(refusal(() => kernel.open(device)).message, why);
  assert.is(kernel.ended, true, 'a new kernel may take its place');
});

door('a kernel that cannot start reports the reason and can be replaced', () => {
  const kernel = new SoftKernel({ ...resolveKernelOptions({}), window: 0 });
  kernels.push(kernel);
  assert.is(kernel.ended, false);
  const why = /did not start.*window/s;
  throwsStatus(() => kernel.open('\\\\.\\WinVerbs'), Status.DEVICE_NOT_READY, why);
  assert.is(kernel.ended, true);
});

door('refused options end the thread that was started during the check', async () => {
  const started = once(process, 'worker') as Promise<[Worker]>;
  const refuse = (): never => {
    throw new Error('these options are refused');
  };
  assert.throws(() => new SoftKernel(refuse), /these options are refused/);
  const [thread] = await started;
  // The door does not wait for options that never arrive.
  await once(thread, 'exit');
});

door('a refused open does not end the kernel', () => {
  const kernel = new SoftKernel(resolveKernelOptions({}));
  kernels.push(kernel);
  throwsStatus(() => kernel.open('\\\\.\\nothing'), Status.OBJECT_NAME_NOT_FOUND);
  assert.is(kernel.ended, false);
  kernel.open('\\\\.\\WinVerbs').close();
});

door('a missing addon is reported with the cure', () => {
  const run = runProgram('', { NETWORKDIRECT_HCA_ADDON: './no-such.node' });
  assert.is(run.status, 1);
  assert.match(run.stderr, 'npx networkdirect build');
});

door(
  'an addon that was not built here comes from the platform package, however package managers report its absence',
  () => {
    const addon = fileURLToPath(new URL('../../../build/Release/networkdirect_hca.node', import.meta.url));
    const index = new URL('../../kernel-bridge/index.js', import.meta.url).href;
    // Yarn's resolver reports a different message than that of Node.js.
    const program = `
    import Module from 'node:module';
    const { _resolveFilename: resolve } = Module;
    Module._resolveFilename = (request, ...rest) => {
      if (request.startsWith('@networkdirect/')) return ${JSON.stringify(addon)};
      if (!request.endsWith('.node')) return resolve(request, ...rest);
      throw Object.assign(new Error('Qualified path resolution failed'), { code: 'MODULE_NOT_FOUND' });
    };
    const { allocate } = await import('${index}');
    console.log(allocate(8).length);`;
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      encoding: 'utf8',
    });
    assert.is(stdout, '8\n', stderr);
  },
);

door('the addon is loaded when the soft kernel is opened, not when the package is imported', () => {
  const index = (folder: string) => new URL(`../../${folder}/index.js`, import.meta.url).href;
  const program = `
    await import('${index('nd')}');
    await import('${index('winverbs')}');
    const { allocate, openDeviceFile } = await import('${index('kernel-bridge')}');
    console.log('imported');
    for (const use of [() => openDeviceFile('\\\\\\\\.\\\\ibat'), () => allocate(1)]) {
      try { use(); } catch (error) { console.log(error.message); }
    }`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    env: { ...process.env, NETWORKDIRECT_HCA_ADDON: './no-such.node' },
  });
  assert.is(status, 0, stderr);
  assert.match(
    stdout,
    /^imported\n(The software HCA's native addon cannot be loaded [^\n]*npx networkdirect build\n){2}$/,
  );
});

door('a capture that cannot be written is reported on stderr', async () => {
  const index = new URL('../../kernel-bridge/index.js', import.meta.url).href;
  const program = `import { openDeviceFile } from '${index}'; openDeviceFile('\\\\\\\\.\\\\ibat'); setInterval(() => {}, 1000);`;
  const capture = '/dev/null/no-such-folder.pcapng';
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    env: { ...process.env, ND_OPTIONS: JSON.stringify({ capture }) },
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  const told = `The capture file '${capture}' cannot be written`;
  let text = '';
  for await (const chunk of child.stderr) {
    text += chunk;
    if (text.includes(told)) child.kill();
  }
  assert.match(text, told);
});

door('a kernel that does not load is reported at once to a blocked open', () => {
  const begun = performance.now();
  const kernel = start({ capture: 'fail-to-load' });
  throwsStatus(() => kernel.open(device), Status.DEVICE_REMOVED, /this kernel does not want to load/);
  assert.ok(performance.now() - begun < 10_000);
});

door('a kernel that hangs is abandoned after startTimeoutMs', () => {
  const options = resolveKernelOptions({});
  const kernel = new SoftKernel(options, { entry });
  kernels.push(kernel);
  const file = kernel.open(device);
  // This is set after the start, whose duration is not tested.
  Object.assign(options, { startTimeoutMs: 200 });
  const hung = file.ioctlOverlapped(EchoCode.hang, null, 0, same);
  throwsStatus(() => kernel.open(device), Status.IO_TIMEOUT);
  file.close();
  assert.is(hung.completed, false);
});

long(door, 'many Workers with their own kernels, at once', async () => {
  const source = `
    import { parentPort, workerData } from 'node:worker_threads';
    const { SoftKernel } = await import(workerData.kernel);
    const { resolveKernelOptions } = await import(workerData.options);
    const kernel = new SoftKernel(resolveKernelOptions({}), { entry: new URL(workerData.entry) });
    const file = kernel.open(workerData.device);
    let sum = 0;
    for (let i = 0; i < 300; i++) sum += file.ioctl(1, new Uint8Array([i & 255]), 1)[0];
    const more = await Promise.all(Array.from({ length: 300 }, (_, i) =>
      file.ioctlOverlapped(1, new Uint8Array([i & 255]), 1, (out) => out[0])));
    for (const value of more) sum += value;
    parentPort.postMessage(sum);
    if (workerData.leave === 'pending') file.ioctlOverlapped(2, null, 0, (out) => out);
    else file.close();
  `;
  const base = '../../kernel-bridge/door/soft/';
  const expected = 2 * Array.from({ length: 300 }, (_, i) => i & 255).reduce((a, b) => a + b, 0);
  const workers = Array.from({ length: 6 }, (_, i) => {
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`), {
      workerData: {
        kernel: new URL(`${base}soft-kernel.js`, import.meta.url).href,
        options: new URL(`${base}resolve-options.js`, import.meta.url).href,
        entry: entry.href,
        device,
        leave: i % 2 === 0 ? 'pending' : 'closed',
      },
    });
    return { worker, ended: once(worker, 'exit'), sum: once(worker, 'message') };
  });
  for (const [i, { worker, ended, sum }] of workers.entries()) {
    assert.is((await sum)[0], expected);
    if (i % 2 === 0) await worker.terminate();
    await ended;
  }
});

door('closing a channel on the user side notifies the kernel, and everything ends', async () => {
  const kernel = start();
  const file = kernel.open(device);
  const pending = file.ioctlOverlapped(EchoCode.pend, null, 0, same);
  kernel.channel.close();
  assert.is(await outcome(pending), Status.DEVICE_REMOVED);
  assert.is(kernel.channel.submit(ChannelMajor.create, 0, 0, null, 0, false) >= 0, true);
});

function runProgram(
  body: string,
  environment: Record<string, string> = {},
): { status: number | null; stdout: string; stderr: string } {
  const base = new URL('../../kernel-bridge/door/soft/', import.meta.url).href;
  const program = `
    import { SoftKernel } from '${base}soft-kernel.js';
    import { resolveKernelOptions } from '${base}resolve-options.js';
    const kernel = new SoftKernel(resolveKernelOptions({}), { entry: new URL('${entry.href}') });
    const file = kernel.open(${JSON.stringify(device)});
    const same = (out) => out;
    ${body}
  `;
  const run = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    timeout: 20_000,
    encoding: 'utf8',
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    env: { ...process.env, ...environment },
  });
  return { status: run.status, stdout: run.stdout, stderr: run.stderr };
}

long(door, 'a process ends by itself when nothing is pending, and waits for what is', () => {
  const idle = runProgram(`console.log('idle');`);
  assert.equal(idle, { status: 0, stdout: 'idle\n', stderr: '' });
  const observed = runProgram(`
    const p = file.ioctlOverlapped(${EchoCode.pend}, new Uint8Array([5]), 1, same);
    setTimeout(() => file.ioctl(${EchoCode.releaseAll}, null, 4), 50).unref();
    setTimeout(() => {}, 60);
    console.log('value', (await p)[0]);
  `);
  assert.equal(observed, { status: 0, stdout: 'value 5\n', stderr: '' });
});

door('a failed Overlapped that is never awaited causes no unhandledRejection', () => {
  const run = runProgram(`
    const p = file.ioctlOverlapped(${EchoCode.fail}, new Uint8Array([2, 1, 0, 0]), 0, same);
    const mapped = p.map((value) => value);
    process.on('exit', () => console.log(p.status.toString(16), mapped.status.toString(16)));
  `);
  assert.equal(run, { status: 0, stdout: '102 102\n', stderr: '' });
});

door('process.exit with requests pending and files open ends cleanly', () => {
  const run = runProgram(`
    file.ioctlOverlapped(${EchoCode.pend}, null, 0, same);
    kernel.open(${JSON.stringify(device)});
    process.exit(7);
  `);
  assert.equal(run, { status: 7, stdout: '', stderr: '' });
});

door('an exception in a completion is an uncaughtException', () => {
  const run = runProgram(`
    process.on('uncaughtException', (error) => console.log('caught', error.message));
    file.ioctlOverlapped(${EchoCode.echo}, null, 0, same).then(() => { throw new Error('mine'); });
  `);
  assert.equal(run, { status: 0, stdout: 'caught mine\n', stderr: '' });
});

door.run();
