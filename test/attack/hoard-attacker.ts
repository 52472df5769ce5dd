/**
 * Peers that hoard memory of a server, and an honest client: `hoard-attacker channels streams seed frames`. Each peer sends as many frames
 * of its kind as it gets credits for, and stays connected.
 */
import { once } from 'node:events';
import { encodeHello, encodeMemory, Frame, Kind, LARGE, Notice } from '../../nd/net/connection/frames.js';
import { connectChannel } from '../../nd/net/index.js';
import { frameOf, Hoarder, honest, RawPeer } from '../helpers/net-raw.js';
import { seeded } from '../helpers/random.js';

export interface Hoarded {
  readonly frames: number;
  /** Peers whose connections the victim has ended. */
  readonly ended: number;
  /** Requests of the honest client that got replies. */
  readonly served: number;
  readonly slowestMs: number;
  readonly unserved: string | undefined;
}

const { DATA, REQUEST, ANSWER, FAILURE, CANCEL, ATOMIC, RING } = Frame;
const [channels, streams, seed, count] = process.argv.slice(2).map(Number) as [
  number,
  number,
  number,
  number,
];
const random = seeded(seed);
const below = (n: number): number => Math.floor(random() * n);

/** Number of default slots. */
const SLOTS = 128;
const at = { address: 0x1000n, token: 0x1234, length: 4096 };
const nowhere = encodeMemory({ ...at, id: 1 });
const ring = encodeMemory({ ...at, id: 0, length: 4096 * honest.slots });

/** One kind of hoarding. */
interface Way {
  readonly stream?: boolean;
  readonly data?: boolean;
  readonly control?: boolean;
  /** Creates the n-th Send. */
  frame(n: number, peer: RawPeer): Buffer;
}

const request = (id: number, order: string): Buffer => frameOf(REQUEST, { id, payload: Buffer.from(order) });
/** Returns as many frames as fit in a slot. */
const many = (n: number, one: (id: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: 20 }, (_, k) => one(20 * n + k)));
const long = (type: number, id: number, peer: RawPeer, length: number): Buffer =>
  frameOf(type, { id: type === DATA ? 0 : id, flags: LARGE, payload: peer.description(length, id) });

const ways: readonly Way[] = [
  // Replies, long replies and refusals that get no credits or are not read.
  { control: true, frame: (n) => many(n, (id) => request(id, 'echo, and do not forget anything')) },
  { data: true, control: true, frame: (n) => many(n, (id) => request(id, 'long')) },
  { frame: (n) => many(n, (id) => request(id, 'long')) },
  { control: true, frame: (n) => many(n, (id) => frameOf(ATOMIC, { id, payload: Buffer.alloc(32) })) },
  // This kind sends unsolicited frames.
  {
    data: true,
    frame: (n) =>
      Buffer.concat([
        request(n, 'echo'),
        ...[ANSWER, FAILURE].map((type) => frameOf(type, { id: n, flags: LARGE, payload: nowhere })),
      ]),
  },
  // Requests that never get a reply, and cancellations of other requests.
  {
    data: true,
    control: true,
    frame: (n) =>
      n < 100 ? many(n, (id) => request(id, 'never')) : many(n, (id) => frameOf(CANCEL, { id })),
  },
  // Long and tiny messages and requests that are never read or replied to.
  {
    data: true,
    control: true,
    frame: (n, peer) => many(n, (id) => long(DATA, id, peer, 1 + below(100_000))),
  },
  { data: true, control: true, frame: (n, peer) => many(n, (id) => long(DATA, id, peer, 1)) },
  { data: true, control: true, frame: (n, peer) => many(n, (id) => long(REQUEST, id, peer, 100_000)) },
  { data: true, control: true, frame: (n) => many(n, () => frameOf(DATA)) },
  // Rings for streams. Some streams echo; the others are not read.
  {
    stream: true,
    data: true,
    frame: (n) =>
      [
        frameOf(DATA, { payload: Buffer.from('x') }),
        frameOf(RING, { flags: Notice.OFFER, payload: ring }),
        frameOf(RING, { flags: Notice.WITHDRAW }),
      ][n % 3]!,
  },
  { stream: true, data: true, control: true, frame: (n) => many(n, () => frameOf(DATA)) },
];

const streaming = { ...honest, kind: Kind.STREAM, slotBytes: 65_552, maxMessageBytes: 0, ringBytes: 2 ** 22 };
const client = await connectChannel(channels, '127.0.0.1');
const peers: RawPeer[] = [];
let [served, slowestMs, frames, ended] = [0, 0, 0, 0];
let unserved: string | undefined;

async function ask(): Promise<void> {
  const begin = performance.now();
  await client.request('echo', { signal: AbortSignal.timeout(30_000) });
  slowestMs = Math.max(slowestMs, performance.now() - begin);
  served += 1;
}

for (const { stream = false } of ways)
  peers.push(
    stream
      ? await RawPeer.connect(streams, encodeHello(streaming))
      : await RawPeer.connect(channels, encodeHello(honest)),
  );
await ask();
process.on('disconnect', () => process.exit());
process.send!('connected');
await once(process, 'message');
process.send!('gone');
try {
  for (const [index, way] of ways.entries()) {
    const peer = peers[index]!;
    const hoarder = new Hoarder(peer, { slots: way.stream ? 16 : SLOTS, ...way }, way.stream);
    let over = false;
    void peer.ended().then(
      () => (over = true),
      () => (over = true),
    );
    const turn = async (): Promise<void> => {
      await ask();
      if (over) throw new Error('ended');
    };
    try {
      const sends = await hoarder.flood(Math.ceil(count / ways.length / 20), (n) => way.frame(n, peer), turn);
      frames += 20 * sends;
    } catch (error) {
      if (!over) throw error;
      ended += 1;
    }
  }
} catch (error) {
  unserved = String(error);
}
const result: Hoarded = { frames, ended, served, slowestMs, unserved };
process.send!(result);
process.on('message', async () => {
  for (const peer of peers) peer[Symbol.dispose]();
  await ask().catch(() => {});
  process.send!(result);
});
