/** A block device that is a kernel driver. It serves requests while the thread of the program that loaded it is blocked. */

import { rejects } from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type BlockBuffer, BlockClient } from '../../examples/block-device/client.js';
import { DEVICE_FILE, QUERY, QUERY_BYTES } from '../../examples/block-device/protocol.js';
import { loadDriver, openDeviceFile, readCounters, unloadDriver } from '../../kernel-bridge/index.js';
import { long } from '../helpers/tiers.js';

const test = suite('block device');
const ADDRESS = '127.0.0.1';
const server = fileURLToPath(new URL('../../examples/block-device/server.js', import.meta.url));
const children = new Set<ChildProcess>();
test.after.each(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});

/** Starts a program that loads the device and blocks its only thread. Resolves to the device's port. */
async function blockedServer(): Promise<number> {
  const child = fork(server, [ADDRESS]);
  children.add(child);
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return port;
}

/** Bytes that identify a block and a client. */
function fill(bytes: Uint8Array, client: number, block: number, blockSize: number): void {
  for (let n = 0; n < bytes.length; n++) {
    bytes[n] = (client * 31 + (block + Math.floor(n / blockSize)) * 7 + (n % blockSize)) & 0xff;
  }
}

test('reads and writes of several clients complete while the device’s program is blocked', async () => {
  const port = await blockedServer();
  const clients = await Promise.all([0, 1, 2].map(() => BlockClient.connect(ADDRESS, port)));
  await Promise.all(
    clients.map(async (client, index) => {
      const { blockSize } = client;
      assert.equal([blockSize, client.blocks], [512, 1024]);
      const buffer = client.buffer(16 * blockSize);
      const expected = new Uint8Array(16 * blockSize);
      for (let round = 0; round < 10; round++) {
        const block = index * 320 + round * 16;
        fill(buffer.bytes, index, block, blockSize);
        expected.set(buffer.bytes);
        await client.write(buffer, block, 16);
        buffer.bytes.fill(0);
        await client.read(buffer, block, 16);
        assert.equal(buffer.bytes, expected);
      }
      await rejects(() => client.read(buffer, 1020, 5), /these blocks do not exist/);
      await rejects(() => client.ask(9, buffer, 0, 1), /does not support this request/);
      await client.read(buffer, 1019, 5);
    }),
  );
  // One client reads blocks that another one has written.
  const [first, , last] = clients;
  const [theirs, mine] = [first!.buffer(512), last!.buffer(512)];
  await first!.read(theirs, 640, 1);
  await last!.read(mine, 640, 1);
  assert.equal(theirs.bytes, mine.bytes);
  assert.ok(theirs.bytes.some((byte) => byte !== 0));
  for (const client of clients) await client.close();
});

/** A buffer whose key the client does not own. */
function foreignOf(buffer: BlockBuffer): BlockBuffer {
  const foreign = { ...buffer, bytes: buffer.bytes, region: { ...buffer.region, rkey: 1, address: 4096 } };
  return Object.setPrototypeOf(foreign, Object.getPrototypeOf(buffer)) as BlockBuffer;
}

test('a client that sends an invalid address loses its connection, and other clients keep theirs', async () => {
  const port = await blockedServer();
  const good = await BlockClient.connect(ADDRESS, port);
  const bad = await BlockClient.connect(ADDRESS, port);
  const foreign = foreignOf(bad.buffer(512));
  await rejects(() => bad.read(foreign, 0, 1));
  const fine = good.buffer(512);
  fill(fine.bytes, 1, 1, 512);
  await good.write(fine, 3, 1);
  await good.close();
});

test('the device frees the resources of a failed connection while its client still has its own', async () => {
  const file = new URL('../../examples/block-device/driver.js', import.meta.url);
  const loaded = await loadDriver(file, { name: 'BlockDevice', parameters: { address: ADDRESS } });
  const opened = openDeviceFile(DEVICE_FILE);
  const [port = 0] = new Uint32Array(opened.ioctl(QUERY, null, QUERY_BYTES).slice().buffer);
  opened.close();
  const queuePairs = (): number => readCounters().objects.qp ?? 0;
  const before = queuePairs();
  const bad = await BlockClient.connect(ADDRESS, port);
  assert.is(queuePairs(), before + 2);
  await rejects(() => bad.read(foreignOf(bad.buffer(512)), 0, 1));
  const deadline = Date.now() + 5000;
  while (queuePairs() !== before + 1) assert.ok(Date.now() < deadline, 'the queue pair of the device');
  bad[Symbol.dispose]();
  await unloadDriver(loaded.name);
});

long(test, 'the device accepts as many clients as its queue has room for and rejects the next', async () => {
  const port = await blockedServer();
  const clients: BlockClient[] = [];
  for (let n = 0; n < 51; n++) clients.push(await BlockClient.connect(ADDRESS, port));
  await rejects(() => BlockClient.connect(ADDRESS, port), /refused the connection/);
  const [last] = clients.splice(-1);
  await last!.close();
  // The device is notified of the disconnect a little later.
  for (;;) {
    const next = await BlockClient.connect(ADDRESS, port).catch(() => undefined);
    if (next) {
      clients.push(next);
      break;
    }
  }
  const buffer = clients.at(-1)!.buffer(512);
  await clients.at(-1)!.write(buffer, 5, 1);
  for (const client of clients) await client.close();
});

test('unloading ends the connections and releases everything; the device can be loaded again', async () => {
  const file = new URL('../../examples/block-device/driver.js', import.meta.url);
  const parameters = { address: ADDRESS, blocks: 64, blockSize: 256 };
  const objects = () => ({ ...readCounters().objects, ring: 0 });
  const before = objects();
  for (let round = 0; round < 2; round++) {
    const loaded = await loadDriver(file, { name: 'BlockDevice', parameters });
    const opened = openDeviceFile(DEVICE_FILE);
    const [port = 0, blockSize, blocks] = new Uint32Array(
      opened.ioctl(QUERY, null, QUERY_BYTES).slice().buffer,
    );
    assert.equal([blockSize, blocks], [256, 64]);
    const client = await BlockClient.connect(ADDRESS, port);
    const buffer = client.buffer(256);
    await client.write(buffer, 0, 1);
    const [, , , served] = new Uint32Array(opened.ioctl(QUERY, null, QUERY_BYTES).slice().buffer);
    assert.is(served, 1);
    opened.close();
    await unloadDriver(loaded.name);
    await rejects(() => client.read(buffer, 0, 1));
    buffer.release();
    client[Symbol.dispose]();
  }
  assert.equal(objects(), before);
});

test.run();
