/** Parts shared by scenarios: topologies, ranges, kinds of traffic, figures. */
import type { SimulatedHost } from './host.js';
import type { FaultRates, HostOptions, PortOptions, Traffic } from './native-simulation.js';
import { FLOW_FIGURES } from './native-simulation.js';
import { rate, whole } from './scenario.js';
import { Violation, type World } from './world.js';

/** Nanoseconds per byte of a rate in Gbit/s. */
export const nsPerByte = (gigabits: number): number => 8 / gigabits;

/** Ranges of packet and host faults, each absent in half of the runs. */
export const faultRanges = {
  loss: rate(0.02),
  duplicate: rate(0.02),
  delay: rate(0.02),
  ancient: rate(0.001),
  madLoss: rate(0.2),
  madDuplicate: rate(0.2),
  madAncient: rate(0.2),
  skewPpm: whole(0, 100_000, 0.5),
  polls: rate(0.9),
  stalls: rate(0.002),
  single: rate(1),
};

type FaultPlan = { readonly [K in keyof typeof faultRanges]: number };

export function faultsOf(plan: FaultPlan): { data: FaultRates; mads: FaultRates } {
  const { loss, duplicate, delay, ancient, madLoss, madDuplicate, madAncient } = plan;
  return {
    data: { loss, duplicate, delay, ancient },
    mads: { loss: madLoss, duplicate: madDuplicate, delay: madDuplicate, ancient: madAncient },
  };
}

/** A host's options. Its clock is up to `skewPpm` too fast or too slow. */
export function hostOf(world: World, plan: FaultPlan, more: HostOptions = {}): HostOptions {
  const skewPpm = (world.below(2001) / 1000 - 1) * plan.skewPpm;
  const startNs = 1 + world.below(2 ** 40);
  return { skewPpm, startNs, polls: plan.polls, stalls: plan.stalls, single: plan.single, ...more };
}

/** Hosts around one switch. The port of the switch towards host n is `portTo(n)`. */
export function star(world: World, count: number, edge: PortOptions, queue: PortOptions = edge) {
  const middle = world.native.addSwitch();
  const hosts = world.addHosts(count);
  const links = hosts.map(({ vertex }) => world.link(vertex, middle, edge));
  for (const link of links) world.native.setPort(2 * link + 1, queue);
  world.native.findRoutes();
  return { hosts, links, portTo: (host: SimulatedHost) => 2 * links[hosts.indexOf(host)]! + 1 };
}

/** Traffic with messages of all kinds. */
export function mixed(
  world: World,
  messages: number,
  maxBytes: number,
  more: Partial<Traffic> = {},
): Traffic {
  const depth = 2 ** world.below(6);
  return {
    send: 1 + world.below(4),
    write: world.below(4),
    writeImmediate: world.below(2),
    read: world.below(3),
    fetchAdd: world.below(2),
    swap: world.below(2),
    minBytes: 1,
    maxBytes: 1 + world.below(maxBytes),
    depth,
    receives: 2 * depth,
    messages,
    thinkNs: world.below(2) * world.below(200_000),
    late: world.below(2) * 0.02,
    inlined: world.below(2) * 0.5,
    unsignaled: world.below(2) * 0.7,
    ...more,
  };
}

/** Jain's fairness index: 1 if all flows get the same share, 1/n if one gets everything. */
export function jain(shares: readonly number[]): number {
  const sum = shares.reduce((all, one) => all + one, 0);
  const squares = shares.reduce((all, one) => all + one * one, 0);
  return squares === 0 ? 1 : (sum * sum) / (shares.length * squares);
}

/** Bytes of each flow in client-to-server direction since the last reset. */
export function bytesOf(world: World, flows: readonly { flow: number }[]): number[] {
  const figures = world.native.flowFigures();
  return flows.map(({ flow }) => figures[flow * 2 * FLOW_FIGURES + 1]!);
}

/** @throws Violation */
export function demand(holds: boolean, what: string): void {
  if (!holds) throw new Violation(what);
}
