import { shownFlags } from '../../kernel-bridge/ioctl/shown.js';
import type { WvMemoryRegion } from '../../winverbs/index.js';
import { Overlapped, Status, WvAccess } from '../../winverbs/index.js';
import { isCount } from '../core/argument-checks.js';
import { NdOverlappedBase } from '../core/nd-object.js';
import { checkRegistrable, deregisterNow } from '../core/registrable.js';
import { RequestTracker } from '../core/tracker.js';
import { type IND2MemoryRegion, Nd2MrFlag } from '../spi/v2.js';
import { refuse } from '../status.js';
import type { RegionAdapter } from './registered-regions.js';

const {
  ALLOW_LOCAL_WRITE,
  ALLOW_REMOTE_READ,
  ALLOW_REMOTE_WRITE,
  RDMA_READ_SINK,
  ALLOW_REMOTE_ATOMIC,
  ALLOW_REMOTE_VIEW,
  DO_NOT_SECURE_VM,
} = Nd2MrFlag;
const KNOWN =
  ALLOW_LOCAL_WRITE |
  ALLOW_REMOTE_READ |
  ALLOW_REMOTE_WRITE |
  RDMA_READ_SINK |
  ALLOW_REMOTE_ATOMIC |
  ALLOW_REMOTE_VIEW |
  DO_NOT_SECURE_VM;
/** ALLOW_REMOTE_WRITE without the ALLOW_LOCAL_WRITE that it includes. */
const REMOTE_WRITE_BIT = ALLOW_REMOTE_WRITE & ~ALLOW_LOCAL_WRITE;

/** ND_MR_FLAG_* → WV_ACCESS_*. Windows can be bound to every region. */
export function accessOf(flags: number, atomics: boolean): number {
  return (
    WvAccess.MW_BIND |
    (flags & (ALLOW_LOCAL_WRITE | RDMA_READ_SINK) ? WvAccess.LOCAL_WRITE : 0) |
    (flags & ALLOW_REMOTE_READ ? WvAccess.REMOTE_READ : 0) |
    (flags & REMOTE_WRITE_BIT ? WvAccess.REMOTE_WRITE : 0) |
    (atomics && flags & ALLOW_REMOTE_ATOMIC ? WvAccess.REMOTE_ATOMIC : 0) |
    (flags & ALLOW_REMOTE_VIEW ? WvAccess.REMOTE_VIEW : 0)
  );
}

type RegionState = 'unregistered' | 'registering' | 'registered';

/** IND2MemoryRegion: successive registrations in the adapter's protection domain. */
export class MemoryRegion extends NdOverlappedBase implements IND2MemoryRegion {
  protected get interfaces() {
    return ['IND2Overlapped', 'IND2MemoryRegion'] as const;
  }

  readonly adapter: RegionAdapter;
  #state: RegionState = 'unregistered';
  #region: WvMemoryRegion | undefined = undefined;
  /** The memory for requests of this adapter, without processing completed requests; see {@link region}. */
  usable: WvMemoryRegion | undefined = undefined;
  #writable = false;
  readonly #tracker = new RequestTracker((request) => this.issued(request));

  constructor(adapter: RegionAdapter) {
    super();
    this.adapter = adapter;
    adapter.addChild(this);
  }

  register(buffer: ArrayBufferLike | ArrayBufferView, flags: number): Overlapped<void> {
    const what = 'Register';
    const { adapter } = this;
    const { terms } = adapter;
    this.#expect('unregistered', what);
    if (!isCount(flags, -(2 ** 31), 2 ** 32 - 1) || (flags & ~KNOWN) !== 0) {
      throw refuse(
        Status.INVALID_PARAMETER,
        what,
        `\`flags\` must be an OR of Nd2MrFlag values (0x${(KNOWN >>> 0).toString(16)} in total); got ${shownFlags(flags)}.`,
      );
    }
    checkRegistrable(buffer, adapter.bounds.maxRegistration, what);
    const request = terms.call(what, () => adapter.register(buffer, flags));
    this.#become('registering');
    return this.#tracker.track(
      request,
      (region) => {
        this.#region = region;
        this.#writable = (flags & (ALLOW_LOCAL_WRITE | RDMA_READ_SINK)) !== 0;
        this.#become('registered');
      },
      (error) => {
        this.#become('unregistered');
        return terms.error(error, what);
      },
    );
  }

  deregister(): Overlapped<void> {
    const what = 'Deregister';
    const { adapter } = this;
    this.#expect('registered', what);
    const failure = deregisterNow(() => adapter.deregister(this.#region!), adapter.terms, what);
    if (failure !== undefined) return this.issued(Overlapped.failed(failure));
    this.#become('unregistered');
    this.#region = undefined;
    return this.issued(Overlapped.succeeded(undefined));
  }

  get address(): bigint {
    return BigInt(this.#registered('Address').address);
  }

  get length(): number {
    this.#tracker.settle();
    return this.#region?.length ?? 0;
  }

  getLocalToken(): number {
    return this.#registered('GetLocalToken').lkey;
  }

  getRemoteToken(): number {
    return this.#registered('GetRemoteToken').rkey;
  }

  cancelOverlappedRequests(): void {
    this.alive('CancelOverlappedRequests');
    this.#tracker.cancelAndWait();
  }

  /** The current memory for requests of this adapter; undefined without one. */
  get region(): WvMemoryRegion | undefined {
    if (this.usable === undefined) this.#tracker.settle();
    return this.usable;
  }

  /** Whether local requests may write to it. */
  get writable(): boolean {
    return this.#writable;
  }

  #become(state: RegionState): void {
    this.#state = state;
    this.#use(state === 'registered' && !this.ended ? this.#region : undefined);
  }

  /** Sets the memory that requests may refer to, by the region or its local token. */
  #use(region: WvMemoryRegion | undefined): void {
    const { tokens } = this.adapter.regions;
    if (this.usable !== undefined) tokens.delete(this.usable.lkey);
    this.usable = region;
    if (region !== undefined) tokens.set(region.lkey, this);
  }

  #registered(what: string): WvMemoryRegion {
    this.#expect('registered', what);
    return this.#region!;
  }

  #expect(state: 'unregistered' | 'registered', what: string): void {
    this.alive(what);
    this.#tracker.settle();
    if (this.#state !== state) {
      throw refuse(
        Status.INVALID_DEVICE_STATE,
        what,
        `The region must be ${state}; it is ${this.#state}.${this.#state === 'registering' ? ' Await the register() first.' : state === 'registered' ? ' Call register() first.' : ' Call deregister() first.'}`,
      );
    }
  }

  protected override released(): void {
    this.#use(undefined);
    this.#tracker.cancelAndWait();
  }

  protected end(): void {
    const region = this.#region;
    if (region !== undefined) this.adapter.dropMemory(region);
    this.adapter.removeChild(this);
  }
}
