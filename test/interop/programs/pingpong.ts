/**
 * The ibv_*_pingpong programs. Both sides exchange their addresses over TCP, connect their queue pairs, and send a message back and forth:
 * over one queue pair of type RC, UC or UD, or over several RC queue pairs with a shared receive queue.
 */
import { Command } from 'commander';
import * as z from 'zod';
import {
  GRH_BYTES,
  gidOfAddress,
  type IWVConnectQueuePair,
  type IWVSharedReceiveQueue,
  QpType,
  WvAccess,
  type WvAddressVector,
} from '../../../winverbs/index.js';
import { ipAddress, number, run } from './command.js';
import {
  addressTowards,
  connectByHand,
  type Destination,
  initialise,
  type Memory,
  type Queue,
  SIGNALED,
  Side,
  socketAddress,
} from './interop-side.js';
import { answer, dial, Reader } from './tcp.js';

const DEFAULT_PORT = 18_515;
const UD_QKEY = 0x1111_1111;
/** The byte that fills the tools' messages. */
const FILL = 0x7b;
/** The tool with a shared queue always exchanges this many destinations, even with fewer queue pairs. */
const SRQ_MEETINGS = 256;
const DEFAULT_QPS = 16;
/** "0000:QPN:PSN:GID" in hexadecimal and a NUL. RoCE has no LIDs. */
const MEETING_BYTES = 52;
const DONE = 'done\0';

const options = z
  .object({
    type: z.enum(['rc', 'uc', 'ud', 'srq']).default('rc'),
    peer: ipAddress.optional(),
    local: ipAddress.optional(),
    port: number(1, 65_535).default(DEFAULT_PORT),
    size: number(1, 1 << 20).optional(),
    mtu: number(256, 4096).default(1024),
    rxDepth: number(1, 4096).default(500),
    numQp: number(1, SRQ_MEETINGS - 1).default(DEFAULT_QPS),
    iters: number(1, 1e9).default(1000),
  })
  .refine(({ peer, local }) => peer !== undefined || local !== undefined, {
    message: 'a server needs --local: the address whose device it uses',
  })
  .refine(({ type, numQp, rxDepth }) => type !== 'srq' || numQp <= rxDepth, {
    message: 'there are fewer receives (--rx-depth) than queue pairs (--num-qp)',
  });
type Options = z.output<typeof options>;

function formatDestination({ qpn, psn, gid }: Destination): string {
  const hex = (value: number) => value.toString(16).padStart(6, '0');
  return `0000:${hex(qpn)}:${hex(psn)}:${Buffer.from(gid).toString('hex')}\0`;
}

function parseDestination(text: string): Destination {
  const [, qpn, psn, gid] = /^[0-9a-f]{4}:([0-9a-f]{6}):([0-9a-f]{6}):([0-9a-f]{32})\0$/.exec(text) ?? [];
  if (qpn === undefined || psn === undefined || gid === undefined) {
    throw new Error(`Malformed address from the peer: '${text}'; expected LID:QPN:PSN:GID.`);
  }
  return { qpn: Number.parseInt(qpn, 16), psn: Number.parseInt(psn, 16), gid: Buffer.from(gid, 'hex') };
}

/** The state of one queue pair: the events it waits for before its next message. */
abstract class Player {
  /** Whether the peer's message has not arrived yet. */
  awaiting = true;
  /** Whether this side's message has not completed yet. */
  sending = false;
  abstract readonly own: Destination;

  abstract connect(peer: Destination): void;
  abstract post(): void;

  send(): void {
    this.awaiting = true;
    this.sending = true;
    this.post();
  }
}

/** The common objects of the players. */
interface Game {
  readonly side: Side;
  readonly queue: Queue;
  readonly outgoing: Memory;
  readonly incoming: Memory;
  readonly gid: Uint8Array;
  readonly values: Options;
}

const newPsn = (): number => Math.floor(Math.random() * 2 ** 24);

class ConnectedPlayer extends Player {
  readonly qp: IWVConnectQueuePair;
  readonly own: Destination;

  constructor(
    private readonly game: Game,
    type: number,
    srq?: IWVSharedReceiveQueue,
  ) {
    super();
    const { side, queue, gid, values } = game;
    this.qp = side.pd.createConnectQueuePair({
      sendCq: queue.cq,
      receiveCq: queue.cq,
      context: this,
      type,
      sendDepth: 1,
      sendSge: 1,
      receiveDepth: values.rxDepth,
      receiveSge: 1,
      ...(srq === undefined ? {} : { srq }),
    });
    initialise(this.qp, 0);
    this.own = { qpn: this.qp.qpn, psn: newPsn(), gid };
  }

  connect(peer: Destination): void {
    connectByHand(this.qp, this.own, peer, { mtu: this.game.values.mtu, depth: 1 });
  }

  post(): void {
    this.qp.send('send', this.game.outgoing.sge(), SIGNALED);
  }
}

class DatagramPlayer extends Player {
  readonly qp;
  readonly own: Destination;
  private to: { handle: ReturnType<Side['pd']['createAddressHandle']>; qpn: number } | undefined = undefined;

  constructor(private readonly game: Game) {
    super();
    const { side, queue, gid, values } = game;
    this.qp = side.pd.createDatagramQueuePair({
      sendCq: queue.cq,
      receiveCq: queue.cq,
      context: this,
      sendDepth: 1,
      sendSge: 1,
      receiveDepth: values.rxDepth,
      receiveSge: 1,
    });
    this.own = { qpn: this.qp.qpn, psn: newPsn(), gid };
    this.qp.start(UD_QKEY, { sendPsn: this.own.psn });
  }

  connect({ qpn, gid }: Destination): void {
    const vector: WvAddressVector = { sourceGid: this.own.gid, destinationGid: gid };
    this.to = { handle: this.game.side.pd.createAddressHandle(vector), qpn };
  }

  post(): void {
    const { handle, qpn } = this.to!;
    this.qp.send('send', handle, this.game.outgoing.sge()[0], SIGNALED, qpn, UD_QKEY);
  }
}

/** Creates the players and the function that posts a receive. */
function players(game: Game): { all: Player[]; postReceive: () => void } {
  const { type, numQp, rxDepth } = game.values;
  if (type === 'srq') {
    const srq = game.side.pd.createSharedReceiveQueue(rxDepth, 1);
    const all = Array.from({ length: numQp }, () => new ConnectedPlayer(game, QpType.RC, srq));
    return { all, postReceive: () => srq.postReceive('receive', game.incoming.sge()) };
  }
  const player =
    type === 'ud'
      ? new DatagramPlayer(game)
      : new ConnectedPlayer(game, type === 'uc' ? QpType.UC : QpType.RC);
  return { all: [player], postReceive: () => player.qp.postReceive('receive', game.incoming.sge()) };
}

/** Exchanges the players' addresses with the peer. Afterwards, both sides are connected. */
async function meet({ type, peer, port }: Options, all: readonly Player[]): Promise<void> {
  const meetings = type === 'srq' ? SRQ_MEETINGS : 1;
  const none: Destination = { qpn: 0, psn: 0, gid: new Uint8Array(16) };
  const own = Array.from({ length: meetings }, (_, i) => formatDestination(all[i]?.own ?? none)).join('');
  const socket =
    peer === undefined
      ? await answer(port, () => console.log(`listening on TCP port ${port}`))
      : await dial(peer, port);
  const reader = new Reader(socket);
  try {
    if (peer !== undefined) socket.write(own);
    for (let i = 0; i < meetings; i += 1) {
      const theirs = parseDestination((await reader.bytes(MEETING_BYTES)).toString());
      all[i]?.connect(theirs);
    }
    if (peer === undefined) {
      socket.write(own);
      await reader.bytes(DONE.length);
    } else {
      socket.write(DONE);
    }
  } finally {
    reader.close();
  }
}

async function pingpong(values: Options): Promise<void> {
  const { type, peer, port, rxDepth, iters } = values;
  const local = values.local ?? (await addressTowards(socketAddress(peer!, port)));
  using side = Side.open(local);
  const size = values.size ?? (type === 'ud' ? 2048 : 4096);
  const header = type === 'ud' ? GRH_BYTES : 0;
  const game: Game = {
    side,
    queue: side.queue(rxDepth + values.numQp),
    outgoing: side.memory(size, WvAccess.LOCAL_WRITE),
    incoming: side.memory(header + size, WvAccess.LOCAL_WRITE),
    gid: gidOfAddress(local),
    values,
  };
  game.outgoing.bytes.fill(FILL);
  const { all, postReceive } = players(game);
  for (let i = 0; i < rxDepth; i += 1) postReceive();
  await meet(values, all);

  const begin = performance.now();
  let received = 0;
  let sent = 0;
  let posted = rxDepth;
  if (peer !== undefined) for (const player of all) player.send();
  while (received < iters || sent < iters) {
    const { context, qpContext, length } = await game.queue.next();
    const player = qpContext as Player;
    if (context === 'send') {
      sent += 1;
      player.sending = false;
    } else {
      if (length !== header + size)
        throw new Error(`A message of ${length - header} bytes came, not ${size}.`);
      received += 1;
      player.awaiting = false;
      posted -= 1;
      for (; posted <= all.length; posted += 1) postReceive();
    }
    // The next message is sent when the last one was acknowledged and the peer's has arrived.
    if (sent < iters && !player.sending && !player.awaiting) player.send();
  }
  const other = game.incoming.bytes.subarray(header).findIndex((byte) => byte !== FILL);
  if (other !== -1) throw new Error(`Byte ${other} of the last message is not ${FILL}.`);
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
      'Messages back and forth between queue pairs that are connected by hand, as ibv_*_pingpong does',
    )
    .option('-t, --type <type>', 'rc, uc, ud, or srq for several RC with one receive queue (default: rc)')
    .option('-a, --peer <ip>', 'connect to this server (without it: be the server)')
    .option('-I, --local <ip>', 'own address (client; default: from the route)')
    .option('-p, --port <n>', `TCP port (default: ${DEFAULT_PORT})`)
    .option('-s, --size <bytes>', 'bytes of a message (default: 4096, ud: 2048)')
    .option('-m, --mtu <bytes>', 'path MTU; ud has the link’s (default: 1024)')
    .option('-r, --rx-depth <n>', 'receives posted at a time (default: 500)')
    .option('-q, --num-qp <n>', `queue pairs of srq (default: ${DEFAULT_QPS})`)
    .option('-n, --iters <n>', 'messages each way (default: 1000)'),
  options,
  pingpong,
);
