/** qperf: either side of its RC tests, connected by rdma_cm (`-cm 1`, over IPv4 only). Received data is checked. */
import { isIPv4 } from 'node:net';
import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import { Command } from 'commander';
import * as z from 'zod';
import {
  openProvider,
  RemoteMemory,
  WcStatus,
  WvAccess,
  type WvCompletion,
  type WvConnectParam,
  WvSend,
} from '../../../winverbs/index.js';
import { ipAddress, number, run } from './command.js';
import {
  addressTowards,
  type Completion,
  connect,
  disconnected,
  initialise,
  Listener,
  type Memory,
  type Queue,
  SIGNALED,
  Side,
  socketAddress,
  wcName,
} from './interop-side.js';
import {
  type Counted,
  Meeting,
  type Node,
  type Request,
  TEST_NAMES,
  TESTS,
  type TestName,
} from './qperf-meeting.js';
import { answer, dial } from './tcp.js';

const DEFAULT_PORT = 19_765;
const DEPTH = 64;
const RECEIVES = 512;
const WORD = 8;
const OPEN = WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE | WvAccess.REMOTE_ATOMIC;
/** Time by which a client stops earlier than the server, which still receives the last messages. */
const LEAD_MS = 100;
/** Maximum time of outstanding requests. */
const TIMEOUT_MS = 5000;
/** The first and last byte of a message that is detected by polling. */
const Watched = { client: 0x55, server: 0xaa } as const;

const ip4 = ipAddress.refine((text) => isIPv4(text), 'must be an IPv4 address: qperf connects over no other');
const options = z
  .object({
    test: z.enum(TEST_NAMES).optional(),
    peer: ip4.optional(),
    local: ip4.optional(),
    port: number(1, 65_535).default(DEFAULT_PORT),
    size: number(1, 1 << 23).optional(),
    time: number(1, 3600).default(2),
  })
  .refine(({ peer, test }) => peer === undefined || test !== undefined, 'a client needs --test');
type Options = z.output<typeof options>;

/** As in qperf, there is one read or atomic at a time, and sends wait for receives. */
const param: WvConnectParam = { responderResources: 1, initiatorDepth: 1, retryCount: 7, rnrRetryCount: 7 };

/** The content of memory before data arrives. qperf sends zeros, this program sends {@link pattern}. */
const UNTOUCHED = 0xff;
const pattern = (length: number) => Uint8Array.from({ length }, (_, i) => 1 + ((i * 7) % 254));

/** The measured queue pair, with memory that the peer reads and writes, and private memory. */
class Link implements Disposable {
  readonly queue: Queue;
  readonly qp;
  readonly shared: Memory;
  readonly own: Memory;
  /** An abandoned wait, which the next one continues. */
  private pending: Promise<Completion> | undefined = undefined;

  constructor(
    side: Side,
    readonly bytes: number,
  ) {
    this.queue = side.queue(DEPTH + RECEIVES);
    this.qp = side.pd.createConnectQueuePair({
      sendCq: this.queue.cq,
      receiveCq: this.queue.cq,
      sendDepth: DEPTH,
      sendSge: 1,
      receiveDepth: RECEIVES,
      receiveSge: 1,
      initiatorDepth: 1,
      responderResources: 1,
    });
    initialise(this.qp);
    this.shared = side.memory(bytes, OPEN);
    this.own = side.memory(bytes, WvAccess.LOCAL_WRITE);
  }

  get node(): Node {
    const { address, rkey } = this.shared.region;
    return { address: BigInt(address), rkey };
  }

  /** Ends an abandoned wait. */
  [Symbol.dispose](): void {
    this.queue.cq.cancelOverlappedRequests();
  }

  /** Fills the memory for the test, and posts its first receives. */
  prepare({ test }: Request, first: boolean): void {
    const { kind } = TESTS[test];
    this.own.bytes.set(pattern(this.bytes));
    if (kind === 'watch') this.shared.bytes.fill(first ? Watched.client : Watched.server);
    else this.shared.bytes.fill(kind === 'swap' || kind === 'add' ? 0 : UNTOUCHED);
    if (kind === 'both ways' || ((kind === 'send' || kind === 'write') && !first)) this.expect(RECEIVES);
    if (kind === 'echo' || kind === 'write echo') this.expect(1);
  }

  expect(count: number): void {
    for (let i = 0; i < count; i += 1) this.qp.postReceive('receive', this.shared.sge());
  }

  /** Waits for the next completion. Returns undefined if `over` resolved first or the connection has ended. */
  async next(over: Promise<undefined>): Promise<Completion | undefined> {
    this.pending ??= this.queue.any();
    const first = await Promise.race([this.pending, over]);
    if (first === undefined) return undefined;
    this.pending = undefined;
    if (first.status === WcStatus.FLUSHED) return undefined;
    if (first.status !== WcStatus.SUCCESS)
      throw new Error(`The ${String(first.context)} failed: ${wcName(first.status)}.`);
    if (first.context === 'receive' && first.length !== this.bytes)
      throw new Error(`A message of ${first.length} bytes came instead of ${this.bytes}.`);
    return first;
  }

  /** Waits for the next completion. @throws Error if none arrives within the time limit */
  async soon(what: string): Promise<Completion> {
    const timer = new AbortController();
    const over = delay(TIMEOUT_MS, undefined, timer).catch(() => undefined);
    const completion = await this.next(over);
    timer.abort();
    if (completion === undefined) throw new Error(`The peer does not answer ${what}.`);
    return completion;
  }
}

/** One side of a test. Each method ends when the time has elapsed, and returns its counts of sent and received messages. */
class Test {
  private readonly begin = performance.now();
  private readonly end: number;
  private readonly over: Promise<undefined>;
  private sent = 0;
  private received = 0;
  private posted = 0;
  private stopped = 0;

  constructor(
    private readonly link: Link,
    private readonly remote: RemoteMemory,
    private readonly first: boolean,
    seconds: number,
  ) {
    const ms = seconds * 1000 - (first ? LEAD_MS : 0);
    this.end = this.begin + ms;
    this.over = delay(ms, undefined);
  }

  /** Duration in seconds. {@link stop} ends the test earlier. */
  get seconds(): number {
    return (this.stopped - this.begin) / 1000;
  }

  stop(): void {
    this.stopped = performance.now();
  }

  get counted(): Counted {
    return { sent: this.sent, received: this.received, errors: 0 };
  }

  private get running(): boolean {
    return performance.now() < this.end;
  }

  private take({ context }: Completion): void {
    if (context === 'receive') {
      this.received += 1;
      this.link.expect(1);
    } else this.sent += 1;
  }

  /** Keeps `depth` requests outstanding and checks each on completion. */
  async pump(depth: number, post: (n: number) => void, done: (n: number) => void = () => {}): Promise<void> {
    for (; this.posted < depth; this.posted += 1) post(this.posted);
    while (this.running) {
      const completion = await this.link.next(this.over);
      if (completion === undefined) break;
      this.take(completion);
      if (completion.context === 'receive') continue;
      done(this.sent - 1);
      post(this.posted++);
    }
    await this.drain(done);
  }

  /** Waits for the outstanding requests. */
  private async drain(done: (n: number) => void): Promise<void> {
    while (this.sent < this.posted) {
      const completion = await this.link.soon(`${this.posted - this.sent} requests`);
      this.take(completion);
      if (completion.context !== 'receive') done(this.sent - 1);
    }
  }

  /** Receives messages. */
  async receive(): Promise<void> {
    while (this.running) {
      const completion = await this.link.next(this.over);
      if (completion !== undefined) this.take(completion);
    }
  }

  /** Sends messages back and forth, the client first. Each side returns the other's message. */
  async echo(post: () => void): Promise<void> {
    const { own, shared } = this.link;
    let idle = 1;
    if (this.first) {
      own.bytes.fill(1);
      post();
      idle = 0;
    }
    let expected: number | undefined = this.first ? 1 : undefined;
    while (this.running) {
      const completion = await this.link.next(this.over);
      if (completion === undefined) break;
      this.take(completion);
      idle |= completion.context === 'receive' ? 2 : 1;
      if (idle !== 3) continue;
      if (expected !== undefined && shared.bytes.some((byte) => byte !== expected))
        throw new Error(`Message ${this.received} is not what was sent before.`);
      expected = (this.received & 0x7f) + 1;
      own.bytes.fill(expected);
      post();
      idle = 0;
    }
  }

  /** Sends writes back and forth. The waiting side polls the first and the last byte. */
  async watch(): Promise<void> {
    const { qp, queue, shared } = this.link;
    const { bytes } = shared;
    const [own, theirs] = this.first ? [Watched.client, Watched.server] : [Watched.server, Watched.client];
    const batch: WvCompletion[] = [];
    const last = bytes.length - 1;
    let send = this.first;
    while (this.running) {
      if (send) {
        qp.write('write', shared.sge(), SIGNALED, this.remote, 0);
        this.sent += 1;
      }
      while (this.running && (bytes[0] !== theirs || bytes[last] !== theirs)) {
        // Polling processes packets.
        const count = queue.cq.poll(batch, 16);
        for (const { status } of batch.slice(0, count))
          if (status !== WcStatus.SUCCESS) throw new Error(`The write failed: ${wcName(status)}.`);
        await setImmediate();
      }
      if (!this.running) break;
      this.received += 1;
      bytes[0] = own;
      bytes[last] = own;
      send = true;
    }
  }

  wait(): Promise<undefined> {
    return this.over;
  }

  /** Posts receives for messages that still arrive while it waits for something else. */
  async meanwhile<T>(other: Promise<T>): Promise<T> {
    const over = other.then(
      () => undefined,
      () => undefined,
    );
    for (;;) {
      const completion = await this.link.next(over);
      if (completion === undefined) return other;
      if (completion.context === 'receive') this.link.expect(1);
    }
  }
}

const word = (memory: Memory) => new DataView(memory.bytes.buffer).getBigUint64(0, true);

/** Every atomic must find the previous one's value, and the first one must find zero. */
function atomics({ qp, own }: Link, test: Test, kind: 'swap' | 'add', remote: RemoteMemory): Promise<void> {
  const [sge] = own.sge(0, WORD);
  const post = (n: number) => {
    if (kind === 'add') qp.fetchAdd('fetch and add', sge, SIGNALED, 1n, remote, 0);
    else qp.compareExchange('compare and swap', sge, SIGNALED, BigInt(n), BigInt(n) + 1n, remote, 0);
  };
  return test.pump(1, post, (n) => {
    if (word(own) !== BigInt(n)) throw new Error(`Atomic ${n} found ${word(own)} instead of ${n}.`);
  });
}

/** The test itself. */
async function measure(link: Link, test: Test, name: TestName, first: boolean, remote: RemoteMemory) {
  const { qp, own, shared } = link;
  const { kind } = TESTS[name];
  const send = () => qp.send('send', own.sge(), SIGNALED);
  const write = () => qp.write('write', own.sge(), SIGNALED | WvSend.IMMEDIATE, remote, 0, 0);
  if (kind === 'both ways') return test.pump(DEPTH, send);
  if (kind === 'echo') return test.echo(send);
  if (kind === 'write echo') return test.echo(write);
  if (kind === 'watch') return test.watch();
  if (!first) return kind === 'send' || kind === 'write' ? test.receive() : test.wait();
  if (kind === 'send') return test.pump(DEPTH, send);
  if (kind === 'write') return test.pump(DEPTH, write);
  if (kind !== 'read') return atomics(link, test, kind, remote);
  // Data that is read must be known.
  qp.write('write', own.sge(), SIGNALED, remote, 0);
  await link.soon('a write');
  const depth = name.endsWith('_lat') ? 1 : DEPTH;
  return test.pump(depth, () => qp.read('read', shared.sge(), SIGNALED, remote, 0));
}

/** Checks the data after the test. */
async function inspect(link: Link, test: TestName, first: boolean, remote: RemoteMemory): Promise<void> {
  const { qp, own, shared } = link;
  const { kind } = TESTS[test];
  const oneWay = kind === 'send' || kind === 'write';
  if (first && oneWay) {
    qp.read('read', shared.sge(), SIGNALED, remote, 0);
    while ((await link.soon('a read')).context !== 'read');
  }
  if (first && (oneWay || kind === 'read') && Buffer.compare(shared.bytes, own.bytes) !== 0)
    throw new Error("The server's memory has other bytes than those that were sent to it.");
  if ((kind === 'both ways' || (oneWay && !first)) && shared.bytes.includes(UNTOUCHED))
    throw new Error('Nothing of what the peer has sent has arrived, or not the whole of it.');
  if (!first && test.startsWith('ver_') && word(shared) === 0n)
    throw new Error("The client's atomics have changed nothing.");
}

/** Prints a result line like qperf, computed from the data that has arrived on either side, otherwise from acknowledged data. */
function print({ test, bytes }: Request, own: Counted, theirs: Counted, seconds: number): void {
  const messages = own.received + theirs.received || own.sent;
  if (messages === 0) throw new Error('Nothing was transferred.');
  const result = test.endsWith('_lat')
    ? `latency ${((seconds / messages) * 1e6).toFixed(1)} us`
    : `${((messages * bytes) / seconds / 1e6).toFixed(2)} MB/s, ${(messages / seconds).toFixed(0)} messages/s`;
  console.log(`${test}: ${messages} of ${bytes} bytes, ${result}`);
}

/** Runs a side from the connection to the end of the test. */
async function perform(meeting: Meeting, link: Link, request: Request, first: boolean): Promise<Test> {
  link.prepare(request, first);
  const remote = new RemoteMemory(await meeting.exchange(link.node));
  await meeting.begin();
  const test = new Test(link, remote, first, request.seconds);
  await measure(link, test, request.test, first, remote);
  test.stop();
  await inspect(link, request.test, first, remote);
  return test;
}

async function client({ peer, local, port, test: name, size, time }: Options): Promise<void> {
  const request = { test: name!, bytes: size ?? TESTS[name!].bytes, seconds: time };
  const meeting = new Meeting(await dial(peer!, port));
  meeting.ask(request);
  const listener = socketAddress(peer!, await meeting.port());
  const from = local ?? (await addressTowards(listener));
  using side = Side.open(from);
  using link = new Link(side, request.bytes);
  const endpoint = await connect(side, link.qp, from, listener, param);
  const test = await perform(meeting, link, request, true);
  const theirs = await test.meanwhile(meeting.results());
  if (theirs.errors > 0) throw new Error(`The server reports ${theirs.errors} errors.`);
  print(request, test.counted, theirs, test.seconds);
  meeting.end();
  await endpoint.disconnect();
  meeting.close();
}

async function server({ local, port }: Options): Promise<void> {
  // The device is opened before a client can connect, because a client waits for five seconds, and opening may take longer on a busy
  // machine.
  const provider = openProvider();
  using listener = new Listener(provider, socketAddress(local ?? '0.0.0.0', 0));
  const meeting = new Meeting(await answer(port, () => console.log(`listening on TCP port ${port}`)));
  const request = await meeting.asked();
  meeting.tellPort(listener.address.port);
  const endpoint = await listener.next();
  using side = Side.of(provider, endpoint);
  using link = new Link(side, request.bytes);
  await endpoint.accept(link.qp, param);
  const test = await perform(meeting, link, request, false);
  const { seconds, counted } = test;
  console.log(`${request.test}: ${counted.sent} sent, ${counted.received} received`);
  await test.meanwhile(meeting.report(counted, request.bytes, seconds));
  await disconnected(endpoint);
  meeting.close();
  provider.release();
}

await run(
  new Command('qperf')
    .description('Either side of the RC tests of qperf, which has to be started with -cm 1')
    .option('-t, --test <name>', `one of ${TEST_NAMES.join(', ')} (client)`)
    .option('-a, --peer <ip>', 'connect to this server (without it: be the server)')
    .option('-I, --local <ip>', 'own address')
    .option('-p, --port <n>', `TCP port (default: ${DEFAULT_PORT})`)
    .option('-s, --size <bytes>', "bytes of a message (client; default: the test's own; atomics have 8)")
    .option('-T, --time <s>', 'seconds (client; default: 2)'),
  options,
  (values) => (values.peer === undefined ? server(values) : client(values)),
);
