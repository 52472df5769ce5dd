/** Sides over ND SPI v2: adapters by id, queue pairs, memory regions, results with the type of the request. */
import {
  type IND2Adapter,
  type IND2CompletionQueue,
  type IND2Connector,
  type IND2Listener,
  type IND2MemoryRegion,
  type IND2MemoryWindow,
  type IND2Provider,
  type IND2QueuePair,
  type Nd2ConnectOptions,
  Nd2MrFlag,
  Nd2OpFlag,
  type Nd2QueuePairOptions,
  Nd2RemoteMemory,
  type Nd2Result,
  type Nd2Sge,
  type NetworkDirectOptions,
  openNetworkDirect2,
  type SocketAddress,
  statusName,
} from 'networkdirect';
import {
  Host,
  type Listener,
  LOOPBACK,
  type Memory,
  memoryFor,
  OWN_BYTES,
  type Piece,
  type Remote,
  Side,
  type SideOptions,
  socketAddress,
  take,
  type Which,
} from './connected-side.js';

/** Rights of memory that is accessible to the peer. */
export const ALL_RIGHTS =
  Nd2MrFlag.ALLOW_LOCAL_WRITE | Nd2MrFlag.ALLOW_REMOTE_READ | Nd2MrFlag.ALLOW_REMOTE_WRITE;

/** Options of a side and its queue pair, whose defaults are 32 requests with 2 entries in each direction and 64 inline bytes. */
export interface SideV2Options extends Partial<Nd2QueuePairOptions> {
  readonly bytes?: Uint8Array | undefined;
  /** Default: all rights. */
  readonly rights?: number;
  readonly oneQueue?: boolean;
  /** The address to connect from. Default: the loopback address. */
  readonly address?: SocketAddress;
}

/** Minimum entries of a completion queue. */
const LEAST_ENTRIES = 128;

export class SideV2 extends Side {
  readonly connector: IND2Connector;
  readonly inbound: IND2CompletionQueue;
  readonly outbound: IND2CompletionQueue;
  readonly queuePair: IND2QueuePair;
  readonly #address: SocketAddress;
  readonly #inline: number;
  readonly #context: unknown;
  #bytes: Uint8Array | undefined;
  readonly #rights: number;
  #region: IND2MemoryRegion | undefined;
  #window: IND2MemoryWindow | undefined;
  readonly #taken: Nd2Result[] = [];

  constructor(
    readonly adapter: IND2Adapter,
    { bytes, rights = ALL_RIGHTS, oneQueue = false, address, ...options }: SideV2Options = {},
  ) {
    super();
    const { receiveQueueDepth = 32, initiatorQueueDepth = 32, inlineDataSize = 64 } = options;
    const entries = (count: number): number => Math.max(count, LEAST_ENTRIES);
    this.inbound = adapter.createCompletionQueue(
      entries(receiveQueueDepth + (oneQueue ? initiatorQueueDepth : 0)),
    );
    this.outbound = oneQueue ? this.inbound : adapter.createCompletionQueue(entries(initiatorQueueDepth));
    this.connector = adapter.createConnector();
    this.#context = 'context' in options ? options.context : this;
    this.queuePair = adapter.createQueuePair({
      receiveCompletionQueue: this.inbound,
      initiatorCompletionQueue: this.outbound,
      receiveQueueDepth,
      initiatorQueueDepth,
      maxReceiveRequestSge: 2,
      maxInitiatorRequestSge: 2,
      inlineDataSize,
      ...options,
      context: this.#context,
    });
    this.#address = address ?? socketAddress(LOOPBACK);
    this.#inline = inlineDataSize;
    this.#bytes = bytes;
    this.#rights = rights;
  }

  get bytes(): Uint8Array {
    this.#bytes ??= memoryFor(OWN_BYTES);
    return this.#bytes;
  }

  /** The first access blocks, so that registration does not require a turn of the event loop. */
  get region(): IND2MemoryRegion {
    if (this.#region === undefined) {
      this.#region = this.adapter.createMemoryRegion();
      this.#region.register(this.bytes, this.#rights).getResult({ wait: true });
    }
    return this.#region;
  }

  /** The side's memory as the peer addresses it. */
  get remote(): Nd2RemoteMemory {
    return new Nd2RemoteMemory(this.region.address, this.region.getRemoteToken());
  }

  sge(offset: number, length: number): Nd2Sge[] {
    return [{ memory: this.region, offset, length }];
  }

  /** Waits for the next completed Receives. */
  received(count = 1): Promise<Nd2Result[]> {
    return take(this.inbound, count);
  }

  /** Waits for the next completed requests of other kinds. */
  initiated(count = 1): Promise<Nd2Result[]> {
    return take(this.outbound, count);
  }

  connect(peer: SocketAddress, options?: Nd2ConnectOptions) {
    this.connector.bind(this.#address);
    return this.connector.connect(this.queuePair, peer, options);
  }

  completeConnect() {
    return this.connector.completeConnect();
  }

  accept(options?: Nd2ConnectOptions) {
    return this.connector.accept(this.queuePair, options);
  }

  notifyDisconnect() {
    return this.connector.notifyDisconnect();
  }

  disconnect() {
    return this.connector.disconnect();
  }

  get privateData(): Uint8Array {
    return this.connector.getPrivateData();
  }

  get peerAddress(): SocketAddress {
    return this.connector.getPeerAddress();
  }

  receive(context: unknown, list: readonly Piece[]): void {
    this.queuePair.receive(context, list as Nd2Sge[]);
  }

  send(context: unknown, list: readonly Piece[]): void {
    this.queuePair.send(context, list as Nd2Sge[], this.#inlineFlag(list));
  }

  write(context: unknown, list: readonly Piece[], remote: Remote, offset: number): void {
    const flags = this.#inlineFlag(list);
    this.queuePair.write(context, list as Nd2Sge[], remote as Nd2RemoteMemory, offset, flags);
  }

  read(context: unknown, list: readonly Piece[], remote: Remote, offset: number): void {
    this.queuePair.read(context, list as Nd2Sge[], remote as Nd2RemoteMemory, offset);
  }

  open(memory: Memory) {
    this.#window = this.adapter.createMemoryWindow();
    const { region, bytes } = memory as MemoryV2;
    const flags = Nd2OpFlag.ALLOW_READ | Nd2OpFlag.ALLOW_WRITE | Nd2OpFlag.SILENT_SUCCESS;
    this.queuePair.bind(undefined, region, this.#window, 0, bytes.length, flags);
    return { address: region.address, token: this.#window.getRemoteToken() };
  }

  remoteAt(address: bigint, _length: number, token: number): Remote {
    return new Nd2RemoteMemory(address, token);
  }

  take(which: Which): boolean {
    if (this[which].getResults(this.#taken, 1) === 0) return false;
    const { status, requestType, requestContext, bytesTransferred, queuePairContext } = this.#taken[0]!;
    if (queuePairContext !== this.#context)
      throw new Error('A result has the context of another queue pair.');
    const { done } = this;
    done.context = requestContext;
    done.kind = requestType;
    done.status = status;
    done.bytes = bytesTransferred;
    return true;
  }

  notify(which: Which) {
    return this[which].notify('any');
  }

  statusName(status: number): string {
    return statusName(status);
  }

  release(): void {
    this.connector.release();
    this.#window?.release();
    this.queuePair.release();
    this.inbound.release();
    if (this.outbound !== this.inbound) this.outbound.release();
    this.#region?.release();
  }

  #inlineFlag(list: readonly Piece[]): number {
    let bytes = 0;
    for (let i = 0; i < list.length; i += 1) bytes += list[i]!.length;
    return bytes < this.#inline ? Nd2OpFlag.INLINE : 0;
  }
}

class MemoryV2 implements Memory {
  constructor(
    readonly bytes: Uint8Array,
    readonly region: IND2MemoryRegion,
  ) {}

  sge(offset: number, length: number): Nd2Sge[] {
    return [{ memory: this.region, offset, length }];
  }

  release(): void {
    this.region.release();
  }
}

class ListenerV2 implements Listener {
  constructor(readonly listener: IND2Listener) {}

  get address(): SocketAddress {
    return this.listener.getLocalAddress();
  }

  request(side: Side) {
    return this.listener.getConnectionRequest((side as SideV2).connector);
  }

  release(): void {
    this.listener.release();
  }
}

/** An adapter of SPI v2, opened by address. */
export class HostV2 extends Host<SideV2, ListenerV2, SideV2Options> {
  readonly provider: IND2Provider;
  readonly adapter: IND2Adapter;
  readonly address: SocketAddress;

  constructor(address: string | SocketAddress = LOOPBACK, options?: NetworkDirectOptions) {
    super();
    this.provider = openNetworkDirect2(options);
    this.adapter = this.provider.openAdapter(address);
    this.address = typeof address === 'string' ? socketAddress(address) : { ...address, port: 0 };
  }

  get listener(): IND2Listener {
    return this.listening.listener;
  }

  newSide(options?: SideV2Options): SideV2 {
    return new SideV2(this.adapter, { address: this.address, ...options });
  }

  side({ receives, requests, sge, ...options }: SideOptions = {}): SideV2 {
    return this.newSide({
      ...(receives === undefined ? {} : { receiveQueueDepth: receives }),
      ...(requests === undefined ? {} : { initiatorQueueDepth: requests }),
      ...(sge === undefined ? {} : { maxReceiveRequestSge: sge, maxInitiatorRequestSge: sge }),
      inlineDataSize: this.adapter.query().inlineRequestThreshold,
      ...options,
    });
  }

  listen(port = 0, backlog?: number): ListenerV2 {
    const listener = this.adapter.createListener();
    try {
      listener.bind({ ...this.address, port });
      listener.listen(backlog);
    } catch (error) {
      listener.release();
      throw error;
    }
    return new ListenerV2(listener);
  }

  async register(bytes: Uint8Array): Promise<Memory> {
    const region = this.adapter.createMemoryRegion();
    try {
      await region.register(bytes, Nd2MrFlag.ALLOW_LOCAL_WRITE);
    } catch (error) {
      region.release();
      throw error;
    }
    return new MemoryV2(bytes, region);
  }

  protected releaseParts(): void {
    this.adapter.release();
    this.provider.release();
  }
}
