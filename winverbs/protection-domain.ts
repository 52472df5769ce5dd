import type { Overlapped } from '../kernel-bridge/door/overlapped.js';
import type { UserVerbs, UvpHandle, UvpPin } from '../kernel-bridge/door/user-verbs.js';
import { IoctlCode } from '../kernel-bridge/ioctl/codes.js';
import { WvAccess } from '../kernel-bridge/ioctl/constants.js';
import { shown } from '../kernel-bridge/ioctl/shown.js';
import { WvIoId, WvIoMemoryKeys, WvIoMemoryRegister } from '../kernel-bridge/ioctl/structs.js';
import { WVAddressHandle } from './address-handle.js';
import { WVConnectQueuePair } from './connect-queue-pair.js';
import { WVDatagramQueuePair } from './datagram-queue-pair.js';
import type { WVDevice } from './device.js';
import { checkRights, explainLength } from './explain.js';
import { WVFastRegion } from './fast-region.js';
import type {
  IWVAddressHandle,
  IWVConnectQueuePair,
  IWVDatagramQueuePair,
  IWVFastRegion,
  IWVMemoryWindow,
  IWVProtectionDomain,
  IWVSharedReceiveQueue,
  WvAddressVector,
  WvMemoryRegion,
  WvQpCreate,
} from './interfaces.js';
import { MemoryRegion, refuseTransfers, registrableBytes } from './memory-region.js';
import { WVMemoryWindow } from './memory-window.js';
import { WVSharedReceiveQueue } from './shared-receive-queue.js';
import { checkedObject, guarded, Status, WvError } from './status.js';
import { WvOverlapped } from './wv-object.js';

/** Members of WvQpCreate without a default. */
const QP_NEEDS = 'sendCq, receiveCq, sendDepth, sendSge, receiveDepth and receiveSge';
/** REMOTE_WRITE includes LOCAL_WRITE; this is the remaining bit. */
const REMOTE_WRITE_BIT = WvAccess.REMOTE_WRITE & ~WvAccess.LOCAL_WRITE;
const REMOTE_RIGHTS = WvAccess.REMOTE_READ | REMOTE_WRITE_BIT | WvAccess.REMOTE_ATOMIC;
const ALL_RIGHTS =
  REMOTE_RIGHTS |
  WvAccess.LOCAL_WRITE |
  WvAccess.MW_BIND |
  WvAccess.ZERO_BASED |
  WvAccess.REMOTE_VIEW |
  WvAccess.NON_CACHABLE;

interface Registration {
  readonly bytes: Uint8Array;
  readonly length: number;
  readonly pin: UvpPin;
  readonly access: number;
  readonly input: Uint8Array;
}

/** IWVProtectionDomain: memory and queue pairs that may be used together. */
export class WVProtectionDomain extends WvOverlapped implements IWVProtectionDomain {
  /** @internal */
  readonly verbs: UserVerbs;
  private readonly regions = new Set<MemoryRegion>();
  /** Overlapped requests whose result has not been delivered yet; their pins and regions depend on it. */
  private readonly pending = new Set<Overlapped<unknown>>();

  private constructor(
    /** @internal */
    readonly device: WVDevice,
    id: bigint,
    /** @internal */
    readonly handle: UvpHandle,
  ) {
    super('protection domain', device.file, IoctlCode.PD_CANCEL, id, ['IWVProtectionDomain']);
    this.verbs = device.verbs;
    device.addChild(this);
  }

  /** @internal */
  static allocate(device: WVDevice): WVProtectionDomain {
    const { file, verbs } = device;
    let handle: UvpHandle = null;
    const reply = file.verb(IoctlCode.PD_ALLOCATE, WvIoId, WvIoId, {
      pre: (umv) => {
        handle = verbs.preAllocatePd?.(device.ca, umv) ?? null;
        return { id: device.id };
      },
      post: (status, umv) => verbs.postAllocatePd?.(device.ca, status, handle, umv),
      undo: (answer) => WVProtectionDomain.end(device, answer.id, handle),
    });
    return new WVProtectionDomain(device, reply.id, handle);
  }

  private static end(device: WVDevice, id: bigint, handle: UvpHandle): void {
    const { file, verbs } = device;
    verbs.preDeallocatePd?.(handle);
    file.destroy(IoctlCode.PD_DEALLOCATE, id, (status) => verbs.postDeallocatePd?.(handle, status));
  }

  /**
   * Registers memory (MEMORY_REGISTER). Until it is deregistered the device may use it, and it stays in place and
   * allocated, even if its buffer is detached. After that the region's `bytes` and requests that name the region throw
   * ACCESS_VIOLATION. `access` is an OR of WV_ACCESS_*; 0 allows only reading by this side. With ZERO_BASED the
   * region's addresses count from 0, and windows cannot be bound to it. REMOTE_VIEW requires memory from `allocate()`.
   *
   * @throws WvError INVALID_PARAMETER (the buffer is empty, detached or resizable, or a right is unknown or not allowed
   *   for it), INSUFFICIENT_RESOURCES, NOT_SUPPORTED (in this runtime, native code can hold only memory from
   *   `allocate()`)
   * @category Memory
   */
  registerMemory(buffer: ArrayBufferLike | ArrayBufferView, access: number): WvMemoryRegion {
    const registration = this.prepare(buffer, access);
    try {
      const output = this.file.call(IoctlCode.MEMORY_REGISTER, registration.input, WvIoMemoryKeys.size);
      return this.registered(registration, output);
    } catch (error) {
      this.verbs.unpinMemory(registration.pin);
      throw explainLength(error, 'MEMORY_REGISTER', this.device, registration.length);
    }
  }

  /** The overlapped form of {@link registerMemory}; invalid arguments throw immediately. @category Memory */
  registerMemoryOverlapped(
    buffer: ArrayBufferLike | ArrayBufferView,
    access: number,
  ): Overlapped<WvMemoryRegion> {
    const registration = this.prepare(buffer, access);
    let unpinned = false;
    const unpin = () => {
      if (!unpinned) this.verbs.unpinMemory(registration.pin);
      unpinned = true;
    };
    try {
      return this.track(
        this.overlapped<WvMemoryRegion>(
          IoctlCode.MEMORY_REGISTER,
          registration.input,
          WvIoMemoryKeys.size,
          (output) => this.registered(registration, output),
          unpin,
        ),
      );
    } catch (error) {
      unpin();
      throw error;
    }
  }

  /**
   * Ends a registration (MEMORY_DEREGISTER). Requests that still use it fail.
   *
   * @throws WvError DEVICE_BUSY (memory windows are bound to the region, which stays registered), INVALID_PARAMETER
   *   (the region is not registered here)
   * @category Memory
   */
  deregisterMemory(region: WvMemoryRegion): void {
    const registered = this.checkedRegion(region);
    this.file.call(IoctlCode.MEMORY_DEREGISTER, this.deregisterInput(registered));
    this.deregistered(registered);
  }

  /** The overlapped form of {@link deregisterMemory}. @category Memory */
  deregisterMemoryOverlapped(region: WvMemoryRegion): Overlapped<void> {
    const registered = this.checkedRegion(region);
    return this.track(
      this.overlapped<void>(IoctlCode.MEMORY_DEREGISTER, this.deregisterInput(registered), 0, () =>
        this.deregistered(registered),
      ),
    );
  }

  /** Allocates an unbound memory window (MW_ALLOCATE). @category Memory */
  allocateMemoryWindow(): IWVMemoryWindow {
    this.check();
    return WVMemoryWindow.allocate(this);
  }

  /**
   * Allocates a region of at most `maxLength` bytes for fast registration (MEMORY_ALLOCATE, which exists only in this
   * package). Requests of IWVConnectQueuePair.fastRegister register it.
   *
   * @throws WvError NOT_SUPPORTED (the device has no MEM_MGT_EXTENSIONS), INVALID_PARAMETER (not a length up to the
   *   device's maxMrSize), INSUFFICIENT_RESOURCES
   * @category Memory
   */
  allocateFastRegion(maxLength: number): IWVFastRegion {
    this.check();
    return WVFastRegion.allocate(this, maxLength);
  }

  /**
   * Creates a queue of receives for several queue pairs (SRQ_CREATE), with at least `maxWr` receives of `maxSge` SGEs.
   * The event is reported when fewer receives than `limit` are left; 0 requests no event.
   *
   * @throws WvError INVALID_PARAMETER (a size is beyond the device's limits), NOT_SUPPORTED (the device has none)
   * @category Queues
   */
  createSharedReceiveQueue(maxWr: number, maxSge: number, srqLimit = 0): IWVSharedReceiveQueue {
    this.check();
    return WVSharedReceiveQueue.create(this, maxWr, maxSge, srqLimit);
  }

  /**
   * Creates a connected queue pair in RESET (QP_CREATE), reliable unless `type` says otherwise.
   *
   * @throws WvError INVALID_PARAMETER (a size is beyond the device's limits, or a completion queue is not of this
   *   device)
   * @category Queues
   */
  createConnectQueuePair(create: WvQpCreate): IWVConnectQueuePair {
    this.check();
    return WVConnectQueuePair.create(this, checkedObject('create', create, QP_NEEDS));
  }

  /**
   * Creates a datagram queue pair (UD) in RESET (QP_CREATE); {@link WVDatagramQueuePair.start} makes it ready. Read
   * depths and `type` are ignored. A receive needs 40 bytes more than the payload, for the GRH.
   *
   * @throws WvError INVALID_PARAMETER (a size is beyond the device's limits, or a completion queue is not of this
   *   device)
   * @category Queues
   */
  createDatagramQueuePair(create: WvQpCreate): IWVDatagramQueuePair {
    this.check();
    return WVDatagramQueuePair.create(this, checkedObject('create', create, QP_NEEDS));
  }

  /**
   * Creates a destination for datagrams from this domain's queue pairs (AH_CREATE), from the result of {@link
   * WVProvider.resolvePath} or {@link replyAddressVector}.
   *
   * @throws WvError INVALID_ADDRESS (the source is not an address of this device, or the addresses are of two
   *   families), INVALID_PORT_HANDLE, INVALID_PARAMETER, INSUFFICIENT_RESOURCES
   * @category Datagrams
   */
  createAddressHandle(vector: WvAddressVector): IWVAddressHandle {
    this.check();
    return WVAddressHandle.create(this, checkedObject('vector', vector, 'sourceGid and destinationGid'));
  }

  protected override destroy(): void {
    for (const request of [...this.pending]) {
      try {
        request.getResult({ wait: true });
      } catch {
        // The request has failed and has released its resources.
      }
    }
    for (const region of [...this.regions]) {
      try {
        this.file.call(IoctlCode.MEMORY_DEREGISTER, this.deregisterInput(region));
      } catch {
        // The kernel deregisters the memory when the file closes. Without the pin, the HCA does not use the memory from
        // now on.
      }
      this.deregistered(region);
    }
    WVProtectionDomain.end(this.device, this.id, this.handle);
    this.device.removeChild(this);
  }

  private prepare(buffer: ArrayBufferLike | ArrayBufferView, wanted: number): Registration {
    this.check();
    if (typeof wanted !== 'number' || (wanted & ALL_RIGHTS) !== wanted) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`access\` must be an OR of WvAccess values; got ${shown(wanted)}.`,
      );
    }
    checkRights(wanted);
    const access = this.verbs.view === undefined ? wanted & ~WvAccess.REMOTE_VIEW : wanted;
    const bytes = registrableBytes(buffer);
    const length = bytes.byteLength;
    const pin = guarded('RegisterMemory', () => this.verbs.pinMemory(bytes));
    try {
      if ((access & WvAccess.REMOTE_VIEW) !== 0 && pin.allocated !== true) {
        throw new WvError(
          Status.INVALID_PARAMETER,
          '`buffer` must be memory from allocate() for peers to map it (REMOTE_VIEW); got other memory.',
        );
      }
      if (pin.detachable) refuseTransfers(bytes.buffer as ArrayBuffer);
      const input = WvIoMemoryRegister.encode({
        id: this.id,
        address: BigInt(pin.address),
        bufferLength: BigInt(length),
        accessFlags: access >>> 0,
      });
      return { bytes, length, pin, access, input };
    } catch (error) {
      this.verbs.unpinMemory(pin);
      throw error;
    }
  }

  private registered({ bytes, length, pin, access }: Registration, output: Uint8Array): MemoryRegion {
    const { lkey, rkey } = guarded('RegisterMemory', () => WvIoMemoryKeys.decode(output));
    const address = (access & WvAccess.ZERO_BASED) !== 0 ? 0 : pin.address;
    const remoteKey = (access & REMOTE_RIGHTS) !== 0 ? rkey : 0;
    const region = new MemoryRegion(lkey, remoteKey, bytes, length, pin, address);
    this.regions.add(region);
    return region;
  }

  private deregistered(region: MemoryRegion): void {
    if (this.regions.delete(region)) this.verbs.unpinMemory(region.pin);
  }

  private checkedRegion(region: WvMemoryRegion): MemoryRegion {
    this.check();
    if (region instanceof MemoryRegion && this.regions.has(region)) return region;
    throw new WvError(
      Status.INVALID_PARAMETER,
      `\`region\` must be registered in this protection domain; got ${shown(region)}.`,
    );
  }

  private deregisterInput(region: MemoryRegion): Uint8Array {
    return WvIoId.encode({ id: this.id, data: region.lkey });
  }

  private track<T>(request: Overlapped<T>): Overlapped<T> {
    const tracked = request.map(
      (value) => {
        this.pending.delete(tracked);
        return value;
      },
      (error) => {
        this.pending.delete(tracked);
        return error;
      },
    );
    this.pending.add(tracked);
    return tracked;
  }
}
