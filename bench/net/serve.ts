/** The server of a measurement. */
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createChannelServer, createServer } from 'networkdirect/net';
import { serveBroadcasts } from './broadcast.js';
import { temporaryFile } from './files.js';
import { Framed } from './framed.js';
import { HOW_MUCH, keepObjects, LOOPBACK, type NetJob, processorTime, WRITE_BYTES } from './job.js';
import { serveZeromq } from './zeromq.js';

type Serve = (socket: Duplex) => void;

function answerTo(bytes: Buffer): Buffer | string {
  return bytes.length === HOW_MUCH.length && String(bytes) === HOW_MUCH ? String(processorTime()) : bytes;
}

/** Replies to length-prefixed messages. */
function answerFramed(socket: net.Socket): void {
  socket.setNoDelay().on('error', () => {});
  const framed = new Framed(socket);
  socket.removeAllListeners('data');
  socket.on('data', (bytes) => {
    socket.cork();
    framed.take(bytes, (message) => framed.send(Buffer.from(answerTo(message))));
    socket.uncork();
  });
}

/** Reads a stream to its end, then replies with one byte. */
async function take(socket: Duplex): Promise<void> {
  for await (const _ of socket.iterator({ destroyOnReturn: false }));
  socket.end('.');
}

/** Writes the stream to a file, then replies with one byte. */
async function write(socket: Duplex, file: string): Promise<void> {
  await pipeline(socket.iterator({ destroyOnReturn: false }), createWriteStream(file, { flags: 'r+' }));
  socket.end('.');
}

/** Sends a stream. The client first requests its length, as text. */
async function send(socket: Duplex): Promise<void> {
  let left = Number(String(await new Promise((resolve) => socket.once('data', resolve))));
  const piece = Buffer.alloc(WRITE_BYTES);
  for (; left > 0; left -= piece.length)
    if (!socket.write(piece.subarray(0, Math.min(left, piece.length))))
      await new Promise((resolve) => socket.once('drain', resolve));
  socket.end();
}

function servesStreams({ kind, bytes }: NetJob): Serve {
  if (kind === 'copy') {
    const file = temporaryFile(bytes);
    return (socket) => void write(socket, file).catch(() => {});
  }
  if (kind === 'stream') return (socket) => void take(socket).catch(() => {});
  if (kind === 'onread') return (socket) => void send(socket).catch(() => {});
  if (kind === 'echo') return (socket) => void socket.on('data', (data) => socket.write(data));
  return (socket) => void socket.resume().on('end', () => socket.end());
}

function serverOf(job: NetJob): net.Server | ReturnType<typeof createServer> {
  const ours = job.over === 'networkdirect/net';
  if (job.kind === 'request')
    return ours
      ? createChannelServer((channel) => void channel.onRequest(answerTo))
      : net.createServer({ allowHalfOpen: true }, answerFramed);
  const streams = servesStreams(job);
  const serve = (socket: Duplex): void => {
    socket.on('error', () => {});
    streams(socket);
  };
  return ours
    ? createServer({ allowHalfOpen: true }, serve)
    : net.createServer({ allowHalfOpen: true, noDelay: true }, serve);
}

/** Listens and prints the location. */
export async function serve(job: NetJob): Promise<void> {
  if (job.kind === 'broadcast') {
    await serveBroadcasts(job);
    return;
  }
  if (job.over === 'zeromq') {
    console.log(JSON.stringify({ port: await serveZeromq(answerTo) }));
    return;
  }
  if (job.kind === 'stream') keepObjects(job.liveMib);
  const server = serverOf(job);
  let port: number | string;
  server.on('listening', () => {
    port ??= (server.address() as { port: number }).port;
    console.log(JSON.stringify({ port }));
  });
  if (job.over === 'node:net UNIX') {
    const folder = mkdtempSync(join(tmpdir(), 'nd-bench-net-'));
    process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
    port = join(folder, 'socket');
    (server as net.Server).listen(port);
  } else server.listen(0, LOOPBACK);
}
