/**
 * Messages in one direction over UC or UD, to or from rig/stream.py in the guest: `stream TYPE ROLE OWN-ADDRESS
 * GUEST-ADDRESS`. Each contains its number and bytes derived from it. The receiver counts the complete ones. Prints a
 * JSON report.
 */
import { setTimeout as delay } from 'node:timers/promises';
import * as z from 'zod';
import {
  GRH_BYTES,
  gidOfAddress,
  type IWVAddressHandle,
  type IWVConnectQueuePair,
  type IWVDatagramQueuePair,
  type IWVQueuePair,
  QpType,
  WvAccess,
  type WvCompletion,
  WvWc,
} from '../../../winverbs/index.js';
import { GuestPeer } from './guest-peer.js';
import {
  connectByHand,
  type Destination,
  initialise,
  type Memory,
  type Queue,
  SIGNALED,
  Side,
} from './interop-side.js';
import { pattern } from './verbs-guest.js';

const PEER_PORT = 18_520;
const QKEY = 0x1111_1111;
/** The message that ends the stream. */
const MARK = 0xffff_ffff;
const MARK_BYTES = 8;
/** Time that a report waits for the mark, in ms. */
const MARK_MS = 200;
const COUNT = 400;
/** Number of messages between two synchronizations, small enough that only the link loses messages. */
const BATCH = 25;
const MTU = 1024;
/** Message sizes: three packets for UC, less than one for UD. */
const BYTES = { uc: 2500, ud: 1000 } as const;

const word = z.number().int().min(0);
const meeting = z.object({ qpn: word, psn: word, gid: z.string(), addr: word, rkey: word });
const report = z.object({ whole: word, distinct: word, broken: word, marked: z.boolean() });
const nothing = z.object({});

/** The report of a receiver. */
type Report = z.output<typeof report>;

/** The guest's queue pair and its memory. */
interface Peer extends Destination {
  readonly addr: number;
  readonly rkey: number;
}

const address = z.string().min(1);
const arguments_ = z.tuple([z.enum(['uc', 'ud']), z.enum(['send', 'receive']), address, address]);

function message(number: number, size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  new DataView(bytes.buffer).setUint32(0, number);
  bytes.set(pattern(size - 4, number & 0xff), 4);
  return bytes;
}

/**
 * Memory with the layout of stream.py: a buffer for each written number, one to send from, and one for each receive.
 */
abstract class StreamEnd {
  protected readonly receives = 2 * COUNT + 64;
  protected readonly place: number;
  protected readonly arrived: Queue;
  protected readonly sent: Queue;
  protected readonly memory: Memory;
  private readonly seen = new Set<number>();
  private whole = 0;
  private broken = 0;
  private marked = false;

  constructor(
    side: Side,
    private readonly size: number,
    private readonly header: number,
  ) {
    this.place = size + GRH_BYTES;
    this.arrived = side.queue(this.receives);
    this.sent = side.queue(64);
    this.memory = side.memory(this.place * (COUNT + 1 + this.receives), WvAccess.REMOTE_WRITE);
  }

  abstract readonly own: Destination;
  abstract connect(peer: Peer): void;
  protected abstract post(number: number, piece: ReturnType<Memory['sge']>): void;

  private received(index: number): number {
    return this.place * (COUNT + 1 + index);
  }

  protected get sizes() {
    const queues = { sendCq: this.sent.cq, receiveCq: this.arrived.cq };
    return { ...queues, sendDepth: 32, sendSge: 1, receiveDepth: this.receives, receiveSge: 1 };
  }

  protected postReceives(qp: IWVQueuePair): void {
    for (let i = 0; i < this.receives; i += 1) {
      qp.postReceive(i, this.memory.sge(this.received(i), this.place));
    }
  }

  get key(): { readonly addr: number; readonly rkey: number } {
    return { addr: this.memory.region.address, rkey: this.memory.region.rkey };
  }

  async send(number: number, size = this.size): Promise<void> {
    const at = this.place * COUNT;
    this.memory.bytes.set(message(number, size), at);
    this.post(number, this.memory.sge(at, size));
    await this.sent.next();
  }

  mark(): Promise<void> {
    return this.send(MARK, MARK_BYTES);
  }

  private take({ context, status, length, flags, immediateData }: WvCompletion): void {
    if (status !== 0) throw new Error(`A receive has failed: status ${status}.`);
    const { bytes } = this.memory;
    const written = (flags & WvWc.IMMEDIATE) !== 0;
    const at = written ? immediateData * this.place : this.received(context as number) + this.header;
    const bare = written ? length : length - this.header;
    const number = written ? immediateData : new DataView(bytes.buffer).getUint32(at);
    if (number === MARK) {
      this.marked = true;
      return;
    }
    const right =
      number < COUNT &&
      bare === this.size &&
      Buffer.compare(bytes.subarray(at, at + bare), message(number, this.size)) === 0;
    if (!right) {
      this.broken += 1;
      return;
    }
    this.whole += 1;
    this.seen.add(number);
  }

  /** Returns the messages received so far, after a short wait for the mark. */
  async report(): Promise<Report> {
    const batch: WvCompletion[] = [];
    const end = performance.now() + MARK_MS;
    while (!this.marked && performance.now() < end) {
      const count = this.arrived.cq.poll(batch, 16);
      for (const completion of batch.slice(0, count)) this.take(completion);
      if (count === 0) await delay(1);
    }
    const { whole, broken, marked, seen } = this;
    return { whole, broken, marked, distinct: seen.size };
  }
}

class UcEnd extends StreamEnd {
  readonly own: Destination;
  private readonly qp: IWVConnectQueuePair;

  constructor(side: Side, gid: Uint8Array) {
    super(side, BYTES.uc, 0);
    this.qp = side.pd.createConnectQueuePair({ ...this.sizes, type: QpType.UC });
    initialise(this.qp, WvAccess.REMOTE_WRITE);
    this.own = { qpn: this.qp.qpn, psn: 0xff_fff0, gid };
    this.postReceives(this.qp);
  }

  connect(peer: Peer): void {
    connectByHand(this.qp, this.own, peer, { mtu: MTU, depth: 1 });
  }

  protected post(number: number, piece: ReturnType<Memory['sge']>): void {
    // WRITEs are omitted, because rxe accepts nothing more after a WRITE of which it has only received the start (cases-uc.ts).
    this.qp.send(number, piece, SIGNALED);
  }
}

class UdEnd extends StreamEnd {
  readonly own: Destination;
  private readonly qp: IWVDatagramQueuePair;
  private to: { readonly handle: IWVAddressHandle; readonly qpn: number } | undefined;

  constructor(
    private readonly side: Side,
    gid: Uint8Array,
  ) {
    super(side, BYTES.ud, GRH_BYTES);
    this.qp = side.pd.createDatagramQueuePair(this.sizes);
    this.own = { qpn: this.qp.qpn, psn: 0, gid };
    this.qp.start(QKEY, { sendPsn: 0 });
    this.postReceives(this.qp);
  }

  connect({ qpn, gid }: Peer): void {
    const vector = { sourceGid: this.own.gid, destinationGid: gid };
    this.to = { handle: this.side.pd.createAddressHandle(vector), qpn };
  }

  protected post(number: number, piece: ReturnType<Memory['sge']>): void {
    const { handle, qpn } = this.to!;
    this.qp.send(number, handle, piece[0], SIGNALED, qpn, QKEY);
  }
}

/** We send all messages, and then the mark until it has arrived twice, because the first mark may overtake the last message. */
async function sending(end: StreamEnd, guest: GuestPeer): Promise<Report> {
  for (let number = 0; number < COUNT; number += 1) {
    await end.send(number);
    if (number % BATCH === BATCH - 1) await guest.ask({ do: 'sync' }, nothing);
  }
  for (let marks = 0; ; ) {
    await end.mark();
    const found = await guest.ask({ do: 'report' }, report);
    if (found.marked) marks += 1;
    if (marks === 2) return found;
  }
}

async function receiving(end: StreamEnd, guest: GuestPeer): Promise<Report> {
  for (let from = 0; from < COUNT; from += BATCH) {
    await guest.ask({ do: 'send', from, count: BATCH }, nothing);
  }
  for (;;) {
    await guest.ask({ do: 'mark' }, nothing);
    const found = await end.report();
    if (found.marked) return found;
  }
}

const [type, role, own, guestAddress] = arguments_.parse(process.argv.slice(2));
const gid = gidOfAddress(own);
using side = Side.open(own);
const end = type === 'uc' ? new UcEnd(side, gid) : new UdEnd(side, gid);
const guest = await GuestPeer.meet(guestAddress, PEER_PORT);
const theirs = await guest.ask(
  { do: 'open', type, count: COUNT, size: BYTES[type], mtu: MTU, gid: own.includes(':') ? 2 : 1 },
  meeting,
);
end.connect({ ...theirs, gid: gidOfAddress(theirs.gid) });
const text = Buffer.from(gid)
  .toString('hex')
  .replace(/(.{4})(?!$)/g, '$1:');
await guest.ask({ do: 'connect', ...end.own, ...end.key, gid: text }, nothing);
const found = await (role === 'send' ? sending(end, guest) : receiving(end, guest));
console.log(JSON.stringify({ sent: COUNT, ...found }));
guest.close();
