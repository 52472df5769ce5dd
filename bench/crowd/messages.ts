/** Messages between the processes of a crowd. */

/** This library with one completion queue for a process, or with one for each connection; or `node:net`. */
export type Who = 'together' | 'apart' | 'net';

/** To a process; times in seconds. */
export interface Command {
  readonly do: 'connect' | 'begin' | 'report';
  readonly warmUp?: number;
  readonly seconds?: number;
}

/** Of a client, after the measured time. */
export interface ClientReport {
  /** Echoes of each connection. */
  readonly counts: number[];
  /** In ms. */
  readonly latencies: number[];
  /** Processor time in µs. */
  readonly processor: number;
}

export type Event =
  | { readonly port: number }
  | { readonly ready: true }
  | { readonly connected: true }
  | { readonly processor: number }
  | ClientReport;
