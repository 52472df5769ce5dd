/**
 * Door 1: device files of the kernel, and the IOCTL interface whose bytes they carry.
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
 * Opens a device file, `\\.\WinVerbs` or `\\.\ibat`. Where Windows has a WinVerbs driver, the device is that driver's. Elsewhere it is that
 * of the soft kernel, a thread that is started by the first open; its options are those of that open, or of the environment variable
 * `ND_OPTIONS` (JSON).
 *
 * @throws StatusError INVALID_PARAMETER for an option, naming it and its limit; otherwise the status of the kernel or the system with a
 * sentence that says why. On Windows OBJECT_NAME_NOT_FOUND: nobody has the device; NOT_SUPPORTED: there is a driver, or the option `kernel`
 * wants it, and the package koffi is missing, which calls drivers (`@networkdirect/win32-x64` brings it).
 */
export function openDeviceFile(name: string, options?: KernelOptionsInput): DeviceFile {
  return (process.platform === 'win32' ? openOnWindows : openSoftDeviceFile)(name, options);
}

/**
 * Memory for large buffers: `bytes` zeroed bytes, page-aligned, on huge pages where the system has them. Register it
 * like any other buffer. It is a memfd. When a process of the same user on this host receives data from it, that
 * process maps all of it for reading and copies from there, two to three times as fast as from other memory. The pages
 * are allocated at once. They are freed when the array was collected, nothing of it is registered any more, and such
 * processes, which are notified, have unmapped it.
 *
 * With a driver of Windows it is memory of this process alone, which nothing can detach: at least 64 KiB and some GiB of address space
 * for each allocation.
 *
 * @param bytes - 1 to `buffer.constants.MAX_LENGTH`. With a driver of Windows 4 GiB at most. Cut small buffers from one large allocation, because each
 *   allocation takes whole pages and a file descriptor.
 * @param options - `shared`: on a SharedArrayBuffer, which the program can also pass to its Workers
 * @throws StatusError INVALID_PARAMETER; NO_MEMORY: the host has not enough memory; TOO_MANY_OPENED_FILES: no file
 *   descriptor is left; INSUFFICIENT_RESOURCES: the limit of a file's size (RLIMIT_FSIZE); NOT_SUPPORTED: the runtime has no external ArrayBuffers,
 *   or no external SharedArrayBuffers.
 */
export function allocate(
  bytes: number,
  options?: { readonly shared?: false | undefined },
): Uint8Array<ArrayBuffer>;
/** As above, on a SharedArrayBuffer: Node.js 24.16 or later, and from 25 on 26.1 or later. */
export function allocate(bytes: number, options: { readonly shared: true }): Uint8Array<SharedArrayBuffer>;
/** As above, of either kind. */
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
 * Claims a name among the processes and threads of this user on this host, so that others find the port of its owner. Linux only.
 *
 * @param name - 1 to 48 letters, digits, or characters of `_.:@-`
 * @throws StatusError ADDRESS_ALREADY_EXISTS: it has an owner; INVALID_PARAMETER; TOO_MANY_OPENED_FILES; NOT_SUPPORTED
 */
export function claimLocalName(name: string): LocalNameClaim {
  return claimNameSoft(name);
}

/**
 * The RDMA ports that the owner of a name has published.
 *
 * @param name - as for {@link claimLocalName}
 * @throws StatusError INVALID_PARAMETER; TOO_MANY_OPENED_FILES; NOT_SUPPORTED
 */
export function portsOfLocalName(name: string): number[] {
  return portsOfNameSoft(name);
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
 * Statistics of all processes of this user on this host that use the software HCA: their queue pairs, connections, registrations and
 * counters. This process is among them if it uses RDMA itself; the call starts nothing. A process with the option `statistics: false`
 * tells nothing. Processes of other users cannot be asked.
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
 * Makes a device of this thread's soft kernel fail, to test how a program reacts. `unplug` removes it as if its network
 * interface were gone: waiting requests end in DEVICE_REMOVED. `plug` brings it back as a new device. `fatal` is an
 * error after which every instance must be closed: waiting requests end in FILE_FORCED_CLOSED.
 *
 * @throws StatusError as {@link readCounters}; NO_SUCH_DEVICE.
 */
export function injectDeviceFault(guid: bigint, fault: DeviceFault, options?: KernelOptionsInput): void {
  requestFault((name) => openDeviceFile(name, options), guid, fault);
}

/**
 * Removes a device in order (query-remove): only while no file is open on it, so that nobody loses anything. The fault
 * `plug` brings it back.
 *
 * @throws StatusError as {@link readCounters}; NO_SUCH_DEVICE; DEVICE_BUSY while a program or a driver uses the device;
 *   `networkdirect/net` does for up to ten seconds after its last connection.
 */
export function removeDevice(guid: bigint, options?: KernelOptionsInput): void {
  requestRemoval((name) => openDeviceFile(name, options), guid);
}

/**
 * Replaces the P_Key tables of this thread's soft kernel, as a subnet manager does: the option `pkeys`, while the kernel runs. Each
 * program with an open device hears of it by a PARTITION event. An entry is named by its place: a connection whose entry names
 * another partition than before, or is gone, ends in CONNECTION_ABORTED, and its peer is disconnected. Queue pairs without a connection
 * stay, but their packets no longer fit those of their peers.
 *
 * @param pkeys - One table for all ports, or tables by the names of interfaces; other interfaces have the default
 *   partition only.
 * @throws StatusError INVALID_PARAMETER; NOT_SUPPORTED: the tables belong to the system; otherwise as {@link readCounters}.
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
 * (`networkdirect/kernel`). Its code runs on the kernel's thread, where it may use HCAs by the kernel's own verbs while
 * the program's thread is blocked. Starts the kernel if it does not run yet; the driver stays until it is unloaded or
 * the kernel ends. A driver whose code hangs or throws while it is loaded is refused; what it throws later ends its own
 * request, and is reported as a warning.
 *
 * @param file - The path, from the working directory, or the `file:` URL, of a regular file of at most 16 MiB.
 * @returns Ends in SUCCESS; DRIVER_UNABLE_TO_LOAD with the reason; OBJECT_NAME_COLLISION: a driver of the name is loaded; INSUFFICIENT_RESOURCES: 64 are;
 *   CANCELED: the wait was cancelled, the loading goes on.
 * @throws StatusError INVALID_PARAMETER; otherwise as {@link readCounters}.
 */
export function loadDriver(file: string | URL, options: LoadDriverOptions = {}): Overlapped<LoadedDriver> {
  return requestLoad((name) => openDeviceFile(name, options.kernel), file, options);
}

/**
 * Unloads a driver. Its devices take no new files; when the last is closed its unload routine runs, and when nothing
 * references the driver any more (no device, no access layer, no timer) the request ends.
 *
 * @param name - As in {@link LoadedDriver}, or without `\Driver\`.
 * @returns Ends in SUCCESS; OBJECT_NAME_NOT_FOUND; DEVICE_BUSY: it is being unloaded; INVALID_DEVICE_REQUEST: it has no
 *   unload routine; INTERNAL_ERROR: its unload routine failed; CANCELED: the wait was cancelled, the unloading goes on.
 * @throws StatusError INVALID_PARAMETER; otherwise as {@link readCounters}.
 */
export function unloadDriver(name: string, options?: KernelOptionsInput): Overlapped<void> {
  return requestUnload((device) => openDeviceFile(device, options), name);
}
