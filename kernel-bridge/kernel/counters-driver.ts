/** `\\.\NetworkDirectCounters`, for diagnosis: counters of HCA, connection management and kernel; device names. */
import { CountersCode } from '../ioctl/codes.js';
import { Status } from '../ioctl/status.js';
import { DeviceObject, DriverObject } from './io-manager/device.js';
import type { Irp } from './io-manager/irp.js';

/** Groups of counters by name. */
export type CounterGroups = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** A device's network interface, as in the answer to INTERFACES. */
export interface InterfaceRecord {
  /** 16 hexadecimal digits: JSON has no numbers of 64 bits. */
  readonly guid: string;
  readonly name: string;
  readonly index: number;
}

export class CountersDriver {
  readonly driver: DriverObject;
  readonly device: DeviceObject;

  constructor(
    private readonly collect: () => CounterGroups,
    private readonly interfaces: () => readonly InterfaceRecord[],
  ) {
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
    const { controlCode } = irp.stack;
    if (controlCode === CountersCode.QUERY) return this.answer(irp, this.collect());
    if (controlCode === CountersCode.INTERFACES) return this.answer(irp, this.interfaces());
    return irp.complete(Status.PROCEDURE_NOT_FOUND);
  }

  private answer(irp: Irp, value: unknown): number {
    const text = new TextEncoder().encode(JSON.stringify(value));
    if (text.length > irp.outputCapacity) return irp.complete(Status.BUFFER_TOO_SMALL);
    irp.output.set(text);
    return irp.complete(Status.SUCCESS, text.length);
  }
}
