/** Ping-pong of Send and Receive through the NetworkDirect SPI (v1). An empty message ends it. */

import {
  type INDCompletionQueue,
  type INDEndpoint,
  NdOpFlag,
  type NdResult,
  type NdSge,
} from 'networkdirect';
import { acceptSide, LOOPBACK, socketAddress } from '../../nd/cli/sides/connected-side.js';
import { HostV1, newResult, type SideV1 } from '../../nd/cli/sides/v1-side.js';
import { each, type Sample, timed } from '../samples.js';
import type { JobOf } from './job.js';
import { libraryOptions } from './library.js';

type NdPingPong = JobOf<'nd-ping-pong'>;

const DEPTH = 16;
/** One Send in this many has a result. */
const RESULT_EVERY = DEPTH / 2;
const RECEIVES = 4;
const BATCH = 32;

class NdPlayer {
  readonly #results: NdResult[] = [];
  readonly #sent: NdResult = { status: 0, bytesTransferred: 0 };
  readonly #received: NdResult[] = [];
  /** Index of the last consumed Receive. */
  #taken = RECEIVES - 1;
  #sends = 0;
  readonly endpoint: INDEndpoint;
  private readonly queue: INDCompletionQueue;
  private readonly out: readonly NdSge[];
  private readonly room: readonly NdSge[];

  constructor(
    readonly side: SideV1,
    size: number,
  ) {
    this.endpoint = side.endpoint;
    this.queue = side.inbound;
    this.out = side.sge(size, size);
    this.room = side.sge(0, size);
    // Receives complete in posting order.
    for (let i = 0; i < RECEIVES; i += 1) this.#received.push(newResult());
    for (const result of this.#received) this.endpoint.receive(result, this.room);
  }

  send(end = false): void {
    this.#sends += 1;
    const flags = this.#sends % RESULT_EVERY === 0 ? 0 : NdOpFlag.SILENT_SUCCESS;
    this.endpoint.send(this.#sent, end ? [] : this.out, flags);
  }

  /** Spins until a message arrives. Returns its length. */
  take(): number {
    const next = (this.#taken + 1) % RECEIVES;
    for (;;) {
      if (this.queue.getResults(this.#results, 1) === 0) continue;
      const result = this.#results[0]!;
      if (result.status !== 0)
        throw new Error(`A request failed with status 0x${result.status.toString(16)}.`);
      if (result !== this.#received[next]) continue;
      this.#taken = next;
      return result.bytesTransferred;
    }
  }

  /** Sends a message and reposts the consumed Receive. */
  reply(): void {
    this.send();
    this.endpoint.receive(this.#received[this.#taken]!, this.room);
  }
}

function playerOn(host: HostV1, size: number): NdPlayer {
  const bytes = new Uint8Array(new SharedArrayBuffer(2 * size));
  const sizes = { inboundEntries: DEPTH, outboundEntries: DEPTH };
  return new NdPlayer(host.newSide({ ...sizes, oneQueue: true, bytes }), size);
}

/** Passes the port to `onPort` and serves one peer until the empty message. */
export async function serveNd(job: NdPingPong, onPort: (port: number) => void): Promise<void> {
  const host = new HostV1(LOOPBACK, libraryOptions(job));
  onPort(host.listening.address.port);
  const player = playerOn(host, job.size);
  await acceptSide(host.listening, player.side);
  while (player.take() > 0) player.reply();
  await player.side.notifyDisconnect().then(undefined, () => {});
}

export async function measureNd(job: NdPingPong, port: number): Promise<Sample> {
  const player = playerOn(new HostV1(LOOPBACK, libraryOptions(job)), job.size);
  await player.side.establish(socketAddress(LOOPBACK, port));
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
