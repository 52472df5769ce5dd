import { QpType, WvOpcode } from '../kernel-bridge/ioctl/constants.js';
import { UvpBindRequest, type UvpSendRequest } from '../kernel-bridge/user-verbs.js';
import type {
  IWVConnectQueuePair,
  IWVMemoryWindow,
  RemoteMemoryRef,
  WvMemoryRegion,
  WvQpCreate,
  WvSge,
} from './interfaces.js';
import { WVMemoryWindow } from './memory-window.js';
import type { WVProtectionDomain } from './protection-domain.js';
import { type MadeQueuePair, WVQueuePair } from './queue-pair.js';
import { refusal, Status, WvError } from './status.js';

/** Default read depths of a queue pair; connecting reduces them to the limits of device and peer. */
const DEFAULT_READ_DEPTH = 16;
// A module's own constants are constants to V8; fields of another module's object are not.
const { SEND, RDMA_READ, RDMA_WRITE, COMPARE_EXCHANGE, FETCH_ADD } = WvOpcode;
/** Splits 64-bit operands without making new bigints. */
const wide = new BigUint64Array(1);
const halves = new Uint32Array(wide.buffer);

/** IWVConnectQueuePair: the two queues of a connection, reliable (RC) or not (UC). */
export class WVConnectQueuePair extends WVQueuePair implements IWVConnectQueuePair {
  private bindRequest: UvpBindRequest | undefined = undefined;
  private single: WvSge[] | undefined = undefined;

  private constructor(
    pd: WVProtectionDomain,
    made: MadeQueuePair,
    /** Defaults for connecting: the number of reads and atomics that it may have in flight, and that it accepts. */
    readonly initiatorDepth: number,
    readonly responderResources: number,
  ) {
    super(pd, made);
  }

  /** @internal */
  static create(pd: WVProtectionDomain, create: WvQpCreate): WVConnectQueuePair {
    const type = create.type ?? QpType.RC;
    if (type !== QpType.RC && type !== QpType.UC) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `The type is ${String(type)}; a connected queue pair is RC (${QpType.RC}) or UC (${QpType.UC}).`,
      );
    }
    // An unreliable connection has no reads.
    const depth = type === QpType.RC ? DEFAULT_READ_DEPTH : 0;
    const initiatorDepth = create.initiatorDepth ?? depth;
    const responderResources = create.responderResources ?? depth;
    const made = WVQueuePair.make(pd, type, create, { initiatorDepth, responderResources });
    return new WVConnectQueuePair(pd, made, initiatorDepth, responderResources);
  }

  /** Posts a message. `immediate` is sent with the flag IMMEDIATE. */
  send(context: unknown, sgl: readonly WvSge[], flags: number, immediate = 0): void {
    const request = this.prepare(SEND, context, sgl, flags);
    request.immediate = immediate;
    this.post(request);
  }

  /** Posts a message whose arrival invalidates the key `rkey` of a window or region of the peer. */
  sendAndInvalidate(context: unknown, sgl: readonly WvSge[], flags: number, rkey: number): void {
    const request = this.prepare(SEND, context, sgl, flags);
    request.immediate = rkey;
    request.invalidate = true;
    this.post(request);
  }

  /** Posts a read of remote memory into local memory. `offset` is in bytes from the remote address. */
  read(
    context: unknown,
    sgl: readonly WvSge[],
    flags: number,
    remote: RemoteMemoryRef,
    offset: number,
  ): void {
    const request = this.prepare(RDMA_READ, context, sgl, flags);
    this.setRemote(request, remote, offset);
    this.post(request);
  }

  /** Posts a write of local memory to remote memory. With the flag IMMEDIATE it takes a receive of the peer. */
  write(
    context: unknown,
    sgl: readonly WvSge[],
    flags: number,
    remote: RemoteMemoryRef,
    offset: number,
    immediate = 0,
  ): void {
    const request = this.prepare(RDMA_WRITE, context, sgl, flags);
    request.immediate = immediate;
    this.setRemote(request, remote, offset);
    this.post(request);
  }

  /** Posts an atomic exchange of 8 remote bytes, done if they equal `compare`; `sge` receives their previous value. */
  compareExchange(
    context: unknown,
    sge: WvSge,
    flags: number,
    compare: bigint,
    exchange: bigint,
    remote: RemoteMemoryRef,
    offset: number,
  ): void {
    const request = this.prepare(COMPARE_EXCHANGE, context, this.alone(sge), flags);
    this.setRemote(request, remote, offset);
    setWide('compare', compare);
    request.compareLow = halves[0]!;
    request.compareHigh = halves[1]!;
    setWide('exchange', exchange);
    request.swapLow = halves[0]!;
    request.swapHigh = halves[1]!;
    this.post(request);
  }

  /** Posts an atomic addition to 8 remote bytes; `sge` receives their previous value. */
  fetchAdd(
    context: unknown,
    sge: WvSge,
    flags: number,
    value: bigint,
    remote: RemoteMemoryRef,
    offset: number,
  ): void {
    const request = this.prepare(FETCH_ADD, context, this.alone(sge), flags);
    this.setRemote(request, remote, offset);
    setWide('value', value);
    request.compareLow = halves[0]!;
    request.compareHigh = halves[1]!;
    request.swapLow = 0;
    request.swapHigh = 0;
    this.post(request);
  }

  /**
   * Posts the binding of a window to `length` bytes at `offset` of a region that was registered with MW_BIND. Returns
   * the window's new key, which requests posted after this one may already send to the peer.
   *
   * @throws WvError NOT_SUPPORTED, and as all requests
   */
  bindMemoryWindow(
    window: IWVMemoryWindow,
    context: unknown,
    region: WvMemoryRegion,
    offset: number,
    length: number,
    access: number,
    flags: number,
  ): number {
    this.check();
    const mw = this.checkedWindow(window);
    if (this.verbs.bindMw === undefined) noWindows();
    this.bindRequest ??= new UvpBindRequest();
    const request = this.bindRequest;
    request.context = context;
    request.flags = flags;
    request.region = region;
    request.offset = offset;
    request.length = length;
    request.access = access;
    try {
      return this.verbs.bindMw(mw.handle, this.handle, request);
    } catch (error) {
      throw refusal(error, 'BindMemoryWindow');
    } finally {
      request.context = undefined;
    }
  }

  /** Posts the end of a window's binding. */
  invalidateMemoryWindow(window: IWVMemoryWindow, context: unknown, flags: number): void {
    this.check();
    const mw = this.checkedWindow(window);
    if (this.verbs.invalidateMw === undefined) noWindows();
    try {
      this.verbs.invalidateMw(mw.handle, this.handle, context, flags);
    } catch (error) {
      throw refusal(error, 'InvalidateMemoryWindow');
    }
  }

  /** Requests posted from now on wait for {@link submitBatch}, so that one doorbell serves them all. */
  startBatch(): void {
    this.check();
    this.verbs.startBatch?.(this.handle);
  }

  /** Submits the requests posted since {@link startBatch}. */
  submitBatch(): void {
    this.check();
    this.verbs.submitBatch?.(this.handle);
  }

  private alone(sge: WvSge): readonly WvSge[] {
    this.single ??= [];
    this.single[0] = sge;
    return this.single;
  }

  private setRemote(request: UvpSendRequest, remote: RemoteMemoryRef, offset: number): void {
    if (typeof remote?.addressLow !== 'number') {
      throw new WvError(
        Status.INVALID_PARAMETER,
        'The remote memory is missing; make one: new RemoteMemory().',
      );
    }
    request.remoteLow = remote.addressLow;
    request.remoteHigh = remote.addressHigh;
    request.rkey = remote.rkey;
    request.remoteOffset = offset;
  }

  private checkedWindow(window: IWVMemoryWindow): WVMemoryWindow {
    if (!(window instanceof WVMemoryWindow) || window.pd !== this.pd) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        'The memory window is not of the protection domain of this queue pair.',
      );
    }
    window.check();
    return window;
  }
}

function noWindows(): never {
  throw new WvError(Status.NOT_SUPPORTED, 'This device has no memory windows.');
}

function setWide(what: string, value: bigint): void {
  if (typeof value !== 'bigint' || value < 0n || value > 0xffff_ffff_ffff_ffffn) {
    throw new WvError(
      Status.INVALID_PARAMETER,
      `${what} is ${String(value)}; it takes a bigint from 0 to 2^64 - 1.`,
    );
  }
  wide[0] = value;
}
