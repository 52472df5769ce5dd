// A peer of `networkdirect/net` that speaks ND v2 and sends whatever bytes a test wants.
import {
  type IND2Adapter,
  type IND2CompletionQueue,
  type IND2Connector,
  type IND2Listener,
  type IND2MemoryRegion,
  type IND2QueuePair,
  Nd2MrFlag,
  Nd2RequestType,
  type Nd2Result,
  ndCleanup,
  ndOpenAdapter,
  ndStartup,
  Status,
} from '../../nd/index.js';
import { encodeHello, type Hello, Kind } from '../../nd/net/wire.js';

const LOOPBACK = '127.0.0.1';
const SLOT = 131_072;
const RECEIVES = 32;
const DEPTH = 512;

/** The hello of an honest peer. */
export const honest: Hello = {
  kind: Kind.CHANNEL,
  slots: 128,
  slotBytes: 4096,
  maxMessageBytes: 2 ** 28,
  ringBytes: 0,
};

/** One end of a connection, and all that it needs. */
export class RawPeer implements Disposable {
  readonly #adapter: IND2Adapter;
  readonly #queue: IND2CompletionQueue;
  readonly #region: IND2MemoryRegion;
  readonly #memory = new Uint8Array((RECEIVES + 1) * SLOT);
  readonly #queuePair: IND2QueuePair;
  readonly connector: IND2Connector;
  #listener: IND2Listener | undefined;
  /** Payloads with headers, as they came. */
  readonly received: Buffer[] = [];

  private constructor() {
    ndStartup();
    this.#adapter = ndOpenAdapter(LOOPBACK);
    this.#queue = this.#adapter.createCompletionQueue(2 * DEPTH);
    this.#region = this.#adapter.createMemoryRegion();
    this.#queuePair = this.#adapter.createQueuePair({
      receiveCompletionQueue: this.#queue,
      initiatorCompletionQueue: this.#queue,
      context: undefined,
      receiveQueueDepth: RECEIVES,
      initiatorQueueDepth: DEPTH,
    });
    this.connector = this.#adapter.createConnector();
  }

  async #post(): Promise<void> {
    await this.#region.register(this.#memory, Nd2MrFlag.ALLOW_LOCAL_WRITE | Nd2MrFlag.ALLOW_REMOTE_READ);
    for (let n = 1; n <= RECEIVES; n += 1) this.#receive(n * SLOT);
  }

  #receive(offset: number): void {
    this.#queuePair.receive(offset, [{ memory: this.#region, offset, length: SLOT }]);
  }

  /** Connects to a server, with any bytes as its hello. */
  static async connect(port: number, hello: Uint8Array = encodeHello(honest)): Promise<RawPeer> {
    const peer = new RawPeer();
    try {
      await peer.#post();
      peer.connector.bind({ family: 4, address: LOOPBACK, port: 0 });
      await peer.connector.connect(
        peer.#queuePair,
        { family: 4, address: LOOPBACK, port },
        { privateData: hello },
      );
      await peer.connector.completeConnect();
      return peer;
    } catch (error) {
      peer[Symbol.dispose]();
      throw error;
    }
  }

  /** Listens; `accepted` accepts one client, with any bytes as its hello. */
  static async listen(): Promise<{
    peer: RawPeer;
    port: number;
    accepted: (hello?: Uint8Array) => Promise<void>;
  }> {
    const peer = new RawPeer();
    await peer.#post();
    const listener = peer.#adapter.createListener();
    peer.#listener = listener;
    listener.bind({ family: 4, address: LOOPBACK, port: 0 });
    listener.listen();
    return {
      peer,
      port: listener.getLocalAddress().port,
      accepted: async (hello = encodeHello(honest)) => {
        await listener.getConnectionRequest(peer.connector);
        await peer.connector.accept(peer.#queuePair, { privateData: hello });
      },
    };
  }

  /** Sends the bytes as one Send. Returns before it has ended. */
  send(...frames: Uint8Array[]): void {
    const bytes = Buffer.concat(frames);
    this.#memory.set(bytes);
    this.#queuePair.send('send', [{ memory: this.#region, offset: 0, length: bytes.length }]);
  }

  /** Takes what has completed: received bytes, and the statuses of Sends. */
  async until(done: (peer: RawPeer) => boolean): Promise<void> {
    const results: Nd2Result[] = [];
    for (;;) {
      const count = this.#queue.getResults(results, 16);
      for (const result of results.slice(0, count)) {
        if (result.requestType !== Nd2RequestType.RECEIVE || result.status !== Status.SUCCESS) continue;
        const offset = result.requestContext as number;
        this.received.push(Buffer.from(this.#memory.subarray(offset, offset + result.bytesTransferred)));
        this.#receive(offset);
      }
      if (done(this)) return;
      if (count === 0) await this.#queue.notify('any');
    }
  }

  /** The peer has ended the connection. */
  async ended(): Promise<void> {
    await this.connector.notifyDisconnect();
  }

  [Symbol.dispose](): void {
    this.#listener?.release();
    this.connector.release();
    this.#queuePair.release();
    this.#queue.release();
    this.#region.release();
    this.#adapter.release();
    ndCleanup();
  }
}

/** A frame: the fields of its header, and its payload. */
export function frameOf(
  type: number,
  {
    flags = 0,
    data = 0,
    control = 0,
    ring = 0,
    id = 0,
    length,
    payload = Buffer.alloc(0),
  }: {
    flags?: number;
    data?: number;
    control?: number;
    ring?: number;
    id?: number;
    length?: number;
    payload?: Uint8Array;
  } = {},
): Buffer {
  const header = Buffer.alloc(16);
  header.writeUInt8(type, 0);
  header.writeUInt8(flags, 1);
  header.writeUInt16BE(data, 2);
  header.writeUInt16BE(control, 4);
  header.writeUInt16BE(ring, 6);
  header.writeUInt32BE(id, 8);
  header.writeUInt32BE(length ?? payload.length, 12);
  return Buffer.concat([header, payload]);
}
