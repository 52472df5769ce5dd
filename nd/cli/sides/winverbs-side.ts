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

/** Moves a fresh queue pair to INIT, where it takes Receives; `accessFlags`: what the peer may do. */
export function toInit(qp: IWVConnectQueuePair, accessFlags = 0): void {
  qp.modify(
    { qpState: QpState.INIT, pkeyIndex: 0, portNumber: 1, accessFlags },
    QpAttr.STATE | QpAttr.ACCESS_FLAGS | QpAttr.PORT_NUMBER | QpAttr.PKEY_INDEX,
  );
}

/** What a side of the peer's takes as {@link RemoteMemory}. */
export function remoteOf({ address, rkey }: WvMemoryRegion): RemoteMemory {
  return new RemoteMemory({ address: BigInt(address), rkey });
}

/** Name of a completion's status, as WV_WC_STATUS has it. */
export function wcName(status: number): string {
  return Object.entries(WcStatus).find(([, value]) => value === status)?.[0] ?? `status ${status}`;
}

/** A completion that is kept: the array that poll() fills is used again. */
export type Completion = Pick<
  WvCompletion,
  'context' | 'qpContext' | 'opcode' | 'status' | 'length' | 'flags' | 'immediateData' | 'sourceQpn'
>;

/** A completion queue to wait on, one completion at a time. */
export class Queue {
  readonly #batch: WvCompletion[] = [];
  readonly #waiting: Completion[] = [];

  constructor(readonly cq: IWVCompletionQueue) {}

  /** The next completion, whatever its status. The thread does other things, or sleeps, until there is one. */
  async any(): Promise<Completion> {
    for (;;) {
      const first = this.#waiting.shift();
      if (first !== undefined) return first;
      const count = this.cq.poll(this.#batch, 16);
      for (const completion of this.#batch.slice(0, count)) this.#waiting.push({ ...completion });
      if (count === 0) await this.cq.notify('any');
    }
  }

  /** The next completion. @throws Error if its request failed */
  async next(): Promise<Completion> {
    const completion = await this.any();
    if (completion.status === WcStatus.SUCCESS) return completion;
    throw new Error(`The request '${String(completion.context)}' failed: ${wcName(completion.status)}.`);
  }

  /** The next `count` completions, all successful. */
  async take(count: number): Promise<Completion[]> {
    const taken: Completion[] = [];
    while (taken.length < count) taken.push(await this.next());
    return taken;
  }
}

/** The active side's connection: asks, looks at the reply, and accepts it. Answers what the reply said. */
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

/** A listener at an address; port 0 asks for a free one. */
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

  /** The next request; accept or reject it. */
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

/** Registered bytes. */
export class MemoryWv implements Memory {
  constructor(
    private readonly pd: IWVProtectionDomain,
    readonly bytes: Uint8Array,
    readonly region: WvMemoryRegion,
  ) {}

  /** By default all of it. */
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

  /** Takes over a reference to `provider`. */
  constructor(
    readonly provider: IWVProvider,
    readonly device: IWVDevice,
    readonly address = LOOPBACK,
  ) {
    super();
    this.pd = device.allocateProtectionDomain();
  }

  /** The device that has an IP address of this host. */
  static open(address = LOOPBACK, options?: KernelOptionsInput): HostWv {
    const provider = openProvider(options);
    return new HostWv(provider, provider.openDevice(provider.translateAddress(address).deviceGuid), address);
  }

  /** The device that a request came in on. */
  static of(provider: IWVProvider, endpoint: IWVConnectEndpoint | IWVDatagramEndpoint): HostWv {
    const { device, localAddress } = endpoint.query();
    provider.addRef();
    return new HostWv(provider, provider.openDevice(device.deviceGuid), localAddress.address);
  }

  /** Memory with `bytes`, or so many zeros. */
  memory(bytes: number | Uint8Array, access: number): MemoryWv {
    const data = typeof bytes === 'number' ? memoryFor(bytes) : bytes;
    return new MemoryWv(this.pd, data, this.pd.registerMemory(data, access));
  }

  /** A queue pair that takes Receives; `cq` for everything. */
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

/** All that a peer may do. */
export const ALL_ACCESS =
  WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE | WvAccess.REMOTE_ATOMIC | WvAccess.MW_BIND;

/** Options of a side: those of its queue pair, whose defaults are 16 requests of 4 entries each way and 128 inline bytes. */
export interface SideWvOptions extends Partial<Omit<WvQpCreate, 'sendCq' | 'receiveCq'>> {
  readonly bytes?: Uint8Array | undefined;
  /** Default: one queue, as WinVerbs programs have it. */
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
  /** The side's memory, as a peer names it. */
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

  /** This side with another queue pair and endpoint; it shares all else. */
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
