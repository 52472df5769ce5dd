/**
 * Door 1: device files of the kernel, and the IOCTL interface whose bytes they carry.
 *
 * @module kernel-bridge
 */
import { type Counters, type DeviceInterface, queryCounters, queryInterfaces } from './counters.js';
import type { DeviceFile } from './device-file.js';
import { type DeviceFault, requestFault } from './faults.js';
import type { KernelOptionsInput } from './options.js';
import {
  allocate as allocateSoft,
  openDeviceFile as openSoftDeviceFile,
  resolveKernelOptions,
} from './soft/index.js';
import { openWindowsFile } from './windows/index.js';

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
 * Opens a device file, `\\.\WinVerbs` or `\\.\ibat`. On Windows the device is that of the WinVerbs driver. Elsewhere it is that of the soft
 * kernel, a thread that is started by the first open; its options are those of that open, or of the environment variable
 * `ND_OPTIONS` (JSON).
 *
 * @throws StatusError INVALID_PARAMETER for an option, naming it and its limit; otherwise the status of the kernel or the system with a
 * sentence that says why. On Windows OBJECT_NAME_NOT_FOUND: no driver has the device; NOT_SUPPORTED: the package koffi is missing.
 */
export function openDeviceFile(name: string, options?: KernelOptionsInput): DeviceFile {
  if (process.platform !== 'win32') return openSoftDeviceFile(name, options);
  resolveKernelOptions(options);
  return openWindowsFile(name);
}

/**
 * Memory for large buffers: `bytes` zeroed bytes, page-aligned, on huge pages where the system has them. Register it
 * like any other buffer. It is a memfd. When a process of the same user on this host receives data from it, that
 * process maps all of it for reading and copies from there, two to three times as fast as from other memory. The pages
 * are allocated at once. They are freed when the array was collected, nothing of it is registered any more, and such
 * processes, which are notified, have unmapped it.
 *
 * @param bytes - 1 to `buffer.constants.MAX_LENGTH`. Cut small buffers from one large allocation, because each
 *   allocation takes whole pages and a file descriptor.
 * @throws StatusError INVALID_PARAMETER; NO_MEMORY: the host has not enough memory; INSUFFICIENT_RESOURCES: no file
 *   descriptor is left; NOT_SUPPORTED: the runtime has no external ArrayBuffers.
 */
export function allocate(bytes: number): Uint8Array<ArrayBuffer> {
  return allocateSoft(bytes);
}

/**
 * The counters of HCA, connection management and kernel, and the number of live objects. Starts the soft kernel if it
 * does not run yet.
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
 * The network interface of each device of this host, for people who know `eth0` better than a GUID. Starts the soft
 * kernel if it does not run yet.
 *
 * @throws StatusError as {@link readCounters}
 */
export function readInterfaces(options?: KernelOptionsInput): DeviceInterface[] {
  return queryInterfaces((name) => openDeviceFile(name, options));
}

/**
 * Makes a device of this thread's soft kernel fail, to test how a program reacts. `unplug` removes it as if its network
 * interface were gone: waiting requests end in DEVICE_REMOVED. `plug` brings it back as a new device. `fatal` is an
 * error after which every instance must be closed: waiting requests end in FILE_FORCED_CLOSED.
 *
 * @throws StatusError as {@link readCounters}; NO_SUCH_DEVICE.
 */
export function injectDeviceFault(guid: bigint, fault: DeviceFault, options?: KernelOptionsInput): void {
  requestFault((name) => openDeviceFile(name, options), guid, fault);
}
