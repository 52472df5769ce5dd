import type { UvpHandle } from '../kernel-bridge/door/user-verbs.js';
import { IoctlCode } from '../kernel-bridge/ioctl/codes.js';
import { WvIoId, WvIoMwKey } from '../kernel-bridge/ioctl/structs.js';
import type { IWVMemoryWindow } from './interfaces.js';
import type { WVProtectionDomain } from './protection-domain.js';
import { WvObject } from './wv-object.js';

/**
 * IWVMemoryWindow: a part of a registered region that peers may access while it is bound
 * (IWVConnectQueuePair.bindMemoryWindow).
 */
export class WVMemoryWindow extends WvObject implements IWVMemoryWindow {
  private constructor(
    /** @internal */
    readonly pd: WVProtectionDomain,
    private readonly id: bigint,
    private readonly firstKey: number,
    /** @internal */
    readonly handle: UvpHandle,
  ) {
    super('memory window', ['IWVMemoryWindow']);
    pd.addChild(this);
  }

  /** @internal */
  static allocate(pd: WVProtectionDomain): WVMemoryWindow {
    const { file, verbs } = pd;
    let handle: UvpHandle = null;
    const reply = file.verb(IoctlCode.MW_ALLOCATE, WvIoId, WvIoMwKey, {
      pre: (umv) => {
        handle = verbs.preCreateMw?.(pd.handle, umv) ?? null;
        return { id: pd.id };
      },
      post: (status, umv, answer) => verbs.postCreateMw?.(pd.handle, status, answer?.rkey ?? 0, handle, umv),
      undo: (answer) => WVMemoryWindow.end(pd, answer.id, handle),
    });
    return new WVMemoryWindow(pd, reply.id, reply.rkey, handle);
  }

  private static end(pd: WVProtectionDomain, id: bigint, handle: UvpHandle): void {
    const { file, verbs } = pd;
    verbs.preDestroyMw?.(handle);
    file.destroy(IoctlCode.MW_DEALLOCATE, id, (status) => verbs.postDestroyMw?.(handle, status));
  }

  /** The key of the latest bind; before the first bind it grants no access. @category Memory */
  get rkey(): number {
    return this.pd.verbs.mwRkey?.(this.handle) ?? this.firstKey;
  }

  protected override destroy(): void {
    WVMemoryWindow.end(this.pd, this.id, this.handle);
    this.pd.removeChild(this);
  }
}
