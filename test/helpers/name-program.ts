// A server that listens under a name, as a process, a thread or a worker of a cluster, and replies to requests with its process id. Or a
// client of such a server. Both use IPC messages.
import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { createChannelServer } from '../../nd/net/index.js';

const tell = (text: string): void => {
  if (parentPort !== null) parentPort.postMessage(text);
  else process.send!(text);
};
const server = createChannelServer((channel) => channel.onRequest(() => String(process.pid)));
server.on('error', (error: Error & { code?: string }) => tell(error.code!));
server.listen({ name: (workerData as string | null) ?? process.argv[2]! });
await once(server, 'listening');
tell('listening');
