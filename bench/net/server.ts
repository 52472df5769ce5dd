// The server of main.ts: answers requests with their bytes, or takes a stream.
import net from 'node:net';
import { createChannelServer, type Socket } from '../../nd/net/index.js';
import { Framed } from './framed.js';

function tell(message: object): void {
  process.send!(message);
}

process.on('message', () => {
  const { user, system } = process.cpuUsage();
  tell({ time: user + system });
});

function swallow(socket: Socket | net.Socket): void {
  socket.on('data', () => {}).on('end', () => tell({ ended: true }));
  socket.on('error', () => {});
}

/** The first byte tells what it is: 0 for requests, 1 for a stream. */
function meet(socket: net.Socket): void {
  socket.setNoDelay();
  socket.on('error', () => {});
  socket.once('readable', () => {
    const [first] = socket.read(1) as Buffer;
    if (first === 1) {
      swallow(socket);
      return;
    }
    const framed = new Framed(socket);
    socket.removeAllListeners('data');
    socket.on('data', (bytes) => {
      socket.cork();
      framed.take(bytes, (message) => framed.send(message));
      socket.uncork();
    });
  });
}

const server =
  process.argv[2] === 'node:net'
    ? net.createServer(meet)
    : createChannelServer((channel) => void channel.onRequest((bytes) => bytes)).on('connection', swallow);
server.on('listening', () => tell({ port: (server.address() as { port: number }).port }));
server.listen(0, '127.0.0.1');
