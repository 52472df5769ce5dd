/** Queue pairs of the guest, driven by rig/verbs-peer.py, and ours, which are connected to them without RDMA CM. */
import { randomInt } from 'node:crypto';
import * as z from 'zod';
import { gidOfAddress, type IWVConnectQueuePair, RemoteMemory, WvAccess } from '../../../winverbs/index.js';
import { GuestPeer } from './guest-peer.js';
import { connectByHand, initialise, type Memory, type Queue, type Route, Side } from './interop-side.js';

/** TCP port of verbs-peer.py. */
const PEER_PORT = 18_516;

/** IBV_ACCESS_* of libibverbs. */
export const Ibv = {
  LOCAL_WRITE: 1,
  REMOTE_WRITE: 2,
  REMOTE_READ: 4,
  REMOTE_ATOMIC: 8,
  MW_BIND: 16,
  ZERO_BASED: 32,
} as const;

/** IBV_WC_*: statuses of the guest's requests. */
export const IbvWc = {
  SUCCESS: 0,
  LOC_LEN_ERR: 1,
  LOC_QP_OP_ERR: 2,
  WR_FLUSH_ERR: 5,
  REM_INV_REQ_ERR: 9,
  REM_ACCESS_ERR: 10,
  REM_OP_ERR: 11,
  RETRY_EXC_ERR: 12,
  RNR_RETRY_EXC_ERR: 13,
} as const;

/** IBV_QPS_ERR: the guest's queue pair has failed. */
export const IBV_QPS_ERR = 6;

const EVERY_IBV_RIGHT =
  Ibv.LOCAL_WRITE | Ibv.REMOTE_WRITE | Ibv.REMOTE_READ | Ibv.REMOTE_ATOMIC | Ibv.MW_BIND;
const EVERY_RIGHT = WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE | WvAccess.REMOTE_ATOMIC | WvAccess.MW_BIND;

const word = z.number().int().min(0);
const made = z.object({ qpn: word, psn: word, gid: z.string(), addr: word, rkey: word });
const guestCompletion = z.object({ status: word, opcode: word, len: word, flags: word, imm: word });
export type GuestCompletion = z.output<typeof guestCompletion>;

const guestHeader = z.object({ version: word, class: word, label: word, hops: word });
/** The routing fields of an IP header. `label` is 0 for IPv4. */
export type GuestHeader = z.output<typeof guestHeader>;

const tallied = z.object({
  out: z.boolean(),
  version: word,
  opcode: word,
  ecn: word,
  nosum: z.boolean(),
  count: word,
});
/** Packets of one kind on the guest's link. `out`: sent by the guest. `nosum`: without a UDP checksum. */
export type Tallied = z.output<typeof tallied>;

/** A request that the guest posts. `at` is an offset in its own memory, `addr` an address in ours. */
export interface GuestRequest {
  readonly op: 'send' | 'send_imm' | 'send_inv' | 'write' | 'write_imm' | 'read' | 'cas' | 'add';
  readonly at: number;
  readonly len: number;
  readonly addr?: number;
  readonly rkey?: number;
  readonly imm?: number;
  readonly want?: number;
  readonly swap?: number;
}

/** Parameters of two new queue pairs. */
export interface PairOptions {
  readonly mtu?: number;
  /** Bytes of memory on each side. */
  readonly size?: number;
  /** Maximum number of reads and atomics in flight, in both directions. */
  readonly depth?: number;
  /** Maximum retries of either side's requests. */
  readonly rnrRetry?: number;
  readonly retry?: number;
  /** Code of both sides' ACK timers; 0: no retransmission. */
  readonly ackTimeout?: number;
  /** Access rights of the guest's memory and queue pair, IBV_ACCESS_*. */
  readonly guestMemory?: number;
  readonly guestQp?: number;
  /** Access rights of ours, WV_ACCESS_*. */
  readonly ourMemory?: number;
  readonly ourQp?: number;
  /** Traffic class of the guest's packets; its low two bits are ECN's. */
  readonly guestClass?: number;
  /** The routing fields of our packets. */
  readonly route?: Route;
}

/** A queue pair of ours, connected to one of the guest. Each has memory for the other. */
export interface Pair {
  readonly qp: IWVConnectQueuePair;
  readonly queue: Queue;
  readonly memory: Memory;
  /** The guest's memory. */
  readonly remote: RemoteMemory;
  readonly size: number;
}

const BLOCK_BYTES = 4093;

/** Bytes equal to those of `fill` in verbs-peer.py. */
export function pattern(length: number, seed: number): Uint8Array {
  const block = Uint8Array.from({ length: BLOCK_BYTES }, (_, i) => (i * i * 7 + i + seed) & 0xff);
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += BLOCK_BYTES) {
    bytes.set(block.subarray(0, Math.min(BLOCK_BYTES, length - at)), at);
  }
  return bytes;
}

/** The two hosts in a behaviour. */
export class Hosts implements Disposable {
  private constructor(
    readonly side: Side,
    private readonly own: string,
    private readonly gidIndex: number,
    private readonly peer: GuestPeer,
  ) {}

  /** @param own - This host's address, which determines the family */
  static async meet(own: string, guest: string): Promise<Hosts> {
    const peer = await GuestPeer.meet(guest, PEER_PORT);
    const gidIndex = own.includes(':') ? 2 : 1;
    return new Hosts(Side.open(own), own, gidIndex, peer);
  }

  /** Creates two new queue pairs. The guest's previous ones are destroyed. */
  async pair(options: PairOptions = {}): Promise<Pair> {
    const { mtu = 1024, size = 65_536, depth = 4, rnrRetry = 7, retry = 7 } = options;
    const { pd } = this.side;
    const queue = this.side.queue(256);
    const qp = pd.createConnectQueuePair({
      sendCq: queue.cq,
      receiveCq: queue.cq,
      sendDepth: 64,
      sendSge: 1,
      receiveDepth: 64,
      receiveSge: 1,
      initiatorDepth: depth,
      responderResources: depth,
      memoryManagement: true,
    });
    initialise(qp, options.ourQp ?? EVERY_RIGHT & ~WvAccess.MW_BIND);
    const memory = this.side.memory(size, options.ourMemory ?? EVERY_RIGHT);
    const theirs = await this.peer.ask(
      {
        do: 'qp',
        ...{ mtu, size, depth, retry, rnr: rnrRetry, gid: this.gidIndex },
        mr: options.guestMemory ?? EVERY_IBV_RIGHT,
        access: options.guestQp ?? EVERY_IBV_RIGHT & ~Ibv.MW_BIND,
        minrnr: 12,
        timeout: options.ackTimeout ?? 14,
      },
      made,
    );
    const own = { qpn: qp.qpn, psn: randomInt(2 ** 24), gid: gidOfAddress(this.own) };
    const gid = gidOfAddress(theirs.gid);
    connectByHand(
      qp,
      own,
      { ...theirs, gid },
      {
        ...{ mtu, depth, rnrRetryCount: rnrRetry, route: options.route ?? {} },
        ...(options.ackTimeout === undefined ? {} : { ackTimeout: options.ackTimeout }),
      },
    );
    const ownGid = Buffer.from(own.gid)
      .toString('hex')
      .replace(/(.{4})(?!$)/g, '$1:');
    await this.peer.ask(
      { do: 'connect', ...own, gid: ownGid, tclass: options.guestClass ?? 0 },
      z.object({}),
    );
    const remote = new RemoteMemory({ address: BigInt(theirs.addr), rkey: theirs.rkey });
    return { qp, queue, memory, remote, size };
  }

  /** Destroys the guest's queue pair and memory without notice. New unconnected ones replace them. */
  async drop(): Promise<void> {
    const wish = { do: 'qp', mtu: 1024, size: 64, depth: 1, retry: 7, rnr: 7, gid: this.gidIndex };
    await this.peer.ask({ ...wish, mr: 1, access: 0, minrnr: 12, timeout: 14 }, made);
  }

  async receive(at: number, len: number): Promise<void> {
    await this.peer.ask({ do: 'recv', at, len }, z.object({}));
  }

  /** Makes the guest post requests. {@link completions} returns their results. */
  async post(...ops: readonly GuestRequest[]): Promise<void> {
    await this.peer.ask({ do: 'post', ops }, z.object({}));
  }

  /** Returns the guest's next `count` completions. @throws Error if they do not arrive */
  async completions(count: number): Promise<GuestCompletion[]> {
    const { wcs } = await this.peer.ask({ do: 'wc', count }, z.object({ wcs: z.array(guestCompletion) }));
    if (wcs.length < count) throw new Error(`The guest has ${wcs.length} completions instead of ${count}.`);
    return wcs;
  }

  /** Returns the guest's status of one request. */
  async status(request: GuestRequest): Promise<number> {
    await this.post(request);
    const [{ status }] = (await this.completions(1)) as [GuestCompletion];
    return status;
  }

  /** Makes the guest bind a type 2 window. Returns its rkey. */
  async window(at: number, len: number, access: number): Promise<number> {
    const { rkey, status } = await this.peer.ask(
      { do: 'window', at, len, access },
      z.object({ rkey: word, status: word }),
    );
    if (status !== IbvWc.SUCCESS) throw new Error(`The guest's window was not bound: status ${status}.`);
    return rkey;
  }

  /** Makes the guest itself invalidate a window. */
  async invalidate(rkey: number): Promise<void> {
    const { status } = await this.peer.ask({ do: 'invalidate', rkey }, z.object({ status: word }));
    if (status !== IbvWc.SUCCESS)
      throw new Error(`The guest's window was not invalidated: status ${status}.`);
  }

  /** Makes the guest capture packets from now on. */
  async watch(): Promise<void> {
    await this.peer.ask({ do: 'watch' }, z.object({}));
  }

  /** Returns the IP headers of the next RC packets that the guest has received since {@link watch}. */
  async seen(count: number): Promise<GuestHeader[]> {
    return (await this.peer.ask({ do: 'seen', count }, z.object({ seen: z.array(guestHeader) }))).seen;
  }

  /** Returns all RoCE packets on the guest's link since {@link watch}. */
  async tally(): Promise<Tallied[]> {
    return (await this.peer.ask({ do: 'tally' }, z.object({ tally: z.array(tallied) }))).tally;
  }

  async fill(at: number, len: number, seed: number): Promise<void> {
    await this.peer.ask({ do: 'fill', at, len, seed }, z.object({}));
  }

  /** Returns the CRC-32 of the guest's memory, as in zlib. */
  async crc(at: number, len: number): Promise<number> {
    return (await this.peer.ask({ do: 'crc', at, len }, z.object({ crc: word }))).crc;
  }

  /** Returns the state of the guest's queue pair, IBV_QPS_*. */
  async guestState(): Promise<number> {
    return (await this.peer.ask({ do: 'state' }, z.object({ state: word }))).state;
  }

  [Symbol.dispose](): void {
    this.peer.close();
    this.side[Symbol.dispose]();
  }
}
