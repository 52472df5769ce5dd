/**
 * The baselines in Node.js itself are TCP with `node:net` between two processes, CRC-32 with `node:zlib`, and a bare worker thread. Command
 * line: `node-program.js server JOB`, `node-program.js client JOB PORT`, as for the library's own program.
 */
import { once } from 'node:events';
import net from 'node:net';
import { Worker } from 'node:worker_threads';
import { crc32 } from 'node:zlib';
import * as z from 'zod';
import { CommonCount, type CommonTime, commonTimeSchema, monotonicSeconds } from '../common-time.js';
import { each, perSecond, type Sample, timed, timedAsync } from '../samples.js';

const size = z
  .int()
  .min(1)
  .max(1 << 30);
const seconds = z.number().positive().max(60);
export const nodeJobSchema = z.discriminatedUnion('kind', [
  /** Half of the round-trip time, in µs. */
  z.strictObject({ kind: z.literal('ping-pong'), size, seconds }),
  /** A stream of messages in one direction, in bytes per second. */
  z.strictObject({
    kind: z.literal('stream'),
    size,
    seconds,
    host: z.ipv4().optional(),
    /** Counts what arrives in this time span instead of what is sent in `seconds` after a warm-up. */
    within: commonTimeSchema.optional(),
  }),
  /** The same, in messages per second. */
  z.strictObject({ kind: z.literal('rate'), size, seconds }),
  /** Connections per second, after the same number as a warm-up. */
  z.strictObject({
    kind: z.literal('connect'),
    count: z.int().min(1).max(100_000),
    /** Connections before the timed ones. Default: `count`. */
    warmUp: z.int().min(0).max(100_000).optional(),
    inFlight: z.int().min(1).max(1000),
  }),
  /** Repeated CRC-32 of one buffer, in bytes per second. */
  z.strictObject({ kind: z.literal('crc32'), size, seconds }),
  /** Time from the creation of a worker thread to its first message, in ms. */
  z.strictObject({ kind: z.literal('worker') }),
]);
export type NodeJob = z.output<typeof nodeJobSchema>;
type NodeJobOf<K extends NodeJob['kind']> = Extract<NodeJob, { kind: K }>;

const arrivedSchema = z.strictObject({ mean: z.number().min(0) });

const ADDRESS = '127.0.0.1';
/** Bytes between two readings of the clock. */
const PART_BYTES = 4 << 20;

const addressOf = (job: NodeJob): string => ('host' in job ? (job.host ?? ADDRESS) : ADDRESS);

async function serve(job: NodeJob): Promise<void> {
  const server = net.createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
    socket.on('error', () => socket.destroy());
    if (job.kind === 'ping-pong') socket.on('data', (chunk) => socket.write(chunk));
    else if (job.kind === 'stream' && job.within !== undefined) {
      const count = new CommonCount(job.within);
      socket.on('data', (chunk) => count.add(chunk.length));
      socket.on('end', () => socket.end(JSON.stringify(count.sample)));
    } else {
      socket.resume();
      socket.on('end', () => socket.end('.'));
    }
  });
  server.listen(0, addressOf(job), 1024);
  await once(server, 'listening');
  process.stdout.write(`${JSON.stringify({ port: (server.address() as net.AddressInfo).port })}\n`);
}

async function pingPong(socket: net.Socket, job: { size: number; seconds: number }): Promise<Sample> {
  const message = Buffer.alloc(job.size, 1);
  let pending = 0;
  let completed = () => {};
  socket.on('data', (chunk) => {
    pending -= chunk.length;
    if (pending === 0) completed();
  });
  const round = () =>
    new Promise<void>((resolve) => {
      completed = resolve;
      pending = job.size;
      socket.write(message);
    });
  return each(await timedAsync(job.seconds, round), 2);
}

/** Sends for `seconds`. The sample is the time of `part` messages. */
async function stream(socket: net.Socket, message: Buffer, part: number, seconds: number): Promise<Sample> {
  const sample = await timedAsync(seconds, async () => {
    for (let i = 0; i < part; i += 1) if (!socket.write(message)) await once(socket, 'drain');
  });
  socket.end();
  await once(socket, 'data');
  return sample;
}

/** Sends until the common time span is over. The receiver counts what arrives. */
async function streamWithin(socket: net.Socket, message: Buffer, { until }: CommonTime): Promise<Sample> {
  while (monotonicSeconds() < until) if (!socket.write(message)) await once(socket, 'drain');
  socket.end();
  const [answer] = (await once(socket, 'data')) as [Buffer];
  return arrivedSchema.parse(JSON.parse(answer.toString()));
}

/** Connects `warmUp` times, then times `count` more connections. All of them stay open. */
async function connectRate(port: number, job: NodeJobOf<'connect'>): Promise<Sample> {
  const sockets: net.Socket[] = [];
  const make = async (count: number) => {
    let left = count;
    const worker = async () => {
      while (left > 0) {
        left -= 1;
        const socket = net.connect({ host: ADDRESS, port, noDelay: true });
        sockets.push(socket);
        await once(socket, 'connect');
      }
    };
    await Promise.all(Array.from({ length: Math.min(job.inFlight, count) }, worker));
  };
  await make(job.warmUp ?? job.count);
  const start = performance.now();
  await make(job.count);
  return { mean: (job.count * 1000) / (performance.now() - start) };
}

function checksums(job: { size: number; seconds: number }): Sample {
  const bytes = Buffer.alloc(job.size, 1);
  const part = 64;
  const sample = timed(job.seconds, () => {
    for (let i = 0; i < part; i += 1) bytes[0] = crc32(bytes) & 0xff;
  });
  return perSecond(sample, part * job.size);
}

async function measure(job: NodeJob, port: number): Promise<Sample> {
  if (job.kind === 'worker') {
    const start = performance.now();
    await once(
      new Worker("require('node:worker_threads').parentPort.postMessage(1)", { eval: true }),
      'message',
    );
    return { mean: performance.now() - start };
  }
  if (job.kind === 'crc32') return checksums(job);
  if (job.kind === 'connect') return connectRate(port, job);
  const socket = net.connect({ host: addressOf(job), port, noDelay: true });
  await once(socket, 'connect');
  if (job.kind === 'ping-pong') return pingPong(socket, job);
  if (job.kind === 'stream' && job.within !== undefined)
    return streamWithin(socket, Buffer.alloc(job.size, 1), job.within);
  const part = Math.max(1, Math.ceil(PART_BYTES / (job.kind === 'rate' ? 64 : 1) / job.size));
  const sample = await stream(socket, Buffer.alloc(job.size, 1), part, job.seconds);
  return perSecond(sample, job.kind === 'rate' ? part : part * job.size);
}

async function main([role, text, port]: string[]): Promise<void> {
  const job = nodeJobSchema.parse(JSON.parse(text!));
  if (role === 'server') {
    await serve(job);
    return;
  }
  const sample = await measure(job, Number(port));
  process.stdout.write(`${JSON.stringify(sample)}\n`);
  process.exit(0);
}

await main(process.argv.slice(2));
