/** {@link Side} over ND SPI v1: adapters by address, endpoints of a connector, memory windows described to peers. */
import {
  type INDAdapter,
  type INDCompletionQueue,
  type INDConnector,
  type INDEndpoint,
  type INDMemoryWindow,
  type NdMemoryHandle,
  NdMwDescriptor,
  NdOpFlag,
  type NdResult,
  type NdSge,
  ndOpenV1Adapter,
  type SocketAddress,
  Status,
} from '../../nd/index.js';
import {
  Kind,
  Link,
  type LinkSize,
  type Memory,
  type Mode,
  memoryOf,
  type Remote,
  type Side,
} from './side.js';
import type { Tool } from './tool.js';

/** Opens the adapter of an address. */
export function open(address: SocketAddress): Side {
  const adapter = ndOpenV1Adapter(address);
  const info = adapter.query();
  return {
    address,
    limits: {
      queueDepth: info.maxOutboundRequests,
      receiveDepth: info.maxInboundRequests,
      completionDepth: info.maxCqEntries,
      sge: Math.min(info.maxOutboundSge, info.maxInboundSge),
      readSge: info.maxOutboundSge,
      inboundReads: info.maxInboundReadLimit,
      outboundReads: info.maxOutboundReadLimit,
      inOrder: undefined,
    },
    register: async (bytes) => memoryOf(bytes, await adapter.registerMemory(bytes)),
    link: (tool, mode, size) => new LinkV1(tool, mode, adapter, size),
    listen: (port) => {
      const listen = adapter.listen({ port });
      return {
        address: listen.address,
        request: (link) => listen.getConnectionRequest((link as LinkV1).connector),
        [Symbol.dispose]: () => void listen.release(),
      };
    },
    [Symbol.dispose]: () => void adapter.release(),
  };
}

function result(kind: number, tag = 0): NdResult {
  return { status: Status.PENDING, bytesTransferred: 0, context: { kind, tag } };
}

class LinkV1 extends Link {
  readonly connector: INDConnector;
  readonly #adapter: INDAdapter;
  readonly #queue: INDCompletionQueue;
  readonly #endpoint: INDEndpoint;
  #window: INDMemoryWindow | undefined;
  /** Results of requests that need not be told apart. */
  readonly #results = [Kind.RECEIVE, Kind.SEND, Kind.BIND, Kind.INVALIDATE, Kind.READ, Kind.WRITE].map(
    (kind) => result(kind),
  );
  readonly #receives: NdResult[] = [];
  readonly #taken: NdResult[] = [];

  constructor(tool: Tool, mode: Mode, adapter: INDAdapter, { receives, initiators, sge }: LinkSize) {
    super(tool, mode);
    this.#adapter = adapter;
    this.#queue = adapter.createCompletionQueue(receives + initiators);
    this.connector = adapter.createConnector();
    this.#endpoint = this.connector.createEndpoint({
      inboundCompletionQueue: this.#queue,
      outboundCompletionQueue: this.#queue,
      inboundEntries: receives,
      outboundEntries: initiators,
      inboundSge: sge,
      outboundSge: sge,
    });
  }

  connect(peer: SocketAddress) {
    return this.connector.connect(this.#endpoint, peer);
  }

  completeConnect() {
    return this.connector.completeConnect();
  }

  accept(privateData?: Uint8Array) {
    return this.connector.accept(this.#endpoint, privateData);
  }

  get privateData(): Uint8Array {
    return this.connector.getConnectionData().privateData;
  }

  get peerAddress(): SocketAddress {
    return this.connector.getPeerAddress();
  }

  notifyDisconnect() {
    return this.connector.notifyDisconnect();
  }

  disconnect() {
    return this.connector.disconnect();
  }

  receive(tag: number, list: NdSge[]): void {
    this.#receives[tag] ??= result(Kind.RECEIVE, tag);
    this.#endpoint.receive(this.#receives[tag], list);
  }

  send(list: NdSge[]): void {
    this.#endpoint.send(this.#results[Kind.SEND]!, list);
  }

  write(list: NdSge[], remote: Remote, offset: number): void {
    this.#endpoint.write(this.#results[Kind.WRITE]!, list, remote as NdMwDescriptor, offset);
  }

  read(list: NdSge[], remote: Remote, offset: number): void {
    this.#endpoint.read(this.#results[Kind.READ]!, list, remote as NdMwDescriptor, offset);
  }

  open({ region, bytes }: Memory) {
    this.#window = this.#adapter.createMemoryWindow();
    const { base, token } = this.#endpoint.bind(
      this.#results[Kind.BIND]!,
      region as NdMemoryHandle,
      this.#window,
      0,
      bytes.length,
      NdOpFlag.ALLOW_READ | NdOpFlag.ALLOW_WRITE | NdOpFlag.SILENT_SUCCESS,
    );
    return { address: base, token };
  }

  remote(address: bigint, length: number, token: number): Remote {
    return new NdMwDescriptor(address, BigInt(length), token);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.connector[Symbol.asyncDispose]();
    this.#window?.release();
    this.#endpoint.release();
    this.#queue.release();
  }

  protected take(): number | undefined {
    if (this.#queue.getResults(this.#taken, 1) === 0) return undefined;
    const { status, bytesTransferred, context } = this.#taken[0]!;
    const { kind, tag } = context as { kind: number; tag: number };
    const { done } = this;
    done.kind = kind;
    done.tag = tag;
    done.bytes = bytesTransferred;
    return status;
  }

  protected notify() {
    return this.#queue.notify('any');
  }
}
