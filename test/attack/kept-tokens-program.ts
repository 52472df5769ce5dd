/**
 * The two sides of `kept-tokens`, each a process: `serve`, a server of channels whose lent memory serves all its connections, and
 * `attack <port> <seed> <count>`, peers that keep each token and read and write with all of them.
 */
import { allocate, Status } from '../../nd/index.js';
import {
  decodeMemory,
  encodeHello,
  Frame,
  LARGE,
  type MemoryDescription,
} from '../../nd/net/connection/frames.js';
import { type Channel, connectChannel, createChannelServer } from '../../nd/net/index.js';
import { frameOf, framesOf, MARK, RawPeer, reportOf, honest as usual } from '../helpers/net-raw.js';
import { seeded } from '../helpers/random.js';

/** Size of each message and reply in bytes. */
const BYTES = 8192;
/** Parts of the lent memory. */
const PARTS = 8;
/** Connections of the attacker at a time, and the requests of each. */
const PEERS = 4;
const MOST_ASKED = 40;
/** A reply is larger than all slots together, so each is read from memory with a token. */
const SHORT_SLOTS = encodeHello({ ...usual, slotBytes: 64 });
const HONEST_MS = 2;
/** Number of accesses after which the attacker reports progress. */
const TOLD = 5;

/** The server's report about itself. */
export interface Served {
  readonly findings: string[];
  readonly messages: number;
}

/** Messages of the attacker: its progress, and finally its result. */
export interface Kept {
  readonly done: number;
  readonly outcome?: { readonly findings: string[]; readonly figures: Record<string, number> };
}

const tell = (message: unknown): void => void process.send!(message);

/** Serves requests of one byte, the mark of the connection. All returned bytes equal that mark. */
async function serve(): Promise<void> {
  const findings: string[] = [];
  let messages = 0;
  const memory = allocate(PARTS * BYTES);
  const server = createChannelServer();
  /** The mark of the message in each part, or undefined if the part is free. */
  const parts = new Array<number | undefined>(PARTS).fill(undefined);
  const lending = new Promise<void>((resolve) => {
    server.once('channel', (first: Channel) => void first.lend(memory).then(() => resolve()));
  });
  const whole = (part: number, mark: number): boolean =>
    memory.subarray(part * BYTES, (part + 1) * BYTES).every((byte) => byte === mark);

  async function post(channel: Channel, mark: number): Promise<void> {
    await lending;
    const part = parts.indexOf(undefined);
    if (part < 0) return;
    parts[part] = mark;
    memory.fill(mark, part * BYTES, (part + 1) * BYTES);
    messages += 1;
    // Fails if the attacker has ended the connection.
    await channel.send(memory.subarray(part * BYTES, (part + 1) * BYTES)).catch(() => {});
    if (!whole(part, mark)) findings.push(`a message was overwritten; it belonged to connection ${mark}`);
    parts[part] = undefined;
  }

  server.on('channel', (channel: Channel) => {
    channel.onRequest((request) => {
      void post(channel, request[0]!);
      return Buffer.alloc(BYTES, request[0]!);
    });
  });
  server.listen(0, '127.0.0.1', () => tell({ port: server.address()!.port }));
  process.on('message', () => tell({ findings, messages } satisfies Served));
}

/** A memory description and the mark of the memory's bytes. */
interface Token {
  readonly memory: MemoryDescription;
  readonly mark: number;
}

/** One connection of the attacker. */
interface Keeper {
  readonly peer: RawPeer;
  readonly mark: number;
  asked: number;
  /** Descriptions that were received but not reported as read, by id. */
  readonly live: Map<number, Token>;
  /** Descriptions reported as read since the last reply. Their tokens may or may not be invalid. */
  ending: Token[];
}

async function attack(port: number, seed: number, count: number): Promise<void> {
  const random = seeded(seed);
  const below = (n: number): number => Math.floor(random() * n);
  const findings: string[] = [];
  const figures = { tokens: 0, connections: 0, succeeded: 0, refused: 0, honest: 0 };
  const kept: Token[] = [];
  const peers: Keeper[] = [];
  let marks = 0;
  // Omits 0 and MARK, which memory may contain for other reasons.
  const nextMark = (): number => {
    marks = (marks % 254) + 1;
    return marks === MARK ? nextMark() : marks;
  };

  /** An honest connection, which must only receive its own bytes. */
  const honest = await connectChannel(port, '127.0.0.1');
  const honestMark = nextMark();
  let over = false;
  async function serveHonest(): Promise<void> {
    while (!over) {
      const answer = await honest.request(Buffer.of(honestMark));
      if (answer.some((byte) => byte !== honestMark))
        findings.push('an honest peer received bytes of another connection');
      figures.honest += 1;
      await new Promise((resolve) => setTimeout(resolve, HONEST_MS));
    }
  }
  async function drinkHonest(): Promise<void> {
    for await (const message of honest)
      if (message.some((byte) => byte !== honestMark))
        findings.push('an honest peer got a message of others');
  }
  const honestEnds = Promise.all([serveHonest(), drinkHonest()]).catch((error: unknown) => {
    if (!over) findings.push(`an honest connection has ended: ${String(error)}`);
  });

  async function join(): Promise<Keeper> {
    const peer = await RawPeer.connect(port, SHORT_SLOTS);
    const keeper: Keeper = { peer, mark: nextMark(), asked: 0, live: new Map(), ending: [] };
    figures.connections += 1;
    peers.push(keeper);
    return keeper;
  }

  /** Sends a frame after the previous ones have been sent, because they share memory. */
  async function post({ peer }: Keeper, frame: Buffer): Promise<void> {
    await peer.until(({ sending }) => sending === 0);
    peer.send(frame);
  }

  /** Sends a request, which gets a reply and usually a message. */
  async function ask(keeper: Keeper): Promise<void> {
    const { peer, mark, live } = keeper;
    keeper.asked += 1;
    const id = keeper.asked;
    peer.received.length = 0;
    await post(keeper, frameOf(Frame.REQUEST, { id, payload: Buffer.of(mark) }));
    const frames = () => peer.received.flatMap(framesOf);
    await peer.until(() => frames().some((frame) => frame.type === Frame.ANSWER && frame.id === id));
    keeper.ending = [];
    for (const { flags, payload } of frames()) {
      const memory = (flags & LARGE) === 0 ? undefined : decodeMemory(payload);
      if (memory === undefined) continue;
      const token = { memory, mark };
      live.set(memory.id, token);
      kept.push(token);
      figures.tokens += 1;
    }
  }

  /** Uses a kept token on any connection. */
  async function use(keeper: Keeper): Promise<void> {
    const { memory, mark } = kept[below(kept.length)]!;
    const right = random() < 0.5 ? 'read' : 'write';
    // Later messages of a connection reuse its token numbers.
    const same = (one: Token): boolean =>
      one.memory.token === memory.token && one.memory.address === memory.address;
    const must = [...keeper.live.values()].some(same);
    const may = must || keeper.ending.some(same);
    const { status, bytes } = await keeper.peer.access(right, memory);
    const where = `a token of connection ${mark} on connection ${keeper.mark}`;
    if (status !== Status.SUCCESS) {
      figures.refused += 1;
      if (must && right === 'read') findings.push(`${where}: its own message was not readable`);
      // A Read during which its token ended may have returned a part of its own message.
      const came = (byte: number): boolean => byte !== MARK && !(may && byte === keeper.mark);
      if (right === 'read' && bytes.some(came)) findings.push(`${where}: bytes came`);
      peers.splice(peers.indexOf(keeper), 1);
      keeper.peer[Symbol.dispose]();
      return;
    }
    figures.succeeded += 1;
    if (right === 'write') findings.push(`${where}: a Write has succeeded`);
    else if (!may) findings.push(`${where}: a Read has succeeded`);
    else if (bytes.some((byte) => byte !== keeper.mark)) findings.push(`${where}: bytes of others came`);
  }

  let done = 0;
  while (done < count && findings.length === 0) {
    const keeper = peers.length < PEERS ? await join() : peers[below(peers.length)]!;
    if (keeper.asked < MOST_ASKED) await ask(keeper);
    const read = [...keeper.live].filter(() => random() < 0.6);
    for (const [id, token] of read) {
      keeper.live.delete(id);
      keeper.ending.push(token);
    }
    if (read.length > 0) await post(keeper, reportOf(...read.map(([id]) => id)));
    await use(keeper);
    done += 1;
    if (done % TOLD === 0) tell({ done } satisfies Kept);
  }
  over = true;
  await honest.close();
  await honestEnds;
  for (const { peer } of peers) peer[Symbol.dispose]();
  tell({ done, outcome: { findings, figures } } satisfies Kept);
}

process.on('disconnect', () => process.exit());
const [role, ...numbers] = process.argv.slice(2);
const [port = 0, seed = 0, count = 0] = numbers.map(Number);
if (role === 'serve') await serve();
else await attack(port, seed, count);
