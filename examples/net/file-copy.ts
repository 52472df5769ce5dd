/**
 * Copies files to another host and compares digests.
 *
 *     node dist/examples/net/file-copy.js receive <folder> [port]
 *     node dist/examples/net/file-copy.js send <host> <port> <file>
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { connect, createServer, type Socket } from 'networkdirect/net';
import { listen, portOf, run } from './start.js';

/** Size in bytes of each read from the file, equal to that of a stream frame. */
const CHUNK = 65_536;
const DIGEST_BYTES = 32;

/** Passes data through and adds it to the digest. */
async function* digested(
  source: AsyncIterable<Buffer>,
  hash: ReturnType<typeof createHash>,
): AsyncGenerator<Buffer> {
  for await (const bytes of source) {
    hash.update(bytes);
    yield bytes;
  }
}

/** Reads the name of a file, which is the first line, and yields the data that follows it. */
async function* behindName(socket: Socket, named: (name: string) => void): AsyncGenerator<Buffer> {
  let head: Buffer | undefined = Buffer.alloc(0);
  // A loop over the socket itself would also end its writable side.
  for await (const bytes of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    if (head === undefined) {
      yield bytes;
      continue;
    }
    head = Buffer.concat([head, bytes]);
    const end = head.indexOf('\n');
    if (end < 0 && head.length > 4096) throw new Error('The name of the file must end within 4096 bytes.');
    if (end < 0) continue;
    named(head.toString('utf8', 0, end));
    yield head.subarray(end + 1);
    head = undefined;
  }
}

async function take(socket: Socket, folder: string): Promise<void> {
  const hash = createHash('sha256');
  const temporary = join(folder, `.incoming-${process.pid}-${socket.remotePort}`);
  let name = '';
  try {
    // The sender chooses the name, but not the folder.
    const file = behindName(socket, (given) => (name = basename(given)));
    await pipeline(digested(file, hash), createWriteStream(temporary));
    if (name === '' || name === '.' || name === '..')
      throw new Error('The sender did not send a valid name.');
    await rename(temporary, join(folder, name));
    socket.end(hash.digest());
    console.log(`received ${name}`);
  } catch (error) {
    socket.destroy(error as Error);
    await rm(temporary, { force: true });
    console.log(`receiving failed: ${(error as Error).message}`);
  }
}

function receive(folder: string, port = '0'): void {
  // The digest is sent after the sender has ended its side.
  const server = createServer({ socket: { allowHalfOpen: true } }, (socket) => {
    socket.on('error', () => {});
    void take(socket, folder);
  });
  listen(server, port);
}

async function send(host: string, port: string, file: string): Promise<void> {
  const socket = connect(portOf(port), host, { allowHalfOpen: true });
  await once(socket, 'connect');
  const hash = createHash('sha256');
  const begin = performance.now();
  socket.write(`${basename(file)}\n`);
  const answer = socket.toArray() as Promise<Buffer[]>;
  await pipeline(digested(createReadStream(file, { highWaterMark: CHUNK }), hash), socket);
  const theirs = Buffer.concat(await answer);
  if (theirs.length !== DIGEST_BYTES || !theirs.equals(hash.digest()))
    throw new Error('The receiver reports a different digest.');
  console.log(`copied ${socket.bytesWritten} bytes in ${Math.round(performance.now() - begin)} ms`);
}

await run('file-copy.js receive <folder> [port] | send <host> <port> <file>', { receive, send });
