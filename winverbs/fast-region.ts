import type { UvpHandle } from '../kernel-bridge/door/user-verbs.js';
import { IoctlCode } from '../kernel-bridge/ioctl/codes.js';
import { WvAccess } from '../kernel-bridge/ioctl/constants.js';
import { shown } from '../kernel-bridge/ioctl/shown.js';
import { WvIoId, WvIoMemoryKeys, WvIoMemoryRegister } from '../kernel-bridge/ioctl/structs.js';
import type { WVDevice } from './device.js';
import { explainLength } from './explain.js';
import type { IWVFastRegion, WvSge } from './interfaces.js';
import { MemoryRegion } from './memory-region.js';
import type { WVProtectionDomain } from './protection-domain.js';
import { Status, WvError } from './status.js';
import { WvObject } from './wv-object.js';

const NO_BYTES = new Uint8Array(0);

/** IWVFastRegion: a region whose memory, rights and key are changed by requests (IWVConnectQueuePair.fastRegister). */
export class WVFastRegion extends WvObject implements IWVFastRegion {
  /** @internal */
  readonly handle: UvpHandle;
  private memory: WvSge['region'] | undefined = undefined;
  private offset = 0;
  private start = 0;
  private view: Uint8Array | undefined = undefined;
  private used = 0;

  private constructor(
    /** @internal */
    readonly pd: WVProtectionDomain,
    private readonly firstKey: number,
    readonly maxLength: number,
  ) {
    super('fast region', ['IWVFastRegion']);
    this.handle = pd.verbs.fastRegion?.(firstKey) ?? null;
    pd.addChild(this);
  }

  /** @internal */
  static allocate(pd: WVProtectionDomain, maxLength: number): WVFastRegion {
    if (pd.verbs.fastRegion === undefined) noFastRegions(pd.device);
    if (!Number.isSafeInteger(maxLength) || maxLength < 1) {
      throw new WvError(
        Status.INVALID_PARAMETER,
        `\`maxLength\` must be an integer from 1 to the device's \`maxMrSize\`; got ${shown(maxLength)}.`,
      );
    }
    const input = WvIoMemoryRegister.encode({ id: pd.id, bufferLength: BigInt(maxLength) });
    let output: Uint8Array;
    try {
      output = pd.file.call(IoctlCode.MEMORY_ALLOCATE, input, WvIoMemoryKeys.size);
    } catch (error) {
      throw explainLength(error, 'MEMORY_ALLOCATE', pd.device, maxLength);
    }
    return new WVFastRegion(pd, WvIoMemoryKeys.decode(output).lkey, maxLength);
  }

  /**
   * The key of the latest registration, queued or completed; it serves as both the local key and the peer's key.
   * @category Memory
   */
  get rkey(): number {
    return this.pd.verbs.fastRegionKey?.(this.handle) ?? this.firstKey;
  }

  get lkey(): number {
    return this.rkey;
  }

  /** The address of the latest registration; 0 if it is zero based. @category Memory */
  get address(): number {
    return this.start;
  }

  /** Length of the latest registration, in bytes. @category Memory */
  get length(): number {
    return this.used;
  }

  /**
   * The memory of the latest registration. @throws WvError ACCESS_VIOLATION (its ArrayBuffer was detached)
   * @category Memory
   */
  get bytes(): Uint8Array {
    const all = this.memory?.bytes;
    if (all === undefined) return NO_BYTES;
    this.view ??= all.subarray(this.offset, this.offset + this.used);
    return this.view;
  }

  /** @internal Records a registration that was queued. */
  registering({ region, offset, length }: WvSge, access: number): void {
    this.memory = region;
    this.offset = offset;
    this.used = length;
    const address = region instanceof MemoryRegion ? region.pin.address : region.address;
    this.start = (access & WvAccess.ZERO_BASED) !== 0 ? 0 : address + offset;
    this.view = undefined;
  }

  protected override destroy(): void {
    const input = WvIoId.encode({ id: this.pd.id, data: this.firstKey });
    this.pd.file.destroyBy(IoctlCode.MEMORY_DEREGISTER, input);
    this.pd.removeChild(this);
  }
}

/** @internal */
export function noFastRegions({ name }: WVDevice): never {
  const text = `The device ${name} does not support fast registration (MEM_MGT_EXTENSIONS).`;
  throw new WvError(Status.NOT_SUPPORTED, text);
}
