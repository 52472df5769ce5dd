/**
 * `nd ping`: measures messages per second from client to server. The server grants credits, so that every message finds a Receive. Accept
 * contains their number, and each message of 1 byte grants another half of them. The server replies to a message of 0 bytes, which arrives
 * after all others, with a message of 0 bytes. A second such message in succession ends the test.
 */
import { Command } from 'commander';
import type { SocketAddress } from '../../index.js';
import { memoryFor } from '../sides/connected-side.js';
import { CONTROL_RECEIVES, checkSge, type Round, sweep } from './measure.js';
import { MAX_BYTES, type TransferOptions, transferOptions, withTransfer } from './measure-options.js';
import { type Tool, tool } from './tool.js';
import { awaitClient, connectTo, Kind, modeOf, openSide, openTowards } from './tool-side.js';

const PORT = 54_324;
const ITERATIONS = 500_000;

async function server(tool: Tool, address: SocketAddress, options: TransferOptions): Promise<void> {
  using side = await openSide(options.spi, address);
  checkSge(side, options.nSge);
  const { receiveDepth, completionDepth } = side.limits;
  // The client never uses more than twice its pipeline. One Receive is reserved for the message of 0 bytes.
  const credits = Math.min(
    2 * options.pipeline,
    2 * Math.floor((receiveDepth - 1) / 2),
    completionDepth - 64,
  );
  const half = credits / 2;
  const memory = await side.register(memoryFor(MAX_BYTES));
  const full = memory.list(0, MAX_BYTES, options.nSge);
  const credit = memory.list(0, 1);
  await using link = side.link(tool, modeOf(options), {
    receives: credits + 1,
    initiators: CONTROL_RECEIVES,
    sge: options.nSge,
  });
  for (let i = 0; i <= credits; i += 1) link.receive(0, full);
  await awaitClient(tool, side, link, address.port);
  const offer = new Uint8Array(4);
  new DataView(offer.buffer).setUint32(0, credits, true);
  await link.side.accept({ privateData: offer }).abortOn(tool.signal);

  let received = 0;
  for (let replied = false; ; ) {
    const { kind, bytes } = link.poll() ?? (await link.next());
    if (kind !== Kind.RECEIVE) continue;
    if (bytes === 0 && replied) break;
    link.receive(0, full);
    replied = bytes === 0;
    if (replied) {
      link.send([]);
      continue;
    }
    received += 1;
    if (received === half) {
      received = 0;
      link.send(credit);
    }
  }
  await link.peerGone();
  tool.result({ tool: tool.name, spi: options.spi, mode: modeOf(options), local: side.address.address });
}

async function client(tool: Tool, peer: SocketAddress, options: TransferOptions): Promise<void> {
  using side = await openTowards(options.spi, peer);
  checkSge(side, options.nSge);
  const limit = Math.min(options.pipeline, side.limits.queueDepth - 1);
  const memory = await side.register(memoryFor(MAX_BYTES));
  const control = memory.list(0, 1);
  await using link = side.link(tool, modeOf(options), {
    receives: CONTROL_RECEIVES,
    initiators: limit + 1,
    sge: options.nSge,
  });
  for (let i = 0; i < CONTROL_RECEIVES; i += 1) link.receive(0, control);
  await connectTo(tool, link, peer);
  const offer = link.side.privateData;
  let credits = new DataView(offer.buffer, offer.byteOffset).getUint32(0, true);
  const half = Math.floor(credits / 2);
  if (half < 1) throw new Error(`${peer.address}, port ${peer.port}, is not a server of ${tool.name}.`);
  await link.side.completeConnect();

  await sweep(tool, side, link, options, { iterations: ITERATIONS, halves: 1, directions: 1 }, transfer);
  await link.sendEnd();

  async function transfer(size: number, iterations: number, round: Round): Promise<void> {
    const message = memory.list(0, size, options.nSge);
    let sent = 0;
    while (round.done < iterations) {
      while (sent < iterations && sent - round.done < limit && credits > 0) {
        link.send(message);
        sent += 1;
        credits -= 1;
      }
      const { kind } = link.poll() ?? (await link.next());
      if (kind === Kind.SEND) round.done += 1;
      else {
        link.receive(0, control);
        credits += half;
      }
    }
    link.send([]);
    // The loop ends after the Send and the reply have completed; credits may arrive before the reply.
    for (let left = 2; left > 0; ) {
      const { kind, bytes } = link.poll() ?? (await link.next());
      if (kind === Kind.RECEIVE) link.receive(0, control);
      if (kind === Kind.SEND || bytes === 0) left -= 1;
      else credits += half;
    }
  }
}

export const pingCommand = tool(
  withTransfer(
    new Command('ping').description(
      'measure messages per second from client to server (Latency: time per message, Bytes/Sec: one direction)',
    ),
    ITERATIONS,
  ),
  transferOptions,
  { port: PORT },
  (one, address, options) => (options.server ? server : client)(one, address, options),
);
