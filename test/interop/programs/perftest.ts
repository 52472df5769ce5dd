/**
 * perftest: either side of ib_{send,write,read,atomic}_{bw,lat} over RC, with `-R` (connections by rdma_cm) or with queue pairs that
 * exchange their addresses over TCP.
 */
import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import { Command } from 'commander';
import * as z from 'zod';
import {
  type IWVConnectEndpoint,
  openProvider,
  RemoteMemory,
  Status,
  WvAccess,
  type WvConnectParam,
  WvError,
} from '../../../winverbs/index.js';
import { ipAddress, number, run } from './command.js';
import {
  addressTowards,
  connect,
  connectByHand,
  initialise,
  Listener,
  type Memory,
  type Queue,
  SIGNALED,
  Side,
  socketAddress,
} from './interop-side.js';
import {
  CmChannel,
  destinationOf,
  Meeting,
  PAGE_BYTES,
  type PerftestDestination,
  TcpChannel,
} from './perftest-meeting.js';
import { answer, dial, Reader } from './tcp.js';

const DEFAULT_PORT = 18_515;
const TESTS = [
  'send_bw',
  'send_lat',
  'write_bw',
  'write_lat',
  'read_bw',
  'read_lat',
  'atomic_bw',
  'atomic_lat',
] as const;
const ATOMIC_BYTES = 8;
const DEPTH = 64;
const RECEIVES = 512;
/** Number of concurrent reads and atomics. */
const OUTSTANDING = 4;
const OPEN = WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE | WvAccess.REMOTE_ATOMIC;

const options = z
  .object({
    test: z.enum(TESTS),
    peer: ipAddress.optional(),
    local: ipAddress.optional(),
    port: number(1, 65_535).default(DEFAULT_PORT),
    size: number(1, 1 << 23).optional(),
    iters: number(1, 1e9).default(1000),
    mtu: number(256, 4096).default(1024),
    rdmaCm: z.boolean().default(false),
    atomicType: z.enum(['FETCH_AND_ADD', 'CMP_AND_SWAP']).default('FETCH_AND_ADD'),
  })
  .refine(({ peer, local, rdmaCm }) => peer !== undefined || local !== undefined || rdmaCm, {
    message: 'a server without -R needs --local: the address whose device it uses',
  });
type Options = z.output<typeof options>;

const param: WvConnectParam = {
  responderResources: OUTSTANDING,
  initiatorDepth: OUTSTANDING,
  retryCount: 7,
  rnrRetryCount: 6,
};

/** The measured queue pair. The lower half of its memory is for its own requests, the upper half for the peer's. */
class Link {
  readonly sent: Queue;
  readonly arrived: Queue;
  readonly qp;
  readonly memory: Memory;
  readonly half: number;
  readonly size: number;

  constructor(side: Side, { test, size }: Options) {
    const atomic = test.startsWith('atomic');
    this.size = atomic ? ATOMIC_BYTES : (size ?? (test.endsWith('_bw') ? 65_536 : 2));
    this.half = Math.max(PAGE_BYTES, this.size);
    this.memory = side.memory(2 * this.half, OPEN);
    this.sent = side.queue(DEPTH);
    this.arrived = side.queue(RECEIVES);
    this.qp = side.pd.createConnectQueuePair({
      sendCq: this.sent.cq,
      receiveCq: this.arrived.cq,
      sendDepth: DEPTH,
      sendSge: 1,
      receiveDepth: RECEIVES,
      receiveSge: 1,
      initiatorDepth: OUTSTANDING,
      responderResources: OUTSTANDING,
    });
    initialise(this.qp);
  }

  /** The half that the peer reads and writes. */
  get target(): Uint8Array {
    return this.memory.bytes.subarray(this.half);
  }

  expect(): void {
    this.qp.postReceive('receive', this.memory.sge(this.half, this.size));
  }

  /** Waits for a message of the test and posts the next receive. */
  async message(): Promise<void> {
    const { length } = await this.arrived.next();
    if (length !== this.size) throw new Error(`A message of ${length} bytes came instead of ${this.size}.`);
    this.expect();
  }
}

/** Posts `iters` requests, at most `depth` at a time, and checks each on completion. Requests complete in order. */
async function pump(
  queue: Queue,
  iters: number,
  depth: number,
  post: (n: number) => void,
  done: (n: number) => void = () => {},
): Promise<void> {
  let posted = 0;
  for (let ended = 0; ended < iters; ended += 1) {
    while (posted < iters && posted - ended < depth) post(posted++);
    await queue.next();
    done(ended);
  }
}

/** The requests of the client, or in some tests of both sides. */
class Requests {
  constructor(
    private readonly link: Link,
    private readonly remote: RemoteMemory,
    private readonly values: Options,
    private readonly first: boolean,
  ) {}

  private get depth(): number {
    return this.values.test.endsWith('_lat') ? 1 : DEPTH;
  }

  async send(): Promise<void> {
    const { qp, memory, size, sent } = this.link;
    await pump(sent, this.values.iters, this.depth, () => qp.send('send', memory.sge(0, size), SIGNALED));
  }

  /** Sends messages back and forth, the client first. */
  async sendBackAndForth(): Promise<void> {
    const { qp, memory, size, sent } = this.link;
    for (let n = 0; n < this.values.iters; n += 1) {
      if (!this.first) await this.link.message();
      qp.send('send', memory.sge(0, size), SIGNALED);
      await sent.next();
      if (this.first) await this.link.message();
    }
  }

  async write(): Promise<void> {
    const { qp, memory, size, sent } = this.link;
    memory.bytes.fill(0x5a, 0, size);
    const post = () => qp.write('write', memory.sge(0, size), SIGNALED, this.remote, 0);
    await pump(sent, this.values.iters, this.depth, post);
  }

  /** Sends writes back and forth, the server first. The last byte counts them, and the waiting side polls it. */
  async writeBackAndForth(): Promise<void> {
    const { qp, memory, size, sent, target } = this.link;
    const wait = async (count: number) => {
      // Polling the queue processes packets.
      while (target[size - 1] !== (count & 0xff)) {
        sent.cq.peek();
        await setImmediate();
      }
    };
    for (let n = 1; n <= this.values.iters; n += 1) {
      if (this.first) await wait(n);
      memory.bytes[size - 1] = n;
      qp.write('write', memory.sge(0, size), SIGNALED, this.remote, 0);
      await sent.next();
      if (!this.first) await wait(n);
    }
  }

  async read(): Promise<void> {
    const { qp, memory, size, sent } = this.link;
    const post = () => qp.read('read', memory.sge(0, size), SIGNALED, this.remote, 0);
    await pump(sent, this.values.iters, this.depth, post);
    if (memory.bytes.subarray(0, size).every((byte) => byte === 0))
      throw new Error('Nothing but zeros was read, where perftest has random bytes.');
  }

  /** Every atomic must find the previous one's value. */
  async atomic(): Promise<void> {
    const { qp, memory, sent } = this.link;
    const view = new DataView(memory.bytes.buffer, memory.bytes.byteOffset);
    const piece = (slot: number) => memory.sge(slot * ATOMIC_BYTES, ATOMIC_BYTES)[0];
    const { remote } = this;
    // Adding zero reads the initial value.
    qp.fetchAdd('fetch and add', piece(0), SIGNALED, 0n, remote, 0);
    await sent.next();
    const before = view.getBigUint64(0, true);
    const at = (n: number) => BigInt.asUintN(64, before + BigInt(n));
    const post = (n: number) => {
      const sge = piece(n % DEPTH);
      if (this.values.atomicType === 'FETCH_AND_ADD') {
        qp.fetchAdd('fetch and add', sge, SIGNALED, 1n, remote, 0);
      } else {
        qp.compareExchange('compare and swap', sge, SIGNALED, at(n), at(n + 1), remote, 0);
      }
    };
    await pump(sent, this.values.iters, this.depth, post, (n) => {
      const found = view.getBigUint64((n % DEPTH) * ATOMIC_BYTES, true);
      if (found !== at(n)) throw new Error(`Atomic ${n} found ${found} instead of ${at(n)}.`);
    });
  }
}

/** The server checks the client's changes in its memory. */
function inspect({ target, size }: Link, { test, iters, atomicType }: Options): void {
  if (test === 'write_bw' && target.subarray(0, size).every((byte) => byte === 0))
    throw new Error('Nothing was written.');
  if (!test.startsWith('atomic') || atomicType !== 'FETCH_AND_ADD') return;
  const words = new BigUint64Array(target.buffer, target.byteOffset, target.length / ATOMIC_BYTES);
  const sum = words.reduce((total, word) => total + word, 0n);
  if (sum !== BigInt(iters)) throw new Error(`The client has added ${sum} instead of ${iters}.`);
}

function print(what: string, size: number, iters: number, rate: number, messages: number): void {
  console.log(
    `${what}: ${iters} of ${size} bytes, ${rate.toFixed(2)} MiB/s, ${(messages * 1e6).toFixed(0)} messages/s`,
  );
}

/** The test itself, after the handshake. Each wait has its position in the order of perftest's steps. */
async function measure(
  link: Link,
  meeting: Meeting,
  own: PerftestDestination,
  theirs: PerftestDestination,
  values: Options,
): Promise<void> {
  const { test, iters } = values;
  const { size } = link;
  const first = values.peer !== undefined;
  const requests = new Requests(link, new RemoteMemory(theirs), values, first);
  const begin = performance.now();
  const rates = (): [number, number] => {
    const seconds = (performance.now() - begin) / 1000;
    return [(size * iters) / seconds / 2 ** 20, iters / seconds / 1e6];
  };
  switch (test) {
    case 'send_bw':
    case 'send_lat':
      if (test === 'send_lat' || !first) for (let n = 0; n < RECEIVES; n += 1) link.expect();
      await meeting.shake(own);
      if (test === 'send_lat') await requests.sendBackAndForth();
      else if (first) await requests.send();
      else for (let n = 0; n < iters; n += 1) await link.message();
      print(test, size, iters, ...rates());
      await meeting.shake(own);
      return;
    case 'write_lat':
      await requests.writeBackAndForth();
      print(test, size, iters, ...rates());
      return;
  }
  if (first) {
    if (test === 'write_bw') await requests.write();
    else if (test.startsWith('read')) await requests.read();
    else await requests.atomic();
    const [rate, messages] = rates();
    print(test, size, iters, rate, messages);
    if (test.endsWith('_bw')) {
      await meeting.shake(own);
      await meeting.report(size, iters, rate, messages);
    }
    await meeting.shake(own);
    return;
  }
  if (test.endsWith('_bw')) {
    await meeting.shake(own);
    const [bytes = 0, count = 0, , average = 0, messages = 0] = await meeting.report(size, iters, 0, 0);
    if (bytes !== size || count !== iters)
      throw new Error(`The client did ${count} of ${bytes} bytes instead of ${iters} of ${size}.`);
    print(`${test} (client)`, bytes, count, average, messages);
  }
  await meeting.shake(own);
  inspect(link, values);
}

/** The handshake up to the test, in perftest's order of steps. */
async function test(
  side: Side,
  channel: TcpChannel | CmChannel,
  local: string,
  values: Options,
  connectData: ((link: Link) => Promise<IWVConnectEndpoint>) | undefined,
): Promise<void> {
  const meeting = new Meeting(channel, values.peer !== undefined);
  const mtu = await meeting.agree(values.mtu);
  const link = new Link(side, values);
  const { region } = link.memory;
  const target = { rkey: region.rkey, address: region.address + link.half };
  const own = destinationOf(link.qp.qpn, local, OUTSTANDING, target);
  let endpoint: IWVConnectEndpoint | undefined;
  if (connectData !== undefined) {
    await meeting.shake(own);
    endpoint = await connectData(link);
    await meeting.shake(own);
  }
  const theirs = await meeting.shake(own);
  // These tests wait once more before they connect.
  if (['write_lat', 'read_lat', 'atomic_lat'].includes(values.test)) await meeting.shake(own);
  if (connectData === undefined)
    connectByHand(link.qp, own, theirs, { mtu, depth: OUTSTANDING, rnrRetryCount: 6 });
  await meeting.shake(own);
  await meeting.shake(own);
  await measure(link, meeting, own, theirs, values);
  await endpoint?.disconnect();
  await channel.close();
}

/** perftest's listener is closed between its two connections, so a refused connection is retried. */
async function connectPatiently(connectOnce: () => Promise<IWVConnectEndpoint>): Promise<IWVConnectEndpoint> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await connectOnce();
    } catch (error) {
      if (!(error instanceof WvError) || error.status !== Status.CONNECTION_REFUSED) throw error;
      if (attempt >= 50) throw error;
      await delay(100);
    }
  }
}

async function client(values: Options): Promise<void> {
  const peer = socketAddress(values.peer!, values.port);
  const local = values.local ?? (await addressTowards(peer));
  using side = Side.open(local);
  if (!values.rdmaCm) {
    const socket = await dial(values.peer!, values.port);
    return await test(side, new TcpChannel(socket, new Reader(socket)), local, values, undefined);
  }
  const channel = new CmChannel(side);
  channel.endpoint = await connect(side, channel.qp, local, peer, CmChannel.param);
  await test(side, channel, local, values, (link) =>
    connectPatiently(() => connect(side, link.qp, local, peer, param)),
  );
}

async function server(values: Options): Promise<void> {
  const { local, port } = values;
  if (!values.rdmaCm) {
    using side = Side.open(local!);
    const socket = await answer(port, () => console.log(`listening on TCP port ${port}`));
    return await test(side, new TcpChannel(socket, new Reader(socket)), local!, values, undefined);
  }
  const provider = openProvider();
  using listener = new Listener(provider, socketAddress(local ?? '0.0.0.0', port));
  console.log(`listening on port ${port}`);
  const control = await listener.next();
  using side = Side.of(provider, control);
  const channel = new CmChannel(side);
  channel.endpoint = control;
  await control.accept(channel.qp, CmChannel.param);
  await test(side, channel, control.query().localAddress.address, values, async (link) => {
    const endpoint = await listener.next();
    await endpoint.accept(link.qp, param);
    return endpoint;
  });
  provider.release();
}

await run(
  new Command('perftest')
    .description('Either side of ib_{send,write,read,atomic}_{bw,lat}')
    .requiredOption('-t, --test <name>', `one of ${TESTS.join(', ')}`)
    .option('-a, --peer <ip>', 'connect to this server (without it: be the server)')
    .option('-I, --local <ip>', 'own address')
    .option('-p, --port <n>', `port (default: ${DEFAULT_PORT})`)
    .option('-s, --size <bytes>', 'bytes of a request (default: bw 65536, lat 2; atomics have 8)')
    .option('-n, --iters <n>', 'requests (default: 1000)')
    .option('-m, --mtu <bytes>', 'path MTU without -R (default: 1024)')
    .option('-R, --rdma-cm', 'connect by rdma_cm')
    .option('-A, --atomic-type <type>', 'FETCH_AND_ADD or CMP_AND_SWAP'),
  options,
  (values) => (values.peer === undefined ? server(values) : client(values)),
);
