import { SettingsCode } from '../ioctl/codes.js';
import type { PkeyTables } from '../ioctl/pkey-tables.js';
import { Status, StatusError } from '../ioctl/status.js';
import { pkeysSchema } from '../options.js';
import { controlRequest, type OpenFile } from './control-request.js';

/** Checks the P_Key tables, and sends them by a device file that `open` opens. */
export function requestPartitions(open: OpenFile, pkeys: PkeyTables): void {
  const checked = pkeysSchema.safeParse(pkeys);
  if (!checked.success) {
    const text = checked.error.issues.map(({ message }) => message).join('; ');
    throw new StatusError(Status.INVALID_PARAMETER, `setPartitions: ${text}.`);
  }
  controlRequest(open, SettingsCode.SET_PKEYS, new TextEncoder().encode(JSON.stringify(checked.data)), 0);
}
