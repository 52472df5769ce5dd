/** Connects `iovalkey` and `ioredis` to Valkey over RDMA: `new Redis({ host, port, Connector: ValkeyConnector })`. */
import { connectValkey, type ValkeyOptions } from './connect.js';
import type { TransferStream } from './transfer-stream.js';

/** The libraries create a connector for each client from its options, and call `connect` whenever the client connects. */
export class ValkeyConnector {
  #stream: TransferStream | undefined;

  constructor(private readonly options: ValkeyOptions) {}

  /** Never fails. If the server is unreachable, the stream emits 'error' and 'close', and the library retries. */
  async connect(): Promise<TransferStream> {
    this.#stream = connectValkey(this.options);
    return this.#stream;
  }

  disconnect(): void {
    this.#stream?.end();
  }

  /** Whether the server that replies is the intended one. */
  readonly check = (): boolean => true;
}
