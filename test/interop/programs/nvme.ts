// The initiator of nd/cli/nvme against a target of Linux: node nvme.js exercise|survive ADDRESS NQN
import { createHash, randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { NvmeController } from '../../../nd/cli/nvme/index.js';

const [, , behaviour, host, nqn] = process.argv as string[];
const MEGABYTE = 1 << 20;

const check = (right: boolean, what: string): void => {
  if (!right) throw new Error(`${what}: the data differ`);
};

if (behaviour === 'exercise') await exercise();
else await survive();

async function exercise(): Promise<void> {
  const found = await NvmeController.discover({ host: host! });
  if (!found.some(({ subsystem }) => subsystem === nqn)) throw new Error(`Discovery names no ${nqn}.`);
  const controller = await NvmeController.connect({
    host: host!,
    subsystem: nqn!,
    queues: 4,
    keepAliveMs: 5000,
  });
  const disk = await controller.open();
  console.log(
    `${controller.identity.model}: ${controller.ioQueues} queues, ${disk.blocks} blocks of ${disk.blockSize}`,
  );
  const bytes = randomBytes(4 * MEGABYTE);
  // Lengths from one block, which fits in the capsule, to several commands, aligned and unaligned.
  await disk.write(bytes, 0, 3 * MEGABYTE, 0);
  for (const [at, length] of [
    [3 * MEGABYTE, 512],
    [3 * MEGABYTE + 512, 8192],
    [3 * MEGABYTE + 8704, 77],
  ] as const) {
    await disk.write(bytes, at, length, at);
  }
  const rest = 3 * MEGABYTE + 8781;
  await pipeline([bytes.subarray(rest)], disk.createWriteStream({ start: rest }));
  await disk.sync();
  check((await buffer(disk.createReadStream({ end: bytes.length }))).equals(bytes), 'stream');
  const lent = new Uint8Array(MEGABYTE);
  await controller.register(lent);
  await disk.read(lent, 0, MEGABYTE, 2 * MEGABYTE);
  check(bytes.subarray(2 * MEGABYTE, 3 * MEGABYTE).equals(lent), 'lent memory');
  const small = await Promise.all(
    Array.from({ length: 200 }, (_, n) => disk.read(Buffer.alloc(512), 0, 512, 512 * n)),
  );
  check(Buffer.concat(small.map((one) => one.buffer)).equals(bytes.subarray(0, 200 * 512)), 'at once');
  await controller.close();
  console.log(`sha256 ${createHash('sha256').update(bytes).digest('hex')}`);
}

async function survive(): Promise<void> {
  const controller = await NvmeController.connect({ host: host!, subsystem: nqn!, reconnectMs: 200 });
  controller.on('lost', () => console.log('lost'));
  let back = false;
  controller.on('reconnected', () => {
    back = true;
    console.log('reconnected');
  });
  const disk = await controller.open();
  const bytes = randomBytes(MEGABYTE);
  console.log('writing');
  let rounds = 0;
  // Continues until a round has started and ended on the new connection.
  for (let last = false; !last; rounds += 1) {
    last = back;
    await disk.write(bytes, 0, bytes.length, (rounds % 4) * MEGABYTE);
  }
  const { buffer: read } = await disk.read(
    Buffer.alloc(MEGABYTE),
    0,
    MEGABYTE,
    ((rounds - 1) % 4) * MEGABYTE,
  );
  check(read.equals(bytes), 'after the loss');
  await controller.close();
  console.log(`verified after ${rounds} rounds`);
}
