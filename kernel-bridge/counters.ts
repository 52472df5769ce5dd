import type { DeviceFile } from './device-file.js';
import { CountersCode } from './ioctl/codes.js';
import { Status, StatusError } from './ioctl/status.js';

/** The device file that tells counters; only the soft kernel has it. */
export const COUNTERS_DEVICE = '\\\\.\\NetworkDirectCounters';

/** More than all counters take as text. */
const room = 32_768;

/** Objects that can be alive in the HCA. */
export type ObjectKind = 'pd' | 'mr' | 'mw' | 'cq' | 'qp' | 'ring' | 'range';

/** What {@link readCounters} answers. */
export interface Counters {
  /** Live objects of the process: of the HCA, `ring` and `range` the memory shared with it and pinned for it. */
  readonly objects: Readonly<Record<ObjectKind, number>>;
  /** Transport, wire and host, for the process; names as of `rdma statistic` where it has them. */
  readonly hca: Readonly<Record<string, number>>;
  /** Connection management of this thread's kernel: `sent.DREQ`, `retransmitted.REQ`, `connections`, `timewait`, … */
  readonly cm: Readonly<Record<string, number>>;
  /** I/O manager of this thread's kernel; `openFiles` counts the one that asks. */
  readonly io: Readonly<Record<string, number>>;
  /** Filter driver of this thread's kernel. */
  readonly filter: Readonly<Record<string, number>>;
}

/** Reads all counters through the door that `open` opens. */
export function queryCounters(open: (name: string) => DeviceFile): Counters {
  const file = open(COUNTERS_DEVICE);
  try {
    const text = new TextDecoder().decode(file.ioctl(CountersCode.QUERY, null, room));
    return JSON.parse(text) as Counters;
  } catch (error) {
    if (error instanceof StatusError) throw error;
    throw new StatusError(Status.INTERNAL_ERROR, 'The kernel told its counters in a form that is not JSON.', {
      cause: error,
    });
  } finally {
    file.close();
  }
}
