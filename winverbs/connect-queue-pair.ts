import { type UserVerbs, UvpBindRequest, type UvpSendRequest } from '../kernel-bridge/door/user-verbs.js';
import { QpType, WvAccess, WvOpcode } from '../kernel-bridge/ioctl/constants.js';
import { kindOf, shown, shownFlags } from '../kernel-bridge/ioctl/shown.js';
import { checkedSmall } from './checked-numbers.js';
import type { WVDevice } from './device.js';
import { noFastRegions, WVFastRegion } from './fast-region.js';
import type {
  IWVConnectQueuePair,
  IWVFastRegion,
  IWVMemoryWindow,
  RemoteMemoryRef,
  WvMemoryRegion,
  WvQpCreate,
  WvSendRequest,
  WvSge,
} from './interfaces.js';
import { WVMemoryWindow } from './memory-window.js';
import type { WVProtectionDomain } from './protection-domain.js';
import { type CreatedQueuePair, checkedRequest, checkWord, NO_SGES, WVQueuePair } from './queue-pair.js';
import { WvDirect, WvDirectResult } from './remote-memory.js';
import { checkedObject, guarded, Status, toWvError, WvError, wrongSge } from './status.js';

/** Default read depths of a queue pair; connecting reduces them to the limits of the device and the peer. */
const DEFAULT_READ_DEPTH = 16;
const WINDOW_RIGHTS =
  WvAccess.REMOTE_READ | WvAccess.REMOTE_WRITE | WvAccess.REMOTE_ATOMIC | WvAccess.ZERO_BASED;
// V8 treats a module's own constants as constants, but not the fields of another module's object.
const { SEND, RDMA_READ, RDMA_WRITE, COMPARE_EXCHANGE, FETCH_ADD, INVALIDATE, FAST_REGISTER } = WvOpcode;
const TWO_32 = 2 ** 32;
/** Splits 64-bit operands without allocating bigints. */
const wide = new BigUint64Array(1);
const halves = new Uint32Array(wide.buffer);

/** IWVConnectQueuePair: the two queues of a connection, reliable (RC) or not (UC). */
export class WVConnectQueuePair extends WVQueuePair implements IWVConnectQueuePair {
  readonly direct?: NonNullable<IWVConnectQueuePair['direct']>;
  readonly view?: NonNullable<IWVConnectQueuePair['view']>;
  private bindRequest: UvpBindRequest | undefined = undefined;
  private single: WvSge[] | undefined = undefined;

  private constructor(
    pd: WVProtectionDomain,
    created: CreatedQueuePair,
    /** Default for connecting: RDMA reads and atomics that this side may have outstanding. @category Queues */
    readonly initiatorDepth: number,
    /** Default for connecting: RDMA reads and atomics of the peer that this side serves at a time. @category Queues */
    readonly responderResources: number,
  ) {
    super(pd, created, 'IWVConnectQueuePair');
    const direct = pd.verbs.direct?.bind(pd.verbs);
    if (direct !== undefined) {
      this.direct = (operation, bytes, remote, offset) =>
        this.executed(direct, operation, bytes, remote, offset);
    }
    const view = pd.verbs.view?.bind(pd.verbs);
    if (view !== undefined) this.view = (remote, offset, length) => this.viewed(view, remote, offset, length);
  }

  /** @internal */
  static create(pd: WVProtectionDomain, create: WvQpCreate): WVConnectQueuePair {
    const type = create.type ?? QpType.RC;
    if (type !== QpType.RC && type !== QpType.UC) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`type\` must be RC (${QpType.RC}) or UC (${QpType.UC}); got ${shown(type)}.`,
      );
    }
    // UC has no RDMA reads.
    const depth = type === QpType.RC ? DEFAULT_READ_DEPTH : 0;
    const initiatorDepth = create.initiatorDepth ?? depth;
    const responderResources = create.responderResources ?? depth;
    const created = WVQueuePair.make(pd, type, create, { initiatorDepth, responderResources });
    return new WVConnectQueuePair(pd, created, initiatorDepth, responderResources);
  }

  /** Posts a message. `immediate` is sent with the flag IMMEDIATE. @category Post */
  send(context: unknown, sgl: readonly WvSge[], flags: number, immediate = 0): void {
    const request = this.prepare(SEND, context, sgl, flags);
    request.immediate = immediate;
    this.post(request);
  }

  /**
   * Posts a message whose arrival invalidates the peer's key `rkey`. The key must be that of a window bound to the
   * peer's end of the connection, or of a region that the peer has registered by {@link fastRegister} with remote
   * rights. The completion of the receive has the flag INVALIDATED and the key. Any other key ends the connection:
   * REMOTE_ACCESS_ERROR here, LOCAL_ACCESS_ERROR at the peer.
   * @category Post
   */
  sendAndInvalidate(context: unknown, sgl: readonly WvSge[], flags: number, rkey: number): void {
    const request = this.prepare(SEND, context, sgl, flags);
    request.immediate = rkey;
    request.invalidate = true;
    this.post(request);
  }

  /** Posts an RDMA Read into local memory. `offset` is in bytes from the remote address. @category Post */
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

  /** Posts an RDMA Write of local memory. With the flag IMMEDIATE it consumes a receive of the peer. @category Post */
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

  private executed(
    direct: NonNullable<UserVerbs['direct']>,
    operation: WvDirect,
    bytes: Uint8Array,
    remote: RemoteMemoryRef,
    offset: number,
  ): WvDirectResult {
    this.check();
    if (typeof remote?.addressHigh !== 'number') noRemote(remote);
    if (!(bytes instanceof Uint8Array))
      throw new WvError(Status.INVALID_PARAMETER, `\`bytes\` must be a Uint8Array; got ${kindOf(bytes)}.`);
    if (!Number.isSafeInteger(offset) || offset < 0)
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`offset\` must be a non-negative integer; got ${shown(offset)}.`,
      );
    if (
      typeof operation !== 'number' ||
      operation >>> 0 !== operation ||
      operation > WvDirect.COMPARE_EXCHANGE
    ) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`operation\` must be an integer from 0 to ${WvDirect.COMPARE_EXCHANGE}; got ${shown(operation)}.`,
      );
    }
    const low = remote.addressLow + (offset % TWO_32);
    const high = highOf(remote, offset, low);
    if (!(high < TWO_32)) return WvDirectResult.REFUSED;
    return direct(this.handle, operation, bytes, low >>> 0, high, remote.rkey);
  }

  private viewed(
    view: NonNullable<UserVerbs['view']>,
    remote: RemoteMemoryRef,
    offset: number,
    length: number,
  ): ReturnType<NonNullable<IWVConnectQueuePair['view']>> {
    this.check();
    if (typeof remote?.addressHigh !== 'number') noRemote(remote);
    const whole = Number.isSafeInteger(offset) && Number.isSafeInteger(length);
    if (!whole || offset < 0 || length < 1) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`offset\` and \`length\` must be integers, at least 0 and 1; got ${shown(offset)} and ${shown(length)}.`,
      );
    }
    const low = remote.addressLow + (offset % TWO_32);
    const high = highOf(remote, offset, low);
    if (!(high < TWO_32)) return WvDirectResult.REFUSED;
    return guarded('view', () => view(this.handle, low >>> 0, high, remote.rkey, length));
  }

  /**
   * Posts an atomic exchange of 8 remote bytes, executed if they equal `compare`; `sge` receives their previous value.
   * @category Atomics
   */
  compareExchange(
    context: unknown,
    sge: WvSge,
    flags: number,
    compare: bigint,
    exchange: bigint,
    remote: RemoteMemoryRef,
    offset: number,
  ): void {
    const request = this.prepare(COMPARE_EXCHANGE, context, this.alone('sge', sge), flags);
    this.setRemote(request, remote, offset);
    setWide('compare', compare);
    request.compareLow = halves[0]!;
    request.compareHigh = halves[1]!;
    setWide('exchange', exchange);
    request.swapLow = halves[0]!;
    request.swapHigh = halves[1]!;
    this.post(request);
  }

  /** Posts an atomic addition to 8 remote bytes; `sge` receives their previous value. @category Atomics */
  fetchAdd(
    context: unknown,
    sge: WvSge,
    flags: number,
    value: bigint,
    remote: RemoteMemoryRef,
    offset: number,
  ): void {
    const request = this.prepare(FETCH_ADD, context, this.alone('sge', sge), flags);
    this.setRemote(request, remote, offset);
    setWide('value', value);
    request.compareLow = halves[0]!;
    request.compareHigh = halves[1]!;
    request.swapLow = 0;
    request.swapHigh = 0;
    this.post(request);
  }

  /**
   * Posts a request that binds a window to `length` bytes at `offset` of a region that was registered with MW_BIND.
   * Returns the window's new key, which requests posted after this one may already send to the peer.
   *
   * @throws WvError NOT_SUPPORTED, and as for all requests
   * @category Post
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
    if (this.verbs.bindMw === undefined) noWindows(this.pd.device);
    checkBind(region, offset, length, access);
    checkWord('flags', flags);
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
      // Only the region can be an object of another kind.
      throw error instanceof TypeError ? wrongRegion(region, error) : toWvError(error, 'BindMemoryWindow');
    } finally {
      request.context = undefined;
    }
  }

  /** Posts a request that invalidates a window's binding. @category Post */
  invalidateMemoryWindow(window: IWVMemoryWindow, context: unknown, flags: number): void {
    this.check();
    const mw = this.checkedWindow(window);
    if (this.verbs.invalidateMw === undefined) noWindows(this.pd.device);
    checkWord('flags', flags);
    try {
      this.verbs.invalidateMw(mw.handle, this.handle, context, flags);
    } catch (error) {
      throw toWvError(error, 'InvalidateMemoryWindow');
    }
  }

  /**
   * Posts a request that registers `memory`, a part of a region registered in this protection domain, as `region`. The
   * queue pair must have been created with `memoryManagement`. `access` is an OR of WV_ACCESS_*; the rights of the
   * memory's own registration do not limit it. Returns the region's new key, which requests posted after this one may
   * already use or send to the peer. The request completes with MW_BIND_ERROR, which ends the connection, if the region
   * is already registered, or if the memory is not registered, exceeds `maxLength` or ends outside its own region. When
   * the memory itself is deregistered, `region` no longer gives access to it either.
   *
   * @throws WvError NOT_SUPPORTED, INVALID_PARAMETER, and as for all requests
   * @category Post
   */
  fastRegister(
    region: IWVFastRegion,
    context: unknown,
    memory: WvSge,
    access: number,
    flags: number,
    keyByte?: number,
  ): number {
    this.postRegistration(region, context, this.alone('memory', memory), access, flags, keyByte);
    return region.rkey;
  }

  /**
   * Posts a request that invalidates a fast registration. The request is executed when all requests before it have
   * completed. Once it has completed, the region's key gives no access. It completes with MW_BIND_ERROR, which ends the
   * connection, if the region is not registered or windows are bound to it.
   *
   * @throws WvError NOT_SUPPORTED, INVALID_PARAMETER, and as for all requests
   * @category Post
   */
  invalidateRegion(region: IWVFastRegion, context: unknown, flags: number): void {
    this.postInvalidation(region, context, flags);
  }

  private postInvalidation(region: IWVFastRegion | undefined, context: unknown, flags: number): void {
    const request = this.prepare(INVALIDATE, context, NO_SGES, flags);
    request.fastRegion = this.checkedRegion(region).handle;
    // An earlier registration may have failed because of its key.
    request.keyByte = -1;
    this.post(request);
  }

  private postRegistration(
    region: IWVFastRegion | undefined,
    context: unknown,
    sgl: readonly WvSge[],
    access: number,
    flags: number,
    keyByte = -1,
  ): void {
    const request = this.prepare(FAST_REGISTER, context, sgl, flags);
    const mine = this.checkedRegion(region);
    if (!Number.isInteger(access) || access >>> 0 !== access) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`access\` must be an OR of WvAccess values; got ${shown(access)}.`,
      );
    }
    request.fastRegion = mine.handle;
    request.access = access;
    request.keyByte = keyByte;
    this.post(request);
    mine.registering(sgl[0]!, access);
  }

  /** @internal */
  protected override postOne(posted: WvSendRequest): void {
    const { context, opcode = SEND, sgl = NO_SGES, flags = 0 } = checkedRequest(posted);
    if (opcode === FAST_REGISTER || opcode === INVALIDATE) {
      const { fastRegion, access = 0, keyByte } = posted;
      if (opcode === INVALIDATE) this.postInvalidation(fastRegion, context, flags);
      else this.postRegistration(fastRegion, context, sgl, access, flags, keyByte);
      return;
    }
    checkedSmall('opcode', opcode, FETCH_ADD);
    checkWord('flags', flags);
    const request = this.prepare(opcode, context, sgl, flags);
    request.immediate = posted.invalidateRkey ?? posted.immediate ?? 0;
    checkWord(posted.invalidateRkey === undefined ? 'immediate' : 'invalidateRkey', request.immediate);
    request.invalidate = posted.invalidateRkey !== undefined;
    if (opcode !== SEND && posted.remote !== undefined)
      this.setRemote(request, posted.remote, posted.remoteOffset ?? 0);
    else if (opcode !== SEND) noRemote(posted.remote);
    if (opcode === COMPARE_EXCHANGE || opcode === FETCH_ADD) {
      setWide('compareOrAdd', posted.compareOrAdd ?? 0n);
      request.compareLow = halves[0]!;
      request.compareHigh = halves[1]!;
      setWide('exchange', posted.exchange ?? 0n);
      request.swapLow = halves[0]!;
      request.swapHigh = halves[1]!;
    }
    this.post(request);
  }

  private alone(what: string, sge: WvSge): readonly WvSge[] {
    if (typeof sge?.region !== 'object') throw wrongSge(what, sge);
    this.single ??= [];
    this.single[0] = sge;
    return this.single;
  }

  private setRemote(request: UvpSendRequest, remote: RemoteMemoryRef, offset: number): void {
    // `addressHigh` is checked because it is a small integer: V8 allocates a heap number to compare the type of a field
    // from 2^31 on.
    if (typeof remote?.addressHigh !== 'number') {
      noRemote(remote);
    }
    request.remoteLow = remote.addressLow;
    request.remoteHigh = remote.addressHigh;
    request.rkey = remote.rkey;
    request.remoteOffset = offset;
  }

  private checkedRegion(region: unknown): WVFastRegion {
    if (this.verbs.fastRegion === undefined) noFastRegions(this.pd.device);
    if (!(region instanceof WVFastRegion) || region.pd !== this.pd) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`region\` must be created by allocateFastRegion() of the queue pair's protection domain; got ${shown(region)}.`,
      );
    }
    region.check();
    return region;
  }

  private checkedWindow(window: IWVMemoryWindow): WVMemoryWindow {
    if (!(window instanceof WVMemoryWindow) || window.pd !== this.pd) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`window\` must be a memory window of the queue pair's protection domain; got ${shown(window)}.`,
      );
    }
    window.check();
    return window;
  }
}

function wrongRegion(region: unknown, cause?: unknown): WvError {
  const text = `\`region\` must be a region returned by registerMemory(); got ${shown(region)}.`;
  return new WvError(Status.INVALID_PARAMETER, text, cause === undefined ? undefined : { cause });
}

/** The HCA checks whether the region, its registration and its rights allow the window. */
function checkBind(region: WvMemoryRegion, offset: number, length: number, access: number): void {
  const { lkey, address, length: size } = checkedObject('region', region, 'lkey, address and length');
  if (typeof lkey !== 'number' || typeof address !== 'number') throw wrongRegion(region);
  if (!(Number.isSafeInteger(offset) && offset >= 0 && Number.isSafeInteger(length) && length >= 0)) {
    throw new WvError(
      Status.INVALID_PARAMETER,
      `\`offset\` and \`length\` must be non-negative integers; got ${shown(offset)} and ${shown(length)}.`,
    );
  }
  if (offset + length > size) {
    throw new WvError(
      Status.INVALID_PARAMETER,
      `\`offset\` + \`length\` must be at most the region's ${size} bytes; got ${shown(offset)} + ${shown(length)}.`,
    );
  }
  if (typeof access !== 'number' || (access & WINDOW_RIGHTS) !== access) {
    throw new WvError(
      Status.INVALID_PARAMETER,
      `\`access\` of a window must be an OR of REMOTE_READ, REMOTE_WRITE, REMOTE_ATOMIC and ZERO_BASED (0x${WINDOW_RIGHTS.toString(16)}); got ${shownFlags(access)}.`,
    );
  }
}

/**
 * The high 32 bits of the address `offset` bytes into the memory. `low` holds the low 32 bits, possibly with a carry.
 */
function highOf({ addressHigh }: RemoteMemoryRef, offset: number, low: number): number {
  return addressHigh + Math.floor(offset / TWO_32) + (low >= TWO_32 ? 1 : 0);
}

function noRemote(remote: unknown): never {
  throw new WvError(
    Status.INVALID_PARAMETER,
    `\`remote\` must be a RemoteMemory; got ${shown(remote)}. Create one with new RemoteMemory().`,
  );
}

function noWindows({ name }: WVDevice): never {
  throw new WvError(Status.NOT_SUPPORTED, `The device ${name} does not support memory windows.`);
}

function setWide(what: string, value: bigint): void {
  if (typeof value !== 'bigint' || value < 0n || value > 0xffff_ffff_ffff_ffffn) {
    throw new WvError(
      Status.INVALID_PARAMETER,
      `\`${what}\` must be a bigint from 0 to 2^64 - 1; got ${shown(value)}.`,
    );
  }
  wide[0] = value;
}
