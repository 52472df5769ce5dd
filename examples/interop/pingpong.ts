/**
 * The ibv_*_pingpong programs: both sides meet over TCP, connect their queue pairs by hand, and send a message back
 * and forth.
 */
import { Command } from 'commander';
import { z } from 'zod';
import { gidOfAddress, WvAccess } from '../../winverbs/index.js';
import { ipAddress, number, run } from './command.js';
import {
  addressTowards,
  connectByHand,
  type Destination,
  initialise,
  SIGNALED,
  Side,
  socketAddress,
} from './side.js';
import { answer, dial, Reader } from './tcp.js';

const DEFAULT_PORT = 18_515;
const options = z
  .object({
    peer: ipAddress.optional(),
    local: ipAddress.optional(),
    port: number(1, 65_535).default(DEFAULT_PORT),
    size: number(1, 1 << 20).default(4096),
    mtu: number(256, 4096).default(1024),
    rxDepth: number(1, 4096).default(500),
    iters: number(1, 1e9).default(1000),
  })
  .refine(({ peer, local }) => peer !== undefined || local !== undefined, {
    message: 'a server needs --local: the address whose device it uses',
  });
type Options = z.output<typeof options>;

/** "0000:QPN:PSN:GID" in hexadecimal and a NUL. RoCE has no LIDs. */
const MEETING_BYTES = 52;

function formatDestination({ qpn, psn, gid }: Destination): Buffer {
  const hex = (value: number) => value.toString(16).padStart(6, '0');
  return Buffer.from(`0000:${hex(qpn)}:${hex(psn)}:${Buffer.from(gid).toString('hex')}\0`);
}

function parseDestination(text: string): Destination {
  const [, qpn, psn, gid] = /^[0-9a-f]{4}:([0-9a-f]{6}):([0-9a-f]{6}):([0-9a-f]{32})\0$/.exec(text) ?? [];
  if (qpn === undefined || psn === undefined || gid === undefined) {
    throw new Error(`The peer told '${text}', not LID:QPN:PSN:GID.`);
  }
  return { qpn: Number.parseInt(qpn, 16), psn: Number.parseInt(psn, 16), gid: Buffer.from(gid, 'hex') };
}

async function pingpong(values: Options): Promise<void> {
  const { peer, port, size, mtu, rxDepth, iters } = values;
  const local = values.local ?? (await addressTowards(socketAddress(peer!, port)));
  using side = Side.at(local);
  const queue = side.queue(rxDepth + 1);
  const { cq } = queue;
  const qp = side.pd.createConnectQueuePair({
    sendCq: cq,
    receiveCq: cq,
    sendDepth: 1,
    sendSge: 1,
    receiveDepth: rxDepth,
    receiveSge: 1,
  });
  initialise(qp);
  const memory = side.memory(size, WvAccess.LOCAL_WRITE);
  const refill = (count: number) => {
    for (let i = 0; i < count; i += 1) qp.postReceive('receive', memory.piece());
  };
  refill(rxDepth);

  const gid = gidOfAddress(local);
  const own: Destination = { qpn: qp.qpn, psn: Math.floor(Math.random() * 2 ** 24), gid };
  const path = { mtu, depth: 1 };
  if (peer === undefined) {
    const socket = await answer(port, () => console.log(`listening on TCP port ${port}`));
    const reader = new Reader(socket);
    const theirs = parseDestination((await reader.bytes(MEETING_BYTES)).toString());
    connectByHand(qp, own, theirs, path);
    socket.write(formatDestination(own));
    await reader.bytes('done\0'.length);
    reader.close();
  } else {
    const socket = await dial(peer, port);
    const reader = new Reader(socket);
    socket.write(formatDestination(own));
    const theirs = parseDestination((await reader.bytes(MEETING_BYTES)).toString());
    connectByHand(qp, own, theirs, path);
    socket.write('done\0');
    reader.close();
  }

  const begin = performance.now();
  let received = 0;
  let sent = 0;
  let posted = rxDepth;
  let sending = peer !== undefined;
  let toSend = sending ? iters - 1 : iters;
  if (sending) qp.send('send', memory.piece(), SIGNALED);
  // The next message leaves when the last one is acknowledged and the peer's has come.
  let arrived = 0;
  while (received < iters || sent < iters) {
    const { context } = await queue.next();
    if (context === 'send') {
      sent += 1;
      sending = false;
    } else {
      received += 1;
      arrived += 1;
      posted -= 1;
      if (posted <= 1) {
        refill(rxDepth - posted);
        posted = rxDepth;
      }
    }
    if (!sending && arrived > 0 && toSend > 0) {
      arrived -= 1;
      toSend -= 1;
      sending = true;
      qp.send('send', memory.piece(), SIGNALED);
    }
  }
  const seconds = (performance.now() - begin) / 1000;
  const bytes = 2 * size * iters;
  console.log(
    `${bytes} bytes in ${seconds.toFixed(2)} seconds = ${((bytes * 8) / seconds / 1e6).toFixed(2)} Mbit/sec`,
  );
  console.log(
    `${iters} iters in ${seconds.toFixed(2)} seconds = ${((seconds * 1e6) / iters).toFixed(2)} usec/iter`,
  );
}

await run(
  new Command('pingpong')
    .description(
      'Messages back and forth between queue pairs that are connected by hand, as ibv_rc_pingpong does',
    )
    .option('-a, --peer <ip>', 'connect to this server (without it: be the server)')
    .option('-I, --local <ip>', 'own address (client; default: by the route)')
    .option('-p, --port <n>', `TCP port (default: ${DEFAULT_PORT})`)
    .option('-s, --size <bytes>', 'bytes of a message (default: 4096)')
    .option('-m, --mtu <bytes>', 'path MTU (default: 1024)')
    .option('-r, --rx-depth <n>', 'receives posted at a time (default: 500)')
    .option('-n, --iters <n>', 'messages each way (default: 1000)'),
  options,
  pingpong,
);
