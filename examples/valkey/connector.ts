/** Lets `iovalkey` and `ioredis` speak to Valkey over RDMA: `new Redis({ host, port, Connector: ValkeyConnector })`. */
import { connectValkey, type ValkeyOptions } from './connect.js';
import type { TransferStream } from './transfer-stream.js';

/** The libraries create one for each client, from its options, and request a stream from it whenever the client connects. */
export class ValkeyConnector {
  #stream: TransferStream | undefined;

  constructor(private readonly options: ValkeyOptions) {}

  /** Never fails: that a server is not there comes as the stream's 'error' and 'close', and the library tries again. */
  async connect(): Promise<TransferStream> {
    this.#stream = connectValkey(this.options);
    return this.#stream;
  }

  disconnect(): void {
    this.#stream?.end();
  }

  /** Whether the server that answers is the right one. */
  readonly check = (): boolean => true;
}
