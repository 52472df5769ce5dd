/** Messages between the processes of a crowd, and what they are started with. */

/** This library with one completion queue for a process, or with one for each connection; or `node:net`. */
export type Who = 'together' | 'apart' | 'net';

/** `echo`: requests with an answer of the same size. `mixed`: one request in {@link BULK_EVERY} also asks for {@link BULK_BYTES}. */
export type Load = 'echo' | 'mixed';

/** What a process is: its command line, as JSON. */
export interface Part {
  readonly who: Who;
  readonly load: Load;
  /** Of a client: where the server listens, how many connections it makes, and by which link. */
  readonly client?: {
    readonly port: number;
    readonly connections: number;
    readonly link: 'auto' | 'wire';
  };
}

/** Bytes of a request, and of its answer. */
export const BYTES = 64;
/** The server writes so many bytes into the client's memory before it answers; by TCP they are a part of the answer. */
export const BULK_BYTES = 64 << 10;
export const BULK_EVERY = 100;

/** To a process; times in seconds. */
export interface Command {
  readonly do: 'connect' | 'begin' | 'report';
  readonly warmUp?: number;
  readonly seconds?: number;
}

/** What a process took for the measured time. */
export interface Expense {
  /** Processor time in µs. */
  readonly processor: number;
  /** Bytes of memory at its end; shared pages count by the share. */
  readonly memory: number;
}

/** Of a client, after the measured time. */
export interface ClientReport extends Expense {
  /** Answered requests of each connection. */
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
  /** Asks on a connection, for bulk data as well or not, and resolves with the answer. */
  ask(index: number, bulk: boolean): Promise<void>;
}
