/** Connects to a Valkey server over RDMA: `connectValkey` is to it what `net.connect` is over TCP. */
import { lookup } from 'node:dns/promises';
import { addAbortSignal } from 'node:stream';
import { addressOf, gidOf, type KernelOptionsInput, openProvider } from 'networkdirect/winverbs';
import { CONNECT_PARAM, TransferQueue, type TransferSizes } from './transfer-queue.js';
import { TransferStream } from './transfer-stream.js';

/** Options of {@link connectValkey}. */
export interface ValkeyOptions extends TransferSizes {
  /** A name or an IP address; default '127.0.0.1'. */
  readonly host?: string | undefined;
  /** Default 6379. */
  readonly port?: number | undefined;
  /** Destroys the stream, with an AbortError. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds between two keep-alives; default 3000. */
  readonly keepAliveMs?: number | undefined;
  /** Of `openProvider`: `{ hca: 'rdma' }` chooses the host's RDMA NICs alone. Default: the environment variable ND_OPTIONS. */
  readonly kernel?: KernelOptionsInput | undefined;
}

/** A stream that is being connected, as that of `net.connect`. Failures destroy it. */
export function connectValkey(options: ValkeyOptions = {}): TransferStream {
  const stream = new TransferStream('client', options.keepAliveMs);
  if (options.signal !== undefined) addAbortSignal(options.signal, stream);
  dial(stream, options).catch((error) => stream.destroy(error));
  return stream;
}

async function dial(stream: TransferStream, options: ValkeyOptions): Promise<void> {
  const { host = '127.0.0.1', port = 6379, kernel } = options;
  const { address, family } = await lookup(host);
  if (stream.destroyed) return;
  const peer = { address, port, family: family === 6 ? 6 : 4 } as const;
  // What is made from it keeps it.
  using provider = openProvider(kernel);
  const { device, addressVector } = provider.resolvePath(peer);
  const local = { ...peer, address: addressOf(gidOf(addressVector.sourceGid)), port: 0 };
  const endpoint = provider.createConnectEndpoint();
  const queue = new TransferQueue(endpoint, provider.openDevice(device.deviceGuid), options);
  await stream.open(queue, async () => {
    endpoint.bindAddress(local);
    endpoint.resolveRoute(peer);
    await endpoint.connect(queue.qp, peer, CONNECT_PARAM);
    await endpoint.accept(null, {});
  });
}
