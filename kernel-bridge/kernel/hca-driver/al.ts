/**
 * Kernel clients of the verbs. A client opens the access layer with its device or driver object, which stays referenced
 * until it closes the access layer, so that no callback reaches an unloaded driver.
 */
import { Status } from '../../ioctl/status.js';
import { type DeviceObject, type DriverObject, References } from '../io-manager/device-object.js';
import { atDispatchLevel } from '../io-manager/irql.js';

/** Runs code of a client. Exceptions do not propagate; they are reported as faults of the client. */
export type Contain = (code: () => void) => void;

/** A client's access layer (IB_AL). */
export class IbAl {
  /**
   * Instances of HCAs opened by the client.
   *
   * @internal
   */
  readonly resources = new References();
  /** @internal */
  closed = false;

  /** @internal */
  constructor(
    /** The client's device or driver object, referenced until the access layer is closed. */
    readonly client: DeviceObject | DriverObject,
    /**
     * Runs code on behalf of the client: an exception is a fault of the client and does not affect others.
     *
     * @internal
     */
    readonly contain: Contain,
  ) {}

  /**
   * Calls a routine of the client at DISPATCH_LEVEL.
   *
   * @internal
   */
  callBack(routine: () => void): void {
    this.contain(() => atDispatchLevel(routine));
  }
}

/**
 * Opens the access layer and references the client's device or driver object.
 *
 * @returns SUCCESS (`al`), DEVICE_REMOVED if the client is being removed or unloaded.
 */
export function ibOpenAl(
  client: DeviceObject | DriverObject,
  contain: Contain,
): { status: number; al: IbAl | undefined } {
  if (client.references.ending) return { status: Status.DEVICE_REMOVED, al: undefined };
  client.references.acquire();
  return { status: Status.SUCCESS, al: new IbAl(client, contain) };
}

/** Closes the access layer. @returns SUCCESS, DEVICE_BUSY while the client has instances of HCAs. */
export function ibCloseAl(al: IbAl): number {
  if (al.resources.users > 0) return Status.DEVICE_BUSY;
  if (!al.closed) {
    al.closed = true;
    al.client.references.release();
  }
  return Status.SUCCESS;
}
