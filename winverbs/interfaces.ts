/**
 * The WinVerbs interfaces as TypeScript contracts. Method semantics, sources and statuses are documented on the
 * classes that implement them, one file each.
 */
import type { Overlapped } from '../kernel-bridge/overlapped.js';

/** An IP address and port. `family` is 4 or 6; `address` is text, with `%scope` for IPv6 link-local ones. */
export interface SocketAddress {
  readonly family: 4 | 6;
  readonly address: string;
  readonly port: number;
}

export interface WvDeviceAddress {
  /** CA GUID. */
  readonly deviceGuid: bigint;
  readonly pkey: number;
  readonly portNumber: number;
}

/** Registered memory: keys and where it lies. Requests address it by offset. */
export interface WvMemoryRegion {
  readonly lkey: number;
  /** 0 when no remote right was asked for. */
  readonly rkey: number;
  /** Native start address, below 2^47. */
  readonly address: number;
  /** Bytes. */
  readonly length: number;
  /** The memory itself; INLINE requests are copied from it. */
  readonly bytes?: Uint8Array;
}

/** A piece of registered memory: `length` bytes at `offset` bytes into the region. */
export interface WvSge {
  region: Pick<WvMemoryRegion, 'lkey' | 'address' | 'bytes'>;
  offset: number;
  length: number;
}

/** Connection parameters. Depths are this side's view: reads it accepts and reads it issues. */
export interface WvConnectParam {
  /** At most 56 bytes. */
  privateData?: Uint8Array;
  responderResources?: number;
  initiatorDepth?: number;
  /** 0..7 */
  retryCount?: number;
  /** 0..7; 7 is for ever and only fit for QPs with an SRQ. */
  rnrRetryCount?: number;
}

export interface WvConnectAttributes {
  readonly localAddress: SocketAddress;
  readonly peerAddress: SocketAddress | undefined;
  readonly device: WvDeviceAddress;
  readonly privateData: Uint8Array;
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly backlog: number;
}

/** One entry of a completion queue, reused by {@link IWVCompletionQueue.poll}. */
export interface WvCompletion {
  /** The value given with the request. */
  context: unknown;
  /** The value given at queue pair creation. */
  qpContext: unknown;
  /** WV_OPCODE: Send 0, RdmaWrite 1, RdmaRead 2, CompareExchange 3, FetchAdd 4, BindWindow 5, Invalidate 6, Receive 128, ReceiveRdmaWrite 129. */
  opcode: number;
  /** WV_WC_STATUS, 0 is success. */
  status: number;
  /** Bytes. */
  length: number;
  /** WV_WC_*: 1 immediate, 2 invalidated, 4 GRH, 8 solicited. */
  flags: number;
  /** Immediate data or the invalidated rkey. */
  immediateData: number;
  sourceQpn: number;
  vendorCode: number;
}

export interface WvUnknown {
  addRef(): number;
  release(): number;
  [Symbol.dispose](): void;
}

export interface WvOverlappedObject extends WvUnknown {
  /** Completes every request of this object that still waits with CANCELLED before it returns. */
  cancelOverlappedRequests(): void;
}

export interface WvQpCreate {
  sendCq: IWVCompletionQueue;
  receiveCq: IWVCompletionQueue;
  context?: unknown;
  sendDepth: number;
  sendSge: number;
  receiveDepth: number;
  receiveSge: number;
  maxInlineSend?: number;
  initiatorDepth?: number;
  responderResources?: number;
  /** WV_QP_SIGNAL_SENDS. */
  signalSends?: boolean;
}

export interface IWVProvider extends WvUnknown {
  queryDeviceList(): bigint[];
  queryDevice(guid: bigint): WvDeviceAttributes;
  translateAddress(address: string | SocketAddress): WvDeviceAddress;
  openDevice(guid: bigint): IWVDevice;
  createConnectEndpoint(): IWVConnectEndpoint;
}

export interface WvDeviceAttributes {
  readonly fwVersion: bigint;
  readonly nodeGuid: bigint;
  readonly systemImageGuid: bigint;
  readonly vendorId: number;
  readonly vendorPartId: number;
  readonly hwVersion: number;
  readonly capabilityFlags: number;
  readonly atomicCapability: number;
  readonly pageSizeCapabilityFlags: number;
  readonly maxMrSize: bigint;
  readonly maxQp: number;
  readonly maxQpWr: number;
  readonly maxSge: number;
  readonly maxCq: number;
  readonly maxCqEntries: number;
  readonly maxMr: number;
  readonly maxPd: number;
  readonly maxQpResponderResources: number;
  readonly maxResponderResources: number;
  readonly maxQpInitiatorDepth: number;
  readonly maxInlineSend: number;
  readonly maxMw: number;
  readonly maxPkeys: number;
  readonly deviceType: number;
  readonly localAckDelay: number;
  readonly physPortCount: number;
}

export interface WvPortAttributes {
  readonly portCapabilityFlags: number;
  readonly state: number;
  readonly maxMtu: number;
  readonly activeMtu: number;
  readonly gidTableLength: number;
  readonly maxMessageSize: number;
  readonly pkeyTableLength: number;
  readonly transport: number;
  readonly physicalState: number;
  readonly badPkeyCounter: number;
  readonly qkeyViolationCounter: number;
}

export interface IWVDevice extends WvOverlappedObject {
  readonly guid: bigint;
  query(): WvDeviceAttributes;
  queryPort(port: number): WvPortAttributes;
  queryGid(port: number, index: number): Uint8Array;
  findGid(port: number, gid: Uint8Array): number;
  queryPkey(port: number, index: number): number;
  findPkey(port: number, pkey: number): number;
  createCompletionQueue(entries: number): IWVCompletionQueue;
  allocateProtectionDomain(): IWVProtectionDomain;
}

export interface IWVCompletionQueue extends WvOverlappedObject {
  /** Entries, at least as many as asked for. */
  readonly entries: number;
  resize(entries: number): void;
  /** Completions waiting now. */
  peek(): number;
  /** Fills `completions` from the start, at most `n`; returns how many. Objects already in the array are reused. */
  poll(completions: WvCompletion[], n?: number): number;
  /** Waits for the next completion ('any'), the next solicited one, or a CQ error. */
  notify(type: 'any' | 'solicited' | 'error'): Overlapped<void>;
}

export interface IWVProtectionDomain extends WvOverlappedObject {
  /**
   * Registers memory. `access` is an OR of WV_ACCESS_*. The buffer is pinned while registered.
   */
  registerMemory(buffer: ArrayBufferLike | ArrayBufferView, access: number): WvMemoryRegion;
  registerMemoryOverlapped(
    buffer: ArrayBufferLike | ArrayBufferView,
    access: number,
  ): Overlapped<WvMemoryRegion>;
  deregisterMemory(region: WvMemoryRegion): void;
  deregisterMemoryOverlapped(region: WvMemoryRegion): Overlapped<void>;
  allocateMemoryWindow(): IWVMemoryWindow;
  createConnectQueuePair(create: WvQpCreate): IWVConnectQueuePair;
}

export interface IWVMemoryWindow extends WvUnknown {
  /** The key of the latest bind. */
  readonly rkey: number;
}

export interface WvQpAttributes {
  readonly qpState: number;
  readonly qpn: number;
  readonly destinationQpn: number;
  readonly sendPsn: number;
  readonly receivePsn: number;
  readonly pathMtu: number;
  readonly sendDepth: number;
  readonly sendSge: number;
  readonly receiveDepth: number;
  readonly receiveSge: number;
  readonly maxInlineSend: number;
  readonly initiatorDepth: number;
  readonly responderResources: number;
  readonly accessFlags: number;
  readonly qkey: number;
  readonly pkeyIndex: number;
  readonly portNumber: number;
  readonly localAckTimeout: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly rnrNakTimeout: number;
  readonly sourceGid: Uint8Array;
  readonly destinationGid: Uint8Array;
}

/** Where a remote operation goes: made once from what the peer sent; requests add a byte offset. */
export interface WvRemoteMemory {
  readonly address: bigint;
  readonly rkey: number;
}

export interface IWVQueuePair extends WvOverlappedObject {
  readonly qpn: number;
  /** WV_QP_STATE as the HCA last published it; no IOCTL. */
  readonly state: number;
  readonly maxInlineSend: number;
  query(): WvQpAttributes;
  /** `options` WV_QP_ATTR_* names which attributes count. */
  modify(attributes: Partial<WvQpAttributes>, options: number): void;
  postReceive(context: unknown, sgl: readonly WvSge[]): void;
}

/**
 * Requests throw only when nothing was queued (NO_MORE_ENTRIES for a full queue, DATA_OVERRUN for too many
 * SGEs, BUFFER_OVERFLOW for too many inline bytes, INVALID_DEVICE_STATE before RTS, …); whatever happens to a queued request is told by its completion.
 * `flags` is an OR of WV_SEND_*: IMMEDIATE 1, FENCE 2, SIGNALED 4, SOLICITED 8, INLINE 0x10.
 */
export interface IWVConnectQueuePair extends IWVQueuePair {
  send(context: unknown, sgl: readonly WvSge[], flags: number, immediate?: number): void;
  sendAndInvalidate(context: unknown, sgl: readonly WvSge[], flags: number, rkey: number): void;
  read(context: unknown, sgl: readonly WvSge[], flags: number, remote: RemoteMemoryRef, offset: number): void;
  write(
    context: unknown,
    sgl: readonly WvSge[],
    flags: number,
    remote: RemoteMemoryRef,
    offset: number,
    immediate?: number,
  ): void;
  compareExchange(
    context: unknown,
    sge: WvSge,
    flags: number,
    compare: bigint,
    exchange: bigint,
    remote: RemoteMemoryRef,
    offset: number,
  ): void;
  fetchAdd(
    context: unknown,
    sge: WvSge,
    flags: number,
    value: bigint,
    remote: RemoteMemoryRef,
    offset: number,
  ): void;
  /** Binds `length` bytes at `offset` of the region; the window's new rkey is returned (and valid in order). */
  bindMemoryWindow(
    window: IWVMemoryWindow,
    context: unknown,
    region: WvMemoryRegion,
    offset: number,
    length: number,
    access: number,
    flags: number,
  ): number;
  invalidateMemoryWindow(window: IWVMemoryWindow, context: unknown, flags: number): void;
  /** Requests posted between the two are handed to the HCA together. */
  startBatch(): void;
  submitBatch(): void;
}

/** What requests take as remote memory: `RemoteMemory` of this package. */
export interface RemoteMemoryRef {
  readonly addressLow: number;
  readonly addressHigh: number;
  readonly rkey: number;
}

export interface IWVConnectEndpoint extends WvOverlappedObject {
  /** Resolves the route to a peer (IBAT) and sets it: AddressBound → RouteResolved. */
  resolveRoute(peer: SocketAddress): void;
  /** Port 0 asks for a free one; query() tells it. */
  bindAddress(address: SocketAddress): void;
  listen(backlog: number): void;
  reject(privateData?: Uint8Array): void;
  getRequest(endpoint: IWVConnectEndpoint): Overlapped<void>;
  connect(qp: IWVConnectQueuePair, peer: SocketAddress, param: WvConnectParam): Overlapped<void>;
  accept(qp: IWVConnectQueuePair | null, param: WvConnectParam): Overlapped<void>;
  disconnect(): Overlapped<void>;
  notifyDisconnect(): Overlapped<void>;
  query(): WvConnectAttributes;
}
