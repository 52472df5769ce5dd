/**
 * `nd cat`: checks that all addresses of the provider are valid. With `-s` and `-c`, it sends a file from the client to
 * the server. The server grants credits: a message of 1 byte for each half of its Receives that were consumed. A message
 * of 0 bytes marks the end of the file. The server replies with the SHA-256 of the received data.
 */
import { createHash } from 'node:crypto';
import { open as openFile } from 'node:fs/promises';
import { addAbortSignal, type Readable } from 'node:stream';
import { Command } from 'commander';
import * as z from 'zod';
import {
  NdError,
  ndCheckAddress,
  ndOpenAdapter,
  ndOpenV1Adapter,
  ndQueryAddressList,
  type SocketAddress,
} from '../../index.js';
import { memoryFor } from '../sides/connected-side.js';
import { commonOptions, roleOptions, type Tool, tool, withRole } from './tool.js';
import {
  awaitClient,
  ConnectionEnded,
  connectTo,
  Kind,
  type Link,
  modeOf,
  openSide,
  openTowards,
} from './tool-side.js';

const PORT = 54_328;
/** Maximum bytes of a message. */
const PIECE = 65_536;
/** Maximum messages in flight. */
const PIECES = 32;
const DIGEST = 32;

const catOptions = z
  .object({
    ...commonOptions,
    ...roleOptions,
    blocking: z.boolean().default(false),
    polling: z.boolean().default(false),
    file: z.string().optional(),
  })
  .refine(({ server, client }) => !(server && client), '-s (server) and -c (client) are mutually exclusive')
  .refine(
    ({ blocking, polling }) => !(blocking && polling),
    '-b (blocking) and -p (polling) are mutually exclusive',
  )
  .refine(({ server, client, file }) => server || client || file === undefined, '--file requires -s or -c')
  .refine(
    ({ server, json, file }) => !(server && json && file === undefined),
    '--json requires --file with -s, because both use standard output',
  );
type Options = z.output<typeof catOptions>;

/** Checks that an adapter can be opened by the address and by each of the address list. */
async function checkAddresses(tool: Tool, address: SocketAddress, { spi }: Options): Promise<void> {
  const check = (one: SocketAddress, what: string): void => {
    try {
      ndCheckAddress(one);
      (spi === 'v1' ? ndOpenV1Adapter(one) : ndOpenAdapter(one)).release();
    } catch (error) {
      if (!(error instanceof NdError)) throw error;
      throw new Error(`${what} ${one.address} is not an address of an adapter.`, { cause: error });
    }
  };
  check({ ...address, port: 0 }, 'The address');
  tool.line('Retrieving the full Addresslist');
  const addresses = ndQueryAddressList();
  if (addresses.length === 0) throw new Error('The address list is empty.');
  for (const one of addresses) check(one, 'The listed address');
  tool.line('Validation of full Addresslist passed');
  tool.result({ tool: tool.name, spi, addresses: addresses.map((one) => one.address) });
}

async function server(tool: Tool, address: SocketAddress, options: Options): Promise<void> {
  using side = await openSide(options.spi, address);
  const memory = await side.register(memoryFor(PIECES * PIECE));
  const reply = await side.register(memoryFor(DIGEST));
  await using link = side.link(tool, modeOf(options), { receives: PIECES, initiators: PIECES, sge: 1 });
  const expect = (slot: number): void => link.receive(slot, memory.list(slot * PIECE, PIECE));
  for (let slot = 0; slot < PIECES; slot += 1) expect(slot);
  await using output = options.file === undefined ? undefined : await openFile(options.file, 'w');
  await awaitClient(tool, side, link, address.port);
  await link.side.accept().abortOn(tool.signal);

  const hash = createHash('sha256');
  let received = 0;
  tool.partial = () => printPartial(tool, options, 'Received', received);
  for (let messages = 0; ; ) {
    const { kind, context, bytes } = link.poll() ?? (await link.next());
    if (kind !== Kind.RECEIVE) continue;
    if (bytes === 0) break;
    const tag = context as number;
    const piece = memory.bytes.subarray(tag * PIECE, tag * PIECE + bytes);
    hash.update(piece);
    received += bytes;
    if (output !== undefined) await output.writeFile(piece);
    else await written(process.stdout, piece);
    tool.progress(`${received} bytes`);
    expect(tag);
    messages += 1;
    if (messages % (PIECES / 2) === 0) link.send(reply.list(0, 1));
  }
  const digest = hash.digest();
  reply.bytes.set(digest);
  link.send(reply.list(0, DIGEST));
  await link.peerGone();
  tool.note(`Received ${received} bytes, SHA-256 ${digest.toString('hex')}`);
  tool.result({ tool: tool.name, spi: options.spi, bytes: received, sha256: digest.toString('hex') });
}

/** Waits until a stream has consumed the bytes, because their memory is reused. */
function written(stream: NodeJS.WritableStream, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(bytes, (error) => (error == null ? resolve() : reject(error)));
  });
}

async function client(tool: Tool, peer: SocketAddress, options: Options): Promise<void> {
  await using input = options.file === undefined ? undefined : await openFile(options.file, 'r');
  using side = await openTowards(options.spi, peer);
  const memory = await side.register(memoryFor(PIECES * PIECE));
  const reply = await side.register(memoryFor(DIGEST));
  // The digest, and the credits that may arrive before one is processed.
  const receives = 4;
  await using link = side.link(tool, modeOf(options), { receives, initiators: PIECES, sge: 1 });
  const expect = (): void => link.receive(0, reply.list(0, DIGEST));
  for (let i = 0; i < receives; i += 1) expect();
  await connectTo(tool, link, peer);
  await link.side.completeConnect();

  const hash = createHash('sha256');
  const start = performance.now();
  let sent = 0;
  tool.partial = () => printPartial(tool, options, 'Sent', sent);
  // One Receive of the server is reserved for the message of 0 bytes.
  let credits = PIECES - 1;
  let slot = 0;
  let digest: string | undefined;
  /** Number of outstanding Sends. */
  let busy = 0;
  const processNext = async (): Promise<void> => {
    const { kind, bytes } = link.poll() ?? (await link.next());
    if (kind === Kind.SEND) busy -= 1;
    else if (bytes === DIGEST) digest = Buffer.from(reply.bytes).toString('hex');
    else {
      credits += PIECES / 2;
      expect();
    }
  };
  const stream = input?.createReadStream({ autoClose: false }) ?? process.stdin;
  for await (const piece of pieces(stream, endOf(tool, link))) {
    // Sends complete in order, so the next slot is free unless all are in use.
    while (credits === 0 || busy === PIECES - 1) await processNext();
    memory.bytes.set(piece, slot * PIECE);
    hash.update(piece);
    link.send(memory.list(slot * PIECE, piece.length));
    busy += 1;
    credits -= 1;
    sent += piece.length;
    slot = (slot + 1) % PIECES;
    tool.progress(`${sent} bytes`);
  }
  while (busy > 0) await processNext();
  link.send([]);
  while (digest === undefined) await processNext();
  const seconds = (performance.now() - start) / 1000;
  const own = hash.digest('hex');
  if (digest !== own) {
    throw new Error(`The server must receive the sent data, with SHA-256 ${own}; got ${digest}.`);
  }
  const bytesPerSecond = sent / seconds;
  tool.line(`Sent ${sent} bytes in ${seconds.toFixed(3)} s, ${bytesPerSecond.toFixed(0)} Bytes/Sec`);
  tool.line(`SHA-256 ${own}, confirmed by the server`);
  tool.result({ tool: tool.name, spi: options.spi, bytes: sent, sha256: own, seconds, bytesPerSecond });
}

/** Prints the progress of an interrupted transfer, to standard error because standard output may be the file. */
function printPartial(tool: Tool, { spi }: Options, verb: 'Sent' | 'Received', bytes: number): void {
  tool.note(`${verb} ${bytes} bytes`);
  tool.result({ tool: tool.name, spi, bytes, interrupted: true });
}

/** Returns a signal that aborts when the peer ends the connection or the user interrupts the tool. */
function endOf(tool: Tool, link: Link): AbortSignal {
  const ended = new AbortController();
  const end = (): void => ended.abort(new ConnectionEnded());
  link.side.notifyDisconnect().then(end, end);
  return AbortSignal.any([tool.signal, ended.signal]);
}

/** Splits a stream into parts of limited length. If `signal` aborts, it also ends while waiting for input, as at a terminal. */
async function* pieces(stream: Readable, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of addAbortSignal(signal, stream)) {
      const bytes = Buffer.from(chunk as Buffer);
      for (let at = 0; at < bytes.length; at += PIECE) yield bytes.subarray(at, at + PIECE);
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  }
}

export const catCommand = tool(
  withRole(
    new Command('cat')
      .description('check the address list; with -s and -c, send a file from client to server')
      .option(
        '-f, --file <file>',
        'file that the client sends (default: stdin) or the server writes (default: stdout)',
      )
      .option('-b, --blocking', 'wait for completions by notification')
      .option('-p, --polling', 'wait for completions by polling (the default)'),
  ),
  catOptions,
  { port: PORT, banner: false },
  (one, address, options) =>
    (options.server ? server : options.client ? client : checkAddresses)(one, address, options),
);
