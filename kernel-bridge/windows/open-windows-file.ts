import type { DeviceFile } from '../door/device-file.js';
import { Status, StatusError } from '../ioctl/status.js';
import { WindowsDeviceFile } from './windows-device-file.js';
import { windowsDoor } from './windows-door.js';

/** Statuses of an open that say that there is no such device. */
const absent: ReadonlySet<number> = new Set([
  Status.OBJECT_NAME_NOT_FOUND,
  Status.NO_SUCH_DEVICE,
  0xc000_003a, // OBJECT_PATH_NOT_FOUND
]);

/**
 * Opens a device file of a Windows driver: `\\.\WinVerbs`, `\\.\ibat`, or an HCA's own, `\Device\ibal\<CA GUID>`.
 *
 * @throws StatusError: the system's status; OBJECT_NAME_NOT_FOUND with what has to be installed; NOT_SUPPORTED without koffi.
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
      `Opening ${name}: no driver has this device. ${advice(name)}`,
      { cause: error },
    );
  }
}

/** The name in the system's namespace: `\\.\` is a folder of it. */
function nativeName(name: string): string {
  if (/^\\\\\.\\[^\\]/.test(name)) return `\\??\\${name.slice(4)}`;
  if (/^\\[^\\]/.test(name)) return name;
  throw new StatusError(Status.OBJECT_NAME_INVALID);
}

function advice(name: string): string {
  return name.startsWith('\\\\.\\')
    ? "Install the HCA's driver package with WinVerbs (WinOF, OFED for Windows), and see that its service runs (sc query winverbs)."
    : 'Ask for the list of those that are there.';
}
