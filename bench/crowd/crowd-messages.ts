/** Messages between the processes of a crowd, and their parameters. */

/** This library with one completion queue per process (`together`) or per connection (`apart`), or `node:net`. */
export type Who = 'together' | 'apart' | 'net';

/** `echo`: requests with a reply of the same size. `mixed`: one request in {@link BULK_EVERY} also requests {@link BULK_BYTES}. */
export type Load = 'echo' | 'mixed';

/** Parameters of a process: its command line, as JSON. */
export interface Part {
  readonly who: Who;
  readonly load: Load;
  /** For a client: the server's port, the number of connections, and the link to use. */
  readonly client?: {
    readonly port: number;
    readonly connections: number;
    readonly link: 'auto' | 'wire';
  };
}

/** Size in bytes of a request and of its reply. */
export const BYTES = 64;
/** Bytes that the server writes to the client's memory before it replies; over TCP they are part of the reply. */
export const BULK_BYTES = 64 << 10;
export const BULK_EVERY = 100;

/** A command to a process. Times are in seconds. */
export interface Command {
  readonly do: 'connect' | 'begin' | 'report';
  readonly warmUp?: number;
  readonly seconds?: number;
}

/** Resources that a process used during the measurement. */
export interface Expense {
  /** CPU time in µs. */
  readonly processor: number;
  /** Memory at its end, in bytes. Shared pages count proportionally. */
  readonly memory: number;
}

/** Report of a client after the measurement. */
export interface ClientReport extends Expense {
  /** Completed requests of each connection. */
  readonly counts: number[];
  /** In ms. */
  readonly latencies: number[];
}

export type Event =
  | { readonly port: number }
  | { readonly ready: true }
  | { readonly connected: true }
  | Expense
  | ClientReport;

/** The connections of a client. */
export interface Client {
  readonly connected: Promise<unknown>;
  /** Sends a request on a connection, with or without bulk data, and resolves when the reply has arrived. */
  ask(index: number, bulk: boolean): Promise<void>;
}
