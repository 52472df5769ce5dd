// A process for tests of `networkdirect/net` that kill it. It serves requests or is a client: one that sends requests, one that writes a
// long stream, or many that write a little and disconnect. Uses IPC messages.
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { connect, connectChannel, createChannelServer } from '../../nd/net/index.js';

const [, , role, address, port] = process.argv;

if (role === 'serve') {
  const server = createChannelServer((channel) => {
    channel.onRequest((bytes) => {
      if (String(bytes) === 'never') return new Promise(() => {});
      // This thread stops for good once it has sent the answer.
      if (String(bytes) === 'block')
        setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0), 0);
      return bytes;
    });
    channel.on('close', () => process.send!({ ended: channel.error?.message ?? 'clean' }));
  });
  server.listen(0, address);
  await once(server, 'listening');
  process.send!({ port: server.address()!.port });
} else if (role === 'leave') {
  // Connections that write a little and end, all at the same time on request.
  const sockets = await Promise.all(
    Array.from({ length: Number(process.argv[5]) }, async () => {
      const socket = connect(Number(port), address);
      await once(socket, 'connect');
      return socket;
    }),
  );
  process.send!({ connected: true });
  await once(process, 'message');
  await Promise.all(
    sockets.map(async (socket) => {
      for (let n = 0; n < 14; n += 1) {
        socket.write(Buffer.alloc(100, n));
        await setImmediate();
      }
      socket.destroy();
      await once(socket, 'close');
    }),
  );
} else if (role === 'pour') {
  const socket = connect(Number(port), address);
  const bytes = Buffer.alloc(65_536);
  for (;;) if (!socket.write(bytes)) await once(socket, 'drain');
} else {
  const channel = await connectChannel(Number(port), address);
  const pattern = Buffer.alloc(300_000, 'pattern');
  for (let n = 0; n < 20; n += 1) {
    for (const bytes of [Buffer.from(`request ${n}`), pattern.subarray(0, 9000 * n)]) {
      const answer = await channel.request(bytes);
      if (!answer.equals(bytes)) throw new Error(`Wrong reply to a request of ${bytes.length} bytes.`);
    }
  }
  process.send!({ answered: 40 });
  const [order] = await once(process, 'message');
  if (order === 'close') {
    await channel.close();
    process.send!({ ended: 'clean' });
  } else {
    channel.request('never').catch((error) => process.send!({ ended: error.code }));
    process.send!({ asked: true });
  }
}
