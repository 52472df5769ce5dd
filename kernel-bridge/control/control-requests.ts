/** Requests to the control device: the common request, and those for device faults and settings. */
import type { DeviceFile } from '../door/device-file.js';
import { FaultsCode, SettingsCode } from '../ioctl/codes.js';
import { CONTROL_DEVICE } from '../ioctl/control.js';
import type { PkeyTables } from '../ioctl/pkey-tables.js';
import { shownJson } from '../ioctl/shown.js';
import { Status, StatusError } from '../ioctl/status.js';
import { WvIoGuid } from '../ioctl/structs.js';
import { pkeysSchema } from '../option-checks/option-schemas.js';

/** Opens device files of one kernel. */
export type OpenFile = (name: string) => DeviceFile;

/** One blocking request to the control device, on a file of its own. */
export function controlRequest(
  open: OpenFile,
  code: number,
  input: Uint8Array | null,
  outputLength: number,
): Uint8Array {
  const file = open(CONTROL_DEVICE);
  try {
    return file.ioctl(code, input, outputLength);
  } finally {
    file.close();
  }
}

const codes: Readonly<Record<DeviceFault, number>> = {
  unplug: FaultsCode.UNPLUG,
  plug: FaultsCode.PLUG,
  fatal: FaultsCode.FATAL,
};

/** Simulated device faults: removal, return, and fatal error of a device. */
export type DeviceFault = 'unplug' | 'plug' | 'fatal';

/** Requests a fault on a device file opened with `open`. */
export function requestFault(open: OpenFile, guid: bigint, fault: DeviceFault): void {
  controlRequest(open, codes[fault], WvIoGuid.encode({ guid }), 0);
}

/** Requests the removal of a device on a device file opened with `open`. */
export function requestRemoval(open: OpenFile, guid: bigint): void {
  controlRequest(open, FaultsCode.QUERY_REMOVE, WvIoGuid.encode({ guid }), 0);
}

/** Checks P_Key tables and sends them on a device file opened with `open`. */
export function requestPartitions(open: OpenFile, pkeys: PkeyTables): void {
  const checked = pkeysSchema.safeParse(pkeys);
  if (!checked.success) {
    const [issue] = checked.error.issues;
    const text = `\`${['pkeys', ...issue!.path].join('.')}\` ${issue!.message}; got ${shownJson(pkeys)}.`;
    throw new StatusError(Status.INVALID_PARAMETER, `setPartitions: ${text}`);
  }
  controlRequest(open, SettingsCode.SET_PKEYS, new TextEncoder().encode(JSON.stringify(checked.data)), 0);
}
