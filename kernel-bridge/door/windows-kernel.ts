/**
 * The kernel of this isolate on Windows: that of the WinVerbs driver if one is installed, otherwise the soft kernel. The kernel of the
 * first open is used by all later ones.
 */
import { closeSync, openSync } from 'node:fs';
import { Status, StatusError } from '../ioctl/status.js';
import type { KernelOptionsInput } from '../option-checks/option-schemas.js';
import { allocateWindows, openWindowsFile, wantsSteady } from '../windows/index.js';
import type { DeviceFile } from './device-file.js';
import {
  type AllocatedBytes,
  type AllocateOptions,
  allocate as allocateSoft,
  openDeviceFile as openSoftDeviceFile,
  resolveKernelOptions,
  sharedOf,
} from './soft/index.js';

/** A device that every WinVerbs driver creates. */
const DRIVER_DEVICE = '\\\\.\\WinVerbs';

let chosen: 'driver' | 'soft' | undefined;

/**
 * Whether a WinVerbs driver is installed. Node.js itself checks this, because koffi, which calls drivers, may be missing; the soft kernel
 * does not need koffi.
 */
function hasDriver(): boolean {
  try {
    closeSync(openSync(DRIVER_DEVICE, 'r'));
    return true;
  } catch (error) {
    // Other errors come from a driver that refuses this open.
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}

/** The kernel chosen by the options, or by what is installed. */
function kernelOf(options: KernelOptionsInput | undefined): 'driver' | 'soft' {
  const { kernel, link } = resolveKernelOptions(options);
  if (kernel !== 'auto') return kernel;
  if (link === 'local') return 'soft';
  chosen ??= hasDriver() ? 'driver' : 'soft';
  return chosen;
}

/** Returns the NetworkDirect providers that the options select: `auto`, `rdma`, the name of a DLL, or undefined for none. */
export function wantedProviders(options?: KernelOptionsInput): string | undefined {
  const { kernel, link, hca } = resolveKernelOptions(options);
  return kernel !== 'auto' || link === 'local' || hca === 'soft' ? undefined : hca;
}

/** The same as `openDeviceFile` of the package. */
export function openOnWindows(name: string, options?: KernelOptionsInput): DeviceFile {
  const { hca } = resolveKernelOptions(options);
  if (hca !== 'auto' && hca !== 'soft') {
    throw new StatusError(
      Status.NOT_SUPPORTED,
      `On Windows \`hca\` must be 'auto' or 'soft' for WinVerbs and ND v1; got '${hca}'. NetworkDirect providers support v2 only: call openNetworkDirect2().`,
    );
  }
  const kernel = kernelOf(options);
  const file = kernel === 'driver' ? openWindowsFile(name) : openSoftDeviceFile(name, options);
  chosen ??= kernel;
  return file;
}

/** Whether memory must suit NetworkDirect providers: one is open, or `ND_OPTIONS` selects one. */
function forProvider(): boolean {
  return wantsSteady() || (wantedProviders() ?? 'auto') !== 'auto';
}

/** The same as `allocate` of the package: memory that the isolate's kernel can register. */
export function allocateOnWindows(bytes: number, options: AllocateOptions = {}): AllocatedBytes {
  const isDriver = (chosen ?? kernelOf(undefined)) === 'driver';
  const isShared = sharedOf(options);
  // NetworkDirect providers accept any SharedArrayBuffer.
  if (!isDriver && (isShared || !forProvider())) return allocateSoft(bytes, options);
  if (!isShared) return allocateWindows(bytes);
  throw new StatusError(
    Status.NOT_SUPPORTED,
    'allocate: `shared` is not supported with a Windows driver; omit it.',
  );
}
