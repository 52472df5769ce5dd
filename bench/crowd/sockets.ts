/** The crowd's connections over `node:net`. */
import { once } from 'node:events';
import net from 'node:net';
import { LOOPBACK } from '../../nd/cli/sides/connected-side.js';
import { BULK_BYTES, BYTES, type Client, type Part } from './crowd-messages.js';

/** The first byte of a request for bulk data. */
const BULK = 2;

export async function serveNet(): Promise<number> {
  const answer = Buffer.alloc(BYTES, 1);
  const bulkAnswer = Buffer.alloc(BYTES + BULK_BYTES, 1);
  const server = net.createServer({ noDelay: true }, (socket) => {
    let [taken, bulk] = [0, false];
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      if (taken === 0) bulk = chunk[0] === BULK;
      taken += chunk.length;
      if (taken < BYTES) return;
      // A client sends the next request after the reply.
      taken = 0;
      socket.write(bulk ? bulkAnswer : answer);
    });
  });
  server.listen(0, LOOPBACK, 1024);
  await once(server, 'listening');
  return (server.address() as net.AddressInfo).port;
}

export function connectNet({ port, connections }: NonNullable<Part['client']>): Client {
  const request = Buffer.alloc(BYTES, 1);
  const bulkRequest = Buffer.alloc(BYTES, BULK);
  const heard: (() => void)[] = [];
  const left: number[] = [];
  const sockets = Array.from({ length: connections }, (_, index) => {
    const socket = net.connect({ port, host: LOOPBACK, noDelay: true });
    socket.on('data', (chunk) => {
      left[index]! -= chunk.length;
      if (left[index] === 0) heard[index]!();
    });
    return socket;
  });
  return {
    connected: Promise.all(sockets.map((socket) => once(socket, 'connect'))),
    ask: (index, bulk) =>
      new Promise((resolve) => {
        heard[index] = resolve;
        left[index] = BYTES + (bulk ? BULK_BYTES : 0);
        sockets[index]!.write(bulk ? bulkRequest : request);
      }),
  };
}
