/** Sides over WinVerbs: a device with a protection domain, connect endpoints, queue pairs. */
import {
  type IWVCompletionQueue,
  type IWVConnectEndpoint,
  type IWVConnectQueuePair,
  type IWVDatagramEndpoint,
  type IWVDevice,
  type IWVProtectionDomain,
  type IWVProvider,
  type KernelOptionsInput,
  openProvider,
  QpAttr,
  QpState,
  RemoteMemory,
  type SocketAddress,
  WcStatus,
  WvAccess,
  type WvCompletion,
  type WvConnectParam,
  type WvMemoryRegion,
  WvOpcode,
  type WvQpCreate,
  WvSend,
  type WvSge,
} from 'networkdirect/winverbs';
import {
  Host,
  type Listener,
  LOOPBACK,
  type Memory,
  memoryFor,
  type Piece,
  type Remote,
  Side,
  type SideOptions,
  socketAddress,
  type Which,
} from './connected-side.js';

/** Moves a new queue pair to INIT, where Receives can be posted. `accessFlags` are the rights of the peer. */
export function toInit(qp: IWVConnectQueuePair, accessFlags = 0): void {
  qp.modify(
    { qpState: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags },
    QpAttr.STATE | QpAttr.ACCESS_FLAGS | QpAttr.PORT_NUMBER | QpAttr.PKEY_INDEX,
  );
}

/** The {@link RemoteMemory} that the peer uses to access a region. */
export function remoteOf({ address, rkey }: WvMemoryRegion): RemoteMemory {
  return new RemoteMemory({ address: BigInt(address), rkey });
}

/** The name of a completion status in WV_WC_STATUS. */
export function wcName(status: number): string {
  return Object.entries(WcStatus).find(([, value]) => value === status)?.[0] ?? `status ${status}`;
}

/** A copy of a completion, because poll() reuses the objects of the array. */
export type Completion = Pick<
  WvCompletion,
  'context' | 'qpContext' | 'opcode' | 'status' | 'length' | 'flags' | 'immediateData' | 'sourceQpn'
>;

/** A completion queue with methods that wait for one completion at a time. */
export class Queue {
  readonly #batch: WvCompletion[] = [];
  readonly #waiting: Completion[] = [];

  constructor(readonly cq: IWVCompletionQueue) {}

  /** Waits for the next completion, whatever its status, without blocking the thread. */
  async any(): Promise<Completion> {
    for (;;) {
      const first = this.#waiting.shift();
      if (first !== undefined) return first;
      const count = this.cq.poll(this.#batch, 16);
      for (const completion of this.#batch.slice(0, count)) this.#waiting.push({ ...completion });
      if (count === 0) await this.cq.notify('any');
    }
  }

  /** Waits for the next completion. @throws Error if its request failed */
  async next(): Promise<Completion> {
    const completion = await this.any();
    if (completion.status === WcStatus.SUCCESS) return completion;
    throw new Error(`The request '${String(completion.context)}' failed: ${wcName(completion.status)}.`);
  }

  /** Waits for the next `count` completions, which must all be successful. */
  async take(count: number): Promise<Completion[]> {
    const taken: Completion[] = [];
    while (taken.length < count) taken.push(await this.next());
    return taken;
  }
}

/** Connects actively: sends the request, processes the reply, and accepts it. Resolves with the data of the reply. */
export async function connectEndpoint(
  endpoint: IWVConnectEndpoint,
  qp: IWVConnectQueuePair,
  peer: SocketAddress,
  param: WvConnectParam = {},
  from = peer.address,
): Promise<ReturnType<IWVConnectEndpoint['query']>> {
  endpoint.bindAddress(socketAddress(from));
  endpoint.resolveRoute(peer);
  await endpoint.connect(qp, peer, param);
  const reply = endpoint.query();
  await endpoint.accept(null, {});
  return reply;
}

/** A listener at an address; port 0 selects a free one. */
export class ListenerWv implements Listener, Disposable {
  readonly endpoint: IWVConnectEndpoint;

  constructor(
    readonly provider: IWVProvider,
    address: SocketAddress = socketAddress(LOOPBACK),
    backlog = 16,
  ) {
    this.endpoint = provider.createConnectEndpoint();
    try {
      this.endpoint.bindAddress(address);
      this.endpoint.listen(backlog);
    } catch (error) {
      this.endpoint.release();
      throw error;
    }
  }

  get address(): SocketAddress {
    return this.endpoint.query().localAddress;
  }

  request(side: Side) {
    return this.endpoint.getRequest((side as SideWv).ep);
  }

  /** Waits for the next request, to be accepted or rejected. */
  async next(): Promise<IWVConnectEndpoint> {
    const endpoint = this.provider.createConnectEndpoint();
    await this.endpoint.getRequest(endpoint);
    return endpoint;
  }

  release(): void {
    this.endpoint.release();
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

/** Registered memory. */
export class MemoryWv implements Memory {
  constructor(
    private readonly pd: IWVProtectionDomain,
    readonly bytes: Uint8Array,
    readonly region: WvMemoryRegion,
  ) {}

  /** Default: the whole memory. */
  sge(offset = 0, length = this.bytes.length - offset): readonly [WvSge] {
    return [{ region: this.region, offset, length }];
  }

  release(): void {
    this.pd.deregisterMemory(this.region);
  }
}

/** An opened device with a protection domain. */
export class HostWv extends Host<SideWv, ListenerWv, SideWvOptions> {
  readonly pd: IWVProtectionDomain;

  /** Takes ownership of a reference to `provider`. */
  constructor(
    readonly provider: IWVProvider,
    readonly device: IWVDevice,
    readonly address = LOOPBACK,
  ) {
    super();
    this.pd = device.allocateProtectionDomain();
  }

  /** Opens the device that has a local IP address. */
  static open(address = LOOPBACK, options?: KernelOptionsInput): HostWv {
    const provider = openProvider(options);
    return new HostWv(provider, provider.openDevice(provider.translateAddress(address).deviceGuid), address);
  }

  /** Opens the device on which a request arrived. */
  static of(provider: IWVProvider, endpoint: IWVConnectEndpoint | IWVDatagramEndpoint): HostWv {
    const { device, localAddress } = endpoint.query();
    provider.addRef();
    return new HostWv(provider, provider.openDevice(device.deviceGuid), localAddress.address);
  }

  /** Registers `bytes`, or that many zeros. */
  memory(bytes: number | Uint8Array, access: number): MemoryWv {
    const data = typeof bytes === 'number' ? memoryFor(bytes) : bytes;
    return new MemoryWv(this.pd, data, this.pd.registerMemory(data, access));
  }

  /** Creates a queue pair that accepts Receives; `cq` is used for everything. */
  queuePair(
    cq: IWVCompletionQueue,
    shape: Omit<WvQpCreate, 'sendCq' | 'receiveCq'>,
    access?: number,
  ): IWVConnectQueuePair {
    const qp = this.pd.createConnectQueuePair({ sendCq: cq, receiveCq: cq, ...shape });
    toInit(qp, access);
    return qp;
  }

  async register(bytes: Uint8Array): Promise<MemoryWv> {
    return this.memory(bytes, ALL_ACCESS);
  }

  newSide(options?: SideWvOptions): SideWv {
    return new SideWv(this.provider, { address: this.address, ...options });
  }

  queue(entries: number): Queue {
    return new Queue(this.device.createCompletionQueue(entries));
  }

  side({ receives = 32, requests = 32, sge = 2, oneQueue = false, bytes }: SideOptions = {}): SideWv {
    const shape = { receiveDepth: receives, sendDepth: requests, receiveSge: sge, sendSge: sge };
    return this.newSide({ ...shape, oneQueue, bytes });
  }

  listen(port = 0, backlog?: number, address = this.address): ListenerWv {
    return new ListenerWv(this.provider, socketAddress(address, port), backlog);
  }

  protected releaseParts(): void {
    this.pd.release();
    this.device.release();
    this.provider.release();
  }
}

/** All rights of a peer. */
export const ALL_ACCESS =
  WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE | WvAccess.REMOTE_ATOMIC | WvAccess.MW_BIND;

/** Options of a side and its queue pair, whose defaults are 16 requests with 4 entries in each direction and 128 inline bytes. */
export interface SideWvOptions extends Partial<Omit<WvQpCreate, 'sendCq' | 'receiveCq'>> {
  readonly bytes?: Uint8Array | undefined;
  /** Default: one completion queue, as is usual in WinVerbs programs. */
  readonly oneQueue?: boolean;
  readonly address?: string;
}

const kinds: Readonly<Record<number, 0 | 1 | 4 | 5>> = {
  [WvOpcode.SEND]: 1,
  [WvOpcode.RDMA_WRITE]: 5,
  [WvOpcode.RDMA_READ]: 4,
  [WvOpcode.RECEIVE]: 0,
};

export class SideWv extends Side {
  readonly host: HostWv;
  readonly device: IWVDevice;
  readonly pd: IWVProtectionDomain;
  readonly ep: IWVConnectEndpoint;
  /** The completion queue of Receives, or of everything. */
  readonly cq: IWVCompletionQueue;
  readonly outbound: IWVCompletionQueue;
  readonly qp: IWVConnectQueuePair;
  readonly memory: Buffer;
  readonly region: WvMemoryRegion;
  /** The side's memory as the peer addresses it. */
  readonly remote: RemoteMemory;
  private readonly taken: WvCompletion[] = [];

  constructor(
    provider: IWVProvider,
    { bytes = memoryFor(8192), oneQueue = true, address = LOOPBACK, ...change }: SideWvOptions = {},
  ) {
    super();
    const { deviceGuid } = provider.translateAddress(address);
    provider.addRef();
    this.host = new HostWv(provider, provider.openDevice(deviceGuid), address);
    this.device = this.host.device;
    this.pd = this.host.pd;
    this.cq = this.device.createCompletionQueue(64);
    this.outbound = oneQueue ? this.cq : this.device.createCompletionQueue(64);
    this.qp = this.pd.createConnectQueuePair({
      sendCq: this.outbound,
      receiveCq: this.cq,
      sendDepth: 16,
      sendSge: 4,
      receiveDepth: 16,
      receiveSge: 4,
      maxInlineSend: 128,
      ...change,
    });
    toInit(this.qp);
    this.memory = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    this.region = this.pd.registerMemory(this.memory, ALL_ACCESS);
    this.remote = remoteOf(this.region);
    this.ep = provider.createConnectEndpoint();
  }

  /** Creates a side that has its own queue pair and endpoint and shares everything else. */
  with(qp: IWVConnectQueuePair, ep: IWVConnectEndpoint): SideWv {
    return Object.assign(Object.create(SideWv.prototype) as SideWv, this, { qp, ep });
  }

  get inbound(): IWVCompletionQueue {
    return this.cq;
  }

  sge(offset: number, length: number): readonly [WvSge] {
    return [{ region: this.region, offset, length }];
  }

  connect(peer: SocketAddress, param: WvConnectParam = {}) {
    this.ep.bindAddress(socketAddress(this.host.address));
    this.ep.resolveRoute(peer);
    return this.ep.connect(this.qp, peer, param);
  }

  completeConnect() {
    return this.ep.accept(null, {});
  }

  accept(param: WvConnectParam = {}) {
    return this.ep.accept(this.qp, param);
  }

  notifyDisconnect() {
    return this.ep.notifyDisconnect();
  }

  disconnect() {
    return this.ep.disconnect();
  }

  get privateData(): Uint8Array {
    return this.ep.query().privateData;
  }

  get peerAddress(): SocketAddress {
    return this.ep.query().peerAddress!;
  }

  receive(context: unknown, list: readonly Piece[]): void {
    this.qp.postReceive(context, list as WvSge[]);
  }

  send(context: unknown, list: readonly Piece[]): void {
    this.qp.send(context, list as WvSge[], WvSend.SIGNALED);
  }

  write(context: unknown, list: readonly Piece[], remote: Remote, offset: number): void {
    this.qp.write(context, list as WvSge[], WvSend.SIGNALED, remote as RemoteMemory, offset);
  }

  read(context: unknown, list: readonly Piece[], remote: Remote, offset: number): void {
    this.qp.read(context, list as WvSge[], WvSend.SIGNALED, remote as RemoteMemory, offset);
  }

  open(memory: Memory) {
    const { address, rkey } = (memory as MemoryWv).region;
    return { address: BigInt(address), token: rkey };
  }

  remoteAt(address: bigint, _length: number, token: number): Remote {
    return new RemoteMemory({ address, rkey: token });
  }

  take(which: Which): boolean {
    if (this[which].poll(this.taken, 1) === 0) return false;
    const { context, opcode, status, length } = this.taken[0]!;
    const { done } = this;
    done.context = context;
    done.kind = kinds[opcode] ?? 0;
    done.status = status;
    done.bytes = length;
    return true;
  }

  notify(which: Which) {
    return this[which].notify('any');
  }

  statusName(status: number): string {
    return wcName(status);
  }

  release(memoryToo = false): void {
    this.ep.release();
    this.qp.release();
    if (memoryToo) this.pd.deregisterMemory(this.region);
    for (const queue of new Set([this.cq, this.outbound])) queue.release();
    this.host.release();
  }
}
