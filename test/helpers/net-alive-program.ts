// A process that exits as soon as nothing keeps it alive: `net-alive-program LAYER CASE`. It prints the preceding events.
import { once } from 'node:events';
import { connectChannel, createChannelServer } from '../../nd/net/index.js';
import { connected, HOST, layers, listening, type Socket } from './net-layers.js';

const [, , layer, which] = process.argv;
const net = layers[layer!]!;
/** Only runs if something else keeps the process alive until then. */
const later = (ms: number, run: () => void): void => void setTimeout(run, ms).unref();

/** Two ends of a connection. The server does not keep the process alive. */
async function pair(): Promise<[Socket, Socket]> {
  const [client, other, server] = await connected(net);
  server.unref();
  return [client, other];
}

/** Sockets opened and closed here must not leave anything that keeps the process alive. */
async function used(): Promise<void> {
  const [client, other] = await pair();
  client.end('x');
  other.resume().end();
  client.resume();
  await once(client, 'close');
}

const cases: Readonly<Record<string, () => Promise<void>>> = {
  async unref() {
    await used();
    const [client, other] = await pair();
    client.unref();
    other.unref();
    later(20_000, () => console.log('alive'));
  },
  async ref() {
    const [client, other] = await pair();
    client.unref().ref();
    other.unref();
    later(200, () => {
      console.log('alive');
      client.unref();
    });
    later(20_000, () => console.log('still alive'));
  },
  async 'server unref'() {
    const server = net.createServer(() => {}).unref();
    await listening(server);
    later(20_000, () => console.log('alive'));
  },
  async 'server ref'() {
    const server = net.createServer(() => {}).unref();
    await listening(server);
    server.ref();
    later(200, () => {
      console.log('alive');
      server.unref();
    });
    later(20_000, () => console.log('still alive'));
  },
  async 'before connect'() {
    const server = net.createServer((socket) => socket.unref()).unref();
    const client = net.connect(await listening(server), HOST).unref();
    client.on('connect', () => console.log('connected'));
    later(20_000, () => console.log('alive'));
  },
  async write() {
    const [client, other] = await pair();
    client.unref();
    other.unref();
    // More data than can be in flight, so that the write waits for the reader.
    client.write(Buffer.alloc(20_000_000), () => console.log('written'));
    later(200, () => other.resume());
    later(20_000, () => console.log('alive'));
  },
  async traffic() {
    const [client, other] = await pair();
    client.unref();
    other.unref();
    other.pipe(other);
    let rounds = 0;
    client.on('data', (bytes) => {
      rounds += 1;
      if (rounds === 1000) {
        console.log('answered');
        clearTimeout(timer);
      } else client.write(bytes);
    });
    client.write('x');
    const timer = setTimeout(() => {}, 20_000);
    later(20_000, () => console.log('alive'));
  },
  async channel() {
    const server = createChannelServer((channel) => {
      channel.unref().onRequest((bytes) => (String(bytes) === 'never' ? new Promise(() => {}) : bytes));
    }).unref();
    server.listen(0, HOST);
    await once(server.ref(), 'listening');
    server.unref();
    const channel = await connectChannel(server.address()!.port, HOST);
    console.log(String(await channel.request('answered')));
    channel.unref();
    channel.request('never').catch(() => {});
    later(20_000, () => console.log('alive'));
  },
};

await cases[which!]!();
