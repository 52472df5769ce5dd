import {
  allocate,
  type INDAdapter,
  type INDCompletionQueue,
  type INDConnector,
  type INDEndpoint,
  type INDListen,
  type INDProvider,
  type NdConnectionData,
  type NdEndpointOptions,
  type NdMemoryHandle,
  type NdResult,
  openNetworkDirect,
  Status,
} from '../../nd/index.js';

/** Where the tests connect: every host has it. */
export const ADDRESS = '127.0.0.1';
/** Bytes of each side's registered memory. */
export const MEMORY = 1 << 20;
/** Nothing in these tests takes that long unless something was lost. */
const PATIENCE_MS = 30_000;

/** One side of a connection in tests. */
export class TestSide {
  readonly inbound: INDCompletionQueue;
  readonly outbound: INDCompletionQueue;
  readonly endpoint: INDEndpoint;

  private constructor(
    readonly adapter: INDAdapter,
    readonly connector: INDConnector,
    readonly memory: NdMemoryHandle,
    readonly bytes: Uint8Array,
    options: Partial<NdEndpointOptions>,
  ) {
    this.inbound = adapter.createCompletionQueue(128);
    this.outbound = adapter.createCompletionQueue(128);
    this.endpoint = connector.createEndpoint({
      inboundCompletionQueue: this.inbound,
      outboundCompletionQueue: this.outbound,
      inboundEntries: 32,
      outboundEntries: 32,
      inboundSge: 2,
      outboundSge: 2,
      ...options,
    });
  }

  static async create(
    adapter: INDAdapter,
    options: Partial<NdEndpointOptions> = {},
    memoryBytes = MEMORY,
    allocated = false,
  ): Promise<TestSide> {
    const bytes = allocated ? allocate(memoryBytes) : new Uint8Array(memoryBytes);
    const memory = await adapter.registerMemory(bytes);
    return new TestSide(adapter, adapter.createConnector(), memory, bytes, options);
  }

  sge(offset: number, length: number): [{ memory: NdMemoryHandle; offset: number; length: number }] {
    return [{ memory: this.memory, offset, length }];
  }

  receive(context: unknown, offset: number, length: number): void {
    this.endpoint.receive(newResult(context), this.sge(offset, length));
  }

  /** The next result, waiting for the queue's notification. */
  async next(queue: INDCompletionQueue): Promise<NdResult> {
    const results: NdResult[] = [];
    while (queue.getResults(results, 1) === 0) {
      await queue.notify('any').abortOn(AbortSignal.timeout(PATIENCE_MS));
    }
    return results[0]!;
  }

  /** The next `count` results of a queue. */
  async take(queue: INDCompletionQueue, count: number): Promise<NdResult[]> {
    const taken: NdResult[] = [];
    while (taken.length < count) taken.push(await this.next(queue));
    return taken;
  }

  release(): void {
    this.connector.release();
    this.endpoint.release();
    this.inbound.release();
    this.outbound.release();
  }
}

export function newResult(context?: unknown): NdResult {
  return { status: Status.PENDING, bytesTransferred: 0, context };
}

/** Provider, adapter and listener on this host. */
export class TestHost {
  readonly provider: INDProvider = openNetworkDirect();
  readonly adapter: INDAdapter = this.provider.openAdapter(ADDRESS);
  readonly listen: INDListen = this.adapter.listen();

  get address(): string {
    return `${ADDRESS}:${this.listen.port}`;
  }

  release(): void {
    this.listen.release();
    this.adapter.release();
    this.provider.release();
  }
}

/** Two sides in this process, connected to each other. */
export async function connectedPair(
  host: TestHost,
  options: { active?: Partial<NdEndpointOptions>; passive?: Partial<NdEndpointOptions> } = {},
): Promise<{ active: TestSide; passive: TestSide; offer: NdConnectionData; reply: NdConnectionData }> {
  const active = await TestSide.create(host.adapter, options.active);
  const passive = await TestSide.create(host.adapter, options.passive);
  const requested = host.listen.getConnectionRequest(passive.connector);
  const connected = active.connector.connect(active.endpoint, host.address, {
    privateData: new TextEncoder().encode('from the active side'),
  });
  await requested;
  const offer = passive.connector.getConnectionData();
  const accepted = passive.connector.accept(
    passive.endpoint,
    new TextEncoder().encode('from the passive side'),
  );
  await connected;
  const reply = active.connector.getConnectionData();
  await active.connector.completeConnect();
  await accepted;
  return { active, passive, offer, reply };
}

/** The status that a request is rejected with; SUCCESS if it is not. */
export async function outcome(request: PromiseLike<unknown>): Promise<number> {
  try {
    await request;
    return Status.SUCCESS;
  } catch (error) {
    return (error as { status: number }).status;
  }
}

/** Private data without its padding. */
export function textOf(data: Uint8Array): string {
  return new TextDecoder().decode(data).replace(/\0+$/, '');
}
