/**
 * Sends UC messages of three packets to rig/stream.py. The link makes one of them incomplete: `uc-gap OPERATION OWN-ADDRESS
 * GUEST-ADDRESS`. Prints the messages that arrived before and after it, as JSON.
 */
import * as z from 'zod';
import { gidOfAddress, QpType, RemoteMemory, WvAccess, WvSend } from '../../../winverbs/index.js';
import { GuestPeer } from './guest-peer.js';
import { connectByHand, initialise, SIGNALED, Side } from './interop-side.js';
import { pattern } from './verbs-guest.js';

const PEER_PORT = 18_520;
const MTU = 1024;
const SIZE = 2500;
/** Size of stream.py's buffer for each message. */
const PLACE = SIZE + 40;
const COUNT = 8;
const MARK = 0xffff_ffff;
const MARK_BYTES = 8;
/** Messages of one packet after the incomplete one. The first of them may also be lost. */
const MARKS = 5;

const word = z.number().int().min(0);
const meeting = z.object({ qpn: word, psn: word, gid: z.string(), addr: word, rkey: word });
const report = z.object({ whole: word, broken: word, marked: z.boolean() });
const nothing = z.object({});
const [operation, own, guestAddress] = z
  .tuple([z.enum(['send', 'write', 'write-imm']), z.string(), z.string()])
  .parse(process.argv.slice(2));

using side = Side.open(own);
const guest = await GuestPeer.meet(guestAddress, PEER_PORT);
const gidIndex = own.includes(':') ? 2 : 1;
const open = { do: 'open', type: 'uc', count: COUNT, size: SIZE, mtu: MTU, gid: gidIndex };
const theirs = await guest.ask(open, meeting);
const queue = side.queue(32);
const sizes = { sendDepth: 16, sendSge: 1, receiveDepth: 4, receiveSge: 1 };
const type = QpType.UC;
const qp = side.pd.createConnectQueuePair({ sendCq: queue.cq, receiveCq: queue.cq, ...sizes, type });
initialise(qp, WvAccess.REMOTE_WRITE);
const gid = gidOfAddress(own);
const self = { qpn: qp.qpn, psn: 0xff_fff0, gid };
connectByHand(qp, self, { ...theirs, gid: gidOfAddress(theirs.gid) }, { mtu: MTU, depth: 1 });
const text = Buffer.from(gid)
  .toString('hex')
  .replace(/(.{4})(?!$)/g, '$1:');
await guest.ask({ do: 'connect', ...self, gid: text, addr: 0, rkey: 0 }, nothing);

const memory = side.memory(SIZE, WvAccess.LOCAL_WRITE);
const remote = new RemoteMemory({ address: BigInt(theirs.addr), rkey: theirs.rkey });

async function post(number: number, how: typeof operation, size = SIZE): Promise<void> {
  new DataView(memory.bytes.buffer).setUint32(0, number);
  memory.bytes.set(pattern(size - 4, number & 0xff), 4);
  const piece = memory.sge(0, size);
  if (how === 'send') qp.send(number, piece, SIGNALED);
  else {
    const flags = how === 'write' ? SIGNALED : SIGNALED | WvSend.IMMEDIATE;
    qp.write(number, piece, flags, remote, number * PLACE, number);
  }
  await queue.next();
}

// A message of the other kind, so that the link does not drop it.
await post(0, operation === 'send' ? 'write-imm' : 'send');
const { whole: before } = await guest.ask({ do: 'report' }, report);
await post(1, operation);
let found = await guest.ask({ do: 'report' }, report);
for (let i = 0; i < MARKS && !found.marked; i += 1) {
  await post(MARK, 'send', MARK_BYTES);
  found = await guest.ask({ do: 'report' }, report);
}
console.log(
  JSON.stringify({ before, after: found.whole - before, broken: found.broken, marked: found.marked }),
);
guest.close();
