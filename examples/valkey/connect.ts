/** `connectValkey` connects to a Valkey server over RDMA as `net.connect` does over TCP. */
import { lookup } from 'node:dns/promises';
import { addAbortSignal } from 'node:stream';
import { addressOf, gidOf, type KernelOptionsInput, openProvider } from 'networkdirect/winverbs';

import { CONNECT, type TransferOptions, TransferStream } from './transfer-stream.js';

export interface ValkeyOptions extends TransferOptions {
  /** A name or an IP address; default '127.0.0.1'. */
  readonly host?: string | undefined;
  /** Port; default 6379. */
  readonly port?: number | undefined;
  /** Destroys the stream with an AbortError when aborted. */
  readonly signal?: AbortSignal | undefined;
  /** Options of `openProvider`, such as `{ hca: 'rdma' }` for RDMA NICs only; default: those of ND_OPTIONS. */
  readonly kernel?: KernelOptionsInput | undefined;
}

/** A stream that is being connected: it emits 'connect', or 'error' and 'close'. */
export function connectValkey(options: ValkeyOptions = {}): TransferStream {
  const stream = new TransferStream(options);
  if (options.signal !== undefined) addAbortSignal(options.signal, stream);
  dial(stream, options).catch((error) => stream.destroy(error));
  return stream;
}

async function dial(stream: TransferStream, options: ValkeyOptions): Promise<void> {
  const { host = '127.0.0.1', port = 6379, kernel } = options;
  const { address, family } = await lookup(host);
  if (stream.destroyed) return;
  const peer = { address, port, family: family === 6 ? 6 : 4 } as const;
  // Objects created from the provider keep it open.
  using provider = openProvider(kernel);
  const { device, addressVector } = provider.resolvePath(peer);
  const local = { ...peer, address: addressOf(gidOf(addressVector.sourceGid)), port: 0 };
  const endpoint = provider.createConnectEndpoint();
  await stream.open(endpoint, provider.openDevice(device.deviceGuid), async (qp) => {
    endpoint.bindAddress(local);
    endpoint.resolveRoute(peer);
    await endpoint.connect(qp, peer, CONNECT);
    await endpoint.accept(null, {});
  });
}
