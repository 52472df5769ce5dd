/** rdma_client and rdma_server of rdma-core: one message of 16 bytes in each direction. */
import { Command } from 'commander';
import * as z from 'zod';
import { type IWVConnectQueuePair, openProvider, WvAccess, WvSend } from '../../../winverbs/index.js';
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
const MESSAGE_BYTES = 16;
const options = z.object({
  server: ipAddress.optional(),
  local: ipAddress.optional(),
  port: number(1, 65_535).default(DEFAULT_PORT),
});
type Options = z.output<typeof options>;

/** A queue pair with a receive for one message. */
function prepare(side: Side): { queue: Queue; qp: IWVConnectQueuePair; message: Memory } {
  const queue = side.queue(4);
  const { cq } = queue;
  const sizes = { sendDepth: 1, sendSge: 1, receiveDepth: 1, receiveSge: 1, maxInlineSend: MESSAGE_BYTES };
  const qp = side.pd.createConnectQueuePair({ sendCq: cq, receiveCq: cq, ...sizes });
  initialise(qp);
  qp.postReceive('receive', side.memory(MESSAGE_BYTES, WvAccess.LOCAL_WRITE).sge());
  return { queue, qp, message: side.memory(MESSAGE_BYTES, 0) };
}

async function client({ server: address, local, port }: Options): Promise<void> {
  const peer = socketAddress(address!, port);
  const from = local ?? (await addressTowards(peer));
  using side = Side.open(from);
  const { queue, qp, message } = prepare(side);
  const endpoint = await connect(side, qp, from, peer, {});
  qp.send('send', message.sge(), SIGNALED | WvSend.INLINE);
  await queue.take(2);
  await endpoint.disconnect();
}

async function server({ local, port }: Options): Promise<void> {
  const provider = openProvider();
  using listener = new Listener(provider, socketAddress(local ?? '0.0.0.0', port));
  console.log(`listening on port ${port}`);
  const endpoint = await listener.next();
  using side = Side.of(provider, endpoint);
  const { queue, qp, message } = prepare(side);
  await endpoint.accept(qp, {});
  const end = disconnected(endpoint);
  await queue.next();
  qp.send('send', message.sge(), SIGNALED | WvSend.INLINE);
  await queue.next();
  await end;
  provider.release();
}

await run(
  new Command('rdma-client')
    .description('One message each way')
    .option('-s, --server <ip>', 'connect to this server (without it: be the server)')
    .option('-I, --local <ip>', 'own address')
    .option('-p, --port <n>', `port (default: ${DEFAULT_PORT})`),
  options,
  (values) => (values.server === undefined ? server(values) : client(values)),
);
