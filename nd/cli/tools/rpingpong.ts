/**
 * `nd rpingpong`: the time until memory that a peer writes has changed, there and back. Each side spins on the last
 * byte of the message, which a Write changes last. Before each size the client announces it; a message of 0 bytes is
 * the end.
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
/** The last byte of a message, by its writer. */
const FROM_CLIENT = 'X'.charCodeAt(0);
const FROM_SERVER = 'Y'.charCodeAt(0);

/** One side of the ping-pong. */
class Player {
  /** Control messages are received here, and sent from its second half. */
  #control!: Memory;
  /** The peer writes here. */
  #incoming!: Memory;
  #outgoing!: Memory;
  #remote!: Remote;
  #unfinished = 0;
  /** Length of a received message that was not processed yet. */
  #heard: number | undefined;

  private constructor(
    readonly link: Link,
    readonly nSge: number,
  ) {}

  static async create(tool: Tool, side: Side, mode: Mode, { nSge }: TransferOptions): Promise<Player> {
    if (side.limits.inOrder === false) {
      throw new Error(
        'The adapter must place data in order, because the tool polls on the last byte of each message.',
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

  /** Exchanges addresses and tokens of memory. */
  async meet(): Promise<void> {
    const { bytes } = this.#control;
    advertise(this.link, this.#incoming, 0, bytes.subarray(ADVERT_BYTES));
    this.#say(ADVERT_BYTES);
    if ((await this.hear()) !== ADVERT_BYTES) throw new Error('The peer is not nd rpingpong.');
    this.#remote = peersMemory(this.link, bytes).remote;
    this.#expect();
  }

  /** Announces the next step; without arguments: the end. */
  async announce(size?: number, iterations = 0): Promise<void> {
    await this.settle();
    const view = new DataView(this.#control.bytes.buffer, ADVERT_BYTES);
    view.setUint32(0, size ?? 0, true);
    view.setUint32(4, iterations, true);
    this.#say(size === undefined ? 0 : 8);
  }

  /** The peer's announcement; undefined: the end. */
  async announced(): Promise<{ size: number; iterations: number } | undefined> {
    if ((await this.hear()) === 0) return undefined;
    const view = new DataView(this.#control.bytes.buffer);
    const size = view.getUint32(0, true);
    this.#expect();
    if (size < 1 || size > MAX_BYTES) throw new Error(`The client announced messages of ${size} bytes.`);
    return { size, iterations: view.getUint32(4, true) };
  }

  #say(length: number): void {
    this.link.send(this.#control.list(ADVERT_BYTES, length));
    this.#unfinished += 1;
  }

  /** The length of the next message. */
  async hear(): Promise<number> {
    while (this.#heard === undefined) this.#account(this.link.poll() ?? (await this.link.next()));
    const length = this.#heard;
    this.#heard = undefined;
    return length;
  }

  #account({ kind, bytes }: { kind: number; bytes: number }): void {
    if (kind === Kind.RECEIVE) this.#heard = bytes;
    else this.#unfinished -= 1;
  }

  /** Waits for all own requests. */
  async settle(): Promise<void> {
    while (this.#unfinished > 0) this.#account(this.link.poll() ?? (await this.link.next()));
  }

  /** Writes and waits for the answer, or the other way round, `iterations` times. */
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
      if (!leads) await this.#watch(incoming, last, theirs);
      if (this.#unfinished === INITIATORS) await this.settle();
      link.write(list, this.#remote, 0);
      this.#unfinished += 1;
      if (leads) await this.#watch(incoming, last, theirs);
      round.done += 1;
    }
    await this.settle();
    // In longer messages this byte must not look like their end.
    this.#outgoing.bytes[last] = 0;
  }

  /** Spins until the byte has the value, and resets it. */
  async #watch(bytes: Uint8Array, at: number, value: number): Promise<void> {
    // The compiler does not know of the peer's writes.
    while (Atomics.load(bytes, at) !== value) {
      const done = this.link.glance();
      if (done !== undefined) this.#account(done);
      else if (this.link.tired) await this.link.rest();
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
  await player.meet();
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
  await player.meet();
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
      'RDMA Writes back and forth, seen by spinning on memory; Latency: a whole round trip, Bytes/Sec: one direction',
    ),
    ITERATIONS,
  ),
  transferOptions,
  { port: PORT },
  (one, address, options) => (options.server ? server : client)(one, address, options),
);
