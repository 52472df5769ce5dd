// RPC between worker threads of one process, by name. The serving thread is terminated during a request. The caller gets ECONNRESET, and
// then ECONNREFUSED as long as no thread listens under the name.
//
//   node dist/examples/recipes/rpc-threads.js
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { type Channel, connectChannel, createChannelServer, NetError } from 'networkdirect/net';

/** Functions that other threads can call by name. */
const functions: Readonly<Record<string, (...numbers: number[]) => unknown>> = {
  sum: (...numbers) => numbers.reduce((sum, number) => sum + number, 0),
  // The function never completes, so that the end of the thread interrupts it.
  stuck: () => new Promise(() => {}),
};

async function serve(name: string): Promise<void> {
  const server = createChannelServer((channel) => {
    channel.onRequest(async (bytes) => {
      const [what, ...numbers] = JSON.parse(String(bytes)) as [string, ...number[]];
      if (!Object.hasOwn(functions, what)) throw new Error(`unknown function ${what}`);
      return JSON.stringify(await functions[what]!(...numbers));
    });
  });
  server.listen({ name });
  await once(server, 'listening');
  parentPort!.postMessage('ready');
}

const call = async (channel: Channel, what: string, ...numbers: number[]): Promise<unknown> =>
  JSON.parse(String(await channel.request(JSON.stringify([what, ...numbers]))));

/** The code of the error that a promise rejects with, and the message of a remote error. */
async function failure(promise: Promise<unknown>): Promise<string> {
  try {
    return `no error, but ${await promise}`;
  } catch (error) {
    if (!(error instanceof NetError)) throw error;
    return error.code === 'ERR_REMOTE' ? `${error.code}, ${error.message}` : error.code;
  }
}

async function main(): Promise<void> {
  const name = `numbers-${process.pid}`;
  const start = async (): Promise<Worker> => {
    const worker = new Worker(new URL(import.meta.url), { workerData: name });
    await once(worker, 'message');
    return worker;
  };
  const first = await start();
  const channel = await connectChannel({ name });
  console.log(`1 + 2 + 3 = ${await call(channel, 'sum', 1, 2, 3)}`);
  console.log(`an unknown function: ${await failure(call(channel, 'product', 2, 3))}`);
  const stuck = failure(call(channel, 'stuck'));
  await first.terminate();
  console.log(`the thread ended during a request: ${await stuck}`);
  console.log(`without a thread: ${await failure(connectChannel({ name }))}`);
  const second = await start();
  await using again = await connectChannel({ name });
  console.log(`with the next thread: 4 + 5 = ${await call(again, 'sum', 4, 5)}`);
  await again.close();
  await second.terminate();
}

if (isMainThread) await main();
else await serve(workerData as string);
