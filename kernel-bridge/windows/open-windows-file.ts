import type { DeviceFile } from '../door/device-file.js';
import { Status, StatusError } from '../ioctl/status.js';
import { WindowsDeviceFile } from './windows-device-file.js';
import { windowsDoor } from './windows-door.js';

/** Statuses of opening a device that does not exist. */
const absent: ReadonlySet<number> = new Set([
  Status.OBJECT_NAME_NOT_FOUND,
  Status.NO_SUCH_DEVICE,
  0xc000_003a, // OBJECT_PATH_NOT_FOUND
]);

/**
 * Opens a device file of a Windows driver: `\\.\WinVerbs`, `\\.\ibat`, or an HCA's own, `\Device\ibal\<CA GUID>`.
 *
 * @throws StatusError OBJECT_NAME_NOT_FOUND with what to install, NOT_SUPPORTED without koffi, or another status of Windows
 */
export function openWindowsFile(name: string): DeviceFile {
  const door = windowsDoor();
  try {
    return new WindowsDeviceFile(door, name, door.open(nativeName(name)));
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    if (!absent.has(error.status)) {
      throw new StatusError(error.status, `Opening ${name}: ${error.message}`, { cause: error });
    }
    throw new StatusError(
      Status.OBJECT_NAME_NOT_FOUND,
      `Opening ${name}: no driver provides this device. ${advice(name)}`,
      { cause: error },
    );
  }
}

/** Converts a name to the NT namespace, where `\\.\` is the folder `\??\`. */
function nativeName(name: string): string {
  if (/^\\\\\.\\[^\\]/.test(name)) return `\\??\\${name.slice(4)}`;
  if (/^\\[^\\]/.test(name)) return name;
  throw new StatusError(Status.OBJECT_NAME_INVALID);
}

function advice(name: string): string {
  return name.startsWith('\\\\.\\')
    ? "Install the HCA's driver package with WinVerbs (WinOF, OFED for Windows), and check that its service is running (sc query winverbs)."
    : 'Query the list of devices again.';
}
