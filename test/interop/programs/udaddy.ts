/**
 * udaddy: a client looks up a server's queue pair (SIDR) and sends it messages. The server replies with the same number to the source of
 * the first one.
 */
import { Command } from 'commander';
import * as z from 'zod';
import { openProvider, replyAddressVector, WvDatagram } from '../../../winverbs/index.js';
import { ipAddress, number, run } from './command.js';
import { DatagramNode } from './datagram-node.js';
import { addressTowards, Side, socketAddress } from './interop-side.js';

const DEFAULT_PORT = 7174;
const options = z.object({
  server: ipAddress.optional(),
  bind: ipAddress.optional(),
  port: number(1, 65_535).default(DEFAULT_PORT),
  connections: number(1, 1000).default(1),
  count: number(1, 4096).default(10),
  size: number(1, 4096).default(100),
});
type Options = z.output<typeof options>;

async function client({ server, bind, port, connections, count, size }: Options): Promise<void> {
  const peer = socketAddress(server!, port);
  const local = bind ?? (await addressTowards(peer));
  using side = Side.open(local);
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const node = new DatagramNode(side, count, size);
      const endpoint = side.provider.createDatagramEndpoint();
      endpoint.bindAddress(socketAddress(local, 0));
      const found = await endpoint.lookup(peer);
      await node.send(node.target(found));
      for (const { sourceQpn } of await node.receive()) {
        if (sourceQpn !== found.qpn) {
          throw new Error(`Queue pair ${sourceQpn} has replied; the server reported ${found.qpn}.`);
        }
      }
      endpoint.release();
    }),
  );
  console.log('data transfers complete');
}

async function server({ bind, port, connections, count, size }: Options): Promise<void> {
  const provider = openProvider();
  const listener = provider.createDatagramEndpoint();
  listener.bindAddress(socketAddress(bind ?? '0.0.0.0', port));
  listener.listen(connections);
  console.log(`listening on port ${port}`);
  let side: Side | undefined;
  const nodes: DatagramNode[] = [];
  for (let i = 0; i < connections; i += 1) {
    const endpoint = provider.createDatagramEndpoint();
    await listener.getRequest(endpoint);
    side ??= Side.of(provider, endpoint);
    const node = new DatagramNode(side, count, size);
    await endpoint.accept({ qp: node.qp });
    nodes.push(node);
  }
  await Promise.all(
    nodes.map(async (node) => {
      const [first] = await node.receive();
      const { grh, immediate } = first!;
      const addressVector = replyAddressVector(grh);
      await node.send(node.target({ addressVector, qpn: immediate, qkey: WvDatagram.QKEY }));
    }),
  );
  console.log('data transfers complete');
  listener.release();
  side?.[Symbol.dispose]();
  provider.release();
}

await run(
  new Command('udaddy')
    .description('Datagrams to a server whose queue pair is looked up, and as many back')
    .option('-s, --server <ip>', 'look up this server (without it: be the server)')
    .option('-b, --bind <ip>', 'own address')
    .option('-p, --port <n>', `port (default: ${DEFAULT_PORT})`)
    .option('-c, --connections <n>', 'queue pairs on each side (default: 1)')
    .option('-C, --count <n>', 'messages each way of each (default: 10)')
    .option('-S, --size <bytes>', 'bytes of a message (default: 100)'),
  options,
  (values) => (values.server === undefined ? server(values) : client(values)),
);
