import {
  type IND2Adapter,
  type IND2CompletionQueue,
  type IND2Connector,
  type IND2Listener,
  type IND2MemoryRegion,
  type IND2Provider,
  type IND2QueuePair,
  type Nd2ConnectOptions,
  Nd2MrFlag,
  type Nd2QueuePairOptions,
  Nd2RemoteMemory,
  type Nd2Result,
  openNetworkDirect2,
} from '../../nd/index.js';
import { ADDRESS } from './nd-pair.js';

/** Nothing in these tests takes that long unless something was lost. */
const PATIENCE_MS = 30_000;

export const ALL_RIGHTS =
  Nd2MrFlag.ALLOW_LOCAL_WRITE | Nd2MrFlag.ALLOW_REMOTE_READ | Nd2MrFlag.ALLOW_REMOTE_WRITE;

/** The next `count` results of a queue, waiting for its notifications. */
export async function take(queue: IND2CompletionQueue, count: number): Promise<Nd2Result[]> {
  const taken: Nd2Result[] = [];
  while (taken.length < count) {
    const results: Nd2Result[] = [];
    const found = queue.getResults(results, count - taken.length);
    taken.push(...results.slice(0, found));
    if (found === 0) await queue.notify('any').abortOn(AbortSignal.timeout(PATIENCE_MS));
  }
  return taken;
}

/** One side of a v2 connection in tests. */
export class Side {
  private constructor(
    readonly adapter: IND2Adapter,
    readonly receives: IND2CompletionQueue,
    readonly initiators: IND2CompletionQueue,
    readonly queuePair: IND2QueuePair,
    readonly connector: IND2Connector,
    readonly region: IND2MemoryRegion,
    readonly bytes: Uint8Array,
  ) {}

  static async create(
    adapter: IND2Adapter,
    options: Partial<Nd2QueuePairOptions> = {},
    flags = ALL_RIGHTS,
    memory = 1 << 16,
  ): Promise<Side> {
    const bytes = new Uint8Array(memory);
    const region = adapter.createMemoryRegion();
    await region.register(bytes, flags);
    const receives = adapter.createCompletionQueue(128);
    const initiators = adapter.createCompletionQueue(128);
    const queuePair = adapter.createQueuePair({
      receiveCompletionQueue: receives,
      initiatorCompletionQueue: initiators,
      receiveQueueDepth: 32,
      initiatorQueueDepth: 32,
      maxReceiveRequestSge: 2,
      maxInitiatorRequestSge: 2,
      inlineDataSize: 64,
      ...options,
    });
    return new Side(adapter, receives, initiators, queuePair, adapter.createConnector(), region, bytes);
  }

  /** `length` bytes of the side's memory. */
  sge(offset: number, length: number) {
    return [{ memory: this.region, offset, length }];
  }

  /** The side's memory, as a peer names it. */
  get remote(): Nd2RemoteMemory {
    return new Nd2RemoteMemory(this.region.address, this.region.getRemoteToken());
  }

  received(count = 1): Promise<Nd2Result[]> {
    return take(this.receives, count);
  }

  initiated(count = 1): Promise<Nd2Result[]> {
    return take(this.initiators, count);
  }

  release(): void {
    for (const object of [this.connector, this.queuePair, this.receives, this.initiators, this.region]) {
      object.release();
    }
  }
}

/** Provider, adapter and listener on this host. */
export class Host2 {
  readonly provider: IND2Provider = openNetworkDirect2();
  readonly adapter: IND2Adapter;
  readonly listener: IND2Listener;

  constructor() {
    this.adapter = this.provider.openAdapter(this.provider.resolveAddress(ADDRESS));
    this.listener = this.adapter.createListener();
    this.listener.bind(ADDRESS);
    this.listener.listen();
  }

  get address(): string {
    return `${ADDRESS}:${this.listener.getLocalAddress().port}`;
  }

  release(): void {
    this.listener.release();
    this.adapter.release();
    this.provider.release();
  }
}

/** Connects two sides in this process. */
export async function connectSides(
  host: Host2,
  active: Side,
  passive: Side,
  options: { connect?: Nd2ConnectOptions; accept?: Nd2ConnectOptions } = {},
): Promise<void> {
  const requested = host.listener.getConnectionRequest(passive.connector);
  active.connector.bind(ADDRESS);
  const connected = active.connector.connect(active.queuePair, host.address, options.connect);
  await requested;
  const accepted = passive.connector.accept(passive.queuePair, options.accept);
  await connected;
  await active.connector.completeConnect();
  await accepted;
}

/** Two connected sides in this process. */
export async function pair2(
  host: Host2,
  options: {
    active?: Partial<Nd2QueuePairOptions>;
    passive?: Partial<Nd2QueuePairOptions>;
    connect?: Nd2ConnectOptions;
    accept?: Nd2ConnectOptions;
  } = {},
): Promise<{ active: Side; passive: Side }> {
  const active = await Side.create(host.adapter, options.active);
  const passive = await Side.create(host.adapter, options.passive);
  await connectSides(host, active, passive, options);
  return { active, passive };
}
