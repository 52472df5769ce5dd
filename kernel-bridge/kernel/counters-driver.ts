/** `\\.\NetworkDirectCounters`: what HCA, connection management and the kernel itself count, for diagnosis. */
import { CountersCode } from '../ioctl/codes.js';
import { Status } from '../ioctl/status.js';
import { DeviceObject, DriverObject } from './io-manager/device.js';
import type { Irp } from './io-manager/irp.js';

/** Groups of counters by name. */
export type CounterGroups = Readonly<Record<string, Readonly<Record<string, number>>>>;

export class CountersDriver {
  readonly driver: DriverObject;
  readonly device: DeviceObject;

  constructor(private readonly collect: () => CounterGroups) {
    this.driver = new DriverObject('\\Driver\\NetworkDirectCounters', {
      create: (file, irp) =>
        irp.complete(file.relativeName === '' ? Status.SUCCESS : Status.OBJECT_NAME_NOT_FOUND),
      deviceControl: (_file, irp) => this.deviceControl(irp),
      cleanup: () => {},
      close: () => {},
    });
    this.device = new DeviceObject(this.driver, '\\Device\\NetworkDirectCounters', undefined);
  }

  private deviceControl(irp: Irp): number {
    if (irp.stack.controlCode !== CountersCode.QUERY) return irp.complete(Status.PROCEDURE_NOT_FOUND);
    const text = new TextEncoder().encode(JSON.stringify(this.collect()));
    if (text.length > irp.outputCapacity) return irp.complete(Status.BUFFER_TOO_SMALL);
    irp.output.set(text);
    return irp.complete(Status.SUCCESS, text.length);
  }
}
