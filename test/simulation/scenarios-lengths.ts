/** Paths that silently drop packets because of their length. */
import { WcStatus } from '../../kernel-bridge/ioctl/constants.js';
import type { FlowConnection } from './connection.js';
import { FLOW_FIGURES, type PortOptions, type Traffic } from './native-simulation.js';
import { demand, faultRanges, faultsOf, hostOf, mixed, nsPerByte } from './parts.js';
import { persist } from './persistence.js';
import { type Range, scenario, whole } from './scenario.js';
import type { World } from './world.js';

const LONGEST_MS = 3_600_000;
const CABLE = { nsPerByte: nsPerByte(10), delayNs: 5000, capacity: 1 << 22 };
const MTUS = [4096, 1024, 2048] as const;
/** Longer packets that two instances may negotiate: none, for links with an MTU of 9000 and of 1500, and the maximum. */
const PACKETS = [0, 8936, 1432, 16_384] as const;
/** Minimum IP MTU. */
const SMALLEST_MTU = 576;
/** Bytes from the IP header to the ICRC without the payload, for the longest headers. The shortest have 44 bytes. */
const HEADERS = 80;
const FORTH = 1;
const BACK = 2;
/** Factor for fault rates. Packets may have 16 fragments, and losing or delaying one loses the whole packet. */
const FEW_FAULTS = 0.1;
/** Delay after the first lost probe (RFC 8899), which doubles with each further one. */
const FIRST_PROBE_MS = 5000;
/** Clocks may be off by 10%. */
const SKEW = 1.3;

const lengthRanges = {
  mtu: whole(0, MTUS.length - 1),
  packets: whole(0, PACKETS.length - 1, 0.5),
  /** The MTU of the path, relative to the connection's packets. */
  narrow: { simplest: 1, most: 0 } satisfies Range,
  /** FORTH, BACK or both. */
  ways: whole(FORTH, FORTH | BACK),
  delayUs: whole(1, 20_000),
  ...faultRanges,
};

type LengthPlan = { readonly [K in keyof typeof lengthRanges]: number };

/** Two routers with a host at each. The path connects the routers. */
function twoSites(world: World, plan: LengthPlan) {
  const [mtu, packetBytes] = [MTUS[plan.mtu]!, PACKETS[plan.packets]!];
  world.settings = { ...world.settings, mtu, packetBytes, ackTimeoutCode: 15 };
  const [a, b] = [world.native.addSwitch(), world.native.addSwitch()];
  const faults = faultsOf({
    ...plan,
    loss: plan.loss * FEW_FAULTS,
    duplicate: plan.duplicate * FEW_FAULTS,
    delay: plan.delay * FEW_FAULTS,
  });
  const path = { ...CABLE, delayNs: plan.delayUs * 1000, ...faults };
  const middle = world.link(a, b, path);
  const [client, server] = world.addHosts(2);
  world.link(client!.vertex, a, CABLE);
  world.link(server!.vertex, b, CABLE);
  world.native.findRoutes();
  for (const host of [client!, server!]) world.boot(host, hostOf(world, plan, { cqEntries: 1 << 13 }));
  const set = (ways: number, options: PortOptions): void => {
    if (ways & FORTH) world.native.setPort(2 * middle, options);
    if (ways & BACK) world.native.setPort(2 * middle + 1, options);
  };
  const vanished = (): number =>
    world.native.portFigures(2 * middle).tooLong + world.native.portFigures(2 * middle + 1).tooLong;
  return { client: client!, server: server!, set, vanished };
}

/** An IP MTU at which the path drops the connection's full packets. */
function narrowMtu({ mtu, narrow }: LengthPlan): number {
  return Math.max(SMALLEST_MTU, Math.round(narrow * MTUS[mtu]!));
}

/** Failure statuses of the two directions of a flow; 0: no failure. */
function failures(world: World, { flow }: FlowConnection): number[] {
  const figures = world.native.flowFigures();
  return [0, 1].map((half) => figures[(flow * 2 + half) * FLOW_FIGURES + FLOW_FIGURES - 1]!);
}

/** Messages with data in one direction: no Reads, or only Reads. */
function towards(world: World, way: number, messages: number, bytes: Partial<Traffic>): Traffic {
  const none = { fetchAdd: 0, swap: 0, inlined: 0 };
  const kinds = way === FORTH ? { read: 0 } : { send: 0, write: 0, writeImmediate: 0, read: 1 };
  return mixed(world, messages, 1, { ...none, ...kinds, ...bytes });
}

export const hole = scenario({
  name: 'hole',
  what: 'a path that drops long packets silently: connections between two instances continue with fragments, others time out',
  share: 0.3,
  ranges: {
    ...lengthRanges,
    flows: whole(1, 4),
    others: whole(0, 4),
    messages: whole(1, 300),
    bytes: whole(1, 40_000),
  },
  run(world, plan) {
    const { client, server, set, vanished } = twoSites(world, plan);
    const mtu = narrowMtu(plan);
    const full = world.settings.mtu;
    set(plan.ways, { mtu });
    const both = { client, server, mayFail: false };
    for (let i = 0; i < plan.flows; i++) {
      const forth = mixed(world, plan.messages, plan.bytes);
      const back = world.below(2) ? mixed(world, plan.messages, plan.bytes) : undefined;
      world.connect({ ...both, forth, back });
    }
    const doomed: FlowConnection[] = [];
    for (let i = 0; i < plan.others; i++) {
      // Packets that fit are delivered. The first full packet ends the connection.
      const fits = mixed(world, plan.messages, mtu - HEADERS);
      world.connect({ ...both, ours: false, forth: fits });
      const way = plan.ways & FORTH ? FORTH : BACK;
      const forth = towards(world, way, plan.messages, {
        minBytes: full,
        maxBytes: full + world.below(plan.bytes),
      });
      doomed.push(world.connect({ client, server, mayFail: true, ours: false, forth }));
    }
    world.finish(LONGEST_MS);
    for (const flow of doomed) {
      const [first] = failures(world, flow);
      demand(
        flow.state === 'lost' && first === WcStatus.TIMEOUT_RETRY_ERROR,
        `flow ${flow.flow}, whose packets cannot pass, is ${flow.state}, with status ${first} of its first failure`,
      );
    }
    return { vanished: vanished() };
  },
});

export const reroute = scenario({
  name: 'reroute',
  what: 'a path whose MTU falls during connections and rises again: those between two instances survive, and stop using fragments',
  share: 0.3,
  ranges: {
    ...lengthRanges,
    flows: whole(1, 4),
    others: whole(0, 2),
    bytes: whole(8192, 40_000),
    falls: whole(1, 6),
    fallMs: whole(1, 20_000),
    riseMs: whole(1, 5000),
  },
  run(world, plan) {
    const { client, server, set, vanished } = twoSites(world, plan);
    const steady = { thinkNs: 200_000_000, maxBytes: plan.bytes };
    const flows = Array.from({ length: plan.flows }, () =>
      world.connect({
        client,
        server,
        mayFail: false,
        forth: mixed(world, 0, plan.bytes, steady),
        back: world.below(2) ? mixed(world, 0, plan.bytes, steady) : undefined,
      }),
    );
    for (let i = 0; i < plan.others; i++)
      persist(world, {
        client,
        server,
        ours: false,
        forth: mixed(world, 100, plan.bytes, { thinkNs: 200_000_000 }),
      });
    const began = world.nowMs;
    for (let i = 0; i < plan.falls; i++) {
      world.run(1 + world.below(plan.riseMs));
      set(plan.ways, { mtu: narrowMtu({ ...plan, narrow: world.below(100) / 130 }) });
      world.run(1 + world.below(plan.fallMs));
      set(FORTH | BACK, { mtu: 0 });
    }
    set(FORTH | BACK, { data: { loss: 0, duplicate: 0, delay: 0, ancient: 0 } });
    // Runs until after the last lost probe.
    world.run((FIRST_PROBE_MS + 2 * (world.nowMs - began)) * SKEW);
    const fragments = () =>
      [client, server].reduce(
        (sum, { vertex }) => sum + (world.native.counters(vertex).sent_fragment ?? 0),
        0,
      );
    const before = fragments();
    world.run(5000);
    const after = fragments();
    for (const flow of flows) flow.stop();
    world.finish(LONGEST_MS);
    demand(after === before, `${after - before} fragments on a path that lets whole packets pass`);
    return { vanished: vanished(), fragments: after };
  },
});
