/**
 * The handshake of qperf 0.4: the client's request, the port of the server's RDMA listener, each side's memory, and the server's results,
 * all over TCP. Numbers are little endian.
 */

import type { Socket } from 'node:net';
import { availableParallelism } from 'node:os';
import { Reader } from './tcp.js';

/** Tests over RC: index in qperf's list, bytes of a message, and the operation. */
export const TESTS = {
  rc_bi_bw: { index: 12, bytes: 65_536, kind: 'both ways' },
  rc_bw: { index: 13, bytes: 65_536, kind: 'send' },
  rc_compare_swap_mr: { index: 14, bytes: 8, kind: 'swap' },
  rc_fetch_add_mr: { index: 15, bytes: 8, kind: 'add' },
  rc_lat: { index: 16, bytes: 1, kind: 'echo' },
  rc_rdma_read_bw: { index: 17, bytes: 65_536, kind: 'read' },
  rc_rdma_read_lat: { index: 18, bytes: 1, kind: 'read' },
  rc_rdma_write_bw: { index: 19, bytes: 65_536, kind: 'write' },
  rc_rdma_write_lat: { index: 20, bytes: 1, kind: 'write echo' },
  rc_rdma_write_poll_lat: { index: 21, bytes: 1, kind: 'watch' },
  ver_rc_compare_swap: { index: 31, bytes: 8, kind: 'swap' },
  ver_rc_fetch_add: { index: 32, bytes: 8, kind: 'add' },
} as const;
export type TestName = keyof typeof TESTS;
export const TEST_NAMES = Object.keys(TESTS) as [TestName, ...TestName[]];

const VERSION = { major: 0, minor: 4, increment: 11 } as const;
/** Byte offsets of the request. Omitted fields are always 0 here. */
const RequestAt = {
  major: 0,
  minor: 2,
  increment: 4,
  index: 6,
  messageBytes: 24,
  pollMode: 36,
  seconds: 60,
  timeout: 64,
  useCm: 68,
  end: 200,
} as const;
/** Byte offsets of a side's description. The rest is for connections without RDMA CM, which need LIDs. RoCE has none. */
const NodeAt = { address: 0, rkey: 24, depth: 32, end: 40 } as const;
/** Byte offsets of the results: times at the start and at the end, then bytes, messages and errors, sent and received. */
const ResultAt = {
  processors: 0,
  ticks: 4,
  begin: 12,
  ended: 84,
  sent: 156,
  received: 180,
  end: 256,
} as const;
const TICKS_PER_SECOND = 100;
const BEFORE = 'synchronization before test';
const AFTER = 'synchronization after test';
/** Seconds to wait for a message of the other side. */
const TIMEOUT = 5;

/** A client's request. */
export interface Request {
  readonly test: TestName;
  /** Size of a message in bytes; undefined for atomics. */
  readonly bytes: number;
  readonly seconds: number;
}

/** A side's memory. */
export interface Node {
  readonly address: bigint;
  readonly rkey: number;
}

/** A side's counts. */
export interface Counted {
  readonly sent: number;
  readonly received: number;
  readonly errors: number;
}

export class Meeting {
  private readonly reader: Reader;

  constructor(private readonly socket: Socket) {
    this.reader = new Reader(socket);
  }

  /** Sends the client's first message. */
  ask({ test, bytes, seconds }: Request): void {
    const request = Buffer.alloc(RequestAt.end);
    request.writeUInt16LE(VERSION.major, RequestAt.major);
    request.writeUInt16LE(VERSION.minor, RequestAt.minor);
    request.writeUInt16LE(VERSION.increment, RequestAt.increment);
    request.writeUInt16LE(TESTS[test].index, RequestAt.index);
    request.writeUInt32LE(bytes, RequestAt.messageBytes);
    request.writeUInt32LE(seconds, RequestAt.seconds);
    request.writeUInt32LE(TIMEOUT, RequestAt.timeout);
    request.writeUInt32LE(1, RequestAt.useCm);
    this.socket.write(request);
  }

  /** @throws Error on a request that this program does not serve */
  async asked(): Promise<Request> {
    const request = await this.reader.bytes(RequestAt.end);
    const major = request.readUInt16LE(RequestAt.major);
    const minor = request.readUInt16LE(RequestAt.minor);
    if (major !== VERSION.major || minor !== VERSION.minor)
      throw new Error(
        `The client is of version ${major}.${minor} instead of ${VERSION.major}.${VERSION.minor}.`,
      );
    const index = request.readUInt16LE(RequestAt.index);
    const test = TEST_NAMES.find((name) => TESTS[name].index === index);
    if (test === undefined) throw new Error(`The client requests test ${index}, which is not an RC test.`);
    if (request.readUInt32LE(RequestAt.useCm) === 0)
      throw new Error('The client wants to connect by LID, which RoCE has not: start it with -cm 1.');
    const { kind, bytes } = TESTS[test];
    const atomic = kind === 'swap' || kind === 'add';
    return {
      test,
      bytes: atomic ? bytes : request.readUInt32LE(RequestAt.messageBytes),
      seconds: request.readUInt32LE(RequestAt.seconds),
    };
  }

  tellPort(port: number): void {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(port);
    this.socket.write(bytes);
  }

  async port(): Promise<number> {
    return (await this.reader.bytes(4)).readUInt32LE();
  }

  /** Exchanges the descriptions of both sides' memory. */
  async exchange({ address, rkey }: Node): Promise<Node> {
    const own = Buffer.alloc(NodeAt.end);
    own.writeBigUInt64LE(address, NodeAt.address);
    own.writeUInt32LE(rkey, NodeAt.rkey);
    own.writeUInt32LE(1, NodeAt.depth);
    this.socket.write(own);
    const theirs = await this.reader.bytes(NodeAt.end);
    return { address: theirs.readBigUInt64LE(NodeAt.address), rkey: theirs.readUInt32LE(NodeAt.rkey) };
  }

  /** Waits until both sides are ready. */
  async begin(): Promise<void> {
    this.socket.write(BEFORE);
    await this.hear(BEFORE);
  }

  /** @throws Error with the peer's text if it differs */
  private async hear(expected: string): Promise<void> {
    const text = (await this.reader.bytes(expected.length)).toString('latin1');
    if (text !== expected) throw new Error(`The peer says '${text}' instead of '${expected}'.`);
  }

  /** Sends the server's results and waits until the client has them. `bytes`: those of a message. */
  async report(counted: Counted, bytes: number, seconds: number): Promise<void> {
    const results = Buffer.alloc(ResultAt.end);
    results.writeUInt32LE(availableParallelism(), ResultAt.processors);
    results.writeUInt32LE(TICKS_PER_SECOND, ResultAt.ticks);
    // The only time is the wall-clock time, which starts at 0.
    results.writeBigUInt64LE(BigInt(Math.round(seconds * TICKS_PER_SECOND)), ResultAt.ended);
    for (const [count, at] of [
      [counted.sent, ResultAt.sent],
      [counted.received, ResultAt.received],
    ] as const) {
      results.writeBigUInt64LE(BigInt(count * bytes), at);
      results.writeBigUInt64LE(BigInt(count), at + 8);
    }
    this.socket.write(results);
    await this.hear(AFTER);
  }

  /** Receives the server's results. */
  async results(): Promise<Counted> {
    const results = await this.reader.bytes(ResultAt.end);
    const number = (at: number) => Number(results.readBigUInt64LE(at));
    return {
      sent: number(ResultAt.sent + 8),
      received: number(ResultAt.received + 8),
      errors: number(ResultAt.sent + 16) + number(ResultAt.received + 16),
    };
  }

  /** Confirms the results. */
  end(): void {
    this.socket.write(AFTER);
  }

  close(): void {
    this.reader.close();
  }
}
