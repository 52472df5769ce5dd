/** The server whose memory peers hoard: `hoard-victim bytes`. It serves channels and streams, and reports its memory use. */
import { once } from 'node:events';
import { createChannelServer, createServer } from '../../nd/net/index.js';
import { collect } from '../helpers/collect.js';

export interface Ports {
  readonly channels: number;
  readonly streams: number;
}

/** Memory of this process in bytes: heap and external after a collection, and resident. */
export interface Size {
  readonly bytes: number;
  readonly rss: number;
}

const LONG_BYTES = 2 ** 20;

const server = createChannelServer({ maxBufferedBytes: Number(process.argv[2]) }, (channel) => {
  channel.onRequest((bytes) => {
    const order = String.fromCharCode(bytes[0] ?? 0);
    if (order === 'l') return Buffer.alloc(LONG_BYTES, 1);
    return order === 'n' ? new Promise(() => {}) : bytes;
  });
  channel.on('close', () => {});
});
// Half of the streams echo; the others are not read.
let streams = 0;
const streamServer = createServer((socket) => {
  socket.on('error', () => {});
  streams += 1;
  if (streams % 2 === 1) socket.pipe(socket);
});
for (const one of [server, streamServer]) one.listen(0, '127.0.0.1');
await Promise.all([server, streamServer].map((one) => one.listening || once(one, 'listening')));

process.on('disconnect', () => process.exit());
process.on('message', async () => {
  for (let n = 0; n < 4; n += 1) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  process.send!({ bytes: heapUsed + external, rss } satisfies Size);
});
process.send!({
  channels: server.address()!.port,
  streams: streamServer.address()!.port,
} satisfies Ports);
