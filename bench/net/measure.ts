/** The client of a measurement. */
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import net from 'node:net';
import { pipeline } from 'node:stream/promises';
import { connect, connectChannel, type Socket } from 'networkdirect/net';
import { broadcasts } from './broadcast.js';
import type { Client } from './client.js';
import { temporaryFile } from './files.js';
import { Framed } from './framed.js';
import { HOW_MUCH, keepObjects, LOOPBACK, type NetJob, processorTime, WRITE_BYTES } from './job.js';
import { portClient } from './message-port.js';
import { zeromqClient } from './zeromq.js';

/** A port of the loopback address, or the path of a UNIX socket. */
export type Where = number | string;

const WARM_UP_BYTES = 2 ** 26;

type OnRead = NonNullable<Parameters<typeof connect>[0] & object>['onread'];

/** Starts to connect a stream. */
function open({ over }: NetJob, where: Where, onread?: OnRead): Socket | net.Socket {
  const half = { allowHalfOpen: true, ...(onread && { onread }) };
  if (over === 'networkdirect/net') return connect({ ...half, port: Number(where), host: LOOPBACK });
  const at = over === 'node:net UNIX' ? { path: String(where) } : { port: Number(where), host: LOOPBACK };
  return net.connect({ ...half, ...at, noDelay: true } as net.NetConnectOpts);
}

/** Calls `act` sequentially on each lane, at least `times` times in total and for at least `ms` ms. */
async function repeat(lanes: number, times: number, ms: number, act: () => Promise<unknown>) {
  const begin = performance.now();
  let count = 0;
  const lane = async (): Promise<void> => {
    while (count < times || performance.now() < begin + ms) {
      count += 1;
      await act();
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return { count, seconds: (performance.now() - begin) / 1000 };
}

async function connectClient(job: NetJob, where: Where): Promise<Client> {
  if (job.over === 'networkdirect/net') return connectChannel(Number(where), LOOPBACK);
  if (job.over === 'zeromq') return zeromqClient(String(where));
  if (job.over === 'MessagePort')
    return portClient(new URL('program.js', import.meta.url), ['worker', JSON.stringify(job)]);
  const socket = open(job, where) as net.Socket;
  await once(socket, 'connect');
  return new Framed(socket);
}

async function requests(job: NetJob, where: Where): Promise<number> {
  const client = await connectClient(job, where);
  const message = Buffer.alloc(job.size, 7);
  const ask = (): Promise<Uint8Array> => client.request(message);
  const time = async (): Promise<number> =>
    job.over === 'MessagePort'
      ? processorTime()
      : Number(String(await client.request(Buffer.from(HOW_MUCH)))) + processorTime();
  const cold = await repeat(job.inFlight, job.warmUp, 0, ask);
  if (job.figure === 'cold') return cold.count / cold.seconds;
  const before = await time();
  const { count, seconds } = await repeat(job.inFlight, 1, 1000 * job.seconds, ask);
  return job.figure === 'rate' ? count / seconds : ((await time()) - before) / count;
}

async function echoes(job: NetJob, where: Where): Promise<number> {
  const socket = open(job, where);
  await once(socket, 'connect');
  const bytes = Buffer.alloc(job.size, 7);
  let missing = 0;
  let back = (): void => {};
  socket.on('data', (data: Buffer) => {
    missing -= data.length;
    if (missing === 0) back();
  });
  const echo = (): Promise<void> =>
    new Promise((resolve) => {
      missing = bytes.length;
      back = resolve;
      socket.write(bytes);
    });
  await repeat(1, job.warmUp, 0, echo);
  const { count, seconds } = await repeat(1, 1, 1000 * job.seconds, echo);
  return count / seconds;
}

async function connections(job: NetJob, where: Where): Promise<number> {
  const one = async (): Promise<void> => {
    const socket = open(job, where).resume();
    socket.once('connect', () => socket.end());
    await once(socket, 'close');
  };
  if (job.inFlight === 1) {
    await repeat(1, job.warmUp, 0, one);
    const { count, seconds } = await repeat(1, 1, 1000 * job.seconds, one);
    return count / seconds;
  }
  // Connects all sockets together, in a process that has not connected before.
  const begin = performance.now();
  const sockets = Array.from({ length: job.inFlight }, () => open(job, where));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  const seconds = (performance.now() - begin) / 1000;
  for (const socket of sockets) socket.destroy();
  return job.inFlight / seconds;
}

/** Sends `bytes` bytes and waits until the peer has read them. Returns bytes per second. */
async function sent(job: NetJob, where: Where, bytes: number, file: string | undefined): Promise<number> {
  const socket = open(job, where);
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

/** Reads `bytes` bytes with `onread`. Returns bytes per second. */
async function read(job: NetJob, where: Where, bytes: number): Promise<number> {
  let came = 0;
  const callback = (length: number): boolean => {
    came += length;
    return true;
  };
  const socket = open(job, where, { buffer: Buffer.alloc(WRITE_BYTES), callback });
  await once(socket, 'connect');
  const begin = performance.now();
  socket.write(String(bytes));
  await once(socket, 'end');
  const seconds = (performance.now() - begin) / 1000;
  if (came !== bytes) throw new Error(`Expected ${bytes} bytes; got ${came}`);
  socket.destroy();
  return bytes / seconds;
}

async function streamed(job: NetJob, where: Where): Promise<number> {
  if (job.kind === 'onread') keepObjects(job.liveMib);
  const file = job.kind === 'copy' ? temporaryFile(job.bytes) : undefined;
  const run = (bytes: number): Promise<number> =>
    job.kind === 'onread' ? read(job, where, bytes) : sent(job, where, bytes, file);
  await run(Math.min(job.bytes, WARM_UP_BYTES));
  return await run(job.bytes);
}

/** Operations or bytes per second, or µs per operation. */
export function measure(job: NetJob, where: Where): Promise<number> {
  if (job.kind === 'broadcast') return broadcasts(job, String(where));
  if (job.kind === 'request') return requests(job, where);
  if (job.kind === 'echo') return echoes(job, where);
  if (job.kind === 'connect') return connections(job, where);
  return streamed(job, where);
}
