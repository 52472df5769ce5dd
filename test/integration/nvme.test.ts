/** NVMe over RDMA: this package's initiator against its target, in one process. */
import { rejects } from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { test } from 'uvu';
import * as assert from 'uvu/assert';
import {
  fileStore,
  memoryStore,
  NvmeController,
  type NvmeOptions,
  NvmeTarget,
  type Store,
} from '../../nd/cli/nvme/index.js';
import { runNd } from '../helpers/nd-tool.js';

const NQN = 'nqn.2026-11.io.example:disk';
const MEGABYTE = 1 << 20;
const ending: (() => Promise<void>)[] = [];

interface Serving {
  readonly store?: Store;
  readonly blockSize?: 512 | 4096;
  readonly hosts?: string[];
  readonly port?: number;
}

function serve({
  store = memoryStore(4 * MEGABYTE),
  port = 0,
  blockSize = 512,
  hosts,
}: Serving = {}): NvmeTarget {
  const subsystem = {
    nqn: NQN,
    namespaces: [{ store, blockSize }],
    ...(hosts === undefined ? {} : { hosts }),
  };
  const target = NvmeTarget.listen({ port, subsystems: [subsystem] });
  ending.unshift(() => target.close());
  return target;
}

async function connect({ port }: { port: number }, more: Partial<NvmeOptions> = {}): Promise<NvmeController> {
  const controller = await NvmeController.connect({ port, subsystem: NQN, ...more });
  ending.unshift(() => controller.close());
  return controller;
}

test.after.each(async () => {
  for (const end of ending.splice(0)) await end();
});

test('discovery lists the subsystems that a host may access', async () => {
  const target = serve({ hosts: ['nqn.2026-11.io.example:friend'] });
  const friend = { port: target.port, hostName: 'nqn.2026-11.io.example:friend' };
  const [entry, ...others] = await NvmeController.discover(friend);
  assert.equal(others, []);
  assert.is(entry?.subsystem, NQN);
  assert.is(entry?.address, '127.0.0.1');
  assert.is(entry?.service, String(target.port));
  assert.equal(await NvmeController.discover({ port: target.port }), []);
  await rejects(NvmeController.connect({ port: target.port, subsystem: NQN }), /CONNECT_INVALID_HOST/);
});

test('nd nvme info --json has the same data as its text', async () => {
  const { port } = serve({ blockSize: 4096 });
  const args = ['nvme', 'info', '127.0.0.1', '--nqn', NQN, '--port', String(port)];
  const [json, plain] = await Promise.all([runNd(...args, '--json'), runNd(...args)]);
  assert.equal([json.code, plain.code], [0, 0], json.stderr + plain.stderr);
  const { tool, subsystem, model, serial, firmware, ioQueues, transferBytes, namespaces } = JSON.parse(
    json.stdout,
  );
  assert.equal([tool, subsystem], ['nd nvme info', NQN]);
  assert.equal(namespaces, [{ id: 1, blocks: 1024, blockSize: 4096 }]);
  assert.equal(plain.stdout.trim().split('\n'), [
    `${model}, serial ${serial}, firmware ${firmware}`,
    `${ioQueues} I/O queues, ${transferBytes} bytes in one command`,
    'namespace 1: 1024 blocks of 4096 bytes',
  ]);
});

test('a controller reports its identity and has the requested queues', async () => {
  const controller = await connect(serve({ blockSize: 4096 }), { queues: 3 });
  assert.is(controller.identity.subsystem, NQN);
  assert.is(controller.ioQueues, 3);
  assert.equal(await controller.namespaces(), [1]);
  const { size, blocks, blockSize } = await controller.open(1);
  assert.equal([size, blocks, blockSize], [4 * MEGABYTE, 1024, 4096]);
  await rejects(controller.open(2), /Identify failed with INVALID_NAMESPACE/);
});

test('reads and writes at any position and of any length, on several queues', async () => {
  const disk = await (await connect(serve())).open();
  const expected = Buffer.alloc(disk.size);
  const places: [number, number][] = [
    [0, 512],
    [512, 4096],
    [100, 7],
    [511, 2],
    [1_000_001, 1_000_003],
    [65_536, 131_072],
    [disk.size - 5, 5],
  ];
  for (const [position, length] of places) {
    const bytes = randomBytes(length);
    bytes.copy(expected, position);
    assert.is((await disk.write(bytes, 0, length, position)).bytesWritten, length);
  }
  await disk.sync();
  const all = Buffer.alloc(disk.size);
  assert.is((await disk.read(all)).bytesRead, disk.size);
  assert.ok(all.equals(expected));
  for (const [position, length] of places) {
    const { buffer: read } = await disk.read(Buffer.alloc(length), 0, length, position);
    assert.ok(read.equals(expected.subarray(position, position + length)), `${length} at ${position}`);
  }
});

test('the end of the disk: a read is truncated, and a write is rejected', async () => {
  const disk = await (await connect(serve())).open();
  assert.is((await disk.read(Buffer.alloc(100), 0, 100, disk.size - 30)).bytesRead, 30);
  assert.is((await disk.read(Buffer.alloc(100), 0, 100, disk.size + 30)).bytesRead, 0);
  await rejects(
    disk.write(Buffer.alloc(100), 0, 100, disk.size - 30),
    /must end within the \d+ bytes of the disk/,
  );
  await rejects(disk.read(Buffer.alloc(10), 5, 6, 0), /must be at most 10, the length of the buffer/);
  await rejects(disk.read(Buffer.alloc(10), 0, 10, -1), /`position` must be .*; got -1/);
  await disk.close();
  await rejects(disk.read(Buffer.alloc(10)), /closed/);
});

test('many small writes at once, some to the same blocks', async () => {
  const disk = await (await connect(serve(), { queues: 4, depth: 4 })).open();
  const expected = randomBytes(100 * 300);
  const writes = Array.from({ length: 100 }, (_, n) => disk.write(expected, 300 * n, 300, 300 * n));
  await Promise.all(writes);
  const { buffer: read } = await disk.read(Buffer.alloc(expected.length));
  assert.ok(read.equals(expected));
});

test('lent memory is read and written in place', async () => {
  const controller = await connect(serve());
  const disk = await controller.open();
  const memory = new Uint8Array(2 * MEGABYTE);
  await controller.register(memory);
  const [from, into] = [memory.subarray(0, MEGABYTE), memory.subarray(MEGABYTE)];
  from.set(randomBytes(MEGABYTE));
  await disk.write(from, 0, MEGABYTE, 8192);
  await disk.read(into, 0, MEGABYTE, 8192);
  assert.equal(Buffer.compare(from, into), 0);
});

test('streams: written, read, and both', async () => {
  const disk = await (await connect(serve())).open();
  const bytes = randomBytes(2 * MEGABYTE + 77);
  await pipeline(
    [bytes.subarray(0, MEGABYTE), bytes.subarray(MEGABYTE)],
    disk.createWriteStream({ start: 1000 }),
  );
  const part = { start: 1000, end: 1000 + bytes.length };
  assert.ok((await buffer(disk.createReadStream(part))).equals(bytes));
  const both = disk.createDuplex({ start: 0, end: 1000 });
  both.end(bytes.subarray(0, 1000));
  await once(both, 'finish');
  assert.ok((await buffer(disk.createDuplex({ start: 0, end: 1000 }))).equals(bytes.subarray(0, 1000)));
  const beyond = pipeline([Buffer.alloc(100)], disk.createWriteStream({ start: disk.size - 50 }));
  await rejects(beyond, /must not extend beyond byte/);
});

test('a file as the disk: it contains the data after a flush', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'nvme-'));
  const path = join(folder, 'disk');
  try {
    await rejects(fileStore(path), /is empty. Specify its size/);
    const disk = await (await connect(serve({ store: await fileStore(path, MEGABYTE) }))).open();
    const bytes = randomBytes(MEGABYTE);
    await disk.write(bytes);
    await disk.sync();
    assert.is(hash(readFileSync(path)), hash(bytes));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('several hosts have their own controllers on one disk', async () => {
  const target = serve();
  const [a, b] = await Promise.all([connect(target), connect(target)]);
  assert.is.not(a.identity.controllerId, b.identity.controllerId);
  assert.is(target.hosts, 2);
  const bytes = randomBytes(10_000);
  await (await a.open()).write(bytes);
  const { buffer: read } = await (await b.open()).read(Buffer.alloc(10_000));
  assert.ok(read.equals(bytes));
  const gone = once(target, 'gone');
  await a.close();
  await gone;
  assert.is(target.hosts, 1);
});

test('a failing store: the host gets a status, and the next command works', async () => {
  const store = memoryStore(MEGABYTE);
  let fails = true;
  const broken: Store = {
    ...store,
    read: (into, position) => (fails ? Promise.reject(new Error('bad sector')) : store.read(into, position)),
  };
  const target = serve({ store: broken });
  const disk = await (await connect(target)).open();
  const failure = once(target, 'failure');
  await rejects(disk.read(Buffer.alloc(512)), /Read failed with INTERNAL_ERROR/);
  assert.match(String((await failure)[0]), /bad sector/);
  fails = false;
  assert.is((await disk.read(Buffer.alloc(512))).bytesRead, 512);
});

test('a target that is lost and restarted: pending and queued commands are then executed', async () => {
  const memory = memoryStore(MEGABYTE);
  let holds = false;
  let reached = (): void => {};
  const store: Store = {
    ...memory,
    close: async () => {},
    write: (from, position) => {
      if (!holds) return memory.write(from, position);
      reached();
      return new Promise(() => {});
    },
  };
  const first = serve({ store });
  const { port } = first;
  const controller = await connect(first, { reconnectMs: 10 });
  const disk = await controller.open();
  const bytes = randomBytes(300_000);
  holds = true;
  const underWay = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const interrupted = disk.write(bytes, 0, 102_400, 0);
  await underWay;
  const lost = once(controller, 'lost');
  const back = once(controller, 'reconnected');
  await first.close();
  await lost;
  const waiting = disk.write(bytes, 102_400, bytes.length - 102_400, 102_400);
  holds = false;
  serve({ store, port });
  await Promise.all([back, interrupted, waiting]);
  const { buffer: read } = await disk.read(Buffer.alloc(bytes.length));
  assert.ok(read.equals(bytes));
});

test('a target that does not return: pending and later commands fail', async () => {
  const target = serve();
  const controller = await connect(target, { reconnectMs: 10, reconnectForMs: 200 });
  const disk = await controller.open();
  const closed = once(controller, 'closed');
  await target.close();
  await rejects(disk.read(Buffer.alloc(512)), /reconnecting failed/);
  await closed;
  await rejects(disk.read(Buffer.alloc(512)), /reconnecting failed/);
});

test('invalid options are rejected by name', async () => {
  await rejects(NvmeController.connect({ subsystem: 'disk' }), /begins with nqn/);
  assert.throws(() => NvmeTarget.listen({ port: 0, subsystems: [] }), /subsystems/);
  const target = serve();
  const other = { port: target.port, subsystem: 'nqn.2026-11.io.example:other' };
  await rejects(NvmeController.connect(other), /CONNECT_INVALID_PARAMETERS/);
});

const hash = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

test.run();
