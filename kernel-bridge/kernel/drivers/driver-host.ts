/** Loads and unloads drivers. This module is loaded with the first driver, so that other programs do not pay for it. */
import { Status, StatusError } from '../../ioctl/status.js';
import { DriverFault } from '../io-manager/irql.js';
import { ClientDriver, runningDriver } from './client-driver.js';
import { type KernelPlatform, KernelServices } from './kernel-services.js';
import {
  awaitBounded,
  exportedFunction,
  type ImportModule,
  LoadError,
  loadModule,
  runBounded,
} from './load-module.js';

/** A driver's entry routine (DriverEntry): fills in the driver object and creates devices. It may be asynchronous. */
export type DriverEntry = (driver: ClientDriver, kernel: KernelServices) => void | Promise<void>;

/** The input of LOAD. */
export interface LoadRequest {
  /** A `file:` URL. */
  readonly url: string;
  /** The driver's name, without `\Driver\`. */
  readonly name: string;
  readonly parameters: unknown;
  readonly timeoutMs: number;
}

/** A loaded driver. */
export interface LoadedDriver {
  /** `\Driver\…` */
  readonly name: string;
  /** Names of its devices, `\Device\…`. */
  readonly devices: readonly string[];
}

/** Maximum number of drivers that are loaded or being loaded. */
export const MOST_DRIVERS = 64;

/** Prevents an exception of a driver from ending the kernel's thread. */
export interface ThreadHooks {
  importModule: ImportModule;
  /** Whether an uncaught exception comes from a driver, so that the thread does not end. */
  contains: () => boolean;
}

/** A driver and its resources. */
interface Loaded {
  readonly driver: ClientDriver;
  readonly kernel: KernelServices;
}

export class DriverHost {
  private readonly drivers = new Map<string, Loaded>();
  private readonly loading = new Set<string>();

  constructor(
    private readonly platform: KernelPlatform,
    private readonly hooks: ThreadHooks,
  ) {
    hooks.contains = () => runningDriver() !== undefined;
    process.on('uncaughtException', (error) => {
      const driver = runningDriver();
      // Exceptions of other code end the thread; the channel already has the reason.
      if (!driver) process.exit(1);
      driver.contain(() => {
        throw error;
      });
    });
  }

  private key(name: string): string {
    return name.toLowerCase();
  }

  /**
   * Loads a module and runs its `driverEntry`. On failure nothing of the driver remains.
   *
   * @throws StatusError OBJECT_NAME_COLLISION (the name is in use), INSUFFICIENT_RESOURCES ({@link MOST_DRIVERS}),
   * DRIVER_UNABLE_TO_LOAD with the reason.
   */
  async load(request: LoadRequest): Promise<LoadedDriver> {
    const { name, url } = request;
    const key = this.key(name);
    if (this.drivers.has(key) || this.loading.has(key)) {
      throw new StatusError(Status.OBJECT_NAME_COLLISION, `a driver with the name ${name} is already loaded`);
    }
    if (this.drivers.size + this.loading.size >= MOST_DRIVERS) {
      throw new StatusError(
        Status.INSUFFICIENT_RESOURCES,
        `at most ${MOST_DRIVERS} drivers can be loaded; unload one before ${name}`,
      );
    }
    const driver = new ClientDriver(`\\Driver\\${name}`, request.parameters, this.platform.io);
    const kernel = new KernelServices(driver, this.platform);
    this.loading.add(key);
    try {
      await this.enter(request, driver, kernel);
      driver.phase = 'loaded';
      this.drivers.set(key, { driver, kernel });
      return { name: driver.name, devices: driver.deviceNames };
    } catch (error) {
      // Its entry routine may still be running; all of its further calls are refused.
      driver.unload(() => {});
      driver.deleteDevices();
      kernel.destroy();
      const reason = error instanceof Error ? error.message : String(error);
      throw new StatusError(Status.DRIVER_UNABLE_TO_LOAD, `${url} was not loaded: ${reason}`);
    } finally {
      this.loading.delete(key);
    }
  }

  private async enter(request: LoadRequest, driver: ClientDriver, kernel: KernelServices): Promise<void> {
    const { url, timeoutMs } = request;
    const module = await driver.run(() => loadModule(url, timeoutMs, this.hooks.importModule));
    const entry = exportedFunction(module, 'driverEntry') as DriverEntry;
    const what = 'driverEntry';
    try {
      const entered = driver.run(() => runBounded(() => entry(driver, kernel), timeoutMs, what));
      await awaitBounded(Promise.resolve(entered), timeoutMs, what);
    } catch (error) {
      const thrown = error instanceof DriverFault ? error.cause : error;
      if (thrown instanceof LoadError) throw thrown;
      const { message } = error instanceof DriverFault ? error : driver.faultOf(error);
      throw new LoadError(`${what} failed, ${message}`, { cause: error });
    }
  }

  /**
   * Unloads a driver: its devices accept no new files, and when no file is open its unload routine runs. Completes when
   * the driver is no longer referenced.
   *
   * @throws StatusError OBJECT_NAME_NOT_FOUND, INVALID_DEVICE_REQUEST (no unload routine), DEVICE_BUSY (being
   * unloaded), INTERNAL_ERROR (its unload routine failed; the driver remains, without devices, and may be unloaded
   * again).
   */
  async unload(name: string): Promise<void> {
    const loaded = this.drivers.get(this.key(name));
    if (!loaded)
      throw new StatusError(Status.OBJECT_NAME_NOT_FOUND, `no driver with the name ${name} is loaded`);
    const { driver, kernel } = loaded;
    if (driver.phase === 'unloading')
      throw new StatusError(Status.DEVICE_BUSY, `${name} is already being unloaded`);
    if (!driver.routines.unload) {
      const text = `${name} has no unload routine; it stays loaded while the kernel is running`;
      throw new StatusError(Status.INVALID_DEVICE_REQUEST, text);
    }
    driver.phase = 'unloading';
    await new Promise<void>((resolve) => {
      driver.onIdle = resolve;
      if (driver.openFiles === 0) resolve();
    });
    try {
      await driver.run(() => driver.routines.unload?.());
    } catch (error) {
      driver.phase = 'loaded';
      throw new StatusError(
        Status.INTERNAL_ERROR,
        `the unload routine failed, ${error instanceof DriverFault ? error.message : driver.faultOf(error).message}`,
      );
    } finally {
      driver.deleteDevices();
    }
    await new Promise<void>((resolve) => driver.unload(resolve));
    kernel.destroy();
    this.drivers.delete(this.key(name));
  }
}
