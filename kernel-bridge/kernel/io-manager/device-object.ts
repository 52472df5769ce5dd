/** Drivers, devices, open files, and the namespace of devices. */
import { Status } from '../../ioctl/status.js';
import type { Irp } from './irp.js';
import { DriverFault } from './irql.js';

/** Returned by a create routine that has put the new name into `irp.reparseName`. */
export const STATUS_REPARSE = 0x0000_0104;

/** A reference count; the last release runs the pending callback, once. */
export class References {
  private count = 0;
  private waiting: (() => void) | undefined = undefined;

  /** Number of references. */
  get users(): number {
    return this.count;
  }

  /** Adds a reference. @throws DriverFault after {@link end}. */
  acquire(): void {
    if (this.waiting) throw new DriverFault('referenced after end() was called');
    this.count++;
  }

  /** Releases a reference. @throws DriverFault if none is held. */
  release(): void {
    if (this.count === 0) throw new DriverFault('released more often than referenced');
    this.count--;
    if (this.count === 0 && this.waiting) this.waiting();
  }

  /** Calls `ended` as soon as no reference is left. New references are refused from now on. */
  end(ended: () => void): void {
    if (this.waiting) throw new DriverFault('ended twice');
    this.waiting = ended;
    if (this.count === 0) ended();
  }

  /** Whether {@link end} was called: {@link acquire} is a fault from now on. */
  get ending(): boolean {
    return this.waiting !== undefined;
  }
}

/** A driver's dispatch table. Each routine completes the IRP or returns PENDING, and never blocks. */
export interface DriverDispatch {
  /** A file is being opened. */
  create(file: FileObject, irp: Irp): number;
  /** An IOCTL on a file. */
  deviceControl(file: FileObject, irp: Irp): number;
  /** The last handle was closed: all pending requests must be completed before this returns. */
  cleanup(file: FileObject): void;
  /** The file has no more requests. */
  close(file: FileObject): void;
}

/** A driver; unloading waits for its devices. */
export class DriverObject {
  /** Held by the driver's devices; unloading waits until there are none. */
  readonly references = new References();
  /** Number of files of its devices that are open, or being opened or closed. */
  openFiles = 0;
  /** Runs when the last file has been closed. */
  onIdle: () => void = () => {};

  constructor(
    /** The name under which it is loaded, such as `\Driver\Echo`. */
    readonly name: string,
    /** The routines for its devices' requests. */
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
    /** The driver that created it. */
    readonly driver: DriverObject,
    /** The name in the namespace, such as `\Device\Echo`; not case-sensitive. */
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
  /** The driver's own data for this file. */
  context: unknown = undefined;
  /** Whether the last handle was closed: no new requests are accepted. */
  closing = false;
  /** Requests of this file that have not completed. */
  readonly outstanding = new Set<Irp>();

  constructor(
    /** The file's number for the program, from 1. */
    readonly id: number,
    /** The opened device, referenced until the file is closed. */
    readonly device: DeviceObject,
    /** The part of the name after the device's name, without the separator. */
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
 * Names of devices and links between names. Comparison ignores case, as on Windows. `\\.\X` is `\DosDevices\X`, which a
 * driver links to its device.
 */
export class DeviceNamespace {
  private readonly devices = new Map<string, DeviceObject>();
  private readonly links = new Map<string, string>();

  add(device: DeviceObject): void {
    const key = device.name.toLowerCase();
    if (this.devices.has(key)) throw new DriverFault(`device name ${device.name} is already in use`);
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

  /** Creates `name` as an alias of `target`. */
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
