/** Sides over ND SPI v1: adapters by address, endpoints of a connector, memory windows described to peers. */
import {
  type INDAdapter,
  type INDCompletionQueue,
  type INDConnector,
  type INDEndpoint,
  type INDListen,
  type INDMemoryWindow,
  type INDProvider,
  Nd2RequestType,
  type NdConnectOptions,
  type NdEndpointOptions,
  type NdMemoryHandle,
  NdMwDescriptor,
  NdOpFlag,
  type NdResult,
  type NdSge,
  type NetworkDirectOptions,
  openNetworkDirect,
  type SocketAddress,
  Status,
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
  type Which,
} from './connected-side.js';

/** Creates a result to post with a request. */
export function newResult(context?: unknown): NdResult {
  return { status: Status.PENDING, bytesTransferred: 0, context };
}

/** A reusable result that records the kind of its request. */
interface KnownResult extends NdResult {
  kind: Nd2RequestType;
}

/** Options of a side and its endpoint, whose defaults are 32 requests with 2 entries in each direction. */
export interface SideV1Options extends Partial<NdEndpointOptions> {
  readonly bytes?: Uint8Array | undefined;
  readonly oneQueue?: boolean;
}

/** Minimum entries of a completion queue. */
const LEAST_ENTRIES = 128;

export class SideV1 extends Side {
  readonly connector: INDConnector;
  readonly inbound: INDCompletionQueue;
  readonly outbound: INDCompletionQueue;
  readonly endpoint: INDEndpoint;
  #bytes: Uint8Array | undefined;
  #memory: NdMemoryHandle | undefined;
  #window: INDMemoryWindow | undefined;
  readonly #free: KnownResult[] = [];
  readonly #taken: NdResult[] = [];

  constructor(
    readonly adapter: INDAdapter,
    { bytes, oneQueue = false, ...options }: SideV1Options = {},
  ) {
    super();
    const { inboundEntries = 32, outboundEntries = 32 } = options;
    const entries = (count: number): number => Math.max(count, LEAST_ENTRIES);
    this.inbound = adapter.createCompletionQueue(entries(inboundEntries + (oneQueue ? outboundEntries : 0)));
    this.outbound = oneQueue ? this.inbound : adapter.createCompletionQueue(entries(outboundEntries));
    this.connector = adapter.createConnector();
    this.endpoint = this.connector.createEndpoint({
      inboundCompletionQueue: this.inbound,
      outboundCompletionQueue: this.outbound,
      inboundEntries,
      outboundEntries,
      inboundSge: 2,
      outboundSge: 2,
      ...options,
    });
    this.#bytes = bytes;
  }

  get bytes(): Uint8Array {
    this.#bytes ??= memoryFor(OWN_BYTES);
    return this.#bytes;
  }

  /** The first access blocks, so that registration does not require a turn of the event loop. */
  get memory(): NdMemoryHandle {
    this.#memory ??= this.adapter.registerMemory(this.bytes).getResult({ wait: true });
    return this.#memory;
  }

  sge(offset: number, length: number): NdSge[] {
    return [{ memory: this.memory, offset, length }];
  }

  connect(peer: SocketAddress, options?: NdConnectOptions) {
    return this.connector.connect(this.endpoint, peer, options);
  }

  completeConnect() {
    return this.connector.completeConnect();
  }

  accept(options: { privateData?: Uint8Array } = {}) {
    return this.connector.accept(this.endpoint, options.privateData);
  }

  notifyDisconnect() {
    return this.connector.notifyDisconnect();
  }

  disconnect() {
    return this.connector.disconnect();
  }

  get privateData(): Uint8Array {
    return this.connector.getConnectionData().privateData;
  }

  get peerAddress(): SocketAddress {
    return this.connector.getPeerAddress();
  }

  receive(context: unknown, list: readonly Piece[]): void {
    this.endpoint.receive(this.#result(Nd2RequestType.RECEIVE, context), list as NdSge[]);
  }

  send(context: unknown, list: readonly Piece[]): void {
    this.endpoint.send(this.#result(Nd2RequestType.SEND, context), list as NdSge[]);
  }

  write(context: unknown, list: readonly Piece[], remote: Remote, offset: number): void {
    const result = this.#result(Nd2RequestType.WRITE, context);
    this.endpoint.write(result, list as NdSge[], remote as NdMwDescriptor, offset);
  }

  read(context: unknown, list: readonly Piece[], remote: Remote, offset: number): void {
    const result = this.#result(Nd2RequestType.READ, context);
    this.endpoint.read(result, list as NdSge[], remote as NdMwDescriptor, offset);
  }

  open(memory: Memory) {
    this.#window = this.adapter.createMemoryWindow();
    const flags = NdOpFlag.ALLOW_READ | NdOpFlag.ALLOW_WRITE | NdOpFlag.SILENT_SUCCESS;
    const { handle, bytes } = memory as MemoryV1;
    const bound = this.endpoint.bind(newResult(), handle, this.#window, 0, bytes.length, flags);
    return { address: bound.base, token: bound.token };
  }

  remoteAt(address: bigint, length: number, token: number): Remote {
    return new NdMwDescriptor(address, BigInt(length), token);
  }

  take(which: Which): boolean {
    if (this[which].getResults(this.#taken, 1) === 0) return false;
    const result = this.#taken[0]! as KnownResult;
    const { done } = this;
    done.context = result.context;
    done.kind = result.kind;
    done.status = result.status;
    done.bytes = result.bytesTransferred;
    this.#free.push(result);
    return true;
  }

  notify(which: Which) {
    return this[which].notify('any');
  }

  statusName(status: number): string {
    return statusName(status);
  }

  release(memoryToo = false): void {
    this.connector.release();
    this.#window?.release();
    this.endpoint.release();
    this.inbound.release();
    if (this.outbound !== this.inbound) this.outbound.release();
    if (memoryToo && this.#memory !== undefined)
      this.adapter.deregisterMemory(this.#memory).getResult({ wait: true });
  }

  #result(kind: Nd2RequestType, context: unknown): NdResult {
    const result = this.#free.pop();
    if (result === undefined) return { ...newResult(context), kind } as KnownResult;
    result.kind = kind;
    result.context = context;
    return result;
  }
}

class MemoryV1 implements Memory {
  constructor(
    private readonly adapter: INDAdapter,
    readonly bytes: Uint8Array,
    readonly handle: NdMemoryHandle,
  ) {}

  sge(offset: number, length: number): NdSge[] {
    return [{ memory: this.handle, offset, length }];
  }

  release(): void {
    this.adapter.deregisterMemory(this.handle).getResult({ wait: true });
  }
}

class ListenerV1 implements Listener {
  constructor(readonly listener: INDListen) {}

  get address(): SocketAddress {
    return this.listener.address;
  }

  request(side: Side) {
    return this.listener.getConnectionRequest((side as SideV1).connector);
  }

  release(): void {
    this.listener.release();
  }
}

/** An adapter of SPI v1. */
export class HostV1 extends Host<SideV1, ListenerV1, SideV1Options> {
  readonly provider: INDProvider;
  readonly adapter: INDAdapter;

  constructor(address: string | SocketAddress = LOOPBACK, options?: NetworkDirectOptions) {
    super();
    this.provider = openNetworkDirect(options);
    this.adapter = this.provider.openAdapter(address);
  }

  get listener(): INDListen {
    return this.listening.listener;
  }

  newSide(options?: SideV1Options): SideV1 {
    return new SideV1(this.adapter, options);
  }

  side({ receives, requests, sge, ...options }: SideOptions = {}): SideV1 {
    return this.newSide({
      ...(receives === undefined ? {} : { inboundEntries: receives }),
      ...(requests === undefined ? {} : { outboundEntries: requests }),
      ...(sge === undefined ? {} : { inboundSge: sge, outboundSge: sge }),
      ...options,
    });
  }

  listen(port = 0, backlog?: number): ListenerV1 {
    return new ListenerV1(this.adapter.listen({ port, ...(backlog === undefined ? {} : { backlog }) }));
  }

  async register(bytes: Uint8Array): Promise<Memory> {
    return new MemoryV1(this.adapter, bytes, await this.adapter.registerMemory(bytes));
  }

  protected releaseParts(): void {
    this.adapter.release();
    this.provider.release();
  }
}
