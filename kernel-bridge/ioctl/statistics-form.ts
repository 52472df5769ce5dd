/**
 * Statistics that a soft kernel reports to other processes of its user, as JSON: sizes, states and counts. They never
 * include memory addresses, keys, private data, or the contents of messages and buffers.
 */
import type { MemoryStatistics, QueuePairStatistics } from '../schema/generated/statistics.js';

export type { MemoryStatistics, QueuePairStatistics } from '../schema/generated/statistics.js';

/**
 * The version of this format, for programs that store such texts. It changes whenever the meaning of a name changes.
 * Processes query only others with the same `DIALECT`, which have the same format.
 */
export const STATISTICS_FORM = 1;

/** Maximum number of queue pairs, connections and registrations in each list; `omitted` counts the others. */
export const STATISTICS_MOST = 1024;

/** An endpoint: a connection, a listener, or a datagram service. */
export interface ConnectionStatistics {
  /** `connect` or `datagram`. */
  readonly type: 'connect' | 'datagram';
  /** The state of the endpoint: `listening`, `connected`, … */
  readonly state: string;
  /** The local address and port, as `192.0.2.1:4000`; empty if it has none yet. */
  readonly local: string;
  /** The peer's address and port; empty if it has none. */
  readonly remote: string;
  /** The endpoint's queue pair number; 0: none. */
  readonly qpn: number;
}

/** A network interface used as a device. */
export interface DeviceStatistics {
  /** The interface name, such as `eth0`. */
  readonly name: string;
  /** The CA GUID, as 16 hexadecimal digits. */
  readonly guid: string;
  /** `software`, or the name of the RDMA device. */
  readonly hca: string;
}

/** The statistics of one soft kernel: a thread of a program that uses RDMA. */
export interface KernelStatistics {
  /** {@link STATISTICS_FORM} */
  readonly form: number;
  /** The process id, as seen by the process itself. */
  readonly pid: number;
  /** The version of Node.js. */
  readonly node: string;
  /** Seconds since the process was started. */
  readonly uptime: number;
  /** When the statistics were read, in milliseconds of the kernel's clock; for computing rates. */
  readonly at: number;
  /** The devices of this host. */
  readonly devices: readonly DeviceStatistics[];
  /**
   * UDP port 4791: `open`; `unused`: not needed yet; `held` by another process or user; `never`: disabled by the option
   * `link: 'local'`; `none`: real HCAs only.
   */
  readonly wire: 'open' | 'unused' | 'held' | 'never' | 'none';
  /** Groups of counters, as in `readCounters`. */
  readonly counters: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Receives of shared receive queues that a message has consumed. */
  readonly sharedReceived: number;
  /** The queue pairs of the software HCA. */
  readonly queuePairs: readonly QueuePairStatistics[];
  /** Endpoints of all HCAs. */
  readonly connections: readonly ConnectionStatistics[];
  /** Memory regions and windows of the software HCA. */
  readonly memory: readonly MemoryStatistics[];
  /** How many more objects exist than the lists have. */
  readonly omitted: {
    /** Queue pairs that are not in `queuePairs`. */
    readonly queuePairs: number;
    /** Connections that are not in `connections`. */
    readonly connections: number;
    /** Registrations that are not in `memory`. */
    readonly memory: number;
  };
}
