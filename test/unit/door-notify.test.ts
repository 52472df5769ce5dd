import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { DeviceFile } from '../../kernel-bridge/door/device-file.js';
import { resolveKernelOptions } from '../../kernel-bridge/door/soft/resolve-options.js';
import { SoftKernel } from '../../kernel-bridge/door/soft/soft-kernel.js';
import { loadAddon } from '../../kernel-bridge/hca/index.js';
import { Status, type StatusError } from '../../kernel-bridge/ioctl/status.js';
import { abi } from '../../kernel-bridge/schema/generated/ring.js';
import { EchoCode, echoQueues } from '../fixtures/echo-codes.js';

const addon = loadAddon();

const entry = new URL('../fixtures/echo-kernel.js', import.meta.url);
const none = (): void => {};
const u32 = (...values: number[]): Uint8Array => new Uint8Array(new Uint32Array(values).buffer);
const words = (bytes: Uint8Array): number[] => [...new Uint32Array(bytes.slice().buffer)];

/** A QP in ERROR and its CQ. Every posted Receive completes immediately, flushed. */
class Queues {
  readonly cq: number;
  readonly #cqWords: Int32Array;
  readonly #qpWords: Int32Array;
  readonly #qp: number;

  constructor(readonly file: DeviceFile) {
    file.ioctl(EchoCode.memory, null, 8); // opens the HCA: rings need it
    const { cqEntries, entries, sendStride, receiveStride } = echoQueues;
    const cqRing = addon.allocateRing(abi.cqHeaderBytes + cqEntries * abi.cqeBytes);
    const qpRing = addon.allocateRing(abi.qpHeaderBytes + entries * (sendStride + receiveStride));
    const addresses = new Uint8Array(new Float64Array([cqRing.address, qpRing.address]).buffer);
    const [cq = 0, qp = 0] = words(file.ioctl(EchoCode.createQueues, addresses, 8));
    this.cq = cq;
    this.#cqWords = new Int32Array(cqRing.buffer);
    this.#qpWords = new Int32Array(qpRing.buffer);
    this.#qp = qp;
  }

  /** Posts one Receive, which completes immediately. */
  completeOne(): void {
    Atomics.add(this.#qpWords, abi.qpReceiveProducer, 1);
    addon.doorbell[0] = this.#qp;
    addon.ringDoorbell();
  }

  /** Consumes all completions. Returns the status of the first one. */
  take(): number {
    const slot = Atomics.load(this.#cqWords, abi.cqConsumer) & (echoQueues.cqEntries - 1);
    const status = this.#cqWords[abi.cqHeaderBytes / 4 + (slot * abi.cqeBytes) / 4 + abi.cqeStatus];
    Atomics.store(this.#cqWords, abi.cqConsumer, Atomics.load(this.#cqWords, abi.cqProducer));
    return status ?? -1;
  }
}

const notify = suite('completion queue events through the door');
let kernel: SoftKernel;
notify.before.each(() => {
  kernel = new SoftKernel(resolveKernelOptions({}), { entry });
});
notify.after.each(async () => {
  await kernel.terminate();
});

notify('the HCA completes the request itself, and the kernel forgets the waiter', async () => {
  const file = kernel.open('\\\\.\\Echo');
  const queues = new Queues(file);
  const waiter = file.ioctlOverlapped(EchoCode.waitCq, u32(queues.cq), 0, none);
  file.ioctl(EchoCode.echo, null, 0);
  assert.is(waiter.completed, false);
  assert.is(addon.armCq(queues.cq, false), Status.SUCCESS);
  queues.completeOne();
  assert.is(queues.take(), 4, 'flushed');
  assert.is(waiter.completed, true, 'it is complete before the doorbell returns');
  await waiter;
  let waiting = 1;
  while (waiting > 0) waiting = words(file.ioctl(EchoCode.counts, null, 64))[3] ?? 0;
});

notify('an event without a waiter is kept for the next one', () => {
  const file = kernel.open('\\\\.\\Echo');
  const queues = new Queues(file);
  addon.armCq(queues.cq, false);
  queues.completeOne();
  file.ioctlOverlapped(EchoCode.waitCq, u32(queues.cq), 0, none).getResult({ wait: true });
});

notify('a cancelled waiter consumes no event of the next one', () => {
  const file = kernel.open('\\\\.\\Echo');
  const queues = new Queues(file);
  const cancelled = file.ioctlOverlapped(EchoCode.waitCq, u32(queues.cq), 0, none);
  cancelled.cancel();
  assert.throws(
    () => cancelled.getResult({ wait: true }),
    (error: StatusError) => error.status === Status.CANCELED,
  );
  const next = file.ioctlOverlapped(EchoCode.waitCq, u32(queues.cq), 0, none);
  file.ioctl(EchoCode.echo, null, 0);
  addon.armCq(queues.cq, false);
  queues.completeOne();
  next.getResult({ wait: true });
});

notify('the HCA and the kernel may complete a request at the same moment: one of them wins', () => {
  const file = kernel.open('\\\\.\\Echo');
  const queues = new Queues(file);
  const outcomes = { native: 0, kernel: 0 };
  for (let round = 0; round < 2000; round++) {
    const waiter = file.ioctlOverlapped(EchoCode.waitCq, u32(queues.cq), 0, none);
    file.ioctl(EchoCode.echo, null, 0); // the waiter is in place
    addon.armCq(queues.cq, false);
    const race = file.ioctlOverlapped(EchoCode.race, null, 4, words);
    // In some rounds the HCA has a head start, in others the kernel.
    while (round % 4 === 0 && !waiter.completed);
    for (let spin = (round * 7) % 400; spin > 0; spin--) Atomics.load(kernel.channel.states, 0);
    queues.completeOne();
    race.getResult({ wait: true });
    try {
      waiter.getResult({ wait: true });
      outcomes.native++;
    } catch (error) {
      assert.is((error as StatusError).status, Status.CANCELED);
      outcomes.kernel++;
    }
    queues.take(); // completions that the consumer has polled raise no event in the next round
  }
  assert.is(outcomes.native + outcomes.kernel, 2000);
  assert.ok(outcomes.native > 0 && outcomes.kernel > 0, JSON.stringify(outcomes));
});

notify(
  'a kernel that ends completes CQ waiters with DEVICE_REMOVED, and the doorbell stays harmless',
  async () => {
    const file = kernel.open('\\\\.\\Echo');
    const queues = new Queues(file);
    const waiter = file.ioctlOverlapped(EchoCode.waitCq, u32(queues.cq), 0, none);
    await kernel.terminate();
    assert.throws(
      () => waiter.getResult({ wait: true }),
      (error: StatusError) => error.status === Status.DEVICE_REMOVED,
    );
    queues.completeOne();
    addon.progress();
    assert.is(addon.armCq(queues.cq, false), Status.INVALID_HANDLE);
  },
);

notify('memory: pinned ranges are counted and released; memory that cannot be pinned is refused', () => {
  const file = kernel.open('\\\\.\\Echo');
  const ranges = (): number => words(file.ioctl(EchoCode.memory, null, 8))[0] ?? -1;
  const before = ranges();
  const shared = new Uint8Array(new SharedArrayBuffer(4096)).subarray(16, 32);
  const pins = [new Uint8Array(64), shared, Buffer.alloc(10)].map((view) => addon.pin(view));
  for (const pin of pins) {
    assert.is(pin.status, Status.SUCCESS);
    assert.ok(Number.isSafeInteger(pin.address) && pin.address > 0);
  }
  assert.equal(
    pins.map(({ detachable }) => detachable),
    [true, false, true],
  );
  assert.is(ranges(), before + 3);
  for (const { pin } of pins) addon.unpin(pin);
  for (const { pin } of pins) addon.unpin(pin);
  assert.is(ranges(), before);
  const resizable = new (ArrayBuffer as unknown as new (n: number, o: object) => ArrayBuffer)(8, {
    maxByteLength: 64,
  });
  const gone = new Uint8Array(8);
  structuredClone(gone.buffer, { transfer: [gone.buffer] });
  // Members of the buffer are not read, and no program code runs.
  for (const name of ['resizable', 'growable'])
    Object.defineProperty(resizable, name, { get: assert.unreachable });
  for (const wrong of [
    new Uint8Array(0),
    new Uint8Array(resizable),
    gone,
    new Uint16Array(4),
    'x',
    null,
    {},
  ]) {
    assert.is(addon.pin(wrong as Uint8Array).status, Status.INVALID_PARAMETER);
  }
});

notify('rings: sizes are checked, releasing twice is harmless, released memory stays readable', () => {
  const file = kernel.open('\\\\.\\Echo');
  file.ioctl(EchoCode.memory, null, 8);
  for (const wrong of [0, -1, 1.5, 2 ** 40, Number.NaN, '64']) {
    assert.throws(() => addon.allocateRing(wrong as number), /allocateRing/);
  }
  const ring = addon.allocateRing(4096);
  assert.is(ring.address % 64, 0);
  assert.ok(new Uint8Array(ring.buffer).every((byte) => byte === 0));
  addon.releaseRing(ring.address);
  addon.releaseRing(ring.address);
  new Uint8Array(ring.buffer).fill(1);
  assert.is(new Uint8Array(ring.buffer)[4095], 1);
});

notify.run();
