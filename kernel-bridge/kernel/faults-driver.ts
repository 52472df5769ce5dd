/** `\\.\NetworkDirectFaults`, for tests: simulated unplugging and fatal errors, and orderly removal. */
import { FaultsCode } from '../ioctl/codes.js';
import { Status } from '../ioctl/status.js';
import { WvIoGuid } from '../ioctl/structs.js';
import type { HcaDriver } from './hca-driver/driver.js';
import { DeviceObject, DriverObject } from './io-manager/device.js';
import type { Irp } from './io-manager/irp.js';

export class FaultsDriver {
  readonly driver: DriverObject;
  readonly device: DeviceObject;

  constructor(private readonly hcaDriver: HcaDriver) {
    this.driver = new DriverObject('\\Driver\\NetworkDirectFaults', {
      create: (file, irp) =>
        irp.complete(file.relativeName === '' ? Status.SUCCESS : Status.OBJECT_NAME_NOT_FOUND),
      deviceControl: (_file, irp) => this.deviceControl(irp),
      cleanup: () => {},
      close: () => {},
    });
    this.device = new DeviceObject(this.driver, '\\Device\\NetworkDirectFaults', undefined);
  }

  private deviceControl(irp: Irp): number {
    const { hcaDriver } = this;
    const { controlCode, inputLength } = irp.stack;
    const actions = new Map<number, (guid: bigint) => number>([
      [FaultsCode.UNPLUG, (guid) => hcaDriver.unplug(guid)],
      [FaultsCode.PLUG, (guid) => hcaDriver.plug(guid)],
      [FaultsCode.QUERY_REMOVE, (guid) => hcaDriver.queryRemove(guid)],
      [FaultsCode.FATAL, (guid) => hcaDriver.fail(guid)],
    ]);
    const action = actions.get(controlCode);
    if (!action) return irp.complete(Status.PROCEDURE_NOT_FOUND);
    if (inputLength < WvIoGuid.size) return irp.complete(Status.BUFFER_TOO_SMALL);
    return irp.complete(action(WvIoGuid.decode(irp.takeInput()).guid));
  }
}
