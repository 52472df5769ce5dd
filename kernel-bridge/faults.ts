import type { DeviceFile } from './device-file.js';
import { FaultsCode } from './ioctl/codes.js';
import { WvIoGuid } from './ioctl/structs.js';

/** The device file for simulated device faults; only the soft kernel has it. */
export const FAULTS_DEVICE = '\\\\.\\NetworkDirectFaults';

const codes: Readonly<Record<DeviceFault, number>> = {
  unplug: FaultsCode.UNPLUG,
  plug: FaultsCode.PLUG,
  fatal: FaultsCode.FATAL,
};

/** Simulated faults of a device: it is removed, it comes back, it has a fatal error. */
export type DeviceFault = 'unplug' | 'plug' | 'fatal';

/** Requests a fault by a device file that `open` opens. */
export function requestFault(open: (name: string) => DeviceFile, guid: bigint, fault: DeviceFault): void {
  request(open, guid, codes[fault]);
}

/** Requests the removal of a device by a device file that `open` opens. */
export function requestRemoval(open: (name: string) => DeviceFile, guid: bigint): void {
  request(open, guid, FaultsCode.QUERY_REMOVE);
}

function request(open: (name: string) => DeviceFile, guid: bigint, code: number): void {
  const file = open(FAULTS_DEVICE);
  try {
    file.ioctl(code, WvIoGuid.encode({ guid }), 0);
  } finally {
    file.close();
  }
}
