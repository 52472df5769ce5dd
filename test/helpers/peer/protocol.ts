/** What a test says to its peer processes, and what they answer. Everything travels as JSON. */

import type { KernelOptionsInput } from '../../../winverbs/index.js';
import type { TrafficOptions, TrafficReport } from './traffic.js';

/** Which of the interfaces a link is made with: ND SPI v1, v2, or WinVerbs. */
export type Layer = 'nd' | 'nd2' | 'wv';

/** How a request ended: its label, the name of its status, and for a Receive what has come. */
export interface Told {
  readonly label: string;
  readonly status: string;
  readonly text?: string;
}

/** Completions of one link, in the order in which its two queues told them. */
export interface Completions {
  readonly sends: Told[];
  readonly receives: Told[];
}

/** The operations of a peer, by name: arguments and answer. */
export interface Operations {
  listen(args: { as: string; layer: Layer; address: string; port?: number; backlog?: number }): number;
  unlisten(args: { listener: string }): void;
  /** Takes the next request of a listener; answers its private data when the connection is there. */
  accept(args: { listener: string; as: string; receives?: number; data?: string }): string;
  /** Answers the private data of the peer's reply when the connection is there. */
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
  /** Posts one Receive and spins until it has completed; answers its text, and how long that took in microseconds. */
  receiveNow(args: { link: string }): { text: string; microseconds: number };
  send(args: { link: string; texts: readonly string[] }): void;
  /** What is in the queues now. */
  poll(args: { link: string }): Completions;
  /** Waits until as many have completed. */
  results(args: { link: string; sends: number; receives: number }): Completions;
  /** Answers the name of the status it ends in. */
  notifyDisconnect(args: { link: string }): string;
  /** Issues Disconnect; answers what is in the queues when the call has returned, before any other turn. */
  disconnect(args: { link: string }): Completions;
  /** Answers the name of the status that the Disconnect has ended in. */
  disconnected(args: { link: string }): string;
  release(args: { link: string }): void;
  /** Releases every link, listener, adapter and provider. */
  releaseAll(args: Record<never, never>): void;
  counters(args: Record<never, never>): Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** A whole client session without a turn of the event loop; answers what the server has sent back. */
  blockingSession(args: { address: string; port: number; texts: readonly string[] }): BlockingReport;
  /** Spins, without a turn of the event loop, until the peer has disconnected. */
  spinUntilDisconnected(args: { link: string }): SpinReport;
  /** Connects, exchanges a message and disconnects, so many times; each side names how far it came on failure. */
  serveMany(args: { listener: string; count: number }): number;
  connectMany(args: { layer: Layer; address: string; port: number; count: number }): number;
  /** Starts the passive side of a plan's traffic; answers its port. */
  trafficListen(args: TrafficOptions & { as: string; address: string }): number;
  /** Ends when the passive side is connected. */
  trafficAccepted(args: { as: string }): void;
  trafficConnect(args: TrafficOptions & { as: string; address: string; port: number }): void;
  /** Does one side's part of the traffic; fails when anything is not as it should be. */
  trafficRun(args: { as: string }): TrafficReport;
  /** Ends the connection; answers the name of the status. */
  trafficDisconnect(args: { as: string }): string;
  /** Gives the process's wire other faults. */
  setFaults(args: { faults: NonNullable<KernelOptionsInput['faults']> }): void;
  startWorker(args: { worker: string }): void;
  terminateWorker(args: { worker: string }): number;
  /** Ends the process. `end`: nothing is left that keeps it alive. No answer comes. */
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

/** A command; with `worker` it is for a Worker of the process. */
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

/** Room for each message. */
export const MESSAGE_BYTES = 256;
/** Requests that may be outstanding on each queue of a link. */
export const LINK_DEPTH = 32;
