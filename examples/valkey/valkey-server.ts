/** Serves clients of Valkey's RDMA transport. */
import {
  type IWVConnectEndpoint,
  type IWVProvider,
  type KernelOptionsInput,
  openProvider,
} from 'networkdirect/winverbs';
import { type RespLimits, RespService } from './resp-service.js';
import { CONNECT, Field, Opcode, type TransferOptions, TransferStream, wrong } from './transfer-stream.js';

/** Options of {@link ValkeyServer}. */
export interface ServerOptions extends TransferOptions, RespLimits {
  /** An IP address of this host; default '127.0.0.1'. */
  readonly host?: string | undefined;
  /** Port; default 6379. 0: a free port. */
  readonly port?: number | undefined;
  /** Maximum number of simultaneous connections; more are rejected. Default 256. */
  readonly maxClients?: number | undefined;
  /** Options of `openProvider`. Default: the environment variable ND_OPTIONS. */
  readonly kernel?: KernelOptionsInput | undefined;
}

/** Maximum number of waiting connection requests. */
const BACKLOG = 511;

/** The server's end of a connection. It replies to GET_FEATURE with an empty set of features. */
class ServerStream extends TransferStream {
  protected override obey(command: Buffer): void {
    const opcode = command.readUInt16BE();
    if (opcode === Opcode.GET_FEATURE) {
      command.copy(this.own(opcode), Field.SELECT, Field.SELECT, Field.SELECT + 2);
      this.command(opcode);
    } else if (opcode === Opcode.SET_FEATURE) {
      if (command.readBigUInt64BE(Field.FEATURES) !== 0n) throw wrong('unsupported features');
    } else super.obey(command);
  }
}

export class ValkeyServer {
  readonly port: number;
  readonly #service: RespService;
  readonly #provider: IWVProvider;
  readonly #listener: IWVConnectEndpoint;
  readonly #clients = new Set<TransferStream>();
  #closed = false;

  /** Listens. @throws WvError */
  constructor(private readonly options: ServerOptions = {}) {
    const { host = '127.0.0.1', port = 6379 } = options;
    this.#service = new RespService(options);
    this.#provider = openProvider(options.kernel);
    this.#listener = this.#provider.createConnectEndpoint();
    try {
      this.port = this.#listener.bindAddress({
        family: host.includes(':') ? 6 : 4,
        address: host,
        port,
      }).port;
      this.#listener.listen(BACKLOG);
    } catch (error) {
      this.close();
      throw error;
    }
    void this.#accept();
  }

  get clients(): number {
    return this.#clients.size;
  }

  /** Ends all connections. */
  close(): void {
    this.#closed = true;
    for (const client of this.#clients) client.destroy();
    this.#listener.release();
    this.#provider.release();
  }

  async #accept(): Promise<void> {
    while (!this.#closed) {
      const endpoint = this.#provider.createConnectEndpoint();
      try {
        await this.#listener.getRequest(endpoint);
        this.#welcome(endpoint);
      } catch (error) {
        endpoint.release();
        if (!this.#closed) console.error(error);
      }
    }
  }

  #welcome(endpoint: IWVConnectEndpoint): void {
    const { maxClients = 256 } = this.options;
    if (this.#clients.size >= maxClients) {
      endpoint.reject();
      endpoint.release();
      return;
    }
    const { device, initiatorDepth, responderResources } = endpoint.query();
    const opened = this.#provider.openDevice(device.deviceGuid);
    const stream = new ServerStream(this.options);
    this.#clients.add(stream);
    // A faulty client loses only its own connection.
    stream.on('error', () => {});
    stream.on('close', () => this.#clients.delete(stream));
    this.#service.serve(stream);
    const param = {
      ...CONNECT,
      initiatorDepth: Math.min(1, initiatorDepth),
      responderResources: Math.min(1, responderResources),
    };
    void stream.open(endpoint, opened, async (qp) => {
      await endpoint.accept(qp, param);
    });
  }
}
