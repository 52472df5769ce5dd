/**
 * The handshake of a perftest program (6.x). The two sides exchange versions, sizes and addresses over TCP or, with `-R`, over a separate
 * rdma_cm connection. The client always sends first, then the server.
 */
import {
  gidOfAddress,
  type IWVConnectEndpoint,
  WvAccess,
  type WvConnectParam,
} from '../../../winverbs/index.js';
import { type Destination, initialise, type Queue, SIGNALED, type Side } from './interop-side.js';
import type { Reader } from './tcp.js';

/** A side's description of its queue pair and memory. */
export interface PerftestDestination extends Destination {
  /** Maximum number of reads and atomics that it serves at a time. */
  readonly depth: number;
  readonly rkey: number;
  readonly address: bigint;
}

/** A channel for messages of known lengths. */
export interface Channel {
  readonly destinationBytes: number;
  formatDestination(destination: PerftestDestination): Buffer;
  parseDestination(bytes: Buffer): PerftestDestination;
  write(bytes: Buffer): Promise<void>;
  read(length: number): Promise<Buffer>;
  /** Closes the channel after the last message. */
  close(): Promise<void>;
}

/** LID, depth, QPN, PSN, rkey, address, 16 bytes of GID, SRQ number: hexadecimal, colons, a NUL. */
export class TcpChannel implements Channel {
  readonly destinationBytes = 108;

  constructor(
    private readonly socket: { write(bytes: Buffer): void },
    private readonly reader: Reader,
  ) {}

  formatDestination({ depth, qpn, psn, rkey, address, gid }: PerftestDestination): Buffer {
    const hex = (value: number | bigint, digits: number) => value.toString(16).padStart(digits, '0');
    const fields = [hex(0, 4), hex(depth, 4), hex(qpn, 6), hex(psn, 6), hex(rkey, 8), hex(address, 16)];
    const bytes = [...gid].map((byte) => hex(byte, 2));
    return Buffer.from(`${[...fields, ...bytes, hex(0, 8)].join(':')}:\0`);
  }

  parseDestination(bytes: Buffer): PerftestDestination {
    const text = bytes.toString('latin1');
    const form =
      /^[0-9a-f]{4}:([0-9a-f]{4}):([0-9a-f]{6}):([0-9a-f]{6}):([0-9a-f]{8}):([0-9a-f]{16}):((?:[0-9a-f]{2}:){16})/;
    const [, depth, qpn, psn, rkey, address, gid] = form.exec(text) ?? [];
    if (depth === undefined || gid === undefined)
      throw new Error(`Malformed address from the peer: '${text}'.`);
    const number = (digits: string | undefined) => Number.parseInt(digits!, 16);
    return {
      depth: number(depth),
      qpn: number(qpn),
      psn: number(psn),
      rkey: number(rkey),
      address: BigInt(`0x${address}`),
      gid: Buffer.from(gid.replaceAll(':', ''), 'hex'),
    };
  }

  async write(bytes: Buffer): Promise<void> {
    this.socket.write(bytes);
  }

  read(length: number): Promise<Buffer> {
    return this.reader.bytes(length);
  }

  async close(): Promise<void> {
    this.socket.write(Buffer.from('done\0'));
    this.reader.close();
  }
}

/** Byte offsets of a destination in a message of the control connection, big endian. */
const At = { depth: 4, qpn: 8, psn: 12, rkey: 16, address: 24, gid: 32, end: 56 } as const;
const GID_BYTES = 16;
/** The peer only sends after a reply, so at most one of the two receives is used at a time. */
const RECEIVES = 2;

/** The control connection of `-R`: a separate queue pair. */
export class CmChannel implements Channel {
  readonly destinationBytes = At.end;
  static readonly param: WvConnectParam = { retryCount: 7, rnrRetryCount: 6 };
  readonly qp;
  private readonly sent: Queue;
  private readonly arrived: Queue;
  private readonly outgoing;
  private readonly incoming;
  private next = 0;
  endpoint: IWVConnectEndpoint | undefined = undefined;

  constructor(side: Side) {
    this.sent = side.queue(RECEIVES);
    this.arrived = side.queue(RECEIVES);
    this.qp = side.pd.createConnectQueuePair({
      sendCq: this.sent.cq,
      receiveCq: this.arrived.cq,
      sendDepth: 1,
      sendSge: 1,
      receiveDepth: RECEIVES,
      receiveSge: 1,
    });
    initialise(this.qp);
    this.outgoing = side.memory(At.end, 0);
    this.incoming = side.memory(At.end * RECEIVES, WvAccess.LOCAL_WRITE);
    for (let slot = 0; slot < RECEIVES; slot += 1) this.expect(slot);
  }

  private expect(slot: number): void {
    this.qp.postReceive('receive', this.incoming.sge(slot * At.end, At.end));
  }

  formatDestination({ depth, qpn, psn, rkey, address, gid }: PerftestDestination): Buffer {
    const bytes = Buffer.alloc(At.end);
    bytes.writeUInt32BE(depth, At.depth);
    bytes.writeUInt32BE(qpn, At.qpn);
    bytes.writeUInt32BE(psn, At.psn);
    bytes.writeUInt32BE(rkey, At.rkey);
    bytes.writeBigUInt64BE(address, At.address);
    bytes.set(gid, At.gid);
    return bytes;
  }

  parseDestination(bytes: Buffer): PerftestDestination {
    return {
      depth: bytes.readUInt32BE(At.depth),
      qpn: bytes.readUInt32BE(At.qpn),
      psn: bytes.readUInt32BE(At.psn),
      rkey: bytes.readUInt32BE(At.rkey),
      address: bytes.readBigUInt64BE(At.address),
      gid: bytes.subarray(At.gid, At.gid + GID_BYTES),
    };
  }

  async write(bytes: Buffer): Promise<void> {
    this.outgoing.bytes.set(bytes);
    this.qp.send('message to the peer', this.outgoing.sge(0, bytes.length), SIGNALED);
    await this.sent.next();
  }

  async read(length: number): Promise<Buffer> {
    const arrived = await this.arrived.next();
    if (arrived.length !== length)
      throw new Error(`A message of ${arrived.length} bytes came instead of ${length}.`);
    const slot = this.next;
    this.next = (slot + 1) % RECEIVES;
    const bytes = Buffer.from(this.incoming.bytes.slice(slot * At.end, slot * At.end + length));
    this.expect(slot);
    return bytes;
  }

  async close(): Promise<void> {
    await this.endpoint!.disconnect();
  }
}

const VERSION_BYTES = 16;
/** The version of these programs; peers before 5.70 use another protocol. */
const VERSION = '6.06';
const OLDEST_VERSION = 5.7;
export const PAGE_BYTES = 4096;
const CACHE_LINE_BYTES = 64;

/** Codes of path MTUs (IBA 1 §9.4.5, IB_MTU). */
const mtuCode = (bytes: number) => Math.log2(bytes) - 7;
const mtuBytes = (code: number) => 2 ** (code + 7);

/** The handshake, in which both sides alternate. */
export class Meeting {
  constructor(
    private readonly channel: Channel,
    private readonly speaksFirst: boolean,
  ) {}

  /** Sends a message and receives one of the same length. */
  private async exchange(own: Buffer): Promise<Buffer> {
    if (this.speaksFirst) {
      await this.channel.write(own);
      return this.channel.read(own.length);
    }
    const theirs = await this.channel.read(own.length);
    await this.channel.write(own);
    return theirs;
  }

  /** Exchanges versions and sizes. Returns the largest path MTU in bytes that both support. */
  async agree(mtu: number): Promise<number> {
    const version = Buffer.alloc(VERSION_BYTES);
    version.write(VERSION);
    const theirs = Number.parseFloat((await this.exchange(version)).toString('latin1'));
    if (!(theirs >= OLDEST_VERSION))
      throw new Error(`The peer is of version ${theirs}; it has to be ${OLDEST_VERSION} or later.`);
    for (const size of [PAGE_BYTES, CACHE_LINE_BYTES]) {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(size);
      await this.exchange(bytes);
    }
    const code = (await this.exchange(Buffer.from(`${mtuCode(mtu)}\0`))).toString('latin1');
    return Math.min(mtu, mtuBytes(Number.parseInt(code, 10)));
  }

  /** Exchanges destinations. Also used to wait for each other. */
  async shake(own: PerftestDestination): Promise<PerftestDestination> {
    const theirs = await this.exchange(this.channel.formatDestination(own));
    return this.channel.parseDestination(theirs);
  }

  /** Sends size, iterations, best and average MiB/s, and million messages/s. Returns those of the peer. */
  async report(size: number, iters: number, rate: number, messages: number): Promise<number[]> {
    const whole = (value: number) => {
      const bytes = Buffer.alloc(8);
      bytes.writeBigUInt64BE(BigInt(value));
      return bytes;
    };
    const real = (value: number) => {
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleBE(value);
      return bytes;
    };
    const theirs = [
      Number((await this.exchange(whole(size))).readBigUInt64BE()),
      Number((await this.exchange(whole(iters))).readBigUInt64BE()),
    ];
    for (const value of [rate, rate, messages])
      theirs.push((await this.exchange(real(value))).readDoubleBE());
    return theirs;
  }
}

/** A side's own destination. */
export function destinationOf(
  qpn: number,
  address: string,
  depth: number,
  memory: { readonly rkey: number; readonly address: number },
): PerftestDestination {
  return {
    qpn,
    psn: Math.floor(Math.random() * 2 ** 24),
    gid: gidOfAddress(address),
    depth,
    rkey: memory.rkey,
    address: BigInt(memory.address),
  };
}
