import {
  type INDAdapter,
  type INDCompletionQueue,
  type INDConnector,
  type INDEndpoint,
  type INDListen,
  type INDProvider,
  type NdMemoryHandle,
  type NdResult,
  type Overlapped,
  openNetworkDirect,
  Status,
  statusName,
} from '../../../nd/index.js';
import type { Link, LinkListener, LinkStack } from './link.js';
import { type Completions, LINK_DEPTH, MESSAGE_BYTES, type Told } from './protocol.js';

const SENDS_AT = LINK_DEPTH * MESSAGE_BYTES;

/** A connection through ND v1. Queues are separate, so that the order of each is seen. */
export class NdLink implements Link {
  readonly inbound: INDCompletionQueue;
  readonly outbound: INDCompletionQueue;
  readonly endpoint: INDEndpoint;
  readonly connector: INDConnector;
  readonly #bytes = Buffer.alloc(2 * SENDS_AT);
  #memory: NdMemoryHandle | undefined;
  #received = 0;
  #sent = 0;
  readonly #results: NdResult[] = [];

  constructor(readonly adapter: INDAdapter) {
    this.connector = adapter.createConnector();
    this.inbound = adapter.createCompletionQueue(LINK_DEPTH);
    this.outbound = adapter.createCompletionQueue(LINK_DEPTH);
    this.endpoint = this.connector.createEndpoint({
      inboundCompletionQueue: this.inbound,
      outboundCompletionQueue: this.outbound,
      inboundEntries: LINK_DEPTH,
      outboundEntries: LINK_DEPTH,
    });
  }

  /** Blocks: registration needs no turn of the event loop. */
  get memory(): NdMemoryHandle {
    this.#memory ??= this.adapter.registerMemory(this.#bytes).getResult({ wait: true });
    return this.#memory;
  }

  receive(count: number): void {
    for (let i = 0; i < count; i += 1) {
      const offset = (this.#received % LINK_DEPTH) * MESSAGE_BYTES;
      const result = {
        status: Status.PENDING,
        bytesTransferred: 0,
        context: [`receive ${this.#received}`, offset],
      };
      this.endpoint.receive(result, [{ memory: this.memory, offset, length: MESSAGE_BYTES }]);
      this.#received += 1;
    }
  }

  send(texts: readonly string[]): void {
    for (const text of texts) {
      const offset = SENDS_AT + (this.#sent % LINK_DEPTH) * MESSAGE_BYTES;
      const length = this.#bytes.write(text, offset);
      const result = { status: Status.PENDING, bytesTransferred: 0, context: [`send ${this.#sent}`] };
      this.endpoint.send(result, [{ memory: this.memory, offset, length }]);
      this.#sent += 1;
    }
  }

  poll(): Completions {
    return { sends: this.pollOne('sends'), receives: this.pollOne('receives') };
  }

  pollOne(which: keyof Completions): Told[] {
    const n = (which === 'sends' ? this.outbound : this.inbound).getResults(this.#results, LINK_DEPTH);
    return this.#results.slice(0, n).map((result) => this.#told(result));
  }

  notify(which: keyof Completions): Overlapped<void> {
    return (which === 'sends' ? this.outbound : this.inbound).notify('any');
  }

  notifyDisconnect(): Overlapped<void> {
    return this.connector.notifyDisconnect();
  }

  disconnect(): Overlapped<void> {
    return this.connector.disconnect();
  }

  async connect(to: string, port: number, data: string): Promise<string> {
    const family = to.includes(':') ? 6 : 4;
    await this.connector.connect(
      this.endpoint,
      { family, address: to, port },
      { privateData: Buffer.from(data) },
    );
    const reply = textOf(this.connector.getConnectionData().privateData);
    await this.connector.completeConnect();
    return reply;
  }

  release(): void {
    for (const object of [this.connector, this.endpoint, this.inbound, this.outbound]) object.release();
    if (this.#memory !== undefined) this.adapter.deregisterMemory(this.#memory).getResult({ wait: true });
  }

  #told({ status, bytesTransferred, context }: NdResult): Told {
    const [label, offset] = context as [string, number | undefined];
    const told = { label, status: statusName(status) };
    if (offset === undefined || status !== Status.SUCCESS) return told;
    return { ...told, text: this.#bytes.toString('latin1', offset, offset + bytesTransferred) };
  }
}

class NdListener implements LinkListener {
  constructor(
    readonly adapter: INDAdapter,
    readonly listener: INDListen,
  ) {}

  get port(): number {
    return this.listener.port;
  }

  async accept(receives: number, data: string, use: (link: Link) => void): Promise<string> {
    const link = new NdLink(this.adapter);
    use(link);
    await this.listener.getConnectionRequest(link.connector);
    const said = textOf(link.connector.getConnectionData().privateData);
    link.receive(receives);
    await link.connector.accept(link.endpoint, Buffer.from(data));
    return said;
  }

  release(): void {
    this.listener.release();
  }
}

/** ND v1 with one provider and an adapter for each address. */
export class NdStack implements LinkStack {
  #provider: INDProvider | undefined;
  readonly #adapters = new Map<string, INDAdapter>();

  adapter(address: string): INDAdapter {
    this.#provider ??= openNetworkDirect();
    let adapter = this.#adapters.get(address);
    if (adapter === undefined) {
      adapter = this.#provider.openAdapter(address);
      this.#adapters.set(address, adapter);
    }
    return adapter;
  }

  listen(address: string, port: number, backlog: number): LinkListener {
    const adapter = this.adapter(address);
    return new NdListener(adapter, adapter.listen({ port, backlog }));
  }

  link(from: string): NdLink {
    return new NdLink(this.adapter(from));
  }

  release(): void {
    for (const adapter of this.#adapters.values()) adapter.release();
    this.#adapters.clear();
    this.#provider?.release();
    this.#provider = undefined;
  }
}

/** Private data as text: the transport pads it with zeros. */
export function textOf(data: Uint8Array): string {
  const end = data.indexOf(0);
  return Buffer.from(end < 0 ? data : data.subarray(0, end)).toString('latin1');
}
