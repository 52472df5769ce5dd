/**
 * What a soft kernel tells other processes of its user about itself, as JSON: sizes, states and counts. Never in it: addresses of
 * memory, keys, private data, or what a message or a buffer holds.
 */
import type { MemoryStatistics, QueuePairStatistics } from '../schema/generated/statistics.js';

export type { MemoryStatistics, QueuePairStatistics } from '../schema/generated/statistics.js';

/**
 * The number of this form, for those who keep such texts. One that changes what a name means gets another. Processes ask only those of their
 * own dialect (`DIALECT`), which have the same.
 */
export const STATISTICS_FORM = 1;

/** How many queue pairs, connections and registrations the lists have at most; `omitted` counts the others. */
export const STATISTICS_MOST = 1024;

/** An endpoint: a connection, a listener, or a datagram service. */
export interface ConnectionStatistics {
  /** `connect` or `datagram`. */
  readonly type: 'connect' | 'datagram';
  /** The state of the endpoint: `listening`, `connected`, … */
  readonly state: string;
  /** This side's address and port, as `192.0.2.1:4000`; empty: it has none yet. */
  readonly local: string;
  /** The peer's address and port; empty: it has none. */
  readonly remote: string;
  /** The number of its queue pair; 0: none. */
  readonly qpn: number;
}

/** A network interface that is a device. */
export interface DeviceStatistics {
  /** As `eth0`. */
  readonly name: string;
  /** 16 hexadecimal digits. */
  readonly guid: string;
  /** `software`, or the system's RDMA device. */
  readonly hca: string;
}

/** The statistics of one soft kernel: a thread of a program that uses RDMA. */
export interface KernelStatistics {
  /** {@link STATISTICS_FORM} */
  readonly form: number;
  /** The process id, as the process sees it. */
  readonly pid: number;
  /** The version of Node.js. */
  readonly node: string;
  /** Seconds since the process was started. */
  readonly uptime: number;
  /** A clock of the kernel in milliseconds, for rates: it says when the statistics were read. */
  readonly at: number;
  /** The devices of this host, by their interfaces. */
  readonly devices: readonly DeviceStatistics[];
  /**
   * UDP port 4791: `open`; `unused`, because nothing has needed it yet; `held` by another process or user; `never` opened, by the option
   * `link: 'local'`; `none`: real HCAs alone.
   */
  readonly wire: 'open' | 'unused' | 'held' | 'never' | 'none';
  /** Groups of counters, as `readCounters` has them. */
  readonly counters: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Receives of shared receive queues that have got a message. */
  readonly sharedReceived: number;
  /** The queue pairs of the software HCA. */
  readonly queuePairs: readonly QueuePairStatistics[];
  /** Endpoints of all HCAs. */
  readonly connections: readonly ConnectionStatistics[];
  /** Memory regions and windows of the software HCA. */
  readonly memory: readonly MemoryStatistics[];
  /** How many more there are than the lists have. */
  readonly omitted: {
    /** Queue pairs that are not in `queuePairs`. */
    readonly queuePairs: number;
    /** Connections that are not in `connections`. */
    readonly connections: number;
    /** Registrations that are not in `memory`. */
    readonly memory: number;
  };
}
