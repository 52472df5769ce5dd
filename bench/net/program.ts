/**
 * Measures `networkdirect/net` or `node:net` between two processes, as measurePair() starts them: `server JOB` prints its port, `client
 * JOB PORT` prints the sample.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  createReadStream,
  createWriteStream,
  mkdtempSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { connect, connectChannel, createChannelServer, createServer } from 'networkdirect/net';
import { Framed } from './framed.js';
import { HOW_MUCH, LOOPBACK, type NetJob, netJobSchema, REQUEST_BYTES, WRITE_BYTES } from './job.js';

/** Long enough for V8 to compile the code of requests: they take ten times as long during the first 0.5 to 0.8 s. */
const WARM_UP_MS = 1500;
const WARM_UP_BYTES = 2 ** 26;
/** A process that keeps a processor busy, until its parent has ended, by whatever means. */
const BUSY = 'const parent = process.ppid; while (process.ppid === parent);';

/** Processor time of this process, in µs. */
function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function answerTo(bytes: Buffer): Buffer | string {
  return bytes.length !== REQUEST_BYTES && String(bytes) === HOW_MUCH ? String(processorTime()) : bytes;
}

/** Runs a function with what is left of the folder gone afterwards, however the process ends. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'nd-bench-net-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Takes a stream or a file, and then answers with a byte. */
async function take({ kind }: NetJob, socket: Duplex, folder: string | undefined): Promise<void> {
  if (kind === 'copy')
    await pipeline(socket.iterator({ destroyOnReturn: false }), createWriteStream(join(folder!, 'to')));
  else for await (const _ of socket.iterator({ destroyOnReturn: false }));
  socket.end('.');
}

function serve(job: NetJob): void {
  const folder = job.kind === 'copy' ? temporaryFolder() : undefined;
  const ours = job.over === 'networkdirect/net';
  const taken = (socket: Duplex): void => {
    socket.on('error', () => {});
    take(job, socket, folder).catch(() => {});
  };
  const answered = (socket: net.Socket): void => {
    socket.setNoDelay().on('error', () => {});
    const framed = new Framed(socket);
    socket.removeAllListeners('data');
    socket.on('data', (bytes) => {
      socket.cork();
      framed.take(bytes, (message) => framed.send(Buffer.from(answerTo(message))));
      socket.uncork();
    });
  };
  const server = !ours
    ? net.createServer({ allowHalfOpen: true }, job.kind === 'request' ? answered : taken)
    : job.kind === 'request'
      ? createChannelServer((channel) => void channel.onRequest(answerTo))
      : createServer({ socket: { allowHalfOpen: true } }, taken);
  server.on('listening', () => {
    const { port } = server.address() as { port: number };
    console.log(JSON.stringify({ port }));
  });
  server.listen(0, LOOPBACK);
}

async function requests(job: NetJob, port: number): Promise<number> {
  let client: { request(bytes: Uint8Array): Promise<Buffer> };
  if (job.over === 'networkdirect/net') client = await connectChannel(port, LOOPBACK);
  else {
    const socket = net.connect(port, LOOPBACK).setNoDelay();
    await once(socket, 'connect');
    client = new Framed(socket);
  }
  const message = Buffer.alloc(REQUEST_BYTES, 7);
  const measure = async (ms: number): Promise<{ count: number; seconds: number }> => {
    const begin = performance.now();
    let count = 0;
    const lane = async (): Promise<void> => {
      while (performance.now() < begin + ms) {
        await client.request(message);
        count += 1;
      }
    };
    await Promise.all(Array.from({ length: job.inFlight }, lane));
    return { count, seconds: (performance.now() - begin) / 1000 };
  };
  const time = async (): Promise<number> =>
    Number(String(await client.request(Buffer.from(HOW_MUCH)))) + processorTime();
  await measure(WARM_UP_MS);
  const before = await time();
  const { count, seconds } = await measure(1000 * job.seconds);
  return job.figure === 'rate' ? count / seconds : ((await time()) - before) / count;
}

/** Sends so many bytes, and waits until all were taken. Returns bytes in a second. */
async function sent(job: NetJob, port: number, bytes: number, file: string | undefined): Promise<number> {
  const socket =
    job.over === 'networkdirect/net'
      ? connect(port, LOOPBACK, { allowHalfOpen: true })
      : net.connect({ port, host: LOOPBACK, allowHalfOpen: true });
  await once(socket, 'connect');
  const answer = once(socket, 'data');
  const begin = performance.now();
  if (file !== undefined)
    await pipeline(createReadStream(file, { highWaterMark: WRITE_BYTES, end: bytes - 1 }), socket);
  else {
    const write = Buffer.alloc(WRITE_BYTES);
    for (let left = bytes; left > 0; left -= WRITE_BYTES)
      if (!socket.write(write)) await once(socket, 'drain');
    socket.end();
  }
  await answer;
  const seconds = (performance.now() - begin) / 1000;
  socket.destroy();
  return bytes / seconds;
}

async function streamed(job: NetJob, port: number): Promise<number> {
  let file: string | undefined;
  if (job.kind === 'copy') {
    file = join(temporaryFolder(), 'from');
    writeFileSync(file, '');
    truncateSync(file, job.bytes);
  }
  await sent(job, port, Math.min(job.bytes, WARM_UP_BYTES), file);
  return await sent(job, port, job.bytes, file);
}

const [role, text = '', port] = process.argv.slice(2);
const job = netJobSchema.parse(JSON.parse(text));
const loop = job.busy ? spawn(process.execPath, ['-e', BUSY], { stdio: 'ignore' }) : undefined;
process.on('exit', () => loop?.kill());
process.on('SIGTERM', () => process.exit());
if (role === 'server') serve(job);
else {
  const mean = await (job.kind === 'request' ? requests(job, Number(port)) : streamed(job, Number(port)));
  console.log(JSON.stringify({ mean }));
  process.exit();
}
