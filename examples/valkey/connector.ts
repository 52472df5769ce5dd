/** Lets `iovalkey` and `ioredis` speak to Valkey over RDMA: `new Redis({ host, port, Connector: ValkeyConnector })`. */
import { connectValkey, type ValkeyOptions } from './connect.js';
import type { TransferStream } from './transfer-stream.js';

/** What these libraries make of their options, for each client, and ask for a stream whenever it connects. */
export class ValkeyConnector {
  #stream: TransferStream | undefined;

  constructor(private readonly options: ValkeyOptions) {}

  /** Always succeeds: a failure comes as the stream's 'error' and 'close', after which the library tries again. */
  async connect(): Promise<TransferStream> {
    this.#stream = connectValkey(this.options);
    return this.#stream;
  }

  /** Called by a client that connects no more. */
  disconnect(): void {
    this.#stream?.end();
  }

  /** Whether the server is the one that was looked for. */
  check(): boolean {
    return true;
  }
}
