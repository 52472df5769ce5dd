/**
 * `nd rping`: measures RDMA Writes or Reads per second. The server gives the client access to its memory, sends its
 * address and token, and waits for a message of 0 bytes, which ends the test.
 */
import { Command } from 'commander';
import * as z from 'zod';
import type { SocketAddress } from '../../index.js';
import { memoryFor } from '../sides/connected-side.js';
import { ADVERT_BYTES, advertise, peersMemory } from './advert.js';
import { checkSge, sweep } from './measure.js';
import { MAX_BYTES, transferOptions, withTransfer } from './measure-options.js';
import { type Tool, tool } from './tool.js';
import { awaitClient, connectTo, Kind, modeOf, openSide, openTowards } from './tool-side.js';

const PORT = 54_326;
const ITERATIONS = 500_000;

const operations = { read: z.boolean().default(false), write: z.boolean().default(false) };
const rpingOptions = transferOptions
  .safeExtend(operations)
  .refine(({ read, write }) => !(read && write), '-r (read) and -w (write) are mutually exclusive');
type Options = z.output<typeof rpingOptions>;

async function server(tool: Tool, address: SocketAddress, options: Options): Promise<void> {
  using side = await openSide(options.spi, address);
  const memory = await side.register(memoryFor(MAX_BYTES));
  const message = await side.register(memoryFor(ADVERT_BYTES));
  await using link = side.link(tool, 'blocking', { receives: 1, initiators: 4, sge: 1 });
  link.receive(0, []);
  await awaitClient(tool, side, link, address.port);
  await link.side.accept().abortOn(tool.signal);
  advertise(link, memory, side.limits.inboundReads, message.bytes);
  link.send(message.list(0, ADVERT_BYTES));
  while ((await link.next()).kind !== Kind.RECEIVE);
  await link.peerGone();
  tool.result({ tool: tool.name, spi: options.spi, local: side.address.address });
}

async function client(tool: Tool, peer: SocketAddress, options: Options): Promise<void> {
  using side = await openTowards(options.spi, peer);
  const { limits } = side;
  if (limits.inOrder === false) {
    throw new Error('The adapter must place data in order; otherwise the measurement is not valid.');
  }
  checkSge(side, options.nSge, options.read ? limits.readSge : limits.sge);
  const memory = await side.register(memoryFor(MAX_BYTES));
  const depth = Math.min(options.pipeline, limits.queueDepth);
  await using link = side.link(tool, modeOf(options), { receives: 1, initiators: depth, sge: options.nSge });
  link.receive(0, memory.list(0, ADVERT_BYTES));
  await connectTo(tool, link, peer);
  await link.side.completeConnect();
  const { bytes } = link.poll() ?? (await link.next());
  if (bytes !== ADVERT_BYTES)
    throw new Error(`${peer.address}, port ${peer.port}, is not a server of ${tool.name}.`);
  const { remote, reads } = peersMemory(link, memory.bytes);
  const limit = options.read ? Math.min(depth, limits.outboundReads, reads) : depth;

  const columns = { iterations: ITERATIONS, halves: 1, directions: 1 } as const;
  await sweep(tool, side, link, options, columns, async (size, iterations, round) => {
    const list = memory.list(0, size, options.nSge);
    let posted = 0;
    for (; round.done < iterations; round.done += 1) {
      while (posted < iterations && posted - round.done < limit) {
        if (options.read) link.read(list, remote, 0);
        else link.write(list, remote, 0);
        posted += 1;
      }
      if (link.poll() === undefined) await link.next();
    }
  });
  link.send([]);
  if (link.poll() === undefined) await link.next();
}

export const rpingCommand = tool(
  withTransfer(
    new Command('rping')
      .description(
        'measure RDMA Writes or Reads per second (Latency: time per request, Bytes/Sec: one direction)',
      )
      .option('-w, --write', 'RDMA Writes (the default); the server permits both')
      .option('-r, --read', 'RDMA Reads'),
    ITERATIONS,
  ),
  rpingOptions,
  { port: PORT },
  (one, address, options) => (options.server ? server : client)(one, address, options),
);
