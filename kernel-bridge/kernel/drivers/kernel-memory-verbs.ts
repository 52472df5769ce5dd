/**
 * The verbs for kernel clients, first half: instances of an HCA, protection domains, memory, and the creation and
 * destruction of a client's objects by verbs with an IRP.
 */

import { UmvBuffer, type UserVerbs, type UvpHandle, type UvpPin } from '../../door/user-verbs.js';
import { WvAccess } from '../../ioctl/constants.js';
import { Status } from '../../ioctl/status.js';
import { callVerbFor } from '../filter/call.js';
import { WvDevice, type WvFile, WvPd } from '../filter/file-objects.js';
import type { IbAl } from '../hca-driver/al.js';
import { ciCloseCa, ciOpenCa } from '../hca-driver/ci-ca.js';
import * as memoryVerbs from '../hca-driver/ci-memory.js';
import type {
  CiUdata,
  Hca,
  IbCa,
  IbCaDispatch,
  IbMr,
  IbMw,
  IbPd,
  WithProvider,
} from '../hca-driver/ib-objects.js';
import type { DeviceObject } from '../io-manager/device-object.js';
import type { Irp } from '../io-manager/irp.js';
import { IbFastRegion, IbMemory, statusOf } from './kernel-memory.js';

/**
 * Instances, protection domains and memory of one client, whose objects are in its tables. Destroying an object that
 * does not exist, or no longer exists, fails with INVALID_HANDLE.
 */
export class KernelMemoryVerbs {
  /**
   * Ids of the client's objects in its tables.
   *
   * @internal
   */
  protected readonly ids = new Map<WithProvider, number>();
  /** Pins of registered memory. */
  private readonly pins = new Set<UvpPin>();
  private readonly fastRegions = new Set<IbFastRegion>();

  /** @internal */
  constructor(
    /** @internal */
    protected readonly tables: WvFile,
    /** @internal */
    protected readonly provider: UserVerbs,
    /** Makes transfers of registered buffers fail. */
    private readonly refuseTransfers: (buffer: ArrayBuffer) => void,
  ) {}

  /**
   * Calls a verb with provider data, with the provider's hooks around it. As for user-mode clients, the provider's
   * command and bytes are passed to the driver, and on success the driver's status and bytes are returned.
   *
   * @internal
   */
  protected provided<T>(
    irp: Irp<T>,
    hooks: {
      pre(umv: UmvBuffer): void;
      verb(udata: CiUdata, inner: Irp<T>): number;
      post(status: number, information: T | undefined, umv: UmvBuffer): void;
    },
  ): number {
    const umv = new UmvBuffer();
    const refused = statusOf(() => hooks.pre(umv));
    if (refused !== Status.SUCCESS) return irp.complete(refused);
    const { command, input } = umv;
    const udata = { command, status: 0, input, output: new Uint8Array(umv.outputSize), outputSize: 0 };
    return callVerbFor<T>(
      irp,
      (inner) => hooks.verb(udata, inner),
      (information) => {
        umv.status = udata.status;
        umv.output = udata.output.subarray(0, udata.outputSize);
        hooks.post(Status.SUCCESS, information, umv);
        return irp.complete(Status.SUCCESS, information);
      },
      (status) => hooks.post(status, undefined, umv),
    );
  }

  /**
   * Creates an object, with the provider's hooks around the verb.
   *
   * @internal
   */
  protected create<T extends WithProvider>(
    irp: Irp<T>,
    hooks: {
      pre(umv: UmvBuffer): UvpHandle;
      verb(udata: CiUdata, inner: Irp<T>): number;
      post?(status: number, handle: UvpHandle, umv: UmvBuffer): void;
      made(object: T): void;
    },
  ): number {
    let handle: UvpHandle = null;
    return this.provided<T>(irp, {
      pre: (umv) => {
        handle = hooks.pre(umv);
      },
      verb: hooks.verb,
      post: (status, object, umv) => {
        hooks.post?.(status, handle, umv);
        if (status !== Status.SUCCESS || object === undefined) return;
        object.provider = handle;
        hooks.made(object);
      },
    });
  }

  /**
   * Destroys an object of this client; `ended` runs on success, with its id and its provider's handle. Afterwards
   * nothing can be posted to it or polled from it.
   *
   * @internal
   */
  protected destroy(
    object: WithProvider,
    irp: Irp,
    verb: (inner: Irp) => number,
    ended: (id: number, handle: UvpHandle, status: number) => void,
  ): number {
    const id = this.ids.get(object);
    if (id === undefined) return irp.complete(Status.INVALID_HANDLE);
    return callVerbFor<number>(irp, verb, (information) => {
      const handle = object.provider ?? null;
      object.provider = undefined;
      this.ids.delete(object);
      ended(id, handle, Status.SUCCESS);
      return irp.complete(Status.SUCCESS, information);
    });
  }

  /**
   * Releases the provider's resources after the client's tables were closed.
   *
   * @internal
   */
  end(): void {
    for (const pin of this.pins) this.provider.unpinMemory(pin);
    this.pins.clear();
    for (const object of this.ids.keys()) object.provider = undefined;
    this.ids.clear();
  }

  // ── Instances, protection domains, memory ────────────────────────────────────────────────────────────────

  /** Opens an instance of an HCA; statuses as `ciOpenCa` of the HCA driver. Callbacks receive `context`; their table is optional. */
  ciOpenCa<C>(
    al: IbAl,
    device: DeviceObject<Hca>,
    context: C,
    dispatch: IbCaDispatch<C> | undefined,
    irp: Irp<IbCa>,
  ): number {
    const { provider, tables } = this;
    const { guid } = device.extension;
    return this.create(irp, {
      pre: (umv) => provider.preOpenCa?.(guid, umv) ?? null,
      verb: (udata, inner) => ciOpenCa(al, device, context, dispatch, udata, inner),
      post: (status, handle, umv) => provider.postOpenCa?.(guid, status, handle, umv),
      made: (ca) => {
        const entry = new WvDevice();
        entry.ca = ca;
        this.ids.set(ca, tables.devices.add(entry));
      },
    });
  }

  /** Closes an instance. Completes with SUCCESS, DEVICE_BUSY. */
  ciCloseCa(ca: IbCa, irp: Irp): number {
    const { devices } = this.tables;
    const verb = (inner: Irp): number => ciCloseCa(ca, inner);
    return this.destroy(ca, irp, verb, (id) => devices.delete(id));
  }

  /** Allocates a protection domain; statuses as `ciAllocatePd` of the HCA driver. */
  ciAllocatePd(ca: IbCa, irp: Irp<IbPd>): number {
    const { provider, tables } = this;
    return this.create(irp, {
      pre: (umv) => provider.preAllocatePd?.(ca.provider ?? null, umv) ?? null,
      verb: (udata, inner) => memoryVerbs.ciAllocatePd(ca, udata, inner),
      post: (status, handle, umv) => provider.postAllocatePd?.(ca.provider ?? null, status, handle, umv),
      made: (pd) => void this.ids.set(pd, tables.pds.add(new WvPd(pd))),
    });
  }

  /** Frees a protection domain. Completes with SUCCESS, DEVICE_BUSY. */
  ciDeallocatePd(pd: IbPd, irp: Irp): number {
    const { pds } = this.tables;
    const verb = (inner: Irp): number => memoryVerbs.ciDeallocatePd(pd, inner);
    return this.destroy(pd, irp, verb, (id) => pds.delete(id));
  }

  /** @internal */
  protected regionsOf(pd: IbPd): Map<number, IbMr> | undefined {
    return this.tables.pds.get(this.ids.get(pd) ?? 0)?.regions;
  }

  /**
   * Pins and registers memory of fixed length, which stays in place until it is deregistered. Large registrations pend.
   *
   * @param access - WV_ACCESS_*
   * @returns as `ciRegisterMr` of the HCA driver (Information: {@link IbMemory}).
   */
  ciRegisterMr(pd: IbPd, memory: Uint8Array, access: number, irp: Irp<IbMemory>): number {
    let pin: UvpPin | undefined;
    const refused = statusOf(() => {
      pin = this.provider.pinMemory(memory);
    });
    if (!pin) return irp.complete(refused);
    const pinned = pin;
    if (pinned.detachable && memory.buffer instanceof ArrayBuffer) this.refuseTransfers(memory.buffer);
    return callVerbFor<IbMr>(
      irp,
      (inner) => memoryVerbs.ciRegisterMr(pd, BigInt(pinned.address), BigInt(memory.length), access, inner),
      (region) => {
        this.regionsOf(pd)?.set(region.lkey, region);
        this.pins.add(pinned);
        const zeroBased = (access & WvAccess.ZERO_BASED) !== 0;
        return irp.complete(Status.SUCCESS, new IbMemory(region, pinned, memory, zeroBased));
      },
      () => this.provider.unpinMemory(pinned),
    );
  }

  /** Deregisters and unpins memory. Completes with SUCCESS, DEVICE_BUSY while windows are bound to it. */
  ciDeregisterMr(memory: IbMemory, irp: Irp): number {
    const { region, pin } = memory;
    if (!this.pins.has(pin)) return irp.complete(Status.INVALID_HANDLE);
    return callVerbFor<number>(
      irp,
      (inner) => memoryVerbs.ciDeregisterMr(region, inner),
      (information) => {
        this.regionsOf(region.pd)?.delete(region.lkey);
        this.pins.delete(pin);
        this.provider.unpinMemory(pin);
        return irp.complete(Status.SUCCESS, information);
      },
    );
  }

  /** Allocates a region for fast registration of at most `maxLength` bytes; statuses as `ciAllocateFastRegMr` of the HCA driver. */
  ciAllocateFastRegMr(pd: IbPd, maxLength: number, irp: Irp<IbFastRegion>): number {
    const { provider } = this;
    if (!provider.fastRegion) return irp.complete(Status.NOT_SUPPORTED);
    if (!Number.isSafeInteger(maxLength)) return irp.complete(Status.INVALID_PARAMETER);
    return callVerbFor<IbMr>(
      irp,
      (inner) => memoryVerbs.ciAllocateFastRegMr(pd, BigInt(maxLength), inner),
      (region) => {
        this.regionsOf(pd)?.set(region.lkey, region);
        const memory = new IbFastRegion(region, provider);
        this.fastRegions.add(memory);
        return irp.complete(Status.SUCCESS, memory);
      },
    );
  }

  /**
   * Frees a region for fast registration, registered or not. Completes with SUCCESS, DEVICE_BUSY while windows are
   * bound to it, INVALID_HANDLE (not of this client, or already freed).
   */
  ciFreeFastRegMr(memory: IbFastRegion, irp: Irp): number {
    const { region } = memory;
    if (!this.fastRegions.has(memory)) return irp.complete(Status.INVALID_HANDLE);
    return callVerbFor<number>(
      irp,
      (inner) => memoryVerbs.ciDeregisterMr(region, inner),
      (information) => {
        this.regionsOf(region.pd)?.delete(region.lkey);
        this.fastRegions.delete(memory);
        return irp.complete(Status.SUCCESS, information);
      },
    );
  }

  /** Allocates a memory window; statuses as `ciAllocateMw` of the HCA driver. */
  ciAllocateMw(pd: IbPd, irp: Irp<IbMw>): number {
    const { provider, tables } = this;
    return this.create(irp, {
      pre: (umv) => provider.preCreateMw?.(pd.provider ?? null, umv) ?? null,
      verb: (udata, inner) => memoryVerbs.ciAllocateMw(pd, udata, inner),
      post: (status, handle, umv) => provider.postCreateMw?.(pd.provider ?? null, status, 0, handle, umv),
      made: (mw) => void this.ids.set(mw, tables.mws.add(mw)),
    });
  }

  /** Frees a memory window. Completes with SUCCESS or the HCA's status. */
  ciDeallocateMw(mw: IbMw, irp: Irp): number {
    const { mws } = this.tables;
    const verb = (inner: Irp): number => memoryVerbs.ciDeallocateMw(mw, inner);
    return this.destroy(mw, irp, verb, (id) => mws.delete(id));
  }
}
