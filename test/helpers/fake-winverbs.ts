/**
 * In-memory WinVerbs for tests of the layer above. It records calls, and completes requests when the test says so. It does not check
 * states, because the ND layer must not rely on that.
 */

import type {
  IWVCompletionQueue,
  IWVConnectEndpoint,
  IWVConnectQueuePair,
  IWVDevice,
  IWVMemoryWindow,
  IWVProtectionDomain,
  IWVProvider,
  RemoteMemoryRef,
  SocketAddress,
  WvCompletion,
  WvConnectAttributes,
  WvConnectParam,
  WvDeviceAddress,
  WvDeviceAttributes,
  WvMemoryRegion,
  WvPathRecord,
  WvPortAttributes,
  WvQpAttributes,
  WvQpCreate,
  WvSge,
  WvUnknown,
} from '../../winverbs/index.js';
import { Overlapped, QpState, Status, StatusError } from '../../winverbs/index.js';

const notUsed = (): never => {
  throw new Error('not used by ND');
};
const notSupported = (): never => {
  throw new StatusError(Status.NOT_SUPPORTED);
};

/** An overlapped request that the test completes. */
export class FakeRequest<T> {
  #outcome: { value: T } | { error: StatusError } | undefined;
  canceled = false;
  readonly overlapped: Overlapped<T>;

  constructor(readonly name: string) {
    this.overlapped = new Overlapped<T>({
      completed: () => this.#outcome !== undefined,
      take: () => {
        if ('error' in this.#outcome!) throw this.#outcome.error;
        return this.#outcome!.value;
      },
      wait: () => {
        if (this.#outcome === undefined) throw new Error(`The test never ends ${this.name}.`);
      },
      cancel: () => {
        this.canceled = true;
        this.fail(Status.CANCELED);
      },
    });
  }

  get pending(): boolean {
    return this.#outcome === undefined;
  }

  /** Completes the request without its delivery, as between two turns of the event loop. */
  succeed(value: T): void {
    this.#outcome ??= { value };
  }

  fail(status: number): void {
    this.#outcome ??= { error: new StatusError(status) };
  }

  /** Delivers the result from the event loop. */
  deliver(): void {
    this.overlapped.settle();
  }
}

abstract class FakeObject implements WvUnknown {
  references = 1;
  readonly requests: FakeRequest<unknown>[] = [];

  addRef(): number {
    this.references += 1;
    return this.references;
  }

  release(): number {
    this.references -= 1;
    return this.references;
  }

  queryInterface = notUsed;

  [Symbol.dispose](): void {
    this.release();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.release();
  }

  getOverlappedResult = notUsed;

  cancelOverlappedRequests(): void {
    for (const request of this.requests) if (request.pending) request.fail(Status.CANCELED);
  }

  /** The latest request with a name. */
  request(name: string): FakeRequest<unknown> {
    const found = this.requests.findLast((request) => request.name === name);
    if (found === undefined) throw new Error(`No ${name} was issued.`);
    return found;
  }

  protected issue<T>(name: string): Overlapped<T> {
    const request = new FakeRequest<T>(name);
    this.requests.push(request as FakeRequest<unknown>);
    return request.overlapped;
  }
}

const attributes = {
  fwVersion: 1n,
  nodeGuid: 7n,
  systemImageGuid: 7n,
  vendorId: 0x1234,
  vendorPartId: 0x56,
  hwVersion: 1,
  capabilityFlags: 0,
  atomicCapability: 2,
  pageSizeCapabilityFlags: 4096,
  maxMrSize: 1n << 20n,
  maxQp: 100,
  maxQpWr: 1000,
  maxSge: 4,
  maxCq: 100,
  maxCqEntries: 5000,
  maxMr: 100,
  maxPd: 10,
  maxQpResponderResources: 16,
  maxResponderResources: 160,
  maxQpInitiatorDepth: 8,
  maxInlineSend: 512,
  maxMw: 10,
  maxMulticast: 0,
  maxQpAttach: 0,
  maxMulticastQp: 0,
  maxFmr: 0,
  maxMapPerFmr: 0,
  maxSrq: 9,
  maxSrqWr: 64,
  maxSrqSge: 4,
  maxAh: 0,
  maxPkeys: 1,
  deviceType: 1,
  localAckDelay: 15,
  physPortCount: 1,
  maxReadSge: 3,
} satisfies WvDeviceAttributes;

const portAttributes: WvPortAttributes = {
  portCapabilityFlags: 0,
  state: 4,
  maxMtu: 4096,
  activeMtu: 1024,
  gidTableLength: 1,
  maxMessageSize: 0,
  pkeyTableLength: 1,
  transport: 2,
  physicalState: 5,
  badPkeyCounter: 0,
  qkeyViolationCounter: 0,
  lid: 0,
  smLid: 0,
  lmc: 0,
  smSl: 0,
  subnetTimeout: 0,
  maxVls: 1,
  initTypeReply: 0,
  activeWidth: 1,
  activeSpeed: 1,
  extActiveSpeed: 0,
  linkEncoding: 0,
};

export class FakeProvider extends FakeObject implements IWVProvider {
  maxAcceptData = 196;
  maxMessageSize = 2 ** 31;
  readonly devices: FakeDevice[] = [];
  readonly endpoints: FakeEndpoint[] = [];
  /** Statuses thrown by the next call with a name. */
  readonly failures = new Map<string, number>();

  constructor(readonly addresses: readonly string[] = ['10.0.0.1', 'fd00::1']) {
    super();
  }

  getFileHandle = notUsed;

  queryDeviceList(): bigint[] {
    return [7n];
  }

  queryDevice(): WvDeviceAttributes {
    return attributes;
  }

  notifyDeviceChange(): never {
    throw new StatusError(Status.NOT_SUPPORTED, 'the fake does not report changes');
  }

  translateAddress(address: string | SocketAddress): WvDeviceAddress {
    const text = typeof address === 'string' ? address : address.address;
    if (!this.addresses.includes(text)) throw new StatusError(Status.NOT_FOUND);
    return { deviceGuid: 7n, pkey: 0xffff, portNumber: 1 };
  }

  resolvePath = notUsed;

  openDevice(): FakeDevice {
    this.trip('openDevice');
    const device = new FakeDevice(this);
    this.devices.push(device);
    return device;
  }

  createConnectEndpoint(protocol = 6): FakeEndpoint {
    const endpoint = new FakeEndpoint(this, protocol);
    this.endpoints.push(endpoint);
    return endpoint;
  }

  createDatagramEndpoint = notUsed;

  trip(name: string): void {
    const status = this.failures.get(name);
    this.failures.delete(name);
    if (status !== undefined) throw new StatusError(status);
  }
}

export class FakeDevice extends FakeObject implements IWVDevice {
  readonly guid = 7n;
  readonly name = 'fake0';
  readonly queues: FakeCq[] = [];
  readonly pds: FakePd[] = [];

  constructor(readonly provider: FakeProvider) {
    super();
  }

  query(): WvDeviceAttributes {
    return attributes;
  }

  notify(): Overlapped<number> {
    throw new StatusError(Status.NOT_SUPPORTED);
  }

  queryPort(): WvPortAttributes {
    return { ...portAttributes, maxMessageSize: this.provider.maxMessageSize };
  }

  queryGid = notSupported;
  findGid = notSupported;

  queryPkey(): number {
    return 0xffff;
  }

  findPkey(): number {
    return 3;
  }

  createCompletionQueue(entries: number): FakeCq {
    const queue = new FakeCq(entries);
    this.queues.push(queue);
    return queue;
  }

  allocateProtectionDomain(): FakePd {
    this.provider.trip('allocateProtectionDomain');
    const pd = new FakePd(this.provider);
    this.pds.push(pd);
    return pd;
  }
}

export class FakeCq extends FakeObject implements IWVCompletionQueue {
  readonly waiting: WvCompletion[] = [];
  overrun = false;

  constructor(public entries: number) {
    super();
  }

  resize(entries: number): void {
    this.entries = entries;
  }

  peek(): number {
    return this.waiting.length;
  }

  poll(completions: WvCompletion[], n = completions.length): number {
    if (this.waiting.length === 0 && this.overrun) throw new StatusError(Status.BUFFER_OVERFLOW);
    const count = Math.min(n, this.waiting.length);
    for (let i = 0; i < count; i += 1) completions[i] = { ...this.waiting.shift()! };
    return count;
  }

  notify(type: 'any' | 'solicited' | 'errors'): Overlapped<void> {
    return this.issue(`notify ${type}`);
  }

  batchNotify(n: number): Overlapped<void> {
    return this.issue(`batchNotify ${n}`);
  }
}

export class FakePd extends FakeObject implements IWVProtectionDomain {
  readonly qps: FakeQp[] = [];
  readonly windows: FakeMw[] = [];
  accessOfLast = 0;

  constructor(readonly provider: FakeProvider) {
    super();
  }

  /** Regions that were registered by a blocking call. */
  readonly registered: WvMemoryRegion[] = [];

  /** The ND layer calls this to determine the size of memory. */
  registerMemory({ byteLength }: ArrayBufferLike | ArrayBufferView): WvMemoryRegion {
    this.provider.trip('registerMemory');
    const region = { lkey: 0x66, rkey: 0x66, address: 0x20000, length: byteLength } as WvMemoryRegion;
    this.registered.push(region);
    return region;
  }

  registerMemoryOverlapped(
    _buffer: ArrayBufferLike | ArrayBufferView,
    access: number,
  ): Overlapped<WvMemoryRegion> {
    this.accessOfLast = access;
    return this.issue('register');
  }

  /** Regions that were deregistered by a blocking call. */
  readonly deregistered: WvMemoryRegion[] = [];

  deregisterMemory(region: WvMemoryRegion): void {
    this.provider.trip('deregisterMemory');
    this.deregistered.push(region);
  }

  deregisterMemoryOverlapped = notUsed;
  createDatagramQueuePair = notUsed;
  createAddressHandle = notUsed;
  createSharedReceiveQueue = notSupported;

  allocateMemoryWindow(): FakeMw {
    const window = new FakeMw();
    this.windows.push(window);
    return window;
  }

  allocateFastRegion = notUsed;

  createConnectQueuePair(create: WvQpCreate): FakeQp {
    const qp = new FakeQp(create, this.provider);
    this.qps.push(qp);
    return qp;
  }
}

export class FakeMw extends FakeObject implements IWVMemoryWindow {
  rkey = 0x100;
}

export const noCompletion: WvCompletion = {
  context: undefined,
  qpContext: undefined,
  opcode: 0,
  status: 0,
  length: 0,
  flags: 0,
  immediateData: 0,
  sourceQpn: 0,
  vendorCode: 0,
  pkeyIndex: 0,
  sLid: 0,
  sl: 0,
  dLidPathBits: 0,
};

/** A posted request. */
export interface Posted {
  readonly name: string;
  readonly context: unknown;
  readonly sgl: readonly WvSge[];
  readonly flags: number;
  readonly detail: Readonly<Record<string, unknown>>;
  readonly queue: FakeCq;
}

export class FakeQp extends FakeObject implements IWVConnectQueuePair {
  readonly qpn = 9;
  state: number = QpState.RESET;
  readonly sendSge: number;
  readonly receiveSge: number;
  readonly maxInlineSend: number;
  readonly posted: Posted[] = [];
  readonly modified: { attributes: Partial<WvQpAttributes>; options: number }[] = [];
  batches: string[] = [];

  constructor(
    readonly create: WvQpCreate,
    readonly provider: FakeProvider,
  ) {
    super();
    // Less than requested, because the layer above must use the granted size.
    this.maxInlineSend = Math.min(create.maxInlineSend ?? 0, 64);
    // More than requested.
    this.sendSge = create.sendSge + 3;
    this.receiveSge = create.receiveSge + 1;
  }

  query = notSupported;

  modify(attributesToSet: Partial<WvQpAttributes>, options: number): void {
    this.provider.trip('modify');
    this.modified.push({ attributes: attributesToSet, options });
    if (attributesToSet.qpState !== undefined) this.state = attributesToSet.qpState;
  }

  modifyOverlapped = notUsed;
  postSend = notUsed;
  fastRegister = notUsed;
  invalidateRegion = notUsed;

  postReceive(context: unknown, sgl: readonly WvSge[]): void {
    this.#post('receive', context, sgl, 0, {}, this.create.receiveCq as FakeCq);
  }

  send(context: unknown, sgl: readonly WvSge[], flags: number): void {
    this.#start('send', context, sgl, flags, {});
  }

  sendAndInvalidate(context: unknown, sgl: readonly WvSge[], flags: number, rkey: number): void {
    this.#start('sendAndInvalidate', context, sgl, flags, { rkey });
  }

  read(
    context: unknown,
    sgl: readonly WvSge[],
    flags: number,
    remote: RemoteMemoryRef,
    offset: number,
  ): void {
    this.#start('read', context, sgl, flags, { remote, offset });
  }

  write(
    context: unknown,
    sgl: readonly WvSge[],
    flags: number,
    remote: RemoteMemoryRef,
    offset: number,
  ): void {
    this.#start('write', context, sgl, flags, { remote, offset });
  }

  compareExchange = notUsed;
  fetchAdd = notUsed;

  bindMemoryWindow(
    window: IWVMemoryWindow,
    context: unknown,
    region: WvMemoryRegion,
    offset: number,
    length: number,
    access: number,
    flags: number,
  ): number {
    this.#start('bind', context, [], flags, { window, region, offset, length, access });
    const mw = window as FakeMw;
    mw.rkey += 1;
    return mw.rkey;
  }

  invalidateMemoryWindow(window: IWVMemoryWindow, context: unknown, flags: number): void {
    this.#start('invalidate', context, [], flags, { window });
  }

  startBatch(): void {
    this.batches.push('start');
  }

  submitBatch(): void {
    this.batches.push('submit');
  }

  /** Adds the completion of a posted request to its queue. */
  complete(posted: Posted, completion: Partial<WvCompletion> = {}): void {
    posted.queue.waiting.push({
      ...noCompletion,
      context: posted.context,
      ...completion,
    });
  }

  #start(
    name: string,
    context: unknown,
    sgl: readonly WvSge[],
    flags: number,
    detail: Record<string, unknown>,
  ): void {
    if (this.state < QpState.RTS) throw new StatusError(Status.INVALID_DEVICE_STATE);
    this.#post(name, context, sgl, flags, detail, this.create.sendCq as FakeCq);
  }

  #post(
    name: string,
    context: unknown,
    sgl: readonly WvSge[],
    flags: number,
    detail: Record<string, unknown>,
    queue: FakeCq,
  ): void {
    this.provider.trip('post');
    // Copies the list, because the caller owns and reuses it.
    this.posted.push({ name, context, sgl: sgl.map((sge) => ({ ...sge })), flags, detail, queue });
  }
}

export class FakeEndpoint extends FakeObject implements IWVConnectEndpoint {
  readonly calls: { name: string; args: readonly unknown[] }[] = [];
  attributes: WvConnectAttributes = {
    localAddress: { family: 4, address: '10.0.0.1', port: 0 },
    peerAddress: undefined,
    device: { deviceGuid: 7n, pkey: 0xffff, portNumber: 1 },
    privateData: new Uint8Array(0),
    responderResources: 0,
    initiatorDepth: 0,
    retryCount: 7,
    rnrRetryCount: 6,
    backlog: 0,
  };

  constructor(
    readonly provider: FakeProvider,
    readonly protocol: number,
  ) {
    super();
  }

  /** Arguments of the latest call with a name. */
  argsOf(name: string): readonly unknown[] {
    const call = this.calls.findLast((entry) => entry.name === name);
    if (call === undefined) throw new Error(`${name} was not called.`);
    return call.args;
  }

  resolveRoute(peer: SocketAddress): void {
    this.#called('resolveRoute', peer);
  }

  modify(path: WvPathRecord): void {
    this.#called('modify', path);
  }

  bindAddress(address: SocketAddress, device?: WvDeviceAddress): SocketAddress {
    this.#called('bindAddress', address, ...(device === undefined ? [] : [device]));
    const port = address.port === 0 ? 50_000 + this.provider.endpoints.length : address.port;
    const localAddress = { ...address, port };
    this.attributes = { ...this.attributes, localAddress };
    return localAddress;
  }

  listen(backlog: number): void {
    this.#called('listen', backlog);
  }

  reject(privateData?: Uint8Array): void {
    this.#called('reject', privateData);
  }

  getRequest(endpoint: IWVConnectEndpoint): Overlapped<void> {
    this.#called('getRequest', endpoint);
    return this.issue('getRequest');
  }

  connect(qp: IWVConnectQueuePair, peer: SocketAddress, param: WvConnectParam): Overlapped<void> {
    this.#called('connect', qp, peer, param);
    return this.issue('connect');
  }

  accept(qp: IWVConnectQueuePair | null, param: WvConnectParam): Overlapped<void> {
    this.#called('accept', qp, param);
    return this.issue('accept');
  }

  disconnect(): Overlapped<void> {
    this.#called('disconnect');
    return this.issue('disconnect');
  }

  keepQueuePairOnDisconnect(keep: boolean): void {
    this.#called('keepQueuePairOnDisconnect', keep);
  }

  notifyDisconnect(): Overlapped<void> {
    this.#called('notifyDisconnect');
    return this.issue('notifyDisconnect');
  }

  query(): WvConnectAttributes {
    return this.attributes;
  }

  #called(name: string, ...args: readonly unknown[]): void {
    this.provider.trip(name);
    this.calls.push({ name, args });
  }
}
