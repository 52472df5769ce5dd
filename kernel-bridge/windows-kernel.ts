/**
 * Which kernel this isolate has on Windows: that of the WinVerbs driver where the system has one, else the soft kernel. The first
 * open decides, and later ones stay with it.
 */
import type { DeviceFile } from './device-file.js';
import { Status, StatusError } from './ioctl/status.js';
import type { KernelOptionsInput } from './options.js';
import {
  allocate as allocateSoft,
  openDeviceFile as openSoftDeviceFile,
  resolveKernelOptions,
} from './soft/index.js';
import { allocateWindows, openWindowsFile } from './windows/index.js';

/** The device that every WinVerbs driver has. */
const DRIVER_DEVICE = '\\\\.\\WinVerbs';

let chosen: 'driver' | 'soft' | undefined;

function isAbsent(error: unknown): boolean {
  return error instanceof StatusError && error.status === Status.OBJECT_NAME_NOT_FOUND;
}

/** Whether the system has a WinVerbs driver. @throws StatusError NOT_SUPPORTED: the package koffi is missing. */
function hasDriver(): boolean {
  try {
    openWindowsFile(DRIVER_DEVICE).close();
    return true;
  } catch (error) {
    if (isAbsent(error)) return false;
    // It is there and refuses this open; or nobody can ask for it.
    if (error instanceof StatusError && error.status !== Status.NOT_SUPPORTED) return true;
    throw error;
  }
}

/** The kernel that the options, or the system, name. */
function kernelOf(options: KernelOptionsInput | undefined): 'driver' | 'soft' {
  const { kernel } = resolveKernelOptions(options);
  if (kernel !== 'auto') return kernel;
  chosen ??= hasDriver() ? 'driver' : 'soft';
  return chosen;
}

/** As `openDeviceFile` of the package. */
export function openOnWindows(name: string, options?: KernelOptionsInput): DeviceFile {
  const kernel = kernelOf(options);
  const file = kernel === 'driver' ? openWindowsFile(name) : openSoftDeviceFile(name, options);
  chosen ??= kernel;
  return file;
}

/** As `allocate` of the package: memory that the isolate's kernel can register. */
export function allocateOnWindows(bytes: number): Uint8Array<ArrayBuffer> {
  return (chosen ?? kernelOf(undefined)) === 'driver' ? allocateWindows(bytes) : allocateSoft(bytes);
}
