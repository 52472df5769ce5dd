/** A process that sends and receives datagrams on a test's commands, with one {@link UdSocket}. */
import { readCounters } from '../../kernel-bridge/index.js';
import { openProvider, QpAttr, QpState, WcStatus } from '../../winverbs/index.js';
import { outcomeName } from './outcome.js';
import type { UdCommand, UdOperations, UdReply } from './ud-process.js';
import { type Received, UdSocket } from './ud-socket.js';

const provider = openProvider();
let socket: UdSocket | undefined;
let latest: Received | undefined;

function open(): UdSocket {
  if (!socket) throw new Error('The socket is not open.');
  return socket;
}

const wcName = (status: number): string =>
  Object.entries(WcStatus).find(([, value]) => value === status)?.[0] ?? String(status);

const operations: UdOperations = {
  open: async ({ local, qkey }) => {
    socket = new UdSocket(provider, local, qkey);
    return { qpn: socket.qp.qpn, mtu: socket.mtu };
  },
  send: async ({ to, qpn, text, length, qkey }) => {
    const payload = length === undefined ? Buffer.from(text ?? '') : Buffer.alloc(length, 'x');
    return wcName(await open().sendTo(to, qpn, payload, qkey));
  },
  receive: async () => {
    latest = await open().receive();
    const { payload, address, qpn, flags, immediateData, ipVersion, status } = latest;
    return {
      text: payload.toString(),
      address,
      qpn,
      flags,
      immediateData,
      ipVersion,
      status: wcName(status),
    };
  },
  reply: async ({ text }) => {
    if (!latest) throw new Error('No datagram to reply to.');
    return wcName(await open().reply(latest, Buffer.from(text)));
  },
  attach: async ({ group }) => outcomeName(open().qp.attachMulticast(group)),
  detach: async ({ group }) => outcomeName(open().qp.detachMulticast(group)),
  state: async () => open().qp.state,
  recover: async () => {
    open().qp.modify({ qpState: QpState.RTS }, QpAttr.STATE);
    return open().qp.state;
  },
  close: async () => {
    open().close();
    socket = undefined;
    provider.release();
    return null;
  },
  counters: async () => readCounters(),
};

process.on('message', async ({ id, op, args }: UdCommand) => {
  let reply: UdReply;
  try {
    const operation = operations[op] as (args: unknown) => Promise<unknown>;
    reply = { id, value: await operation(args) };
  } catch (error) {
    reply = { id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
  process.send?.(reply);
});
process.send?.({ id: 0 });
