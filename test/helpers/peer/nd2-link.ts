import {
  type IND2Adapter,
  type IND2CompletionQueue,
  type IND2Connector,
  type IND2Listener,
  type IND2MemoryRegion,
  type IND2Provider,
  type IND2QueuePair,
  Nd2MrFlag,
  type Nd2Result,
  type Overlapped,
  openNetworkDirect2,
  Status,
  statusName,
} from '../../../nd/index.js';
import type { Link, LinkListener, LinkStack } from './link.js';
import { textOf } from './nd-link.js';
import { type Completions, LINK_DEPTH, MESSAGE_BYTES, type Told } from './protocol.js';

const SENDS_AT = LINK_DEPTH * MESSAGE_BYTES;

/** What a request is known by: its label, and where a Receive puts its message. */
type Context = [label: string, offset?: number];

/** A connection through ND v2. Queues are separate, so that the order of each is seen. */
export class Nd2Link implements Link {
  readonly receives: IND2CompletionQueue;
  readonly initiators: IND2CompletionQueue;
  readonly queuePair: IND2QueuePair;
  readonly connector: IND2Connector;
  readonly #bytes = Buffer.alloc(2 * SENDS_AT);
  readonly #region: IND2MemoryRegion;
  #received = 0;
  #sent = 0;
  readonly #results: Nd2Result[] = [];

  /** @param from - where it connects from */
  constructor(
    readonly adapter: IND2Adapter,
    readonly from?: string,
  ) {
    this.connector = adapter.createConnector();
    this.receives = adapter.createCompletionQueue(LINK_DEPTH);
    this.initiators = adapter.createCompletionQueue(LINK_DEPTH);
    this.queuePair = adapter.createQueuePair({
      receiveCompletionQueue: this.receives,
      initiatorCompletionQueue: this.initiators,
      context: this,
      receiveQueueDepth: LINK_DEPTH,
      initiatorQueueDepth: LINK_DEPTH,
    });
    this.#region = adapter.createMemoryRegion();
    // Blocks: registration needs no turn of the event loop.
    this.#region.register(this.#bytes, Nd2MrFlag.ALLOW_LOCAL_WRITE).getResult({ wait: true });
  }

  receive(count: number): void {
    for (let i = 0; i < count; i += 1) {
      const offset = (this.#received % LINK_DEPTH) * MESSAGE_BYTES;
      const context: Context = [`receive ${this.#received}`, offset];
      this.queuePair.receive(context, [{ memory: this.#region, offset, length: MESSAGE_BYTES }]);
      this.#received += 1;
    }
  }

  send(texts: readonly string[]): void {
    for (const text of texts) {
      const offset = SENDS_AT + (this.#sent % LINK_DEPTH) * MESSAGE_BYTES;
      const length = this.#bytes.write(text, offset);
      const context: Context = [`send ${this.#sent}`];
      this.queuePair.send(context, [{ memory: this.#region, offset, length }]);
      this.#sent += 1;
    }
  }

  poll(): Completions {
    return { sends: this.pollOne('sends'), receives: this.pollOne('receives') };
  }

  pollOne(which: keyof Completions): Told[] {
    const n = this.#queue(which).getResults(this.#results, LINK_DEPTH);
    return this.#results.slice(0, n).map((result) => this.#told(result));
  }

  notify(which: keyof Completions): Overlapped<void> {
    return this.#queue(which).notify('any');
  }

  notifyDisconnect(): Overlapped<void> {
    return this.connector.notifyDisconnect();
  }

  disconnect(): Overlapped<void> {
    return this.connector.disconnect();
  }

  async connect(to: string, port: number, data: string): Promise<string> {
    const family = to.includes(':') ? 6 : 4;
    if (this.from !== undefined) this.connector.bind(this.from);
    const privateData = Buffer.from(data);
    await this.connector.connect(this.queuePair, { family, address: to, port }, { privateData });
    const reply = textOf(this.connector.getPrivateData());
    await this.connector.completeConnect();
    return reply;
  }

  release(): void {
    for (const object of [this.connector, this.queuePair, this.receives, this.initiators, this.#region]) {
      object.release();
    }
  }

  #queue(which: keyof Completions): IND2CompletionQueue {
    return which === 'sends' ? this.initiators : this.receives;
  }

  #told({ status, bytesTransferred, requestContext, queuePairContext }: Nd2Result): Told {
    if (queuePairContext !== this) throw new Error('A result came with the context of another queue pair.');
    const [label, offset] = requestContext as Context;
    const told = { label, status: statusName(status) };
    if (offset === undefined || status !== Status.SUCCESS) return told;
    return { ...told, text: this.#bytes.toString('latin1', offset, offset + bytesTransferred) };
  }
}

class Nd2Listener implements LinkListener {
  constructor(
    readonly adapter: IND2Adapter,
    readonly listener: IND2Listener,
  ) {}

  get port(): number {
    return this.listener.getLocalAddress().port;
  }

  async accept(receives: number, data: string, use: (link: Link) => void): Promise<string> {
    const link = new Nd2Link(this.adapter);
    use(link);
    await this.listener.getConnectionRequest(link.connector);
    const said = textOf(link.connector.getPrivateData());
    link.receive(receives);
    await link.connector.accept(link.queuePair, { privateData: Buffer.from(data) });
    return said;
  }

  release(): void {
    this.listener.release();
  }
}

/** ND v2 with one provider and an adapter for each id. */
export class Nd2Stack implements LinkStack {
  #provider: IND2Provider | undefined;
  readonly #adapters = new Map<bigint, IND2Adapter>();

  adapter(address: string): IND2Adapter {
    this.#provider ??= openNetworkDirect2();
    const id = this.#provider.resolveAddress(address);
    let adapter = this.#adapters.get(id);
    if (adapter === undefined) {
      adapter = this.#provider.openAdapter(id);
      this.#adapters.set(id, adapter);
    }
    return adapter;
  }

  listen(address: string, port: number, backlog: number): LinkListener {
    const adapter = this.adapter(address);
    const listener = adapter.createListener();
    try {
      listener.bind({ family: address.includes(':') ? 6 : 4, address, port });
      listener.listen(backlog);
    } catch (error) {
      listener.release();
      throw error;
    }
    return new Nd2Listener(adapter, listener);
  }

  link(from: string): Nd2Link {
    return new Nd2Link(this.adapter(from), from);
  }

  release(): void {
    for (const adapter of this.#adapters.values()) adapter.release();
    this.#adapters.clear();
    this.#provider?.release();
    this.#provider = undefined;
  }
}
