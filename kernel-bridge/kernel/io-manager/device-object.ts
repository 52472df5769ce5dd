/** Drivers, devices, open files, and the namespace of devices. */
import { Status } from '../../ioctl/status.js';
import type { Irp } from './irp.js';
import { DriverFault } from './irql.js';

/** A create routine that returns this has put the new name into `irp.reparseName`. */
export const STATUS_REPARSE = 0x0000_0104;

/** A reference count; the last release runs the waiting functions, once. */
export class References {
  private count = 0;
  private waiting: (() => void) | undefined = undefined;

  /** The number of references that are held. */
  get users(): number {
    return this.count;
  }

  /** Adds a reference. @throws DriverFault after the end was asked for. */
  acquire(): void {
    if (this.waiting) throw new DriverFault('referenced after its end was asked for');
    this.count++;
  }

  /** Releases a reference. @throws DriverFault if there is none. */
  release(): void {
    if (this.count === 0) throw new DriverFault('released more often than referenced');
    this.count--;
    if (this.count === 0 && this.waiting) this.waiting();
  }

  /** Calls `ended` as soon as there is no reference left; new references are refused from now on. */
  end(ended: () => void): void {
    if (this.waiting) throw new DriverFault('ended twice');
    this.waiting = ended;
    if (this.count === 0) ended();
  }

  /** The end was asked for: {@link acquire} is a fault from now on. */
  get ending(): boolean {
    return this.waiting !== undefined;
  }
}

/** A driver's dispatch table. Each routine completes the IRP or returns PENDING, and never blocks. */
export interface DriverDispatch {
  /** A file is opened. */
  create(file: FileObject, irp: Irp): number;
  /** An IOCTL on a file. */
  deviceControl(file: FileObject, irp: Irp): number;
  /** The last handle is closed: all pending requests must be completed before it returns. */
  cleanup(file: FileObject): void;
  /** The file has no request any more. */
  close(file: FileObject): void;
}

/** A driver; unloading waits for its devices. */
export class DriverObject {
  /** Held by the driver's devices; unloading waits until there are none. */
  readonly references = new References();
  /** Files of its devices that are open, or being opened or closed. */
  openFiles = 0;
  /** Runs when the last file has been closed. */
  onIdle: () => void = () => {};

  constructor(
    /** The name under which it is loaded, such as `\Driver\Echo`. */
    readonly name: string,
    /** The routines that its devices' requests go to. */
    readonly dispatch: DriverDispatch,
  ) {}

  /** Runs `unloaded` when the last device is gone. */
  unload(unloaded: () => void): void {
    this.references.end(unloaded);
  }
}

/** A device of a driver. Files and clients hold references; removal waits for them. */
export class DeviceObject<E = unknown> {
  /** Held by open files and by clients; removal waits until there are none. */
  readonly references = new References();

  constructor(
    /** The driver that has made it. */
    readonly driver: DriverObject,
    /** The name in the namespace, such as `\Device\Echo`; its case does not matter. */
    readonly name: string,
    /** The driver's own data. */
    readonly extension: E,
  ) {
    driver.references.acquire();
  }

  /** Calls `removed` when no file and no client uses the device any more, and then releases the driver. */
  remove(removed: () => void = () => {}): void {
    this.references.end(() => {
      this.driver.references.release();
      removed();
    });
  }
}

/** An open file. */
export class FileObject {
  /** The driver's own data of this file. */
  context: unknown = undefined;
  /** The last handle is closed: no new requests are taken. */
  closing = false;
  /** Requests of this file that have not completed. */
  readonly outstanding = new Set<Irp>();

  constructor(
    /** The number by which the program names the file, from 1. */
    readonly id: number,
    /** The device that is open, referenced until the file is closed. */
    readonly device: DeviceObject,
    /** The part of the name behind the device's name, without the separator. */
    readonly relativeName: string,
  ) {}
}

/** The result of resolving a name: the device and the rest of the name. */
export interface ResolvedName {
  device: DeviceObject;
  relativeName: string;
}

export const maxReparse = 8;

/**
 * Names of devices and links between names. Comparison ignores case, as Windows does. `\\.\X` is `\DosDevices\X`,
 * which a driver links to its device.
 */
export class DeviceNamespace {
  private readonly devices = new Map<string, DeviceObject>();
  private readonly links = new Map<string, string>();

  add(device: DeviceObject): void {
    const key = device.name.toLowerCase();
    if (this.devices.has(key)) throw new DriverFault(`device name ${device.name} is taken`);
    this.devices.set(key, device);
  }

  /** Whether a device or a link has this name. */
  has(name: string): boolean {
    const key = name.toLowerCase();
    return this.devices.has(key) || this.links.has(key);
  }

  delete(device: DeviceObject): void {
    const key = device.name.toLowerCase();
    if (this.devices.get(key) === device) this.devices.delete(key);
  }

  /** Makes `name` an alias of `target`. */
  link(name: string, target: string): void {
    this.links.set(name.toLowerCase(), target);
  }

  unlink(name: string): void {
    this.links.delete(name.toLowerCase());
  }

  /** The device with the longest name that is a prefix of `name`, with links resolved; or a status. */
  resolve(name: string): ResolvedName | number {
    let current = name.startsWith('\\\\.\\') ? `\\DosDevices\\${name.slice(4)}` : name;
    for (let step = 0; step < maxReparse; step++) {
      if (!current.startsWith('\\') || current.length > 1024) return Status.OBJECT_NAME_INVALID;
      const parts = current.split('\\');
      let linked: string | undefined;
      for (let n = parts.length; n > 1; n--) {
        const prefix = parts.slice(0, n).join('\\').toLowerCase();
        const rest = parts.slice(n).join('\\');
        const device = this.devices.get(prefix);
        if (device) return { device, relativeName: rest };
        const target = this.links.get(prefix);
        if (target !== undefined) {
          linked = rest === '' ? target : `${target}\\${rest}`;
          break;
        }
      }
      if (linked === undefined) return Status.OBJECT_NAME_NOT_FOUND;
      current = linked;
    }
    return Status.OBJECT_NAME_INVALID;
  }
}
