/** {@link Side} over ND SPI v2: adapters by id, queue pairs, memory regions, results with the type of the request. */
import {
  type IND2Adapter,
  type IND2CompletionQueue,
  type IND2Connector,
  type IND2MemoryRegion,
  type IND2MemoryWindow,
  type IND2QueuePair,
  Nd2AdapterFlag,
  Nd2MrFlag,
  Nd2OpFlag,
  Nd2RemoteMemory,
  type Nd2Result,
  type Nd2Sge,
  type NdSge,
  ndOpenAdapter,
  type SocketAddress,
} from '../../nd/index.js';
import { Link, type LinkSize, type Memory, type Mode, memoryOf, type Remote, type Side } from './side.js';
import type { Tool } from './tool.js';

/** Opens the adapter of an address. */
export function open(address: SocketAddress): Side {
  const adapter = ndOpenAdapter(address);
  const info = adapter.query();
  return {
    address,
    limits: {
      queueDepth: info.maxInitiatorQueueDepth,
      receiveDepth: info.maxReceiveQueueDepth,
      completionDepth: info.maxCompletionQueueDepth,
      sge: Math.min(info.maxInitiatorSge, info.maxReceiveSge),
      readSge: info.maxReadSge,
      inboundReads: info.maxInboundReadLimit,
      outboundReads: info.maxOutboundReadLimit,
      inOrder: (info.adapterFlags & Nd2AdapterFlag.IN_ORDER_DMA_SUPPORTED) !== 0,
    },
    register: async (bytes) => {
      const region = adapter.createMemoryRegion();
      await region.register(bytes, Nd2MrFlag.ALLOW_LOCAL_WRITE);
      return memoryOf(bytes, region);
    },
    link: (tool, mode, size) => new LinkV2(tool, mode, adapter, address, size, info.inlineRequestThreshold),
    listen: (port) => {
      const listener = adapter.createListener();
      listener.bind({ ...address, port });
      listener.listen();
      return {
        address: listener.getLocalAddress(),
        request: (link) => listener.getConnectionRequest((link as LinkV2).connector),
        [Symbol.dispose]: () => void listener.release(),
      };
    },
    [Symbol.dispose]: () => void adapter.release(),
  };
}

class LinkV2 extends Link {
  readonly connector: IND2Connector;
  readonly #adapter: IND2Adapter;
  readonly #address: SocketAddress;
  readonly #inline: number;
  readonly #queue: IND2CompletionQueue;
  readonly #queuePair: IND2QueuePair;
  #window: IND2MemoryWindow | undefined;
  readonly #taken: Nd2Result[] = [];

  constructor(
    tool: Tool,
    mode: Mode,
    adapter: IND2Adapter,
    address: SocketAddress,
    { receives, initiators, sge }: LinkSize,
    inline: number,
  ) {
    super(tool, mode);
    this.#adapter = adapter;
    this.#address = address;
    this.#inline = inline;
    this.#queue = adapter.createCompletionQueue(receives + initiators);
    this.connector = adapter.createConnector();
    this.#queuePair = adapter.createQueuePair({
      receiveCompletionQueue: this.#queue,
      initiatorCompletionQueue: this.#queue,
      receiveQueueDepth: receives,
      initiatorQueueDepth: initiators,
      maxReceiveRequestSge: sge,
      maxInitiatorRequestSge: sge,
      inlineDataSize: inline,
    });
  }

  connect(peer: SocketAddress) {
    this.connector.bind(this.#address);
    return this.connector.connect(this.#queuePair, peer);
  }

  completeConnect() {
    return this.connector.completeConnect();
  }

  accept(privateData?: Uint8Array) {
    return this.connector.accept(this.#queuePair, privateData === undefined ? {} : { privateData });
  }

  get privateData(): Uint8Array {
    return this.connector.getPrivateData();
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
    this.#queuePair.receive(tag, list as Nd2Sge[]);
  }

  send(list: NdSge[]): void {
    this.#queuePair.send(0, list as Nd2Sge[], this.#inlineFlag(list));
  }

  write(list: NdSge[], remote: Remote, offset: number): void {
    this.#queuePair.write(0, list as Nd2Sge[], remote as Nd2RemoteMemory, offset, this.#inlineFlag(list));
  }

  read(list: NdSge[], remote: Remote, offset: number): void {
    this.#queuePair.read(0, list as Nd2Sge[], remote as Nd2RemoteMemory, offset);
  }

  open({ region, bytes }: Memory) {
    this.#window = this.#adapter.createMemoryWindow();
    const memory = region as IND2MemoryRegion;
    const flags = Nd2OpFlag.ALLOW_READ | Nd2OpFlag.ALLOW_WRITE | Nd2OpFlag.SILENT_SUCCESS;
    this.#queuePair.bind(0, memory, this.#window, 0, bytes.length, flags);
    return { address: memory.address, token: this.#window.getRemoteToken() };
  }

  remote(address: bigint, _length: number, token: number): Remote {
    return new Nd2RemoteMemory(address, token);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.connector[Symbol.asyncDispose]();
    this.#window?.release();
    this.#queuePair.release();
    this.#queue.release();
  }

  protected take(): number | undefined {
    if (this.#queue.getResults(this.#taken, 1) === 0) return undefined;
    const { status, requestType, requestContext, bytesTransferred } = this.#taken[0]!;
    const { done } = this;
    done.kind = requestType;
    done.tag = requestContext as number;
    done.bytes = bytesTransferred;
    return status;
  }

  protected notify() {
    return this.#queue.notify('any');
  }

  #inlineFlag(list: NdSge[]): number {
    let bytes = 0;
    for (let i = 0; i < list.length; i += 1) bytes += list[i]!.length;
    return bytes < this.#inline ? Nd2OpFlag.INLINE : 0;
  }
}
