import type { DeviceFile } from '../device-file.js';
import { CONTROL_DEVICE } from '../ioctl/control.js';

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
