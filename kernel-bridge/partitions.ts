import type { DeviceFile } from './device-file.js';
import { SettingsCode } from './ioctl/codes.js';
import type { PkeyTables } from './ioctl/pkey-tables.js';
import { Status, StatusError } from './ioctl/status.js';
import { pkeysSchema } from './options.js';

/** The device file of what can be changed while the kernel runs; only the soft kernel has it. */
export const SETTINGS_DEVICE = '\\\\.\\NetworkDirectSettings';

/** Checks the P_Key tables, and sends them by a device file that `open` opens. */
export function requestPartitions(open: (name: string) => DeviceFile, pkeys: PkeyTables): void {
  const checked = pkeysSchema.safeParse(pkeys);
  if (!checked.success) {
    const text = checked.error.issues.map(({ message }) => message).join('; ');
    throw new StatusError(Status.INVALID_PARAMETER, `setPartitions: ${text}.`);
  }
  const file = open(SETTINGS_DEVICE);
  try {
    file.ioctl(SettingsCode.SET_PKEYS, new TextEncoder().encode(JSON.stringify(checked.data)), 0);
  } finally {
    file.close();
  }
}
