import { takeOne } from '../../../nd/cli/sides/connected-side.js';
import { SideV1 } from '../../../nd/cli/sides/v1-side.js';
import {
  allocate,
  type INDMemoryWindow,
  type NdMemoryHandle,
  NdMwDescriptor,
  NdOpFlag,
  type NdResult,
  openNetworkDirect,
  Status,
  statusName,
} from '../../../nd/index.js';

/** Every size is transferred once as a Send, its echo, a Write and a Read, in an order that depends on the seed. */
export const TRAFFIC_SIZES: readonly number[] = [
  0, 1, 2, 3, 5, 63, 255, 1023, 1024, 1025, 4095, 4096, 4097, 9000, 65_535, 65_536, 100_001, 262_144,
];
/** Number of requests of the active side: a Write, a Send and a Read of each size. */
export const TRAFFIC_REQUESTS = 3 * TRAFFIC_SIZES.length;

/** Parameters of the traffic, which must be the same on both sides. */
export interface TrafficOptions {
  readonly seed: number;
  /** Default: {@link TRAFFIC_SIZES}. */
  readonly sizes?: readonly number[];
  /** Whether this side's memory comes from `allocate()`. */
  readonly allocated?: boolean;
}

/** The results of one side's requests as names of statuses, in the order of posting. */
export interface TrafficReport {
  readonly inbound: string[];
  readonly outbound: string[];
}

/** Bytes after each message in its Receive buffer that must remain unchanged. */
const ROOM = 16;
const UNTOUCHED = 0xee;
const ENTRIES = 128;

type Kind = 'send' | 'write' | 'read';

interface Piece {
  readonly size: number;
  readonly at: number;
}

/** The plan of transfers, which both sides derive from the seed. */
class Plan {
  readonly pieces: Record<Kind, Piece[]>;
  /** Size of one side's memory in bytes. */
  readonly bytes: number;

  readonly seed: number;
  readonly count: number;

  constructor({ seed, sizes = TRAFFIC_SIZES }: TrafficOptions) {
    this.seed = seed;
    this.count = sizes.length;
    const random = randomOf(seed);
    let at = 0;
    const lay = (): Piece[] =>
      shuffled(sizes, random).map((size) => {
        const piece = { size, at };
        at += size + ROOM;
        return piece;
      });
    this.pieces = { send: lay(), write: lay(), read: lay() };
    this.bytes = at;
  }

  /** Fills a buffer with bytes that differ between buffers, kinds and seeds, and from byte to byte. */
  fill(target: Uint8Array, kind: Kind, index: number): void {
    const { at, size } = this.pieces[kind][index]!;
    const random = randomOf(this.seed * 1009 + index * 31 + kind.length);
    for (let i = 0; i < size; i += 1) target[at + i] = random() >>> 24;
  }

  fillAll(target: Uint8Array, kind: Kind): void {
    for (let index = 0; index < this.count; index += 1) this.fill(target, kind, index);
  }

  /** Throws unless the message has arrived completely and the bytes after it are unchanged. */
  check(found: Uint8Array, kind: Kind, index: number): void {
    const { at, size } = this.pieces[kind][index]!;
    const expected = new Uint8Array(this.bytes);
    this.fill(expected, kind, index);
    expected.fill(UNTOUCHED, at + size, at + size + ROOM);
    for (let i = at; i < at + size + ROOM; i += 1) {
      if (found[i] === expected[i]) continue;
      throw new Error(
        `Byte ${i - at} of ${kind} ${index} (${size} bytes) must be ${expected[i]}; got ${found[i]}.`,
      );
    }
  }
}

/** One side of a connection that carries a plan's traffic. */
export class TrafficSide {
  readonly #plan: Plan;
  /** The peer's window, for the active side. */
  #remote: NdMwDescriptor | undefined;
  #window: INDMemoryWindow | undefined;
  /** The memory of the active side's Sends and Writes. */
  #source: NdMemoryHandle | undefined;

  private constructor(
    readonly side: SideV1,
    plan: Plan,
    private readonly allocated: boolean,
  ) {
    this.#plan = plan;
  }

  static async #create(address: string, options: TrafficOptions): Promise<TrafficSide> {
    const plan = new Plan(options);
    const provider = openNetworkDirect();
    const adapter = provider.openAdapter(address);
    const bytes = options.allocated === true ? allocate(plan.bytes) : new Uint8Array(plan.bytes);
    const side = new SideV1(adapter, { inboundEntries: ENTRIES, outboundEntries: ENTRIES, bytes });
    side.bytes.fill(UNTOUCHED);
    const traffic = new TrafficSide(side, plan, options.allocated === true);
    provider.release();
    return traffic;
  }

  /** Accepts a connection as the passive side. `listening` is called with the port. Resolves when the peer has the window's descriptor. */
  static async accept(
    address: string,
    options: TrafficOptions,
    listening: (port: number) => void,
  ): Promise<TrafficSide> {
    const traffic = await TrafficSide.#create(address, options);
    const { side } = traffic;
    traffic.#plan.fillAll(side.bytes, 'read');
    traffic.#postReceives();
    const listen = side.adapter.listen();
    listening(listen.port);
    await listen.getConnectionRequest(side.connector);
    await side.connector.accept(side.endpoint);
    listen.release();
    traffic.#window = side.adapter.createMemoryWindow();
    const rights = NdOpFlag.ALLOW_READ | NdOpFlag.ALLOW_WRITE | NdOpFlag.SILENT_SUCCESS;
    const descriptor = side.endpoint.bind(
      { status: Status.PENDING, bytesTransferred: 0, context: 'bind' },
      side.memory,
      traffic.#window,
      0,
      side.bytes.length,
      rights,
    );
    const memory = descriptor.encode();
    const result = { status: Status.PENDING, bytesTransferred: 0, context: 'descriptor' };
    side.endpoint.send(result, [{ memory, offset: 0, length: memory.length }]);
    const { status } = await takeOne(side.outbound);
    if (status !== Status.SUCCESS) throw new Error(`The descriptor's Send: ${statusName(status)}.`);
    return traffic;
  }

  /** Connects as the active side. Resolves when it has the descriptor of the peer's window. */
  static async connect(address: string, port: number, options: TrafficOptions): Promise<TrafficSide> {
    const traffic = await TrafficSide.#create(address, options);
    const { side } = traffic;
    const descriptor = new Uint8Array(NdMwDescriptor.size);
    const memory = await side.adapter.registerMemory(descriptor);
    const result = { status: Status.PENDING, bytesTransferred: 0, context: 'descriptor' };
    side.endpoint.receive(result, [{ memory, offset: 0, length: descriptor.length }]);
    await side.connector.connect(side.endpoint, { family: address.includes(':') ? 6 : 4, address, port });
    await side.connector.completeConnect();
    const { status } = await takeOne(side.inbound);
    if (status !== Status.SUCCESS) throw new Error(`The descriptor's Receive: ${statusName(status)}.`);
    traffic.#remote = NdMwDescriptor.decode(descriptor);
    return traffic;
  }

  /** Posts all requests in one turn and checks the contents and order of all received data. Resolves when all requests have completed. */
  run(): Promise<TrafficReport> {
    return this.#remote === undefined ? this.#serve() : this.#request(this.#remote);
  }

  async #request(remote: NdMwDescriptor): Promise<TrafficReport> {
    const { side } = this;
    const { pieces } = this.#plan;
    // Sends and Writes use a separate memory from received data.
    const source = this.allocated ? allocate(this.#plan.bytes) : new Uint8Array(this.#plan.bytes);
    this.#plan.fillAll(source, 'send');
    this.#plan.fillAll(source, 'write');
    const memory = await side.adapter.registerMemory(source);
    this.#source = memory;
    this.#postReceives();
    let posted = 0;
    for (let index = 0; index < this.#plan.count; index += 1) {
      const [send, write, read] = [pieces.send[index]!, pieces.write[index]!, pieces.read[index]!];
      const from = ({ at, size }: Piece) => [{ memory, offset: at, length: size }];
      side.endpoint.write(numbered(posted++), from(write), remote, write.at);
      side.endpoint.send(numbered(posted++), from(send));
      side.endpoint.read(numbered(posted++), side.sge(read.at, read.size), remote, read.at);
    }
    const echoes = this.#takeMessages(() => {});
    const outbound = await this.#take(side.outbound, posted, (result, n) => {
      if (n % 3 === 2) this.#plan.check(side.bytes, 'read', (n - 2) / 3);
      const size = pieces[(['write', 'send', 'read'] as const)[n % 3]!][Math.floor(n / 3)]!.size;
      if (result.bytesTransferred !== size)
        throw new Error(`Request ${n}: ${result.bytesTransferred} bytes.`);
    });
    return { inbound: await echoes, outbound };
  }

  /** For the active side, after run(): repeats a request of that size. Checks the data of a Read. */
  async again(kind: 'read' | 'write', size: number): Promise<void> {
    const { side } = this;
    const index = this.#plan.pieces[kind].findIndex((piece) => piece.size === size);
    const { at } = this.#plan.pieces[kind][index]!;
    const remote = this.#remote!;
    if (kind === 'read') {
      side.bytes.fill(UNTOUCHED, at, at + size);
      side.endpoint.read(numbered(0), side.sge(at, size), remote, at);
    } else {
      side.endpoint.write(numbered(0), [{ memory: this.#source!, offset: at, length: size }], remote, at);
    }
    const { status } = await takeOne(side.outbound);
    if (status !== Status.SUCCESS) throw new Error(`The ${kind} of ${size} bytes: ${statusName(status)}.`);
    if (kind === 'read') this.#plan.check(side.bytes, 'read', index);
  }

  /**
   * For the active side, after run(): posts Writes of every size with different bytes in one turn, then reads them back and compares them.
   */
  async stream(rounds: number): Promise<void> {
    const { side } = this;
    const pieces = this.#plan.pieces.write;
    const got = this.allocated ? allocate(this.#plan.bytes) : new Uint8Array(this.#plan.bytes);
    const sent = this.allocated ? allocate(this.#plan.bytes) : new Uint8Array(this.#plan.bytes);
    const [to, from] = [await side.adapter.registerMemory(got), await side.adapter.registerMemory(sent)];
    for (let round = 1; round <= rounds; round += 1) {
      const random = randomOf(this.#plan.seed + round);
      for (let i = 0; i < sent.length; i += 1) sent[i] = random() >>> 24;
      for (const [n, { at, size }] of pieces.entries()) {
        side.endpoint.write(numbered(n), [{ memory: from, offset: at, length: size }], this.#remote!, at);
      }
      for (const [n, { at, size }] of pieces.entries()) {
        const result = numbered(pieces.length + n);
        side.endpoint.read(result, [{ memory: to, offset: at, length: size }], this.#remote!, at);
      }
      await this.#take(side.outbound, 2 * pieces.length, ({ status }, n) => {
        const { at, size } = pieces[n % pieces.length]!;
        const same = Buffer.compare(got.subarray(at, at + size), sent.subarray(at, at + size)) === 0;
        if (status !== Status.SUCCESS || (n >= pieces.length && !same))
          throw new Error(`Request ${n} of round ${round}: ${statusName(status)}, ${size} bytes.`);
      });
    }
    await Promise.all([to, from].map((memory) => side.adapter.deregisterMemory(memory)));
  }

  async #serve(): Promise<TrafficReport> {
    const { side } = this;
    let echoes = 0;
    const inbound = await this.#takeMessages((index) => {
      // The Write was posted before the Send, so it has arrived.
      this.#plan.check(side.bytes, 'write', index);
      const { at, size } = this.#plan.pieces.send[index]!;
      side.endpoint.send(numbered(echoes++), side.sge(at, size));
    });
    const outbound = await this.#take(side.outbound, echoes, () => {});
    // Later data must not have changed earlier data.
    for (const [index, status] of inbound.entries()) {
      if (status !== statusName(Status.SUCCESS)) continue;
      this.#plan.check(side.bytes, 'send', index);
      this.#plan.check(side.bytes, 'write', index);
    }
    for (let index = 0; index < this.#plan.count; index += 1) this.#plan.check(side.bytes, 'read', index);
    return { inbound, outbound };
  }

  #postReceives(): void {
    for (const [index, { at, size }] of this.#plan.pieces.send.entries()) {
      this.side.endpoint.receive(numbered(index), this.side.sge(at, size + ROOM));
    }
  }

  #takeMessages(use: (index: number) => void): Promise<string[]> {
    const { side } = this;
    return this.#take(side.inbound, this.#plan.count, (result, index) => {
      const { size } = this.#plan.pieces.send[index]!;
      if (result.bytesTransferred !== size)
        throw new Error(`Message ${index} has ${result.bytesTransferred} bytes.`);
      this.#plan.check(side.bytes, 'send', index);
      use(index);
    });
  }

  /** Waits for results, which must arrive in posting order. `use` is called for successful ones. */
  async #take(
    queue: SideV1['inbound'],
    count: number,
    use: (result: NdResult, n: number) => void,
  ): Promise<string[]> {
    const statuses: string[] = [];
    for (let n = 0; n < count; n += 1) {
      const result = await takeOne(queue);
      if (result.context !== n) throw new Error(`Expected result ${n}; got ${String(result.context)}.`);
      if (result.status === Status.SUCCESS) use(result, n);
      statuses.push(statusName(result.status));
    }
    return statuses;
  }

  release(): void {
    this.#window?.release();
    this.side.release();
    this.side.adapter.release();
  }
}

const numbered = (n: number): NdResult => ({ status: Status.PENDING, bytesTransferred: 0, context: n });

/** Random unsigned 32-bit numbers (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

function shuffled<T>(values: readonly T[], random: () => number): T[] {
  const out = [...values];
  for (let i = out.length - 1; i > 0; i -= 1) {
    const other = random() % (i + 1);
    [out[i], out[other]] = [out[other]!, out[i]!];
  }
  return out;
}
