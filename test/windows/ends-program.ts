// A process or a Worker that ends with pending requests: ends-program.js WAY.
import { Worker } from 'node:worker_threads';
import { openDeviceFile } from '../../kernel-bridge/index.js';
import { TestCode, u32, WINVERBS } from './standin.js';

const way = process.argv[2];
const file = openDeviceFile(WINVERBS);
const wait = () => file.ioctlOverlapped(TestCode.PEND, u32(0), 4, () => undefined);

if (way === 'blocked') {
  wait().getResult({ wait: true });
} else if (way === 'workers') {
  const workers = [1, 2, 3].map(() => new Worker(process.argv[1]!, { argv: ['wait'] }));
  wait();
  await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('message', resolve))));
  process.exit(7);
} else {
  for (let i = 0; i < 10; i++) wait();
  const { parentPort } = await import('node:worker_threads');
  parentPort?.postMessage('waits');
  parentPort?.unref();
  if (way === 'exit') setTimeout(() => process.exit(7), 50);
  if (way === 'throw')
    setTimeout(() => {
      throw new Error('on purpose');
    }, 50);
}
