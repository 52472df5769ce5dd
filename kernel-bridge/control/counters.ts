import { CountersCode } from '../ioctl/codes.js';
import { Status, StatusError } from '../ioctl/status.js';
import { controlRequest, type OpenFile } from './control-requests.js';

/** Initial size of an answer in bytes; more than all counters need. */
const firstRoom = 32_768;
const mostRoom = 1 << 23;

/** Kinds of objects of the HCA. */
export type ObjectKind = 'pd' | 'mr' | 'mw' | 'ah' | 'cq' | 'srq' | 'qp' | 'ring' | 'range';

/** The result of {@link readCounters}. */
export interface Counters {
  /** Live objects of this thread's HCA; `ring` is memory shared with it, `range` memory pinned for it. */
  readonly objects: Readonly<Record<ObjectKind, number>>;
  /** Transport, wire and host of this thread's HCA; names as in `rdma statistic` where it has them. */
  readonly hca: Readonly<Record<string, number>>;
  /** Connection management of this thread's kernel: `sent.DREQ`, `retransmitted.REQ`, `connections`, `timewait`, … */
  readonly cm: Readonly<Record<string, number>>;
  /** I/O manager of this thread's kernel; `openFiles` includes the file of this query. */
  readonly io: Readonly<Record<string, number>>;
  /** Filter driver of this thread's kernel. */
  readonly filter: Readonly<Record<string, number>>;
  /**
   * Devices of this thread's kernel: present `devices`, `removing` those that are gone but still in use, `pkeyTables`.
   */
  readonly devices: Readonly<Record<string, number>>;
}

/** The network interface of a device, as {@link readInterfaces} returns it. */
export interface DeviceInterface {
  /** CA GUID. */
  readonly guid: bigint;
  /** The host's name for the interface: `eth0`. */
  readonly name: string;
  /** The host's number for it, which scope ids of link-local addresses use. */
  readonly index: number;
  /** The RDMA device of the system, with its driver (empty: the system does not tell) and firmware; undefined: the software HCA. */
  readonly hca?: {
    /** The system's name of the device, such as `mlx5_0`. */
    readonly device: string;
    /** The name of its driver; empty: the system does not tell. */
    readonly driver: string;
    /** The version of its firmware as text; empty: the system does not tell. */
    readonly firmware: string;
  };
}

/** Reads all counters by a device file that `open` opens. */
export function queryCounters(open: OpenFile): Counters {
  return query<Counters>(open, CountersCode.QUERY);
}

/** Reads the names of all devices' interfaces by a device file that `open` opens. */
export function queryInterfaces(open: OpenFile): DeviceInterface[] {
  const records = query<(Omit<DeviceInterface, 'guid'> & { guid: string })[]>(open, CountersCode.INTERFACES);
  return records.map(({ guid, ...rest }) => ({ guid: BigInt(`0x${guid}`), ...rest }));
}

function query<T>(open: OpenFile, code: number): T {
  const text = new TextDecoder().decode(ask(open, code));
  try {
    return JSON.parse(text) as T;
  } catch (error) {
    throw new StatusError(Status.INTERNAL_ERROR, 'The kernel answered in a form that is not JSON.', {
      cause: error,
    });
  }
}

/** The whole answer, of any length: a host may have any number of interfaces. */
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
