/**
 * `networkdirect/net` beside `node:net`: awaited requests one at a time and 1,000 in flight, and a stream of 64 KiB writes, between two
 * processes. Rates, and the processor time of both processes.
 *
 *     node dist/bench/net/main.js [--ms 1000] [--rounds 3] [--busy]
 *
 * `--busy` runs two busy loops beside it.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { connect, connectChannel } from '../../nd/net/index.js';
import { Framed } from './framed.js';

type Kind = 'node:net' | 'networkdirect/net';

const KINDS: readonly Kind[] = ['node:net', 'networkdirect/net'];
const LOOPBACK = '127.0.0.1';
const MESSAGE = Buffer.alloc(64, 7);
const WRITE = Buffer.alloc(65_536);
const STREAM_WRITES = 16_384;
const WARM_UP = 3000;

const { values } = parseArgs({
  options: {
    ms: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '3' },
    busy: { type: 'boolean', default: false },
  },
});

interface Server {
  readonly child: ChildProcess;
  readonly port: number;
}

async function serve(kind: Kind): Promise<Server> {
  const child = fork(fileURLToPath(new URL('server.js', import.meta.url)), [kind]);
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return { child, port };
}

/** Processor time of both processes, in µs. */
async function processorTime({ child }: Server): Promise<number> {
  child.send('time');
  const [{ time }] = (await once(child, 'message')) as [{ time: number }];
  const { user, system } = process.cpuUsage();
  return time + user + system;
}

async function requester(
  kind: Kind,
  port: number,
): Promise<{ request(bytes: Uint8Array): Promise<Buffer>; destroy(): unknown }> {
  if (kind === 'networkdirect/net') return await connectChannel(port, LOOPBACK);
  const socket = net.connect(port, LOOPBACK).setNoDelay();
  await once(socket, 'connect');
  socket.write(Uint8Array.of(0));
  return new Framed(socket);
}

async function requests(kind: Kind, inFlight: number, ms: number): Promise<void> {
  const server = await serve(kind);
  const client = await requester(kind, server.port);
  for (let n = 0; n < WARM_UP; n += 1) await client.request(MESSAGE);
  const before = await processorTime(server);
  const begin = performance.now();
  let count = 0;
  const lane = async (): Promise<void> => {
    while (performance.now() < begin + ms) {
      await client.request(MESSAGE);
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  const seconds = (performance.now() - begin) / 1000;
  const time = (await processorTime(server)) - before;
  print(
    `${inFlight} in flight`,
    kind,
    `${Math.round(count / seconds)} requests/s`,
    `${(time / count).toFixed(1)} µs`,
  );
  client.destroy();
  server.child.kill();
}

async function stream(kind: Kind): Promise<void> {
  const server = await serve(kind);
  const socket =
    kind === 'networkdirect/net' ? connect(server.port, LOOPBACK) : net.connect(server.port, LOOPBACK);
  await once(socket, 'connect');
  if (kind === 'node:net') socket.write(Uint8Array.of(1));
  const ended = once(server.child, 'message');
  const before = process.cpuUsage();
  const begin = performance.now();
  for (let n = 0; n < STREAM_WRITES; n += 1) if (!socket.write(WRITE)) await once(socket, 'drain');
  socket.end();
  await ended;
  const seconds = (performance.now() - begin) / 1000;
  const { user, system } = process.cpuUsage(before);
  const bytes = STREAM_WRITES * WRITE.length;
  print(
    '64 KiB writes',
    kind,
    `${(bytes / seconds / 1e9).toFixed(2)} GB/s`,
    `${((user + system) / 1000).toFixed(0)} ms of the writer`,
  );
  socket.destroy();
  server.child.kill();
}

function print(row: string, kind: Kind, rate: string, time: string): void {
  console.log(`${row.padEnd(16)}${kind.padEnd(20)}${rate.padStart(20)}  ${time}`);
}

const busy = values.busy
  ? [0, 1].map(() => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }))
  : [];
try {
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const kind of KINDS) await requests(kind, 1, Number(values.ms));
    for (const kind of KINDS) await requests(kind, 1000, Number(values.ms));
    for (const kind of KINDS) await stream(kind);
  }
} finally {
  for (const child of busy) child.kill();
}
