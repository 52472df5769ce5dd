/**
 * Streams and messages over the `networkdirect/net` of any build: `serve MODULE ADDRESS PORT`, or `ask MODULE ADDRESS
 * PORT`, which checks the replies. It reports events and failures over IPC.
 */
import { once } from 'node:events';

const [, , role = '', module = '', address = '', port = ''] = process.argv;
const net: typeof import('../../nd/net/index.js') = await import(module);
const tell = (reported: object): void => void process.send!(reported);
const reported = (error: unknown) => {
  const { code, message } = error as NodeJS.ErrnoException;
  return { code, message };
};

const BYTES = 8 << 20;
/** Each byte depends on its position, so that nearby positions of a message or ring differ. */
const pattern = Buffer.alloc(
  BYTES,
  Uint8Array.from({ length: 65_521 }, (_, at) => (at * 31 + (at >> 8)) & 0xff),
);

async function streamed(): Promise<number> {
  const socket = net.connect(Number(port), address);
  await once(socket, 'connect');
  socket.end(pattern);
  let at = 0;
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    if (!chunk.equals(pattern.subarray(at, at + chunk.length))) throw new Error(`Wrong bytes behind ${at}.`);
    at += chunk.length;
  }
  return at;
}

async function asked(): Promise<number> {
  const channel = await net.connectChannel(Number(port), address);
  for (const length of [0, 1, 4000, 300_000]) {
    const answer = await channel.request(pattern.subarray(0, length));
    if (!pattern.subarray(0, length).equals(answer)) throw new Error(`A wrong reply to ${length} bytes.`);
  }
  await channel.close();
  return 4;
}

if (role === 'serve') {
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.pipe(socket);
  });
  server.on('channel', (channel: InstanceType<typeof net.Channel>) => channel.onRequest((bytes) => bytes));
  server.on('clientError', (error) => tell({ clientError: reported(error) }));
  server.listen(Number(port), address);
  await once(server, 'listening');
  tell({ port: server.address()!.port });
} else if (role === 'ask') {
  tell({ stream: await streamed().catch(reported) });
  tell({ channel: await asked().catch(reported) });
} else {
  // Streams until an error, for a process that is killed in the meantime.
  for (let rounds = 1; ; rounds += 1) {
    const length = await streamed().catch(reported);
    tell({ round: rounds, length });
    if (length !== BYTES) break;
  }
}
