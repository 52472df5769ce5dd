/**
 * Door 1: device files of the kernel, and the IOCTL interface that goes through them as bytes.
 *
 * @module kernel-bridge
 */
import { type Counters, type DeviceInterface, queryCounters, queryInterfaces } from './counters.js';
import type { DeviceFile } from './device-file.js';
import { type DeviceFault, requestFault } from './faults.js';
import { Status, StatusError } from './ioctl/status.js';
import type { KernelOptionsInput } from './options.js';
import { allocate as allocateSoft, openDeviceFile as openSoftDeviceFile } from './soft/index.js';

export { COUNTERS_DEVICE, type Counters, type DeviceInterface, type ObjectKind } from './counters.js';
export type { DeviceFile } from './device-file.js';
export { type DeviceFault, FAULTS_DEVICE } from './faults.js';
export * from './ioctl/index.js';
export {
  type CmOptions,
  cmOptionsSchema,
  type KernelOptions,
  type KernelOptionsInput,
  kernelOptionsSchema,
  type OptionsSchema,
  type RcOptions,
  rcOptionsSchema,
} from './options.js';
export { type GetResultOptions, Overlapped, type OverlappedSource } from './overlapped.js';

/**
 * Opens a device file, `\\.\WinVerbs` or `\\.\ibat`. Here the device is that of the soft kernel, a thread that is
 * started by the first open; its options are those of that open, or of the environment variable `ND_OPTIONS` (JSON).
 *
 * @throws StatusError INVALID_PARAMETER for an option, naming it and its limit; NOT_SUPPORTED on Windows; otherwise
 * the status of the kernel with a sentence that says why.
 */
export function openDeviceFile(name: string, options?: KernelOptionsInput): DeviceFile {
  if (process.platform === 'win32') {
    throw new StatusError(
      Status.NOT_SUPPORTED,
      `Opening ${name}: this version has no door to the Windows WinVerbs driver; it runs on Linux, on its own soft kernel.`,
    );
  }
  return openSoftDeviceFile(name, options);
}

/**
 * Memory for large buffers: `bytes` zeroed bytes, page-aligned, on huge pages where the system has them. Register it as any
 * other buffer. It is a memfd: a process of the same user on this host that is sent something from it maps all of it for
 * reading, and copies from there, two to three times as fast as from other memory. All of it is taken from the system at
 * once, and given back when the array was collected, nothing of it is registered any more, and such processes have
 * unmapped it, which they are told to.
 *
 * @param bytes - 1 to `buffer.constants.MAX_LENGTH`. Small buffers are better cut from one large allocation: each takes
 * whole pages and a file descriptor.
 * @throws StatusError INVALID_PARAMETER; NO_MEMORY: the host has not so much; INSUFFICIENT_RESOURCES: no file
 * descriptor is left; NOT_SUPPORTED: the runtime has no external ArrayBuffers.
 */
export function allocate(bytes: number): Uint8Array<ArrayBuffer> {
  return allocateSoft(bytes);
}

/**
 * What the HCA, connection management and the kernel have counted so far, and how many objects are alive. Starts the
 * soft kernel if nothing has yet.
 *
 * @throws StatusError as {@link openDeviceFile}; OBJECT_NAME_NOT_FOUND where the kernel is not the soft one.
 * @example
 * ```ts
 * const { objects, cm } = readCounters();
 * console.log(objects.qp, cm['retransmitted.DREQ'] ?? 0);
 * ```
 */
export function readCounters(options?: KernelOptionsInput): Counters {
  return queryCounters((name) => openDeviceFile(name, options));
}

/**
 * The network interface that each device of this host stands on, for people who know `eth0` better than a GUID. Starts
 * the soft kernel if nothing has yet.
 *
 * @throws StatusError as {@link readCounters}
 */
export function readInterfaces(options?: KernelOptionsInput): DeviceInterface[] {
  return queryInterfaces((name) => openDeviceFile(name, options));
}

/**
 * Makes a device of this thread's soft kernel fail, for tests of what a program does then. `unplug` takes it away as if
 * its network interface were gone: requests that wait end in DEVICE_REMOVED. `plug` brings it back as a new device.
 * `fatal` is an error after which every instance has to be closed; requests that wait end in FILE_FORCED_CLOSED.
 *
 * @throws StatusError as {@link readCounters}; NO_SUCH_DEVICE.
 */
export function injectDeviceFault(guid: bigint, fault: DeviceFault, options?: KernelOptionsInput): void {
  requestFault((name) => openDeviceFile(name, options), guid, fault);
}
