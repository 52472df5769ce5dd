// A process or a Worker that ends with objects and pending requests of a vendor's provider: nd2-ends-program.js WAY.
import { parentPort, Worker } from 'node:worker_threads';
import { openHost, openPair, openSide } from './vendor-host.js';

const way = process.argv[2];

/** Creates an object of each kind and a pending request of each kind. */
async function fill() {
  const host = openHost();
  const { a, b } = await openPair(host);
  const shared = host.adapter.createSharedReceiveQueue({ depth: 4 });
  const window = host.adapter.createMemoryWindow();
  b.queuePair.receive('r', b.sge(0, 100));
  const idle = openSide(host);
  const waiting = [
    a.inbound.notify('any'),
    b.inbound.notify('errors'),
    shared.notify(),
    a.notifyDisconnect(),
    host.listening.request(idle),
  ];
  return { host, a, b, shared, window, idle, waiting };
}

/** Releases everything that {@link fill} created, as a program should. */
async function end({ host, a, b, shared, window, idle, waiting }: Awaited<ReturnType<typeof fill>>) {
  const notified = b.notifyDisconnect();
  await a.disconnect();
  await notified;
  await b.disconnect();
  for (const object of [window, shared, a, b, idle, host]) object.release();
  await Promise.allSettled(waiting);
}

async function wait(): Promise<Awaited<ReturnType<typeof fill>>> {
  const filled = await fill();
  parentPort?.postMessage('waits');
  parentPort?.unref();
  return filled;
}

const ways: Readonly<Record<string, () => Promise<unknown>>> = {
  wait,
  exit: async () => {
    await wait();
    setTimeout(() => process.exit(7), 50);
  },
  throw: async () => {
    await wait();
    setTimeout(() => {
      throw new Error('on purpose');
    }, 50);
  },
  natural: async () => end(await wait()),
  blocked: async () => (await wait()).waiting[0]!.getResult({ wait: true }),
  // No request is pending, and nothing is released.
  left: async () => {
    const host = openHost();
    const { a, b } = await openPair(host);
    b.queuePair.receive('r', b.sge(0, 100));
    a.queuePair.send('s', a.sge(0, 100));
  },
  workers: async () => {
    const workers = [1, 2].map(() => new Worker(process.argv[1]!, { argv: ['wait'] }));
    const waiting = workers.map((worker) => new Promise((resolve) => worker.once('message', resolve)));
    await fill();
    await Promise.all(waiting);
    process.exit(7);
  },
};
await ways[way!]!();
