/**
 * Runs one of every RC or UC operation, in a fixed order, with checked data, as either side of the interop rig's all-ops.py. The sides
 * exchange JSON objects over TCP, one per line.
 */
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Command } from 'commander';
import * as z from 'zod';
import {
  gidOfAddress,
  type IWVConnectQueuePair,
  QpType,
  RemoteMemory,
  WcStatus,
  WvAccess,
  WvSend,
} from '../../../winverbs/index.js';
import { ipAddress, number, run } from './command.js';
import {
  addressTowards,
  type Completion,
  connectByHand,
  initialise,
  type Memory,
  type Queue,
  SIGNALED,
  Side,
  socketAddress,
  wcName,
} from './interop-side.js';
import { answer, dial, Reader } from './tcp.js';

const options = z
  .object({
    peer: ipAddress.optional(),
    local: ipAddress.optional(),
    port: number(1, 65_535).default(18_515),
    mtu: number(256, 4096).default(1024),
    errors: z.boolean().default(false),
    uc: z.boolean().default(false),
  })
  .refine(({ peer, local }) => peer !== undefined || local !== undefined, {
    message: 'a responder needs --local: the address whose device it uses',
  });
type Options = z.output<typeof options>;

const MEMORY_BYTES = 16_384;
/** The requester uses the upper half of its own memory, and the lower half of the peer's. */
const OWN_AT = 8192;
const WINDOW_BYTES = 4096;
const DEPTH = 16;
/** Maximum time of a packet in flight. */
const ARRIVAL_MS = 2000;
const OPEN_UC = WvAccess.REMOTE_WRITE;
const OPEN = WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE | WvAccess.REMOTE_ATOMIC | WvAccess.MW_BIND;

const word = z.number().int().min(0);
const meeting = z.object({ qpn: word, psn: word, gid: z.string(), addr: word, rkey: word });
const completionInfo = z.object({ status: word, opcode: word, len: word, flags: word, imm: word });
const request = z.discriminatedUnion('do', [
  z.object({ do: z.literal('recv'), at: word, len: word, delay: z.number().optional() }),
  z.object({ do: z.literal('fill'), at: word, data: z.string() }),
  z.object({ do: z.literal('peek'), at: word, len: word }),
  z.object({ do: z.literal('wc') }),
  z.object({ do: z.literal('mw') }),
  z.object({ do: z.literal('bye') }),
]);

/** A TCP connection with one JSON object per line. */
class Talk {
  private readonly reader: Reader;

  constructor(private readonly socket: Socket) {
    this.reader = new Reader(socket);
  }

  tell(message: object): void {
    this.socket.write(`${JSON.stringify(message)}\n`);
  }

  async hear<T>(form: z.ZodType<T>): Promise<T> {
    return form.parse(JSON.parse(await this.reader.line()));
  }

  close(): void {
    this.reader.close();
  }
}

/** The objects of either side: a queue pair, and memory that the peer may access. */
interface Ends {
  readonly side: Side;
  readonly talk: Talk;
  readonly queue: Queue;
  readonly qp: IWVConnectQueuePair;
  readonly memory: Memory;
  /** The peer's memory. */
  readonly remote: RemoteMemory;
}

async function meet({ peer, local, port, mtu, uc }: Options): Promise<Ends> {
  const address = local ?? (await addressTowards(socketAddress(peer!, port)));
  const side = Side.open(address);
  const queue = side.queue(64);
  const { cq } = queue;
  const qp = side.pd.createConnectQueuePair({
    sendCq: cq,
    receiveCq: cq,
    sendDepth: DEPTH,
    sendSge: 1,
    receiveDepth: DEPTH,
    receiveSge: 1,
    signalSends: true,
    type: uc ? QpType.UC : QpType.RC,
  });
  initialise(qp, uc ? OPEN_UC : undefined);
  const memory = side.memory(MEMORY_BYTES, uc ? OPEN_UC : OPEN);
  const own = { qpn: qp.qpn, psn: Math.floor(Math.random() * 2 ** 24), gid: gidOfAddress(address) };
  const socket =
    peer === undefined
      ? await answer(port, () => console.log(`listening on TCP port ${port}`))
      : await dial(peer, port);
  const talk = new Talk(socket);
  const gid = Buffer.from(own.gid)
    .toString('hex')
    .replace(/(.{4})(?!$)/g, '$1:');
  talk.tell({ ...own, gid, addr: memory.region.address, rkey: memory.region.rkey });
  const theirs = await talk.hear(meeting);
  connectByHand(qp, own, { ...theirs, gid: gidOfAddress(theirs.gid) }, { mtu, depth: 4, rnrRetryCount: 7 });
  const remote = new RemoteMemory({ address: BigInt(theirs.addr), rkey: theirs.rkey });
  return { side, talk, queue, qp, memory, remote };
}

/** A completion as the requester expects it. The immediate data is a number. */
const infoOf = ({ status, opcode, length, flags, immediateData }: Completion) => ({
  status,
  opcode,
  len: length,
  flags,
  imm: immediateData,
});

async function respond({ side, talk, queue, qp, memory }: Ends): Promise<void> {
  talk.tell({ ready: 1 });
  for (;;) {
    const wish = await talk.hear(request);
    switch (wish.do) {
      case 'bye':
        return talk.tell({});
      case 'fill':
        memory.bytes.set(Buffer.from(wish.data, 'latin1'), wish.at);
        talk.tell({});
        break;
      case 'peek':
        talk.tell({ data: Buffer.from(memory.bytes.subarray(wish.at, wish.at + wish.len)).toString('hex') });
        break;
      case 'recv':
        // A late receive: the peer is notified before, and gets RNR NAKs.
        if (wish.delay !== undefined && wish.delay > 0) {
          talk.tell({});
          await delay(wish.delay * 1000);
          qp.postReceive('receive', memory.sge(wish.at, wish.len));
        } else {
          qp.postReceive('receive', memory.sge(wish.at, wish.len));
          talk.tell({});
        }
        break;
      case 'wc':
        talk.tell(infoOf(await queue.any()));
        break;
      case 'mw': {
        const window = side.pd.allocateMemoryWindow();
        const access = WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE;
        const rkey = qp.bindMemoryWindow(window, 'bind', memory.region, 0, WINDOW_BYTES, access, SIGNALED);
        talk.tell({ rkey, wc: infoOf(await queue.any()) });
        break;
      }
    }
  }
}

/** Posts one request of a step. */
type Post = (piece: ReturnType<Memory['sge']>) => void;

/** The requester's steps. Each is checked on both sides. */
class Requester {
  private failed = 0;

  constructor(
    private readonly ends: Ends,
    private readonly uc: boolean,
  ) {}

  private async ask<T>(wish: z.input<typeof request>, form: z.ZodType<T>): Promise<T> {
    this.ends.talk.tell(wish);
    return this.ends.talk.hear(form);
  }

  private async peek(at: number, length: number): Promise<Buffer> {
    const { data } = await this.ask({ do: 'peek', at, len: length }, z.object({ data: z.string() }));
    return Buffer.from(data, 'hex');
  }

  /** Whether the peer has received the data. The completion of a UC WRITE only means that it was sent. */
  private async arrives(data: Buffer, at: number): Promise<boolean> {
    const end = performance.now() + (this.uc ? ARRIVAL_MS : 0);
    for (;;) {
      if (data.equals(await this.peek(at, data.length))) return true;
      if (performance.now() >= end) return false;
    }
  }

  private report(name: string, length: number, problem: string | undefined): void {
    if (problem !== undefined) this.failed += 1;
    console.log(
      `${problem === undefined ? 'ok ' : 'BAD'} ${name}, ${length} bytes${problem ? `: ${problem}` : ''}`,
    );
  }

  private pattern(name: string, length: number): Buffer {
    return Buffer.from(Array.from({ length }, (_, i) => 33 + ((i * 7 + length + name.length) % 90)));
  }

  private get own(): Uint8Array {
    return this.ends.memory.bytes.subarray(OWN_AT);
  }

  /** Sends data to the peer: a SEND if it consumes a receive, a WRITE, or a WRITE with immediate data. */
  async push(
    name: string,
    length: number,
    post: Post,
    more: { at?: number; receive?: boolean; immediate?: number; late?: number } = {},
  ): Promise<void> {
    const { at = 0, receive = false, immediate, late } = more;
    const data = this.pattern(name, length);
    this.own.set(data);
    if (receive) {
      const wish = { do: 'recv' as const, at, len: Math.max(length, 1) };
      await this.ask(late === undefined ? wish : { ...wish, delay: late }, z.object({}));
    }
    post(this.ends.memory.sge(OWN_AT, length));
    const { status } = await this.ends.queue.any();
    let problem = status === WcStatus.SUCCESS ? undefined : wcName(status);
    if (problem === undefined && receive) {
      const there = await this.ask({ do: 'wc' }, completionInfo);
      if (there.status !== 0) problem = `the receiver saw status ${there.status}`;
      else if (immediate !== undefined && there.imm !== immediate)
        problem = `immediate data 0x${there.imm.toString(16)}`;
      // If a WRITE consumes a receive, the receive's length is that of the WRITE.
      else if (there.len !== length) problem = `the receiver saw ${there.len} bytes`;
    }
    if (problem === undefined && !(await this.arrives(data, at))) problem = 'other data arrived';
    this.report(name, length, problem);
  }

  /** A READ of data that the peer has stored on request. */
  async read(name: string, length: number, at: number): Promise<void> {
    const { qp, queue, memory, remote } = this.ends;
    const data = this.pattern(name, length);
    await this.ask({ do: 'fill', at, data: data.toString('latin1') }, z.object({}));
    this.own.fill(0, 0, length + 1);
    qp.read(name, memory.sge(OWN_AT, length), SIGNALED, remote, at);
    const { status } = await queue.any();
    const arrived = Buffer.from(this.own.subarray(0, length));
    const problem =
      status !== WcStatus.SUCCESS ? wcName(status) : arrived.equals(data) ? undefined : 'other data came';
    this.report(name, length, problem);
  }

  /** An atomic on the peer's word, which must be `before` before and `after` afterwards. */
  async atomic(name: string, at: number, post: Post, before: bigint, after: bigint): Promise<void> {
    this.own.fill(0xee, 0, 8);
    post(this.ends.memory.sge(OWN_AT, 8));
    const { status } = await this.ends.queue.any();
    const found = Buffer.from(this.own.slice(0, 8)).readBigUInt64LE();
    const left = (await this.peek(at, 8)).readBigUInt64LE();
    let problem: string | undefined;
    if (status !== WcStatus.SUCCESS) problem = wcName(status);
    else if (found !== before) problem = `found 0x${found.toString(16)} instead of 0x${before.toString(16)}`;
    else if (left !== after) problem = `left 0x${left.toString(16)} instead of 0x${after.toString(16)}`;
    this.report(name, 8, problem);
  }

  private readonly send: Post = (piece) => this.ends.qp.send('send', piece, SIGNALED);

  private write(at: number, target = this.ends.remote): Post {
    return (piece) => this.ends.qp.write('write', piece, SIGNALED, target, at);
  }

  /** Runs all steps. Returns the number of failures. */
  async all({ mtu, errors }: Options): Promise<number> {
    const { qp, remote } = this.ends;
    const { send } = this;
    const sendImmediate =
      (immediate: number): Post =>
      (piece) =>
        qp.send('send', piece, SIGNALED | WvSend.IMMEDIATE, immediate);
    const writeImmediate =
      (at: number, immediate: number): Post =>
      (piece) =>
        qp.write('write', piece, SIGNALED | WvSend.IMMEDIATE, remote, at, immediate);
    const receive = true;

    await this.push('SEND', 32, send, { receive });
    await this.push('SEND, padded', 13, send, { receive });
    await this.push('SEND, empty', 0, send, { receive });
    await this.push('SEND, several packets', 3000, send, { receive });
    await this.push('SEND, whole packets', 2 * mtu, send, { receive });
    await this.push('SEND with immediate', 32, sendImmediate(0x1122_3344), {
      receive,
      immediate: 0x1122_3344,
    });
    await this.push('SEND with immediate, several packets', 3001, sendImmediate(0xfedc_ba98), {
      receive,
      immediate: 0xfedc_ba98,
    });
    await this.push('WRITE', 64, this.write(128), { at: 128 });
    await this.push('WRITE, padded', 3, this.write(257), { at: 257 });
    await this.push('WRITE, empty', 0, this.write(0));
    await this.push('WRITE, several packets', 3002, this.write(512), { at: 512 });
    await this.push('WRITE, whole packets', 2 * mtu, this.write(0));
    await this.push('WRITE with immediate', 48, writeImmediate(64, 0xcafe_0001), {
      at: 64,
      receive,
      immediate: 0xcafe_0001,
    });
    await this.push('WRITE with immediate, several packets', 3000, writeImmediate(64, 2), {
      at: 64,
      receive,
      immediate: 2,
    });
    if (!this.uc) await this.reliable(errors);
    await this.ask({ do: 'bye' }, z.object({}));
    return this.failed;
  }

  /** The steps that unreliable connections lack. */
  private async reliable(errors: boolean): Promise<void> {
    const { qp, remote, queue, memory } = this.ends;
    const receive = true;
    await this.read('READ', 40, 64);
    await this.read('READ, padded', 7, 65);
    await this.read('READ, several packets', 3003, 32);
    await this.read('READ, empty', 0, 0);

    const at = 2048;
    await this.push('WRITE of a counter', 8, this.write(at), { at });
    const first = (await this.peek(at, 8)).readBigUInt64LE();
    const swap =
      (compare: bigint, exchange: bigint): Post =>
      ([piece]) =>
        qp.compareExchange('swap', piece, SIGNALED, compare, exchange, remote, at);
    await this.atomic('CMP_SWAP that succeeds', at, swap(first, 5n), first, 5n);
    await this.atomic('CMP_SWAP that does not', at, swap(first, 9n), 5n, 5n);
    await this.atomic(
      'FETCH_ADD',
      at,
      ([piece]) => qp.fetchAdd('add', piece, SIGNALED, 0x100n, remote, at),
      5n,
      0x105n,
    );
    await this.push('SEND that waits for a receive', 16, this.send, { receive, late: 0.05 });

    const bound = await this.ask({ do: 'mw' }, z.object({ rkey: word, wc: completionInfo }));
    if (bound.wc.status !== 0) throw new Error(`The peer's window was not bound: status ${bound.wc.status}.`);
    const window = new RemoteMemory({ address: remote.address, rkey: bound.rkey });
    await this.push('WRITE through a window', 24, this.write(1024, window), { at: 1024 });
    await this.push(
      'SEND with invalidate',
      20,
      (piece) => qp.sendAndInvalidate('send', piece, SIGNALED, bound.rkey),
      {
        receive,
      },
    );
    if (errors) {
      qp.read('read', memory.sge(OWN_AT, 8), SIGNALED, window, 0);
      const { status } = await queue.any();
      this.report(
        'READ through the invalidated window',
        8,
        status === WcStatus.REMOTE_ACCESS_ERROR ? undefined : wcName(status),
      );
    }
  }
}

async function main(values: Options): Promise<void> {
  const ends = await meet(values);
  using _side = ends.side;
  if (values.peer === undefined) {
    await respond(ends);
  } else {
    await ends.talk.hear(z.object({ ready: word }));
    const failed = await new Requester(ends, values.uc).all(values);
    if (failed > 0) throw new Error(`${failed} operations failed.`);
  }
  ends.talk.close();
}

await run(
  new Command('all-ops')
    .description('One of every RC or UC operation, data checked on both sides')
    .option('-a, --peer <ip>', 'be the requester of this responder (without it: be the responder)')
    .option('-I, --local <ip>', 'own address (requester; default: from the route)')
    .option('-p, --port <n>', 'TCP port (default: 18515)')
    .option('-m, --mtu <bytes>', 'path MTU (default: 1024)')
    .option('-u, --uc', 'an unreliable connection: SEND and WRITE only')
    .option('-e, --errors', 'end with a READ that the responder refuses'),
  options,
  main,
);
