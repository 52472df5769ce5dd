/** Commands of a test for its peer processes, and their replies, all as JSON. */

import type { KernelOptionsInput } from '../../../winverbs/index.js';
import type { Traces } from '../traces.js';
import type { TrafficOptions, TrafficReport } from './traffic.js';

/** The interface of a link: ND SPI v1, v2, or WinVerbs. */
export type Layer = 'nd' | 'nd2' | 'wv';

/** The result of a request: its label, the name of its status, and for a Receive the message. */
export interface RequestResult {
  readonly label: string;
  readonly status: string;
  readonly text?: string;
}

/** Completions of one link, in the order of its two queues. */
export interface Completions {
  readonly sends: RequestResult[];
  readonly receives: RequestResult[];
}

/** The operations of a peer by name, with arguments and reply. */
export interface Operations {
  listen(args: { as: string; layer: Layer; address: string; port?: number; backlog?: number }): number;
  unlisten(args: { listener: string }): void;
  /** Opens UDP port 4791, which listeners and links on the loopback address leave closed. */
  openToStrangers(args: Record<never, never>): void;
  /** Accepts the next request of a listener. Returns its private data when the connection is established. */
  accept(args: { listener: string; as: string; receives?: number; data?: string }): string;
  /** Returns the private data of the peer's reply when the connection is established. */
  connect(args: {
    as: string;
    layer: Layer;
    from: string;
    to: string;
    port: number;
    receives?: number;
    data?: string;
  }): string;
  receive(args: { link: string; count: number }): void;
  /** Posts one Receive and spins until it has completed. Returns its text and the time in µs. */
  receiveNow(args: { link: string }): { text: string; microseconds: number };
  send(args: { link: string; texts: readonly string[] }): void;
  /** Returns the available completions. */
  poll(args: { link: string }): Completions;
  /** Waits for a number of completions. */
  results(args: { link: string; sends: number; receives: number }): Completions;
  /** Returns the name of its status. */
  notifyDisconnect(args: { link: string }): string;
  /** Starts Disconnect. Returns the completions that were available when the call returned, before another turn. */
  disconnect(args: { link: string }): Completions;
  /** Returns the name of the Disconnect's status. */
  disconnected(args: { link: string }): string;
  release(args: { link: string }): void;
  /** Releases every link, listener, adapter and provider. */
  releaseAll(args: Record<never, never>): void;
  counters(args: Record<never, never>): Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Resources that the HCAs of the process use. */
  traces(args: Record<never, never>): Traces;
  /** A whole client session without a turn of the event loop. Returns the server's replies. */
  blockingSession(args: { address: string; port: number; texts: readonly string[] }): BlockingReport;
  /** Spins, without a turn of the event loop, until the peer has disconnected. */
  spinUntilDisconnected(args: { link: string }): SpinReport;
  /** Repeatedly connects, exchanges a message and disconnects. On failure, each side reports its progress. */
  serveMany(args: { listener: string; count: number }): number;
  connectMany(args: { layer: Layer; address: string; port: number; count: number }): number;
  /** Starts the passive side of a plan's traffic. Returns its port. */
  trafficListen(args: TrafficOptions & { as: string; address: string }): number;
  /** Resolves when the passive side is connected. */
  trafficAccepted(args: { as: string }): void;
  trafficConnect(args: TrafficOptions & { as: string; address: string; port: number }): void;
  /** Runs one side's part of the traffic. Fails on any error. */
  trafficRun(args: { as: string }): TrafficReport;
  /** For the active side, after its traffic: posts Writes and reads them back. */
  trafficStream(args: { as: string; rounds: number }): void;
  /** Ends the connection. Returns the name of the status. */
  trafficDisconnect(args: { as: string }): string;
  /** Changes the injected faults of the process's wire. */
  setFaults(args: { faults: NonNullable<KernelOptionsInput['faults']> }): void;
  startWorker(args: { worker: string }): void;
  terminateWorker(args: { worker: string }): number;
  /** Ends the process. `end`: stops everything that keeps it alive. No reply is sent. */
  leave(args: { how: 'exit' | 'end' | 'throw' }): void;
}

export interface BlockingReport {
  readonly replies: string[];
  readonly disconnect: string;
  /** Turns of the event loop during the session. */
  readonly turns: number;
}

export interface SpinReport {
  readonly status: string;
  readonly turns: number;
  readonly completions: Completions;
}

export type Operation = keyof Operations;
export type Arguments<K extends Operation> = Parameters<Operations[K]>[0];
export type Answer<K extends Operation> = ReturnType<Operations[K]>;

/** A command. With `worker`, it is for a Worker of the process. */
export interface Command {
  readonly id: number;
  readonly op: Operation;
  readonly args: unknown;
  readonly worker?: string;
}

export interface Reply {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: { readonly message: string; readonly status?: string };
}

/** Buffer size of each message. */
export const MESSAGE_BYTES = 256;
/** Maximum outstanding requests on each queue of a link. */
export const LINK_DEPTH = 32;
