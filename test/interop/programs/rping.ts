/**
 * rping: the client advertises a buffer, the server reads it, and writes the data to a second buffer that the client then advertises. A
 * message of 16 bytes announces each step to the other side.
 */
import { Command } from 'commander';
import * as z from 'zod';
import {
  type IWVConnectEndpoint,
  type IWVConnectQueuePair,
  openProvider,
  RemoteMemory,
  WcStatus,
  WvAccess,
  type WvConnectParam,
} from '../../../winverbs/index.js';
import { ipAddress, number, run } from './command.js';
import {
  addressTowards,
  connect,
  initialise,
  Listener,
  type Memory,
  type Queue,
  SIGNALED,
  Side,
  socketAddress,
  wcName,
} from './interop-side.js';

const DEFAULT_PORT = 7174;
const DEFAULT_BYTES = 64;
/** The server's default size. */
const MOST_BYTES = 65_535;
const options = z
  .object({
    server: z.boolean().default(false),
    client: z.boolean().default(false),
    address: ipAddress.optional(),
    local: ipAddress.optional(),
    port: number(1, 65_535).default(DEFAULT_PORT),
    count: number(0, 1e9).default(0),
    size: number(32, MOST_BYTES).optional(),
    verbose: z.boolean().default(false),
    validate: z.boolean().default(false),
    persistent: z.boolean().default(false),
  })
  .refine(({ server, client }) => server !== client, 'give one of --server and --client')
  .refine(({ client, address }) => !client || address !== undefined, '--client needs --address');
type Options = z.output<typeof options>;

const ADVERT_BYTES = 16;
/** One read in each direction. The peer always has a receive posted, so RNR retries do not matter. */
const connectParam: WvConnectParam = {
  responderResources: 1,
  initiatorDepth: 1,
  retryCount: 7,
  rnrRetryCount: 6,
};

/** The peer's buffer. */
interface Advert {
  readonly memory: RemoteMemory;
  readonly length: number;
}

/** A connection's queue pair, and the buffers of its messages. */
class Link {
  readonly queue: Queue;
  readonly qp: IWVConnectQueuePair;
  private readonly outgoing: Memory;
  private readonly incoming: Memory;

  constructor(readonly side: Side) {
    this.queue = side.queue(16);
    const { cq } = this.queue;
    this.qp = side.pd.createConnectQueuePair({
      sendCq: cq,
      receiveCq: cq,
      sendDepth: 4,
      sendSge: 1,
      receiveDepth: 2,
      receiveSge: 1,
      initiatorDepth: 1,
      responderResources: 1,
    });
    initialise(this.qp);
    this.outgoing = side.memory(ADVERT_BYTES, WvAccess.LOCAL_WRITE);
    this.incoming = side.memory(ADVERT_BYTES, WvAccess.LOCAL_WRITE);
    this.expect();
  }

  private expect(): void {
    this.qp.postReceive('receive', this.incoming.sge());
  }

  /** Advertises a buffer to the peer or, without one, lets it continue. */
  tell(buffer?: Memory): void {
    if (buffer !== undefined) {
      const view = new DataView(this.outgoing.bytes.buffer);
      view.setBigUint64(0, BigInt(buffer.region.address));
      view.setUint32(8, buffer.region.rkey);
      view.setUint32(12, buffer.bytes.length);
    }
    this.qp.send('send', this.outgoing.sge(), SIGNALED);
  }

  /** Waits for the peer's message. Completions of this side's sends may precede it. Returns undefined if the connection has ended. */
  async heard(): Promise<Advert | undefined> {
    for (;;) {
      const { context, status, length } = await this.queue.any();
      if (status === WcStatus.FLUSHED) return undefined;
      if (status !== WcStatus.SUCCESS) throw new Error(`The ${String(context)} failed: ${wcName(status)}.`);
      if (context !== 'receive') continue;
      if (length !== ADVERT_BYTES)
        throw new Error(`A message of ${length} bytes came instead of ${ADVERT_BYTES}.`);
      const view = new DataView(this.incoming.bytes.buffer);
      const memory = new RemoteMemory({ address: view.getBigUint64(0), rkey: view.getUint32(8) });
      const advert = { memory, length: view.getUint32(12) };
      this.expect();
      return advert;
    }
  }

  /** Waits for the completion of a request of this side. */
  async done(context: string): Promise<void> {
    while ((await this.queue.next()).context !== context);
  }
}

/** `rdma-ping-N: ` and letters that shift by one with each ping, then a NUL. */
function fill(bytes: Uint8Array, ping: number): void {
  const { written } = new TextEncoder().encodeInto(`rdma-ping-${ping}: `, bytes);
  for (let i = written; i < bytes.length; i += 1) bytes[i] = 65 + ((ping + i - written) % 58);
  bytes[bytes.length - 1] = 0;
}

const text = (bytes: Uint8Array): string =>
  new TextDecoder('latin1').decode(bytes.subarray(0, Math.max(0, bytes.indexOf(0))));

async function client(values: Options): Promise<void> {
  const { address, local, port, count, size = DEFAULT_BYTES, verbose, validate } = values;
  const peer = socketAddress(address!, port);
  const from = local ?? (await addressTowards(peer));
  using side = Side.open(from);
  const link = new Link(side);
  const source = side.memory(size, WvAccess.REMOTE_READ);
  const sink = side.memory(size, WvAccess.REMOTE_WRITE);
  const endpoint = await connect(side, link.qp, from, peer, connectParam);
  for (let ping = 0; count === 0 || ping < count; ping += 1) {
    fill(source.bytes, ping);
    sink.bytes.fill(0);
    for (const buffer of [source, sink]) {
      link.tell(buffer);
      if ((await link.heard()) === undefined) throw new Error(`The server hung up during ping ${ping}.`);
    }
    if (validate && Buffer.compare(source.bytes, sink.bytes) !== 0) {
      throw new Error(`Ping ${ping} came back different: ${text(sink.bytes)}`);
    }
    if (verbose) console.log(`ping data: ${text(sink.bytes)}`);
  }
  await endpoint.disconnect();
}

/** Serves one connection until the client ends it. */
async function serve(
  endpoint: IWVConnectEndpoint,
  side: Side,
  { size = MOST_BYTES, verbose }: Options,
): Promise<void> {
  const link = new Link(side);
  const buffer = side.memory(size, WvAccess.REMOTE_WRITE);
  await endpoint.accept(link.qp, connectParam);
  for (let source = await link.heard(); source !== undefined; source = await link.heard()) {
    const length = Math.min(source.length, size);
    link.qp.read('read', buffer.sge(0, length), SIGNALED, source.memory, 0);
    await link.done('read');
    if (verbose) console.log(`server ping data: ${text(buffer.bytes)}`);
    link.tell();
    const sink = await link.heard();
    if (sink === undefined) break;
    link.qp.write('write', buffer.sge(0, length), SIGNALED, sink.memory, 0);
    await link.done('write');
    link.tell();
  }
  endpoint.release();
}

async function server(values: Options): Promise<void> {
  const provider = openProvider();
  using listener = new Listener(provider, socketAddress(values.address ?? '0.0.0.0', values.port));
  console.log(`listening on port ${values.port}`);
  const connections = new Set<Promise<void>>();
  do {
    const endpoint = await listener.next();
    const side = Side.of(provider, endpoint);
    const connection = serve(endpoint, side, values)
      .catch((error: unknown) => {
        if (!values.persistent) throw error;
        // A client that ends during a ping only ends its own connection.
        console.log(`a connection has ended: ${error instanceof Error ? error.message : String(error)}`);
      })
      .finally(() => {
        side[Symbol.dispose]();
        connections.delete(connection);
      });
    connections.add(connection);
  } while (values.persistent);
  await Promise.all(connections);
  provider.release();
}

await run(
  new Command('rping')
    .description('RDMA ping: the server reads the client’s data and writes it back')
    .option('-s, --server', 'wait for a client')
    .option('-c, --client', 'connect to a server')
    .option('-a, --address <ip>', "the server's address")
    .option('-I, --local <ip>', 'own address (client; default: from the route)')
    .option('-p, --port <n>', `port (default: ${DEFAULT_PORT})`)
    .option('-C, --count <n>', 'pings; 0 is for ever (default: 0)')
    .option(
      '-S, --size <bytes>',
      `bytes of a ping (default: ${DEFAULT_BYTES}; a server accepts up to ${MOST_BYTES})`,
    )
    .option('-v, --verbose', 'print the data')
    .option('-V, --validate', 'compare the data')
    .option('-P, --persistent', 'serve one client after another, and several at once'),
  options,
  (values) => (values.server ? server(values) : client(values)),
);
