/** `\\.\NetworkDirectSettings`: what can be changed while the kernel runs, and changes of the host to wait for. */
import { SettingsCode } from '../ioctl/codes.js';
import { arePkeyTables, type PkeyTables } from '../ioctl/pkey-tables.js';
import { Status } from '../ioctl/status.js';
import { ChangeCount } from '../ioctl/structs.js';
import { DeviceObject, DriverObject } from './io-manager/device.js';
import { type Irp, IrpQueue } from './io-manager/irp.js';
import type { WorkItems } from './io-manager/work-items.js';

export class SettingsDriver {
  readonly driver: DriverObject;
  readonly device: DeviceObject;
  /** How many changes of devices and addresses there were, and one. */
  private changes = 1;
  private readonly waits = new IrpQueue();

  constructor(
    /** Replaces the P_Key tables of all ports; answers a status. */
    private readonly setPkeys: (tables: PkeyTables) => number,
    private readonly work: WorkItems,
  ) {
    this.driver = new DriverObject('\\Driver\\NetworkDirectSettings', {
      create: (file, irp) =>
        irp.complete(file.relativeName === '' ? Status.SUCCESS : Status.OBJECT_NAME_NOT_FOUND),
      deviceControl: (_file, irp) => this.deviceControl(irp),
      cleanup: () => {},
      close: () => {},
    });
    this.device = new DeviceObject(this.driver, '\\Device\\NetworkDirectSettings', undefined);
  }

  private deviceControl(irp: Irp): number {
    const { controlCode } = irp.stack;
    if (controlCode === SettingsCode.AWAIT_CHANGE) return this.awaitChange(irp);
    if (controlCode !== SettingsCode.SET_PKEYS) return irp.complete(Status.PROCEDURE_NOT_FOUND);
    const tables = parsed(irp.takeInput());
    if (!arePkeyTables(tables)) return irp.complete(Status.INVALID_PARAMETER);
    // The devices are looked at, which may wait.
    return this.work.pend(irp, () => irp.complete(this.setPkeys(tables)));
  }

  /** Whether a program waits for a change. */
  get watching(): boolean {
    return this.waits.size > 0;
  }

  /** The devices, or their addresses, have changed. */
  changed(): void {
    this.changes = (this.changes % 0xffff_ffff) + 1;
    for (let next = this.waits.removeFirst(); next; next = this.waits.removeFirst()) this.answer(next.irp);
  }

  private awaitChange(irp: Irp): number {
    const { size } = ChangeCount;
    if (irp.stack.inputLength < size || irp.outputCapacity < size)
      return irp.complete(Status.BUFFER_TOO_SMALL);
    if (ChangeCount.decode(irp.takeInput()).count !== this.changes) return this.answer(irp);
    this.waits.insert(irp, undefined);
    return Status.PENDING;
  }

  private answer(irp: Irp): number {
    ChangeCount.encode({ count: this.changes }, irp.output);
    return irp.complete(Status.SUCCESS, ChangeCount.size);
  }
}

/** The value that JSON text stands for; undefined: it is none. */
function parsed(text: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(text)) as unknown;
  } catch {
    return undefined;
  }
}
