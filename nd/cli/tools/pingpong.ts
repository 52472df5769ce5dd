/**
 * `nd pingpong`: measures the latency of messages. The server replies to each message with one of the same length. A
 * message of 0 bytes ends the test.
 */
import { Command } from 'commander';
import type { SocketAddress } from '../../index.js';
import { memoryFor } from '../sides/connected-side.js';
import { checkSge, sweep } from './measure.js';
import { MAX_BYTES, type TransferOptions, transferOptions, withTransfer } from './measure-options.js';
import { type Tool, tool } from './tool.js';
import { awaitClient, connectTo, Kind, modeOf, openSide, openTowards, type Piece } from './tool-side.js';

const PORT = 54_325;
const ITERATIONS = 100_000;
const QUEUES = { receives: 2, initiators: 16 };

async function server(tool: Tool, address: SocketAddress, options: TransferOptions): Promise<void> {
  using side = await openSide(options.spi, address);
  checkSge(side, options.nSge);
  const memory = await side.register(memoryFor(2 * MAX_BYTES));
  const full = memory.list(0, MAX_BYTES, options.nSge);
  await using link = side.link(tool, modeOf(options), { ...QUEUES, sge: options.nSge });
  for (let i = 0; i < QUEUES.receives; i += 1) link.receive(0, full);
  await awaitClient(tool, side, link, address.port);
  await link.side.accept().abortOn(tool.signal);

  let reply: Piece[] = [];
  for (let length = 0; ; ) {
    const { kind, bytes } = link.poll() ?? (await link.next());
    if (kind !== Kind.RECEIVE) continue;
    if (bytes === 0) break;
    if (bytes !== length) {
      reply = memory.list(MAX_BYTES, bytes, options.nSge);
      length = bytes;
    }
    link.receive(0, full);
    link.send(reply);
  }
  await link.peerGone();
  tool.result({ tool: tool.name, spi: options.spi, mode: modeOf(options), local: side.address.address });
}

async function client(tool: Tool, peer: SocketAddress, options: TransferOptions): Promise<void> {
  using side = await openTowards(options.spi, peer);
  checkSge(side, options.nSge);
  const memory = await side.register(memoryFor(2 * MAX_BYTES));
  const full = memory.list(0, MAX_BYTES, options.nSge);
  await using link = side.link(tool, modeOf(options), { ...QUEUES, sge: options.nSge });
  for (let i = 0; i < QUEUES.receives; i += 1) link.receive(0, full);
  await connectTo(tool, link, peer);
  await link.side.completeConnect();

  const columns = { iterations: ITERATIONS, halves: 2, directions: 2 } as const;
  await sweep(tool, side, link, options, columns, async (size, iterations, round) => {
    const message = memory.list(MAX_BYTES, size, options.nSge);
    for (let i = 0; i < iterations; i += 1) {
      link.send(message);
      // The reply and the Send complete in either order.
      for (let left = 2; left > 0; left -= 1) {
        const { kind, bytes } = link.poll() ?? (await link.next());
        if (kind !== Kind.RECEIVE) continue;
        if (bytes !== size) throw new Error(`The reply must have ${size} bytes; got ${bytes}.`);
        link.receive(0, full);
      }
      round.done += 1;
    }
  });
  await link.sendEnd();
}

export const pingpongCommand = tool(
  withTransfer(
    new Command('pingpong').description(
      'measure messages back and forth (Latency: half a round trip, Bytes/Sec: both directions)',
    ),
    ITERATIONS,
  ),
  transferOptions,
  { port: PORT },
  (one, address, options) => (options.server ? server : client)(one, address, options),
);
