/**
 * `nd rpingpong`: measures the latency of RDMA Writes back and forth. Each side polls the last byte of the message, which
 * is written last. The client announces each size in a message. A message of 0 bytes ends the test.
 */
import { Command } from 'commander';
import type { SocketAddress } from '../../index.js';
import { memoryFor } from '../sides/connected-side.js';
import { ADVERT_BYTES, advertise, peersMemory } from './advert.js';
import { checkSge, type Round, sweep } from './measure.js';
import { MAX_BYTES, type TransferOptions, transferOptions, withTransfer } from './measure-options.js';
import { type Tool, tool } from './tool.js';
import {
  awaitClient,
  connectTo,
  Kind,
  type Link,
  type Memory,
  type Mode,
  modeOf,
  openSide,
  openTowards,
  type Remote,
  type Side,
} from './tool-side.js';

const PORT = 54_327;
const ITERATIONS = 100_000;
const INITIATORS = 16;
/** The last byte of a message, which identifies its sender. */
const FROM_CLIENT = 'X'.charCodeAt(0);
const FROM_SERVER = 'Y'.charCodeAt(0);

/** One side of the ping-pong. */
class Player {
  /** Buffer for control messages: received ones in the first half, sent ones in the second. */
  #control!: Memory;
  /** Target of the peer's Writes. */
  #incoming!: Memory;
  #outgoing!: Memory;
  #remote!: Remote;
  #unfinished = 0;
  /** Length of a received message that has not been processed yet. */
  #received: number | undefined;

  private constructor(
    readonly link: Link,
    readonly nSge: number,
  ) {}

  static async create(tool: Tool, side: Side, mode: Mode, { nSge }: TransferOptions): Promise<Player> {
    if (side.limits.inOrder === false) {
      throw new Error(
        'The adapter must place data in order, because the tool polls the last byte of each message.',
      );
    }
    checkSge(side, nSge);
    const link = side.link(tool, mode, { receives: 2, initiators: INITIATORS, sge: nSge });
    const player = new Player(link, nSge);
    player.#control = await side.register(memoryFor(2 * ADVERT_BYTES));
    player.#incoming = await side.register(memoryFor(MAX_BYTES));
    player.#outgoing = await side.register(memoryFor(MAX_BYTES));
    player.#expect();
    return player;
  }

  #expect(): void {
    this.link.receive(0, this.#control.list(0, ADVERT_BYTES));
  }

  /** Exchanges addresses and tokens of memory with the peer. */
  async exchange(): Promise<void> {
    const { bytes } = this.#control;
    advertise(this.link, this.#incoming, 0, bytes.subarray(ADVERT_BYTES));
    this.#send(ADVERT_BYTES);
    if ((await this.nextLength()) !== ADVERT_BYTES)
      throw new Error('The peer must be nd rpingpong; it sent a message of another length.');
    this.#remote = peersMemory(this.link, bytes).remote;
    this.#expect();
  }

  /** Announces the next size, or the end if no size is given. */
  async announce(size?: number, iterations = 0): Promise<void> {
    await this.settle();
    const view = new DataView(this.#control.bytes.buffer, ADVERT_BYTES);
    view.setUint32(0, size ?? 0, true);
    view.setUint32(4, iterations, true);
    this.#send(size === undefined ? 0 : 8);
  }

  /** Waits for the peer's announcement; undefined means the end. */
  async announced(): Promise<{ size: number; iterations: number } | undefined> {
    if ((await this.nextLength()) === 0) return undefined;
    const view = new DataView(this.#control.bytes.buffer);
    const size = view.getUint32(0, true);
    this.#expect();
    if (size < 1 || size > MAX_BYTES)
      throw new Error(`The announced size must be from 1 to ${MAX_BYTES}; got ${size}.`);
    return { size, iterations: view.getUint32(4, true) };
  }

  #send(length: number): void {
    this.link.send(this.#control.list(ADVERT_BYTES, length));
    this.#unfinished += 1;
  }

  /** Waits for a message and returns its length. */
  async nextLength(): Promise<number> {
    while (this.#received === undefined) this.#account(this.link.poll() ?? (await this.link.next()));
    const length = this.#received;
    this.#received = undefined;
    return length;
  }

  #account({ kind, bytes }: { kind: number; bytes: number }): void {
    if (kind === Kind.RECEIVE) this.#received = bytes;
    else this.#unfinished -= 1;
  }

  /** Waits until all requests of this side have completed. */
  async settle(): Promise<void> {
    while (this.#unfinished > 0) this.#account(this.link.poll() ?? (await this.link.next()));
  }

  /** Runs `iterations` round trips. The client writes first, then waits for the server's Write. */
  async play(
    size: number,
    iterations: number,
    mine: number,
    theirs: number,
    round: Round = { done: 0 },
  ): Promise<void> {
    const { link } = this;
    const incoming = this.#incoming.bytes;
    const last = size - 1;
    const list = this.#outgoing.list(0, size, this.nSge);
    this.#outgoing.bytes[last] = mine;
    const leads = mine === FROM_CLIENT;
    for (let i = 0; i < iterations; i += 1) {
      if (!leads) await this.#pollByte(incoming, last, theirs);
      if (this.#unfinished === INITIATORS) await this.settle();
      link.write(list, this.#remote, 0);
      this.#unfinished += 1;
      if (leads) await this.#pollByte(incoming, last, theirs);
      round.done += 1;
    }
    await this.settle();
    // A longer message must not contain the value of its last byte here.
    this.#outgoing.bytes[last] = 0;
  }

  /** Polls until the byte has the value, and resets it. */
  async #pollByte(bytes: Uint8Array, at: number, value: number): Promise<void> {
    // An ordinary read could be optimized, because the compiler cannot know of the peer's Writes.
    while (Atomics.load(bytes, at) !== value) {
      const done = this.link.pollOnce();
      if (done !== undefined) this.#account(done);
      else if (this.link.mustYield) await this.link.yieldToLoop();
    }
    bytes[at] = 0;
  }
}

async function server(tool: Tool, address: SocketAddress, options: TransferOptions): Promise<void> {
  using side = await openSide(options.spi, address);
  const player = await Player.create(tool, side, modeOf(options), options);
  await using link = player.link;
  await awaitClient(tool, side, link, address.port);
  await link.side.accept().abortOn(tool.signal);
  await player.exchange();
  for (let next = await player.announced(); next !== undefined; next = await player.announced()) {
    await player.play(next.size, next.iterations, FROM_SERVER, FROM_CLIENT);
  }
  await link.peerGone();
  tool.result({ tool: tool.name, spi: options.spi, mode: modeOf(options), local: side.address.address });
}

async function client(tool: Tool, peer: SocketAddress, options: TransferOptions): Promise<void> {
  using side = await openTowards(options.spi, peer);
  const player = await Player.create(tool, side, modeOf(options), options);
  await using link = player.link;
  await connectTo(tool, link, peer);
  await link.side.completeConnect();
  await player.exchange();
  const columns = { iterations: ITERATIONS, halves: 1, directions: 1 } as const;
  await sweep(tool, side, link, options, columns, async (size, iterations, round) => {
    await player.announce(size, iterations);
    await player.play(size, iterations, FROM_CLIENT, FROM_SERVER, round);
  });
  await player.announce();
  await player.settle();
}

export const rpingpongCommand = tool(
  withTransfer(
    new Command('rpingpong').description(
      'measure RDMA Writes back and forth, detected by polling memory (Latency: a whole round trip, Bytes/Sec: one direction)',
    ),
    ITERATIONS,
  ),
  transferOptions,
  { port: PORT },
  (one, address, options) => (options.server ? server : client)(one, address, options),
);
