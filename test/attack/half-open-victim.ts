/** A server of `networkdirect/net` that strangers flood: `half-open-victim kind address`. Reports its port, then its state on request. */
import { once } from 'node:events';
import { createChannelServer, createServer } from '../../nd/net/index.js';

/** The state of the server. */
export interface HalfOpenHealth {
  /** Memory of the process in bytes. */
  readonly memory: number;
  /** Number of connections that were requested but not completed. */
  readonly clientErrors: number;
  readonly listening: boolean;
}

const [kind, address] = process.argv.slice(2);
const server = kind === 'stream' ? createServer((socket) => socket.resume()) : createChannelServer(() => {});
server.listen(0, address);
await once(server, 'listening');
process.on('disconnect', () => process.exit(0));
process.on('message', () => {
  const { clientErrors, listening } = server;
  process.send!({ memory: process.memoryUsage.rss(), clientErrors, listening } satisfies HalfOpenHealth);
});
process.send!(server.address()!.port);
