/**
 * Which kernel this isolate has on Windows: that of the WinVerbs driver where the system has one, else the soft kernel. The first
 * open decides, and later ones stay with it.
 */
import { closeSync, openSync } from 'node:fs';
import { Status, StatusError } from '../ioctl/status.js';
import type { KernelOptionsInput } from '../option-checks/option-schemas.js';
import { allocateWindows, openWindowsFile } from '../windows/index.js';
import type { DeviceFile } from './device-file.js';
import {
  type AllocatedBytes,
  type AllocateOptions,
  allocate as allocateSoft,
  openDeviceFile as openSoftDeviceFile,
  resolveKernelOptions,
} from './soft/index.js';

/** The device that every WinVerbs driver has. */
const DRIVER_DEVICE = '\\\\.\\WinVerbs';

let chosen: 'driver' | 'soft' | undefined;

/**
 * Whether the system has a WinVerbs driver. Node.js looks for it, because koffi, by which drivers are driven, may be missing: the soft
 * kernel does not need it.
 */
function hasDriver(): boolean {
  try {
    closeSync(openSync(DRIVER_DEVICE, 'r'));
    return true;
  } catch (error) {
    // Other errors are those of a driver that refuses this open.
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}

/** The kernel that the options, or the system, name. */
function kernelOf(options: KernelOptionsInput | undefined): 'driver' | 'soft' {
  const { kernel, link } = resolveKernelOptions(options);
  if (kernel !== 'auto') return kernel;
  if (link === 'local') return 'soft';
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
export function allocateOnWindows(bytes: number, options?: AllocateOptions): AllocatedBytes {
  if ((chosen ?? kernelOf(undefined)) !== 'driver') return allocateSoft(bytes, options);
  if (options?.shared !== true) return allocateWindows(bytes);
  throw new StatusError(
    Status.NOT_SUPPORTED,
    'allocate: with a driver of Windows there is no such memory on a SharedArrayBuffer. Leave out `shared`.',
  );
}
