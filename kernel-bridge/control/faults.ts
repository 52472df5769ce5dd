import { FaultsCode } from '../ioctl/codes.js';
import { WvIoGuid } from '../ioctl/structs.js';
import { controlRequest, type OpenFile } from './control-request.js';

const codes: Readonly<Record<DeviceFault, number>> = {
  unplug: FaultsCode.UNPLUG,
  plug: FaultsCode.PLUG,
  fatal: FaultsCode.FATAL,
};

/** Simulated faults of a device: it is removed, it comes back, it has a fatal error. */
export type DeviceFault = 'unplug' | 'plug' | 'fatal';

/** Requests a fault by a device file that `open` opens. */
export function requestFault(open: OpenFile, guid: bigint, fault: DeviceFault): void {
  controlRequest(open, codes[fault], WvIoGuid.encode({ guid }), 0);
}

/** Requests the removal of a device by a device file that `open` opens. */
export function requestRemoval(open: OpenFile, guid: bigint): void {
  controlRequest(open, FaultsCode.QUERY_REMOVE, WvIoGuid.encode({ guid }), 0);
}
