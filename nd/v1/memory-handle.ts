import { shown } from '../../kernel-bridge/ioctl/shown.js';
import type { IWVProtectionDomain, WvMemoryRegion } from '../../winverbs/index.js';
import { Overlapped, Status, WvAccess } from '../../winverbs/index.js';
import { checkRegistrable, deregisterNow } from '../core/registrable.js';
import type { MemoryResolver } from '../core/scatter-gather.js';
import { RequestTracker } from '../core/tracker.js';
import type { NdMemoryHandle } from '../spi/v1.js';
import { refuse, v1Terms } from '../status.js';

/**
 * Local use, and the right to bind windows. Peers get their rights only from windows, so the registration itself has no
 * key for them.
 */
const ACCESS = WvAccess.LOCAL_WRITE | WvAccess.MW_BIND;

/** A registration, as its adapter instance tracks it. */
export class MemoryHandle implements NdMemoryHandle {
  registered = true;
  readonly address: bigint;
  readonly length: number;
  readonly handle: number;

  constructor(
    readonly table: MemoryTable,
    readonly region: WvMemoryRegion,
  ) {
    this.address = BigInt(region.address);
    this.length = region.length;
    this.handle = region.lkey >>> 0;
  }
}

/**
 * The registrations of an adapter instance. A record exists from the success of the registration to the success of the
 * deregistration, whatever the client does with the overlapped requests.
 */
export class MemoryTable implements MemoryResolver {
  readonly #pd: IWVProtectionDomain;
  readonly #maxLength: number;
  /** Registrations by their 4-byte handles, which are the local keys and therefore unique. */
  readonly #live = new Map<number, MemoryHandle>();
  readonly #tracker = new RequestTracker();

  constructor(pd: IWVProtectionDomain, maxLength: number) {
    this.#pd = pd;
    this.#maxLength = maxLength;
  }

  /** Number of registrations whose success was observed. */
  get size(): number {
    this.#tracker.settle();
    return this.#live.size;
  }

  register(buffer: ArrayBufferLike | ArrayBufferView): Overlapped<NdMemoryHandle> {
    const what = 'RegisterMemory';
    checkRegistrable(buffer, this.#maxLength, what);
    const request = v1Terms.call(what, () => this.#pd.registerMemoryOverlapped(buffer, ACCESS));
    return this.#tracker.track(
      request,
      (region): NdMemoryHandle => {
        const handle = new MemoryHandle(this, region);
        this.#live.set(handle.handle, handle);
        return handle;
      },
      (error) => v1Terms.error(error, what),
    );
  }

  deregister(memory: NdMemoryHandle | number): Overlapped<void> {
    const what = 'DeregisterMemory';
    this.#tracker.settle();
    const handle = this.live(memory, what);
    const failure = deregisterNow(() => this.#pd.deregisterMemory(handle.region), v1Terms, what);
    if (failure !== undefined) return Overlapped.failed(failure);
    handle.registered = false;
    this.#live.delete(handle.handle);
    return Overlapped.succeeded(undefined);
  }

  /** Returns the record of a handle. Throws INVALID_HANDLE unless it is registered here. */
  live(memory: unknown, what: string, name = 'memory'): MemoryHandle {
    if (typeof memory === 'number') return this.#liveOf(memory, what, name);
    if (!(memory instanceof MemoryHandle) || memory.table !== this) {
      throw refuse(
        Status.INVALID_HANDLE,
        what,
        `\`${name}\` must be a handle returned by registerMemory of this adapter instance; got ${shown(memory)}.`,
      );
    }
    if (!memory.registered) {
      throw refuse(
        Status.INVALID_HANDLE,
        what,
        `\`${name}\` must be registered; got a handle that was deregistered.`,
      );
    }
    return memory;
  }

  #liveOf(number: number, what: string, name: string): MemoryHandle {
    // The registration may have completed just now.
    if (!this.#live.has(number)) this.#tracker.settle();
    const handle = this.#live.get(number);
    if (handle !== undefined) return handle;
    const text = `\`${name}\` must be registered by this adapter instance; got the handle ${number}.`;
    throw refuse(Status.INVALID_HANDLE, what, text);
  }

  known(memory: unknown): WvMemoryRegion | undefined {
    if (memory === undefined || memory === null) return undefined;
    // Reading a member first shows V8 the object's class, so that `instanceof` costs no instructions.
    const handle = memory as MemoryHandle;
    if (handle.table !== this || !(handle instanceof MemoryHandle)) return undefined;
    return handle.registered ? handle.region : undefined;
  }

  regionOf(memory: unknown, what: string, name?: string): WvMemoryRegion {
    return this.live(memory, what, name).region;
  }

  settle(): void {
    this.#tracker.settle();
  }
}
