/** A driver loaded by a program: its object, its devices and IOCTLs, and the isolation of its code. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { Status } from '../../ioctl/status.js';
import {
  DeviceObject,
  type DriverDispatch,
  DriverObject,
  type FileObject,
} from '../io-manager/device-object.js';
import type { IoManager } from '../io-manager/io-manager.js';
import type { Irp } from '../io-manager/irp.js';
import { DriverFault } from '../io-manager/irql.js';

/** Serves an IOCTL: completes its IRP, or marks it pending and completes it later. @returns `irp.returnStatus`. */
export type IoctlHandler = (irp: Irp, file: FileObject) => number;

/** Routines of a driver besides its IOCTLs; all are optional. */
export interface DriverRoutines {
  /** A file is being opened: completes the IRP. Default: SUCCESS for a device's own name. */
  create?(file: FileObject, irp: Irp): number;
  /** The last handle of a file was closed: its pending requests must be completed before this returns. */
  cleanup?(file: FileObject): void;
  /** The file has no more requests: frees the driver's state of it. */
  close?(file: FileObject): void;
  /**
   * The driver is being unloaded, and no file of its devices is open: releases everything. Without this routine the
   * driver cannot be unloaded.
   */
  unload?(): void | Promise<void>;
}

interface Served {
  readonly handler: IoctlHandler;
  readonly inputLength: number;
  readonly outputLength: number;
}

/** The driver whose code is running, including its timers and promises. */
const running = new AsyncLocalStorage<ClientDriver>();

/**
 * The driver whose code the calling asynchronous context belongs to.
 *
 * @internal
 */
export function runningDriver(): ClientDriver | undefined {
  return running.getStore();
}

/** The object of a loaded driver, which its entry routine fills in (DRIVER_OBJECT). */
export class ClientDriver extends DriverObject {
  /** Set by the entry routine. */
  routines: DriverRoutines = {};
  /** The driver's devices accept new files once it is loaded, until unloading begins. @internal */
  phase: 'loading' | 'loaded' | 'unloading' = 'loading';
  private readonly served = new Map<number, Served>();
  private readonly devices = new Map<DeviceObject, readonly string[]>();

  /** @internal */
  constructor(
    name: string,
    /** Parameters passed by the loading program: any JSON value. */
    readonly parameters: unknown,
    private readonly io: IoManager,
  ) {
    super(name, new ClientDispatch());
    (this.dispatch as ClientDispatch).driver = this;
  }

  /** Names of its devices. @internal */
  get deviceNames(): string[] {
    return [...this.devices.keys()].map(({ name }) => name);
  }

  /**
   * Creates a device (IoCreateDevice). Programs open it through one of its links.
   *
   * @param name - `\Device\…`; must be unique.
   * @param links - Names that refer to it (IoCreateSymbolicLink): `\DosDevices\X` is `\\.\X` for programs.
   * @throws DriverFault if a name is in use, or the driver was unloaded or refused.
   */
  createDevice<E = undefined>(name: string, links: readonly string[] = [], extension?: E): DeviceObject<E> {
    const { namespace } = this.io;
    this.assertThere();
    for (const one of [name, ...links]) {
      if (!/^\\[^\\]+\\[^\\]/.test(one))
        throw new DriverFault(`'${one}' is not a valid device name such as \\Device\\Disk`);
      if (namespace.has(one)) throw new DriverFault(`the name ${one} is already in use`);
    }
    const device = new DeviceObject(this, name, extension as E);
    namespace.add(device);
    for (const link of links) namespace.link(link, name);
    this.devices.set(device, links);
    return device;
  }

  /** Deletes a device and its links; it is removed when its last reference is released (IoDeleteDevice). */
  deleteDevice(device: DeviceObject): void {
    const links = this.devices.get(device);
    if (!links) return;
    this.devices.delete(device);
    for (const link of links) this.io.namespace.unlink(link);
    this.io.namespace.delete(device);
    device.remove();
  }

  /** @internal */
  deleteDevices(): void {
    for (const device of [...this.devices.keys()]) this.deleteDevice(device);
  }

  /**
   * Registers an IOCTL of the driver's devices. Requests with less input or output than the given bytes fail with
   * BUFFER_TOO_SMALL, and unregistered ones with INVALID_DEVICE_REQUEST.
   */
  onIoctl(code: number, handler: IoctlHandler, inputLength = 0, outputLength = 0): void {
    this.served.set(code >>> 0, { handler, inputLength, outputLength });
  }

  /** @internal The handler of a request, or the status of its refusal. */
  handlerOf({ stack }: Irp): IoctlHandler | number {
    const served = this.served.get(stack.controlCode);
    if (!served) return Status.INVALID_DEVICE_REQUEST;
    const short = stack.inputLength < served.inputLength || stack.outputLength < served.outputLength;
    return short ? Status.BUFFER_TOO_SMALL : served.handler;
  }

  /** @internal @throws DriverFault for anything that would outlive the driver, once it was unloaded. */
  assertThere(): void {
    if (this.references.ending) throw new DriverFault(`${this.name} was unloaded, or its loading has failed`);
  }

  /**
   * Runs code of the driver; an exception becomes a {@link DriverFault} with the driver's name.
   *
   * @internal
   */
  run<T>(code: () => T): T {
    return running.run(this, () => {
      try {
        return code();
      } catch (error) {
        throw this.faultOf(error);
      }
    });
  }

  /**
   * Runs code of the driver for a caller that does not handle its faults: they are counted and reported.
   *
   * @internal
   */
  contain(code: () => void): void {
    this.io.contain(() => this.run(code));
  }

  /** @internal */
  faultOf(error: unknown): DriverFault {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return new DriverFault(`${this.name}: ${text}`, { cause: error });
  }
}

/** Calls the driver's routines, each in isolation. */
class ClientDispatch implements DriverDispatch {
  driver!: ClientDriver;

  create(file: FileObject, irp: Irp): number {
    const { driver } = this;
    // The I/O manager of Windows also opens no device of a driver that is still initializing.
    if (driver.phase === 'loading') return irp.complete(Status.DEVICE_NOT_READY);
    if (driver.phase === 'unloading') return irp.complete(Status.DEVICE_REMOVED);
    const { create } = driver.routines;
    return create
      ? driver.run(() => create.call(driver.routines, file, irp))
      : irp.complete(file.relativeName === '' ? Status.SUCCESS : Status.OBJECT_NAME_NOT_FOUND);
  }

  deviceControl(file: FileObject, irp: Irp): number {
    const { driver } = this;
    const handler = driver.handlerOf(irp);
    return typeof handler === 'number' ? irp.complete(handler) : driver.run(() => handler(irp, file));
  }

  cleanup(file: FileObject): void {
    this.driver.run(() => this.driver.routines.cleanup?.(file));
  }

  close(file: FileObject): void {
    this.driver.run(() => this.driver.routines.close?.(file));
  }
}
