/** The addon of the simulation: `make -C test/native simulation` builds it from `native/`. */
import { createRequire } from 'node:module';
import type { CmPath, Gid } from '../../kernel-bridge/kernel/cm/service.js';

const require = createRequire(import.meta.url);
const BUILT = '../../../test/native/build/networkdirect_simulation.node';

/** Probabilities for each packet of a queue. */
export interface FaultRates {
  readonly loss?: number;
  readonly duplicate?: number;
  /** Delayed, so that other packets overtake it. */
  readonly delay?: number;
  /** Duplicated, with the copy arriving long afterwards. */
  readonly ancient?: number;
}

/** One end of a link: the queue of its outgoing packets. Units are bytes and nanoseconds. */
export interface PortOptions {
  readonly nsPerByte?: number;
  readonly delayNs?: number;
  readonly capacity?: number;
  /** Packets are marked if the queue has at least this length; 0: never. */
  readonly mark?: number;
  /** Longer packets are dropped silently; 0: none. The length counts from the IP header to the ICRC. */
  readonly mtu?: number;
  readonly up?: boolean;
  /** Faults of data packets and of MADs. */
  readonly data?: FaultRates;
  readonly mads?: FaultRates;
  readonly longestDelayNs?: number;
  readonly longestAncientNs?: number;
}

export interface HostOptions {
  readonly skewPpm?: number;
  /** The host's clock at the start of the simulation. */
  readonly startNs?: number;
  /** Share of steps that a polling program executes. */
  readonly polls?: number;
  readonly stalls?: number;
  readonly longestStallNs?: number;
  /** Share of small packets sent and received individually: the engine's fast path. */
  readonly single?: number;
  readonly latencyNs?: number;
  /** CPU time of a step and of a packet. */
  readonly stepNs?: number;
  readonly packetNs?: number;
  readonly cqEntries?: number;
  readonly window?: number;
  readonly longWindowBytes?: number;
  readonly ecn?: boolean;
  readonly keepAliveNs?: number;
}

/** The requests of one side of a connection. Depths are powers of two. */
export interface Traffic {
  readonly send?: number;
  readonly write?: number;
  readonly writeImmediate?: number;
  readonly read?: number;
  readonly fetchAdd?: number;
  readonly swap?: number;
  readonly minBytes: number;
  readonly maxBytes: number;
  readonly depth: number;
  readonly receives: number;
  /** Number of messages; 0: until the flow is stopped. */
  readonly messages: number;
  readonly thinkNs?: number;
  /** Share of receives that are posted late, and their maximum delay. */
  readonly late?: number;
  readonly lateNs?: number;
  readonly inlined?: number;
  readonly unsignaled?: number;
}

export interface QpAttributes {
  readonly path: CmPath;
  readonly pathMtu: number;
  readonly destinationQpn: number;
  readonly receivePsn: number;
  readonly sendPsn: number;
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly minRnrTimer: number;
  readonly ackTimeout: number;
  readonly retryCount: number;
  readonly rnrRetry: number;
  readonly rnrTimeout: number;
  readonly extensions: number;
}

/** Figures of a queue since the last reset; lengths in bytes. */
export interface PortFigures {
  readonly longest: number;
  /** Maximum queue length that 99% of the packets found. */
  readonly most: number;
  readonly dropped: number;
  /** Packets dropped because they were longer than the MTU. */
  readonly tooLong: number;
  readonly marked: number;
  readonly sent: number;
  readonly sentBytes: number;
}

export interface Figures {
  readonly packets: number;
  readonly lost: number;
  readonly events: number;
  /** Packets in transit. */
  readonly live: number;
  /** A hash of all packets and their times. */
  readonly digest: string;
}

export const NewsKind = { none: 0, mad: 1, timer: 2, qpEvent: 3, flowDone: 4 } as const;
export const QpEvent = { established: 1, drained: 2, fatal: 3, peerLost: 4 } as const;

/** Values of one flow and direction in {@link NativeSimulation.flowFigures}. */
export const FLOW_FIGURES = 5;

/** Hosts, switches and links are identified by number, in order of creation. Ports 2n and 2n + 1 belong to link n. */
export interface NativeSimulation {
  addHost(gid: Gid): number;
  addSwitch(): number;
  addLink(a: number, b: number): number;
  setPort(port: number, options: PortOptions): void;
  findRoutes(): void;
  boot(host: number, options: HostOptions & { slot: number }): void;
  crash(host: number): void;
  sendMad(host: number, path: CmPath, mad: Uint8Array, psn: number): void;
  /** Sets a timer on the host's clock. For a number without a host, the clock is exact. */
  setTimer(host: number, ns: number, id: number): void;
  addFlow(forth: Traffic | undefined, back: Traffic | undefined, mayFail: boolean, stuckNs: number): number;
  /** Side 0 issues the requests of `forth`. */
  makeEndpoint(host: number, flow: number, side: number): number;
  /** Without attributes, returns the QPN. With attributes, moves the queue pair to RTS and returns a status. */
  bring(endpoint: number, attributes?: QpAttributes): number;
  setDreqOnExit(endpoint: number, path: CmPath, mad: Uint8Array): void;
  startFlow(flow: number, client: number, serverHost: number, serverQpn: number): boolean;
  stopFlow(flow: number): void;
  endEndpoint(endpoint: number): void;
  /** Runs until this time, or until an event (true), which {@link News} then contains. */
  run(untilNs: number): boolean;
  now(): number;
  violations(): string[];
  /** For each flow and direction: completed messages, bytes since the reset, start, end, and the status of the first failure (0: none). */
  flowFigures(): Float64Array;
  portFigures(port: number): PortFigures;
  resetFigures(): void;
  figures(): Figures;
  /** For each fault that has occurred: port, packet number, and kind. */
  appliedFaults(): Float64Array;
  /** Restricts the faults to these. */
  prescribeFaults(faults: Float64Array): void;
  objectsLeft(host: number): number;
  counters(host: number): Record<string, number>;
}

/** The latest event. The arrays are reused. */
export interface News {
  /** Kind, host or flow, and three values. */
  readonly values: Float64Array;
  readonly mad: Uint8Array;
  /** Source and destination. */
  readonly gids: Uint8Array;
}

interface Addon {
  NativeSimulation: new (
    seed: number,
    values: Float64Array,
    mad: Uint8Array,
    gids: Uint8Array,
  ) => NativeSimulation;
}

let loaded: Addon | undefined;

function addon(): Addon {
  const file = process.env.NETWORKDIRECT_SIMULATION_ADDON ?? BUILT;
  try {
    loaded ??= require(file) as Addon;
    return loaded;
  } catch (cause) {
    throw new Error(
      `The simulation's addon cannot be loaded (${cause instanceof Error ? cause.message : String(cause)}). Build it: make -C test/native simulation`,
      { cause },
    );
  }
}

/** Creates a simulation without hosts. The seed is an integer below 2^48. */
export function createSimulation(seed: number): { native: NativeSimulation; news: News } {
  const news = { values: new Float64Array(5), mad: new Uint8Array(256), gids: new Uint8Array(32) };
  return { native: new (addon().NativeSimulation)(seed, news.values, news.mad, news.gids), news };
}
