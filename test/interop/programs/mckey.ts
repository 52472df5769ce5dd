/** mckey: members of a multicast group. One sends messages, and the others receive them. */
import { isIPv4, isIPv6 } from 'node:net';
import { Command } from 'commander';
import * as z from 'zod';
import { gidOfAddress, isMulticastGid } from '../../../winverbs/index.js';
import { ipAddress, number, run } from './command.js';
import { DatagramNode } from './datagram-node.js';
import { Side, socketAddress } from './interop-side.js';

const options = z
  .object({
    group: ipAddress.refine((text) => isMulticastGid(gidOfAddress(text)), 'must be a multicast address'),
    bind: ipAddress,
    sender: z.boolean().default(false),
    count: number(1, 4096).default(10),
    size: number(1, 4096).default(100),
  })
  .refine(({ group, bind }) => isIPv4(group) === isIPv4(bind) && isIPv6(group) === isIPv6(bind), {
    message: '--group and --bind must be of one address family',
  });
type Options = z.output<typeof options>;

async function member({ group: text, bind, sender, count, size }: Options): Promise<void> {
  const group = socketAddress(text, 0);
  using side = Side.open(bind);
  const node = new DatagramNode(side, count, size);
  const endpoint = side.provider.createDatagramEndpoint();
  endpoint.bindAddress(socketAddress(bind, 0));
  const found = await endpoint.joinMulticast(group);
  // A sender does not have to be a member. Members also receive their own messages.
  if (!sender) await node.qp.attachMulticast(text);
  console.log(`joined ${text}`);
  if (sender) {
    await node.send(node.target(found));
  } else {
    for (const { sourceQpn, immediate } of await node.receive()) {
      if (sourceQpn !== immediate) {
        throw new Error(`A message of queue pair ${sourceQpn} names ${immediate} as its sender.`);
      }
    }
    await node.qp.detachMulticast(text);
  }
  await endpoint.leaveMulticast(group);
  endpoint.release();
  console.log('data transfers complete');
}

await run(
  new Command('mckey')
    .description('Datagrams to a multicast group, or from one')
    .requiredOption('-m, --group <ip>', 'the group')
    .requiredOption('-b, --bind <ip>', 'own address; its interface joins the group')
    .option('-s, --sender', 'send (without it: wait for the messages)')
    .option('-C, --count <n>', 'messages (default: 10)')
    .option('-S, --size <bytes>', 'bytes of a message (default: 100)'),
  options,
  member,
);
