/**
 * ucmatose: any number of simultaneous connections. The server sends messages over each, the client replies with the same number, and both
 * disconnect.
 */
import { Command } from 'commander';
import * as z from 'zod';
import {
  type IWVConnectEndpoint,
  type IWVConnectQueuePair,
  openProvider,
  WvAccess,
  type WvConnectParam,
} from '../../../winverbs/index.js';
import { ipAddress, number, run } from './command.js';
import {
  addressTowards,
  connect,
  disconnected,
  initialise,
  Listener,
  type Memory,
  type Queue,
  SIGNALED,
  Side,
  socketAddress,
} from './interop-side.js';

const DEFAULT_PORT = 7471;
const options = z.object({
  server: ipAddress.optional(),
  bind: ipAddress.optional(),
  port: number(1, 65_535).default(DEFAULT_PORT),
  connections: number(1, 10_000).default(1),
  count: number(0, 4096).default(10),
  size: number(1, 1 << 20).default(100),
});
type Options = z.output<typeof options>;

const connectParam: WvConnectParam = { responderResources: 1, initiatorDepth: 1, retryCount: 5 };

/** One connection's queues, with a posted receive for every message. */
class Node {
  readonly qp: IWVConnectQueuePair;
  private readonly sent: Queue;
  private readonly arrived: Queue;
  private readonly outgoing: Memory;
  private readonly incoming: Memory;
  endpoint: IWVConnectEndpoint | undefined = undefined;

  constructor(
    side: Side,
    private readonly count: number,
    private readonly size: number,
  ) {
    const depth = Math.max(count, 1);
    this.sent = side.queue(depth);
    this.arrived = side.queue(depth);
    this.qp = side.pd.createConnectQueuePair({
      sendCq: this.sent.cq,
      receiveCq: this.arrived.cq,
      sendDepth: depth,
      sendSge: 1,
      receiveDepth: depth,
      receiveSge: 1,
    });
    initialise(this.qp);
    this.outgoing = side.memory(size, WvAccess.LOCAL_WRITE);
    this.incoming = side.memory(size, WvAccess.LOCAL_WRITE);
    for (let i = 0; i < count; i += 1) this.qp.postReceive('receive', this.incoming.sge());
  }

  async send(): Promise<void> {
    for (let i = 0; i < this.count; i += 1) this.qp.send('send', this.outgoing.sge(), SIGNALED);
    await this.sent.take(this.count);
  }

  async receive(): Promise<void> {
    for (const { length } of await this.arrived.take(this.count)) {
      if (length !== this.size) throw new Error(`A message of ${length} bytes came instead of ${this.size}.`);
    }
  }
}

async function client({ server, bind, port, connections, count, size }: Options): Promise<void> {
  const peer = socketAddress(server!, port);
  const local = bind ?? (await addressTowards(peer));
  using side = Side.open(local);
  const nodes = Array.from({ length: connections }, () => new Node(side, count, size));
  await Promise.all(
    nodes.map(async (node) => {
      node.endpoint = await connect(side, node.qp, local, peer, connectParam);
    }),
  );
  console.log(`connected ${connections}`);
  await Promise.all(
    nodes.map(async (node) => {
      const end = disconnected(node.endpoint!);
      await node.receive();
      await node.send();
      await end;
    }),
  );
}

async function server({ bind, port, connections, count, size }: Options): Promise<void> {
  const provider = openProvider();
  using listener = new Listener(provider, socketAddress(bind ?? '0.0.0.0', port), connections);
  console.log(`listening on port ${port}`);
  const nodes: Promise<Node>[] = [];
  let side: Side | undefined;
  for (let i = 0; i < connections; i += 1) {
    const endpoint = await listener.next();
    side ??= Side.of(provider, endpoint);
    const node = new Node(side, count, size);
    node.endpoint = endpoint;
    nodes.push(endpoint.accept(node.qp, connectParam).then(() => node));
  }
  const connected = await Promise.all(nodes);
  console.log(`connected ${connections}`);
  await Promise.all(
    connected.map(async (node) => {
      await node.send();
      await node.receive();
    }),
  );
  await Promise.all(connected.map((node) => node.endpoint!.disconnect()));
  side?.[Symbol.dispose]();
  provider.release();
}

await run(
  new Command('ucmatose')
    .description('Many connections at once: messages to the client, and as many back')
    .option('-s, --server <ip>', 'connect to this server (without it: be the server)')
    .option('-b, --bind <ip>', 'own address')
    .option('-p, --port <n>', `port (default: ${DEFAULT_PORT})`)
    .option('-c, --connections <n>', 'connections (default: 1)')
    .option('-C, --count <n>', 'messages each way on each (default: 10)')
    .option('-S, --size <bytes>', 'bytes of a message (default: 100)'),
  options,
  (values) => (values.server === undefined ? server(values) : client(values)),
);
