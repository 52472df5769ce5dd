import { CountersCode } from '../ioctl/codes.js';
import { Status, StatusError } from '../ioctl/status.js';
import { controlRequest, type OpenFile } from './control-requests.js';

/** Initial output size in bytes, larger than all counters need. */
const firstRoom = 32_768;
const mostRoom = 1 << 23;

/** Kinds of HCA objects. */
export type ObjectKind = 'pd' | 'mr' | 'mw' | 'ah' | 'cq' | 'srq' | 'qp' | 'ring' | 'range';

/** The result of {@link readCounters}. */
export interface Counters {
  /** Live objects of this thread's HCA. `ring` is memory shared with it, `range` memory pinned for it. */
  readonly objects: Readonly<Record<ObjectKind, number>>;
  /** Counters of transport, UDP link and host of this thread's HCA, named as in `rdma statistic` where it has them. */
  readonly hca: Readonly<Record<string, number>>;
  /** Connection management of this thread's kernel: `sent.DREQ`, `retransmitted.REQ`, `connections`, `timewait`, … */
  readonly cm: Readonly<Record<string, number>>;
  /** I/O manager of this thread's kernel; `openFiles` includes the file of this query. */
  readonly io: Readonly<Record<string, number>>;
  /** Filter driver of this thread's kernel. */
  readonly filter: Readonly<Record<string, number>>;
  /** Devices of this thread's kernel: `devices` that are present, `removing` that are removed but still in use, `pkeyTables`. */
  readonly devices: Readonly<Record<string, number>>;
}

/** The network interface of a device, as {@link readInterfaces} returns it. */
export interface DeviceInterface {
  /** CA GUID. */
  readonly guid: bigint;
  /** The host's name of the interface, such as `eth0`. */
  readonly name: string;
  /** The host's interface index, as in scope ids of link-local addresses. */
  readonly index: number;
  /** The RDMA device with its driver and firmware. Undefined: the software HCA. */
  readonly hca?: {
    /** The OS's name of the device, such as `mlx5_0`. */
    readonly device: string;
    /** The name of its driver; empty: not reported. */
    readonly driver: string;
    /** The version of its firmware as text; empty: not reported. */
    readonly firmware: string;
  };
}

/** Reads all counters on a device file opened with `open`. */
export function queryCounters(open: OpenFile): Counters {
  return query<Counters>(open, CountersCode.QUERY);
}

/** Reads the interface names of all devices on a device file opened with `open`. */
export function queryInterfaces(open: OpenFile): DeviceInterface[] {
  const records = query<(Omit<DeviceInterface, 'guid'> & { guid: string })[]>(open, CountersCode.INTERFACES);
  return records.map(({ guid, ...rest }) => ({ guid: BigInt(`0x${guid}`), ...rest }));
}

function query<T>(open: OpenFile, code: number): T {
  const text = new TextDecoder().decode(ask(open, code));
  try {
    return JSON.parse(text) as T;
  } catch (error) {
    throw new StatusError(Status.INTERNAL_ERROR, 'The output of the kernel is not valid JSON.', {
      cause: error,
    });
  }
}

/** The complete output, of any length: a host may have any number of interfaces. */
function ask(open: OpenFile, code: number): Uint8Array {
  for (let room = firstRoom; ; room *= 4) {
    try {
      return controlRequest(open, code, null, room);
    } catch (error) {
      const small = error instanceof StatusError && error.status === Status.BUFFER_TOO_SMALL;
      if (!small || room >= mostRoom) throw error;
    }
  }
}
