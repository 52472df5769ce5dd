/** Ping-pong of Send and Receive through the NetworkDirect SPI (v1). An empty message ends it. */
import {
  type INDAdapter,
  type INDCompletionQueue,
  type INDConnector,
  type INDEndpoint,
  NdOpFlag,
  type NdResult,
  type NdSge,
  openNetworkDirect,
} from '../../nd/index.js';
import { each, type Sample, timed } from '../statistics.js';
import type { JobOf } from './job.js';
import { libraryOptions } from './library.js';

type NdPingPong = JobOf<'nd-ping-pong'>;

const ADDRESS = '127.0.0.1';
const DEPTH = 16;
/** One Send in this many has a result. */
const RESULT_EVERY = DEPTH / 2;
const RECEIVES = 4;
const BATCH = 32;

class NdPlayer {
  readonly #results: NdResult[] = [];
  readonly #sent: NdResult = { status: 0, bytesTransferred: 0 };
  readonly #received: NdResult[] = [];
  /** Index of the receive that was taken last. */
  #taken = RECEIVES - 1;
  #sends = 0;

  private constructor(
    readonly endpoint: INDEndpoint,
    private readonly queue: INDCompletionQueue,
    private readonly out: readonly NdSge[],
    private readonly room: readonly NdSge[],
  ) {
    // Receives complete in the order in which they were posted.
    for (let i = 0; i < RECEIVES; i += 1) this.#received.push({ status: 0, bytesTransferred: 0 });
    for (const result of this.#received) endpoint.receive(result, room);
  }

  static async create(adapter: INDAdapter, connector: INDConnector, size: number): Promise<NdPlayer> {
    const queue = adapter.createCompletionQueue(4 * DEPTH);
    const endpoint = connector.createEndpoint({
      inboundCompletionQueue: queue,
      outboundCompletionQueue: queue,
      inboundEntries: DEPTH,
      outboundEntries: DEPTH,
    });
    const memory = await adapter.registerMemory(new Uint8Array(new SharedArrayBuffer(2 * size)));
    return new NdPlayer(
      endpoint,
      queue,
      [{ memory, offset: size, length: size }],
      [{ memory, offset: 0, length: size }],
    );
  }

  send(end = false): void {
    this.#sends += 1;
    const flags = this.#sends % RESULT_EVERY === 0 ? 0 : NdOpFlag.SILENT_SUCCESS;
    this.endpoint.send(this.#sent, end ? [] : this.out, flags);
  }

  /** Spins until a message arrives; returns its length. */
  take(): number {
    const next = (this.#taken + 1) % RECEIVES;
    for (;;) {
      if (this.queue.getResults(this.#results, 1) === 0) continue;
      const result = this.#results[0]!;
      if (result.status !== 0) throw new Error(`A request ended in status 0x${result.status.toString(16)}.`);
      if (result !== this.#received[next]) continue;
      this.#taken = next;
      return result.bytesTransferred;
    }
  }

  /** Sends, and posts the receive that was taken again. */
  reply(): void {
    this.send();
    this.endpoint.receive(this.#received[this.#taken]!, this.room);
  }
}

/** Passes the port to `onPort`, and answers one peer until the empty message. */
export async function serveNd(job: NdPingPong, onPort: (port: number) => void): Promise<void> {
  const adapter = openNetworkDirect(libraryOptions(job)).openAdapter(ADDRESS);
  const listener = adapter.listen();
  onPort(listener.port);
  const connector = adapter.createConnector();
  const player = await NdPlayer.create(adapter, connector, job.size);
  await listener.getConnectionRequest(connector);
  await connector.accept(player.endpoint);
  while (player.take() > 0) player.reply();
  await connector.notifyDisconnect().then(undefined, () => {});
}

export async function measureNd(job: NdPingPong, port: number): Promise<Sample> {
  const adapter = openNetworkDirect(libraryOptions(job)).openAdapter(ADDRESS);
  const connector = adapter.createConnector();
  const player = await NdPlayer.create(adapter, connector, job.size);
  await connector.connect(player.endpoint, `${ADDRESS}:${port}`);
  await connector.completeConnect();
  player.send();
  const sample = timed(job.seconds, () => {
    for (let i = 0; i < BATCH; i += 1) {
      player.take();
      player.reply();
    }
  });
  player.take();
  player.send(true);
  return each(sample, 2 * BATCH);
}
