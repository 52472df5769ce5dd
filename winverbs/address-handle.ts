import { UmvBuffer, type UvpHandle } from '../kernel-bridge/door/user-verbs.js';
import { IoctlCode } from '../kernel-bridge/ioctl/codes.js';
import { WvIoAhCreate } from '../kernel-bridge/ioctl/structs.js';
import { checkedGid } from './address-vector.js';
import { checkBits } from './checked-numbers.js';
import { explainPort } from './explain.js';
import type { IWVAddressHandle, WvAddressVector } from './interfaces.js';
import type { WVProtectionDomain } from './protection-domain.js';
import { guarded } from './status.js';
import { WvObject } from './wv-object.js';

/** IWVAddressHandle: the destination of datagrams from a protection domain's queue pairs. */
export class WVAddressHandle extends WvObject implements IWVAddressHandle {
  private constructor(
    /** @internal */
    readonly pd: WVProtectionDomain,
    /** 0 if the UVP created it without the kernel. */
    private readonly id: bigint,
    /** @internal */
    readonly handle: UvpHandle,
  ) {
    super('address handle', ['IWVAddressHandle']);
    pd.addChild(this);
  }

  /** @internal */
  static create(pd: WVProtectionDomain, vector: WvAddressVector): WVAddressHandle {
    const { file, verbs } = pd;
    const av = {
      sourceGid: checkedGid('sourceGid', vector.sourceGid),
      destinationGid: checkedGid('destinationGid', vector.destinationGid),
      flowLabel: vector.flowLabel ?? 0,
      trafficClass: vector.trafficClass ?? 0,
      hopLimit: vector.hopLimit ?? 0,
      portNumber: vector.portNumber ?? 1,
    };
    const given = { ...av, sourceGidIndex: () => pd.device.findGid(av.portNumber, av.sourceGid) };
    checkBits('flowLabel', av.flowLabel, 20);
    checkBits('trafficClass', av.trafficClass, 8);
    checkBits('hopLimit', av.hopLimit, 8);
    const umv = new UmvBuffer();
    const handle = guarded('AH_CREATE', () => verbs.preCreateAv?.(pd.handle, given, umv) ?? null);
    if (umv.processingDone) return new WVAddressHandle(pd, 0n, handle);
    const { sourceGid: sGid, destinationGid: dGid, ...rest } = av;
    const reply = file.verb(
      IoctlCode.AH_CREATE,
      WvIoAhCreate,
      WvIoAhCreate,
      {
        pre: () => ({ id: { id: pd.id }, addressVector: { ...rest, networkRouteValid: 1, sGid, dGid } }),
        post: (status) => verbs.postCreateAv?.(pd.handle, status, handle, umv),
        explain: (error) => explainPort(error, 'AH_CREATE', pd.device, 'portNumber', av.portNumber),
        undo: (answer) => WVAddressHandle.end(pd, answer.id.id, handle),
      },
      umv,
    );
    return new WVAddressHandle(pd, reply.id.id, handle);
  }

  private static end(pd: WVProtectionDomain, id: bigint, handle: UvpHandle): void {
    const { file, verbs } = pd;
    const done = verbs.preDestroyAv?.(handle) === true;
    if (done || id === 0n) return;
    file.destroy(IoctlCode.AH_DESTROY, id, (status) => verbs.postDestroyAv?.(handle, status));
  }

  protected override destroy(): void {
    WVAddressHandle.end(this.pd, this.id, this.handle);
    this.pd.removeChild(this);
  }
}
