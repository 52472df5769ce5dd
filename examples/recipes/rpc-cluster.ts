// RPC between workers of a cluster, by name. The serving worker is killed during a request. The caller gets ECONNRESET, calls the worker
// that the primary process has started as a replacement, and gets its reply.
//
//   node dist/examples/recipes/rpc-cluster.js
import cluster from 'node:cluster';
import { once } from 'node:events';
import { connectChannel, createChannelServer, NetError } from 'networkdirect/net';

const NAME = `squares-${cluster.isPrimary ? process.pid : process.ppid}`;

async function primary(): Promise<void> {
  const serve = async () => {
    const worker = cluster.fork({ ROLE: 'serve' });
    await once(worker, 'message');
    return worker;
  };
  const first = await serve();
  const caller = cluster.fork({ ROLE: 'call' });
  // The caller has sent a request that never gets a reply.
  await once(caller, 'message');
  first.process.kill('SIGKILL');
  await once(first, 'exit');
  const second = await serve();
  caller.send('go on');
  const [code] = await once(caller, 'exit');
  second.kill();
  process.exitCode = code;
}

async function serve(): Promise<void> {
  const server = createChannelServer((channel) => {
    channel.onRequest((bytes) => {
      const number = Number(String(bytes));
      // The handler never completes, so that the death of this process interrupts it.
      return number < 0 ? new Promise(() => {}) : String(number ** 2);
    });
  });
  server.listen({ name: NAME });
  await once(server, 'listening');
  process.send!('ready');
}

async function call(): Promise<void> {
  const channel = await connectChannel({ name: NAME });
  console.log(`3 squared is ${await channel.request('3')}`);
  const request = channel.request('-1');
  process.send!('asked');
  const [error] = await Promise.all([request.catch((reason: unknown) => reason), once(process, 'message')]);
  if (!(error instanceof NetError)) throw error;
  console.log(`the worker died: ${error.code}`);
  const again = await connectChannel({ name: NAME });
  console.log(`4 squared is ${await again.request('4')}`);
  await again.close();
  process.exit();
}

if (cluster.isPrimary) await primary();
else if (process.env.ROLE === 'serve') await serve();
else await call();
