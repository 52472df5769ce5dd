/**
 * The control path: device files of the kernel, and the IOCTL interface whose bytes they carry.
 *
 * @module networkdirect/kernel-bridge
 * @group Advanced
 */

import {
  type DeviceFault,
  requestFault,
  requestPartitions,
  requestRemoval,
} from './control/control-requests.js';
import { type Counters, type DeviceInterface, queryCounters, queryInterfaces } from './control/counters.js';
import { type LoadDriverOptions, type LoadedDriver, requestLoad, requestUnload } from './control/drivers.js';
import { type ObservedKernel, type ReadProcessesOptions, readObserved } from './control/observed.js';
import type { DeviceFile } from './door/device-file.js';
import type { Overlapped } from './door/overlapped.js';
import {
  type AllocateOptions,
  allocate as allocateSoft,
  claimLocalName as claimNameSoft,
  type LocalNameClaim,
  observe,
  openDeviceFile as openSoftDeviceFile,
  portsOfLocalName as portsOfNameSoft,
} from './door/soft/index.js';
import { allocateOnWindows, openOnWindows } from './door/windows-kernel.js';
import type { PkeyTables } from './ioctl/pkey-tables.js';
import type { KernelOptionsInput } from './option-checks/option-schemas.js';

export type { DeviceFault } from './control/control-requests.js';
export type { Counters, DeviceInterface, ObjectKind } from './control/counters.js';
export type { LoadDriverOptions, LoadedDriver } from './control/drivers.js';
export type { ObservedKernel, ReadProcessesOptions } from './control/observed.js';
export type { DeviceFile } from './door/device-file.js';
export { type GetResultOptions, Overlapped, type OverlappedSource } from './door/overlapped.js';
export { COUNTERS_DEVICE, DRIVERS_DEVICE, FAULTS_DEVICE, SETTINGS_DEVICE } from './ioctl/control.js';
export * from './ioctl/index.js';
export type { PkeyTables } from './ioctl/pkey-tables.js';
export type * from './ioctl/statistics-form.js';
export {
  type CmOptions,
  cmOptionsSchema,
  type FaultOptions,
  type KernelOptions,
  type KernelOptionsInput,
  kernelOptionsSchema,
  type OptionsError,
  type OptionsIssue,
  type OptionsResult,
  type OptionsSchema,
  type RcOptions,
  rcOptionsSchema,
} from './option-checks/option-schemas.js';

/**
 * Opens a device file, `\\.\WinVerbs` or `\\.\ibat`. If Windows has a WinVerbs driver, it is a device of that driver.
 * Otherwise it is a device of the soft kernel, a thread started by the first open with that open's options, or those of
 * the environment variable `ND_OPTIONS` (JSON). Later opens must not pass other values.
 *
 * @throws StatusError INVALID_PARAMETER for an option, with its name and what it must be; otherwise the status of the kernel or
 * the OS with the reason. On Windows OBJECT_NAME_NOT_FOUND if no driver has the device, and NOT_SUPPORTED if there is a
 * driver, or the option `kernel` requires one, but the package koffi, which calls drivers, is missing
 * (`@networkdirect/win32-x64` includes it).
 */
export function openDeviceFile(name: string, options?: KernelOptionsInput): DeviceFile {
  return (process.platform === 'win32' ? openOnWindows : openSoftDeviceFile)(name, options);
}

/**
 * Allocates memory for large buffers: `bytes` zeroed bytes, page-aligned, on huge pages if the OS has them. Register it
 * like any other buffer. The memory is a memfd. A process of the same user on this host that receives data from it maps
 * all of it for reading and copies from there, two to three times as fast as from other memory. All pages are allocated
 * during the call. They are freed when the array has been collected, nothing in it is registered any more, and such
 * processes, which are notified, have unmapped it.
 *
 * With a Windows driver the memory is private to this process and cannot be detached. Each allocation uses at least 64
 * KiB and some GiB of address space.
 *
 * @param bytes - 1 to `buffer.constants.MAX_LENGTH`; with a Windows driver at most 4 GiB. Cut small buffers from one
 * large allocation, because each allocation uses whole pages and a file descriptor.
 * @param options - `shared`: allocates a SharedArrayBuffer, which the program can also pass to its Workers
 * @throws StatusError INVALID_PARAMETER, NO_MEMORY (the host does not have enough memory), TOO_MANY_OPENED_FILES (no
 * file descriptor is left), INSUFFICIENT_RESOURCES (the limit of a file's size, RLIMIT_FSIZE), NOT_SUPPORTED (the
 * runtime has no external ArrayBuffers, or no external SharedArrayBuffers).
 */
export function allocate(
  bytes: number,
  options?: { readonly shared?: false | undefined },
): Uint8Array<ArrayBuffer>;
/** The same, on a SharedArrayBuffer. Requires Node.js 24.16 or later in the 24.x line, otherwise 26.1 or later. */
export function allocate(bytes: number, options: { readonly shared: true }): Uint8Array<SharedArrayBuffer>;
/** The same, on either kind of buffer. */
export function allocate(
  bytes: number,
  options?: AllocateOptions,
): Uint8Array<ArrayBuffer> | Uint8Array<SharedArrayBuffer>;
/** @internal */
export function allocate(
  bytes: number,
  options?: AllocateOptions,
): Uint8Array<ArrayBuffer> | Uint8Array<SharedArrayBuffer> {
  return (process.platform === 'win32' ? allocateOnWindows : allocateSoft)(bytes, options);
}

export type { AllocateOptions, LocalNameClaim };

/**
 * Claims a name among the processes and threads of this user on this host, so that others can find its owner's port.
 * Linux only.
 *
 * @param name - 1 to 48 letters, digits, or characters of `_.:@-`
 * @throws StatusError ADDRESS_ALREADY_EXISTS (it has an owner), INVALID_PARAMETER, TOO_MANY_OPENED_FILES, NOT_SUPPORTED
 */
export function claimLocalName(name: string): LocalNameClaim {
  return claimNameSoft(name);
}

/**
 * Returns the RDMA ports published by the owner of a name.
 *
 * @param name - as for {@link claimLocalName}
 * @throws StatusError INVALID_PARAMETER, TOO_MANY_OPENED_FILES, NOT_SUPPORTED
 */
export function portsOfLocalName(name: string): number[] {
  return portsOfNameSoft(name);
}

/**
 * Reads the counters of HCA, connection management and kernel, and the number of live objects. Starts the soft kernel
 * if it is not running.
 *
 * @throws StatusError as {@link openDeviceFile}; OBJECT_NAME_NOT_FOUND if the kernel is not the soft kernel.
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
 * Reads the network interface of each device of this host. Its name, such as `eth0`, is easier to recognize than a
 * GUID. Starts the soft kernel if it is not running.
 *
 * @throws StatusError as {@link readCounters}
 */
export function readInterfaces(options?: KernelOptionsInput): DeviceInterface[] {
  return queryInterfaces((name) => openDeviceFile(name, options));
}

/**
 * Reads the statistics of all processes of this user on this host that use the software HCA: their queue pairs,
 * connections, registrations and counters. This process is included if it uses RDMA itself; the call starts nothing.
 * Processes with the option `statistics: false` refuse. Processes of other users cannot be queried.
 *
 * @throws StatusError INVALID_PARAMETER.
 * @example
 * ```ts
 * for (const { pid, statistics } of await readProcesses()) {
 *   console.log(pid, statistics?.counters.hca?.retransmitted_pkts, statistics?.connections.length);
 * }
 * ```
 */
export async function readProcesses(options: ReadProcessesOptions = {}): Promise<ObservedKernel[]> {
  return await readObserved(observe, options);
}

/**
 * Simulates a fault of a device of this thread's soft kernel, to test how a program reacts. `unplug` removes it as if
 * its network interface were gone: pending requests complete with DEVICE_REMOVED. `plug` brings it back as a new
 * device. `fatal` is an error after which every instance must be closed: pending requests complete with
 * FILE_FORCED_CLOSED.
 *
 * @throws StatusError as {@link readCounters}; NO_SUCH_DEVICE.
 */
export function injectDeviceFault(guid: bigint, fault: DeviceFault, options?: KernelOptionsInput): void {
  requestFault((name) => openDeviceFile(name, options), guid, fault);
}

/**
 * Removes a device only while no file is open on it (query-remove), so that no program loses anything. The fault `plug`
 * brings it back.
 *
 * @throws StatusError as {@link readCounters}, NO_SUCH_DEVICE, or DEVICE_BUSY while a program or a driver uses the
 * device. `networkdirect/net` uses it for up to ten seconds after its last connection.
 */
export function removeDevice(guid: bigint, options?: KernelOptionsInput): void {
  requestRemoval((name) => openDeviceFile(name, options), guid);
}

/**
 * Replaces the P_Key tables of this thread's soft kernel (option `pkeys`) while it is running, as a subnet manager
 * does. Each program with an open device is notified with a PARTITION event. An entry is identified by its index: a
 * connection whose entry now contains another partition, or is gone, ends with CONNECTION_ABORTED, and its peer is
 * disconnected. Queue pairs without a connection are kept, but their packets no longer match those of their peers.
 *
 * @param pkeys - One table for all ports, or tables by interface name; other interfaces have only the default
 * partition.
 * @throws StatusError INVALID_PARAMETER, NOT_SUPPORTED (the OS owns the tables), otherwise as {@link readCounters}.
 * @example
 * ```ts
 * setPartitions([0xffff, 0x8001]);
 * ```
 */
export function setPartitions(pkeys: PkeyTables, options?: KernelOptionsInput): void {
  requestPartitions((name) => openDeviceFile(name, options), pkeys);
}

/**
 * Loads a driver into this thread's soft kernel: an ES module or CommonJS file that exports `driverEntry`
 * (`networkdirect/kernel`). Its code runs on the kernel's thread, where it may use HCAs through the kernel's own verbs
 * while the program's thread is blocked. Starts the kernel if it is not running; the driver stays until it is unloaded
 * or the kernel ends. A driver whose code hangs or throws while it is being loaded is refused; a later exception ends
 * its own request and is reported as a warning.
 *
 * @param file - The path, relative to the working directory, or the `file:` URL of a regular file of at most 16 MiB.
 * @returns a request that completes with SUCCESS, DRIVER_UNABLE_TO_LOAD (with the reason), OBJECT_NAME_COLLISION (a
 * driver with the name is already loaded), INSUFFICIENT_RESOURCES (64 drivers are loaded), CANCELED (the wait was
 * cancelled, and the loading continues).
 * @throws StatusError INVALID_PARAMETER; otherwise as {@link readCounters}.
 */
export function loadDriver(file: string | URL, options: LoadDriverOptions = {}): Overlapped<LoadedDriver> {
  return requestLoad((name) => openDeviceFile(name, options.kernel), file, options);
}

/**
 * Unloads a driver. Its devices accept no new files. When the last file is closed, its unload routine runs. The request
 * completes when nothing references the driver any more: no device, no access layer, no timer.
 *
 * @param name - As in {@link LoadedDriver}, or without `\Driver\`.
 * @returns a request that completes with SUCCESS, OBJECT_NAME_NOT_FOUND, DEVICE_BUSY (it is being unloaded),
 * INVALID_DEVICE_REQUEST (it has no unload routine), INTERNAL_ERROR (its unload routine failed), CANCELED (the wait was
 * cancelled, and the unloading continues).
 * @throws StatusError INVALID_PARAMETER; otherwise as {@link readCounters}.
 */
export function unloadDriver(name: string, options?: KernelOptionsInput): Overlapped<void> {
  return requestUnload((device) => openDeviceFile(device, options), name);
}
